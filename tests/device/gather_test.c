/* gather_test.c -- kiln_gather by every method and kiln_gather_rows: types of
 * elements and indices, sizes around packs and tiles, misaligned views, maps,
 * checked mode, graphs, and what is wrong with a call. */
#include "ops_fixture.h"

static const kiln_dtype index_types[] = {KILN_I32, KILN_U32, KILN_I64,
                                         KILN_U64};
enum { N_INDEX_TYPES = 4, N_METHODS = 4 };

/* How indices are spread. */
typedef enum spread {
  RANDOM,
  FORWARD,
  BACKWARD,
  CONSTANT,
  ENDS, /* first and last alone */
  N_SPREADS
} spread;

static uint64_t one_index(spread how, size_t i, size_t n, uint64_t target,
                          uint64_t *state)
{
  switch (how) {
  case FORWARD:
    return i % target;
  case BACKWARD:
    return (n - 1 - i) % target;
  case CONSTANT:
    return target / 3;
  case ENDS:
    return i % 3 == 0 ? target - 1 : 0;
  default:
    return test_random(state) % target;
  }
}

/* Yours to free(). */
static void *make_indices(kiln_dtype type, size_t n, uint64_t target,
                          spread how, uint64_t *state)
{
  void *data = malloc(n * 8 + 8);

  ck_assert_ptr_nonnull(data);
  for (size_t i = 0; i < n; i++) {
    const uint64_t at = one_index(how, i, n, target, state);

    if (kiln_dtype_size(type) == 4)
      ((uint32_t *)data)[i] = (uint32_t)at;
    else
      ((uint64_t *)data)[i] = at;
  }
  return data;
}

static uint64_t index_at(kiln_dtype type, const void *data, size_t i)
{
  return kiln_dtype_size(type) == 4 ? ((const uint32_t *)data)[i]
                                    : ((const uint64_t *)data)[i];
}

/* ---- Gather ----------------------------------------------------------------------- */

typedef struct gather_case {
  kiln_dtype type, index;
  size_t n, target, shift;
  spread how;
  kiln_index_method method;
  uint32_t passes;
  bool checked, know_target;
} gather_case;

/* Bits must arrive as they are, so the data are random bits. */
static void gather_once(const gather_case *c, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->type);
  unsigned char *x = random_bits(c->target * size, state);
  void *at = make_indices(c->index, c->n, c->target, c->how, state);
  test_array in = array_make(c->type, c->target, c->shift, x, 0);
  test_array index = array_make(c->index, c->n, c->shift % 2, at, 0);
  test_array out = array_make(c->type, c->n, c->shift % 2, NULL, 0x5a);
  const kiln_gather_desc desc = {.x = {.in = {in.array}},
                                 .index = index.array,
                                 .out = out.array,
                                 .n = c->n,
                                 .n_target = c->know_target ? c->target : 0,
                                 .method = c->method,
                                 .passes = c->passes,
                                 .checked = c->checked && c->know_target};
  unsigned char *got;

  ck_kiln_ok(kiln_gather(stream, &desc, NULL));
  got = array_read(&out);
  for (size_t i = 0; i < c->n; i++) {
    const uint64_t from = index_at(c->index, at, i);

    ck_assert_msg(memcmp(got + i * size, x + from * size, size) == 0,
                  "%s, %s, n %zu of %zu, shift %zu, spread %d, method %d(%u): "
                  "element %zu",
                  kiln_dtype_name(c->type), kiln_dtype_name(c->index), c->n,
                  c->target, c->shift, (int)c->how, (int)c->method, c->passes,
                  i);
  }
  free(got);
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
  array_free(&out);
}

START_TEST(test_types)
{
  static const size_t lengths[] = {1, 3, 32, 1023, 1024, 1025, 5003};
  uint64_t state = 11;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const gather_case c = {.type = all_types[_i],
                           .index = index_types[k % N_INDEX_TYPES],
                           .n = lengths[k],
                           .target = 1 + lengths[(k + 3) % 7],
                           .shift = k % 4};

    gather_once(&c, &state);
  }
}
END_TEST

/* The same few numbers of passes everywhere: each is a kernel of its own. Sizes
 * around the tile of a partition, 4,096 or 2,048 elements. */
START_TEST(test_methods)
{
  static const size_t lengths[] = {1, 33, 2047, 4095, 4096, 4097, 20011};
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_F32, KILN_F64};
  static const uint32_t passes[] = {1, 7, 1000};
  uint64_t state = 3;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (int method = 0; method < N_METHODS; method++) {
      const gather_case c = {.type = types[_i],
                             .index = index_types[_i],
                             .n = lengths[k],
                             .target = lengths[(2 * k + (size_t)_i) % 7],
                             .shift = k % 4,
                             .how = (spread)((k + (size_t)_i) % N_SPREADS),
                             .method = (kiln_index_method)method,
                             .passes = passes[k % 3],
                             .know_target = k % 2 == 0};

      gather_once(&c, &state);
    }
}
END_TEST

