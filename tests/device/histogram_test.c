/* histogram_test.c -- kiln_histogram for every type, every way to define the
 * bins, and any number of bins and samples, compared with counts made on the
 * host. */
#include "operation_checks.h"

#include <kiln/histogram.h>

/* ---- Reference ----------------------------------------------------------- */

__extension__ typedef __int128 wide;

static wide whole_at(kiln_dtype type, const void *data, size_t i)
{
  switch (type) {
  case KILN_I64:
    return ((const int64_t *)data)[i];
  case KILN_U64:
    return ((const uint64_t *)data)[i];
  default:
    return (wide)value_at(type, data, i);
  }
}

/* Returns the bin of an integer sample if all bins have the same width, or -1
 * if it lies outside. */
static int64_t even_bin(wide sample, wide lower, wide upper, uint32_t bins)
{
  if (sample < lower || sample >= upper)
    return -1;
  return (int64_t)((sample - lower) * bins / (upper - lower));
}

/* Makes a call that must store the expected counts. */
static operation_call histogram_call(const kiln_histogram_desc *desc,
                                     const test_array *counts,
                                     const uint64_t *expected)
{
  operation_call c = CALL_OF(kiln_histogram, desc);
  void *want = kept(calloc(desc->bins, counts->width));

  for (size_t b = 0; b < desc->bins; b++)
    memcpy((char *)want + b * counts->width, &expected[b], counts->width);
  call_writes(&c, counts, want);
  return c;
}

/* Makes a call for integer samples in bins of equal width, with counts of type
 * u32 or u64. */
static operation_call even_call(kiln_dtype type, const void *x, size_t n,
                                size_t shift, uint32_t bins, wide lower,
                                wide upper, kiln_dtype counted)
{
  uint64_t *expected = kept(calloc(bins, sizeof *expected));
  test_array in = array_make(type, n, shift, x, 0);
  test_array counts = array_make(counted, bins, shift, NULL, 0x77);
  const kiln_histogram_desc desc = {.x = {.in = {in.array}},
                                    .n = n,
                                    .bins = bins,
                                    .lower = (double)lower,
                                    .upper = (double)upper,
                                    .counts = counts.array};

  if (lower == 0 && upper == 0)
    upper = bins;
  for (size_t i = 0; i < n; i++) {
    const int64_t bin = even_bin(whole_at(type, x, i), lower, upper, bins);

    if (bin >= 0)
      expected[bin]++;
  }
  return histogram_call(&desc, &counts, expected);
}

static void check_even(kiln_dtype type, const void *x, size_t n, size_t shift,
                       uint32_t bins, wide lower, wide upper,
                       kiln_dtype counted)
{
  const size_t mark = n_kept;

  ck_call(even_call(type, x, n, shift, bins, lower, upper, counted));
  release(mark);
}

/* ---- Integers ------------------------------------------------------------ */

static const kiln_dtype integers[] = {KILN_I8,  KILN_U8,  KILN_I16, KILN_U16,
                                      KILN_I32, KILN_U32, KILN_I64, KILN_U64};

static wide two_to(unsigned power)
{
  return (wide)1 << power;
}

