/* gather_test.c -- kiln_gather and kiln_scatter by every method, and
 * kiln_gather_rows: types of elements and indices, sizes near those of vectors
 * and tiles, misaligned arrays, repeated indices, maps, checked mode, graphs,
 * and invalid arguments. */
#include "operation_checks.h"

static const kiln_dtype index_types[] = {KILN_I32, KILN_U32, KILN_I64,
                                         KILN_U64};
enum { N_INDEX_TYPES = 4 };

/* Most tests run once for gather and once for scatter. Both descriptors have
 * the same members, so a test fills in a gather descriptor; call() converts
 * it. */
typedef enum direction { GATHER, SCATTER, N_DIRECTIONS } direction;

/* The fifth method, sorting, exists for scatter only. */
static const int n_methods[N_DIRECTIONS] = {4, 5};

static kiln_scatter_desc as_scatter(const kiln_gather_desc *d)
{
  return (kiln_scatter_desc){.x = d->x,
                             .index = d->index,
                             .out = d->out,
                             .n = d->n,
                             .n_target = d->n_target,
                             .method = d->method,
                             .passes = d->passes,
                             .checked = d->checked,
                             .code = d->code};
}

static kiln_status call(direction way, const kiln_gather_desc *desc,
                        const kiln_workspace *workspace)
{
  const kiln_scatter_desc scatter = as_scatter(desc);

  return way == GATHER ? kiln_gather(stream, desc, workspace)
                       : kiln_scatter(stream, &scatter, workspace);
}

static kiln_status call_workspace(direction way, const kiln_gather_desc *desc,
                                  size_t *bytes)
{
  const kiln_scatter_desc scatter = as_scatter(desc);

  return way == GATHER ? kiln_gather_workspace(stream, desc, bytes)
                       : kiln_scatter_workspace(stream, &scatter, bytes);
}

/* ---- Indices ------------------------------------------------------------- */

/* How the indices are distributed over the target. */
typedef enum spread {
  PERMUTED, /* each index occurs at most once */
  RANDOM,   /* some indices occur several times */
  FORWARD,
  BACKWARD,
  CONSTANT,
  ENDS, /* only the first and the last index; for gather */
  /* Most indices lie in a range of a few hundred indices; for scatter. */
  CROWDED,
  NEAR,   /* permuted in groups of 64; needs a target of n elements at least */
  SKEWED, /* most indices are among 16 that are far from each other */
  N_SPREADS = 5 /* number of distributions for each direction */
} spread;

static uint64_t crowded(size_t i, size_t n, uint64_t *state)
{
  return i < 175        ? i
         : i + 175 >= n ? 175 + n - i
                        : 351 + test_random(state) % 300;
}

static uint64_t one_index(size_t i, size_t n, size_t target, spread how,
                          uint64_t *state)
{
  switch (how) {
  case BACKWARD:
    return target - 1 - i % target;
  case CONSTANT:
    return target / 2;
  case NEAR:
    return i / 64 * 64 + 64 <= n ? i / 64 * 64 + i * 37 % 64 : i;
  case SKEWED:
    return (i % 512 == 0 ? test_random(state)
                         : test_random(state) % 16 * 4219) %
           target;
  case ENDS:
    return i % 3 == 0 ? target - 1 : 0;
  case RANDOM:
    return test_random(state) % target;
  case CROWDED:
    return (i % 64 != 0 ? target / 2 + crowded(i, n, state)
                        : test_random(state)) %
           target;
  default:
    return i % target;
  }
}

/* Makes n indices below target. PERMUTED ones are distinct if n <= target.
 * teardown() frees them. */
static uint64_t *make_places(size_t n, size_t target, spread how,
                             uint64_t *state)
{
  uint64_t *at = kept(malloc((target + n + 1) * sizeof *at));

  for (size_t i = 0; i < target || i < n; i++)
    at[i] = one_index(i, n, target, how, state);
  for (size_t i = target - 1; how == PERMUTED && i > 0; i--) {
    const size_t k = test_random(state) % (i + 1);
    const uint64_t swap = at[i];

    at[i] = at[k];
    at[k] = swap;
  }
  return at;
}

/* Makes a device array of n indices. */
static test_array make_index(kiln_dtype type, const uint64_t *at, size_t n,
                             size_t shift)
{
  return array_of_indices(type, at, n, shift);
}

/* ---- One call ------------------------------------------------------------ */

/* Whether the device chooses the method, and what it must choose. */
typedef enum sampling {
  NOT_SAMPLED,
  LOCAL,
  SPREAD_OUT,
  SORTED /* the test cannot tell, since the call has tile descriptors */
} sampling;

typedef struct index_case {
  direction way;
  kiln_dtype type, index;
  size_t n, target, shift;
  spread how;
  kiln_index_method method;
  uint32_t passes;
  bool checked, know_target;
  sampling sampled;
} index_case;

