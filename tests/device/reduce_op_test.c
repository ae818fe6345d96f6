/* reduce_op_test.c -- kiln_reduce and its like on whole arrays: types, lengths,
 * alignments, operations, order, special values, statistics, memory, bad calls. */
#include "ops_fixture.h"

static const size_t lengths[] = {0,   1,    3,    31,   32,   33,
                                 255, 1024, 4095, 4097, 8191, 30011};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* One of each class, where all would only take time to compile. */
static const kiln_dtype some_types[] = {KILN_I8,  KILN_U16, KILN_I32, KILN_U64,
                                        KILN_F16, KILN_F32, KILN_F64};

enum { N_SOME_TYPES = sizeof some_types / sizeof some_types[0] };

/* ---- Named operations, exact ------------------------------------------------------ */

/* Integers as they wrap, of any type; floating types hold small whole numbers. */
static uint64_t as_word(kiln_dtype type, const void *data, size_t i)
{
  if (type == KILN_I64 || type == KILN_U64)
    return ((const uint64_t *)data)[i];
  return (uint64_t)(int64_t)value_at(type, data, i);
}

static uint64_t fold_words(kiln_op_name op, kiln_dtype type, uint64_t a,
                           uint64_t b)
{
  const bool less = type_is_signed(type) ? (int64_t)a < (int64_t)b : a < b;

  switch (op) {
  case KILN_SUM:
    return a + b;
  case KILN_PROD:
    return a * b;
  case KILN_MIN:
    return less ? a : b;
  case KILN_MAX:
    return less ? b : a;
  case KILN_AND:
    return a & b;
  case KILN_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

/* The bits that an integer type keeps. */
static uint64_t kept(kiln_dtype type, uint64_t v)
{
  const size_t bits = 8 * kiln_dtype_size(type);

  return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static void check_named(kiln_op_name op, kiln_dtype type, size_t n,
                        size_t shift, uint64_t *state)
{
  const bool floating = type_is_float(type);
  void *x = floating ? random_wholes(type, n, op == KILN_PROD ? 1 : -50,
                                     op == KILN_PROD ? 1 : 50, state)
                     : random_bits(n * kiln_dtype_size(type), state);
  const kiln_dtype out_type = floating && kiln_dtype_size(type) == 2 ? KILN_F32
                              : floating                             ? type
                                         : KILN_DTYPE_NONE;
  test_array in = array_make(type, n, shift, x, 0);
  test_array out = array_make(floating ? out_type : type, 1, 1, NULL, 0x5a);
  kiln_reduce_desc desc = {
      .x = {.in = {in.array}}, .n = n, .op = {.name = op}, .out = out.array};
  uint64_t want;
  void *got;

  desc.out.type = out_type;
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  got = array_read(&out);
  if (n > 0) {
    want = as_word(type, x, 0);
    for (size_t i = 1; i < n; i++)
      want = fold_words(op, type, want, as_word(type, x, i));
    if (floating)
      ck_assert_msg(value_at(out.array.type, got, 0) == (double)(int64_t)want,
                    "%s of %zu %s at +%zu: %g, not %g", "op", n,
                    kiln_dtype_name(type), shift,
                    value_at(out.array.type, got, 0), (double)(int64_t)want);
    else
      ck_assert_msg(kept(type, as_word(type, got, 0)) == kept(type, want),
                    "op %d of %zu %s at +%zu: %llx, not %llx", (int)op, n,
                    kiln_dtype_name(type), shift,
                    (unsigned long long)kept(type, as_word(type, got, 0)),
                    (unsigned long long)kept(type, want));
  }
  free(got);
  free(x);
  array_free(&in);
  array_free(&out);
}

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 11 + (uint64_t)_i;

  for (size_t k = 0; k < N_LENGTHS; k++) {
    check_named(KILN_SUM, type, lengths[k], k % 3, &state);
    if (k % 3 == 2)
      check_named(KILN_MAX, type, lengths[k], 0, &state);
  }
  check_named(KILN_SUM, type, 100003, 0, &state);
  check_named(KILN_SUM, type, 100003, 1, &state);
}
END_TEST

START_TEST(test_operations)
{
  static const kiln_dtype types[] = {KILN_I8, KILN_U64, KILN_F32};
  uint64_t state = 5;

  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    const kiln_op_name last = type_is_float(types[t]) ? KILN_MAX : KILN_XOR;

    for (kiln_op_name op = KILN_PROD; op <= last; op++) {
      check_named(op, types[t], 1, 0, &state);
      check_named(op, types[t], 5003, 0, &state);
    }
  }
}
END_TEST

/* Empty: the identity. */
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
    float *got;

    ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
    got = array_read(&out);
    ck_assert_float_eq(*got, want[k]);
    free(got);
  }
  array_free(&out);
}
END_TEST

