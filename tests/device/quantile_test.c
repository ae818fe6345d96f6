/* quantile_test.c -- kiln_quantile, compared with the sorted keys on the host:
 * every type and rule, many quantiles, rows of one block and long rows,
 * candidates that suffice and that do not, invalid arguments. */
#include "operation_checks.h"
#include "ranked_keys.h"

typedef struct test_case {
  kiln_dtype key, out;
  key_kind kind;
  size_t n, rows, n_q;
  kiln_quantile_rule rule;
  bool median; /* pass no array q */
  size_t shift;
} test_case;

/* Writes the quantile at position `at` of a row, whose places are given in the
 * order of their keys. */
static void quantile(const test_case *c, const unsigned char *row,
                     const size_t *places, double at, void *want, size_t to)
{
  const size_t size = kiln_dtype_size(c->key);
  const size_t below = (size_t)at;
  double weight = at - (double)below, a, b, r;
  size_t one = below;

  if (c->rule == KILN_QUANTILE_NEAREST)
    one = below + (weight > 0.5 || (weight == 0.5 && below % 2 == 1));
  if (c->rule == KILN_QUANTILE_HIGHER)
    one = below + (weight > 0);
  if (c->rule == KILN_QUANTILE_MIDPOINT && weight > 0)
    weight = 0.5;
  if ((c->rule != KILN_QUANTILE_LINEAR && c->rule != KILN_QUANTILE_MIDPOINT) ||
      weight == 0) {
    if (c->key == c->out) {
      memcpy((unsigned char *)want + to * size, row + places[one] * size, size);
      return;
    }
    r = value_at(c->key, row, places[one]);
  } else {
    a = value_at(c->key, row, places[below]);
    b = value_at(c->key, row, places[below + 1]);
    r = weight < 0.5 ? a + (b - a) * weight : b - (b - a) * (1 - weight);
  }
  if (c->out == KILN_F64)
    ((double *)want)[to] = r;
  else
    ((float *)want)[to] = (float)r;
}

static operation_call quantile_call(const test_case *c, uint64_t *state)
{
  const size_t size = kiln_dtype_size(c->key), n_q = c->median ? 1 : c->n_q;
  unsigned char *keys = ranked_keys(c->key, c->kind, c->rows * c->n, state);
  unsigned char *want = kept(malloc(c->rows * n_q * 8 + 1));
  double *q = kept(malloc((n_q + 1) * sizeof *q));
  const test_array in = array_make(c->key, c->rows * c->n, c->shift, keys, 0);
  const test_array out = array_make(c->out, c->rows * n_q, 1, NULL, 0x5a);

  for (size_t k = 0; k < n_q; k++)
    q[k] = c->median    ? 0.5
           : k % 5 == 0 ? (double)(k % 2)
                        : (double)(test_random(state) >> 11) * 0x1p-53;
  for (size_t row = 0; row < c->rows; row++) {
    const unsigned char *from = keys + row * c->n * size;
    size_t *places = ranked_places(c->key, from, c->n, false);

    for (size_t k = 0; k < n_q; k++)
      quantile(c, from, places, q[k] * (double)(c->n - 1), want, row * n_q + k);
    free(places);
  }
  {
    operation_call call =
        CALL_OF(kiln_quantile, &(kiln_quantile_desc){.keys = in.array,
                                                     .n = c->n,
                                                     .rows = c->rows,
                                                     .q = c->median ? NULL : q,
                                                     .n_q = c->median ? 0 : n_q,
                                                     .out = out.array,
                                                     .rule = c->rule});
    call_writes(&call, &out, want);
    return call;
  }
}

static void check(test_case c, uint64_t seed)
{
  const size_t mark = n_kept;
  uint64_t state = seed;

  ck_call(quantile_call(&c, &state));
  release(mark);
}

/* ---- Rows of one block --------------------------------------------------- */

/* Random floats contain NaNs, whose bits an interpolation need not keep. */
static key_kind random_of(kiln_dtype type)
{
  return type_is_float(type) ? KEYS_FINITE : KEYS_RANDOM;
}

static bool is_thorough(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];

  /* By default, each second type is tested, in one of two ways. */
  if (_i % 4 == 2 || is_thorough())
    check((test_case){type, KILN_F64, random_of(type), 801, 2, 7,
                      KILN_QUANTILE_LINEAR, false, 1},
          1);
  if (_i % 4 == 0 || is_thorough())
    check((test_case){type, type, KEYS_SPECIAL, 300, 2, 9,
                      KILN_QUANTILE_NEAREST, false, 0},
          2);
}
END_TEST

START_TEST(test_rules)
{
  const kiln_quantile_rule rule = (kiln_quantile_rule)_i;
  static const size_t sizes[] = {1, 2, 3, 8, 300};

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    check((test_case){KILN_F32, KILN_F32, KEYS_FINITE, sizes[i], 3, 40, rule,
                      false, i % 4},
          i);
    check((test_case){KILN_F32, KILN_F32, KEYS_FEW, sizes[i], 1, 0, rule, true,
                      0},
          i);
  }
}
END_TEST

