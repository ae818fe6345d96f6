/* scatter_model_test.c -- tests the cost model of gathers and scatters, and the
 * theoretical machine that counts cache misses. */
#include "support.h"

#include <kiln/gather.h>

#include <string.h>

static const kiln_device_info h200 = {.sm_count = 132,
                                      .clock_khz = 1980000,
                                      .memory_clock_khz = 3201000,
                                      .memory_bus_bits = 6144,
                                      .l2_bytes = 60 << 20};

static kiln_index_plan plan(bool scatter, uint64_t n, kiln_index_method method,
                            uint32_t passes)
{
  const kiln_index_shape shape = {n, n, 4, 4};
  kiln_index_plan p = {.method = method, .passes = passes};

  ck_kiln_ok(scatter ? kiln_scatter_plan(&h200, &shape, &p)
                     : kiln_gather_plan(&h200, &shape, &p));
  return p;
}

/* ---- The cost model ------------------------------------------------------ */

/* Measured times of direct gathers and scatters in one pass, for a random
 * permutation of f32 on an H200, in milliseconds of kernel time. The predicted
 * times must be within a tenth. */
START_TEST(test_measured)
{
  static const struct {
    bool scatter;
    unsigned log2_n;
    double ms;
  } measured[] = {{false, 28, 6.8839}, {false, 24, 0.2700},
                  {true, 28, 16.7493}, {true, 24, 0.8117},
                  {true, 20, 0.0164},  {false, 20, 0.0110}};
  const kiln_index_plan p =
      plan(measured[_i].scatter, UINT64_C(1) << measured[_i].log2_n,
           KILN_INDEX_DIRECT, 0);

  ck_assert_int_eq(p.method, KILN_INDEX_DIRECT);
  ck_assert_uint_eq(p.passes, 1);
  ck_assert_double_ge(p.ms, 0.9 * measured[_i].ms);
  ck_assert_double_le(p.ms, 1.1 * measured[_i].ms);
}
END_TEST

/* Small arrays are accessed directly. Large scatters sort the indices first.
 * Large gathers make several passes over ranges of the source ("windows") or
 * distribute the indices to buckets. */
START_TEST(test_choice)
{
  static const struct {
    bool scatter;
    unsigned log2_n;
    kiln_index_method method;
  } wanted[] = {
      {true, 10, KILN_INDEX_DIRECT},    {true, 20, KILN_INDEX_DIRECT},
      {true, 22, KILN_INDEX_DIRECT},    {true, 24, KILN_INDEX_SORT},
      {true, 26, KILN_INDEX_SORT},      {true, 28, KILN_INDEX_SORT},
      {false, 20, KILN_INDEX_DIRECT},   {false, 23, KILN_INDEX_DIRECT},
      {false, 24, KILN_INDEX_WINDOWS},  {false, 26, KILN_INDEX_PARTITION},
      {false, 28, KILN_INDEX_PARTITION}};
  const uint64_t n = UINT64_C(1) << wanted[_i].log2_n;
  const kiln_index_plan p = plan(wanted[_i].scatter, n, KILN_INDEX_AUTO, 0);
  const kiln_index_plan direct =
      plan(wanted[_i].scatter, n, KILN_INDEX_DIRECT, 0);

  ck_assert_int_eq(p.method, wanted[_i].method);
  ck_assert_double_le(p.ms, direct.ms);
  /* If the caller requests the chosen method, its predicted cost is the
   * same. */
  ck_assert_double_eq(plan(wanted[_i].scatter, n, p.method, p.passes).ms, p.ms);
}
END_TEST

/* The model must choose the method with the shortest predicted time. A margin
 * favours the direct method, so windows and partition may take 84 % of the
 * chosen time, but not less, whatever the number of passes. */
START_TEST(test_best)
{
  const uint64_t n = UINT64_C(1) << (18 + _i);

  for (int scatter = 0; scatter < 2; scatter++) {
    const double best = plan(scatter != 0, n, KILN_INDEX_AUTO, 0).ms;

    for (uint32_t passes = 1; passes <= 64; passes++) {
      ck_assert_double_ge(plan(scatter != 0, n, KILN_INDEX_WINDOWS, passes).ms,
                          0.84 * best);
      ck_assert_double_ge(
          plan(scatter != 0, n, KILN_INDEX_PARTITION, passes).ms, 0.84 * best);
    }
  }
}
END_TEST

