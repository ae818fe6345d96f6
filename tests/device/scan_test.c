/* scan_test.c -- kiln_scan: every type, any length and alignment, operations by
 * name and by text, maps, in place, initial values and totals; the same bits in
 * every run; and what is wrong with a call. */
#include "scan_values.h"

/* ---- Every type, length, alignment ------------------------------------------------- */

static void run_one(kiln_dtype type, size_t n, size_t shift_in,
                    size_t shift_out, bool exclusive, uint64_t *state)
{
  int64_t *v = small_wholes(n, state);
  int64_t *want = scanned(v, NULL, n, add, 0, NULL, exclusive);
  void *x = elements(type, v, n), *got;
  test_array in = array_make(type, n, shift_in, x, 0);
  test_array out = array_make(type, n, shift_out, NULL, 0x5a);
  const kiln_scan_desc desc = {.x = {.in = {in.array}},
                               .n = n,
                               .out = out.array,
                               .exclusive = exclusive};

  ck_kiln_ok(kiln_scan(stream, &desc, NULL));
  got = kept(array_read(&out));
  ck_elements("scan", type, got, want, n);
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

/* Arrays that do not lie on 16 bytes, either of them. */
START_TEST(test_alignment)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_I32, KILN_F64};
  uint64_t state = 77;

  for (size_t shift = 1; shift < 4; shift++)
    run_one(types[_i], 5003, shift & 1, shift & 2, false, &state);
}
END_TEST

/* Many groups of tiles: the chain of their totals. */
START_TEST(test_long)
{
  uint64_t state = 3;

  run_one(KILN_U32, 300007, 0, 0, false, &state);
  run_one(KILN_F64, 100003, 0, 0, true, &state);
}
END_TEST

/* ---- Operations -------------------------------------------------------------------------- */

static int64_t multiply(int64_t a, int64_t b)
{
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static int64_t bits_and(int64_t a, int64_t b)
{
  return a & b;
}

static int64_t bits_or(int64_t a, int64_t b)
{
  return a | b;
}

static int64_t bits_xor(int64_t a, int64_t b)
{
  return a ^ b;
}

static const struct {
  kiln_op_name name;
  fold op;
} named[] = {{KILN_SUM, add},     {KILN_PROD, multiply}, {KILN_MIN, smaller},
             {KILN_MAX, larger},  {KILN_AND, bits_and},  {KILN_OR, bits_or},
             {KILN_XOR, bits_xor}};

enum { N_NAMED = sizeof named / sizeof named[0] };

/* What the type holds of a 64-bit result: for every operation here the same as
 * if each step had been rounded to it. */
static void run_named(size_t k, kiln_dtype type, bool exclusive)
{
  enum { N = 9001 };
  const size_t width = kiln_dtype_size(type);
  uint64_t state = k + 5;
  uint64_t *bits = kept(random_bits(8 * N, &state));
  int64_t *v = room_for(N, 8), *want;
  unsigned char *x = room_for(N, 8), *got;
  const unsigned unused = 64 - 8 * (unsigned)width;
  const int64_t top = type_is_signed(type) ? INT64_MAX >> unused
                                           : (int64_t)(UINT64_MAX >> unused);
  const int64_t bottom = type_is_signed(type) ? INT64_MIN >> unused : 0;
  const int64_t identity[] = {0, 1, top, bottom, -1, 0, 0};
  test_array in, out;

  for (size_t i = 0; i < N; i++) {
    bits[i] >>= unused;
    v[i] = !type_is_signed(type) ? (int64_t)bits[i]
                                 : (int64_t)(bits[i] << unused) >> unused;
    memcpy(x + i * width, &bits[i], width);
  }
  in = array_make(type, N, 0, x, 0);
  out = array_make(type, N, 0, NULL, 0x5a);
  ck_kiln_ok(kiln_scan(stream,
                       &(kiln_scan_desc){.x = {.in = {in.array}},
                                         .n = N,
                                         .op = {.name = named[k].name},
                                         .out = out.array,
                                         .exclusive = exclusive},
                       NULL));
  want = scanned(v, NULL, N, named[k].op, identity[k], NULL, exclusive);
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++)
    ck_assert_msg(memcmp(got + i * width, &want[i], width) == 0,
                  "operation %zu, %s, [%zu]", k, kiln_dtype_name(type), i);
}

START_TEST(test_named)
{
  static const kiln_dtype types[] = {KILN_I8,  KILN_U16, KILN_I32,
                                     KILN_U32, KILN_I64, KILN_U64};

  /* Unsigned 64-bit comparisons are not the reference's. */
  for (size_t k = 0; k < N_NAMED; k++)
    run_named(k, types[(k + (size_t)_i) % 5], _i == 1);
}
END_TEST

