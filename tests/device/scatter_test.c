/* scatter_test.c -- kiln_scatter by every method: types of elements and indices,
 * sizes around packs and tiles, misaligned views, equal indices, maps, checked
 * mode, graphs, and what is wrong with a call. */
#include "ops_fixture.h"

static const kiln_dtype index_types[] = {KILN_I32, KILN_U32, KILN_I64,
                                         KILN_U64};
enum { N_INDEX_TYPES = 4, N_METHODS = 5 };

typedef enum spread {
  PERMUTED, /* every place of the target at most once */
  RANDOM,   /* some places several times */
  FORWARD,
  BACKWARD,
  CONSTANT,
  N_SPREADS,
  CROWDED /* most at some hundred places next to each other, of which the first
             and last are named once */
} spread;

static uint64_t crowded(size_t i, size_t n, uint64_t *state)
{
  return i < 175        ? i
         : i + 175 >= n ? 175 + n - i
                        : 351 + test_random(state) % 300;
}

/* n indices below target; n <= target unless RANDOM, CONSTANT or CROWDED. */
static uint64_t *make_places(size_t n, size_t target, spread how,
                             uint64_t *state)
{
  uint64_t *at = malloc((target + n + 1) * sizeof *at);

  ck_assert_ptr_nonnull(at);
  for (size_t i = 0; i < target || i < n; i++)
    at[i] = how == CROWDED && i % 64 != 0
                ? (target / 2 + crowded(i, n, state)) % target
            : how == CONSTANT                 ? target / 2
            : how == RANDOM || how == CROWDED ? test_random(state) % target
            : how == BACKWARD                 ? target - 1 - i % target
                                              : i % target;
  for (size_t i = target - 1; how == PERMUTED && i > 0; i--) {
    const size_t k = test_random(state) % (i + 1);
    const uint64_t swap = at[i];

    at[i] = at[k];
    at[k] = swap;
  }
  return at;
}

/* As elements of an index type; yours to free(). */
static void *as_type(kiln_dtype type, const uint64_t *at, size_t n)
{
  void *data = malloc(n * 8 + 8);

  ck_assert_ptr_nonnull(data);
  for (size_t i = 0; i < n; i++)
    if (kiln_dtype_size(type) == 4)
      ((uint32_t *)data)[i] = (uint32_t)at[i];
    else
      ((uint64_t *)data)[i] = at[i];
  return data;
}

typedef struct scatter_case {
  kiln_dtype type, index;
  size_t n, target, shift;
  spread how;
  kiln_index_method method;
  uint32_t passes;
  bool checked, know_target;
} scatter_case;

/* Of what a place holds: the poison if no index names it, else one of the values
 * that came for it. */
static void check_places(const scatter_case *c, const unsigned char *got,
                         const unsigned char *x, const uint64_t *at)
{
  const size_t size = kiln_dtype_size(c->type);
  unsigned char *named = calloc(c->target, 1), *right = calloc(c->target, 1);

  ck_assert(named != NULL && right != NULL);
  for (size_t i = 0; i < c->n; i++) {
    named[at[i]] = 1;
    right[at[i]] |= memcmp(got + at[i] * size, x + i * size, size) == 0;
  }
  for (size_t k = 0; k < c->target; k++) {
    if (!named[k]) {
      right[k] = 1;
      for (size_t b = 0; b < size; b++)
        right[k] &= got[k * size + b] == 0x5a;
    }
    ck_assert_msg(right[k],
                  "%s, %s, n %zu to %zu, shift %zu, spread %d, method %d(%u): "
                  "place %zu",
                  kiln_dtype_name(c->type), kiln_dtype_name(c->index), c->n,
                  c->target, c->shift, (int)c->how, (int)c->method, c->passes,
                  k);
  }
  free(named);
  free(right);
}

/* Stores to one place are what the check for races is there to report, and
 * compute-sanitizer's, of which tests/gpu.sh tells. */
