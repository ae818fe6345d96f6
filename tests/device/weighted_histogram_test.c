/* weighted_histogram_test.c -- kiln_histogram() and kiln_histogram_2d() with
 * weights, compared with sums made on the host. Weights of floats are whole
 * numbers, except in the test of determinism, so all sums are exact. */
#include "operation_checks.h"

#include <kiln/histogram.h>

/* ---- Reference ----------------------------------------------------------- */

/* Adds a whole number to sum b, modulo the size of integers. */
static void add_whole(kiln_dtype type, void *sums, size_t b, int64_t weight)
{
  switch (type) {
  case KILN_U32:
    ((uint32_t *)sums)[b] += (uint32_t)weight;
    break;
  case KILN_F32:
    ((float *)sums)[b] += (float)weight;
    break;
  case KILN_F64:
    ((double *)sums)[b] += (double)weight;
    break;
  default:
    ((uint64_t *)sums)[b] += (uint64_t)weight;
    break;
  }
}

/* A call whose samples are bin numbers, some of them outside. */
typedef struct drawn {
  kiln_dtype sample, weight, sum;
  uint32_t bins;
  size_t n, shift;
  bool accumulate, levels;
  /* Every sample is less than this number. */
  uint32_t below;
} drawn;

/* Gives the desc levels that equal the bin numbers. */
static void set_levels(kiln_histogram_desc *desc, kiln_dtype type)
{
  void *levels = kept(malloc((desc->bins + 1) * 8));

  for (uint32_t b = 0; b <= desc->bins; b++)
    set_whole(type, levels, b, b);
  desc->levels = array_make(type, desc->bins + 1, 0, levels, 0).array;
}

static operation_call drawn_call(const drawn *d, uint64_t *state)
{
  const bool is_signed = type_is_signed(d->weight);
  void *x = kept(random_wholes(d->sample, d->n, 0, d->below - 1, state));
  void *w =
      kept(random_wholes(d->weight, d->n, is_signed ? -50 : 0, 77, state));
  const test_array in = array_make(d->sample, d->n, d->shift, x, 0);
  const test_array weights = array_make(d->weight, d->n, d->shift, w, 0);
  void *before = kept(random_wholes(d->sum, d->bins, 0, 90, state));
  const test_array sums = array_make(d->sum, d->bins, d->shift, before, 0);
  void *want = kept(array_read(&sums));
  kiln_histogram_desc desc = {.x = {.in = {in.array, weights.array}},
                              .n = d->n,
                              .bins = d->bins,
                              .upper = d->levels ? 0 : d->bins,
                              .counts = sums.array,
                              .accumulate = d->accumulate,
                              .weight = "y"};
  operation_call c;

  if (d->levels)
    set_levels(&desc, d->sample);
  if (!d->accumulate)
    memset(want, 0, sums.width * d->bins);
  for (size_t i = 0; i < d->n; i++) {
    const size_t b = (size_t)value_at(d->sample, x, i);

    if (b < d->bins)
      add_whole(d->sum, want, b, (int64_t)value_at(d->weight, w, i));
  }
  c = CALL_OF(kiln_histogram, &desc);
  call_writes(&c, &sums, want);
  return c;
}

/* ---- Types, bins, lengths ------------------------------------------------ */

/* Few bins have a copy per warp. With 6,000 sums of 8 bytes, warps share copies;
 * with 80,000 the bins are summed in slices. */
static const drawn cases[] = {
    {KILN_U8, KILN_F32, KILN_F32, 100, 30011, 1, false, false, 120},
    {KILN_F32, KILN_F64, KILN_F64, 6000, 40000, 0, false, false, 7000},
    {KILN_I32, KILN_I8, KILN_I64, 33, 20001, 0, true, true, 40},
    {KILN_U32, KILN_U32, KILN_U32, 80000, 30000, 0, true, false, 90000},
    {KILN_U16, KILN_U8, KILN_U64, 1, 5000, 3, false, false, 2},
};

START_TEST(test_cases)
{
  static const size_t fewer[] = {0, 1, 31, 1027};
  uint64_t state = (uint64_t)_i + 1;
  drawn d = cases[_i];

  ck_call(drawn_call(&d, &state));
  for (size_t k = 0; k < 4; k++) {
    d.n = fewer[k];
    ck_call(drawn_call(&d, &state));
  }
}
END_TEST

/* All samples have one bin, or alternate between two: all lanes of a warp add to
 * the same sum. */
START_TEST(test_few_values)
{
  uint64_t state = 9;
  drawn d = cases[0];

  d.below = 1 + (uint32_t)_i;
  ck_call(drawn_call(&d, &state));
}
END_TEST

/* The weight is an expression over the input and a parameter. */
START_TEST(test_expression)
{
  enum { N = 3001, BINS = 10 };
  const float two = 2;
  const kiln_param params[] = {{"factor", KILN_F32, &two, false}};
  uint64_t state = 5;
  float *x = kept(random_wholes(KILN_F32, N, -20, 120, &state));
  const test_array in = array_make(KILN_F32, N, 0, x, 0);
  const test_array sums = array_make(KILN_F32, BINS, 0, NULL, 0);
  float want[BINS] = {0};
  const kiln_histogram_desc desc = {.x = {.in = {in.array}, .map = "x / 10"},
                                    .n = N,
                                    .bins = BINS,
                                    .upper = 10,
                                    .counts = sums.array,
                                    .code = {.params = params, .n_params = 1},
                                    .weight = "factor * x + (float)(i % 3)"};
  operation_call c = CALL_OF(kiln_histogram, &desc);

  for (size_t i = 0; i < N; i++)
    if (x[i] >= 0 && x[i] < 100)
      want[(int)(x[i] / 10)] += 2 * x[i] + (float)(i % 3);
  call_writes(&c, &sums, want);
  ck_call(c);
  ck_capture(c);
  ck_workspace(c);
}
END_TEST

