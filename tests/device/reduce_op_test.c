/* reduce_op_test.c -- kiln_reduce and the related operations on whole arrays:
 * types, lengths, alignments, operations, order, special values, statistics,
 * memory, and invalid arguments. */
#include "operation_checks.h"
#include "reference_ops.h"

static const size_t lengths[] = {0,   1,    3,    31,   32,   33,
                                 255, 1024, 4095, 4097, 8191, 30011};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* One type of each kind, for tests that would take long to compile for all
 * types. */
static const kiln_dtype some_types[] = {KILN_I8,  KILN_U16, KILN_I32, KILN_U64,
                                        KILN_F16, KILN_F32, KILN_F64};

enum { N_SOME_TYPES = sizeof some_types / sizeof some_types[0] };

static double first_of(const test_array *a)
{
  return value_at(a->array.type, kept(array_read(a)), 0);
}

/* Runs a call with a single number as its result, and returns it. */
static double answer(operation_call c, const test_array *out)
{
  ck_call(c);
  return first_of(out);
}

/* ---- Predefined operations with exact results ---------------------------- */

/* Returns element i as a 64-bit integer. Elements of floating types are small
 * whole numbers. */
static uint64_t as_word(kiln_dtype type, const void *data, size_t i)
{
  if (type == KILN_I64 || type == KILN_U64)
    return ((const uint64_t *)data)[i];
  return (uint64_t)(int64_t)value_at(type, data, i);
}

static operation_call named_call(kiln_op_name op, kiln_dtype type, size_t n,
                                 size_t shift, uint64_t *state)
{
  const bool floating = type_is_float(type);
  const size_t bits = 8 * kiln_dtype_size(type);
  void *x = kept(floating ? random_wholes(type, n, op == KILN_PROD ? 1 : -50,
                                          op == KILN_PROD ? 1 : 50, state)
                          : random_bits(n * kiln_dtype_size(type), state));
  const kiln_dtype out_type = floating && bits == 16 ? KILN_F32 : type;
  test_array in = array_make(type, n, shift, x, 0);
  test_array out = array_make(out_type, 1, 1, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_reduce,
      &(kiln_reduce_desc){
          .x = {.in = {in.array}},
          .n = n,
          .op = {.name = op},
          .out = {out.array.data, floating ? out_type : KILN_DTYPE_NONE}});
  uint64_t want = n > 0 ? as_word(type, x, 0) : 0;
  void *wanted = kept(calloc(1, 8));

  for (size_t i = 1; i < n; i++)
    want = fold_words(op, type, want, as_word(type, x, i));
  set_whole(out_type, wanted, 0, (int64_t)want);
  if (n == 0)
    set_identity(op, out_type, wanted);
  call_writes(&c, &out, wanted);
  return c;
}

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 11 + (uint64_t)_i;

  for (size_t k = 0; k < N_LENGTHS; k++) {
    ck_call(named_call(KILN_SUM, type, lengths[k], k % 3, &state));
    if (k % 3 == 2)
      ck_call(named_call(KILN_MAX, type, lengths[k], 0, &state));
  }
  ck_call(named_call(KILN_SUM, type, 100003, 0, &state));
  ck_call(named_call(KILN_SUM, type, 100003, 1, &state));
}
END_TEST

START_TEST(test_operations)
{
  static const kiln_dtype types[] = {KILN_I8, KILN_U64, KILN_F32};
  uint64_t state = 5;

  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    const kiln_op_name last = type_is_float(types[t]) ? KILN_MAX : KILN_XOR;

    for (kiln_op_name op = KILN_PROD; op <= last; op++) {
      ck_call(named_call(op, types[t], 1, 0, &state));
      ck_call(named_call(op, types[t], 5003, 0, &state));
    }
  }
}
END_TEST

