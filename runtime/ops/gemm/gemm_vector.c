/* gemm_vector.c -- the host side of gemm_vector.cu: products of a matrix and up
 * to eight vectors. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const kernels[] = {"gemm_vector", NULL};
static const kiln__family family = {"gemm_vector", kernels,
                                    kiln__gemm_vector_params};

_Static_assert((int)GEMM_VECTOR_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_vector.cu begins with the parameters of every path");

enum {
  MOST_THIN = 8,        /* vectors */
  MOST_STRIDED = 2,     /* vectors whose elements each lane loads one by one */
  LEAST_SIZE = 1 << 14, /* elements of the matrix; below, tiles are as fast */
  MOST_SUMS = 32,       /* per thread, in units of unit_of() */
  FEW = 2,              /* vectors that leave registers for more loads */
  MOST_SPLITS = 32,
  LEAST_DEPTH = 256 /* positions of the sum per block */
};

/* How a block works. */
typedef struct form {
  uint32_t warps;  /* per block */
  uint32_t lanes;  /* of a warp, with different results */
  uint32_t lines;  /* per warp */
  uint32_t unroll; /* loads per round and thread */
  uint32_t per_sm; /* blocks */
} form;

/* Measured on an H200 with matrices of 8192 x 8192: consecutive elements follow
 * the sum; they do not, and there are FEW vectors, or more. */
static const form along = {4, 1, 4, 8, 4};
static const form across_few = {8, 16, 1, 8, 2};
static const form across_many = {16, 16, 1, 4, 1};

/* The operands of a call in their roles. */
typedef struct roles {
  const kiln__gemm_operand *matrix, *x;
  uint32_t matrix_bit, x_bit;
  uint64_t thin, size; /* number of vectors; results per vector */
  bool rows;           /* the vectors are rows of A */
  bool along, x_k;     /* consecutive elements of the matrix, or of a vector,
                          follow the sum */
} roles;

static roles roles_of(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;

  if (g->m <= g->n)
    return (roles){&g->b, &g->a, KILN__GEMM_B, KILN__GEMM_A, g->m,
                   g->n,  true,  call->b_k,    call->a_k};
  return (roles){&g->a, &g->b, KILN__GEMM_A, KILN__GEMM_B, g->n,
                 g->m,  false, call->a_k,    call->b_k};
}

/* Returns whether a call has few vectors, and enough work for these kernels. */
static bool suits(const kiln__gemm *call, const roles *r)
{
  const kiln_gemm_tile wanted = call->desc->tile;

  return wanted.m == 0 && wanted.n == 0 && wanted.split == 0 &&
         call->args.k > 0 &&
         r->thin <= (r->along && !r->x_k ? MOST_STRIDED : MOST_THIN) &&
         r->size >= LEAST_SIZE / call->args.k;
}

/* Returns the registers that a sum takes, compared with one of f32: sums of f64
 * come with elements of f64, and smaller elements are widened before use. */
static uint64_t unit_of(const kiln__gemm *call)
{
  return call->sum == KILN_F64 ? 5 : kiln__size(call->type) < 4 ? 2 : 1;
}

/* Returns the elements of the matrix per load: 16 bytes, if they are aligned
 * everywhere and the sums fit the registers. */
static uint32_t vector_of(const kiln__gemm *call, const roles *r)
{
  uint32_t most = (uint32_t)(16 / kiln__size(call->type));

  while (!r->along && most > 1 && most * r->thin * unit_of(call) > MOST_SUMS)
    most /= 2;
  return kiln__gemm_vector(call, r->matrix, r->matrix_bit, call->type,
                           r->along ? call->args.k : r->size, most);
}

uint32_t kiln__gemm_vector_splits(uint64_t tiles, uint64_t k, uint64_t blocks)
{
  uint64_t splits = blocks / (tiles > 0 ? tiles : 1);

  if (splits > k / LEAST_DEPTH)
    splits = k / LEAST_DEPTH;
  if (splits > MOST_SPLITS)
    splits = MOST_SPLITS;
  return splits > 1 ? (uint32_t)splits : 1;
}

static const form *form_of(const roles *r)
{
  return r->along ? &along : r->thin <= FEW ? &across_few : &across_many;
}

