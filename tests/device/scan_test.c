/* scan_test.c -- kiln_scan: every type, any length and alignment, predefined
 * and user operations, maps, in place, initial values and totals, reproducible
 * bits, and invalid arguments. */
#include "scan_values.h"

/* ---- Types, lengths, alignments ------------------------------------------ */

/* A call with or without an initial value of 7, and with or without a total. */
typedef struct scan_case {
  kiln_dtype type;
  size_t n, shift_in, shift_out;
  bool exclusive, with_init, with_total;
} scan_case;

static operation_call scan_call(const scan_case *s, uint64_t *state)
{
  static const int64_t seven = 7;
  const int64_t *init = s->with_init ? &seven : NULL;
  int64_t *v = small_wholes(s->n, state), sum = s->with_init ? seven : 0;
  test_array in =
      array_make(s->type, s->n, s->shift_in, elements(s->type, v, s->n), 0);
  test_array out = array_make(s->type, s->n, s->shift_out, NULL, 0x5a);
  test_array total = array_make(s->type, 1, 0, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_scan, &(kiln_scan_desc){
                     .x = {.in = {in.array}},
                     .n = s->n,
                     .out = out.array,
                     .exclusive = s->exclusive,
                     .init = s->with_init ? elements(s->type, init, 1) : NULL,
                     .total = s->with_total ? total.array.data : 0});

  for (size_t i = 0; i < s->n; i++)
    sum += v[i];
  call_writes(&c, &out,
              elements(s->type,
                       scanned(v, NULL, s->n, KILN_SUM, 0, init, s->exclusive),
                       s->n));
  if (s->with_total)
    call_writes(&c, &total, elements(s->type, &sum, 1));
  return c;
}

static void run_one(kiln_dtype type, size_t n, size_t shift_in,
                    size_t shift_out, bool exclusive, uint64_t *state)
{
  ck_call(scan_call(&(scan_case){.type = type,
                                 .n = n,
                                 .shift_in = shift_in,
                                 .shift_out = shift_out,
                                 .exclusive = exclusive},
                    state));
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0,     1,     31,    32,   33,   895,
                                   896,   897,   1000,  3583, 3584, 3585,
                                   28671, 28672, 28673, 30011};
  uint64_t state = (uint64_t)_i + 1;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    run_one(all_types[_i], lengths[k], k % 8 == 2, k % 8 == 2, k % 8 > 3,
            &state);
}
END_TEST

/* The input, the output or both are not aligned to 16 bytes. */
START_TEST(test_alignment)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_I32, KILN_F64};
  uint64_t state = 77;

  for (size_t shift = 1; shift < 4; shift++)
    run_one(types[_i], 5003, shift & 1, shift & 2, false, &state);
}
END_TEST

/* Arrays with many groups of tiles, whose totals depend on each other. */
START_TEST(test_long)
{
  uint64_t state = 3;

  run_one(KILN_U32, 300007, 0, 0, false, &state);
  run_one(KILN_F64, 100003, 0, 0, true, &state);
}
END_TEST

/* ---- Operations ---------------------------------------------------------- */

/* Checks a predefined operation. The reference computes in 64 bits and
 * truncates; for these operations that gives the same result as truncating each
 * step. */
static void run_named(kiln_op_name op, kiln_dtype type, bool exclusive)
{
  enum { N = 9001 };
  const size_t width = kiln_dtype_size(type);
  uint64_t state = (uint64_t)op + 5;
  uint64_t *bits = kept(random_bits(8 * N, &state));
  int64_t *v = room_for(N, 8), *wide;
  unsigned char *x = room_for(N, 8), *want = room_for(N, 8);
  const unsigned unused = 64 - 8 * (unsigned)width;
  test_array in, out = array_make(type, N, 0, NULL, 0x5a);

  for (size_t i = 0; i < N; i++) {
    bits[i] >>= unused;
    v[i] = !type_is_signed(type) ? (int64_t)bits[i]
                                 : (int64_t)(bits[i] << unused) >> unused;
    memcpy(x + i * width, &bits[i], width);
  }
  in = array_make(type, N, 0, x, 0);
  wide = scanned(v, NULL, N, op, (int64_t)identity_word(op, type), NULL,
                 exclusive);
  for (size_t i = 0; i < N; i++)
    memcpy(want + i * width, &wide[i], width);
  ck_writes(CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                                 .n = N,
                                                 .op = {.name = op},
                                                 .out = out.array,
                                                 .exclusive = exclusive}),
            &out, want);
}

