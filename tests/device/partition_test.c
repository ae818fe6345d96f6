/* partition_test.c -- kiln_partition: two and three parts, behind each other, apart
 * and reversed; every type, length and alignment. */
#include "ops_fixture.h"

static const size_t lengths[] = {0,    1,    31,   33,   255,   2047,
                                 2048, 2049, 8191, 8193, 10007, 65537};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef enum layout { JOINED, APART, REVERSED } layout;

/* What partition `which` of n elements is, in order. */
static size_t part_of(unsigned char *to, const void *x, const uint8_t *part,
                      size_t n, size_t width, uint8_t which)
{
  size_t k = 0;

  for (size_t i = 0; i < n; i++)
    if (part[i] == which)
      memcpy(to + k++ * width, (const unsigned char *)x + i * width, width);
  return k;
}

static void reverse(unsigned char *x, size_t n, size_t width)
{
  unsigned char t[8];

  for (size_t i = 0; i < n / 2; i++) {
    memcpy(t, x + i * width, width);
    memcpy(x + i * width, x + (n - 1 - i) * width, width);
    memcpy(x + (n - 1 - i) * width, t, width);
  }
}

static void same(const char *what, const test_array *a,
                 const unsigned char *want, size_t bytes)
{
  unsigned char *got = array_read(a);

  for (size_t i = 0; i < bytes; i++)
    if (got[i] != want[i])
      ck_abort_msg("%s, byte %zu of %zu", what, i, bytes);
  for (size_t i = bytes; i < a->n * a->width; i++)
    if (got[i] != 0x5a)
      ck_abort_msg("%s, byte %zu behind the last", what, i - bytes);
  free(got);
}

static void check_counts(const test_array *a, const size_t *want, size_t parts)
{
  unsigned char *got = array_read(a);

  for (size_t k = 0; k + 1 < parts; k++) {
    uint64_t count = 0;

    memcpy(&count, got + k * a->width, a->width);
    ck_assert_uint_eq(count, want[k]);
  }
  free(got);
}

/* Elements with `part`, each 0, 1 or 2; `desc` has all but the arrays. */
static void check_partition(kiln_partition_desc desc, kiln_dtype type,
                            size_t shift, layout how, const void *x,
                            const uint8_t *part)
{
  const size_t mark = n_kept;
  const size_t n = desc.n, width = kiln_dtype_size(type);
  const size_t parts = desc.second != NULL ? 3 : 2;
  unsigned char *want = kept(malloc(n * width + 1));
  test_array in = array_make(type, n, shift, x, 0);
  test_array out[3], count;
  size_t size[3], all = 0;

  for (size_t k = 0; k < 3; k++)
    out[k] = array_make(type, n, (shift + k) % 3, NULL, 0x5a);
  count = array_make(shift % 2 ? KILN_U64 : KILN_U32, 2, 1, NULL, 0x5a);
  desc.x.in[0] = in.array;
  desc.out = out[0].array;
  if (how == APART) {
    desc.out_rest = out[parts - 1].array;
    desc.out_second = parts == 3 ? out[1].array : (kiln_array){0};
  }
  desc.rest_reversed = how == REVERSED;
  desc.count = count.array;
  ck_kiln_ok(kiln_partition(stream, &desc, NULL));
  for (size_t k = 0; k < parts; k++) {
    unsigned char *to = want + (how == APART ? 0 : all * width);

    size[k] = part_of(to, x, part, n, width, (uint8_t)k);
    all += size[k];
    if (how == REVERSED && k == 1)
      reverse(to, size[k], width);
    if (how == APART)
      same("a part", &out[k], want, size[k] * width);
  }
  if (how != APART)
    same("the parts", &out[0], want, n * width);
  check_counts(&count, size, parts);
  release(mark);
}

static void by_predicate(kiln_dtype type, size_t n, size_t shift, layout how,
                         size_t parts, int64_t first, int64_t second)
{
  const size_t mark = n_kept;
  uint64_t state = n + 3;
  void *x = kept(random_wholes(type, n, 0, 99, &state));
  uint8_t *part = kept(malloc(n + 1));
  const int32_t a = (int32_t)first, b = (int32_t)second;
  const kiln_param params[] = {{"level", KILN_I32, &a, false},
                               {"floor2", KILN_I32, &b, false}};
  const kiln_partition_desc desc = {.first = "x > level",
                                    .second = parts == 3 ? "x > floor2" : NULL,
                                    .n = n,
                                    .code = {.params = params, .n_params = 2}};

  for (size_t i = 0; i < n; i++) {
    const double v = value_at(type, x, i);

    part[i] = v > (double)first ? 0 : parts == 2 || v > (double)second ? 1 : 2;
  }
  check_partition(desc, type, shift, how, x, part);
  release(mark);
}

START_TEST(test_two)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    for (int how = JOINED; how <= REVERSED; how++)
      by_predicate(all_types[_i], lengths[k], (size_t)how % 2, (layout)how, 2,
                   60, 0);
}
END_TEST

START_TEST(test_three)
{
  static const kiln_dtype types[] = {KILN_I8, KILN_F16, KILN_U32, KILN_F64};

  for (size_t k = 0; k < N_LENGTHS; k++)
    for (int how = JOINED; how <= APART; how++)
      by_predicate(types[_i], lengths[k], (size_t)how % 2, (layout)how, 3, 70,
                   20);
}
END_TEST

