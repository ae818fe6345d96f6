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
  size_t n, width, kept;
  unsigned char *x; /* elements */
  bool *keep;
  test_array in, out, index, payload, out_payload, count;
  uint64_t *numbers; /* the payload */
} bench;

static void bench_make(bench *b, kiln_dtype type, size_t n, size_t shift,
                       void *x)
{
  *b = (bench){.type = type,
               .n = n,
               .width = kiln_dtype_size(type),
               .x = x,
               .keep = calloc(n + 1, 1),
               .numbers = malloc(8 * n + 8)};
  for (size_t i = 0; i < n; i++)
    b->numbers[i] = i * 0x9e3779b97f4a7c15u;
  b->in = array_make(type, n, shift, x, 0);
  b->out = array_make(type, n, shift / 2, NULL, 0x5a);
  b->index = array_make(KILN_U32, n, shift, NULL, 0x5a);
  b->payload = array_make(KILN_U64, n, 0, b->numbers, 0);
  b->out_payload = array_make(KILN_U64, n, shift, NULL, 0x5a);
  b->count = array_make(shift % 2 ? KILN_U64 : KILN_U32, 1, 1, NULL, 0x5a);
}

static void bench_free(bench *b)
{
  array_free(&b->in);
  array_free(&b->out);
  array_free(&b->index);
  array_free(&b->payload);
  array_free(&b->out_payload);
  array_free(&b->count);
  free(b->x);
  free(b->keep);
  free(b->numbers);
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
                     kiln_dtype_name(b->type), k, b->kept, i, b->n);
      k++;
    }
  for (size_t i = k * width; i < b->n * width; i++)
    if (got[i] != 0x5a)
      ck_abort_msg("byte %zu behind the last was written", i - k * width);
  free(got);
}

static void check_all(bench *b, bool index, bool payload)
{
  uint32_t *numbers = malloc(4 * b->n + 4);
  void *got = array_read(&b->count);
  uint64_t count = 0;

  memcpy(&count, got, b->count.width);
  b->kept = 0;
  for (size_t i = 0; i < b->n; i++) {
    numbers[i] = (uint32_t)i;
    b->kept += b->keep[i];
  }
  ck_assert_msg(count == b->kept, "%s, n = %zu: %llu kept, not %zu",
                kiln_dtype_name(b->type), b->n, (unsigned long long)count,
                b->kept);
  check_moved(b, &b->out, b->x, b->width);
  if (index)
    check_moved(b, &b->index, numbers, 4);
  if (payload)
    check_moved(b, &b->out_payload, b->numbers, 8);
  free(got);
  free(numbers);
}

/* ---- Select -------------------------------------------------------------------- */

static void select_if(kiln_dtype type, size_t n, size_t shift, int64_t above,
                      bool more)
{
  uint64_t state = n + 1;
  bench b;

  bench_make(&b, type, n, shift, random_wholes(type, n, 0, 99, &state));
  for (size_t i = 0; i < n; i++)
    b.keep[i] = value_at(type, b.x, i) > (double)above;
  {
    const int32_t level = (int32_t)above;
    const kiln_param param = {"level", KILN_I32, &level, false};
    const kiln_select_desc desc = {
        .x = {.in = {b.in.array}},
        .predicate = "x > level",
        .n = n,
        .out = b.out.array,
        .out_index = more ? b.index.array : (kiln_array){0},
        .payload = more ? b.payload.array : (kiln_array){0},
        .out_payload = more ? b.out_payload.array : (kiln_array){0},
        .count = b.count.array,
        .code = {.params = &param, .n_params = 1}};

    ck_kiln_ok(kiln_select(stream, &desc, NULL));
  }
  check_all(&b, more, more);
  bench_free(&b);
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
    void *flags = random_wholes(flag_types[k], N, 0, 1, &state);
    test_array f = array_make(flag_types[k], N, k, flags, 0);
    bench b;

    bench_make(&b, types[k], N, k % 2,
               random_bits(N * kiln_dtype_size(types[k]), &state));
    for (size_t i = 0; i < N; i++)
      b.keep[i] = value_at(flag_types[k], flags, i) != 0;
    {
      const kiln_select_desc desc = {.x = {.in = {b.in.array}},
                                     .flags = f.array,
                                     .n = N,
                                     .out = b.out.array,
                                     .out_index = b.index.array,
                                     .count = b.count.array};

      ck_kiln_ok(kiln_select(stream, &desc, NULL));
    }
    check_all(&b, true, false);
    bench_free(&b);
    array_free(&f);
    free(flags);
  }
}
END_TEST