static void check_place(const index_case *c, bool right, size_t place)
{
  ck_assert_msg(right,
                "%s, %s, n %zu, target %zu, shift %zu, spread %d, method "
                "%d(%u): place %zu",
                kiln_dtype_name(c->type), kiln_dtype_name(c->index), c->n,
                c->target, c->shift, (int)c->how, (int)c->method, c->passes,
                place);
}

static void check_gathered(const index_case *c, const unsigned char *got,
                           const unsigned char *x, const uint64_t *at)
{
  const size_t size = kiln_dtype_size(c->type);

  for (size_t i = 0; i < c->n; i++)
    check_place(c, memcmp(got + i * size, x + at[i] * size, size) == 0, i);
}

/* An element of the target must keep its old value if no index names it;
 * otherwise it must hold one of the values that were scattered to it. */
static void check_scattered(const index_case *c, const unsigned char *got,
                            const unsigned char *x, const uint64_t *at)
{
  const size_t size = kiln_dtype_size(c->type);
  unsigned char *named = kept(calloc(c->target, 1));
  unsigned char *right = kept(calloc(c->target, 1));

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
    check_place(c, right[k], k);
  }
}

/* Scattering several values to one element is a data race, which the CPU
 * device's race check and compute-sanitizer report. tests/gpu.sh sets
 * KILN_TEST_RACES for the latter. */
static bool reports_races(void)
{
  kiln_cpu_opts cpu;

  if (getenv("KILN_TEST_RACES") != NULL)
    return true;
  return on_cpu() && kiln_cpu_parse(&cpu, test_cpu) == KILN_OK &&
         cpu.checks != 0;
}

/* Tells whether several values are scattered to one element. */
static bool is_race(const index_case *c)
{
  return c->way == SCATTER &&
         (c->how == RANDOM || c->how == CONSTANT || c->how == CROWDED ||
          c->how == SKEWED || c->n > c->target);
}

/* Scatter by sorting needs the length of the target if the indices have 64
 * bits. */
static bool is_offered(const index_case *c)
{
  return c->method != KILN_INDEX_SORT || c->know_target ||
         kiln_dtype_size(c->index) == 4;
}

/* Makes a call with a workspace of exactly the requested size, and checks which
 * method the device has chosen. A call without tile descriptors has the words of
 * index_sample.cu in the last 256 bytes of its workspace. */
static void call_sampled(const index_case *c, const kiln_gather_desc *desc)
{
  kiln_workspace w;
  test_array room;
  uint32_t skip[2];

  ck_kiln_ok(call_workspace(c->way, desc, &w.size));
  room = array_make(KILN_U8, w.size, 0, NULL, 0xcc);
  w.data = room.array.data;
  ck_kiln_ok(call(c->way, desc, &w));
  if (c->sampled == SORTED)
    return;
  memcpy(skip, (unsigned char *)kept(array_read(&room)) + w.size - 256,
         sizeof skip);
  ck_assert_uint_eq(skip[0], c->sampled == LOCAL ? 0 : 1);
  ck_assert_uint_eq(skip[1], c->sampled == LOCAL ? 1 : 0);
}

/* Moves random bits, which must arrive unchanged. */
static void move_once(const index_case *c, uint64_t *state)
{
  const size_t mark = n_kept;
  const bool gather = c->way == GATHER;
  const size_t n_in = gather ? c->target : c->n;
  test_array in, index, out;
  kiln_gather_desc desc;
  unsigned char *x;
  uint64_t *at;

  if (is_race(c) && reports_races())
    return;
  x = kept(random_bits(n_in * kiln_dtype_size(c->type), state));
  at = make_places(c->n, c->target, c->how, state);
  in = array_make(c->type, n_in, gather ? c->shift : c->shift % 2, x, 0);
  index = make_index(c->index, at, c->n, c->shift % 2);
  out = array_make(c->type, gather ? c->n : c->target,
                   gather ? c->shift % 2 : c->shift, NULL, 0x5a);
  desc = (kiln_gather_desc){.x = {.in = {in.array}},
                            .index = index.array,
                            .out = out.array,
                            .n = c->n,
                            .n_target = c->know_target ? c->target : 0,
                            .method = c->method,
                            .passes = c->passes,
                            .checked = c->checked && c->know_target};
  if (!is_offered(c)) {
    ck_kiln_is(call(c->way, &desc, NULL), KILN_EINVAL);
  } else {
    if (c->sampled != NOT_SAMPLED)
      call_sampled(c, &desc);
    else
      ck_kiln_ok(call(c->way, &desc, NULL));
    (gather ? check_gathered : check_scattered)(c, kept(array_read(&out)), x,
                                                at);
  }
  release(mark);
}

/* ---- Types, methods, random calls ---------------------------------------- */

