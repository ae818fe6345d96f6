/* large_more_test.c -- movements, sets, sorts by an expression, reductions by key
 * and per row, histograms and random numbers for more than 2^32 elements of one
 * byte.
 *
 * KILN_TEST_LARGE=1 runs this size, on a GPU with 64 GB of free memory.
 * KILN_TEST_LARGE=small, and a thorough run, runs the same code on few elements
 * on any device. */
#define LARGE_TEXT more_text

/* Kernels that check the results. They work with any grid size. */
static const char more_text[] =
    "extern \"C\" {\n"
    "__global__ void check_rotated(const T *y, word n, word by, report *r) {\n"
    "  for (EACH(i, n)) expect(r, y[i] == value((i + by) % n), i);\n"
    "}\n"
    "__global__ void check_turned(const T *y, word rows, word columns,\n"
    "                             report *r) {\n"
    "  for (EACH(i, rows * columns))\n"
    "    expect(r, y[i] == value(i % rows * columns + i / rows), i);\n"
    "}\n"
    "__global__ void check_repeated(const T *y, word n, word times,\n"
    "                               report *r) {\n"
    "  for (EACH(i, n)) expect(r, y[i] == value(i / times), i);\n"
    "}\n"
    "__global__ void fill_copies(word *from, word *to, word x, word y,\n"
    "                            word size, word n) {\n"
    "  for (EACH(k, n)) {\n"
    "    from[k] = x + k * size;\n"
    "    to[k] = y + (n - 1 - k) * size;\n"
    "  }\n"
    "}\n"
    "__global__ void check_copied(const T *y, word size, word n, report *r) {\n"
    "  for (EACH(i, size * n))\n"
    "    expect(r, y[i] == value((n - 1 - i / size) * size + i % size), i);\n"
    "}\n"
    "__global__ void check_blocks(const unsigned *y, word n, unsigned shift,\n"
    "                             report *r) {\n"
    "  for (EACH(b, (n - 1 >> shift) + 1)) {\n"
    "    unsigned sum = 0;\n"
    "    for (word i = b << shift; i < n && i < b + 1 << shift; i++)\n"
    "      sum += whole(TYPE, i);\n"
    "    expect(r, y[b] == sum, b);\n"
    "  }\n"
    "}\n"
    "__global__ void check_greatest(const T *y, const unsigned *at, word "
    "rows,\n"
    "                               word columns, report *r) {\n"
    "  for (EACH(k, rows)) {\n"
    "    word best = 0;\n"
    "    for (word j = 1; j < columns; j++)\n"
    "      if (value(k * columns + j) > value(k * columns + best)) best = j;\n"
    "    expect(r, at[k] == best && y[k] == value(k * columns + best), k);\n"
    "  }\n"
    "}\n"
    "__global__ void check_falling(const T *y, word n, report *r) {\n"
    "  word sum = 0;\n"
    "  for (EACH(i, n)) {\n"
    "    expect(r, i + 1 == n || y[i] >= y[i + 1], i);\n"
    "    sum += mix(bits(y[i]));\n"
    "  }\n"
    "  atomicAdd(&r->sum, sum);\n"
    "}\n"
    "}\n";

#include "large_cases.h"

/* ---- Movements ----------------------------------------------------------- */

static void case_rotate(void)
{
  const uint64_t by = n / 2 + 7777;
  test_array y = poisoned(dtype, n);
  const kiln_rotate_desc d = {
      .in = x.array, .out = y.array, .n = n, .shift = (int64_t)by};

  begin("rotate");
  if (ran(kiln_rotate(stream, &d, NULL)))
    CHECK("rotate", "check_rotated", n, DATA(y), KILN_ARG(n), KILN_ARG(by));
  end();
}

static void case_permute(void)
{
  const uint64_t columns = small ? 67 : 4099, rows = n / columns;
  test_array y = poisoned(dtype, rows * columns);
  const kiln_permute_desc d = {.in = x.array,
                               .out = y.array,
                               .rank = 2,
                               .size = {rows, columns},
                               .axis = {1, 0}};

  begin("permute");
  if (ran(kiln_permute(stream, &d, NULL)))
    CHECK("transpose", "check_turned", rows * columns, DATA(y), KILN_ARG(rows),
          KILN_ARG(columns));
  end();
}

static void case_decode(void)
{
  const uint64_t times = 97, runs = (n + times - 1) / times;
  test_array values = poisoned(dtype, runs),
             lengths = filled(KILN_U8, runs, 97);
  test_array y = poisoned(dtype, n), count = poisoned(KILN_U64, 1);
  const uint64_t one = 1;
  const kiln_run_length_decode_desc d = {.values = values.array,
                                         .lengths = lengths.array,
                                         .n = runs,
                                         .out = y.array,
                                         .capacity = n,
                                         .count = count.array};

  OWN("fill", runs, DATA(values), KILN_ARG(runs), KILN_ARG(one));
  begin("run_length_decode");
  if (ran(kiln_run_length_decode(stream, &d, NULL))) {
    expect_equal("the count", word_of(&count, 0), runs * times);
    CHECK("values", "check_repeated", n, DATA(y), KILN_ARG(n), KILN_ARG(times));
  }
  end();
}

