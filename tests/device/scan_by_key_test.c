/* scan_by_key_test.c -- scans of segments: by keys, by flags, by offsets. */
#include "scan_values.h"

/* ---- Segments ----------------------------------------------------------------------- */

typedef enum layout { SHORT, LONG, ONE, EACH, MIXED, N_LAYOUTS } layout;

/* Where segments begin. */
static uint8_t *make_heads(layout how, size_t n, uint64_t *state)
{
  uint8_t *heads = room_for(n, 1);

  for (size_t i = 0; i < n; i++) {
    const uint64_t r = test_random(state);
    const uint64_t mean = how == SHORT ? 5 : how == LONG ? 6000 : 0;

    heads[i] = how == EACH    ? 1
               : how == ONE   ? 0
               : how == MIXED ? r % (i / 4096 % 2 == 0 ? 3 : 20000) == 0
                              : r % mean == 0;
  }
  return heads;
}

/* Keys that are equal inside segments only: 1, 2, 3, 1, 2, 3 ... */
static void *make_keys(kiln_dtype type, const uint8_t *heads, size_t n)
{
  void *keys = room_for(n, 8);
  int64_t key = 1;

  for (size_t i = 0; i < n; i++) {
    if (heads[i])
      key = key % 3 + 1;
    set_whole(type, keys, i, key);
  }
  return keys;
}

/* The heads' indices, every fifth one twice. */
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
  unsigned by; /* keys, flags, offsets */
  bool exclusive, with_init;
} drawn;

/* ---- One call ---------------------------------------------------------------------------- */

static void call(const drawn *d, const test_array *in, const test_array *heads,
                 const test_array *out, const void *init)
{
  const kiln_input x = {.in = {in->array}};

  if (d->by == 0)
    ck_kiln_ok(
        kiln_scan_by_key(stream,
                         &(kiln_scan_by_key_desc){.keys = heads->array,
                                                  .x = x,
                                                  .n = d->n,
                                                  .out = out->array,
                                                  .exclusive = d->exclusive,
                                                  .init = init},
                         NULL));
  else
    ck_kiln_ok(kiln_segmented_scan(
        stream,
        &(kiln_segmented_scan_desc){
            .offsets = d->by == 2 ? heads->array : (kiln_array){0},
            .n_segments = d->by == 2 ? heads->n : 0,
            .flags = d->by == 1 ? heads->array : (kiln_array){0},
            .x = x,
            .n = d->n,
            .out = out->array,
            .exclusive = d->exclusive,
            .init = init},
        NULL));
}

static void run_one(const drawn *d, uint64_t *state)
{
  static const char *const what[] = {"by key", "by flags", "by offsets"};
  uint8_t *begins = make_heads(d->how, d->n, state);
  int64_t *v = small_wholes(d->n, state), *want, init = 3;
  uint64_t n_heads = d->n;
  void *x = elements(d->type, v, d->n), *got, *h;
  void *first = elements(d->type, &init, 1);
  test_array in, out, heads;

  /* sums from any head on stay small, too: the prefixes do */
  if (d->by == 0)
    h = make_keys(d->heads, begins, d->n);
  else if (d->by == 1)
    h = memcpy(room_for(d->n, 1), begins, d->n);
  else
    h = make_offsets(d->heads, begins, d->n, &n_heads);
  in = array_make(d->type, d->n, d->shift, x, 0);
  out = array_make(d->type, d->n, d->shift, NULL, 0x5a);
  heads = array_make(d->by == 1 ? KILN_U8 : d->heads, n_heads, d->shift, h, 0);
  call(d, &in, &heads, &out, d->with_init ? first : NULL);
  want = scanned(v, begins, d->n, add, 0, d->with_init ? &init : NULL,
                 d->exclusive);
  got = kept(array_read(&out));
  ck_elements(what[d->by], d->type, got, want, d->n);
  free(array_read(&heads));
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

    run_one(&d, &state);
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

      run_one(&d, &state);
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

    run_one(&d, &state);
  }
}
END_TEST

/* ---- Particular ones -------------------------------------------------------------------------- */

/* A comparison of one's own, on floats; each NaN is a segment by itself without
 * one. In place; a map; an operation that does not commute. */
