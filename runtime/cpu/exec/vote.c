/* vote.c -- vote, match, redux, activemask, elect, stacksave and stackrestore.
 */
#include "schedule.h"

/* Values of in->sub for the modes .all and .any of vote. 0 means .uni. */
enum { ALL = 1, ANY = 2 };
/* Values of in->sub for the operations of redux. */
enum { MIN = 1, MAX = 2, ADD = 3 };

/* Returns the active lanes whose predicate operand a is true. */
static uint32_t trues(const kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const uint32_t p = KILN__ISA_NAME(predicate)(w, in->a);

  return ((in->flags & KILN__NEGATE_B) != 0 ? ~p : p) & w->mask;
}

static void give(kiln__cpu_warp *w, int32_t slot, uint32_t value)
{
  uint32_t *const d = KILN__SLOT(uint32_t, slot);

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    d[i] = w->lane[i] != 0 ? value : d[i];
}

KILN__HANDLER(vote_sync)
{
  const uint32_t yes = trues(w, in);
  bool result;

  if (in->sub == ALL)
    result = yes == w->mask;
  else if (in->sub == ANY)
    result = yes != 0;
  else
    result = yes == w->mask || yes == 0;
  give(w, in->d, result ? UINT32_MAX : 0);
}

KILN__HANDLER(vote_sync_ballot)
{
  give(w, in->d, trues(w, in));
}

KILN__HANDLER(activemask)
{
  give(w, in->d, w->mask);
}

static uint64_t value64(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        int lane, bool wide)
{
  return wide ? KILN__SLOT(const uint64_t, in->a)[lane]
              : KILN__SLOT(const uint32_t, in->a)[lane];
}

/* Sets same[i] to `found` for each lane whose value equals that of the lane
 * `first`, where `found` is the set of these lanes among `rest`. Returns
 * `found`. */
static uint32_t match_narrow(const uint32_t *value, unsigned first,
                             uint32_t rest, uint32_t same[KILN__WARP])
{
  const uint32_t wanted = value[first];
  _Alignas(64) uint32_t equal[KILN__WARP];
  uint32_t found;

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    equal[i] = value[i] == wanted ? UINT32_MAX : 0;
  found = kiln__cpu_predicate_bits(equal) & rest;
  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    same[i] |= equal[i] & found;
  return found;
}

/* Does the same for 64-bit values. */
static uint32_t match_wide(const uint64_t *value, unsigned first, uint32_t rest,
                           uint32_t same[KILN__WARP])
{
  const uint64_t wanted = value[first];
  uint32_t found = 0;

  for (uint32_t m = rest; m != 0; m &= m - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(m);

    found |= (uint32_t)(value[lane] == wanted) << lane;
  }
  for (uint32_t m = found; m != 0; m &= m - 1)
    same[__builtin_ctz(m)] = found;
  return found;
}

static void match_any(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool wide)
{
  _Alignas(64) uint32_t same[KILN__WARP] = {0};

  for (uint32_t rest = w->mask; rest != 0;) {
    const unsigned first = (unsigned)__builtin_ctz(rest);

    rest &= ~(
        wide ? match_wide(KILN__SLOT(const uint64_t, in->a), first, rest, same)
             : match_narrow(KILN__SLOT(const uint32_t, in->a), first, rest,
                            same));
  }
  KILN__LANES(uint32_t, same[i]);
}

static void match_all(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool wide)
{
  const uint64_t wanted = value64(w, in, __builtin_ctz(w->mask), wide);
  bool all = true;

  for (uint32_t m = w->mask; m != 0; m &= m - 1)
    all = all && value64(w, in, __builtin_ctz(m), wide) == wanted;
  if (in->d >= 0)
    give(w, in->d, all ? w->mask : 0);
  if (in->d2 >= 0)
    give(w, in->d2, all ? UINT32_MAX : 0);
}

KILN__CALLS(match_any_b32, match_any, false)
KILN__CALLS(match_any_b64, match_any, true)
KILN__CALLS(match_all_b32, match_all, false)
KILN__CALLS(match_all_b64, match_all, true)

/* Implements redux for integers. An exclusive or with `flip` maps the signed
 * order to the unsigned order. */
