/* reduce_by_key_test.c -- kiln_reduce_by_key() with runs of every length, also
 * across several tiles. */
#include "key_runs.h"

#include <kiln/reduce.h>

typedef struct drawn {
  kiln_dtype type, key;
  size_t n, shift;
  layout how;
  kiln_op_name op;
  bool without_keys;
} drawn;

/* Computes the expected reduction of each run, and moves the keys of the runs to
 * the front of the array. Returns the number of runs. */
static size_t reduced(const drawn *d, const uint8_t *heads, const int64_t *x,
                      const void *keys, int64_t *want, void *want_keys)
{
  const size_t width = kiln_dtype_size(d->key);
  size_t runs = 0;

  for (size_t i = 0; i < d->n; i++) {
    if (i > 0 && !heads[i]) {
      want[runs - 1] = (int64_t)fold_words(
          d->op, KILN_I64, (uint64_t)want[runs - 1], (uint64_t)x[i]);
      continue;
    }
    memcpy((unsigned char *)want_keys + runs * width,
           (const unsigned char *)keys + i * width, width);
    want[runs++] = x[i];
  }
  return runs;
}

/* Returns the contents of the array, in which the first n elements are those of
 * `front`. */
static void *begins_with(const test_array *a, const void *front, size_t n)
{
  unsigned char *want = kept(array_read(a));

  memcpy(want, front, n * a->width);
  return want;
}

static operation_call drawn_call(const drawn *d, uint64_t *state)
{
  const kiln_dtype number = d->shift % 2 ? KILN_U64 : KILN_U32;
  uint8_t *heads = make_heads(d->how, d->n, state);
  int64_t *v = small_wholes(d->n, state);
  int64_t *want = room_for(d->n, sizeof *want);
  void *keys = make_keys(d->key, heads, d->n);
  void *want_keys = room_for(d->n, 8), *want_count = room_for(1, 8);
  const size_t runs = reduced(d, heads, v, keys, want, want_keys);
  const test_array k = array_make(d->key, d->n, d->shift, keys, 0);
  const test_array x =
      array_make(d->type, d->n, d->shift, elements(d->type, v, d->n), 0);
  const test_array out_keys = array_make(d->key, d->n, d->shift, NULL, 0x5a);
  const test_array out = array_make(d->type, d->n, d->shift, NULL, 0x5a);
  const test_array count = array_make(number, 1, 0, NULL, 0x5a);
  const kiln_reduce_by_key_desc desc = {
      .keys = k.array,
      .x = {.in = {x.array}},
      .n = d->n,
      .op = {.name = d->op},
      .out_keys = d->without_keys ? (kiln_array){0} : out_keys.array,
      .out = out.array,
      .count = count.array};
  operation_call c = CALL_OF(kiln_reduce_by_key, &desc);

  set_whole(number, want_count, 0, (int64_t)runs);
  call_writes(&c, &out, begins_with(&out, elements(d->type, want, runs), runs));
  call_writes(&c, &out_keys,
              begins_with(&out_keys, want_keys, d->without_keys ? 0 : runs));
  call_writes(&c, &count, want_count);
  return c;
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0, 1, 33, 511, 512, 513, 1024, 1025, 7001};
  uint64_t state = (uint64_t)_i + 10;

  /* By default every third type: each type compiles a kernel of its own. */
  if (_i % 3 != 1 && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const drawn d = {.type = all_types[_i],
                     .key = all_types[(_i + 4) % N_ALL_TYPES],
                     .n = lengths[k],
                     .how = k % 2 == 0 ? MIXED : SHORT};

    ck_call(drawn_call(&d, &state));
  }
}
END_TEST

/* Sizes around whole tiles of every tuning row, in runs of every layout. */
START_TEST(test_runs)
{
  static const size_t lengths[] = {4096, 40961, 150000};
  uint64_t state = 3;

  for (layout how = SHORT; how < N_LAYOUTS; how++)
    for (unsigned k = 0; k < 3; k++) {
      const drawn d = {.type = KILN_I32,
                       .key = KILN_U32,
                       .n = lengths[k],
                       .op = how % 2 ? KILN_MAX : KILN_SUM,
                       .how = how};

      ck_call(drawn_call(&d, &state));
    }
}
END_TEST

