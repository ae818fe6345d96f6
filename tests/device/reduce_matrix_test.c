/* reduce_matrix_test.c -- kiln_reduce_rows and kiln_reduce_columns: shapes, leading
 * dimensions, alignments, types, order, memory, bad calls. */
#include "ops_fixture.h"

typedef struct shape {
  size_t rows, columns, leading, shift;
} shape;

/* x -> high * x + low modulo 2^16, one after the other: any change of order
 * shows. Odd factors keep it from fading. */
static const char then_text[] = "(a >> 16) * (b >> 16) << 16 | "
                                "(((b >> 16) * (a & 0xffff) + (b & 0xffff)) & "
                                "0xffff)";

static uint32_t then(uint32_t a, uint32_t b)
{
  const uint32_t high = (a >> 16) * (b >> 16);
  const uint32_t low = (b >> 16) * (a & 0xffff) + (b & 0xffff);

  return high << 16 | (low & 0xffff);
}

typedef enum how { SUM, MAX, ORDERED } how;

static kiln_op op_of(how h)
{
  if (h == ORDERED)
    return (kiln_op){.expr = then_text, .identity = "65536"};
  return (kiln_op){.name = h == SUM ? KILN_SUM : KILN_MAX};
}

/* Elements are whole numbers that every type adds exactly; sums are kept in f64,
 * f32 or u32. */
static double fold(how h, double a, double b)
{
  if (h == ORDERED)
    return then((uint32_t)a, (uint32_t)b);
  return h == SUM ? a + b : fmax(a, b);
}

static double start_of(how h)
{
  return h == ORDERED ? 65536 : h == SUM ? 0 : -(double)INFINITY;
}

static double element(how h, kiln_dtype type, const void *x, size_t i)
{
  return h == ORDERED ? (double)(((const uint32_t *)x)[i] | 65536)
                      : value_at(type, x, i);
}

static void check(const shape *s, kiln_dtype type, how h, bool by_row,
                  const kiln_workspace *w)
{
  uint64_t state = 1 + s->rows * 31 + s->columns;
  const size_t n = s->rows == 0 ? 0 : (s->rows - 1) * s->leading + s->columns;
  const size_t results = by_row ? s->rows : s->columns;
  void *x = h == ORDERED ? random_bits(4 * n, &state)
                         : random_wholes(type, n, 0, 100, &state);
  const kiln_dtype out_type = h == ORDERED          ? KILN_U32
                              : type == KILN_F64    ? KILN_F64
                              : type_is_float(type) ? KILN_F32
                                                    : KILN_I64;
  test_array in = array_make(type, n, s->shift, x, 0);
  test_array out = array_make(out_type, results, 1, NULL, 0x5a);
  const kiln_reduce_matrix_desc desc = {
      .x = {.in = {in.array},
            .map = h == ORDERED ? "x | 65536" : NULL,
            .type = h == ORDERED ? KILN_U32 : KILN_DTYPE_NONE},
      .rows = s->rows,
      .columns = s->columns,
      .leading = s->leading == s->columns ? 0 : s->leading,
      .op = op_of(h),
      .out = out.array};
  void *got;

  if (by_row)
    ck_kiln_ok(kiln_reduce_rows(stream, &desc, w));
  else
    ck_kiln_ok(kiln_reduce_columns(stream, &desc, w));
  got = array_read(&out);
  for (size_t r = 0; r < results; r++) {
    double want = start_of(h);

    for (size_t k = 0; k < (by_row ? s->columns : s->rows); k++)
      want = fold(h, want,
                  element(h, type, x,
                          by_row ? r * s->leading + k : k * s->leading + r));
    if (h == MAX && !type_is_float(out_type) && isinf(want))
      want = (double)INT64_MIN;
    ck_assert_msg(value_at(out_type, got, r) == want,
                  "%zu x %zu (%zu) at +%zu, %s, %s %zu: %g, not %g", s->rows,
                  s->columns, s->leading, s->shift, kiln_dtype_name(type),
                  by_row ? "row" : "column", r, value_at(out_type, got, r),
                  want);
  }
  free(got);
  free(x);
  array_free(&in);
  array_free(&out);
}

static const shape shapes[] = {
    {0, 5, 5, 0},         {5, 0, 5, 0},          {1, 1, 1, 0},
    {1000, 1, 1, 1},      {33, 2, 2, 0},         {700, 3, 3, 2},
    {301, 4, 4, 0},       {65, 16, 16, 0},       {1025, 16, 16, 0},
    {40, 17, 17, 3},      {129, 12, 20, 0},      {100, 32, 32, 1},
    {9, 100, 100, 0},     {31, 512, 512, 0},     {17, 512, 514, 0},
    {7, 1000, 1003, 1},   {4300, 1024, 1024, 0}, {3, 4099, 4100, 1},
    {2, 40000, 40000, 0}, {5, 9001, 9001, 1},    {20011, 7, 8, 0},
    {6007, 64, 64, 0},    {3000, 5, 5, 1}};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

