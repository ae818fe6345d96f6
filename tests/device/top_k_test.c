/* top_k_test.c -- kiln_top_k, compared with a sort on the host: every type,
 * both directions and orders, ties, NaNs; rows of one block and long rows,
 * candidates that suffice and that do not; any k; invalid arguments. */
#include "operation_checks.h"
#include "ranked_keys.h"

typedef struct test_case {
  kiln_dtype key, index; /* no index type: only keys */
  key_kind kind;
  size_t n, rows, k;
  bool smallest, by_index, no_keys;
  size_t shift; /* misalignment of the keys in elements */
} test_case;

static int ascending(const void *a, const void *b)
{
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;

  return (x > y) - (x < y);
}

/* Returns the places of the selected keys of all rows, within their row. */
static size_t *reference(const test_case *c, const unsigned char *keys)
{
  const size_t size = kiln_dtype_size(c->key);
  size_t *places = kept(malloc((c->rows * c->k + 1) * sizeof *places));

  for (size_t row = 0; row < c->rows; row++) {
    size_t *order =
        ranked_places(c->key, keys + row * c->n * size, c->n, !c->smallest);

    memcpy(places + row * c->k, order, c->k * sizeof *order);
    if (c->by_index)
      qsort(places + row * c->k, c->k, sizeof *places, ascending);
    free(order);
  }
  return places;
}

static operation_call top_k_call(const test_case *c, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->key), n = c->rows * c->k;
  unsigned char *keys = ranked_keys(c->key, c->kind, c->rows * c->n, state);
  const size_t *places = reference(c, keys);
  unsigned char *want = kept(malloc(n * size + 1));
  void *index = kept(malloc(n * 8 + 1));
  const test_array in = array_make(c->key, c->rows * c->n, c->shift, keys, 0);
  const test_array out =
      array_make(c->key, c->no_keys ? 0 : n, c->shift, NULL, 0x5a);
  const test_array out_index =
      array_make(kiln_dtype_size(c->index) != 0 ? c->index : KILN_U32,
                 kiln_dtype_size(c->index) != 0 ? n : 0, 1, NULL, 0x5a);
  operation_call call =
      CALL_OF(kiln_top_k, &(kiln_top_k_desc){.keys = in.array,
                                             .n = c->n,
                                             .rows = c->rows,
                                             .k = c->k,
                                             .smallest = c->smallest,
                                             .by_index = c->by_index});
  kiln_top_k_desc *desc = call.desc;

  for (size_t i = 0; i < n; i++)
    memcpy(want + i * size, keys + (i / c->k * c->n + places[i]) * size, size);
  if (!c->no_keys) {
    desc->keys_out = out.array;
    call_writes(&call, &out, want);
  }
  if (kiln_dtype_size(c->index) != 0) {
    for (size_t i = 0; i < n; i++)
      set_whole(c->index, index, i, (int64_t)places[i]);
    desc->indices = out_index.array;
    call_writes(&call, &out_index, index);
  }
  return call;
}

static void check(test_case c, uint64_t seed)
{
  const size_t mark = n_kept;
  uint64_t state = seed;

  ck_call(top_k_call(&c, &state));
  release(mark);
}

/* ---- Rows of one block --------------------------------------------------- */

static bool is_thorough(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

/* Keys of different sizes and encodings. A thorough run tests all types. */
static bool is_tested(kiln_dtype type)
{
  return is_thorough() || type == KILN_I8 || type == KILN_BF16 ||
         type == KILN_F32 || type == KILN_F64;
}

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];

  if (!is_tested(type))
    return;
  check((test_case){type, KILN_U32, KEYS_SPECIAL, 3000, 2, 300, false, false,
                    false, 1},
        1);
  check((test_case){type, KILN_U32, KEYS_RANDOM, 700, 3, 7, true, false, false,
                    0},
        2);
}
END_TEST

START_TEST(test_sizes)
{
  static const size_t sizes[] = {1, 2, 31, 32, 33, 255, 257, 2047, 2049, 4096};

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const size_t n = sizes[i];

    check((test_case){KILN_F32, KILN_U32, KEYS_RANDOM, n, 1, 1, false, false,
                      false, n % 4},
          n);
    check((test_case){KILN_F32, KILN_U32, KEYS_FEW, n, 2, (n + 1) / 2, true,
                      false, false, n % 3},
          n);
    check((test_case){KILN_F32, KILN_U32, KEYS_FEW, n, 1, n < 256 ? n : 200,
                      false, true, false, 0},
          n);
  }
}
END_TEST

START_TEST(test_nothing)
{
  check((test_case){KILN_F32, KILN_U32, KEYS_RANDOM, 0, 1, 0, false, false,
                    false, 0},
        1);
  check((test_case){KILN_F32, KILN_U32, KEYS_RANDOM, 50, 3, 0, false, false,
                    false, 0},
        1);
}
END_TEST

START_TEST(test_outputs)
{
  static const kiln_dtype index[] = {KILN_I32, KILN_U64};

  for (size_t i = 0; i < 2; i++)
    check((test_case){KILN_I16, index[i], KEYS_RANDOM, 5000, 1, 2000,
                      i % 2 == 0, false, i == 0, 3},
          i);
  check((test_case){KILN_I16, KILN_DTYPE_NONE, KEYS_RANDOM, 5000, 1, 20, false,
                    false, false, 3},
        9);
}
END_TEST

/* ---- Long rows ----------------------------------------------------------- */

