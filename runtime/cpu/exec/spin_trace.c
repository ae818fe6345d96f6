/* spin_trace.c -- records whether an instruction changed memory that other
 * threads can read.
 *
 * run/livelock.c enables this trace while it searches for warps that can only
 * spin. Local memory does not count, because it is part of the state of a
 * thread. A store always counts as a change, whatever value it writes. An
 * atomic operation counts only if it changed the value in memory, because
 * polling loops may use atomics that change nothing. */
#include "schedule.h"

static uint64_t lane_of(const uint64_t saved[KILN__WARP], unsigned lane,
                        unsigned bytes)
{
  if (bytes == 8)
    return saved[lane];
  return ((const uint32_t *)(const void *)saved)[lane];
}

/* Returns true if an atomic operation with operand b changed a word whose value
 * was `old`. */
static bool changes(const kiln__cpu_insn *in, unsigned bytes, uint64_t old,
                    uint64_t b)
{
  (void)bytes;
  if (in->boolop == KILN__BOOL_AND)
    return (old & ~b) != 0;
  if (in->boolop == KILN__BOOL_OR)
    return (b & ~old) != 0;
  /* The value 3 of in->sub stands for the operation .add. */
  if (in->boolop == KILN__BOOL_XOR || in->sub == 3)
    return b != 0;
  /* in->sub is 7 for .cas, which changes memory if the comparison succeeds. */
  if (in->sub == 7)
    return old == b;
  return old != b;
}

static void trace_atomic(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const unsigned bytes = kiln__cpu_ptx_type_bytes[in->type] == 8 ? 8 : 4;
  _Alignas(64) uint64_t b[KILN__WARP], d[KILN__WARP];

  if (in->d < 0 || in->b < 0 || in->n_vec > 1) {
    s->changed = true;
    in->fn(w, in);
    return;
  }
  memcpy(b, w->regs + in->b, bytes * (size_t)KILN__WARP);
  in->fn(w, in);
  memcpy(d, w->regs + in->d, bytes * (size_t)KILN__WARP);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(m);

    s->changed = s->changed || changes(in, bytes, lane_of(d, lane, bytes),
                                       lane_of(b, lane, bytes));
  }
}

void KILN__ISA_NAME(traced)(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  switch ((kiln__cpu_class)in->klass) {
  case KILN__CLASS_ATOMIC:
    trace_atomic(w, in);
    return;
  case KILN__CLASS_GLOBAL_STORE:
  case KILN__CLASS_GENERIC_STORE:
  case KILN__CLASS_SHARED_STORE:
  case KILN__CLASS_BULK_LOAD:
  case KILN__CLASS_BULK_STORE:
    s->changed = true;
    break;
  case KILN__CLASS_TEXTURE:
  case KILN__CLASS_BARRIER:
  case KILN__CLASS_OTHER:
    s->changed = s->changed || (in->d < 0 && in->kind == KILN__KIND_SIMPLE);
    break;
  default:
    break;
  }
  /* The clock always advances, so a loop that polls the clock ends. Reading the
   * clock therefore counts as a change. */
  if (in->op == KILN__OP_mov_clock)
    s->changed = true;
  in->fn(w, in);
}