START_TEST(test_types)
{
  static const size_t lengths[] = {1, 3, 32, 1023, 1024, 1025, 5003};
  const direction way = (direction)(_i % N_DIRECTIONS);
  uint64_t state = 11;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const index_case c = {.way = way,
                          .type = all_types[_i / N_DIRECTIONS],
                          .index = index_types[k % N_INDEX_TYPES],
                          .n = lengths[k],
                          .target = way == GATHER ? 1 + lengths[(k + 3) % 7]
                                                  : lengths[k] + 13 * k,
                          .shift = k % 4,
                          .how = way == GATHER ? RANDOM : PERMUTED};

    move_once(&c, &state);
  }
}
END_TEST

/* Sizes near the tile of a partition, which has 4,096 or 2,048 elements. All
 * calls share three numbers of passes because each number needs a kernel of its
 * own. */
/* Indices of 8 and 16 bits, into targets as long as they reach, and shorter ones.
 * A call of many elements must not be sampled either. */
START_TEST(test_narrow)
{
  static const struct {
    size_t n, target;
  } sizes[] = {{1, 1}, {31, 200}, {1027, 256}, {1000, 40}, {70001, 256}};
  const direction way = (direction)(_i % N_DIRECTIONS);
  const bool bytes = _i / N_DIRECTIONS == 0;
  uint64_t state = 12;

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    const index_case c = {.way = way,
                          .type = bytes ? KILN_F32 : KILN_U16,
                          .index = bytes ? KILN_U8 : KILN_U16,
                          .n = sizes[k].n,
                          .target = sizes[k].target * (bytes ? 1 : 256),
                          .shift = k % 3,
                          .how = RANDOM,
                          .method =
                              k % 2 == 0 ? KILN_INDEX_AUTO : KILN_INDEX_DIRECT,
                          .checked = k == 2,
                          .know_target = k != 1};

    move_once(&c, &state);
  }
}
END_TEST

START_TEST(test_methods)
{
  static const size_t lengths[] = {1, 33, 2047, 4095, 4096, 4097, 20011};
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_F32, KILN_F64};
  static const uint32_t passes[] = {1, 7, 1000};
  const direction way = (direction)(_i % N_DIRECTIONS);
  const size_t which = (size_t)_i / N_DIRECTIONS;
  uint64_t state = 3;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (int method = 0; method < n_methods[way]; method++) {
      const size_t how = (k + which) % N_SPREADS;

      if ((k + (size_t)method + which) % 2 != 0 && !test_thoroughly())
        continue;
      const index_case c = {.way = way,
                            .type = types[which],
                            .index = index_types[which],
                            .n = lengths[k],
                            .target = way == GATHER
                                          ? lengths[(2 * k + which) % 7]
                                          : lengths[k] * (1 + k % 2),
                            .shift = k % 4,
                            .how = (spread)(way == GATHER ? RANDOM + how : how),
                            .method = (kiln_index_method)method,
                            .passes = passes[k % 3],
                            .know_target = k % 2 == 0};

      move_once(&c, &state);
    }
}
END_TEST

START_TEST(test_random_calls)
{
  const unsigned long n = random_calls(250);
  const direction way = (direction)_i;
  uint64_t state = 77;

  for (unsigned long k = 0; k < n; k++) {
    const uint64_t r = test_random(&state);
    const size_t how = (r >> 44) % N_SPREADS;
    index_case c = {
        .way = way,
        .type = all_types[r % N_ALL_TYPES],
        .index = index_types[(r >> 4) % N_INDEX_TYPES],
        .n = (r >> 8) % 6000,
        .target = 1 + (r >> 24) % 9000,
        .shift = (r >> 40) % 5,
        .how = (spread)(way == GATHER ? RANDOM + how : how),
        .method = (kiln_index_method)((r >> 47) % (unsigned)n_methods[way]),
        .passes = 7,
        .checked = (r >> 51) % 4 == 0,
        .know_target = (r >> 53) % 2 == 0};

    if (c.how == PERMUTED && c.n > c.target)
      c.target = c.n;
    move_once(&c, &state);
  }
}
END_TEST

/* ---- Scatter by sorting -------------------------------------------------- */

/* Scatter by sorting uses buckets of 2^14, 2^13, 2^12 and 2^11 elements. One
 * block sorts up to 8,192 pairs. Several blocks share a bucket that receives
 * more than 4 times as many pairs as it has elements. */
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
               /* the target is much longer than n */
               {9000, 70001, PERMUTED, true},
               {33001, 33001, FORWARD, false},
               {9000, 20000, RANDOM, false},
               {20000, 50, RANDOM, false},
               {40001, 700, CROWDED, false},
               {40001, 90001, CROWDED, false},
               {70001, 90001, CROWDED, true}};
  static const kiln_dtype types[] = {KILN_I8, KILN_F16, KILN_F32, KILN_F64};
  uint64_t state = 31;

  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    const index_case c = {
        .way = SCATTER,
        .type = types[_i],
        .index = cases[k].unknown ? KILN_U32 : index_types[k % N_INDEX_TYPES],
        .n = cases[k].n,
        .target = cases[k].target,
        .shift = k % 3,
        .how = cases[k].how,
        .method = KILN_INDEX_SORT,
        .know_target = !cases[k].unknown};

    move_once(&c, &state);
  }
}
END_TEST

