/* merge_test.c -- kiln_merge: every type, any two lengths, values that show
 * stability, the user's order, against a merge one by one. */
#include "ops_fixture.h"

#include <kiln/merge.h>
#include <kiln/search.h>
#include <kiln/sort.h>

/* ---- Reference ------------------------------------------------------------------ */

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

/* Sorted small whole numbers, `few` different ones; yours to free(). */
static void *sorted_wholes(kiln_dtype type, size_t n, int64_t few,
                           uint64_t *state)
{
  const size_t mark = n_kept;
  double *v = kept(malloc((n + 1) * sizeof *v));
  void *out = malloc(n * 8 + 1);

  for (size_t i = 0; i < n; i++)
    v[i] = (double)(test_random(state) % (uint64_t)few) -
           (double)(type_is_signed(type) ? few / 2 : 0);
  qsort(v, n, sizeof *v, compare);
  for (size_t i = 0; i < n; i++)
    set_whole(type, out, i, (int64_t)v[i]);
  release(mark);
  return out;
}

/* The merged keys' places: i for a's, n_a + j for b's. */
static uint32_t *reference(kiln_dtype type, const void *a, size_t n_a,
                           const void *b, size_t n_b, bool down)
{
  uint32_t *from = malloc((n_a + n_b + 1) * sizeof *from);
  size_t i = 0, j = 0;

  while (i + j < n_a + n_b) {
    const bool b_first =
        i == n_a ||
        (j < n_b &&
         (down ? comes_before(value_at(type, a, i), value_at(type, b, j))
               : comes_before(value_at(type, b, j), value_at(type, a, i))));

    from[i + j] = (uint32_t)(b_first ? n_a + j : i);
    if (b_first)
      j++;
    else
      i++;
  }
  return from;
}

/* Values are the keys' places, in `valued`; none: KILN_DTYPE_NONE. */
static void check_merge(kiln_dtype type, const void *a, size_t n_a,
                        const void *b, size_t n_b, kiln_dtype valued, bool down,
                        size_t shift)
{
  const size_t mark = n_kept;
  const size_t n = n_a + n_b, width = kiln_dtype_size(type);
  uint32_t *from = kept(reference(type, a, n_a, b, n_b, down));
  const bool pairs = valued != KILN_DTYPE_NONE;
  const kiln_dtype v = pairs ? valued : KILN_U8;
  void *values = kept(malloc(n * 8 + 1));
  test_array in_a = array_make(type, n_a, shift, a, 0);
  test_array in_b = array_make(type, n_b, shift / 2, b, 0);
  test_array out = array_make(type, n, shift % 3, NULL, 0x5a);
  test_array va, vb, vo = array_make(v, n, shift, NULL, 0x5a);
  kiln_merge_desc desc = {.a = in_a.array,
                          .n_a = n_a,
                          .b = in_b.array,
                          .n_b = n_b,
                          .out = out.array,
                          .less = down ? "b < a" : NULL};
  unsigned char *got;
  void *got_values;

  for (size_t i = 0; i < n; i++)
    set_whole(v, values, i, (int64_t)i);
  va = array_make(v, n_a, 1, values, 0);
  vb = array_make(v, n_b, 0, (unsigned char *)values + n_a * kiln_dtype_size(v),
                  0);
  if (pairs) {
    desc.a_values = va.array;
    desc.b_values = vb.array;
    desc.out_values = vo.array;
  }
  ck_kiln_ok(kiln_merge(stream, &desc, NULL));
  got = kept(array_read(&out));
  got_values = kept(array_read(&vo));
  for (size_t i = 0; i < n; i++) {
    const unsigned char *expected =
        from[i] < n_a ? (const unsigned char *)a + from[i] * width
                      : (const unsigned char *)b + (from[i] - n_a) * width;

    ck_assert_msg(memcmp(got + i * width, expected, width) == 0,
                  "%s, %zu + %zu: key %zu", kiln_dtype_name(type), n_a, n_b, i);
    if (pairs)
      ck_assert_msg(
          memcmp((unsigned char *)got_values + i * vo.width,
                 (unsigned char *)values + from[i] * vo.width, vo.width) == 0,
          "%s, %zu + %zu: value %zu", kiln_dtype_name(type), n_a, n_b, i);
  }
  release(mark);
}

