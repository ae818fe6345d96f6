/* sort_plan.c -- decides how a sort is executed: one block or passes, tiles,
 * portions and memory. All functions are pure.
 *
 * Problem: sort keys of 1 to 8 bytes, with or without values, stably, for any
 * n.
 *
 * Idea: a least-significant-digit radix sort with digits of 8 bits. One kernel
 * counts all digits of all passes in one read of the keys. Each pass is then
 * one launch that reads and writes every key once. A tile finds the
 * destinations of its digits by decoupled look-back, with one chain per digit.
 * One block sorts small arrays in shared memory.
 *
 * Invariant: pass p leaves the keys sorted by their lowest p + 1 digits. Passes
 * alternate between the output and temporary memory so that the last pass
 * writes to the output. If a sort in place has an odd number of passes, a copy
 * is added. Counts have 32 bits, so larger arrays are sorted in portions. The
 * first destinations of a portion continue those of the preceding portion.
 *
 * Cost: each pass reads and writes keys and values once. The kernel skips a
 * pass if all keys have the same digit. The temporary memory holds one copy of
 * keys and values.
 *
 * Source: Adinets and Merrill, Onesweep: A Faster Least Significant Digit Radix
 * Sort for GPUs, 2022. */
#include "sort.h"

enum {
  SMALL_ITEMS = 8,
  SMALL_BLOCK = 256,
  LARGE_BLOCK = 1024,
  /* The latency of the histogram matters up to this number of keys. */
  FEW_KEYS = 1 << 20
};

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) / to * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

unsigned kiln__sort_shift(const kiln__sort_shape *shape, unsigned pass)
{
  return shape->begin_bit + pass * KILN__RADIX_BITS;
}

unsigned kiln__sort_width(const kiln__sort_shape *shape, unsigned pass)
{
  const unsigned rest = shape->end_bit - kiln__sort_shift(shape, pass);

  return rest < KILN__RADIX_BITS ? rest : KILN__RADIX_BITS;
}

/* Returns the size in bytes of the struct kiln::radix_counters. */
size_t kiln__sort_counters_size(unsigned block)
{
  return (size_t)block / 32 * KILN__RADIX_DIGITS * 4 + 32;
}

/* ---- One block ----------------------------------------------------------- */

static size_t one_block_smem(unsigned block, const kiln__sort_shape *shape)
{
  const size_t tile = (size_t)block * SMALL_ITEMS;
  const size_t index = shape->value_size > 0 ? 2 * tile : 0;

  return round_up(round_up(kiln__sort_counters_size(block), 8) +
                      tile * shape->key_size + index,
                  16);
}

static bool plan_one_block(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                           const kiln__sort_facts *facts)
{
  const unsigned block =
      shape->n <= SMALL_BLOCK * SMALL_ITEMS ? SMALL_BLOCK : LARGE_BLOCK;
  const uint64_t most = (uint64_t)block * SMALL_ITEMS;

  if (shape->n > most || (facts->small != 0 && shape->n > facts->small) ||
      one_block_smem(block, shape) > facts->smem)
    return false;
  plan->one_block = true;
  plan->block = block;
  plan->items = SMALL_ITEMS;
  plan->smem = one_block_smem(block, shape);
  return true;
}

/* ---- Passes -------------------------------------------------------------- */

size_t kiln__sort_pass_smem(unsigned block, unsigned items, unsigned key_size,
                            unsigned value_size, bool wide)
{
  const size_t widest = key_size > value_size ? key_size : value_size;
  const size_t places = KILN__RADIX_DIGITS * (size_t)(wide ? 8 : 4);

  return round_up(kiln__sort_counters_size(block) + places, 16) +
         round_up((size_t)block * items * widest, 16);
}

static size_t pass_smem(const kiln__sort_plan *plan,
                        const kiln__sort_shape *shape)
{
  return kiln__sort_pass_smem(plan->block, plan->items, shape->key_size,
                              shape->value_size, plan->wide);
}

/* Replaces one block per SM by two of half the size, which are faster for values that
 * are wider than the keys: on an H200, 2^27 u32 with u64 take 1 to 4 % less time. */
static void halve_blocks(kiln__sort_plan *plan)
{
  plan->block /= 2;
  plan->per_sm = 2;
}

