/* permute_test.c -- kiln_permute() against a loop over all indices, for every
 * kind of permutation, element sizes from 1 to 24 bytes, and any alignment. */
#include "scan_values.h"

#include <kiln/permute.h>

/* Returns the number of values of the array. */
static size_t values_of(const kiln_permute_desc *d)
{
  size_t n = d->values > 0 ? d->values : 1;

  for (uint32_t k = 0; k < d->rank; k++)
    n *= d->size[k];
  return n;
}

/* Writes the permuted elements of x, each of `width` bytes, to `to`. */
static void permuted(const kiln_permute_desc *d, const unsigned char *x,
                     unsigned char *to, size_t width)
{
  uint64_t at[KILN_MAX_AXES] = {0}; /* the index along each axis of out */
  const size_t n = values_of(d) / (d->values > 0 ? d->values : 1);

  for (size_t o = 0; o < n; o++) {
    uint64_t index[KILN_MAX_AXES], from = 0;

    for (uint32_t k = 0; k < d->rank; k++)
      index[d->axis[k]] = at[k];
    for (uint32_t k = 0; k < d->rank; k++)
      from = from * d->size[k] + index[k];
    memcpy(to + o * width, x + from * width, width);
    for (uint32_t k = d->rank; k-- > 0;) {
      if (++at[k] < d->size[d->axis[k]])
        break;
      at[k] = 0;
    }
  }
}

static operation_call permute_call(kiln_permute_desc d, size_t in_shift,
                                   size_t out_shift)
{
  const size_t n = values_of(&d), size = kiln_dtype_size(d.in.type);
  unsigned char *x = room_for(n, size), *want = room_for(n, size);
  uint64_t state = n + d.rank;
  test_array in, out;
  operation_call c;

  for (size_t i = 0; i < n * size; i++)
    x[i] = (unsigned char)test_random(&state);
  in = array_make(d.in.type, n, in_shift, x, 0);
  out = array_make(d.in.type, n, out_shift, NULL, 0x5a);
  d.in = in.array;
  d.out = out.array;
  permuted(&d, x, want, size * (d.values > 0 ? d.values : 1));
  c = CALL_OF(kiln_permute, &d);
  call_writes(&c, &out, want);
  return c;
}

/* Each row takes another way through the kernels. */
static const struct {
  const char *what;
  kiln_dtype type;
  uint32_t values, rank;
  uint64_t size[KILN_MAX_AXES];
  uint32_t axis[KILN_MAX_AXES];
} cases[] = {
    {"nothing", KILN_F32, 0, 2, {0, 5}, {1, 0}},
    {"one element", KILN_F32, 0, 6, {1, 1, 1, 1, 1, 1}, {5, 4, 3, 2, 1, 0}},
    {"copy", KILN_U16, 0, 3, {5, 1, 7}, {1, 0, 2}},
    {"matrix", KILN_F32, 0, 2, {130, 67}, {1, 0}},
    {"whole tiles", KILN_U32, 0, 2, {128, 64}, {1, 0}},
    {"bytes in words", KILN_U8, 0, 2, {132, 260}, {1, 0}},
    {"bytes", KILN_I8, 0, 2, {131, 70}, {1, 0}},
    {"halves in words", KILN_F16, 0, 2, {134, 200}, {1, 0}},
    {"short halves in words", KILN_F16, 0, 3, {3, 66, 36}, {0, 2, 1}},
    {"halves", KILN_BF16, 0, 2, {65, 129}, {1, 0}},
    {"8 bytes", KILN_F64, 0, 2, {70, 65}, {1, 0}},
    {"16 bytes", KILN_F64, 2, 2, {40, 35}, {1, 0}},
    {"12 bytes", KILN_F32, 3, 2, {40, 35}, {1, 0}},
    {"5 bytes", KILN_U8, 5, 2, {40, 70}, {1, 0}},
    {"24 bytes", KILN_U64, 3, 2, {40, 35}, {1, 0}},
    {"pixels to planes", KILN_U8, 0, 3, {37, 50, 3}, {2, 0, 1}},
    {"planes to pixels", KILN_F32, 0, 3, {3, 37, 50}, {1, 2, 0}},
    {"batch of matrices", KILN_F32, 0, 3, {3, 40, 70}, {0, 2, 1}},
    {"batch of small matrices", KILN_F32, 0, 3, {100, 16, 16}, {0, 2, 1}},
    {"reversed", KILN_F32, 0, 4, {9, 5, 11, 3}, {3, 2, 1, 0}},
    {"reversed, 6 axes",
     KILN_U16,
     0,
     6,
     {5, 4, 3, 4, 5, 6},
     {5, 4, 3, 2, 1, 0}},
    {"batch of bytes in words", KILN_U8, 0, 4, {3, 36, 2, 40}, {2, 3, 0, 1}},
    {"rows", KILN_F32, 0, 4, {3, 7, 5, 64}, {0, 2, 1, 3}},
    {"odd rows", KILN_U8, 0, 4, {3, 7, 5, 61}, {2, 1, 0, 3}},
    {"mixed", KILN_I32, 0, 5, {4, 6, 5, 7, 9}, {3, 0, 4, 1, 2}},
};