static void check_wholes(kiln_dtype type, size_t n_a, size_t n_b, int64_t few,
                         kiln_dtype valued, uint64_t *state)
{
  const size_t mark = n_kept;
  void *a = kept(sorted_wholes(type, n_a, few, state));
  void *b = kept(sorted_wholes(type, n_b, few, state));

  check_merge(type, a, n_a, b, n_b, valued, false, n_a % 4);
  release(mark);
}

/* ---- Tests ------------------------------------------------------------------------ */

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 3 + (uint64_t)_i;

  check_wholes(type, 3001, 2003, 100, KILN_DTYPE_NONE, &state);
  check_wholes(type, 1777, 4100, 5, KILN_U32, &state);
  check_wholes(type, 50, 60, 100, all_types[_i], &state);
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[][2] = {
      {0, 0},  {0, 1},    {1, 0},     {1, 1},        {31, 1},      {32, 33},
      {0, 33}, {3840, 0}, {0, 3840},  {1920, 1920},  {1920, 1921}, {3839, 1},
      {1, 10}, {7680, 3}, {5, 20011}, {30011, 29989}};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    check_wholes(KILN_I32, lengths[k][0], lengths[k][1], 1000000, KILN_U32,
                 &state);
    check_wholes(KILN_I32, lengths[k][0], lengths[k][1], 1, KILN_U32, &state);
  }
}
END_TEST

/* All of one before all of the other, taking turns, one inside the other. */
START_TEST(test_shapes)
{
  enum { N = 9000 };
  uint32_t *a = kept(malloc(N * sizeof *a)), *b = kept(malloc(N * sizeof *b));

  for (unsigned shape = 0; shape < 4; shape++) {
    for (uint32_t i = 0; i < N; i++) {
      a[i] = shape == 0 ? i : shape == 1 ? i + N : shape == 2 ? 2 * i : i;
      b[i] = shape == 0   ? i + N
             : shape == 1 ? i
             : shape == 2 ? 2 * i + 1
                          : 4000;
    }
    check_merge(KILN_U32, a, N, b, N, KILN_U32, false, shape);
  }
}
END_TEST

START_TEST(test_special_floats)
{
  const float a[] = {-INFINITY, -1, -0x1p-149f, -0.0f, 0.0f, 1, INFINITY, NAN};
  const float b[] = {-2, -0.0f, -0.0f, 0.0f, 0x1p-149f, INFINITY, -NAN, NAN};
  const double c[] = {-(double)INFINITY, -0.0, 0.0, 5e-324, (double)NAN};
  const double d[] = {-5e-324, -0.0, 0.0, 1e300, -(double)NAN};

  check_merge(KILN_F32, a, 8, b, 8, KILN_U32, false, 0);
  check_merge(KILN_F32, b, 8, a, 8, KILN_U32, false, 0);
  check_merge(KILN_F64, c, 5, d, 5, KILN_U32, false, 0);
  check_merge(KILN_F64, d, 5, c, 5, KILN_U32, false, 0);
}
END_TEST

/* Sort, merge and search agree on the place of NaNs: whatever their sign, they
 * follow +infinity, and they come first in descending order. */
START_TEST(test_nans_of_sorted_keys)
{
  enum { N = 8, NANS = 3 };
  static const float keys[N] = {-NAN, 2, NAN, -INFINITY, -NAN, INFINITY, -0.0f};
  const bool down = _i != 0;
  const float nan = -NAN;
  test_array in = array_make(KILN_F32, N, 0, keys, 0);
  test_array sorted = array_make(KILN_F32, N, 0, NULL, 0x5a);
  test_array needle = array_make(KILN_F32, 1, 0, &nan, 0);
  test_array at = array_make(KILN_U32, 1, 0, NULL, 0x5a);
  const kiln_sort_desc sort = {.keys_in = in.array,
                               .keys_out = sorted.array,
                               .n = N,
                               .descending = down};
  const kiln_search_desc search = {.sorted = sorted.array,
                                   .m = N,
                                   .needles = {.in = {needle.array}},
                                   .n = 1,
                                   .out = at.array};
  float *got;

  ck_kiln_ok(kiln_sort(stream, &sort, NULL));
  got = kept(array_read(&sorted));
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(isnan(got[i]) != 0, down ? i < NANS : i >= N - NANS);
  if (!down) {
    check_merge(KILN_F32, got, N, got, N, KILN_U32, false, 0);
    ck_kiln_ok(kiln_search(stream, &search, NULL));
    ck_assert_uint_eq(*(uint32_t *)kept(array_read(&at)), N - NANS);
  }
}
END_TEST

