/* schedule.h -- the state of the two warp schedulers (its.c, lock_step.c),
 * which run/ shares: frames of calls, groups of lanes, the lock-step stack.
 *
 * run/ sets the state up and executes what is slow and needs no instruction
 * set: calls, barriers, exits. The schedulers call these functions, which are
 * declared at the end. */
#ifndef KILN_CPU_SCHEDULE_H
#define KILN_CPU_SCHEDULE_H

#include "lanes.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

int KILN__ISA_NAME(run_its)(kiln__cpu_warp *w, uint64_t *left);
int KILN__ISA_NAME(run_lock_step)(kiln__cpu_warp *w, uint64_t *left);
void KILN__ISA_NAME(set_mask)(kiln__cpu_warp *w, uint32_t mask);
uint32_t KILN__ISA_NAME(predicate)(const kiln__cpu_warp *w, int32_t slot);
/* Execute `in` and record whether it changed memory; see spin_trace.c. */
void KILN__ISA_NAME(traced)(kiln__cpu_warp *w, const kiln__cpu_insn *in);

/* The bits of a predicate: 32 words that are 0 or ~0. */
static inline uint32_t kiln__cpu_predicate_bits(const uint32_t *p)
{
  uint32_t mask = 0;

#if defined(__AVX2__)
  for (unsigned i = 0; i < 4; i++) {
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)p + i);

    mask |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(v)) << (8 * i);
  }
#elif defined(__SSE2__)
  for (unsigned i = 0; i < 8; i++) {
    const __m128i v = _mm_load_si128((const __m128i *)(const void *)p + i);

    mask |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(v)) << (4 * i);
  }
#else
  for (uint32_t i = 0; i < KILN__WARP; i++)
    mask |= p[i] & (1u << i);
#endif
  return mask;
}

typedef struct kiln__cpu_frame kiln__cpu_frame;

/* in->sub of barriers of the block and of the cluster. */
enum {
  KILN__BAR_SYNC = 0,
  KILN__BAR_ARRIVE,
  KILN__BAR_POPC,
  KILN__BAR_AND,
  KILN__BAR_OR
};
enum { KILN__CLUSTER_ARRIVE = 0, KILN__CLUSTER_WAIT };

enum { KILN__N_CHANGING = 8 };

/* A frame: the registers of one function for the lanes of a warp that are in
 * the same call of it. Lanes that called separately have separate frames. */
struct kiln__cpu_frame {
  uint8_t *regs; /* 64-byte aligned */
  const kiln__cpu_code *code;
  kiln__cpu_tally *tally;
  kiln__cpu_frame *parent; /* NULL: the frame of the kernel */
  kiln__cpu_frame *next;   /* in the list of free frames */
  kiln__cpu_frame *made;   /* in the list of all frames of a worker */
  const kiln__cpu_call *call;
  uint32_t resume; /* pc in the parent to return to */
  uint32_t lanes;  /* lanes that have neither returned nor exited */
  uint32_t depth;
  uint32_t local_at;  /* first byte of its part of the stack */
  uint32_t local_top; /* end of that part, which alloca moves */
  uint32_t filled_warp;
  /* number + 1 of the block that the constants are filled in for */
  uint64_t filled_block;
  uint32_t n_changing; /* number of constants that change with the block */
  uint32_t changing[KILN__N_CHANGING]; /* indices of the first of them */
};

/* What lanes wait for. */
typedef enum kiln__cpu_wait {
  KILN__READY = 0,
  KILN__AT_SYNC,    /* the members of a mask */
  KILN__AT_BARRIER, /* a barrier of the block */
  KILN__AT_CLUSTER
} kiln__cpu_wait;

/* A group: lanes with the same frame and pc. */
typedef struct kiln__cpu_group {
  kiln__cpu_frame *frame;
  uint32_t pc, mask;
  /* AT_SYNC: the member mask; AT_BARRIER: the number of the barrier */
  uint32_t wants;
  uint32_t stamp; /* time at which it was last chosen */
  kiln__cpu_wait wait;
  bool ran; /* has run since the livelock search saved the state */
} kiln__cpu_group;

