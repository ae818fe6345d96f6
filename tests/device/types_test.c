/* types_test.c -- elements of the caller's own types: structs of 1 to 64 bytes in
 * all operations that take them, and complex numbers.
 *
 * A struct of `size` bytes consists of parts of `align` bytes (8 at most) in an
 * array v. The references in C work on the same parts. */
#include "operation_checks.h"

#include <complex.h>
#include <stdio.h>

/* ---- Structs ------------------------------------------------------------- */

typedef struct layout {
  unsigned size, align;
} layout;

static const layout layouts[] = {{1, 1},  {2, 2},  {3, 1},  {4, 4},
                                 {6, 2},  {8, 4},  {12, 4}, {16, 8},
                                 {24, 8}, {36, 4}, {64, 16}};

enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* A struct type with the code that names it. */
typedef struct user_type {
  kiln_dtype type;
  unsigned size, part, n_parts;
  kiln_code code;
} user_type;

static const char *part_name(unsigned part)
{
  return part == 1   ? "unsigned char"
         : part == 2 ? "unsigned short"
         : part == 4 ? "unsigned"
                     : "unsigned long long";
}

static user_type user_type_of(layout l)
{
  user_type t = {.type = KILN_STRUCT(l.size, l.align),
                 .size = l.size,
                 .part = l.align < 8 ? l.align : 8};
  kiln_param *named = kept(calloc(1, sizeof *named));
  char *preamble = kept(malloc(1024));

  t.n_parts = t.size / t.part;
  *named = (kiln_param){.name = "item", .type = t.type};
  snprintf(preamble, 1024,
           "struct alignas(%u) item { %s v[%u]; };\n"
           "__device__ inline item last(item a, item b)\n"
           "{ for (int k = 0; k < %u; ++k)\n"
           "    if (b.v[k] != 0) a.v[k] = b.v[k];\n  return a; }\n"
           "__device__ inline item reversed(item a)\n"
           "{ item r;\n  for (int k = 0; k < %u; ++k)\n"
           "    r.v[k] = a.v[%u - k];\n  return r; }\n",
           l.align, part_name(t.part), t.n_parts, t.n_parts, t.n_parts,
           t.n_parts - 1);
  t.code = (kiln_code){.preamble = preamble, .params = named, .n_params = 1};
  return t;
}

/* Returns n random elements, in which a part is 0 unless it is one of
 * `sparse`. */
static unsigned char *random_items(const user_type *t, size_t n,
                                   unsigned sparse, uint64_t *state)
{
  unsigned char *x = kept(calloc(n * t->size + 1, 1));

  for (size_t i = 0; i < n * t->n_parts; i++)
    if (test_random(state) % sparse == 0)
      for (unsigned b = 0; b < t->part; b++)
        x[i * t->part + b] = (unsigned char)test_random(state);
  return x;
}

static const unsigned char *at(const user_type *t, const void *x, size_t i)
{
  return (const unsigned char *)x + i * t->size;
}

/* Applies the operation last(a, b) to a: parts that are not 0 in b replace those
 * of a. The operation is associative, and it does not commute. */
static void last(const user_type *t, unsigned char *a, const unsigned char *b)
{
  static const unsigned char zero[8];

  for (unsigned k = 0; k < t->size; k += t->part)
    if (memcmp(b + k, zero, t->part) != 0)
      memcpy(a + k, b + k, t->part);
}

static void *room(const user_type *t, size_t n)
{
  return kept(calloc(n * t->size + 1, 1));
}

/* Numbers of elements around the sizes of tiles, which depend on the type. */
static const size_t lengths[] = {0, 1, 33, 1021, 20011};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* A test of one operation with one type. The array starts `shift` elements
 * behind an address with an alignment of 256. */
typedef void struct_test(const user_type *t, size_t n, size_t shift,
                         uint64_t *state);

