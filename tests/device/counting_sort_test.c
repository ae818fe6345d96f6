/* counting_sort_test.c -- kiln_counting_sort: every integer type, keys alone and
 * with values, one digit and two, keys outside the range, against counting one by
 * one. */
#include "ops_fixture.h"

#include <kiln/histogram.h>

static const kiln_dtype integers[] = {KILN_I8,  KILN_U8,  KILN_I16, KILN_U16,
                                      KILN_I32, KILN_U32, KILN_I64, KILN_U64};

static int64_t key_at(kiln_dtype type, const void *keys, size_t i)
{
  return (int64_t)value_at(type, keys, i);
}

/* Places of the keys within the range, in order, by one pass a key value;
 * start[k]: where value k's begin, range + 1 of them. */
static uint32_t *reference(kiln_dtype type, const void *keys, size_t n,
                           int64_t lowest, uint32_t range, uint64_t *start)
{
  uint32_t *from = malloc((n + 1) * sizeof *from);
  uint64_t *next = malloc((range + 1) * sizeof *next);

  memset(start, 0, (range + 1) * sizeof *start);
  for (size_t i = 0; i < n; i++) {
    const int64_t k = key_at(type, keys, i) - lowest;

    if (k >= 0 && k < range)
      start[k + 1]++;
  }
  for (uint32_t k = 0; k < range; k++)
    start[k + 1] += start[k];
  memcpy(next, start, (range + 1) * sizeof *next);
  for (size_t i = 0; i < n; i++) {
    const int64_t k = key_at(type, keys, i) - lowest;

    if (k >= 0 && k < range)
      from[next[k]++] = (uint32_t)i;
  }
  free(next);
  return from;
}

typedef struct arrays {
  test_array keys, keys_out, values, values_out, offsets;
} arrays;

/* Behind the last key nothing may be written. */
static void check_moved(const test_array *out, const void *in,
                        const uint32_t *from, uint64_t total, const char *what)
{
  unsigned char *got = array_read(out);

  for (size_t i = 0; i < out->n; i++)
    if (i < total)
      ck_assert_msg(memcmp(got + i * out->width,
                           (const unsigned char *)in + from[i] * out->width,
                           out->width) == 0,
                    "%s of %s %zu of %zu", what,
                    kiln_dtype_name(out->array.type), i, out->n);
    else
      for (size_t b = 0; b < out->width; b++)
        ck_assert_uint_eq(got[i * out->width + b], 0x5a);
  free(got);
}

static void check_offsets(const test_array *offsets, const uint64_t *start)
{
  void *got = array_read(offsets);

  for (size_t k = 0; k < offsets->n; k++)
    ck_assert_uint_eq(offsets->array.type == KILN_U32 ? ((uint32_t *)got)[k]
                                                      : ((uint64_t *)got)[k],
                      start[k]);
  free(got);
}

/* `range` 0: the type's. `valued`, `offset`: KILN_DTYPE_NONE for none. */
static void check_sort(kiln_dtype type, const void *keys, size_t n,
                       int64_t lowest, uint32_t range, kiln_dtype valued,
                       kiln_dtype offset, size_t shift)
{
  const size_t bits = 8 * kiln_dtype_size(type);
  const uint32_t all = range != 0 ? range : 1u << bits;
  const int64_t least = range != 0             ? lowest
                        : type_is_signed(type) ? -(INT64_C(1) << (bits - 1))
                                               : 0;
  const kiln_dtype v = valued != KILN_DTYPE_NONE ? valued : KILN_U8;
  uint64_t *start = malloc((all + 1) * sizeof *start);
  uint32_t *from = reference(type, keys, n, least, all, start);
  void *values = malloc(8 * n + 1);
  arrays a = {.keys = array_make(type, n, shift, keys, 0),
              .keys_out = array_make(type, n, shift / 2, NULL, 0x5a),
              .values_out = array_make(v, n, 0, NULL, 0x5a),
              .offsets = array_make(offset == KILN_U64 ? KILN_U64 : KILN_U32,
                                    all + 1, 0, NULL, 1)};
  kiln_counting_sort_desc desc = {.keys = a.keys.array,
                                  .keys_out = a.keys_out.array,
                                  .n = n,
                                  .lowest = lowest,
                                  .range = range};

  for (size_t i = 0; i < n; i++)
    set_whole(v, values, i, (int64_t)i);
  a.values = array_make(v, n, 1, values, 0);
  if (valued != KILN_DTYPE_NONE) {
    desc.values = a.values.array;
    desc.values_out = a.values_out.array;
  }
  if (offset != KILN_DTYPE_NONE)
    desc.offsets = a.offsets.array;
  ck_kiln_ok(kiln_counting_sort(stream, &desc, NULL));
  check_moved(&a.keys_out, keys, from, start[all], "key");
  if (valued != KILN_DTYPE_NONE)
    check_moved(&a.values_out, values, from, start[all], "value");
  if (offset != KILN_DTYPE_NONE)
    check_offsets(&a.offsets, start);
  free(start);
  free(from);
  free(values);
  array_free(&a.keys);
  array_free(&a.keys_out);
  array_free(&a.values);
  array_free(&a.values_out);
  array_free(&a.offsets);
}

