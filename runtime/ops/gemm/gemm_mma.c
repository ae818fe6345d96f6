/* gemm_mma.c -- the host side of gemm_mma.cu: matrix products on tensor cores
 * from compute capability 7.5 on. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const kernels[] = {"gemm_mma", NULL};
static const kiln__family family = {"gemm_mma", kernels, kiln__gemm_mma_params};

_Static_assert((int)GEMM_MMA_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_mma.cu begins with the parameters of every path");

/* The tiles. A row of `tiles` and a row of `rest` describe one variant. The
 * plateaus are those of f64 on an H200. */
static const kiln__gemm_tile tiles[] = {{128, 128, 1, 900}, {64, 64, 3, 860}};
static const struct {
  uint8_t warps_m, warps_n; /* warps along the rows and the columns */
} rest[] = {{2, 4}, {2, 2}};

enum {
  N_TILES = sizeof tiles / sizeof tiles[0],
  LINE = 128, /* bytes of the sum per stage */
  LEAST = 16, /* smallest m and n; below, simple kernels are as fast */
  ORDER = 8,  /* rows of tiles per group */
  MOST_STAGES = 3
};

/* Returns whether the device has tensor cores for the call's type, and enough
 * of them to be faster than multiply-add instructions. */
static bool has_type(const kiln__gemm *call)
{
  const int cc = call->device->traits.cc;

  if (cc < 75)
    return false;
  switch (call->type) {
  case KILN_F16:
  case KILN_I8:
    return true;
  case KILN_F64:
    return cc == 80 || cc == 90 || cc == 100;
  case KILN_F32:
    return cc >= 80 && call->precision != KILN_GEMM_IEEE;
  default:
    return cc >= 80;
  }
}

static kiln__gemm_shape shape_of(const kiln__gemm *call)
{
  return (kiln__gemm_shape){call->args.m, call->args.n, call->args.k,
                            call->args.batch, kiln__sm_count(call->device)};
}

/* Returns the best row of the tiles, or their number if none matches the
 * caller's tile. */
static uint32_t choose_tile(const kiln__gemm *call)
{
  const kiln_gemm_tile t = call->tile;
  const kiln_gemm_tile wanted = {call->swapped ? t.n : t.m,
                                 call->swapped ? t.m : t.n, 1};
  const kiln__gemm_shape shape = shape_of(call);
  uint32_t splits;

  return kiln__gemm_choose(&shape, tiles, N_TILES, wanted, &splits);
}

/* Returns whether the numbers of lines and steps fit into 32 bits. */
static bool fits(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;
  const uint64_t most = UINT64_C(1) << 30;

  return g->m < most && g->n < most && g->k < most && g->batch < most;
}

/* Returns whether a call is one for tensor cores, whatever its tile. */
static bool suits(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;
  const kiln_gemm_tile wanted = call->tile;
  const bool free_tile = wanted.m == 0 && wanted.n == 0;

  return has_type(call) && g->k > 0 && wanted.split <= 1 && fits(call) &&
         !(free_tile && (g->m < LEAST || g->n < LEAST));
}

static bool plan(kiln__gemm *call)
{
  const kiln__gemm_shape shape = shape_of(call);
  const uint32_t row = suits(call) ? choose_tile(call) : N_TILES;
  kiln__gemm_plan *p = &call->plan;
  const kiln__gemm_tile *t;

  if (row >= N_TILES)
    return false;
  p->variant = row;
  p->splits = 1;
  t = &tiles[row];
  p->tiles = kiln__gemm_tiles(&shape, t);
  p->choice.tile = (kiln_gemm_tile){t->m, t->n, 1};
  p->choice.blocks = p->tiles;
  p->choice.efficiency = kiln__gemm_efficiency(&shape, t, 1);
  kiln__gemm_need_copies(&call->need, call);
  return true;
}

