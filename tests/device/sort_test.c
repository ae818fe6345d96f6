/* sort_test.c -- kiln_sort and kiln_argsort compared with a stable sort on the
 * host: every type, order, range of bits and kind of input; in place,
 * misaligned, and with values; tiles, passes and portions of any size; invalid
 * arguments. */
#include "ops/sort/sort.h"

#include "operation_checks.h"

/* ---- A reference that compares values ------------------------------------ */

typedef struct order {
  kiln_dtype type;
  bool descending;
  /* if both are 0, whole keys are compared by value */
  unsigned begin_bit, end_bit;
} order;

static uint64_t bits_at(kiln_dtype type, const void *data, size_t i)
{
  const size_t size = kiln_dtype_size(type);
  uint64_t v = 0;

  memcpy(&v, (const unsigned char *)data + i * size, size);
  return v;
}

/* Returns -1, 0 or 1. Integers are compared exactly, floats by value and zeros
 * by sign. NaNs come last. */
static int compare_values(kiln_dtype type, const void *data, size_t a, size_t b)
{
  const uint64_t x = bits_at(type, data, a), y = bits_at(type, data, b);
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  double f, g;

  if (!type_is_float(type)) {
    const uint64_t sign =
        type_is_signed(type) ? UINT64_C(1) << (bits - 1) : UINT64_C(0);

    return ((x ^ sign) > (y ^ sign)) - ((x ^ sign) < (y ^ sign));
  }
  f = value_at(type, data, a);
  g = value_at(type, data, b);
  if (isnan(f) || isnan(g)) {
    if (!isnan(f) || !isnan(g))
      return isnan(f) - isnan(g);
    /* Positive NaNs come first, in the order of their payloads. Negative ones
     * follow, with the largest payload first. */
    if (x >> (bits - 1) != y >> (bits - 1))
      return x >> (bits - 1) ? 1 : -1;
    return x >> (bits - 1) ? (x < y) - (x > y) : (x > y) - (x < y);
  }
  if (f < g || f > g)
    return f < g ? -1 : 1;
  return (signbit(g) != 0) - (signbit(f) != 0);
}

/* Returns an unsigned integer that sorts like the key. Ranges of bits are taken
 * from it. */
static uint64_t ordered_bits(kiln_dtype type, uint64_t x)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  const uint64_t sign = UINT64_C(1) << (bits - 1);
  const uint64_t ones = ~UINT64_C(0) >> (64 - bits);

  if (type_is_float(type))
    return x & sign ? ~x & ones : x | sign;
  return type_is_signed(type) ? x ^ sign : x;
}

static int compare(const order *o, const void *data, size_t a, size_t b)
{
  int c;

  if (o->end_bit == 0) {
    c = compare_values(o->type, data, a, b);
  } else {
    const unsigned width = o->end_bit - o->begin_bit;
    const uint64_t mask = ~UINT64_C(0) >> (64 - width);
    const uint64_t x =
        ordered_bits(o->type, bits_at(o->type, data, a)) >> o->begin_bit & mask;
    const uint64_t y =
        ordered_bits(o->type, bits_at(o->type, data, b)) >> o->begin_bit & mask;

    c = (x > y) - (x < y);
  }
  return o->descending ? -c : c;
}

/* Sorts indices by a stable bottom-up merge sort. */
static size_t *reference(const order *o, const void *data, size_t n)
{
  size_t *from = kept(malloc((n + 1) * sizeof *from));
  size_t *to = kept(malloc((n + 1) * sizeof *to));

  for (size_t i = 0; i < n; i++)
    from[i] = i;
  for (size_t width = 1; width < n; width *= 2) {
    size_t *swap;

    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = begin + width < n ? begin + width : n;
      const size_t end = begin + 2 * width < n ? begin + 2 * width : n;
      size_t a = begin, b = middle;

      for (size_t k = begin; k < end; k++)
        to[k] =
            b == end || (a < middle && compare(o, data, from[a], from[b]) <= 0)
                ? from[a++]
                : from[b++];
    }
    swap = from;
    from = to;
    to = swap;
  }
  return from;
}

/* ---- Inputs -------------------------------------------------------------- */

typedef enum input_kind {
  RANDOM,
  CONSTANT,
  SORTED,
  REVERSED,
  FEW,
  LOW_BYTE,  /* only the lowest digit differs */
  SPECIAL,   /* zeros, infinities, NaNs, denormals, extremes */
  BLOCKWISE, /* long runs of equal digits, which make the look-back wait */
  N_KINDS
} input_kind;

