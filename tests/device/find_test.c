/* find_test.c -- kiln_find, kiln_count, kiln_any and kiln_all. */
#include "ops_fixture.h"

typedef kiln_status call(kiln_stream *, const kiln_find_desc *,
                         const kiln_workspace *);

static uint64_t ask(call *f, kiln_find_desc desc, kiln_dtype type)
{
  const size_t mark = n_kept;
  test_array out = array_make(type, 1, 1, NULL, 0x5a);
  uint64_t value = 0;
  void *got;

  desc.out = out.array;
  ck_kiln_ok(f(stream, &desc, NULL));
  got = kept(array_read(&out));
  memcpy(&value, got, out.width);
  release(mark);
  return value;
}

/* All four answers, against `holds`. */
static void check_answers(const kiln_find_desc *desc, const bool *holds,
                          bool wide)
{
  const kiln_dtype type = wide ? KILN_U64 : KILN_U32;
  uint64_t first = desc->n, count = 0;

  for (uint64_t i = desc->n; i-- > 0;)
    if (holds[i]) {
      first = i;
      count++;
    }
  ck_assert_uint_eq(ask(kiln_find, *desc, type), first);
  ck_assert_uint_eq(ask(kiln_count, *desc, type), count);
  ck_assert_uint_eq(ask(kiln_any, *desc, wide ? KILN_I64 : KILN_U8), count > 0);
  ck_assert_uint_eq(ask(kiln_all, *desc, wide ? KILN_I16 : KILN_U32),
                    count == desc->n);
}

static const size_t lengths[] = {0,    1,    31,   33,    255,
                                 4095, 4096, 4097, 16391, 100003};

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 3;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];
    void *x = kept(random_wholes(type, n, 0, 50, &state));
    bool *holds = kept(calloc(n + 1, 1));
    test_array in;
    kiln_find_desc desc = {.predicate = "x > 90", .n = n};

    for (size_t hits = k % 3; n > 0 && hits > 0; hits--)
      set_whole(type, x, (size_t)(test_random(&state) % n), 91);
    for (size_t i = 0; i < n; i++)
      holds[i] = value_at(type, x, i) > 90;
    in = array_make(type, n, 0, x, 0);
    desc.x.in[0] = in.array;
    check_answers(&desc, holds, type_is_float(type));
  }
}
END_TEST

/* One hit, at every kind of place; all; none but one. */
START_TEST(test_places)
{
  enum { N = 50021 };
  uint8_t *x = kept(calloc(N, 1));
  bool *holds = kept(calloc(N, 1));
  test_array in = array_make(KILN_U8, N, 1, x, 0);
  const kiln_find_desc desc = {.x = {.in = {in.array}}, .n = N};

  for (size_t i = 0; i < N; i += 1 + i / 5 + i % 7) {
    x[i] = 1;
    holds[i] = true;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, N));
    ck_assert_uint_eq(ask(kiln_find, desc, KILN_U32), i);
    ck_assert_uint_eq(ask(kiln_any, desc, KILN_U32), 1);
    x[i] = 0;
    holds[i] = false;
  }
  memset(x, 1, N);
  memset(holds, 1, N);
  ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, N));
  check_answers(&desc, holds, true);
  x[N - 1] = 0;
  holds[N - 1] = false;
  ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, N));
  check_answers(&desc, holds, false);
}
END_TEST

/* Several arrays, parameters, the index; no array at all; NaN. */
START_TEST(test_predicates)
{
  enum { N = 30000 };
  const int32_t from = 20000;
  const kiln_param param = {"from", KILN_I32, &from, false};
  float *x = kept(calloc(N, 4));
  int16_t *y = kept(calloc(N, 2));
  test_array a, b;
  kiln_find_desc desc = {.predicate = "x != x && y > 3 && i >= from",
                         .n = N,
                         .code = {.params = &param, .n_params = 1}};
  const kiln_find_desc square = {.predicate = "i * i > 12345678", .n = N};

  for (size_t i = 0; i < N; i++) {
    x[i] = i % 3 == 0 ? NAN : 1;
    y[i] = (int16_t)(i % 7);
  }
  a = array_make(KILN_F32, N, 1, x, 0);
  b = array_make(KILN_I16, N, 0, y, 0);
  desc.x.in[0] = a.array;
  desc.x.in[1] = b.array;
  ck_assert_uint_eq(ask(kiln_find, desc, KILN_U32), 20004);
  ck_assert_uint_eq(ask(kiln_find, square, KILN_U64), 3514);
  ck_assert_uint_eq(ask(kiln_count, square, KILN_U64), N - 3514);
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 60000 };
  uint32_t *x = kept(calloc(N, 4)), *got;
  test_array in, out = array_make(KILN_U32, 1, 0, NULL, 0);
  kiln_find_desc desc = {.predicate = "x == 7", .n = N, .out = out.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  in = array_make(KILN_U32, N, 0, x, 0);
  desc.x.in[0] = in.array;
  ck_kiln_ok(kiln_find_workspace(stream, &desc, &bytes));
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_find(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_find(stream, &desc, &w));
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_find(stream, &desc, NULL));
  graph = capture_end();
  for (uint32_t k = 0; k < 4; k++) {
    got = kept(array_read(&out));
    ck_assert_uint_eq(got[0], k == 0 ? N : 50000 - 10000 * k);
    x[50000 - 10000 * (k + 1)] = 7;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, 4 * N));
    capture_replay(graph);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(60);
  uint64_t state = 15;

  for (unsigned long k = 0; k < calls; k++) {
    const size_t n = (size_t)(test_random(&state) % 60000);
    const uint32_t one_in = 1 + (uint32_t)(test_random(&state) % 20000);
    uint32_t *x = kept(random_bits(4 * n, &state));
    bool *holds = kept(calloc(n + 1, 1));
    test_array in = array_make(KILN_U32, n, 0, x, 0);
    const kiln_param param = {"one_in", KILN_U32, &one_in, false};
    const kiln_find_desc desc = {.x = {.in = {in.array}},
                                 .predicate = "x % one_in == 0",
                                 .n = n,
                                 .code = {.params = &param, .n_params = 1}};

    for (size_t i = 0; i < n; i++)
      holds[i] = x[i] % one_in == 0;
    check_answers(&desc, holds, false);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array m = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_input in = {.in = {a.array}};
  const kiln_find_desc bad[] = {
      {.x = in, .n = 10},
      {.n = 10, .out = m.array},
      {.x = in, .n = 10, .out = a.array},
      {.x = in, .n = 10, .out = {a.array.data, KILN_U32}},
      {.x = in, .n = UINT64_C(1) << 33, .out = m.array},
  };
  const kiln_find_desc text = {
      .x = in, .predicate = "x > (", .n = 10, .out = m.array};
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_find(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
    ck_assert_int_eq(kiln_count_workspace(stream, &bad[k], &bytes),
                     KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_any(stream, &bad[3], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_all(stream, &bad[2], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_find(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_find(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_find(stream, &text, NULL), KILN_ECOMPILE);
  free(array_read(&m));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("find");
  TCase *t = device_case(s, "find");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_places);
  tcase_add_test(t, test_predicates);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