static void run_map(const user_type *t, size_t n, size_t shift, uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  uint32_t *keys = kept(malloc(4 * n + 4));
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0x5a);
  test_array key = array_make(KILN_U32, n, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_map, &(kiln_map_desc){.n = n,
                                         .in = {in.array},
                                         .out = {out.array, key.array},
                                         .expr = {"reversed(x)", "x.v[0]"},
                                         .code = t->code});

  for (size_t i = 0; i < n; i++) {
    uint64_t first = 0;

    memcpy(&first, at(t, x, i), t->part);
    keys[i] = (uint32_t)first;
    for (unsigned k = 0; k < t->n_parts; k++)
      memcpy(want + i * t->size + k * t->part,
             at(t, x, i) + (t->n_parts - 1 - k) * t->part, t->part);
  }
  call_writes(&c, &out, want);
  call_writes(&c, &key, keys);
  ck_call(c);
}

static const kiln_op last_op = {.expr = "last(a, b)", .identity = "item{}"};

static void run_reduce(const user_type *t, size_t n, size_t shift,
                       uint64_t *state)
{
  unsigned char *x = random_items(t, n, 50, state), *want = room(t, 1);
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_reduce, &(kiln_reduce_desc){.x = {.in = {in.array}},
                                               .n = n,
                                               .op = last_op,
                                               .out = out.array,
                                               .code = t->code});

  for (size_t i = 0; i < n; i++)
    last(t, want, at(t, x, i));
  call_writes(&c, &out, want);
  ck_call(c);
}

static void run_scan(const user_type *t, size_t n, size_t shift,
                     uint64_t *state)
{
  unsigned char *x = random_items(t, n, 700, state), *want = room(t, n);
  unsigned char *sum = room(t, 1), *init = random_items(t, 1, 1, state);
  const bool exclusive = shift != 0;
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0x5a);
  test_array total = array_make(t->type, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                           .n = n,
                                           .op = last_op,
                                           .out = out.array,
                                           .init = exclusive ? init : NULL,
                                           .exclusive = exclusive,
                                           .total = total.array.data,
                                           .code = t->code});

  if (exclusive)
    memcpy(sum, init, t->size);
  for (size_t i = 0; i < n; i++) {
    if (exclusive)
      memcpy(want + i * t->size, sum, t->size);
    last(t, sum, at(t, x, i));
    if (!exclusive)
      memcpy(want + i * t->size, sum, t->size);
  }
  call_writes(&c, &out, want);
  call_writes(&c, &total, sum);
  ck_call(c);
}

static void run_select(const user_type *t, size_t n, size_t shift,
                       uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  uint64_t kept_items = 0;
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0);
  test_array moved = array_make(t->type, n, 0, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_select, &(kiln_select_desc){.x = {.in = {in.array}},
                                               .n = n,
                                               .predicate = "x.v[0] & 1",
                                               .out = out.array,
                                               .payload = in.array,
                                               .out_payload = moved.array,
                                               .count = count.array,
                                               .code = t->code});

  for (size_t i = 0; i < n; i++)
    if ((*at(t, x, i) & 1) != 0)
      memcpy(want + kept_items++ * t->size, at(t, x, i), t->size);
  call_writes(&c, &out, want);
  call_writes(&c, &moved, want);
  call_writes(&c, &count, &kept_items);
  ck_call(c);
}

static void run_partition(const user_type *t, size_t n, size_t shift,
                          uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  uint64_t first = 0, rest = 0;
  const bool reversed = shift != 0;
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_partition, &(kiln_partition_desc){.x = {.in = {in.array}},
                                                     .n = n,
                                                     .first = "x.v[0] & 1",
                                                     .out = out.array,
                                                     .rest_reversed = reversed,
                                                     .count = count.array,
                                                     .code = t->code});

  for (size_t i = 0; i < n; i++)
    if ((*at(t, x, i) & 1) != 0)
      memcpy(want + first++ * t->size, at(t, x, i), t->size);
  for (size_t i = 0; i < n; i++)
    if ((*at(t, x, i) & 1) == 0) {
      const size_t to = reversed ? n - 1 - rest : first + rest;

      memcpy(want + to * t->size, at(t, x, i), t->size);
      rest++;
    }
  call_writes(&c, &out, want);
  call_writes(&c, &count, &first);
  ck_call(c);
}