static uint64_t special_bits(kiln_dtype type, uint64_t r)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  const uint64_t sign = UINT64_C(1) << (bits - 1);
  const unsigned fraction = type == KILN_F16    ? 10
                            : type == KILN_BF16 ? 7
                            : type == KILN_F32  ? 23
                                                : 52;
  const uint64_t infinity = (sign - 1) >> fraction << fraction;
  const uint64_t list[] = {0,
                           1,
                           sign - 1,
                           infinity,
                           infinity + 1,
                           infinity - 1,
                           2,
                           (infinity | 1) + (r >> 8 & 3)};

  return list[r % 8] | (r >> 16 & 1 ? sign : 0);
}

static uint64_t element(kiln_dtype type, input_kind kind, size_t i, size_t n,
                        uint64_t r)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  const uint64_t step =
      n > 1 ? (~UINT64_C(0) >> (64 - bits)) / (n - 1) : UINT64_C(0);

  switch (kind) {
  case CONSTANT:
    return 0x4145434748454342u;
  case SORTED:
    return i * (step > 0 ? step : 1);
  case REVERSED:
    return (n - i) * (step > 0 ? step : 1);
  case FEW:
    return (r % 5) * 0x0123456789abcdefu;
  case LOW_BYTE:
    return 0x4145434748454300u | (r & 255);
  case SPECIAL:
    return special_bits(type, r);
  case BLOCKWISE:
    return (i / 700 * 37 % 256) * 0x0101010101010101u;
  default:
    return r;
  }
}

/* */
static void *make_keys(kiln_dtype type, input_kind kind, size_t n,
                       uint64_t *state)
{
  const size_t size = kiln_dtype_size(type);
  unsigned char *data = kept(malloc(n * size + 8));

  for (size_t i = 0; i < n; i++) {
    const uint64_t v = element(type, kind, i, n, test_random(state));

    memcpy(data + i * size, &v, size);
  }
  return data;
}

/* Gives all keys the same byte k if bit k of the mask is set. */
static void hold_digits(void *keys, kiln_dtype type, size_t n, unsigned mask)
{
  const size_t size = kiln_dtype_size(type);
  unsigned char *byte = keys;

  for (size_t i = 0; i < n * size; i++)
    if (mask >> (i % size) & 1)
      byte[i] = 0x41;
}

/* ---- The check of one sort ----------------------------------------------- */

typedef struct test_case {
  kiln_dtype key, value; /* KILN_DTYPE_NONE as the value means keys alone */
  input_kind kind;
  size_t n, shift;
  bool descending, keys_in_place, values_in_place;
  unsigned begin_bit, end_bit;
  kiln__tuning tuning; /* a block size of 0 leaves the choice to the library */
  uint64_t small, portion;
  unsigned constant_digits; /* bit k is set if all keys share byte k */
} test_case;

static const char *describe(const test_case *c)
{
  static char text[256];

  snprintf(text, sizeof text,
           "%s with %s, input %d, n %zu + %zu, %s, in place %d %d, bits %u to "
           "%u, %u x %u, portion %u, constant digits %#x",
           kiln_dtype_name(c->key), kiln_dtype_name(c->value), (int)c->kind,
           c->n, c->shift, c->descending ? "descending" : "ascending",
           c->keys_in_place, c->values_in_place, c->begin_bit, c->end_bit,
           c->tuning.block, c->tuning.items, (unsigned)c->portion,
           c->constant_digits);
  return text;
}

static order order_of(const test_case *c)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(c->key);
  order o = {c->key, c->descending, c->begin_bit, c->end_bit};

  if (o.begin_bit == 0 && o.end_bit == bits)
    o.end_bit = 0;
  if (o.begin_bit != 0 && o.end_bit == 0)
    o.end_bit = bits;
  return o;
}

