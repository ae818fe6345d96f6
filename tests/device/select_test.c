/* select_test.c -- kiln_select and kiln_unique: every type, length and alignment,
 * predicates, flags, indices and payloads, captured, and what is wrong with a
 * call. */
#include "ops_fixture.h"

static const size_t lengths[] = {0,    1,    31,   32,   33,    255,  2047,
                                 2048, 2049, 4096, 8191, 10007, 65537};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Device arrays of one call and what is expected in them. */
typedef struct bench {
  kiln_dtype type;
  size_t n, width, n_kept;
  unsigned char *x; /* elements */
  bool *keep;
  test_array in, out, index, payload, out_payload, count;
  uint64_t *numbers; /* the payload */
} bench;

/* The test keeps all of it. */
static bench bench_make(kiln_dtype type, size_t n, size_t shift, void *x)
{
  bench b = {.type = type,
             .n = n,
             .width = kiln_dtype_size(type),
             .x = x,
             .keep = kept(calloc(n + 1, 1)),
             .numbers = kept(malloc(8 * n + 8))};

  for (size_t i = 0; i < n; i++)
    b.numbers[i] = i * 0x9e3779b97f4a7c15u;
  b.in = array_make(type, n, shift, x, 0);
  b.out = array_make(type, n, shift / 2, NULL, 0x5a);
  b.index = array_make(KILN_U32, n, shift, NULL, 0x5a);
  b.payload = array_make(KILN_U64, n, 0, b.numbers, 0);
  b.out_payload = array_make(KILN_U64, n, shift, NULL, 0x5a);
  b.count = array_make(shift % 2 ? KILN_U64 : KILN_U32, 1, 1, NULL, 0x5a);
  return b;
}

/* The first `kept` elements are those, in order; behind them nothing changed. */
static void check_moved(const bench *b, const test_array *a, const void *from,
                        size_t width)
{
  unsigned char *got = array_read(a);
  size_t k = 0;

  for (size_t i = 0; i < b->n; i++)
    if (b->keep[i]) {
      if (memcmp(got + k * width, (const unsigned char *)from + i * width,
                 width) != 0)
        ck_abort_msg("%s: %zu of %zu, from %zu of %zu",
                     kiln_dtype_name(b->type), k, b->n_kept, i, b->n);
      k++;
    }
  for (size_t i = k * width; i < b->n * width; i++)
    if (got[i] != 0x5a)
      ck_abort_msg("byte %zu behind the last was written", i - k * width);
  free(got);
}

/* Also the indices and the payload: `more`. */
static void check_all(bench *b, bool more)
{
  const size_t mark = n_kept;
  uint32_t *numbers = kept(malloc(4 * b->n + 4));
  uint64_t count = 0;

  memcpy(&count, kept(array_read(&b->count)), b->count.width);
  b->n_kept = 0;
  for (size_t i = 0; i < b->n; i++) {
    numbers[i] = (uint32_t)i;
    b->n_kept += b->keep[i];
  }
  ck_assert_msg(count == b->n_kept, "%s, n = %zu: %llu kept, not %zu",
                kiln_dtype_name(b->type), b->n, (unsigned long long)count,
                b->n_kept);
  check_moved(b, &b->out, b->x, b->width);
  if (more) {
    check_moved(b, &b->index, numbers, 4);
    check_moved(b, &b->out_payload, b->numbers, 8);
  }
  release(mark);
}

/* ---- Select -------------------------------------------------------------------- */

/* `desc` has all but the arrays and their length. */
static void check_select(bench *b, kiln_select_desc desc, bool more)
{
  desc.x.in[0] = b->in.array;
  desc.n = b->n;
  desc.out = b->out.array;
  desc.count = b->count.array;
  if (more) {
    desc.out_index = b->index.array;
    desc.payload = b->payload.array;
    desc.out_payload = b->out_payload.array;
  }
  ck_kiln_ok(kiln_select(stream, &desc, NULL));
  check_all(b, more);
}

static void select_if(kiln_dtype type, size_t n, size_t shift, int64_t above,
                      bool more)
{
  const size_t mark = n_kept;
  const int32_t level = (int32_t)above;
  const kiln_param param = {"level", KILN_I32, &level, false};
  const kiln_select_desc desc = {.predicate = "x > level",
                                 .code = {.params = &param, .n_params = 1}};
  uint64_t state = n + 1;
  bench b =
      bench_make(type, n, shift, kept(random_wholes(type, n, 0, 99, &state)));

  for (size_t i = 0; i < n; i++)
    b.keep[i] = value_at(type, b.x, i) > (double)above;
  check_select(&b, desc, more);
  release(mark);
}

START_TEST(test_types)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    select_if(all_types[_i], lengths[k], k % 2, 49, k % 2 == 0);
}
END_TEST

/* None, all, few. */
START_TEST(test_shares)
{
  static const int64_t above[] = {99, -1, 97, 1};

  for (size_t k = 0; k < 4; k++) {
    select_if(KILN_I32, 20011, k, above[k], false);
    select_if(KILN_U8, 40009, k, above[k], true);
  }
}
END_TEST

