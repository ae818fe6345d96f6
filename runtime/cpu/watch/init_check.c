/* init_check.c -- finds reads of memory that was never written.
 *
 * A bitmap with one bit per byte records whether the byte was written by a
 * kernel, a copy or a fill. Each allocation has a bitmap that exists as long as
 * the allocation (see address_space.h). The shared memory of each block has a
 * bitmap that exists as long as the block. */
#include "watch_state.h"

#include <string.h>

/* Returns whether all `n` bits lie in one byte of the bitmap, which is nearly
 * always true. */
static bool in_one(uint64_t from, uint32_t n)
{
  return from % 8 + n <= 8;
}

static unsigned mask_of(uint64_t from, uint32_t n)
{
  return ((1u << n) - 1) << (from % 8);
}

static bool all_set(const uint8_t *bits, uint64_t from, uint32_t n)
{
  if (in_one(from, n))
    return (~bits[from / 8] & mask_of(from, n)) == 0;
  for (uint64_t i = from; i < from + n; i++) {
    if ((bits[i / 8] >> (i % 8) & 1) == 0)
      return false;
  }
  return true;
}

/* Returns whether the bits are set of those of `n` bytes that the load `in`
 * uses. */
static bool used_set(const kiln__cpu_insn *in, const uint8_t *bits,
                     uint64_t from, uint32_t n)
{
  if (in->used_bytes == 0 || all_set(bits, from, n))
    return all_set(bits, from, n);
  for (uint32_t i = 0; i < n && i < 32; i++) {
    if ((in->used_bytes >> i & 1) != 0 && !all_set(bits, from + i, 1))
      return false;
  }
  return true;
}

static void set(uint8_t *bits, uint64_t from, uint32_t n)
{
  if (in_one(from, n)) {
    bits[from / 8] = (uint8_t)(bits[from / 8] | mask_of(from, n));
    return;
  }
  for (uint64_t i = from; i < from + n; i++)
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << (i % 8));
}

/* Returns whether the instruction is an exchange whose old value nobody reads,
 * which is a write. */
static bool only_writes(const kiln__cpu_insn *in)
{
  return (in->flags & KILN__UNUSED) != 0 &&
         kiln__starts_with(kiln__cpu_op_name[in->op], "atom_exch");
}

static void report(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                   const kiln__cpu_insn *in, int lane, kiln__cpu_space space,
                   uint64_t address, uint32_t bytes)
{
  const kiln__cpu_where where = {w, in, lane, space, address, bytes};

  kiln__cpu_find(
      watch, KILN_CPU_CHECK_INIT, "uninitialised read", &where, "",
      "reads memory that was never written",
      space == KILN__SPACE_SHARED
          ? "shared memory starts without values: write it first, and "
            "put __syncthreads() before the read"
          : "fill or copy to the allocation before the launch, or check "
            "the index");
}

/* Returns the initialisation bitmap that covers `address`, and stores the index
 * of the address's bit in *at. Returns NULL if there is no bitmap. `range` is
 * the range of the previous look-up, since consecutive lanes mostly access one
 * allocation. */
static uint8_t *bits_of(const kiln__cpu_warp *w, const kiln__cpu_block *target,
                        kiln__cpu_space space, uint64_t address, uint32_t bytes,
                        kiln__cpu_range *range, uint64_t *at)
{
  const kiln__cpu_block_state *state = target->watch;

  if (space == KILN__SPACE_SHARED) {
    *at = address;
    return state != NULL && address + bytes <= (uint64_t)state->n_words * 4
               ? state->shared_valid
               : NULL;
  }
  if ((address < range->first || address + bytes > range->last) &&
      (!kiln__cpu_memory_find(w->grid->memory, address, range) ||
       address + bytes > range->last))
    return NULL;
  *at = address - range->first;
  return range->valid;
}

void kiln__cpu_init_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_block *target, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access)
{
  kiln__cpu_range range = {0};

  if (space != KILN__SPACE_SHARED && space != KILN__SPACE_GLOBAL)
    return;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    uint64_t at = 0;
    uint8_t *bits =
        bits_of(w, target, space, address[lane], bytes, &range, &at);

    if (bits == NULL)
      continue;
    if (access != KILN__ACCESS_WRITE && !used_set(in, bits, at, bytes) &&
        !only_writes(in))
      report(watch, w, in, lane, space, address[lane], bytes);
    if (access != KILN__ACCESS_READ)
      set(bits, at, bytes);
  }
}
