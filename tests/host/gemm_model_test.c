/* gemm_model_test.c -- tests the model that chooses the tile of a matrix
 * product. */
#include "support.h"

#include "ops/gemm/gemm.h"

enum { SMS = 132 };

static const kiln__gemm_tile large = {128, 128, 1, 850};
static const kiln__gemm_tile pair[] = {{128, 128, 1, 850}, {64, 64, 4, 650}};

static kiln__gemm_shape square(uint64_t n)
{
  return (kiln__gemm_shape){n, n, n, 1, SMS};
}

START_TEST(test_tiles)
{
  kiln__gemm_shape s = {257, 128, 10, 3, SMS};

  ck_assert_uint_eq(kiln__gemm_tiles(&s, &large), 3 * 3);
  s.m = 1;
  ck_assert_uint_eq(kiln__gemm_tiles(&s, &large), 3);
}
END_TEST

/* A product that fills the SMs a whole number of times has the plateau, and one
 * tile more costs a whole wave. */
START_TEST(test_waves)
{
  const kiln__gemm_shape full = {128 * SMS, 128, 1 << 20, 1, SMS};
  const kiln__gemm_shape more = {128 * SMS + 128, 128, 1 << 20, 1, SMS};
  const double e = kiln__gemm_efficiency(&full, &large, 1);
  const double f = kiln__gemm_efficiency(&more, &large, 1);

  ck_assert_double_eq_tol(e, 0.85, 0.001);
  ck_assert_double_eq_tol(f, 0.85 * 133 / 264, 0.001);
}
END_TEST

/* The parts of tiles outside of the matrix are lost. */
START_TEST(test_edges)
{
  const kiln__gemm_shape s = {128 * SMS, 64, 1 << 20, 1, SMS};

  ck_assert_double_eq_tol(kiln__gemm_efficiency(&s, &large, 1), 0.425, 0.001);
}
END_TEST

/* Few tiles are split over blocks or get smaller; many tiles are not split. */
START_TEST(test_choice)
{
  const kiln_gemm_tile any = {0};
  kiln__gemm_shape s = square(8192);
  uint32_t splits;

  ck_assert_uint_eq(kiln__gemm_choose(&s, pair, 2, any, &splits), 0);
  ck_assert_uint_eq(splits, 1);
  s = (kiln__gemm_shape){128, 128, 100000, 1, SMS};
  kiln__gemm_choose(&s, pair, 2, any, &splits);
  ck_assert_uint_gt(splits, 8);
  s = (kiln__gemm_shape){64, 64, 64, 4096, SMS};
  ck_assert_uint_eq(kiln__gemm_choose(&s, pair, 2, any, &splits), 1);
  ck_assert_uint_eq(splits, 1);
}
END_TEST

START_TEST(test_wanted)
{
  const kiln__gemm_shape s = square(1000);
  uint32_t splits;

  ck_assert_uint_eq(
      kiln__gemm_choose(&s, pair, 2, (kiln_gemm_tile){64, 0, 0}, &splits), 1);
  ck_assert_uint_eq(
      kiln__gemm_choose(&s, pair, 2, (kiln_gemm_tile){0, 128, 7}, &splits), 0);
  ck_assert_uint_eq(splits, 7);
  ck_assert_uint_eq(
      kiln__gemm_choose(&s, pair, 2, (kiln_gemm_tile){77, 0, 0}, &splits), 2);
}
END_TEST

