/* merge_sort_test.c -- kiln_merge_sort for every type, with values that reveal
 * whether it is stable, in the user's order, compared with a stable insertion
 * of runs on the host. */
#include "sorted_values.h"

#include <kiln/merge_sort.h>
#include <kiln/tune.h>

/* ---- Reference ----------------------------------------------------------- */

/* The orders of the tests. Each has a comparison on the host and a text. */
typedef enum order { ASCENDING, DESCENDING, BY_SIZE, BY_LOW_BITS } order;

static const char *const texts[] = {"a < b", "b < a",
                                    "(a < 0 ? -a : a) < (b < 0 ? -b : b)",
                                    "((int)a & mask) < ((int)b & mask)"};

static const int32_t low_bits = 3;

static bool precedes(order by, double a, double b)
{
  switch (by) {
  case ASCENDING:
    return a < b;
  case DESCENDING:
    return b < a;
  case BY_SIZE:
    return fabs(a) < fabs(b);
  default:
    return ((int)a & low_bits) < ((int)b & low_bits);
  }
}

/* Merges sorted runs of the permutation `from` of the values v, stably. */
static void merge_indices(order by, const double *v, const uint32_t *from,
                          size_t middle, size_t n, uint32_t *to)
{
  size_t i = 0, j = middle;

  for (size_t k = 0; k < n; k++) {
    const bool upper =
        i == middle || (j < n && precedes(by, v[from[j]], v[from[i]]));

    to[k] = from[upper ? j : i];
    if (upper)
      j++;
    else
      i++;
  }
}

/* Returns the stable order of n elements: the index of each sorted element.
 * teardown() frees it. */
static uint32_t *sorted_indices(order by, kiln_dtype type, const void *data,
                                size_t n)
{
  uint32_t *from = kept(malloc((n + 1) * sizeof *from));
  uint32_t *to = kept(malloc((n + 1) * sizeof *to));
  double *v = kept(malloc((n + 1) * sizeof *v));

  for (size_t i = 0; i < n; i++) {
    from[i] = (uint32_t)i;
    v[i] = value_at(type, data, i);
  }
  for (size_t run = 1; run < n; run *= 2) {
    uint32_t *const before = from;

    for (size_t i = 0; i < n; i += 2 * run) {
      const size_t all = n - i < 2 * run ? n - i : 2 * run;

      merge_indices(by, v, from + i, all < run ? all : run, all, to + i);
    }
    from = to;
    to = before;
  }
  return from;
}

/* Returns the elements of `data` at the indices. teardown() frees them. */
static void *moved(const void *data, const uint32_t *from, size_t n,
                   size_t width)
{
  unsigned char *out = kept(malloc(n * width + 1));

  for (size_t i = 0; i < n; i++)
    memcpy(out + i * width, (const unsigned char *)data + from[i] * width,
           width);
  return out;
}

/* ---- Calls --------------------------------------------------------------- */

typedef struct shape {
  order by;
  kiln_dtype type, valued; /* KILN_DTYPE_NONE: without values */
  size_t n, shift;
  bool in_place;
} shape;

/* Makes a call whose values are the indices of the keys. */
static operation_call sort_call(shape s, const void *keys)
{
  static const kiln_param params[] = {{"mask", KILN_I32, &low_bits, false}};
  const uint32_t *from = sorted_indices(s.by, s.type, keys, s.n);
  const size_t width = kiln_dtype_size(s.type);
  const test_array in = array_make(s.type, s.n, s.shift, keys, 0);
  const test_array out =
      s.in_place ? in : array_make(s.type, s.n, s.shift / 2, NULL, 0x5a);
  kiln_merge_sort_desc desc = {.keys_in = in.array,
                               .keys_out = out.array,
                               .n = s.n,
                               .less = texts[s.by],
                               .code = {.params = params, .n_params = 1}};
  operation_call c;

  if (s.valued != KILN_DTYPE_NONE) {
    const size_t value_width = kiln_dtype_size(s.valued);
    unsigned char *values = kept(malloc(s.n * value_width + 1));
    test_array values_in, values_out;

    for (size_t i = 0; i < s.n; i++)
      set_whole(s.valued, values, i, (int64_t)i);
    values_in = array_make(s.valued, s.n, 1, values, 0);
    values_out =
        s.in_place ? values_in : array_make(s.valued, s.n, 0, NULL, 0x5a);
    desc.values_in = values_in.array;
    desc.values_out = values_out.array;
    c = CALL_OF(kiln_merge_sort, &desc);
    call_writes(&c, &values_out, moved(values, from, s.n, value_width));
  } else {
    c = CALL_OF(kiln_merge_sort, &desc);
  }
  call_writes(&c, &out, moved(keys, from, s.n, width));
  return c;
}

static operation_call wholes_call(shape s, int64_t few, uint64_t *state)
{
  const int64_t least = type_is_signed(s.type) ? -(few / 2) : 0;

  return sort_call(
      s, kept(random_wholes(s.type, s.n, least, least + few - 1, state)));
}

