/* map_test.c -- kiln_map for every type, any length and alignment, several
 * inputs and outputs, in place, with parameters, and with invalid arguments. */
#include "ops_fixture.h"

static void test_every_type(int which)
{
  const size_t mark = n_kept;
  const kiln_dtype type = all_types[which];
  static const size_t lengths[] = {0, 1, 31, 33, 1000, 4096, 5000};
  uint64_t state = 7;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];
    void *x = kept(random_wholes(type, n, 0, 50, &state));
    test_array in = array_make(type, n, k % 3, x, 0);
    test_array out = array_make(type, n, k % 2, NULL, 0x5a);
    const kiln_map_desc desc = {.in = {in.array},
                                .out = {out.array},
                                .expr = {"x + x + (i % 2 ? 3 : 1)"},
                                .n = n};
    void *got;

    ck_kiln_ok(kiln_map(stream, &desc, NULL));
    got = kept(array_read(&out));
    for (size_t i = 0; i < n; i++)
      ck_assert_double_eq(value_at(type, got, i),
                          2 * value_at(type, x, i) + (i % 2 ? 3 : 1));
    release(mark);
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
  float *x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  int8_t *y = kept(random_wholes(KILN_I8, N, -50, 50, &state));
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
  got_c = kept(array_read(&c));
  got_d = kept(array_read(&d));
  got_a = kept(array_read(&a));
  for (size_t i = 0; i < N; i++) {
    ck_assert_double_eq(got_c[i], 5.0 * (double)x[i] + y[i]);
    ck_assert_int_eq(got_d[i], y[i] * y[i] + 4);
    ck_assert_float_eq(got_a[i], x[i] - (float)y[i]);
  }
}
END_TEST

/* Expressions over row and column, with and without an input. The widths cover
 * both ways to divide, and blocks that the image does not fill. */
START_TEST(test_rows)
{
  static const uint64_t widths[] = {1, 7, 32, 33, 1000};
  const uint64_t width = widths[_i], height = 23, n = width * height;
  uint64_t state = 5;
  int32_t *x = kept(random_wholes(KILN_I32, n, -50, 50, &state));
  test_array in = array_make(KILN_I32, n, 0, x, 0);
  test_array a = array_make(KILN_I64, n, 1, NULL, 1);
  test_array b = array_make(KILN_U8, n, 1, NULL, 1);

  for (unsigned inputs = 0; inputs < 2; inputs++) {
    kiln_map_desc desc = {
        .out = {a.array, b.array},
        .expr = {inputs ? "1000 * row + column - x" : "1000 * row + column",
                 "i == row * 33 + column ? 7 : row + 2 * column"},
        .n = n,
        .width = width};
    int64_t *got_a;
    uint8_t *got_b;

    if (inputs)
      desc.in[0] = in.array;
    ck_kiln_ok(kiln_map(stream, &desc, NULL));
    got_a = kept(array_read(&a));
    got_b = kept(array_read(&b));
    for (uint64_t i = 0; i < n; i++) {
      const uint64_t row = i / width, column = i % width;
      const uint64_t want = i == row * 33 + column ? 7 : row + 2 * column;

      ck_assert_int_eq(got_a[i],
                       (int64_t)(1000 * row + column) - (inputs ? x[i] : 0));
      ck_assert_uint_eq(got_b[i], (uint8_t)want);
    }
  }
}
END_TEST

