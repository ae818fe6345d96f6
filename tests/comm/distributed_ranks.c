/* distributed_ranks.c -- the operations of distributed.h against C on the whole
 * array, which every rank computes. Blocks have random lengths, also 0. */
#include "block_arrays.h"

#include <math.h>

static void try_blocks(whole w)
{
  kiln_comm *const comm = w.comm;
  uint64_t first = 99, total = 99;

  CHECK_OK(kiln_dist_blocks(comm, w.n, &first, &total));
  CHECK(first == w.first && total == w.total);
}

/* Sum, extremes, count, dot product and histogram of integers. */
static void try_integers(whole w)
{
  kiln_comm *const comm = w.comm;
  int32_t *x = host_bytes(w.total * 4), got[4] = {0};
  uint32_t count = 0, wanted = 0, bins[8], want_bins[8] = {0};
  int32_t sum = 0, dot = 0, least = INT32_MAX, most = INT32_MIN;
  const CUdeviceptr out = device_bytes(comm, 64);
  CUdeviceptr p;

  for (uint64_t i = 0; i < w.total; i++) {
    x[i] = (int32_t)(mixed(w.seed, 1, i) % 2001) - 1000;
    sum += x[i];
    dot += x[i] * x[i];
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
    wanted += x[i] > 500;
    want_bins[(uint32_t)x[i] & 7]++;
  }
  p = upload_block(&w, x, 4);
  CHECK_OK(kiln_dist_reduce(comm, w.stream,
                            &(kiln_reduce_desc){.x = {.in = {{p, KILN_I32}}},
                                                .n = w.n,
                                                .out = {out, KILN_I32}}));
  CHECK_OK(kiln_dist_minmax(comm, w.stream,
                            &(kiln_minmax_desc){.x = {.in = {{p, KILN_I32}}},
                                                .n = w.n,
                                                .min = {out + 4, KILN_I32},
                                                .max = {out + 8, KILN_I32}}));
  CHECK_OK(kiln_dist_dot(comm, w.stream,
                         &(kiln_dot_desc){.x = {p, KILN_I32},
                                          .y = {p, KILN_I32},
                                          .n = w.n,
                                          .out = {out + 12, KILN_I32}}));
  download(comm, got, out, 16);
  CHECK(got[0] == sum && got[1] == least && got[2] == most && got[3] == dot);
  CHECK_OK(kiln_dist_count(comm, w.stream,
                           &(kiln_find_desc){.x = {.in = {{p, KILN_I32}}},
                                             .predicate = "x > 500",
                                             .n = w.n,
                                             .out = {out, KILN_U32}}));
  download(comm, &count, out, 4);
  CHECK(count == wanted);
  CHECK_OK(kiln_dist_histogram(
      comm, w.stream,
      &(kiln_histogram_desc){.x = {.in = {{p, KILN_I32}}, .map = "x & 7"},
                             .n = w.n,
                             .bins = 8,
                             .upper = 8,
                             .counts = {out, KILN_U32}}));
  download(comm, bins, out, sizeof bins);
  CHECK(memcmp(bins, want_bins, sizeof bins) == 0);
  release(comm, p);
  release(comm, out);
  free(x);
}

/* The composition of two maps x -> m x + c modulo 2^32, c in the upper half: not
 * commutative. */
static const char composition[] =
    "((a >> 32) * (b & 0xffffffff) + (b >> 32)) << 32 | (a * b & 0xffffffff)";

static uint64_t compose(uint64_t a, uint64_t b)
{
  return ((a >> 32) * (b & 0xffffffff) + (b >> 32)) << 32 |
         (a * b & 0xffffffff);
}

static uint64_t map_of(uint64_t seed, uint64_t i)
{
  return mixed(seed, 2, i) | 1;
}

