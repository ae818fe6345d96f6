/* views_test.c -- inputs of kiln_map() and kiln_reduce() with strides,
 * broadcasts, tables, and inputs that consist of a text only. */
#include "scan_values.h"

#include <kiln/map.h>
#include <kiln/reduce.h>

/* The offset in the array of a view of element i. */
static int64_t offset_of(const kiln_shape *s, size_t view, uint64_t i)
{
  int64_t at = 0;

  for (uint32_t k = s->rank; k-- > 0;) {
    at += (int64_t)(i % s->size[k]) * s->view[view].stride[k];
    i /= s->size[k];
  }
  return at;
}

static uint64_t elements_of(const kiln_shape *s)
{
  uint64_t n = 1;

  for (uint32_t k = 0; k < s->rank; k++)
    n *= s->size[k];
  return n;
}

/* Makes an array of small numbers that a view reads, and moves its address to
 * the element with the coordinates 0. *x receives the numbers from there on. */
static test_array array_of(const kiln_shape *s, size_t view, kiln_dtype type,
                           const int64_t **x, uint64_t *state)
{
  int64_t low = 0, high = 0, *v;
  test_array a;

  for (uint32_t k = 0; k < s->rank; k++) {
    const int64_t reach = s->view[view].stride[k] * ((int64_t)s->size[k] - 1);

    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  v = small_wholes((size_t)(high - low + 1), state);
  a = array_make(type, (size_t)(high - low + 1), 1,
                 elements(type, v, (size_t)(high - low + 1)), 0);
  a.array.data -= (CUdeviceptr)low * a.width;
  *x = v - low;
  return a;
}

#define STRIDED(...)                                                           \
  {                                                                            \
    .kind = KILN_VIEW_STRIDED, .stride = { __VA_ARGS__ }                       \
  }

/* Two views per case; x + 2 * y is computed. */
static const struct {
  kiln_dtype type;
  kiln_shape shape;
} cases[] = {
    {KILN_F32, {2, {37, 50}, {STRIDED(1, 37), STRIDED(0, 1)}}},
    {KILN_I32, {2, {60, 31}, {STRIDED(1, 0), STRIDED(40, 1)}}},
    {KILN_F16, {1, {1000}, {STRIDED(-1), STRIDED(3)}}},
    {KILN_U8, {3, {5, 1, 77}, {STRIDED(77, 9, 1), STRIDED(0, 0, 0)}}},
    {KILN_F64,
     {4, {3, 4, 5, 6}, {STRIDED(1, 3, 12, 60), STRIDED(60, 0, 6, 1)}}},
    {KILN_I64,
     {6,
      {2, 3, 4, 3, 2, 5},
      {STRIDED(1, 2, 6, 24, 72, 144), STRIDED(-9, 7, 0, -5, 100, 3)}}},
    {KILN_BF16, {3, {8, 9, 10}, {STRIDED(90, 10, 1), STRIDED(0, 10, 1)}}},
};

START_TEST(test_strides)
{
  const kiln_shape *s = &cases[_i].shape;
  const kiln_dtype type = cases[_i].type;
  const size_t n = (size_t)elements_of(s);
  uint64_t state = (uint64_t)_i;
  const int64_t *x, *y;
  test_array a = array_of(s, 0, type, &x, &state);
  test_array b = array_of(s, 1, type, &y, &state);
  test_array out = array_make(type, n, 0, NULL, 0x5a);
  test_array copy = array_make(type, n, 1, NULL, 0x5a);
  int64_t *want = room_for(n, sizeof *want), *first = room_for(n, sizeof *want);
  operation_call c;

  for (size_t i = 0; i < n; i++) {
    first[i] = x[offset_of(s, 0, i)];
    want[i] = first[i] + 2 * y[offset_of(s, 1, i)];
  }
  c = CALL_OF(kiln_map, &(kiln_map_desc){.in = {a.array, b.array},
                                         .out = {out.array, copy.array},
                                         .n = n,
                                         .expr = {"x + 2 * y"},
                                         .shape = s});
  call_writes(&c, &out, elements(type, want, n));
  call_writes(&c, &copy, elements(type, first, n));
  ck_call(c);
}
END_TEST

/* A view that is a plain array after axes have been merged, beside a plain array,
 * with rows and columns. */
START_TEST(test_mixed)
{
  enum { ROWS = 40, COLUMNS = 26, N = ROWS * COLUMNS };
  const kiln_shape s = {.rank = 2,
                        .size = {ROWS, COLUMNS},
                        .view = {STRIDED(COLUMNS, 1),
                                 {.kind = KILN_VIEW_PLAIN},
                                 STRIDED(1, ROWS),
                                 {.kind = KILN_VIEW_TABLE, .length = 3}}};
  uint64_t state = 4;
  int64_t *v = small_wholes(N, &state), *want = room_for(N, sizeof *want);
  const int64_t lut[3] = {7, -2, 5};
  test_array x = array_make(KILN_I32, N, 0, elements(KILN_I32, v, N), 0);
  test_array table = array_make(KILN_I16, 3, 0, elements(KILN_I16, lut, 3), 0);
  test_array out = array_make(KILN_I32, N, 0, NULL, 0x5a);

  for (size_t i = 0; i < N; i++)
    want[i] = v[i] + 10 * v[i] + 100 * v[i % COLUMNS * ROWS + i / COLUMNS] +
              lut[i % 3] + (int64_t)(i / COLUMNS) + v[i / 2];
  ck_writes(CALL_OF(kiln_map,
                    &(kiln_map_desc){
                        .in = {x.array, x.array, x.array, table.array},
                        .out = {out.array},
                        .n = N,
                        .expr = {"x + 10 * y + 100 * z + w_at(i % 3) + row +"
                                 " x_at(i / 2)"},
                        .width = COLUMNS,
                        .shape = &s}),
            &out, elements(KILN_I32, want, N));
}
END_TEST

START_TEST(test_reductions)
{
  const kiln_shape *s = &cases[_i].shape;
  const size_t n = (size_t)elements_of(s);
  uint64_t state = (uint64_t)_i;
  const int64_t *x, *y;
  test_array a = array_of(s, 0, KILN_I32, &x, &state);
  test_array b = array_of(s, 1, KILN_I16, &y, &state);
  test_array out = array_make(KILN_I64, 1, 0, NULL, 0x5a);
  int64_t sum = 0, dot = 0;

  for (size_t i = 0; i < n; i++) {
    sum += x[offset_of(s, 0, i)];
    dot += x[offset_of(s, 0, i)] * y[offset_of(s, 1, i)];
  }
  ck_writes(CALL_OF(kiln_reduce, &(kiln_reduce_desc){.x = {.in = {a.array}},
                                                     .n = n,
                                                     .out = out.array,
                                                     .shape = s}),
            &out, &sum);
  ck_writes(
      CALL_OF(kiln_reduce, &(kiln_reduce_desc){.x = {.in = {a.array, b.array},
                                                     .map = "x * y"},
                                               .n = n,
                                               .out = out.array,
                                               .portable = true,
                                               .shape = s}),
      &out, &dot);
}
END_TEST

/* Tables indexed by every integer type; a counter; a constant; a permutation. */
START_TEST(test_texts)
{
  enum { N = 3000, LUT = 100 };
  const kiln_shape s = {.view = {{.kind = KILN_VIEW_TABLE, .length = LUT}}};
  static const kiln_dtype types[] = {KILN_U8,  KILN_U16, KILN_I8, KILN_I16,
                                     KILN_I32, KILN_U32, KILN_U64};
  const kiln_dtype type = types[_i];
  uint64_t state = 6;
  int64_t *lut = small_wholes(LUT, &state), index[N], want[N], rising[N];
  test_array table, at, out;

  for (size_t i = 0; i < N; i++) {
    rising[i] = (int64_t)i;
    index[i] = (int64_t)(test_random(&state) % LUT);
    want[i] = lut[index[i]];
  }
  table = array_make(KILN_F32, LUT, 0, elements(KILN_F32, lut, LUT), 0);
  at = array_make(type, N, 0, elements(type, index, N), 0);
  out = array_make(KILN_F32, N, 0, NULL, 0x5a);
  ck_writes(CALL_OF(kiln_map, &(kiln_map_desc){.in = {table.array, at.array},
                                               .out = {out.array},
                                               .n = N,
                                               .expr = {"x_at(y)"},
                                               .shape = &s}),
            &out, elements(KILN_F32, want, N));
  if (_i > 0)
    return;
  ck_writes(
      CALL_OF(kiln_map,
              &(kiln_map_desc){.out = {out.array}, .n = N, .expr = {"i"}}),
      &out, elements(KILN_F32, rising, N));
  for (size_t i = 0; i < N; i++)
    want[i] = rising[N - 1 - i];
  at = array_make(KILN_F32, N, 0, elements(KILN_F32, rising, N), 0);
  ck_writes(CALL_OF(kiln_map, &(kiln_map_desc){.in = {at.array},
                                               .out = {out.array},
                                               .n = N,
                                               .expr = {"x_at(2999 - i)"}}),
            &out, elements(KILN_F32, want, N));
  want[0] = 3 * N;
  out = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  ck_writes(CALL_OF(kiln_reduce,
                    &(kiln_reduce_desc){.x = {.map = "3", .type = KILN_U64},
                                        .n = N,
                                        .out = out.array}),
            &out, want);
}
END_TEST

static operation_call good_call(const kiln_shape *s)
{
  uint64_t state = 6;
  int64_t *v = small_wholes(100, &state);
  test_array x = array_make(KILN_F32, 100, 0, elements(KILN_F32, v, 100), 0);
  test_array out = array_make(KILN_F32, 100, 0, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_map, &(kiln_map_desc){
                    .in = {x.array}, .out = {out.array}, .n = 100, .shape = s});

  call_writes(&c, &out, elements(KILN_F32, v, 100));
  return c;
}

#define MEMBER_OF(member, ...) MEMBER(kiln_map_desc, member, __VA_ARGS__)
#define SHAPE(...) MEMBER_OF(shape, &(const kiln_shape)__VA_ARGS__)

START_TEST(test_bad_calls)
{
  const kiln_shape s = {2, {10, 10}, {STRIDED(10, 1)}};
  const operation_call c = good_call(&s);
  const kiln_array out = c.result[0].array.array;
  const bad_argument bad[] = {
      {KILN_EINVAL, "rank is 0", {SHAPE({0, {100}, {STRIDED(1)}})}},
      {KILN_EINVAL, "rank is 7", {SHAPE({7, {100}, {STRIDED(1)}})}},
      {KILN_EINVAL, "product", {SHAPE({2, {10, 11}, {STRIDED(10, 1)}})}},
      {KILN_EINVAL,
       "no kiln_view_kind",
       {SHAPE({1, {100}, {{.kind = (kiln_view_kind)7}}})}},
      {KILN_EINVAL, "address space", {SHAPE({1, {100}, {STRIDED(INT64_MAX)}})}},
      {KILN_EINVAL, "which has a view", {MEMBER_OF(in[0], out)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(in[0], {out.data + 4, KILN_F32})}},
      {KILN_EINVAL,
       "is a table",
       {SHAPE({0, {0}, {{.kind = KILN_VIEW_TABLE, .length = 5}}})}},
      {KILN_ECOMPILE,
       "the map expression",
       {SHAPE({0, {0}, {{.kind = KILN_VIEW_TABLE, .length = 5}}}),
        MEMBER_OF(expr[0], "x + x_at(0)")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("views");
  TCase *t = device_case(s, "views");

  tcase_add_loop_test(t, test_strides, 0, sizeof cases / sizeof cases[0]);
  tcase_add_test(t, test_mixed);
  tcase_add_loop_test(t, test_reductions, 2,
                      getenv("KILN_TEST_THOROUGH") != NULL ? 7 : 5);
  tcase_add_loop_test(t, test_texts, 0,
                      getenv("KILN_TEST_THOROUGH") != NULL ? 7 : 3);
  tcase_add_test(t, test_bad_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
