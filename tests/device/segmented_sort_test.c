/* segmented_sort_test.c -- kiln_segmented_sort, compared with qsort() of each
 * segment: mixed segment lengths, every type, stable, in place, ranges of bits,
 * offsets of any type, and invalid offsets. */
#include "operation_checks.h"

/* ---- The reference ------------------------------------------------------- */

typedef struct item {
  uint64_t word; /* unsigned integer with the order of the key */
  size_t index;
} item;

static int compare_items(const void *a, const void *b)
{
  const item *x = a, *y = b;

  if (x->word != y->word)
    return x->word < y->word ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

typedef struct test_case {
  kiln_dtype key, value, offset;
  bool descending, in_place;
  unsigned begin_bit, end_bit;
  uint64_t spread;          /* keys are random numbers below this one */
  unsigned constant_digits; /* bit k is set if all keys share byte k */
} test_case;

/* Returns a word that sorts like the key. There are no NaNs here; the tests of
 * kiln_sort() cover those. */
static uint64_t word_of(const test_case *c, const unsigned char *key)
{
  const unsigned size = (unsigned)kiln_dtype_size(c->key), bits = 8 * size;
  const uint64_t ones = ~UINT64_C(0) >> (64 - bits);
  const unsigned end = c->end_bit == 0 ? bits : c->end_bit;
  uint64_t x = 0;

  memcpy(&x, key, size);
  if (type_is_float(c->key) && x >> (bits - 1))
    x = ~x & ones;
  else if (type_is_signed(c->key))
    x ^= UINT64_C(1) << (bits - 1);
  if (c->descending)
    x = ~x & ones;
  return x >> c->begin_bit & ~UINT64_C(0) >> (64 - (end - c->begin_bit));
}

static size_t *reference(const test_case *c, const unsigned char *keys,
                         size_t n, const size_t *offset, size_t n_segments)
{
  const size_t size = kiln_dtype_size(c->key);
  size_t *order = kept(malloc((n + 1) * sizeof *order));
  item *items = kept(malloc((n + 1) * sizeof *items));

  for (size_t i = 0; i < n; i++)
    items[i] = (item){word_of(c, keys + i * size), i};
  for (size_t s = 0; s < n_segments; s++)
    qsort(items + offset[s], offset[s + 1] - offset[s], sizeof *items,
          compare_items);
  for (size_t i = 0; i < n; i++)
    order[i] = items[i].index;
  return order;
}

/* ---- The check of one call ----------------------------------------------- */

static void *make_keys(const test_case *c, size_t n, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->key);
  unsigned char *keys = kept(malloc(n * size + 8));

  for (size_t i = 0; i < n; i++) {
    uint64_t v = test_random(state);

    if (c->spread != 0)
      v %= c->spread;
    for (unsigned digit = 0; digit < size; digit++)
      if (c->constant_digits >> digit & 1)
        v = (v & ~(UINT64_C(255) << 8 * digit)) | UINT64_C(0x41) << 8 * digit;
    if (type_is_float(c->key))
      set_whole(c->key, keys, i, (int64_t)(v % 200) - 100);
    else
      memcpy(keys + i * size, &v, size);
  }
  return keys;
}

/* Makes a call that must not change elements before the first segment and
 * behind the last one. */
static operation_call sort_call(const test_case *c, const size_t *offset,
                                size_t n_segments, size_t behind,
                                uint64_t *state)
{
  const size_t n = offset[n_segments] + behind;
  const bool pairs = c->value != KILN_DTYPE_NONE;
  unsigned char *keys = make_keys(c, n, state);
  unsigned char *values =
      pairs ? kept(random_bits(n * kiln_dtype_size(c->value), state)) : NULL;
  size_t *from = reference(c, keys, n, offset, n_segments);
  const size_t begin = offset[0], end = offset[n_segments];
  test_array in = array_make(c->key, n, 1, keys, 0), v_in, v_out;
  test_array out = c->in_place ? in : array_make(c->key, n, 2, NULL, 0x5a);
  kiln_segmented_sort_desc d = {
      .keys_in = in.array,
      .keys_out = out.array,
      .offsets = array_of_indices(c->offset, offset, n_segments + 1, 1).array,
      .n = n,
      .n_segments = n_segments,
      .descending = c->descending,
      .begin_bit = c->begin_bit,
      .end_bit = c->end_bit};
  operation_call call;

  if (pairs) {
    v_in = array_make(c->value, n, 0, values, 0);
    v_out = c->in_place ? v_in : array_make(c->value, n, 1, NULL, 0x5a);
    d.values_in = v_in.array;
    d.values_out = v_out.array;
  }
  call = CALL_OF(kiln_segmented_sort, &d);
  call_writes(&call, &out, gathered(&out, keys, from, begin, end));
  if (pairs)
    call_writes(&call, &v_out, gathered(&v_out, values, from, begin, end));
  return call;
}

