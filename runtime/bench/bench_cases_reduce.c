/* bench_cases_reduce.c -- cases of reductions, whole and by segment, and of scans (lecture
 * rows A9, B10, B11, C3, C6, D4). */
#include "bench_ops.h"

#include <stdlib.h>

#define TRY(expression)                                                        \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

BENCH_RUN(dot, kiln_dot_desc)
BENCH_RUN(reduce, kiln_reduce_desc)
BENCH_RUN(scan, kiln_scan_desc)
BENCH_RUN(segmented_reduce, kiln_segmented_reduce_desc)

/* Small whole numbers: sums of floats are exact up to 2^24 of them. */
static kiln_status prepare(bench_ops *b)
{
  TRY(kiln__bench_fill_with(b, b->in[0], b->now->type, b->n, "hash(i) & 1"));
  return kiln__bench_fill_with(b, b->in[1], b->now->type, b->n,
                               "hash(i + 99) & 1");
}

static kiln_status prepare_bits(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n,
                               "hash(i) >> 20");
}

static kiln_status prepare_floats(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n,
                               "(int)(hash(i) >> 40) * 0x1p-24f - 0.5f");
}

/* ---- Reductions ----------------------------------------------------------------------- */

static kiln_status reduce(bench_ops *b, kiln_op op, const char *map)
{
  const kiln_reduce_desc desc = {
      .x = {.in = {{b->in[0], b->now->type}}, .map = map},
      .n = b->n,
      .op = op,
      .out = {b->out[0], b->now->type}};

  return run_reduce(b, &desc);
}

static kiln_status own_sum(bench_ops *b)
{
  return reduce(b, (kiln_op){.name = KILN_SUM}, NULL);
}

static kiln_status own_max(bench_ops *b)
{
  return reduce(b, (kiln_op){.name = KILN_MAX}, NULL);
}

static kiln_status own_user(bench_ops *b)
{
  return reduce(b,
                (kiln_op){.expr = "a > b ? a : b",
                          .identity = "-INFINITY",
                          .commutative = true},
                NULL);
}

static kiln_status own_map_reduce(bench_ops *b)
{
  return reduce(b, (kiln_op){.name = KILN_SUM}, "x * x");
}

static kiln_status own_dot(bench_ops *b)
{
  const kiln_dot_desc desc = {.x = {b->in[0], KILN_F32},
                              .y = {b->in[1], KILN_F32},
                              .n = b->n,
                              .out = {b->out[0], KILN_F32}};

  return run_dot(b, &desc);
}

/* clang-format off */
const bench_case kiln__bench_fold[] = {
    {"sum", KILN_F32, 4, "CUB", "kiln_peer_reduce_sum_float", {1, 1.15, 1.4, 1.4},
     prepare, own_sum, KILN_F32, 1, 4096, 0},
    {"sum", KILN_U32, 4, "CUB", "kiln_peer_reduce_sum_u32", {1, 1.15, 1.4, 1.4},
     prepare_bits, own_sum, KILN_U32, 1, 0, 0},
    {"sum", KILN_F64, 8, "CUB", "kiln_peer_reduce_sum_f64", {1, 1.15, 1.4, 1.4},
     prepare, own_sum, KILN_F64, 1, 1e-6, 0},
    {"max", KILN_F32, 4, "CUB", "kiln_peer_reduce_max_f32", {1, 1.15, 1.4, 1.4},
     prepare_floats, own_max, KILN_F32, 1, 0, 0},
    {"max", KILN_U32, 4, "CUB", "kiln_peer_reduce_max_u32", {1, 1.15, 1.4, 1.4},
     prepare_bits, own_max, KILN_U32, 1, 0, 0},
    {"user's: a > b ? a : b", KILN_F32, 4, "CUB", "kiln_peer_reduce_user_f32",
     {1, 1.15, 1.4, 1.4}, prepare_floats, own_user, KILN_F32, 1, 0, 0},
    {"dot", KILN_F32, 8, "cuBLAS", "kiln_peer_dot_f32", {1, 1.15, 1.2, 0},
     prepare, own_dot, KILN_F32, 1, 4096, 0},
    {"squares, then sum", KILN_F32, 4, "CUB, two calls",
     "kiln_peer_map_then_reduce_f32", {1.6, 0, 0, 0},
     prepare, own_map_reduce, KILN_F32, 1, 4096, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Segments ---------------------------------------------------------------------------- */

enum { BAGS = 1110000 };

/* The lecture's bags, 1,000 of 1 to 10, 100 of 11 to 100 and 10 of 101 to 1,000,
 * a thousand times over (row C6). Changes b->n to what they hold. */
static kiln_status prepare_bags(bench_ops *b)
{
  uint32_t *offsets = malloc((BAGS + 1) * sizeof *offsets);
  uint32_t at = 0, random = 12345;
  const uint64_t room = b->n;
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
    at = at < room ? at : (uint32_t)room;
  }
  offsets[BAGS] = at;
  b->n = at;
  st = kiln_copy_to_device(b->device, b->in[1], offsets,
                           (BAGS + 1) * sizeof *offsets);
  free(offsets);
  return st != KILN_OK ? st
                       : kiln__bench_fill_with(b, b->in[0], KILN_F32, b->n,
                                               "hash(i) & 15");
}

static kiln_status prepare_small(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], KILN_F32, b->n, "hash(i) & 15");
}