/* Bits of every kind survive, also of NaNs of halves. */
START_TEST(test_flags)
{
  static const kiln_dtype flag_types[] = {KILN_U8, KILN_I32, KILN_F32, KILN_I64,
                                          KILN_F16};
  static const kiln_dtype types[] = {KILN_F16, KILN_BF16, KILN_F32, KILN_F64,
                                     KILN_U16};
  enum { N = 9001 };
  uint64_t state = 3;

  for (size_t k = 0; k < 5; k++) {
    void *flags = kept(random_wholes(flag_types[k], N, 0, 1, &state));
    test_array f = array_make(flag_types[k], N, k, flags, 0);
    bench b =
        bench_make(types[k], N, k % 2,
                   kept(random_bits(N * kiln_dtype_size(types[k]), &state)));

    for (size_t i = 0; i < N; i++)
      b.keep[i] = value_at(flag_types[k], flags, i) != 0;
    check_select(&b, (kiln_select_desc){.flags = f.array}, true);
  }
}
END_TEST

/* The predicate sees the arrays, the map makes the elements. */
START_TEST(test_map)
{
  enum { N = 7001 };
  uint64_t state = 5;
  float *x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  int8_t *y = kept(random_wholes(KILN_I8, N, -50, 50, &state));
  test_array a = array_make(KILN_F32, N, 1, x, 0);
  test_array b = array_make(KILN_I8, N, 3, y, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 1);
  test_array index = array_make(KILN_U64, N, 0, NULL, 1);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 1);
  const kiln_select_desc desc = {
      .x = {.in = {a.array, b.array}, .map = "half(x) + y", .type = KILN_F64},
      .predicate = "x > y && i % 3 != 0",
      .n = N,
      .out = out.array,
      .out_index = index.array,
      .count = count.array,
      .code = {.preamble =
                   "__device__ double half(double v) { return v / 2; }"}};
  uint64_t *got_index, *got_count;
  double *got;
  size_t k = 0;

  ck_kiln_ok(kiln_select(stream, &desc, NULL));
  got = kept(array_read(&out));
  got_index = kept(array_read(&index));
  got_count = kept(array_read(&count));
  for (size_t i = 0; i < N; i++)
    if (x[i] > y[i] && i % 3 != 0) {
      ck_assert_double_eq(got[k], (double)x[i] / 2 + y[i]);
      ck_assert_uint_eq(got_index[k++], i);
    }
  ck_assert_uint_eq(got_count[0], k);
}
END_TEST

/* Indices alone, of no array at all. */
START_TEST(test_no_array)
{
  enum { N = 5000 };
  test_array index = array_make(KILN_U32, N, 0, NULL, 1);
  test_array count = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_select_desc desc = {.x = {.map = "i", .type = KILN_U32},
                                 .predicate = "i % 7 == 3",
                                 .n = N,
                                 .out_index = index.array,
                                 .count = count.array};
  uint32_t *got, *got_count;

  ck_kiln_ok(kiln_select(stream, &desc, NULL));
  got = kept(array_read(&index));
  got_count = kept(array_read(&count));
  ck_assert_uint_eq(got_count[0], 714);
  for (uint32_t k = 0; k < 714; k++)
    ck_assert_uint_eq(got[k], 7 * k + 3);
}
END_TEST

/* ---- Unique -------------------------------------------------------------------- */

/* `desc` has all but the arrays and their length. */
static void check_unique(bench *b, kiln_unique_desc desc, bool more)
{
  desc.x.in[0] = b->in.array;
  desc.n = b->n;
  desc.out = b->out.array;
  desc.count = b->count.array;
  if (more) {
    desc.out_index = b->index.array;
    desc.payload = b->payload.array;
    desc.out_payload = b->out_payload.array;
  }
  ck_kiln_ok(kiln_unique(stream, &desc, NULL));
  check_all(b, more);
}

static void unique(kiln_dtype type, size_t n, size_t shift, int64_t values,
                   bool more)
{
  const size_t mark = n_kept;
  uint64_t state = n + 7;
  bench b = bench_make(type, n, shift,
                       kept(random_wholes(type, n, 0, values - 1, &state)));

  for (size_t i = 0; i < n; i++)
    b.keep[i] = i == 0 || value_at(type, b.x, i) != value_at(type, b.x, i - 1);
  check_unique(&b, (kiln_unique_desc){0}, more);
  release(mark);
}

START_TEST(test_unique)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    unique(all_types[_i], lengths[k], k % 2, (int64_t)(k % 3 + 1), k % 2 == 1);
}
END_TEST

