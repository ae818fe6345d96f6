/* bench_calls_table.c -- one call of every operation that launches. */
#include "bench_calls.h"

#define CALL(name)                                                             \
  (bytes != NULL ? kiln_##name##_workspace(stream, &desc, bytes)               \
                 : kiln_##name(stream, &desc, workspace))

#define DEFINE(name)                                                           \
  static kiln_status name(kiln_stream *stream, const calls_data *d,            \
                          const kiln_workspace *workspace, size_t *bytes)

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

/* ---- Maps and folds ------------------------------------------------------- */

DEFINE(map)
{
  const float a = 2.5F;
  const kiln_param p = {"alpha", KILN_F32, &a, false};
  const kiln_map_desc desc = {.in = {f32(d->keys), f32(d->small)},
                              .out = {f32(d->out[0])},
                              .expr = {"alpha * x + y"},
                              .n = d->n,
                              .code = {.params = &p, .n_params = 1}};

  return CALL(map);
}

DEFINE(reduce)
{
  const kiln_reduce_desc desc = {
      .x = floats(d), .n = d->n, .out = f32(d->one[0])};

  return CALL(reduce);
}

DEFINE(map_reduce)
{
  const kiln_reduce_desc desc = {
      .x = {.in = {f32(d->keys), f32(d->small)}, .map = "fabsf(x - y)"},
      .n = d->n,
      .op = {.expr = "a > b ? a : b", .identity = "-INFINITY"},
      .out = f32(d->one[0])};

  return CALL(reduce);
}

DEFINE(arg_reduce)
{
  const kiln_arg_reduce_desc desc = {.x = floats(d),
                                     .n = d->n,
                                     .op = KILN_MAX,
                                     .value = f32(d->one[0]),
                                     .index = u32(d->one[1])};

  return CALL(arg_reduce);
}

DEFINE(dot)
{
  const kiln_dot_desc desc = {
      .x = f32(d->keys), .y = f32(d->small), .n = d->n, .out = f32(d->one[0])};

  return CALL(dot);
}

DEFINE(norm)
{
  const kiln_norm_desc desc = {
      .x = floats(d), .n = d->n, .out = f32(d->one[0])};

  return CALL(norm);
}

DEFINE(distance)
{
  const kiln_distance_desc desc = {
      .x = f32(d->keys), .y = f32(d->small), .n = d->n, .out = f32(d->one[0])};

  return CALL(distance);
}

DEFINE(mean_variance)
{
  const kiln_mean_variance_desc desc = {.x = floats(d),
                                        .n = d->n,
                                        .mean = f32(d->one[0]),
                                        .variance = f32(d->one[1])};

  return CALL(mean_variance);
}

/* Rows of 64. */
static kiln_reduce_matrix_desc matrix(const calls_data *d)
{
  return (kiln_reduce_matrix_desc){
      .x = floats(d), .rows = d->n / 64, .columns = 64, .out = f32(d->out[0])};
}

DEFINE(reduce_rows)
{
  const kiln_reduce_matrix_desc desc = matrix(d);

  return CALL(reduce_rows);
}

DEFINE(reduce_columns)
{
  const kiln_reduce_matrix_desc desc = matrix(d);

  return CALL(reduce_columns);
}

DEFINE(segmented_reduce)
{
  const kiln_segmented_reduce_desc desc = {.x = floats(d),
                                           .n = d->n,
                                           .n_segments = d->n / 16,
                                           .offsets = u32(d->offsets),
                                           .out = f32(d->out[0])};

  return CALL(segmented_reduce);
}

DEFINE(segments_of_one_length)
{
  const kiln_segmented_reduce_desc desc = {.x = floats(d),
                                           .n = d->n,
                                           .n_segments = d->n / 16,
                                           .length = 16,
                                           .out = f32(d->out[0])};

  return CALL(segmented_reduce);
}

DEFINE(bags)
{
  const kiln_segmented_reduce_desc desc = {.x = floats(d),
                                           .n = d->n / 16,
                                           .n_segments = d->n / 16,
                                           .offsets = u32(d->offsets),
                                           .index = u32(d->small),
                                           .n_index = d->n,
                                           .width = 16,
                                           .out = f32(d->out[0])};

  return CALL(segmented_reduce);
}

/* ---- Scans ------------------------------------------------------------------ */

DEFINE(scan)
{
  const kiln_scan_desc desc = {.x = keys(d), .n = d->n, .out = u32(d->out[0])};

  return CALL(scan);
}

DEFINE(scan_by_key)
{
  const kiln_scan_by_key_desc desc = {
      .keys = u32(d->sorted), .x = keys(d), .n = d->n, .out = u32(d->out[0])};

  return CALL(scan_by_key);
}

DEFINE(segmented_scan)
{
  const kiln_segmented_scan_desc desc = {.offsets = u32(d->offsets),
                                         .n_segments = d->n / 16,
                                         .x = keys(d),
                                         .n = d->n,
                                         .out = u32(d->out[0])};

  return CALL(segmented_scan);
}

DEFINE(adjacent_difference)
{
  const kiln_adjacent_difference_desc desc = {
      .x = keys(d), .n = d->n, .out = u32(d->out[0])};

  return CALL(adjacent_difference);
}

/* ---- Places ------------------------------------------------------------------ */

DEFINE(gather)
{
  const kiln_gather_desc desc = {.x = floats(d),
                                 .index = u32(d->places),
                                 .out = f32(d->out[0]),
                                 .n = d->n,
                                 .n_target = d->n};

  return CALL(gather);
}

DEFINE(gather_by_parts)
{
  const kiln_gather_desc desc = {.x = floats(d),
                                 .index = u32(d->places),
                                 .out = f32(d->out[0]),
                                 .n = d->n,
                                 .n_target = d->n,
                                 .method = KILN_INDEX_PARTITION,
                                 .passes = 4};

  return CALL(gather);
}

DEFINE(gather_rows)
{
  const kiln_gather_rows_desc desc = {.in = f32(d->keys),
                                      .index = u32(d->small),
                                      .out = f32(d->out[0]),
                                      .n = d->n / 16,
                                      .width = 16,
                                      .n_target = d->n / 16};

  return CALL(gather_rows);
}

DEFINE(scatter)
{
  const kiln_scatter_desc desc = {.x = floats(d),
                                  .index = u32(d->places),
                                  .out = f32(d->out[0]),
                                  .n = d->n,
                                  .n_target = d->n};

  return CALL(scatter);
}

DEFINE(scatter_by_parts)
{
  const kiln_scatter_desc desc = {.x = floats(d),
                                  .index = u32(d->places),
                                  .out = f32(d->out[0]),
                                  .n = d->n,
                                  .n_target = d->n,
                                  .method = KILN_INDEX_PARTITION,
                                  .passes = 4};

  return CALL(scatter);
}

/* ---- Choosing and dividing ---------------------------------------------------- */

DEFINE(select_if)
{
  const kiln_select_desc desc = {.x = keys(d),
                                 .predicate = "x % 2 == 1",
                                 .n = d->n,
                                 .out = u32(d->out[0]),
                                 .count = u32(d->one[0])};

  return CALL(select);
}

DEFINE(select_flagged)
{
  const kiln_select_desc desc = {.x = keys(d),
                                 .flags = u32(d->small),
                                 .n = d->n,
                                 .out = u32(d->out[0]),
                                 .count = u32(d->one[0])};

  return CALL(select);
}

DEFINE(unique)
{
  const kiln_unique_desc desc = {.x = {.in = {u32(d->sorted)}},
                                 .n = d->n,
                                 .out = u32(d->out[0]),
                                 .count = u32(d->one[0])};

  return CALL(unique);
}

DEFINE(partition)
{
  const kiln_partition_desc desc = {.x = keys(d),
                                    .first = "x % 2 == 1",
                                    .n = d->n,
                                    .out = u32(d->out[0]),
                                    .count = u32(d->one[0])};

  return CALL(partition);
}

DEFINE(split)
{
  const kiln_split_desc desc = {.x = keys(d),
                                .key = "x % 16",
                                .parts = 16,
                                .n = d->n,
                                .out = u32(d->out[0]),
                                .offsets = u32(d->one[0])};

  return CALL(split);
}

DEFINE(split_many)
{
  const kiln_split_desc desc = {.x = keys(d),
                                .key = "x % 1000",
                                .parts = 1000,
                                .n = d->n,
                                .out = u32(d->out[0]),
                                .offsets = u32(d->one[0])};

  return CALL(split);
}

static kiln_run_length_desc runs(const calls_data *d)
{
  return (kiln_run_length_desc){.x = {.in = {u32(d->sorted)}},
                                .n = d->n,
                                .values = u32(d->out[0]),
                                .lengths = u32(d->out[1]),
                                .count = u32(d->one[0])};
}

DEFINE(run_length_encode)
{
  const kiln_run_length_desc desc = runs(d);

  return CALL(run_length_encode);
}

DEFINE(run_length_non_trivial)
{
  const kiln_run_length_desc desc = runs(d);

  return CALL(run_length_non_trivial);
}

static kiln_find_desc looked_for(const calls_data *d)
{
  return (kiln_find_desc){.x = keys(d),
                          .predicate = "x == 123456789",
                          .n = d->n,
                          .out = u32(d->one[0])};
}

DEFINE(find)
{
  const kiln_find_desc desc = looked_for(d);

  return CALL(find);
}

DEFINE(count)
{
  const kiln_find_desc desc = looked_for(d);

  return CALL(count);
}

DEFINE(any)
{
  const kiln_find_desc desc = looked_for(d);

  return CALL(any);
}

DEFINE(all)
{
  const kiln_find_desc desc = looked_for(d);

  return CALL(all);
}

/* ---- Counting and sorting ------------------------------------------------------- */

DEFINE(histogram)
{
  const kiln_histogram_desc desc = {.x = {.in = {u32(d->small)}},
                                    .n = d->n,
                                    .bins = 256,
                                    .counts = u32(d->one[0])};

  return CALL(histogram);
}

DEFINE(histogram_even)
{
  const kiln_histogram_desc desc = {.x = {.in = {f32(d->keys)}},
                                    .n = d->n,
                                    .bins = 4096,
                                    .lower = -1,
                                    .upper = 1,
                                    .counts = u32(d->one[0])};

  return CALL(histogram);
}

DEFINE(histogram_large)
{
  const kiln_histogram_desc desc = {
      .x = {.in = {u32(d->keys)}, .map = "x >> 16"},
      .n = d->n,
      .bins = 65536,
      .counts = u32(d->one[0])};

  return CALL(histogram);
}

DEFINE(counting_sort)
{
  const kiln_counting_sort_desc desc = {.keys = u32(d->small),
                                        .keys_out = u32(d->out[0]),
                                        .n = d->n,
                                        .range = 256};

  return CALL(counting_sort);
}

DEFINE(counting_sort_pairs)
{
  const kiln_counting_sort_desc desc = {.keys = u32(d->small),
                                        .keys_out = u32(d->out[0]),
                                        .values = u32(d->keys),
                                        .values_out = u32(d->out[1]),
                                        .n = d->n,
                                        .range = 256};

  return CALL(counting_sort);
}

DEFINE(sort_keys)
{
  const kiln_sort_desc desc = {
      .keys_in = u32(d->keys), .keys_out = u32(d->out[0]), .n = d->n};

  return CALL(sort);
}

DEFINE(sort_pairs)
{
  const kiln_sort_desc desc = {.keys_in = u32(d->keys),
                               .keys_out = u32(d->out[0]),
                               .values_in = u32(d->small),
                               .values_out = u32(d->out[1]),
                               .n = d->n};

  return CALL(sort);
}

DEFINE(sort_long_keys)
{
  const kiln_sort_desc desc = {.keys_in = {d->keys, KILN_U64},
                               .keys_out = {d->out[0], KILN_U64},
                               .n = d->n / 2};

  return CALL(sort);
}

DEFINE(argsort)
{
  const kiln_argsort_desc desc = {
      .keys = f32(d->keys), .indices = u32(d->out[0]), .n = d->n};

  return CALL(argsort);
}

DEFINE(segmented_sort)
{
  const kiln_segmented_sort_desc desc = {.keys_in = u32(d->keys),
                                         .keys_out = u32(d->out[0]),
                                         .offsets = u32(d->offsets),
                                         .n = d->n,
                                         .n_segments = d->n / 16};

  return CALL(segmented_sort);
}

DEFINE(merge)
{
  const kiln_merge_desc desc = {.a = u32(d->sorted),
                                .b = u32(d->sorted),
                                .n_a = d->n,
                                .n_b = d->n,
                                .out = u32(d->out[0])};

  return CALL(merge);
}

DEFINE(search)
{
  const kiln_search_desc desc = {.sorted = u32(d->sorted),
                                 .m = d->n,
                                 .needles = keys(d),
                                 .n = d->n,
                                 .out = u32(d->out[0])};

  return CALL(search);
}

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
    {"gather, by parts", gather_by_parts},
    {"gather_rows", gather_rows},
    {"scatter", scatter},
    {"scatter, by parts", scatter_by_parts},
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
