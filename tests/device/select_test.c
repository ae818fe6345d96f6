/* select_test.c -- kiln_select and kiln_unique: every type, length and
 * alignment, predicates, flags, indices and payloads, graphs, and invalid
 * arguments. */
#include "operation_checks.h"

static const size_t lengths[] = {0,    1,    31,   32,   33,    255,  2047,
                                 2048, 2049, 4096, 8191, 10007, 65537};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* The arrays of a call. The indices and the payload are optional. */
typedef struct arrays {
  kiln_dtype type;
  size_t n;
  const void *x; /* elements */
  test_array in, out, index, payload, out_payload, count;
  uint64_t *numbers; /* the payload */
} arrays;

/* Makes all arrays for n elements. teardown() frees them. */
static arrays arrays_make(kiln_dtype type, size_t n, size_t shift,
                          const void *x)
{
  arrays a = {.type = type, .n = n, .x = x, .numbers = kept(malloc(8 * n + 8))};

  for (size_t i = 0; i < n; i++)
    a.numbers[i] = i * 0x9e3779b97f4a7c15u;
  a.in = array_make(type, n, shift, x, 0);
  a.out = array_make(type, n, shift / 2, NULL, 0x5a);
  a.index = array_make(KILN_U32, n, shift, NULL, 0x5a);
  a.payload = array_make(KILN_U64, n, 0, a.numbers, 0);
  a.out_payload = array_make(KILN_U64, n, shift, NULL, 0x5a);
  a.count = array_make(shift % 2 ? KILN_U64 : KILN_U32, 1, 1, NULL, 0x5a);
  return a;
}

/* Adds a result: `to` must begin with the elements of `from` that are kept, in
 * order. The elements behind them must not change. */
static void writes_moved(operation_call *c, const test_array *to,
                         const void *from, const bool *keep)
{
  unsigned char *want = kept(array_read(to));

  for (size_t i = 0, k = 0; i < to->n; i++)
    if (keep[i])
      memcpy(want + k++ * to->width,
             (const unsigned char *)from + i * to->width, to->width);
  call_writes(c, to, want);
}

/* All results. */
static void writes_kept(operation_call *c, const arrays *a, const bool *keep,
                        bool more)
{
  uint32_t *indices = kept(malloc(4 * a->n + 4));
  void *count = kept(calloc(1, 8));
  int64_t n_chosen = 0;

  for (size_t i = 0; i < a->n; i++) {
    indices[i] = (uint32_t)i;
    n_chosen += keep[i];
  }
  set_whole(a->count.array.type, count, 0, n_chosen);
  writes_moved(c, &a->out, a->x, keep);
  call_writes(c, &a->count, count);
  if (more) {
    writes_moved(c, &a->index, indices, keep);
    writes_moved(c, &a->out_payload, a->numbers, keep);
  }
}

/* ---- Select -------------------------------------------------------------- */

/* Makes a call. `desc` has all members but the arrays and their length; `more`
 * adds the indices and the payload. */
static operation_call select_call(const arrays *a, kiln_select_desc desc,
                                  const bool *keep, bool more)
{
  operation_call c;

  desc.x.in[0] = a->in.array;
  desc.n = a->n;
  desc.out = a->out.array;
  desc.count = a->count.array;
  if (more) {
    desc.out_index = a->index.array;
    desc.payload = a->payload.array;
    desc.out_payload = a->out_payload.array;
  }
  c = CALL_OF(kiln_select, &desc);
  writes_kept(&c, a, keep, more);
  return c;
}

static operation_call select_above(kiln_dtype type, size_t n, size_t shift,
                                   int32_t above, bool more)
{
  uint64_t state = n + 1;
  const void *x = kept(random_wholes(type, n, 0, 99, &state));
  const arrays a = arrays_make(type, n, shift, x);
  bool *keep = kept(calloc(n + 1, 1));
  int32_t *level = kept(malloc(sizeof *level));
  kiln_param *param = kept(malloc(sizeof *param));

  *level = above;
  *param = (kiln_param){"level", KILN_I32, level, false};
  for (size_t i = 0; i < n; i++)
    keep[i] = value_at(type, x, i) > (double)above;
  return select_call(
      &a,
      (kiln_select_desc){.predicate = "x > level",
                         .code = {.params = param, .n_params = 1}},
      keep, more);
}

START_TEST(test_types)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    ck_call(select_above(all_types[_i], lengths[k], k % 2, 49, k % 2 == 0));
}
END_TEST

/* The predicate selects no element, all elements, or a few. */
START_TEST(test_shares)
{
  static const int32_t above[] = {99, -1, 97, 1};

  for (size_t k = 0; k < 4; k++) {
    ck_call(select_above(KILN_I32, 20011, k, above[k], false));
    ck_call(select_above(KILN_U8, 40009, k, above[k], true));
  }
}
END_TEST

/* Selects random bits by flags. The bits must arrive unchanged, including those
 * of NaNs in halves. */
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
    const arrays a =
        arrays_make(types[k], N, k % 2,
                    kept(random_bits(N * kiln_dtype_size(types[k]), &state)));
    bool *keep = kept(calloc(N, 1));

    for (size_t i = 0; i < N; i++)
      keep[i] = value_at(flag_types[k], flags, i) != 0;
    ck_call(select_call(&a, (kiln_select_desc){.flags = f.array}, keep, true));
  }
}
END_TEST

/* The predicate reads the input arrays, and the map computes the selected
 * elements. */
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

