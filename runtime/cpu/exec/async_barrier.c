/* async_barrier.c -- mbarrier: a barrier object in shared memory that counts
 * arrivals and transferred bytes. memory/mbarrier.h describes the object.
 *
 * Threads of other blocks of the cluster may arrive, and bulk copies may count
 * bytes. Threads wait by polling: test_wait and try_wait compare the parity of
 * the phase. The scheduler lets other groups of lanes run between two polls. */
#include "async.h"

#include "../memory/mbarrier.h"

typedef kiln__cpu_mbarrier_change change;

/* Finds the mbarrier word that each active lane addresses. A generic address
 * must also refer to shared memory. */
static bool reach_for(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                      kiln__cpu_access access, kiln__cpu_reach *r)
{
  const kiln__cpu_space space = in->space == KILN__SPACE_GENERIC
                                    ? KILN__SPACE_GENERIC
                                    : KILN__SPACE_SHARED;

  if (!kiln__cpu_reach_a(w, in, space, 8, access, KILN__COUNT_ATOMIC, r))
    return false;
  for (uint32_t m = w->mask; m != 0 && space == KILN__SPACE_GENERIC;
       m &= m - 1) {
    const int i = __builtin_ctz(m);

    if (!kiln__cpu_in_space(r->address[i], KILN__WINDOW_SHARED)) {
      kiln__cpu_fault(w, in, KILN__FAULT_SPACE, i, r->address[i], 8);
      return false;
    }
  }
  return true;
}

/* Does so for an access that changes or reads the words. *own receives true if
 * only this host thread can access them. */
static bool reach(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool *own,
                  kiln__cpu_reach *r)
{
  bool shared;

  *own = false;
  if (!kiln__cpu_reach_near(w, in, 8, &shared, r) || !shared)
    return reach_for(w, in, KILN__ACCESS_ATOMIC, r);
  if (w->counted) /* a single lane shares its word with no other lane */
    kiln__cpu_tally_add(w, in,
                        (w->mask & (w->mask - 1)) == 0
                            ? 0
                            : KILN__ISA_NAME(crowded)(r->address, w->mask, 8));
  *own = w->block->cluster == NULL;
  return true;
}

/* Applies a change to an mbarrier. If `own` is true, no other host thread can
 * access the word. Returns the previous word. */
static uint64_t update(uintptr_t at, const change *c, bool own)
{
  uint64_t *const word = (uint64_t *)at, old = *word;

  if (!own)
    return kiln__cpu_mbarrier_update(at, c);
  *word = kiln__cpu_mbarrier_changed(old, c);
  return old;
}

static uint32_t count_of(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         unsigned i)
{
  return in->b < 0 ? 1 : KILN__SLOT(const uint32_t, in->b)[i];
}

/* Reports an arrival beyond the expected number, or a number of bytes beyond
 * the range of an mbarrier. Both make the object unusable. */
static void report_overflow(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            int lane, const change *c)
{
  kiln__cpu_watch_misuse(
      w, in, lane, "mbarrier overflow",
      c->arrive != 0 && c->expect == 0
          ? "arrives at an mbarrier that expects no more arrivals"
          : "makes an mbarrier expect more bytes than it can count",
      "the count that mbarrier.init states, and the bytes per phase");
}

/* Returns true if all active lanes address the same word. */
static bool at_one_word(const kiln__cpu_warp *w, const kiln__cpu_reach *r)
{
  const uintptr_t word = r->host[__builtin_ctz(w->mask)];
  uint64_t apart = 0;

  for (int i = 0; i < KILN__WARP; i++)
    apart |= w->lane[i] != 0 ? r->host[i] ^ word : 0;
  return apart == 0;
}

/* Returns the number of arrivals that each active lane counts, or 0 if the lanes
 * count different numbers. */
static uint32_t same_count(const kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const uint32_t first = count_of(w, in, (unsigned)__builtin_ctz(w->mask));
  uint32_t differ = 0;

  for (int i = 0; i < KILN__WARP && in->b >= 0; i++)
    differ |= (KILN__SLOT(const uint32_t, in->b)[i] ^ first) & w->lane[i];
  return differ == 0 ? first : 0;
}

/* Counts `each` arrivals per active lane at one word, if all lanes address the
 * same word and the phase does not end before the last of these arrivals. old[i]
 * receives the word before the arrival of lane i. Only this host thread can
 * access the word. Returns false if the arrivals have to be counted one by
 * one. */
static bool arrive_together(const kiln__cpu_warp *w, const kiln__cpu_reach *r,
                            uint32_t each, uint64_t old[KILN__WARP])
{
  const uint32_t n = (uint32_t)__builtin_popcount(w->mask);
  uint64_t *const word = (uint64_t *)r->host[__builtin_ctz(w->mask)];
  const change last = {.arrive = each};
  uint64_t now = *word;

  if (!at_one_word(w, r) || each == 0 ||
      kiln__cpu_mbarrier_missing(now) < (uint64_t)n * each)
    return false;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    old[__builtin_ctz(m)] = now;
    now -= each;
  }
  *word = kiln__cpu_mbarrier_changed(now + each, &last);
  return true;
}

/* Applies a change of its own for each active lane. */
static inline __attribute__((always_inline)) void
apply_each(kiln__cpu_warp *w, const kiln__cpu_insn *in,
           const kiln__cpu_reach *r, bool own, change (*of)(uint32_t count),
           bool returns)
{
  const unsigned order = kiln__cpu_lane_order(w, in);

  for (uint32_t m = kiln__cpu_positions(w, order); m != 0; m &= m - 1) {
    const unsigned i = (unsigned)__builtin_ctz(m) ^ order;
    const change c = of(count_of(w, in, i));
    const uint64_t old = update(r->host[i], &c, own);

    if (__builtin_expect(kiln__cpu_mbarrier_overflows(old, &c), 0))
      report_overflow(w, in, (int)i, &c);
    if (returns && in->d >= 0)
      KILN__SLOT(uint64_t, in->d)[i] = old;
  }
}