/* ---- Wider results, maps, parameters --------------------------------------------------- */

START_TEST(test_wider)
{
  enum { N = 70001 };
  uint64_t state = 3, want = 0;
  uint8_t *x = random_bits(N, &state);
  test_array in = array_make(KILN_U8, N, 3, x, 0);
  test_array out = array_make(KILN_U64, 1, 0, NULL, 1);
  test_array mean = array_make(KILN_F64, 1, 0, NULL, 1);
  kiln_reduce_desc desc = {.x = {.in = {in.array}}, .n = N, .out = out.array};
  uint64_t *got;
  double *got_f;

  for (size_t i = 0; i < N; i++)
    want += x[i];
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  desc.out = mean.array;
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  got = array_read(&out);
  got_f = array_read(&mean);
  ck_assert_uint_eq(*got, want);
  ck_assert_double_eq(*got_f, (double)want);
  free(got);
  free(got_f);
  free(x);
  array_free(&in);
  array_free(&out);
  array_free(&mean);
}
END_TEST

/* Three arrays, each at its own distance from a boundary, and the index. */
START_TEST(test_map)
{
  enum { N = 20011 };
  uint64_t state = 3;
  float *x = random_wholes(KILN_F32, N, -50, 50, &state);
  int8_t *y = random_wholes(KILN_I8, N, -50, 50, &state);
  double *z = random_wholes(KILN_F64, N, -50, 50, &state);
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
    double want = 0, *got;

    for (size_t i = 0; i < N; i++)
      want += 1.5 * (double)x[i] * y[i] + z[i] * (double)(i % 7);
    ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
    got = array_read(&out);
    ck_assert_double_eq(*got, want);
    free(got);
    array_free(&a);
    array_free(&b);
    array_free(&c);
    array_free(&out);
  }
  free(x);
  free(y);
  free(z);
}
END_TEST

/* No array at all. */
START_TEST(test_index_only)
{
  test_array out = array_make(KILN_U64, 1, 0, NULL, 1);
  const kiln_reduce_desc desc = {.x = {.map = "i * i", .type = KILN_U64},
                                 .n = 12345,
                                 .out = {.data = out.array.data}};
  uint64_t *got, want = 0;

  for (uint64_t i = 0; i < 12345; i++)
    want += i * i;
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  got = array_read(&out);
  ck_assert_uint_eq(*got, want);
  free(got);
  array_free(&out);
}
END_TEST

/* ---- Order -------------------------------------------------------------------------------- */

/* x -> high * x + low, modulo 2^16, one after the other: associative, and any
 * change of the order shows. */
static uint32_t then(uint32_t a, uint32_t b)
{
  const uint32_t high = (a >> 16) * (b >> 16);
  const uint32_t low = (b >> 16) * (a & 0xffff) + (b & 0xffff);

  return high << 16 | (low & 0xffff);
}

static const char then_text[] = "(a >> 16) * (b >> 16) << 16 | "
                                "(((b >> 16) * (a & 0xffff) + (b & 0xffff)) & "
                                "0xffff)";

START_TEST(test_order)
{
  static const size_t most[] = {1,    5,     33,    512,   4096,
                                8193, 16384, 40007, 300017};
  uint64_t state = 17;

  for (size_t k = 0; k < 4 * sizeof most / sizeof most[0]; k++) {
    const size_t n = most[k / 4];
    const bool portable = k % 2 != 0;
    uint32_t *x = random_bits(4 * n, &state);
    uint32_t want = 1u << 16, *got;
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
    ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
    got = array_read(&out);
    ck_assert_msg(*got == want, "%zu, shift %zu, portable %d: %x, not %x", n,
                  k / 2 % 2, portable, *got, want);
    free(got);
    free(x);
    array_free(&in);
    array_free(&out);
  }
}
END_TEST

/* A user's operation that commutes, on f64 and f16. */
START_TEST(test_commutative)
{
  enum { N = 9001 };
  uint64_t state = 17;
  double *x = random_wholes(KILN_F64, N, -99, 99, &state), want = 0;
  uint16_t *h = random_wholes(KILN_F16, N, -99, 99, &state);
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
  double *got, want_half = 0;
  uint16_t *got_half;

  for (size_t i = 0; i < N; i++) {
    want = fmax(want, fabs(x[i]));
    want_half = fmax(want_half, fabs(half_value(h[i])));
  }
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  desc.x.in[0] = half.array;
  desc.out = out_half.array;
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  got = array_read(&out);
  got_half = array_read(&out_half);
  ck_assert_double_eq(*got, want);
  ck_assert_double_eq(half_value(*got_half), want_half);
  free(got);
  free(got_half);
  free(x);
  free(h);
  array_free(&in);
  array_free(&half);
  array_free(&out);
  array_free(&out_half);
}
END_TEST

