/* bench_calls_table.c -- the table of `kiln bench calls`, with one call of
 * every operation that launches kernels. The macro CASE() defines the
 * function of a row. */
#include "bench/bench_calls.h"

/* Defines a function that makes the call kiln_OP() with this descriptor, or
 * reports the size of the workspace. */
#define CASE(id, op, desc_type, ...)                                           \
  static kiln_status id(kiln_stream *stream, const calls_data *d,              \
                        const kiln_workspace *workspace, size_t *bytes)        \
  {                                                                            \
    const desc_type desc = {__VA_ARGS__};                                      \
                                                                               \
    return bytes != NULL ? kiln_##op##_workspace(stream, &desc, bytes)         \
                         : kiln_##op(stream, &desc, workspace);                \
  }

static kiln_array f32(CUdeviceptr p)
{
  return (kiln_array){p, KILN_F32};
}

static kiln_array u32(CUdeviceptr p)
{
  return (kiln_array){p, KILN_U32};
}

static kiln_input floats(const calls_data *d)
{
  return (kiln_input){.in = {f32(d->keys)}};
}

static kiln_input keys(const calls_data *d)
{
  return (kiln_input){.in = {u32(d->keys)}};
}

/* clang-format off */

/* ---- Maps and reductions ------------------------------------------------ */

static const float two_and_a_half = 2.5F;
static const kiln_param alpha = {"alpha", KILN_F32, &two_and_a_half, false};

CASE(map, map, kiln_map_desc,
    .in = {f32(d->keys), f32(d->small)}, .out = {f32(d->out[0])},
    .expr = {"alpha * x + y"}, .n = d->n,
    .code = {.params = &alpha, .n_params = 1})

CASE(reduce, reduce, kiln_reduce_desc,
    .x = floats(d), .n = d->n, .out = f32(d->one[0]))

CASE(map_reduce, reduce, kiln_reduce_desc,
    .x = {.in = {f32(d->keys), f32(d->small)}, .map = "fabsf(x - y)"},
    .n = d->n, .op = {.expr = "a > b ? a : b", .identity = "-INFINITY"},
    .out = f32(d->one[0]))

CASE(arg_reduce, arg_reduce, kiln_arg_reduce_desc,
    .x = floats(d), .n = d->n, .op = KILN_MAX, .value = f32(d->one[0]),
    .index = u32(d->one[1]))

CASE(dot, dot, kiln_dot_desc,
    .x = f32(d->keys), .y = f32(d->small), .n = d->n, .out = f32(d->one[0]))

CASE(norm, norm, kiln_norm_desc,
    .x = floats(d), .n = d->n, .out = f32(d->one[0]))

CASE(distance, distance, kiln_distance_desc,
    .x = f32(d->keys), .y = f32(d->small), .n = d->n, .out = f32(d->one[0]))

CASE(mean_variance, mean_variance, kiln_mean_variance_desc,
    .x = floats(d), .n = d->n, .mean = f32(d->one[0]),
    .variance = f32(d->one[1]))

#define MATRIX \
    .x = floats(d), .rows = d->n / 64, .columns = 64, .out = f32(d->out[0])

CASE(reduce_rows, reduce_rows, kiln_reduce_matrix_desc,
    MATRIX)

CASE(reduce_columns, reduce_columns, kiln_reduce_matrix_desc,
    MATRIX)

CASE(segmented_reduce, segmented_reduce, kiln_segmented_reduce_desc,
    .x = floats(d), .n = d->n, .n_segments = d->n / 16,
    .offsets = u32(d->offsets), .out = f32(d->out[0]))

CASE(segments_of_one_length, segmented_reduce, kiln_segmented_reduce_desc,
    .x = floats(d), .n = d->n, .n_segments = d->n / 16, .length = 16,
    .out = f32(d->out[0]))

CASE(bags, segmented_reduce, kiln_segmented_reduce_desc,
    .x = floats(d), .n = d->n / 16, .n_segments = d->n / 16,
    .offsets = u32(d->offsets), .index = u32(d->small), .n_index = d->n,
    .width = 16, .out = f32(d->out[0]))

/* ---- Scans -------------------------------------------------------------- */

