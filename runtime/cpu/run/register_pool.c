/* register_pool.c -- setmaxnreg: the registers that the warps of a block share.
 *
 * Problem: the warps of a block start with equal numbers of registers, and
 * setmaxnreg moves registers between them. A warp that asks for more waits until
 * other warps have released enough. If the numbers that a kernel asks for do not
 * fit into the block's registers, it waits forever.
 *
 * Idea: each warp keeps its number of registers per thread. A warp executes
 * setmaxnreg.inc again until the numbers of the live warps fit. If no warp will
 * release any, the search of livelock.c ends the launch.
 *
 * Invariant: the sum over the live warps is at most that at the start of the
 * block. A kernel whose number at the start is unknown has no pool; ptxas
 * ignores setmaxnreg then (code/build_program.c).
 *
 * Cost: one pass over the warps of the block per setmaxnreg.
 *
 * Source: PTX ISA, setmaxnreg. How many registers a kernel starts with was
 * compared with ptxas 13.0. */
#include "../exec/warpgroup.h"
#include "grid_job.h"

enum { UNIT = 8 }; /* registers per thread are allocated in these units */

static uint32_t units(uint32_t registers)
{
  return (registers + UNIT - 1) / UNIT;
}

/* Returns the units per thread that the other live warps of the block hold,
 * summed over the warps. */
static uint32_t held_by_others(const kiln__cpu_warp *w)
{
  uint32_t sum = 0;

  for (uint32_t i = 0; i < w->block->n_warps; i++) {
    const kiln__cpu_warp *const other = &w->block->warps[i];

    if (other != w && other->live != 0)
      sum += units(kiln__cpu_schedule_of(other)->registers);
  }
  return sum;
}

void kiln__cpu_set_registers(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             bool more)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint32_t wanted = (uint32_t)in->imm;
  const uint32_t pool = units(w->grid->code->registers_at_start);

  if (pool == 0)
    return;
  if (more ? wanted < s->registers : wanted > s->registers)
    kiln__cpu_watch_misuse(
        w, in, w->mask != 0 ? __builtin_ctz(w->mask) : 0, "wrong setmaxnreg",
        more ? "increases the number of registers to fewer than the warp has"
             : "decreases the number of registers to more than the warp has",
        "the launch bounds: they determine how many registers each thread has "
        "at the start");
  s->needs_registers =
      held_by_others(w) + units(wanted) > pool * w->block->n_warps;
  if (s->needs_registers)
    s->again = true;
  else
    s->registers = wanted;
}
