/* gemm_small.c -- the host side of gemm_small.cu: batches of small products of
 * f32, and products of a long matrix and a small one. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const kernels[] = {"gemm_small", NULL};
static const kiln__family family = {"gemm_small", kernels,
                                    kiln__gemm_small_params};

_Static_assert((int)GEMM_SMALL_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_small.cu begins with the parameters of every path");

/* A tile, and how a block divides it. */
typedef struct form {
  uint8_t m, n;               /* rows and columns of D per tile */
  uint8_t k, stages;          /* positions of the sum per stage; stages */
  uint8_t thread_m, thread_n; /* sums per thread */
  uint8_t lanes_m, warps_m;   /* lanes and warps that have different rows */
  uint8_t per_sm;             /* blocks */
  bool turn;                  /* lines that follow the sum are turned */
  bool one_b;                 /* all tiles share one B of at most k rows */
} form;

/* Up to 64 x 64 the memory limits the products, and copies as they are need the
 * fewest instructions. The larger form is limited by arithmetic. Measured on an
 * H200. */
static const form forms[] = {
    {32, 32, 32, 2, 4, 4, 8, 1, 9, false, false},
    {64, 64, 32, 2, 8, 4, 4, 2, 4, false, false},
    {64, 128, 16, 3, 8, 8, 2, 4, 4, true, false},
    {32, 32, 32, 2, 4, 4, 8, 1, 12, false, true},
};

enum { N_FORMS = sizeof forms / sizeof forms[0] };

/* Returns whether all tiles of a call share B. */
static bool shares_b(const kiln__gemm_args *g, uint32_t pointers)
{
  return g->batch == 1 || (g->b.stride == 0 && (pointers & KILN__GEMM_B) == 0);
}

static uint64_t tiles_of(const kiln__gemm_shape *s, const form *f)
{
  return kiln__divide_up(s->m, f->m) * s->batch;
}

/* Returns whether a form fits a call: tiles in less than two rows of tiles per
 * product or with a common B, and enough of them to keep all SMs busy. */
static bool fits(const kiln__gemm_shape *s, const form *f, bool one_b)
{
  const uint64_t tiles = tiles_of(s, f);

  if (s->n > f->n || tiles < 2 * s->sms || tiles > UINT32_MAX)
    return false;
  return f->one_b ? one_b && s->k <= f->k : s->m <= 2u * f->m;
}

uint32_t kiln__gemm_small_choose(const kiln__gemm_shape *s, bool one_b)
{
  uint32_t best = N_FORMS;
  uint64_t least = UINT64_MAX;

  for (uint32_t i = 0; i < N_FORMS; i++) {
    const form *f = &forms[i];
    const uint64_t area = tiles_of(s, f) * f->m * f->n;

    if (fits(s, f, one_b) && area <= least) {
      least = area;
      best = i;
    }
  }
  return best;
}

static kiln__gemm_shape shape_of(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;

  return (kiln__gemm_shape){g->m, g->n, g->k, g->batch,
                            kiln__sm_count(call->device)};
}

/* Returns whether a call has a type and a tile for these kernels. */
static bool suits(const kiln__gemm *call)
{
  const kiln_gemm_tile wanted = call->desc->tile;

  return call->device->traits.cc >= 80 && call->type == KILN_F32 &&
         call->args.k > 0 && wanted.m == 0 && wanted.n == 0 &&
         wanted.split == 0;
}

static bool plan(kiln__gemm *call)
{
  const kiln__gemm_shape s = shape_of(call);
  kiln__gemm_plan *p = &call->plan;
  const form *f;
  uint32_t row;

  if (!suits(call))
    return false;
  row = kiln__gemm_small_choose(&s, shares_b(&call->args, call->pointers));
  if (row >= N_FORMS)
    return false;
  f = &forms[row];
  p->variant = row;
  p->splits = 1;
  p->tiles = tiles_of(&s, f);
  p->choice.tile = call->swapped ? (kiln_gemm_tile){f->n, f->m, 1}
                                 : (kiln_gemm_tile){f->m, f->n, 1};
  p->choice.blocks =
      p->tiles < s.sms * f->per_sm ? p->tiles : s.sms * f->per_sm;
  p->choice.efficiency = (double)s.m * (double)s.n * (double)s.batch /
                         ((double)p->tiles * f->m * f->n);
  return true;
}