/* The result for an empty array is the identity. */
START_TEST(test_empty)
{
  test_array out = array_make(KILN_F32, 1, 0, NULL, 0x5a);
  const kiln_op ops[] = {{.name = KILN_SUM},
                         {.name = KILN_PROD},
                         {.name = KILN_MIN},
                         {.name = KILN_MAX},
                         {.expr = "a > b ? a : b", .identity = "-7"}};
  static const float want[] = {0, 1, INFINITY, -INFINITY, -7};

  for (size_t k = 0; k < 5; k++) {
    const kiln_reduce_desc desc = {
        .x = {.in = {{0, KILN_F32}}}, .op = ops[k], .out = out.array};

    ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want[k]);
  }
}
END_TEST

/* ---- Wider results, maps, parameters ------------------------------------- */

START_TEST(test_wider)
{
  enum { N = 70001 };
  uint64_t state = 3, want = 0;
  uint8_t *x = kept(random_bits(N, &state));
  test_array in = array_make(KILN_U8, N, 3, x, 0);
  test_array out = array_make(KILN_U64, 1, 0, NULL, 1);
  test_array mean = array_make(KILN_F64, 1, 0, NULL, 1);
  kiln_reduce_desc desc = {.x = {.in = {in.array}}, .n = N, .out = out.array};
  double real;

  for (size_t i = 0; i < N; i++)
    want += x[i];
  real = (double)want;
  ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want);
  desc.out = mean.array;
  ck_writes(CALL_OF(kiln_reduce, &desc), &mean, &real);
}
END_TEST

/* A map of three arrays, each at its own distance from an aligned address, and
 * of the index. */
START_TEST(test_map)
{
  enum { N = 20011 };
  uint64_t state = 3;
  float *x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  int8_t *y = kept(random_wholes(KILN_I8, N, -50, 50, &state));
  double *z = kept(random_wholes(KILN_F64, N, -50, 50, &state));
  const double scale = 3;
  const kiln_param params[] = {{"scale", KILN_F64, &scale, false}};

  for (size_t shift = 0; shift < 3; shift++) {
    test_array a = array_make(KILN_F32, N, shift, x, 0);
    test_array b = array_make(KILN_I8, N, 2 * shift, y, 0);
    test_array c = array_make(KILN_F64, N, shift % 2, z, 0);
    test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
    const kiln_reduce_desc desc = {
        .x = {.in = {a.array, b.array, c.array},
              .map = "half(scale * x * y) + z * (i % 7)",
              .type = KILN_F64},
        .n = N,
        .out = out.array,
        .code = {.preamble =
                     "__device__ double half(double v) { return v / 2; }",
                 .params = params,
                 .n_params = 1}};
    double want = 0;

    for (size_t i = 0; i < N; i++)
      want += 1.5 * (double)x[i] * y[i] + z[i] * (double)(i % 7);
    ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want);
  }
}
END_TEST

/* The map reads the index but no array. */
START_TEST(test_index_only)
{
  test_array out = array_make(KILN_U64, 1, 0, NULL, 1);
  const kiln_reduce_desc desc = {.x = {.map = "i * i", .type = KILN_U64},
                                 .n = 12345,
                                 .out = {.data = out.array.data}};
  uint64_t want = 0;

  for (uint64_t i = 0; i < 12345; i++)
    want += i * i;
  ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want);
}
END_TEST

/* ---- Order --------------------------------------------------------------- */

START_TEST(test_order)
{
  static const size_t most[] = {1,    5,     33,    512,   4096,
                                8193, 16384, 40007, 300017};
  uint64_t state = 17;

  for (size_t k = 0; k < 4 * sizeof most / sizeof most[0]; k++) {
    const size_t n = most[k / 4];
    const bool portable = k % 2 != 0;
    uint32_t *x = kept(random_bits(4 * n, &state));
    uint32_t want = 1u << 16;
    test_array in = array_make(KILN_U32, n, k / 2 % 2, x, 0);
    test_array out = array_make(KILN_U32, 1, 0, NULL, 1);
    const kiln_reduce_desc desc = {
        .x = {.in = {in.array}, .map = "x | 65536", .type = KILN_U32},
        .n = n,
        .op = {.expr = then_text, .identity = "65536"},
        .out = out.array,
        .portable = portable};

    for (size_t i = 0; i < n; i++)
      want = then(want, x[i] | 65536);
    ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want);
  }
}
END_TEST