START_TEST(test_map)
{
  enum { N = 5000, TARGET = 777 };
  uint64_t state = 5;
  int16_t *x = random_wholes(KILN_I16, TARGET, -50, 50, &state);
  float *y = random_wholes(KILN_F32, TARGET, -50, 50, &state);
  uint32_t *at = make_indices(KILN_U32, N, TARGET, RANDOM, &state);
  test_array a = array_make(KILN_I16, TARGET, 1, x, 0);
  test_array b = array_make(KILN_F32, TARGET, 0, y, 0);
  test_array index = array_make(KILN_U32, N, 0, at, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 1);
  const float scale = 4;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false}};
  kiln_gather_desc desc = {.x = {.in = {a.array, b.array},
                                 .map = "scale * y + x + (i % 2 ? 0.5f : 0)",
                                 .type = KILN_F32},
                           .index = index.array,
                           .out = out.array,
                           .n = N,
                           .n_target = TARGET,
                           .code = {.params = params, .n_params = 1}};

  for (int method = 0; method < N_METHODS; method++) {
    double *got;

    desc.method = (kiln_index_method)method;
    desc.passes = 7;
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x7f, 1, N * 8));
    ck_kiln_ok(kiln_gather(stream, &desc, NULL));
    got = array_read(&out);
    for (size_t i = 0; i < N; i++)
      ck_assert_double_eq(got[i], 4.0 * (double)y[at[i]] + x[at[i]] +
                                      (at[i] % 2 ? 0.5 : 0));
    free(got);
  }
  free(x);
  free(y);
  free(at);
  array_free(&a);
  array_free(&b);
  array_free(&index);
  array_free(&out);
}
END_TEST

/* Other types than x's: as in C. */
START_TEST(test_conversion)
{
  enum { N = 300 };
  uint64_t state = 5;
  void *x = random_wholes(KILN_F16, N, 0, 100, &state);
  test_array in = array_make(KILN_F16, N, 0, x, 0);
  int64_t *at = make_indices(KILN_I64, N, N, BACKWARD, &state);
  test_array index = array_make(KILN_I64, N, 0, at, 0);

  for (size_t k = 0; k < N_ALL_TYPES; k++) {
    test_array out = array_make(all_types[k], N, 0, NULL, 1);
    const kiln_gather_desc desc = {.x = {.in = {in.array}},
                                   .index = index.array,
                                   .out = out.array,
                                   .n = N,
                                   .method = k % 6 == 5   ? KILN_INDEX_PARTITION
                                             : k % 3 == 1 ? KILN_INDEX_WINDOWS
                                                          : KILN_INDEX_DIRECT,
                                   .passes = 7};
    void *got;

    ck_kiln_ok(kiln_gather(stream, &desc, NULL));
    got = array_read(&out);
    for (size_t i = 0; i < N; i++)
      ck_assert_double_eq(value_at(all_types[k], got, i),
                          value_at(KILN_F16, x, N - 1 - i));
    free(got);
    array_free(&out);
  }
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long n = random_calls(250);
  uint64_t state = 77;

  for (unsigned long k = 0; k < n; k++) {
    const uint64_t r = test_random(&state);
    gather_case c = {.type = all_types[r % N_ALL_TYPES],
                     .index = index_types[(r >> 4) % N_INDEX_TYPES],
                     .n = (r >> 8) % 6000,
                     .target = 1 + (r >> 24) % 9000,
                     .shift = (r >> 40) % 5,
                     .how = (spread)((r >> 44) % N_SPREADS),
                     .method = (kiln_index_method)((r >> 48) % N_METHODS),
                     .checked = (r >> 51) % 4 == 0,
                     .know_target = (r >> 53) % 2 == 0};

    c.passes = 7;
    gather_once(&c, &state);
  }
}
END_TEST

/* ---- Rows --------------------------------------------------------------------------- */

typedef struct rows_case {
  kiln_dtype type, index;
  size_t n, rows, width, in_stride, out_stride, shift;
  bool checked;
} rows_case;