static kiln_index_plan sorted(uint64_t n, uint64_t n_target, unsigned size,
                              unsigned index_size)
{
  const kiln_index_shape shape = {n, n_target, size, index_size};
  kiln_index_plan p = {.method = KILN_INDEX_SORT, .passes = 99};

  ck_kiln_ok(kiln_scatter_plan(&h200, &shape, &p));
  ck_assert_int_eq(p.method, KILN_INDEX_SORT);
  ck_assert_uint_eq(p.passes, 1);
  return p;
}

/* Measured times of a gather of 2^24 elements in 2, 3, 4 and 6 windows (passes
 * over a range of the source). The predicted times must be within a tenth. */
START_TEST(test_gather_windows)
{
  static const struct {
    uint32_t passes;
    double ms;
  } measured[] = {{2, 0.203}, {3, 0.213}, {4, 0.251}, {6, 0.366}};
  const kiln_index_plan p =
      plan(false, 1 << 24, KILN_INDEX_WINDOWS, measured[_i].passes);

  ck_assert_double_ge(p.ms, 0.9 * measured[_i].ms);
  ck_assert_double_le(p.ms, 1.1 * measured[_i].ms);
}
END_TEST

/* Measured times of sorting pairs of an index and a value. After the sort, 12
 * bytes per element are moved. The predicted time must be close to the sum. */
START_TEST(test_sort)
{
  static const struct {
    unsigned log2_n;
    double sort_ms;
  } measured[] = {{28, 3.93}, {24, 0.27}, {20, 0.042}};
  const uint64_t n = UINT64_C(1) << measured[_i].log2_n;
  const double ms = measured[_i].sort_ms + 12.0 * (double)n / 4.33e9;
  const kiln_index_plan p = sorted(n, n, 4, 4);

  /* Below 2^21 elements, the model's sort needs one pass less than the measured
   * sort. */
  ck_assert_double_ge(p.ms, (measured[_i].log2_n < 24 ? 0.7 : 0.95) * ms);
  ck_assert_double_le(p.ms, 1.1 * ms + 0.02);
  /* The sort reads n keys and makes one or two passes over pairs. The last pass
   * writes only the values that are still needed. */
  if (measured[_i].log2_n >= 24)
    ck_assert_double_eq(p.stream_bytes, (4.0 + 2 * 16 + 8) * (double)n);
  else
    ck_assert_double_eq(p.stream_bytes, (4.0 + 16 + 8) * (double)n);
  ck_assert_double_gt(sorted(n, n, 8, 4).ms, p.ms);
  ck_assert_double_gt(sorted(n, n, 4, 8).ms, p.ms);
  ck_assert_double_gt(sorted(n, 16 * n, 4, 4).ms, p.ms);
}
END_TEST

/* According to the measured times, the chosen method is at most a tenth slower
 * than the fastest method. */
START_TEST(test_choice_measured)
{
  static const struct {
    unsigned log2_n;
    double ms[5]; /* measured milliseconds of each method; 0 if not measured */
  } measured[] = {{20, {0, 0.0164, 0, 0, 0.046}},
                  {24, {0, 0.8117, 0.348, 0.368, 0.319}},
                  {26, {0, 0, 0, 1.7, 1.21}},
                  {28, {0, 16.75, 0, 7.3, 4.7}}};
  const kiln_index_method choice =
      plan(true, UINT64_C(1) << measured[_i].log2_n, KILN_INDEX_AUTO, 0).method;

  ck_assert_double_gt(measured[_i].ms[choice], 0);
  for (size_t m = 1; m < 5; m++)
    if (measured[_i].ms[m] > 0)
      ck_assert_double_le(measured[_i].ms[choice], 1.1 * measured[_i].ms[m]);
}
END_TEST

START_TEST(test_rates)
{
  kiln_device_info slow = h200, unknown = {.sm_count = 0};
  const kiln_index_shape shape = {1 << 28, 1 << 28, 4, 4};
  kiln_index_plan fast_plan = {0}, slow_plan = {0}, wide = {0};
  kiln_index_shape other = shape;

  slow.memory_clock_khz /= 4;
  slow.clock_khz /= 4;
  ck_kiln_ok(kiln_scatter_plan(&h200, &shape, &fast_plan));
  ck_kiln_ok(kiln_scatter_plan(&slow, &shape, &slow_plan));
  ck_assert_double_gt(slow_plan.ms, 3.9 * fast_plan.ms);
  ck_assert_double_lt(slow_plan.ms, 4.1 * fast_plan.ms);
  ck_kiln_ok(kiln_scatter_plan(&unknown, &shape, &slow_plan));
  ck_assert_double_gt(slow_plan.ms, fast_plan.ms);
  /* Wider indices increase the memory traffic. */
  fast_plan = (kiln_index_plan){.method = KILN_INDEX_DIRECT};
  wide = fast_plan;
  other.index_size = 8;
  ck_kiln_ok(kiln_scatter_plan(&h200, &shape, &fast_plan));
  ck_kiln_ok(kiln_scatter_plan(&h200, &other, &wide));
  ck_assert_double_eq(wide.stream_bytes - fast_plan.stream_bytes,
                      4.0 * (double)shape.n);
  ck_assert_double_eq(fast_plan.stream_bytes, 8.0 * (double)shape.n);
  ck_assert_double_eq(fast_plan.cached_accesses, (double)shape.n);
}
END_TEST