START_TEST(test_integers)
{
  const kiln_dtype type = integers[_i];
  const unsigned bits = 8 * (unsigned)kiln_dtype_size(type);
  const wide least = type_is_signed(type) ? -two_to(bits - 1) : 0;
  const wide past = least + two_to(bits);
  uint64_t state = 3 + (uint64_t)_i;
  void *x = kept(random_bits(3001 * 8, &state));
  void *small = kept(random_wholes(type, 3001, -20, 100, &state));

  check_even(type, x, 3001, 0, 256, least, past, KILN_U32); /* a shift */
  check_even(type, x, 3001, 1, 100, least, past, KILN_U64); /* all, scaled */
  check_even(type, x, 2999, 1, 1, least, past, KILN_U32);   /* one bin */
  check_even(type, small, 3001, 0, 64, 0, 0, KILN_U32);     /* keys */
  check_even(type, small, 3001, 3, 7, 10, 80, KILN_U32);    /* width 10 */
  if (_i % 2 == 0 || type == KILN_U64) {
    check_even(type, small, 3001, 3, 7, 10, 83, KILN_U32);  /* uneven */
    check_even(type, small, 3001, 0, 300, 5, 64, KILN_U32); /* empty bins */
    if (type != KILN_U64)
      check_even(type, small, 3001, 0, 12, -6, 42, KILN_U32); /* width 4 */
    if (type != KILN_U64)
      check_even(type, small, 3001, 0, 1000, -500, 500, KILN_U64);
    check_even(type, x, 3001, 0, 5, least - (bits == 64 ? 0 : 1000),
               least + two_to(bits - 1) + 77, KILN_U32);
  }
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    15,   16,    31,   32,   33,
                                   1023, 4096, 8191, 16384, 8193, 65537};
  const kiln_dtype type = _i == 0 ? KILN_U8 : _i == 1 ? KILN_U32 : KILN_I64;
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    void *x = kept(random_wholes(type, lengths[k], 0, 100, &state));

    check_even(type, x, lengths[k], k % 4, 90, 0, 0, KILN_U32);
  }
}
END_TEST

/* With many bins a block holds fewer copies of each counter, keeps the levels
 * outside shared memory, or counts the bins in several slices. */
START_TEST(test_many_bins)
{
  static const uint32_t bins[] = {257,   4096,  9000,   12289,
                                  65536, 70001, 200000, KILN_MAX_BINS};
  enum { N = 20011 };
  uint64_t state = 5;
  uint32_t *x = kept(random_bits(N * 4, &state));

  for (size_t i = 0; i < N; i++)
    x[i] = i % 5 == 0 ? 77 : x[i] % (bins[_i] + bins[_i] / 8);
  check_even(KILN_U32, x, N, 1, bins[_i], 0, 0, KILN_U32);
  check_even(KILN_U32, x, N, 0, bins[_i], 0, two_to(32), KILN_U64);
}
END_TEST

/* The samples are constant, alternate between two values, ascend, or take few
 * values. */
START_TEST(test_shapes)
{
  enum { N = 40000 };
  uint64_t state = 11;
  uint32_t *x = kept(malloc(N * sizeof *x));

  for (unsigned shape = 0; shape < 5; shape++) {
    for (uint32_t i = 0; i < N; i++)
      x[i] = shape == 0   ? 3
             : shape == 1 ? i % 2 * 5
             : shape == 2 ? i / 40
             : shape == 3 ? N - i
                          : (uint32_t)(test_random(&state) % 16 *
                                       (test_random(&state) % 16));
    check_even(KILN_U32, x, N, 0, 256, 0, 0, KILN_U32);
    check_even(KILN_U32, x, N, 0, 4096, 0, 0, KILN_U32);
    check_even(KILN_U32, x, N, 0, 30000, 0, 0, KILN_U32);
  }
}
END_TEST

/* ---- Floats -------------------------------------------------------------- */

static void set_float(kiln_dtype type, void *data, size_t i, double v)
{
  if (type == KILN_F64)
    ((double *)data)[i] = v;
  else if (type == KILN_F32)
    ((float *)data)[i] = (float)v;
}

/* Every type holds the samples and the bounds of the bins exactly. */
START_TEST(test_floats)
{
  static const kiln_dtype types[] = {KILN_F16, KILN_BF16, KILN_F32, KILN_F64};
  const kiln_dtype type = types[_i];
  enum { N = 5003, BINS = 48 };
  uint64_t state = 21, expected[BINS] = {0};
  void *x = kept(random_wholes(type, N, -20, 40, &state));
  test_array in, counts = array_make(KILN_U32, BINS, 0, NULL, 9);
  kiln_histogram_desc desc = {
      .n = N, .bins = BINS, .lower = -8, .upper = 16, .counts = counts.array};

  if (type == KILN_F32 || type == KILN_F64) {
    const double odd[] = {
        NAN, -(double)NAN, INFINITY,  -INFINITY, -0.0,   0.0,       5e-324,
        -8,  16,           -0x1p-140, 0x1p-149,  15.999, -8.000001, 1e30};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
      set_float(type, x, i, odd[i]);
  }
  in = array_make(type, N, 1, x, 0);
  desc.x.in[0] = in.array;
  for (size_t i = 0; i < N; i++) {
    const double v = value_at(type, x, i);

    if (v >= -8 && v < 16)
      expected[(int)floor((v + 8) * 2)]++;
  }
  ck_call(histogram_call(&desc, &counts, expected));
}
END_TEST

