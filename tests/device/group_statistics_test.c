/* group_statistics_test.c -- minimum and maximum of arrays; positions of extremes,
 * means and variances of the rows and columns of matrices and of segments. */
#include "operation_checks.h"

#include <kiln/reduce.h>

/* ---- References ---------------------------------------------------------- */

/* One group of elements: element k has index first + k * step of the input. */
typedef struct group {
  size_t first, step, n;
} group;

static double element_of(kiln_dtype type, const void *x, const group *g,
                         size_t k)
{
  return value_at(type, x, g->first + k * g->step);
}

/* Returns the position of the smallest or greatest element in its group, by the
 * rules of NumPy: the first of equal ones, and the first NaN if there is one. */
static size_t extreme_of(kiln_dtype type, const void *x, const group *g,
                         bool greatest)
{
  size_t best = 0;

  for (size_t k = 0; k < g->n; k++) {
    const double v = element_of(type, x, g, k),
                 b = element_of(type, x, g, best);

    if (b != b)
      return best;
    if (v != v || (greatest ? v > b : v < b))
      best = k;
  }
  return best;
}

/* Computes the mean and the sum of squared deviations in two passes. */
static void moments_of(kiln_dtype type, const void *x, const group *g,
                       double *mean, double *squares)
{
  *mean = *squares = 0;
  for (size_t k = 0; k < g->n; k++)
    *mean += element_of(type, x, g, k) / (double)g->n;
  for (size_t k = 0; k < g->n; k++)
    *squares += pow(element_of(type, x, g, k) - *mean, 2);
}

static void ck_moments(kiln_dtype type, const void *x, const group *groups,
                       size_t n, const test_array *mean,
                       const test_array *variance)
{
  const double *m = kept(array_read(mean));
  const float *v = kept(array_read(variance));

  for (size_t i = 0; i < n; i++) {
    double want, squares;

    moments_of(type, x, &groups[i], &want, &squares);
    if (groups[i].n == 0) {
      ck_assert_msg(isnan(m[i]) && isnan(v[i]), "empty group %zu", i);
      continue;
    }
    squares /= (double)groups[i].n - 1 > 0 ? (double)groups[i].n - 1 : 0;
    ck_assert_msg(fabs(m[i] - want) <= 1e-10 * (1 + fabs(want)),
                  "mean %zu of %zu is %g, not %g", i, n, m[i], want);
    ck_assert_msg(isnan(squares) ? isnan(v[i])
                                 : fabs(v[i] - squares) <= 1e-5 * (1 + squares),
                  "variance %zu of %zu is %g, not %g", i, n, (double)v[i],
                  squares);
  }
}

/* Adds the expected values and positions to a call. */
static void writes_extremes(operation_call *c, kiln_dtype type, const void *x,
                            const group *groups, size_t n, bool greatest,
                            const test_array *value, const test_array *index)
{
  unsigned char *values = kept(array_read(value));
  unsigned char *positions = kept(array_read(index));
  const size_t width = kiln_dtype_size(type);

  for (size_t i = 0; i < n; i++) {
    const group *g = &groups[i];
    const size_t at = extreme_of(type, x, g, greatest);

    if (g->n == 0)
      memset(positions + i * index->width, 0xff, index->width);
    else
      set_whole(index->array.type, positions, i, (int64_t)at);
    if (g->n == 0 && kiln_dtype_size(type) == 4)
      memcpy(values + i * width, &(float){greatest ? -INFINITY : INFINITY}, 4);
    else if (g->n > 0)
      memcpy(values + i * width,
             (const unsigned char *)x + (g->first + at * g->step) * width,
             width);
  }
  call_writes(c, value, values);
  call_writes(c, index, positions);
}

/* Makes random elements of few values, so that equal extremes occur. */
static void *random_elements(kiln_dtype type, size_t n, uint64_t *state)
{
  void *x = kept(malloc(n * 8 + 8));

  for (size_t i = 0; i < n; i++)
    set_whole(type, x, i, (int64_t)(test_random(state) % 100));
  return x;
}

/* ---- Rows and columns ---------------------------------------------------- */

typedef struct matrix {
  kiln_dtype type;
  size_t rows, columns, leading, shift;
  bool greatest, by_row;
} matrix;