/* The predicate sees the arrays, the map makes the elements. */
START_TEST(test_map)
{
  enum { N = 7001 };
  uint64_t state = 5;
  float *x = random_wholes(KILN_F32, N, -50, 50, &state);
  int8_t *y = random_wholes(KILN_I8, N, -50, 50, &state);
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
  got = array_read(&out);
  got_index = array_read(&index);
  got_count = array_read(&count);
  for (size_t i = 0; i < N; i++)
    if (x[i] > y[i] && i % 3 != 0) {
      ck_assert_double_eq(got[k], (double)x[i] / 2 + y[i]);
      ck_assert_uint_eq(got_index[k++], i);
    }
  ck_assert_uint_eq(got_count[0], k);
  free(got);
  free(got_index);
  free(got_count);
  free(x);
  free(y);
  array_free(&a);
  array_free(&b);
  array_free(&out);
  array_free(&index);
  array_free(&count);
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
  got = array_read(&index);
  got_count = array_read(&count);
  ck_assert_uint_eq(got_count[0], 714);
  for (uint32_t k = 0; k < 714; k++)
    ck_assert_uint_eq(got[k], 7 * k + 3);
  free(got);
  free(got_count);
  array_free(&index);
  array_free(&count);
}
END_TEST

/* ---- Unique -------------------------------------------------------------------- */

static void unique(kiln_dtype type, size_t n, size_t shift, int64_t values,
                   bool more)
{
  uint64_t state = n + 7;
  bench b;

  bench_make(&b, type, n, shift, random_wholes(type, n, 0, values - 1, &state));
  for (size_t i = 0; i < n; i++)
    b.keep[i] = i == 0 || value_at(type, b.x, i) != value_at(type, b.x, i - 1);
  {
    const kiln_unique_desc desc = {
        .x = {.in = {b.in.array}},
        .n = n,
        .out = b.out.array,
        .out_index = more ? b.index.array : (kiln_array){0},
        .payload = more ? b.payload.array : (kiln_array){0},
        .out_payload = more ? b.out_payload.array : (kiln_array){0},
        .count = b.count.array};

    ck_kiln_ok(kiln_unique(stream, &desc, NULL));
  }
  check_all(&b, more, more);
  bench_free(&b);
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
    float *x = random_wholes(KILN_F32, N, 0, 50, &state);
    bench b;

    for (size_t i = 0; i < N; i += 3)
      x[i] = i % 2 ? NAN : 1;
    bench_make(&b, KILN_F32, N, 0, x);
    for (size_t i = 0; i < N; i++)
      b.keep[i] = i == 0 || (which == 0 ? !(x[i - 1] == x[i])
                                        : !(fabsf(x[i - 1] - x[i]) < 10));
    {
      const kiln_unique_desc desc = {
          .x = {.in = {b.in.array}},
          .equal = which == 0 ? NULL : "fabsf(a - b) < tolerance",
          .n = N,
          .out = b.out.array,
          .count = b.count.array,
          .code = {.params = &param, .n_params = 1}};

      ck_kiln_ok(kiln_unique(stream, &desc, NULL));
    }
    check_all(&b, false, false);
    bench_free(&b);
  }
}
END_TEST

/* ---- Memory, graphs, random calls ----------------------------------------------- */