/* A user's commutative operation on f64 and f16. */
START_TEST(test_commutative)
{
  enum { N = 9001 };
  uint64_t state = 17;
  double *x = kept(random_wholes(KILN_F64, N, -99, 99, &state)), want = 0;
  uint16_t *h = kept(random_wholes(KILN_F16, N, -99, 99, &state));
  test_array in = array_make(KILN_F64, N, 1, x, 0);
  test_array half = array_make(KILN_F16, N, 1, h, 0);
  test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
  test_array out_half = array_make(KILN_F16, 1, 0, NULL, 1);
  kiln_reduce_desc desc = {
      .x = {.in = {in.array}},
      .n = N,
      .op = {.expr = "fabs(a) < fabs(b) ? fabs(b) : fabs(a)",
             .identity = "0",
             .commutative = true},
      .out = out.array};
  double want_half = 0;

  for (size_t i = 0; i < N; i++) {
    want = fmax(want, fabs(x[i]));
    want_half = fmax(want_half, fabs(half_value(h[i])));
  }
  ck_writes(CALL_OF(kiln_reduce, &desc), &out, &want);
  desc.x.in[0] = half.array;
  desc.out = out_half.array;
  ck_assert_double_eq(answer(CALL_OF(kiln_reduce, &desc), &out_half),
                      want_half);
}
END_TEST

/* ---- Floating point ------------------------------------------------------ */

static float *random_floats(size_t n, uint64_t *state)
{
  float *x = kept(malloc(n * sizeof *x + 1));

  for (size_t i = 0; i < n; i++)
    x[i] = (float)(int64_t)(test_random(state) >> 30) * 0x1p-34f - 0.3f;
  return x;
}

static float sum_of(const float *x, size_t n, size_t shift, bool portable)
{
  test_array in = array_make(KILN_F32, n, shift, x, 0);
  test_array out = array_make(KILN_F32, 1, 0, NULL, 1);
  const kiln_reduce_desc desc = {
      .x = {.in = {in.array}}, .n = n, .out = out.array, .portable = portable};

  return (float)answer(CALL_OF(kiln_reduce, &desc), &out);
}

/* Reduces in the order that the header promises for portable results of one f32
 * array. */
static float portable_model(const float *x, size_t n)
{
  static float lane[256][4], chunk[4096], in_round[8 * 32];
  size_t size = 1 << 14, chunks = 0;

  while (n / size >= 2048)
    size *= 2;
  for (size_t from = 0; from == 0 || from + 4 <= n; from += size, chunks++) {
    const size_t end = from + size < n / 4 * 4 ? from + size : n / 4 * 4;
    float value[256];

    memset(lane, 0, sizeof lane);
    for (size_t i = from; i < end; i++)
      lane[(i - from) / 4 % 256][i % 4] += x[i];
    for (size_t t = 0; t < 256; t++) {
      value[t] = (lane[t][0] + lane[t][1]) + (lane[t][2] + lane[t][3]);
      if (from + size >= n / 4 * 4)
        value[t] += t < n % 4 ? x[n / 4 * 4 + t] : 0;
    }
    for (size_t w = 0; w < 8; w++)
      for (size_t step = 1; step < 32; step *= 2)
        for (size_t t = 32 * w; t + step < 32 * w + 32; t += 2 * step)
          value[t] += value[t + step];
    for (size_t step = 1; step < 8; step *= 2)
      for (size_t w = 0; w + step < 8; w += 2 * step)
        value[32 * w] += value[32 * (w + step)];
    chunk[chunks] = value[0];
  }
  if (chunks == 1)
    return chunk[0];
  memset(in_round, 0, sizeof in_round);
  for (size_t k = 0; k < chunks; k++)
    in_round[k % 32] += chunk[k];
  for (size_t step = 1; step < 32; step *= 2)
    for (size_t t = 0; t + step < 32; t += 2 * step)
      in_round[t] += in_round[t + step];
  return in_round[0];
}