/* Sorts more than 8,192 pairs, which a kernel makes from the map and narrower
 * indices first. Targets of 22 and 17 bits take two passes and one pass before
 * the buckets. Indices in a single bucket let a call skip every pass. */
START_TEST(test_sort_makes)
{
  enum { N = 9001 };
  const size_t target = _i % 2 != 0 ? 2200001 : 70001;
  const bool wide = _i / 2 % 2 != 0, mapped = _i / 4 % 2 != 0;
  const int crowd = _i / 8;
  uint64_t state = 6, *at;
  test_array a, index, out;
  kiln_scatter_desc desc;
  void *got;
  float *x;

  if (crowd == 1 && reports_races())
    return;
  x = kept(random_wholes(KILN_F32, N, -50, 50, &state));
  at = make_places(N, target, PERMUTED, &state);
  for (size_t i = 0; crowd > 0 && i < N; i++) {
    at[i] = crowd == 1 ? i / 5 : (N - 1 - i) * (target / N / 3);
    x[i] = (float)at[i];
  }
  a = array_make(KILN_F32, N, 1, x, 0);
  index = make_index(wide ? KILN_U64 : KILN_U32, at, N, 1);
  out = array_make(mapped ? KILN_F64 : KILN_F32, target, 1, NULL, 1);
  desc = (kiln_scatter_desc){
      .x = {.in = {a.array}, .map = mapped ? "3 * x" : NULL},
      .index = index.array,
      .out = out.array,
      .n = N,
      .n_target = target,
      .method = KILN_INDEX_SORT};
  ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++)
    ck_assert_double_eq(value_at(out.array.type, got, at[i]),
                        (double)x[i] * (mapped ? 3 : 1));
}
END_TEST

/* ---- Maps and conversions ------------------------------------------------ */

START_TEST(test_map)
{
  enum { N = 5000 };
  const direction way = (direction)_i;
  const size_t target = way == GATHER ? 777 : N, n_in = way == GATHER ? 777 : N;
  uint64_t state = 5;
  int16_t *x = kept(random_wholes(KILN_I16, n_in, -50, 50, &state));
  float *y = kept(random_wholes(KILN_F32, n_in, -50, 50, &state));
  uint64_t *at =
      make_places(N, target, way == GATHER ? RANDOM : PERMUTED, &state);
  test_array a = array_make(KILN_I16, n_in, 1, x, 0);
  test_array b = array_make(KILN_F32, n_in, 0, y, 0);
  test_array index = make_index(way == GATHER ? KILN_U32 : KILN_U64, at, N, 0);
  test_array out = array_make(KILN_F64, N, 0, NULL, 1);
  const float scale = 4;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false}};
  kiln_gather_desc desc = {.x = {.in = {a.array, b.array},
                                 .map = "scale * y + x + (i % 2 ? 0.5f : 0)",
                                 .type = KILN_F32},
                           .index = index.array,
                           .out = out.array,
                           .n = N,
                           .n_target = target,
                           .passes = 7,
                           .code = {.params = params, .n_params = 1}};

  for (int method = 0; method < n_methods[way]; method++) {
    double *got;

    desc.method = (kiln_index_method)method;
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x7f, 1, N * 8));
    ck_kiln_ok(call(way, &desc, NULL));
    got = kept(array_read(&out));
    for (size_t i = 0; i < N; i++) {
      const uint64_t from = way == GATHER ? at[i] : i;
      const uint64_t to = way == GATHER ? i : at[i];

      ck_assert_double_eq(got[to], 4.0 * (double)y[from] + x[from] +
                                       (from % 2 ? 0.5 : 0));
    }
  }
}
END_TEST