static void redux_integer(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                          uint32_t flip)
{
  KILN__SOURCES_1(uint32_t);
  uint32_t sum = 0, least = UINT32_MAX, most = 0;

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t on = w->lane[i], v = A[i];
    const uint32_t low = (v ^ flip) | ~on, high = (v ^ flip) & on;

    sum += v & on;
    least = low < least ? low : least;
    most = high > most ? high : most;
  }
  give(w, in->d,
       in->sub == MIN   ? least ^ flip
       : in->sub == MAX ? most ^ flip
                        : sum);
}

KILN__CALLS(redux_u32, redux_integer, 0)
KILN__CALLS(redux_s32, redux_integer, 0x80000000)

KILN__HANDLER(redux_b32)
{
  const uint32_t *const a = KILN__SLOT(const uint32_t, in->a);
  uint32_t all = UINT32_MAX, any = 0, odd = 0;

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t on = w->lane[i];

    all &= a[i] | ~on;
    any |= a[i] & on;
    odd ^= a[i] & on;
  }
  give(w, in->d,
       in->boolop == KILN__BOOL_AND  ? all
       : in->boolop == KILN__BOOL_OR ? any
                                     : odd);
}

/* Returns an integer that sorts like the float. -0 sorts below +0. */
static int32_t float_order(uint32_t bits)
{
  const int32_t value = (int32_t)(bits & 0x7fffffffu);

  return bits >> 31 != 0 ? -value - 1 : value;
}

/* Implements redux for floats. Without .NaN, a NaN is ignored if any lane has a
 * number. With .NaN, the result is a NaN if any lane has a NaN. The resulting
 * NaN is canonical. */
static void redux_float(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        uint32_t keep)
{
  const uint32_t *const a = KILN__SLOT(const uint32_t, in->a);
  const uint32_t canonical = 0x7fffffffu;
  uint32_t best = canonical;
  bool nan = false, found = false;

  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t v = a[__builtin_ctz(m)] & keep;
    const bool less = float_order(v) < float_order(best);

    if ((v & 0x7fffffffu) > 0x7f800000u) {
      nan = true;
    } else if (!found || (in->sub == MIN ? less : !less)) {
      best = v;
      found = true;
    }
  }
  give(w, in->d, nan && (in->flags & KILN__NAN) != 0 ? canonical : best);
}

KILN__CALLS(redux_f32, redux_float, UINT32_MAX)
KILN__CALLS(redux_abs_f32, redux_float, 0x7fffffffu)

KILN__HANDLER(elect)
{
  const int lowest = __builtin_ctz(w->mask);

  if (in->d >= 0)
    give(w, in->d, (uint32_t)lowest);
  if (in->d2 >= 0) {
    give(w, in->d2, 0);
    KILN__SLOT(uint32_t, in->d2)[lowest] = UINT32_MAX;
  }
}

/* ---- The stack ----------------------------------------------------------- */

/* Saves the stack pointer. All lanes of a function call share one stack
 * pointer, which is as high as the highest lane needs. */
KILN__HANDLER(stacksave_u64)
{
  const uint64_t top = kiln__cpu_schedule_of(w)->frame->local_top;

  KILN__LANES(uint64_t, top);
}

KILN__HANDLER(stackrestore_u64)
{
  kiln__cpu_frame *const f = kiln__cpu_schedule_of(w)->frame;
  const uint64_t top = value64(w, in, __builtin_ctz(w->mask), true);

  /* Other lanes of the same function call may still use the stack above `top`,
   * so the pointer moves only if all lanes are active. */
  if ((f->lanes & ~w->mask) == 0 && top <= f->local_top &&
      top >= f->local_at + f->code->local_bytes)
    f->local_top = (uint32_t)top;
}

KILN__HANDLER(alloca_u64)
{
  kiln__cpu_frame *const f = kiln__cpu_schedule_of(w)->frame;
  const uint64_t align = in->imm > 16 ? (uint64_t)in->imm : 16;
  const uint64_t at = (f->local_top + align - 1) / align * align;
  uint64_t most = 0;

  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint64_t size = value64(w, in, __builtin_ctz(m), true);

    most = size > most ? size : most;
  }
  if (most > w->local_size || at + most > w->local_size) {
    kiln__cpu_fault(w, in, KILN__FAULT_STACK, -1, at + most, 0);
    return;
  }
  f->local_top = (uint32_t)(at + most);
  KILN__LANES(uint64_t, at);
}