START_TEST(test_float_sum)
{
  static const size_t sizes[] = {1, 77, 5003, 16384, 70001, 1100003};
  uint64_t state = 99;

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    const size_t n = sizes[k];
    float *x = random_floats(n, &state);
    const float once = sum_of(x, n, 0, false), again = sum_of(x, n, 0, false);
    const float fixed = sum_of(x, n, 0, true), moved = sum_of(x, n, 1, true);
    double want = 0, size = 0;

    for (size_t i = 0; i < n; i++) {
      want += (double)x[i];
      size += fabs((double)x[i]);
    }
    ck_assert_int_eq(memcmp(&once, &again, 4), 0);
    ck_assert_int_eq(memcmp(&fixed, &moved, 4), 0);
    ck_assert_double_le(fabs((double)once - want), 1e-6 * size);
    ck_assert_msg(fixed == portable_model(x, n), "%zu: %.9g, not %.9g", n,
                  (double)fixed, (double)portable_model(x, n));
  }
}
END_TEST

/* One element is a special value; the others are 1. */
START_TEST(test_special)
{
  enum { N = 3001 };
  static const struct {
    float put, sum, min, max;
  } c[] = {{NAN, NAN, NAN, NAN},
           {INFINITY, INFINITY, 1, INFINITY},
           {-INFINITY, -INFINITY, -INFINITY, 1},
           {1e-45f, N - 1, 1e-45f, 1},
           {-0.0f, N - 1, -0.0f, 1}};
  float x[N];

  for (size_t k = 0; k < sizeof c / sizeof c[0]; k++)
    for (kiln_op_name op = KILN_SUM; op <= KILN_MAX; op++) {
      const float want = op == KILN_SUM   ? c[k].sum
                         : op == KILN_MIN ? c[k].min
                                          : c[k].max;
      test_array in, out;
      kiln_reduce_desc desc = {.n = N, .op = {.name = op}};
      float got;

      if (op == KILN_PROD)
        continue;
      for (size_t i = 0; i < N; i++)
        x[i] = i == 1700 + k ? c[k].put : 1;
      in = array_make(KILN_F32, N, k % 2, x, 0);
      out = array_make(KILN_F32, 1, 0, NULL, 1);
      desc.x.in[0] = in.array;
      desc.out = out.array;
      got = (float)answer(CALL_OF(kiln_reduce, &desc), &out);
      if (want != want)
        ck_assert(got != got);
      else
        ck_assert_msg(memcmp(&got, &want, 4) == 0, "%zu op %d: %g", k, (int)op,
                      (double)got);
    }
}
END_TEST

/* ---- Positions of minima and maxima -------------------------------------- */

static bool beyond(bool greatest, double v, double best)
{
  if (best != best)
    return false;
  return v != v || (greatest ? v > best : v < best);
}

static void check_arg(kiln_dtype type, const void *x, size_t n, size_t shift,
                      kiln_dtype index_type, int from, int to)
{
  test_array in = array_make(type, n, shift, x, 0);

  for (int greatest = from; greatest <= to; greatest++) {
    test_array value = array_make(type, 1, 0, NULL, 0x5a);
    test_array index = array_make(index_type, 1, 1, NULL, 0x5a);
    const kiln_arg_reduce_desc desc = {.x = {.in = {in.array}},
                                       .n = n,
                                       .op = greatest ? KILN_MAX : KILN_MIN,
                                       .value = value.array,
                                       .index = index.array};
    size_t want = 0;
    double got, extreme;

    for (size_t i = 1; i < n; i++)
      if (beyond(greatest, value_at(type, x, i), value_at(type, x, want)))
        want = i;
    extreme = value_at(type, x, want);
    got = answer(CALL_OF(kiln_arg_reduce, &desc), &value);
    ck_assert_msg(first_of(&index) == (double)want,
                  "%s, n %zu, greatest %d: at %g, not %zu",
                  kiln_dtype_name(type), n, greatest, first_of(&index), want);
    ck_assert(got == extreme || (isnan(got) && isnan(extreme)));
  }
}

