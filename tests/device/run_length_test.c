/* run_length_test.c -- kiln_run_length_encode and _non_trivial: runs of every
 * length, also over several tiles. */
#include "ops_fixture.h"

typedef struct run {
  size_t start, length;
} run;

static size_t runs_of(run *to, kiln_dtype type, const void *x, size_t n,
                      size_t shortest)
{
  size_t k = 0;

  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1;
         end < n && value_at(type, x, end) == value_at(type, x, i);)
      end++;
    if (end - i >= shortest)
      to[k++] = (run){i, end - i};
  }
  return k;
}

static uint64_t number_at(const test_array *a, const unsigned char *data,
                          size_t i)
{
  uint64_t v = 0;

  memcpy(&v, data + i * a->width, a->width);
  return v;
}

static void check_runs(kiln_dtype type, size_t n, size_t shift, void *x,
                       bool only_long, bool values)
{
  const size_t mark = n_kept;
  const kiln_dtype number = shift % 2 ? KILN_U64 : KILN_U32;
  const size_t width = kiln_dtype_size(type);
  run *want = kept(malloc((n + 1) * sizeof *want));
  const size_t runs = runs_of(want, type, x, n, only_long ? 2 : 1);
  const size_t most = only_long ? n / 2 : n;
  test_array in = array_make(type, n, shift, x, 0);
  test_array value = array_make(type, most, shift, NULL, 0x5a);
  test_array offset = array_make(number, most, 0, NULL, 0x5a);
  test_array length = array_make(number, most, 1, NULL, 0x5a);
  test_array count = array_make(KILN_U32, 1, 0, NULL, 0x5a);
  const kiln_run_length_desc desc = {.x = {.in = {in.array}},
                                     .n = n,
                                     .values =
                                         values ? value.array : (kiln_array){0},
                                     .offsets = offset.array,
                                     .lengths = length.array,
                                     .count = count.array};
  unsigned char *got_value, *got_offset, *got_length, *got_count;

  ck_kiln_ok(only_long ? kiln_run_length_non_trivial(stream, &desc, NULL)
                       : kiln_run_length_encode(stream, &desc, NULL));
  got_value = kept(array_read(&value));
  got_offset = kept(array_read(&offset));
  got_length = kept(array_read(&length));
  got_count = kept(array_read(&count));
  ck_assert_uint_eq(number_at(&count, got_count, 0), runs);
  for (size_t k = 0; k < runs; k++)
    if (number_at(&offset, got_offset, k) != want[k].start ||
        number_at(&length, got_length, k) != want[k].length ||
        (values &&
         memcmp(got_value + k * width,
                (unsigned char *)x + want[k].start * width, width) != 0))
      ck_abort_msg("%s, n = %zu, run %zu of %zu: %llu + %llu, not %zu + %zu",
                   kiln_dtype_name(type), n, k, runs,
                   (unsigned long long)number_at(&offset, got_offset, k),
                   (unsigned long long)number_at(&length, got_length, k),
                   want[k].start, want[k].length);
  for (size_t i = runs * width; i < most * width; i++)
    if (got_value[i] != 0x5a)
      ck_abort_msg("written behind the last run");
  release(mark);
}

/* Runs of random lengths up to `longest`; neighbours differ. The test keeps
 * them. */
static void *runs_of_length(kiln_dtype type, size_t n, uint64_t longest,
                            uint64_t *state)
{
  void *x = kept(malloc(n * 8 + 8));
  int64_t v = 0;

  for (size_t i = 0; i < n; v = (v + 1) % 90)
    for (uint64_t k = 1 + test_random(state) % longest; k > 0 && i < n; k--)
      set_whole(type, x, i++, v);
  return x;
}

static const size_t lengths[] = {0,    1,    2,    31,   33,    255,  1023,
                                 2048, 2049, 4096, 4097, 10007, 40009};

START_TEST(test_types)
{
  static const uint64_t longest[] = {2, 1, 40, 5000, 100000};
  const kiln_dtype type = all_types[_i];
  uint64_t state = 3;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n = lengths[k];

    check_runs(type, n, 0, runs_of_length(type, n, longest[k % 5], &state),
               false, true);
    check_runs(type, n, 0, runs_of_length(type, n, longest[k % 5], &state),
               true, true);
  }
}
END_TEST

START_TEST(test_shapes)
{
  uint64_t state = 4;

  for (uint64_t longest = 1; longest < 200000; longest *= 7)
    for (int only_long = 0; only_long < 2; only_long++) {
      check_runs(KILN_I32, 60013, 1,
                 runs_of_length(KILN_I32, 60013, longest, &state),
                 only_long != 0, true);
      check_runs(KILN_U8, 60013, 0,
                 runs_of_length(KILN_U8, 60013, longest, &state),
                 only_long != 0, false);
    }
}
END_TEST