/* A user expression that reads no array, only the index. */
START_TEST(test_no_array)
{
  enum { N = 5000 };
  uint64_t state = 5, *at = make_places(N, N, PERMUTED, &state), *got;
  test_array index = make_index(KILN_U64, at, N, 0);
  test_array out = array_make(KILN_U64, N, 0, NULL, 1);
  const kiln_scatter_desc desc = {.x = {.map = "i * 2", .type = KILN_U64},
                                  .index = index.array,
                                  .out = out.array,
                                  .n = N,
                                  .n_target = N};

  ck_kiln_ok(kiln_scatter(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_eq(got[at[i]], 2 * i);
}
END_TEST

/* Converts f16 to every type, as C does. */
START_TEST(test_conversion)
{
  enum { N = 300 };
  uint64_t state = 5;
  void *x = kept(random_wholes(KILN_F16, N, 0, 100, &state));
  test_array in = array_make(KILN_F16, N, 0, x, 0);
  uint64_t *at = make_places(N, N, BACKWARD, &state);
  test_array index = array_make(KILN_I64, N, 0, at, 0);

  for (size_t k = 0; k < N_ALL_TYPES; k++) {
    test_array out = array_make(all_types[k], N, 0, NULL, 1);
    const kiln_gather_desc desc = {.x = {.in = {in.array}},
                                   .index = index.array,
                                   .out = out.array,
                                   .n = N,
                                   .method = k % 6 == 5   ? KILN_INDEX_PARTITION
                                             : k % 3 == 1 ? KILN_INDEX_WINDOWS
                                                          : KILN_INDEX_DIRECT,
                                   .passes = 7};
    void *got;

    ck_kiln_ok(call((direction)_i, &desc, NULL));
    got = kept(array_read(&out));
    for (size_t i = 0; i < N; i++)
      ck_assert_double_eq(value_at(all_types[k], got, i),
                          value_at(KILN_F16, x, N - 1 - i));
  }
}
END_TEST

/* ---- Rows ---------------------------------------------------------------- */

typedef struct rows_case {
  kiln_dtype type, index;
  size_t n, rows, width, in_stride, out_stride, shift;
  bool checked;
} rows_case;

static void rows_once(const rows_case *c, uint64_t *state)
{
  const size_t mark = n_kept;
  const size_t size = kiln_dtype_size(c->type);
  const size_t in_stride = c->in_stride != 0 ? c->in_stride : c->width;
  const size_t out_stride = c->out_stride != 0 ? c->out_stride : c->width;
  unsigned char *x = kept(random_bits(c->rows * in_stride * size, state));
  uint64_t *at = make_places(c->n, c->rows, RANDOM, state);
  test_array in = array_make(c->type, c->rows * in_stride, c->shift, x, 0);
  test_array index = make_index(c->index, at, c->n, 0);
  test_array out = array_make(c->type, c->n * out_stride, c->shift, NULL, 0x5a);
  const kiln_gather_rows_desc desc = {.in = in.array,
                                      .index = index.array,
                                      .out = out.array,
                                      .n = c->n,
                                      .width = c->width,
                                      .in_stride = c->in_stride,
                                      .out_stride = c->out_stride,
                                      .n_target = c->rows,
                                      .checked = c->checked};
  unsigned char *got;

  ck_kiln_ok(kiln_gather_rows(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t r = 0; r < c->n; r++) {
    const size_t from = at[r] * in_stride * size;
    const size_t to = r * out_stride * size;

    ck_assert_msg(memcmp(got + to, x + from, c->width * size) == 0,
                  "%s, width %zu, strides %zu %zu, shift %zu: row %zu of %zu",
                  kiln_dtype_name(c->type), c->width, in_stride, out_stride,
                  c->shift, r, c->n);
    for (size_t k = c->width * size; k < out_stride * size; k++)
      ck_assert_int_eq(got[to + k], 0x5a);
  }
  release(mark);
}

START_TEST(test_rows)
{
  static const size_t widths[] = {1, 2, 3, 7, 32, 33, 64, 100, 1000, 9001};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
    const rows_case c = {.type = all_types[(5 * k + (size_t)_i) % N_ALL_TYPES],
                         .index =
                             k == 3 ? KILN_U8 : index_types[k % N_INDEX_TYPES],
                         .n = widths[k] > 500 ? 7 : 133 + 8 * (size_t)_i,
                         .rows = widths[k] > 500 ? 5 : 77,
                         .width = widths[k],
                         .in_stride = k % 3 == 1 ? widths[k] + 4 : 0,
                         .out_stride = k % 4 == 2 ? widths[k] + 3 : 0,
                         .shift = _i == 0 ? 0 : (k + 1) % 4,
                         .checked = k % 5 == 0};

    rows_once(&c, &state);
  }
}
END_TEST

/* ---- Checked mode -------------------------------------------------------- */

START_TEST(test_checked)
{
  enum { N = 1000, TARGET = 2000 };
  static const struct {
    kiln_dtype type;
    uint64_t bad;
    const char *message;
  } cases[] = {{KILN_U16, TARGET, "index[700] is 2000, and there are 2000"},
               {KILN_I32, (uint32_t)-1, "index[700] is -1"},
               {KILN_U32, TARGET, "index[700] is 2000, and there are 2000"},
               {KILN_I64, (uint64_t)-5, "index[700] is -5"},
               {KILN_U64, UINT64_C(1) << 32, "index[700] is 4294967296"},
               {KILN_U64, UINT64_MAX, "index[700] is 18446744073709551615"}};
  const direction way = (direction)(_i % N_DIRECTIONS);
  const int which = _i / N_DIRECTIONS;
  uint64_t state = 5, *at = make_places(N, TARGET, PERMUTED, &state);
  test_array x = array_make(KILN_F32, TARGET, 0, NULL, 1);
  test_array index, out = array_make(KILN_F32, TARGET, 0, NULL, 0x5a);
  kiln_gather_desc desc = {.x = {.in = {x.array}},
                           .out = out.array,
                           .n = N,
                           .n_target = TARGET,
                           .passes = 7,
                           .checked = true};
  kiln_gather_rows_desc rows = {.in = x.array,
                                .out = out.array,
                                .n = N,
                                .width = 1,
                                .n_target = TARGET,
                                .checked = true};
  unsigned char *got;
  size_t bytes;

  for (size_t i = 700; i < N; i += 299)
    at[i] = cases[which].bad;
  index = make_index(cases[which].type, at, N, 0);
  desc.index = rows.index = index.array;
  for (int method = 0; method < (which == 0 ? 2 : n_methods[way]); method++) {
    desc.method = (kiln_index_method)method;
    ck_kiln_is(call(way, &desc, NULL), KILN_EINVAL);
    ck_assert_msg(strstr(kiln_last_error()->message, cases[which].message) !=
                      NULL,
                  "%s", kiln_last_error()->message);
  }
  ck_kiln_is(kiln_gather_rows(stream, &rows, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->message, cases[which].message));
  got = kept(array_read(&out));
  for (size_t i = 0; i < 4 * TARGET; i++)
    ck_assert_int_eq(got[i], 0x5a);
  desc.n = rows.n = 700;
  desc.method = KILN_INDEX_DIRECT;
  ck_kiln_ok(call(way, &desc, NULL));
  ck_kiln_ok(call_workspace(way, &desc, &bytes));
  ck_assert_uint_eq(bytes, 256);
  ck_kiln_ok(kiln_gather_rows(stream, &rows, NULL));
}
END_TEST

/* ---- Memory and graphs --------------------------------------------------- */

/* ---- Choice on the device ------------------------------------------------ */

/* For a target larger than the L2 cache, the device chooses between the method
 * of the cost model and one direct pass. The test makes the cache small instead
 * of the target large. A slow memory makes the model choose windows, a partition
 * or a sort. */
START_TEST(test_sampled)
{
  enum { N = 70001 };
  static const struct {
    direction way;
    kiln_dtype type, index;
    int cache, clock;
    kiln_index_method method;
  } cases[] = {
      {GATHER, KILN_F32, KILN_U32, 1 << 18, 1000000, KILN_INDEX_WINDOWS},
      {GATHER, KILN_U16, KILN_I64, 1 << 13, 1000000, KILN_INDEX_PARTITION},
      {GATHER, KILN_F32, KILN_I32, 1 << 13, 1000000, KILN_INDEX_PARTITION},
      {SCATTER, KILN_F32, KILN_I32, 1 << 16, 5000, KILN_INDEX_SORT},
      {SCATTER, KILN_U16, KILN_I32, 1 << 15, 1000000, KILN_INDEX_PARTITION},
      {SCATTER, KILN_F64, KILN_U64, 1 << 19, 1000000, KILN_INDEX_WINDOWS}};
  static const spread spreads[] = {PERMUTED, FORWARD, BACKWARD, NEAR, SKEWED};
  const direction way = cases[_i].way;
  const kiln_device_info before = device->info;
  const size_t size = kiln_dtype_size(cases[_i].type);
  /* A sort of so many indices has two passes, and more tiles than blocks. */
  const bool sorts = cases[_i].method == KILN_INDEX_SORT;
  const size_t n = sorts ? 4 * N : N, target = sorts ? 2100001 : N;
  const kiln_index_shape shape = {n, target, (unsigned)size,
                                  (unsigned)kiln_dtype_size(cases[_i].index)};
  kiln_index_plan plan = {0};
  uint64_t state = 9;

  device->info.l2_bytes = cases[_i].cache;
  /* The blocks of two multiprocessors are fewer than the tiles of a sort. */
  device->info.clock_khz = 8 * cases[_i].clock;
  device->info.sm_count = 2;
  device->info.memory_clock_khz = 100000;
  device->info.memory_bus_bits = 64;
  ck_kiln_ok((way == GATHER ? kiln_gather_plan
                            : kiln_scatter_plan)(&device->info, &shape, &plan));
  ck_assert_int_eq(plan.method, cases[_i].method);
  for (size_t k = 0; k < (sorts ? 2 : sizeof spreads / sizeof spreads[0]);
       k++) {
    const index_case c = {.way = way,
                          .type = cases[_i].type,
                          .index = cases[_i].index,
                          .n = n,
                          .target = target,
                          .how = spreads[k],
                          .know_target = true,
                          .sampled = plan.method == KILN_INDEX_SORT ? SORTED
                                     : spreads[k] == PERMUTED       ? SPREAD_OUT
                                                                    : LOCAL};

    move_once(&c, &state);
  }
  device->info = before;
}
END_TEST

/* Gathers by partition, and scatters by partition and by sorting, directly and
 * in a graph, with a workspace of exactly the requested size and with one from
 * the pool. */
START_TEST(test_graph)
{
  enum { N = 10000 };
  const direction way = _i < 2 ? GATHER : SCATTER;
  uint64_t state = 5, *at = make_places(N, N, PERMUTED, &state);
  uint64_t *x = kept(random_bits(N * 8, &state)), *got;
  test_array in = array_make(KILN_U64, N, 0, x, 0);
  test_array index = array_make(KILN_U64, N, 0, at, 0);
  test_array out = array_make(KILN_U64, N, 1, NULL, 0x5a), room;
  kiln_gather_desc desc = {.x = {.in = {in.array}},
                           .index = index.array,
                           .out = out.array,
                           .n = N,
                           .n_target = N,
                           .method =
                               _i < 4 ? KILN_INDEX_PARTITION : KILN_INDEX_SORT,
                           .passes = 7};
  kiln_workspace w;
  CUgraphExec graph;

  ck_kiln_ok(call_workspace(way, &desc, &w.size));
  ck_assert_uint_gt(w.size, 12 * N);
  room = array_make(KILN_U8, w.size, 0, NULL, 0xcc);
  w.data = room.array.data;
  w.size--;
  ck_kiln_is(call(way, &desc, &w), KILN_EINVAL);
  w.size++;
  capture_begin();
  desc.checked = true;
  ck_kiln_is(call(way, &desc, &w), KILN_ECAPTURE);
  desc.checked = false;
  ck_kiln_ok(call(way, &desc, _i % 2 == 0 ? &w : NULL));
  graph = capture_end();
  for (int round = 0; round < 4; round++) {
    if (round < 3)
      capture_replay(graph);
    else
      ck_kiln_ok(call(way, &desc, &w));
    free(array_read(&room)); /* its guards */
    got = kept(array_read(&out));
    for (size_t i = 0; i < N; i++)
      ck_assert_uint_eq(got[way == GATHER ? i : at[i]],
                        x[way == GATHER ? at[i] : i]);
    ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, N * 8));
  }
  capture_free(graph);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_gather_desc, member, __VA_ARGS__)

