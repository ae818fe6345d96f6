/* segmented_sort_test.c -- kiln_segmented_sort: segments of all lengths side by
 * side, every type, stable, in place, ranges of bits, offsets of any type and
 * offsets that make no sense, against qsort() of each segment. */
#include "ops_fixture.h"

/* ---- The reference ------------------------------------------------------------------ */

typedef struct item {
  uint64_t word; /* sorts as the key does */
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
  uint64_t spread;          /* keys are below it */
  unsigned constant_digits; /* mask of the bytes that all keys share */
} test_case;

/* Floats here are no NaNs: those are kiln_sort()'s matter. */
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
  size_t *order = malloc((n + 1) * sizeof *order);
  item *items = malloc((n + 1) * sizeof *items);

  ck_assert(order != NULL && items != NULL);
  for (size_t i = 0; i < n; i++)
    items[i] = (item){word_of(c, keys + i * size), i};
  for (size_t s = 0; s < n_segments; s++)
    qsort(items + offset[s], offset[s + 1] - offset[s], sizeof *items,
          compare_items);
  for (size_t i = 0; i < n; i++)
    order[i] = items[i].index;
  free(items);
  return order;
}

/* ---- One call, checked ---------------------------------------------------------------- */

static test_array make_offsets(kiln_dtype type, const size_t *offset, size_t n)
{
  const size_t size = kiln_dtype_size(type);
  unsigned char *data = malloc((n + 1) * size);
  test_array a;

  ck_assert_ptr_nonnull(data);
  for (size_t i = 0; i <= n; i++) {
    const uint64_t v = offset[i];

    memcpy(data + i * size, &v, size);
  }
  a = array_make(type, n + 1, 1, data, 0);
  free(data);
  return a;
}

static void *make_keys(const test_case *c, size_t n, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->key);
  unsigned char *keys = malloc(n * size + 8);

  ck_assert_ptr_nonnull(keys);
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

static void compare_results(const test_case *c, const unsigned char *keys,
                            const unsigned char *values, const test_array *out,
                            const test_array *values_out, const size_t *want,
                            const size_t *offset, size_t n_segments)
{
  const size_t ks = kiln_dtype_size(c->key), vs = kiln_dtype_size(c->value);
  unsigned char *got = array_read(out);
  unsigned char *got_values = vs > 0 ? array_read(values_out) : NULL;

  for (size_t s = 0; s < n_segments; s++)
    for (size_t i = offset[s]; i < offset[s + 1]; i++) {
      ck_assert_msg(memcmp(got + i * ks, keys + want[i] * ks, ks) == 0,
                    "%s: key %zu of segment %zu, which has %zu",
                    kiln_dtype_name(c->key), i - offset[s], s,
                    offset[s + 1] - offset[s]);
      if (vs > 0)
        ck_assert_msg(memcmp(got_values + i * vs, values + want[i] * vs, vs) ==
                          0,
                      "%s: value %zu of segment %zu", kiln_dtype_name(c->key),
                      i - offset[s], s);
    }
  /* before the first segment and behind the last nothing is touched */
  for (size_t i = 0; i < out->n && !c->in_place; i++)
    if (i < offset[0] || i >= offset[n_segments])
      ck_assert_uint_eq(got[i * ks], 0x5a);
  free(got);
  free(got_values);
}