/* ---- Floating point -------------------------------------------------------------------------- */

static float *random_floats(size_t n, uint64_t *state)
{
  float *x = malloc(n * sizeof *x + 1);

  ck_assert_ptr_nonnull(x);
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
  float *got, sum;

  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  got = array_read(&out);
  sum = *got;
  free(got);
  array_free(&in);
  array_free(&out);
  return sum;
}

/* The order that the header promises for portable results: f32, one array. */
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
    free(x);
  }
}
END_TEST

/* One special value among ordinary ones. */
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
      float *got;

      if (op == KILN_PROD)
        continue;
      for (size_t i = 0; i < N; i++)
        x[i] = i == 1700 + k ? c[k].put : 1;
      in = array_make(KILN_F32, N, k % 2, x, 0);
      out = array_make(KILN_F32, 1, 0, NULL, 1);
      desc.x.in[0] = in.array;
      desc.out = out.array;
      ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
      got = array_read(&out);
      if (want != want)
        ck_assert(*got != *got);
      else
        ck_assert_msg(memcmp(got, &want, 4) == 0, "%zu op %d: %g", k, (int)op,
                      (double)*got);
      free(got);
      array_free(&in);
      array_free(&out);
    }
}
END_TEST

/* ---- Where the extremes are -------------------------------------------------------------------- */

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
    void *got_value, *got_index;
    size_t want = 0;

    for (size_t i = 1; i < n; i++)
      if (beyond(greatest, value_at(type, x, i), value_at(type, x, want)))
        want = i;
    ck_kiln_ok(kiln_arg_reduce(stream, &desc, NULL));
    got_value = array_read(&value);
    got_index = array_read(&index);
    ck_assert_msg(value_at(index_type, got_index, 0) == (double)want,
                  "%s, n %zu, greatest %d: at %g, not %zu",
                  kiln_dtype_name(type), n, greatest,
                  value_at(index_type, got_index, 0), want);
    if (value_at(type, x, want) == value_at(type, x, want))
      ck_assert(value_at(type, got_value, 0) == value_at(type, x, want));
    else
      ck_assert(value_at(type, got_value, 0) != value_at(type, got_value, 0));
    free(got_value);
    free(got_index);
    array_free(&value);
    array_free(&index);
  }
  array_free(&in);
}

START_TEST(test_arg_types)
{
  static const kiln_dtype indexes[] = {KILN_U32, KILN_I64, KILN_I32, KILN_U64};
  static const size_t sizes[] = {1, 2, 33, 1000, 4099, 40009};
  const kiln_dtype type = some_types[_i];
  uint64_t state = 23;

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    void *few = random_wholes(type, sizes[k], 0, k % 2 ? 3 : 100, &state);

    check_arg(type, few, sizes[k], 0, indexes[_i % 4], 0, 0);
    check_arg(type, few, sizes[k], 1 + k % 2, indexes[_i % 4], 1, 1);
    free(few);
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
  int32_t *got_value;
  uint64_t *got_index;

  ck_kiln_ok(kiln_arg_reduce(stream, &desc, NULL));
  got_value = array_read(&value);
  got_index = array_read(&index);
  ck_assert_int_eq(*got_value, INT32_MIN);
  ck_assert(*got_index == UINT64_MAX);
  free(got_value);
  free(got_index);
  desc.value = (kiln_array){0};
  ck_kiln_ok(kiln_arg_reduce(stream, &desc, NULL));
  array_free(&value);
  array_free(&index);
}
END_TEST

/* ---- Statistics ------------------------------------------------------------------------------------ */