/* Affine maps v * m + c modulo 2^32, one after the other: does not commute. */
static const char affine[] =
    "(a >> 32) * (b >> 32) << 32 |"
    "(unsigned)((unsigned)(b >> 32) * (unsigned)a + (unsigned)b)";

static uint64_t affine_of(uint64_t a, uint64_t b)
{
  return (a >> 32) * (b >> 32) << 32 |
         (uint32_t)((uint32_t)(b >> 32) * (uint32_t)a + (uint32_t)b);
}

START_TEST(test_does_not_commute)
{
  /* As it comes; blocks that stay; small tiles in groups of 32. */
  static const kiln_tuning tunings[] = {
      {0}, {128, 4, 2, 16 + 1}, {64, 2, 0, 1}};
  const bool exclusive = _i % 2 == 1;
  const size_t n = _i >= 4 ? 9001 : 60013;
  uint64_t state = 11, sum;
  uint64_t *x = kept(random_bits(8 * n, &state)), *want = room_for(n, 8);
  test_array in;
  test_array out = array_make(KILN_U64, n, (size_t)_i % 2, NULL, 0x5a);

  for (size_t i = 0; i < n; i++)
    x[i] |= UINT64_C(1) << 32; /* an odd factor: nothing gets lost */
  in = array_make(KILN_U64, n, 0, x, 0);
  sum = UINT64_C(1) << 32;
  for (size_t i = 0; i < n; i++) {
    const uint64_t next = affine_of(sum, x[i]);

    want[i] = exclusive ? sum : next;
    sum = next;
  }
  if (_i >= 2)
    ck_kiln_ok(kiln_tuning_set(device, "scan", 8, 64, &tunings[_i / 2]));
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){.x = {.in = {in.array}},
                        .n = n,
                        .op = {.expr = affine, .identity = "1ull << 32"},
                        .out = out.array,
                        .exclusive = exclusive},
      NULL));
  ck_bits64("affine", &out, want);
}
END_TEST

/* The last one that is not 0, in types that share registers and in halves, which
 * a user's operation sees as float. */
START_TEST(test_last_seen)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I16, KILN_F16, KILN_BF16,
                                     KILN_F32};
  enum { N = 12345 };
  uint64_t state = 2;
  int64_t v[N], want[N];
  void *x, *got;
  test_array in, out;

  for (size_t i = 0; i < N; i++) {
    v[i] =
        test_random(&state) % 50 == 0 ? (int64_t)(test_random(&state) % 99) : 0;
    want[i] = v[i] != 0 || i == 0 ? v[i] : want[i - 1];
  }
  x = elements(types[_i], v, N);
  in = array_make(types[_i], N, 0, x, 0);
  out = array_make(types[_i], N, 0, NULL, 0x5a);
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){.x = {.in = {in.array}},
                        .n = N,
                        .op = {.expr = "b != 0 ? b : a", .identity = "0"},
                        .out = out.array},
      NULL));
  got = kept(array_read(&out));
  ck_elements("last seen", types[_i], got, want, N);
}
END_TEST

/* ---- Maps, accumulator types ------------------------------------------------------------------- */

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
  double sum = 0, *got;

  ck_kiln_ok(
      kiln_scan(stream,
                &(kiln_scan_desc){.x = {.in = {a.array, b.array},
                                        .map = "scale * x * y + offset + i % 3",
                                        .type = KILN_F32},
                                  .n = N,
                                  .out = out.array,
                                  .code = {.params = params, .n_params = 2}},
                NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++) {
    sum += 2 * (double)x[i] * y[i] + 3 + (double)(i % 3);
    ck_assert_double_eq(got[i], sum);
  }
}
END_TEST

/* No array at all: the index. Bytes into 64-bit sums. */
START_TEST(test_widening)
{
  const size_t n = 70001;
  uint64_t state = 4, *want = room_for(n, 8), sum = 0;
  uint8_t *x = kept(random_bits(n, &state));
  test_array in = array_make(KILN_U8, n, 0, x, 0);
  test_array out = array_make(KILN_U64, n, 0, NULL, 0x5a);

  for (size_t i = 0; i < n; i++)
    want[i] = i * (i + 1) / 2;
  ck_kiln_ok(kiln_scan(stream,
                       &(kiln_scan_desc){.x = {.map = "i", .type = KILN_U64},
                                         .n = n,
                                         .out = out.array},
                       NULL));
  ck_bits64("sums of indices", &out, want);
  for (size_t i = 0; i < n; i++)
    want[i] = sum += x[i];
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){.x = {.in = {in.array}}, .n = n, .out = out.array},
      NULL));
  ck_bits64("sums of bytes", &out, want);
}
END_TEST

