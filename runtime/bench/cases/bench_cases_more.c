/* bench_cases_more.c -- the benchmark cases of statistics, operations on rows and
 * segments, and sorts and divisions by small keys. Some have a peer in CUB or Thrust;
 * for the others no library has a function here. */
#include "bench/bench_ops.h"

/* clang-format off */

#define FLOATS {"(int)(hash(i) >> 40) * 0x1p-24f - 0.5f",                      \
                "(int)(hash(i + 99) >> 40) * 0x1p-24f - 0.5f"}
#define KEYS {"hash(i)", "i"}
#define SMALL_KEYS {"hash(i) & 255", "i"}
#define RUNS {"hash(i / 4)"}
#define FLAGS {"hash(i) % 100 == 0", "i & 15"}
#define SEGMENTS {"hash(i)", "i * 1000 < n ? i * 1000 : n"}
#define ROWS {"i & 1023", "hash(i) % (n / 64)"}
#define PLAIN(label, type, bytes, fill, own)                                   \
  {label, type, bytes, "-", NULL, {0, 0, 0, 0}, fill, NULL, own,               \
   KILN_DTYPE_NONE, 0, 0, 0}

#define BESIDE(label, type, bytes, peer, symbol, fill, own, compared, results) \
  {label, type, bytes, peer, "kiln_peer_" symbol, {0, 0, 0, 0}, fill, NULL,     \
   own, compared, results, 0, 0}

/* ---- Statistics ---------------------------------------------------------- */

#define WHOLE(id, op, desc_type, ...)                                          \
  BENCH_OWN(id, op, desc_type,                                                 \
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n, __VA_ARGS__)

WHOLE(own_arg_min, arg_reduce, kiln_arg_reduce_desc, .op = KILN_MIN,
      .value = {b->out[0], KILN_F32}, .index = {b->out[1], KILN_U32})
WHOLE(own_norm, norm, kiln_norm_desc, .out = {b->out[0], KILN_F32})
WHOLE(own_moments, mean_variance, kiln_mean_variance_desc,
      .mean = {b->out[0], KILN_F32}, .variance = {b->out[1], KILN_F32})

BENCH_OWN(own_distance, distance, kiln_distance_desc,
    .x = {b->in[0], KILN_F32}, .y = {b->in[1], KILN_F32}, .n = b->n,
    .out = {b->out[0], KILN_F32})

#define FOUND(id, op, type)                                                    \
  BENCH_OWN(id, op, kiln_find_desc,                                            \
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n, .out = {b->out[0], type},  \
    .predicate = "x > 2")

FOUND(own_find, find, KILN_U64)
FOUND(own_any, any, KILN_U32)

BENCH_OWN(own_all, all, kiln_find_desc,
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n,
    .out = {b->out[0], KILN_U32}, .predicate = "x < 2")

BENCH_OWN(own_pairs_of_bins, histogram_2d, kiln_histogram_2d_desc,
    .x = {{b->in[0], KILN_F32}, 64, -0.5, 0.5},
    .y = {{b->in[1], KILN_F32}, 64, -0.5, 0.5},
    .n = b->n, .counts = {b->out[0], KILN_U32})

const bench_case kiln__bench_statistics[] = {
    BESIDE("arg-min", KILN_F32, 4, "CUB", "arg_min_f32", FLOATS, own_arg_min,
           KILN_F32, 1),
    PLAIN("norm", KILN_F32, 4, FLOATS, own_norm),
    PLAIN("distance", KILN_F32, 8, FLOATS, own_distance),
    PLAIN("mean and variance", KILN_F32, 4, FLOATS, own_moments),
    BESIDE("find, none", KILN_F32, 4, "Thrust", "find_above_2_f32", FLOATS,
           own_find, KILN_DTYPE_NONE, 0),
    PLAIN("any, none", KILN_F32, 4, FLOATS, own_any),
    PLAIN("all", KILN_F32, 4, FLOATS, own_all),
    PLAIN("histogram of pairs, 64 x 64", KILN_F32, 8, FLOATS, own_pairs_of_bins),
    {.label = NULL},
};

/* ---- Rows, columns, segments --------------------------------------------- */

#define LINES(id, op, desc_type, ...)                                          \
  BENCH_OWN(id, op, desc_type,                                                 \
    .x = {.in = {{b->in[0], KILN_F32}}}, .rows = b->n / 1000, .columns = 1000, \
    __VA_ARGS__)
#define PARTS(id, op, desc_type, ...)                                          \
  BENCH_OWN(id, op, desc_type,                                                 \
    .x = {.in = {{b->in[0], KILN_F32}}}, .n = b->n, .n_segments = b->n / 100,  \
    .length = 100, __VA_ARGS__)
#define MOMENTS .mean = {b->out[0], KILN_F32}, .variance = {b->out[1], KILN_F32}
#define LEAST .op = KILN_MIN, .value = {b->out[0], KILN_F32},                  \
              .index = {b->out[1], KILN_U32}

LINES(own_row_sums, reduce_rows, kiln_reduce_matrix_desc,
      .out = {b->out[0], KILN_F32})
LINES(own_least_of_columns, arg_reduce_columns, kiln_arg_reduce_matrix_desc,
      LEAST)
LINES(own_row_moments, mean_variance_rows, kiln_mean_variance_matrix_desc,
      MOMENTS)
LINES(own_column_moments, mean_variance_columns,
      kiln_mean_variance_matrix_desc, MOMENTS)
