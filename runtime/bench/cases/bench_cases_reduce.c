/* bench_cases_reduce.c -- the benchmark cases of reductions of whole arrays,
 * reductions per segment and by key, and scans. */
#include "bench/bench_ops.h"

#include <stdlib.h>

/* clang-format off */

/* Expressions for inputs of small whole numbers. Sums of up to 2^24 such
 * numbers are exact in float. */
#define ZERO_ONE {"hash(i) & 1", "hash(i + 99) & 1"}
#define BITS {"hash(i) >> 20"}
#define FLOATS {"(int)(hash(i) >> 40) * 0x1p-24f - 0.5f"}
#define SMALL {"hash(i) & 15"}

/* ---- Reductions --------------------------------------------------------- */

#define REDUCE(id, map_, ...)                                                  \
  BENCH_OWN(id, reduce, kiln_reduce_desc,                                      \
    .x = {.in = {{b->in[0], b->now->type}}, .map = map_}, .n = b->n,           \
    .op = {__VA_ARGS__}, .out = {b->out[0], b->now->type})

REDUCE(own_sum, NULL, .name = KILN_SUM)
REDUCE(own_max, NULL, .name = KILN_MAX)
REDUCE(own_user, NULL, .expr = "a > b ? a : b", .identity = "-INFINITY",
       .commutative = true)
REDUCE(own_map_reduce, "x * x", .name = KILN_SUM)

BENCH_OWN(own_dot, dot, kiln_dot_desc,
    .x = {b->in[0], KILN_F32}, .y = {b->in[1], KILN_F32}, .n = b->n,
    .out = {b->out[0], KILN_F32})

BENCH_OWN(own_minmax, minmax, kiln_minmax_desc,
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n,
    .min = {b->out[0], KILN_F32}, .max = {b->out[1], KILN_F32})

#define BY_1000(id, op_name, desc_type, ...)                                   \
  BENCH_OWN(id, op_name, desc_type,                                            \
    .x = {.in = {{b->in[0], KILN_F32}}}, .rows = b->n / 1000, .columns = 1000, \
    __VA_ARGS__)

BY_1000(own_arg_min_rows, arg_reduce_rows, kiln_arg_reduce_matrix_desc,
    .op = KILN_MIN, .value = {b->out[0], KILN_F32}, .index = {b->out[1], KILN_U32})
BY_1000(own_columns, reduce_columns, kiln_reduce_matrix_desc,
    .out = {b->out[0], KILN_F32})

