/* split_test.c -- kiln_split: one and two rounds, every type, keys of all kinds,
 * offsets. */
#include "ops_fixture.h"

/* Stable counting sort by `key`, which is below `parts`. */
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

static void check_offsets(const test_array *a, const uint64_t *want,
                          size_t values)
{
  unsigned char *got = array_read(a);

  for (size_t k = 0; k < values; k++) {
    uint64_t v = 0;

    memcpy(&v, got + k * a->width, a->width);
    if (v != want[k])
      ck_abort_msg("offset %zu of %zu: %llu, not %llu", k, values,
                   (unsigned long long)v, (unsigned long long)want[k]);
  }
  free(got);
}

static void check_split(kiln_split_desc desc, kiln_dtype type, size_t shift,
                        const void *x, const uint32_t *key, bool with_offsets)
{
  const size_t mark = n_kept;
  const size_t n = desc.n, width = kiln_dtype_size(type);
  unsigned char *want = kept(malloc(n * width + 1)), *got;
  uint64_t *offsets = kept(malloc((desc.parts + 1) * sizeof *offsets));
  test_array in = array_make(type, n, shift, x, 0);
  test_array out = array_make(type, n, shift / 2, NULL, 0x5a);
  test_array at = array_make(shift % 2 ? KILN_U64 : KILN_U32, desc.parts + 1, 0,
                             NULL, 0x5a);

  desc.x.in[0] = in.array;
  desc.out = out.array;
  if (with_offsets)
    desc.offsets = at.array;
  ck_kiln_ok(kiln_split(stream, &desc, NULL));
  reference(want, offsets, x, key, n, width, desc.parts);
  got = kept(array_read(&out));
  for (size_t i = 0; i < n * width; i++)
    if (got[i] != want[i])
      ck_abort_msg("%s, %zu elements, %u parts: element %zu",
                   kiln_dtype_name(type), n, (unsigned)desc.parts, i / width);
  if (with_offsets)
    check_offsets(&at, offsets, desc.parts + 1);
  release(mark);
}

/* Elements that tell where they come from; keys from an array of their own. */
static void by_keys(size_t n, uint32_t parts, uint32_t spread, bool offsets,
                    size_t shift)
{
  const size_t mark = n_kept;
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
  check_split(desc, KILN_U32, shift, x, key, offsets);
  release(mark);
}

START_TEST(test_parts)
{
  static const uint32_t parts[] = {1, 2, 5, 16, 17, 255, 256, 257, 4096, 65536};
  const uint32_t p = parts[_i];
  static const size_t lengths[] = {0,    1,    31,   33,    1023,
                                   1024, 1025, 4099, 20011, 70001};

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    by_keys(lengths[k], p, p, k != 3, 0);
  by_keys(9001, p, 1, true, 0);
  by_keys(9001, p, p > 1 ? 2 : 1, false, p == 5 || p == 257);
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
    check_split(desc, type, 2, x, key, true);
  }
}
END_TEST

/* Bits survive, keys out of range go to the last partition, also NaN; the index
 * and parameters are in sight. */
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
    check_split(by_index, types[k], 0, x, key, true);
    for (size_t i = 0; i < N; i++) {
      const double v = types[k] == KILN_I64 ? (double)((const int64_t *)x)[i]
                                            : value_at(types[k], x, i);

      key[i] = v > -1 && v < 300 ? (uint32_t)v : 299;
    }
    check_split(by_value, types[k], 0, x, key, true);
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 30000, PARTS = 600 };
  uint64_t state = 5;
  uint32_t *x = kept(random_bits(4 * N, &state)), *key = kept(malloc(4 * N));
  unsigned char *want = kept(malloc(4 * N)), *got;
  uint64_t offsets[PARTS + 1];
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array out = array_make(KILN_U32, N, 0, NULL, 0x5a);
  test_array at = array_make(KILN_U64, PARTS + 1, 0, NULL, 0x5a);
  const kiln_split_desc desc = {.x = {.in = {in.array}},
                                .key = "x % 600",
                                .parts = PARTS,
                                .n = N,
                                .out = out.array,
                                .offsets = at.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  for (size_t i = 0; i < N; i++)
    key[i] = x[i] % PARTS;
  reference(want, offsets, x, key, N, 4, PARTS);
  ck_kiln_ok(kiln_split_workspace(stream, &desc, &bytes));
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_split(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_split(stream, &desc, &w));
  got = kept(array_read(&out));
  ck_assert_mem_eq(got, want, 4 * N);
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_split(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * N));
    capture_replay(graph);
    got = kept(array_read(&out));
    ck_assert_mem_eq(got, want, 4 * N);
    check_offsets(&at, offsets, PARTS + 1);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(100);
  static const uint32_t parts[] = {2, 7, 1024};
  uint64_t state = 13;

  for (unsigned long k = 0; k < calls; k++) {
    const uint32_t p = parts[test_random(&state) % 3];

    by_keys((size_t)(test_random(&state) % 9000), p, p, true, 0);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_U32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_U32, 100, 0, NULL, 1);
  const kiln_array x = a.array, out = b.array;
  const kiln_input in = {.in = {x}};
  const kiln_split_desc bad[] = {
      {.x = in, .parts = 4, .n = 10, .out = out},
      {.x = in, .key = "x", .n = 10, .out = out},
      {.x = in, .key = "x", .parts = 65537, .n = 10, .out = out},
      {.x = in, .key = "x", .parts = 4, .n = 10},
      {.x = in, .key = "x", .parts = 4, .n = 10, .out = x},
      {.x = in, .key = "x", .parts = 4, .n = 10, .out = out, .offsets = out},
      {.x = in,
       .key = "x",
       .parts = 4,
       .n = 10,
       .out = out,
       .offsets = {out.data + 80, KILN_I32}},
  };
  const kiln_split_desc text = {
      .x = in, .key = "x + qq", .parts = 4, .n = 10, .out = out};

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_split(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
  ck_assert_int_eq(kiln_split(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_split(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_split(stream, &text, NULL), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, "the key does not compile: line"));
  free(array_read(&b));
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
