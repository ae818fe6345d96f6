/* bench_cases_order.c -- the benchmark cases of select, partition,
 * histograms, sorts, merge, search, gather, scatter, top-k and quantiles. */
#include "bench/bench_ops.h"

/* clang-format off */

/* Expressions for the inputs of the cases. */
#define BITS {"hash(i)", "i"}
#define CONSTANT {"77"}

/* ---- Select and partition ----------------------------------------------- */

BENCH_OWN(own_select, select, kiln_select_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .predicate = "x % 2 == 1", .n = b->n,
    .out = {b->out[0], KILN_U32}, .count = {b->out[1], KILN_U32})

#define PARTITION(id, ...)                                                     \
  BENCH_OWN(id, partition, kiln_partition_desc,                                \
    .x = {.in = {{b->in[0], KILN_U32}}}, .first = "x % 2 == 1", .n = b->n,     \
    .out = {b->out[0], KILN_U32}, .count = {b->out[1], KILN_U32}, __VA_ARGS__)

PARTITION(own_partition, .rest_reversed = true)
PARTITION(own_partition_stable, .rest_reversed = false)

BENCH_OWN(own_unique, unique, kiln_unique_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .n = b->n,
    .out = {b->out[0], KILN_U32}, .count = {b->out[1], KILN_U32})

BENCH_OWN(own_run_length, run_length_encode, kiln_run_length_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .n = b->n,
    .values = {b->out[0], KILN_U32}, .lengths = {b->out[2], KILN_U32},
    .count = {b->out[1], KILN_U32})

BENCH_OWN(own_count, count, kiln_find_desc,
    .x = {.in = {{b->in[0], KILN_U32}}}, .n = b->n,
    .predicate = "x % 2 == 1", .out = {b->out[0], KILN_U32})

#define RUNS_OF_4 {"hash(i / 4)"}
#define RUNS_OF_37 {"hash(i / 37)"}
#define RUNS_OF_1000 {"hash(i / 1000)"}

/* Only the first elements of the output are compared, of which every case writes
 * at least as many. */