PARTS(own_least_of_parts, segmented_arg_reduce,
      kiln_segmented_arg_reduce_desc, LEAST)
PARTS(own_moments_of_parts, segmented_mean_variance,
      kiln_segmented_mean_variance_desc, MOMENTS)

BENCH_OWN(own_scan_by_key, scan_by_key, kiln_scan_by_key_desc,
    .keys = {b->in[0], KILN_U32}, .x = {.in = {{b->in[1], KILN_U32}}},
    .n = b->n, .out = {b->out[0], KILN_U32})
BENCH_OWN(own_scan_by_flag, segmented_scan, kiln_segmented_scan_desc,
    .flags = {b->in[0], KILN_U32}, .x = {.in = {{b->in[1], KILN_U32}}},
    .n = b->n, .out = {b->out[0], KILN_U32})

#define BY_KEY(label, keys)                                                    \
  {label, KILN_U32, 12, "CUB", "kiln_peer_scan_by_key_u32", {1.15, 1.15, 0, 0}, \
   {keys, "i & 15"}, NULL, own_scan_by_key, KILN_U32, 0, 0, 0}

const bench_case kiln__bench_groups[] = {
    PLAIN("row sums, 1,000 columns", KILN_F32, 4, FLOATS, own_row_sums),
    PLAIN("arg-min, 1,000 columns", KILN_F32, 4, FLOATS, own_least_of_columns),
    PLAIN("mean and variance, rows of 1,000", KILN_F32, 4, FLOATS,
          own_row_moments),
    PLAIN("mean and variance, 1,000 columns", KILN_F32, 4, FLOATS,
          own_column_moments),
    PLAIN("arg-min, segments of 100", KILN_F32, 4.08, FLOATS,
          own_least_of_parts),
    PLAIN("mean and variance, segments of 100", KILN_F32, 4.08, FLOATS,
          own_moments_of_parts),
    BY_KEY("scan by key, runs of 4", "hash(i / 4)"),
    BY_KEY("scan by key, runs of 37", "hash(i / 37)"),
    BY_KEY("scan by key, runs of 1000", "hash(i / 1000)"),
    PLAIN("scan by flag", KILN_U32, 12, FLAGS, own_scan_by_flag),
    {.label = NULL},
};

/* ---- Sorts, divisions, rows ---------------------------------------------- */

BENCH_OWN(own_argsort, argsort, kiln_argsort_desc,
    .keys = {b->in[0], KILN_U32}, .indices = {b->out[0], KILN_U32}, .n = b->n)
BENCH_OWN(own_key_sort, key_sort, kiln_key_sort_desc,
    .in = {b->in[0], KILN_U32}, .out = {b->out[0], KILN_U32}, .n = b->n,
    .key = "x & 65535", .key_type = KILN_U16)
BENCH_OWN(own_counting_sort, counting_sort, kiln_counting_sort_desc,
    .keys = {b->in[0], KILN_U32}, .keys_out = {b->out[0], KILN_U32},
    .values = {b->in[1], KILN_U32}, .values_out = {b->out[1], KILN_U32},
    .n = b->n, .range = 256)
BENCH_OWN(own_split, split, kiln_split_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .key = "x & 15", .parts = 16,
    .n = b->n, .out = {b->out[0], KILN_U32})
BENCH_OWN(own_non_trivial, run_length_non_trivial, kiln_run_length_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .n = b->n,
    .offsets = {b->out[0], KILN_U32}, .lengths = {b->out[2], KILN_U32},
    .count = {b->out[1], KILN_U32})

/* The bounds of segments of 1,000 keys are in in[1]. */
BENCH_OWN(own_segmented_sort, segmented_sort, kiln_segmented_sort_desc,
    .keys_in = {b->in[0], KILN_U32}, .keys_out = {b->out[0], KILN_U32},
    .offsets = {b->in[1], KILN_U32}, .n_segments = b->n / 1000, .n = b->n)

/* Rows of 256 bytes, such as those of an embedding table. */
BENCH_OWN(own_gather_rows, gather_rows, kiln_gather_rows_desc,
    .in = {b->in[0], KILN_U32}, .index = {b->in[1], KILN_U32},
    .out = {b->out[0], KILN_U32}, .n = b->n / 64, .width = 64,
    .n_target = b->n / 64)

const bench_case kiln__bench_orders[] = {
    BESIDE("argsort", KILN_U32, 8, "CUB, pairs", "argsort_u32", KEYS,
           own_argsort, KILN_U32, 0),
    PLAIN("sort by 16 bits of a key", KILN_U32, 8, KEYS, own_key_sort),
    BESIDE("counting sort of pairs, 256 keys", KILN_U32, 16, "CUB, 8 bits",
           "sort_pairs_8_u32", SMALL_KEYS, own_counting_sort, KILN_U32, 0),
    BESIDE("sort segments of 1,000", KILN_U32, 8, "CUB", "segmented_sort_u32",
           SEGMENTS, own_segmented_sort, KILN_U32, 1000),
    PLAIN("split into 16 parts", KILN_U32, 8, KEYS, own_split),
    BESIDE("runs of two or more", KILN_U32, 6, "CUB", "non_trivial_runs_u32",
           RUNS, own_non_trivial, KILN_U32, 16),
    PLAIN("gather rows of 256 bytes", KILN_U32, 8, ROWS, own_gather_rows),
    {.label = NULL},
};
/* clang-format on */