START_TEST(test_workspace)
{
  enum { N = 50000 };
  uint64_t state = 2;
  kiln_workspace w = {0};
  test_array room;
  size_t bytes = 0;
  bench b;

  bench_make(&b, KILN_U32, N, 0, random_bits(4 * N, &state));
  for (size_t i = 0; i < N; i++)
    b.keep[i] = b.x[4 * i] % 2 == 1;
  {
    const kiln_select_desc desc = {.x = {.in = {b.in.array}},
                                   .predicate = "x % 2 == 1",
                                   .n = N,
                                   .out = b.out.array,
                                   .count = b.count.array};

    ck_kiln_ok(kiln_select_workspace(stream, &desc, &bytes));
    ck_assert_uint_gt(bytes, 0);
    room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
    w = (kiln_workspace){room.array.data, bytes - 1};
    ck_assert_int_eq(kiln_select(stream, &desc, &w), KILN_EINVAL);
    w.size = bytes;
    ck_kiln_ok(kiln_select(stream, &desc, &w));
    check_all(&b, false, false);
    free(array_read(&room));
    w.data = b.in.array.data;
    ck_assert_int_eq(kiln_select(stream, &desc, &w), KILN_EINVAL);
  }
  array_free(&room);
  bench_free(&b);
}
END_TEST

START_TEST(test_capture)
{
  enum { N = 150001 };
  uint64_t state = 6;
  CUgraphExec graph;
  bench b;

  bench_make(&b, KILN_U32, N, 0, random_bits(4 * N, &state));
  for (size_t i = 0; i < N; i++)
    b.keep[i] = b.x[4 * i] % 2 == 1;
  {
    const kiln_select_desc desc = {.x = {.in = {b.in.array}},
                                   .predicate = "x % 2 == 1",
                                   .n = N,
                                   .out = b.out.array,
                                   .count = b.count.array};

    capture_begin();
    ck_kiln_ok(kiln_select(stream, &desc, NULL));
    graph = capture_end();
  }
  for (int k = 0; k < 3; k++) {
    ck_kiln_ok(kiln_fill(device, b.out.array.data, 0x5a, 1, 4 * N));
    capture_replay(graph);
    check_all(&b, false, false);
  }
  capture_free(graph);
  bench_free(&b);
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
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array m = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_array x = a.array, out = b.array, count = m.array;
  const kiln_array as_int = {out.data, KILN_I32};
  const kiln_array signed_count = {count.data, KILN_I32};
  const kiln_array odd = {out.data + 2, KILN_F32};
  const kiln_select_desc bad[] = {
      {.n = 10, .predicate = "x", .out = out, .count = count},
      {.x = {.in = {x}}, .n = 10, .out = out, .count = count},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .flags = x,
       .out = out,
       .count = count},
      {.x = {.in = {x}}, .n = 10, .predicate = "x", .out = x, .count = count},
      {.x = {.in = {x}}, .n = 10, .predicate = "x", .out = odd, .count = count},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .out = as_int,
       .count = count},
      {.x = {.in = {x}}, .n = 10, .predicate = "x", .out = out},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .out = out,
       .count = signed_count},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .out = out,
       .count = {out.data, KILN_U32}},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .out = out,
       .out_index = as_int,
       .count = count},
      {.x = {.in = {x}},
       .n = 10,
       .predicate = "x",
       .out_payload = out,
       .count = count},
      {.x = {.in = {x}},
       .n = UINT64_C(1) << 33,
       .predicate = "x",
       .out = out,
       .count = count},
  };
  const kiln_unique_desc overlap = {
      .x = {.in = {x}}, .n = 10, .out = x, .count = count};
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_select(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_select(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_select(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_select_workspace(stream, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_unique(stream, &overlap, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_unique_workspace(stream, &overlap, &bytes),
                   KILN_EINVAL);
  free(array_read(&b));
  free(array_read(&m));
  array_free(&a);
  array_free(&b);
  array_free(&m);
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
  array_free(&a);
  array_free(&b);
  array_free(&m);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("select");
  TCase *t = tcase_create("select");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, CASE_SECONDS);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_shares);
  tcase_add_test(t, test_flags);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_no_array);
  tcase_add_loop_test(t, test_unique, 0, N_ALL_TYPES);
  tcase_add_test(t, test_equality);
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_bad_text);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