/* Returns items in runs of equal items. */
static unsigned char *runs_of_items(const user_type *t, size_t n,
                                    uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state);

  for (size_t i = 1; i < n; i++)
    if (test_random(state) % 5 != 0)
      memcpy(x + i * t->size, x + (i - 1) * t->size, t->size);
  return x;
}

static bool same(const user_type *t, const unsigned char *x, size_t i, size_t k)
{
  return memcmp(at(t, x, i), at(t, x, k), t->part) == 0;
}

static void run_unique(const user_type *t, size_t n, size_t shift,
                       uint64_t *state)
{
  unsigned char *x = runs_of_items(t, n, state), *want = room(t, n);
  uint64_t different = 0;
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_unique, &(kiln_unique_desc){.x = {.in = {in.array}},
                                               .n = n,
                                               .equal = "a.v[0] == b.v[0]",
                                               .out = out.array,
                                               .count = count.array,
                                               .code = t->code});

  for (size_t i = 0; i < n; i++)
    if (i == 0 || !same(t, x, i - 1, i))
      memcpy(want + different++ * t->size, at(t, x, i), t->size);
  call_writes(&c, &out, want);
  call_writes(&c, &count, &different);
  ck_call(c);
}

static void run_run_length(const user_type *t, size_t n, size_t shift,
                           uint64_t *state)
{
  unsigned char *x = runs_of_items(t, n, state), *want = room(t, n);
  uint32_t *lengths_of = kept(calloc(n + 1, 4));
  uint64_t runs = 0;
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0);
  test_array length = array_make(KILN_U32, n, 0, NULL, 0);
  test_array count = array_make(KILN_U64, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_run_length_encode,
              &(kiln_run_length_desc){.x = {.in = {in.array}},
                                      .n = n,
                                      .equal = "a.v[0] == b.v[0]",
                                      .values = out.array,
                                      .lengths = length.array,
                                      .count = count.array,
                                      .code = t->code});

  for (size_t i = 0; i < n; i++) {
    if (i == 0 || !same(t, x, i - 1, i))
      memcpy(want + runs++ * t->size, at(t, x, i), t->size);
    lengths_of[runs - 1]++;
  }
  call_writes(&c, &out, want);
  call_writes(&c, &length, lengths_of);
  call_writes(&c, &count, &runs);
  ck_call(c);
}

/* Returns a random permutation of the numbers below n. */
static uint64_t *permutation(size_t n, uint64_t *state)
{
  uint64_t *p = kept(malloc(8 * n + 8));

  for (size_t i = 0; i < n; i++) {
    const size_t k = test_random(state) % (i + 1);

    p[i] = p[k];
    p[k] = i;
  }
  return p;
}

/* Without a map the elements have no name: they are opaque. */
static void run_gather(const user_type *t, size_t n, size_t shift,
                       uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  const uint64_t *index = permutation(n, state);
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0x5a);
  test_array where = array_of_indices(KILN_U32, index, n, 0);
  operation_call c =
      CALL_OF(kiln_gather, &(kiln_gather_desc){.x = {.in = {in.array}},
                                               .n = n,
                                               .n_target = n,
                                               .index = where.array,
                                               .out = out.array});

  for (size_t i = 0; i < n; i++)
    memcpy(want + i * t->size, at(t, x, index[i]), t->size);
  call_writes(&c, &out, want);
  ck_call(c);
}

static void run_scatter(const user_type *t, size_t n, size_t shift,
                        uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  const uint64_t *index = permutation(n, state);
  test_array in = array_make(t->type, n, shift, x, 0);
  test_array out = array_make(t->type, n, 0, NULL, 0x5a);
  test_array where = array_of_indices(KILN_I64, index, n, 0);
  operation_call c =
      CALL_OF(kiln_scatter,
              &(kiln_scatter_desc){.x = {.in = {in.array}, .map = "last(x, x)"},
                                   .n = n,
                                   .n_target = n,
                                   .index = where.array,
                                   .out = out.array,
                                   .code = t->code});

  for (size_t i = 0; i < n; i++)
    memcpy(want + index[i] * t->size, at(t, x, i), t->size);
  call_writes(&c, &out, want);
  ck_call(c);
}