/* Queues a sort with the tile sizes that the test has chosen. */
static void queue_sort(const test_case *c, const kiln_sort_desc *d)
{
  const unsigned key = (unsigned)kiln_dtype_size(c->key);
  const bool values_in_place =
      c->value == KILN_DTYPE_NONE || d->values_in.data == d->values_out.data;
  kiln__sort_call call = {
      .shape = {.n = d->n,
                .key_size = key,
                .value_size = (unsigned)kiln_dtype_size(c->value),
                .begin_bit = d->begin_bit,
                .end_bit = d->end_bit != 0 ? d->end_bit : 8 * key,
                .in_place = c->keys_in_place || c->values_in_place},
      .is_float = type_is_float(c->key),
      .nothing_in_place =
          d->keys_in.data == d->keys_out.data && values_in_place,
      .in = d->keys_in.data,
      .out = d->keys_out.data,
      .values_in = d->values_in.data,
      .values_out = d->values_out.data};
  kiln__sort_facts facts;

  call.order =
      kiln__sort_order_of(c->key, c->descending,
                          d->begin_bit == 0 && call.shape.end_bit == 8 * key);
  facts = kiln__sort_facts_of(device, &call.shape);
  facts.tuning = c->tuning;
  facts.small = c->small;
  facts.portion = c->portion;
  ck_kiln_ok(kiln__sort_run(stream, &call, NULL, &facts));
}

/* Makes a call whose inputs must not change, unless it sorts in place. */
static operation_call sort_call(const test_case *c, uint64_t *state)
{
  const bool pairs = c->value != KILN_DTYPE_NONE;
  const order o = order_of(c);
  void *keys = make_keys(c->key, c->kind, c->n, state);
  void *values = pairs ? make_keys(c->value, RANDOM, c->n, state) : NULL;
  test_array in, out = array_make(c->key, c->n, c->shift / 2, NULL, 0x5a);
  test_array v_in, v_out;
  kiln_sort_desc d = {.n = c->n,
                      .descending = c->descending,
                      .begin_bit = c->begin_bit,
                      .end_bit = c->end_bit};
  const size_t *from;
  operation_call call;

  hold_digits(keys, c->key, c->n, c->constant_digits);
  from = reference(&o, keys, c->n);
  in = array_make(c->key, c->n, c->shift, keys, 0);
  out = c->keys_in_place ? in : out;
  d.keys_in = in.array;
  d.keys_out = out.array;
  if (pairs) {
    v_in = array_make(c->value, c->n, c->shift, values, 0);
    v_out =
        c->values_in_place ? v_in : array_make(c->value, c->n, 0, NULL, 0x3c);
    d.values_in = v_in.array;
    d.values_out = v_out.array;
  }
  call = CALL_OF(kiln_sort, &d);
  call.what = describe(c);
  call_writes(&call, &out, gathered(&out, keys, from, 0, c->n));
  if (!c->keys_in_place)
    call_writes(&call, &in, keys);
  if (pairs)
    call_writes(&call, &v_out, gathered(&v_out, values, from, 0, c->n));
  return call;
}

/* Runs a case with the library's choice of tiles, or with the test's choice
 * through an internal function that all sorts use. */
static void check_sort(const test_case *c, uint64_t *state)
{
  const size_t mark = n_kept;
  const operation_call call = sort_call(c, state);

  if (c->tuning.block == 0) {
    ck_call(call);
  } else {
    queue_sort(c, call.desc);
    ck_results(&call);
  }
  release(mark);
}

/* ---- Tests --------------------------------------------------------------- */

static const kiln__tuning small_tiles = {256, 3, 0, 2};

START_TEST(test_types)
{
  static const size_t lengths[] = {0,   1,   31,   32,   33,   767,
                                   768, 769, 2048, 2049, 10007};
  const kiln_dtype type = all_types[_i];
  uint64_t state = 11 + (uint64_t)_i;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const test_case one = {.key = type,
                           .kind = k % 3 == 2 ? SPECIAL : RANDOM,
                           .n = lengths[k],
                           .shift = k % 3,
                           .descending = k % 2 != 0};
    test_case passes = one;

    check_sort(&one, &state);
    passes.tuning = small_tiles;
    passes.small = 1;
    passes.value = all_types[(k + (size_t)_i) % N_ALL_TYPES];
    check_sort(&passes, &state);
  }
}
END_TEST

START_TEST(test_inputs)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_I16, KILN_U32, KILN_F32,
                                     KILN_F64};
  uint64_t state = 5;

  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
    test_case c = {.key = types[k],
                   .kind = (input_kind)_i,
                   .n = 5003,
                   .value = k % 2 ? KILN_U32 : KILN_DTYPE_NONE,
                   .descending = k % 3 == 1};

    check_sort(&c, &state);
    c.tuning = small_tiles;
    c.small = 1;
    check_sort(&c, &state);
    c.keys_in_place = c.values_in_place = true;
    check_sort(&c, &state);
  }
}
END_TEST

/* Passes are skipped if all keys share the digit. Whatever passes remain, in
 * place or not, the result must be in the output array. */
