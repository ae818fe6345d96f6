/* sets_test.c -- kiln_set_operation for every kind and type, any two lengths and
 * numbers of equal elements, compared with the definition on the host. */
#include "sorted_values.h"

#include <kiln/sets.h>

/* ---- Reference ----------------------------------------------------------- */

/* An element of the result: index i of a, or n_a + j for element j of b. */
typedef struct reference {
  uint32_t *from;
  size_t n;
} reference;

static bool precedes(bool down, double a, double b)
{
  return down ? comes_before(b, a) : comes_before(a, b);
}

/* Returns how many elements from first on equal element `first`. */
static size_t run_of(bool down, const double *v, size_t first, size_t n)
{
  size_t end = first;

  while (end < n && !precedes(down, v[first], v[end]))
    end++;
  return end - first;
}

/* Adds the elements that the kind takes of a value that occurs m times in a, from
 * index i on, and n times in b, from index j on. */
static void take(reference *r, kiln_set_kind kind, size_t i, size_t m, size_t j,
                 size_t n)
{
  const size_t both = m < n ? m : n;
  const size_t a_begin =
      kind == KILN_SET_UNION || kind == KILN_SET_INTERSECTION ? 0 : both;
  const size_t a_end = kind == KILN_SET_INTERSECTION ? both : m;
  const bool b_too =
      kind == KILN_SET_UNION || kind == KILN_SET_SYMMETRIC_DIFFERENCE;

  for (size_t k = a_begin; k < a_end; k++)
    r->from[r->n++] = (uint32_t)(i + k);
  for (size_t k = both; b_too && k < n; k++)
    r->from[r->n++] = (uint32_t)(j + k);
}

static reference make_reference(kiln_set_kind kind, bool down, const double *a,
                                size_t n_a, const double *b, size_t n_b)
{
  reference r = {kept(malloc((n_a + n_b + 1) * sizeof *r.from)), 0};
  size_t i = 0, j = 0;

  while (i < n_a || j < n_b) {
    const bool a_too = i < n_a && (j == n_b || !precedes(down, b[j], a[i]));
    const bool b_too = j < n_b && (i == n_a || !precedes(down, a[i], b[j]));
    const size_t m = a_too ? run_of(down, a, i, n_a) : 0;
    const size_t n = b_too ? run_of(down, b, j, n_b) : 0;

    take(&r, kind, i, m, n_a + j, n);
    i += m;
    j += n;
  }
  return r;
}

/* ---- Calls --------------------------------------------------------------- */

typedef struct shape {
  kiln_set_kind kind;
  kiln_dtype type, count;
  bool down;
  size_t shift;
} shape;

static size_t capacity(kiln_set_kind kind, size_t n_a, size_t n_b)
{
  return kind == KILN_SET_INTERSECTION ? (n_a < n_b ? n_a : n_b)
         : kind == KILN_SET_DIFFERENCE ? n_a
                                       : n_a + n_b;
}

/* Makes a call on the sorted values. Elements behind the results must keep their
 * contents. */
static operation_call set_call(shape s, const double *a, size_t n_a,
                               const double *b, size_t n_b)
{
  const size_t width = kiln_dtype_size(s.type);
  const unsigned char *in_a = as_elements(s.type, a, n_a);
  const unsigned char *in_b = as_elements(s.type, b, n_b);
  const reference r = make_reference(s.kind, s.down, a, n_a, b, n_b);
  const test_array array_a = array_make(s.type, n_a, s.shift, in_a, 0);
  const test_array array_b = array_make(s.type, n_b, s.shift / 2, in_b, 0);
  const test_array out =
      array_make(s.type, capacity(s.kind, n_a, n_b), s.shift % 3, NULL, 0x5a);
  const test_array count = array_make(s.count, 1, 0, NULL, 0x5a);
  unsigned char *want = kept(array_read(&out));
  uint64_t *want_count = kept(calloc(1, 8));
  const kiln_set_desc desc = {.kind = s.kind,
                              .a = array_a.array,
                              .n_a = n_a,
                              .b = array_b.array,
                              .n_b = n_b,
                              .out = out.array,
                              .count = count.array,
                              .less = s.down ? "b < a" : NULL};
  operation_call c = CALL_OF(kiln_set_operation, &desc);

  for (size_t k = 0; k < r.n; k++)
    memcpy(want + k * width,
           r.from[k] < n_a ? in_a + r.from[k] * width
                           : in_b + (r.from[k] - n_a) * width,
           width);
  set_whole(s.count, want_count, 0, (int64_t)r.n);
  call_writes(&c, &out, want);
  call_writes(&c, &count, want_count);
  return c;
}

static operation_call wholes_call(shape s, size_t n_a, size_t n_b, int64_t few,
                                  uint64_t *state)
{
  const int64_t least = type_is_signed(s.type) ? -(few / 2) : 0;
  const double *a = sorted_values(n_a, least, few, state);
  const double *b = sorted_values(n_b, least, few, state);

  return set_call(s, a, n_a, b, n_b);
}

