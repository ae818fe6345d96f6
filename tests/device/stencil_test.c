/* stencil_test.c -- kiln_stencil with weights on the host and on the device, dense
 * and separable, and with user expressions, for every border rule, type and number
 * of axes. The reference adds in the documented order, so floats must match to the
 * bit. */
#include "operation_checks.h"

#include <float.h>

enum { MOST_ELEMENTS = 1 << 16 };

/* ---- Reference ----------------------------------------------------------- */

static int64_t index_at(int64_t i, int64_t n, kiln_border border)
{
  const int64_t period = 2 * n - 2;

  if (i >= 0 && i < n)
    return i;
  switch (border) {
  case KILN_CLAMP:
    return i < 0 ? 0 : n - 1;
  case KILN_WRAP:
    return (i % n + n) % n;
  case KILN_MIRROR:
    i = n == 1 ? 0 : (i % period + period) % period;
    return i < n ? i : period - i;
  default:
    return -1;
  }
}

static int64_t size_of(const kiln_stencil_desc *d, unsigned axis)
{
  return axis < d->dims ? (int64_t)d->size[axis] : 1;
}

static size_t row_pitch(const kiln_stencil_desc *d, bool out)
{
  const uint64_t pitch = (out ? d->out_pitch : d->in_pitch)[0];

  return pitch != 0 ? pitch : d->size[0];
}

static size_t plane_pitch(const kiln_stencil_desc *d, bool out)
{
  const uint64_t pitch = (out ? d->out_pitch : d->in_pitch)[1];

  return pitch != 0 ? pitch : row_pitch(d, out) * (size_t)size_of(d, 1);
}

static size_t elements_of(const kiln_stencil_desc *d, bool out)
{
  return (size_t)(size_of(d, 2) - 1) * plane_pitch(d, out) +
         (size_t)(size_of(d, 1) - 1) * row_pitch(d, out) + d->size[0];
}

static double neighbour(const kiln_stencil_desc *d, const void *in,
                        const int64_t at[3], int64_t dx, int64_t dy, int64_t dz)
{
  const int64_t x = index_at(at[0] + dx, size_of(d, 0), d->border);
  const int64_t y = index_at(at[1] + dy, size_of(d, 1), d->border);
  const int64_t z = index_at(at[2] + dz, size_of(d, 2), d->border);

  if (x < 0 || y < 0 || z < 0)
    return d->outside;
  return value_at(d->in.type, in,
                  (size_t)z * plane_pitch(d, false) +
                      (size_t)y * row_pitch(d, false) + (size_t)x);
}

/* Returns the type of the sum. */
static kiln_dtype sum_of(const kiln_stencil_desc *d)
{
  if (d->acc != KILN_DTYPE_NONE)
    return d->acc;
  if (d->in.type == KILN_F16 || d->in.type == KILN_BF16)
    return KILN_F32;
  return kiln_dtype_size(d->in.type) < 4 ? KILN_I32 : d->in.type;
}

/* Returns w * x + sum, rounded once to the type of the sum. */
static double add_product(kiln_dtype acc, double w, double x, double sum)
{
  return acc == KILN_F32 ? (double)fmaf((float)w, (float)x, (float)sum)
                         : fma(w, x, sum);
}

static double dense_sum(const kiln_stencil_desc *d, const double *w,
                        const void *in, const int64_t at[3])
{
  const int64_t rx = d->radius[0], ry = d->radius[1], rz = d->radius[2];
  double sum = 0;

  for (int64_t j = -ry; j <= ry; j++)
    for (int64_t k = -rz; k <= rz; k++)
      for (int64_t i = -rx; i <= rx; i++)
        sum = add_product(
            sum_of(d),
            w[((k + rz) * (2 * ry + 1) + j + ry) * (2 * rx + 1) + i + rx],
            neighbour(d, in, at, i, j, k), sum);
  return sum;
}

