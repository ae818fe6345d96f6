/* partition_test.c -- kiln_partition into two and three parts: contiguous, in
 * separate arrays, and with the last part reversed; every type, length and
 * alignment. */
#include "operation_checks.h"

static const size_t lengths[] = {0,    1,    31,   33,   255,   2047,
                                 2048, 2049, 8191, 8193, 10007, 65537};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef enum layout { JOINED, APART, REVERSED } layout;

/* Copies the elements of partition `which` in order and returns their
 * number. */
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

/* Makes a call that must put element i into partition part[i], which is 0, 1 or
 * 2. `desc` has all members but the arrays. */
static operation_call partition_call(kiln_partition_desc desc, kiln_dtype type,
                                     size_t shift, layout how, const void *x,
                                     const uint8_t *part)
{
  const size_t n = desc.n, width = kiln_dtype_size(type);
  const size_t parts = desc.second != NULL ? 3 : 2;
  const test_array in = array_make(type, n, shift, x, 0);
  const test_array count =
      array_make(shift % 2 ? KILN_U64 : KILN_U32, 2, 1, NULL, 0x5a);
  unsigned char *want[3], *sizes = kept(array_read(&count));
  test_array out[3];
  size_t all = 0;
  operation_call c;

  for (size_t k = 0; k < 3; k++) {
    out[k] = array_make(type, n, (shift + k) % 3, NULL, 0x5a);
    want[k] = kept(array_read(&out[k]));
  }
  desc.x.in[0] = in.array;
  desc.out = out[0].array;
  if (how == APART) {
    desc.out_rest = out[parts - 1].array;
    desc.out_second = parts == 3 ? out[1].array : (kiln_array){0};
  }
  desc.rest_reversed = how == REVERSED;
  desc.count = count.array;
  for (size_t k = 0; k < parts; k++) {
    unsigned char *to = how == APART ? want[k] : want[0] + all * width;
    const size_t size = part_of(to, x, part, n, width, (uint8_t)k);

    all += size;
    if (how == REVERSED && k == 1)
      reverse(to, size, width);
    if (k + 1 < parts)
      set_whole(count.array.type, sizes, k, (int64_t)size);
  }
  c = CALL_OF(kiln_partition, &desc);
  for (size_t k = 0; k < 3; k++)
    call_writes(&c, &out[k], want[k]);
  call_writes(&c, &count, sizes);
  return c;
}

static operation_call by_predicate(kiln_dtype type, size_t n, size_t shift,
                                   layout how, size_t parts, int64_t first,
                                   int64_t second)
{
  uint64_t state = n + 3;
  void *x = kept(random_wholes(type, n, 0, 99, &state));
  uint8_t *part = kept(malloc(n + 1));
  int32_t *levels = kept(malloc(2 * sizeof *levels));
  kiln_param *params = kept(malloc(2 * sizeof *params));
  const kiln_partition_desc desc = {.first = "x > level",
                                    .second = parts == 3 ? "x > floor2" : NULL,
                                    .n = n,
                                    .code = {.params = params, .n_params = 2}};

  levels[0] = (int32_t)first;
  levels[1] = (int32_t)second;
  params[0] = (kiln_param){"level", KILN_I32, &levels[0], false};
  params[1] = (kiln_param){"floor2", KILN_I32, &levels[1], false};
  for (size_t i = 0; i < n; i++) {
    const double v = value_at(type, x, i);

    part[i] = v > (double)first ? 0 : parts == 2 || v > (double)second ? 1 : 2;
  }
  return partition_call(desc, type, shift, how, x, part);
}

START_TEST(test_two)
{
  for (size_t k = 0; k < N_LENGTHS; k++)
    for (int how = JOINED; how <= REVERSED; how++)
      ck_call(by_predicate(all_types[_i], lengths[k], (size_t)how % 2,
                           (layout)how, 2, 60, 0));
}
END_TEST

START_TEST(test_three)
{
  static const kiln_dtype types[] = {KILN_I8, KILN_F16, KILN_U32, KILN_F64};

  for (size_t k = 0; k < N_LENGTHS; k++)
    for (int how = JOINED; how <= APART; how++)
      ck_call(by_predicate(types[_i], lengths[k], (size_t)how % 2, (layout)how,
                           3, 70, 20));
}
END_TEST

/* Some of the parts are empty, or contain every element. */
START_TEST(test_shares)
{
  static const int64_t levels[][2] = {{99, 99}, {-1, -1}, {99, -1},
                                      {97, 96}, {1, 0},   {99, 50}};

  for (size_t k = 0; k < 6; k++) {
    ck_call(by_predicate(KILN_I32, 20011, 0, JOINED, 3, levels[k][0],
                         levels[k][1]));
    ck_call(
        by_predicate(KILN_I32, 20011, 0, APART, 3, levels[k][0], levels[k][1]));
    ck_call(by_predicate(KILN_I32, 20011, 0, JOINED, 2, levels[k][0], 0));
    ck_call(by_predicate(KILN_I32, 20011, 0, REVERSED, 2, levels[k][0], 0));
  }
}
END_TEST

/* Partitions random bits by flags. The bits must arrive unchanged. */
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

    ck_call(partition_call(desc, types[k], k % 2, k % 2 ? JOINED : REVERSED, x,
                           part));
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  const operation_call c = by_predicate(KILN_I32, 40000, 0, JOINED, 3, 66, 33);

  ck_assert_uint_gt(ck_workspace(c), 0);
  ck_capture(c);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = test_random(state) % 2 ? KILN_I32 : KILN_U8;
  const size_t n = (size_t)(test_random(state) % 12000);
  const layout how = (layout)(test_random(state) % 3);
  const size_t parts = how != REVERSED && test_random(state) % 2 != 0 ? 3 : 2;
  const int64_t first = (int64_t)(test_random(state) % 100);

  (void)k;
  return by_predicate(type, n, 0, how, parts, first, first / 2);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 150, 12);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_partition_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  const operation_call c = by_predicate(KILN_F32, 100, 0, JOINED, 2, 50, 0);
  const kiln_partition_desc *good = c.desc;
  const kiln_array more = array_make(KILN_F32, 100, 0, NULL, 1).array;
  const bad_argument bad[] = {
      {KILN_EINVAL,
       "either the predicate first or flags",
       {MEMBER_OF(first, NULL)}},
      {KILN_EINVAL,
       "either the predicate first or flags",
       {MEMBER_OF(flags, more)}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, good->x.in[0])}},
      {KILN_EINVAL, "count is neither", {MEMBER_OF(count, {0})}},
      {KILN_EINVAL, "out is none", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "there are two parts", {MEMBER_OF(out_second, more)}},
      {KILN_EINVAL,
       "go together",
       {MEMBER_OF(second, "x"), MEMBER_OF(out_rest, more)}},
      {KILN_EINVAL,
       "rest_reversed is for",
       {MEMBER_OF(out_rest, more), MEMBER_OF(rest_reversed, true)}},
      {KILN_EINVAL,
       "rest_reversed is for",
       {MEMBER_OF(second, "x"), MEMBER_OF(rest_reversed, true)}},
      {KILN_EINVAL,
       "out and out_rest overlap",
       {MEMBER_OF(out_rest, good->out)}},
  };

  ck_bad_arguments(c, bad);
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