START_TEST(test_rows)
{
  for (size_t k = 0; k < N_SHAPES; k++)
    check(&shapes[k], KILN_F32, SUM, true, NULL);
}
END_TEST

START_TEST(test_columns)
{
  for (size_t k = 0; k < N_SHAPES; k++)
    if (shapes[k].rows * shapes[k].columns < 1000000)
      check(&shapes[k], KILN_F32, SUM, false, NULL);
}
END_TEST

START_TEST(test_order)
{
  static const size_t some[] = {2, 5, 8, 9, 12, 15, 17, 18, 20, 21};

  for (size_t k = 0; k < sizeof some / sizeof some[0]; k++) {
    check(&shapes[some[k]], KILN_U32, ORDERED, true, NULL);
    check(&shapes[some[k]], KILN_U32, ORDERED, false, NULL);
  }
}
END_TEST

START_TEST(test_types)
{
  static const shape few[] = {{300, 24, 24, 0}, {13, 2050, 2050, 1}};
  const kiln_dtype type = all_types[_i];

  for (size_t k = 0; k < 2; k++) {
    check(&few[k], type, SUM, true, NULL);
    check(&few[k], type, _i % 2 ? SUM : MAX, false, NULL);
  }
}
END_TEST

START_TEST(test_empty)
{
  static const shape none[] = {{0, 7, 7, 0}, {7, 0, 7, 0}, {0, 0, 1, 0}};

  for (size_t k = 0; k < 3; k++) {
    check(&none[k], KILN_I32, MAX, true, NULL);
    check(&none[k], KILN_I32, MAX, false, NULL);
  }
}
END_TEST

/* Two arrays and the index, rows apart. */
START_TEST(test_map)
{
  enum { ROWS = 50, COLUMNS = 70, LEADING = 80 };
  uint64_t state = 5;
  float *x = random_wholes(KILN_F32, ROWS * LEADING, -9, 9, &state);
  int16_t *y = random_wholes(KILN_I16, ROWS * LEADING, -9, 9, &state);
  test_array a = array_make(KILN_F32, ROWS * LEADING, 0, x, 0);
  test_array b = array_make(KILN_I16, ROWS * LEADING, 1, y, 0);
  test_array by_row = array_make(KILN_F32, ROWS, 0, NULL, 1);
  test_array by_column = array_make(KILN_F32, COLUMNS, 0, NULL, 1);
  kiln_reduce_matrix_desc desc = {
      .x = {.in = {a.array, b.array}, .map = "x * y + i % 80"},
      .rows = ROWS,
      .columns = COLUMNS,
      .leading = LEADING,
      .out = {.data = by_row.array.data}};
  float want_row[ROWS] = {0}, want_column[COLUMNS] = {0}, *got;

  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLUMNS; c++) {
      const size_t i = r * LEADING + c;
      const float v = x[i] * (float)y[i] + (float)(i % 80);

      want_row[r] += v;
      want_column[c] += v;
    }
  ck_kiln_ok(kiln_reduce_rows(stream, &desc, NULL));
  desc.out = by_column.array;
  ck_kiln_ok(kiln_reduce_columns(stream, &desc, NULL));
  got = array_read(&by_row);
  ck_assert_int_eq(memcmp(got, want_row, sizeof want_row), 0);
  free(got);
  got = array_read(&by_column);
  ck_assert_int_eq(memcmp(got, want_column, sizeof want_column), 0);
  free(got);
  free(x);
  free(y);
  array_free(&a);
  array_free(&b);
  array_free(&by_row);
  array_free(&by_column);
}
END_TEST