/* ---- Tests --------------------------------------------------------------- */

static shape of_kind(int kind, size_t shift)
{
  return (shape){.kind = (kiln_set_kind)kind,
                 .type = KILN_I32,
                 .count = KILN_U32,
                 .shift = shift};
}

/* A tile has 256 * 7 elements of both sequences together. */
static void check_lengths(int kind)
{
  static const size_t lengths[][2] = {
      {0, 0},     {0, 1},       {1, 0},       {1, 1},     {31, 1},
      {32, 33},   {0, 1793},    {1792, 0},    {896, 896}, {896, 897},
      {1791, 1},  {1, 10},      {3584, 3},    {5, 9011},  {9011, 5},
      {300, 300}, {7011, 6989}, {6000, 9000}, {9000, 100}};
  static const int64_t few[] = {1, 3, 300, 10000};
  uint64_t state = 9;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    for (size_t f = 0; f < sizeof few / sizeof few[0]; f++)
      ck_call(wholes_call(of_kind(kind, k % 4), lengths[k][0], lengths[k][1],
                          few[f], &state));
}

START_TEST(test_kinds)
{
  uint64_t state = 6;

  check_lengths(_i);
  ck_assert_uint_gt(
      ck_workspace(wholes_call(of_kind(_i, 0), 3000, 2000, 700, &state)), 0);
  ck_capture(wholes_call(of_kind(_i, 1), 2000, 3000, 700, &state));
}
END_TEST

/* Runs of equal elements that are longer than tiles on both sides, and that end
 * at and next to the boundaries of tiles. */
START_TEST(test_long_runs)
{
  enum { TILE = 1792, N = 5 * TILE };
  double *a = kept(malloc(N * sizeof *a)), *b = kept(malloc(N * sizeof *b));

  for (int split = TILE - 2; split <= 2 * TILE + 2;
       split += split == TILE + 2 ? TILE - 4 : 1) {
    for (int i = 0; i < N; i++) {
      a[i] = i < split ? 1 : i < split + 40 ? 2 : 3;
      b[i] = i < 3000 ? 1 : 3;
    }
    ck_call(
        set_call(of_kind(KILN_SET_SYMMETRIC_DIFFERENCE, 0), a, N, b, N - 7));
    ck_call(
        set_call(of_kind(KILN_SET_SYMMETRIC_DIFFERENCE, 1), b, N - 7, a, N));
  }
}
END_TEST

/* The default run has one type of each size; a thorough run has all of them. */
START_TEST(test_types)
{
  const kiln_dtype type = all_types[_i];
  uint64_t state = 3 + (uint64_t)_i;

  if (getenv("KILN_TEST_THOROUGH") == NULL && type != KILN_U8 &&
      type != KILN_F16 && type != KILN_U64)
    return;
  ck_call(wholes_call((shape){.kind = (kiln_set_kind)(_i % 4),
                              .type = type,
                              .count = KILN_U64,
                              .shift = (size_t)_i},
                      3001, 2003, 100, &state));
}
END_TEST

/* All NaNs are equal and come last, and -0 comes before +0. */
START_TEST(test_order)
{
  enum { N = 3000 };
  const double a[] = {-(double)INFINITY, -1,         -0.0, -0.0, 0.0,
                      (double)NAN,       (double)NAN};
  const double b[] = {-2, -0.0, 0.0, 0.0, (double)INFINITY, -(double)NAN};
  double *down = kept(malloc(N * sizeof *down));
  shape s = of_kind(KILN_SET_DIFFERENCE, 0);

  s.type = KILN_F32;
  ck_call(set_call(s, a, 7, b, 6));
  ck_call(set_call(s, b, 6, a, 7));
  for (int i = 0; i < N; i++)
    down[i] = (N - i) / 3;
  s.down = true;
  ck_call(set_call(s, down, N, down + 500, N - 1000));
}
END_TEST

/* Sequences that are not sorted must not cause writes outside of the outputs,
 * which lie between guard zones. */
START_TEST(test_unsorted)
{
  enum { N = 9000 };
  double *a = kept(malloc(N * sizeof *a)), *b = kept(malloc(N * sizeof *b));
  uint64_t state = 12;
  operation_call c;

  for (int i = 0; i < N; i++)
    a[i] = b[i] = (double)i;
  c = set_call(of_kind(_i, 0), a, N, b, N);
  for (int i = 0; i < N; i++)
    a[i] = (double)(test_random(&state) % 50);
  ck_kiln_ok(kiln_copy_to_device(device, ((kiln_set_desc *)c.desc)->a.data,
                                 as_elements(KILN_I32, a, N), 4 * N));
  ck_kiln_ok(kiln_set_operation(stream, c.desc, NULL));
  for (size_t k = 0; k < c.n_results; k++)
    free(array_read(&c.result[k].array));
}
END_TEST