START_TEST(test_in_place)
{
  static const unsigned ends[] = {8, 16, 20, 32};
  uint64_t state = 17;

  for (int places = 0; places < 4; places++)
    for (size_t e = 0; e < 4; e++)
      for (int kind = 0; kind < 3; kind++) {
        static const input_kind kinds[] = {RANDOM, CONSTANT, LOW_BYTE};
        const test_case c = {.key = KILN_U32,
                             .value = KILN_U16,
                             .kind = kinds[kind],
                             .n = 3001,
                             .end_bit = ends[e],
                             .keys_in_place = places % 2 != 0,
                             .values_in_place = places / 2 != 0,
                             .tuning = small_tiles,
                             .small = 1};

        check_sort(&c, &state);
      }
}
END_TEST

START_TEST(test_bits)
{
  static const unsigned range[][2] = {{0, 1},   {0, 7},  {3, 12}, {8, 24},
                                      {31, 32}, {5, 32}, {0, 16}};
  static const kiln_dtype types[] = {KILN_U32, KILN_I32, KILN_F32, KILN_U64};
  uint64_t state = 23;

  for (size_t k = 0; k < sizeof range / sizeof range[0]; k++)
    for (size_t t = 0; t < 4; t++) {
      test_case c = {.key = types[t],
                     .value = KILN_U32,
                     .kind = RANDOM,
                     .n = 2500,
                     .descending = (k + t) % 2 != 0,
                     .begin_bit = range[k][0],
                     .end_bit = range[k][1]};

      check_sort(&c, &state); /* with several tiles, or in one block */
      c.tuning = small_tiles;
      c.small = 1;
      check_sort(&c, &state);
    }
}
END_TEST

/* Runs every tuning in the library's table with several tiles, and in
 * portions. */
START_TEST(test_tiles)
{
  static const struct {
    kiln__tuning t;
    kiln_dtype key, value;
  } list[] = {{{384, 16, 0, 4}, KILN_U32, 0},
              {{256, 12, 0, 4}, KILN_F64, 0},
              {{256, 8, 0, 16}, KILN_I16, 0},
              {{512, 20, 2, 4}, KILN_F32, 0},
              {{384, 12, 0, 8}, KILN_U8, 0},
              {{512, 16, 2, 4}, KILN_U32, KILN_U32},
              {{384, 10, 2, 4}, KILN_U64, KILN_I64},
              {{512, 10, 2, 1}, KILN_I64, 0}};
  uint64_t state = 31;
  test_case c = {.key = list[_i].key,
                 .value = list[_i].value,
                 .tuning = list[_i].t,
                 .small = 1};
  const size_t tile = (size_t)c.tuning.block * c.tuning.items;
  const size_t lengths[] = {tile - 1, tile, tile + 1, 3 * tile + 17};

  for (size_t k = 0; k < 4; k++) {
    c.n = lengths[k];
    check_sort(&c, &state);
  }
  c.portion = tile + 5; /* every launch now sorts a single tile */
  c.keys_in_place = true;
  check_sort(&c, &state);
}
END_TEST

START_TEST(test_portions)
{
  uint64_t state = 37;

  for (int kind = 0; kind < N_KINDS; kind++) {
    const test_case c = {.key = KILN_U16,
                         .value = KILN_U32,
                         .kind = (input_kind)kind,
                         .n = 12345,
                         .keys_in_place = kind % 2 != 0,
                         .tuning = small_tiles,
                         .small = 1,
                         .portion = 2000};

    check_sort(&c, &state);
  }
}
END_TEST

/* If blocks run in the order of their index, the look-back finds the prefix of
 * the tile before at once. In any other order it meets tiles that have
 * published their own counts only, or nothing; it must then add counts or poll
 * again. */
START_TEST(test_look_back)
{
  static const uint16_t windows[] = {1, 2, 4, 16};
  uint64_t state = 61;

  for (uint64_t seed = 1; seed <= 3; seed++) {
    test_case c = {.key = KILN_U16,
                   .value = KILN_U32,
                   .kind = seed == 2 ? BLOCKWISE : RANDOM,
                   .n = 6 * 768 - 5,
                   .tuning = small_tiles,
                   .small = 1};

    if (on_cpu()) {
      kiln_cpu_opts cpu;

      ck_kiln_ok(kiln_cpu_parse(&cpu, test_cpu));
      cpu.seed = seed;
      ck_kiln_ok(kiln_cpu_configure(&cpu));
    }
    c.tuning.extra = windows[_i];
    check_sort(&c, &state);
  }
}
END_TEST