/* How an operand is copied. */
typedef struct copying {
  uint32_t turned; /* 1 if its tiles are turned */
  uint32_t along;  /* 1 if loads have positions of a row */
  uint32_t vector;
  uint32_t bytes; /* of a tile */
} copying;

static copying copying_of(const kiln__gemm *call, const form *f, bool a)
{
  const kiln__gemm_args *g = &call->args;
  const bool k_first = a ? call->a_k : call->b_k;
  const uint32_t rows = a ? f->m : f->n;
  const uint64_t line = k_first ? g->k : a ? g->m : g->n;
  copying c = {k_first && f->turn, k_first && !f->turn, 1, 0};

  if (!c.turned)
    c.vector =
        kiln__gemm_vector(call, a ? &g->a : &g->b,
                          a ? KILN__GEMM_A : KILN__GEMM_B, KILN_F32, line, 4);
  c.bytes = 4 * (c.along ? rows * (f->k + 4u) : f->k * (rows + 4 * c.turned));
  return c;
}

/* Returns whether D should leave the L2 cache first: if the call moves more
 * than the cache holds, D would displace elements that are read again. */
static bool stores_once(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;
  const uint64_t one = g->m * g->k + g->k * g->n + g->m * g->n;

  return g->batch * one > (uint64_t)call->device->info.l2_bytes / 4;
}

static void specify(kiln__spec *spec, const kiln__gemm *call, const form *f,
                    const copying *a, const copying *b)
{
  const kiln__gemm_args *g = &call->args;
  uint32_t *value = spec->value;

  kiln__gemm_specify(spec, &family, call);
  value[GEMM_SMALL_TILE_M] = f->m;
  value[GEMM_SMALL_TILE_N] = f->n;
  value[GEMM_SMALL_TILE_K] = f->k;
  value[GEMM_SMALL_THREAD_M] = f->thread_m;
  value[GEMM_SMALL_THREAD_N] = f->thread_n;
  value[GEMM_SMALL_LANES_M] = f->lanes_m;
  value[GEMM_SMALL_WARPS_M] = f->warps_m;
  value[GEMM_SMALL_STAGES] = f->stages;
  value[GEMM_SMALL_PER_SM] = f->per_sm;
  value[GEMM_SMALL_A_K] = call->a_k;
  value[GEMM_SMALL_B_K] = call->b_k;
  value[GEMM_SMALL_VECTOR_A] = a->vector;
  value[GEMM_SMALL_VECTOR_B] = b->vector;
  value[GEMM_SMALL_VECTOR_D] =
      b->along
          ? 1
          : kiln__gemm_vector(call, &g->d, KILN__GEMM_D, call->d_type, g->n, 4);
  value[GEMM_SMALL_TURN] = a->turned | b->turned << 1;
  value[GEMM_SMALL_WHOLE] = (uint32_t)(g->m % f->m == 0) |
                            (uint32_t)(g->n == f->n) << 1 |
                            (uint32_t)(g->k % f->k == 0) << 2;
  value[GEMM_SMALL_ONE_B] = f->one_b;
  value[GEMM_SMALL_ONCE] = stores_once(call);
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *call,
                          const kiln_workspace *workspace)
{
  const form *f = &forms[call->plan.variant];
  const copying a = copying_of(call, f, true), b = copying_of(call, f, false);
  const uint32_t tiles = (uint32_t)call->plan.tiles;
  const uint32_t rows = (uint32_t)(call->plan.tiles / call->args.batch);
  kiln__spec spec = {0};
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__call c;

  specify(&spec, call, f, &a, &b);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, call->need));
  config = kiln__grid(stream, call->plan.choice.blocks,
                      (uint32_t)f->m / f->thread_m * (f->n / f->thread_n));
  config.smem = f->one_b ? f->stages * a.bytes + b.bytes
                         : f->stages * (a.bytes + b.bytes);
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(call->args), KILN_ARG(tiles), KILN_ARG(rows));
  kiln__storage_close(&c.storage);

done:
  return st;
}

const kiln__gemm_path kiln__gemm_small = {"small", plan, launch};
