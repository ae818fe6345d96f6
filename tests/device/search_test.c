/* search_test.c -- kiln_search for every type, both bounds, any two lengths,
 * and the user's order, compared with a binary search on the host. */
#include "sorted_values.h"

/* ---- Reference ----------------------------------------------------------- */

/* Finds a bound by binary search in doubles. */
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

static operation_call search_call(kiln_dtype type, const double *sorted,
                                  size_t m, const double *needles, size_t n,
                                  bool upper, kiln_dtype placed, size_t shift)
{
  const test_array in =
      array_make(type, m, shift, as_elements(type, sorted, m), 0);
  const test_array asked =
      array_make(type, n, shift / 2, as_elements(type, needles, n), 0);
  const test_array out = array_make(placed, n, shift % 3, NULL, 0x5a);
  void *want = kept(malloc(n * 8 + 1));
  operation_call c =
      CALL_OF(kiln_search, &(kiln_search_desc){.sorted = in.array,
                                               .m = m,
                                               .needles = {.in = {asked.array}},
                                               .n = n,
                                               .out = out.array,
                                               .upper = upper});

  for (size_t i = 0; i < n; i++)
    set_whole(placed, want, i, (int64_t)bound(sorted, m, needles[i], upper));
  call_writes(&c, &out, want);
  return c;
}

static operation_call random_call(kiln_dtype type, size_t m, size_t n,
                                  int64_t least, int64_t few, bool upper,
                                  kiln_dtype placed, uint64_t *state)
{
  const double *sorted = sorted_values(m, least, few, state);
  double *needles = kept(malloc((n + 1) * sizeof *needles));

  for (size_t i = 0; i < n; i++)
    needles[i] = (double)(least + (int64_t)(test_random(state) %
                                            (uint64_t)(few + few / 8 + 1)));
  return search_call(type, sorted, m, needles, n, upper, placed, m % 4);
}

/* ---- Tests --------------------------------------------------------------- */

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  const int64_t least = type_is_signed(type) ? -50 : 0;
  uint64_t state = 3 + (uint64_t)_i;

  ck_call(random_call(type, 200, 1501, least, 100, false, KILN_U32, &state));
  ck_call(random_call(type, 3001, 700, least, 100, true, KILN_U64, &state));
  ck_call(random_call(type, 9001, 40000, least, 100, false, KILN_U32, &state));
}
END_TEST

/* Many needles in a long sequence are searched by means of tables. There are
 * full and partial nodes at the ends of the tables, and sequences at any
 * alignment. */
START_TEST(test_tables)
{
  static const struct {
    kiln_dtype type;
    size_t m;
    int64_t few;
    bool upper;
  } cases[] = {{KILN_U32, 300001, 200000, false},
               {KILN_F32, 262144, 1000, true},
               {KILN_F64, 262143, 200000, true},
               {KILN_I16, 65535, 20000, false},
               {KILN_U8, 70004, 200, false}};
  const int sm_count = device->info.sm_count;
  uint64_t state = 31;
  operation_call c =
      random_call(cases[_i].type, cases[_i].m, 34001, 0, cases[_i].few,
                  cases[_i].upper, KILN_U32, &state);

  device->info.sm_count = 16; /* for this GPU these are many needles */
  ck_assert_uint_gt(ck_workspace(c), cases[_i].m / 10);
  ck_capture(c);
  device->info.sm_count = sm_count;
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    2,    3,    31,   32,   33,
                                   1023, 4095, 4096, 4097, 8193, 70001};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    ck_call(random_call(KILN_I32, lengths[k], 301, -4000, 9000, k % 2, KILN_U32,
                        &state));
    ck_call(random_call(KILN_I32, lengths[k], 20000, -4000, 9000, k % 2 == 0,
                        KILN_U32, &state));
    ck_call(random_call(KILN_I32, 100, lengths[k] % 8000, 0, 150, k % 2,
                        KILN_U64, &state));
  }
}
END_TEST

/* There are enough needles, in order, for the kernel to keep the upper levels
 * of the search tree in shared memory. The sequence has many strides below
 * these. */
START_TEST(test_samples)
{
  enum { M = 100003, N = 70000 };
  double *sorted = kept(malloc(M * sizeof *sorted));
  double *needles = kept(malloc(N * sizeof *needles));

  for (size_t i = 0; i < M; i++)
    sorted[i] = (double)(3 * i);
  for (size_t i = 0; i < N; i++)
    needles[i] = (double)(i * 3 * (M + 100) / N) - 100;
  ck_call(search_call(KILN_I32, sorted, M, needles, N, _i != 0, KILN_U32, 1));
  ck_call(search_call(KILN_F64, sorted, M, needles, N, _i != 0, KILN_U32, 0));
}
END_TEST

START_TEST(test_special_floats)
{
  const double x[] = {-INFINITY, -1,       -0x1p-149, -0.0, -0.0, 0.0,
                      0x1p-149,  INFINITY, INFINITY,  NAN,  NAN};
  const double y[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0, -0.0, 0x1p-149, 2};

  for (int upper = 0; upper < 2; upper++) {
    ck_call(search_call(KILN_F32, x, 11, y, 8, upper != 0, KILN_U32, 0));
    ck_call(search_call(KILN_F64, x, 11, y, 8, upper != 0, KILN_U32, 0));
  }
}
END_TEST

/* A descending sequence, and needles from a map of two arrays and a
 * parameter. */
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

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F32, KILN_F64};
  const kiln_dtype type = types[test_random(state) % 4];
  const size_t m = test_random(state) % 3000, n = test_random(state) % 3000;
  const int64_t few = 1 + (int64_t)(test_random(state) % 90);
  const uint64_t r = test_random(state);

  (void)k;
  return random_call(type, m, n, 0, few, r & 1, r & 2 ? KILN_U32 : KILN_U64,
                     state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 200, 71);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_search_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const operation_call c =
      random_call(KILN_I32, 9, 9, 0, 20, false, KILN_U32, &state);
  const kiln_search_desc *good = c.desc;
  const kiln_array y = good->needles.in[0];
  const bad_argument bad[] = {
      {KILN_EINVAL, "out is none", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "out is i32", {MEMBER_OF(out, good->sorted)}},
      {KILN_EINVAL,
       "needles: neither an array",
       {MEMBER_OF(needles.in[0], {0})}},
      {KILN_EINVAL, "sorted has no type", {MEMBER_OF(sorted, {0})}},
      {KILN_EINVAL,
       "the needles are f32",
       {MEMBER_OF(needles.in[0], {y.data, KILN_F32})}},
      {KILN_EINVAL,
       "needles and out overlap",
       {MEMBER_OF(out, {y.data, KILN_U32})}},
      {KILN_EINVAL, "do not fit u32", {MEMBER_OF(m, UINT64_C(1) << 33)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("search");
  TCase *t = device_case(s, "search");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_tables, 0, 5);
  tcase_add_test(t, test_lengths);
  tcase_add_loop_test(t, test_samples, 0, 2);
  tcase_add_test(t, test_special_floats);
  tcase_add_test(t, test_order);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
