/* difference_test.c -- kiln_adjacent_difference: both sides, every type, any
 * length, in place, operations of one's own. */
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

static void run_one(kiln_dtype type, size_t n, size_t shift, bool right,
                    bool in_place, uint64_t *state)
{
  int64_t *v = small_wholes(n, state);
  int64_t *want = differences(v, n, right);
  void *x = elements(type, v, n), *got;
  test_array in = array_make(type, n, shift, x, 0);
  test_array out = array_make(type, n, shift, NULL, 0x5a);
  const kiln_adjacent_difference_desc desc = {.x = {.in = {in.array}},
                                              .n = n,
                                              .right = right,
                                              .out = in_place ? in.array
                                                              : out.array};

  ck_kiln_ok(kiln_adjacent_difference(stream, &desc, NULL));
  got = array_read(in_place ? &in : &out);
  ck_elements("difference", type, got, want, n);
  free(got);
  free(x);
  free(v);
  free(want);
  array_free(&in);
  array_free(&out);
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0,    1,    2,    31,   33,
                                   1023, 1024, 1025, 4096, 9001};
  uint64_t state = (uint64_t)_i;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (unsigned how = 0; how < 4; how++)
      run_one(all_types[_i], lengths[k], 0, how & 1, how & 2, &state);
  run_one(all_types[_i], 3000, 1, _i % 2, _i % 3 == 0, &state);
}
END_TEST

/* Above 2^17 and 2^20 packs threads hold more. */
START_TEST(test_long)
{
  uint64_t state = 5;

  run_one(KILN_I64, 300001, 0, false, true, &state);
  run_one(KILN_I64, 300001, 0, true, true, &state);
  run_one(KILN_I64, 300001, 0, true, false, &state);
}
END_TEST

/* A wider result keeps the sign; the text sees the neighbour as b. */
START_TEST(test_own_text)
{
  enum { N = 5000 };
  uint8_t *x;
  int16_t *got;
  uint64_t state = 3;
  test_array in, out;

  x = random_bits(N, &state);
  in = array_make(KILN_U8, N, 0, x, 0);
  out = array_make(KILN_I16, N, 0, NULL, 0x5a);
  ck_kiln_ok(kiln_adjacent_difference(
      stream,
      &(kiln_adjacent_difference_desc){
          .x = {.in = {in.array}}, .n = N, .out = out.array},
      NULL));
  got = array_read(&out);
  for (size_t i = 0; i < N; i++)
    ck_assert_int_eq(got[i], i == 0 ? x[0] : x[i] - x[i - 1]);
  free(got);
  ck_kiln_ok(kiln_adjacent_difference(
      stream,
      &(kiln_adjacent_difference_desc){.x = {.in = {in.array}, .map = "x / 2"},
                                       .n = N,
                                       .expr = "a * 100 + b",
                                       .right = true,
                                       .out = out.array},
      NULL));
  got = array_read(&out);
  for (size_t i = 0; i + 1 < N; i++)
    ck_assert_int_eq(got[i], x[i] / 2 * 100 + x[i + 1] / 2);
  ck_assert_int_eq(got[N - 1], x[N - 1] / 2);
  free(got);
  free(x);
  array_free(&in);
  array_free(&out);
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 10000 };
  uint64_t state = 9;
  int64_t *v = small_wholes(N, &state);
  int64_t *want = differences(v, N, false);
  void *x = elements(KILN_I32, v, N), *got;
  test_array in = array_make(KILN_I32, N, 0, x, 0);
  const kiln_adjacent_difference_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = in.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  ck_kiln_ok(kiln_adjacent_difference_workspace(stream, &desc, &bytes));
  ck_assert_uint_gt(bytes, 0);
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_adjacent_difference(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_adjacent_difference(stream, &desc, &w));
  got = array_read(&in);
  ck_elements("with a workspace", KILN_I32, got, want, N);
  free(got);
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_adjacent_difference(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, 4 * N));
    capture_replay(graph);
    got = array_read(&in);
    ck_elements("from a graph", KILN_I32, got, want, N);
    free(got);
  }
  capture_free(graph);
  free(x);
  free(v);
  free(want);
  array_free(&room);
  array_free(&in);
}
END_TEST

START_TEST(test_bad_calls)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 0x5a);
  const kiln_array next = {a.array.data + 4, KILN_F32};
  const kiln_array wide = {a.array.data, KILN_F64};
  const kiln_input x = {.in = {a.array}};
  const kiln_adjacent_difference_desc bad[] = {
      {.x = x, .n = 10},
      {.x = x, .n = 10, .out = next},
      {.x = x, .n = 10, .out = wide},
      {.n = 10, .out = a.array},
  };
  unsigned char *got;
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_adjacent_difference(stream, &bad[k], NULL) ==
                      KILN_EINVAL,
                  "%zu", k);
    ck_assert_int_eq(
        kiln_adjacent_difference_workspace(stream, &bad[k], &bytes),
        KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_adjacent_difference(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_adjacent_difference(
                       stream,
                       &(kiln_adjacent_difference_desc){
                           .x = x, .n = 10, .expr = "a - c", .out = a.array},
                       NULL),
                   KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "the difference"));
  got = array_read(&a);
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
  free(got);
  array_free(&a);
}
END_TEST

START_TEST(test_random_calls)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F32};
  const unsigned long calls = random_calls(60);
  uint64_t state = 2026;

  for (unsigned long k = 0; k < calls; k++)
    run_one(types[test_random(&state) % 2], test_random(&state) % 20000,
            test_random(&state) % 2, test_random(&state) % 2,
            test_random(&state) % 2, &state);
}
END_TEST

START_TEST(test_neighbours_in_place)
{
  enum { N = 10 };
  test_array a = array_make(KILN_F32, N, 0, NULL, 0);
  const kiln_adjacent_difference_desc desc = {
      .x = {.in = {a.array}, .map = "x_at(i > 0 ? i - 1 : 0)"},
      .n = N,
      .out = a.array};

  ck_assert_int_eq(kiln_adjacent_difference(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "x_at()"));
  array_free(&a);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("difference");
  TCase *t = tcase_create("difference");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_long);
  tcase_add_test(t, test_own_text);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_neighbours_in_place);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