static double separable_sum(const kiln_stencil_desc *d, const double *w,
                            const void *in, const int64_t at[3])
{
  const int64_t rx = d->radius[0], ry = d->radius[1], rz = d->radius[2];
  const double *const wy = w + 2 * rx + 1, *const wz = wy + 2 * ry + 1;
  double sum = 0;

  for (int64_t k = -rz; k <= rz; k++) {
    double plane = 0;

    for (int64_t j = -ry; j <= ry; j++) {
      double row = 0;

      for (int64_t i = -rx; i <= rx; i++)
        row = add_product(sum_of(d), w[i + rx], neighbour(d, in, at, i, j, k),
                          row);
      plane =
          d->dims < 2 ? row : add_product(sum_of(d), wy[j + ry], row, plane);
    }
    sum = d->dims < 3 ? plane : add_product(sum_of(d), wz[k + rz], plane, sum);
  }
  return sum;
}

static void set_element(kiln_dtype type, void *data, size_t i, double v)
{
  if (type == KILN_F32)
    ((float *)data)[i] = (float)v;
  else if (type == KILN_F64)
    ((double *)data)[i] = v;
  else
    set_whole(type, data, i, (int64_t)v);
}

/* Function that computes one output element. */
typedef double element_fn(const kiln_stencil_desc *d, const double *w,
                          const void *in, const int64_t at[3]);

/* Returns the contents of the output array after the call. */
static void *expected(const kiln_stencil_desc *d, const test_array *out,
                      const void *in, const double *w, element_fn *element)
{
  void *want = kept(array_read(out));
  int64_t at[3];

  for (at[2] = 0; at[2] < size_of(d, 2); at[2]++)
    for (at[1] = 0; at[1] < size_of(d, 1); at[1]++)
      for (at[0] = 0; at[0] < size_of(d, 0); at[0]++)
        set_element(d->out.type, want,
                    (size_t)at[2] * plane_pitch(d, true) +
                        (size_t)at[1] * row_pitch(d, true) + (size_t)at[0],
                    element(d, w, in, at));
  return want;
}

/* ---- Calls --------------------------------------------------------------- */

static size_t n_weights(const kiln_stencil_desc *d)
{
  size_t n = d->separable ? 0 : 1;

  for (unsigned k = 0; k < d->dims; k++)
    n = d->separable ? n + 2 * d->radius[k] + 1 : n * (2 * d->radius[k] + 1);
  return n;
}

/* Returns weights that a sum of this type can use: integers from -2 to 2, and for
 * f32 and f64 outputs numbers that need rounding. */
static double *random_weights(const kiln_stencil_desc *d, uint64_t *state)
{
  const kiln_dtype type = d->out.type;
  const bool whole = type != KILN_F32 && type != KILN_F64;
  double *w = kept(malloc((n_weights(d) + 1) * sizeof *w));

  for (size_t k = 0; k < n_weights(d); k++) {
    w[k] = (double)(int64_t)(test_random(state) % 5) - 2;
    if (!whole && sum_of(d) >= KILN_F32)
      w[k] = sum_of(d) == KILN_F32 ? (double)(float)(w[k] * 0.1) : w[k] * 0.1;
  }
  return w;
}

/* Makes a call for a desc that has everything but arrays and weights. The arrays
 * start `shift` elements behind an aligned address. */
static operation_call stencil_call(kiln_stencil_desc d, bool on_device,
                                   size_t shift, uint64_t *state)
{
  const kiln_dtype type = d.in.type;
  const size_t n = elements_of(&d, false);
  const bool is_signed = type_is_signed(type) || type_is_float(type);
  void *x = kept(random_wholes(type, n, is_signed ? -3 : 0, 3, state));
  test_array in = array_make(type, n, shift, x, 0), out, device_w;
  double *w = random_weights(&d, state);
  operation_call c;

  ck_assert_uint_le(n, MOST_ELEMENTS);
  out = array_make(d.out.type, elements_of(&d, true), shift, NULL, 0x5a);
  d.in = in.array;
  d.out = out.array;
  if (on_device) {
    device_w = array_make(KILN_F64, n_weights(&d), 0, w, 0);
    d.device_weights = device_w.array;
  } else {
    d.weights = w;
  }
  c = CALL_OF(kiln_stencil, &d);
  call_writes(
      &c, &out,
      expected(&d, &out, x, w, d.separable ? separable_sum : dense_sum));
  return c;
}