/* Halves are summed in float: 1 + 1 + ... goes on above 2,048, and only what is
 * stored is rounded. */
START_TEST(test_halves_in_float)
{
  enum { N = 3000 };
  int64_t ones[N];
  void *x;
  uint16_t *got;
  test_array in, out;

  for (size_t i = 0; i < N; i++)
    ones[i] = 1;
  x = elements(KILN_F16, ones, N);
  in = array_make(KILN_F16, N, 0, x, 0);
  out = array_make(KILN_F16, N, 0, NULL, 0x5a);
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

/* ---- In place, initial values, totals ------------------------------------------------------------ */

START_TEST(test_in_place)
{
  enum { N = 17001 };
  uint64_t state = 8;
  int64_t *v = small_wholes(N, &state), *want;
  int32_t *x = elements(KILN_I32, v, N), *got;
  test_array a = array_make(KILN_I32, N, (size_t)_i, x, 0);
  test_array b = array_make(KILN_I32, N, (size_t)_i, x, 0);

  want = scanned(v, NULL, N, add, 0, NULL, _i == 1);
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){
          .x = {.in = {a.array}}, .n = N, .out = a.array, .exclusive = _i == 1},
      NULL));
  got = kept(array_read(&a));
  ck_elements("in place", KILN_I32, got, want, N);
  /* a is now the scan; the second input is written */
  for (size_t i = 0; i < N; i++)
    v[i] = 2 * x[i];
  want = scanned(v, NULL, N, add, 0, NULL, false);
  ck_kiln_ok(kiln_copy_to_device(device, a.array.data, x, 4 * N));
  ck_kiln_ok(kiln_scan(
      stream,
      &(kiln_scan_desc){.x = {.in = {b.array, a.array}, .map = "x + y"},
                        .n = N,
                        .out = a.array},
      NULL));
  got = kept(array_read(&a));
  ck_elements("in the place of y", KILN_I32, got, want, N);
}
END_TEST

static void run_init(kiln_dtype type, size_t n, bool with_init, bool exclusive)
{
  uint64_t state = n + with_init;
  int64_t *v = small_wholes(n, &state), *want, init = 7, sum = 0;
  void *x = elements(type, v, n), *first = elements(type, &init, 1), *got;
  test_array in = array_make(type, n, 0, x, 0);
  test_array out = array_make(type, n, 0, NULL, 0x5a);
  test_array total = array_make(type, 1, 0, NULL, 0x5a);

  want = scanned(v, NULL, n, add, 0, with_init ? &init : NULL, exclusive);
  ck_kiln_ok(kiln_scan(stream,
                       &(kiln_scan_desc){.x = {.in = {in.array}},
                                         .n = n,
                                         .out = out.array,
                                         .exclusive = exclusive,
                                         .init = with_init ? first : NULL,
                                         .total = total.array.data},
                       NULL));
  got = kept(array_read(&out));
  ck_elements("with init", type, got, want, n);
  for (size_t i = 0; i < n; i++)
    sum += v[i];
  sum += with_init ? init : 0;
  got = kept(array_read(&total));
  ck_elements("total", type, got, &sum, 1);
}

START_TEST(test_init_and_total)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_I32, KILN_F64};
  static const size_t lengths[] = {0, 1, 2, 895, 896, 7681};

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (unsigned how = 0; how < 4; how++)
      run_init(types[_i], lengths[k], how & 1, how & 2);
}
END_TEST

/* ---- Floating point ---------------------------------------------------------------------------------- */

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
    x[i] = 1e-41f; /* a denormal, of which all sums are exact */
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

/* Close to the sum in double, and the same bits every time. */
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

/* ---- Every way that the kernel can be made ---------------------------------------------------------- */

/* Small tiles: many groups of them. */
static void run_made(const char *const *defines, size_t n_defines,
                     unsigned block, unsigned tile, size_t n, bool staged)
{
  const kiln_program_desc program = {
      .builtin = "scan", .defines = defines, .n_defines = n_defines};
  const size_t tiles = (n + tile - 1) / tile;
  uint64_t state = n, zero = 0;
  int64_t *v = small_wholes(n, &state);
  int64_t *want = scanned(v, NULL, n, add, 0, NULL, false);
  float *x = elements(KILN_F32, v, n), *got;
  test_array in = array_make(KILN_F32, n, 0, x, 0);
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
    got = kept(array_read(&out));
    ck_elements("made by hand", KILN_F32, got, want, n);
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
  /* Rows of 32 tiles: four, many. */
  run_made(staged, 4, 96, tile, 128 * tile, true);
  run_made(staged, 4, 96, tile, _i == 0 ? 100001 : 60001, true);
  if (_i == 0)
    run_made(alone, 3, 64, 128, 40001, true);
}
END_TEST

