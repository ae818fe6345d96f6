/* bench_cases_order.c -- cases of selecting, partitioning, counting, sorting, gathering
 * and scattering (lecture rows B9, B12, B13, B14). */
#include "bench_ops.h"

#define TRY(expression)                                                        \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

BENCH_RUN(gather, kiln_gather_desc)
BENCH_RUN(histogram, kiln_histogram_desc)
BENCH_RUN(merge, kiln_merge_desc)
BENCH_RUN(partition, kiln_partition_desc)
BENCH_RUN(run_length_encode, kiln_run_length_desc)
BENCH_RUN(scatter, kiln_scatter_desc)
BENCH_RUN(search, kiln_search_desc)
BENCH_RUN(select, kiln_select_desc)
BENCH_RUN(sort, kiln_sort_desc)
BENCH_RUN(unique, kiln_unique_desc)

static kiln_status prepare_bits(bench_ops *b)
{
  TRY(kiln__bench_fill_with(b, b->in[0], b->now->type, b->n, "hash(i)"));
  return kiln__bench_fill_with(b, b->in[1], KILN_U32, b->n, "i");
}

/* ---- Select and partition ----------------------------------------------------------- */

static kiln_status own_select(bench_ops *b)
{
  const kiln_select_desc desc = {.x = {.in = {{b->in[0], KILN_U32}}},
                                 .predicate = "x % 2 == 1",
                                 .n = b->n,
                                 .out = {b->out[0], KILN_U32},
                                 .count = {b->out[1], KILN_U32}};

  return run_select(b, &desc);
}

static kiln_status own_partition(bench_ops *b)
{
  const kiln_partition_desc desc = {.x = {.in = {{b->in[0], KILN_U32}}},
                                    .first = "x % 2 == 1",
                                    .n = b->n,
                                    .out = {b->out[0], KILN_U32},
                                    .rest_reversed = true,
                                    .count = {b->out[1], KILN_U32}};

  return run_partition(b, &desc);
}

static kiln_status own_partition_stable(bench_ops *b)
{
  const kiln_partition_desc desc = {.x = {.in = {{b->in[0], KILN_U32}}},
                                    .first = "x % 2 == 1",
                                    .n = b->n,
                                    .out = {b->out[0], KILN_U32},
                                    .count = {b->out[1], KILN_U32}};

  return run_partition(b, &desc);
}

/* Runs of four. */
static kiln_status prepare_runs(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], KILN_U32, b->n, "hash(i / 4)");
}

static kiln_status own_unique(bench_ops *b)
{
  const kiln_unique_desc desc = {.x = {.in = {{b->in[0], KILN_U32}}},
                                 .n = b->n,
                                 .out = {b->out[0], KILN_U32},
                                 .count = {b->out[1], KILN_U32}};

  return run_unique(b, &desc);
}

static kiln_status own_run_length(bench_ops *b)
{
  const kiln_run_length_desc desc = {.x = {.in = {{b->in[0], KILN_U32}}},
                                     .n = b->n,
                                     .values = {b->out[0], KILN_U32},
                                     .lengths = {b->out[2], KILN_U32},
                                     .count = {b->out[1], KILN_U32}};

  return run_run_length_encode(b, &desc);
}

/* A quarter of the outputs at least is there to be compared. */
/* clang-format off */
const bench_case kiln__bench_select[] = {
    {"select odd", KILN_U32, 6, "CUB", "kiln_peer_select_if_u32",
     {1.3, 1.2, 1.05, 1.05}, prepare_bits, own_select, KILN_U32, 1024, 0, 0},
    {"unique, runs of 4", KILN_U32, 5, "CUB", "kiln_peer_unique_u32",
     {0, 0, 0, 0}, prepare_runs, own_unique, KILN_U32, 1024, 0, 0},
    {"run lengths, runs of 4", KILN_U32, 6, "CUB", "kiln_peer_run_length_u32",
     {0, 0, 0, 0}, prepare_runs, own_run_length, KILN_U32, 1024, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_partition[] = {
    {"odd first, rest reversed", KILN_U32, 8, "CUB", "kiln_peer_partition_if_u32",
     {1.3, 1.2, 1.05, 1.05}, prepare_bits, own_partition, KILN_U32, 0, 0, 0},
    {"odd first, stable", KILN_U32, 8, "CUB, rest reversed",
     "kiln_peer_partition_if_u32", {0, 0, 0, 0},
     prepare_bits, own_partition_stable, KILN_U32, 1024, 0, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Histograms -------------------------------------------------------------------------- */

static kiln_status histogram(bench_ops *b, uint32_t bins)
{
  const kiln_histogram_desc desc = {.x = {.in = {{b->in[0], b->now->type}}},
                                    .n = b->n,
                                    .bins = bins,
                                    .lower = 0,
                                    .upper = bins,
                                    .counts = {b->out[0], KILN_U32}};

  return run_histogram(b, &desc);
}

static kiln_status own_256(bench_ops *b)
{
  return histogram(b, 256);
}

static kiln_status own_4096(bench_ops *b)
{
  return histogram(b, 4096);
}

static kiln_status prepare_256(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n,
                               "hash(i) & 255");
}

static kiln_status prepare_4096(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n,
                               "hash(i) & 4095");
}

static kiln_status prepare_constant(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n, "77");
}

/* 16 values, each half as often as the one before. */
static kiln_status prepare_few(bench_ops *b)
{
  return kiln__bench_fill_with(
      b, b->in[0], b->now->type, b->n,
      "16 * min(15, __clz((unsigned)(hash(i) >> 16)))");
}

static kiln_status prepare_sorted(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], b->now->type, b->n, "i & 255");
}

