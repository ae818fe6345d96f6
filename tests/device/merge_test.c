/* merge_test.c -- kiln_merge for every type, any two lengths, and the user's
 * order, with values that reveal whether it is stable, compared with a
 * sequential merge. */
#include "sorted_values.h"

#include <kiln/merge.h>
#include <kiln/search.h>
#include <kiln/sort.h>

/* ---- Reference ----------------------------------------------------------- */

/* Makes n small sorted whole numbers, `few` of them distinct. teardown() frees
 * them. */
static void *sorted_wholes(kiln_dtype type, size_t n, int64_t few,
                           uint64_t *state)
{
  const int64_t least = type_is_signed(type) ? -(few / 2) : 0;

  return as_elements(type, sorted_values(n, least, few, state), n);
}

/* Returns the source of each merged key: i for key i of a, n_a + j for key j of
 * b. teardown() frees it. */
static uint32_t *reference(kiln_dtype type, const void *a, size_t n_a,
                           const void *b, size_t n_b, bool down)
{
  uint32_t *from = kept(malloc((n_a + n_b + 1) * sizeof *from));
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

/* Makes a call whose values, of type `valued`, are the positions of the keys.
 * KILN_DTYPE_NONE means a call without values. */
static operation_call merge_call(kiln_dtype type, const void *a, size_t n_a,
                                 const void *b, size_t n_b, kiln_dtype valued,
                                 bool down, size_t shift)
{
  const size_t n = n_a + n_b, width = kiln_dtype_size(type);
  const size_t value_width = kiln_dtype_size(valued);
  const uint32_t *from = reference(type, a, n_a, b, n_b, down);
  const test_array in_a = array_make(type, n_a, shift, a, 0);
  const test_array in_b = array_make(type, n_b, shift / 2, b, 0);
  const test_array out = array_make(type, n, shift % 3, NULL, 0x5a);
  unsigned char *want = kept(malloc(n * width + 1));
  kiln_merge_desc desc = {.a = in_a.array,
                          .n_a = n_a,
                          .b = in_b.array,
                          .n_b = n_b,
                          .out = out.array,
                          .less = down ? "b < a" : NULL};
  operation_call c;

  for (size_t i = 0; i < n; i++)
    memcpy(want + i * width,
           from[i] < n_a ? (const unsigned char *)a + from[i] * width
                         : (const unsigned char *)b + (from[i] - n_a) * width,
           width);
  if (valued == KILN_DTYPE_NONE) {
    c = CALL_OF(kiln_merge, &desc);
  } else {
    unsigned char *values = kept(malloc(n * value_width + 1));
    unsigned char *want_values = kept(malloc(n * value_width + 1));
    const test_array out_values = array_make(valued, n, shift, NULL, 0x5a);

    for (size_t i = 0; i < n; i++)
      set_whole(valued, values, i, (int64_t)i);
    for (size_t i = 0; i < n; i++)
      memcpy(want_values + i * value_width, values + from[i] * value_width,
             value_width);
    desc.a_values = array_make(valued, n_a, 1, values, 0).array;
    desc.b_values =
        array_make(valued, n_b, 0, values + n_a * value_width, 0).array;
    desc.out_values = out_values.array;
    c = CALL_OF(kiln_merge, &desc);
    call_writes(&c, &out_values, want_values);
  }
  call_writes(&c, &out, want);
  return c;
}

static operation_call wholes_call(kiln_dtype type, size_t n_a, size_t n_b,
                                  int64_t few, kiln_dtype valued,
                                  uint64_t *state)
{
  const void *a = sorted_wholes(type, n_a, few, state);
  const void *b = sorted_wholes(type, n_b, few, state);

  return merge_call(type, a, n_a, b, n_b, valued, false, n_a % 4);
}

/* ---- Tests --------------------------------------------------------------- */

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 3 + (uint64_t)_i;

  ck_call(wholes_call(type, 3001, 2003, 100, KILN_DTYPE_NONE, &state));
  ck_call(wholes_call(type, 1777, 4100, 5, KILN_U32, &state));
  ck_call(wholes_call(type, 50, 60, 100, all_types[_i], &state));
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
    ck_call(wholes_call(KILN_I32, lengths[k][0], lengths[k][1], 1000000,
                        KILN_U32, &state));
    ck_call(wholes_call(KILN_I32, lengths[k][0], lengths[k][1], 1, KILN_U32,
                        &state));
  }
}
END_TEST