START_TEST(test_named)
{
  static const kiln_dtype types[] = {KILN_I8,  KILN_U16, KILN_I32,
                                     KILN_U32, KILN_I64, KILN_U64};

  /* u64 is left out, because the reference compares signed integers. */
  for (kiln_op_name op = KILN_SUM; op <= KILN_XOR; op++)
    run_named(op, types[((size_t)op + (size_t)_i) % 5], _i == 1);
}
END_TEST

/* Composes affine maps modulo 2^32, which does not commute. */
START_TEST(test_does_not_commute)
{
  /* the default; persistent blocks; small tiles in groups of 32 */
  static const kiln_tuning tunings[] = {
      {0}, {128, 4, 2, 16 + 1}, {64, 2, 0, 1}};
  const bool exclusive = _i % 2 == 1;
  const size_t n = _i >= 4 ? 9001 : 60013;
  uint64_t state = 11, sum = UINT64_C(1) << 32;
  uint64_t *x = kept(random_bits(8 * n, &state)), *want = room_for(n, 8);
  test_array in;
  test_array out = array_make(KILN_U64, n, (size_t)_i % 2, NULL, 0x5a);

  for (size_t i = 0; i < n; i++) {
    /* an odd factor is invertible, so no error cancels */
    x[i] |= UINT64_C(1) << 32;
    want[i] = exclusive ? sum : then_wide(sum, x[i]);
    sum = then_wide(sum, x[i]);
  }
  in = array_make(KILN_U64, n, 0, x, 0);
  if (_i >= 2)
    ck_kiln_ok(kiln_tuning_set(device, "scan", 8, 64, &tunings[_i / 2]));
  ck_writes(
      CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                           .n = n,
                                           .op = {.expr = then_wide_text,
                                                  .identity = "1ull << 32"},
                                           .out = out.array,
                                           .exclusive = exclusive}),
      &out, want);
}
END_TEST

/* The operation returns the last value that is not 0. It runs on types that
 * share registers, and on halves, which a user's operation sees as float. */
START_TEST(test_last_seen)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I16, KILN_F16, KILN_BF16,
                                     KILN_F32};
  enum { N = 12345 };
  uint64_t state = 2;
  int64_t v[N], want[N];
  test_array in, out = array_make(types[_i], N, 0, NULL, 0x5a);

  for (size_t i = 0; i < N; i++) {
    v[i] =
        test_random(&state) % 50 == 0 ? (int64_t)(test_random(&state) % 99) : 0;
    want[i] = v[i] != 0 || i == 0 ? v[i] : want[i - 1];
  }
  in = array_make(types[_i], N, 0, elements(types[_i], v, N), 0);
  ck_writes(
      CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                           .n = N,
                                           .op = {.expr = "b != 0 ? b : a",
                                                  .identity = "0"},
                                           .out = out.array}),
      &out, elements(types[_i], want, N));
}
END_TEST

/* ---- Maps, accumulator types --------------------------------------------- */

START_TEST(test_map)
{
  enum { N = 20011 };
  uint64_t state = 1;
  float *x = kept(random_wholes(KILN_F32, N, -9, 9, &state));
  int8_t *y = kept(random_wholes(KILN_I8, N, -9, 9, &state));
  test_array a = array_make(KILN_F32, N, 0, x, 0);
  test_array b = array_make(KILN_I8, N, 1, y, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 0x5a);
  const float scale = 2;
  const int32_t offset = 3;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false},
                               {"offset", KILN_I32, &offset, true}};
  double sum = 0, *want = room_for(N, 8);

  for (size_t i = 0; i < N; i++)
    want[i] = sum += 2 * (double)x[i] * y[i] + 3 + (double)(i % 3);
  ck_writes(
      CALL_OF(kiln_scan,
              &(kiln_scan_desc){.x = {.in = {a.array, b.array},
                                      .map = "scale * x * y + offset + i % 3",
                                      .type = KILN_F32},
                                .n = N,
                                .out = out.array,
                                .code = {.params = params, .n_params = 2}}),
      &out, want);
}
END_TEST