/* ---- Tests --------------------------------------------------------------- */

/* Returns the offsets of segments of these lengths. The first offset is 3. */
static size_t *offsets_of(const size_t *length, size_t n)
{
  size_t *offset = kept(malloc((n + 1) * sizeof *offset));

  offset[0] = 3;
  for (size_t i = 0; i < n; i++)
    offset[i + 1] = offset[i] + length[i];
  return offset;
}

static const size_t mixed[] = {0,   1,    2,   31,   32,   33, 0,    64,
                               127, 128,  129, 255,  500,  3,  3071, 3072,
                               16,  3073, 7,   5000, 2049, 0,  0,    40};
enum { N_MIXED = sizeof mixed / sizeof mixed[0] };

START_TEST(test_types)
{
  static const kiln_dtype offsets[] = {KILN_U32, KILN_I32, KILN_I64, KILN_U64};
  static const kiln_dtype values[] = {KILN_DTYPE_NONE, KILN_U32, KILN_U8,
                                      KILN_F64, KILN_I16};
  size_t *offset = offsets_of(mixed, N_MIXED);
  uint64_t state = 3;
  const test_case c = {.key = all_types[_i],
                       .value = values[_i % 5],
                       .offset = offsets[_i % 4],
                       .descending = _i % 2 != 0,
                       .in_place = _i % 3 == 1};

  ck_call(sort_call(&c, offset, N_MIXED, 5, &state));
}
END_TEST

/* Equal keys must keep their order for every segment length, also if digits are
 * the same in all keys, and after an odd number of passes in place. */
START_TEST(test_stable)
{
  static const unsigned ends[] = {0, 3, 8, 20};
  size_t *offset = offsets_of(mixed, N_MIXED);
  uint64_t state = 5;

  for (int k = 0; k < 8; k++) {
    const test_case c = {.key = KILN_U32,
                         .value = KILN_U32,
                         .offset = KILN_U32,
                         .descending = k % 2 != 0,
                         .in_place = k >= 4,
                         .end_bit = ends[k % 4],
                         .begin_bit = k % 4 == 3 ? 5 : 0,
                         .spread = k % 3 == 0 ? 1 : 1000};

    ck_call(sort_call(&c, offset, N_MIXED, 0, &state));
  }
}
END_TEST

/* With segments of every length, one digit or two digits are the same in all
 * keys. */
START_TEST(test_constant_digits)
{
  size_t *offset = offsets_of(mixed, N_MIXED);
  uint64_t state = 29;
  unsigned turn = 0;

  for (unsigned a = 0; a < 4; a++)
    for (unsigned b = a; b < 4; b++, turn++) {
      const test_case c = {.key = KILN_U32,
                           .value = turn % 2 ? KILN_U32 : KILN_DTYPE_NONE,
                           .offset = KILN_U32,
                           .descending = turn / 2 % 2 != 0,
                           .in_place = turn % 3 == 0,
                           .constant_digits = 1u << a | 1u << b};

      ck_call(sort_call(&c, offset, N_MIXED, 0, &state));
    }
}
END_TEST

