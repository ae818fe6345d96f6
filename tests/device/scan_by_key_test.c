/* scan_by_key_test.c -- scans of segments that keys, flags or offsets
 * define. */
#include "key_runs.h"

/* ---- Segments ------------------------------------------------------------ */

/* Lists the first index of each segment; every fifth one occurs twice, as that
 * of an empty segment. */
static void *make_offsets(kiln_dtype type, const uint8_t *heads, size_t n,
                          uint64_t *count)
{
  void *offsets = room_for(2 * n, 8);
  size_t k = 0;

  for (size_t i = 0; i < n; i++)
    for (unsigned twice = 0; heads[i] && twice < (k % 5 == 0 ? 2u : 1u);
         twice++)
      set_whole(type, offsets, k++, (int64_t)i);
  *count = k;
  return offsets;
}

typedef struct drawn {
  kiln_dtype type, heads;
  size_t n, shift;
  layout how;
  unsigned by; /* 0 for keys, 1 for flags, 2 for offsets */
  bool exclusive, with_init;
} drawn;

/* ---- One call ------------------------------------------------------------ */

static operation_call drawn_call(const drawn *d, uint64_t *state)
{
  static const int64_t three = 3;
  const int64_t *init = d->with_init ? &three : NULL;
  const void *first = d->with_init ? elements(d->type, init, 1) : NULL;
  uint8_t *begins = make_heads(d->how, d->n, state);
  int64_t *v = small_wholes(d->n, state);
  uint64_t n_heads = d->n;
  /* Sums from any element on stay small, because all prefixes are small. */
  const void *h = d->by == 0   ? make_keys(d->heads, begins, d->n)
                  : d->by == 1 ? begins
                               : make_offsets(d->heads, begins, d->n, &n_heads);
  test_array in =
      array_make(d->type, d->n, d->shift, elements(d->type, v, d->n), 0);
  test_array out = array_make(d->type, d->n, d->shift, NULL, 0x5a);
  test_array heads =
      array_make(d->by == 1 ? KILN_U8 : d->heads, n_heads, d->shift, h, 0);
  const kiln_scan_by_key_desc by_key = {.keys = heads.array,
                                        .x = {.in = {in.array}},
                                        .n = d->n,
                                        .out = out.array,
                                        .exclusive = d->exclusive,
                                        .init = first};
  const kiln_segmented_scan_desc segmented = {
      .offsets = d->by == 2 ? heads.array : (kiln_array){0},
      .n_segments = d->by == 2 ? heads.n : 0,
      .flags = d->by == 1 ? heads.array : (kiln_array){0},
      .x = {.in = {in.array}},
      .n = d->n,
      .out = out.array,
      .exclusive = d->exclusive,
      .init = first};
  operation_call c = d->by == 0 ? CALL_OF(kiln_scan_by_key, &by_key)
                                : CALL_OF(kiln_segmented_scan, &segmented);

  call_writes(
      &c, &out,
      elements(d->type,
               scanned(v, begins, d->n, KILN_SUM, 0, init, d->exclusive),
               d->n));
  call_writes(&c, &heads, h); /* stay */
  return c;
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0, 1, 33, 896, 897, 7000};
  uint64_t state = (uint64_t)_i + 10;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const drawn d = {.type = all_types[_i],
                     .heads = all_types[(_i + 4) % N_ALL_TYPES],
                     .n = lengths[k],
                     .how = k == 5 ? MIXED : SHORT,
                     .exclusive = _i % 2 == 1};

    ck_call(drawn_call(&d, &state));
  }
}
END_TEST

START_TEST(test_segments)
{
  static const kiln_dtype offsets[] = {KILN_I32, KILN_U64};
  uint64_t state = (uint64_t)_i;

  for (layout how = SHORT; how < N_LAYOUTS; how++)
    for (unsigned k = 0; k < 2; k++) {
      const drawn d = {.type = KILN_I32,
                       .heads = _i == 0 ? KILN_U32 : offsets[k],
                       .n = k == 0 ? 5000 : 60000,
                       .how = how,
                       .by = (unsigned)_i};

      ck_call(drawn_call(&d, &state));
    }
}
END_TEST

START_TEST(test_ways)
{
  uint64_t state = (uint64_t)_i;

  for (unsigned k = 0; k < 4; k++) {
    const drawn d = {.type = KILN_F32,
                     .heads = KILN_I64,
                     .n = 4321,
                     .shift = k == 3,
                     .how = MIXED,
                     .by = (unsigned)_i,
                     .exclusive = k & 1,
                     .with_init = k & 2};

    ck_call(drawn_call(&d, &state));
  }
}
END_TEST

/* ---- Particular ones ----------------------------------------------------- */

/* A user's comparison of floats, in place, with a map and an operation that
 * does not commute. By default each NaN is a segment by itself. */