/* NaNs are runs of their own; -0 equals +0; the caller may see it differently. */
START_TEST(test_equality)
{
  enum { N = 3000 };
  static const char *const equal[] = {NULL, "a == b || (a != a && b != b)"};

  for (int which = 0; which < 2; which++) {
    float *x = kept(malloc(4 * N));
    test_array in, length, count;
    uint32_t *got_length, *got_count;
    kiln_run_length_desc desc = {.equal = equal[which], .n = N};

    for (size_t i = 0; i < N; i++)
      x[i] = i % 10 < 3 ? NAN : i % 10 < 5 ? -0.0f : i % 10 < 7 ? 0.0f : 1.0f;
    in = array_make(KILN_F32, N, 0, x, 0);
    length = array_make(KILN_U32, N, 0, NULL, 0);
    count = array_make(KILN_U32, 1, 0, NULL, 0);
    desc.x.in[0] = in.array;
    desc.lengths = length.array;
    desc.count = count.array;
    ck_kiln_ok(kiln_run_length_encode(stream, &desc, NULL));
    got_length = kept(array_read(&length));
    got_count = kept(array_read(&count));
    ck_assert_uint_eq(got_count[0], which == 0 ? N / 10 * 5 : N / 10 * 3);
    for (size_t k = 0; k < got_count[0]; k++) {
      static const uint32_t alone[] = {1, 1, 1, 4, 3}, together[] = {3, 4, 3};

      if (got_length[k] != (which == 0 ? alone[k % 5] : together[k % 3]))
        ck_abort_msg("run %zu: %u", k, got_length[k]);
    }
  }
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(150);
  uint64_t state = 14;

  for (unsigned long k = 0; k < calls; k++) {
    const size_t n = (size_t)(test_random(&state) % 15000);
    const uint64_t longest = 1 + test_random(&state) % 3000;

    check_runs(KILN_I32, n, 0, runs_of_length(KILN_I32, n, longest, &state),
               test_random(&state) % 2 == 0, true);
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 30000 };
  uint64_t state = 5;
  void *x = runs_of_length(KILN_I32, N, 20, &state);
  run *want = kept(malloc(N * sizeof *want));
  const size_t runs = runs_of(want, KILN_I32, x, N, 1);
  test_array in = array_make(KILN_I32, N, 0, x, 0);
  test_array length = array_make(KILN_U32, N, 0, NULL, 0x5a);
  test_array count = array_make(KILN_U32, 1, 0, NULL, 0x5a);
  const kiln_run_length_desc desc = {.x = {.in = {in.array}},
                                     .n = N,
                                     .lengths = length.array,
                                     .count = count.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  ck_kiln_ok(kiln_run_length_encode_workspace(stream, &desc, &bytes));
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_run_length_encode(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_run_length_encode(stream, &desc, &w));
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_run_length_encode(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 3; k++) {
    uint32_t *got = kept(array_read(&length)),
             *got_count = kept(array_read(&count));

    ck_assert_uint_eq(got_count[0], runs);
    for (size_t j = 0; j < runs; j++)
      if (got[j] != want[j].length)
        ck_abort_msg("round %d, run %zu", k, j);
    ck_kiln_ok(kiln_fill(device, length.array.data, 0x5a, 1, 4 * N));
    capture_replay(graph);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array m = array_make(KILN_U32, 1, 0, NULL, 1);
  const kiln_array x = a.array, out = b.array, count = m.array;
  const kiln_input in = {.in = {x}};
  const kiln_run_length_desc bad[] = {
      {.n = 10, .count = count},
      {.x = in, .n = 10},
      {.x = in, .n = 10, .values = x, .count = count},
      {.x = in, .n = 10, .values = {out.data, KILN_I32}, .count = count},
      {.x = in, .n = 10, .offsets = out, .count = count},
      {.x = in, .n = 10, .lengths = {x.data, KILN_U32}, .count = count},
  };
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_int_eq(kiln_run_length_encode(stream, &bad[k], NULL),
                     KILN_EINVAL);
    ck_assert_int_eq(kiln_run_length_non_trivial(stream, &bad[k], NULL),
                     KILN_EINVAL);
    ck_assert_int_eq(
        kiln_run_length_non_trivial_workspace(stream, &bad[k], &bytes),
        KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_run_length_encode(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_run_length_encode(stream, NULL, NULL), KILN_EINVAL);
  free(array_read(&b));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("run_length");
  TCase *t = device_case(s, "run_length");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_equality);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