static void rows_once(const rows_case *c, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->type);
  const size_t in_stride = c->in_stride != 0 ? c->in_stride : c->width;
  const size_t out_stride = c->out_stride != 0 ? c->out_stride : c->width;
  unsigned char *x = random_bits(c->rows * in_stride * size, state);
  void *at = make_indices(c->index, c->n, c->rows, RANDOM, state);
  test_array in = array_make(c->type, c->rows * in_stride, c->shift, x, 0);
  test_array index = array_make(c->index, c->n, 0, at, 0);
  test_array out = array_make(c->type, c->n * out_stride, c->shift, NULL, 0x5a);
  const kiln_gather_rows_desc desc = {.in = in.array,
                                      .index = index.array,
                                      .out = out.array,
                                      .n = c->n,
                                      .width = c->width,
                                      .in_stride = c->in_stride,
                                      .out_stride = c->out_stride,
                                      .n_target = c->rows,
                                      .checked = c->checked};
  unsigned char *got;

  ck_kiln_ok(kiln_gather_rows(stream, &desc, NULL));
  got = array_read(&out);
  for (size_t r = 0; r < c->n; r++) {
    const size_t from = index_at(c->index, at, r) * in_stride * size;
    const size_t to = r * out_stride * size;

    ck_assert_msg(memcmp(got + to, x + from, c->width * size) == 0,
                  "%s, width %zu, strides %zu %zu, shift %zu: row %zu of %zu",
                  kiln_dtype_name(c->type), c->width, in_stride, out_stride,
                  c->shift, r, c->n);
    for (size_t k = c->width * size; k < out_stride * size; k++)
      ck_assert_int_eq(got[to + k], 0x5a);
  }
  free(got);
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
  array_free(&out);
}

START_TEST(test_rows)
{
  static const size_t widths[] = {1, 2, 3, 7, 32, 33, 64, 100, 1000, 9001};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
    const rows_case c = {.type = all_types[(5 * k + (size_t)_i) % N_ALL_TYPES],
                         .index = index_types[k % N_INDEX_TYPES],
                         .n = widths[k] > 500 ? 7 : 133 + 8 * (size_t)_i,
                         .rows = widths[k] > 500 ? 5 : 77,
                         .width = widths[k],
                         .in_stride = k % 3 == 1 ? widths[k] + 4 : 0,
                         .out_stride = k % 4 == 2 ? widths[k] + 3 : 0,
                         .shift = _i == 0 ? 0 : (k + 1) % 4,
                         .checked = k % 5 == 0};

    rows_once(&c, &state);
  }
}
END_TEST

/* ---- Checked mode ------------------------------------------------------------------- */