/* Arrays at odd addresses, 64-bit counts, and no output of keys. */
START_TEST(test_views)
{
  uint64_t state = 4;
  const drawn d = {.type = KILN_F32,
                   .key = KILN_I64,
                   .n = 4321,
                   .shift = 1,
                   .how = MIXED,
                   .without_keys = true};

  ck_call(drawn_call(&d, &state));
}
END_TEST

/* ---- User expressions ---------------------------------------------------- */

enum { OWN = 9000 };

/* A comparison of floats, a map, and an operation that does not commute: the
 * last element of the run that is not 1. */
START_TEST(test_own_texts)
{
  float *keys = kept(malloc(OWN * 4));
  uint32_t *x = kept(malloc(OWN * 4)), *want = room_for(OWN, 4), runs;
  uint64_t state = 6;
  test_array k, in, out, count;
  kiln_reduce_by_key_desc desc = {
      .same = "floorf(a) == floorf(b)",
      .x = {.map = "x + 1"},
      .n = OWN,
      .op = {.expr = "b != 1 ? b : a", .identity = "1"}};
  operation_call c;

  memset(want, 0x5a, OWN * 4);
  for (size_t i = 0; i < OWN; i++) {
    keys[i] = (float)(i / 7) + (i % 2 == 0 ? 0.25f : 0.5f);
    x[i] = (uint32_t)test_random(&state) % 3;
    if (i % 7 == 0 || x[i] != 0)
      want[i / 7] = x[i] + 1;
  }
  runs = (OWN + 6) / 7;
  k = array_make(KILN_F32, OWN, 0, keys, 0);
  in = array_make(KILN_U32, OWN, 0, x, 0);
  out = array_make(KILN_U32, OWN, 0, NULL, 0x5a);
  count = array_make(KILN_U32, 1, 0, NULL, 0);
  desc.keys = k.array;
  desc.x.in[0] = in.array;
  desc.out = out.array;
  desc.count = count.array;
  c = CALL_OF(kiln_reduce_by_key, &desc);
  call_writes(&c, &out, want);
  call_writes(&c, &count, &runs);
  ck_call(c);
}
END_TEST

/* The last tile is partial. The operation, the logarithm of a sum of exponentials,
 * is NaN for two identities. */
START_TEST(test_partial_tiles)
{
  static const size_t lengths[] = {1, 5, 100, 512, 513, 700, 1024, 1500};
  float x[1500], want[1500];
  uint32_t keys[1500];
  test_array k, in, out, count;
  kiln_reduce_by_key_desc desc = {
      .op = {.expr = "(a > b ? a : b) + log1pf(expf(-fabsf(a - b)))",
             .identity = "-INFINITY"}};

  for (size_t i = 0; i < 1500; i++) {
    keys[i] = (uint32_t)(i / 30);
    x[i] = (float)(i % 7);
  }
  k = array_make(KILN_U32, 1500, 0, keys, 0);
  in = array_make(KILN_F32, 1500, 0, x, 0);
  out = array_make(KILN_F32, 1500, 0, NULL, 0);
  count = array_make(KILN_U32, 1, 0, NULL, 0);
  desc.keys = k.array;
  desc.x.in[0] = in.array;
  desc.out = out.array;
  desc.count = count.array;
  for (size_t c = 0; c < sizeof lengths / sizeof lengths[0]; c++) {
    const float *got;

    desc.n = lengths[c];
    ck_kiln_ok(kiln_reduce_by_key(stream, &desc, NULL));
    for (size_t i = 0; i < desc.n; i++)
      want[i / 30] = i % 30 == 0 ? x[i] : logf(expf(want[i / 30]) + expf(x[i]));
    got = kept(array_read(&out));
    for (size_t i = 0; i < (desc.n + 29) / 30; i++)
      ck_assert_msg(fabsf(got[i] - want[i]) < 1e-4f, "[%zu] of %zu is %g", i,
                    lengths[c], (double)got[i]);
  }
}
END_TEST

/* By default every NaN is a run by itself, -0 equals +0, and a run of -0 alone
 * sums to -0. The keys keep their bits, also those of NaNs in f16. */