/* Returns the number of results per block. */
static uint32_t tile_of(const roles *r, uint32_t vector)
{
  const form *f = form_of(r);

  return r->along ? f->warps * f->lines : f->lanes * vector;
}

static bool plan(kiln__gemm *call)
{
  const roles r = roles_of(call);
  kiln__gemm_plan *p = &call->plan;
  uint32_t vector, tile;

  if (!suits(call, &r))
    return false;
  vector = vector_of(call, &r);
  tile = tile_of(&r, vector);
  p->variant = vector;
  p->tiles = kiln__divide_up(r.size, tile) * call->args.batch;
  p->splits = kiln__gemm_vector_splits(p->tiles, call->args.k,
                                       kiln__sm_count(call->device) *
                                           form_of(&r)->per_sm);
  p->choice.tile = r.rows != call->swapped
                       ? (kiln_gemm_tile){(uint32_t)r.thin, tile, p->splits}
                       : (kiln_gemm_tile){tile, (uint32_t)r.thin, p->splits};
  p->choice.blocks = p->tiles * p->splits;
  p->choice.efficiency = 1;
  if (p->splits > 1) {
    call->need.descriptors = (size_t)(p->tiles * (p->splits - 1));
    kiln__need_temp(&call->need, call->need.descriptors * tile * r.thin *
                                     kiln__size(call->sum));
  }
  return true;
}

/* Returns the number of lines, or of positions of the sum, that calls leave in
 * the L2 cache for the next call: two fifths of the cache. Returns 0 if the
 * matrix fits, or if its loads cannot carry a policy. */
static uint64_t kept_of(const kiln__gemm *call, const roles *r)
{
  const uint64_t size = kiln__size(call->type);
  const uint64_t line = (r->along ? call->args.k : r->size) * size;
  const uint64_t lines = r->along ? r->size : call->args.k;
  const uint64_t cache = (uint64_t)call->device->info.l2_bytes;

  if (call->device->traits.cc < 80 || call->args.batch > 1 ||
      call->plan.variant * size < 16 || line * lines <= cache)
    return 0;
  return cache * 2 / 5 / line;
}

static void specify(kiln__spec *spec, const kiln__gemm *call, const roles *r,
                    uint64_t kept)
{
  const form *f = form_of(r);
  uint32_t *value = spec->value;

  kiln__gemm_specify(spec, &family, call);
  value[GEMM_VECTOR_THIN] = (uint32_t)r->thin;
  value[GEMM_VECTOR_ROWS] = r->rows;
  value[GEMM_VECTOR_ALONG] = r->along;
  value[GEMM_VECTOR_VECTOR] = call->plan.variant;
  value[GEMM_VECTOR_X_K] = r->x_k;
  value[GEMM_VECTOR_VECTOR_X] =
      r->x_k ? kiln__gemm_vector(call, r->x, r->x_bit, call->type, call->args.k,
                                 (uint32_t)(16 / kiln__size(call->type)))
             : 1;
  value[GEMM_VECTOR_WARPS] = f->warps;
  value[GEMM_VECTOR_LANES] = f->lanes;
  value[GEMM_VECTOR_PER_SM] = r->along ? 1 : f->per_sm;
  value[GEMM_VECTOR_UNROLL] = f->unroll;
  value[GEMM_VECTOR_LINES] = f->lines;
  value[GEMM_VECTOR_KEEP] = kept > 0;
  value[GEMM_VECTOR_SPLIT] = call->plan.splits > 1;
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *call,
                          const kiln_workspace *workspace)
{
  const roles r = roles_of(call);
  const uint64_t kept = kept_of(call, &r);
  const uint32_t splits = call->plan.splits;
  kiln__spec spec = {0};
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__call c;

  specify(&spec, call, &r, kept);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, call->need));
  config = kiln__gemm_grid(stream, call->plan.choice.blocks,
                           32 * form_of(&r)->warps);
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(call->args), KILN_ARG(splits), KILN_ARG(kept),
                   KILN_ARG(c.storage.temp), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

const kiln__gemm_path kiln__gemm_few = {"vector", plan, launch};
