/* large_test.c -- the operations on more than 2^32 elements of one byte, on
 * 2^28 of four bytes and on 2^27 of eight bytes.
 *
 * KILN_TEST_LARGE=1 runs these sizes, on a GPU with 64 GB of free memory.
 * KILN_TEST_LARGE=small runs the same code on few elements on any device. Every
 * case prints a line with its time. After a case that failed the others still
 * run. */
#include "large_cases.h"

static unsigned char *host; /* host memory for the largest output */

static const char *const predicates[] = {"x >= 100", "x > 0x7fffffffu", "x > 0",
                                         "x >> 63", "x > 0"};

/* ---- Results on the host ------------------------------------------------- */

/* Compares an output array with the expected elements. walk_begin() must have
 * computed the running sums. */
static void walk_end(walk *k)
{
  in_shares(walk_compare, k);
  if (k->wrong != 0)
    wrong("%llu wrong, the first is %llu", (unsigned long long)k->wrong,
          (unsigned long long)k->first);
}

/* Copies the first `count` elements to the host memory, from byte `at` on. */
static const unsigned char *to_host(size_t at, const test_array *a,
                                    uint64_t count)
{
  ck_kiln_ok(
      kiln_copy_to_host(device, host + at, a->array.data, count * a->width));
  return host + at;
}

/* Compares an output with the result that the host computes by this rule from
 * the input. */
static void check_walk(walk_rule rule, const test_array *y, uint64_t count)
{
  walk k = {.rule = rule, .type = type, .n = n, .divisor = 1};

  k.out = to_host(0, y, count);
  walk_begin(&k);
  walk_end(&k);
}

/* Writes the host memory on all threads, because allocating its pages takes
 * long. */
static void touch(void *user, unsigned share)
{
  const uint64_t size = *(const uint64_t *)user;

  memset(host + share_start(size, share), 0,
         share_start(size, share + 1) - share_start(size, share));
}

static void host_make(uint64_t size)
{
  begin("host memory");
  host = malloc(size);
  ck_assert_ptr_nonnull(host);
  in_shares(touch, &size);
  end();
}

/* ---- Any type ------------------------------------------------------------ */

/* The second input begins one element behind the first, so their alignments
 * differ. */
static void case_map(void)
{
  test_array y = poisoned(dtype, n);
  const kiln_map_desc d = {.in = {x.array, {x.array.data + x.width, dtype}},
                           .out = {y.array},
                           .expr = {"x + y + (i & 1023)"},
                           .n = n};

  begin("map");
  if (ran(kiln_map(stream, &d, NULL)))
    CHECK("map", "check_map", n, DATA(y), KILN_ARG(n));
  end();
}

static void reduce_to(const char *name, kiln_op_name op, const char *map,
                      kiln_dtype out, uint64_t want)
{
  test_array y = poisoned(out, 1);
  const kiln_reduce_desc d = {
      .x = {.in = {x.array}, .map = map, .type = map != NULL ? out : 0},
      .n = n,
      .op = {.name = op},
      .out = y.array};

  begin(name);
  if (ran(kiln_reduce(stream, &d, NULL)))
    expect_equal("the result", word_of(&y, 0), want);
  end();
}

static void case_reduce(void)
{
  char map[64];

  snprintf(map, sizeof map, "%s ? 3 : -1", predicates[type]);
  reduce_to("map and sum", KILN_SUM, map, KILN_I64, 4 * known.chosen - known.n);
  if (type == 2) /* the sum of 2^28 values below 2^23 is exact in f64 */
    reduce_to("sum", KILN_SUM, NULL, KILN_F64, bits_of(4, (int64_t)known.sum));
  else if (type != 4)
    reduce_to("sum", KILN_SUM, NULL, KILN_U64, known.sum);
  reduce_to("min", KILN_MIN, NULL, dtype,
            bits_of(type, order_of(type, known.least[SHARES])));
  reduce_to("max", KILN_MAX, NULL, dtype,
            bits_of(type, order_of(type, known.most[SHARES])));
}

static void case_arg_max(uint64_t value, uint64_t at)
{
  test_array y = poisoned(dtype, 1), where = poisoned(KILN_U64, 1);
  const kiln_arg_reduce_desc d = {.x = {.in = {x.array}},
                                  .n = n,
                                  .op = KILN_MAX,
                                  .value = y.array,
                                  .index = where.array};

  begin("arg_max");
  if (ran(kiln_arg_reduce(stream, &d, NULL))) {
    expect_equal("the greatest", word_of(&y, 0), value);
    expect_equal("its index", word_of(&where, 0), at);
  }
  end();
}