/* Scans a map of the index without any array, and bytes into 64-bit sums. */
START_TEST(test_widening)
{
  const size_t n = 70001;
  uint64_t state = 4, *want = room_for(n, 8), sum = 0;
  uint8_t *x = kept(random_bits(n, &state));
  test_array in = array_make(KILN_U8, n, 0, x, 0);
  test_array out = array_make(KILN_U64, n, 0, NULL, 0x5a);

  for (size_t i = 0; i < n; i++)
    want[i] = i * (i + 1) / 2;
  ck_writes(
      CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.map = "i", .type = KILN_U64},
                                           .n = n,
                                           .out = out.array}),
      &out, want);
  for (size_t i = 0; i < n; i++)
    want[i] = sum += x[i];
  ck_writes(CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                                 .n = n,
                                                 .out = out.array}),
            &out, want);
}
END_TEST

/* Halves are summed in float: a sum of ones continues above 2,048, and only the
 * stored result is rounded. */
START_TEST(test_halves_in_float)
{
  enum { N = 3000 };
  int64_t ones[N];
  const uint16_t *got;
  test_array in, out = array_make(KILN_F16, N, 0, NULL, 0x5a);

  for (size_t i = 0; i < N; i++)
    ones[i] = 1;
  in = array_make(KILN_F16, N, 0, elements(KILN_F16, ones, N), 0);
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){.x = {.in = {in.array}}, .n = N, .out = out.array},
      NULL));
  got = kept(array_read(&out));
  ck_assert_double_eq(half_value(got[2047]), 2048);
  ck_assert_double_eq(half_value(got[2999]), 3000);
  ck_assert_double_eq(half_value(got[2998]), 3000); /* to even */
}
END_TEST

/* ---- In place, initial values, totals ------------------------------------ */

START_TEST(test_in_place)
{
  enum { N = 17001 };
  uint64_t state = 8;
  int64_t *v = small_wholes(N, &state);
  int32_t *x = elements(KILN_I32, v, N);
  test_array a = array_make(KILN_I32, N, (size_t)_i, x, 0);
  test_array b = array_make(KILN_I32, N, (size_t)_i, x, 0);
  const kiln_scan_desc desc = {
      .x = {.in = {a.array}}, .n = N, .out = a.array, .exclusive = _i == 1};
  const kiln_scan_desc second = {
      .x = {.in = {a.array, b.array}, .map = "x + y"}, .n = N, .out = b.array};
  int64_t *sums = scanned(v, NULL, N, KILN_SUM, 0, NULL, _i == 1);

  ck_writes(CALL_OF(kiln_scan, &desc), &a, elements(KILN_I32, sums, N));
  for (size_t i = 0; i < N; i++)
    v[i] += sums[i]; /* array a now holds the result of the scan */
  ck_writes(
      CALL_OF(kiln_scan, &second), &b,
      elements(KILN_I32, scanned(v, NULL, N, KILN_SUM, 0, NULL, false), N));
}
END_TEST

START_TEST(test_init_and_total)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_I32, KILN_F64};
  static const size_t lengths[] = {0, 1, 2, 895, 896, 7681};
  uint64_t state = 7;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (unsigned how = 0; how < 4; how++)
      ck_call(scan_call(&(scan_case){.type = types[_i],
                                     .n = lengths[k],
                                     .with_init = how & 1,
                                     .exclusive = how & 2,
                                     .with_total = true},
                        &state));
}
END_TEST

/* ---- Floating point ------------------------------------------------------ */