/* Returns a desc with the shape of an array. Lines and rows are long enough for
 * strips that the border rule does not concern, also of the smallest elements. */
static kiln_stencil_desc shape(unsigned dims, kiln_dtype type)
{
  static const kiln_stencil_desc of[] = {
      {.dims = 1, .size = {1500}, .radius = {3}},
      {.dims = 2, .size = {1100, 13}, .radius = {2, 1}},
      {.dims = 3, .size = {45, 9, 5}, .radius = {1, 2, 1}},
  };
  kiln_stencil_desc d = of[dims - 1];

  d.in.type = d.out.type = type;
  return d;
}

/* ---- Tests --------------------------------------------------------------- */

/* Every border rule with dense and separable weights, on the host and on the
 * device. */
START_TEST(test_borders)
{
  uint64_t state = (uint64_t)_i;

  for (unsigned dims = 1; dims <= 3; dims++)
    for (unsigned how = 0; how < 3; how++) {
      kiln_stencil_desc d = shape(dims, KILN_F32);

      if ((dims + how + (unsigned)_i) % 2 != 0 && !test_thoroughly())
        continue;
      d.border = (kiln_border)_i;
      d.outside = 2.5;
      d.separable = how == 1;
      ck_call(stencil_call(d, how == 2, 0, &state));
    }
}
END_TEST

/* Every type of element, at aligned and misaligned addresses. */
START_TEST(test_types)
{
  uint64_t state = (uint64_t)_i;
  kiln_stencil_desc d = shape(2, all_types[_i]);

  if (_i % 2 == 0 || test_thoroughly())
    ck_call(stencil_call(d, false, 0, &state));
  ck_call(stencil_call(d, false, 1, &state));
  d = shape(1, all_types[_i]);
  d.border = KILN_MIRROR;
  ck_call(stencil_call(d, true, 0, &state));
}
END_TEST

/* Arrays that are smaller than the radius, and empty arrays. */
START_TEST(test_small)
{
  uint64_t state = (uint64_t)_i;

  for (unsigned k = 0; k < 8; k++) {
    kiln_stencil_desc d = shape(k % 3 + 1, KILN_F32);

    d.border = (kiln_border)_i;
    d.radius[0] = 5;
    d.separable = true;
    for (unsigned axis = 0; axis < d.dims; axis++)
      d.size[axis] = 1 + (k >> axis & 1) * 2;
    ck_call(stencil_call(d, true, 0, &state));
  }
}
END_TEST

START_TEST(test_empty)
{
  const kiln_stencil_desc d = {.in = {.type = KILN_F32},
                               .out = {.type = KILN_F32},
                               .dims = 2,
                               .size = {0, 10},
                               .weights = (const double[]){1}};

  ck_kiln_ok(kiln_stencil(stream, &d, NULL));
}
END_TEST

/* Radii up to the largest one, with rows between the rows of the arrays. */
START_TEST(test_radii)
{
  static const unsigned radius[][2] = {{0, 0},  {1, 1},  {4, 4}, {5, 3},
                                       {16, 1}, {1, 16}, {8, 8}};
  uint64_t state = (uint64_t)_i;
  kiln_stencil_desc d = shape(2, _i % 2 == 0 ? KILN_F32 : KILN_F64);

  d.radius[0] = radius[_i][0];
  d.radius[1] = radius[_i][1];
  d.size[0] = 300;
  d.size[1] = 21;
  d.in_pitch[0] = 308;
  d.out_pitch[0] = 301;
  d.border = KILN_WRAP;
  ck_call(stencil_call(d, false, 0, &state));
  d.separable = true;
  ck_call(stencil_call(d, true, 0, &state));
}
END_TEST