static bool reports_races(void)
{
  kiln_cpu_opts cpu;

  if (getenv("KILN_TEST_RACES") != NULL)
    return true;
  return on_cpu() && kiln_cpu_parse(&cpu, test_cpu) == KILN_OK &&
         cpu.checks != 0;
}

/* Sorting needs to know a target that indices of 64 bits point into. */
static bool is_offered(const scatter_case *c)
{
  return c->method != KILN_INDEX_SORT || c->know_target ||
         kiln_dtype_size(c->index) == 4;
}

static void scatter_once(const scatter_case *c, uint64_t *state)
{
  const bool repeats = c->how == RANDOM || c->how == CONSTANT ||
                       c->how == CROWDED || c->n > c->target;
  const size_t size = kiln_dtype_size(c->type);
  unsigned char *x, *got;
  uint64_t *at;
  void *places;
  test_array in, index, out;
  kiln_scatter_desc desc;

  if (repeats && reports_races())
    return;
  x = random_bits(c->n * size, state);
  at = make_places(c->n, c->target, c->how, state);
  places = as_type(c->index, at, c->n);
  in = array_make(c->type, c->n, c->shift % 2, x, 0);
  index = array_make(c->index, c->n, c->shift % 2, places, 0);
  out = array_make(c->type, c->target, c->shift, NULL, 0x5a);
  desc = (kiln_scatter_desc){.x = {.in = {in.array}},
                             .index = index.array,
                             .out = out.array,
                             .n = c->n,
                             .n_target = c->know_target ? c->target : 0,
                             .method = c->method,
                             .passes = c->passes,
                             .checked = c->checked && c->know_target};

  if (is_offered(c)) {
    ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
    got = array_read(&out);
    check_places(c, got, x, at);
  } else {
    ck_kiln_is(kiln_scatter(stream, &desc, NULL), KILN_EINVAL);
    got = NULL;
  }
  free(got);
  free(x);
  free(at);
  free(places);
  array_free(&in);
  array_free(&index);
  array_free(&out);
}

START_TEST(test_types)
{
  static const size_t lengths[] = {1, 3, 32, 1023, 1024, 1025, 5003};
  uint64_t state = 11;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const scatter_case c = {.type = all_types[_i],
                            .index = index_types[k % N_INDEX_TYPES],
                            .n = lengths[k],
                            .target = lengths[k] + 13 * k,
                            .shift = k % 4};

    scatter_once(&c, &state);
  }
}
END_TEST

/* The same few numbers of passes everywhere: each is a kernel of its own. Sizes
 * around the tile of a partition, 4,096 or 2,048 elements. */
START_TEST(test_methods)
{
  static const size_t lengths[] = {1, 33, 2047, 4095, 4096, 4097, 20011};
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_F32, KILN_F64};
  static const uint32_t passes[] = {1, 7, 1000};
  const size_t which = (size_t)_i;
  uint64_t state = 3;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (int method = 0; method < N_METHODS; method++) {
      const scatter_case c = {.type = types[which],
                              .index = index_types[which],
                              .n = lengths[k],
                              .target = lengths[k] * (1 + k % 2),
                              .shift = k % 4,
                              .how = (spread)((k + which) % N_SPREADS),
                              .method = (kiln_index_method)method,
                              .passes = passes[k % 3],
                              .know_target = k % 2 == 0};

      scatter_once(&c, &state);
    }
}
END_TEST

/* By sorting: buckets of 2^14, 2^13, 2^12 and 2^11 elements; one block sorts up to
 * 8,192 pairs; a run of more than 4 buckets' elements is shared by blocks. */