/* ---- Given boundaries ---------------------------------------------------- */

static int64_t level_bin(kiln_dtype type, const void *levels, uint32_t bins,
                         double v)
{
  for (uint32_t b = 0; b < bins; b++)
    if (v >= value_at(type, levels, b) && v < value_at(type, levels, b + 1))
      return b;
  return -1;
}

START_TEST(test_levels)
{
  const kiln_dtype type = all_types[_i];
  static const uint32_t sizes[] = {1, 2, 7, 31, 32};
  enum { N = 2003 };
  uint64_t state = 31;
  void *x = kept(random_wholes(type, N, 0, 110, &state));
  test_array in = array_make(type, N, 1, x, 0);

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    const uint32_t bins = sizes[k];
    uint64_t expected[32] = {0};
    void *levels = kept(random_wholes(type, bins + 1, 0, 0, &state));
    test_array bounds, counts = array_make(KILN_U64, bins, 0, NULL, 9);
    kiln_histogram_desc desc = {
        .x = {.in = {in.array}}, .n = N, .bins = bins, .counts = counts.array};

    /* some levels are equal and leave empty bins */
    for (uint32_t b = 0; b <= bins; b++)
      set_whole(type, levels, b, 3 + b * 100 / (bins + 1) / 4 * 4);
    bounds = array_make(type, bins + 1, k, levels, 0);
    desc.levels = bounds.array;
    for (size_t i = 0; i < N; i++) {
      const int64_t b = level_bin(type, levels, bins, value_at(type, x, i));

      if (b >= 0)
        expected[b]++;
    }
    ck_call(histogram_call(&desc, &counts, expected));
  }
}
END_TEST

/* The levels of 2^14 bins fit shared memory beside the counters; those of 2^17
 * bins stay in global memory. */
START_TEST(test_many_levels)
{
  const uint32_t bins = _i == 0 ? 1u << 14 : 1u << 17;
  enum { N = 30000 };
  uint64_t state = 41;
  double *levels = kept(malloc((bins + 1) * sizeof *levels));
  double *x = kept(malloc(N * sizeof *x));
  uint64_t *expected = kept(calloc(bins, sizeof *expected));
  test_array in, bounds, counts = array_make(KILN_U32, bins, 0, NULL, 9);
  kiln_histogram_desc desc = {.n = N, .bins = bins, .counts = counts.array};

  for (uint32_t b = 0; b <= bins; b++)
    levels[b] = b * 0.5;
  for (size_t i = 0; i < N; i++) {
    x[i] = (double)(test_random(&state) % (bins + 10)) * 0.5 - 2.25;
    if (i == 7)
      x[i] = NAN;
    if (x[i] >= 0 && x[i] < bins * 0.5)
      expected[(size_t)(x[i] * 2)]++;
  }
  in = array_make(KILN_F64, N, 0, x, 0);
  bounds = array_make(KILN_F64, bins + 1, 0, levels, 0);
  desc.x.in[0] = in.array;
  desc.levels = bounds.array;
  ck_call(histogram_call(&desc, &counts, expected));
}
END_TEST

/* ---- Maps, accumulation, memory ------------------------------------------ */