/* The user's equality sees neighbours; NaNs are all different by default. */
START_TEST(test_equality)
{
  enum { N = 5003 };
  const float tolerance = 10;
  const kiln_param param = {"tolerance", KILN_F32, &tolerance, true};
  uint64_t state = 4;

  for (int which = 0; which < 2; which++) {
    const kiln_unique_desc desc = {
        .equal = which == 0 ? NULL : "fabsf(a - b) < tolerance",
        .code = {.params = &param, .n_params = 1}};
    float *x = kept(random_wholes(KILN_F32, N, 0, 50, &state));
    bench b;

    for (size_t i = 0; i < N; i += 3)
      x[i] = i % 2 ? NAN : 1;
    b = bench_make(KILN_F32, N, 0, x);
    for (size_t i = 0; i < N; i++)
      b.keep[i] = i == 0 || (which == 0 ? !(x[i - 1] == x[i])
                                        : !(fabsf(x[i - 1] - x[i]) < 10));
    check_unique(&b, desc, false);
  }
}
END_TEST

/* ---- Memory, graphs, random calls ----------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  enum { N = 150001 };
  uint64_t state = 6;
  bench b = bench_make(KILN_U32, N, 0, kept(random_bits(4 * N, &state)));
  const kiln_select_desc desc = {.x = {.in = {b.in.array}},
                                 .predicate = "x % 2 == 1",
                                 .n = N,
                                 .out = b.out.array,
                                 .count = b.count.array};
  kiln_workspace w;
  CUgraphExec graph;
  test_array room;

  for (size_t i = 0; i < N; i++)
    b.keep[i] = b.x[4 * i] % 2 == 1;
  ck_kiln_ok(kiln_select_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 0);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xff);
  w.data = room.array.data;
  w.size--;
  ck_assert_int_eq(kiln_select(stream, &desc, &w), KILN_EINVAL);
  w.size++;
  ck_kiln_ok(kiln_select(stream, &desc, &w));
  check_all(&b, false);
  free(array_read(&room));
  w.data = b.in.array.data;
  ck_assert_int_eq(kiln_select(stream, &desc, &w), KILN_EINVAL);
  capture_begin();
  ck_kiln_ok(kiln_select(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 3; k++) {
    ck_kiln_ok(kiln_fill(device, b.out.array.data, 0x5a, 1, 4 * N));
    capture_replay(graph);
    check_all(&b, false);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(200);
  static const kiln_dtype types[] = {KILN_U8, KILN_I32};
  uint64_t state = 11;

  for (unsigned long k = 0; k < calls; k++) {
    const kiln_dtype type = types[test_random(&state) % 2];
    const size_t n = (size_t)(test_random(&state) % 6000);
    const size_t shift = (size_t)(test_random(&state) % 2);
    const bool more = type == KILN_I32 && test_random(&state) % 2 == 0;

    if (test_random(&state) % 3 == 0)
      unique(type, n, shift, 2, more);
    else
      select_if(type, n, shift, (int64_t)(test_random(&state) % 100), more);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  enum { N_BAD = 12 };
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array m = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_array x = a.array, out = b.array, count = m.array;
  const kiln_array as_int = {out.data, KILN_I32};
  const kiln_select_desc good = {
      .x = {.in = {x}}, .n = 10, .predicate = "x", .out = out, .count = count};
  const kiln_unique_desc overlap = {
      .x = {.in = {x}}, .n = 10, .out = x, .count = count};
  kiln_select_desc bad[N_BAD];
  size_t bytes;

  for (size_t k = 0; k < N_BAD; k++)
    bad[k] = good;
  bad[0].x = (kiln_input){0};
  bad[1].predicate = NULL;
  bad[2].flags = x;
  bad[3].out = x;
  bad[4].out.data += 2;
  bad[5].out = as_int;
  bad[6].count = (kiln_array){0};
  bad[7].count.type = KILN_I32;
  bad[8].count = (kiln_array){out.data, KILN_U32};
  bad[9].out_index = as_int;
  bad[10].out_payload = out;
  bad[11].n = UINT64_C(1) << 33;
  for (size_t k = 0; k < N_BAD; k++)
    ck_assert_msg(kiln_select(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_select(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_select(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_select_workspace(stream, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_unique(stream, &overlap, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_unique_workspace(stream, &overlap, &bytes),
                   KILN_EINVAL);
  free(array_read(&b));
  free(array_read(&m));
}
END_TEST

START_TEST(test_bad_text)
{
  test_array a = array_make(KILN_F32, 10, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 10, 0, NULL, 2);
  test_array m = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_select_desc bad = {.x = {.in = {a.array}},
                                .predicate = "x >\n  qq",
                                .n = 10,
                                .out = b.array,
                                .count = m.array};
  const kiln_unique_desc worse = {.x = {.in = {a.array}},
                                  .equal = "a == (b",
                                  .n = 10,
                                  .out = b.array,
                                  .count = m.array};

  ck_assert_int_eq(kiln_select(stream, &bad, NULL), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message,
                               "the predicate does not compile: line 2"));
  ck_assert_ptr_null(strstr(kiln_last_error()->log, "user"));
  ck_assert_int_eq(kiln_unique(stream, &worse, NULL), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message,
                               "the equality does not compile: line 1"));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("select");
  TCase *t = device_case(s, "select");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_shares);
  tcase_add_test(t, test_flags);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_no_array);
  tcase_add_loop_test(t, test_unique, 0, N_ALL_TYPES);
  tcase_add_test(t, test_equality);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_bad_text);
  return s;
}

DEVICE_TEST_MAIN(suite)