/* Sorts u16 keys with the structs as values, in place if `shift` is not 0. */
static void run_sort(const user_type *t, size_t n, size_t shift,
                     uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state), *want = room(t, n);
  uint16_t *keys = kept(malloc(2 * n + 2)), *sorted = kept(malloc(2 * n + 2));
  size_t start[257] = {0};
  test_array key, key_out, value, value_out;
  operation_call c;

  for (size_t i = 0; i < n; i++) {
    keys[i] = (uint16_t)(test_random(state) % 256);
    start[keys[i] + 1]++;
  }
  for (size_t k = 1; k < 257; k++)
    start[k] += start[k - 1];
  for (size_t i = 0; i < n; i++) {
    const size_t to = start[keys[i]]++;

    sorted[to] = keys[i];
    memcpy(want + to * t->size, at(t, x, i), t->size);
  }
  key = array_make(KILN_U16, n, 0, keys, 0);
  value = array_make(t->type, n, shift, x, 0);
  key_out = shift != 0 ? key : array_make(KILN_U16, n, 0, NULL, 0x5a);
  value_out = shift != 0 ? value : array_make(t->type, n, 0, NULL, 0x5a);
  c = CALL_OF(kiln_sort, &(kiln_sort_desc){.n = n,
                                           .keys_in = key.array,
                                           .keys_out = key_out.array,
                                           .values_in = value.array,
                                           .values_out = value_out.array});
  call_writes(&c, &key_out, sorted);
  call_writes(&c, &value_out, want);
  ck_call(c);
}

/* Returns items whose first byte ascends. */
static unsigned char *ascending(const user_type *t, size_t n, uint64_t *state)
{
  unsigned char *x = random_items(t, n, 1, state);

  for (size_t i = 0; i < n; i++) {
    memset(x + i * t->size, 0, t->part);
    x[i * t->size] = (unsigned char)(i * 256 / n);
  }
  return x;
}

static void run_merge(const user_type *t, size_t n, size_t shift,
                      uint64_t *state)
{
  const size_t m = n / 3;
  unsigned char *a = ascending(t, m, state), *b = ascending(t, n - m, state);
  unsigned char *want = room(t, n);
  test_array left = array_make(t->type, m, shift, a, 0);
  test_array right = array_make(t->type, n - m, 0, b, 0);
  test_array out = array_make(t->type, n, shift, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_merge, &(kiln_merge_desc){.a = left.array,
                                             .b = right.array,
                                             .n_a = m,
                                             .n_b = n - m,
                                             .out = out.array,
                                             .less = "a.v[0] < b.v[0]",
                                             .code = t->code});

  for (size_t i = 0, p = 0, q = 0; i < n; i++) {
    const bool take_b = p == m || (q < n - m && *at(t, b, q) < *at(t, a, p));

    memcpy(want + i * t->size, take_b ? at(t, b, q++) : at(t, a, p++), t->size);
  }
  call_writes(&c, &out, want);
  ck_call(c);
}

static struct_test *const struct_tests[] = {
    run_map,     run_reduce,    run_scan,       run_select,
    run_unique,  run_partition, run_run_length, run_gather,
    run_scatter, run_sort,      run_merge};

enum { N_STRUCT_TESTS = sizeof struct_tests / sizeof struct_tests[0] };

/* Tests an operation and a type with all lengths and two alignments. */
static void run_struct(size_t which, size_t type)
{
  uint64_t state = 77 * which + type + 1;

  for (size_t k = 0; k < N_LENGTHS; k++) {
    const size_t mark = n_kept;
    const user_type t = user_type_of(layouts[type]);

    struct_tests[which](&t, lengths[k], 0, &state);
    release(mark);
  }
}