START_TEST(test_key_expression)
{
  enum { N = 9001, BINS = 20 };
  uint64_t state = 51, expected[BINS] = {0};
  float *x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  uint8_t *y = kept(random_wholes(KILN_U8, N, 0, 9, &state));
  test_array a = array_make(KILN_F32, N, 0, x, 0);
  test_array b = array_make(KILN_U8, N, 3, y, 0);
  test_array counts = array_make(KILN_U32, BINS, 0, NULL, 9);
  const int32_t offset = 5;
  const kiln_param params[] = {{"offset", KILN_I32, &offset, false}};
  const kiln_histogram_desc desc = {
      .x = {.in = {a.array, b.array},
            .map = "x < 0 ? -1 : y + offset + (int)(i % 3)",
            .type = KILN_I32},
      .n = N,
      .bins = BINS,
      .counts = counts.array,
      .code = {.params = params, .n_params = 1}};

  for (size_t i = 0; i < N; i++)
    if (x[i] >= 0 && y[i] + 5u + i % 3 < BINS)
      expected[y[i] + 5u + i % 3]++;
  ck_call(histogram_call(&desc, &counts, expected));
}
END_TEST

/* With the option accumulate, several calls must add to the same counters. The
 * samples are computed from the index i, without an input array. */
START_TEST(test_accumulate)
{
  const uint32_t bins = _i == 0 ? 10 : 80000;
  uint64_t *expected = kept(malloc(bins * sizeof *expected));
  uint32_t *before = kept(malloc(bins * sizeof *before));
  test_array counts;
  kiln_histogram_desc desc = {.x = {.map = "i % 10", .type = KILN_U64},
                              .n = 1234,
                              .bins = bins,
                              .accumulate = true};

  for (uint32_t b = 0; b < bins; b++) {
    before[b] = 5 * b;
    expected[b] = before[b];
  }
  counts = array_make(KILN_U32, bins, 0, before, 0);
  desc.counts = counts.array;
  for (unsigned turn = 0; turn < 3; turn++) {
    for (unsigned i = 0; i < desc.n; i++)
      expected[i % 10]++;
    ck_call(histogram_call(&desc, &counts, expected));
    desc.n *= 7;
  }
  desc.n = 0;
  ck_call(histogram_call(&desc, &counts, expected));
}
END_TEST

/* A captured call must count the samples that the array holds when the graph
 * runs. */
START_TEST(test_workspace_and_capture)
{
  enum { N = 50000, BINS = 170 };
  uint64_t state = 81;
  uint16_t *x = kept(random_wholes(KILN_U16, N, 0, 200, &state));
  const operation_call c = even_call(KILN_U16, x, N, 0, BINS, 0, 0, KILN_U32);
  const kiln_histogram_desc *desc = c.desc;
  CUgraphExec graph = capture_call(&c);

  for (int turn = 0; turn < 3; turn++) {
    uint32_t expected[BINS] = {0};

    x = kept(random_wholes(KILN_U16, N, 0, 50 * turn + 50, &state));
    for (size_t i = 0; i < N; i++)
      if (x[i] < BINS)
        expected[x[i]]++;
    ck_kiln_ok(
        kiln_copy_to_device(device, desc->x.in[0].data, x, N * sizeof *x));
    capture_replay(graph);
    ck_array(&c.result[0].array, expected, "other samples");
  }
  capture_free(graph);
  ck_assert_uint_gt(
      ck_workspace(even_call(KILN_U16, x, N, 0, 200, 0, 0, KILN_U32)), 0);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_U64};
  const kiln_dtype type = types[test_random(state) % 3];
  const size_t n = test_random(state) % 3000;
  const uint32_t bins = 1 + (uint32_t)(test_random(state) % 400);
  const int64_t lower =
      (int64_t)(test_random(state) % 100) - (type == KILN_U64 ? 0 : 50);
  const int64_t width = 1 + (int64_t)(test_random(state) % 120);
  const void *x = kept(random_wholes(type, n, 0, 100, state));
  const uint64_t r = test_random(state);

  (void)k;
  return even_call(type, x, n, r % 5, bins, lower, lower + width,
                   r & 1024 ? KILN_U32 : KILN_U64);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 150, 71);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_histogram_desc, member, __VA_ARGS__)