START_TEST(test_large)
{
  uint64_t state = 41;
  /* With a seed the CPU device starts blocks in random order. All blocks must
   * then be resident, so the array is shorter. */
  const bool any_order = on_cpu() && strstr(test_cpu, "seed") != NULL;
  const test_case c = {
      .key = KILN_U32, .value = KILN_U32, .n = any_order ? 50003 : 100003};
  const test_case d = {
      .key = KILN_F32, .n = any_order ? 60007 : 300007, .end_bit = 16};

  check_sort(&c, &state);
  check_sort(&d, &state);
}
END_TEST

/* ---- Argsort ------------------------------------------------------------- */

static operation_call argsort_call(kiln_dtype key, kiln_dtype index,
                                   input_kind kind, size_t n, bool descending,
                                   unsigned end_bit, uint64_t *state)
{
  const order o = {key, descending, 0, end_bit};
  void *keys = make_keys(key, kind, n, state);
  test_array in = array_make(key, n, 1, keys, 0);
  test_array out = array_make(index, n, 1, NULL, 0x77);
  const size_t *from = reference(&o, keys, n);
  void *want = kept(malloc(8 * n + 1));
  operation_call c =
      CALL_OF(kiln_argsort, &(kiln_argsort_desc){.keys = in.array,
                                                 .indices = out.array,
                                                 .n = n,
                                                 .descending = descending,
                                                 .end_bit = end_bit});

  for (size_t i = 0; i < n; i++)
    set_whole(index, want, i, (int64_t)from[i]);
  call_writes(&c, &out, want);
  call_writes(&c, &in, keys); /* argsort must not change its input */
  return c;
}

START_TEST(test_argsort)
{
  static const kiln_dtype types[] = {KILN_F32, KILN_U8, KILN_I16, KILN_F64};
  static const kiln_dtype indices[] = {KILN_U32, KILN_I32, KILN_I64, KILN_U64};
  static const input_kind kinds[] = {RANDOM, CONSTANT, LOW_BYTE, SPECIAL};
  uint64_t state = 43;

  for (size_t k = 0; k < 4; k++)
    for (size_t t = 0; t < 4; t++) {
      ck_call(argsort_call(types[t], indices[k], kinds[(k + t) % 4], 1000 + k,
                           k % 2, 0, &state));
      ck_call(argsort_call(types[t], indices[k], kinds[(k + t) % 4], 9001 + k,
                           k % 2, 0, &state));
    }
  ck_call(argsort_call(KILN_U32, KILN_U32, RANDOM, 9000, false, 24, &state));
  ck_call(argsort_call(KILN_U32, KILN_U32, RANDOM, 9000, true, 8, &state));
}
END_TEST

/* A pass is skipped if all keys share its digit. The test does this with every
 * digit and every pair of digits, so that skipping the wrong pass cannot give a
 * sorted result. */
START_TEST(test_constant_digits)
{
  static const kiln_dtype keys[] = {KILN_U32, KILN_I64};
  const kiln_dtype key = keys[_i % 2];
  const unsigned digits = (unsigned)kiln_dtype_size(key);
  uint64_t state = 67 + (uint64_t)_i;
  unsigned turn = (unsigned)_i;

  for (unsigned a = 0; a < digits; a++)
    for (unsigned b = a; b < digits; b++, turn++) {
      const test_case c = {.key = key,
                           .value = turn % 2 ? KILN_U32 : KILN_DTYPE_NONE,
                           .n = 2500 + turn,
                           .descending = turn / 2 % 2 != 0,
                           .keys_in_place = turn % 3 == 0,
                           .tuning = small_tiles,
                           .small = 1,
                           .constant_digits = 1u << a | 1u << b};

      check_sort(&c, &state);
    }
}
END_TEST

/* ---- Calls --------------------------------------------------------------- */