/* Every operation with one type, so that every type occurs. */
START_TEST(test_structs)
{
  run_struct((size_t)_i, (size_t)_i);
}
END_TEST

/* Structs whose vectors a warp stores together, and so many tiles that one block
 * computes their prefixes. */
START_TEST(test_wide)
{
  const user_type t = user_type_of((layout){36, 4});
  uint64_t state = 3;

  run_map(&t, 2501, 0, &state);
  run_scan(&t, 20011, 0, &state);
}
END_TEST

/* Every operation with every type, and arrays that are aligned to the type
 * only. */
START_TEST(test_all_structs)
{
  const size_t which = (size_t)_i % N_STRUCT_TESTS;
  const size_t type = (size_t)_i / N_STRUCT_TESTS;
  uint64_t state = (uint64_t)_i;

  run_struct(which, type);
  if (struct_tests[which] == run_scan) {
    const user_type t = user_type_of(layouts[type]);

    run_scan(&t, 150001, 0, &state);
  }
  for (size_t k = 0; k < N_LENGTHS; k++) {
    const size_t mark = n_kept;
    const user_type t = user_type_of(layouts[type]);

    struct_tests[which](&t, lengths[k], 1, &state);
    release(mark);
  }
}
END_TEST

/* Two structs of equal layout in one call, and a map that reads neighbours. */
START_TEST(test_two_structs)
{
  enum { N = 1000 };
  const kiln_dtype first = KILN_STRUCT(8, 4), other = KILN_STRUCT_OF(1, 8, 4);
  const kiln_param named[] = {{.name = "point", .type = first},
                              {.name = "range", .type = other}};
  uint32_t x[N][2], want[N][2];
  test_array in, out;
  operation_call c;

  for (uint32_t i = 0; i < N; i++) {
    x[i][0] = i * 7;
    x[i][1] = i + 100000;
    want[i][0] = x[i][1];
    want[i][1] = (N - 1 - i) * 7;
  }
  in = array_make(first, N, 1, x, 0);
  out = array_make(other, N, 0, NULL, 0x5a);
  c = CALL_OF(
      kiln_map,
      &(kiln_map_desc){.n = N,
                       .in = {in.array},
                       .out = {out.array},
                       .expr = {"range{x.right, x_at(999 - i).left}"},
                       .code = {.preamble =
                                    "struct point { unsigned left, right; };\n"
                                    "struct range { unsigned begin, end; };\n",
                                .params = named,
                                .n_params = 2}});
  call_writes(&c, &out, want);
  ck_call(c);
}
END_TEST

/* Structs without a name, which flags select. */
START_TEST(test_opaque)
{
  enum { N = 3000 };
  uint64_t state = 5, n = 0;
  const user_type t = user_type_of((layout){12, 4});
  unsigned char *x = random_items(&t, N, 1, &state), *want = room(&t, N);
  uint8_t flag[N];
  test_array in = array_make(t.type, N, 1, x, 0);
  test_array out = array_make(t.type, N, 0, NULL, 0);
  test_array count = array_make(KILN_U32, 1, 0, NULL, 0), flags;
  operation_call c;

  for (size_t i = 0; i < N; i++) {
    flag[i] = test_random(&state) % 3 == 0;
    if (flag[i])
      memcpy(want + n++ * t.size, at(&t, x, i), t.size);
  }
  flags = array_make(KILN_U8, N, 0, flag, 0);
  c = CALL_OF(kiln_select, &(kiln_select_desc){.x = {.in = {in.array}},
                                               .n = N,
                                               .flags = flags.array,
                                               .out = out.array,
                                               .count = count.array});
  call_writes(&c, &out, want);
  call_writes(&c, &count, &n);
  ck_workspace(c);
  ck_capture(c);
}
END_TEST

/* ---- Complex numbers ----------------------------------------------------- */

/* Returns re + im i, also where C's header lacks CMPLX(). */
static double complex complex_of(double re, double im)
{
  const double parts[2] = {re, im};
  double complex v;

  memcpy(&v, parts, sizeof v);
  return v;
}