/* Gather and scatter descriptors must have the same layout. */
_Static_assert(sizeof(kiln_gather_desc) == sizeof(kiln_scatter_desc) &&
                   offsetof(kiln_gather_desc, code) ==
                       offsetof(kiln_scatter_desc, code),
               "one list of bad members serves both");

static operation_call call_of_ones(operation_index which)
{
  const kiln_array a = array_make(KILN_F32, 100, 0, NULL, 1).array;
  const kiln_array at = array_make(KILN_U32, 100, 0, NULL, 0).array;
  const test_array out = array_make(KILN_F32, 1, 0, NULL, 1);
  const kiln_gather_desc desc = {
      .x = {.in = {a}}, .index = at, .out = out.array, .n = 1};
  operation_call c = call_of(&operations[which], &desc, sizeof desc);

  call_writes(&c, &out, kept(array_read(&out)));
  return c;
}

START_TEST(test_bad_arguments)
{
  const direction way = (direction)_i;
  const operation_call c = call_of_ones(way == GATHER ? OPERATION_kiln_gather
                                                      : OPERATION_kiln_scatter);
  const kiln_gather_desc *good = c.desc;
  const kiln_array a = good->x.in[0], at = good->index;
  const bad_argument bad[] = {
      {KILN_EINVAL, "x: neither an array", {MEMBER_OF(x.in[0], {0})}},
      {KILN_EINVAL, "index has type none", {MEMBER_OF(index, {0})}},
      {KILN_EINVAL,
       "index is not aligned",
       {MEMBER_OF(index, {at.data + 2, KILN_U32})}},
      {KILN_EINVAL,
       "index has type i16",
       {MEMBER_OF(index, {at.data, KILN_I16})}},
      {KILN_EINVAL,
       "indices of type u16 need",
       {MEMBER_OF(index, {at.data, KILN_U16}),
        MEMBER_OF(method, KILN_INDEX_WINDOWS)}},
      {KILN_EINVAL,
       "index has type f32",
       {MEMBER_OF(index, {at.data, KILN_F32})}},
      {KILN_EINVAL, "out has no type", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "out is NULL", {MEMBER_OF(out, {0, KILN_F32})}},
      {KILN_EINVAL, "x and out overlap", {MEMBER_OF(out, a)}},
      {KILN_EINVAL, "index and out overlap", {MEMBER_OF(out, at)}},
      {KILN_EINVAL,
       "more elements than the address space",
       {MEMBER_OF(n, UINT64_MAX / 2)}},
      {KILN_EINVAL, ".checked needs n_target", {MEMBER_OF(checked, true)}},
      {KILN_EINVAL, "method", {MEMBER_OF(method, way == GATHER ? 4 : 5)}},
      {KILN_EINVAL,
       "1025 buckets",
       {MEMBER_OF(method, KILN_INDEX_PARTITION), MEMBER_OF(passes, 1025)}},
      {KILN_ECOMPILE,
       "line 1",
       {MEMBER_OF(x.map, "x +* 1"), MEMBER_OF(method, KILN_INDEX_PARTITION)}},
  };
  const bad_argument bad_gather[] = {
      {KILN_EINVAL,
       "65536 passes",
       {MEMBER_OF(method, KILN_INDEX_WINDOWS), MEMBER_OF(passes, 65536)}},
  };
  const bad_argument bad_scatter[] = {
      {KILN_EINVAL, "a map without arrays", {MEMBER_OF(x, {.map = "i"})}},
      {KILN_EINVAL,
       "x and out overlap",
       {MEMBER_OF(out, {a.data - 40 * 4, KILN_F32}), MEMBER_OF(n_target, 50)}},
      {KILN_EINVAL,
       "needs n_target",
       {MEMBER_OF(index, {at.data, KILN_U64}),
        MEMBER_OF(method, KILN_INDEX_SORT)}},
      {KILN_EINVAL,
       "needs n_target",
       {MEMBER_OF(index, {at.data, KILN_U64}),
        MEMBER_OF(n_target, (UINT64_C(1) << 32) + 1),
        MEMBER_OF(method, KILN_INDEX_SORT)}},
  };

  ck_bad_arguments(c, bad);
  if (way == GATHER)
    ck_bad_arguments(c, bad_gather);
  else
    ck_bad_arguments(c, bad_scatter);
}
END_TEST