static void case_scan(void)
{
  test_array y = poisoned(dtype, n);
  const bool floats = type == 2 || type == 4;
  kiln_scan_desc d = {.x = {.in = {x.array}}, .n = n, .out = y.array};

  if (floats)
    d.x.map = "x > 0 ? 1 : -1";
  begin("scan");
  if (ran(kiln_scan(stream, &d, NULL)))
    check_walk(WALK_SCAN, &y, n);
  end();
}

static void case_select(void)
{
  test_array y = poisoned(dtype, n);
  test_array count = poisoned(KILN_U64, 1);
  const kiln_select_desc d = {.x = {.in = {x.array}},
                              .predicate = predicates[type],
                              .n = n,
                              .out = y.array,
                              .count = count.array};

  begin("select");
  if (ran(kiln_select(stream, &d, NULL))) {
    expect_equal("the count", word_of(&count, 0), known.chosen);
    check_walk(WALK_SELECT, &y, known.chosen);
  }
  end();
}

static void case_partition(void)
{
  test_array y = poisoned(dtype, n), count = poisoned(KILN_U64, 1);
  const kiln_partition_desc d = {.x = {.in = {x.array}},
                                 .first = predicates[type],
                                 .n = n,
                                 .out = y.array,
                                 .count = count.array};

  begin("partition");
  if (ran(kiln_partition(stream, &d, NULL))) {
    expect_equal("the count", word_of(&count, 0), known.chosen);
    check_walk(WALK_PARTITION, &y, n);
  }
  end();
}

static void case_split(void)
{
  test_array y = poisoned(dtype, n), offsets = poisoned(KILN_U64, 3);
  char key[64];
  const kiln_split_desc d = {.x = {.in = {x.array}},
                             .key = key,
                             .parts = 2,
                             .n = n,
                             .out = y.array,
                             .offsets = offsets.array};

  snprintf(key, sizeof key, "%s ? 0 : 1", predicates[type]);
  begin("split");
  if (ran(kiln_split(stream, &d, NULL))) {
    expect_equal("offset 1", word_of(&offsets, 1), known.chosen);
    expect_equal("offset 2", word_of(&offsets, 2), n);
    check_walk(WALK_PARTITION, &y, n);
  }
  end();
}

/* The bins are the 256 values of the highest bits, or for u8 the values
 * themselves. */
static void case_histogram(void)
{
  static const double low[] = {0, 0, -0x1p23, 0, -0x1p52};
  static const double high[] = {0, 0x1p32, 0x1p23, 0x1p64, 0x1p52};
  test_array counts = poisoned(KILN_U64, 256);
  const kiln_histogram_desc d = {.x = {.in = {x.array}},
                                 .n = n,
                                 .bins = 256,
                                 .lower = low[type],
                                 .upper = high[type],
                                 .counts = counts.array};
  uint64_t got[256];

  begin("histogram");
  if (ran(kiln_histogram(stream, &d, NULL))) {
    ck_kiln_ok(kiln_copy_to_host(device, got, counts.array.data, sizeof got));
    for (int b = 0; case_good && b < 256; b++)
      expect_equal("a bin", got[b], known.bins[b]);
  }
  end();
}

static void case_sort(bool by_counting)
{
  test_array y = poisoned(dtype, n);
  const kiln_sort_desc d = {.keys_in = x.array, .keys_out = y.array, .n = n};
  const kiln_counting_sort_desc c = {
      .keys = x.array, .keys_out = y.array, .n = n};

  begin(by_counting ? "counting sort" : "sort");
  if (ran(by_counting ? kiln_counting_sort(stream, &c, NULL)
                      : kiln_sort(stream, &d, NULL)))
    expect_equal("the checksum",
                 CHECK("order", "check_sorted", n, DATA(y), KILN_ARG(n)),
                 known.mixed);
  end();
}

