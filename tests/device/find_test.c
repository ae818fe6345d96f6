/* find_test.c -- kiln_find, kiln_count, kiln_any and kiln_all. */
#include "operation_checks.h"

/* Makes a call of one of the four operations, whose result must be `value`. */
static operation_call ask(operation_index which, kiln_find_desc desc,
                          kiln_dtype type, uint64_t value)
{
  const test_array out = array_make(type, 1, 1, NULL, 0x5a);
  void *want = kept(malloc(sizeof value));
  operation_call c;

  desc.out = out.array;
  set_whole(type, want, 0, (int64_t)value);
  c = call_of(&operations[which], &desc, sizeof desc);
  call_writes(&c, &out, want);
  return c;
}

/* Checks the results of find, count, any and all. holds[i] is the value of the
 * predicate for element i. */
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
  ck_call(ask(OPERATION_kiln_find, *desc, type, first));
  ck_call(ask(OPERATION_kiln_count, *desc, type, count));
  ck_call(ask(OPERATION_kiln_any, *desc, wide ? KILN_I64 : KILN_U8, count > 0));
  ck_call(ask(OPERATION_kiln_all, *desc, wide ? KILN_I16 : KILN_U32,
              count == desc->n));
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

/* The predicate holds for one element at various positions, for all elements,
 * and for all but the last one. */
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
    ck_call(ask(OPERATION_kiln_find, desc, KILN_U32, i));
    ck_call(ask(OPERATION_kiln_any, desc, KILN_U32, 1));
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

/* Predicates that use several arrays, parameters, the index alone, and NaN. */
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
  ck_call(ask(OPERATION_kiln_find, desc, KILN_U32, 20004));
  ck_call(ask(OPERATION_kiln_find, square, KILN_U64, 3514));
  ck_call(ask(OPERATION_kiln_count, square, KILN_U64, N - 3514));
}
END_TEST

/* A captured call must search the elements that the array holds when the graph
 * runs. */
START_TEST(test_workspace_and_capture)
{
  enum { N = 60000 };
  uint32_t *x = kept(calloc(N, 4)), *got;
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  const operation_call c = ask(
      OPERATION_kiln_find,
      (kiln_find_desc){.x = {.in = {in.array}}, .predicate = "x == 7", .n = N},
      KILN_U32, N);
  CUgraphExec graph;

  ck_assert_uint_gt(ck_workspace(c), 0);
  ck_capture(c);
  capture_begin();
  ck_kiln_ok(kiln_find(stream, c.desc, NULL));
  graph = capture_end();
  for (uint32_t k = 1; k < 5; k++) {
    x[50000 - 10000 * k] = 7;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, 4 * N));
    capture_replay(graph);
    got = kept(array_read(&c.result[0].array));
    ck_assert_uint_eq(got[0], 50000 - 10000 * k);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(60);
  uint64_t state = 15;

  for (unsigned long k = 0; k < calls; k++) {
    const size_t mark = n_kept;
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
    release(mark);
  }
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_find_desc, member, __VA_ARGS__)

/* Checks the arguments of find, count, any and all. */
START_TEST(test_bad_arguments)
{
  static const operation_index all[] = {OPERATION_kiln_find,
                                        OPERATION_kiln_count,
                                        OPERATION_kiln_any, OPERATION_kiln_all};
  const kiln_array a = array_make(KILN_F32, 100, 0, NULL, 1).array;
  const operation_call c =
      ask(all[_i], (kiln_find_desc){.x = {.in = {a}}, .n = 10}, KILN_U32,
          (const uint64_t[]){0, 10, 1, 1}[_i]);
  const bad_argument bad[] = {
      {KILN_EINVAL, "out is n", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL,
       "neither an array nor a predicate",
       {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "out is n", {MEMBER_OF(out, a)}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, {a.data, KILN_U32})}},
      {KILN_ECOMPILE, "the predicate", {MEMBER_OF(predicate, "x > (")}},
  };
  const bad_argument long_one[] = {
      {KILN_EINVAL, "u32", {MEMBER_OF(n, UINT64_C(1) << 33)}}};

  ck_bad_arguments(c, bad);
  if (_i < 2)
    ck_bad_arguments(c, long_one);
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
  tcase_add_loop_test(t, test_bad_arguments, 0, 4);
  return s;
}

DEVICE_TEST_MAIN(suite)