#define ROWS_MEMBER(member, ...)                                               \
  MEMBER(kiln_gather_rows_desc, member, __VA_ARGS__)

START_TEST(test_bad_rows)
{
  const kiln_array in = array_make(KILN_F32, 100, 0, NULL, 1).array;
  const kiln_array at = array_make(KILN_U32, 100, 0, NULL, 0).array;
  const test_array out = array_make(KILN_F32, 18, 0, NULL, 1);
  operation_call c =
      CALL_OF(kiln_gather_rows,
              &(kiln_gather_rows_desc){
                  .in = in, .index = at, .out = out.array, .n = 9, .width = 2});
  const bad_argument bad[] = {
      {KILN_EINVAL, "none and f32", {ROWS_MEMBER(in, {0})}},
      {KILN_EINVAL, "f32 and u32", {ROWS_MEMBER(out, at)}},
      {KILN_EINVAL,
       "index has type i8",
       {ROWS_MEMBER(index, {at.data, KILN_I8})}},
      {KILN_EINVAL, "in_stride is below", {ROWS_MEMBER(in_stride, 1)}},
      {KILN_EINVAL, "out_stride is below", {ROWS_MEMBER(out_stride, 1)}},
      {KILN_EINVAL, "in and out overlap", {ROWS_MEMBER(out, in)}},
      {KILN_EINVAL,
       "more elements than the address space",
       {ROWS_MEMBER(width, UINT64_MAX / 4)}},
      {KILN_EINVAL, ".checked needs n_target", {ROWS_MEMBER(checked, true)}},
  };

  call_writes(&c, &out, kept(array_read(&out)));
  ck_bad_arguments(c, bad);
}
END_TEST