START_TEST(test_own_texts)
{
  enum { N = 9000 };
  float keys[N];
  uint32_t x[N], want[N], *got;
  uint64_t state = 6;
  test_array k, a;

  for (size_t i = 0; i < N; i++) {
    keys[i] = (float)(i / 7) + (i % 2 == 0 ? 0.25f : 0.5f);
    x[i] = (uint32_t)test_random(&state) % 10;
  }
  k = array_make(KILN_F32, N, 0, keys, 0);
  a = array_make(KILN_U32, N, 0, x, 0);
  for (size_t i = 0; i < N; i++)
    want[i] = i % 7 != 0 && x[i] + 1 == 1 ? want[i - 1] : x[i] + 1;
  ck_kiln_ok(
      kiln_scan_by_key(stream,
                       &(kiln_scan_by_key_desc){
                           .keys = k.array,
                           .same = "floorf(a) == floorf(b)",
                           .x = {.in = {a.array}, .map = "x + 1"},
                           .n = N,
                           .op = {.expr = "b != 1 ? b : a", .identity = "1"},
                           .out = a.array},
                       NULL));
  got = kept(array_read(&a));
  for (size_t i = 0; i < N; i++)
    ck_assert_msg(got[i] == want[i], "[%zu] is %u, not %u", i, got[i], want[i]);

  for (size_t i = 0; i < N; i++)
    keys[i] = i < 4000 ? NAN : 0.0f;
  keys[5000] = -0.0f;
  ck_kiln_ok(kiln_copy_to_device(device, k.array.data, keys, sizeof keys));
  ck_kiln_ok(kiln_scan_by_key(
      stream,
      &(kiln_scan_by_key_desc){.keys = k.array,
                               .x = {.map = "1", .type = KILN_U32},
                               .n = N,
                               .out = a.array},
      NULL));
  got = kept(array_read(&a));
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[i], i < 4000 ? 1 : i - 3999);
}
END_TEST

/* Offsets before the end of nothing, and beyond the end. */
START_TEST(test_odd_offsets)
{
  enum { N = 10000 };
  static const int64_t offsets[] = {-1, 100, 100, 101, 9999, 10000, 20000};
  uint64_t state = 1;
  int64_t *v = small_wholes(N, &state), *want;
  int32_t *x = elements(KILN_I32, v, N), *got;
  uint8_t heads[N] = {0};
  test_array in = array_make(KILN_I32, N, 0, x, 0);
  test_array out = array_make(KILN_I32, N, 0, NULL, 0x5a);
  test_array o = array_make(KILN_I64, 7, 0, offsets, 0);
  const kiln_array some = {o.array.data + 8, KILN_I64};

  heads[100] = heads[101] = heads[9999] = 1;
  for (uint64_t n_segments = 0; n_segments < 7; n_segments += 6) {
    if (n_segments == 0)
      memset(heads, 0, sizeof heads);
    else
      heads[100] = heads[101] = heads[9999] = 1;
    ck_kiln_ok(kiln_segmented_scan(
        stream,
        &(kiln_segmented_scan_desc){.offsets = some,
                                    .n_segments = n_segments,
                                    .x = {.in = {in.array}},
                                    .n = N,
                                    .out = out.array},
        NULL));
    want = scanned(v, heads, N, add, 0, NULL, false);
    got = kept(array_read(&out));
    ck_elements("odd offsets", KILN_I32, got, want, N);
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  enum { N = 20000 };
  uint64_t state = 9;
  uint8_t *heads = make_heads(LONG, N, &state);
  int64_t *v = small_wholes(N, &state);
  int64_t *want = scanned(v, heads, N, add, 0, NULL, false);
  void *x = elements(KILN_I64, v, N), *got;
  test_array in = array_make(KILN_I64, N, 0, x, 0);
  test_array out = array_make(KILN_I64, N, 0, NULL, 0x5a);
  test_array flags = array_make(KILN_U8, N, 0, heads, 0);
  const kiln_segmented_scan_desc desc = {
      .flags = flags.array, .x = {.in = {in.array}}, .n = N, .out = out.array};
  kiln_workspace w;
  test_array room;
  CUgraphExec graph;
  size_t bytes;

  ck_kiln_ok(kiln_segmented_scan_workspace(stream, &desc, &bytes));
  room = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  w = (kiln_workspace){room.array.data, bytes - 1};
  ck_assert_int_eq(kiln_segmented_scan(stream, &desc, &w), KILN_EINVAL);
  w.size = bytes;
  ck_kiln_ok(kiln_segmented_scan(stream, &desc, &w));
  got = kept(array_read(&out));
  ck_elements("with a workspace", KILN_I64, got, want, N);
  free(array_read(&room));
  capture_begin();
  ck_kiln_ok(kiln_segmented_scan(stream, &desc, NULL));
  graph = capture_end();
  for (int k = 0; k < 2; k++) {
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 8 * N));
    capture_replay(graph);
    got = kept(array_read(&out));
    ck_elements("from a graph", KILN_I64, got, want, N);
  }
  capture_free(graph);
}
END_TEST