START_TEST(test_cases)
{
  kiln_permute_desc d = {.in = {0, cases[_i].type},
                         .values = cases[_i].values,
                         .rank = cases[_i].rank};
  operation_call c;

  memcpy(d.size, cases[_i].size, sizeof d.size);
  memcpy(d.axis, cases[_i].axis, sizeof d.axis);
  c = permute_call(d, 0, 0);
  c.what = cases[_i].what;
  ck_call(c);
  if (_i % 4 != 0 && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  c = permute_call(d, 1, 0);
  c.what = cases[_i].what;
  ck_call(c);
  ck_call(permute_call(d, 0, 3));
}
END_TEST

static operation_call small_call(void)
{
  return permute_call(
      (kiln_permute_desc){
          .in = {0, KILN_F32}, .rank = 2, .size = {128, 64}, .axis = {1, 0}},
      0, 0);
}

START_TEST(test_workspace_and_capture)
{
  ck_capture(small_call());
  ck_assert_uint_eq(ck_workspace(small_call()), 0);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_permute_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  const operation_call c = small_call();
  const kiln_array a = c.result[0].array.array;
  const bad_argument bad[] = {
      {KILN_EINVAL, "in has no type", {MEMBER_OF(in, {0})}},
      {KILN_EINVAL, "out has no type", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "different types", {MEMBER_OF(out, {a.data, KILN_U32})}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(in, a)}},
      {KILN_EINVAL, "rank is 0", {MEMBER_OF(rank, 0)}},
      {KILN_EINVAL, "rank is 7", {MEMBER_OF(rank, 7)}},
      {KILN_EINVAL, "axis[1] is 2", {MEMBER_OF(axis[1], 2)}},
      {KILN_EINVAL, "twice", {MEMBER_OF(axis[1], 1)}},
      {KILN_EINVAL, "2^64", {MEMBER_OF(size[0], UINT64_MAX / 64)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  kiln_permute_desc d = {.in = {0, all_types[test_random(state) % N_ALL_TYPES]},
                         .values = (uint32_t)(test_random(state) % 4),
                         .rank = 1 + (uint32_t)(test_random(state) % 6)};
  uint64_t left = 20000;

  for (uint32_t i = 0; i < d.rank; i++) {
    const uint64_t other = test_random(state) % (i + 1);

    d.size[i] = 1 + test_random(state) % (i + 1 == d.rank ? left : 12);
    d.size[i] = d.size[i] < left ? d.size[i] : left;
    left /= d.size[i];
    d.axis[i] = d.axis[other];
    d.axis[other] = i;
  }
  return permute_call(d, k % 3, k % 5);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 12, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("permute");
  TCase *t = device_case(s, "permute");

  tcase_add_loop_test(t, test_cases, 0, sizeof cases / sizeof cases[0]);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