/* An entry of the lock-step stack. */
typedef struct kiln__cpu_entry {
  kiln__cpu_frame *frame;
  uint32_t pc, mask;
  uint32_t join; /* pc at which it is popped; UINT32_MAX: never */
} kiln__cpu_entry;

enum {
  KILN__NO_JOIN = -1,
  KILN__MAX_YIELDS = 64,
  /* Backward branches until another group has its turn, without and with a
   * seed. */
  KILN__PATIENCE = 1 << 14,
  KILN__TURNS = 64,
  /* Turns charged for one polling access. */
  KILN__YIELD_COST = KILN__PATIENCE / 64,
  KILN__YIELD_TURNS = KILN__TURNS / 8
};

typedef struct kiln__cpu_schedule {
  kiln__cpu_frame *frame; /* frame of the running lanes */
  kiln__cpu_frame *entry; /* frame of the kernel, kept from block to block */
  uint8_t *stack;         /* stack of lane 0; see local_stride of the warp */
  /* KILN__WARP_* that the scheduler returned; a barrier may change it */
  int status;
  bool traced; /* record changes of memory in `changed` */
  bool changed;
  bool check_sync;
  uint32_t yields; /* polling instructions since the start of the share */
  uint32_t began;  /* lanes that existed at the start */
  /* Lanes that were elsewhere when others of the warp arrived at this
   * barrier. */
  uint32_t strayed;
  const kiln__cpu_insn *strayed_from;
  uint64_t random; /* state of the random generator; 0: fixed order */
  /* Independent thread scheduling (its.c). */
  kiln__cpu_group group[KILN__WARP + 1];
  uint32_t n_groups, current;
  /* Next pc at which the present group meets another one of its frame, or may
   * have to give way. */
  uint32_t meet;
  /* position of the group that would run next */
  uint32_t rival_depth, rival_pc;
  uint32_t turns; /* backward branches until another group has its turn */
  uint32_t stamps;
  bool others; /* other groups are ready */
  bool fair;   /* the present group was chosen by age */
  /* Lock-step (lock_step.c). */
  kiln__cpu_entry *stacked;
  uint32_t n_stacked, max_stacked;
  kiln__cpu_wait wait;
  uint32_t wants;
  /* Cluster barrier: lanes that arrived and have not waited yet, and the parity
   * of the phase in which they arrived. */
  uint32_t cluster_in, cluster_odd;
  /* Livelock search: hash of the state when it was saved, and whether it came
   * again. */
  uint64_t saved;
  bool repeats;
} kiln__cpu_schedule;

static inline kiln__cpu_schedule *kiln__cpu_schedule_of(const kiln__cpu_warp *w)
{
  return w->schedule;
}

/* The active lanes that the guard of `in` selects. */
static inline uint32_t kiln__cpu_guard_mask(const kiln__cpu_warp *w,
                                            const kiln__cpu_insn *in)
{
  uint32_t mask;

  if (in->guard < 0)
    return w->mask;
  mask = kiln__cpu_predicate_bits(KILN__SLOT(const uint32_t, in->guard));
  return ((in->flags & KILN__GUARD_NOT) != 0 ? ~mask : mask) & w->mask;
}

/* Lanes of `mask` whose word equals that of the lowest one. */
static inline uint32_t kiln__cpu_same_lanes(const uint32_t *word, uint32_t mask)
{
  const uint32_t first = word[__builtin_ctz(mask)];
  _Alignas(64) uint32_t same[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    same[i] = word[i] == first ? UINT32_MAX : 0;
  return kiln__cpu_predicate_bits(same) & mask;
}

/* Check that the lanes of `mask` have an index within the jump table of `in`.
 * False: it faulted. */
static inline bool kiln__cpu_indices_fit(kiln__cpu_warp *w,
                                         const kiln__cpu_insn *in,
                                         uint32_t mask)
{
  const uint32_t *const index = KILN__SLOT(const uint32_t, in->a);

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);

    if (index[lane] >= in->n_vec) {
      kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, lane, index[lane], 0);
      return false;
    }
  }
  return true;
}

