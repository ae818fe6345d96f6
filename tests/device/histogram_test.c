/* histogram_test.c -- kiln_histogram: every type, every way to say the bins, any
 * number of them and of samples, against exact counts made one by one. */
#include "ops_fixture.h"

#include <kiln/histogram.h>

/* ---- Reference ------------------------------------------------------------------ */

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

/* Bin of a whole sample among even bins, or -1. */
static int64_t even_bin(wide sample, wide lower, wide upper, uint32_t bins)
{
  if (sample < lower || sample >= upper)
    return -1;
  return (int64_t)((sample - lower) * bins / (upper - lower));
}

static uint64_t count_of(const test_array *counts, const void *got, size_t bin)
{
  return counts->array.type == KILN_U32 ? ((const uint32_t *)got)[bin]
                                        : ((const uint64_t *)got)[bin];
}

/* Run, and compare with `expected`, which holds what `counts` held before. */
static void check_counts(const kiln_histogram_desc *desc,
                         const test_array *counts, const uint64_t *expected)
{
  void *got;

  ck_kiln_ok(kiln_histogram(stream, desc, NULL));
  got = array_read(counts);
  for (size_t b = 0; b < desc->bins; b++)
    ck_assert_msg(count_of(counts, got, b) == expected[b],
                  "n %zu, bin %zu of %u: %llu, expected %llu", (size_t)desc->n,
                  b, desc->bins, (unsigned long long)count_of(counts, got, b),
                  (unsigned long long)expected[b]);
  free(got);
}

/* Integers in even bins, counted in u32 or u64. */
static void check_even(kiln_dtype type, const void *x, size_t n, size_t shift,
                       uint32_t bins, wide lower, wide upper,
                       kiln_dtype counted)
{
  uint64_t *expected = calloc(bins, sizeof *expected);
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
  check_counts(&desc, &counts, expected);
  free(expected);
  array_free(&in);
  array_free(&counts);
}

/* ---- Integers --------------------------------------------------------------------- */

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
  void *x = random_bits(3001 * 8, &state);
  void *small = random_wholes(type, 3001, -20, 100, &state);

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
  free(x);
  free(small);
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    15,   16,    31,   32,   33,
                                   1023, 4096, 8191, 16384, 8193, 65537};
  const kiln_dtype type = _i == 0 ? KILN_U8 : _i == 1 ? KILN_U32 : KILN_I64;
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    void *x = random_wholes(type, lengths[k], 0, 100, &state);

    check_even(type, x, lengths[k], k % 4, 90, 0, 0, KILN_U32);
    free(x);
  }
}
END_TEST

/* Few copies of each bin, none to spare, levels outside shared memory, slices. */
START_TEST(test_many_bins)
{
  static const uint32_t bins[] = {257,   4096,  9000,   12289,
                                  65536, 70001, 200000, KILN_MAX_BINS};
  enum { N = 20011 };
  uint64_t state = 5;
  uint32_t *x = random_bits(N * 4, &state);

  for (size_t i = 0; i < N; i++)
    x[i] = i % 5 == 0 ? 77 : x[i] % (bins[_i] + bins[_i] / 8);
  check_even(KILN_U32, x, N, 1, bins[_i], 0, 0, KILN_U32);
  check_even(KILN_U32, x, N, 0, bins[_i], 0, two_to(32), KILN_U64);
  free(x);
}
END_TEST

/* One value, two in turn, ascending, few. */
START_TEST(test_shapes)
{
  enum { N = 40000 };
  uint64_t state = 11;
  uint32_t *x = malloc(N * sizeof *x);

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
  free(x);
}
END_TEST

/* ---- Floats -------------------------------------------------------------------------- */

static void set_float(kiln_dtype type, void *data, size_t i, double v)
{
  if (type == KILN_F64)
    ((double *)data)[i] = v;
  else if (type == KILN_F32)
    ((float *)data)[i] = (float)v;
}

/* Halves and quarters: exact in every type, as are the bins. */
START_TEST(test_floats)
{
  static const kiln_dtype types[] = {KILN_F16, KILN_BF16, KILN_F32, KILN_F64};
  const kiln_dtype type = types[_i];
  enum { N = 5003, BINS = 48 };
  uint64_t state = 21, expected[BINS] = {0};
  void *x = random_wholes(type, N, -20, 40, &state);
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
  check_counts(&desc, &counts, expected);
  free(x);
  array_free(&in);
  array_free(&counts);
}
END_TEST

