/* counting_sort_test.c -- kiln_counting_sort for every integer type, with and
 * without values, with one and two digits, and with keys outside the range,
 * compared with a sequential counting sort. */
#include "operation_checks.h"

#include <kiln/histogram.h>

static const kiln_dtype integers[] = {KILN_I8,  KILN_U8,  KILN_I16, KILN_U16,
                                      KILN_I32, KILN_U32, KILN_I64, KILN_U64};

static int64_t key_at(kiln_dtype type, const void *keys, size_t i)
{
  return (int64_t)value_at(type, keys, i);
}

/* Sequential counting sort. Returns the indices of the keys within the range in
 * sorted order; start[k] becomes the position of the first key of value k, for
 * range + 1 values. */
static size_t *reference(kiln_dtype type, const void *keys, size_t n,
                         int64_t lowest, uint32_t range, uint64_t *start)
{
  size_t *from = kept(malloc((n + 1) * sizeof *from));
  uint64_t *next = kept(malloc((range + 1) * sizeof *next));

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
      from[next[k]++] = i;
  }
  return from;
}

/* If `range` is 0, the range is that of the type. KILN_DTYPE_NONE for `valued`
 * or `offset` means a call without values or offsets. The call must write
 * nothing behind the last key within the range. */
static operation_call sort_call(kiln_dtype type, const void *keys, size_t n,
                                int64_t lowest, uint32_t range,
                                kiln_dtype valued, kiln_dtype offset,
                                size_t shift)
{
  const size_t bits = 8 * kiln_dtype_size(type);
  const uint32_t all = range != 0 ? range : 1u << bits;
  const int64_t least = range != 0             ? lowest
                        : type_is_signed(type) ? -(INT64_C(1) << (bits - 1))
                                               : 0;
  uint64_t *start = kept(calloc(all + 1, sizeof *start));
  const size_t *from = reference(type, keys, n, least, all, start);
  const test_array in = array_make(type, n, shift, keys, 0);
  const test_array out = array_make(type, n, shift / 2, NULL, 0x5a);
  kiln_counting_sort_desc desc = {.keys = in.array,
                                  .keys_out = out.array,
                                  .n = n,
                                  .lowest = lowest,
                                  .range = range};
  test_array values_out = {0}, offsets = {0};
  void *values = kept(malloc(8 * n + 1)), *wanted = kept(malloc(8 * all + 8));
  operation_call c;

  if (valued != KILN_DTYPE_NONE) {
    for (size_t i = 0; i < n; i++)
      set_whole(valued, values, i, (int64_t)i);
    desc.values = array_make(valued, n, 1, values, 0).array;
    values_out = array_make(valued, n, 0, NULL, 0x5a);
    desc.values_out = values_out.array;
  }
  if (offset != KILN_DTYPE_NONE) {
    for (size_t k = 0; k <= all; k++)
      set_whole(offset, wanted, k, (int64_t)start[k]);
    offsets = array_make(offset, all + 1, 0, NULL, 1);
    desc.offsets = offsets.array;
  }
  c = CALL_OF(kiln_counting_sort, &desc);
  call_writes(&c, &out, gathered(&out, keys, from, 0, start[all]));
  if (valued != KILN_DTYPE_NONE)
    call_writes(&c, &values_out,
                gathered(&values_out, values, from, 0, start[all]));
  if (offset != KILN_DTYPE_NONE)
    call_writes(&c, &offsets, wanted);
  return c;
}

static operation_call random_call(kiln_dtype type, size_t n, int64_t least,
                                  int64_t most, int64_t lowest, uint32_t range,
                                  kiln_dtype valued, kiln_dtype offset,
                                  uint64_t *state)
{
  return sort_call(type, kept(random_wholes(type, n, least, most, state)), n,
                   lowest, range, valued, offset, n % 4);
}

/* ---- Tests --------------------------------------------------------------- */