START_TEST(test_own_texts)
{
  enum { N = 9000 };
  float keys[N];
  uint32_t x[N], want[N];
  uint64_t state = 6;
  test_array k, a;
  kiln_scan_by_key_desc desc = {
      .same = "floorf(a) == floorf(b)",
      .x = {.map = "x + 1"},
      .n = N,
      .op = {.expr = "b != 1 ? b : a", .identity = "1"}};

  for (size_t i = 0; i < N; i++) {
    keys[i] = (float)(i / 7) + (i % 2 == 0 ? 0.25f : 0.5f);
    x[i] = (uint32_t)test_random(&state) % 10;
    want[i] = i % 7 != 0 && x[i] + 1 == 1 ? want[i - 1] : x[i] + 1;
  }
  k = array_make(KILN_F32, N, 0, keys, 0);
  a = array_make(KILN_U32, N, 0, x, 0);
  desc.keys = k.array;
  desc.x.in[0] = desc.out = a.array;
  ck_writes(CALL_OF(kiln_scan_by_key, &desc), &a, want);

  for (size_t i = 0; i < N; i++) {
    keys[i] = i < 4000 ? NAN : 0.0f;
    want[i] = i < 4000 ? 1 : (uint32_t)i - 3999;
  }
  keys[5000] = -0.0f;
  ck_kiln_ok(kiln_copy_to_device(device, k.array.data, keys, sizeof keys));
  desc = (kiln_scan_by_key_desc){.keys = k.array,
                                 .x = {.map = "1", .type = KILN_U32},
                                 .n = N,
                                 .out = a.array};
  ck_writes(CALL_OF(kiln_scan_by_key, &desc), &a, want);
}
END_TEST

/* Some offsets are negative, and some lie beyond the end. */
START_TEST(test_odd_offsets)
{
  enum { N = 10000 };
  static const int64_t offsets[] = {-1, 100, 100, 101, 9999, 10000, 20000};
  uint64_t state = 1;
  int64_t *v = small_wholes(N, &state);
  test_array in = array_make(KILN_I32, N, 0, elements(KILN_I32, v, N), 0);
  test_array out = array_make(KILN_I32, N, 0, NULL, 0x5a);
  test_array o = array_make(KILN_I64, 7, 0, offsets, 0);
  kiln_segmented_scan_desc desc = {.offsets = {o.array.data + 8, KILN_I64},
                                   .x = {.in = {in.array}},
                                   .n = N,
                                   .out = out.array};

  for (desc.n_segments = 0; desc.n_segments < 7; desc.n_segments += 6) {
    uint8_t heads[N] = {0};

    heads[100] = heads[101] = heads[9999] = desc.n_segments > 0;
    ck_writes(
        CALL_OF(kiln_segmented_scan, &desc), &out,
        elements(KILN_I32, scanned(v, heads, N, KILN_SUM, 0, NULL, false), N));
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  const drawn d = {.type = KILN_I64, .n = 20000, .how = LONG, .by = 1};
  const operation_call c = drawn_call(&d, &state);

  ck_capture(c);
  ck_assert_uint_gt(ck_workspace(c), 0);
}
END_TEST

#define BY_KEY(member, ...) MEMBER(kiln_scan_by_key_desc, member, __VA_ARGS__)
#define SEGMENTED(member, ...)                                                 \
  MEMBER(kiln_segmented_scan_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  uint64_t state = 9;
  const drawn small = {.type = KILN_I32, .heads = KILN_F32, .n = 100};
  const drawn flagged = {.type = KILN_I32, .n = 100, .by = 1};
  const operation_call by_key = drawn_call(&small, &state);
  const operation_call by_flag = drawn_call(&flagged, &state);
  const kiln_scan_by_key_desc *key_desc = by_key.desc;
  const kiln_segmented_scan_desc *flag_desc = by_flag.desc;
  const kiln_array out = key_desc->out, flag_out = flag_desc->out;
  const kiln_array in = flag_desc->x.in[0], flags = flag_desc->flags;
  const bad_argument bad[] = {
      {KILN_EINVAL, "keys", {BY_KEY(keys, {0})}},
      {KILN_EINVAL, "overlap", {BY_KEY(keys, out)}},
      {KILN_EINVAL, "out", {BY_KEY(out, {0})}},
      {KILN_EINVAL, "not aligned", {BY_KEY(out.data, out.data + 2)}},
      {KILN_EINVAL,
       "x_at()",
       {BY_KEY(x.map, "x_at(i > 0 ? i - 1 : 0)"),
        BY_KEY(out, key_desc->x.in[0])}},
      {KILN_ECOMPILE, "the comparison of keys", {BY_KEY(same, "a == q")}},
  };
  const bad_argument bad_segments[] = {
      {KILN_EINVAL, "flags", {SEGMENTED(flags, {0})}},
      {KILN_EINVAL, "flags", {SEGMENTED(flags.type, KILN_F32)}},
      {KILN_EINVAL,
       "offsets",
       {SEGMENTED(flags, {0}), SEGMENTED(offsets, flags),
        SEGMENTED(n_segments, 3)}},
      {KILN_EINVAL, "flags", {SEGMENTED(offsets, in)}},
      {KILN_EINVAL,
       "overlap",
       {SEGMENTED(flags, {0}), SEGMENTED(offsets, flag_out),
        SEGMENTED(n_segments, 3)}},
      {KILN_EINVAL,
       "offsets",
       {SEGMENTED(flags, {0}), SEGMENTED(n_segments, 3)}},
  };

  ck_bad_arguments(by_key, bad);
  ck_bad_arguments(by_flag, bad_segments);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const kiln_dtype type = test_random(state) % 2 ? KILN_I32 : KILN_U8;
  const drawn d = {.type = type,
                   .heads = KILN_U32,
                   .n = test_random(state) % (k % 16 == 0 ? 30000 : 3000),
                   .how = (layout)(test_random(state) % N_LAYOUTS),
                   .by = (unsigned)(test_random(state) % 3),
                   .exclusive = test_random(state) % 2};

  return drawn_call(&d, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 60, 2025);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scan_by_key");
  TCase *t = device_case(s, "scan_by_key");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_segments, 0, 3);
  tcase_add_loop_test(t, test_ways, 0, 3);
  tcase_add_test(t, test_own_texts);
  tcase_add_test(t, test_odd_offsets);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