/* All keys of one array come before those of the other, the keys alternate, or
 * all keys of b lie at one point of a. */
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
    ck_call(merge_call(KILN_U32, a, N, b, N, KILN_U32, false, shape));
  }
}
END_TEST

START_TEST(test_special_floats)
{
  const float a[] = {-INFINITY, -1, -0x1p-149f, -0.0f, 0.0f, 1, INFINITY, NAN};
  const float b[] = {-2, -0.0f, -0.0f, 0.0f, 0x1p-149f, INFINITY, -NAN, NAN};
  const double c[] = {-(double)INFINITY, -0.0, 0.0, 5e-324, (double)NAN};
  const double d[] = {-5e-324, -0.0, 0.0, 1e300, -(double)NAN};

  ck_call(merge_call(KILN_F32, a, 8, b, 8, KILN_U32, false, 0));
  ck_call(merge_call(KILN_F32, b, 8, a, 8, KILN_U32, false, 0));
  ck_call(merge_call(KILN_F64, c, 5, d, 5, KILN_U32, false, 0));
  ck_call(merge_call(KILN_F64, d, 5, c, 5, KILN_U32, false, 0));
}
END_TEST

/* Sort, merge and search agree on the position of NaNs: they follow +infinity
 * whatever their sign, and come first in descending order. */
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
    ck_call(merge_call(KILN_F32, got, N, got, N, KILN_U32, false, 0));
    ck_kiln_ok(kiln_search(stream, &search, NULL));
    ck_assert_uint_eq(*(uint32_t *)kept(array_read(&at)), N - NANS);
  }
}
END_TEST

START_TEST(test_order)
{
  enum { N = 5000, M = 4001 };
  uint64_t state = 17;
  int32_t *a = sorted_wholes(KILN_I32, N, 300, &state);
  int32_t *b = sorted_wholes(KILN_I32, M, 300, &state);

  for (size_t i = 0; i < N; i++)
    a[i] = -a[i];
  for (size_t i = 0; i < M; i++)
    b[i] = -b[i];
  ck_call(merge_call(KILN_I32, a, N, b, M, KILN_U32, true, 0));
}
END_TEST

/* Above this size a launch of its own computes where the tiles split both
 * arrays. It needs a workspace. */
START_TEST(test_two_launches)
{
  enum { N = 1048600, M = 1048700 };
  uint8_t *a = kept(malloc(N)), *b = kept(malloc(M));

  for (size_t k = 0; k < N; k++)
    a[k] = (uint8_t)(k * 256 / N);
  for (size_t k = 0; k < M; k++)
    b[k] = (uint8_t)(k * 200 / M);
  ck_assert_uint_gt(
      ck_workspace(merge_call(KILN_U8, a, N, b, M, KILN_DTYPE_NONE, false, 0)),
      0);
}
END_TEST

/* Sorted keys of which the first and the last tenth are the extreme values of the
 * type, which also fill up windows that are not whole. */
static void *extreme_keys(kiln_dtype type, size_t n, uint64_t *state)
{
  const int64_t least = type_is_signed(type) ? INT32_MIN : 0;
  const int64_t most = least + UINT32_MAX;
  double *v = sorted_values(n, least, UINT32_MAX, state);

  for (size_t i = 0; i < n; i++)
    v[i] = i < n / 10 ? (double)least : i > n - n / 10 ? (double)most : v[i];
  return as_elements(type, v, n);
}

/* Many integers of 4 bytes are merged by networks of windows of 1,024 keys. The test
 * demands this for short arrays, with tiles of 4,096 keys. */