static group *groups_of(const matrix *m, size_t *n)
{
  group *g;

  *n = m->by_row ? m->rows : m->columns;
  g = kept(malloc((*n + 1) * sizeof *g));
  for (size_t i = 0; i < *n; i++)
    g[i] = m->by_row ? (group){i * m->leading, 1, m->columns}
                     : (group){i, m->leading, m->rows};
  return g;
}

static operation_call matrix_call(const matrix *m, const void *x)
{
  size_t n;
  const group *g = groups_of(m, &n);
  const test_array in =
      array_make(m->type, m->rows * m->leading, m->shift, x, 0);
  const test_array value = array_make(m->type, n, 0, NULL, 0x5a);
  const test_array index =
      array_make(m->by_row ? KILN_U32 : KILN_I64, n, 0, NULL, 0x5a);
  const kiln_arg_reduce_matrix_desc desc = {.x = {.in = {in.array}},
                                            .rows = m->rows,
                                            .columns = m->columns,
                                            .leading = m->leading,
                                            .op = m->greatest ? KILN_MAX
                                                              : KILN_MIN,
                                            .value = value.array,
                                            .index = index.array};
  operation_call c = m->by_row ? CALL_OF(kiln_arg_reduce_rows, &desc)
                               : CALL_OF(kiln_arg_reduce_columns, &desc);

  writes_extremes(&c, m->type, x, g, n, m->greatest, &value, &index);
  return c;
}

static void ck_matrix_moments(const matrix *m, const void *x)
{
  size_t n;
  const group *g = groups_of(m, &n);
  const test_array in =
      array_make(m->type, m->rows * m->leading, m->shift, x, 0);
  const test_array mean = array_make(KILN_F64, n, 0, NULL, 0);
  const test_array variance = array_make(KILN_F32, n, 0, NULL, 0);
  const kiln_mean_variance_matrix_desc desc = {.x = {.in = {in.array}},
                                               .rows = m->rows,
                                               .columns = m->columns,
                                               .leading = m->leading,
                                               .mean = mean.array,
                                               .variance = variance.array,
                                               .correction = 1};

  ck_kiln_ok(m->by_row ? kiln_mean_variance_rows(stream, &desc, NULL)
                       : kiln_mean_variance_columns(stream, &desc, NULL));
  ck_moments(m->type, x, g, n, &mean, &variance);
}

/* Shapes that take each path of the kernels: short rows, several rows per group of
 * lanes, one warp per row, unaligned rows, and several blocks per row. */
static const matrix shapes[] = {
    {KILN_F32, 1, 1, 1, 0, false, true},
    {KILN_F32, 37, 3, 5, 0, true, true},
    {KILN_F32, 300, 16, 16, 0, false, true},
    {KILN_U8, 70, 100, 128, 0, true, true},
    {KILN_F32, 9, 1000, 1000, 0, false, true},
    {KILN_F32, 5, 1001, 1003, 1, true, true},
    {KILN_I64, 3, 9001, 9001, 0, false, true},
    {KILN_F32, 700, 5, 5, 0, false, false},
    {KILN_F32, 3000, 64, 64, 0, true, false},
    {KILN_U8, 100, 77, 80, 1, true, false},
    {KILN_F64, 33, 4, 6, 0, false, false},
    {KILN_F32, 5, 0, 4, 0, false, true},
    {KILN_F32, 0, 6, 6, 0, true, false},
};

START_TEST(test_matrix)
{
  const matrix *m = &shapes[_i];
  uint64_t state = (uint64_t)_i + 7;
  const void *x = random_elements(m->type, m->rows * m->leading, &state);

  ck_call(matrix_call(m, x));
  /* By default every third shape: each one compiles a kernel of its own. */
  if (_i % 3 == 1 || getenv("KILN_TEST_THOROUGH") != NULL)
    ck_matrix_moments(m, x);
}
END_TEST

/* NaNs, zeros of both signs, and a row and a column whose elements all equal the
 * identity of the minimum. The NaN is the one that GPUs compute, since ptxas may
 * select values by an instruction that makes this NaN of every NaN. */
