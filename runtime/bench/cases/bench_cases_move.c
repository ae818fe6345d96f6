/* bench_cases_move.c -- the benchmark cases of operations that move elements or
 * make them: permutations of axes, rotations, batched copies, run-length decoding
 * and random numbers. The time of a movement should be that of a copy. */
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

#define SMALL {"hash(i) >> 57", "hash(i + 12345) >> 57"}
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

/* ---- Views of inputs ----------------------------------------------------- */

/* A matrix of n elements, and a row that is added to each of its rows. */
static kiln_shape matrix_of(const bench_ops *b, int64_t down, int64_t across)
{
  const uint64_t rows = root_of(b->n);

  return (kiln_shape){
      .rank = 2, .size = {rows, b->n / rows},
      .view = {{.kind = KILN_VIEW_STRIDED, .stride = {down, across}},
               {.kind = KILN_VIEW_STRIDED, .stride = {0, 1}}}};
}

#define VIEW(id, down, across)                                                 \
  static kiln_status id(bench_ops *b)                                          \
  {                                                                            \
    const kiln_shape shape = matrix_of(b, down, across);                       \
    const kiln_map_desc desc = {                                               \
        .in = {{b->in[0], b->now->type}, {b->in[1], b->now->type}},            \
        .out = {{b->out[0], b->now->type}}, .expr = {"x + y"},                 \
        .n = shape.size[0] * shape.size[1],                                    \
        .shape = &shape};                                                      \
                                                                               \
    return kiln_map(b->rig.stream, &desc, NULL);                               \
  }

VIEW(own_rows, (int64_t)(b->n / root_of(b->n)), 1)
VIEW(own_columns, 1, (int64_t)root_of(b->n))

/* The sum of every other row. */
static kiln_status own_sum(bench_ops *b)
{
  const uint64_t columns = b->n / root_of(b->n);
  kiln_shape shape = matrix_of(b, (int64_t)(2 * columns), 1);
  const kiln_reduce_desc desc = {
      .x = {.in = {{b->in[0], KILN_F32}}}, .n = shape.size[0] / 2 * columns,
      .out = {b->out[0], KILN_F32}, .shape = &shape};

  shape.size[0] /= 2;
  return kiln_reduce(b->rig.stream, &desc, NULL);
}

const bench_case kiln__bench_views[] = {
    {"matrix and row", KILN_F32, 8, "-", NULL, {0, 0, 0, 0}, SMALL, NULL,
     own_rows, KILN_DTYPE_NONE, 0, 0, 0},
    {"transposed matrix and row", KILN_F32, 8, "-", NULL, {0, 0, 0, 0}, SMALL,
     NULL, own_columns, KILN_DTYPE_NONE, 0, 0, 0},
    {"sum of every other row", KILN_F32, 2, "-", NULL, {0, 0, 0, 0}, SMALL,
     NULL, own_sum, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};

/* ---- Rotation, run-length decoding, batched copy ------------------------ */

BENCH_OWN(own_rotate, rotate, kiln_rotate_desc,
    .in = {b->in[0], b->now->type}, .out = {b->out[0], b->now->type},
    .n = b->n, .shift = 12345)

/* Runs of `length` values: lengths from 1 to 2 * length - 1 in turn, so that the
 * sum of two neighbours is 2 * length. */
#define DECODE(id, length)                                                     \
  BENCH_OWN(id, run_length_decode, kiln_run_length_decode_desc,                \
    .values = {b->in[0], KILN_U32}, .lengths = {b->in[1], KILN_U32},           \
    .n = b->n / (length), .out = {b->out[0], KILN_U32},                        \
    .capacity = b->n / (length) * (length), .count = {b->out[1], KILN_U64})

DECODE(own_decode_4, 4)
DECODE(own_decode_37, 37)
DECODE(own_decode_1000, 1000)

#define LENGTHS(l)                                                             \
  {"i", "i % 2 == 0 ? 1 + i / 2 % (2 * " #l " - 1)"                            \
        " : 2 * " #l " - 1 - i / 2 % (2 * " #l " - 1)"}

/* in[1] contains the sizes of n / `size` copies, half of them a quarter of the
 * others, and in[2] the addresses of their sources, then of their destinations. */
#define COPIES(id, size_)                                                      \
  static kiln_status prepare_##id(bench_ops *b)                                \
  {                                                                            \
    return prepare_copies(b, size_);                                           \
  }                                                                            \
  BENCH_OWN(own_##id, copy_batch, kiln_copy_batch_desc,                        \
    .from = {b->in[2], KILN_U64},                                              \
    .to = {b->in[2] + 8 * (b->n / (size_)), KILN_U64},                         \
    .sizes = {b->in[1], KILN_U32}, .n = b->n / (size_))

static kiln_status prepare_copies(bench_ops *b, uint64_t size)
{
  const uint64_t last = b->n / size - 1;
  const kiln_param params[] = {{"last", KILN_U64, &last, 0},
                               {"size", KILN_U64, &size, 0},
                               {"from", KILN_U64, &b->in[0], 0},
                               {"to", KILN_U64, &b->out[0], 0}};
  const kiln_map_desc sizes = {
      .out = {{b->in[1], KILN_U32}}, .n = b->n / size,
      .expr = {"i % 2 == 0 ? size * 8 / 5 : size * 2 / 5"},
      .code = {.params = params, .n_params = 2}};
  const kiln_map_desc addresses = {
      .out = {{b->in[2], KILN_U64}}, .n = 2 * (b->n / size),
      .expr = {"(i <= last ? from : to) + (i <= last ? i : i - last - 1) / 2 *"
               " (2 * size) + (i <= last ? i : i - last - 1) % 2 *"
               " (size * 8 / 5)"},
      .code = {.params = params, .n_params = 4}};

  CLI_TRY(kiln_map(b->rig.stream, &sizes, NULL));
  return kiln_map(b->rig.stream, &addresses, NULL);
}

COPIES(copies_40, 40)
COPIES(copies_1000, 1000)
COPIES(copies_1m, 1000000)

#define DECODED(label, bytes, own, length)                                     \
  {label, KILN_U32, bytes, "-", NULL, {0, 0, 0, 0}, LENGTHS(length), NULL, own,\
   KILN_DTYPE_NONE, 0, 0, 0}
#define COPIED(label, id)                                                      \
  {label, KILN_U8, 2, "CUB", "kiln_peer_copy_batch_" #id, {0, 0, 0, 0},        \
   {"hash(i)"}, prepare_copies_##id, own_copies_##id, KILN_DTYPE_NONE, 0, 0, 0}

const bench_case kiln__bench_move[] = {
    CASE("rotate", KILN_F32, own_rotate),
    CASE("rotate", KILN_U8, own_rotate),
    DECODED("run-length decode, runs of 4", 6, own_decode_4, 4),
    DECODED("run-length decode, runs of 37", 4.2, own_decode_37, 37),
    DECODED("run-length decode, runs of 1000", 4, own_decode_1000, 1000),
    COPIED("copies of 16 and 64 bytes", 40),
    COPIED("copies of 400 and 1600 bytes", 1000),
    COPIED("copies of 0.4 and 1.6 MB", 1m),
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