START_TEST(test_arg_types)
{
  static const kiln_dtype indexes[] = {KILN_U32, KILN_I64, KILN_I32, KILN_U64};
  static const size_t sizes[] = {1, 2, 33, 1000, 4099, 40009};
  const kiln_dtype type = some_types[_i];
  uint64_t state = 23;

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    void *few = kept(random_wholes(type, sizes[k], 0, k % 2 ? 3 : 100, &state));

    check_arg(type, few, sizes[k], 0, indexes[_i % 4], 0, 0);
    check_arg(type, few, sizes[k], 1 + k % 2, indexes[_i % 4], 1, 1);
  }
}
END_TEST

START_TEST(test_arg_special)
{
  enum { N = 5001 };
  static const float put[][3] = {{NAN, 3, NAN},           {-INFINITY, 0, 0},
                                 {INFINITY, INFINITY, 1}, {0, -0.0f, 0},
                                 {-0.0f, 0, 1e-45f},      {0, NAN, INFINITY}};
  static const float rest[] = {0, -INFINITY, INFINITY};
  float x[N];

  for (size_t k = 0; k < sizeof put / sizeof put[0]; k++)
    for (size_t r = 0; r < 3; r++) {
      for (size_t i = 0; i < N; i++)
        x[i] = rest[r];
      x[4000] = put[k][0];
      x[17] = put[k][1];
      x[4998] = put[k][2];
      check_arg(KILN_F32, x, N, 0, KILN_U64, 0, 1);
      check_arg(KILN_F32, x + 1, N - 1, 3, KILN_U64, 0, 1);
      check_arg(KILN_F32, x + N - 7, 7, 3, KILN_U64, 0, 1);
    }
}
END_TEST

START_TEST(test_arg_empty)
{
  test_array value = array_make(KILN_I32, 1, 0, NULL, 0x5a);
  test_array index = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  kiln_arg_reduce_desc desc = {.x = {.in = {{0, KILN_I32}}},
                               .op = KILN_MAX,
                               .value = value.array,
                               .index = index.array};
  const int32_t least = INT32_MIN;
  const uint64_t none = UINT64_MAX;
  operation_call c = CALL_OF(kiln_arg_reduce, &desc);

  call_writes(&c, &value, &least);
  call_writes(&c, &index, &none);
  ck_call(c);
  desc.value = (kiln_array){0};
  ck_writes(CALL_OF(kiln_arg_reduce, &desc), &index, &none);
}
END_TEST

/* ---- Statistics ---------------------------------------------------------- */

static void near(double got, double want, double relative)
{
  ck_assert_msg(fabs(got - want) <= relative * fabs(want), "%.17g, not %.17g",
                got, want);
}

START_TEST(test_dot_distance)
{
  const kiln_dtype type = some_types[_i];
  const size_t n = 7003;
  uint64_t state = 7;
  void *x = kept(random_wholes(type, n, 0, 9, &state));
  void *y = kept(random_wholes(type, n, 0, 9, &state));
  test_array a = array_make(type, n, 1, x, 0);
  test_array b = array_make(type, n, 2, y, 0);
  test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
  const kiln_dot_desc dot = {a.array, b.array, n, out.array, false};
  double want[4] = {0}, square = 0;

  for (size_t i = 0; i < n; i++) {
    const double u = value_at(type, x, i), v = value_at(type, y, i);

    want[0] += u * v;
    square += (u - v) * (u - v);
    want[KILN_L1 + 1] += fabs(u - v);
    want[KILN_LINF + 1] = fmax(want[KILN_LINF + 1], fabs(u - v));
  }
  want[KILN_L2 + 1] = sqrt(square);
  ck_assert_double_eq(answer(CALL_OF(kiln_dot, &dot), &out), want[0]);
  for (kiln_metric m = KILN_L2; m <= KILN_LINF; m++) {
    const kiln_distance_desc desc = {a.array, b.array,   n,
                                     m,       out.array, m == KILN_L1};

    near(answer(CALL_OF(kiln_distance, &desc), &out), want[m + 1], 1e-14);
  }
}
END_TEST