/* With windows, each pass reads all indices and accesses only one range
 * ("window") of the target. More windows cause fewer cache misses, until a
 * window fits in the cache. */
START_TEST(test_windows)
{
  const uint64_t n = 1 << 24;
  kiln_index_plan before = plan(true, n, KILN_INDEX_WINDOWS, 1);

  for (uint32_t passes = 2; passes <= 32; passes++) {
    const kiln_index_plan p = plan(true, n, KILN_INDEX_WINDOWS, passes);

    ck_assert_uint_eq(p.passes, passes);
    ck_assert_double_gt(p.stream_bytes, before.stream_bytes);
    ck_assert_double_le(p.missed_bytes, before.missed_bytes);
    ck_assert_double_gt(p.stream_bytes, 4.0 * (double)n * passes);
    before = p;
  }
  /* With 32 windows, every sector of the target is written about once. */
  ck_assert_double_eq_tol(before.missed_bytes, 64e6, 8e6);
}
END_TEST

START_TEST(test_parts)
{
  ck_assert_uint_eq(plan(true, 1 << 26, KILN_INDEX_PARTITION, 5).passes, 8);
  ck_assert_uint_eq(plan(true, 1 << 26, KILN_INDEX_PARTITION, 1024).passes,
                    1024);
  for (unsigned k = 10; k < 40; k++) {
    const uint32_t parts =
        plan(true, UINT64_C(1) << k, KILN_INDEX_PARTITION, 0).passes;

    ck_assert_uint_le(parts, 1024);
    ck_assert_uint_eq(parts & (parts - 1), 0);
  }
}
END_TEST

START_TEST(test_bad)
{
  const kiln_index_shape good = {100, 100, 4, 4}, no_size = {100, 100, 0, 4},
                         odd_index = {100, 100, 4, 2}, nothing = {0, 0, 4, 8},
                         far = {100, (UINT64_C(1) << 32) + 1, 4, 8},
                         unknown = {100, 0, 4, 8}, large = {100, 100, 16, 4};
  kiln_index_plan p = {0}, none = {.method = (kiln_index_method)5},
                  many = {.method = KILN_INDEX_WINDOWS, .passes = 65536},
                  parts = {.method = KILN_INDEX_PARTITION, .passes = 1025},
                  sort = {.method = KILN_INDEX_SORT};

  ck_kiln_is(kiln_scatter_plan(NULL, &good, &p), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_plan(&h200, NULL, &p), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &good, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &no_size, &p), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &odd_index, &p), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &good, &none), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &good, &many), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_plan(&h200, &good, &parts), KILN_EINVAL);
  ck_kiln_is(kiln_gather_plan(&h200, &good, &sort), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_plan(&h200, &far, &sort), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_plan(&h200, &unknown, &sort), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_plan(&h200, &large, &sort), KILN_EINVAL);
  ck_kiln_ok(kiln_scatter_plan(&h200, &good, &sort));
  ck_kiln_ok(kiln_scatter_plan(&h200, &nothing, &p));
  ck_assert_int_eq(p.method, KILN_INDEX_DIRECT);
}
END_TEST

/* ---- Misses -------------------------------------------------------------- */

static const uint32_t lecture[16] = {0, 12, 4, 8,  13, 5, 1, 9,
                                     2, 14, 6, 10, 15, 3, 7, 11};

static uint64_t misses_of(const kiln_cache_model *cache, const uint32_t *index,
                          size_t n, uint64_t target, uint32_t passes)
{
  uint64_t misses = 0;

  ck_kiln_ok(kiln_scatter_misses(cache, index, n, target, passes, &misses));
  return misses;
}

