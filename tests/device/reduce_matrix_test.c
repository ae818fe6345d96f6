/* reduce_matrix_test.c -- kiln_reduce_rows and kiln_reduce_columns: shapes,
 * leading dimensions, alignments, types, order, memory, and invalid
 * arguments. */
#include "operation_checks.h"
#include "reference_ops.h"

typedef struct shape {
  size_t rows, columns, leading, shift;
} shape;

typedef enum how { SUM, MAX, ORDERED } how;

static kiln_op op_of(how h)
{
  if (h == ORDERED)
    return (kiln_op){.expr = then_text, .identity = "65536"};
  return (kiln_op){.name = h == SUM ? KILN_SUM : KILN_MAX};
}

/* Elements are whole numbers that every type adds exactly. Results have type
 * f64, f32 or u32. */
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

static operation_call matrix_call(const shape *s, kiln_dtype type, how h,
                                  bool by_row)
{
  uint64_t state = 1 + s->rows * 31 + s->columns;
  const size_t n = s->rows == 0 ? 0 : (s->rows - 1) * s->leading + s->columns;
  const size_t results = by_row ? s->rows : s->columns;
  void *x = kept(h == ORDERED ? random_bits(4 * n, &state)
                              : random_wholes(type, n, 0, 100, &state));
  const kiln_dtype out_type = h == ORDERED          ? KILN_U32
                              : type == KILN_F64    ? KILN_F64
                              : type_is_float(type) ? KILN_F32
                                                    : KILN_I64;
  test_array in = array_make(type, n, s->shift, x, 0);
  test_array out = array_make(out_type, results, 1, NULL, 0x5a);
  void *wanted = kept(malloc(8 * results + 1));
  const kiln_reduce_matrix_desc desc = {
      .x = {.in = {in.array},
            .map = h == ORDERED ? "x | 65536" : NULL,
            .type = h == ORDERED ? KILN_U32 : KILN_DTYPE_NONE},
      .rows = s->rows,
      .columns = s->columns,
      .leading = s->leading == s->columns ? 0 : s->leading,
      .op = op_of(h),
      .out = out.array};
  operation_call c = by_row ? CALL_OF(kiln_reduce_rows, &desc)
                            : CALL_OF(kiln_reduce_columns, &desc);

  for (size_t r = 0; r < results; r++) {
    double want = start_of(h);

    for (size_t k = 0; k < (by_row ? s->columns : s->rows); k++)
      want = fold(h, want,
                  element(h, type, x,
                          by_row ? r * s->leading + k : k * s->leading + r));
    set_whole(out_type, wanted, r, isinf(want) ? INT64_MIN : (int64_t)want);
  }
  call_writes(&c, &out, wanted);
  return c;
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
    ck_call(matrix_call(&shapes[k], KILN_F32, SUM, true));
}
END_TEST

START_TEST(test_columns)
{
  for (size_t k = 0; k < N_SHAPES; k++)
    if (shapes[k].rows * shapes[k].columns < 1000000)
      ck_call(matrix_call(&shapes[k], KILN_F32, SUM, false));
}
END_TEST

START_TEST(test_order)
{
  static const size_t some[] = {2, 5, 8, 9, 12, 15, 17, 18, 20, 21};

  for (size_t k = 0; k < sizeof some / sizeof some[0]; k++) {
    ck_call(matrix_call(&shapes[some[k]], KILN_U32, ORDERED, true));
    ck_call(matrix_call(&shapes[some[k]], KILN_U32, ORDERED, false));
  }
}
END_TEST

START_TEST(test_types)
{
  static const shape few[] = {{300, 24, 24, 0}, {13, 2050, 2050, 1}};
  const kiln_dtype type = all_types[_i];

  for (size_t k = 0; k < 2; k++) {
    ck_call(matrix_call(&few[k], type, SUM, true));
    ck_call(matrix_call(&few[k], type, _i % 2 ? SUM : MAX, false));
  }
}
END_TEST

START_TEST(test_empty)
{
  static const shape none[] = {{0, 7, 7, 0}, {7, 0, 7, 0}, {0, 0, 1, 0}};

  for (size_t k = 0; k < 3; k++) {
    ck_call(matrix_call(&none[k], KILN_I32, MAX, true));
    ck_call(matrix_call(&none[k], KILN_I32, MAX, false));
  }
}
END_TEST

/* A map of two arrays and the index, with gaps between the rows. */
START_TEST(test_map)
{
  enum { ROWS = 50, COLUMNS = 70, LEADING = 80 };
  uint64_t state = 5;
  float *x = kept(random_wholes(KILN_F32, ROWS * LEADING, -9, 9, &state));
  int16_t *y = kept(random_wholes(KILN_I16, ROWS * LEADING, -9, 9, &state));
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
  got = kept(array_read(&by_row));
  ck_assert_int_eq(memcmp(got, want_row, sizeof want_row), 0);
  got = kept(array_read(&by_column));
  ck_assert_int_eq(memcmp(got, want_column, sizeof want_column), 0);
}
END_TEST

/* A matrix with few columns or few rows needs a workspace. One with many rows
 * does not: one block reduces each row. */
START_TEST(test_workspace_and_capture)
{
  static const shape tall = {20011, 7, 8, 0}, wide = {2, 40000, 40000, 0};
  const operation_call columns = matrix_call(&tall, KILN_F32, SUM, false);
  const operation_call rows = matrix_call(&wide, KILN_F32, SUM, true);

  ck_capture(columns);
  ck_capture(rows);
  ck_assert_uint_gt(ck_workspace(columns), 0);
  ck_assert_uint_gt(ck_workspace(rows), 0);
  ck_assert_uint_eq(ck_workspace(matrix_call(&tall, KILN_F32, SUM, true)), 0);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_reduce_matrix_desc, member, __VA_ARGS__)

START_TEST(test_bad)
{
  static const shape square = {10, 10, 10, 0};
  const operation_call c = matrix_call(&square, KILN_F32, SUM, _i == 0);
  const kiln_reduce_matrix_desc *desc = c.desc;
  const CUdeviceptr in = desc->x.in[0].data, out = desc->out.data;
  const bad_argument bad[] = {
      {KILN_EINVAL, "leading", {MEMBER_OF(leading, 9)}},
      {KILN_EINVAL,
       "more elements than 64 bits count",
       {MEMBER_OF(rows, UINT64_MAX)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out.data, in)}},
      {KILN_EINVAL, "not aligned", {MEMBER_OF(out.data, out + 2)}},
      {KILN_EINVAL, "bitwise", {MEMBER_OF(op.name, KILN_AND)}},
      {KILN_EINVAL, "x is NULL", {MEMBER_OF(x.in[0].data, 0)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F32, KILN_F64};
  shape s = {.rows = test_random(state) % 300,
             .columns = UINT64_C(1) << test_random(state) % 9,
             .shift = test_random(state) % 3 == 0};

  if (test_random(state) % 4 == 0)
    s.columns = s.columns + test_random(state) % 8;
  s.leading = s.columns + (test_random(state) % 4 == 0 ? 4 : 0);
  return matrix_call(&s, types[test_random(state) % 3], SUM, k % 2 == 0);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 100, 4711);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("reduce_matrix");
  TCase *t = device_case(s, "reduce_matrix");

  tcase_add_test(t, test_rows);
  tcase_add_test(t, test_columns);
  tcase_add_test(t, test_order);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_empty);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_loop_test(t, test_bad, 0, 2);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