START_TEST(test_norm)
{
  static const struct {
    double a, b, c, norm;
  } cases[] = {{3, 4, 0, 5},
               {3e300, 4e300, 1, 5e300},
               {3e-300, 4e-300, 0, 5e-300},
               {3e-300, 4e-300, 1, 1},
               {3e-160, 4e-160, 1e-154, 1.0000000000125e-154},
               {4.9e-324, 0, 0, 4.9e-324},
               {INFINITY, 1, 0, INFINITY},
               {-INFINITY, 1e300, 1e-300, INFINITY},
               {0, 0, 0, 0}};
  enum { N = 2001 };
  static double x[N];
  double norm;
  test_array in = array_make(KILN_F64, N, 1, NULL, 0);
  test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
  kiln_norm_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = {.data = out.array.data}};

  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    x[1] = cases[k].a;
    x[1200] = cases[k].b;
    x[2000] = cases[k].c;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, sizeof x));
    norm = answer(CALL_OF(kiln_norm, &desc), &out);
    if (isinf(cases[k].norm))
      ck_assert_double_eq(norm, cases[k].norm);
    else
      near(norm, cases[k].norm, 1e-14);
  }
  x[7] = NAN;
  ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, sizeof x));
  ck_assert(isnan(answer(CALL_OF(kiln_norm, &desc), &out)));
}
END_TEST

static void check_moments(kiln_dtype type, const void *x, size_t n,
                          size_t shift, double correction, double tolerance)
{
  test_array in = array_make(type, n, shift, x, 0);
  test_array mean = array_make(KILN_F64, 1, 0, NULL, 1);
  test_array variance = array_make(KILN_F64, 1, 0, NULL, 1);
  const kiln_mean_variance_desc desc = {.x = {.in = {in.array}},
                                        .n = n,
                                        .mean = mean.array,
                                        .variance = variance.array,
                                        .correction = correction,
                                        .portable = n % 2 != 0};
  long double sum = 0, squares = 0, m;

  for (size_t i = 0; i < n; i++)
    sum += (long double)value_at(type, x, i);
  m = sum / (long double)n;
  for (size_t i = 0; i < n; i++) {
    const long double d = (long double)value_at(type, x, i) - m;

    squares += d * d;
  }
  ck_kiln_ok(kiln_mean_variance(stream, &desc, NULL));
  near(first_of(&mean), (double)m, tolerance);
  if ((double)n > correction)
    near(first_of(&variance),
         (double)(squares / ((long double)n - (long double)correction)),
         tolerance);
}

START_TEST(test_moments)
{
  enum { N = 40003 };
  uint64_t state = 77;
  double *x = kept(malloc(N * sizeof *x));

  for (size_t t = 0; t < N_SOME_TYPES; t++) {
    void *small = kept(random_wholes(some_types[t], 3001, 0, 100, &state));

    check_moments(some_types[t], small, 3001, t % 3, (double)(t % 2), 1e-12);
  }
  for (size_t i = 0; i < N; i++)
    x[i] = 1e9 + (double)(test_random(&state) >> 40) * 0x1p-24;
  /* the naive formula would lose every digit */
  check_moments(KILN_F64, x, N, 0, 1, 1e-9);
  check_moments(KILN_F64, x, 1, 1, 0, 0);
  x[0] = -1e10; /* as a common shift this element would cost every digit */
  check_moments(KILN_F64, x, N, 1, 1, 1e-9);
  for (size_t i = 0; i < N; i++)
    x[i] = 0.1;
  {
    test_array in = array_make(KILN_F64, N, 0, x, 0);
    test_array variance = array_make(KILN_F64, 1, 0, NULL, 1);
    const kiln_mean_variance_desc desc = {
        .x = {.in = {in.array}}, .n = N, .variance = variance.array};

    /* The variance of equal elements must be exactly 0. */
    ck_assert_double_eq(answer(CALL_OF(kiln_mean_variance, &desc), &variance),
                        0);
  }
}
END_TEST