static void check_sort(const test_case *c, const size_t *offset,
                       size_t n_segments, size_t behind, uint64_t *state)
{
  const size_t n = offset[n_segments] + behind;
  const bool pairs = c->value != KILN_DTYPE_NONE;
  unsigned char *keys = make_keys(c, n, state);
  unsigned char *values =
      pairs ? random_bits(n * kiln_dtype_size(c->value), state) : NULL;
  size_t *want = reference(c, keys, n, offset, n_segments);
  test_array in = array_make(c->key, n, 1, keys, 0);
  test_array out = array_make(c->key, n, 2, NULL, 0x5a);
  test_array off = make_offsets(c->offset, offset, n_segments);
  test_array v_in = {0}, v_out = {0};
  kiln_segmented_sort_desc d = {.keys_in = in.array,
                                .keys_out = c->in_place ? in.array : out.array,
                                .offsets = off.array,
                                .n = n,
                                .n_segments = n_segments,
                                .descending = c->descending,
                                .begin_bit = c->begin_bit,
                                .end_bit = c->end_bit};

  if (pairs) {
    v_in = array_make(c->value, n, 0, values, 0);
    v_out = array_make(c->value, n, 1, NULL, 0x5a);
    d.values_in = v_in.array;
    d.values_out = c->in_place ? v_in.array : v_out.array;
  }
  ck_kiln_ok(kiln_segmented_sort(stream, &d, NULL));
  compare_results(c, keys, values, c->in_place ? &in : &out,
                  c->in_place ? &v_in : &v_out, want, offset, n_segments);
  array_free(&in);
  array_free(&out);
  array_free(&off);
  if (pairs) {
    array_free(&v_in);
    array_free(&v_out);
  }
  free(keys);
  free(values);
  free(want);
}

/* ---- Tests ------------------------------------------------------------------------------ */

/* Offsets of segments of these lengths, from 3 on. */
static size_t *offsets_of(const size_t *length, size_t n)
{
  size_t *offset = malloc((n + 1) * sizeof *offset);

  ck_assert_ptr_nonnull(offset);
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

  check_sort(&c, offset, N_MIXED, 5, &state);
  free(offset);
}
END_TEST

/* Equal keys stay in order in every class; digits that all keys share; an odd
 * number of passes in place. */
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

    check_sort(&c, offset, N_MIXED, 0, &state);
  }
  free(offset);
}
END_TEST

/* Segments of every class, each digit constant in turn, and each pair of digits. */
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

      check_sort(&c, offset, N_MIXED, 0, &state);
    }
  free(offset);
}
END_TEST

START_TEST(test_shapes)
{
  static const size_t one[] = {20011}, none[] = {0, 0, 0};
  size_t many[2000], *offset;
  uint64_t state = 7;
  const test_case c = {.key = KILN_F32, .value = KILN_U32, .offset = KILN_U32};

  offset = offsets_of(one, 1);
  check_sort(&c, offset, 1, 1, &state);
  free(offset);
  offset = offsets_of(none, 3);
  check_sort(&c, offset, 3, 100, &state);
  free(offset);
  for (size_t i = 0; i < 2000; i++)
    many[i] = test_random(&state) % 20;
  offset = offsets_of(many, 2000);
  check_sort(&c, offset, 2000, 0, &state);
  free(offset);
  for (size_t i = 0; i < 12; i++)
    many[i] = 3000 + test_random(&state) % 3000;
  offset = offsets_of(many, 12);
  check_sort(&c, offset, 12, 0, &state);
  free(offset);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(60);
  uint64_t state = 11;

  for (unsigned long k = 0; k < calls; k++) {
    const uint64_t r = test_random(&state);
    const size_t n = 1 + r % 40;
    size_t length[40], *offset;
    const test_case c = {.key = r >> 8 & 1 ? KILN_U32 : KILN_I16,
                         .value = r >> 9 & 1 ? KILN_U32 : KILN_DTYPE_NONE,
                         .offset = KILN_U32,
                         .descending = r >> 10 & 1,
                         .in_place = r >> 11 & 1,
                         .spread = r >> 12 & 1 ? 10 : 0};

    for (size_t i = 0; i < n; i++) {
      const uint64_t q = test_random(&state);

      length[i] = q % 4 == 0 ? q >> 8 & 255 : q >> 8 & 31;
      if (q % 64 == 1)
        length[i] = 3000 + (q >> 8 & 2047);
    }
    offset = offsets_of(length, n);
    check_sort(&c, offset, n, r >> 20 & 7, &state);
    free(offset);
  }
}
END_TEST