START_TEST(test_special_values)
{
  enum { ROWS = 6, COLUMNS = 40 };
  static const uint32_t computed_nan = 0x7fffffff;
  float x[ROWS * COLUMNS], nan;

  memcpy(&nan, &computed_nan, sizeof nan);
  for (size_t i = 0; i < ROWS * COLUMNS; i++)
    x[i] = (float)(i % 7) + 1;
  x[5] = x[17] = nan;
  x[COLUMNS + 8] = -0.0f;
  x[COLUMNS + 9] = 0.0f;
  for (size_t i = 2 * COLUMNS; i < 3 * COLUMNS; i++)
    x[i] = INFINITY;
  for (size_t i = 11; i < ROWS * COLUMNS; i += COLUMNS)
    x[i] = INFINITY;
  for (unsigned k = 0; k < 4; k++) {
    const matrix m = {KILN_F32, ROWS,       COLUMNS,   COLUMNS,
                      0,        k % 2 != 0, k / 2 != 0};

    ck_call(matrix_call(&m, x));
  }
}
END_TEST

/* A mean that is much larger than the deviation loses no digits. */
START_TEST(test_large_mean)
{
  enum { ROWS = 64, COLUMNS = 300 };
  double *x = kept(malloc(ROWS * COLUMNS * sizeof *x));
  uint64_t state = 5;

  for (size_t i = 0; i < ROWS * COLUMNS; i++)
    x[i] = 1e9 + (double)(test_random(&state) % 1000) / 1000;
  for (unsigned k = 0; k < 2; k++) {
    const matrix m = {KILN_F64, ROWS, COLUMNS, COLUMNS, 0, false, k != 0};

    ck_matrix_moments(&m, x);
  }
}
END_TEST

/* ---- Segments ------------------------------------------------------------ */

typedef struct segments {
  size_t n, n_segments;
  uint32_t *offsets;
  group *groups;
} segments;

/* Draws segments of 0 to `longest` elements; a few are much longer. */
static segments random_segments(size_t n_segments, size_t longest,
                                uint64_t *state)
{
  segments s = {.n_segments = n_segments,
                .offsets = kept(malloc((n_segments + 1) * 4)),
                .groups = kept(malloc((n_segments + 1) * sizeof(group)))};

  s.n = 3; /* elements before the first segment */
  for (size_t i = 0; i < n_segments; i++) {
    const size_t most = i % 97 == 5 ? 40 * longest : longest;
    const size_t length = test_random(state) % (most + 1);

    s.offsets[i] = (uint32_t)s.n;
    s.groups[i] = (group){s.n, 1, length};
    s.n += length;
  }
  s.offsets[n_segments] = (uint32_t)s.n;
  return s;
}

static operation_call segments_call(kiln_dtype type, const segments *s,
                                    const void *x, bool greatest, bool checked)
{
  const test_array in = array_make(type, s->n, 0, x, 0);
  const test_array offsets =
      array_make(KILN_U32, s->n_segments + 1, 0, s->offsets, 0);
  const test_array value = array_make(type, s->n_segments, 0, NULL, 0x5a);
  const test_array index = array_make(KILN_U32, s->n_segments, 0, NULL, 0x5a);
  const kiln_segmented_arg_reduce_desc desc = {.x = {.in = {in.array}},
                                               .n = s->n,
                                               .n_segments = s->n_segments,
                                               .offsets = offsets.array,
                                               .op = greatest ? KILN_MAX
                                                              : KILN_MIN,
                                               .value = value.array,
                                               .index = index.array,
                                               .checked = checked};
  operation_call c = CALL_OF(kiln_segmented_arg_reduce, &desc);

  writes_extremes(&c, type, x, s->groups, s->n_segments, greatest, &value,
                  &index);
  return c;
}