static void case_sort_pairs(void)
{
  test_array y = poisoned(dtype, n);
  test_array from = poisoned(KILN_U32, n), to = poisoned(KILN_U32, n);
  const kiln_sort_desc d = {.keys_in = x.array,
                            .keys_out = y.array,
                            .values_in = from.array,
                            .values_out = to.array,
                            .n = n};

  OWN("fill_count", n, DATA(from), KILN_ARG(n));
  begin("sort of pairs");
  if (ran(kiln_sort(stream, &d, NULL)))
    expect_equal(
        "the checksum",
        CHECK("order", "check_pairs", n, DATA(y), DATA(to), KILN_ARG(n)),
        known.mixed_index);
  end();
}

/* Sorts by a comparison, with the indices of the keys as values. */
static void case_merge_sort(void)
{
  test_array y = poisoned(dtype, n);
  test_array from = poisoned(KILN_U32, n), to = poisoned(KILN_U32, n);
  const kiln_merge_sort_desc d = {.keys_in = x.array,
                                  .keys_out = y.array,
                                  .values_in = from.array,
                                  .values_out = to.array,
                                  .n = n,
                                  .less = "a < b"};

  OWN("fill_count", n, DATA(from), KILN_ARG(n));
  begin("sort by a comparison");
  if (ran(kiln_merge_sort(stream, &d, NULL)))
    expect_equal(
        "the checksum",
        CHECK("order", "check_pairs", n, DATA(y), DATA(to), KILN_ARG(n)),
        known.mixed_index);
  end();
}

/* Makes `count` indices into x. They have the narrowest type that holds
 * them. */
static test_array places(uint64_t count, int kind)
{
  const kiln_dtype t = n >> 32 != 0 || type == 0 ? KILN_U64 : KILN_U32;
  test_array index = poisoned(t, count);
  const uint32_t width = (uint32_t)index.width;

  OWN("fill_places", count, DATA(index), KILN_ARG(width), KILN_ARG(count),
      KILN_ARG(n), KILN_ARG(kind));
  return index;
}

static void case_gather(const char *name, uint64_t count,
                        kiln_index_method method)
{
  const int kind = 0;
  const uint64_t width = 1;
  test_array index = places(count, kind), y = poisoned(dtype, count);
  const kiln_gather_desc d = {.x = {.in = {x.array}},
                              .index = index.array,
                              .out = y.array,
                              .n = count,
                              .n_target = n,
                              .method = method};

  begin(name);
  if (ran(kiln_gather(stream, &d, NULL)))
    CHECK("gather", "check_gather", count, DATA(y), KILN_ARG(count),
          KILN_ARG(n), KILN_ARG(kind), KILN_ARG(width));
  end();
}

/* A permutation. */
static void case_scatter(const char *name, kiln_index_method method)
{
  const int kind = 1;
  test_array index = places(n, kind), y = poisoned(dtype, n);
  const kiln_scatter_desc d = {.x = {.in = {x.array}},
                               .index = index.array,
                               .out = y.array,
                               .n = n,
                               .n_target = n,
                               .method = method};

  begin(name);
  if (ran(kiln_scatter(stream, &d, NULL)))
    CHECK("scatter", "check_scatter", n, DATA(y), KILN_ARG(n), KILN_ARG(n),
          KILN_ARG(kind));
  end();
}

/* Merges two arrays with keys i >> shift and one byte per key as a value. */
static void case_merge(uint64_t n_a, uint64_t n_b, uint32_t shift)
{
  const uint64_t none = 0, salt = UINT64_C(1) << 40;
  test_array a = poisoned(dtype, n_a), b = poisoned(dtype, n_b);
  test_array va = poisoned(KILN_U8, n_a), vb = poisoned(KILN_U8, n_b);
  test_array y = poisoned(dtype, n_a + n_b), v = poisoned(KILN_U8, n_a + n_b);
  const kiln_merge_desc d = {.a = a.array,
                             .b = b.array,
                             .n_a = n_a,
                             .n_b = n_b,
                             .out = y.array,
                             .a_values = va.array,
                             .b_values = vb.array,
                             .out_values = v.array};

  OWN("fill_stairs", n_a, DATA(a), KILN_ARG(n_a), KILN_ARG(shift));
  OWN("fill_stairs", n_b, DATA(b), KILN_ARG(n_b), KILN_ARG(shift));
  OWN("fill_bytes", n_a, DATA(va), KILN_ARG(n_a), KILN_ARG(none));
  OWN("fill_bytes", n_b, DATA(vb), KILN_ARG(n_b), KILN_ARG(salt));
  begin("merge");
  if (ran(kiln_merge(stream, &d, NULL)))
    CHECK("merge", "check_merged", n_a + n_b, DATA(y), DATA(v), KILN_ARG(n_a),
          KILN_ARG(n_b), KILN_ARG(shift), KILN_ARG(salt));
  end();
}