static kiln_status segmented(bench_ops *b, uint64_t segments, uint64_t length)
{
  const kiln_segmented_reduce_desc desc = {
      .x = {.in = {{b->in[0], KILN_F32}}},
      .n = b->n,
      .n_segments = segments,
      .offsets = {length == 0 ? b->in[1] : 0,
                  length == 0 ? KILN_U32 : KILN_DTYPE_NONE},
      .length = length,
      .out = {b->out[0], KILN_F32}};

  return run_segmented_reduce(b, &desc);
}

static kiln_status own_bags(bench_ops *b)
{
  return segmented(b, BAGS, 0);
}

static kiln_status own_16(bench_ops *b)
{
  return segmented(b, b->n / 16, 16);
}

static kiln_status own_512(bench_ops *b)
{
  return segmented(b, b->n / 512, 512);
}

/* clang-format off */
const bench_case kiln__bench_segmented[] = {
    {"bags x 1000", KILN_F32, 4.3, "CUB", "kiln_peer_segmented_bags_f32",
     {15, 0, 0, 0}, prepare_bags, own_bags, KILN_F32, BAGS, 1e-3, 25},
    {"width 16", KILN_F32, 4.25, "CUB", "kiln_peer_segmented_16_f32",
     {25, 0, 0, 0}, prepare_small, own_16, KILN_F32, 4096, 1e-3, 0},
    {"width 512", KILN_F32, 4.01, "CUB", "kiln_peer_segmented_512_f32",
     {1.9, 0, 0, 0}, prepare_small, own_512, KILN_F32, 128, 1e-3, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Scans --------------------------------------------------------------------------------- */

static kiln_status scan(bench_ops *b, kiln_op_name op, bool exclusive,
                        const char *map)
{
  const kiln_scan_desc desc = {
      .x = {.in = {{b->in[0], b->now->type}}, .map = map},
      .n = b->n,
      .op = {.name = op},
      .exclusive = exclusive,
      .out = {b->out[0], b->now->type}};

  return run_scan(b, &desc);
}

static kiln_status own_inclusive(bench_ops *b)
{
  return scan(b, KILN_SUM, false, NULL);
}

static kiln_status own_exclusive(bench_ops *b)
{
  return scan(b, KILN_SUM, true, NULL);
}

static kiln_status own_scan_max(bench_ops *b)
{
  return scan(b, KILN_MAX, false, NULL);
}

static kiln_status own_map_scan(bench_ops *b)
{
  return scan(b, KILN_SUM, false, "x * 3 + 1");
}

/* clang-format off */
const bench_case kiln__bench_scan[] = {
    {"inclusive sum", KILN_U32, 8, "CUB", "kiln_peer_scan_inclusive_u32",
     {1.25, 1.15, 1.05, 1.05}, prepare_bits, own_inclusive, KILN_U32, 0, 0, 0},
    {"exclusive sum", KILN_F32, 8, "CUB", "kiln_peer_scan_exclusive_f32",
     {1.25, 1.15, 1.05, 1.05}, prepare, own_exclusive, KILN_F32, 0, 4096, 0},
    {"running maximum", KILN_U32, 8, "CUB", "kiln_peer_scan_max_u32",
     {1.25, 1.15, 1.05, 1.05}, prepare_bits, own_scan_max, KILN_U32, 0, 0, 0},
    {"exclusive sum", KILN_F64, 16, "CUB", "kiln_peer_scan_exclusive_f64",
     {0, 0, 0, 0}, prepare, own_exclusive, KILN_F64, 0, 1e-6, 0},
    {"exclusive sum", KILN_U8, 2, "CUB", "kiln_peer_scan_exclusive_u8",
     {1.8, 0, 0, 0}, prepare_bits, own_exclusive, KILN_DTYPE_NONE, 0, 0, 0},
    {"exclusive sum", KILN_U16, 4, "CUB", "kiln_peer_scan_exclusive_u16",
     {1.5, 0, 0, 0}, prepare_bits, own_exclusive, KILN_DTYPE_NONE, 0, 0, 0},
    {"map, then inclusive sum", KILN_U32, 8, "CUB, two calls",
     "kiln_peer_map_then_scan_u32", {1.6, 0, 0, 0},
     prepare_bits, own_map_scan, KILN_U32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