/* One program set per type. The number of candidates suffices for random keys,
 * and not for few or equal keys. Sorted keys have all candidates at one end. */
START_TEST(test_long)
{
  static const key_kind kinds[] = {KEYS_RANDOM, KEYS_FEW, KEYS_EQUAL,
                                   KEYS_SORTED, KEYS_SPECIAL};
  const kiln_dtype type = _i == 0 ? KILN_F32 : KILN_U64;

  if (_i > 0 && !is_thorough())
    return;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    check((test_case){type, KILN_U32, kinds[i], 50001, 1, i == 0 ? 10 : 100,
                      i % 2 == 1, false, false, 0},
          i);
}
END_TEST

/* The bounds fail, because the keys of the sample are the best ones or the worst
 * ones. In the second case, the list of candidates overflows. */
START_TEST(test_failed_bounds)
{
  check((test_case){KILN_F32, KILN_U32, KEYS_SAMPLED_GREAT, 50001, 1, 2000,
                    _i == 1, false, false, 0},
        11);
  check((test_case){KILN_F32, KILN_U32, KEYS_SAMPLED_LEAST, 50001, 1, 100,
                    _i == 1, _i == 1, false, 0},
        12);
}
END_TEST

START_TEST(test_bytes)
{
  check((test_case){KILN_I8, KILN_U32, KEYS_RANDOM, 70003, 1, 1000, false,
                    false, false, 5},
        3);
}
END_TEST

START_TEST(test_large_k)
{
  check((test_case){KILN_F32, KILN_U32, KEYS_RANDOM, 5000, 1, 4000, false,
                    false, false, 1},
        4);
  check((test_case){KILN_F32, KILN_U32, KEYS_FEW, 40000, 2, 3000, true, true,
                    false, 0},
        5);
}
END_TEST

START_TEST(test_workspace)
{
  uint64_t state = 7;
  const test_case c = {KILN_F32, KILN_U32, KEYS_RANDOM, 40001, 2,
                       50,       false,    false,       false, 0};

  ck_assert_uint_gt(ck_workspace(top_k_call(&c, &state)), 0);
  ck_capture(top_k_call(&c, &state));
}
END_TEST

/* ---- Arguments ----------------------------------------------------------- */

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const test_case c = {KILN_F32, KILN_U32, KEYS_RANDOM, 500,   2,
                       20,       false,    false,       false, 0};
  const operation_call good = top_k_call(&c, &state);
  const kiln_top_k_desc *d = good.desc;
#define SET(member, ...) MEMBER(kiln_top_k_desc, member, __VA_ARGS__)
  const bad_argument bad[] = {
      {KILN_EINVAL, "above n", {SET(k, 501)}},
      {KILN_EINVAL, "at most", {SET(k, 65537), SET(n, 70000)}},
      {KILN_EINVAL, "too many", {SET(rows, UINT64_C(1) << 31)}},
      {KILN_EINVAL, "too many", {SET(n, UINT64_C(1) << 49)}},
      {KILN_EINVAL, "keys", {SET(keys, {0, KILN_F32})}},
      {KILN_EINVAL, "keys", {SET(keys, {d->keys.data + 1, KILN_F32})}},
      {KILN_EINVAL, "differ", {SET(keys_out, {d->keys_out.data, KILN_I32})}},
      {KILN_EINVAL, "indices", {SET(indices, {d->indices.data, KILN_F32})}},
      {KILN_EINVAL, "overlap", {SET(keys_out, d->keys)}},
      {KILN_EINVAL,
       "neither",
       {SET(keys_out, {0, KILN_DTYPE_NONE}),
        SET(indices, {0, KILN_DTYPE_NONE})}},
  };

  ck_bad_arguments(good, bad);
}
END_TEST

static operation_call draw(unsigned long number, uint64_t *state)
{
  const uint64_t r = test_random(state);
  test_case c = {.key = all_types[r % N_ALL_TYPES],
                 .index = r >> 8 & 1 ? KILN_U32 : KILN_I64,
                 .kind = (key_kind)(r >> 9 & 7) % N_KEY_KINDS,
                 .rows = 1 + (r >> 12) % 3,
                 .smallest = r >> 16 & 1,
                 .by_index = r >> 17 & 1,
                 .no_keys = (r >> 18 & 7) == 0,
                 .shift = r >> 21 & 3};

  c.n = number % 3 == 0 ? 32000 + (r >> 32) % 30000
                        : 1 + (r >> 32) % (r >> 24 & 1 ? 100 : 6000);
  c.k = test_random(state) % (c.n < 2500 ? c.n + 1 : 2500);
  return top_k_call(&c, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 4, 77);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("top_k");
  TCase *rows = device_case(s, "rows"), *arrays = device_case(s, "long");
  TCase *brief = brief_case(s);

  tcase_add_loop_test(rows, test_types, 0, N_ALL_TYPES);
  tcase_add_test(rows, test_sizes);
  tcase_add_test(rows, test_nothing);
  tcase_add_test(rows, test_outputs);
  tcase_add_test(rows, test_bad_arguments);
  tcase_add_loop_test(arrays, test_long, 0, 2);
  tcase_add_loop_test(arrays, test_failed_bounds, 0, 2);
  tcase_add_test(arrays, test_bytes);
  tcase_add_test(arrays, test_large_k);
  tcase_add_test(arrays, test_random_calls);
  tcase_add_test(brief, test_workspace);
  return s;
}

DEVICE_TEST_MAIN(suite)