START_TEST(test_bad_width)
{
  static const float value = 1;
  static const kiln_param row = {"row", KILN_F32, &value, false};
  test_array out = array_make(KILN_F32, 100, 0, NULL, 0);
  kiln_map_desc desc = {
      .out = {out.array}, .expr = {"row"}, .n = 100, .width = 33};

  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "multiple"));
  desc.n = 99;
  desc.code = (kiln_code){.params = &row, .n_params = 1};
  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "\"row\""));
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
      {"x +", "the map expression does not compile: line 1", "  x +\n     ^\n"},
      {"x\n  * // twice\n", "the map expression does not compile: line 2",
       "    * // twice\n              ^\n"},
  };
  test_array a = array_make(KILN_F32, 10, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 10, 0, NULL, 2);

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    const kiln_map_desc desc = {
        .in = {a.array}, .out = {b.array}, .expr = {bad[k].text}, .n = 10};

    ck_assert_int_eq(kiln_map(stream, &desc, NULL), KILN_ECOMPILE);
    ck_assert_msg(strstr(kiln_last_error()->message, bad[k].message) != NULL,
                  "%zu: %s", k, kiln_last_error()->message);
    /* NVRTC 11 does not show the line, but Kiln shows it for the errors that it
     * finds itself. */
    if (k > 0 || kiln_device_traits(device)->cc >= 50)
      ck_assert_msg(strstr(kiln_last_error()->log, bad[k].caret) != NULL,
                    "%zu: %s", k, kiln_last_error()->log);
    ck_assert_ptr_null(strstr(kiln_last_error()->log, "user"));
    ck_assert_ptr_null(strstr(kiln_last_error()->log, ".cu"));
    ck_assert_ptr_null(strstr(kiln_last_error()->log, "generated"));
    ck_assert_ptr_null(strstr(kiln_last_error()->log, ");\n"));
  }
  free(array_read(&b));
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
      {.in = {{a.array.data, KILN_F16}}, .out = {a.array}, .n = 10},
      {.in = {{a.array.data, KILN_F64}}, .out = {a.array}, .n = 10},
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
}
END_TEST

/* ---- Neighbours ---------------------------------------------------------- */

/* Expressions may read other elements of several arrays of different types, in
 * each output. */
START_TEST(test_neighbours)
{
  enum { N = 5000 };
  uint64_t state = 3;
  float *x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  uint16_t *y = kept(random_wholes(KILN_F16, N, 0, 50, &state));
  uint8_t *z = kept(random_wholes(KILN_U8, N, 0, 200, &state));
  test_array a = array_make(KILN_F32, N, (size_t)_i, x, 0);
  test_array b = array_make(KILN_F16, N, (size_t)_i, y, 0);
  test_array c = array_make(KILN_U8, N, 0, z, 0);
  test_array d = array_make(KILN_F32, N, (size_t)_i, NULL, 1);
  test_array e = array_make(KILN_I32, N, 0, NULL, 1);
  const int32_t far = 17;
  const kiln_param params[] = {{"far", KILN_I32, &far, false}};
  const kiln_map_desc desc = {
      .in = {a.array, b.array, c.array},
      .out = {d.array, e.array},
      .expr =
          {"i > 0 && i + 1 < 5000 ? x_at(i - 1) + x0_at(i + 1) - x : y",
           "i < 5000 - far ? x2_at(i + far) - z_at(i) + y_at(4999 - i) : z"},
      .n = N,
      .code = {.params = params, .n_params = 1}};
  float *got_d;
  int32_t *got_e;

  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got_d = kept(array_read(&d));
  got_e = kept(array_read(&e));
  for (size_t i = 0; i < N; i++) {
    ck_assert_float_eq(got_d[i], i > 0 && i + 1 < N ? x[i - 1] + x[i + 1] - x[i]
                                                    : (float)half_value(y[i]));
    ck_assert_int_eq(got_e[i], i < N - 17 ? z[i + 17] - z[i] +
                                                (int)half_value(y[4999 - i])
                                          : z[i]);
  }
}
END_TEST

/* An expression must not read neighbours of an array that the call overwrites.
 * Similar names may belong to the user. */