START_TEST(test_types)
{
  const kiln_dtype type = integers[_i];
  const int64_t least = type_is_signed(type) ? -40 : 0;
  uint64_t state = 3 + (uint64_t)_i;

  ck_call(random_call(type, 5003, least, 100, least, 141, KILN_DTYPE_NONE,
                      KILN_U32, &state));
  ck_call(random_call(type, 5003, least, 100, least + 10, 60, KILN_DTYPE_NONE,
                      KILN_U32, &state));
  ck_call(random_call(type, 9001, least, 100, least, 141,
                      integers[(_i + 3) % 8], KILN_U64, &state));
  if (_i % 3 == 0)
    ck_call(random_call(type, 4100, least, 100, 5, 50, KILN_F64,
                        KILN_DTYPE_NONE, &state));
}
END_TEST

/* The range is that of a whole 8-bit or 16-bit type. */
START_TEST(test_whole_types)
{
  uint64_t state = 5;
  void *bits = kept(random_bits(2 * 30011, &state));

  for (int k = 0; k < 4; k++) {
    ck_call(sort_call(integers[k], bits, 30011, 0, 0, KILN_DTYPE_NONE,
                      KILN_DTYPE_NONE, 0));
    ck_call(sort_call(integers[k], bits, 20011, 0, 0, KILN_U32, KILN_U32, 1));
  }
}
END_TEST

START_TEST(test_lengths)
{
  static const size_t lengths[] = {0,    1,    2,    31,   32,   33,   255,
                                   4095, 4096, 4097, 8191, 8193, 60013};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];

    ck_call(random_call(KILN_U32, n, 0, 9, 0, 10, KILN_DTYPE_NONE, KILN_U32,
                        &state));
    ck_call(random_call(KILN_U32, n, 0, 9, 0, 10, KILN_U32, KILN_U32, &state));
    ck_call(random_call(KILN_I32, n, -9000, 9000, -8000, 15000, KILN_DTYPE_NONE,
                        KILN_DTYPE_NONE, &state));
    ck_call(random_call(KILN_I32, n, -9000, 9000, -8000, 15000, KILN_U16,
                        KILN_U64, &state));
  }
}
END_TEST

/* The keys are constant, alternate between the ends of the range, ascend,
 * descend, or form long runs. */
START_TEST(test_shapes)
{
  enum { N = 20000 };
  int32_t *keys = kept(malloc(N * sizeof *keys));

  for (int shape = 0; shape < 5; shape++) {
    for (int32_t i = 0; i < N; i++)
      keys[i] = shape == 0   ? 77
                : shape == 1 ? i % 2 * 65535
                : shape == 2 ? i
                : shape == 3 ? N - i
                             : i / 3000 * 9000;
    ck_call(sort_call(KILN_I32, keys, N, 0, 65536, KILN_DTYPE_NONE,
                      KILN_DTYPE_NONE, 0));
    ck_call(
        sort_call(KILN_I32, keys, N, 0, 65536, KILN_U32, KILN_DTYPE_NONE, 0));
  }
}
END_TEST

/* Sorts in place, returns sorted values without keys, and uses a workspace that
 * the caller provides. */
START_TEST(test_places)
{
  enum { N = 9000, RANGE = 300 };
  uint64_t state = 13;
  uint64_t *start = kept(calloc(RANGE + 1, sizeof *start));
  uint16_t *keys = kept(random_wholes(KILN_U16, N, 0, RANGE - 1, &state));
  const size_t *from = reference(KILN_U16, keys, N, 0, RANGE, start);
  uint32_t *values = kept(random_bits(N * 4, &state));
  test_array in = array_make(KILN_U16, N, 0, keys, 0);
  test_array held = array_make(KILN_U32, N, 0, values, 0);
  test_array out = array_make(KILN_U32, N, 0, NULL, 0);
  operation_call alone = CALL_OF(
      kiln_counting_sort, &(kiln_counting_sort_desc){.keys = in.array,
                                                     .values = held.array,
                                                     .values_out = out.array,
                                                     .n = N,
                                                     .range = RANGE});
  const kiln_counting_sort_desc in_place = {
      .keys = in.array, .keys_out = in.array, .n = N, .range = RANGE};

  call_writes(&alone, &out, gathered(&out, values, from, 0, N));
  ck_assert_uint_gt(ck_workspace(alone), 0);
  ck_writes(CALL_OF(kiln_counting_sort, &in_place), &in,
            gathered(&in, keys, from, 0, N));
}
END_TEST