/* ---- Floats -------------------------------------------------------------- */

/* Sums of arbitrary floats must have the same bits in every call, and be close
 * to the sums in f64. */
START_TEST(test_same_bits)
{
  enum { N = 50000, BINS = 50 };
  uint64_t state = 77;
  uint8_t *x = kept(random_wholes(KILN_U8, N, 0, BINS - 1, &state));
  float *w = kept(malloc(N * sizeof *w));
  double exact[BINS] = {0}, size[BINS] = {0};
  const test_array sums = array_make(KILN_F32, BINS, 0, NULL, 0);
  kiln_histogram_desc desc = {
      .n = N, .bins = BINS, .upper = BINS, .counts = sums.array, .weight = "y"};
  float *first, *got;

  for (size_t i = 0; i < N; i++) {
    w[i] = ldexpf((float)(int32_t)test_random(&state),
                  (int)(test_random(&state) % 20) - 40);
    exact[x[i]] += (double)w[i];
    size[x[i]] += fabs((double)w[i]);
  }
  desc.x.in[0] = array_make(KILN_U8, N, 0, x, 0).array;
  desc.x.in[1] = array_make(KILN_F32, N, 0, w, 0).array;
  ck_kiln_ok(kiln_histogram(stream, &desc, NULL));
  first = kept(array_read(&sums));
  ck_kiln_ok(kiln_histogram(stream, &desc, NULL));
  got = kept(array_read(&sums));
  ck_assert_mem_eq(first, got, sizeof(float) * BINS);
  for (size_t b = 0; b < BINS; b++)
    ck_assert_msg(fabs((double)got[b] - exact[b]) <= 1e-5 * size[b],
                  "bin %zu: %g, not %g", b, (double)got[b], exact[b]);
}
END_TEST

/* ---- Two dimensions ------------------------------------------------------ */

START_TEST(test_pairs)
{
  enum { N = 9001, ROWS = 6, COLUMNS = 11 };
  uint64_t state = 8;
  uint8_t *x = kept(random_wholes(KILN_U8, N, 0, ROWS, &state));
  float *y = kept(random_wholes(KILN_F32, N, -3, COLUMNS, &state));
  int16_t *w = kept(random_wholes(KILN_I16, N, -40, 50, &state));
  const test_array sums = array_make(KILN_F64, ROWS * COLUMNS, 0, NULL, 3);
  double want[ROWS * COLUMNS] = {0};
  const kiln_histogram_2d_desc desc = {
      .x = {array_make(KILN_U8, N, 0, x, 0).array, ROWS, 0, 0},
      .y = {array_make(KILN_F32, N, 0, y, 0).array, COLUMNS, 0, COLUMNS},
      .n = N,
      .counts = sums.array,
      .weights = array_make(KILN_I16, N, 1, w, 0).array};
  operation_call c = CALL_OF(kiln_histogram_2d, &desc);

  for (size_t i = 0; i < N; i++)
    if (x[i] < ROWS && y[i] >= 0 && y[i] < COLUMNS)
      want[x[i] * COLUMNS + (int)y[i]] += w[i];
  call_writes(&c, &sums, want);
  ck_call(c);
}
END_TEST

/* ---- Random calls, arguments --------------------------------------------- */

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const uint32_t bins[] = {1, 3, 60, 500, 9000};
  drawn d = cases[test_random(state) % 5];
  const uint64_t r = test_random(state);

  (void)k;
  d.bins = bins[r % 5];
  d.below = d.sample == KILN_U8
                ? 1 + (uint32_t)(r >> 8) % 200
                : 1 + (uint32_t)(r >> 8) % (d.bins + d.bins / 4 + 2);
  d.n = (size_t)(r >> 32) % 6000;
  d.shift = (r >> 16) % 4;
  d.accumulate = (r >> 20) % 2 == 1;
  d.levels = d.bins < 100 && (r >> 21) % 2 == 1;
  return drawn_call(&d, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 12, 3);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_histogram_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 2;
  const operation_call c = drawn_call(&cases[0], &state);
  const kiln_histogram_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL,
       "sums of weights are u8",
       {MEMBER_OF(counts.type, KILN_U8)}},
      {KILN_EINVAL, "without weights", {MEMBER_OF(weight, NULL)}},
      {KILN_EINVAL,
       "overlap",
       {MEMBER_OF(counts.data, good->x.in[1].data + 4)}},
      {KILN_ECOMPILE, "the weight", {MEMBER_OF(weight, "y +")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("weighted_histogram");
  TCase *t = device_case(s, "weighted_histogram");

  tcase_add_loop_test(t, test_cases, 0, 5);
  tcase_add_loop_test(t, test_few_values, 0, 2);
  tcase_add_test(t, test_expression);
  tcase_add_test(t, test_same_bits);
  tcase_add_test(t, test_pairs);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