/* ---- Memory ---------------------------------------------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  enum { N = 30000 };
  uint64_t state = 9;
  int64_t *v = small_wholes(N, &state);
  int64_t *want = scanned(v, NULL, N, add, 0, NULL, false);
  void *x = elements(KILN_F64, v, N), *got;
  test_array in = array_make(KILN_F64, N, 0, x, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 0x5a);
  const kiln_scan_desc desc = {
      .x = {.in = {in.array}}, .n = N, .out = out.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  ck_kiln_ok(kiln_scan_workspace(stream, &desc, &bytes));
  ck_assert_uint_gt(bytes, 0);
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_scan(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_scan(stream, &desc, &w));
    got = kept(array_read(&out));
    ck_elements("with a workspace", KILN_F64, got, want, N);
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 8 * N));
  }
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_scan(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 8 * N));
    capture_replay(graph);
    got = kept(array_read(&out));
    ck_elements("from a graph", KILN_F64, got, want, N);
  }
  capture_free(graph);
}
END_TEST

/* ---- Bad calls --------------------------------------------------------------------------------------------- */

START_TEST(test_bad_calls)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 0x5a);
  const kiln_array next = {b.array.data + 4, KILN_F32};
  const kiln_array odd = {b.array.data + 2, KILN_F32};
  const kiln_array same = {a.array.data, KILN_F64};
  const kiln_input x = {.in = {a.array}};
  const kiln_scan_desc bad[] = {
      {.x = x, .n = 10},                              /* no out */
      {.n = 10, .out = b.array},                      /* no input */
      {.x = x, .n = 10, .out = odd},                  /* misaligned */
      {.x = {.in = {b.array}}, .n = 10, .out = next}, /* overlap */
      {.x = x, .n = 10, .out = same},                 /* wider, in place */
      {.x = x, .n = 10, .out = b.array, .op = {.name = KILN_XOR}},
      {.x = x, .n = 10, .out = b.array, .op = {.expr = "a"}},
      {.x = x, .n = 10, .out = b.array, .op = {.name = (kiln_op_name)99}},
      {.x = x, .n = 10, .out = b.array, .total = b.array.data + 16},
      {.x = x, .n = 10, .out = b.array, .total = 2},
      {.x = x, .n = UINT64_MAX / 2, .out = b.array},
      {.x = {.map = "i"}, .n = 10, .out = b.array},
  };
  unsigned char *got;
  size_t bytes = 1;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_scan(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
    ck_assert_int_eq(kiln_scan_workspace(stream, &bad[k], &bytes), KILN_EINVAL);
    ck_assert_uint_eq(bytes, 0);
  }
  ck_assert_int_eq(kiln_scan(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_scan(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_scan_workspace(stream, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(
      kiln_scan(stream,
                &(kiln_scan_desc){.x = x,
                                  .n = 10,
                                  .op = {.expr = "a +\n  q", .identity = "0"},
                                  .out = b.array},
                NULL),
      KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message,
                               "the operation does not compile: line 2"));
  got = kept(array_read(&b));
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
}
END_TEST

/* ---- Any call ------------------------------------------------------------------------------------------------ */

/* Types, lengths, shifts, exclusive or not, init or not: drawn, with few enough
 * different programs. */
START_TEST(test_random_calls)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32, KILN_F64};
  const unsigned long calls = random_calls(60);
  uint64_t state = 2024;

  for (unsigned long k = 0; k < calls; k++) {
    const kiln_dtype type = types[test_random(&state) % 3];
    const size_t n = test_random(&state) % (k % 16 == 0 ? 40000 : 3000);

    if (test_random(&state) % 2 == 0)
      run_one(type, n, 0, 0, test_random(&state) % 2, &state);
    else
      run_init(type, n, true, test_random(&state) % 2);
  }
}
END_TEST

/* Other blocks may have overwritten what the map reads. */
START_TEST(test_neighbours_in_place)
{
  enum { N = 10 };
  test_array a = array_make(KILN_F32, N, 0, NULL, 0);
  test_array b = array_make(KILN_F32, N, 0, NULL, 0);
  kiln_scan_desc desc = {
      .x = {.in = {a.array}, .map = "x_at(i > 0 ? i - 1 : 0)"},
      .n = N,
      .out = a.array};

  ck_assert_int_eq(kiln_scan(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "x_at()"));
  desc.out = b.array;
  ck_kiln_ok(kiln_scan(stream, &desc, NULL));
}
END_TEST

/* The identity pads incomplete tiles, where the operation would make a NaN of two. */
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
  TCase *t = tcase_create("scan");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 600);
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
  tcase_add_test(t, test_neighbours_in_place);
  tcase_add_test(t, test_identity_with_itself);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