/* clang-format off */
const bench_case kiln__bench_histogram[] = {
    {"256 bins, uniform", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {4, 3, 1.3, 1.3}, prepare_256, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, constant", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {1.8, 0, 0, 0}, prepare_constant, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, few values", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {1.8, 0, 0, 0}, prepare_few, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, 0 1 2 ...", KILN_U32, 4, "CUB", "kiln_peer_histogram_256_u32",
     {0, 0, 0, 0}, prepare_sorted, own_256, KILN_U32, 256, 0, 0},
    {"256 bins, uniform", KILN_U8, 1, "CUB", "kiln_peer_histogram_256_u8",
     {1.4, 0, 0, 0}, prepare_256, own_256, KILN_U32, 256, 0, 0},
    {"4,096 bins, uniform", KILN_U32, 4, "CUB", "kiln_peer_histogram_4096_u32",
     {4, 0, 0, 0}, prepare_4096, own_4096, KILN_U32, 4096, 0, 0},
    {"4,096 bins, constant", KILN_U32, 4, "CUB", "kiln_peer_histogram_4096_u32",
     {0, 0, 0, 0}, prepare_constant, own_4096, KILN_U32, 4096, 0, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Sorts --------------------------------------------------------------------------------- */

static kiln_status sort(bench_ops *b, bool pairs, unsigned end_bit)
{
  const kiln_sort_desc desc = {
      .keys_in = {b->in[0], b->now->type},
      .keys_out = {b->out[0], b->now->type},
      .values_in = {pairs ? b->in[1] : 0, pairs ? KILN_U32 : KILN_DTYPE_NONE},
      .values_out = {pairs ? b->out[1] : 0, pairs ? KILN_U32 : KILN_DTYPE_NONE},
      .n = b->n,
      .end_bit = end_bit};

  return run_sort(b, &desc);
}

static kiln_status own_keys(bench_ops *b)
{
  return sort(b, false, 0);
}

static kiln_status own_keys_16(bench_ops *b)
{
  return sort(b, false, 16);
}

static kiln_status own_pairs(bench_ops *b)
{
  return sort(b, true, 0);
}

static kiln_status own_pairs_16(bench_ops *b)
{
  return sort(b, true, 16);
}

static kiln_status prepare_floats(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], KILN_F32, b->n,
                               "(int)(hash(i) >> 32) * 0x1p-20f");
}

static kiln_status prepare_few_keys(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], KILN_U32, b->n,
                               "(hash(i) & 15) * 0x01234567u");
}

static kiln_status prepare_sorted_keys(bench_ops *b)
{
  return kiln__bench_fill_with(b, b->in[0], KILN_U32, b->n, "i");
}