/* Too many weights for the marching kernel. */
START_TEST(test_many_weights)
{
  kiln_stencil_desc d = shape(3, KILN_F32);
  uint64_t state = 7;

  d.size[0] = 20;
  d.size[1] = 3;
  d.radius[0] = 9;
  d.radius[1] = 8;
  d.radius[2] = 8;
  ck_call(stencil_call(d, true, 0, &state));
}
END_TEST

/* Sums of other types than the elements, and the finish expression. */
START_TEST(test_finish)
{
  enum { N = 300 };
  static const uint64_t divisor = 4;
  static const kiln_param param = {"divisor", KILN_U64, &divisor, false};
  uint64_t state = 1;
  uint8_t *x = kept(random_bits(N, &state)), *got;
  test_array in = array_make(KILN_U8, N, 0, x, 0);
  test_array out = array_make(KILN_U8, N, 0, NULL, 0x5a);
  const kiln_stencil_desc d = {.in = in.array,
                               .out = out.array,
                               .dims = 1,
                               .size = {N},
                               .radius = {1},
                               .weights = (const double[]){1, 2, 1},
                               .finish = "b > 200 ? 7 : (a + 2) / (int)divisor",
                               .code = {.params = &param, .n_params = 1}};

  ck_kiln_ok(kiln_stencil(stream, &d, NULL));
  got = kept(array_read(&out));
  for (int i = 0; i < N; i++) {
    const int left = x[i > 0 ? i - 1 : 0], right = x[i + 1 < N ? i + 1 : i];

    ck_assert_int_eq(got[i],
                     x[i] > 200 ? 7 : (left + 2 * x[i] + right + 2) / 4);
  }
}
END_TEST

/* A host weight of 0 excludes its element; a device weight of 0 multiplies it. */
START_TEST(test_weight_of_zero)
{
  static const double w[] = {1, 0, 1};
  static const float x[] = {1, NAN, 2, 3};
  test_array in = array_make(KILN_F32, 4, 0, x, 0);
  test_array out = array_make(KILN_F32, 4, 0, NULL, 0x5a);
  test_array device_w = array_make(KILN_F64, 3, 0, w, 0);
  kiln_stencil_desc d = {.in = in.array,
                         .out = out.array,
                         .dims = 1,
                         .size = {4},
                         .radius = {1},
                         .weights = w};
  float *got;

  ck_kiln_ok(kiln_stencil(stream, &d, NULL));
  got = kept(array_read(&out));
  ck_assert(got[1] == 3 && got[3] == 5);
  ck_assert(isnan(got[0]) && isnan(got[2]));
  d.weights = NULL;
  d.device_weights = device_w.array;
  ck_kiln_ok(kiln_stencil(stream, &d, NULL));
  got = kept(array_read(&out));
  ck_assert(isnan(got[0]) && isnan(got[1]) && isnan(got[2]) && got[3] == 5);
}
END_TEST

static double expression_at(const kiln_stencil_desc *d, const double *w,
                            const void *in, const int64_t at[3])
{
  (void)w;
  return neighbour(d, in, at, -1, 0, 0) +
         2 * neighbour(d, in, at, 2, d->dims > 1 ? -1 : 0, 0) -
         3 * neighbour(d, in, at, 0, 0, d->dims > 2 ? 1 : 0) +
         neighbour(d, in, at, 9, 0, 0) + neighbour(d, in, at, 0, 0, 0) +
         (double)(at[0] + 2 * at[1] + 3 * at[2]);
}