START_TEST(test_network)
{
  static const size_t lengths[][2] = {
      {0, 1},       {1, 0},       {31, 992},     {512, 512},  {1025, 0},
      {0, 4096},    {4095, 2},    {2048, 2048},  {7011, 989}, {5, 9011},
      {9011, 5000}, {4096, 8192}, {30011, 29989}};
  const kiln_tuning network = {128, 23, 0, 1};
  const kiln_dtype type = _i == 0 ? KILN_U32 : KILN_I32;
  const size_t n_lengths = sizeof lengths / sizeof lengths[0];
  uint64_t state = 21 + (uint64_t)_i;

  ck_kiln_ok(kiln_tuning_set(device, "merge", 4, 64, &network));
  for (size_t k = 0; k < n_lengths; k++) {
    const size_t n_a = lengths[k][0], n_b = lengths[k][1];
    const void *a = extreme_keys(type, n_a, &state);
    const void *b = extreme_keys(type, n_b, &state);
    const operation_call c = merge_call(type, a, n_a, b, n_b, KILN_DTYPE_NONE,
                                        false, k % 4 == 3 ? 0 : k);

    ck_call(c);
    if (_i == 0 && k + 1 == n_lengths)
      ck_capture(c);
  }
  ck_call(wholes_call(type, 5000, 3000, 3, KILN_DTYPE_NONE, &state));
}
END_TEST

/* NaNs have different bits, and the tests compare bits: they must keep their
 * order. `nans` is their number in both arrays together. */
START_TEST(test_network_floats)
{
  enum { N_A = 5000, N_B = 4000 };
  static const unsigned nans[][2] = {{0, 0},      {1, 0},       {0, 3},
                                     {700, 2000}, {1500, 2300}, {N_A, N_B}};
  const kiln_tuning network = {128, 23, 0, 1};
  float *a = kept(malloc(4 * N_A)), *b = kept(malloc(4 * N_B));
  uint64_t state = 3;
  const double *v = sorted_values(N_A, -900, 1800, &state);
  const double *w = sorted_values(N_B, -900, 1800, &state);

  ck_kiln_ok(kiln_tuning_set(device, "merge", 4, 64, &network));
  for (size_t k = 0; k < sizeof nans / sizeof nans[0]; k++) {
    for (uint32_t i = 0; i < N_A + N_B; i++) {
      const bool of_a = i < N_A;
      const uint32_t at = of_a ? i : i - N_A;
      const uint32_t bits = (i % 2 << 31) + 0x7f800001u + i;
      float *to = of_a ? a + at : b + at;

      *to = (float)(of_a ? v[at] : w[at]);
      if (at >= (of_a ? N_A - nans[k][0] : N_B - nans[k][1]))
        memcpy(to, &bits, 4);
    }
    ck_call(merge_call(KILN_F32, a, N_A, b, N_B, KILN_DTYPE_NONE, false, k));
  }
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F32, KILN_F64};
  const kiln_dtype type = types[test_random(state) % 4];
  const size_t n_a = test_random(state) % 3000;
  const size_t n_b = test_random(state) % 3000;
  const int64_t few = 1 + (int64_t)(test_random(state) % 120);

  (void)k;
  return wholes_call(type, n_a, n_b, few,
                     test_random(state) % 2 ? KILN_DTYPE_NONE : KILN_U32,
                     state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 200, 71);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_merge_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const operation_call c =
      wholes_call(KILN_I32, 9, 9, 50, KILN_DTYPE_NONE, &state);
  const kiln_merge_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "out none; all three", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "b none", {MEMBER_OF(b, {0})}},
      {KILN_EINVAL, "out f32", {MEMBER_OF(out, {good->out.data, KILN_F32})}},
      {KILN_EINVAL, "b is NULL", {MEMBER_OF(b, {0, KILN_I32})}},
      {KILN_EINVAL, "b and out overlap", {MEMBER_OF(b, good->out)}},
      {KILN_EINVAL,
       "does not fit 64 bits",
       {MEMBER_OF(n_a, UINT64_MAX), MEMBER_OF(n_b, 1)}},
      {KILN_EINVAL, "a_values are i32", {MEMBER_OF(a_values, good->a)}},
      {KILN_ECOMPILE,
       "the comparison does not compile",
       {MEMBER_OF(less, "a < q")}},
  };

  ck_bad_arguments(c, bad);
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
  tcase_add_loop_test(t, test_network, 0, 2);
  tcase_add_test(t, test_network_floats);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