/* Searches for both bounds of needles in the sequence i >> shift. Some needles
 * exceed its last element. */
static void case_search(uint64_t needles, uint32_t shift)
{
  const uint64_t range = (n >> shift) + 3;
  test_array sorted = poisoned(dtype, n), needle = poisoned(dtype, needles);
  test_array y = poisoned(KILN_U64, needles);
  kiln_search_desc d = {.sorted = sorted.array,
                        .m = n,
                        .needles = {.in = {needle.array}},
                        .n = needles,
                        .out = y.array};

  OWN("fill_stairs", n, DATA(sorted), KILN_ARG(n), KILN_ARG(shift));
  OWN("fill_needles", needles, DATA(needle), KILN_ARG(needles),
      KILN_ARG(range));
  begin("search");
  for (uint32_t upper = 0; upper < 2; upper++) {
    d.upper = upper != 0;
    if (ran(kiln_search(stream, &d, NULL)))
      CHECK(upper ? "upper bound" : "lower bound", "check_found", needles,
            DATA(y), KILN_ARG(needles), KILN_ARG(range), KILN_ARG(n),
            KILN_ARG(shift), KILN_ARG(upper));
  }
  end();
}

/* Sums segments of 16 elements. */
static void case_sixteen(void)
{
  const uint64_t segments = n / 16;
  test_array y = poisoned(dtype, segments);
  char map[64];
  const kiln_segmented_reduce_desc d = {.x = {.in = {x.array}, .map = map},
                                        .n = n,
                                        .n_segments = segments,
                                        .length = 16,
                                        .out = y.array};

  snprintf(map, sizeof map, "%s ? 3 : 1", predicates[type]);
  begin("segments of 16");
  if (ran(kiln_segmented_reduce(stream, &d, NULL)))
    CHECK("sums", "check_sixteen", segments, DATA(y), KILN_ARG(segments));
  end();
}

/* ---- Bytes --------------------------------------------------------------- */

static void case_top_k(uint64_t key, uint64_t at)
{
  test_array best = poisoned(dtype, 1), index = poisoned(KILN_U64, 1);
  const kiln_top_k_desc d = {.keys = x.array,
                             .n = n,
                             .k = 1,
                             .keys_out = best.array,
                             .indices = index.array};

  begin("top_k");
  if (ran(kiln_top_k(stream, &d, NULL))) {
    expect_equal("the key", word_of(&best, 0), key);
    expect_equal("the index", word_of(&index, 0), at);
  }
  end();
}

static void case_quantile(uint64_t key)
{
  const double q[] = {1};
  test_array out = poisoned(dtype, 1);
  const kiln_quantile_desc d = {.keys = x.array,
                                .n = n,
                                .q = q,
                                .n_q = 1,
                                .out = out.array,
                                .rule = KILN_QUANTILE_NEAREST};

  begin("quantile");
  if (ran(kiln_quantile(stream, &d, NULL)))
    expect_equal("the greatest key", word_of(&out, 0), key);
  end();
}

/* Finds the only element of value 255, which lies behind the first 2^32
 * elements (2^16 in a small run). */
static void cases_of_the_one(void)
{
  const uint64_t at = n - 12345 + 777;
  const uint8_t one = 255, before = (uint8_t)whole(type, at);

  ck_kiln_ok(kiln_copy_to_device(device, x.array.data + at, &one, 1));
  case_arg_max(one, at);
  case_top_k(one, at);
  case_quantile(one);
  for (int count = 0; count < 2; count++) {
    test_array y = poisoned(KILN_U64, 1);
    const kiln_find_desc d = {.x = {.in = {x.array}},
                              .predicate = "x == 255",
                              .n = n,
                              .out = y.array};

    begin(count ? "count" : "find");
    if (ran(count ? kiln_count(stream, &d, NULL) : kiln_find(stream, &d, NULL)))
      expect_equal("the result", word_of(&y, 0), count ? 1 : at);
    end();
  }
  ck_kiln_ok(kiln_copy_to_device(device, x.array.data + at, &before, 1));
}