static inline __attribute__((always_inline)) void
change_each(kiln__cpu_warp *w, const kiln__cpu_insn *in,
            change (*of)(uint32_t count), bool returns)
{
  kiln__cpu_reach r;
  bool own;

  if (reach(w, in, &own, &r))
    apply_each(w, in, &r, own, of, returns);
}

/* ---- Initialisation and invalidation of an mbarrier ---------------------- */

KILN__HANDLER(mbarrier_init)
{
  kiln__cpu_reach r;

  /* The access counts as a write, because it initialises the barrier word. */
  if (!reach_for(w, in, KILN__ACCESS_WRITE, &r))
    return;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const unsigned i = (unsigned)__builtin_ctz(m);
    const uint32_t count = count_of(w, in, i);

    __atomic_store_n((uint64_t *)r.host[i],
                     kiln__cpu_mbarrier_make(count, count, 0, 0),
                     __ATOMIC_RELEASE);
  }
}

KILN__HANDLER(mbarrier_inval)
{
  kiln__cpu_reach r;
  bool own;

  (void)reach(w, in, &own, &r);
}

/* ---- Arriving ------------------------------------------------------------ */

static change arrive(uint32_t count)
{
  return (change){.arrive = count};
}

static change arrive_drop(uint32_t count)
{
  return (change){.arrive = count, .drop = count};
}

static change arrive_expect(uint32_t bytes)
{
  return (change){.arrive = 1, .expect = bytes};
}

static change arrive_drop_expect(uint32_t bytes)
{
  return (change){.arrive = 1, .drop = 1, .expect = bytes};
}

static change expect(uint32_t bytes)
{
  return (change){.expect = bytes};
}

static change come(uint32_t bytes)
{
  return (change){.come = bytes};
}

KILN__CALLS(mbarrier_expect_tx, change_each, expect, false)
KILN__CALLS(mbarrier_complete_tx, change_each, come, false)
KILN__CALLS(mbarrier_arrive_expect_tx, change_each, arrive_expect, true)
KILN__CALLS(mbarrier_arrive_drop, change_each, arrive_drop, true)
KILN__CALLS(mbarrier_arrive_drop_expect_tx, change_each, arrive_drop_expect,
            true)

KILN__HANDLER(mbarrier_arrive)
{
  uint64_t old[KILN__WARP];
  kiln__cpu_reach r;
  bool own;

  if (!reach(w, in, &own, &r))
    return;
  if (!own || w->grid->seed != 0 ||
      !arrive_together(w, &r, same_count(w, in), old))
    apply_each(w, in, &r, own, arrive, true);
  else if (in->d >= 0)
    KILN__LANES(uint64_t, old[i]);
}

/* Executes cp.async.mbarrier.arrive. The handler performs the pending copies
 * first, so the arrival follows immediately. Without .noinc, the expected
 * number of arrivals is raised by the same arrival, so the net effect is
 * zero. */
KILN__HANDLER(cp_async_arrive)
{
  kiln__cpu_reach r;
  bool own;

  KILN__ISA_NAME(copies_wait)(w, 0, true);
  if ((in->flags & KILN__NOINC) != 0)
    change_each(w, in, arrive, false);
  else
    (void)reach(w, in, &own, &r);
}

/* ---- Waiting ------------------------------------------------------------- */

/* Tests one word for all active lanes. */
static void test_one(kiln__cpu_warp *w, const kiln__cpu_insn *in, uintptr_t at,
                     bool parity)
{
  const uint64_t phase = kiln__cpu_mbarrier_phase(
      __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE));

  if (parity) {
    const uint32_t *const b = KILN__SLOT(const uint32_t, in->b);
    const uint32_t odd = (uint32_t)phase & 1;

    KILN__LANES(uint32_t, (b[i] & 1) != odd ? UINT32_MAX : 0);
  } else {
    const uint64_t *const b = KILN__SLOT(const uint64_t, in->b);

    KILN__LANES(uint32_t,
                kiln__cpu_mbarrier_phase(b[i]) != phase ? UINT32_MAX : 0);
  }
}

static void test(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool parity)
{
  kiln__cpu_reach r;
  bool own;

  if (!reach(w, in, &own, &r) || in->d < 0)
    return;
  if (!w->watched && at_one_word(w, &r)) {
    test_one(w, in, r.host[__builtin_ctz(w->mask)], parity);
    return;
  }
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const uint64_t word =
        __atomic_load_n((const uint64_t *)r.host[i], __ATOMIC_ACQUIRE);
    bool over;

    if (parity)
      over = (kiln__cpu_mbarrier_phase(word) & 1) !=
             (KILN__SLOT(const uint32_t, in->b)[i] & 1);
    else
      over = kiln__cpu_mbarrier_phase(word) !=
             kiln__cpu_mbarrier_phase(KILN__SLOT(const uint64_t, in->b)[i]);
    KILN__SLOT(uint32_t, in->d)[i] = over ? UINT32_MAX : 0;
    if (__builtin_expect(over && w->watched, 0))
      kiln__cpu_watch_phase_over(
          w, r.address[i] & ((UINT64_C(1) << KILN__CLUSTER_SHIFT) - 1),
          (uint32_t)kiln__cpu_mbarrier_phase(word));
  }
}

KILN__CALLS(mbarrier_test_wait, test, false)
KILN__CALLS(mbarrier_test_parity, test, true)

KILN__OP1(mbarrier_pending_count, uint32_t, uint64_t,
          kiln__cpu_mbarrier_missing(A[i]))