/* Returns n complex numbers whose parts are small whole numbers, in the given
 * type. `v` receives them. */
static void *complex_items(kiln_dtype type, size_t n, double complex *v,
                           uint64_t *state)
{
  float complex *narrow = kept(malloc(16 * n + 16));
  double complex *wide = (double complex *)narrow;

  for (size_t i = 0; i < n; i++) {
    const int re = (int)(test_random(state) % 9) - 4;
    const int im = (int)(test_random(state) % 9) - 4;

    v[i] = complex_of(re, im);
  }
  for (size_t i = 0; i < n; i++)
    if (type == KILN_C64)
      narrow[i] = (float complex)v[i];
    else
      wide[i] = v[i];
  return narrow;
}

/* Returns n complex numbers as elements of the given type. */
static void *as_complex(kiln_dtype type, const double complex *v, size_t n)
{
  float complex *narrow = kept(malloc(16 * n + 16));

  if (type == KILN_C128)
    return memcpy(narrow, v, 16 * n);
  for (size_t i = 0; i < n; i++)
    narrow[i] = (float complex)v[i];
  return narrow;
}

static const kiln_dtype complex_types[] = {KILN_C64, KILN_C128};

/* The aligned arrays are so long that tiles wait in shared memory. */
START_TEST(test_complex_scan)
{
  const kiln_dtype type = complex_types[_i % 2];
  const bool exclusive = _i >= 2;
  const size_t n = exclusive ? 30011 : 140003;
  const double complex start = complex_of(3, -2);
  uint64_t state = 17;
  double complex *v = kept(malloc(16 * n)), *want = kept(malloc(16 * n));
  const void *x = complex_items(type, n, v, &state);
  const void *init = as_complex(type, &start, 1);
  double complex sum = exclusive ? start : 0;
  test_array in = array_make(type, n, exclusive, x, 0);
  test_array out = array_make(type, n, exclusive, NULL, 0x5a);
  test_array total = array_make(type, 1, 0, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_scan, &(kiln_scan_desc){.x = {.in = {in.array}},
                                           .n = n,
                                           .out = out.array,
                                           .init = exclusive ? init : NULL,
                                           .exclusive = exclusive,
                                           .total = total.array.data});

  for (size_t i = 0; i < n; i++) {
    want[i] = exclusive ? sum : sum + v[i];
    sum += v[i];
  }
  call_writes(&c, &out, as_complex(type, want, n));
  call_writes(&c, &total, as_complex(type, &sum, 1));
  ck_call(c);
}
END_TEST

/* The product of units 1, i, -1 and -i, and the sum of squares. */
START_TEST(test_complex_reduce)
{
  enum { N = 5003 };
  const kiln_dtype type = complex_types[_i];
  uint64_t state = 23;
  double complex *v = kept(malloc(16 * N)), sum = 0, product = 1;
  test_array x = array_make(type, N, 1, complex_items(type, N, v, &state), 0);
  test_array units, out = array_make(type, 1, 0, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_reduce, &(kiln_reduce_desc){.x = {.in = {x.array}, .map = "x * x"},
                                       .n = N,
                                       .out = out.array});

  for (size_t i = 0; i < N; i++)
    sum += v[i] * v[i];
  call_writes(&c, &out, as_complex(type, &sum, 1));
  ck_call(c);
  for (size_t i = 0; i < N; i++) {
    static const double parts[] = {1, 0, -1, 0, 1};
    const size_t k = test_random(&state) % 4;

    v[i] = complex_of(parts[k], parts[k + 1]);
    product *= v[i];
  }
  units = array_make(type, N, 0, as_complex(type, v, N), 0);
  c = CALL_OF(kiln_reduce, &(kiln_reduce_desc){.x = {.in = {units.array}},
                                               .n = N,
                                               .op = {.name = KILN_PROD},
                                               .out = out.array});
  /* Adding 0 turns a part of -0 into 0, which equals it. */
  product += 0;
  c.n_results = 0;
  call_writes(&c, &out, as_complex(type, &product, 1));
  ck_kiln_ok(kiln_reduce(stream, c.desc, NULL));
  for (size_t k = 0; k < 2; k++) {
    const kiln_dtype part = type == KILN_C64 ? KILN_F32 : KILN_F64;
    void *got = array_read(&out);

    ck_assert(value_at(part, got, k) == value_at(part, c.result[0].want, k));
    free(got);
  }
}
END_TEST