/* Lanes of `mask` that jump to the target of its lowest lane, *target. */
static inline uint32_t kiln__cpu_same_target(const kiln__cpu_warp *w,
                                             const kiln__cpu_insn *in,
                                             uint32_t mask, uint32_t *target)
{
  const uint32_t *const index = KILN__SLOT(const uint32_t, in->a);
  const int32_t first = in->vec[index[__builtin_ctz(mask)]];
  uint32_t same = 0;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(m);

    same |= (in->vec[index[lane]] == first ? 1u : 0u) << lane;
  }
  *target = (uint32_t)first;
  return same;
}

/* ---- Slow paths, in run/ ------------------------------------------------- */

/* Enter a call by the lanes `mask` of frame `from`. *out: the frame of the
 * callee; NULL if a system function was executed instead. False: it faulted. */
bool kiln__cpu_call_enter(kiln__cpu_warp *w, kiln__cpu_frame *from,
                          const kiln__cpu_insn *in, uint32_t callee,
                          uint32_t mask, kiln__cpu_frame **out);
/* Copy the results of lanes that return, and remove the lanes from `f`. An
 * empty frame is given back. */
void kiln__cpu_call_leave(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Number of the function at an address; UINT32_MAX: there is none. */
uint32_t kiln__cpu_call_number(const kiln__cpu_warp *w, uint64_t address);
/* Lanes exit: remove them from all frames from `f` up, from the block and from
 * its barriers. */
void kiln__cpu_lanes_exit(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Lanes of `f` arrive at barrier `number`. The caller has marked them as
 * waiting. The last arrival releases all: they become READY, one instruction
 * further. */
void kiln__cpu_barrier_arrive(kiln__cpu_warp *w, kiln__cpu_frame *f,
                              const kiln__cpu_insn *in, uint32_t number,
                              uint32_t mask);
/* Execute barrier.cluster for the lanes of `mask`. False: they have to wait. */
bool kiln__cpu_cluster_step(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            uint32_t mask);
/* Make sure that 2 * KILN__WARP + 2 more entries fit on the stack. False: out
 * of memory, and it faulted. */
bool kiln__cpu_stack_room(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Report to the checks that the lanes `mask` passed a .sync instruction whose
 * mask is `wanted`. */
void kiln__cpu_warp_synced(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           uint32_t mask, uint32_t wanted);

/* The function that the lowest lane of *mask calls, by number or by address.
 * *mask becomes the lanes that call the same one. UINT32_MAX: it faulted. */
static inline uint32_t
kiln__cpu_callee(kiln__cpu_warp *w, const kiln__cpu_insn *in, uint32_t *mask)
{
  uint32_t same = 0, number;
  const uint64_t *a;
  uint64_t first;

  if (in->a < 0)
    return in->target;
  a = KILN__SLOT(const uint64_t, in->a);
  first = a[__builtin_ctz(*mask)];
  for (uint32_t m = *mask; m != 0; m &= m - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(m);

    same |= (a[lane] == first ? 1u : 0u) << lane;
  }
  *mask = same;
  number = kiln__cpu_call_number(w, first);
  if (number == UINT32_MAX)
    kiln__cpu_fault(w, in, KILN__FAULT_PC, -1, first, 0);
  return number;
}

/* The entry point of a scheduler: run_loop() with its two flags as constants. */
#define KILN__RUN_LOOP(name)                                                   \
  int KILN__ISA_NAME(name)(kiln__cpu_warp * w, uint64_t * left)                \
  {                                                                            \
    const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);              \
    const bool counted = s->entry->tally != NULL;                              \
                                                                               \
    if (s->traced)                                                             \
      return counted ? run_loop(w, left, true, true)                           \
                     : run_loop(w, left, false, true);                         \
    return counted ? run_loop(w, left, true, false)                            \
                   : run_loop(w, left, false, false);                          \
  }

/* Make `f` the running frame of the warp. */
static inline void kiln__cpu_frame_use(kiln__cpu_warp *w, kiln__cpu_frame *f)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  s->frame = f;
  w->regs = f->regs;
  w->tally = f->tally;
  w->local_at = f->local_at;
  w->local = s->stack + f->local_at;
}

static inline uint64_t kiln__cpu_schedule_random(kiln__cpu_schedule *s)
{
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return s->random;
}

#endif