static void scan_floats(const float *x, float *out, size_t n, kiln_op op,
                        bool exclusive)
{
  test_array in = array_make(KILN_F32, n, 0, x, 0);
  test_array to = array_make(KILN_F32, n, 0, NULL, 0x5a);
  void *got;

  ck_kiln_ok(kiln_scan(stream,
                       &(kiln_scan_desc){.x = {.in = {in.array}},
                                         .n = n,
                                         .op = op,
                                         .out = to.array,
                                         .exclusive = exclusive},
                       NULL));
  got = kept(array_read(&to));
  memcpy(out, got, n * sizeof *out);
}

START_TEST(test_special_floats)
{
  enum { N = 2000 };
  static float x[N], y[N];

  for (size_t i = 0; i < N; i++)
    x[i] = -0.0f;
  scan_floats(x, y, N, (kiln_op){.name = KILN_SUM}, false);
  for (size_t i = 0; i < N; i++)
    ck_assert_msg(y[i] == 0 && signbit(y[i]), "-0 + -0: [%zu]", i);
  scan_floats(x, y, N, (kiln_op){.name = KILN_SUM}, true);
  for (size_t i = 0; i < N; i++)
    ck_assert_msg(y[i] == 0 && !signbit(y[i]), "0 + -0: [%zu]", i);
  x[1000] = 0;
  scan_floats(x, y, N, (kiln_op){.name = KILN_MAX}, false);
  ck_assert(signbit(y[999]) && !signbit(y[1000]) && !signbit(y[N - 1]));

  for (size_t i = 0; i < N; i++)
    x[i] = 1e-41f; /* a denormal number, whose sums are exact */
  scan_floats(x, y, N, (kiln_op){.name = KILN_SUM}, false);
  for (size_t i = 0, bits = 0; i < N; i++) {
    uint32_t sum;

    if (i == 0)
      memcpy(&bits, &x[0], 4);
    memcpy(&sum, &y[i], 4);
    ck_assert_uint_eq(sum, (uint32_t)(bits * (i + 1)));
  }

  for (size_t i = 0; i < N; i++)
    x[i] = 1;
  x[1500] = INFINITY;
  x[1700] = -INFINITY;
  scan_floats(x, y, N, (kiln_op){.name = KILN_SUM}, false);
  ck_assert(y[1499] == 1500 && isinf(y[1500]) && isinf(y[1699]) &&
            isnan(y[1700]) && isnan(y[N - 1]));
  x[700] = NAN;
  scan_floats(x, y, N, (kiln_op){.name = KILN_MIN}, false);
  ck_assert(y[699] == 1 && isnan(y[700]) && isnan(y[N - 1]));
  scan_floats(x, y, N, (kiln_op){.name = KILN_MAX}, true);
  ck_assert(y[0] == -INFINITY && y[700] == 1 && isnan(y[701]));
}
END_TEST

/* The result must be close to the sum in double, and have the same bits in
 * every run. */
START_TEST(test_float_sums)
{
  const size_t n = 100003;
  float *x = room_for(n, 4), *first = room_for(n, 4), *again = room_for(n, 4);
  uint64_t state = 5;
  double sum = 0, size = 0;

  for (size_t i = 0; i < n; i++)
    x[i] = ldexpf((float)(int32_t)test_random(&state),
                  -(int)(test_random(&state) % 40));
  scan_floats(x, first, n, (kiln_op){.name = KILN_SUM}, false);
  for (size_t i = 0; i < n; i++) {
    sum += (double)x[i];
    size += fabs((double)x[i]);
    ck_assert_msg(fabs((double)first[i] - sum) <= size * 64 * 0x1p-24,
                  "[%zu] is %g, not %g", i, (double)first[i], sum);
  }
  for (int k = 0; k < 3; k++) {
    scan_floats(x, again, n, (kiln_op){.name = KILN_SUM}, false);
    ck_assert_mem_eq(first, again, n * sizeof *x);
  }
}
END_TEST

/* ---- Configurations of the kernel ---------------------------------------- */