static double first_of(test_array *a)
{
  void *got = array_read(a);
  const double v = value_at(a->array.type, got, 0);

  free(got);
  return v;
}

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
  void *x = random_wholes(type, n, 0, 9, &state);
  void *y = random_wholes(type, n, 0, 9, &state);
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
  ck_kiln_ok(kiln_dot(stream, &dot, NULL));
  ck_assert_double_eq(first_of(&out), want[0]);
  for (kiln_metric m = KILN_L2; m <= KILN_LINF; m++) {
    const kiln_distance_desc desc = {a.array, b.array,   n,
                                     m,       out.array, m == KILN_L1};

    ck_kiln_ok(kiln_distance(stream, &desc, NULL));
    near(first_of(&out), want[m + 1], 1e-14);
  }
  free(x);
  free(y);
  array_free(&a);
  array_free(&b);
  array_free(&out);
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
  test_array in = array_make(KILN_F64, N, 1, NULL, 0);
  test_array out = array_make(KILN_F64, 1, 0, NULL, 1);
  kiln_norm_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = {.data = out.array.data}};

  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    x[1] = cases[k].a;
    x[1200] = cases[k].b;
    x[2000] = cases[k].c;
    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, sizeof x));
    ck_kiln_ok(kiln_norm(stream, &desc, NULL));
    if (isinf(cases[k].norm))
      ck_assert_double_eq(first_of(&out), cases[k].norm);
    else
      near(first_of(&out), cases[k].norm, 1e-14);
  }
  x[7] = NAN;
  ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, sizeof x));
  ck_kiln_ok(kiln_norm(stream, &desc, NULL));
  ck_assert(isnan(first_of(&out)));
  array_free(&in);
  array_free(&out);
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
  array_free(&in);
  array_free(&mean);
  array_free(&variance);
}

START_TEST(test_moments)
{
  enum { N = 40003 };
  uint64_t state = 77;
  double *x = malloc(N * sizeof *x);

  for (size_t t = 0; t < N_SOME_TYPES; t++) {
    void *small = random_wholes(some_types[t], 3001, 0, 100, &state);

    check_moments(some_types[t], small, 3001, t % 3, (double)(t % 2), 1e-12);
    free(small);
  }
  for (size_t i = 0; i < N; i++)
    x[i] = 1e9 + (double)(test_random(&state) >> 40) * 0x1p-24;
  check_moments(KILN_F64, x, N, 0, 1,
                1e-9); /* the naive formula has no digit */
  check_moments(KILN_F64, x, 1, 1, 0, 0);
  x[0] = -1e10; /* as a shift for all it would cost every digit */
  check_moments(KILN_F64, x, N, 1, 1, 1e-9);
  for (size_t i = 0; i < N; i++)
    x[i] = 0.1;
  {
    test_array in = array_make(KILN_F64, N, 0, x, 0);
    test_array variance = array_make(KILN_F64, 1, 0, NULL, 1);
    const kiln_mean_variance_desc desc = {
        .x = {.in = {in.array}}, .n = N, .variance = variance.array};

    ck_kiln_ok(kiln_mean_variance(stream, &desc, NULL));
    ck_assert_double_eq(first_of(&variance), 0); /* of a constant: exactly */
    array_free(&in);
    array_free(&variance);
  }
  free(x);
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
  array_free(&in);
  array_free(&mean);
  array_free(&variance);
}
END_TEST

/* ---- Memory -------------------------------------------------------------------------------------------- */

START_TEST(test_workspace)
{
  enum { N = 50021 };
  uint64_t state = 1;
  uint32_t *x = random_bits(4 * N, &state), want = 0, *got;
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array out = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_reduce_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = out.array};
  kiln_workspace w = {0};
  test_array room;

  for (size_t i = 0; i < N; i++)
    want += x[i];
  ck_kiln_ok(kiln_reduce_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 0);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xff);
  w.data = room.array.data;
  ck_kiln_ok(kiln_reduce(stream, &desc, &w));
  ck_kiln_ok(kiln_reduce(stream, &desc, &w));
  got = array_read(&out);
  ck_assert_uint_eq(*got, want);
  free(got);
  free(array_read(&room));
  w.size--;
  ck_assert_int_eq(kiln_reduce(stream, &desc, &w), KILN_EINVAL);
  w.size++;
  w.data += 8;
  ck_assert_int_eq(kiln_reduce(stream, &desc, &w), KILN_EINVAL);
  w.data = in.array.data;
  ck_assert_int_eq(kiln_reduce(stream, &desc, &w), KILN_EINVAL);
  free(x);
  array_free(&room);
  array_free(&in);
  array_free(&out);
}
END_TEST

START_TEST(test_capture)
{
  enum { N = 50021 };
  uint64_t state = 1;
  uint32_t *x = random_bits(4 * N, &state), want = 0, *got;
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array out = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_reduce_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = out.array};
  CUgraphExec exec;

  for (size_t i = 0; i < N; i++)
    want += x[i];
  capture_begin();
  ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
  exec = capture_end();
  for (int turn = 0; turn < 3; turn++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4));
    capture_replay(exec);
    got = array_read(&out);
    ck_assert_uint_eq(*got, want);
    free(got);
  }
  capture_free(exec);
  free(x);
  array_free(&in);
  array_free(&out);
}
END_TEST