/* Everything that a choice depends on counts, whatever was chosen before. */
START_TEST(test_dependence)
{
  static const kiln__gemm_tile other[] = {{128, 128, 1, 850}, {64, 64, 4, 950}};
  static const struct {
    kiln__gemm_shape s;
    const kiln__gemm_tile *tiles;
    uint32_t n;
    kiln_gemm_tile wanted;
    uint32_t row;
    bool split;
  } cases[] = {
      {{128, 128, 100000, 1, SMS}, pair, 2, {0, 0, 0}, 1, true},
      {{128, 128, 100000, 1, SMS}, pair, 2, {128, 0, 0}, 0, true},
      {{128, 128, 100000, 1, SMS}, pair, 2, {0, 0, 1}, 1, false},
      {{128, 128, 100000, 1, SMS}, pair, 1, {0, 0, 0}, 0, true},
      {{128, 128, 100000, 132, SMS}, pair, 2, {0, 0, 0}, 0, false},
      {{128, 128, 100000, 132, SMS}, other, 2, {0, 0, 0}, 1, false},
      {{128, 128, 100000, 132, 4 * SMS}, pair, 2, {0, 0, 0}, 0, true},
      {{8192, 128, 100000, 1, SMS}, pair, 2, {0, 0, 0}, 0, true},
      {{128, 128, 100, 1, SMS}, pair, 2, {0, 0, 0}, 1, false},
  };
  enum { CASES = sizeof cases / sizeof cases[0] };

  for (int i = 0; i < 3 * CASES; i++) {
    const int k = i % 2 == 0 ? i % CASES : 0;
    uint32_t splits;

    ck_assert_msg(kiln__gemm_choose(&cases[k].s, cases[k].tiles, cases[k].n,
                                    cases[k].wanted, &splits) == cases[k].row,
                  "case %d: wrong row", k);
    ck_assert_msg((splits > 1) == cases[k].split, "case %d: %u splits", k,
                  splits);
  }
}
END_TEST

/* Blocks that share tiles lose no wave, but parts of sums and idle SMs cost. */
START_TEST(test_streamed)
{
  const kiln__gemm_shape whole = {128 * SMS, 128, 1 << 20, 1, SMS};
  const kiln__gemm_shape more = {128 * SMS + 128, 128, 1 << 20, 1, SMS};
  const kiln__gemm_shape few = {512, 512, 512, 1, SMS};

  ck_assert_double_eq_tol(kiln__gemm_streamed(&whole, &large, SMS), 0.85,
                          0.001);
  ck_assert_double_eq_tol(kiln__gemm_streamed(&more, &large, SMS), 0.85, 0.001);
  ck_assert_double_eq_tol(kiln__gemm_streamed(&whole, &large, SMS / 2), 0.425,
                          0.001);
  ck_assert_double_lt(kiln__gemm_streamed(&few, &large, 64), 0.425);
}
END_TEST

/* No product of any size makes the model leave its range. */
START_TEST(test_range)
{
  uint64_t state = 1;

  for (int i = 0; i < 20000; i++) {
    const kiln__gemm_shape s = {1 + test_random(&state) % (1u << i % 31),
                                1 + test_random(&state) % 5000,
                                test_random(&state) % 100000,
                                1 + test_random(&state) % 300, SMS};
    uint32_t splits;
    const uint32_t row =
        kiln__gemm_choose(&s, pair, 2, (kiln_gemm_tile){0}, &splits);
    const double e = kiln__gemm_efficiency(&s, &pair[row], splits);

    ck_assert_uint_lt(row, 2);
    ck_assert(splits >= 1 && splits <= 64);
    ck_assert(e >= 0 && e < 1);
  }
}
END_TEST

/* Small products are served in batches that keep all SMs busy, up to 128 columns.
 * A larger matrix takes several tiles only if all of them share B. */
START_TEST(test_small)
{
  const uint32_t none =
      kiln__gemm_small_choose(&(kiln__gemm_shape){1, 1, 1, 1, SMS}, false);
  const kiln__gemm_shape few = {32, 32, 32, 100, SMS};
  const kiln__gemm_shape many = {32, 32, 32, 10000, SMS};
  const kiln__gemm_shape larger = {33, 33, 32, 10000, SMS};
  const kiln__gemm_shape wide = {32, 129, 32, 10000, SMS};
  const kiln__gemm_shape tall = {100000, 32, 32, 1, SMS};

  ck_assert_uint_eq(kiln__gemm_small_choose(&few, false), none);
  ck_assert_uint_eq(kiln__gemm_small_choose(&wide, false), none);
  ck_assert_uint_lt(kiln__gemm_small_choose(&many, false), none);
  ck_assert_uint_lt(kiln__gemm_small_choose(&larger, false), none);
  ck_assert_uint_ne(kiln__gemm_small_choose(&larger, false),
                    kiln__gemm_small_choose(&many, false));
  ck_assert_uint_lt(kiln__gemm_small_choose(&tall, true), none);
}
END_TEST