/* Runs the kernel with these defines. Small tiles give many groups of tiles. */
static void run_made(const char *const *defines, size_t n_defines,
                     unsigned block, unsigned tile, size_t n, bool staged)
{
  const kiln_program_desc program = {
      .builtin = "scan", .defines = defines, .n_defines = n_defines};
  const size_t tiles = (n + tile - 1) / tile;
  uint64_t state = n, zero = 0;
  int64_t *v = small_wholes(n, &state);
  const float *want =
      elements(KILN_F32, scanned(v, NULL, n, KILN_SUM, 0, NULL, false), n);
  test_array in = array_make(KILN_F32, n, 0, elements(KILN_F32, v, n), 0);
  test_array out = array_make(KILN_F32, n, 0, NULL, 0x5a);
  test_array words = array_make(KILN_U64, 2 * tiles + 8, 0, NULL, 0);
  kiln_launch_config config = kiln_launch_1d(tiles + staged, 1);
  kiln_module *module;
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_load(&module, device, &program));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, "scan"));
  config.block.x = block;
  config.stream = stream;
  for (uint32_t epoch = 1; epoch < 4; epoch++) {
    const uint64_t size = n;

    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * n));
    ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(in.array.data),
                           KILN_ARG(size), KILN_ARG(out.array.data),
                           KILN_ARG(zero), KILN_ARG(zero),
                           KILN_ARG(words.array.data), KILN_ARG(epoch)));
    ck_array(&out, want, "made by hand");
  }
  free(array_read(&words));
  kiln_module_free(module);
}