const bench_case kiln__bench_select[] = {
    {"select odd", KILN_U32, 6, "CUB", "kiln_peer_select_if_u32",
     {1.3, 1.2, 1.05, 1.05}, BITS, NULL, own_select, KILN_U32, 1024, 0, 0},
    {"unique, runs of 4", KILN_U32, 5, "CUB", "kiln_peer_unique_u32",
     {0, 0, 0, 0}, RUNS_OF_4, NULL, own_unique, KILN_U32, 1024, 0, 0},
    {"run lengths, runs of 4", KILN_U32, 6, "CUB", "kiln_peer_run_length_u32",
     {1.15, 1.15, 0, 0}, RUNS_OF_4, NULL, own_run_length, KILN_U32, 1024, 0, 0},
    {"run lengths, runs of 37", KILN_U32, 4.22, "CUB", "kiln_peer_run_length_u32",
     {1.15, 1.15, 0, 0}, RUNS_OF_37, NULL, own_run_length, KILN_U32, 1024, 0, 0},
    {"run lengths, runs of 1000", KILN_U32, 4.01, "CUB", "kiln_peer_run_length_u32",
     {1.15, 1.15, 0, 0}, RUNS_OF_1000, NULL, own_run_length, KILN_U32, 64, 0, 0},
    {"count odd", KILN_U32, 4, "CUB", "kiln_peer_count_if_u32",
     {1.02, 1.02, 0, 0}, BITS, NULL, own_count, KILN_U32, 1, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_partition[] = {
    {"odd first, rest reversed", KILN_U32, 8, "CUB", "kiln_peer_partition_if_u32",
     {1.3, 1.2, 1.05, 1.05}, BITS, NULL, own_partition, KILN_U32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_partition_joined[] = {
    {"odd first, stable", KILN_U32, 8, "CUB, rest reversed",
     "kiln_peer_partition_if_u32", {0, 0, 0, 0},
     BITS, NULL, own_partition_stable, KILN_U32, 1024, 0, 0},
    {.label = NULL},
};

/* ---- Histograms --------------------------------------------------------- */

#define HISTOGRAM(id, bins_)                                                   \
  BENCH_OWN(id, histogram, kiln_histogram_desc,                                \
    .x = {.in = {{b->in[0], b->now->type}}}, .n = b->n, .bins = bins_,         \
    .lower = 0, .upper = bins_, .counts = {b->out[0], KILN_U32})

HISTOGRAM(own_256, 256)
HISTOGRAM(own_4096, 4096)

/* Sums of weights, which are whole numbers in f32. */
BENCH_OWN(own_weights, histogram, kiln_histogram_desc,
    .x = {.in = {{b->in[0], KILN_U32}, {b->in[1], KILN_U32}}}, .n = b->n,
    .bins = 256, .lower = 0, .upper = 256, .counts = {b->out[0], KILN_F32},
    .weight = "y")

#define BELOW_256 {"hash(i) & 255"}
#define BELOW_4096 {"hash(i) & 4095"}
#define RISING {"i & 255"}
/* Keys with sixteen different values, each half as frequent as the preceding
 * value. */
#define FEW {"16 * min(15, __clz((unsigned)(hash(i) >> 16)))"}

const bench_case kiln__bench_histogram[] = {
    {"256 bins, uniform", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {4, 3, 1.3, 1.3}, BELOW_256, NULL, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, constant", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {1.8, 0, 0, 0}, CONSTANT, NULL, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, few values", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {1.8, 0, 0, 0}, FEW, NULL, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, 0 1 2 ...", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {0, 0, 0, 0}, RISING, NULL, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, skewed (Zipf)", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {0, 0, 0, 0}, {"zipf(i) & 255"}, NULL, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, uniform", KILN_U8, 1, "CUB", "kiln_peer_histogram_256_u8",
     {1.4, 0, 0, 0}, BELOW_256, NULL, own_256, KILN_U32, 256, 0, 0},
    {"4,096 bins, uniform", KILN_U32, 4, "CUB", "kiln_peer_histogram_4096_u32",
     {4, 0, 0, 0}, BELOW_4096, NULL, own_4096, KILN_U32, 4096, 0, 0},
    {"4,096 bins, constant", KILN_U32, 4, "CUB", "kiln_peer_histogram_4096_u32",
     {0, 0, 0, 0}, CONSTANT, NULL, own_4096, KILN_U32, 4096, 0, 0},
    {"256 bins, weights, uniform", KILN_U32, 8, "atomics",
     "kiln_peer_weights_256_f32", {0, 0, 0, 0},
     {"hash(i) & 255", "hash(i) >> 20 & 1023"}, NULL, own_weights, KILN_F32,
     256, 1e6, 0},
    {"256 bins, weights, constant", KILN_U32, 8, "atomics",
     "kiln_peer_weights_256_f32", {0, 0, 0, 0},
     {"7", "hash(i) >> 20 & 1023"}, NULL, own_weights, KILN_F32, 256, 1e9, 0},
    {.label = NULL},
};

/* ---- Sorts -------------------------------------------------------------- */

#define SORT_KEYS(id, end_bit_)                                                \
  BENCH_OWN(id, sort, kiln_sort_desc,                                          \
    .keys_in = {b->in[0], b->now->type},                                       \
    .keys_out = {b->out[0], b->now->type}, .n = b->n, .end_bit = end_bit_)
#define SORT_PAIRS(id, end_bit_)                                               \
  BENCH_OWN(id, sort, kiln_sort_desc,                                          \
    .keys_in = {b->in[0], b->now->type},                                       \
    .keys_out = {b->out[0], b->now->type}, .n = b->n, .end_bit = end_bit_,     \
    .values_in = {b->in[1], KILN_U32}, .values_out = {b->out[1], KILN_U32})

SORT_KEYS(own_keys, 0)
SORT_KEYS(own_keys_16, 16)
SORT_PAIRS(own_pairs, 0)
SORT_PAIRS(own_pairs_16, 16)

/* Pairs with 8-byte keys or values. Their type is u64, so that the buffers hold
 * half as many elements. */
#define SORT_WIDE(id, key, value)                                              \
  BENCH_OWN(id, sort, kiln_sort_desc,                                          \
    .keys_in = {b->in[0], key}, .keys_out = {b->out[0], key}, .n = b->n,       \
    .values_in = {b->in[1], value}, .values_out = {b->out[1], value})

SORT_WIDE(own_u32_u64, KILN_U32, KILN_U64)
SORT_WIDE(own_u64_u32, KILN_U64, KILN_U32)
SORT_WIDE(own_u64_u64, KILN_U64, KILN_U64)

#define FLOATS {"(int)(hash(i) >> 32) * 0x1p-20f"}
#define FEW_KEYS {"(hash(i) & 15) * 0x01234567u"}
#define SORTED {"i"}

const bench_case kiln__bench_sort[] = {
    {"keys", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32", {1, 1, 1.1, 1.3},
     BITS, NULL, own_keys, KILN_U32, 0, 0, 0},
    {"keys", KILN_F32, 8, "CUB", "kiln_peer_sort_keys_f32", {1, 1, 1.1, 1.3},
     FLOATS, NULL, own_keys, KILN_F32, 0, 0, 0},
    {"keys", KILN_U64, 16, "CUB", "kiln_peer_sort_keys_u64", {1, 1, 1.1, 1.3},
     BITS, NULL, own_keys, KILN_DTYPE_NONE, 0, 0, 0},
    {"keys, 16 bits", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_16_u32",
     {1, 1, 1.1, 1.3}, BITS, NULL, own_keys_16, KILN_U32, 0, 0, 0},
    {"keys, constant", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, CONSTANT, NULL, own_keys, KILN_U32, 0, 0, 0},
    {"keys, 16 values", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, FEW_KEYS, NULL, own_keys, KILN_U32, 0, 0, 0},
    {"keys, sorted", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, SORTED, NULL, own_keys, KILN_U32, 0, 0, 0},
    {"keys, nearly sorted", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, {"near(i)"}, NULL, own_keys, KILN_U32, 0, 0, 0},
    {"keys, skewed (Zipf)", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, {"zipf(i)"}, NULL, own_keys, KILN_U32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_sort_pairs[] = {
    {"u32 with u32", KILN_U32, 16, "CUB", "kiln_peer_sort_pairs_u32",
     {1, 1, 1.1, 1.3}, BITS, NULL, own_pairs, KILN_U32, 0, 0, 0},
    {"u32 with u32, 16 bits", KILN_U32, 16, "CUB", "kiln_peer_sort_pairs_16_u32",
     {1, 1, 1.1, 1.3}, BITS, NULL, own_pairs_16, KILN_U32, 0, 0, 0},
    {"u32 with u64", KILN_U64, 24, "CUB", "kiln_peer_sort_pairs_u32_u64",
     {1.05, 1.05, 0, 0}, BITS, NULL, own_u32_u64, KILN_U32, 0, 0, 0},
    {"u64 with u32", KILN_U64, 24, "CUB", "kiln_peer_sort_pairs_u64_u32",
     {1.05, 1.05, 0, 0}, BITS, NULL, own_u64_u32, KILN_DTYPE_NONE, 0, 0, 0},
    {"u64 with u64", KILN_U64, 32, "CUB", "kiln_peer_sort_pairs_u64_u64",
     {1.05, 1.05, 0, 0}, BITS, NULL, own_u64_u64, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};

/* ---- Sorts by a comparison ----------------------------------------------- */

#define MERGE_SORT(id, less_, ...)                                             \
  BENCH_OWN(id, merge_sort, kiln_merge_sort_desc,                              \
    .keys_in = {b->in[0], b->now->type},                                       \
    .keys_out = {b->out[0], b->now->type}, .n = b->n, .less = less_,           \
    __VA_ARGS__)

MERGE_SORT(own_merge_sort, "fabsf(a) < fabsf(b)", .code = {.preamble = NULL})
MERGE_SORT(own_merge_sort_u64, "a < b", .code = {.preamble = NULL})
MERGE_SORT(own_merge_sort_pairs, "fabsf(a) < fabsf(b)",
    .values_in = {b->in[1], KILN_U32}, .values_out = {b->out[1], KILN_U32})

#define RECORD KILN_STRUCT(16, 8)

/* Sorts structs of 16 bytes by a key of 64 bits. */
static kiln_status own_merge_sort_structs(bench_ops *b)
{
  const kiln_param params[] = {{.name = "record", .type = RECORD}};
  const kiln_merge_sort_desc desc = {
      .keys_in = {b->in[0], RECORD}, .keys_out = {b->out[0], RECORD},
      .n = b->n, .less = "a.key < b.key",
      .code = {.preamble = "struct record { unsigned long long key, rest; };",
               .params = params, .n_params = 1}};
  size_t bytes = 0;

  if (!b->workspace_known) {
    CLI_TRY(kiln_merge_sort_workspace(b->rig.stream, &desc, &bytes));
    CLI_TRY(kiln__bench_workspace(b, bytes));
  }
  return kiln_merge_sort(b->rig.stream, &desc,
                         b->workspace.data != 0 ? &b->workspace : NULL);
}

static kiln_status prepare_structs(bench_ops *b)
{
  return kiln__bench_ops_fill(b, b->in[0], KILN_U64, 2 * b->n, "hash(i)");
}

const bench_case kiln__bench_merge_sort[] = {
    {"fabsf(a) < fabsf(b)", KILN_F32, 8, "CUB", "kiln_peer_merge_sort_f32",
     {1.1, 1.1, 0, 0}, FLOATS, NULL, own_merge_sort, KILN_F32, 0, 0, 0},
    {"a < b", KILN_U64, 16, "CUB", "kiln_peer_merge_sort_u64", {0, 0, 0, 0},
     BITS, NULL, own_merge_sort_u64, KILN_DTYPE_NONE, 0, 0, 0},
    {"structs by a key", RECORD, 32, "CUB", "kiln_peer_merge_sort_structs",
     {1.3, 0, 0, 0}, {NULL}, prepare_structs, own_merge_sort_structs, KILN_U32,
     0, 0, 0},
    {"f32 with u32", KILN_F32, 16, "CUB", "kiln_peer_merge_sort_pairs_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_merge_sort_pairs, KILN_F32, 0, 0, 0},
    {.label = NULL},
};

/* ---- Gather and scatter ------------------------------------------------- */

/* clang-format on */

/* Fills in[1] with a permutation of the indices. Each operation of mix() is
 * invertible, so it permutes the numbers below a power of two. It is applied until
 * the number is an index, which permutes the indices. */
static kiln_status prepare_permutation(bench_ops *b)
{
  uint64_t last = 1;
  const kiln_param params[] = {{"last", KILN_U64, &last, 0},
                               {"n", KILN_U64, &b->n, 0}};
  const kiln_map_desc desc = {
      .out = {{b->in[1], KILN_U32}},
      .expr = {"place(i, last, n)"},
      .n = b->n,
      .code = {
          .preamble =
              "__device__ unsigned long long mix(unsigned long long v,\n"
              "                                  unsigned long long last)\n"
              "{\n"
              "  const int half = (64 - __clzll(last) + 1) / 2;\n"
              "  v = v * 0x9e3779b97f4a7c15ull & last;\n"
              "  v ^= v >> half;\n"
              "  v = v * 0xd6e8feb86659fd93ull & last;\n"
              "  return v ^ v >> half;\n"
              "}\n"
              "__device__ unsigned long long place(unsigned long long v,\n"
              "                                    unsigned long long last,\n"
              "                                    unsigned long long n)\n"
              "{\n"
              "  do\n"
              "    v = mix(mix(v, last), last);\n"
              "  while (v >= n);\n"
              "  return v;\n"
              "}\n",
          .params = params,
          .n_params = 2}};

  while (last < b->n - 1)
    last = 2 * last + 1;
  return kiln_map(b->rig.stream, &desc, NULL);
}

static kiln_status fill_indices(bench_ops *b, const char *expr)
{
  return kiln__bench_ops_fill(b, b->in[1], KILN_U32, b->n, expr);
}

static kiln_status prepare_sequence(bench_ops *b)
{
  return fill_indices(b, "i");
}

/* Some indices occur very often. */
static kiln_status prepare_skewed(bench_ops *b)
{
  return fill_indices(b, "zipf(i) % n");
}

static kiln_status prepare_reversed(bench_ops *b)
{
  return fill_indices(b, "n - 1 - i");
}

/* Indices within 4,096 elements of their own position. */
static kiln_status prepare_local(bench_ops *b)
{
  return fill_indices(b, "min(n - 1, i + (hash(i) & 4095))");
}

/* A permutation within each whole group of 4,096 elements; the rest is in
 * order. A scatter then writes each element once. */
static kiln_status prepare_groups(bench_ops *b)
{
  return fill_indices(
      b, "i / 4096 < n / 4096 ? i / 4096 * 4096 + (i * 1237 & 4095)"
         " : i");
}

/* clang-format off */

#define INDEXED(id, op, desc_type)                                             \
  BENCH_OWN(id, op, desc_type,                                                 \
    .x = {.in = {{b->in[0], KILN_F32}}}, .index = {b->in[1], KILN_U32},        \
    .out = {b->out[0], KILN_F32}, .n = b->n, .n_target = b->n,                 \
    .method = b->plan.method, .passes = b->plan.passes)

INDEXED(own_gather, gather, kiln_gather_desc)
INDEXED(own_scatter, scatter, kiln_scatter_desc)

const bench_case kiln__bench_gather[] = {
    {"random", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {1.25, 1.1, 1, 0},
     {"hash(i) & 1023"}, prepare_permutation, own_gather, KILN_F32, 0, 0, 0},
    {"local within 4,096", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_local, own_gather, KILN_F32, 0, 0, 0},
    {"sequential", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_sequence, own_gather, KILN_F32, 0, 0, 0},
    {"reversed", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_reversed, own_gather, KILN_F32, 0, 0, 0},
    {"skewed (Zipf)", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {0, 0, 0, 0},
     {"hash(i) & 1023"}, prepare_skewed, own_gather, KILN_F32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_scatter[] = {
    {"random", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {3, 1.3, 1, 0},
     {"hash(i) & 1023"}, prepare_permutation, own_scatter, KILN_F32, 0, 0, 0},
    {"permuted within 4,096", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_groups, own_scatter, KILN_F32, 0, 0, 0},
    {"sequential", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_sequence, own_scatter, KILN_F32, 0, 0, 0},
    {"skewed (Zipf)", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {0, 0, 0, 0},
     {"hash(i) & 1023"}, prepare_skewed, own_scatter, KILN_DTYPE_NONE, 0, 0, 0},
    {"reversed", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {1, 1, 1, 0},
     {"hash(i) & 1023"}, prepare_reversed, own_scatter, KILN_F32, 0, 0, 0},
    {.label = NULL},
};

/* ---- Merge and search --------------------------------------------------- */

#define MERGE(id, n_a_, ...)                                                   \
  BENCH_OWN(id, merge, kiln_merge_desc,                                        \
    .a = {b->in[0], b->now->type}, .n_a = n_a_,                                \
    .b = {b->in[1], b->now->type}, .n_b = b->n - n_a_,                         \
    .out = {b->out[0], b->now->type}, __VA_ARGS__)

MERGE(own_merge, (b->n / 2), .less = NULL)
MERGE(own_merge_3_2, (b->n / 5 * 3), .less = NULL)
MERGE(own_merge_pairs, (b->n / 2), .a_values = {b->in[2], KILN_U32},
    .b_values = {b->in[2], KILN_U32}, .out_values = {b->out[1], KILN_U32})

BENCH_OWN(own_search, search, kiln_search_desc,
    .sorted = {b->in[0], KILN_U32}, .m = b->n,
    .needles = {.in = {{b->in[1], KILN_U32}}}, .n = b->n,
    .out = {b->out[0], KILN_U32})

/* Two non-decreasing sequences, for merges. */
#define ASCENDING {"i * 3 + (hash(i) & 1)", "i * 3 + (hash(i + 5) & 1)"}
#define ASCENDING_3_2 {"i * 2 + (hash(i) & 1)", "i * 3 + (hash(i + 5) & 1)"}
#define NEEDLES {"i * 3", "hash(i) >> 34"}

const bench_case kiln__bench_merge[] = {
    {"two halves", KILN_U32, 8, "CUB", "kiln_peer_merge_u32", {1.05, 1.05, 0, 0},
     ASCENDING, NULL, own_merge, KILN_U32, 0, 0, 0},
    {"3:2", KILN_U32, 8, "CUB", "kiln_peer_merge_3_2_u32", {1.05, 1.05, 0, 0},
     ASCENDING_3_2, NULL, own_merge_3_2, KILN_U32, 0, 0, 0},
    {"two halves", KILN_F32, 8, "-", NULL, {0, 0, 0, 0}, ASCENDING, NULL,
     own_merge, KILN_DTYPE_NONE, 0, 0, 0},
    {"two halves", KILN_U64, 16, "-", NULL, {0, 0, 0, 0}, ASCENDING, NULL,
     own_merge, KILN_DTYPE_NONE, 0, 0, 0},
    {"two halves with u32", KILN_U32, 16, "-", NULL, {0, 0, 0, 0}, ASCENDING,
     NULL, own_merge_pairs, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};

#define SETS(id, kind_)                                                        \
  BENCH_OWN(id, set_operation, kiln_set_desc, .kind = kind_,                   \
    .a = {b->in[0], KILN_U32}, .n_a = b->n / 2, .b = {b->in[1], KILN_U32},     \
    .n_b = b->n / 2, .out = {b->out[0], KILN_U32},                             \
    .count = {b->out[1], KILN_U64})

SETS(own_union, KILN_SET_UNION)
SETS(own_intersection, KILN_SET_INTERSECTION)
SETS(own_difference, KILN_SET_DIFFERENCE)
SETS(own_symmetric, KILN_SET_SYMMETRIC_DIFFERENCE)

/* The sequences of kiln__bench_merge share about half of their elements. Only
 * the first elements are compared. Every case writes at least an eighth of its
 * output. */
const bench_case kiln__bench_sets[] = {
    {"union", KILN_U32, 7, "Thrust", "kiln_peer_set_union_u32",
     {1.6, 0, 0, 0}, ASCENDING, NULL, own_union, KILN_U32, 1024, 0, 0},
    {"intersection", KILN_U32, 5, "Thrust", "kiln_peer_set_intersection_u32",
     {0, 0, 0, 0}, ASCENDING, NULL, own_intersection, KILN_U32, 1024, 0, 0},
    {"difference", KILN_U32, 5, "Thrust", "kiln_peer_set_difference_u32",
     {0, 0, 0, 0}, ASCENDING, NULL, own_difference, KILN_U32, 1024, 0, 0},
    {"symmetric difference", KILN_U32, 6, "Thrust",
     "kiln_peer_set_symmetric_difference_u32", {0, 0, 0, 0}, ASCENDING, NULL,
     own_symmetric, KILN_U32, 1024, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_search[] = {
    {"random needles", KILN_U32, 8, "Thrust", "kiln_peer_lower_bound_u32",
     {1.1, 1.1, 1.1, 1.1}, NEEDLES, NULL, own_search, KILN_U32, 0, 0, 0},
    {.label = NULL},
};

/* ---- Top-k and quantiles ------------------------------------------------ */

/* Small arrays have fewer keys than a case selects. */
#define AT_MOST(most) (b->n < (most) ? b->n : (most))
#define TOP_K(id, k_, ...)                                                     \
  BENCH_OWN(id, top_k, kiln_top_k_desc,                                        \
    .keys = {b->in[0], b->now->type}, .k = AT_MOST(k_),                        \
    .keys_out = {b->out[0], b->now->type}, .indices = {b->out[1], KILN_U32},   \
    __VA_ARGS__)

TOP_K(own_top_10, 10, .n = b->n)
TOP_K(own_top_1000, 1000, .n = b->n)
TOP_K(own_top_65536, 65536, .n = b->n)
TOP_K(own_top_10_rows, 10, .n = AT_MOST(1000), .rows = b->n / 1000)

#define FEW_FLOATS {"(hash(i) & 15) * 0x1p-3f"}

/* The peer sorts all keys; its first results are compared. */
const bench_case kiln__bench_top_k[] = {
    {"top 10", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_descending_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_top_10, KILN_F32, 10, 0, 0},
    {"top 1,000", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_descending_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_top_1000, KILN_F32, 1000, 0, 0},
    {"top 1,000, 16 values", KILN_F32, 4, "CUB, sort",
     "kiln_peer_sort_descending_f32",
     {0, 0, 0, 0}, FEW_FLOATS, NULL, own_top_1000, KILN_F32, 1000, 0, 0},
    {"top 1,000, sorted", KILN_F32, 4, "CUB, sort",
     "kiln_peer_sort_descending_f32",
     {0, 0, 0, 0}, SORTED, NULL, own_top_1000, KILN_F32, 1000, 0, 0},
    {"top 65,536", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_descending_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_top_65536, KILN_F32, 65536, 0, 0},
    {"top 1,000", KILN_U64, 8, "CUB, sort", "kiln_peer_sort_descending_u64",
     {0, 0, 0, 0}, BITS, NULL, own_top_1000, KILN_DTYPE_NONE, 0, 0, 0},
    {"top 1,000", KILN_U8, 1, NULL, NULL,
     {0, 0, 0, 0}, BITS, NULL, own_top_1000, KILN_DTYPE_NONE, 0, 0, 0},
    {"top 10 of rows of 1,000", KILN_F32, 4, NULL, NULL,
     {0, 0, 0, 0}, FLOATS, NULL, own_top_10_rows, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};

static const double quartiles[] = {0.25, 0.5, 0.75};

#define QUANTILE(id, ...)                                                      \
  BENCH_OWN(id, quantile, kiln_quantile_desc,                                  \
    .keys = {b->in[0], KILN_F32}, .n = b->n, .out = {b->out[0], KILN_F32},     \
    __VA_ARGS__)

QUANTILE(own_median, .rule = KILN_QUANTILE_LINEAR)
QUANTILE(own_quartiles, .q = quartiles, .n_q = 3)

/* The time of a sort is the peer's; its results are others. */
const bench_case kiln__bench_quantile[] = {
    {"median", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_keys_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_median, KILN_DTYPE_NONE, 0, 0, 0},
    {"median, 16 values", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_keys_f32",
     {0, 0, 0, 0}, FEW_FLOATS, NULL, own_median, KILN_DTYPE_NONE, 0, 0, 0},
    {"3 quartiles", KILN_F32, 4, "CUB, sort", "kiln_peer_sort_keys_f32",
     {0, 0, 0, 0}, FLOATS, NULL, own_quartiles, KILN_DTYPE_NONE, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