/* Selects indices alone, without an array. */
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

/* ---- Unique -------------------------------------------------------------- */

/* As select_call(). */
static operation_call unique_call(const arrays *a, kiln_unique_desc desc,
                                  const bool *keep, bool more)
{
  operation_call c;

  desc.x.in[0] = a->in.array;
  desc.n = a->n;
  desc.out = a->out.array;
  desc.count = a->count.array;
  if (more) {
    desc.out_index = a->index.array;
    desc.payload = a->payload.array;
    desc.out_payload = a->out_payload.array;
  }
  c = CALL_OF(kiln_unique, &desc);
  writes_kept(&c, a, keep, more);
  return c;
}

static operation_call unique_values(kiln_dtype type, size_t n, size_t shift,
                                    int64_t values, bool more)
{
  uint64_t state = n + 7;
  const void *x = kept(random_wholes(type, n, 0, values - 1, &state));
  const arrays a = arrays_make(type, n, shift, x);
  bool *keep = kept(calloc(n + 1, 1));

  for (size_t i = 0; i < n; i++)
    keep[i] = i == 0 || value_at(type, x, i) != value_at(type, x, i - 1);
  return unique_call(&a, (kiln_unique_desc){0}, keep, more);
}

START_TEST(test_unique)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    ck_call(unique_values(all_types[_i], lengths[k], k % 2,
                          (int64_t)(k % 3 + 1), k % 2 == 1));
}
END_TEST

/* The user's equality compares neighbours. By default every NaN differs from
 * every other. */
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
    bool *keep = kept(calloc(N, 1));
    arrays a;

    for (size_t i = 0; i < N; i += 3)
      x[i] = i % 2 ? NAN : 1;
    a = arrays_make(KILN_F32, N, 0, x);
    for (size_t i = 0; i < N; i++)
      keep[i] = i == 0 || (which == 0 ? !(x[i - 1] == x[i])
                                      : !(fabsf(x[i - 1] - x[i]) < 10));
    ck_call(unique_call(&a, desc, keep, false));
  }
}
END_TEST

/* ---- Memory, graphs, random calls ---------------------------------------- */

START_TEST(test_workspace)
{
  const operation_call c = select_above(KILN_U32, 150001, 0, 49, false);
  const kiln_select_desc *desc = c.desc;
  kiln_workspace w = {desc->x.in[0].data, 0};

  w.size = ck_workspace(c);
  ck_assert_uint_gt(w.size, 0);
  ck_refused(c.op, desc, &w, KILN_EINVAL, "x and the workspace overlap");
}
END_TEST

START_TEST(test_capture)
{
  ck_capture(select_above(KILN_U32, 150001, 0, 49, false));
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = test_random(state) % 2 ? KILN_I32 : KILN_U8;
  const size_t n = (size_t)(test_random(state) % 6000);
  const size_t shift = (size_t)(test_random(state) % 2);
  const bool more = type == KILN_I32 && test_random(state) % 2 == 0;

  (void)k;
  if (test_random(state) % 3 == 0)
    return unique_values(type, n, shift, 2, more);
  return select_above(type, n, shift, (int32_t)(test_random(state) % 100),
                      more);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 200, 11);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_select_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  const operation_call c = select_above(KILN_F32, 100, 0, 50, false);
  const kiln_select_desc *good = c.desc;
  const kiln_array x = good->x.in[0], out = good->out;
  const bad_argument bad[] = {
      {KILN_EINVAL, "x: neither an array", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL,
       "either a predicate or flags",
       {MEMBER_OF(predicate, NULL)}},
      {KILN_EINVAL, "either a predicate or flags", {MEMBER_OF(flags, x)}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, x)}},
      {KILN_EINVAL,
       "out is not aligned",
       {MEMBER_OF(out, {out.data + 2, KILN_F32})}},
      {KILN_EINVAL, "out is i32", {MEMBER_OF(out, {out.data, KILN_I32})}},
      {KILN_EINVAL, "count is neither", {MEMBER_OF(count, {0})}},
      {KILN_EINVAL,
       "count is neither",
       {MEMBER_OF(count, {good->count.data, KILN_I32})}},
      {KILN_EINVAL,
       "out and count overlap",
       {MEMBER_OF(count, {out.data, KILN_U32})}},
      {KILN_EINVAL,
       "out_index is neither",
       {MEMBER_OF(out_index, {out.data, KILN_I32})}},
      {KILN_EINVAL,
       "out_payload have different types",
       {MEMBER_OF(out_payload, out)}},
      {KILN_EINVAL,
       "count is u32, too small",
       {MEMBER_OF(n, UINT64_C(1) << 33)}},
      {KILN_ECOMPILE,
       "the predicate does not compile: line 2",
       {MEMBER_OF(predicate, "x >\n  qq")}},
  };

  ck_bad_arguments(c, bad);
  ck_assert_ptr_null(strstr(kiln_last_error()->log, "user"));
}
END_TEST

START_TEST(test_bad_unique)
{
  const operation_call c = unique_values(KILN_F32, 10, 0, 3, false);
  const kiln_unique_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL,
       "x and out overlap",
       {MEMBER(kiln_unique_desc, out, good->x.in[0])}},
      {KILN_ECOMPILE,
       "the equality does not compile: line 1",
       {MEMBER(kiln_unique_desc, equal, "a == (b")}},
  };

  ck_bad_arguments(c, bad);
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
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_bad_unique);
  return s;
}

DEVICE_TEST_MAIN(suite)