START_TEST(test_random_calls)
{
  const unsigned long calls = random_calls(150);
  uint64_t state = 47;

  for (unsigned long k = 0; k < calls; k++) {
    static const kiln_dtype keys[] = {KILN_U32, KILN_F32, KILN_I16, KILN_F64};
    const unsigned r = (unsigned)test_random(&state);
    const kiln_dtype key = keys[r % 4];
    const unsigned bits = 8u * (unsigned)kiln_dtype_size(key);
    const unsigned begin = r >> 8 & 1 ? r >> 9 & 7 : 0;
    const test_case c = {
        .key = key,
        .value =
            r >> 2 & 1 ? (r >> 3 & 1 ? KILN_U8 : KILN_U32) : KILN_DTYPE_NONE,
        .kind = (input_kind)((r >> 4) % N_KINDS),
        .n = (size_t)(test_random(&state) % (r >> 7 & 1 ? 6000 : 2000)),
        .shift = r >> 12 & 3,
        .descending = r >> 14 & 1,
        .keys_in_place = r >> 15 & 1,
        .values_in_place = (r >> 16 & 1) && (r >> 2 & 1),
        .begin_bit = begin,
        .end_bit = r >> 17 & 1 ? begin + 1 + (r >> 18) % (bits - begin) : 0,
        .tuning = r >> 7 & 1 ? small_tiles : (kiln__tuning){0, 0, 0, 0},
        .small = 1,
        .portion = r >> 24 & 1 ? 1600 : 0};

    check_sort(&c, &state);
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 53;
  const test_case in_place = {
      .key = KILN_U32, .n = 20000, .keys_in_place = true};
  const test_case apart = {.key = KILN_I32, .n = 9001};
  const size_t bytes = ck_workspace(sort_call(&in_place, &state));

  ck_assert_uint_ge(bytes, 4 * in_place.n);
  ck_assert_uint_lt(bytes, 1 << 20);
  ck_capture(sort_call(&apart, &state));
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_sort_desc, member, __VA_ARGS__)
#define ARGSORT_MEMBER(member, ...)                                            \
  MEMBER(kiln_argsort_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 91;
  const test_case small = {.key = KILN_U32, .n = 100};
  const operation_call c = sort_call(&small, &state);
  const operation_call indices =
      argsort_call(KILN_U32, KILN_U32, RANDOM, 100, false, 0, &state);
  const kiln_sort_desc *desc = c.desc;
  const kiln_argsort_desc *indices_desc = indices.desc;
  const kiln_array in = desc->keys_in, out = desc->keys_out;
  const bad_argument bad[] = {
      {KILN_EINVAL, "keys_out", {MEMBER_OF(keys_out, {0})}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(keys_out.data, in.data + 4)}},
      {KILN_EINVAL, "differ in type", {MEMBER_OF(keys_out.type, KILN_I32)}},
      {KILN_EINVAL, "keys_in is not aligned", {MEMBER_OF(keys_in.data, 2)}},
      {KILN_EINVAL, "keys_in is NULL", {MEMBER_OF(keys_in.data, 0)}},
      {KILN_EINVAL, "address space", {MEMBER_OF(n, UINT64_MAX / 2)}},
      {KILN_EINVAL, "no bits", {MEMBER_OF(begin_bit, 32)}},
      {KILN_EINVAL,
       "no bits",
       {MEMBER_OF(begin_bit, 8), MEMBER_OF(end_bit, 8)}},
      {KILN_EINVAL, "end_bit is 33", {MEMBER_OF(end_bit, 33)}},
      {KILN_EINVAL,
       "values_out",
       {MEMBER_OF(keys_out, in), MEMBER_OF(values_in, out)}},
      {KILN_EINVAL,
       "overlap",
       {MEMBER_OF(keys_out, in), MEMBER_OF(values_in, out),
        MEMBER_OF(values_out, in)}},
      {KILN_EINVAL,
       "overlap",
       {MEMBER_OF(values_in, out), MEMBER_OF(values_out, out)}},
  };
  const bad_argument bad_indices[] = {
      {KILN_EINVAL, "overlap", {ARGSORT_MEMBER(indices, indices_desc->keys)}},
      {KILN_EINVAL, "type f32", {ARGSORT_MEMBER(indices.type, KILN_F32)}},
      {KILN_EINVAL, "cannot count n", {ARGSORT_MEMBER(n, UINT64_C(1) << 33)}},
      {KILN_EINVAL, "end_bit is 40", {ARGSORT_MEMBER(end_bit, 40)}},
  };

  ck_bad_arguments(c, bad);
  ck_bad_arguments(indices, bad_indices);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("sort");
  TCase *t = device_case(s, "sort");

  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_inputs, 0, N_KINDS);
  tcase_add_test(t, test_in_place);
  tcase_add_test(t, test_bits);
  tcase_add_loop_test(t, test_tiles, 0, 8);
  tcase_add_test(t, test_portions);
  tcase_add_loop_test(t, test_look_back, 0, 4);
  tcase_add_test(t, test_large);
  tcase_add_test(t, test_argsort);
  tcase_add_loop_test(t, test_constant_digits, 0, 4);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
