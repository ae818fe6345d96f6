/* map_test.c -- kiln_map: every type, any length and alignment, several inputs and
 * outputs, in place, parameters, and what is wrong with a call. */
#include "ops_fixture.h"

static void test_every_type(int which)
{
  const kiln_dtype type = all_types[which];
  static const size_t lengths[] = {0, 1, 31, 33, 1000, 4096, 5000};
  uint64_t state = 7;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];
    void *x = random_wholes(type, n, 0, 50, &state);
    test_array in = array_make(type, n, k % 3, x, 0);
    test_array out = array_make(type, n, k % 2, NULL, 0x5a);
    const kiln_map_desc desc = {.in = {in.array},
                                .out = {out.array},
                                .expr = {"x + x + (i % 2 ? 3 : 1)"},
                                .n = n};
    void *got;

    ck_kiln_ok(kiln_map(stream, &desc, NULL));
    got = array_read(&out);
    for (size_t i = 0; i < n; i++)
      ck_assert_double_eq(value_at(type, got, i),
                          2 * value_at(type, x, i) + (i % 2 ? 3 : 1));
    free(got);
    free(x);
    array_free(&in);
    array_free(&out);
  }
}

START_TEST(test_types)
{
  test_every_type(_i);
}
END_TEST

START_TEST(test_several)
{
  enum { N = 3001 };
  uint64_t state = 1;
  float *x = random_wholes(KILN_F32, N, -50, 50, &state);
  int8_t *y = random_wholes(KILN_I8, N, -50, 50, &state);
  test_array a = array_make(KILN_F32, N, 0, x, 0);
  test_array b = array_make(KILN_I8, N, 1, y, 0);
  test_array c = array_make(KILN_F64, N, 0, NULL, 1);
  test_array d = array_make(KILN_I16, N, 3, NULL, 1);
  const float scale = 2.5f;
  const int32_t offset = 4;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false},
                               {"offset", KILN_I32, &offset, true}};
  const kiln_map_desc desc = {
      .in = {a.array, b.array},
      .out = {c.array, d.array, a.array},
      .expr = {"twice(scale * x) + y", "y * y + offset", "x - y"},
      .n = N,
      .code = {.preamble = "__device__ float twice(float v) { return v + v; }",
               .params = params,
               .n_params = 2}};
  double *got_c;
  int16_t *got_d;
  float *got_a;

  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got_c = array_read(&c);
  got_d = array_read(&d);
  got_a = array_read(&a);
  for (size_t i = 0; i < N; i++) {
    ck_assert_double_eq(got_c[i], 5.0 * (double)x[i] + y[i]);
    ck_assert_int_eq(got_d[i], y[i] * y[i] + 4);
    ck_assert_float_eq(got_a[i], x[i] - (float)y[i]);
  }
  free(x);
  free(y);
  free(got_a);
  free(got_c);
  free(got_d);
  array_free(&a);
  array_free(&b);
  array_free(&c);
  array_free(&d);
}
END_TEST

START_TEST(test_bad_text)
{
  static const struct {
    const char *text, *message, *caret;
  } bad[] = {
      {"x *\n  qq + 2", "the map expression does not compile: line 2",
       "  qq + 2"},
      {"x + (2", "the map expression does not compile: line 1", "    ^"},
      {"x; 1", "the map expression does not compile: line 1", " ^"},
      {"x) + (x", "the map expression does not compile: line 1", " ^"},
      {"x /* a", "the map expression does not compile: line 1", "  ^"},
      {"  ", "the map expression does not compile: line 1", "^"},
      {"x\n# if 1", "the map expression does not compile: line 2", "^"},
  };
  test_array a = array_make(KILN_F32, 10, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 10, 0, NULL, 2);

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    const kiln_map_desc desc = {
        .in = {a.array}, .out = {b.array}, .expr = {bad[k].text}, .n = 10};

    ck_assert_int_eq(kiln_map(stream, &desc, NULL), KILN_ECOMPILE);
    ck_assert_msg(strstr(kiln_last_error()->message, bad[k].message) != NULL,
                  "%zu: %s", k, kiln_last_error()->message);
    ck_assert_msg(strstr(kiln_last_error()->log, bad[k].caret) != NULL,
                  "%zu: %s", k, kiln_last_error()->log);
    ck_assert_ptr_null(strstr(kiln_last_error()->log, "user"));
  }
  free(array_read(&b));
  array_free(&a);
  array_free(&b);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  const kiln_array next = {a.array.data + 4, KILN_F32};
  const kiln_array odd = {a.array.data + 2, KILN_F32};
  const kiln_array null = {0, KILN_F32};
  const int value = 1;
  const kiln_param named_x = {"x", KILN_I32, &value, false};
  const kiln_map_desc bad[] = {
      {.in = {a.array}, .n = 10},
      {.in = {a.array}, .out = {next}, .n = 10},
      {.in = {odd}, .out = {a.array}, .n = 10},
      {.in = {null}, .out = {a.array}, .n = 10},
      {.out = {a.array}, .n = 10},
      {.in = {a.array}, .out = {a.array}, .n = UINT64_MAX / 2},
      {.in = {a.array}, .out = {a.array}, .n = 9, .code = {.n_params = 1}},
      {.in = {a.array},
       .out = {a.array},
       .n = 9,
       .code = {.params = &named_x, .n_params = 1}},
  };

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_map(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_map(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_map(stream, NULL, NULL), KILN_EINVAL);
  array_free(&a);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("map");
  TCase *t = tcase_create("map");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_several);
  tcase_add_test(t, test_bad_text);
  tcase_add_test(t, test_bad_arguments);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
