/* split_test.c -- kiln_split in one and in two rounds, for every type, with
 * keys of all kinds, and with offsets. */
#include "operation_checks.h"

/* A stable counting sort by `key`. All keys are below `parts`. */
static void reference(unsigned char *out, uint64_t *offsets, const void *x,
                      const uint32_t *key, size_t n, size_t width,
                      uint32_t parts)
{
  const size_t mark = n_kept;
  uint64_t *next = kept(calloc(parts + 1, sizeof *next));

  for (size_t i = 0; i < n; i++)
    next[key[i] + 1]++;
  for (size_t k = 0; k < parts; k++)
    next[k + 1] += next[k];
  memcpy(offsets, next, (parts + 1) * sizeof *next);
  for (size_t i = 0; i < n; i++)
    memcpy(out + next[key[i]]++ * width, (const unsigned char *)x + i * width,
           width);
  release(mark);
}

/* Makes a call. `desc` has all members but the arrays. */
static operation_call split_call(kiln_split_desc desc, kiln_dtype type,
                                 size_t shift, const void *x,
                                 const uint32_t *key, bool with_offsets)
{
  const size_t n = desc.n, width = kiln_dtype_size(type);
  const test_array in = array_make(type, n, shift, x, 0);
  const test_array out = array_make(type, n, shift / 2, NULL, 0x5a);
  const test_array at = array_make(shift % 2 ? KILN_U64 : KILN_U32,
                                   desc.parts + 1, 0, NULL, 0x5a);
  unsigned char *want = kept(malloc(n * width + 1));
  uint64_t *offsets = kept(malloc((desc.parts + 1) * sizeof *offsets));
  void *want_at = kept(array_read(&at));
  operation_call c;

  desc.x.in[0] = in.array;
  desc.out = out.array;
  if (with_offsets)
    desc.offsets = at.array;
  reference(want, offsets, x, key, n, width, desc.parts);
  for (size_t k = 0; with_offsets && k <= desc.parts; k++)
    set_whole(at.array.type, want_at, k, (int64_t)offsets[k]);
  c = CALL_OF(kiln_split, &desc);
  call_writes(&c, &out, want);
  call_writes(&c, &at, want_at);
  return c;
}

/* Makes a call with keys from a second array and distinct elements. */
static operation_call by_keys(size_t n, uint32_t parts, uint32_t spread,
                              bool offsets, size_t shift)
{
  uint64_t state = n + parts;
  uint32_t *x = kept(malloc(4 * n + 4)), *key = kept(malloc(4 * n + 4));
  test_array keys;
  kiln_split_desc desc = {.key = "y", .parts = parts, .n = n};

  for (size_t i = 0; i < n; i++) {
    x[i] = (uint32_t)i;
    key[i] = (uint32_t)(test_random(&state) % spread) * (parts / spread);
  }
  keys = array_make(KILN_U32, n, 0, key, 0);
  desc.x.in[1] = keys.array;
  return split_call(desc, KILN_U32, shift, x, key, offsets);
}

START_TEST(test_parts)
{
  static const uint32_t parts[] = {1, 2, 5, 16, 17, 255, 256, 257, 4096, 65536};
  const uint32_t p = parts[_i];
  static const size_t lengths[] = {0,    1,    31,   33,    1023,
                                   1024, 1025, 4099, 20011, 70001};

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    ck_call(by_keys(lengths[k], p, p, k != 3, 0));
  ck_call(by_keys(9001, p, 1, true, 0));
  ck_call(by_keys(9001, p, p > 1 ? 2 : 1, false, p == 5 || p == 257));
}
END_TEST

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 8;

  for (size_t n = 1000; n < 50000; n *= 7) {
    void *x = kept(random_wholes(type, n, 0, 99, &state));
    uint32_t *key = kept(malloc(4 * n));
    const kiln_split_desc desc = {.key = "int(x) % 10", .parts = 10, .n = n};

    for (size_t i = 0; i < n; i++)
      key[i] = (uint32_t)value_at(type, x, i) % 10;
    ck_call(split_call(desc, type, 2, x, key, true));
  }
}
END_TEST

/* Random bits must arrive unchanged. Keys out of range, including NaN, go to
 * the last partition. Key expressions may use the index and parameters. */
START_TEST(test_keys)
{
  enum { N = 9001 };
  static const kiln_dtype types[] = {KILN_F16, KILN_F32, KILN_I64};
  const int32_t width = 700;
  const kiln_param param = {"width", KILN_I32, &width, true};
  uint64_t state = 2;
  uint32_t *key = kept(malloc(4 * N));

  for (size_t k = 0; k < 3; k++) {
    void *x = kept(random_bits(N * kiln_dtype_size(types[k]), &state));
    const kiln_split_desc by_index = {
        .key = "i / width",
        .parts = 5,
        .n = N,
        .code = {.params = &param, .n_params = 1}};
    const kiln_split_desc by_value = {.key = "x", .parts = 300, .n = N};

    for (size_t i = 0; i < N; i++)
      key[i] = i / 700 < 5 ? (uint32_t)i / 700 : 4;
    ck_call(split_call(by_index, types[k], 0, x, key, true));
    for (size_t i = 0; i < N; i++) {
      const double v = types[k] == KILN_I64 ? (double)((const int64_t *)x)[i]
                                            : value_at(types[k], x, i);

      key[i] = v > -1 && v < 300 ? (uint32_t)v : 299;
    }
    ck_call(split_call(by_value, types[k], 0, x, key, true));
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  const operation_call c = by_keys(30000, 600, 600, true, 0);

  ck_assert_uint_gt(ck_workspace(c), 0);
  ck_capture(c);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const uint32_t parts[] = {2, 7, 1024};
  const uint32_t p = parts[test_random(state) % 3];

  (void)k;
  return by_keys((size_t)(test_random(state) % 9000), p, p, true, 0);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 100, 13);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_split_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  const operation_call c = by_keys(100, 4, 4, true, 0);
  const kiln_split_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "key is NULL", {MEMBER_OF(key, NULL)}},
      {KILN_EINVAL, "0 parts", {MEMBER_OF(parts, 0)}},
      {KILN_EINVAL, "65537 parts", {MEMBER_OF(parts, 65537)}},
      {KILN_EINVAL, "out is none", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, good->x.in[0])}},
      {KILN_EINVAL, "out and offsets overlap", {MEMBER_OF(offsets, good->out)}},
      {KILN_EINVAL,
       "offsets is neither",
       {MEMBER_OF(offsets, {good->offsets.data, KILN_I32})}},
      {KILN_ECOMPILE,
       "the key does not compile: line",
       {MEMBER_OF(key, "x + qq")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("split");
  TCase *t = device_case(s, "split");

  tcase_add_loop_test(t, test_parts, 0, 10);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_keys);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
