/* bench_cases_map.c -- the benchmark cases of kiln_map() and
 * kiln_adjacent_difference(). */
#include "bench/bench_ops.h"

/* clang-format off */
BENCH_OWN(own_unary, map, kiln_map_desc,
    .in = {{b->in[0], b->now->type}}, .out = {{b->out[0], b->now->type}},
    .expr = {"x * 2 + 1"}, .n = b->n)

BENCH_OWN(own_binary, map, kiln_map_desc,
    .in = {{b->in[0], b->now->type}, {b->in[1], b->now->type}},
    .out = {{b->out[0], b->now->type}}, .expr = {"x + y"}, .n = b->n)

static const float half = 0.5f;
static const kiln_param alpha = {"alpha", KILN_F32, &half, 0};

/* This case updates y in place. The values of y grow with each run but stay
 * finite. */
BENCH_OWN(own_saxpy, map, kiln_map_desc,
    .in = {{b->in[0], KILN_F32}, {b->in[1], KILN_F32}},
    .out = {{b->in[1], KILN_F32}}, .expr = {"alpha * x + y"}, .n = b->n,
    .code = {.params = &alpha, .n_params = 1})

BENCH_OWN(own_difference, adjacent_difference, kiln_adjacent_difference_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .n = b->n,
    .out = {b->out[0], KILN_U32})

#define SMALL {"hash(i) >> 57", "hash(i + 12345) >> 57"}

const bench_case kiln__bench_map[] = {
    {"unary", KILN_F32, 8, "CUB", "kiln_peer_map_unary_f32", {1, 1, 1, 1},
     SMALL, NULL, own_unary, KILN_F32, 0, 0, 0},
    {"binary", KILN_F32, 12, "CUB", "kiln_peer_map_binary_f32", {1, 1, 1, 1},
     SMALL, NULL, own_binary, KILN_F32, 0, 0, 0},
    {"saxpy", KILN_F32, 12, "cuBLAS", "kiln_peer_saxpy_f32", {1.3, 1.2, 1, 1},
     SMALL, NULL, own_saxpy, KILN_DTYPE_NONE, 0, 0, 0},
    {"unary", KILN_U8, 2, "CUB", "kiln_peer_map_unary_u8", {1.1, 0, 0, 0},
     SMALL, NULL, own_unary, KILN_DTYPE_NONE, 0, 0, 0},
    {"binary", KILN_U8, 3, "CUB", "kiln_peer_map_binary_u8", {1.1, 0, 0, 0},
     SMALL, NULL, own_binary, KILN_DTYPE_NONE, 0, 0, 0},
    {"unary", KILN_I16, 4, "CUB", "kiln_peer_map_unary_i16", {1.1, 0, 0, 0},
     SMALL, NULL, own_unary, KILN_DTYPE_NONE, 0, 0, 0},
    {"binary", KILN_I16, 6, "CUB", "kiln_peer_map_binary_i16", {1.1, 0, 0, 0},
     SMALL, NULL, own_binary, KILN_DTYPE_NONE, 0, 0, 0},
    {"adjacent difference", KILN_U32, 8, "CUB", "kiln_peer_difference_u32",
     {1, 1, 1, 1}, {"hash(i)"}, NULL, own_difference, KILN_U32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