START_TEST(test_sort)
{
  static const struct {
    size_t n, target;
    spread how;
    bool unknown;
  } cases[] = {{1, 1, FORWARD, false},
               {1, 100000, CONSTANT, false},
               {100, 70001, PERMUTED, false},
               {2047, 2049, PERMUTED, false},
               {8193, 16385, BACKWARD, false},
               {16384, 16384, PERMUTED, false},
               {16385, 16384 + 1, PERMUTED, true},
               {9000, 70001, PERMUTED, true}, /* far above what n says */
               {33001, 33001, FORWARD, false},
               {9000, 20000, RANDOM, false},
               {20000, 50, RANDOM, false},
               {40001, 700, CROWDED, false},
               {40001, 90001, CROWDED, false},
               {70001, 90001, CROWDED, true}};
  static const kiln_dtype types[] = {KILN_I8, KILN_F16, KILN_F32, KILN_F64};
  uint64_t state = 31;

  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    const scatter_case c = {
        .type = types[_i],
        .index = cases[k].unknown ? KILN_U32 : index_types[k % N_INDEX_TYPES],
        .n = cases[k].n,
        .target = cases[k].target,
        .shift = k % 3,
        .how = cases[k].how,
        .method = KILN_INDEX_SORT,
        .know_target = !cases[k].unknown};

    scatter_once(&c, &state);
  }
}
END_TEST

/* More than 8,192 pairs of which all or a part is made first, and sorted in place
 * where the passes are even: 22 bits are two above a bucket, 17 one. With all in one
 * bucket no pass has anything to do, with all in the first quarter one of two. */
START_TEST(test_sort_makes)
{
  enum { N = 9001 };
  const size_t target = _i % 2 != 0 ? 2200001 : 70001;
  const bool wide = _i / 2 % 2 != 0, mapped = _i / 4 % 2 != 0;
  const int crowd = _i / 8;
  uint64_t state = 6, *at;
  test_array a, index, out;
  kiln_scatter_desc desc;
  void *places, *got;
  float *x;

  if (crowd == 1 && reports_races())
    return;
  x = random_wholes(KILN_F32, N, -50, 50, &state);
  at = make_places(N, target, PERMUTED, &state);
  for (size_t i = 0; crowd > 0 && i < N; i++) {
    at[i] = crowd == 1 ? i / 5 : (N - 1 - i) * (target / N / 3);
    x[i] = (float)at[i];
  }
  places = as_type(wide ? KILN_U64 : KILN_U32, at, N);
  a = array_make(KILN_F32, N, 1, x, 0);
  index = array_make(wide ? KILN_U64 : KILN_U32, N, 1, places, 0);
  out = array_make(mapped ? KILN_F64 : KILN_F32, target, 1, NULL, 1);
  desc = (kiln_scatter_desc){
      .x = {.in = {a.array}, .map = mapped ? "3 * x" : NULL},
      .index = index.array,
      .out = out.array,
      .n = N,
      .n_target = target,
      .method = KILN_INDEX_SORT};
  ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
  got = array_read(&out);
  for (size_t i = 0; i < N; i++)
    ck_assert_double_eq(value_at(out.array.type, got, at[i]),
                        (double)x[i] * (mapped ? 3 : 1));
  free(got);
  free(x);
  free(at);
  free(places);
  array_free(&a);
  array_free(&index);
  array_free(&out);
}
END_TEST

START_TEST(test_map)
{
  enum { N = 5000 };
  uint64_t state = 5;
  int16_t *x = random_wholes(KILN_I16, N, -50, 50, &state);
  float *y = random_wholes(KILN_F32, N, -50, 50, &state);
  uint64_t *at = make_places(N, N, PERMUTED, &state);
  test_array a = array_make(KILN_I16, N, 1, x, 0);
  test_array b = array_make(KILN_F32, N, 0, y, 0);
  test_array index = array_make(KILN_U64, N, 0, at, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 1);
  const float scale = 4;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false}};
  kiln_scatter_desc desc = {.x = {.in = {a.array, b.array},
                                  .map = "scale * y + x + (i % 2 ? 0.5f : 0)",
                                  .type = KILN_F32},
                            .index = index.array,
                            .out = out.array,
                            .n = N,
                            .n_target = N,
                            .code = {.params = params, .n_params = 1}};

  for (int method = 0; method < N_METHODS; method++) {
    double *got;

    desc.method = (kiln_index_method)method;
    desc.passes = 7;
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x7f, 1, N * 8));
    ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
    got = array_read(&out);
    for (size_t i = 0; i < N; i++)
      ck_assert_double_eq(got[at[i]],
                          4.0 * (double)y[i] + x[i] + (i % 2 ? 0.5 : 0));
    free(got);
  }
  /* a user expression that reads no array, only the index */
  desc.x = (kiln_input){.map = "i * 2", .type = KILN_U64};
  desc.method = KILN_INDEX_AUTO;
  desc.out.type = KILN_U64;
  ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
  free(x);
  x = array_read(&out);
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(((uint64_t *)(void *)x)[at[i]], 2 * i);
  free(x);
  free(y);
  free(at);
  array_free(&a);
  array_free(&b);
  array_free(&index);
  array_free(&out);
}
END_TEST