START_TEST(test_nothing)
{
  const kiln_array null = {0, KILN_F32}, no_index = {0, KILN_I64};
  const kiln_gather_desc none = {.x = {.in = {null}},
                                 .index = no_index,
                                 .out = null,
                                 .n = 0,
                                 .n_target = 5,
                                 .checked = true};
  const kiln_gather_rows_desc rows = {
      .in = null, .index = no_index, .out = null, .width = 4};
  size_t bytes = 7;

  ck_kiln_ok(kiln_gather(stream, &none, NULL));
  ck_kiln_ok(kiln_gather_workspace(stream, &none, &bytes));
  ck_assert_uint_eq(bytes, 0);
  ck_kiln_ok(kiln_gather_rows(stream, &rows, NULL));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gather");
  TCase *t = device_case(s, "gather"), *brief = brief_case(s);

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES * N_DIRECTIONS);
  tcase_add_loop_test(t, test_narrow, 0, 2 * N_DIRECTIONS);
  tcase_add_loop_test(t, test_methods, 0, N_INDEX_TYPES * N_DIRECTIONS);
  tcase_add_loop_test(t, test_sort, 0, 4);
  tcase_add_loop_test(t, test_sort_makes, 0, 24);
  tcase_add_loop_test(t, test_map, 0, N_DIRECTIONS);
  tcase_add_test(t, test_no_array);
  tcase_add_loop_test(t, test_conversion, 0, N_DIRECTIONS);
  tcase_add_loop_test(brief, test_random_calls, 0, N_DIRECTIONS);
  tcase_add_loop_test(t, test_rows, 0, 2);
  tcase_add_loop_test(t, test_checked, 0, 6 * N_DIRECTIONS);
  tcase_add_loop_test(t, test_sampled, 0, 6);
  tcase_add_loop_test(t, test_graph, 0, 6);
  tcase_add_loop_test(t, test_bad_arguments, 0, N_DIRECTIONS);
  tcase_add_test(t, test_bad_rows);
  tcase_add_test(t, test_nothing);
  return s;
}

DEVICE_TEST_MAIN(suite)