/* A reduction and scans by a user expression. */
static void try_expression(whole w, bool exclusive, bool initial)
{
  kiln_comm *const comm = w.comm;
  const kiln_op op = {.expr = composition, .identity = "1"};
  const uint64_t init = initial ? 0x500000003 : 1;
  uint64_t *x = host_bytes(w.total * 8), *want = host_bytes(w.total * 8);
  uint64_t *got = host_bytes(w.n * 8), sum = 1, run = init, result = 0;
  CUdeviceptr p, out = device_bytes(comm, w.n * 8 + 8);
  kiln_scan_desc scan = {.n = w.n,
                         .op = op,
                         .out = {out + 8, KILN_U64},
                         .exclusive = exclusive,
                         .init = initial ? &init : NULL,
                         .total = out};

  for (uint64_t i = 0; i < w.total; i++) {
    x[i] = map_of(w.seed, i);
    sum = compose(sum, x[i]);
    want[i] = exclusive ? run : compose(run, x[i]);
    run = compose(run, x[i]);
  }
  p = upload_block(&w, x, 8);
  scan.x.in[0] = (kiln_array){p, KILN_U64};
  CHECK_OK(kiln_dist_reduce(comm, w.stream,
                            &(kiln_reduce_desc){.x = {.in = {{p, KILN_U64}}},
                                                .n = w.n,
                                                .op = op,
                                                .out = {out, KILN_U64}}));
  download(comm, &result, out, 8);
  CHECK(result == sum);
  CHECK_OK(kiln_dist_scan(comm, w.stream, &scan));
  download(comm, &result, out, 8);
  download(comm, got, out + 8, w.n * 8);
  CHECK(result == run);
  CHECK(memcmp(got, want + w.first, w.n * 8) == 0);
  release(comm, p);
  release(comm, out);
  free(x);
  free(want);
  free(got);
}

/* The scan of a predefined operation, in place. */
static void try_sums(whole w, bool exclusive)
{
  kiln_comm *const comm = w.comm;
  uint32_t *x = host_bytes(w.total * 4), *want = host_bytes(w.total * 4);
  uint32_t *got = host_bytes(w.n * 4), run = exclusive ? 17 : 0, total = 0;
  const uint32_t init = 17;
  const CUdeviceptr out = device_bytes(comm, 4);
  CUdeviceptr p;

  for (uint64_t i = 0; i < w.total; i++) {
    x[i] = (uint32_t)mixed(w.seed, 3, i);
    want[i] = exclusive ? run : run + x[i];
    run += x[i];
  }
  p = upload_block(&w, x, 4);
  CHECK_OK(kiln_dist_scan(comm, w.stream,
                          &(kiln_scan_desc){.x = {.in = {{p, KILN_U32}}},
                                            .n = w.n,
                                            .out = {p, KILN_U32},
                                            .exclusive = exclusive,
                                            .init = exclusive ? &init : NULL,
                                            .total = out}));
  download(comm, got, p, w.n * 4);
  download(comm, &total, out, 4);
  CHECK(memcmp(got, want + w.first, w.n * 4) == 0);
  CHECK(total == run);
  release(comm, p);
  release(comm, out);
  free(x);
  free(want);
  free(got);
}

/* Positions of extremes, with equal elements, and with a NaN in some trials. */
static void try_floats(whole w, kiln_op_name op)
{
  kiln_comm *const comm = w.comm;
  float *x = host_bytes(w.total * 4), value = 0, moments[2];
  const CUdeviceptr out = device_bytes(comm, 32);
  uint64_t best = UINT64_MAX, index = 0;
  double mean = 0, m2 = 0;
  CUdeviceptr p;

  for (uint64_t i = 0; i < w.total; i++) {
    x[i] = (float)((int)(mixed(w.seed, 4, i) % 101) - 50);
    mean += (double)x[i] / (double)w.total;
  }
  for (uint64_t i = 0; i < w.total; i++)
    m2 += ((double)x[i] - mean) * ((double)x[i] - mean);
  p = upload_block(&w, x, 4);
  CHECK_OK(kiln_dist_mean_variance(
      comm, w.stream,
      &(kiln_mean_variance_desc){.x = {.in = {{p, KILN_F32}}},
                                 .n = w.n,
                                 .mean = {out, KILN_F32},
                                 .variance = {out + 4, KILN_F32},
                                 .correction = 1}));
  download(comm, moments, out, sizeof moments);
  if (w.total > 1) {
    CHECK(fabs((double)moments[0] - mean) <= 1e-5);
    CHECK(fabs((double)moments[1] - m2 / (double)(w.total - 1)) <=
          1e-5 * m2 / (double)(w.total - 1));
  } else if (w.total == 0) {
    CHECK(isnan(moments[0]) && isnan(moments[1]));
  }
  release(comm, p);
  if (w.seed % 3 == 2 && w.total > 2)
    x[w.total / 2] = NAN;
  for (uint64_t i = 0; i < w.total; i++) {
    if (best == UINT64_MAX ||
        (!isnan(x[best]) &&
         (isnan(x[i]) || (op == KILN_MIN ? x[i] < x[best] : x[i] > x[best]))))
      best = i;
  }
  p = upload_block(&w, x, 4);
  CHECK_OK(kiln_dist_arg_reduce(
      comm, w.stream,
      &(kiln_arg_reduce_desc){.x = {.in = {{p, KILN_F32}}},
                              .n = w.n,
                              .op = op,
                              .value = {out, KILN_F32},
                              .index = {out + 8, KILN_U64}}));
  download(comm, &value, out, 4);
  download(comm, &index, out + 8, 8);
  CHECK(index == best);
  if (best != UINT64_MAX)
    CHECK(isnan(x[best]) ? isnan(value) : value == x[best]);
  else
    CHECK(isinf(value) && (value > 0) == (op == KILN_MIN));
  release(comm, p);
  release(comm, out);
  free(x);
}

