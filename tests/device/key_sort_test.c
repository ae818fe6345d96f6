/* key_sort_test.c -- kiln_key_sort for elements of several sizes, compared with a
 * stable counting sort on the host. */
#include "operation_checks.h"

#include <kiln/sort.h>

/* A key of 10 bits from the first bytes of an element. */
static unsigned key_of(const unsigned char *element, size_t size)
{
  const unsigned low = element[0], high = size > 1 ? element[1] : 0;

  return (low ^ high * 3u) & 1023u;
}

/* Returns the elements in the stable order of the keys' bits in `mask`.
 * teardown() frees them. */
static void *sorted_by_key(const unsigned char *data, size_t n, size_t size,
                           unsigned mask, bool down)
{
  unsigned char *out = kept(malloc(n * size + 1));
  size_t at = 0;

  for (unsigned k = 0; k <= mask; k++)
    for (size_t i = 0; i < n; i++)
      if ((key_of(data + i * size, size) & mask) == (down ? mask - k : k))
        memcpy(out + at++ * size, data + i * size, size);
  return out;
}

typedef struct shape {
  size_t size, align, n;
  kiln_dtype key;
  bool down, in_place;
  unsigned end_bit;
} shape;

static operation_call key_call(shape s)
{
  static const char text[] =
      "struct alignas(%zu) record { unsigned char byte[%zu]; };\n"
      "__device__ unsigned key_of(const record &r)\n"
      "{\n"
      "  const unsigned low = r.byte[0], high = %zu > 1 ? r.byte[%zu] : 0;\n"
      "  return (low ^ high * 3u) & 1023u;\n"
      "}\n";
  const kiln_dtype type = KILN_STRUCT(s.size, s.align);
  const unsigned mask = s.end_bit == 0 ? 1023u : (1u << s.end_bit) - 1;
  uint64_t state = s.n + s.size;
  unsigned char *data = kept(random_bits(s.n * s.size, &state));
  const test_array in = array_make(type, s.n, 1, data, 0);
  const test_array out = s.in_place ? in : array_make(type, s.n, 0, NULL, 0x5a);
  kiln_param *params = kept(calloc(1, sizeof *params));
  char *preamble = kept(malloc(sizeof text + 80));
  kiln_key_sort_desc desc = {.in = in.array,
                             .out = out.array,
                             .n = s.n,
                             .key = "key_of(x)",
                             .key_type = s.key,
                             .descending = s.down,
                             .end_bit = s.end_bit};
  operation_call c;

  snprintf(preamble, sizeof text + 80, text, s.align, s.size, s.size,
           s.size > 1 ? (size_t)1 : 0);
  *params = (kiln_param){.name = "record", .type = type};
  desc.code =
      (kiln_code){.preamble = preamble, .params = params, .n_params = 1};
  c = CALL_OF(kiln_key_sort, &desc);
  call_writes(&c, &out, sorted_by_key(data, s.n, s.size, mask, s.down));
  return c;
}

START_TEST(test_elements)
{
  static const shape shapes[] = {
      {4, 4, 3000, KILN_U16, false, true, 0},
      {12, 4, 3000, KILN_DTYPE_NONE, true, false, 0},
      {1, 1, 3000, KILN_U8, false, false, 7},
      {2, 1, 3000, KILN_U32, false, false, 0},
      {8, 8, 20000, KILN_U64, true, false, 10},
      {16, 16, 20000, KILN_U16, false, false, 0},
      {64, 8, 1000, KILN_U32, true, false, 5},
      {3, 1, 3000, KILN_U32, false, false, 0},
  };
  shape s = shapes[_i];

  if (_i > 1 && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  ck_call(key_call(s));
  s.n = 9001;
  ck_assert_uint_gt(ck_workspace(key_call(s)), 9001 * 2);
  ck_capture(key_call(s));
  for (s.n = 0; s.n < 3; s.n++)
    ck_call(key_call(s));
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const shape shapes[] = {{4, 4, 0, KILN_U16, false, true, 0},
                                 {12, 4, 0, KILN_U32, true, false, 0},
                                 {1, 1, 0, KILN_U8, false, false, 8},
                                 {8, 8, 0, KILN_U64, true, true, 10},
                                 {64, 8, 0, KILN_U32, false, false, 5}};
  const uint64_t r = test_random(state);
  shape s = shapes[k % 5];

  s.n = (r >> 8) % (r % 4 == 0 ? 12000 : 1500);
  s.down ^= r >> 4 & 1;
  return key_call(s);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 2, 2026);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_key_sort_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  const operation_call c =
      key_call((shape){12, 4, 9, KILN_U32, false, false, 0});
  const kiln_key_sort_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "key is NULL", {MEMBER_OF(key, NULL)}},
      {KILN_EINVAL, "key_type is i32", {MEMBER_OF(key_type, KILN_I32)}},
      {KILN_EINVAL, "differ", {MEMBER_OF(out, {good->out.data, KILN_F32})}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out, good->in)}},
      {KILN_EINVAL, "end_bit is 33", {MEMBER_OF(end_bit, 33)}},
      {KILN_ECOMPILE, "does not compile", {MEMBER_OF(key, "x + q")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("key_sort");
  TCase *t = device_case(s, "key_sort");

  tcase_add_loop_test(t, test_elements, 0, 8);
  tcase_add_test(t, test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