CASE(scan, scan, kiln_scan_desc,
    .x = keys(d), .n = d->n, .out = u32(d->out[0]))

CASE(scan_by_key, scan_by_key, kiln_scan_by_key_desc,
    .keys = u32(d->sorted), .x = keys(d), .n = d->n, .out = u32(d->out[0]))

CASE(segmented_scan, segmented_scan, kiln_segmented_scan_desc,
    .offsets = u32(d->offsets), .n_segments = d->n / 16, .x = keys(d),
    .n = d->n, .out = u32(d->out[0]))

CASE(adjacent_difference, adjacent_difference, kiln_adjacent_difference_desc,
    .x = keys(d), .n = d->n, .out = u32(d->out[0]))

/* ---- Gather and scatter ------------------------------------------------- */

CASE(gather, gather, kiln_gather_desc,
    .x = floats(d), .index = u32(d->places), .out = f32(d->out[0]), .n = d->n,
    .n_target = d->n)

CASE(gather_by_buckets, gather, kiln_gather_desc,
    .x = floats(d), .index = u32(d->places), .out = f32(d->out[0]), .n = d->n,
    .n_target = d->n, .method = KILN_INDEX_PARTITION, .passes = 4)

CASE(gather_rows, gather_rows, kiln_gather_rows_desc,
    .in = f32(d->keys), .index = u32(d->small), .out = f32(d->out[0]),
    .n = d->n / 16, .width = 16, .n_target = d->n / 16)

CASE(scatter, scatter, kiln_scatter_desc,
    .x = floats(d), .index = u32(d->places), .out = f32(d->out[0]), .n = d->n,
    .n_target = d->n)

CASE(scatter_by_buckets, scatter, kiln_scatter_desc,
    .x = floats(d), .index = u32(d->places), .out = f32(d->out[0]), .n = d->n,
    .n_target = d->n, .method = KILN_INDEX_PARTITION, .passes = 4)

/* ---- Select, partition, split ------------------------------------------- */

CASE(select_if, select, kiln_select_desc,
    .x = keys(d), .predicate = "x % 2 == 1", .n = d->n, .out = u32(d->out[0]),
    .count = u32(d->one[0]))

CASE(select_flagged, select, kiln_select_desc,
    .x = keys(d), .flags = u32(d->small), .n = d->n, .out = u32(d->out[0]),
    .count = u32(d->one[0]))

CASE(unique, unique, kiln_unique_desc,
    .x = {.in = {u32(d->sorted)}}, .n = d->n, .out = u32(d->out[0]),
    .count = u32(d->one[0]))

CASE(partition, partition, kiln_partition_desc,
    .x = keys(d), .first = "x % 2 == 1", .n = d->n, .out = u32(d->out[0]),
    .count = u32(d->one[0]))

CASE(split, split, kiln_split_desc,
    .x = keys(d), .key = "x % 16", .parts = 16, .n = d->n,
    .out = u32(d->out[0]), .offsets = u32(d->one[0]))

CASE(split_many, split, kiln_split_desc,
    .x = keys(d), .key = "x % 1000", .parts = 1000, .n = d->n,
    .out = u32(d->out[0]), .offsets = u32(d->one[0]))

#define RUNS \
    .x = {.in = {u32(d->sorted)}}, .n = d->n, .values = u32(d->out[0]), \
    .lengths = u32(d->out[1]), .count = u32(d->one[0])

CASE(run_length_encode, run_length_encode, kiln_run_length_desc,
    RUNS)

CASE(run_length_non_trivial, run_length_non_trivial, kiln_run_length_desc,
    RUNS)

#define LOOKED_FOR \
    .x = keys(d), .predicate = "x == 123456789", .n = d->n, \
    .out = u32(d->one[0])

CASE(find, find, kiln_find_desc,
    LOOKED_FOR)

CASE(count, count, kiln_find_desc,
    LOOKED_FOR)

CASE(any, any, kiln_find_desc,
    LOOKED_FOR)

CASE(all, all, kiln_find_desc,
    LOOKED_FOR)

/* ---- Counting and sorting ----------------------------------------------- */

CASE(histogram, histogram, kiln_histogram_desc,
    .x = {.in = {u32(d->small)}}, .n = d->n, .bins = 256,
    .counts = u32(d->one[0]))