/* ---- Given boundaries ------------------------------------------------------------------ */

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
  void *x = random_wholes(type, N, 0, 110, &state);
  test_array in = array_make(type, N, 1, x, 0);

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    const uint32_t bins = sizes[k];
    uint64_t expected[32] = {0};
    void *levels = random_wholes(type, bins + 1, 0, 0, &state);
    test_array bounds, counts = array_make(KILN_U64, bins, 0, NULL, 9);
    kiln_histogram_desc desc = {
        .x = {.in = {in.array}}, .n = N, .bins = bins, .counts = counts.array};

    for (uint32_t b = 0; b <= bins; b++) /* some are equal: empty bins */
      set_whole(type, levels, b, 3 + b * 100 / (bins + 1) / 4 * 4);
    bounds = array_make(type, bins + 1, k, levels, 0);
    desc.levels = bounds.array;
    for (size_t i = 0; i < N; i++) {
      const int64_t b = level_bin(type, levels, bins, value_at(type, x, i));

      if (b >= 0)
        expected[b]++;
    }
    check_counts(&desc, &counts, expected);
    free(levels);
    array_free(&bounds);
    array_free(&counts);
  }
  free(x);
  array_free(&in);
}
END_TEST

/* Levels for 2^14 and 2^17 bins: beside the counters, and outside. */
START_TEST(test_many_levels)
{
  const uint32_t bins = _i == 0 ? 1u << 14 : 1u << 17;
  enum { N = 30000 };
  uint64_t state = 41;
  double *levels = malloc((bins + 1) * sizeof *levels);
  double *x = malloc(N * sizeof *x);
  uint64_t *expected = calloc(bins, sizeof *expected);
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
  check_counts(&desc, &counts, expected);
  free(levels);
  free(x);
  free(expected);
  array_free(&in);
  array_free(&bounds);
  array_free(&counts);
}
END_TEST

/* ---- Maps, adding, memory ------------------------------------------------------------------ */

START_TEST(test_key_expression)
{
  enum { N = 9001, BINS = 20 };
  uint64_t state = 51, expected[BINS] = {0};
  float *x = random_wholes(KILN_F32, N, -50, 50, &state);
  uint8_t *y = random_wholes(KILN_U8, N, 0, 9, &state);
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
  check_counts(&desc, &counts, expected);
  free(x);
  free(y);
  array_free(&a);
  array_free(&b);
  array_free(&counts);
}
END_TEST

/* The index alone; and again and again into the same counts. */
START_TEST(test_accumulate)
{
  const uint32_t bins = _i == 0 ? 10 : 80000;
  uint64_t *expected = malloc(bins * sizeof *expected);
  uint32_t *before = malloc(bins * sizeof *before);
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
    check_counts(&desc, &counts, expected);
    desc.n *= 7;
  }
  desc.n = 0;
  check_counts(&desc, &counts, expected);
  array_free(&counts);
  free(expected);
  free(before);
}
END_TEST

START_TEST(test_workspace)
{
  enum { N = 50000, BINS = 200 };
  uint64_t state = 61, expected[BINS] = {0};
  uint16_t *x = random_wholes(KILN_U16, N, 0, 220, &state);
  test_array in = array_make(KILN_U16, N, 0, x, 0);
  test_array counts = array_make(KILN_U32, BINS, 0, NULL, 9);
  const kiln_histogram_desc desc = {
      .x = {.in = {in.array}}, .n = N, .bins = BINS, .counts = counts.array};
  kiln_workspace w = {0};
  test_array room;
  uint32_t *got;

  for (size_t i = 0; i < N; i++)
    if (x[i] < BINS)
      expected[x[i]]++;
  ck_kiln_ok(kiln_histogram_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 0);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xff);
  w.data = room.array.data;
  ck_kiln_ok(kiln_histogram(stream, &desc, &w));
  got = array_read(&counts);
  for (size_t b = 0; b < BINS; b++)
    ck_assert_uint_eq(got[b], expected[b]);
  free(got);
  free(array_read(&room));
  w.size--;
  ck_assert_int_eq(kiln_histogram(stream, &desc, &w), KILN_EINVAL);
  free(x);
  array_free(&in);
  array_free(&counts);
  array_free(&room);
}
END_TEST