START_TEST(test_neighbours_in_place)
{
  static const char *const fine[] = {"my_at(x)", "x_attic(x)", "xx_at(x)",
                                     "x8_at(x)", "x /* at */"};
  test_array a = array_make(KILN_F32, 100, 0, NULL, 0);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 0);
  const int value = 1;
  const kiln_param named = {"x3_at", KILN_I32, &value, false};
  kiln_map_desc desc = {
      .in = {a.array},
      .out = {a.array},
      .n = 100,
      .code = {.preamble = "__device__ float my_at(float v) { return v; }\n"
                           "__device__ float x_attic(float v) { return v; }\n"
                           "__device__ float xx_at(float v) { return v; }\n"
                           "__device__ float x8_at(float v) { return v; }\n"}};

  for (size_t k = 0; k < sizeof fine / sizeof fine[0]; k++) {
    desc.expr[0] = fine[k];
    ck_kiln_ok(kiln_map(stream, &desc, NULL));
  }
  desc.expr[0] = "x + x_at(3)";
  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_EINVAL);
  desc.expr[0] = "x + 1";
  desc.out[1] = b.array;
  desc.expr[1] = "x0_at( 7 )";
  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_EINVAL);
  desc.out[0] = b.array;
  desc.out[1] = (kiln_array){0};
  desc.expr[1] = NULL;
  desc.code = (kiln_code){.params = &named, .n_params = 1};
  ck_kiln_is(kiln_map(stream, &desc, NULL), KILN_EINVAL);
}
END_TEST

/* ---- Alignment and size -------------------------------------------------- */

/* Maps arrays that start at these distances from an aligned address, which may
 * be equal or differ. Lengths lie near those of vectors and tiles. */
static void shifted(kiln_dtype in_type, kiln_dtype out_type, size_t n,
                    const size_t shift[3], bool in_place, uint64_t *state)
{
  const size_t mark = n_kept;
  void *x = kept(random_wholes(in_type, n, 0, 40, state));
  void *y = kept(random_wholes(in_type, n, 0, 40, state));
  test_array a = array_make(in_type, n, shift[0], x, 0);
  test_array b = array_make(in_type, n, shift[1], y, 0);
  test_array c = array_make(out_type, n, shift[2], NULL, 0x5a);
  test_array *out = in_place ? &a : &c;
  const kiln_map_desc desc = {.in = {a.array, b.array},
                              .out = {out->array},
                              .expr = {"x + y + i % 7"},
                              .n = n};
  void *got;

  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got = kept(array_read(out));
  for (size_t i = 0; i < n; i++)
    ck_assert_msg(
        value_at(out->array.type, got, i) ==
            value_at(in_type, x, i) + value_at(in_type, y, i) + (double)(i % 7),
        "%s to %s, n %zu, shifts %zu %zu %zu%s: element %zu",
        kiln_dtype_name(in_type), kiln_dtype_name(out_type), n, shift[0],
        shift[1], shift[2], in_place ? ", in place" : "", i);
  release(mark);
}

START_TEST(test_shifts)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_F32, KILN_F64};
  static const size_t lengths[] = {1, 2, 15, 16, 17, 1023, 1031, 20011};
  const kiln_dtype type = types[_i];
  uint64_t state = 5;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t alike[3] = {3, 3, 3}, apart[3] = {1, 2, 0};

    shifted(type, type, lengths[k], alike, false, &state);
    shifted(type, type, lengths[k], alike, true, &state);
    shifted(type, type, lengths[k], apart, false, &state);
  }
}
END_TEST

/* A vector has 16 bytes of the widest type, and fewer of the others. */
START_TEST(test_mixed)
{
  static const size_t shift[3] = {2, 2, 1};
  uint64_t state = 5;

  shifted(KILN_U8, KILN_F64, 5001, shift, false, &state);
  shifted(KILN_F64, KILN_U8, 5001, shift, false, &state);
  shifted(KILN_BF16, KILN_F32, 777, shift, false, &state);
}
END_TEST

/* A copy must keep values that arithmetic could change. NaN must stay NaN in a
 * conversion. */