/* The bounds are checked in the type in which samples are compared. */
START_TEST(test_bad_arguments)
{
  uint64_t state = 91;
  const void *x = kept(random_wholes(KILN_I32, 100, 0, 9, &state));
  const operation_call whole =
      even_call(KILN_I32, x, 100, 0, 9, 0, 0, KILN_U32);
  const operation_call real =
      even_call(KILN_F32, kept(random_wholes(KILN_F32, 100, 0, 9, &state)), 100,
                0, 9, 0, 9, KILN_U32);
  const CUdeviceptr in =
      ((const kiln_histogram_desc *)whole.desc)->x.in[0].data;
  const bad_argument bad[] = {
      {KILN_EINVAL, "bins is 0", {MEMBER_OF(bins, 0)}},
      {KILN_EINVAL, "bins is ", {MEMBER_OF(bins, KILN_MAX_BINS + 1)}},
      {KILN_EINVAL, "counts are none", {MEMBER_OF(counts, {0})}},
      {KILN_EINVAL, "counts are f32", {MEMBER_OF(counts.type, KILN_F32)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(counts.data, in + 40)}},
      {KILN_EINVAL, "neither an array nor a map", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "below", {MEMBER_OF(lower, 1), MEMBER_OF(upper, 1)}},
      {KILN_EINVAL, "below", {MEMBER_OF(lower, 1), MEMBER_OF(upper, 0)}},
      {KILN_EINVAL, "whole", {MEMBER_OF(lower, .5), MEMBER_OF(upper, 2)}},
      {KILN_EINVAL, "finite", {MEMBER_OF(upper, (double)NAN)}},
      {KILN_EINVAL, "whole", {MEMBER_OF(upper, 1e30)}},
      {KILN_EINVAL,
       "too far outside of u64",
       {MEMBER_OF(x.in[0].type, KILN_U64), MEMBER_OF(lower, -1),
        MEMBER_OF(upper, 9)}},
  };
  const bad_argument bad_real[] = {
      {KILN_EINVAL, "f32 need lower and upper", {MEMBER_OF(upper, 0)}},
      {KILN_EINVAL, "levels are i32", {MEMBER_OF(levels, {in, KILN_I32})}},
      {KILN_EINVAL, "finite", {MEMBER_OF(upper, (double)INFINITY)}},
      {KILN_EINVAL, "apart", {MEMBER_OF(lower, -3e38), MEMBER_OF(upper, 3e38)}},
      {KILN_EINVAL,
       "lower and upper are equal in f32",
       {MEMBER_OF(lower, 1), MEMBER_OF(upper, 1 + 1e-12)}},
      {KILN_EINVAL, "too close together", {MEMBER_OF(upper, 1e-40)}},
  };

  ck_bad_arguments(whole, bad);
  ck_bad_arguments(real, bad_real);
}
END_TEST

/* The bounds are as close together as the operation allows. */
START_TEST(test_close_bounds)
{
  const float x[] = {0, 0, 1, 0.9e-30f, -1, 0.3e-30f};
  const uint64_t expected[] = {2, 1, 0, 1};
  test_array in = array_make(KILN_F32, 6, 0, x, 0);
  test_array counts = array_make(KILN_U32, 4, 0, NULL, 1);
  const kiln_histogram_desc desc = {.x = {.in = {in.array}},
                                    .n = 6,
                                    .bins = 4,
                                    .upper = 1e-30,
                                    .counts = counts.array};

  ck_call(histogram_call(&desc, &counts, expected));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("histogram");
  TCase *t = device_case(s, "histogram");

  tcase_add_loop_test(t, test_integers, 0, 8);
  tcase_add_loop_test(t, test_lengths, 0, 3);
  tcase_add_loop_test(t, test_many_bins, 0, 8);
  tcase_add_test(t, test_shapes);
  tcase_add_loop_test(t, test_floats, 0, 4);
  tcase_add_loop_test(t, test_levels, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_many_levels, 0, 2);
  tcase_add_test(t, test_key_expression);
  tcase_add_loop_test(t, test_accumulate, 0, 2);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_close_bounds);
  return s;
}

DEVICE_TEST_MAIN(suite)