/* User expressions, also with distances beyond the radius. */
START_TEST(test_expressions)
{
  static const char *const expr[] = {
      "at(-1) + 2 * at(2) - 3 * at(0) + at(9) + x + column + 2 * row + "
      "3 * plane",
      "at(-1) + 2 * at(2, -1) - 3 * at(0) + at(9) + x + column + 2 * row + "
      "3 * plane",
      "at(-1) + 2 * at(2, -1) - 3 * at(0, 0, 1) + at(9) + x + column + "
      "2 * row + 3 * plane"};
  uint64_t state = 3;

  for (unsigned dims = 1; dims <= 3; dims++)
    for (unsigned border = 0; border < 4; border++) {
      kiln_stencil_desc d = shape(dims, KILN_F64);
      const size_t n = elements_of(&d, false);
      void *x = kept(random_wholes(KILN_F64, n, -9, 9, &state));
      test_array in = array_make(KILN_F64, n, 0, x, 0);
      test_array out = array_make(KILN_F64, n, 0, NULL, 0x5a);
      operation_call c;

      d.radius[0] = 2;
      d.in = in.array;
      d.out = out.array;
      d.expr = expr[dims - 1];
      d.border = (kiln_border)border;
      d.outside = -4;
      c = CALL_OF(kiln_stencil, &d);
      call_writes(&c, &out, expected(&d, &out, x, NULL, expression_at));
      ck_call(c);
    }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  kiln_stencil_desc d = shape(3, KILN_F32);
  operation_call c;

  d.separable = true;
  c = stencil_call(d, false, 0, &state);
  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_stencil_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  uint64_t state = 9;
  const operation_call c = stencil_call(shape(2, KILN_F32), false, 0, &state);
  const kiln_stencil_desc *d = c.desc;
  const kiln_array in = d->in;
  const double huge[15] = {1e300};
  const bad_argument bad[] = {
      {KILN_EINVAL, "dims is 0", {MEMBER_OF(dims, 0)}},
      {KILN_EINVAL, "dims is 4", {MEMBER_OF(dims, 4)}},
      {KILN_EINVAL, "radius[0] is 17", {MEMBER_OF(radius, {17, 1})}},
      {KILN_EINVAL, "radius[2]", {MEMBER_OF(radius, {1, 1, 1})}},
      {KILN_EINVAL, "size[1]", {MEMBER_OF(size, {8, UINT64_C(1) << 31})}},
      {KILN_EINVAL, "in_pitch[0]", {MEMBER_OF(in_pitch, {1099, 0})}},
      {KILN_EINVAL, "border", {MEMBER_OF(border, (kiln_border)4)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out, in)}},
      {KILN_EINVAL, "one of weights", {MEMBER_OF(weights, NULL)}},
      {KILN_EINVAL, "one of weights", {MEMBER_OF(expr, "x")}},
      {KILN_EINVAL, "weights[0]", {MEMBER_OF(weights, huge)}},
      {KILN_EINVAL, "acc is u8", {MEMBER_OF(acc, KILN_U8)}},
      {KILN_EINVAL,
       "finish",
       {MEMBER_OF(weights, NULL), MEMBER_OF(expr, "x"),
        MEMBER_OF(finish, "a")}},
      {KILN_EINVAL,
       "separable",
       {MEMBER_OF(weights, NULL), MEMBER_OF(expr, "x"),
        MEMBER_OF(separable, true)}},
      {KILN_ECOMPILE, "the finish expression", {MEMBER_OF(finish, "a + c")}},
      {KILN_ECOMPILE,
       "the stencil expression",
       {MEMBER_OF(weights, NULL), MEMBER_OF(expr, "at(1) + c")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

/* Random shapes of a few specialisations. */
static operation_call draw(unsigned long k, uint64_t *state)
{
  kiln_stencil_desc d =
      shape((unsigned)(k % 3) + 1, k % 2 ? KILN_F32 : KILN_I16);
  const uint64_t r = test_random(state);

  d.size[0] = 1 + test_random(state) % (d.dims == 1 ? 5000 : 300);
  if (d.dims > 1)
    d.size[1] = 1 + test_random(state) % 12;
  d.separable = r & 1;
  return stencil_call(d, true, r >> 1 & 1, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 40, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("stencil");
  TCase *t = device_case(s, "stencil");

  tcase_add_loop_test(t, test_borders, 0, 4);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_small, 0, 4);
  tcase_add_test(t, test_empty);
  tcase_add_loop_test(t, test_radii, 0, 7);
  tcase_add_test(t, test_many_weights);
  tcase_add_test(t, test_finish);
  tcase_add_test(t, test_weight_of_zero);
  tcase_add_test(t, test_expressions);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
