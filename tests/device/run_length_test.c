/* run_length_test.c -- kiln_run_length_encode and
 * kiln_run_length_encode_non_trivial with runs of every length, also across
 * several tiles. */
#include "operation_checks.h"

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

static operation_call runs_call(kiln_dtype type, size_t n, size_t shift,
                                const void *x, bool only_long, bool values)
{
  const kiln_dtype number = shift % 2 ? KILN_U64 : KILN_U32;
  const size_t width = kiln_dtype_size(type);
  run *runs = kept(malloc((n + 1) * sizeof *runs));
  const size_t n_runs = runs_of(runs, type, x, n, only_long ? 2 : 1);
  const size_t most = only_long ? n / 2 : n;
  const test_array in = array_make(type, n, shift, x, 0);
  const test_array value = array_make(type, most, shift, NULL, 0x5a);
  const test_array offset = array_make(number, most, 0, NULL, 0x5a);
  const test_array length = array_make(number, most, 1, NULL, 0x5a);
  const test_array count = array_make(KILN_U32, 1, 0, NULL, 0x5a);
  unsigned char *want_value = kept(array_read(&value));
  void *want_offset = kept(array_read(&offset));
  void *want_length = kept(array_read(&length));
  uint32_t *want_count = kept(malloc(sizeof *want_count));
  const kiln_run_length_desc desc = {.x = {.in = {in.array}},
                                     .n = n,
                                     .values =
                                         values ? value.array : (kiln_array){0},
                                     .offsets = offset.array,
                                     .lengths = length.array,
                                     .count = count.array};
  operation_call c = only_long ? CALL_OF(kiln_run_length_non_trivial, &desc)
                               : CALL_OF(kiln_run_length_encode, &desc);

  for (size_t k = 0; k < n_runs; k++) {
    set_whole(number, want_offset, k, (int64_t)runs[k].start);
    set_whole(number, want_length, k, (int64_t)runs[k].length);
    if (values)
      memcpy(want_value + k * width,
             (const unsigned char *)x + runs[k].start * width, width);
  }
  *want_count = (uint32_t)n_runs;
  call_writes(&c, &value, want_value);
  call_writes(&c, &offset, want_offset);
  call_writes(&c, &length, want_length);
  call_writes(&c, &count, want_count);
  return c;
}

/* Makes runs of random lengths up to `longest`, with different values in
 * neighbouring runs. teardown() frees them. */
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

    ck_call(runs_call(type, n, 0,
                      runs_of_length(type, n, longest[k % 5], &state), false,
                      true));
    ck_call(runs_call(type, n, 0,
                      runs_of_length(type, n, longest[k % 5], &state), true,
                      true));
  }
}
END_TEST

START_TEST(test_shapes)
{
  uint64_t state = 4;

  for (uint64_t longest = 1; longest < 200000; longest *= 7)
    for (int only_long = 0; only_long < 2; only_long++) {
      ck_call(runs_call(KILN_I32, 60013, 1,
                        runs_of_length(KILN_I32, 60013, longest, &state),
                        only_long != 0, true));
      ck_call(runs_call(KILN_U8, 60013, 0,
                        runs_of_length(KILN_U8, 60013, longest, &state),
                        only_long != 0, false));
    }
}
END_TEST

/* Large arrays are staged in shared memory. The test demands this for short
 * arrays, so that there are several tiles of 2,048 elements. */
START_TEST(test_staged)
{
  static const kiln_dtype types[] = {KILN_U32, KILN_F32, KILN_I64, KILN_F64};
  static const uint64_t longest[] = {1, 3, 40, 3000, 200000};
  static const size_t sizes[] = {1, 2047, 2048, 2049, 60013};
  const kiln_tuning staged = {128, 16, 0, 16};
  const kiln_dtype type = types[_i];
  uint64_t state = 6;

  ck_kiln_ok(kiln_tuning_set(device, "run_length",
                             (unsigned)kiln_dtype_size(type), 40, &staged));
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
    for (size_t l = 0; l < sizeof longest / sizeof longest[0]; l++) {
      const operation_call c = runs_call(
          type, sizes[k], 0, runs_of_length(type, sizes[k], longest[l], &state),
          false, (k + l) % 4 != 0);

      ck_call(c);
      if (k == 4 && l == 2 && _i == 0)
        ck_capture(c);
    }
}
END_TEST

/* Every NaN is a run by itself and -0 equals +0, unless the caller defines
 * equality differently. */
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

static operation_call draw(unsigned long k, uint64_t *state)
{
  const size_t n = (size_t)(test_random(state) % 15000);
  const uint64_t longest = 1 + test_random(state) % 3000;

  (void)k;
  return runs_call(KILN_I32, n, 0, runs_of_length(KILN_I32, n, longest, state),
                   test_random(state) % 2 == 0, true);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 150, 14);
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 30000 };
  uint64_t state = 5;
  const operation_call c = runs_call(
      KILN_I32, N, 0, runs_of_length(KILN_I32, N, 20, &state), false, true);

  ck_assert_uint_gt(ck_workspace(c), 0);
  ck_capture(c);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_run_length_desc, member, __VA_ARGS__)

/* Checks the arguments of the encoding of all runs, and of that of runs longer
 * than 1. */
START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const operation_call c =
      runs_call(KILN_F32, 100, 0, runs_of_length(KILN_F32, 100, 5, &state),
                _i != 0, true);
  const kiln_run_length_desc *good = c.desc;
  const kiln_array x = good->x.in[0], out = good->values;
  const bad_argument bad[] = {
      {KILN_EINVAL, "x: neither an array", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "count is neither", {MEMBER_OF(count, {0})}},
      {KILN_EINVAL, "x and values overlap", {MEMBER_OF(values, x)}},
      {KILN_EINVAL, "values is i32", {MEMBER_OF(values, {out.data, KILN_I32})}},
      {KILN_EINVAL, "offsets is neither", {MEMBER_OF(offsets, out)}},
      {KILN_EINVAL,
       "x and lengths overlap",
       {MEMBER_OF(lengths, {x.data, KILN_U32})}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("run_length");
  TCase *t = device_case(s, "run_length");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_shapes);
  tcase_add_loop_test(t, test_staged, 0, 4);
  tcase_add_test(t, test_equality);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_loop_test(t, test_bad_arguments, 0, 2);
  return s;
}

DEVICE_TEST_MAIN(suite)