START_TEST(test_special_values)
{
  static const uint32_t bits[] = {0x00000000u, 0x80000000u, 0x00000001u,
                                  0x807fffffu, 0x7f800000u, 0xff800000u,
                                  0x7f7fffffu, 0x7fc00000u};
  enum { N = sizeof bits / sizeof bits[0] };
  test_array a = array_make(KILN_F32, N, 0, bits, 0);
  test_array b = array_make(KILN_F32, N, 0, NULL, 1);
  test_array c = array_make(KILN_F16, N, 0, NULL, 1);
  const kiln_map_desc desc = {
      .in = {a.array}, .out = {b.array, c.array}, .n = N};
  uint32_t *got;
  uint16_t *half;

  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got = kept(array_read(&b));
  half = kept(array_read(&c));
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[i], bits[i]);
  ck_assert_uint_eq(half[1], 0x8000u);
  ck_assert_uint_eq(half[2], 0);
  ck_assert_uint_eq(half[4], 0x7c00u);
  /* a value too large for f16 becomes infinity */
  ck_assert_uint_eq(half[6], 0x7c00u);
  ck_assert(isnan(half_value(half[7])));
}
END_TEST

START_TEST(test_random_calls)
{
  static const kiln_dtype types[] = {KILN_I8,  KILN_U16, KILN_F16,
                                     KILN_F32, KILN_I64, KILN_F64};
  const unsigned long n = random_calls(200);
  uint64_t state = 4711;

  for (unsigned long k = 0; k < n; k++) {
    const uint64_t r = test_random(&state);
    const kiln_dtype type = types[r % 6];
    const size_t one = (r >> 8) % 4;
    const size_t shift[3] = {one, one, (r >> 16) % 2 ? one : 0};

    shifted(type, type, (r >> 24) % 4000, shift, (r >> 40) % 3 == 0, &state);
  }
}
END_TEST

/* These names occur in Kiln's own code. Parameters and the user's preamble may
 * use them too. */
static const char *const common_names[] = {
    "value", "map",  "pack",  "user",    "s",    "T",     "count", "n",
    "acc",   "args", "index", "stored",  "op",   "load",  "write", "kiln",
    "tile",  "in",   "out0",  "outputs", "head", "store", "sum",   "widen"};

START_TEST(test_parameter_names)
{
  const float two = 2;
  test_array a = array_make(KILN_F32, 100, 0, NULL, 0);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  const char *const name = common_names[_i];
  char expr[64], preamble[64];
  float *got;

  for (int constant = 0; constant < 2; constant++) {
    const kiln_param param = {name, KILN_F32, &two, constant != 0};
    const kiln_map_desc desc = {.in = {a.array},
                                .out = {b.array},
                                .expr = {expr},
                                .n = 100,
                                .code = {.params = &param, .n_params = 1}};

    snprintf(expr, sizeof expr, "x_at(i) + %s * i", name);
    ck_kiln_ok(kiln_map(stream, &desc, NULL));
    got = kept(array_read(&b));
    ck_assert_float_eq(got[99], 198);
  }
  snprintf(expr, sizeof expr, "x + %s(i)", name);
  for (int macro = 0; macro < 2; macro++) {
    const kiln_map_desc desc = {.in = {a.array},
                                .out = {b.array},
                                .expr = {expr},
                                .n = 100,
                                .code = {.preamble = preamble}};

    snprintf(preamble, sizeof preamble,
             macro ? "#define %s(v) ((v) * 3.0f)"
                   : "__device__ float %s(float v) { return v * 3; }",
             name);
    ck_kiln_ok(kiln_map(stream, &desc, NULL));
    got = kept(array_read(&b));
    ck_assert_float_eq(got[99], 297);
  }
}
END_TEST