CASE(histogram_even, histogram, kiln_histogram_desc,
    .x = {.in = {f32(d->keys)}}, .n = d->n, .bins = 4096, .lower = -1,
    .upper = 1, .counts = u32(d->one[0]))

CASE(histogram_large, histogram, kiln_histogram_desc,
    .x = {.in = {u32(d->keys)}, .map = "x >> 16"}, .n = d->n, .bins = 65536,
    .counts = u32(d->one[0]))

CASE(counting_sort, counting_sort, kiln_counting_sort_desc,
    .keys = u32(d->small), .keys_out = u32(d->out[0]), .n = d->n,
    .range = 256)

CASE(counting_sort_pairs, counting_sort, kiln_counting_sort_desc,
    .keys = u32(d->small), .keys_out = u32(d->out[0]), .values = u32(d->keys),
    .values_out = u32(d->out[1]), .n = d->n, .range = 256)

CASE(sort_keys, sort, kiln_sort_desc,
    .keys_in = u32(d->keys), .keys_out = u32(d->out[0]), .n = d->n)

CASE(sort_pairs, sort, kiln_sort_desc,
    .keys_in = u32(d->keys), .keys_out = u32(d->out[0]),
    .values_in = u32(d->small), .values_out = u32(d->out[1]), .n = d->n)

CASE(sort_long_keys, sort, kiln_sort_desc,
    .keys_in = {d->keys, KILN_U64}, .keys_out = {d->out[0], KILN_U64},
    .n = d->n / 2)

CASE(argsort, argsort, kiln_argsort_desc,
    .keys = f32(d->keys), .indices = u32(d->out[0]), .n = d->n)

CASE(segmented_sort, segmented_sort, kiln_segmented_sort_desc,
    .keys_in = u32(d->keys), .keys_out = u32(d->out[0]),
    .offsets = u32(d->offsets), .n = d->n, .n_segments = d->n / 16)

CASE(merge, merge, kiln_merge_desc,
    .a = u32(d->sorted), .b = u32(d->sorted), .n_a = d->n, .n_b = d->n,
    .out = u32(d->out[0]))

CASE(search, search, kiln_search_desc,
    .sorted = u32(d->sorted), .m = d->n, .needles = keys(d), .n = d->n,
    .out = u32(d->out[0]))

const calls_case kiln__bench_calls_table[] = {
    {"map", map},
    {"reduce", reduce},
    {"reduce, map and operation given", map_reduce},
    {"arg_reduce", arg_reduce},
    {"dot", dot},
    {"norm", norm},
    {"distance", distance},
    {"mean_variance", mean_variance},
    {"reduce_rows", reduce_rows},
    {"reduce_columns", reduce_columns},
    {"segmented_reduce", segmented_reduce},
    {"segmented_reduce, one length", segments_of_one_length},
    {"segmented_reduce, bags of rows", bags},
    {"scan", scan},
    {"scan_by_key", scan_by_key},
    {"segmented_scan", segmented_scan},
    {"adjacent_difference", adjacent_difference},
    {"gather", gather},
    {"gather, by buckets", gather_by_buckets},
    {"gather_rows", gather_rows},
    {"scatter", scatter},
    {"scatter, by buckets", scatter_by_buckets},
    {"select", select_if},
    {"select, flags", select_flagged},
    {"unique", unique},
    {"partition", partition},
    {"split in 16", split},
    {"split in 1000", split_many},
    {"run_length_encode", run_length_encode},
    {"run_length_non_trivial", run_length_non_trivial},
    {"find", find},
    {"count", count},
    {"any", any},
    {"all", all},
    {"histogram, 256 bins", histogram},
    {"histogram, 4096 even bins", histogram_even},
    {"histogram, 65536 bins", histogram_large},
    {"counting_sort", counting_sort},
    {"counting_sort, pairs", counting_sort_pairs},
    {"sort keys", sort_keys},
    {"sort keys of 8 bytes", sort_long_keys},
    {"sort pairs", sort_pairs},
    {"argsort", argsort},
    {"segmented_sort", segmented_sort},
    {"merge", merge},
    {"search", search},
    {NULL, NULL},
};
/* clang-format on */
