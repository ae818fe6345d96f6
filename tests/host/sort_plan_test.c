/* sort_plan_test.c -- tests the plan of a radix sort: passes, tiles, portions,
 * temporary storage, and the encoding of keys. */
#include "ops/sort/sort.h"

#include "support.h"

#include <math.h>
#include <string.h>

static const kiln__sort_facts big_gpu = {
    .sm_count = 132, .smem = 227 << 10, .tuning = {512, 20, 2, 4}};
static const kiln__sort_facts old_gpu = {
    .sm_count = 5, .smem = 48 << 10, .tuning = {384, 16, 0, 4}};

static kiln__sort_shape shape_of(uint64_t n, unsigned key, unsigned value)
{
  return (kiln__sort_shape){
      .n = n, .key_size = key, .value_size = value, .end_bit = 8 * key};
}

/* Checks the invariants that hold for every plan. */
static void check(const kiln__sort_shape *s, const kiln__sort_facts *f)
{
  const uint64_t bits = s->end_bit - s->begin_bit;
  kiln__sort_plan p;
  uint64_t tile, tiles;
  unsigned sum = 0;

  kiln__sort_plan_make(&p, s, f);
  ck_assert_uint_eq(p.passes, (bits + 7) / 8);
  for (unsigned k = 0; k < p.passes; k++) {
    ck_assert_uint_eq(kiln__sort_shift(s, k), s->begin_bit + sum);
    ck_assert_uint_ge(kiln__sort_width(s, k), 1);
    ck_assert_uint_le(kiln__sort_width(s, k), 8);
    sum += kiln__sort_width(s, k);
  }
  ck_assert_uint_eq(sum, bits);
  if (s->n == 0)
    return;
  ck_assert_uint_le(p.smem, f->smem);
  tile = (uint64_t)p.block * p.items;
  if (p.one_block) {
    ck_assert_uint_le(s->n, tile);
    ck_assert_uint_eq(kiln__need_bytes(p.need), 0);
    return;
  }
  ck_assert_uint_le(p.histogram.smem, f->smem);
  ck_assert_uint_ge(p.histogram.smem,
                    p.passes * 1024 * (size_t)p.histogram.copies);
  ck_assert_uint_ge(p.histogram.workers, 1);
  ck_assert_uint_le(p.histogram.workers, f->sm_count);
  ck_assert_uint_eq(p.portion % tile, 0);
  ck_assert_uint_ge(p.portion * p.portions, s->n);
  ck_assert_uint_lt(p.portion * (p.portions - 1), s->n);
  ck_assert(p.portions == 1 || p.wide);
  ck_assert_uint_le(p.portion, UINT64_C(1) << 31);
  tiles = ((p.portion < s->n ? p.portion : s->n) + tile - 1) / tile;
  ck_assert_uint_ge(p.need.descriptors, 256 * tiles);
  ck_assert_uint_ge(p.need.descriptors,
                    (uint64_t)256 * p.passes * p.histogram.workers);
  ck_assert_uint_ge(p.single, (uint64_t)p.portions * p.passes * 2048);
  ck_assert(!s->in_place || p.steps % 2 == 0);
  ck_assert_uint_le(p.steps, KILN__SORT_MAX_STEPS);
  if (p.steps > 1) {
    ck_assert_uint_ge(p.keys, p.single + 4 * p.steps);
    ck_assert_uint_ge(p.values, p.keys + s->n * s->key_size);
    ck_assert_uint_ge(p.need.temp, p.values + s->n * s->value_size);
  }
  if (s->argsort && p.steps > 2)
    ck_assert_uint_ge(p.values, p.more_keys + s->n * s->key_size);
}