/* Most runs have 97 elements; a few have 194 or more. Each output array holds n
 * elements, as the operation requires. */
static void case_runs(bool lengths)
{
  walk k = {.rule = WALK_RUNS, .type = type, .n = n, .divisor = 97};
  test_array in = poisoned(dtype, n), count = poisoned(KILN_U64, 1);
  test_array y = poisoned(dtype, n), index = poisoned(KILN_U64, n);
  test_array length = poisoned(KILN_U64, lengths ? n : 1);
  const kiln_unique_desc u = {.x = {.in = {in.array}},
                              .n = n,
                              .out = y.array,
                              .out_index = index.array,
                              .count = count.array};
  const kiln_run_length_desc r = {.x = {.in = {in.array}},
                                  .n = n,
                                  .values = y.array,
                                  .offsets = index.array,
                                  .lengths = length.array,
                                  .count = count.array};

  OWN("fill", n, DATA(in), KILN_ARG(n), KILN_ARG(k.divisor));
  begin(lengths ? "run_length_encode" : "unique");
  walk_begin(&k);
  if (ran(lengths ? kiln_run_length_encode(stream, &r, NULL)
                  : kiln_unique(stream, &u, NULL))) {
    const uint64_t runs = k.before[SHARES];

    expect_equal("the count", word_of(&count, 0), runs);
    k.index = (const uint64_t *)(const void *)to_host(0, &index, runs);
    if (lengths)
      k.lengths =
          (const uint64_t *)(const void *)to_host(8 * runs, &length, runs);
    k.out = to_host(16 * runs, &y, runs);
    walk_end(&k);
  }
  end();
}

static void case_difference(void)
{
  test_array y = poisoned(dtype, n);
  const kiln_adjacent_difference_desc d = {
      .x = {.in = {x.array}}, .n = n, .out = y.array};

  begin("adjacent_difference");
  if (ran(kiln_adjacent_difference(stream, &d, NULL)))
    CHECK("differences", "check_difference", n, DATA(y), KILN_ARG(n));
  end();
}

static void case_segments(void)
{
  const uint64_t segments = n / 1000;
  test_array offsets = poisoned(KILN_U64, segments + 1);
  test_array y = poisoned(KILN_U64, segments);
  const kiln_segmented_reduce_desc d = {.x = {.in = {x.array}},
                                        .n = n,
                                        .n_segments = segments,
                                        .offsets = offsets.array,
                                        .out = y.array};

  OWN("fill_segments", segments, DATA(offsets), KILN_ARG(segments),
      KILN_ARG(n));
  begin("segmented_reduce");
  if (ran(kiln_segmented_reduce(stream, &d, NULL)))
    CHECK("sums", "check_segments", segments, DATA(y), KILN_ARG(segments),
          KILN_ARG(n));
  end();
}

static void case_lines(bool of_rows)
{
  const uint64_t columns = small ? 67 : 4099, rows = n / columns;
  const uint32_t flag = of_rows;
  test_array y = poisoned(KILN_U64, of_rows ? rows : columns);
  const kiln_reduce_matrix_desc d = {
      .x = {.in = {x.array}}, .rows = rows, .columns = columns, .out = y.array};

  begin(of_rows ? "reduce_rows" : "reduce_columns");
  if (ran(of_rows ? kiln_reduce_rows(stream, &d, NULL)
                  : kiln_reduce_columns(stream, &d, NULL)))
    CHECK("sums", "check_lines", y.n, DATA(y), KILN_ARG(rows),
          KILN_ARG(columns), KILN_ARG(flag));
  end();
}

/* Scatters few elements over the whole target. */
static void case_scatter_few(uint64_t count)
{
  const int kind = 2;
  test_array index = places(count, kind), y = filled(dtype, n, 255);
  const kiln_scatter_desc d = {.x = {.in = {x.array}},
                               .index = index.array,
                               .out = y.array,
                               .n = count,
                               .n_target = n};

  begin("scatter of few");
  if (ran(kiln_scatter(stream, &d, NULL)))
    CHECK("target", "check_spread", n, DATA(y), KILN_ARG(count), KILN_ARG(n));
  end();
}