/* In a graph, run again and again over other samples; first call of its kind. */
START_TEST(test_capture)
{
  enum { N = 50000, BINS = 170 };
  test_array in = array_make(KILN_U16, N, 0, NULL, 0);
  test_array counts = array_make(KILN_U32, BINS, 0, NULL, 9);
  const kiln_histogram_desc desc = {
      .x = {.in = {in.array}}, .n = N, .bins = BINS, .counts = counts.array};
  uint64_t state = 81;
  CUgraphExec exec;

  capture_begin();
  ck_kiln_ok(kiln_histogram(stream, &desc, NULL));
  exec = capture_end();
  for (int turn = 0; turn < 3; turn++) {
    uint16_t *x = random_wholes(KILN_U16, N, 0, 50 * turn + 50, &state);
    uint32_t *got, expected[BINS] = {0};

    for (size_t i = 0; i < N; i++)
      if (x[i] < BINS)
        expected[x[i]]++;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, N * sizeof *x));
    capture_replay(exec);
    got = array_read(&counts);
    for (size_t b = 0; b < BINS; b++)
      ck_assert_uint_eq(got[b], expected[b]);
    free(x);
    free(got);
  }
  capture_free(exec);
  array_free(&in);
  array_free(&counts);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(150);
  uint64_t state = 71;

  for (unsigned long k = 0; k < calls; k++) {
    static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_U64};
    const kiln_dtype type = types[test_random(&state) % 3];
    const size_t n = test_random(&state) % 3000;
    const uint32_t bins = 1 + (uint32_t)(test_random(&state) % 400);
    const int64_t lower =
        (int64_t)(test_random(&state) % 100) - (type == KILN_U64 ? 0 : 50);
    const int64_t width = 1 + (int64_t)(test_random(&state) % 120);
    void *x = random_wholes(type, n, 0, 100, &state);

    check_even(type, x, n, test_random(&state) % 5, bins, lower, lower + width,
               test_random(&state) % 2 ? KILN_U32 : KILN_U64);
    free(x);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array f = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array c = array_make(KILN_U32, 100, 0, NULL, 0x5a);
  const kiln_input x = {.in = {a.array}}, y = {.in = {f.array}};
  const kiln_array counts = c.array;
  const kiln_array next = {a.array.data + 40, KILN_U32};
  const kiln_histogram_desc bad[] = {
      {.x = x, .n = 10, .counts = counts},
      {.x = x, .n = 10, .bins = KILN_MAX_BINS + 1, .counts = counts},
      {.x = x, .n = 10, .bins = 10},
      {.x = x, .n = 10, .bins = 10, .counts = f.array},
      {.x = x, .n = 100, .bins = 10, .counts = next},
      {.n = 10, .bins = 10, .counts = counts},
      {.x = y, .n = 10, .bins = 10, .counts = counts},
      {.x = y, .n = 10, .bins = 10, .counts = counts, .levels = a.array},
      {.x = x, .n = 10, .bins = 10, .counts = counts, .lower = 1, .upper = 1},
      {.x = x, .n = 10, .bins = 10, .counts = counts, .lower = 1, .upper = 0},
      {.x = x, .n = 9, .bins = 9, .counts = counts, .lower = .5, .upper = 2},
      {.x = x, .n = 9, .bins = 9, .counts = counts, .upper = (double)NAN},
      {.x = x, .n = 9, .bins = 9, .counts = counts, .upper = 1e30},
      {.x = y, .n = 9, .bins = 9, .counts = counts, .upper = (double)INFINITY},
      {.x = {.in = {{a.array.data, KILN_U64}}},
       .n = 9,
       .bins = 9,
       .counts = counts,
       .lower = -1,
       .upper = 9},
      {.x = y,
       .n = 9,
       .bins = 9,
       .counts = counts,
       .lower = -3e38,
       .upper = 3e38},
  };
  uint8_t *got;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_histogram(stream, &bad[k], NULL) == KILN_EINVAL, "%zu",
                  k);
  ck_assert_int_eq(kiln_histogram(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_histogram(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_histogram_workspace(stream, &bad[0], NULL),
                   KILN_EINVAL);
  got = array_read(&c);
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
  free(got);
  array_free(&a);
  array_free(&f);
  array_free(&c);
}
END_TEST

/* Bounds that differ as f64 but not in the type that samples are compared in. */
START_TEST(test_bounds_too_close)
{
  test_array x = array_make(KILN_F32, 10, 0, NULL, 0);
  test_array counts = array_make(KILN_U32, 4, 0, NULL, 1);
  kiln_histogram_desc desc = {.x = {.in = {x.array}},
                              .n = 10,
                              .bins = 4,
                              .lower = 1,
                              .upper = 1 + 1e-12,
                              .counts = counts.array};

  ck_assert_int_eq(kiln_histogram(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, "lower and upper are equal in f32"));
  desc.lower = 0;
  desc.upper = 1e-40; /* 4 / 1e-40 overflows */
  ck_assert_int_eq(kiln_histogram(stream, &desc, NULL), KILN_EINVAL);
  desc.upper = 1e-30;
  ck_kiln_ok(kiln_histogram(stream, &desc, NULL));
  array_free(&x);
  array_free(&counts);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("histogram");
  TCase *t = tcase_create("histogram");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_integers, 0, 8);
  tcase_add_loop_test(t, test_lengths, 0, 3);
  tcase_add_loop_test(t, test_many_bins, 0, 8);
  tcase_add_test(t, test_shapes);
  tcase_add_loop_test(t, test_floats, 0, 4);
  tcase_add_loop_test(t, test_levels, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_many_levels, 0, 2);
  tcase_add_test(t, test_key_expression);
  tcase_add_loop_test(t, test_accumulate, 0, 2);
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_bounds_too_close);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