START_TEST(test_moments_special)
{
  double x[1000] = {0};
  test_array in = array_make(KILN_F64, 1000, 0, NULL, 0);
  test_array mean = array_make(KILN_F32, 1, 0, NULL, 1);
  test_array variance = array_make(KILN_F64, 1, 0, NULL, 1);
  kiln_mean_variance_desc desc = {
      .x = {.in = {in.array}}, .mean = mean.array, .variance = variance.array};

  ck_kiln_ok(kiln_mean_variance(stream, &desc, NULL));
  ck_assert(isnan(first_of(&mean)) && isnan(first_of(&variance)));
  x[0] = x[700] = INFINITY;
  ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, sizeof x));
  desc.n = 1000;
  ck_kiln_ok(kiln_mean_variance(stream, &desc, NULL));
  ck_assert_double_eq(first_of(&mean), (double)INFINITY);
  ck_assert(isnan(first_of(&variance)));
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 1;
  const operation_call c = named_call(KILN_SUM, KILN_U32, 50021, 0, &state);

  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

/* ---- Bad calls ----------------------------------------------------------- */

#define MEMBER_OF(member, ...) MEMBER(kiln_reduce_desc, member, __VA_ARGS__)

START_TEST(test_bad)
{
  uint64_t state = 1;
  const operation_call c = named_call(KILN_SUM, KILN_F32, 100, 0, &state);
  const kiln_reduce_desc *desc = c.desc;
  const kiln_input x = desc->x;
  const CUdeviceptr in = x.in[0].data;
  const bad_argument bad[] = {
      {KILN_EINVAL, "neither an array nor a map", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "out", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "not aligned", {MEMBER_OF(x.in[0].data, in + 2)}},
      {KILN_EINVAL, "x is NULL", {MEMBER_OF(x.in[0].data, 0)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out.data, in + 8)}},
      {KILN_EINVAL, "bitwise", {MEMBER_OF(op.name, KILN_XOR)}},
      {KILN_EINVAL, "op.name", {MEMBER_OF(op.name, (kiln_op_name)9)}},
      {KILN_EINVAL, "op.expr needs op.identity", {MEMBER_OF(op.expr, "a")}},
      {KILN_EINVAL,
       "a map without arrays needs .type",
       {MEMBER_OF(x.in[0], {0}), MEMBER_OF(x.map, "i")}},
      {KILN_EINVAL, "address space", {MEMBER_OF(n, UINT64_MAX)}},
      {KILN_ECOMPILE,
       "the operation does not compile: line 1",
       {MEMBER_OF(op.expr, "a + c"), MEMBER_OF(op.identity, "0")}},
  };
  const kiln_arg_reduce_desc no_op = {.x = x, .n = 10, .value = desc->out};
  const kiln_mean_variance_desc nothing = {.x = x, .n = 10};
  const kiln_norm_desc whole = {
      .x = x, .n = 9, .out = {desc->out.data, KILN_I32}};

  ck_bad_arguments(c, bad);
  ck_kiln_is(kiln_arg_reduce(stream, &no_op, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_mean_variance(stream, &nothing, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_norm(stream, &whole, NULL), KILN_EINVAL);
  ck_untouched(&c);
}
END_TEST

/* ---- Random calls -------------------------------------------------------- */

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = all_types[test_random(state) % N_ALL_TYPES];
  const size_t n = test_random(state) % 3 == 0 ? test_random(state) % 40000
                                               : test_random(state) % 500;
  const kiln_op_name op = test_random(state) % 2 ? KILN_SUM : KILN_MAX;

  (void)k;
  return named_call(op, type, n, op == KILN_MAX ? 0 : test_random(state) % 8,
                    state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 200, 4711);
}
END_TEST