/* clang-format off */
const bench_case kiln__bench_sort[] = {
    {"keys", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32", {1, 1, 1.1, 1.3},
     prepare_bits, own_keys, KILN_U32, 0, 0, 0},
    {"keys", KILN_F32, 8, "CUB", "kiln_peer_sort_keys_f32", {1, 1, 1.1, 1.3},
     prepare_floats, own_keys, KILN_F32, 0, 0, 0},
    {"keys", KILN_U64, 16, "CUB", "kiln_peer_sort_keys_u64", {1, 1, 1.1, 1.3},
     prepare_bits, own_keys, KILN_DTYPE_NONE, 0, 0, 0},
    {"keys, 16 bits", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_16_u32",
     {1, 1, 1.1, 1.3}, prepare_bits, own_keys_16, KILN_U32, 0, 0, 0},
    {"keys, constant", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, prepare_constant, own_keys, KILN_U32, 0, 0, 0},
    {"keys, 16 values", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, prepare_few_keys, own_keys, KILN_U32, 0, 0, 0},
    {"keys, sorted", KILN_U32, 8, "CUB", "kiln_peer_sort_keys_u32",
     {0, 0, 0, 0}, prepare_sorted_keys, own_keys, KILN_U32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_sort_pairs[] = {
    {"u32 with u32", KILN_U32, 16, "CUB", "kiln_peer_sort_pairs_u32",
     {1, 1, 1.1, 1.3}, prepare_bits, own_pairs, KILN_U32, 0, 0, 0},
    {"u32 with u32, 16 bits", KILN_U32, 16, "CUB", "kiln_peer_sort_pairs_16_u32",
     {1, 1, 1.1, 1.3}, prepare_bits, own_pairs_16, KILN_U32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Gather and scatter ----------------------------------------------------------------------- */

/* A permutation of a power of two: each step can be undone. */
static kiln_status prepare_permutation(bench_ops *b)
{
  const uint64_t last = b->n - 1;
  const kiln_param params[] = {{"last", KILN_U64, &last, 0}};
  const kiln_map_desc desc = {
      .out = {{b->in[1], KILN_U32}},
      .expr = {"mix(mix(i, last), last)"},
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
              "}\n",
          .params = params,
          .n_params = 1}};

  TRY(kiln__bench_fill_with(b, b->in[0], KILN_F32, b->n, "hash(i) & 1023"));
  return kiln_map(b->stream, &desc, NULL);
}

static kiln_status own_gather(bench_ops *b)
{
  const kiln_gather_desc desc = {.x = {.in = {{b->in[0], KILN_F32}}},
                                 .index = {b->in[1], KILN_U32},
                                 .out = {b->out[0], KILN_F32},
                                 .n = b->n,
                                 .n_target = b->n,
                                 .method = b->plan.method,
                                 .passes = b->plan.passes};

  return run_gather(b, &desc);
}

static kiln_status own_scatter(bench_ops *b)
{
  const kiln_scatter_desc desc = {.x = {.in = {{b->in[0], KILN_F32}}},
                                  .index = {b->in[1], KILN_U32},
                                  .out = {b->out[0], KILN_F32},
                                  .n = b->n,
                                  .n_target = b->n,
                                  .method = b->plan.method,
                                  .passes = b->plan.passes};

  return run_scatter(b, &desc);
}

/* clang-format off */
const bench_case kiln__bench_gather[] = {
    {"random", KILN_F32, 12, "Thrust", "kiln_peer_gather_f32", {1.25, 1.1, 1, 0},
     prepare_permutation, own_gather, KILN_F32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_scatter[] = {
    {"random", KILN_F32, 12, "Thrust", "kiln_peer_scatter_f32", {3, 1.3, 1, 0},
     prepare_permutation, own_scatter, KILN_F32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */

/* ---- Merge and search ------------------------------------------------------------------------ */

/* Two ascending sequences. */
static kiln_status prepare_ascending(bench_ops *b)
{
  TRY(kiln__bench_fill_with(b, b->in[0], KILN_U32, b->n,
                            "i * 3 + (hash(i) & 1)"));
  return kiln__bench_fill_with(b, b->in[1], KILN_U32, b->n,
                               "i * 3 + (hash(i + 5) & 1)");
}

static kiln_status own_merge(bench_ops *b)
{
  const kiln_merge_desc desc = {.a = {b->in[0], KILN_U32},
                                .n_a = b->n / 2,
                                .b = {b->in[1], KILN_U32},
                                .n_b = b->n / 2,
                                .out = {b->out[0], KILN_U32}};

  return run_merge(b, &desc);
}

static kiln_status prepare_needles(bench_ops *b)
{
  TRY(kiln__bench_fill_with(b, b->in[0], KILN_U32, b->n, "i * 3"));
  return kiln__bench_fill_with(b, b->in[1], KILN_U32, b->n, "hash(i) >> 34");
}

static kiln_status own_search(bench_ops *b)
{
  const kiln_search_desc desc = {.sorted = {b->in[0], KILN_U32},
                                 .m = b->n,
                                 .needles = {.in = {{b->in[1], KILN_U32}}},
                                 .n = b->n,
                                 .out = {b->out[0], KILN_U32}};

  return run_search(b, &desc);
}

/* clang-format off */
const bench_case kiln__bench_merge[] = {
    {"two halves", KILN_U32, 8, "CUB", "kiln_peer_merge_u32", {0, 0, 0, 0},
     prepare_ascending, own_merge, KILN_U32, 0, 0, 0},
    {.label = NULL},
};

const bench_case kiln__bench_search[] = {
    {"random needles", KILN_U32, 8, "Thrust", "kiln_peer_lower_bound_u32",
     {0, 0, 0, 0}, prepare_needles, own_search, KILN_U32, 0, 0, 0},
    {.label = NULL},
};
/* clang-format on */