/* Copies the blocks of the input in reverse order. */
static void case_copies(void)
{
  const uint64_t count = small ? 100 : 65521, size = n / count;
  test_array y = poisoned(dtype, count * size);
  test_array from = poisoned(KILN_U64, count), to = poisoned(KILN_U64, count);
  uint64_t *sizes = kept(malloc(count * sizeof *sizes));
  test_array lengths;
  kiln_copy_batch_desc d = {.from = from.array, .to = to.array, .n = count};

  for (uint64_t k = 0; k < count; k++)
    sizes[k] = size;
  lengths = array_make(KILN_U64, count, 0, sizes, 0);
  d.sizes = lengths.array;
  OWN("fill_copies", count, DATA(from), DATA(to), DATA(x), DATA(y),
      KILN_ARG(size), KILN_ARG(count));
  begin("copy_batch");
  if (ran(kiln_copy_batch(stream, &d, NULL)))
    CHECK("copies", "check_copied", count * size, DATA(y), KILN_ARG(size),
          KILN_ARG(count));
  array_free(&lengths);
  end();
}

/* The last numbers must equal those of a call that begins there. */
static void case_random(void)
{
  const uint64_t few = small ? 1000 : 1 << 20, begin_at = n - few;
  test_array y = poisoned(dtype, n), part = poisoned(dtype, few);
  test_array count = poisoned(KILN_U64, 1);
  kiln_random_desc d = {.out = y.array, .n = n, .seed = 1234567};
  kiln_find_desc same = {.predicate = "x == y", .n = few, .out = count.array};

  begin("random");
  if (ran(kiln_random(stream, &d, NULL))) {
    d.out = part.array;
    d.n = few;
    d.offset = begin_at;
    same.x.in[0] = (kiln_array){y.array.data + begin_at, dtype};
    same.x.in[1] = part.array;
    if (ran(kiln_random(stream, &d, NULL)) &&
        ran(kiln_count(stream, &same, NULL)))
      expect_equal("the number of equal elements", word_of(&count, 0), few);
  }
  end();
}

/* ---- Reductions and histograms ------------------------------------------- */

static void case_minmax(void)
{
  test_array least = poisoned(dtype, 1), most = poisoned(dtype, 1);
  const kiln_minmax_desc d = {
      .x = {.in = {x.array}}, .n = n, .min = least.array, .max = most.array};

  begin("minmax");
  if (ran(kiln_minmax(stream, &d, NULL))) {
    expect_equal("the minimum", word_of(&least, 0),
                 bits_of(type, order_of(type, known.least[SHARES])));
    expect_equal("the maximum", word_of(&most, 0),
                 bits_of(type, order_of(type, known.most[SHARES])));
  }
  end();
}

static void case_greatest_of_rows(void)
{
  const uint64_t columns = small ? 67 : 4099, rows = n / columns;
  test_array y = poisoned(dtype, rows), at = poisoned(KILN_U32, rows);
  const kiln_arg_reduce_matrix_desc d = {.x = {.in = {x.array}},
                                         .rows = rows,
                                         .columns = columns,
                                         .op = KILN_MAX,
                                         .value = y.array,
                                         .index = at.array};

  begin("arg_reduce_rows");
  if (ran(kiln_arg_reduce_rows(stream, &d, NULL)))
    CHECK("rows", "check_greatest", rows, DATA(y), DATA(at), KILN_ARG(rows),
          KILN_ARG(columns));
  end();
}

/* Sums runs of 128 elements. */
static void case_by_key(void)
{
  const uint32_t shift = 7;
  test_array keys = poisoned(dtype, n), y = poisoned(KILN_U32, n);
  test_array count = poisoned(KILN_U64, 1);
  const kiln_reduce_by_key_desc d = {.keys = keys.array,
                                     .x = {.in = {x.array}},
                                     .n = n,
                                     .out = y.array,
                                     .count = count.array};

  OWN("fill_stairs", n, DATA(keys), KILN_ARG(n), KILN_ARG(shift));
  begin("reduce_by_key");
  if (ran(kiln_reduce_by_key(stream, &d, NULL))) {
    expect_equal("the count", word_of(&count, 0), ((n - 1) >> shift) + 1);
    CHECK("sums", "check_blocks", n >> shift, DATA(y), KILN_ARG(n),
          KILN_ARG(shift));
  }
  end();
}

/* Adds the elements of each value. */
static void case_weights(void)
{
  test_array sums = poisoned(KILN_U64, 251);
  const kiln_histogram_desc d = {.x = {.in = {x.array}},
                                 .n = n,
                                 .bins = 251,
                                 .counts = sums.array,
                                 .weight = "x"};
  uint64_t got[251];

  begin("histogram with weights");
  if (ran(kiln_histogram(stream, &d, NULL))) {
    ck_kiln_ok(kiln_copy_to_host(device, got, sums.array.data, sizeof got));
    for (uint64_t b = 0; case_good && b < 251; b++)
      expect_equal("a sum", got[b], b * known.bins[b]);
  }
  end();
}

