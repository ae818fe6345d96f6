/* histogram_2d_test.c -- kiln_histogram_2d() for integers and floats on each axis,
 * compared with counts made on the host. */
#include "operation_checks.h"

#include <kiln/histogram.h>

typedef struct axis {
  kiln_dtype type;
  uint32_t bins;
  double lower, upper;
} axis;

static bool is_float(kiln_dtype type)
{
  return type == KILN_F16 || type == KILN_BF16 || type == KILN_F32 ||
         type == KILN_F64;
}

/* Returns the bin of sample i, or -1 if it lies outside. Samples and bounds of
 * float axes in the tests are multiples of a bin's half width, so no rounding
 * decides. */
static int64_t bin_of(const axis *a, const void *x, size_t i)
{
  const double v = value_at(a->type, x, i);
  const bool numbers = a->upper - a->lower <= 0;
  const double lower = numbers ? 0 : a->lower;
  const double upper = numbers ? a->bins : a->upper;

  if (!(v >= lower && v < upper))
    return -1;
  return is_float(a->type) ? (int64_t)((v - lower) / (upper - lower) * a->bins)
                           : (int64_t)((uint64_t)(v - lower) * a->bins /
                                       (uint64_t)(upper - lower));
}

/* Makes samples in a range that is wider than the axis. */
static void *samples_of(const axis *a, size_t n, uint64_t *state)
{
  void *x = kept(calloc(n + 1, 8));
  const double span = a->upper - a->lower;

  for (size_t i = 0; i < n; i++) {
    const int64_t r = (int64_t)(test_random(state) % (3 * a->bins + 5));

    if (a->type == KILN_F32)
      ((float *)x)[i] =
          (float)(a->lower + ((double)r / 2 - 2) * span / a->bins);
    else if (a->type == KILN_F64)
      ((double *)x)[i] = a->lower + ((double)r / 2 - 2) * span / a->bins;
    else if (span > 0)
      set_whole(a->type, x, i,
                (int64_t)a->lower + r * (int64_t)span / (2 * a->bins));
    else
      set_whole(a->type, x, i, r);
  }
  return x;
}

static operation_call drawn_call(const axis *a, const axis *b, size_t n,
                                 bool accumulate, uint64_t *state)
{
  const void *x = samples_of(a, n, state), *y = samples_of(b, n, state);
  const size_t pairs = (size_t)a->bins * b->bins;
  const test_array in_x = array_make(a->type, n, 0, x, 0);
  const test_array in_y = array_make(b->type, n, 1, y, 0);
  const test_array counts = array_make(KILN_U32, pairs, 0, NULL, 0x11);
  uint32_t *want = kept(array_read(&counts));
  const kiln_histogram_2d_desc desc = {
      .x = {in_x.array, a->bins, a->lower, a->upper},
      .y = {in_y.array, b->bins, b->lower, b->upper},
      .n = n,
      .counts = counts.array,
      .accumulate = accumulate};
  operation_call c = CALL_OF(kiln_histogram_2d, &desc);

  if (!accumulate)
    memset(want, 0, pairs * 4);
  for (size_t i = 0; i < n; i++) {
    const int64_t bin_x = bin_of(a, x, i), bin_y = bin_of(b, y, i);

    if (bin_x >= 0 && bin_y >= 0)
      want[(size_t)bin_x * b->bins + (size_t)bin_y]++;
  }
  call_writes(&c, &counts, want);
  return c;
}

static const axis pairs[][2] = {
    {{KILN_F32, 16, -1, 1}, {KILN_F32, 8, 0, 4}},
    {{KILN_U8, 10, 0, 0}, {KILN_F64, 32, -4, 4}},
    {{KILN_I32, 7, -1000, 1000}, {KILN_I64, 200, -77, 4294967296 - 77.0}},
    {{KILN_F32, 1, 0, 1}, {KILN_U64, 3, 5, 11}},
};

START_TEST(test_axes)
{
  static const size_t lengths[] = {0, 1, 1000, 30011};
  uint64_t state = (uint64_t)_i;

  for (size_t k = 0; k < 4; k++)
    ck_call(
        drawn_call(&pairs[_i][0], &pairs[_i][1], lengths[k], k == 2, &state));
}
END_TEST

/* A NaN on one axis drops the pair. */
START_TEST(test_nans)
{
  static const float x[4] = {NAN, 0.5f, 0.5f, 0.5f};
  static const float y[4] = {0.5f, NAN, 0.5f, INFINITY};
  static const uint32_t one = 1;
  const test_array in_x = array_make(KILN_F32, 4, 0, x, 0);
  const test_array in_y = array_make(KILN_F32, 4, 0, y, 0);
  const test_array counts = array_make(KILN_U32, 1, 0, NULL, 0);
  const kiln_histogram_2d_desc desc = {.x = {in_x.array, 1, 0, 1},
                                       .y = {in_y.array, 1, 0, 1},
                                       .n = 4,
                                       .counts = counts.array};

  ck_kiln_ok(kiln_histogram_2d(stream, &desc, NULL));
  ck_array(&counts, &one, "counts");
}
END_TEST

START_TEST(test_calls)
{
  uint64_t state = 1;
  const operation_call c =
      drawn_call(&pairs[0][0], &pairs[0][1], 30000, false, &state);

  ck_capture(c);
  ck_workspace(c);
}
END_TEST

/* Bins and bounds of floats are powers of two and their multiples. */
static axis drawn_axis(uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_F32, KILN_U8,  KILN_F64,
                                     KILN_I32, KILN_I64, KILN_U64};
  const uint64_t r = test_random(state);
  axis a = {.type = types[r % 6], .bins = 1 + (uint32_t)(r >> 8) % 60};

  if (is_float(a.type)) {
    a.bins = 1u << (r >> 8) % 7;
    a.lower = (double)((r >> 16) % 9) - 4;
    a.upper = a.lower + ldexp(1, (int)((r >> 20) % 6) - 1);
  } else if (r >> 32 & 1) {
    a.lower = (double)((r >> 16) % 50) -
              (a.type == KILN_I32 || a.type == KILN_I64 ? 25 : 0);
    a.upper = a.lower + 1 + (double)((r >> 24) % 200);
  }
  return a;
}

static operation_call draw(unsigned long k, uint64_t *state)
{
  const axis a = drawn_axis(state), b = drawn_axis(state);

  return drawn_call(&a, &b, test_random(state) % 4000, k % 3 == 0, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 4, 2026);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_histogram_2d_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 1;
  const operation_call c =
      drawn_call(&pairs[2][0], &pairs[2][1], 100, false, &state);
  const kiln_histogram_2d_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "x has 0 bins", {MEMBER_OF(x.bins, 0)}},
      {KILN_EINVAL, "are more than", {MEMBER_OF(y.bins, 200000)}},
      {KILN_EINVAL, "more than 2^32 values", {MEMBER_OF(y.upper, 0x1p40)}},
      {KILN_EINVAL, "lower must be below", {MEMBER_OF(x.lower, 1000)}},
      {KILN_EINVAL, "whole numbers", {MEMBER_OF(x.lower, 0.5)}},
      {KILN_EINVAL, "counts are f32", {MEMBER_OF(counts.type, KILN_F32)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(counts.data, good->x.x.data)}},
      {KILN_EINVAL, "y has no type", {MEMBER_OF(y.x, {0})}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("histogram_2d");
  TCase *t = device_case(s, "histogram_2d");

  tcase_add_loop_test(t, test_axes, 0, 4);
  tcase_add_test(t, test_nans);
  tcase_add_test(t, test_calls);
  tcase_add_test(t, test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