/* Makes n ascending values of 32 bits: value i is i * step and up to step / 2 at
 * random more than the least value of the type. */
static double *spread_values(kiln_dtype type, size_t n, uint64_t step,
                             uint64_t *state)
{
  const double least = type_is_signed(type) ? INT32_MIN : 0;
  double *v = kept(malloc((n + 1) * sizeof *v));

  for (size_t i = 0; i < n; i++)
    v[i] = least + (double)(i * step + test_random(state) % (step / 2 + 1));
  return v;
}

/* Checks one value that occurs m times in a and n times in b, next to the boundary
 * of two windows. All other values occur once. */
static void check_boundary(shape s, size_t at, size_t m, size_t n)
{
  enum { N = 1100 };
  double *a = kept(malloc(N * sizeof *a)), *b = kept(malloc(N * sizeof *b));

  for (size_t i = 0; i < N; i++) {
    a[i] = (double)(8 * (i >= at && i < at + m ? at : i));
    b[i] = (double)(8 * (i >= at && i < at + n ? at : i) +
                    (i >= at && i < at + n ? 0 : 4));
  }
  ck_call(set_call(s, a, N, b, N));
}

/* Many integers of 4 bytes are merged by networks of windows of 1,024 elements. The
 * test demands this for short arrays, with tiles of 4,096 elements: values that
 * occur once, that need all 32 bits, and that are repeated inside of windows, across
 * their boundaries, and over several tiles. */
START_TEST(test_network)
{
  static const size_t lengths[][2] = {{1, 0},       {512, 512}, {4095, 1},
                                      {2048, 2049}, {0, 5000},  {6011, 9002}};
  static const int64_t few[] = {1, 40, 100, 30000};
  static const uint64_t steps[] = {2, 3, 0};
  const kiln_tuning network = {128, 23, 0, _i % 2 == 0 ? 16 : 2};
  uint64_t state = 31 + (uint64_t)_i;
  shape s = of_kind(_i, 0);

  ck_kiln_ok(kiln_tuning_set(device, "sets", 4, 64, &network));
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const size_t n_a = lengths[k][0], n_b = lengths[k][1];

    s.shift = k % 4;
    ck_call(wholes_call(s, n_a, n_b, few[k % 4], &state));
    for (size_t l = k % 2; l < 3; l++) {
      const uint64_t most = UINT32_MAX / (n_a > 2 * n_b ? n_a : 2 * n_b);
      const uint64_t step = steps[l] > 0 ? steps[l] : most;

      ck_call(set_call(s, spread_values(s.type, n_a, step, &state), n_a,
                       spread_values(s.type, n_b, 2 * step, &state), n_b));
    }
  }
  for (size_t at = 509; at <= 512; at++)
    for (size_t k = 0; k < 6; k++)
      check_boundary(s, at, 1 + k % 3, 1 + k / 3);
  s.type = KILN_U32;
  ck_call(wholes_call(s, 5000, 4000, 100, &state));
  ck_capture(wholes_call(s, 5000, 4000, 120, &state));
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const size_t n_a = test_random(state) % 3000;
  const size_t n_b = test_random(state) % 3000;
  const int64_t few = 1 + (int64_t)(test_random(state) % 4000);

  (void)k;
  return wholes_call(
      of_kind((int)(test_random(state) % 4), test_random(state) % 4), n_a, n_b,
      few, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 200, 71);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_set_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  uint64_t state = 5;
  const operation_call c = wholes_call(of_kind(0, 0), 9, 9, 50, &state);
  const kiln_set_desc *good = c.desc;
  const bad_argument bad[] = {
      {KILN_EINVAL, "kind is 4", {MEMBER_OF(kind, (kiln_set_kind)4)}},
      {KILN_EINVAL, "out none; all three", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "out f32", {MEMBER_OF(out, {good->out.data, KILN_F32})}},
      {KILN_EINVAL, "b is NULL", {MEMBER_OF(b, {0, KILN_I32})}},
      {KILN_EINVAL, "b and out overlap", {MEMBER_OF(b, good->out)}},
      {KILN_EINVAL, "count", {MEMBER_OF(count, {good->count.data, KILN_F32})}},
      {KILN_EINVAL,
       "does not fit 64 bits",
       {MEMBER_OF(n_a, UINT64_MAX), MEMBER_OF(n_b, 1)}},
      {KILN_ECOMPILE,
       "the comparison does not compile",
       {MEMBER_OF(less, "a < q")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("sets");
  TCase *t = device_case(s, "sets");

  tcase_add_loop_test(t, test_kinds, 0, 4);
  tcase_add_test(t, test_long_runs);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_order);
  tcase_add_loop_test(t, test_unsorted, 1, 3);
  tcase_add_loop_test(t, test_network, 0, 4);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