/* From f16 to every type, as in C. */
START_TEST(test_conversion)
{
  enum { N = 300 };
  uint64_t state = 5;
  void *x = random_wholes(KILN_F16, N, 0, 100, &state);
  uint64_t *at = make_places(N, N, BACKWARD, &state);
  test_array in = array_make(KILN_F16, N, 0, x, 0);
  test_array index = array_make(KILN_I64, N, 0, at, 0);

  for (size_t k = 0; k < N_ALL_TYPES; k++) {
    test_array out = array_make(all_types[k], N, 0, NULL, 1);
    const kiln_scatter_desc desc = {.x = {.in = {in.array}},
                                    .index = index.array,
                                    .out = out.array,
                                    .n = N,
                                    .method = k % 6 == 5 ? KILN_INDEX_PARTITION
                                                         : KILN_INDEX_DIRECT,
                                    .passes = 7};
    void *got;

    ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
    got = array_read(&out);
    for (size_t i = 0; i < N; i++)
      ck_assert_double_eq(value_at(all_types[k], got, N - 1 - i),
                          value_at(KILN_F16, x, i));
    free(got);
    array_free(&out);
  }
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long n = random_calls(250);
  uint64_t state = 77;

  for (unsigned long k = 0; k < n; k++) {
    const uint64_t r = test_random(&state);
    scatter_case c = {.type = all_types[r % N_ALL_TYPES],
                      .index = index_types[(r >> 4) % N_INDEX_TYPES],
                      .n = (r >> 8) % 6000,
                      .target = 1 + (r >> 24) % 9000,
                      .shift = (r >> 40) % 5,
                      .how = (spread)((r >> 44) % N_SPREADS),
                      .method = (kiln_index_method)((r >> 47) % N_METHODS),
                      .passes = 7,
                      .checked = (r >> 51) % 4 == 0,
                      .know_target = (r >> 53) % 2 == 0};

    if (c.how == PERMUTED && c.n > c.target)
      c.target = c.n;
    scatter_once(&c, &state);
  }
}
END_TEST

/* ---- Checked mode ------------------------------------------------------------------- */