/* A captured sort must sort the keys that the array holds when the graph runs,
 * with and without values. */
START_TEST(test_capture)
{
  enum { N = 9000, RANGE = 700 };
  const kiln_dtype valued = _i != 0 ? KILN_U32 : KILN_DTYPE_NONE;
  uint64_t state = 81;
  operation_call c = random_call(KILN_U16, N, 0, RANGE - 1, 0, RANGE, valued,
                                 KILN_DTYPE_NONE, &state);
  const kiln_counting_sort_desc *desc = c.desc;
  CUgraphExec graph = capture_call(&c);

  for (int turn = 0; turn < 3; turn++) {
    uint16_t *x =
        kept(random_wholes(KILN_U16, N, 0, RANGE - 1 - turn * 200, &state));
    const operation_call other =
        sort_call(KILN_U16, x, N, 0, RANGE, valued, KILN_DTYPE_NONE, 0);

    for (size_t k = 0; k < c.n_results; k++)
      c.result[k].want = other.result[k].want;
    ck_kiln_ok(kiln_copy_to_device(device, desc->keys.data, x, N * sizeof *x));
    capture_replay(graph);
    ck_results(&c);
  }
  capture_free(graph);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = test_random(state) % 2 ? KILN_I32 : KILN_U64;
  const size_t n = test_random(state) % 5000;
  const int64_t most = 1 + (int64_t)(test_random(state) % 2000);
  const int64_t lowest = (int64_t)(test_random(state) % 200);
  const uint64_t r = test_random(state);

  (void)k;
  return random_call(type, n, 0, most, lowest, 1 + (uint32_t)(r % 3000),
                     r >> 40 & 1 ? KILN_U32 : KILN_DTYPE_NONE,
                     r >> 41 & 1 ? KILN_U32 : KILN_DTYPE_NONE, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 120, 71);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_counting_sort_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 91;
  const operation_call c =
      random_call(KILN_I32, 9, 0, 4, 0, 5, KILN_DTYPE_NONE, KILN_U32, &state);
  const kiln_counting_sort_desc *desc = c.desc;
  const kiln_array keys = desc->keys, out = desc->keys_out;
  const bad_argument bad[] = {
      {KILN_EINVAL, "range is 0", {MEMBER_OF(range, 0)}},
      {KILN_EINVAL, "range is 65537", {MEMBER_OF(range, 65537)}},
      {KILN_EINVAL, "neither", {MEMBER_OF(keys_out, {0})}},
      {KILN_EINVAL,
       "must be integers",
       {MEMBER_OF(keys.type, KILN_F32), MEMBER_OF(keys_out.type, KILN_F32)}},
      {KILN_EINVAL, "keys_out u32", {MEMBER_OF(keys_out.type, KILN_U32)}},
      {KILN_EINVAL,
       "not all keys",
       {MEMBER_OF(keys.type, KILN_U32), MEMBER_OF(keys_out.type, KILN_U32),
        MEMBER_OF(lowest, -1)}},
      {KILN_EINVAL,
       "not all keys",
       {MEMBER_OF(keys.type, KILN_I8), MEMBER_OF(keys_out.type, KILN_I8),
        MEMBER_OF(lowest, 124)}},
      {KILN_EINVAL,
       "overlap",
       {MEMBER_OF(keys_out, keys), MEMBER_OF(values, out),
        MEMBER_OF(values_out, out)}},
      {KILN_EINVAL, "offsets are i32", {MEMBER_OF(offsets.type, KILN_I32)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(offsets.data, keys.data)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("counting_sort");
  TCase *t = device_case(s, "counting_sort");

  tcase_add_loop_test(t, test_types, 0, 8);
  tcase_add_test(t, test_whole_types);
  tcase_add_test(t, test_lengths);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_places);
  tcase_add_loop_test(t, test_capture, 0, 2);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