/* Selection, and a split by key. */
static void try_moves(whole w)
{
  kiln_comm *const comm = w.comm;
  const uint32_t ranks = (uint32_t)kiln_comm_size(comm);
  uint32_t *x = host_bytes(w.total * 4), *want = host_bytes(w.total * 4);
  uint32_t *got = host_bytes(w.total * 4), kept = 0;
  uint64_t n = 0, before = 0, own = 0, first, total, received;
  const kiln_param count = {"ranks", KILN_U32, &ranks, false};
  const CUdeviceptr out = device_bytes(comm, w.total * 4 + 16);
  CUdeviceptr p;

  for (uint64_t i = 0; i < w.total; i++) {
    x[i] = (uint32_t)mixed(w.seed, 5, i);
    if (x[i] % 3 != 0)
      continue;
    before += i < w.first;
    if (i >= w.first && i < w.first + w.n)
      want[own++] = x[i];
    n++;
  }
  p = upload_block(&w, x, 4);
  CHECK_OK(kiln_dist_select(comm, w.stream,
                            &(kiln_select_desc){.x = {.in = {{p, KILN_U32}}},
                                                .predicate = "x % 3 == 0",
                                                .n = w.n,
                                                .out = {out + 16, KILN_U32},
                                                .count = {out, KILN_U32}},
                            &first, &total));
  download(comm, &kept, out, 4);
  download(comm, got, out + 16, own * 4);
  CHECK(kept == own && first == before && total == n);
  CHECK(memcmp(got, want, own * 4) == 0);
  n = 0;
  for (uint64_t i = 0; i < w.total; i++) {
    if (x[i] % ranks == (uint32_t)kiln_comm_rank(comm))
      want[n++] = x[i];
  }
  CHECK_OK(kiln_dist_split(
      comm, w.stream,
      &(kiln_split_desc){.x = {.in = {{p, KILN_U32}}},
                         .key = "x % ranks",
                         .n = w.n,
                         .out = {out, KILN_U32},
                         .code = {.params = &count, .n_params = 1}},
      w.total, &received));
  download(comm, got, out, n * 4);
  CHECK(received == n && memcmp(got, want, n * 4) == 0);
  release(comm, p);
  release(comm, out);
  free(x);
  free(want);
  free(got);
}

/* ---- Sorts --------------------------------------------------------------- */

typedef struct pair {
  uint64_t rank; /* unsigned number with the order of the key */
  uint64_t key, value;
} pair;