const bench_case kiln__bench_reductions[] = {
    {"sum", KILN_F32, 4, "CUB", "kiln_peer_reduce_sum_float", {1, 1.15, 1.4, 1.4},
     ZERO_ONE, NULL, own_sum, KILN_F32, 1, 4096, 0},
    {"sum", KILN_U32, 4, "CUB", "kiln_peer_reduce_sum_u32", {1, 1.15, 1.4, 1.4},
     BITS, NULL, own_sum, KILN_U32, 1, 0, 0},
    {"sum", KILN_F64, 8, "CUB", "kiln_peer_reduce_sum_f64", {1, 1.15, 1.4, 1.4},
     ZERO_ONE, NULL, own_sum, KILN_F64, 1, 1e-6, 0},
    {"max", KILN_F32, 4, "CUB", "kiln_peer_reduce_max_f32", {1, 1.15, 1.4, 1.4},
     FLOATS, NULL, own_max, KILN_F32, 1, 0, 0},
    {"max", KILN_U32, 4, "CUB", "kiln_peer_reduce_max_u32", {1, 1.15, 1.4, 1.4},
     BITS, NULL, own_max, KILN_U32, 1, 0, 0},
    {"user's: a > b ? a : b", KILN_F32, 4, "CUB", "kiln_peer_reduce_user_f32",
     {1, 1.15, 1.4, 1.4}, FLOATS, NULL, own_user, KILN_F32, 1, 0, 0},
    {"dot", KILN_F32, 8, "cuBLAS", "kiln_peer_dot_f32", {1, 1.15, 1.2, 0},
     ZERO_ONE, NULL, own_dot, KILN_F32, 1, 4096, 0},
    {"squares, then sum", KILN_F32, 4, "CUB, two calls",
     "kiln_peer_map_then_reduce_f32", {1.6, 0, 0, 0},
     ZERO_ONE, NULL, own_map_reduce, KILN_F32, 1, 4096, 0},
    {"minimum and maximum", KILN_F32, 4, "Thrust", "kiln_peer_minmax_f32",
     {2.4, 2.4, 2.4, 0}, FLOATS, NULL, own_minmax, KILN_DTYPE_NONE, 0, 0, 0},
    {"arg-min, rows of 1000", KILN_F32, 4, "CUB", "kiln_peer_arg_min_rows_f32",
     {2.2, 1.5, 1, 0}, FLOATS, NULL, own_arg_min_rows, KILN_DTYPE_NONE, 0, 0, 0},
    {"column sums, 1,000 columns", KILN_F32, 4, "CUB, one sum",
     "kiln_peer_reduce_sum_float", {0.97, 0.97, 0, 0},
     ZERO_ONE, NULL, own_columns, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};

/* ---- Segments ----------------------------------------------------------- */

enum { BAGS = 1110000 };

/* clang-format on */

/* Computes offsets of segments of different lengths, as in a bag of embeddings:
 * 1,000 segments of 1 to 10 elements, 100 segments of 11 to 100 elements and 10
 * segments of 101 to 1,000 elements. This pattern repeats a thousand times.
 * Sets b->n to the number of elements in all segments. */
static kiln_status prepare_bags(bench_ops *b)
{
  uint32_t *offsets = malloc((BAGS + 1) * sizeof *offsets);
  uint32_t at = 0, random = 12345;
  const uint64_t most_elements = b->n;
  kiln_status st;

  if (offsets == NULL)
    return KILN_ENOMEM;
  for (uint32_t s = 0; s < BAGS; s++) {
    const uint32_t kind = s % 1110;
    const uint32_t least = kind < 1000 ? 1 : kind < 1100 ? 11 : 101;
    const uint32_t most = kind < 1000 ? 10 : kind < 1100 ? 100 : 1000;

    random = random * 1664525u + 1013904223u;
    offsets[s] = at;
    at += least + (random >> 8) % (most - least + 1);
    at = at < most_elements ? at : (uint32_t)most_elements;
  }
  offsets[BAGS] = at;
  b->n = at;
  st = kiln_copy_to_device(b->rig.device, b->in[1], offsets,
                           (BAGS + 1) * sizeof *offsets);
  free(offsets);
  return st;
}

/* clang-format off */

#define SEGMENTED(id, ...)                                                     \
  BENCH_OWN(id, segmented_reduce, kiln_segmented_reduce_desc,                  \
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n,                            \
    .out = {b->out[0], KILN_F32}, __VA_ARGS__)

SEGMENTED(own_bags, .n_segments = BAGS, .offsets = {b->in[1], KILN_U32})
SEGMENTED(own_16, .n_segments = b->n / 16, .length = 16)
SEGMENTED(own_512, .n_segments = b->n / 512, .length = 512)

const bench_case kiln__bench_segmented[] = {
    {"bags x 1000", KILN_F32, 4.3, "CUB", "kiln_peer_segmented_bags_f32",
     {15, 0, 0, 0}, SMALL, prepare_bags, own_bags, KILN_F32, BAGS, 1e-3, 25},
    {"width 16", KILN_F32, 4.25, "CUB", "kiln_peer_segmented_16_f32",
     {25, 0, 0, 0}, SMALL, NULL, own_16, KILN_F32, 4096, 1e-3, 0},
    {"width 512", KILN_F32, 4.01, "CUB", "kiln_peer_segmented_512_f32",
     {1.9, 0, 0, 0}, SMALL, NULL, own_512, KILN_F32, 128, 1e-3, 0},
    {.label = NULL},
};

/* ---- Reductions by key -------------------------------------------------- */

BENCH_OWN(own_by_key, reduce_by_key, kiln_reduce_by_key_desc,
    .keys = {b->in[0], KILN_U32}, .x = {.in = {{b->in[1], KILN_U32}}}, .n = b->n,
    .out_keys = {b->out[2], KILN_U32}, .out = {b->out[0], KILN_U32},
    .count = {b->out[1], KILN_U32})

#define BY_KEY(label, length, keys)                                            \
    {label, KILN_U32, 8 + 8.0 / (length), "CUB", "kiln_peer_reduce_by_key_u32",\
     {1.5, 1.3, 1.4, 0}, {keys, "i & 15"}, NULL, own_by_key, KILN_U32, 64, 0, 0}

/* Only the first elements of the output are compared; the shortest input has 65
 * runs of 1,000 elements. */
const bench_case kiln__bench_reduce_by_key[] = {
    BY_KEY("runs of 4", 4, "hash(i / 4)"),
    BY_KEY("runs of 37", 37, "hash(i / 37)"),
    BY_KEY("runs of 1000", 1000, "hash(i / 1000)"),
    {.label = NULL},
};

/* ---- Scans -------------------------------------------------------------- */

#define SCAN(id, map_, op_, exclusive_)                                        \
  BENCH_OWN(id, scan, kiln_scan_desc,                                          \
    .x = {.in = {{b->in[0], b->now->type}}, .map = map_}, .n = b->n,           \
    .op = {.name = op_}, .exclusive = exclusive_,                              \
    .out = {b->out[0], b->now->type})

SCAN(own_inclusive, NULL, KILN_SUM, false)
SCAN(own_exclusive, NULL, KILN_SUM, true)
SCAN(own_scan_max, NULL, KILN_MAX, false)
SCAN(own_map_scan, "x * 3 + 1", KILN_SUM, false)

const bench_case kiln__bench_scan[] = {
    {"inclusive sum", KILN_U32, 8, "CUB", "kiln_peer_scan_inclusive_u32",
     {1.25, 1.15, 1.05, 1.05}, BITS, NULL, own_inclusive, KILN_U32, 0, 0, 0},
    {"exclusive sum", KILN_F32, 8, "CUB", "kiln_peer_scan_exclusive_f32",
     {1.25, 1.15, 1.05, 1.05}, ZERO_ONE, NULL, own_exclusive, KILN_F32, 0, 4096, 0},
    {"running maximum", KILN_U32, 8, "CUB", "kiln_peer_scan_max_u32",
     {1.25, 1.15, 1.05, 1.05}, BITS, NULL, own_scan_max, KILN_U32, 0, 0, 0},
    {"exclusive sum", KILN_F64, 16, "CUB", "kiln_peer_scan_exclusive_f64",
     {0, 0, 0, 0}, ZERO_ONE, NULL, own_exclusive, KILN_F64, 0, 1e-6, 0},
    {"inclusive sum", KILN_C64, 16, "CUB", "kiln_peer_scan_inclusive_c64",
     {2.5, 2, 1, 1}, ZERO_ONE, NULL, own_inclusive, KILN_F32, 0, 4096, 0},
    {"exclusive sum", KILN_U8, 2, "CUB", "kiln_peer_scan_exclusive_u8",
     {1.8, 0, 0, 0}, BITS, NULL, own_exclusive, KILN_DTYPE_NONE, 0, 0, 0},
    {"exclusive sum", KILN_U16, 4, "CUB", "kiln_peer_scan_exclusive_u16",
     {1.5, 0, 0, 0}, BITS, NULL, own_exclusive, KILN_DTYPE_NONE, 0, 0, 0},
    {"map, then inclusive sum", KILN_U32, 8, "CUB, two calls",
     "kiln_peer_map_then_scan_u32", {1.6, 0, 0, 0},
     BITS, NULL, own_map_scan, KILN_U32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