/* Returns the number of stages that fit into shared memory, at least 2. */
static uint32_t stages_of(const kiln__gemm *call, const kiln__gemm_tile *t)
{
  const uint32_t bytes = (uint32_t)(t->m + t->n) * LINE;
  const uint32_t fit =
      (uint32_t)call->device->traits.smem_per_block_optin / bytes;

  return fit < 2 ? 2 : fit < MOST_STAGES ? fit : MOST_STAGES;
}

static void specify(kiln__spec *spec, const kiln__gemm *call)
{
  const kiln__gemm_tile *t = &tiles[call->plan.variant];
  const uint32_t parts = kiln__gemm_parts(call);
  uint32_t *v = spec->value;

  kiln__gemm_specify(spec, &family, call);
  v[GEMM_MMA_POINTERS] &= (uint32_t)(KILN__GEMM_C | KILN__GEMM_D);
  v[GEMM_MMA_MATH] = kiln__gemm_math(call);
  v[GEMM_MMA_TILE_M] = t->m;
  v[GEMM_MMA_TILE_N] = t->n;
  v[GEMM_MMA_WARPS_M] = rest[call->plan.variant].warps_m;
  v[GEMM_MMA_WARPS_N] = rest[call->plan.variant].warps_n;
  v[GEMM_MMA_STAGES] = stages_of(call, t);
  v[GEMM_MMA_ORDER] = ORDER;
  v[GEMM_MMA_A_K] = kiln__gemm_source_of(call, true).k_major;
  v[GEMM_MMA_B_K] = kiln__gemm_source_of(call, false).k_major;
  v[GEMM_MMA_TERMS] = parts == 3 ? 6 : parts == 2 ? 3 : 1;
  v[GEMM_MMA_VECTOR_D] = kiln__gemm_vector(call, &call->args.d, KILN__GEMM_D,
                                           call->d_type, call->args.n, 2);
}

/* Points an operand of the kernel's argument to its copy. */
static void use_copy(kiln__gemm_operand *o, const kiln__gemm_source *s,
                     uint64_t copy)
{
  if (!s->packed)
    return;
  o->data = copy;
  o->leading = s->leading;
  o->stride = s->batch > 1 ? s->to_lines * s->leading * s->parts : 0;
}

static kiln_status launch_product(const kiln__gemm_product *p)
{
  const uint32_t *v = p->spec->value;
  const kiln__gemm_source *s = p->source;
  kiln__gemm_args g = p->call->args;
  const struct {
    uint32_t rows, columns, steps, padding;
    uint64_t a_part, b_part;
  } t = {(uint32_t)kiln__divide_up(g.m, v[GEMM_MMA_TILE_M]),
         (uint32_t)kiln__divide_up(g.n, v[GEMM_MMA_TILE_N]),
         (uint32_t)kiln__divide_up(g.k * s[0].size, LINE) * v[GEMM_MMA_TERMS],
         0,
         s[0].to_lines * s[0].leading,
         s[1].to_lines * s[1].leading};
  kiln_launch_config config =
      kiln__gemm_grid(p->stream, p->call->plan.choice.blocks,
                      32 * v[GEMM_MMA_WARPS_M] * v[GEMM_MMA_WARPS_N]);
  kiln__args in;

  use_copy(&g.a, &s[0], p->copy[0]);
  use_copy(&g.b, &s[1], p->copy[1]);
  config.smem =
      v[GEMM_MMA_STAGES] * (v[GEMM_MMA_TILE_M] + v[GEMM_MMA_TILE_N]) * LINE;
  kiln__user_args(&in, p->spec);
  return KILN_LAUNCH(p->kernel, &config, KILN__USER_ARG(in), KILN_ARG(g),
                     KILN_ARG(t));
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *call,
                          const kiln_workspace *workspace)
{
  kiln__spec spec;

  specify(&spec, call);
  return kiln__gemm_launch(stream, call, workspace, &spec, launch_product);
}

const kiln__gemm_path kiln__gemm_mma = {"mma", plan, launch};