START_TEST(test_special_values)
{
  enum { N = 8 };
  static const uint16_t keys[N] = {0x7c01, 0x7e55, 0x8000, 0x0000,
                                   0x0000, 0x3c00, 0x3c00, 0xfdab};
  static const float x[N] = {1, -0.0f, -0.0f, -0.0f, -0.0f, NAN, 2, 3};
  static const uint16_t want_keys[N] = {0x7c01, 0x7e55, 0x8000, 0x3c00,
                                        0xfdab, 0,      0,      0};
  const float want[N] = {1, -0.0f, -0.0f, x[5] + x[6], 3};
  static const uint32_t five = 5;
  const test_array k = array_make(KILN_F16, N, 0, keys, 0);
  const test_array in = array_make(KILN_F32, N, 0, x, 0);
  const test_array out_keys = array_make(KILN_F16, N, 0, NULL, 0);
  const test_array out = array_make(KILN_F32, N, 0, NULL, 0);
  const test_array count = array_make(KILN_U32, 1, 0, NULL, 0);
  const kiln_reduce_by_key_desc desc = {.keys = k.array,
                                        .x = {.in = {in.array}},
                                        .n = N,
                                        .out_keys = out_keys.array,
                                        .out = out.array,
                                        .count = count.array};
  const float *got;

  ck_kiln_ok(kiln_reduce_by_key(stream, &desc, NULL));
  ck_array(&out_keys, want_keys, "keys");
  ck_array(&count, &five, "count");
  got = kept(array_read(&out));
  for (size_t i = 0; i < five; i++)
    if (i == 3)
      ck_assert(isnan(got[i]));
    else
      ck_assert_msg(memcmp(&got[i], &want[i], 4) == 0, "[%zu] is %g", i,
                    (double)got[i]);
}
END_TEST

/* Sums of floats that round have the same bits in every call. */
START_TEST(test_same_bits)
{
  enum { N = 40000 };
  uint64_t state = 8;
  uint8_t *heads = make_heads(LONG, N, &state);
  float *x = kept(malloc(N * 4));
  void *first = NULL;
  test_array k, in, out, count;
  kiln_reduce_by_key_desc desc = {.n = N};

  for (size_t i = 0; i < N; i++)
    x[i] = (float)(test_random(&state) % 100000) * 0.1f;
  k = array_make(KILN_U32, N, 0, make_keys(KILN_U32, heads, N), 0);
  in = array_make(KILN_F32, N, 0, x, 0);
  out = array_make(KILN_F32, N, 0, NULL, 0);
  count = array_make(KILN_U32, 1, 0, NULL, 0);
  desc.keys = k.array;
  desc.x.in[0] = in.array;
  desc.out = out.array;
  desc.count = count.array;
  for (int turn = 0; turn < 3; turn++) {
    ck_kiln_ok(kiln_reduce_by_key(stream, &desc, NULL));
    if (turn == 0)
      first = kept(array_read(&out));
    ck_array(&out, first, "again");
  }
}
END_TEST

/* ---- Calls --------------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  const drawn d = {.type = KILN_I32, .key = KILN_U32, .n = 20000, .how = MIXED};
  const operation_call c = drawn_call(&d, &state);

  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_reduce_by_key_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 9;
  const drawn d = {.type = KILN_I32, .key = KILN_U32, .n = 100};
  const operation_call c = drawn_call(&d, &state);
  const kiln_reduce_by_key_desc *good = c.desc;
  const kiln_array out = good->out, x = good->x.in[0];
  const bad_argument bad[] = {
      {KILN_EINVAL, "keys", {MEMBER_OF(keys, {0})}},
      {KILN_EINVAL, "x: neither an array", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "keys and out overlap", {MEMBER_OF(keys.data, out.data)}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, x)}},
      {KILN_EINVAL, "out_keys is i32", {MEMBER_OF(out_keys.type, KILN_I32)}},
      {KILN_EINVAL, "count is neither", {MEMBER_OF(count, {0})}},
      {KILN_EINVAL, "not aligned", {MEMBER_OF(out.data, out.data + 2)}},
      {KILN_EINVAL, "identity", {MEMBER_OF(op.expr, "a + b")}},
      {KILN_ECOMPILE, "the comparison of keys", {MEMBER_OF(same, "a == q")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const drawn d = {.type = test_random(state) % 2 ? KILN_I32 : KILN_F64,
                   .key = KILN_U32,
                   .n = test_random(state) % (k % 16 == 0 ? 30000 : 3000),
                   .how = (layout)(test_random(state) % N_LAYOUTS)};

  return drawn_call(&d, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 60, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("reduce_by_key");
  TCase *t = device_case(s, "reduce_by_key");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_runs);
  tcase_add_test(t, test_views);
  tcase_add_test(t, test_own_texts);
  tcase_add_test(t, test_partial_tiles);
  tcase_add_test(t, test_special_values);
  tcase_add_test(t, test_same_bits);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
