/* gemm_ffma.c -- the host side of gemm_ffma.cu: large products of f32 by
 * multiply-add instructions on compute capability 9.0.
 *
 * The launch has as many blocks as run at the same time, or fewer if the sums
 * are so short that a block would get less than LEAST_STEPS stages. A block
 * computes whole tiles at the end and shares the first tiles with others. If the
 * tiles fill the blocks a whole number of times, none is shared. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const kernels[] = {"gemm_ffma", NULL};
static const kiln__family family = {"gemm_ffma", kernels,
                                    kiln__gemm_ffma_params};

_Static_assert((int)GEMM_FFMA_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_ffma.cu begins with the parameters of every path");

/* The tiles. Two blocks of the smaller one run on an SM. */
static const kiln__gemm_tile tiles[] = {{128, 256, 1, 788}, {128, 128, 2, 795}};

enum {
  N_TILES = sizeof tiles / sizeof tiles[0],
  DEPTH = 8,      /* positions of the sum per stage */
  PAD = 4,        /* elements after each line of a stage, of A and of B */
  BARRIERS = 128, /* bytes of a stage for barriers */
  STAGES = 4,
  HELPERS = 128, /* threads that copy */
  LEAST_STEPS = 16
};

/* How the blocks of a launch share the steps of all tiles. */
typedef struct shares {
  uint64_t tiles, steps;   /* tiles, and steps per tile */
  uint64_t blocks, shared; /* shared: number of tiles that blocks share */
} shares;

static kiln__gemm_shape shape_of(const kiln__gemm *call)
{
  return (kiln__gemm_shape){call->args.m, call->args.n, call->args.k,
                            call->args.batch, kiln__sm_count(call->device)};
}

static shares share(const kiln__gemm_shape *shape, const kiln__gemm_tile *tile)
{
  shares s = {.tiles = kiln__gemm_tiles(shape, tile),
              .steps = kiln__divide_up(shape->k, DEPTH),
              .blocks = shape->sms * tile->per_sm};
  const uint64_t most = s.tiles * s.steps / LEAST_STEPS;
  uint64_t rest;

  if (s.tiles < s.blocks && most < s.blocks)
    s.blocks = most > s.tiles ? most : s.tiles;
  /* The same number of blocks for each tile is worth a few idle ones. */
  if (s.tiles < s.blocks && s.blocks % s.tiles * 20 <= s.blocks)
    s.blocks -= s.blocks % s.tiles;
  rest = s.tiles % s.blocks;
  s.shared = rest == 0 ? 0 : s.tiles < s.blocks ? rest : rest + s.blocks;
  return s;
}

/* Returns the best row of the tiles, or N_TILES if none fits into the matrix and
 * is the tile that the caller requests. */
static uint32_t choose(const kiln__gemm *call, double *best)
{
  const kiln__gemm_shape shape = shape_of(call);
  const kiln_gemm_tile wanted = call->tile;
  const uint32_t m = call->swapped ? wanted.n : wanted.m;
  const uint32_t n = call->swapped ? wanted.m : wanted.n;
  uint32_t row = N_TILES;

  *best = 0;
  for (uint32_t i = 0; i < N_TILES; i++) {
    const kiln__gemm_tile *t = &tiles[i];
    const shares s = share(&shape, t);
    const double e = kiln__gemm_streamed(&shape, t, s.blocks);

    if (shape.m < t->m || shape.n < t->n || (m != 0 && m != t->m) ||
        (n != 0 && n != t->n) || s.tiles > UINT32_MAX / 2 ||
        s.shared * s.steps > UINT32_MAX / 2 || e <= *best)
      continue;
    *best = e;
    row = i;
  }
  return row;
}

static uint32_t vector_of(const kiln__gemm *call, bool a)
{
  const kiln__gemm_args *g = &call->args;

  if (a && call->a_k)
    return 1;
  return kiln__gemm_vector(call, a ? &g->a : &g->b,
                           a ? KILN__GEMM_A : KILN__GEMM_B, KILN_F32,
                           a ? g->m : g->n, 4);
}

/* Returns whether the kernel can compute a call, whatever its tile. */
static bool suits(const kiln__gemm *call)
{
  return call->device->traits.cc == 90 && call->type == KILN_F32 &&
         call->precision == KILN_GEMM_IEEE && call->tile.split == 0 &&
         !call->b_k && (call->a_k || vector_of(call, true) > 1) &&
         call->args.k > 0 && call->args.k <= UINT32_MAX / 2;
}

/* A tile that the caller requests is computed here if its sums shall not be
 * split. Otherwise the model decides. */
static bool plan(kiln__gemm *call)
{
  const bool free_tile = call->tile.m == 0 && call->tile.n == 0;
  const kiln__gemm_shape shape = shape_of(call);
  kiln__gemm_plan *p = &call->plan;
  const kiln__gemm_tile *t;
  double efficiency;
  uint32_t row;
  shares s;

  if (!suits(call))
    return false;
  row = choose(call, &efficiency);
  if (row == N_TILES ||
      (free_tile && efficiency <= kiln__gemm_simt_best(call)->efficiency))
    return false;
  t = &tiles[row];
  s = share(&shape, t);
  p->variant = row;
  p->splits = 1;
  p->tiles = s.tiles;
  p->shared = s.shared;
  p->choice.efficiency = efficiency;
  p->choice.tile = (kiln_gemm_tile){call->swapped ? t->n : t->m,
                                    call->swapped ? t->m : t->n, 1};
  p->choice.blocks = s.blocks;
  if (s.shared > 0) {
    call->need.descriptors = (size_t)s.blocks;
    kiln__need_temp(&call->need,
                    (size_t)s.blocks * t->m * t->n * sizeof(float));
  }
  return true;
}

static void specify(kiln__spec *spec, const kiln__gemm *call)
{
  const kiln__gemm_args *a = &call->args;
  uint32_t *v = spec->value;

  kiln__gemm_specify(spec, &family, call);
  spec->suffix = 'a';
  v[GEMM_FFMA_TILE_N] = tiles[call->plan.variant].n;
  v[GEMM_FFMA_STAGES] = STAGES;
  v[GEMM_FFMA_A_K] = call->a_k;
  v[GEMM_FFMA_VECTOR_A] = vector_of(call, true);
  v[GEMM_FFMA_VECTOR_B] = vector_of(call, false);
  v[GEMM_FFMA_VECTOR_D] =
      kiln__gemm_vector(call, &a->d, KILN__GEMM_D, call->d_type, a->n, 4);
}

/* Returns the size of the stages in bytes. */
static uint32_t shared_bytes(const kiln__gemm_tile *t)
{
  const uint32_t line = (uint32_t)(t->m + t->n + 2 * PAD);

  return STAGES * (uint32_t)(DEPTH * line * sizeof(float) + BARRIERS);
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *call,
                          const kiln_workspace *workspace)
{
  const kiln__gemm_tile *t = &tiles[call->plan.variant];
  const uint32_t first = (uint32_t)call->plan.shared;
  const kiln__gemm_tiling tiling = kiln__gemm_number_tiles(call, t->m, t->n);
  kiln__spec spec = {0};
  kiln_launch_config config =
      kiln__grid(stream, call->plan.choice.blocks, (uint32_t)HELPERS + t->n);
  kiln_status st = KILN_OK;
  kiln__call c;

  specify(&spec, call);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, call->need));
  config.smem = shared_bytes(t);
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(call->args), KILN_ARG(tiling), KILN_ARG(first),
                   KILN_ARG(c.storage.temp), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

const kiln__gemm_path kiln__gemm_ffma = {"ffma", plan, launch};
