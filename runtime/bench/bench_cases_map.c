/* bench_cases_map.c -- cases of kiln_map (lecture row B8). */
#include "bench_ops.h"

static kiln_status prepare(bench_ops *b)
{
  const kiln_dtype type = b->now->type;
  kiln_status st =
      kiln__bench_fill_with(b, b->in[0], type, b->n, "hash(i) >> 57");

  return st != KILN_OK ? st
                       : kiln__bench_fill_with(b, b->in[1], type, b->n,
                                               "hash(i + 12345) >> 57");
}

static kiln_status own_unary(bench_ops *b)
{
  const kiln_map_desc desc = {.in = {{b->in[0], b->now->type}},
                              .out = {{b->out[0], b->now->type}},
                              .expr = {"x * 2 + 1"},
                              .n = b->n};

  return kiln_map(b->stream, &desc, NULL);
}

static kiln_status own_binary(bench_ops *b)
{
  const kiln_map_desc desc = {
      .in = {{b->in[0], b->now->type}, {b->in[1], b->now->type}},
      .out = {{b->out[0], b->now->type}},
      .expr = {"x + y"},
      .n = b->n};

  return kiln_map(b->stream, &desc, NULL);
}

/* y grows with each run, and stays finite. */
static kiln_status own_saxpy(bench_ops *b)
{
  static const float a = 0.5f;
  static const kiln_param param = {"alpha", KILN_F32, &a, 0};
  const kiln_map_desc desc = {
      .in = {{b->in[0], KILN_F32}, {b->in[1], KILN_F32}},
      .out = {{b->in[1], KILN_F32}},
      .expr = {"alpha * x + y"},
      .n = b->n,
      .code = {.params = &param, .n_params = 1}};

  return kiln_map(b->stream, &desc, NULL);
}

/* clang-format off */
const bench_case kiln__bench_map[] = {
    {"unary", KILN_F32, 8, "CUB", "kiln_peer_map_unary_f32", {1, 1, 1, 1},
     prepare, own_unary, KILN_F32, 0, 0, 0},
    {"binary", KILN_F32, 12, "CUB", "kiln_peer_map_binary_f32", {1, 1, 1, 1},
     prepare, own_binary, KILN_F32, 0, 0, 0},
    {"saxpy", KILN_F32, 12, "cuBLAS", "kiln_peer_saxpy_f32", {1.3, 1.2, 1, 1},
     prepare, own_saxpy, KILN_DTYPE_NONE, 0, 0, 0},
    {"unary", KILN_U8, 2, "CUB", "kiln_peer_map_unary_u8", {1.1, 0, 0, 0},
     prepare, own_unary, KILN_DTYPE_NONE, 0, 0, 0},
    {"binary", KILN_U8, 3, "CUB", "kiln_peer_map_binary_u8", {1.1, 0, 0, 0},
     prepare, own_binary, KILN_DTYPE_NONE, 0, 0, 0},
    {"unary", KILN_I16, 4, "CUB", "kiln_peer_map_unary_i16", {1.1, 0, 0, 0},
     prepare, own_unary, KILN_DTYPE_NONE, 0, 0, 0},
    {"binary", KILN_I16, 6, "CUB", "kiln_peer_map_binary_i16", {1.1, 0, 0, 0},
     prepare, own_binary, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
