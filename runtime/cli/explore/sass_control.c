/* sass_control.c -- the scheduling fields of an instruction's encoding.
 *
 * From Volta on, an instruction has 128 bits, and the assembler stores how to
 * schedule the instruction in bits 105 to 125:
 *
 *   bit of the upper half   61..58  57..52  51..49   48..46    45      44..41
 *   field                   reuse    wait    read     write    yield   stall
 *                                            barrier  barrier
 *
 * A barrier field of 7 means that the instruction signals none of the six
 * barriers. The yield bit is inverted: 0 asks the scheduler to prefer another
 * warp. NVIDIA does not document the fields. Published assemblers for Volta
 * agree on the positions, but some exchange the two barriers.
 * tests/compile/sass_test.py decides this from code: loads signal the field
 * called write barrier here, and the instructions that use their results wait
 * for it. Stores have no result and signal only the other one, for which the
 * instructions wait that overwrite the registers of the store.
 *
 * An experiment on an H200 changed one field at a time in machine code for 9.0.
 * README.md in this folder has its results. */
#include "cli/explore/sass_model.h"

/* Returns `n` bits of the encoding from bit `first` on. */
static unsigned bits(uint64_t high, unsigned first, unsigned n)
{
  return (unsigned)(high >> first) & ((1u << n) - 1);
}

static int8_t barrier(unsigned field)
{
  return field == 7 ? -1 : (int8_t)field;
}

sass_control kiln__sass_control(uint64_t high)
{
  return (sass_control){.stall = (uint8_t)bits(high, 41, 4),
                        .yield = bits(high, 45, 1) == 0,
                        .write_barrier = barrier(bits(high, 46, 3)),
                        .read_barrier = barrier(bits(high, 49, 3)),
                        .wait_mask = (uint8_t)bits(high, 52, 6),
                        .reuse = (uint8_t)bits(high, 58, 4)};
}