/* ---- Tests --------------------------------------------------------------- */

static const shape plain = {ASCENDING, KILN_I32, KILN_DTYPE_NONE, 0, 0, false};
static const shape paired = {ASCENDING, KILN_I32, KILN_U32, 0, 0, false};

static shape of_length(shape s, size_t n)
{
  s.n = n;
  s.shift = n % 4;
  return s;
}

/* Selects small tiles, whose passes merge two runs or four. */
static void use_ways(int ways)
{
  static const unsigned sizes[] = {1, 2, 4, 8};
  const kiln_tuning tuning = {
      .block = 256, .items = 5, .extra = ways == 2 ? 1 : 0};

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
    ck_kiln_ok(kiln_tuning_set(device, "merge_sort", sizes[k], 17, &tuning));
}

/* One tile has up to 255 * 5 elements. The lengths are those of parts of a tile,
 * of two, three and four runs, and of several passes. */
static void check_lengths(void)
{
  static const size_t lengths[] = {0,    1,    2,    4,     5,     31,   1274,
                                   1275, 1276, 2550, 2551,  5100,  5101, 6375,
                                   9999, 5103, 3825, 20400, 20401, 33000};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    ck_call(wholes_call(of_length(plain, lengths[k]), 2000000, &state));
    ck_call(wholes_call(of_length(paired, lengths[k]), 3, &state));
  }
}

/* Keys that are sorted, in reverse, equal, or that rise again and again. Runs
 * whose elements all come before or after those of other runs have windows of
 * length 0. */
static void check_patterns(void)
{
  enum { N = 12000 };
  int32_t *keys = kept(malloc(N * sizeof *keys));

  for (int pattern = 0; pattern < 5; pattern++) {
    for (int i = 0; i < N; i++)
      keys[i] = pattern == 0   ? i
                : pattern == 1 ? -i
                : pattern == 2 ? 7
                : pattern == 3 ? i % 1300
                               : (i < N / 2 ? i : N - i);
    ck_call(sort_call(of_length(paired, N), keys));
  }
}

START_TEST(test_keys_and_values)
{
  uint64_t state = 4;
  shape in_place = of_length(paired, 14000);

  use_ways(_i);
  check_lengths();
  check_patterns();
  ck_assert_uint_gt(
      ck_workspace(wholes_call(of_length(paired, 9000), 100, &state)),
      9000 * 8);
  ck_assert_uint_eq(
      ck_workspace(wholes_call(of_length(paired, 1000), 100, &state)), 0);
  ck_capture(wholes_call(of_length(paired, 6000), 100, &state));
  in_place.in_place = true;
  ck_call(wholes_call(in_place, 100, &state));
  in_place.n = 6000; /* the number of passes is odd */
  ck_call(wholes_call(in_place, 100, &state));
}
END_TEST

/* The default run has one type of each size; a thorough run has all of them. */
START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  const kiln_dtype valued = all_types[N_ALL_TYPES - 1 - _i];
  uint64_t state = 3 + (uint64_t)_i;

  if (getenv("KILN_TEST_THOROUGH") == NULL && type != KILN_U8 &&
      type != KILN_F16 && type != KILN_F64)
    return;
  use_ways(type == KILN_U8 ? 4 : 2);
  ck_call(wholes_call((shape){DESCENDING, type,
                              type == KILN_F16 ? KILN_DTYPE_NONE : valued, 7001,
                              (size_t)_i, type == KILN_U8},
                      100, &state));
}
END_TEST

START_TEST(test_orders)
{
  static const float special[] = {1,        -0.0f,     0,        -1,
                                  INFINITY, -INFINITY, 0x1p-149f};
  enum { N = 9000 };
  float *keys = kept(malloc(N * sizeof *keys));
  uint64_t state = 8;

  for (size_t i = 0; i < N; i++)
    keys[i] = special[test_random(&state) % 7];
  ck_call(sort_call((shape){BY_SIZE, KILN_F32, KILN_DTYPE_NONE, N, 1, false},
                    keys));
  ck_call(wholes_call((shape){BY_LOW_BITS, KILN_I32, KILN_U32, N, 0, true}, 100,
                      &state));
}
END_TEST

/* An order that contradicts itself gives elements of the input. The outputs lie
 * between guard zones. */
START_TEST(test_no_order)
{
  enum { N = 20000 };
  uint64_t state = 5;
  operation_call c = wholes_call(of_length(paired, N), 1000, &state);
  kiln_merge_sort_desc desc = *(kiln_merge_sort_desc *)c.desc;
  const uint32_t *values;

  use_ways(_i);
  desc.less = "(a * 40503 + b * 9973 & 64) != 0";
  ck_kiln_ok(kiln_merge_sort(stream, &desc, NULL));
  free(array_read(&c.result[1].array));
  values = kept(array_read(&c.result[0].array));
  for (size_t i = 0; i < N; i++)
    ck_assert_uint_lt(values[i], N);
}
END_TEST