/* Parts that are empty, and that are everything. */
START_TEST(test_shares)
{
  static const int64_t levels[][2] = {{99, 99}, {-1, -1}, {99, -1},
                                      {97, 96}, {1, 0},   {99, 50}};

  for (size_t k = 0; k < 6; k++) {
    by_predicate(KILN_I32, 20011, 0, JOINED, 3, levels[k][0], levels[k][1]);
    by_predicate(KILN_I32, 20011, 0, APART, 3, levels[k][0], levels[k][1]);
    by_predicate(KILN_I32, 20011, 0, JOINED, 2, levels[k][0], 0);
    by_predicate(KILN_I32, 20011, 0, REVERSED, 2, levels[k][0], 0);
  }
}
END_TEST

/* By flags; the bits survive. */
START_TEST(test_flags)
{
  static const kiln_dtype types[] = {KILN_F16, KILN_BF16, KILN_U8, KILN_F64};
  enum { N = 9001 };
  uint64_t state = 3;
  uint8_t *flags = kept(random_wholes(KILN_U8, N, 0, 1, &state));
  test_array f = array_make(KILN_U8, N, 1, flags, 0);
  uint8_t *part = kept(malloc(N));

  for (size_t i = 0; i < N; i++)
    part[i] = flags[i] == 0;
  for (size_t k = 0; k < 4; k++) {
    void *x = kept(random_bits(N * kiln_dtype_size(types[k]), &state));
    const kiln_partition_desc desc = {.flags = f.array, .n = N};

    check_partition(desc, types[k], k % 2, k % 2 ? JOINED : REVERSED, x, part);
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 40000 };
  uint64_t state = 9;
  uint32_t *x = kept(random_bits(4 * N, &state));
  uint8_t *part = kept(malloc(N));
  unsigned char *want = kept(malloc(4 * N));
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array out = array_make(KILN_U32, N, 0, NULL, 0x5a);
  test_array count = array_make(KILN_U32, 2, 0, NULL, 0x5a);
  const kiln_partition_desc desc = {.x = {.in = {in.array}},
                                    .first = "x % 3 == 1",
                                    .second = "x % 3 == 2",
                                    .n = N,
                                    .out = out.array,
                                    .count = count.array};
  size_t bytes, size[3], all = 0;
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;

  for (size_t i = 0; i < N; i++)
    part[i] = (uint8_t)((x[i] + 2) % 3);
  for (size_t i = 0; i < N; i++)
    part[i] = x[i] % 3 == 1 ? 0 : x[i] % 3 == 2 ? 1 : 2;
  for (uint8_t k = 0; k < 3; k++) {
    size[k] = part_of(want + 4 * all, x, part, N, 4, k);
    all += size[k];
  }
  ck_kiln_ok(kiln_partition_workspace(stream, &desc, &bytes));
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_partition(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_partition(stream, &desc, &w));
  same("with a workspace", &out, want, 4 * N);
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_partition(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * N));
    capture_replay(graph);
    same("from a graph", &out, want, 4 * N);
    check_counts(&count, size, 3);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(150);
  static const kiln_dtype types[] = {KILN_U8, KILN_I32};
  uint64_t state = 12;

  for (unsigned long k = 0; k < calls; k++) {
    const kiln_dtype type = types[test_random(&state) % 2];
    const size_t n = (size_t)(test_random(&state) % 12000);
    const layout how = (layout)(test_random(&state) % 3);
    const size_t parts =
        how != REVERSED && test_random(&state) % 2 != 0 ? 3 : 2;
    const int64_t first = (int64_t)(test_random(&state) % 100);

    by_predicate(type, n, 0, how, parts, first, first / 2);
  }
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array d = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array m = array_make(KILN_U32, 2, 0, NULL, 1);
  const kiln_array x = a.array, out = b.array, more = d.array, count = m.array;
  const kiln_input in = {.in = {x}};
  const kiln_partition_desc bad[] = {
      {.x = in, .n = 10, .out = out, .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .flags = more,
       .out = out,
       .count = count},
      {.x = in, .n = 10, .first = "x", .out = x, .count = count},
      {.x = in, .n = 10, .first = "x", .out = out},
      {.x = in, .n = 10, .first = "x", .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .out = out,
       .out_second = more,
       .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .second = "x",
       .out = out,
       .out_rest = more,
       .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .out = out,
       .out_rest = more,
       .rest_reversed = true,
       .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .second = "x",
       .out = out,
       .rest_reversed = true,
       .count = count},
      {.x = in,
       .n = 10,
       .first = "x",
       .out = out,
       .out_rest = out,
       .count = count},
  };

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_partition(stream, &bad[k], NULL) == KILN_EINVAL, "%zu",
                  k);
  ck_assert_int_eq(kiln_partition(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_partition(stream, NULL, NULL), KILN_EINVAL);
  free(array_read(&b));
  free(array_read(&m));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("partition");
  TCase *t = device_case(s, "partition");

  tcase_add_loop_test(t, test_two, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_three, 0, 4);
  tcase_add_test(t, test_shares);
  tcase_add_test(t, test_flags);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