START_TEST(test_order)
{
  enum { N = 5000, M = 4001 };
  uint64_t state = 17;
  int32_t *a = kept(sorted_wholes(KILN_I32, N, 300, &state));
  int32_t *b = kept(sorted_wholes(KILN_I32, M, 300, &state));

  for (size_t i = 0; i < N; i++)
    a[i] = -a[i];
  for (size_t i = 0; i < M; i++)
    b[i] = -b[i];
  check_merge(KILN_I32, a, N, b, M, KILN_U32, true, 0);
}
END_TEST

/* Above the size from which the splits are found by a launch of their own; with
 * a workspace of the caller's. */
START_TEST(test_two_launches)
{
  enum { N = 1048600, M = 1048700 };
  uint8_t *a = kept(malloc(N)), *b = kept(malloc(M)), *got;
  test_array in_a, in_b, out = array_make(KILN_U8, N + M, 0, NULL, 0), room;
  kiln_merge_desc desc = {.n_a = N, .n_b = M, .out = out.array};
  size_t i = 0, j = 0;
  kiln_workspace w = {0};

  for (size_t k = 0; k < N; k++)
    a[k] = (uint8_t)(k * 256 / N);
  for (size_t k = 0; k < M; k++)
    b[k] = (uint8_t)(k * 200 / M);
  in_a = array_make(KILN_U8, N, 0, a, 0);
  in_b = array_make(KILN_U8, M, 1, b, 0);
  desc.a = in_a.array;
  desc.b = in_b.array;
  ck_kiln_ok(kiln_merge_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 0);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xff);
  w.data = room.array.data;
  ck_kiln_ok(kiln_merge(stream, &desc, &w));
  got = kept(array_read(&out));
  for (size_t k = 0; k < N + M; k++) {
    const bool b_first = i == N || (j < M && b[j] < a[i]);

    if (got[k] != (b_first ? b[j] : a[i]))
      ck_abort_msg("key %zu", k);
    if (b_first)
      j++;
    else
      i++;
  }
  free(array_read(&room));
  w.size--;
  ck_assert_int_eq(kiln_merge(stream, &desc, &w), KILN_EINVAL);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(200);
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F32, KILN_F64};
  uint64_t state = 71;

  for (unsigned long k = 0; k < calls; k++)
    check_wholes(types[test_random(&state) % 4], test_random(&state) % 3000,
                 test_random(&state) % 3000,
                 1 + (int64_t)(test_random(&state) % 120),
                 test_random(&state) % 2 ? KILN_DTYPE_NONE : KILN_U32, &state);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array c = array_make(KILN_I32, 100, 0, NULL, 0x5a);
  const kiln_array f = {c.array.data, KILN_F32};
  const kiln_array none = {0, KILN_I32};
  const kiln_merge_desc bad[] = {
      {.a = a.array, .n_a = 9, .b = b.array, .n_b = 9},
      {.a = a.array, .n_a = 9, .n_b = 9, .out = c.array},
      {.a = a.array, .n_a = 9, .b = b.array, .n_b = 9, .out = f},
      {.a = a.array, .n_a = 9, .b = none, .n_b = 9, .out = c.array},
      {.a = a.array, .n_a = 9, .b = c.array, .n_b = 9, .out = c.array},
      {.a = a.array, .n_a = UINT64_MAX, .b = b.array, .n_b = 1, .out = c.array},
      {.a = a.array,
       .n_a = 9,
       .b = b.array,
       .n_b = 9,
       .out = c.array,
       .a_values = a.array},
  };
  const kiln_merge_desc text = {.a = a.array,
                                .n_a = 9,
                                .b = b.array,
                                .n_b = 9,
                                .out = c.array,
                                .less = "a < q"};
  uint8_t *got;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_merge(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_merge(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_merge(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_merge(stream, &text, NULL), KILN_ECOMPILE);
  ck_assert_msg(strstr(kiln_last_error()->message,
                       "the comparison does not compile") != NULL,
                "%s", kiln_last_error()->message);
  got = kept(array_read(&c));
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("merge");
  TCase *t = device_case(s, "merge");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_lengths);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_special_floats);
  tcase_add_loop_test(t, test_nans_of_sorted_keys, 0, 2);
  tcase_add_test(t, test_order);
  tcase_add_test(t, test_two_launches);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