/* Gathers rows of 64 bytes by 64-bit indices. */
static void case_gather_rows(uint64_t count)
{
  const int kind = 0;
  const uint64_t width = 64, rows = n / width;
  const uint32_t eight = 8;
  test_array index = poisoned(KILN_U64, count);
  test_array y = poisoned(dtype, count * width);
  const kiln_gather_rows_desc d = {.in = x.array,
                                   .index = index.array,
                                   .out = y.array,
                                   .n = count,
                                   .width = width,
                                   .n_target = rows};

  OWN("fill_places", count, DATA(index), KILN_ARG(eight), KILN_ARG(count),
      KILN_ARG(rows), KILN_ARG(kind));
  begin("gather_rows");
  if (ran(kiln_gather_rows(stream, &d, NULL)))
    CHECK("rows", "check_gather", count * width, DATA(y), KILN_ARG(count),
          KILN_ARG(rows), KILN_ARG(kind), KILN_ARG(width));
  end();
}

/* ---- Tests --------------------------------------------------------------- */

static void any_type(void)
{
  case_map();
  case_reduce();
  case_scan();
  case_select();
  case_partition();
  case_split();
  case_histogram();
  case_sort(false);
}

START_TEST(test_bytes)
{
  const uint64_t base = UINT64_C(1) << (small ? 16 : 32);
  const uint64_t few = UINT64_C(1) << (small ? 10 : 24);
  const uint32_t shift = small ? 9 : 25;
  uint64_t room, all;

  dtype = KILN_U8;
  host_make(base + 12345);
  work_begin(0, base + 12345);
  ck_kiln_ok(kiln_memory_info(device, &room, &all));
  any_type();
  cases_of_the_one();
  case_runs(false);
  if (room > 22 * n)
    case_runs(true);
  else
    printf("skipped: run lengths: %.0f GB are not free\n", 22e-9 * (double)n);
  case_difference();
  case_segments();
  case_lines(true);
  case_lines(false);
  case_sort(true);
  case_gather("gather of few", few, KILN_INDEX_AUTO);
  case_gather_rows(few / 16);
  case_scatter_few(few);
  case_merge(base / 2 + 12345, base / 2 + 54321, shift);
  case_search(few, shift);
  if (room > 12 * n) {
    case_gather("gather", n, KILN_INDEX_AUTO);
    case_scatter("scatter", KILN_INDEX_AUTO);
  } else {
    printf("skipped: gather and scatter of all: %.0f GB are not free\n",
           12e-9 * (double)n);
  }
  work_end();
  free(host);
  ck_assert_uint_eq(failures, 0);
}
END_TEST

static void words(int of_type, uint64_t count)
{
  work_begin(of_type, count);
  any_type();
  case_arg_max(bits_of(type, order_of(type, known.most[SHARES])),
               known.most_at[SHARES]);
  case_sort_pairs();
  case_merge_sort();
  case_gather("gather", n, KILN_INDEX_AUTO);
  case_scatter("scatter", KILN_INDEX_AUTO);
  if (type == 1) {
    case_gather("gather by windows", n, KILN_INDEX_WINDOWS);
    case_gather("gather by parts", n, KILN_INDEX_PARTITION);
    case_scatter("scatter directly", KILN_INDEX_DIRECT);
    case_scatter("scatter by windows", KILN_INDEX_WINDOWS);
    case_scatter("scatter by parts", KILN_INDEX_PARTITION);
    case_scatter("scatter by sorting", KILN_INDEX_SORT);
  }
  case_merge(n / 2 + 33, n - n / 2 - 33, 5);
  case_search(n / 4, 5);
  case_sixteen();
  work_end();
}

START_TEST(test_words)
{
  const uint64_t base = UINT64_C(1) << (small ? 12 : 28);

  dtype = KILN_U8;
  host_make((base + UINT64_C(2) * 12345) * 4);
  for (int t = 1; t < 5; t++) {
    const uint64_t count = t < 3 ? base : base / 2;

    if (small && t > 2) /* compiling for further types would take too long */
      break;
    words(t, count);
    words(t, count + 12345);
  }
  free(host);
  ck_assert_uint_eq(failures, 0);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("large");
  TCase *t = tcase_create("large");

  tcase_add_test(t, test_bytes);
  tcase_add_test(t, test_words);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  return large_main(suite, getenv("KILN_TEST_LARGE"));
}