/* Both axes have the same samples, so that all of them lie on the diagonal. */
static void case_histogram_2d(void)
{
  enum { BINS = 251 };
  const kiln_histogram_axis axis = {.x = x.array, .bins = BINS};
  test_array counts = poisoned(KILN_U64, BINS * BINS);
  const kiln_histogram_2d_desc d = {
      .x = axis, .y = axis, .n = n, .counts = counts.array};
  uint64_t *got = kept(malloc(sizeof *got * BINS * BINS));

  begin("histogram_2d");
  if (ran(kiln_histogram_2d(stream, &d, NULL))) {
    ck_kiln_ok(kiln_copy_to_host(device, got, counts.array.data,
                                 sizeof *got * BINS * BINS));
    for (uint64_t b = 0; case_good && b < BINS * BINS; b++)
      expect_equal("a count", got[b],
                   b / BINS == b % BINS ? known.bins[b / BINS] : 0);
  }
  end();
}

/* ---- Sorts and sets ------------------------------------------------------ */

static void case_key_sort(void)
{
  test_array y = poisoned(dtype, n);
  const kiln_key_sort_desc d = {.in = x.array,
                                .out = y.array,
                                .n = n,
                                .key = "255 - x",
                                .key_type = KILN_U8};

  begin("key_sort");
  if (ran(kiln_key_sort(stream, &d, NULL)))
    expect_equal("the checksum",
                 CHECK("order", "check_falling", n, DATA(y), KILN_ARG(n)),
                 known.mixed);
  end();
}

static void case_comparison(void)
{
  test_array y = poisoned(dtype, n);
  const kiln_merge_sort_desc d = {
      .keys_in = x.array, .keys_out = y.array, .n = n, .less = "a > b"};

  begin("merge_sort");
  if (ran(kiln_merge_sort(stream, &d, NULL)))
    expect_equal("the checksum",
                 CHECK("order", "check_falling", n, DATA(y), KILN_ARG(n)),
                 known.mixed);
  end();
}

/* Returns how often the sequence i >> shift of m bytes has a value below 256. */
static uint64_t times_of(uint64_t value, uint64_t m, uint32_t shift)
{
  const uint64_t begin_at = value << shift, end_at = (value + 1) << shift;

  return begin_at >= m ? 0 : (end_at < m ? end_at : m) - begin_at;
}

/* The union of two sequences has more than 2^32 elements. */
static void case_union(void)
{
  const uint32_t shift = small ? 9 : 25, other = shift - 1;
  const uint64_t n_a = n, n_b = n / 2;
  test_array a = poisoned(dtype, n_a), b = poisoned(dtype, n_b);
  test_array y = poisoned(dtype, n_a + n_b), count = poisoned(KILN_U64, 1);
  const kiln_set_desc d = {.kind = KILN_SET_UNION,
                           .a = a.array,
                           .b = b.array,
                           .n_a = n_a,
                           .n_b = n_b,
                           .out = y.array,
                           .count = count.array};
  uint64_t want = 0, mixed = 0, got;

  OWN("fill_stairs", n_a, DATA(a), KILN_ARG(n_a), KILN_ARG(shift));
  OWN("fill_stairs", n_b, DATA(b), KILN_ARG(n_b), KILN_ARG(other));
  for (uint64_t v = 0; v < 256; v++) {
    const uint64_t in_a = times_of(v, n_a, shift);
    const uint64_t in_b = times_of(v, n_b, other);

    want += in_a > in_b ? in_a : in_b;
    mixed += mix(v) * (in_a > in_b ? in_a : in_b);
  }
  begin("union");
  if (ran(kiln_set_operation(stream, &d, NULL))) {
    got = word_of(&count, 0);
    expect_equal("the count", got, want);
    if (got == want)
      expect_equal("the checksum",
                   CHECK("order", "check_sorted", got, DATA(y), KILN_ARG(got)),
                   mixed);
  }
  end();
}

/* ---- Test ---------------------------------------------------------------- */

START_TEST(test_bytes)
{
  work_begin(0, (UINT64_C(1) << (small ? 16 : 32)) + 12345);
  case_rotate();
  case_permute();
  case_decode();
  case_copies();
  case_random();
  case_minmax();
  case_greatest_of_rows();
  case_by_key();
  case_weights();
  case_histogram_2d();
  case_key_sort();
  case_comparison();
  case_union();
  work_end();
  ck_assert_uint_eq(failures, 0);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("large_more");
  TCase *t = tcase_create("large_more");

  tcase_add_test(t, test_bytes);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  const char *how = getenv("KILN_TEST_LARGE");

  if (how == NULL && getenv("KILN_TEST_THOROUGH") != NULL)
    how = "small";
  return large_main(suite, how);
}