/* Of no keys, quantiles are NaN or 0. */
START_TEST(test_nothing)
{
  const double q[] = {0, 50, 100};
  const int16_t zero[3] = {0};
  const test_array f = array_make(KILN_F32, 3, 0, NULL, 0x5a);
  const test_array s = array_make(KILN_I16, 3, 0, NULL, 0x5a);
  kiln_quantile_desc desc = {
      .keys = {0, KILN_F32}, .q = q, .n_q = 3, .percent = true, .out = f.array};
  float *got;

  ck_kiln_ok(kiln_quantile(stream, &desc, NULL));
  got = array_read(&f);
  ck_assert(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
  free(got);
  desc.keys.type = KILN_I16;
  desc.rule = KILN_QUANTILE_LOWER;
  desc.out = s.array;
  ck_kiln_ok(kiln_quantile(stream, &desc, NULL));
  ck_array(&s, zero, "zeros");
  desc.n_q = 0;
  ck_kiln_ok(kiln_quantile(stream, &desc, NULL));
}
END_TEST

/* ---- Long rows ----------------------------------------------------------- */

START_TEST(test_long)
{
  static const key_kind kinds[] = {KEYS_FINITE,        KEYS_FEW,
                                   KEYS_EQUAL,         KEYS_SORTED,
                                   KEYS_SAMPLED_GREAT, KEYS_SAMPLED_LEAST};

  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    check((test_case){KILN_F32, KILN_F32, kinds[i], 40001, 1, i == 0 ? 17 : 3,
                      KILN_QUANTILE_LINEAR, false, 0},
          i);
}
END_TEST

START_TEST(test_long_types)
{
  check((test_case){KILN_I64, KILN_F64, KEYS_RANDOM, 40003, 1, 2,
                    KILN_QUANTILE_MIDPOINT, false, 1},
        3);
  if (!is_thorough())
    return;
  check((test_case){KILN_U8, KILN_U8, KEYS_RANDOM, 33000, 2, 3,
                    KILN_QUANTILE_HIGHER, false, 3},
        4);
}
END_TEST

START_TEST(test_workspace)
{
  uint64_t state = 7;
  const test_case c = {KILN_F32, KILN_F32, KEYS_FINITE,          40000,
                       2,        3,        KILN_QUANTILE_LINEAR, false,
                       0};

  ck_assert_uint_gt(ck_workspace(quantile_call(&c, &state)), 0);
  ck_capture(quantile_call(&c, &state));
}
END_TEST

/* Rules that interpolate need results of a float type. */
static operation_call draw(unsigned long number, uint64_t *state)
{
  const uint64_t r = test_random(state);
  const kiln_dtype key = all_types[r % N_ALL_TYPES];
  const kiln_quantile_rule rule = (kiln_quantile_rule)((r >> 8) % 5);
  const bool between =
      rule == KILN_QUANTILE_LINEAR || rule == KILN_QUANTILE_MIDPOINT;
  test_case c = {.key = key,
                 .out = between || (r >> 16 & 1) ? KILN_F64 : key,
                 .kind = KEYS_FEW,
                 .rows = 1 + (r >> 20) % 3,
                 .n_q = 1 + (r >> 24) % 20,
                 .rule = rule,
                 .median = (r >> 32 & 7) == 0,
                 .shift = r >> 40 & 3};

  if (r >> 44 & 1)
    c.kind = random_of(key);
  c.n = number % 4 == 0 ? 32000 + (r >> 48) % 20000
                        : 1 + (r >> 48) % (r >> 45 & 1 ? 50 : 3000);
  return quantile_call(&c, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 4, 2026);
}
END_TEST

/* ---- Arguments ----------------------------------------------------------- */

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const test_case c = {KILN_I32, KILN_F32, KEYS_RANDOM,          50,
                       2,        3,        KILN_QUANTILE_LINEAR, false,
                       0};
  const operation_call good = quantile_call(&c, &state);
  const kiln_quantile_desc *d = good.desc;
  const double low[] = {0.5, -0.1, 0}, high[] = {0.5, 1, 1.5};
  const double none[] = {NAN, 0, 0};
#define SET(member, ...) MEMBER(kiln_quantile_desc, member, __VA_ARGS__)
  const bad_argument bad[] = {
      {KILN_EINVAL, "q[1]", {SET(q, low)}},
      {KILN_EINVAL, "q[2]", {SET(q, high)}},
      {KILN_EINVAL, "q[0]", {SET(q, none)}},
      {KILN_EINVAL, "q is NULL", {SET(q, NULL)}},
      {KILN_EINVAL, "at most", {SET(n_q, 1025)}},
      {KILN_EINVAL, "too many", {SET(rows, UINT64_C(1) << 31)}},
      {KILN_EINVAL, "keys", {SET(keys, {0, KILN_I32})}},
      {KILN_EINVAL, "rule is 9", {SET(rule, (kiln_quantile_rule)9)}},
      {KILN_EINVAL, "must be i32 or a", {SET(out, {d->out.data, KILN_U32})}},
      {KILN_EINVAL, "interpolates", {SET(out, {d->out.data, KILN_I32})}},
      {KILN_EINVAL, "overlap", {SET(out, {d->keys.data, KILN_F32})}},
  };

  ck_bad_arguments(good, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("quantile");
  TCase *rows = device_case(s, "rows"), *arrays = device_case(s, "long");

  tcase_add_loop_test(rows, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(rows, test_rules, 0, 5);
  tcase_add_test(rows, test_nothing);
  tcase_add_test(rows, test_bad_arguments);
  tcase_add_test(arrays, test_long);
  tcase_add_test(arrays, test_long_types);
  tcase_add_test(arrays, test_random_calls);
  tcase_add_test(brief_case(s), test_workspace);
  return s;
}

DEVICE_TEST_MAIN(suite)