START_TEST(test_checked)
{
  enum { N = 1000, TARGET = 50 };
  static const struct {
    kiln_dtype type;
    uint64_t bad;
    const char *message;
  } cases[] = {{KILN_I32, (uint32_t)-1, "index[700] is -1"},
               {KILN_U32, TARGET, "index[700] is 50, and there are 50"},
               {KILN_I64, (uint64_t)-5, "index[700] is -5"},
               {KILN_U64, UINT64_MAX, "index[700] is 18446744073709551615"}};
  uint64_t state = 5;
  void *at = make_indices(cases[_i].type, N, TARGET, RANDOM, &state);
  test_array x = array_make(KILN_F32, TARGET, 0, NULL, 1);
  test_array index, out = array_make(KILN_F32, N, 0, NULL, 0x5a);
  kiln_gather_desc desc = {.x = {.in = {x.array}},
                           .out = out.array,
                           .n = N,
                           .n_target = TARGET,
                           .checked = true};
  kiln_gather_rows_desc rows = {.in = x.array,
                                .out = out.array,
                                .n = N,
                                .width = 1,
                                .n_target = TARGET,
                                .checked = true};
  unsigned char *got;

  for (size_t i = 700; i < N; i += 299)
    if (kiln_dtype_size(cases[_i].type) == 4)
      ((uint32_t *)at)[i] = (uint32_t)cases[_i].bad;
    else
      ((uint64_t *)at)[i] = cases[_i].bad;
  index = array_make(cases[_i].type, N, 0, at, 0);
  desc.index = rows.index = index.array;
  ck_kiln_is(kiln_gather(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_msg(strstr(kiln_last_error()->message, cases[_i].message) != NULL,
                "%s", kiln_last_error()->message);
  ck_kiln_is(kiln_gather_rows(stream, &rows, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, cases[_i].message));
  got = array_read(&out);
  for (size_t i = 0; i < 4 * N; i++)
    ck_assert_int_eq(got[i], 0x5a);
  desc.n = rows.n = 700;
  ck_kiln_ok(kiln_gather(stream, &desc, NULL));
  ck_kiln_ok(kiln_gather_rows(stream, &rows, NULL));
  free(got);
  free(at);
  array_free(&x);
  array_free(&index);
  array_free(&out);
}
END_TEST

/* ---- Memory and graphs ---------------------------------------------------------------- */

/* The caller's workspace, of exactly the size asked for. */
START_TEST(test_workspace)
{
  enum { N = 10000 };
  uint64_t state = 5;
  uint32_t *at = make_indices(KILN_U32, N, N, RANDOM, &state);
  uint32_t *x = random_bits(N * 4, &state), *got;
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array index = array_make(KILN_U32, N, 0, at, 0);
  test_array out = array_make(KILN_U32, N, 1, NULL, 0);
  const kiln_gather_desc desc = {.x = {.in = {in.array}},
                                 .index = index.array,
                                 .out = out.array,
                                 .n = N,
                                 .n_target = N,
                                 .method = KILN_INDEX_PARTITION,
                                 .passes = 7};
  kiln_workspace w = {0};
  test_array room;

  ck_kiln_ok(kiln_gather_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 10 * N);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xcc);
  w.data = room.array.data;
  w.size--;
  ck_kiln_is(kiln_gather(stream, &desc, &w), KILN_EINVAL);
  w.size++;
  ck_kiln_ok(kiln_gather(stream, &desc, &w));
  free(array_read(&room)); /* its guards */
  got = array_read(&out);
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[i], x[at[i]]);
  free(got);
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
  array_free(&out);
  array_free(&room);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array at = array_make(KILN_U32, 100, 0, NULL, 0);
  const kiln_array odd = {at.array.data + 2, KILN_U32};
  const kiln_array halves = {at.array.data, KILN_U16};
  const kiln_array none = {0, KILN_F32};
  const kiln_input x = {.in = {a.array}};
  const kiln_gather_desc bad[] = {
      {.index = at.array, .out = b.array, .n = 9},
      {.x = x, .out = b.array, .n = 9},
      {.x = x, .index = odd, .out = b.array, .n = 9},
      {.x = x, .index = halves, .out = b.array, .n = 9},
      {.x = x, .index = at.array, .n = 9},
      {.x = x, .index = at.array, .out = none, .n = 9},
      {.x = x, .index = at.array, .out = a.array, .n = 9},
      {.x = x, .index = at.array, .out = at.array, .n = 9},
      {.x = x, .index = at.array, .out = b.array, .n = UINT64_MAX / 2},
      {.x = x, .index = at.array, .out = b.array, .n = 9, .checked = true},
      {.x = x, .index = at.array, .out = b.array, .n = 9, .method = 4},
      {.x = x,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .method = KILN_INDEX_WINDOWS,
       .passes = 65536},
      {.x = x,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .method = KILN_INDEX_PARTITION,
       .passes = 1025}};
  const kiln_gather_rows_desc bad_rows[] = {
      {.index = at.array, .out = b.array, .n = 9, .width = 2},
      {.in = a.array, .index = at.array, .out = at.array, .n = 9, .width = 2},
      {.in = a.array, .index = halves, .out = b.array, .n = 9, .width = 2},
      {.in = a.array,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .width = 2,
       .in_stride = 1},
      {.in = a.array,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .width = 2,
       .out_stride = 1},
      {.in = a.array, .index = at.array, .out = a.array, .n = 9, .width = 2},
      {.in = a.array,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .width = UINT64_MAX / 4},
      {.in = a.array,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .width = 2,
       .checked = true}};
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_gather(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
    ck_assert_msg(kiln_gather_workspace(stream, &bad[k], &bytes) == KILN_EINVAL,
                  "%zu", k);
  }
  for (size_t k = 0; k < sizeof bad_rows / sizeof bad_rows[0]; k++)
    ck_assert_msg(kiln_gather_rows(stream, &bad_rows[k], NULL) == KILN_EINVAL,
                  "%zu", k);
  ck_kiln_is(kiln_gather(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_kiln_is(kiln_gather(stream, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_gather_rows(stream, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_gather_workspace(stream, &bad[0], NULL), KILN_EINVAL);
  array_free(&a);
  array_free(&b);
  array_free(&at);
}
END_TEST

START_TEST(test_nothing)
{
  test_array out = array_make(KILN_F32, 0, 0, NULL, 1);
  const kiln_array null = {0, KILN_F32}, no_index = {0, KILN_I64};
  const kiln_gather_desc none = {.x = {.in = {null}},
                                 .index = no_index,
                                 .out = null,
                                 .n = 0,
                                 .n_target = 5,
                                 .checked = true};
  const kiln_gather_rows_desc rows = {
      .in = null, .index = no_index, .out = null, .width = 4};
  size_t bytes = 7;

  ck_kiln_ok(kiln_gather(stream, &none, NULL));
  ck_kiln_ok(kiln_gather_workspace(stream, &none, &bytes));
  ck_assert_uint_eq(bytes, 0);
  ck_kiln_ok(kiln_gather_rows(stream, &rows, NULL));
  array_free(&out);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gather");
  TCase *t = tcase_create("gather");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_methods, 0, N_INDEX_TYPES);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_conversion);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_loop_test(t, test_rows, 0, 2);
  tcase_add_loop_test(t, test_checked, 0, N_INDEX_TYPES);
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_nothing);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