START_TEST(test_refused_names)
{
  static const struct {
    const char *name, *message;
  } bad[] = {{"x", "\"x\" is a name that every text has"},
             {"y_at", "\"y_at\" is a name that every text has"},
             {"NAN", "\"NAN\" is a name that every text has"},
             {"int", "\"int\" is a keyword"},
             {"template", "\"template\" is a keyword"},
             {"xor", "\"xor\" is a keyword"},
             {"KILN_BLOCK", "\"KILN_BLOCK\" begins as"},
             {"__half", "\"__half\" begins as"},
             {"k", "are both named \"k\""}};
  const float one = 1;
  test_array a = array_make(KILN_F32, 10, 0, NULL, 0);
  test_array b = array_make(KILN_F32, 10, 0, NULL, 1);

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    const kiln_param params[] = {{"k", KILN_F32, &one, false},
                                 {bad[k].name, KILN_F32, &one, false}};
    const kiln_map_desc desc = {.in = {a.array},
                                .out = {b.array},
                                .expr = {"x"},
                                .n = 10,
                                .code = {.params = params, .n_params = 2}};

    ck_assert_int_eq(kiln_map(stream, &desc, NULL), KILN_EINVAL);
    ck_assert_msg(strstr(kiln_last_error()->message, bad[k].message) != NULL,
                  "%s", kiln_last_error()->message);
  }
}
END_TEST

/* #include lines of the preamble stand before the namespace that holds its
 * functions. */
START_TEST(test_preamble_with_include)
{
  test_array a = array_make(KILN_F32, 10, 0, NULL, 0);
  test_array b = array_make(KILN_F32, 10, 0, NULL, 1);
  const kiln_map_desc desc = {
      .in = {a.array},
      .out = {b.array},
      .expr = {"x + count(i)"},
      .n = 10,
      .code = {.preamble = "/* #include <nowhere.h>\n */\n"
                           "#if 1\n# include <kiln/types.cuh>\n#endif\n"
                           "__device__ float count(float v) { return v; }"}};
  float *got;

  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  got = kept(array_read(&b));
  ck_assert_float_eq(got[9], 9);
}
END_TEST

/* A copy must keep the payload and sign of NaNs, even if another output of the
 * call has an expression. */
START_TEST(test_copy_of_bits)
{
  enum { N = 65536 };
  static const kiln_dtype halves[] = {KILN_F16, KILN_BF16};
  uint16_t *all = kept(malloc(N * sizeof *all));

  for (uint32_t i = 0; i < N; i++)
    all[i] = (uint16_t)i;
  for (size_t k = 0; k < 2; k++) {
    test_array x = array_make(halves[k], N, 0, all, 0);
    test_array out = array_make(halves[k], N, 0, NULL, 1);
    test_array sum = array_make(KILN_F32, N, 0, NULL, 1);
    kiln_map_desc desc = {.in = {x.array}, .out = {out.array}, .n = N};

    for (int outputs = 1; outputs <= 2; outputs++) {
      uint16_t *got;

      ck_kiln_ok(kiln_map(stream, &desc, NULL));
      got = kept(array_read(&out));
      ck_assert_mem_eq(got, all, N * sizeof *all);
      desc.out[1] = sum.array;
      desc.expr[1] = "x + x";
    }
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("map");
  TCase *t = device_case(s, "map");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_several);
  tcase_add_loop_test(t, test_rows, 0, 5);
  tcase_add_test(t, test_bad_width);
  tcase_add_loop_test(t, test_neighbours, 0, 2);
  tcase_add_test(t, test_neighbours_in_place);
  tcase_add_loop_test(t, test_shifts, 0, 4);
  tcase_add_test(t, test_mixed);
  tcase_add_test(t, test_special_values);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_text);
  tcase_add_loop_test(t, test_parameter_names, 0,
                      sizeof common_names / sizeof common_names[0]);
  tcase_add_test(t, test_refused_names);
  tcase_add_test(t, test_preamble_with_include);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_copy_of_bits);
  return s;
}

DEVICE_TEST_MAIN(suite)