START_TEST(test_bad_calls)
{
  test_array a = array_make(KILN_I32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_I32, 100, 0, NULL, 0x5a);
  test_array o = array_make(KILN_F32, 100, 0, NULL, 1);
  const kiln_array none = {0};
  const kiln_array bytes = {o.array.data, KILN_U8};
  const kiln_input x = {.in = {a.array}};
  const kiln_scan_by_key_desc bad[] = {
      {.x = x, .n = 10, .out = b.array},
      {.keys = b.array, .x = x, .n = 10, .out = b.array},
      {.keys = o.array, .x = x, .n = 10},
      {.keys = o.array, .x = x, .n = 10, .out = {b.array.data + 2, KILN_I32}},
  };
  const kiln_segmented_scan_desc worse[] = {
      {.x = x, .n = 10, .out = b.array},
      {.flags = o.array, .x = x, .n = 10, .out = b.array},
      {.offsets = bytes, .n_segments = 3, .x = x, .n = 10, .out = b.array},
      {.offsets = a.array, .flags = bytes, .x = x, .n = 10, .out = b.array},
      {.offsets = b.array, .n_segments = 3, .x = x, .n = 10, .out = b.array},
      {.offsets = none, .n_segments = 3, .x = x, .n = 10, .out = b.array},
  };
  unsigned char *got;
  size_t size;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_scan_by_key(stream, &bad[k], NULL) == KILN_EINVAL, "%zu",
                  k);
    ck_assert_int_eq(kiln_scan_by_key_workspace(stream, &bad[k], &size),
                     KILN_EINVAL);
  }
  for (size_t k = 0; k < sizeof worse / sizeof worse[0]; k++) {
    ck_assert_msg(kiln_segmented_scan(stream, &worse[k], NULL) == KILN_EINVAL,
                  "%zu", k);
    ck_assert_int_eq(kiln_segmented_scan_workspace(stream, &worse[k], &size),
                     KILN_EINVAL);
  }
  ck_assert_int_eq(kiln_scan_by_key(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_segmented_scan(stream, NULL, NULL), KILN_EINVAL);
  ck_assert_int_eq(kiln_scan_by_key(stream,
                                    &(kiln_scan_by_key_desc){.keys = o.array,
                                                             .same = "a == q",
                                                             .x = x,
                                                             .n = 10,
                                                             .out = b.array},
                                    NULL),
                   KILN_ECOMPILE);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, "the comparison of keys"));
  got = kept(array_read(&b));
  for (size_t i = 0; i < 400; i++)
    ck_assert_uint_eq(got[i], 0x5a);
}
END_TEST

START_TEST(test_random_calls)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I32};
  const unsigned long calls = random_calls(60);
  uint64_t state = 2025;

  for (unsigned long k = 0; k < calls; k++) {
    const drawn d = {.type = types[test_random(&state) % 2],
                     .heads = KILN_U32,
                     .n = test_random(&state) % (k % 16 == 0 ? 30000 : 3000),
                     .how = (layout)(test_random(&state) % N_LAYOUTS),
                     .by = (unsigned)(test_random(&state) % 3),
                     .exclusive = test_random(&state) % 2};

    run_one(&d, &state);
  }
}
END_TEST

START_TEST(test_neighbours_in_place)
{
  enum { N = 10 };
  test_array a = array_make(KILN_F32, N, 0, NULL, 0);
  test_array keys = array_make(KILN_I32, N, 0, NULL, 0);
  const kiln_scan_by_key_desc desc = {
      .keys = keys.array,
      .x = {.in = {a.array}, .map = "x_at(i > 0 ? i - 1 : 0)"},
      .n = N,
      .out = a.array};

  ck_assert_int_eq(kiln_scan_by_key(stream, &desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "x_at()"));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scan_by_key");
  TCase *t = tcase_create("scan_by_key");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_segments, 0, 3);
  tcase_add_loop_test(t, test_ways, 0, 3);
  tcase_add_test(t, test_own_texts);
  tcase_add_test(t, test_odd_offsets);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_neighbours_in_place);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