/* The distance of two empty arrays must be neither negative nor NaN. */
START_TEST(test_distance_of_nothing)
{
  static const kiln_dtype types[] = {KILN_F16, KILN_F32, KILN_F64};

  for (int metric = KILN_L1; metric <= KILN_LINF; metric++)
    for (size_t k = 0; k < 3; k++) {
      test_array x = array_make(types[k], 1, 0, NULL, 1);
      test_array out = array_make(types[k], 1, 0, NULL, 1);
      const kiln_distance_desc desc = {.x = x.array,
                                       .y = x.array,
                                       .metric = (kiln_metric)metric,
                                       .out = out.array};

      ck_assert_double_eq(answer(CALL_OF(kiln_distance, &desc), &out), 0);
    }
}
END_TEST

/* Squares that overflow must give an infinite variance, as in NumPy; infinite
 * samples must still give NaN. */
START_TEST(test_variance_overflow)
{
  static const double samples[][3] = {
      {1e200, -1e200, 1e200}, {1e160, 0, 1e200}, {1, INFINITY, 2}};

  for (size_t k = 0; k < 3; k++)
    for (size_t n = 2; n <= 3; n++) {
      test_array x = array_make(KILN_F64, n, 0, samples[k], 0);
      test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
      const kiln_mean_variance_desc desc = {
          .x = {.in = {x.array}}, .n = n, .variance = out.array};
      double got;

      if (k == 1 && n == 2)
        continue;
      got = answer(CALL_OF(kiln_mean_variance, &desc), &out);
      if (k < 2)
        ck_assert_double_eq(got, INFINITY);
      else
        ck_assert_msg(isnan(got), "%g", got);
    }
}
END_TEST

/* Kernels pad with the identity. This operation makes NaN of two identities, so
 * they must not be combined. */
START_TEST(test_identity_with_itself)
{
  static const size_t some_lengths[] = {1, 33, 1000, 70001};

  for (size_t k = 0; k < sizeof some_lengths / sizeof some_lengths[0]; k++) {
    const size_t n = some_lengths[k];
    test_array x = array_make(KILN_F64, n, 0, NULL, 0);
    test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
    const kiln_reduce_desc desc = {
        .x = {.in = {x.array}},
        .n = n,
        .op = {.expr = "fmax(a, b) + log1p(exp(fmin(a, b) - fmax(a, b)))",
               .identity = "-INFINITY",
               .commutative = true},
        .out = out.array};
    const double got = answer(CALL_OF(kiln_reduce, &desc), &out);

    ck_assert_msg(fabs(got - log((double)n)) < 1e-9, "%zu: %g", n, got);
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("reduce_op");
  TCase *t = device_case(s, "reduce_op");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_operations);
  tcase_add_test(t, test_empty);
  tcase_add_test(t, test_wider);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_index_only);
  tcase_add_test(t, test_order);
  tcase_add_test(t, test_commutative);
  tcase_add_test(t, test_float_sum);
  tcase_add_test(t, test_special);
  tcase_add_loop_test(t, test_arg_types, 0, N_SOME_TYPES);
  tcase_add_test(t, test_arg_special);
  tcase_add_test(t, test_arg_empty);
  tcase_add_loop_test(t, test_dot_distance, 0, N_SOME_TYPES);
  tcase_add_test(t, test_norm);
  tcase_add_test(t, test_moments);
  tcase_add_test(t, test_moments_special);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_distance_of_nothing);
  tcase_add_test(t, test_variance_overflow);
  tcase_add_test(t, test_identity_with_itself);
  return s;
}

DEVICE_TEST_MAIN(suite)