static int compare(const void *a, const void *b)
{
  const pair *const x = a, *const y = b;

  if (x->rank != y->rank)
    return x->rank < y->rank ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

/* Distributions of keys. */
enum { RANDOM, CONSTANT, SKEWED, TWO, SORTED, REVERSED, DISTRIBUTIONS };

static uint64_t key_of(uint64_t seed, int distribution, uint64_t i)
{
  const uint64_t z = mixed(seed, 6, i);

  switch (distribution) {
  case CONSTANT:
    return 42;
  case SKEWED:
    return z % 10 != 0 ? 7 : z;
  case TWO:
    return z & 1;
  case SORTED:
    return i;
  case REVERSED:
    return ~i;
  default:
    return z;
  }
}

/* Orders the bits of an integer or an f32. NaNs come last: those without a sign
 * bit by ascending bits, then those with a sign bit by descending bits. */
static uint64_t rank_of(kiln_dtype type, uint64_t bits, bool descending)
{
  const unsigned width = 8 * (unsigned)kiln_dtype_size(type);
  const uint64_t sign = (uint64_t)1 << (width - 1), mask = sign | (sign - 1);
  uint64_t rank = bits;
  float f;

  memcpy(&f, &bits, 4);
  if (type == KILN_I8 || type == KILN_I16 || type == KILN_I32 ||
      type == KILN_I64)
    rank = bits ^ sign;
  if (type == KILN_F32)
    rank = (bits & sign) != 0 ? ~bits & mask : bits ^ sign;
  if (type == KILN_F32 && isnan(f))
    rank += (bits & sign) != 0 ? (uint64_t)2 << 40 : (uint64_t)1 << 40;
  return descending ? ~rank : rank;
}

static void try_sort(whole w, kiln_dtype type, int distribution, bool pairs,
                     bool descending)
{
  kiln_comm *const comm = w.comm;
  const size_t size = kiln_dtype_size(type);
  pair *all = host_bytes(w.total * sizeof *all);
  char *keys = host_bytes(w.total * size), *got = host_bytes(w.n * size);
  uint32_t *values = host_bytes(w.total * 4), *moved = host_bytes(w.n * 4);
  CUdeviceptr p, q;
  kiln_sort_desc desc = {.n = w.n, .descending = descending};

  for (uint64_t i = 0; i < w.total; i++) {
    uint64_t key = key_of(w.seed, distribution, i);

    memcpy(keys + i * size, &key, size);
    key = 0;
    memcpy(&key, keys + i * size, size);
    values[i] = (uint32_t)i;
    all[i] = (pair){rank_of(type, key, descending), key, i};
  }
  qsort(all, w.total, sizeof *all, compare);
  p = upload_block(&w, keys, size);
  q = upload_block(&w, values, 4);
  desc.keys_in = desc.keys_out = (kiln_array){p, type};
  if (pairs)
    desc.values_in = desc.values_out = (kiln_array){q, KILN_U32};
  CHECK_OK(kiln_dist_sort(comm, w.stream, &desc));
  download(comm, got, p, w.n * size);
  download(comm, moved, q, w.n * 4);
  for (uint64_t i = 0; i < w.n; i++) {
    const bool right =
        memcmp(got + i * size, &all[w.first + i].key, size) == 0 &&
        (!pairs || moved[i] == all[w.first + i].value);

    if (!right)
      printf("sort of %s, distribution %d, seed %llu, element %llu\n",
             kiln_dtype_name(type), distribution, (unsigned long long)w.seed,
             (unsigned long long)i);
    CHECK(right);
  }
  release(comm, p);
  release(comm, q);
  free(all);
  free(keys);
  free(got);
  free(values);
  free(moved);
}

static void try_sorts(kiln_comm *comm, kiln_stream *stream, uint64_t seed)
{
  static const kiln_dtype types[] = {KILN_U32, KILN_F32, KILN_I8,
                                     KILN_U8,  KILN_I16, KILN_U16,
                                     KILN_I32, KILN_I64, KILN_U64};
  const whole w = blocks(comm, stream, seed);
  const int n = thorough() ? (int)(sizeof types / sizeof *types) : 1;

  for (int d = 0; d < DISTRIBUTIONS; d++)
    try_sort(w, types[seed % (uint64_t)n], d, (seed + (uint64_t)d) % 2 == 0,
             thorough() && seed % 4 == 3);
  if (seed == 0)
    try_sort(blocks(comm, stream, 1), KILN_F32, RANDOM, false, true);
}

static kiln_status ranks_run(kiln_comm *comm, void *user)
{
  const uint64_t trials = thorough() ? 200 : 4;
  kiln_stream *stream = NULL;

  (void)user;
  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  for (uint64_t trial = 0; trial < trials; trial++) {
    const uint64_t seed = trial + 1 == trials ? 6 : trial; /* 6: all empty */
    const whole w = blocks(comm, stream, seed);

    try_blocks(w);
    try_integers(w);
    try_expression(w, seed % 2 == 1, seed % 4 >= 2);
    try_sums(w, seed % 2 == 0);
    try_floats(w, seed % 2 == 0 ? KILN_MIN : KILN_MAX);
    try_moves(w);
    try_sorts(comm, stream, seed);
  }
  kiln_stream_free(stream);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  return rank_main(argc, argv, ranks_run, NULL);
}