/* ---- Bad calls ------------------------------------------------------------------------------------------- */

START_TEST(test_bad)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array o = array_make(KILN_F32, 1, 0, NULL, 0x5a);
  const kiln_array inside = {a.array.data + 8, KILN_F32};
  const kiln_reduce_desc bad[] = {
      {.n = 10, .out = o.array},
      {.x = {.in = {a.array}}, .n = 10},
      {.x = {.in = {{a.array.data + 2, KILN_F32}}}, .n = 10, .out = o.array},
      {.x = {.in = {{0, KILN_F32}}}, .n = 10, .out = o.array},
      {.x = {.in = {a.array}}, .n = 10, .out = inside},
      {.x = {.in = {a.array}},
       .n = 10,
       .op = {.name = KILN_XOR},
       .out = o.array},
      {.x = {.in = {a.array}},
       .n = 10,
       .op = {.name = (kiln_op_name)9},
       .out = o.array},
      {.x = {.in = {a.array}}, .n = 10, .op = {.expr = "a"}, .out = o.array},
      {.x = {.map = "i"}, .n = 10, .out = o.array},
      {.x = {.in = {a.array}}, .n = UINT64_MAX, .out = o.array}};
  kiln_reduce_desc text = {.x = {.in = {a.array}},
                           .n = 10,
                           .op = {.expr = "a + c", .identity = "0"},
                           .out = o.array};
  const kiln_arg_reduce_desc no_op = {
      .x = {.in = {a.array}}, .n = 10, .value = o.array};
  const kiln_mean_variance_desc nothing = {.x = {.in = {a.array}}, .n = 10};
  const kiln_norm_desc whole = {
      .x = {.in = {a.array}}, .n = 9, .out = {o.array.data, KILN_I32}};
  size_t bytes;
  unsigned char *got;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_reduce(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
    ck_assert_int_eq(kiln_reduce_workspace(stream, &bad[k], &bytes),
                     KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_reduce(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_reduce(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_reduce_workspace(stream, &text, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_reduce(stream, &text, NULL), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message,
                               "the operation does not compile: line 1"));
  ck_assert_int_eq(kiln_arg_reduce(stream, &no_op, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_mean_variance(stream, &nothing, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_norm(stream, &whole, NULL), KILN_EINVAL);
  got = array_read(&o);
  for (size_t i = 0; i < 4; i++)
    ck_assert_int_eq(got[i], 0x5a);
  free(got);
  array_free(&a);
  array_free(&o);
}
END_TEST

/* ---- Random calls ------------------------------------------------------------------------------------------ */

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(200);
  uint64_t state = 4711;

  for (unsigned long call = 0; call < calls; call++) {
    const kiln_dtype type = all_types[test_random(&state) % N_ALL_TYPES];
    const size_t n = test_random(&state) % 3 == 0 ? test_random(&state) % 40000
                                                  : test_random(&state) % 500;
    const kiln_op_name op = test_random(&state) % 2 ? KILN_SUM : KILN_MAX;

    check_named(op, type, n, op == KILN_MAX ? 0 : test_random(&state) % 8,
                &state);
  }
}
END_TEST

/* No distance of nothing is negative, nor NaN. */
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
      void *got;

      ck_kiln_ok(kiln_distance(stream, &desc, NULL));
      got = array_read(&out);
      ck_assert_double_eq(value_at(types[k], got, 0), 0);
      free(got);
      array_free(&x);
      array_free(&out);
    }
}
END_TEST

/* Squares that overflow give an infinite variance, as in NumPy; infinite samples
 * still give NaN. */
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
      double *got;

      if (k == 1 && n == 2)
        continue;
      ck_kiln_ok(kiln_mean_variance(stream, &desc, NULL));
      got = array_read(&out);
      if (k < 2)
        ck_assert_double_eq(*got, INFINITY);
      else
        ck_assert_msg(isnan(*got), "%g", *got);
      free(got);
      array_free(&x);
      array_free(&out);
    }
}
END_TEST

/* Kernels pad with the identity, of which this operation makes NaN. */
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
    double *got;

    ck_kiln_ok(kiln_reduce(stream, &desc, NULL));
    got = array_read(&out);
    ck_assert_msg(fabs(*got - log((double)n)) < 1e-9, "%zu: %g", n, *got);
    free(got);
    array_free(&x);
    array_free(&out);
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("reduce_op");
  TCase *t = tcase_create("reduce_op");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
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
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_capture);
  tcase_add_test(t, test_bad);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_distance_of_nothing);
  tcase_add_test(t, test_variance_overflow);
  tcase_add_test(t, test_identity_with_itself);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