START_TEST(test_variants)
{
  static const char *const window[] = {"KILN_WINDOW=1", "KILN_WINDOW=2",
                                       "KILN_WINDOW=8", "KILN_WINDOW=4"};
  static const char *const rows[] = {"KILN_VECTORS=1", "KILN_VECTORS=2",
                                     "KILN_VECTORS=4", "KILN_VECTORS=16"};
  static const unsigned n_rows[] = {1, 2, 4, 16};
  const char *const small[] = {window[_i], "KILN_BLOCK=64", "KILN_VECTORS=1"};
  const char *const staged[] = {"KILN_BLOCK=96", rows[_i], "KILN_STAGED=1",
                                "KILN_PREFETCH=5"};
  const char *const alone[] = {"KILN_BLOCK=64", "KILN_VECTORS=1",
                               "KILN_STAGED=1"};
  const unsigned tile = 256 * n_rows[_i];

  run_made(small, 3, 64, 128, 40000, false);
  run_made(staged, 4, 96, tile, tile, true);
  run_made(staged, 4, 96, tile, tile + 1, true);
  run_made(staged, 4, 96, tile, 3 * tile - 3, true);
  /* These lengths take several groups of 32 tiles. */
  run_made(staged, 4, 96, tile, 128 * tile, true);
  run_made(staged, 4, 96, tile, _i == 0 ? 100001 : 60001, true);
  if (_i == 0)
    run_made(alone, 3, 64, 128, 40001, true);
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  const operation_call c =
      scan_call(&(scan_case){.type = KILN_F64, .n = 30000}, &state);

  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

/* ---- Bad calls ----------------------------------------------------------- */

#define MEMBER_OF(member, ...) MEMBER(kiln_scan_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  uint64_t state = 9;
  const operation_call c = scan_call(
      &(scan_case){.type = KILN_F32, .n = 10, .with_total = true}, &state);
  const kiln_scan_desc *desc = c.desc;
  const kiln_array x = desc->x.in[0];
  const CUdeviceptr out = desc->out.data;
  const bad_argument bad[] = {
      {KILN_EINVAL, "out is NULL", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "neither an array nor a map", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "not aligned", {MEMBER_OF(out.data, out + 2)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out.data, x.data + 4)}},
      {KILN_EINVAL, "another size", {MEMBER_OF(out, {x.data, KILN_F64})}},
      {KILN_EINVAL, "bitwise", {MEMBER_OF(op.name, KILN_XOR)}},
      {KILN_EINVAL, "op.expr needs op.identity", {MEMBER_OF(op.expr, "a")}},
      {KILN_EINVAL, "op.name", {MEMBER_OF(op.name, (kiln_op_name)99)}},
      {KILN_EINVAL, "total", {MEMBER_OF(total, out + 16)}},
      {KILN_EINVAL, "total is not aligned", {MEMBER_OF(total, 2)}},
      {KILN_EINVAL, "address space", {MEMBER_OF(n, UINT64_MAX / 2)}},
      {KILN_EINVAL,
       "a map without arrays needs .type",
       {MEMBER_OF(x.in[0], {0}), MEMBER_OF(x.map, "i")}},
      /* In place, other blocks may have overwritten what the map reads. */
      {KILN_EINVAL,
       "x_at()",
       {MEMBER_OF(x.map, "x_at(i > 0 ? i - 1 : 0)"), MEMBER_OF(out, x)}},
      {KILN_ECOMPILE,
       "the operation does not compile: line 2",
       {MEMBER_OF(op.expr, "a +\n  q"), MEMBER_OF(op.identity, "0")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

/* A map of neighbours must work if the scan is not in place. */
START_TEST(test_neighbours)
{
  const float x[] = {3, 1, 4, 1, 5}, want[] = {3, 6, 7, 11, 12};
  test_array a = array_make(KILN_F32, 5, 0, x, 0);
  test_array b = array_make(KILN_F32, 5, 0, NULL, 0);
  operation_call c = CALL_OF(
      kiln_scan, &(kiln_scan_desc){
                     .x = {.in = {a.array}, .map = "x_at(i > 0 ? i - 1 : 0)"},
                     .n = 5,
                     .out = b.array});

  call_writes(&c, &b, want);
  ck_call(c);
}
END_TEST

/* ---- Any call ------------------------------------------------------------ */

/* Draws the type, the length and the options of a call from few enough
 * combinations to compile. */
static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F64};
  const kiln_dtype type = types[test_random(state) % 3];
  const size_t n = test_random(state) % (k % 16 == 0 ? 40000 : 3000);
  const uint64_t r = test_random(state);

  return scan_call(&(scan_case){.type = type,
                                .n = n,
                                .exclusive = r & 1,
                                .with_init = r & 2,
                                .with_total = r & 2},
                   state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 60, 2024);
}
END_TEST

/* Kernels pad incomplete tiles with the identity. This operation makes NaN of
 * two identities, so they must not be combined. */
START_TEST(test_identity_with_itself)
{
  static const size_t lengths[] = {1, 33, 1000, 70001};

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];
    test_array a = array_make(KILN_F32, n, 0, NULL, 0);
    test_array b = array_make(KILN_F32, n, 0, NULL, 0);
    const kiln_scan_desc desc = {
        .x = {.in = {a.array}},
        .n = n,
        .op = {.expr = "fmaxf(a, b) + log1pf(expf(fminf(a, b) - fmaxf(a, b)))",
               .identity = "-INFINITY"},
        .out = b.array,
        .exclusive = true};
    float *got;

    ck_kiln_ok(kiln_scan(stream, &desc, NULL));
    got = kept(array_read(&b));
    ck_assert_float_eq(got[0], -INFINITY);
    for (size_t i = 1; i < n; i++)
      ck_assert_msg(fabs(got[i] - log((double)i)) < 1e-2, "%zu: %g", i,
                    (double)got[i]);
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scan");
  TCase *t = device_case(s, "scan");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_alignment, 0, 4);
  tcase_add_test(t, test_long);
  tcase_add_loop_test(t, test_named, 0, 2);
  tcase_add_loop_test(t, test_does_not_commute, 0, 6);
  tcase_add_loop_test(t, test_last_seen, 0, 5);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_widening);
  tcase_add_test(t, test_halves_in_float);
  tcase_add_loop_test(t, test_in_place, 0, 2);
  tcase_add_loop_test(t, test_init_and_total, 0, 4);
  tcase_add_test(t, test_special_floats);
  tcase_add_test(t, test_float_sums);
  tcase_add_loop_test(t, test_variants, 0, 4);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_neighbours);
  tcase_add_test(t, test_identity_with_itself);
  return s;
}

DEVICE_TEST_MAIN(suite)