START_TEST(test_checked)
{
  enum { N = 1000, TARGET = 2000 };
  static const struct {
    kiln_dtype type;
    uint64_t bad;
    const char *message;
  } cases[] = {{KILN_I32, (uint32_t)-1, "index[999] is -1"},
               {KILN_U32, TARGET, "index[999] is 2000, and there are 2000"},
               {KILN_I64, (uint64_t)-5, "index[999] is -5"},
               {KILN_U64, UINT64_C(1) << 32, "index[999] is 4294967296"}};
  uint64_t state = 5;
  uint64_t *at = make_places(N, TARGET, PERMUTED, &state);
  test_array x = array_make(KILN_F32, N, 0, NULL, 1);
  test_array index, out = array_make(KILN_F32, TARGET, 0, NULL, 0x5a);
  kiln_scatter_desc desc = {.x = {.in = {x.array}},
                            .out = out.array,
                            .n = N,
                            .n_target = TARGET,
                            .checked = true};
  unsigned char *got;
  void *places;
  size_t bytes;

  at[N - 1] = cases[_i].bad;
  places = as_type(cases[_i].type, at, N);
  index = array_make(cases[_i].type, N, 0, places, 0);
  desc.index = index.array;
  for (int method = 0; method < N_METHODS; method++) {
    desc.method = (kiln_index_method)method;
    desc.passes = 7;
    ck_kiln_is(kiln_scatter(stream, &desc, NULL), KILN_EINVAL);
    ck_assert_msg(strstr(kiln_last_error()->message, cases[_i].message) != NULL,
                  "%s", kiln_last_error()->message);
  }
  got = array_read(&out);
  for (size_t i = 0; i < 4 * TARGET; i++)
    ck_assert_int_eq(got[i], 0x5a);
  desc.n = N - 1;
  desc.method = KILN_INDEX_DIRECT;
  ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
  ck_kiln_ok(kiln_scatter_workspace(stream, &desc, &bytes));
  ck_assert_uint_eq(bytes, 256);
  free(got);
  free(at);
  free(places);
  array_free(&x);
  array_free(&index);
  array_free(&out);
}
END_TEST

/* ---- Memory and graphs ---------------------------------------------------------------- */

static void begin_capture(void)
{
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(
      rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      0);
  kiln__leave(&scope);
}

static CUgraphExec end_capture(void)
{
  CUgraphExec exec = NULL;
  CUgraph graph = NULL;
  kiln__scope scope;
  CUresult rc;

  ck_kiln_ok(kiln__enter(device, &scope));
  rc = rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph);
  ck_assert_msg(rc == 0, "the capture was spoiled: %d", rc);
  if (rt->driver.graphInstantiateWithFlags != NULL)
    rc = rt->driver.graphInstantiateWithFlags(&exec, graph, 0);
  else
    rc = rt->driver.graphInstantiate(&exec, graph, NULL, NULL, 0);
  ck_assert_int_eq(rc, 0);
  ck_assert_int_eq(rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  return exec;
}

static void replay_and_drop(CUgraphExec exec, int times)
{
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(device, &scope));
  for (int i = 0; i < times; i++)
    ck_assert_int_eq(rt->driver.graphLaunch(exec, kiln_stream_handle(stream)),
                     0);
  kiln__leave(&scope);
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(kiln__enter(device, &scope));
  ck_assert_int_eq(rt->driver.graphExecDestroy(exec), 0);
  kiln__leave(&scope);
}

/* A partition or a sort in a graph, with the caller's workspace and with the pool's. */
START_TEST(test_graph)
{
  enum { N = 9000 };
  uint64_t state = 5;
  uint64_t *at = make_places(N, N, PERMUTED, &state);
  uint64_t *x = random_bits(N * 8, &state);
  test_array in = array_make(KILN_U64, N, 0, x, 0);
  test_array index = array_make(KILN_U64, N, 0, at, 0);
  test_array out = array_make(KILN_U64, N, 0, NULL, 0x5a), room;
  kiln_scatter_desc desc = {.x = {.in = {in.array}},
                            .index = index.array,
                            .out = out.array,
                            .n = N,
                            .n_target = N,
                            .method =
                                _i < 2 ? KILN_INDEX_PARTITION : KILN_INDEX_SORT,
                            .passes = 7};
  kiln_workspace w;
  uint64_t *got;

  ck_kiln_ok(kiln_scatter_workspace(stream, &desc, &w.size));
  ck_assert_uint_gt(w.size, 12 * N);
  w.data = in.array.data;
  w.size--;
  ck_kiln_is(kiln_scatter(stream, &desc, &w), KILN_EINVAL);
  w.size++;
  room = array_make(KILN_U8, w.size, 0, NULL, 0xcc);
  w.data = room.array.data;
  begin_capture();
  desc.checked = true;
  ck_kiln_is(kiln_scatter(stream, &desc, &w), KILN_ECAPTURE);
  desc.checked = false;
  ck_kiln_ok(kiln_scatter(stream, &desc, _i % 2 == 0 ? &w : NULL));
  replay_and_drop(end_capture(), 3);
  free(array_read(&room)); /* its guards */
  got = array_read(&out);
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[at[i]], x[i]);
  free(got);
  free(x);
  free(at);
  array_free(&in);
  array_free(&index);
  array_free(&out);
  array_free(&room);
}
END_TEST