/* ---- Structs -------------------------------------------------------------- */

/* Structs whose order depends on one byte. Wide keys stay in shared memory while
 * their places move. */
static const struct {
  size_t size, align;
} structs[] = {{16, 4}, {3, 1}, {64, 16}, {1, 1},  {2, 2},  {4, 4},
               {6, 2},  {8, 8}, {12, 4},  {24, 8}, {36, 4}, {16, 16}};

enum { N_STRUCTS = sizeof structs / sizeof structs[0], DEFAULT_STRUCTS = 3 };

/* Sorts n structs by their first byte. The values are structs, too. */
static operation_call structs_call(size_t k, size_t n, bool pairs)
{
  static const char text[] =
      "template <unsigned n, unsigned m> struct alignas(m) bytes {\n"
      "  unsigned char key, rest[n - 1];\n};\n"
      "template <> struct bytes<1, 1> { unsigned char key; };\n"
      "typedef bytes<%zu, %zu> one;\n";
  const size_t size = structs[k].size;
  const kiln_dtype type = KILN_STRUCT(size, structs[k].align);
  const kiln_dtype valued = KILN_STRUCT_OF(1, 12, 4);
  uint64_t state = k + 1;
  unsigned char *keys = kept(random_bits(n * size, &state));
  unsigned char *values = kept(random_bits(n * 12, &state));
  unsigned char *first = kept(malloc(n + 1));
  kiln_param *params = kept(calloc(1, sizeof *params));
  char *preamble = kept(malloc(sizeof text + 20));
  const test_array in = array_make(type, n, 1, keys, 0);
  const test_array out = array_make(type, n, 0, NULL, 0x5a);
  const test_array values_in = array_make(valued, n, 0, values, 0);
  const test_array values_out = array_make(valued, n, 1, NULL, 0x5a);
  kiln_merge_sort_desc desc = {.keys_in = in.array,
                               .keys_out = out.array,
                               .n = n,
                               .less = "a.key < b.key"};
  const uint32_t *from;
  operation_call c;

  for (size_t i = 0; i < n; i++)
    first[i] = keys[i * size];
  from = sorted_indices(ASCENDING, KILN_U8, first, n);
  snprintf(preamble, sizeof text + 20, text, size, structs[k].align);
  *params = (kiln_param){.name = "one", .type = type};
  desc.code =
      (kiln_code){.preamble = preamble, .params = params, .n_params = 1};
  if (pairs) {
    desc.values_in = values_in.array;
    desc.values_out = values_out.array;
  }
  c = CALL_OF(kiln_merge_sort, &desc);
  call_writes(&c, &out, moved(keys, from, n, size));
  if (pairs)
    call_writes(&c, &values_out, moved(values, from, n, 12));
  return c;
}

START_TEST(test_structs)
{
  if (_i >= DEFAULT_STRUCTS && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  ck_call(structs_call((size_t)_i, 1200, _i == 1));
  ck_call(structs_call((size_t)_i, 9001, _i == 1));
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  shape s = of_length(test_random(state) % 2 ? plain : paired,
                      test_random(state) % 9000);

  (void)k;
  s.in_place = test_random(state) % 2 != 0;
  s.type = test_random(state) % 2 ? KILN_I32 : KILN_F32;
  return wholes_call(s, 1 + (int64_t)(test_random(state) % 120), state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 80, 71);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_merge_sort_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const operation_call c = wholes_call(of_length(plain, 9), 50, &state);
  const kiln_merge_sort_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "less is NULL", {MEMBER_OF(less, NULL)}},
      {KILN_EINVAL, "keys_out", {MEMBER_OF(keys_out, {0})}},
      {KILN_EINVAL,
       "differ",
       {MEMBER_OF(keys_out, {good->keys_out.data, KILN_F32})}},
      {KILN_EINVAL, "keys_in is NULL", {MEMBER_OF(keys_in, {0, KILN_I32})}},
      {KILN_EINVAL, "values_out", {MEMBER_OF(values_in, good->keys_in)}},
      {KILN_EINVAL,
       "overlap",
       {MEMBER_OF(values_in, good->keys_in),
        MEMBER_OF(values_out, good->keys_in)}},
      {KILN_ECOMPILE,
       "the comparison does not compile",
       {MEMBER_OF(less, "a < q")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("merge_sort");
  TCase *t = device_case(s, "merge_sort");

  for (int ways = 2; ways <= 4; ways += 2) {
    tcase_add_loop_test(t, test_keys_and_values, ways, ways + 1);
    tcase_add_loop_test(t, test_no_order, ways, ways + 1);
  }
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_orders);
  tcase_add_loop_test(t, test_structs, 0, N_STRUCTS);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