START_TEST(test_lecture)
{
  const kiln_cache_model cache = {.line = 4, .lines = 2, .threads = 4};
  const kiln_cache_model large = {.line = 4, .lines = 4, .threads = 4};

  ck_assert_uint_eq(misses_of(&cache, lecture, 16, 16, 1), 10);
  ck_assert_uint_eq(misses_of(&cache, lecture, 16, 16, 2), 4);
  ck_assert_uint_eq(misses_of(&cache, lecture, 16, 16, 4), 4);
  ck_assert_uint_eq(misses_of(&large, lecture, 16, 16, 1), 4);
  ck_assert_uint_eq(misses_of(&cache, lecture, 4, 16, 1), 4);
  ck_assert_uint_eq(misses_of(&cache, lecture, 0, 16, 1), 0);
}
END_TEST

/* Another implementation of the machine that counts cache misses. It stores the
 * time of last use for each cache line. Both implementations must agree. */
enum { LINES = 64 };

static uint64_t slow_misses(const kiln_cache_model *cache,
                            const uint32_t *index, size_t n, uint64_t target,
                            uint32_t passes)
{
  const uint64_t window = (target + passes - 1) / passes;
  uint64_t used[LINES] = {0}, now = 1, misses = 0;
  bool held[LINES] = {false};

  for (uint32_t pass = 0; pass < passes; pass++)
    for (size_t i = 0; i < n; i += cache->threads) {
      bool wanted[LINES] = {false};

      for (size_t k = i; k < n && k < i + cache->threads; k++)
        if (index[k] >= pass * window && index[k] < (pass + 1) * window) {
          const uint32_t line = index[k] / cache->line;

          if (held[line])
            used[line] = now++;
          else
            wanted[line] = true;
        }
      for (size_t line = 0; line < LINES; line++) {
        size_t count = 0, oldest = LINES;

        if (!wanted[line])
          continue;
        misses++;
        for (size_t k = 0; k < LINES; k++)
          if (held[k]) {
            count++;
            if (oldest == LINES || used[k] < used[oldest])
              oldest = k;
          }
        if (count == cache->lines)
          held[oldest] = false;
        held[line] = true;
        used[line] = now++;
      }
    }
  return misses;
}

START_TEST(test_misses)
{
  uint64_t state = 99;

  for (int k = 0; k < 2000; k++) {
    const kiln_cache_model cache = {
        .line = 1 + (unsigned)(test_random(&state) % 8),
        .lines = 1 + (unsigned)(test_random(&state) % 16),
        .threads = 1 + (unsigned)(test_random(&state) % 64)};
    const uint64_t target = LINES * cache.line;
    const uint32_t passes = 1 + (uint32_t)(test_random(&state) % 9);
    uint32_t index[300];

    for (size_t i = 0; i < 300; i++)
      index[i] = (uint32_t)(test_random(&state) % target);
    ck_assert_uint_eq(misses_of(&cache, index, 300, target, passes),
                      slow_misses(&cache, index, 300, target, passes));
  }
}
END_TEST

START_TEST(test_bad_machines)
{
  static const kiln_cache_model bad[] = {
      {0, 2, 4}, {4, 0, 4}, {4, 65, 4}, {4, 2, 0}, {4, 2, 65}};
  const kiln_cache_model good = {4, 2, 4};
  uint64_t misses;

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
    ck_kiln_is(kiln_scatter_misses(&bad[k], lecture, 16, 16, 1, &misses),
               KILN_EINVAL);
  ck_kiln_is(kiln_scatter_misses(NULL, lecture, 16, 16, 1, &misses),
             KILN_EINVAL);
  ck_kiln_is(kiln_scatter_misses(&good, NULL, 16, 16, 1, &misses), KILN_EINVAL);
  ck_kiln_is(kiln_scatter_misses(&good, lecture, 16, 16, 0, &misses),
             KILN_EINVAL);
  ck_kiln_is(kiln_scatter_misses(&good, lecture, 16, 16, 1, NULL), KILN_EINVAL);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("scatter_model");
  TCase *t =
      kiln_test_case(s, "scatter_model", 0, NULL, NULL,
                     TESTS(test_rates, test_windows, test_parts, test_bad,
                           test_lecture, test_misses, test_bad_machines));

  tcase_add_loop_test(t, test_measured, 0, 6);
  tcase_add_loop_test(t, test_choice, 0, 11);
  tcase_add_loop_test(t, test_gather_windows, 0, 4);
  tcase_add_loop_test(t, test_best, 0, 13);
  tcase_add_loop_test(t, test_sort, 0, 3);
  tcase_add_loop_test(t, test_choice_measured, 0, 4);
  return kiln_test_run(s);
}