static void plan_tiles(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                       const kiln__sort_facts *facts)
{
  const uint64_t most =
      facts->portion != 0 ? facts->portion : UINT64_C(1) << 31;
  uint64_t tile;

  plan->wide = shape->n > most;
  plan->block = facts->tuning.block < KILN__RADIX_DIGITS ? KILN__RADIX_DIGITS
                                                         : facts->tuning.block;
  plan->items = facts->tuning.items;
  plan->per_sm = facts->tuning.per_sm;
  if (shape->value_size > shape->key_size && plan->per_sm == 1 &&
      plan->block % 64 == 0 && plan->block >= 2 * KILN__RADIX_DIGITS)
    halve_blocks(plan);
  plan->window = facts->tuning.extra == 0 ? 1 : facts->tuning.extra;
  while (plan->items > 1 && pass_smem(plan, shape) > facts->smem)
    plan->items--;
  plan->smem = pass_smem(plan, shape);
  tile = (uint64_t)plan->block * plan->items;
  plan->portion = most < tile ? tile : most / tile * tile;
  plan->portions = (unsigned)kiln__divide_up(shape->n, plan->portion);
}

/* Plans the launch that counts the digits. For many keys, one block per SM uses
 * as many copies of the counters as its shared memory holds. For few keys,
 * there are so many blocks that each block has little work. */
static void plan_histogram(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                           const kiln__sort_facts *facts)
{
  const bool few = shape->n <= FEW_KEYS;
  const size_t copy = (size_t)plan->passes * KILN__RADIX_DIGITS * 4;
  uint64_t each;

  plan->histogram.block = few ? 512 : 1024;
  plan->histogram.items = few ? 1 : 4;
  plan->histogram.copies = few ? 4 : 32;
  while (plan->histogram.copies > 1 &&
         plan->histogram.copies * copy > least(facts->smem, 160 << 10))
    plan->histogram.copies /= 2;
  plan->histogram.smem = plan->histogram.copies * copy;
  if (plan->histogram.smem < (size_t)plan->histogram.block * 8)
    plan->histogram.smem = (size_t)plan->histogram.block * 8;
  each = (uint64_t)plan->histogram.block * plan->histogram.items * 16 /
         shape->key_size;
  plan->histogram.workers =
      (unsigned)least(kiln__divide_up(shape->n, each), facts->sm_count);
}

static void plan_memory(kiln__sort_plan *plan, const kiln__sort_shape *shape)
{
  const uint64_t keys = shape->n * shape->key_size;
  const uint64_t tiles = kiln__divide_up(least(shape->n, plan->portion),
                                         (uint64_t)plan->block * plan->items);
  const uint64_t counts = (uint64_t)plan->histogram.workers * plan->passes;

  plan->base =
      kiln__need_temp(&plan->need, (size_t)plan->portions * plan->passes *
                                       KILN__RADIX_DIGITS * 8);
  plan->single = kiln__need_temp(&plan->need, KILN__SORT_MAX_STEPS * 4);
  plan->ticket =
      kiln__need_temp(&plan->need, 4 * (size_t)plan->steps * plan->portions);
  plan->need.descriptors =
      (size_t)(tiles > counts ? tiles : counts) * KILN__RADIX_DIGITS;
  if (plan->steps == 1)
    return;
  plan->keys = kiln__need_temp(&plan->need, (size_t)keys);
  if (shape->argsort && plan->steps > 2)
    plan->more_keys = kiln__need_temp(&plan->need, (size_t)keys);
  plan->values =
      kiln__need_temp(&plan->need, (size_t)(shape->n * shape->value_size));
}

void kiln__sort_plan_make(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                          const kiln__sort_facts *facts)
{
  const unsigned bits = shape->end_bit - shape->begin_bit;

  *plan = (kiln__sort_plan){.passes = (bits + KILN__RADIX_BITS - 1) /
                                      KILN__RADIX_BITS,
                            .portions = 1};
  plan->steps = plan->passes + (shape->in_place && plan->passes % 2 != 0);
  if (shape->n == 0 || plan_one_block(plan, shape, facts))
    return;
  plan_tiles(plan, shape, facts);
  plan_histogram(plan, shape, facts);
  plan_memory(plan, shape);
}

kiln__sort_order kiln__sort_order_of(kiln_dtype key, bool descending,
                                     bool all_bits)
{
  const kiln__dtype *type = kiln__dtype_of(key);
  const unsigned bits = 8u * type->size;
  const uint64_t ones = ~UINT64_C(0) >> (64 - bits);
  kiln__sort_order order = {descending ? ones : 0, 0};

  if (!type->is_float) {
    order.flip ^= type->is_signed ? UINT64_C(1) << (bits - 1) : 0;
  } else if (all_bits) {
    const unsigned fraction = key == KILN_F16    ? 10
                              : key == KILN_BF16 ? 7
                              : key == KILN_F32  ? 23
                                                 : 52;

    order.turn = (UINT64_C(1) << fraction) - 1;
  }
  return order;
}