static void check_random(kiln_dtype type, size_t n, int64_t least, int64_t most,
                         int64_t lowest, uint32_t range, kiln_dtype valued,
                         kiln_dtype offset, uint64_t *state)
{
  void *keys = random_wholes(type, n, least, most, state);

  check_sort(type, keys, n, lowest, range, valued, offset, n % 4);
  free(keys);
}

/* ---- Tests ----------------------------------------------------------------------- */

START_TEST(test_types)
{
  const kiln_dtype type = integers[_i];
  const int64_t least = type_is_signed(type) ? -40 : 0;
  uint64_t state = 3 + (uint64_t)_i;

  check_random(type, 5003, least, 100, least, 141, KILN_DTYPE_NONE, KILN_U32,
               &state);
  check_random(type, 5003, least, 100, least + 10, 60, KILN_DTYPE_NONE,
               KILN_U32, &state);
  check_random(type, 9001, least, 100, least, 141, integers[(_i + 3) % 8],
               KILN_U64, &state);
  if (_i % 3 == 0)
    check_random(type, 4100, least, 100, 5, 50, KILN_F64, KILN_DTYPE_NONE,
                 &state);
}
END_TEST

/* All of an 8-bit or 16-bit type. */
START_TEST(test_whole_types)
{
  uint64_t state = 5;
  void *bits = random_bits(2 * 30011, &state);

  for (int k = 0; k < 4; k++) {
    check_sort(integers[k], bits, 30011, 0, 0, KILN_DTYPE_NONE, KILN_DTYPE_NONE,
               0);
    check_sort(integers[k], bits, 20011, 0, 0, KILN_U32, KILN_U32, 1);
  }
  free(bits);
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    2,    31,   32,   33,   255,
                                   4095, 4096, 4097, 8191, 8193, 60013};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];

    check_random(KILN_U32, n, 0, 9, 0, 10, KILN_DTYPE_NONE, KILN_U32, &state);
    check_random(KILN_U32, n, 0, 9, 0, 10, KILN_U32, KILN_U32, &state);
    check_random(KILN_I32, n, -9000, 9000, -8000, 15000, KILN_DTYPE_NONE,
                 KILN_DTYPE_NONE, &state);
    check_random(KILN_I32, n, -9000, 9000, -8000, 15000, KILN_U16, KILN_U64,
                 &state);
  }
}
END_TEST

/* One key, two ends of the range, ascending, descending, long runs of few. */
START_TEST(test_shapes)
{
  enum { N = 20000 };
  int32_t *keys = malloc(N * sizeof *keys);

  for (int shape = 0; shape < 5; shape++) {
    for (int32_t i = 0; i < N; i++)
      keys[i] = shape == 0   ? 77
                : shape == 1 ? i % 2 * 65535
                : shape == 2 ? i
                : shape == 3 ? N - i
                             : i / 3000 * 9000;
    check_sort(KILN_I32, keys, N, 0, 65536, KILN_DTYPE_NONE, KILN_DTYPE_NONE,
               0);
    check_sort(KILN_I32, keys, N, 0, 65536, KILN_U32, KILN_DTYPE_NONE, 0);
  }
  free(keys);
}
END_TEST

/* In place; values alone; a workspace of the caller's. */
START_TEST(test_places)
{
  enum { N = 9000, RANGE = 300 };
  uint64_t state = 13, start[RANGE + 1];
  uint16_t *keys = random_wholes(KILN_U16, N, 0, RANGE - 1, &state);
  uint32_t *from = reference(KILN_U16, keys, N, 0, RANGE, start);
  uint32_t *values = random_bits(N * 4, &state);
  test_array in = array_make(KILN_U16, N, 0, keys, 0);
  test_array held = array_make(KILN_U32, N, 0, values, 0), room;
  test_array out = array_make(KILN_U32, N, 0, NULL, 0);
  kiln_counting_sort_desc desc = {.keys = in.array,
                                  .values = held.array,
                                  .values_out = out.array,
                                  .n = N,
                                  .range = RANGE};
  kiln_workspace w = {0};

  ck_kiln_ok(kiln_counting_sort_workspace(stream, &desc, &w.size));
  room = array_make(KILN_U8, w.size, 0, NULL, 0xff);
  w.data = room.array.data;
  ck_kiln_ok(kiln_counting_sort(stream, &desc, &w));
  check_moved(&out, values, from, N, "value");
  free(array_read(&room));
  w.size--;
  ck_assert_int_eq(kiln_counting_sort(stream, &desc, &w), KILN_EINVAL);
  desc = (kiln_counting_sort_desc){
      .keys = in.array, .keys_out = in.array, .n = N, .range = RANGE};
  ck_kiln_ok(kiln_counting_sort(stream, &desc, NULL));
  check_moved(&in, keys, from, N, "key");
  free(keys);
  free(from);
  free(values);
  array_free(&in);
  array_free(&held);
  array_free(&room);
  array_free(&out);
}
END_TEST