/* A map with all functions of complex numbers, into f32 and back. */
START_TEST(test_complex_map)
{
  enum { N = 1003 };
  uint64_t state = 29;
  double complex *v = kept(malloc(16 * N)), *want = kept(malloc(16 * N));
  float *size = kept(malloc(4 * N));
  test_array x =
      array_make(KILN_C64, N, 0, complex_items(KILN_C64, N, v, &state), 0);
  test_array out = array_make(KILN_C128, N, 0, NULL, 0x5a);
  test_array norms = array_make(KILN_F32, N, 0, NULL, 0x5a);
  operation_call c = CALL_OF(
      kiln_map,
      &(kiln_map_desc){
          .n = N,
          .in = {x.array},
          .out = {out.array, norms.array},
          .expr = {
              "complex128(conj(x) * complex64(0, 2) - 1 + x / 2.0f)",
              "x == -x ? 0 : norm(x) + (abs(x) - abs(-x)) + x.re - x.re"}});

  for (size_t i = 0; i < N; i++) {
    want[i] = conj(v[i]) * complex_of(0, 2) - 1 + v[i] / 2;
    size[i] = (float)(creal(v[i]) * creal(v[i]) + cimag(v[i]) * cimag(v[i]));
  }
  call_writes(&c, &norms, size);
  ck_call(c);
  ck_kiln_ok(kiln_map(stream, c.desc, NULL));
  for (size_t i = 0; i < 2 * N; i++) {
    double *got = i == 0 ? kept(array_read(&out)) : kept_list[n_kept - 1].host;

    ck_assert_msg(got[i] == ((double *)want)[i], "[%zu] is %g, not %g", i,
                  got[i], ((double *)want)[i]);
  }
}
END_TEST

START_TEST(test_complex_norm)
{
  enum { N = 2001 };
  const kiln_dtype type = complex_types[_i];
  const kiln_dtype part = type == KILN_C64 ? KILN_F32 : KILN_F64;
  uint64_t state = 31;
  double complex *v = kept(malloc(16 * N));
  double squares = 0, got;
  test_array x = array_make(type, N, 1, complex_items(type, N, v, &state), 0);
  test_array out = array_make(part, 1, 0, NULL, 0x5a);
  const kiln_norm_desc desc = {
      .x = {.in = {x.array}}, .n = N, .out = out.array};

  for (size_t i = 0; i < N; i++)
    squares += creal(v[i] * conj(v[i]));
  ck_kiln_ok(kiln_norm(stream, &desc, NULL));
  got = value_at(part, kept(array_read(&out)), 0);
  ck_assert_msg(fabs(got - sqrt(squares)) < 1e-6 * got, "%g, not %g", got,
                sqrt(squares));
}
END_TEST

/* ---- Errors -------------------------------------------------------------- */

static void ck_message(kiln_status st, kiln_status want, const char *says)
{
  ck_assert_int_eq(st, want);
  ck_assert_msg(strstr(kiln_last_error()->message, says) != NULL,
                "\"%s\" does not say \"%s\"", kiln_last_error()->message, says);
}

