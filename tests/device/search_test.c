/* search_test.c -- kiln_search: every type, both bounds, any two lengths, the
 * user's order, against counting. */
#include "ops_fixture.h"

#include <kiln/search.h>

/* ---- Reference -------------------------------------------------------------------- */

/* -0 before +0, NaN last. 64-bit integers here are small. */
static bool comes_before(double a, double b)
{
  if (isnan(a) || isnan(b))
    return !isnan(a) && isnan(b);
  return a < b || (a <= b && signbit(a) && !signbit(b));
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return comes_before(x, y) ? -1 : comes_before(y, x);
}

/* By halving, over doubles. */
static uint64_t bound(const double *sorted, size_t m, double needle, bool upper)
{
  size_t low = 0, high = m;

  while (low < high) {
    const size_t middle = low + (high - low) / 2;

    if (upper ? !comes_before(needle, sorted[middle])
              : comes_before(sorted[middle], needle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static double *sorted_values(size_t m, int64_t least, int64_t few,
                             uint64_t *state)
{
  double *v = malloc((m + 1) * sizeof *v);

  for (size_t i = 0; i < m; i++)
    v[i] = (double)(least + (int64_t)(test_random(state) % (uint64_t)few));
  qsort(v, m, sizeof *v, compare);
  return v;
}

static void *as_elements(kiln_dtype type, const double *v, size_t n)
{
  void *out = malloc(n * 8 + 1);

  for (size_t i = 0; i < n; i++)
    if (type == KILN_F64)
      ((double *)out)[i] = v[i];
    else if (type == KILN_F32)
      ((float *)out)[i] = (float)v[i];
    else
      set_whole(type, out, i, (int64_t)v[i]);
  return out;
}

static void check_values(kiln_dtype type, const double *sorted, size_t m,
                         const double *needles, size_t n, bool upper,
                         kiln_dtype placed, size_t shift)
{
  const size_t mark = n_kept;
  void *x = kept(as_elements(type, sorted, m)),
       *y = kept(as_elements(type, needles, n));
  test_array in = array_make(type, m, shift, x, 0);
  test_array asked = array_make(type, n, shift / 2, y, 0);
  test_array out = array_make(placed, n, shift % 3, NULL, 0x5a);
  const kiln_search_desc desc = {.sorted = in.array,
                                 .m = m,
                                 .needles = {.in = {asked.array}},
                                 .n = n,
                                 .out = out.array,
                                 .upper = upper};
  void *got;

  ck_kiln_ok(kiln_search(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < n; i++) {
    const uint64_t place =
        placed == KILN_U32 ? ((uint32_t *)got)[i] : ((uint64_t *)got)[i];
    const uint64_t expected = bound(sorted, m, needles[i], upper);

    ck_assert_msg(place == expected,
                  "%s, m %zu: needle %zu, %g: %llu, expected %llu",
                  kiln_dtype_name(type), m, i, needles[i],
                  (unsigned long long)place, (unsigned long long)expected);
  }
  release(mark);
}

static void check_random(kiln_dtype type, size_t m, size_t n, int64_t least,
                         int64_t few, bool upper, kiln_dtype placed,
                         uint64_t *state)
{
  const size_t mark = n_kept;
  double *sorted = kept(sorted_values(m, least, few, state));
  double *needles = kept(malloc((n + 1) * sizeof *needles));

  for (size_t i = 0; i < n; i++)
    needles[i] = (double)(least + (int64_t)(test_random(state) %
                                            (uint64_t)(few + few / 8 + 1)));
  check_values(type, sorted, m, needles, n, upper, placed, m % 4);
  release(mark);
}

/* ---- Tests -------------------------------------------------------------------------- */

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  const int64_t least = type_is_signed(type) ? -50 : 0;
  uint64_t state = 3 + (uint64_t)_i;

  check_random(type, 200, 1501, least, 100, false, KILN_U32, &state);
  check_random(type, 3001, 700, least, 100, true, KILN_U64, &state);
  check_random(type, 9001, 40000, least, 100, false, KILN_U32, &state);
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    2,    3,    31,   32,   33,
                                   1023, 4095, 4096, 4097, 8193, 70001};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    check_random(KILN_I32, lengths[k], 301, -4000, 9000, k % 2, KILN_U32,
                 &state);
    check_random(KILN_I32, lengths[k], 20000, -4000, 9000, k % 2 == 0, KILN_U32,
                 &state);
    check_random(KILN_I32, 100, lengths[k] % 8000, 0, 150, k % 2, KILN_U64,
                 &state);
  }
}
END_TEST

/* Enough needles for the upper levels in shared memory, below a sequence of many
 * strides; needles in order. */
START_TEST(test_samples)
{
  enum { M = 100003, N = 70000 };
  double *sorted = kept(malloc(M * sizeof *sorted));
  double *needles = kept(malloc(N * sizeof *needles));

  for (size_t i = 0; i < M; i++)
    sorted[i] = (double)(3 * i);
  for (size_t i = 0; i < N; i++)
    needles[i] = (double)(i * 3 * (M + 100) / N) - 100;
  check_values(KILN_I32, sorted, M, needles, N, _i != 0, KILN_U32, 1);
  check_values(KILN_F64, sorted, M, needles, N, _i != 0, KILN_U32, 0);
}
END_TEST

START_TEST(test_special_floats)
{
  const double x[] = {-INFINITY, -1,       -0x1p-149, -0.0, -0.0, 0.0,
                      0x1p-149,  INFINITY, INFINITY,  NAN,  NAN};
  const double y[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, 0x1p-149, 2};

  for (int upper = 0; upper < 2; upper++) {
    check_values(KILN_F32, x, 11, y, 8, upper != 0, KILN_U32, 0);
    check_values(KILN_F64, x, 11, y, 8, upper != 0, KILN_U32, 0);
  }
}
END_TEST

/* Descending, needles from a map of two arrays, a parameter. */
START_TEST(test_order)
{
  enum { M = 1000, N = 3000 };
  uint64_t state = 17;
  int32_t *x = kept(malloc(M * sizeof *x)), *y, *z;
  test_array in, asked, more, out = array_make(KILN_U32, N, 0, NULL, 1);
  const int32_t scale = 3;
  const kiln_param params[] = {{"scale", KILN_I32, &scale, false}};
  kiln_search_desc desc = {
      .m = M,
      .needles = {.map = "x + scale * y", .type = KILN_I32},
      .n = N,
      .out = out.array,
      .less = "a > b",
      .code = {.params = params, .n_params = 1}};
  uint32_t *got;

  for (int32_t i = 0; i < M; i++)
    x[i] = 700 - 2 * i;
  y = kept(random_wholes(KILN_I32, N, -700, 700, &state));
  z = kept(random_wholes(KILN_I32, N, -200, 200, &state));
  in = array_make(KILN_I32, M, 0, x, 0);
  asked = array_make(KILN_I32, N, 0, y, 0);
  more = array_make(KILN_I32, N, 1, z, 0);
  desc.sorted = in.array;
  desc.needles.in[0] = asked.array;
  desc.needles.in[1] = more.array;
  ck_kiln_ok(kiln_search(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++) {
    const int32_t needle = y[i] + 3 * z[i];
    uint32_t expected = 0;

    while (expected < M && x[expected] > needle)
      expected++;
    ck_assert_uint_eq(got[i], expected);
  }
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(200);
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F32, KILN_F64};
  uint64_t state = 71;

  for (unsigned long k = 0; k < calls; k++)
    check_random(types[test_random(&state) % 4], test_random(&state) % 3000,
                 test_random(&state) % 3000, 0,
                 1 + (int64_t)(test_random(&state) % 90),
                 test_random(&state) % 2,
                 test_random(&state) % 2 ? KILN_U32 : KILN_U64, &state);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array c = array_make(KILN_U32, 100, 0, NULL, 0x5a);
  const kiln_array f = {b.array.data, KILN_F32};
  const kiln_input y = {.in = {b.array}};
  const kiln_search_desc bad[] = {
      {.sorted = a.array, .m = 9, .needles = y, .n = 9},
      {.sorted = a.array, .m = 9, .needles = y, .n = 9, .out = a.array},
      {.sorted = a.array, .m = 9, .n = 9, .out = c.array},
      {.m = 9, .needles = y, .n = 9, .out = c.array},
      {.sorted = a.array,
       .m = 9,
       .needles = {.in = {f}},
       .n = 9,
       .out = c.array},
      {.sorted = a.array,
       .m = 9,
       .needles = y,
       .n = 9,
       .out = {b.array.data, KILN_U32}},
      {.sorted = a.array,
       .m = UINT64_C(1) << 33,
       .needles = y,
       .n = 9,
       .out = c.array},
  };
  uint8_t *got;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_search(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_search(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_search(stream, NULL, NULL), KILN_EINVAL);
  got = kept(array_read(&c));
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("search");
  TCase *t = device_case(s, "search");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_lengths);
  tcase_add_loop_test(t, test_samples, 0, 2);
  tcase_add_test(t, test_special_floats);
  tcase_add_test(t, test_order);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