/* In a graph, run again and again over other keys; with and without values. */
START_TEST(test_capture)
{
  enum { N = 9000, RANGE = 700 };
  const bool pairs = _i != 0;
  uint32_t *values = malloc(N * sizeof *values);
  test_array in = array_make(KILN_U16, N, 0, NULL, 0), held;
  test_array out = array_make(KILN_U16, N, 0, NULL, 0);
  test_array moved = array_make(KILN_U32, N, 0, NULL, 0);
  kiln_counting_sort_desc desc = {
      .keys = in.array, .keys_out = out.array, .n = N, .range = RANGE};
  uint64_t state = 81, start[RANGE + 1];
  CUgraphExec exec;

  for (uint32_t i = 0; i < N; i++)
    values[i] = 3 * i;
  held = array_make(KILN_U32, N, 0, values, 0);
  if (pairs) {
    desc.values = held.array;
    desc.values_out = moved.array;
  }
  capture_begin();
  ck_kiln_ok(kiln_counting_sort(stream, &desc, NULL));
  exec = capture_end();
  for (int turn = 0; turn < 3; turn++) {
    uint16_t *x = random_wholes(KILN_U16, N, 0, RANGE - 1 - turn * 200, &state);
    uint32_t *from = reference(KILN_U16, x, N, 0, RANGE, start);

    ck_kiln_ok(kiln_copy_to_device(device, in.array.data, x, N * sizeof *x));
    capture_replay(exec);
    check_moved(&out, x, from, N, "key");
    if (pairs)
      check_moved(&moved, values, from, N, "value");
    free(x);
    free(from);
  }
  capture_free(exec);
  free(values);
  array_free(&in);
  array_free(&out);
  array_free(&held);
  array_free(&moved);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(120);
  uint64_t state = 71;

  for (unsigned long k = 0; k < calls; k++) {
    const kiln_dtype type = test_random(&state) % 2 ? KILN_I32 : KILN_U64;

    check_random(type, test_random(&state) % 5000, 0,
                 1 + (int64_t)(test_random(&state) % 2000),
                 (int64_t)(test_random(&state) % 200),
                 1 + (uint32_t)(test_random(&state) % 3000),
                 test_random(&state) % 2 ? KILN_U32 : KILN_DTYPE_NONE,
                 test_random(&state) % 2 ? KILN_U32 : KILN_DTYPE_NONE, &state);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_I32, 100, 0, NULL, 0x5a);
  const kiln_array f = {a.array.data, KILN_F32}, g = {b.array.data, KILN_F32};
  const kiln_array u = {a.array.data, KILN_U32}, o = {b.array.data, KILN_U32};
  const kiln_array x = {a.array.data, KILN_I8}, y = {b.array.data, KILN_I8};
  const kiln_counting_sort_desc bad[] = {
      {.keys = a.array, .keys_out = b.array, .n = 9},
      {.keys = a.array, .keys_out = b.array, .n = 9, .range = 65537},
      {.keys = a.array, .n = 9, .range = 5},
      {.keys = f, .keys_out = g, .n = 9, .range = 5},
      {.keys = a.array, .keys_out = o, .n = 9, .range = 5},
      {.keys = u, .keys_out = o, .n = 9, .lowest = -1, .range = 5},
      {.keys = x, .keys_out = y, .n = 9, .lowest = 120, .range = 9},
      {.keys = a.array,
       .keys_out = a.array,
       .values = b.array,
       .values_out = b.array,
       .n = 9,
       .range = 5},
      {.keys = a.array,
       .keys_out = b.array,
       .n = 9,
       .range = 5,
       .offsets = a.array},
      {.keys = a.array,
       .keys_out = b.array,
       .n = 9,
       .range = 5,
       .offsets = {a.array.data, KILN_U32}},
  };
  uint8_t *got;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_counting_sort(stream, &bad[k], NULL) == KILN_EINVAL,
                  "%zu", k);
  ck_assert_int_eq(kiln_counting_sort(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_counting_sort(stream, NULL, NULL), KILN_EINVAL);
  got = array_read(&b);
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
  free(got);
  array_free(&a);
  array_free(&b);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("counting_sort");
  TCase *t = tcase_create("counting_sort");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_types, 0, 8);
  tcase_add_test(t, test_whole_types);
  tcase_add_test(t, test_lengths);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_places);
  tcase_add_loop_test(t, test_capture, 0, 2);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