/* Given memory, and a graph that runs again. */
START_TEST(test_memory)
{
  static const shape tall = {20011, 7, 8, 0}, wide = {2, 40000, 40000, 0};
  kiln_reduce_matrix_desc desc = {.x = {.in = {{256, KILN_F32}}},
                                  .out = {512, KILN_F32}};
  kiln_workspace w = {0};
  test_array room;
  size_t rows = 0, columns = 0;

  desc.rows = tall.rows;
  desc.columns = tall.columns;
  desc.leading = tall.leading;
  desc.out.data = UINT64_C(1) << 40;
  ck_kiln_ok(kiln_reduce_columns_workspace(stream, &desc, &columns));
  ck_assert_uint_gt(columns, 0);
  ck_kiln_ok(kiln_reduce_rows_workspace(stream, &desc, &w.size));
  ck_assert_uint_eq(w.size, 0);
  desc.rows = wide.rows;
  desc.columns = wide.columns;
  desc.leading = wide.leading;
  ck_kiln_ok(kiln_reduce_rows_workspace(stream, &desc, &rows));
  ck_assert_uint_gt(rows, 0);

  room = array_make(KILN_U8, columns, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, columns};
  check(&tall, KILN_F32, SUM, false, &w);
  check(&tall, KILN_F32, SUM, false, &w);
  free(array_read(&room));
  array_free(&room);
  room = array_make(KILN_U8, rows, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, rows};
  check(&wide, KILN_F32, SUM, true, &w);
  w.size--;
  ck_assert_int_eq(kiln_reduce_rows(stream, &desc, &w), KILN_EINVAL);
  free(array_read(&room));
  array_free(&room);
}
END_TEST

START_TEST(test_capture)
{
  enum { ROWS = 20011, COLUMNS = 7 };
  uint64_t state = 5;
  uint32_t *x = random_bits(4 * ROWS * COLUMNS, &state);
  test_array in = array_make(KILN_U32, ROWS * COLUMNS, 0, x, 0);
  test_array out = array_make(KILN_U32, COLUMNS, 0, NULL, 1);
  const kiln_reduce_matrix_desc desc = {.x = {.in = {in.array}},
                                        .rows = ROWS,
                                        .columns = COLUMNS,
                                        .out = out.array};
  CUgraphExec exec;

  capture_begin();
  ck_kiln_ok(kiln_reduce_columns(stream, &desc, NULL));
  exec = capture_end();
  for (int turn = 0; turn < 2; turn++) {
    uint32_t *got;

    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * COLUMNS));
    capture_replay(exec);
    got = array_read(&out);
    for (size_t c = 0; c < COLUMNS; c++) {
      uint32_t want = 0;

      for (size_t r = 0; r < ROWS; r++)
        want += x[r * COLUMNS + c];
      ck_assert_uint_eq(got[c], want);
    }
    free(got);
  }
  capture_free(exec);
  free(x);
  array_free(&in);
  array_free(&out);
}
END_TEST

START_TEST(test_bad)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array o = array_make(KILN_F32, 10, 0, NULL, 0x5a);
  const kiln_reduce_matrix_desc good = {
      .x = {.in = {a.array}}, .rows = 10, .columns = 10, .out = o.array};
  kiln_reduce_matrix_desc bad[6];
  size_t bytes;
  unsigned char *got;

  for (size_t k = 0; k < 6; k++)
    bad[k] = good;
  bad[0].leading = 9;
  bad[1].rows = UINT64_MAX;
  bad[2].out.data = a.array.data;
  bad[3].out.data += 2;
  bad[4].op.name = KILN_AND;
  bad[5].x.in[0].data = 0;
  for (size_t k = 0; k < 6; k++) {
    ck_assert_msg(kiln_reduce_rows(stream, &bad[k], NULL) == KILN_EINVAL, "%zu",
                  k);
    ck_assert_msg(kiln_reduce_columns(stream, &bad[k], NULL) == KILN_EINVAL,
                  "%zu", k);
    ck_assert_int_eq(kiln_reduce_rows_workspace(stream, &bad[k], &bytes),
                     KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_reduce_columns_workspace(stream, &good, NULL),
                   KILN_EINVAL);
  got = array_read(&o);
  for (size_t i = 0; i < 40; i++)
    ck_assert_int_eq(got[i], 0x5a);
  free(got);
  array_free(&a);
  array_free(&o);
}
END_TEST

START_TEST(test_random_calls)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F32, KILN_F64};
  const unsigned long calls = random_calls(100);
  uint64_t state = 4711;

  for (unsigned long call = 0; call < calls; call++) {
    shape s = {.rows = test_random(&state) % 300,
               .columns = UINT64_C(1) << test_random(&state) % 9,
               .shift = test_random(&state) % 3 == 0};

    if (test_random(&state) % 4 == 0)
      s.columns = s.columns + test_random(&state) % 8;
    s.leading = s.columns + (test_random(&state) % 4 == 0 ? 4 : 0);
    check(&s, types[test_random(&state) % 3], SUM, call % 2 == 0, NULL);
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("reduce_matrix");
  TCase *t = tcase_create("reduce_matrix");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, test_rows);
  tcase_add_test(t, test_columns);
  tcase_add_test(t, test_order);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_empty);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_memory);
  tcase_add_test(t, test_capture);
  tcase_add_test(t, test_bad);
  tcase_add_test(brief_case(s), test_random_calls);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
