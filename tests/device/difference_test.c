/* difference_test.c -- kiln_adjacent_difference on either neighbour, for every
 * type and any length, in place, and with user expressions. */
#include "scan_values.h"

static int64_t *differences(const int64_t *x, size_t n, bool right)
{
  int64_t *want = room_for(n, sizeof *want);

  for (size_t i = 0; i < n; i++) {
    const bool alone = right ? i + 1 == n : i == 0;

    want[i] = alone ? x[i] : x[i] - x[right ? i + 1 : i - 1];
  }
  return want;
}

static operation_call difference_call(kiln_dtype type, size_t n, size_t shift,
                                      bool right, bool in_place,
                                      uint64_t *state)
{
  int64_t *v = small_wholes(n, state);
  test_array in = array_make(type, n, shift, elements(type, v, n), 0);
  test_array out = in_place ? in : array_make(type, n, shift, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_adjacent_difference,
      &(kiln_adjacent_difference_desc){
          .x = {.in = {in.array}}, .n = n, .right = right, .out = out.array});

  call_writes(&c, &out, elements(type, differences(v, n, right), n));
  return c;
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0,    1,    2,    31,   33,
                                   1023, 1024, 1025, 4096, 9001};
  uint64_t state = (uint64_t)_i;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (unsigned how = 0; how < 4; how++)
      ck_call(difference_call(all_types[_i], lengths[k], 0, how & 1, how & 2,
                              &state));
  ck_call(difference_call(all_types[_i], 3000, 1, _i % 2, _i % 3 == 0, &state));
}
END_TEST

/* Above 2^17 and 2^20 vectors each thread processes more of them. */
START_TEST(test_long)
{
  uint64_t state = 5;

  ck_call(difference_call(KILN_I64, 300001, 0, false, true, &state));
  ck_call(difference_call(KILN_I64, 300001, 0, true, true, &state));
  ck_call(difference_call(KILN_I64, 300001, 0, true, false, &state));
}
END_TEST

/* Differences of u8 elements that are stored as i16 must keep their sign. In a
 * user expression, a must be the element and b its neighbour. */
START_TEST(test_own_text)
{
  enum { N = 5000 };
  uint8_t *x;
  int16_t *got;
  uint64_t state = 3;
  test_array in, out;

  x = kept(random_bits(N, &state));
  in = array_make(KILN_U8, N, 0, x, 0);
  out = array_make(KILN_I16, N, 0, NULL, 0x5a);
  ck_kiln_ok(kiln_adjacent_difference(
      stream,
      &(kiln_adjacent_difference_desc){
          .x = {.in = {in.array}}, .n = N, .out = out.array},
      NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++)
    ck_assert_int_eq(got[i], i == 0 ? x[0] : x[i] - x[i - 1]);
  ck_kiln_ok(kiln_adjacent_difference(
      stream,
      &(kiln_adjacent_difference_desc){.x = {.in = {in.array}, .map = "x / 2"},
                                       .n = N,
                                       .expr = "a * 100 + b",
                                       .right = true,
                                       .out = out.array},
      NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i + 1 < N; i++)
    ck_assert_int_eq(got[i], x[i] / 2 * 100 + x[i + 1] / 2);
  ck_assert_int_eq(got[N - 1], x[N - 1] / 2);
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  const operation_call c =
      difference_call(KILN_I32, 10000, 0, false, true, &state);

  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_adjacent_difference_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  uint64_t state = 9;
  const operation_call c =
      difference_call(KILN_F32, 100, 0, false, true, &state);
  const kiln_array a = c.result[0].array.array;
  const bad_argument bad[] = {
      {KILN_EINVAL, "out", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out, {a.data + 4, KILN_F32})}},
      {KILN_EINVAL, "another size", {MEMBER_OF(out, {a.data, KILN_F64})}},
      {KILN_EINVAL, "x: neither an array nor a map", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "x_at()", {MEMBER_OF(x.map, "x_at(i > 0 ? i - 1 : 0)")}},
      {KILN_ECOMPILE, "the difference", {MEMBER_OF(expr, "a - c")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = test_random(state) % 2 ? KILN_F32 : KILN_U8;
  const size_t n = test_random(state) % 20000;
  const uint64_t r = test_random(state);

  (void)k;
  return difference_call(type, n, r & 1, r & 2, r & 4, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 60, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("difference");
  TCase *t = device_case(s, "difference");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_long);
  tcase_add_test(t, test_own_text);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