START_TEST(test_shapes)
{
  static const size_t one[] = {20011}, none[] = {0, 0, 0};
  size_t many[2000], *offset;
  uint64_t state = 7;
  const test_case c = {.key = KILN_F32, .value = KILN_U32, .offset = KILN_U32};

  offset = offsets_of(one, 1);
  ck_call(sort_call(&c, offset, 1, 1, &state));
  offset = offsets_of(none, 3);
  ck_call(sort_call(&c, offset, 3, 100, &state));
  for (size_t i = 0; i < 2000; i++)
    many[i] = test_random(&state) % 20;
  offset = offsets_of(many, 2000);
  ck_call(sort_call(&c, offset, 2000, 0, &state));
  for (size_t i = 0; i < 12; i++)
    many[i] = 3000 + test_random(&state) % 3000;
  offset = offsets_of(many, 12);
  ck_call(sort_call(&c, offset, 12, 0, &state));
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const uint64_t r = test_random(state);
  const size_t n = 1 + r % 40;
  size_t length[40];
  const test_case c = {.key = r >> 8 & 1 ? KILN_U32 : KILN_I16,
                       .value = r >> 9 & 1 ? KILN_U32 : KILN_DTYPE_NONE,
                       .offset = KILN_U32,
                       .descending = r >> 10 & 1,
                       .in_place = r >> 11 & 1,
                       .spread = r >> 12 & 1 ? 10 : 0};

  (void)k;
  for (size_t i = 0; i < n; i++) {
    const uint64_t q = test_random(state);

    length[i] = q % 4 == 0 ? q >> 8 & 255 : q >> 8 & 31;
    if (q % 64 == 1)
      length[i] = 3000 + (q >> 8 & 2047);
  }
  return sort_call(&c, offsets_of(length, n), n, r >> 20 & 7, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 60, 11);
}
END_TEST

/* Offsets descend, overlap or lie outside. The call must not write outside the
 * arrays. */
START_TEST(test_wild_offsets)
{
  enum { N = 9000, SEGMENTS = 64 };
  uint64_t state = 13;
  void *keys = kept(random_bits(4 * N, &state));
  test_array in = array_make(KILN_U32, N, 0, keys, 0);
  test_array out = array_make(KILN_U32, N, 0, NULL, 1);

  findings_wanted = true; /* overlapping segments are a data race */
  for (int turn = 0; turn < 10; turn++) {
    uint32_t wild[SEGMENTS + 1];
    test_array off;

    for (size_t i = 0; i <= SEGMENTS; i++) {
      const uint64_t r = test_random(&state);

      wild[i] = turn < 5 ? (i % 2 ? N - (uint32_t)(r % 9) : (uint32_t)(r % 9))
                         : (uint32_t)(r % (r >> 40 & 1 ? 2 * N : UINT32_MAX));
    }
    off = array_make(KILN_U32, SEGMENTS + 1, 0, wild, 0);
    ck_kiln_ok(
        kiln_segmented_sort(stream,
                            &(kiln_segmented_sort_desc){.keys_in = in.array,
                                                        .keys_out = out.array,
                                                        .offsets = off.array,
                                                        .n = N,
                                                        .n_segments = SEGMENTS},
                            NULL));
    free(array_read(&out));
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 17;
  const test_case c = {.key = KILN_U32, .offset = KILN_U32};
  const operation_call call =
      sort_call(&c, offsets_of(mixed, N_MIXED), N_MIXED, 0, &state);

  ck_capture(call);
  ck_assert_uint_lt(ck_workspace(call), 4 << 20);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_segmented_sort_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  static const size_t length[] = {20, 60};
  uint64_t state = 19;
  const test_case small = {.key = KILN_U32, .offset = KILN_U32};
  const operation_call c =
      sort_call(&small, offsets_of(length, 2), 2, 0, &state);
  const kiln_segmented_sort_desc *desc = c.desc;
  const kiln_array in = desc->keys_in, out = desc->keys_out;
  const bad_argument bad[] = {
      {KILN_EINVAL, "offsets", {MEMBER_OF(offsets, {0})}},
      {KILN_EINVAL, "keys_out", {MEMBER_OF(keys_out, {0})}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(keys_out.data, in.data + 4)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(offsets.data, out.data)}},
      {KILN_EINVAL, "type u8", {MEMBER_OF(offsets.type, KILN_U8)}},
      {KILN_EINVAL, "n is above 2^31", {MEMBER_OF(n, UINT64_C(1) << 32)}},
      {KILN_EINVAL, "too many segments", {MEMBER_OF(n_segments, UINT64_MAX)}},
      {KILN_EINVAL, "end_bit is 33", {MEMBER_OF(end_bit, 33)}},
      {KILN_EINVAL,
       "values_out",
       {MEMBER_OF(keys_out, in), MEMBER_OF(values_in, out)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("segmented_sort");
  TCase *t = device_case(s, "segmented_sort");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_stable);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_constant_digits);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_wild_offsets);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