/* Offsets that fall, overlap or lie outside: nothing but the arrays is touched. */
START_TEST(test_wild_offsets)
{
  enum { N = 9000, SEGMENTS = 64 };
  uint64_t state = 13;
  void *keys = random_bits(4 * N, &state);
  test_array in = array_make(KILN_U32, N, 0, keys, 0);
  test_array out = array_make(KILN_U32, N, 0, NULL, 1);

  findings_wanted = true; /* segments that overlap are a race */
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
    array_free(&off);
  }
  free(keys);
  array_free(&in);
  array_free(&out);
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  size_t *offset = offsets_of(mixed, N_MIXED);
  const size_t n = offset[N_MIXED];
  uint64_t state = 17;
  const test_case c = {.key = KILN_U32, .offset = KILN_U32};
  unsigned char *keys = make_keys(&c, n, &state);
  size_t *want = reference(&c, keys, n, offset, N_MIXED);
  test_array in = array_make(KILN_U32, n, 0, keys, 0);
  test_array out = array_make(KILN_U32, n, 0, NULL, 0x5a);
  test_array off = make_offsets(KILN_U32, offset, N_MIXED);
  test_array room = array_make(KILN_U8, 4 << 20, 0, NULL, 0xee);
  const kiln_segmented_sort_desc d = {.keys_in = in.array,
                                      .keys_out = out.array,
                                      .offsets = off.array,
                                      .n = n,
                                      .n_segments = N_MIXED};
  kiln_workspace w = {room.array.data, 0};
  CUgraphExec run;

  ck_kiln_ok(kiln_segmented_sort_workspace(stream, &d, &w.size));
  ck_assert_uint_lt(w.size, 4 << 20);
  w.size--;
  ck_assert_int_eq(kiln_segmented_sort(stream, &d, &w), KILN_EINVAL);
  w.size++;
  ck_kiln_ok(kiln_segmented_sort(stream, &d, &w));
  compare_results(&c, keys, NULL, &out, NULL, want, offset, N_MIXED);
  capture_begin();
  ck_kiln_ok(kiln_segmented_sort(stream, &d, NULL));
  run = capture_end();
  for (int turn = 0; turn < 2; turn++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * n));
    capture_replay(run);
    compare_results(&c, keys, NULL, &out, NULL, want, offset, N_MIXED);
  }
  capture_free(run);
  array_free(&in);
  array_free(&out);
  array_free(&off);
  array_free(&room);
  free(keys);
  free(want);
  free(offset);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_U32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_U32, 100, 0, NULL, 1);
  test_array o = array_make(KILN_U32, 100, 0, NULL, 0);
  const kiln_array ka = a.array, kb = b.array, ko = o.array;
  const kiln_array next = {a.array.data + 4, KILN_U32};
  const kiln_segmented_sort_desc bad[] = {
      {.keys_in = ka, .keys_out = kb, .n = 9, .n_segments = 2},
      {.keys_in = ka, .offsets = ko, .n = 9, .n_segments = 2},
      {.keys_in = ka, .keys_out = next, .offsets = ko, .n = 9, .n_segments = 2},
      {.keys_in = ka, .keys_out = kb, .offsets = kb, .n = 9, .n_segments = 2},
      {.keys_in = ka,
       .keys_out = kb,
       .offsets = {o.array.data, KILN_U8},
       .n = 9,
       .n_segments = 2},
      {.keys_in = ka,
       .keys_out = kb,
       .offsets = ko,
       .n = UINT64_C(1) << 32,
       .n_segments = 2},
      {.keys_in = ka,
       .keys_out = kb,
       .offsets = ko,
       .n = 9,
       .n_segments = UINT64_MAX},
      {.keys_in = ka,
       .keys_out = kb,
       .offsets = ko,
       .n = 9,
       .n_segments = 2,
       .end_bit = 33},
      {.keys_in = ka,
       .keys_out = ka,
       .values_in = kb,
       .offsets = ko,
       .n = 9,
       .n_segments = 2},
  };

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_assert_msg(kiln_segmented_sort(stream, &bad[k], NULL) == KILN_EINVAL,
                  "%zu", k);
  ck_assert_int_eq(kiln_segmented_sort(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_segmented_sort(NULL, &bad[0], NULL), KILN_EINVAL);
  free(array_read(&b));
  array_free(&a);
  array_free(&b);
  array_free(&o);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("segmented_sort");
  TCase *t = tcase_create("segmented_sort");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_stable);
  tcase_add_test(t, test_shapes);
  tcase_add_test(t, test_constant_digits);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_wild_offsets);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_arguments);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