/* Sums are split until there are a few blocks per SM, and no further than their
 * length allows. */
START_TEST(test_vector_splits)
{
  ck_assert_uint_eq(kiln__gemm_vector_splits(10000, 1 << 20, 2 * SMS), 1);
  ck_assert_uint_eq(kiln__gemm_vector_splits(64, 8192, 2 * SMS), 4);
  ck_assert_uint_eq(kiln__gemm_vector_splits(200, 8192, 2 * SMS), 1);
  ck_assert_uint_eq(kiln__gemm_vector_splits(1, 100, 2 * SMS), 1);
  ck_assert_uint_le(kiln__gemm_vector_splits(1, UINT64_MAX, 2 * SMS), 64);
}
END_TEST

__extension__ typedef unsigned __int128 product;

/* The quotient as the kernels compute it: the product with the reciprocal is the
 * quotient, or one less. */
static uint64_t quotient(uint64_t x, uint64_t d, uint64_t reciprocal, bool wide)
{
  const uint64_t q =
      wide ? (uint64_t)((product)x * reciprocal >> 64) : x * reciprocal >> 32;

  return x - q * d >= d ? q + 1 : q;
}

static void check_quotients(uint64_t most, uint64_t d, uint64_t reciprocal,
                            bool wide, uint64_t *state)
{
  for (int i = 0; i < 50; i++) {
    const uint64_t r = test_random(state);
    const uint64_t x = i == 0   ? most
                       : i == 1 ? most / d * d
                       : i == 2 ? (most / d * d) - (most >= d)
                                : r % most;

    ck_assert_msg(quotient(x, d, reciprocal, wide) == x / d, "%llu / %llu",
                  (unsigned long long)x, (unsigned long long)d);
  }
}

/* Returns the place of a tile as divisions give it. */
static void check_place(const kiln__gemm_tiling *t, uint64_t columns,
                        uint64_t tile)
{
  const uint64_t first = tile / (t->group * columns) * t->group;
  const bool last = t->rows - first < t->group;
  const uint64_t in = tile - first * columns;
  const uint64_t high = last ? t->rows - first : t->group;
  const uint64_t number =
      quotient(tile, t->group_tiles, t->over_group_tiles, false);

  ck_assert_uint_eq(number * t->group, first);
  ck_assert_uint_eq(last ? t->rest : t->group, high);
  ck_assert_uint_eq(
      quotient(in, high, last ? t->over_rest : t->over_group, false),
      in / high);
}

/* How kernels number tiles, for random sizes and the largest ones. */
START_TEST(test_numbers)
{
  uint64_t state = 9;

  for (int i = 0; i < 3000; i++) {
    const uint64_t rows = 1 + test_random(&state) % (i % 3 == 0 ? 20 : 65000);
    const uint64_t columns = 1 + test_random(&state) % (i % 2 == 0 ? 9 : 65000);
    kiln__gemm call = {
        .args = {.m = 32 * rows,
                 .n = 64 * columns - test_random(&state) % 64,
                 .batch = 1 + (i % 5 == 0) * (test_random(&state) >> 33)}};
    const kiln__gemm_tiling t = kiln__gemm_number_tiles(&call, 32, 64);

    ck_assert_uint_eq(t.matrix, rows * columns);
    ck_assert_uint_eq(t.all, t.matrix * call.args.batch);
    check_quotients(UINT64_MAX, t.matrix, t.over_matrix, true, &state);
    check_quotients(UINT64_MAX, t.all, t.over_all, true, &state);
    check_quotients(UINT32_MAX, t.group_tiles, t.over_group_tiles, false,
                    &state);
    for (int k = 0; k < 20; k++)
      check_place(&t, columns,
                  k == 0 ? t.matrix - 1 : test_random(&state) % t.matrix);
  }
}
END_TEST

int main(void)
{
  return kiln_test_main("gemm_model", 0, NULL, NULL,
                        TESTS(test_tiles, test_waves, test_edges, test_choice,
                              test_wanted, test_dependence, test_streamed,
                              test_range, test_small, test_vector_splits,
                              test_numbers));
}