/* The C++ type of the preamble has another size or alignment. */
START_TEST(test_wrong_layout)
{
  const user_type t = user_type_of((layout){12, 4});
  test_array in = array_make(t.type, 10, 0, NULL, 1);
  kiln_map_desc desc = {.n = 10,
                        .in = {in.array},
                        .out = {in.array},
                        .expr = {"x"},
                        .code = t.code};

  desc.code.preamble = "struct item { double v; int k; };";
  ck_message(kiln_map(stream, &desc, NULL), KILN_ECOMPILE,
             "the type item has 16 bytes and an alignment of 8 on the device, "
             "but its kiln_dtype is KILN_STRUCT(12, 4)");
  desc.code.preamble = "struct itm { int v[3]; };";
  ck_message(kiln_map(stream, &desc, NULL), KILN_ECOMPILE,
             "the struct item does not compile: line 1");
  desc.code.preamble = t.code.preamble;
  desc.expr[0] = "x.w";
  ck_message(kiln_map(stream, &desc, NULL), KILN_ECOMPILE,
             "the map expression does not compile: line 1");
}
END_TEST

START_TEST(test_refused)
{
  const user_type t = user_type_of((layout){8, 4});
  const test_array in = array_make(t.type, 10, 0, NULL, 1);
  const test_array out = array_make(t.type, 10, 0, NULL, 1);
  const test_array complexes = array_make(KILN_C64, 10, 0, NULL, 0);
  const test_array one = array_make(KILN_C64, 1, 0, NULL, 0);
  const kiln_array misaligned = {in.array.data + 2, t.type};
  const kiln_array real = {one.array.data, KILN_F32};

  ck_message(kiln_reduce(stream,
                         &(kiln_reduce_desc){.x = {.in = {in.array}},
                                             .n = 10,
                                             .out = out.array},
                         NULL),
             KILN_EINVAL, "elements of type struct need op.expr");
  ck_message(kiln_reduce(stream,
                         &(kiln_reduce_desc){.x = {.in = {complexes.array}},
                                             .n = 10,
                                             .op = {.name = KILN_MAX},
                                             .out = one.array},
                         NULL),
             KILN_EINVAL, "c64 has only sum and product");
  ck_message(kiln_reduce(stream,
                         &(kiln_reduce_desc){.x = {.in = {complexes.array}},
                                             .n = 10,
                                             .out = real},
                         NULL),
             KILN_EINVAL, "out is of type f32, but the elements are c64");
  ck_message(
      kiln_map(stream,
               &(kiln_map_desc){.n = 2, .in = {misaligned}, .out = {out.array}},
               NULL),
      KILN_EINVAL, "not aligned to its elements of 4 bytes");
  ck_message(kiln_merge(stream,
                        &(kiln_merge_desc){.a = in.array,
                                           .b = in.array,
                                           .n_a = 3,
                                           .n_b = 3,
                                           .out = out.array},
                        NULL),
             KILN_EINVAL, "no default order; give less");
  ck_message(kiln_sort(stream,
                       &(kiln_sort_desc){
                           .n = 10, .keys_in = in.array, .keys_out = out.array},
                       NULL),
             KILN_EINVAL, "struct, which this operation does not support");
  ck_message(kiln_norm(stream,
                       &(kiln_norm_desc){
                           .x = {.in = {complexes.array}, .map = "x * x"},
                           .n = 10,
                           .out = real},
                       NULL),
             KILN_EINVAL, "let it return their absolute values");
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("types");
  TCase *t = device_case(s, "structs");

  tcase_add_loop_test(t, test_structs, 0, N_STRUCT_TESTS);
  tcase_add_test(t, test_wide);
  tcase_add_test(t, test_two_structs);
  tcase_add_test(t, test_opaque);
  tcase_add_test(t, test_wrong_layout);
  tcase_add_test(t, test_refused);
  t = device_case(s, "complex");
  tcase_add_loop_test(t, test_complex_scan, 0, 4);
  tcase_add_loop_test(t, test_complex_reduce, 0, 2);
  tcase_add_test(t, test_complex_map);
  tcase_add_loop_test(t, test_complex_norm, 0, 2);
  if (getenv("KILN_TEST_THOROUGH") != NULL) {
    t = device_case(s, "all_structs");
    tcase_add_loop_test(t, test_all_structs, 0, N_STRUCT_TESTS * N_LAYOUTS);
  }
  return s;
}

DEVICE_TEST_MAIN(suite)
