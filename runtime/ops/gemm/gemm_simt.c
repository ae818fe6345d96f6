/* gemm_simt.c -- the host side of gemm_simt.cu: matrix products of every type
 * by ordinary multiply-add instructions, on every device. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const kernels[] = {"gemm_simt", NULL};
static const kiln__family family = {"gemm_simt", kernels,
                                    kiln__gemm_simt_params};

_Static_assert((int)GEMM_SIMT_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_simt.cu begins with the parameters of every path");

/* How a block divides its tile. */
typedef struct division {
  uint8_t k;                  /* positions of the sum per stage */
  uint8_t thread_m, thread_n; /* sums per thread */
  uint8_t lanes_m, warps_m;   /* lanes and warps that have different rows */
  uint8_t stages;             /* with cp.async */
  bool
      single; /* cp.async copies operands that are turned, element by element */
} division;

/* The tiles for sums of 4 bytes and of 8 bytes:
 *   X(m, n, blocks per SM, plateau in per mille, k, rows and columns per thread,
 *     lanes and warps that have different rows, stages, single) */
/* clang-format off */
#define TILES_4(X)                                                             \
  X(128, 256, 1, 782,  8,  8, 16,  8, 2, 4, true)                              \
  X(128, 128, 2, 760,  8,  8,  8,  8, 2, 4, true)                              \
  X(128,  64, 4, 720,  8,  8,  8,  4, 4, 3, false)                             \
  X( 64,  64, 2, 620, 16,  8,  4,  4, 2, 3, false)                             \
  X(128,  32, 5, 550, 16,  8,  4,  4, 4, 3, false)                             \
  X( 32,  32, 8, 450, 16,  4,  4,  4, 2, 3, false)                             \
  X(  8, 256, 4, 300, 16,  4,  4,  2, 1, 4, false)                             \
  X(256,   8, 4, 300, 16,  4,  4, 16, 4, 4, false)
#define TILES_8(X)                                                             \
  X( 64,  64, 2, 800, 16,  4,  4,  8, 2, 3, false)                             \
  X( 32,  32, 4, 500, 16,  4,  2,  4, 2, 3, false)
/* clang-format on */

#define TILE(m, n, per_sm, plateau, ...) {m, n, per_sm, plateau},
#define DIVISION(m, n, per_sm, plateau, ...) {__VA_ARGS__},

static const kiln__gemm_tile tiles_4[] = {TILES_4(TILE)};
static const kiln__gemm_tile tiles_8[] = {TILES_8(TILE)};
static const division rest_4[] = {TILES_4(DIVISION)};
static const division rest_8[] = {TILES_8(DIVISION)};

enum {
  N_4 = sizeof tiles_4 / sizeof tiles_4[0],
  N_8 = sizeof tiles_8 / sizeof tiles_8[0],
  MOST_DEPTH = 1 << 30 /* positions of a sum per block */
};

/* Returns the tiles for sums of the call's type, and their number. */
static const kiln__gemm_tile *tiles_of(const kiln__gemm *call, uint32_t *n)
{
  const bool wide = call->sum == KILN_F64;

  *n = wide ? N_8 : N_4;
  return wide ? tiles_8 : tiles_4;
}

static kiln__gemm_shape shape_of(const kiln__gemm *call)
{
  return (kiln__gemm_shape){call->args.m, call->args.n, call->args.k,
                            call->args.batch, kiln__sm_count(call->device)};
}

/* Returns the caller's tile in the normal form of the call. */
static kiln_gemm_tile wanted_tile(const kiln__gemm *call)
{
  const kiln_gemm_tile t = call->tile;

  return call->swapped ? (kiln_gemm_tile){t.n, t.m, t.split} : t;
}

const kiln__gemm_simt_tile *kiln__gemm_simt_best(kiln__gemm *call)
{
  const kiln__gemm_shape shape = shape_of(call);
  kiln__gemm_simt_tile *best = &call->simt;
  const kiln__gemm_tile *tiles;
  uint32_t n;

  if (best->splits != 0)
    return best;
  tiles = tiles_of(call, &n);
  best->variant =
      kiln__gemm_choose(&shape, tiles, n, wanted_tile(call), &best->splits);
  best->efficiency =
      best->variant < n
          ? kiln__gemm_efficiency(&shape, &tiles[best->variant], best->splits)
          : 0;
  return best;
}

static bool plan(kiln__gemm *call)
{
  const kiln__gemm_shape shape = shape_of(call);
  const kiln__gemm_simt_tile *best = kiln__gemm_simt_best(call);
  kiln__gemm_plan *p = &call->plan;
  const kiln__gemm_tile *tiles, *t;
  uint32_t n;

  tiles = tiles_of(call, &n);
  if (best->variant >= n)
    return false;
  p->variant = best->variant;
  p->splits = best->splits;
  t = &tiles[p->variant];
  if (shape.k / p->splits >= MOST_DEPTH)
    p->splits = (uint32_t)kiln__divide_up(shape.k, MOST_DEPTH);
  p->tiles = kiln__gemm_tiles(&shape, t);
  p->choice.tile = (kiln_gemm_tile){call->swapped ? t->n : t->m,
                                    call->swapped ? t->m : t->n, p->splits};
  p->choice.blocks = p->tiles * p->splits;
  p->choice.efficiency = kiln__gemm_efficiency(&shape, t, p->splits);
  if (p->splits > 1) {
    call->need.descriptors = (size_t)(p->tiles * (p->splits - 1));
    kiln__need_temp(&call->need, call->need.descriptors * t->m * t->n *
                                     kiln__size(call->sum));
  }
  return true;
}