START_TEST(test_segments)
{
  static const size_t counts[] = {1, 300, 20, 3000};
  static const size_t longest[] = {100, 8, 3000, 30};
  uint64_t state = (uint64_t)_i;
  const segments s = random_segments(counts[_i], longest[_i], &state);
  const void *x = random_elements(KILN_F32, s.n, &state);
  const test_array in = array_make(KILN_F32, s.n, 0, x, 0);
  const test_array offsets =
      array_make(KILN_U32, s.n_segments + 1, 0, s.offsets, 0);
  const test_array mean = array_make(KILN_F64, s.n_segments, 0, NULL, 0);
  const test_array variance = array_make(KILN_F32, s.n_segments, 0, NULL, 0);
  const kiln_segmented_mean_variance_desc desc = {.x = {.in = {in.array}},
                                                  .n = s.n,
                                                  .n_segments = s.n_segments,
                                                  .offsets = offsets.array,
                                                  .mean = mean.array,
                                                  .variance = variance.array,
                                                  .correction = 1};

  ck_call(segments_call(KILN_F32, &s, x, _i % 2 != 0, _i == 1));
  ck_kiln_ok(kiln_segmented_mean_variance(stream, &desc, NULL));
  ck_moments(KILN_F32, x, s.groups, s.n_segments, &mean, &variance);
}
END_TEST

/* Segments of equal length without offsets are the rows of a matrix. */
START_TEST(test_equal_segments)
{
  uint64_t state = 3;
  const matrix m = {KILN_F32, 200, 24, 24, 0, true, true};
  const float *x = random_elements(KILN_F32, 200 * 24, &state);
  const test_array in = array_make(KILN_F32, 200 * 24, 0, x, 0);
  const test_array value = array_make(KILN_F32, 200, 0, NULL, 0);
  const test_array index = array_make(KILN_I32, 200, 0, NULL, 0);
  const kiln_segmented_arg_reduce_desc desc = {.x = {.in = {in.array}},
                                               .n = 200 * 24,
                                               .n_segments = 200,
                                               .length = 24,
                                               .op = KILN_MAX,
                                               .value = value.array,
                                               .index = index.array};
  operation_call c = CALL_OF(kiln_segmented_arg_reduce, &desc);
  size_t n;

  writes_extremes(&c, KILN_F32, x, groups_of(&m, &n), 200, true, &value,
                  &index);
  ck_call(c);
}
END_TEST

/* ---- Minimum and maximum ------------------------------------------------- */

static operation_call minmax_call(kiln_dtype type, size_t n, size_t shift,
                                  const void *x)
{
  const size_t width = kiln_dtype_size(type);
  const group g = {0, 1, n};
  const test_array in = array_make(type, n, shift, x, 0);
  const test_array least = array_make(type, 1, 0, NULL, 0x5a);
  const test_array greatest = array_make(type, 1, 1, NULL, 0x5a);
  const kiln_minmax_desc desc = {.x = {.in = {in.array}},
                                 .n = n,
                                 .min = least.array,
                                 .max = greatest.array};
  operation_call c = CALL_OF(kiln_minmax, &desc);
  unsigned char *want = kept(malloc(2 * 8));

  memcpy(want,
         (const unsigned char *)x + width * extreme_of(type, x, &g, false),
         width);
  memcpy(want + 8,
         (const unsigned char *)x + width * extreme_of(type, x, &g, true),
         width);
  call_writes(&c, &least, want);
  call_writes(&c, &greatest, want + 8);
  return c;
}

