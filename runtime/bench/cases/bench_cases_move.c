/* bench_cases_move.c -- the benchmark cases of operations that move elements or
 * make them: permutations of axes and random numbers. The time of a permutation
 * should be that of a copy. */
#include "bench/bench_ops.h"

/* ---- Permutations -------------------------------------------------------- */

/* Returns the largest power of two whose square is at most n. */
static uint64_t root_of(uint64_t n)
{
  uint64_t root = 1;

  while (4 * root * root <= n)
    root *= 2;
  return root;
}

/* Returns the largest power of two whose cube is at most n. */
static uint64_t cube_root_of(uint64_t n)
{
  uint64_t root = 1;

  while (8 * root * root * root <= n)
    root *= 2;
  return root;
}

/* clang-format off */

#define PERMUTE(id, rank_, size_, axis_)                                       \
  BENCH_OWN(id, permute, kiln_permute_desc,                                    \
    .in = {b->in[0], b->now->type}, .out = {b->out[0], b->now->type},          \
    .rank = rank_, .size = size_, .axis = axis_)

#define SET(...) {__VA_ARGS__}

PERMUTE(own_matrix, 2, SET(root_of(b->n), b->n / root_of(b->n)), SET(1, 0))
PERMUTE(own_odd_matrix, 2,
        SET(root_of(b->n) - 1, b->n / root_of(b->n) - 3), SET(1, 0))
PERMUTE(own_to_planes, 2, SET(b->n / 3, 3), SET(1, 0))
PERMUTE(own_to_pixels, 2, SET(3, b->n / 3), SET(1, 0))
PERMUTE(own_small, 3, SET(b->n / 256, 16, 16), SET(0, 2, 1))
PERMUTE(own_tall, 3, SET(b->n / 65536, 1024, 64), SET(0, 2, 1))
PERMUTE(own_heads, 4, SET(b->n / 65536, 32, 32, 64), SET(0, 2, 1, 3))
PERMUTE(own_reversed, 3,
        SET(cube_root_of(b->n), cube_root_of(b->n),
            b->n / cube_root_of(b->n) / cube_root_of(b->n)), SET(2, 1, 0))

BENCH_OWN(own_pixels, permute, kiln_permute_desc,
    .in = {b->in[0], b->now->type}, .out = {b->out[0], b->now->type},
    .values = 3, .rank = 2,
    .size = {root_of(b->n / 3), b->n / 3 / root_of(b->n / 3)}, .axis = {1, 0})

#define HASHED {"hash(i)"}
#define CASE(label, type, own)                                                 \
  {label, type, 2.0 * (double)((type) == KILN_U8 ? 1 : (type) == KILN_F16 ? 2  \
                               : (type) == KILN_F64 ? 8 : 4), "-", NULL,       \
   {0, 0, 0, 0}, HASHED, NULL, own, KILN_DTYPE_NONE, 0, 0, 0}

const bench_case kiln__bench_permute[] = {
    CASE("transpose", KILN_F32, own_matrix),
    CASE("transpose", KILN_U8, own_matrix),
    CASE("transpose", KILN_F16, own_matrix),
    CASE("transpose", KILN_F64, own_matrix),
    CASE("transpose, odd sizes", KILN_F32, own_odd_matrix),
    CASE("transpose, odd sizes", KILN_U8, own_odd_matrix),
    CASE("transpose of pixels", KILN_U8, own_pixels),
    CASE("pixels to planes", KILN_U8, own_to_planes),
    CASE("planes to pixels", KILN_U8, own_to_pixels),
    CASE("pixels to planes", KILN_F32, own_to_planes),
    CASE("planes to pixels", KILN_F32, own_to_pixels),
    CASE("batch of 16 x 16", KILN_F32, own_small),
    CASE("batch of 1024 x 64", KILN_F16, own_tall),
    CASE("rows of 64, axes 1 and 2", KILN_F16, own_heads),
    CASE("three axes reversed", KILN_F32, own_reversed),
    {.label = NULL},
};

/* ---- Random numbers ------------------------------------------------------ */

#define RANDOM(id, ...)                                                        \
  BENCH_OWN(id, random, kiln_random_desc,                                      \
    .out = {b->out[0], b->now->type}, .n = b->n, .seed = 42, __VA_ARGS__)

RANDOM(own_uniform, .distribution = KILN_UNIFORM)
RANDOM(own_normal, .distribution = KILN_NORMAL)
RANDOM(own_range, .low = 0, .range = 1000003)

#define NUMBERS(label, type, bytes, own)                                       \
  {label, type, bytes, "-", NULL, {0, 0, 0, 0}, {NULL}, NULL, own,             \
   KILN_DTYPE_NONE, 0, 0, 0}

const bench_case kiln__bench_random[] = {
    NUMBERS("uniform", KILN_F32, 4, own_uniform),
    NUMBERS("uniform", KILN_F64, 8, own_uniform),
    NUMBERS("uniform", KILN_F16, 2, own_uniform),
    NUMBERS("uniform", KILN_U8, 1, own_uniform),
    NUMBERS("normal", KILN_F32, 4, own_normal),
    NUMBERS("normal", KILN_F64, 8, own_normal),
    NUMBERS("integers below 1,000,003", KILN_U32, 4, own_range),
    {.label = NULL},
};
/* clang-format on */