/* Returns whether cp.async copies an operand. It copies elements as they are,
 * so shared memory must hold the type of A and B. A tile whose consecutive
 * elements follow the sum (`by_k`) is turned. cp.async can do that with single
 * elements only. That is worth it if vectors are not aligned anyway, or if a
 * thread needs its registers for sums. */
static bool is_async(const kiln__gemm *call, const division *d, bool by_k,
                     uint32_t *vector)
{
  if (call->device->traits.cc < 80 || call->type != call->sum)
    return false;
  if (by_k && d->single)
    *vector = 1;
  return !by_k || *vector == 1;
}

static void specify(kiln__spec *spec, const kiln__gemm *call)
{
  const kiln__gemm_args *a = &call->args;
  const bool wide = call->sum == KILN_F64;
  const division *d =
      wide ? &rest_8[call->plan.variant] : &rest_4[call->plan.variant];
  const uint32_t vec = wide ? 2 : 4;
  uint32_t n, *value = spec->value;
  const kiln__gemm_tile *t = &tiles_of(call, &n)[call->plan.variant];

  kiln__gemm_specify(spec, &family, call);
  value[GEMM_SIMT_TILE_M] = t->m;
  value[GEMM_SIMT_TILE_N] = t->n;
  value[GEMM_SIMT_TILE_K] = d->k;
  value[GEMM_SIMT_THREAD_M] = d->thread_m;
  value[GEMM_SIMT_THREAD_N] = d->thread_n;
  value[GEMM_SIMT_LANES_M] = d->lanes_m;
  value[GEMM_SIMT_WARPS_M] = d->warps_m;
  value[GEMM_SIMT_STAGES] = d->stages;
  value[GEMM_SIMT_PER_SM] = t->per_sm;
  value[GEMM_SIMT_A_K] = call->a_k;
  value[GEMM_SIMT_B_K] = call->b_k;
  value[GEMM_SIMT_VECTOR_A] = kiln__gemm_vector(
      call, &a->a, KILN__GEMM_A, call->type, call->a_k ? a->k : a->m, vec);
  value[GEMM_SIMT_VECTOR_B] = kiln__gemm_vector(
      call, &a->b, KILN__GEMM_B, call->type, call->b_k ? a->k : a->n, vec);
  value[GEMM_SIMT_VECTOR_D] =
      kiln__gemm_vector(call, &a->d, KILN__GEMM_D, call->d_type, a->n, vec);
  value[GEMM_SIMT_ASYNC] =
      (uint32_t)is_async(call, d, call->a_k, &value[GEMM_SIMT_VECTOR_A]) |
      (uint32_t)is_async(call, d, call->b_k, &value[GEMM_SIMT_VECTOR_B]) << 1;
  if (value[GEMM_SIMT_ASYNC] == 0)
    value[GEMM_SIMT_STAGES] = 2;
  value[GEMM_SIMT_CLAMP] = (uint32_t)(a->m < t->m) | (uint32_t)(a->n < t->n)
                                                         << 1;
  value[GEMM_SIMT_SPLIT] = call->plan.splits > 1;
}

/* Returns the size of the stages of both operands in bytes. The pitch of a line
 * is the same as in gemm_stage.cuh. */
static uint32_t shared_bytes(const kiln__spec *spec, size_t element)
{
  const uint32_t *v = spec->value;
  const uint32_t pad = 2 * (uint32_t)(16 / element);

  return v[GEMM_SIMT_STAGES] * v[GEMM_SIMT_TILE_K] *
         (v[GEMM_SIMT_TILE_M] + v[GEMM_SIMT_TILE_N] + pad) * (uint32_t)element;
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *call,
                          const kiln_workspace *workspace)
{
  kiln__spec spec = {0};
  const uint32_t splits = call->plan.splits;
  kiln__gemm_tiling t;
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__call c;

  specify(&spec, call);
  t = kiln__gemm_number_tiles(call, spec.value[GEMM_SIMT_TILE_M],
                              spec.value[GEMM_SIMT_TILE_N]);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, call->need));
  config = kiln__gemm_grid(
      stream, call->plan.choice.blocks,
      spec.value[GEMM_SIMT_TILE_M] / spec.value[GEMM_SIMT_THREAD_M] *
          spec.value[GEMM_SIMT_TILE_N] / spec.value[GEMM_SIMT_THREAD_N]);
  config.smem = shared_bytes(&spec, kiln__size(call->sum));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(call->args), KILN_ARG(t), KILN_ARG(splits),
                   KILN_ARG(c.storage.temp), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

const kiln__gemm_path kiln__gemm_simt = {"simt", plan, launch};