START_TEST(test_bad_arguments)
{
  test_array a = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array b = array_make(KILN_F32, 100, 0, NULL, 1);
  test_array at = array_make(KILN_U32, 100, 0, NULL, 0);
  const kiln_array odd = {at.array.data + 2, KILN_U32};
  const kiln_array wide = {at.array.data, KILN_U64};
  const kiln_array halves = {at.array.data, KILN_F32};
  const kiln_array none = {0, KILN_F32};
  const kiln_array near = {a.array.data - 40 * 4, KILN_F32};
  const kiln_input x = {.in = {a.array}};
  const kiln_scatter_desc bad[] = {
      {.index = at.array, .out = b.array, .n = 9},
      {.x = x, .out = b.array, .n = 9},
      {.x = x, .index = odd, .out = b.array, .n = 9},
      {.x = x, .index = halves, .out = b.array, .n = 9},
      {.x = x, .index = at.array, .n = 9},
      {.x = x, .index = at.array, .out = none, .n = 9},
      {.x = x, .index = at.array, .out = a.array, .n = 9},
      {.x = x, .index = at.array, .out = at.array, .n = 9},
      {.x = x, .index = at.array, .out = near, .n = 9, .n_target = 50},
      {.x = x, .index = at.array, .out = b.array, .n = UINT64_MAX / 2},
      {.x = x, .index = at.array, .out = b.array, .n = 9, .checked = true},
      {.x = x, .index = at.array, .out = b.array, .n = 9, .method = 5},
      {.x = x,
       .index = wide,
       .out = b.array,
       .n = 9,
       .method = KILN_INDEX_SORT},
      {.x = x,
       .index = wide,
       .out = b.array,
       .n = 9,
       .n_target = (UINT64_C(1) << 32) + 1,
       .method = KILN_INDEX_SORT},
      {.x = {.map = "i"}, .index = at.array, .out = b.array, .n = 9},
      {.x = x,
       .index = at.array,
       .out = b.array,
       .n = 9,
       .method = KILN_INDEX_PARTITION,
       .passes = 1025}};
  const kiln_scatter_desc bad_text = {.x = {.in = {a.array}, .map = "x +* 1"},
                                      .index = at.array,
                                      .out = b.array,
                                      .n = 9,
                                      .method = KILN_INDEX_PARTITION};
  size_t bytes;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    ck_assert_msg(kiln_scatter(stream, &bad[k], NULL) == KILN_EINVAL, "%zu", k);
    ck_assert_msg(kiln_scatter_workspace(stream, &bad[k], &bytes) ==
                      KILN_EINVAL,
                  "%zu", k);
  }
  ck_kiln_is(kiln_scatter(stream, &bad_text, NULL), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "line 1"));
  ck_kiln_is(kiln_scatter(NULL, &bad[0], NULL), KILN_EINVAL);
  ck_kiln_is(kiln_scatter(stream, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_workspace(stream, &bad[0], NULL), KILN_EINVAL);
  array_free(&a);
  array_free(&b);
  array_free(&at);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scatter");
  TCase *t = tcase_create("scatter");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_methods, 0, N_INDEX_TYPES);
  tcase_add_loop_test(t, test_sort, 0, 4);
  tcase_add_loop_test(t, test_sort_makes, 0, 24);
  tcase_add_test(t, test_map);
  tcase_add_test(t, test_conversion);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_loop_test(t, test_checked, 0, N_INDEX_TYPES);
  tcase_add_loop_test(t, test_graph, 0, 4);
  tcase_add_test(t, test_bad_arguments);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