START_TEST(plans_hold_together)
{
  static const uint64_t lengths[] = {0,
                                     1,
                                     2048,
                                     2049,
                                     8192,
                                     8193,
                                     65536,
                                     1 << 20,
                                     1 << 28,
                                     (1u << 31) + 1,
                                     UINT64_C(10000000000)};
  static const unsigned sizes[] = {1, 2, 4, 8};

  for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++)
    for (unsigned k = 0; k < 4; k++)
      for (unsigned v = 0; v < 5; v++)
        for (unsigned flags = 0; flags < 4; flags++)
          for (unsigned cut = 0; cut < 8 * sizes[k]; cut += 5) {
            kiln__sort_shape s =
                shape_of(lengths[n], sizes[k], v == 4 ? 0 : sizes[v]);

            s.in_place = flags % 2 != 0;
            s.argsort = flags == 2 && v >= 2 && v < 4;
            s.begin_bit = cut / 2;
            s.end_bit -= cut - cut / 2;
            check(&s, &big_gpu);
            check(&s, &old_gpu);
          }
}
END_TEST

START_TEST(known_plans)
{
  const kiln__sort_shape few = shape_of(8192, 4, 4);
  const kiln__sort_shape many = shape_of(1u << 28, 4, 0);
  kiln__sort_shape odd = shape_of(1u << 20, 4, 0);
  kiln__sort_plan p;

  kiln__sort_plan_make(&p, &few, &big_gpu);
  ck_assert(p.one_block);
  kiln__sort_plan_make(&p, &many, &big_gpu);
  ck_assert(!p.one_block && !p.wide);
  ck_assert_uint_eq(p.passes, 4);
  ck_assert_uint_eq(p.steps, 4);
  ck_assert_uint_eq(p.portions, 1);
  ck_assert_uint_eq(p.histogram.copies, 32);
  ck_assert_uint_eq(p.histogram.workers, 132);
  odd.end_bit = 24;
  odd.in_place = true;
  kiln__sort_plan_make(&p, &odd, &big_gpu);
  ck_assert_uint_eq(p.passes, 3);
  ck_assert_uint_eq(p.steps, 4);
  odd.end_bit = 8;
  odd.in_place = false;
  kiln__sort_plan_make(&p, &odd, &big_gpu);
  ck_assert_uint_eq(p.steps, 1);
  /* A sort in one pass needs no temporary copy of the elements. */
  ck_assert_uint_lt(p.need.temp, 4096);
}
END_TEST

/* Encodes a float like radix_encode() of radix.cuh. */
static uint32_t word_of_float(float f, kiln__sort_order o)
{
  uint32_t x;

  memcpy(&x, &f, 4);
  x ^= x >> 31 ? 0xffffffffu : 0x80000000u;
  return (x - (uint32_t)o.turn) ^ (uint32_t)o.flip;
}

START_TEST(orders)
{
  const kiln__sort_order up = kiln__sort_order_of(KILN_F32, false, true);
  const kiln__sort_order down = kiln__sort_order_of(KILN_F32, true, true);
  const float rising[] = {-INFINITY, -1.0f, -1e-42f,  -0.0f, 0.0f,
                          1e-42f,    2.0f,  INFINITY, NAN,   -NAN};
  const size_t n = sizeof rising / sizeof rising[0];

  for (size_t k = 1; k < n; k++) {
    ck_assert_uint_lt(word_of_float(rising[k - 1], up),
                      word_of_float(rising[k], up));
    ck_assert_uint_gt(word_of_float(rising[k - 1], down),
                      word_of_float(rising[k], down));
  }
  ck_assert_uint_eq(word_of_float(-INFINITY, up), 0);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_F32, false, false).turn, 0);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_I8, false, true).flip, 0x80);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_I8, true, true).flip, 0x7f);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_U64, true, true).flip, UINT64_MAX);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_BF16, false, true).turn, 127);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_F16, false, true).turn, 1023);
  ck_assert_uint_eq(kiln__sort_order_of(KILN_F64, false, true).turn,
                    0xfffffffffffffu);
}
END_TEST

int main(void)
{
  return kiln_test_main("sort_plan", 0, NULL, NULL,
                        TESTS(plans_hold_together, known_plans, orders));
}