START_TEST(test_minmax)
{
  static const size_t lengths[] = {1, 2, 33, 1000, 4097, 70001};
  const kiln_dtype type = all_types[_i];
  uint64_t state = (uint64_t)_i;

  if (_i % 4 != 1 && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    ck_call(minmax_call(type, lengths[k], k == 4,
                        random_elements(type, lengths[k], &state)));
}
END_TEST

START_TEST(test_minmax_specials)
{
  static const float x[5] = {3, -0.0f, 0.0f, NAN, 1};
  static const float inf = INFINITY, less = -INFINITY;
  const test_array in = array_make(KILN_F32, 5, 0, x, 0);
  const test_array least = array_make(KILN_F32, 1, 0, NULL, 0);
  const test_array greatest = array_make(KILN_F32, 1, 0, NULL, 0);
  kiln_minmax_desc desc = {
      .x = {.in = {in.array}}, .min = least.array, .max = greatest.array};
  const float *a, *b;

  ck_kiln_ok(kiln_minmax(stream, &desc, NULL));
  ck_array(&least, &inf, "nothing");
  ck_array(&greatest, &less, "nothing");
  desc.n = 3;
  ck_kiln_ok(kiln_minmax(stream, &desc, NULL));
  ck_array(&least, &x[1], "zeros");
  ck_array(&greatest, &x[0], "zeros");
  desc.n = 5;
  ck_kiln_ok(kiln_minmax(stream, &desc, NULL));
  a = kept(array_read(&least));
  b = kept(array_read(&greatest));
  ck_assert(isnan(*a) && isnan(*b));
}
END_TEST

/* ---- Calls --------------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 2;
  const matrix wide = {KILN_F32, 3, 40000, 40000, 0, true, true};
  const matrix tall = {KILN_F32, 9000, 8, 8, 0, true, false};
  const segments s = random_segments(500, 30, &state);

  ck_capture(matrix_call(&wide, random_elements(KILN_F32, 120000, &state)));
  ck_workspace(matrix_call(&wide, random_elements(KILN_F32, 120000, &state)));
  ck_workspace(matrix_call(&tall, random_elements(KILN_F32, 72000, &state)));
  ck_workspace(segments_call(
      KILN_F32, &s, random_elements(KILN_F32, s.n, &state), true, false));
  ck_workspace(minmax_call(KILN_F32, 70000, 0,
                           random_elements(KILN_F32, 70000, &state)));
}
END_TEST

START_TEST(test_bad_arguments)
{
  uint64_t state = 2;
  const matrix m = {KILN_F32, 9, 8, 8, 0, true, _i != 0};
  const segments s = random_segments(9, 8, &state);
  const operation_call c =
      matrix_call(&m, random_elements(KILN_F32, 72, &state));
  const operation_call by_segment = segments_call(
      KILN_F32, &s, random_elements(KILN_F32, s.n, &state), true, false);
#define MATRIX(member, ...)                                                    \
  MEMBER(kiln_arg_reduce_matrix_desc, member, __VA_ARGS__)
#define SEGMENTED(member, ...)                                                 \
  MEMBER(kiln_segmented_arg_reduce_desc, member, __VA_ARGS__)
  const bad_argument bad[] = {
      {KILN_EINVAL, "op must be", {MATRIX(op, KILN_SUM)}},
      {KILN_EINVAL,
       "neither value nor index",
       {MATRIX(value, {0}), MATRIX(index, {0})}},
      {KILN_EINVAL, "index must be", {MATRIX(index.type, KILN_F32)}},
      {KILN_EINVAL, "leading", {MATRIX(leading, 7)}},
      {KILN_EINVAL, "x: neither an array", {MATRIX(x.in[0], {0})}},
  };
  const bad_argument bad_segments[] = {
      {KILN_EINVAL, "op must be", {SEGMENTED(op, KILN_SUM)}},
      {KILN_EINVAL, "offsets must be", {SEGMENTED(offsets.type, KILN_F32)}},
      {KILN_EINVAL,
       "neither value nor index",
       {SEGMENTED(value, {0}), SEGMENTED(index, {0})}},
  };

  ck_bad_arguments(c, bad);
  ck_bad_arguments(by_segment, bad_segments);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const matrix m = {KILN_F32,
                    1 + test_random(state) % 50,
                    1 + test_random(state) % (k % 8 == 0 ? 2000 : 100),
                    0,
                    0,
                    test_random(state) % 2 != 0,
                    test_random(state) % 2 != 0};
  matrix whole = m;

  whole.leading = m.columns + test_random(state) % 4;
  return matrix_call(
      &whole, random_elements(KILN_F32, whole.rows * whole.leading, state));
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 10, 31);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("group_statistics");
  TCase *t = device_case(s, "group_statistics");

  tcase_add_loop_test(t, test_matrix, 0, sizeof shapes / sizeof shapes[0]);
  tcase_add_test(t, test_special_values);
  tcase_add_test(t, test_large_mean);
  tcase_add_loop_test(t, test_segments, 0, 4);
  tcase_add_test(t, test_equal_segments);
  tcase_add_loop_test(t, test_minmax, 0, N_ALL_TYPES);
  tcase_add_test(t, test_minmax_specials);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_loop_test(t, test_bad_arguments, 0, 2);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
