/* schedule.h -- the state of the two warp schedulers (its.c and lock_step.c):
 * frames of function calls, groups of lanes, and the lock-step stack.
 *
 * run/ initialises this state. It also implements calls, barriers and exits,
 * which are slow and do not depend on the instruction set of the host. The
 * schedulers call the functions of run/ that are declared at the end of this
 * header. */
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
/* Executes the instruction `in` and records whether the instruction changed
 * memory; see spin_trace.c. */
void KILN__ISA_NAME(traced)(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Executes a guarded simple instruction for the lanes that its guard selects.
 * If `traced` is true, changes of memory are recorded. */
void KILN__ISA_NAME(run_guarded)(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 bool traced);

#define KILN__SET_MASK KILN__ISA_NAME(set_mask)

/* Returns a predicate register as a mask with one bit per lane. In the
 * register, each lane is a word that is 0 or ~0. */
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

/* Values of in->sub, which selects the operation of a block barrier or a
 * cluster barrier. */
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
 * the same call of this function. Lanes that called the function separately
 * have separate frames. */
struct kiln__cpu_frame {
  uint8_t *regs; /* registers, aligned to 64 bytes */
  const kiln__cpu_code *code;
  kiln__cpu_tally *tally;
  /* frame of the caller; NULL in the frame of the kernel */
  kiln__cpu_frame *parent;
  kiln__cpu_frame *next; /* next frame in the list of free frames */
  kiln__cpu_frame *made; /* next frame in the list of all frames of a worker */
  const kiln__cpu_call *call;
  uint32_t resume; /* pc in the caller's frame to return to */
  uint32_t lanes;  /* mask of the lanes that have neither returned nor exited */
  uint32_t slot;   /* index in the worker's lists of free frames */
  uint32_t depth;
  uint32_t local_at; /* offset of the first stack byte of this frame */
  /* offset of the end of this frame's stack, which alloca moves */
  uint32_t local_top;
  uint32_t filled_warp;
  /* 1 + the number of the block for which the constants that depend on the
   * block have been filled in */
  uint64_t filled_block;
  uint32_t n_changing; /* number of constants that change with the block */
  uint32_t changing[KILN__N_CHANGING]; /* indices of the changing constants */
};

/* The reason why a group of lanes waits. */
typedef enum kiln__cpu_wait {
  KILN__READY = 0,
  KILN__AT_SYNC,    /* waits at a .sync instruction for its members */
  KILN__AT_BARRIER, /* waits at a barrier of the block */
  KILN__AT_CLUSTER
} kiln__cpu_wait;

/* A group of lanes with the same frame and pc. */
typedef struct kiln__cpu_group {
  kiln__cpu_frame *frame;
  uint32_t pc, mask;
  /* member mask if the group waits at KILN__AT_SYNC; barrier number at
   * KILN__AT_BARRIER */
  uint32_t wants;
  uint32_t stamp; /* time at which the group was last chosen */
  kiln__cpu_wait wait;
  bool ran; /* the group has run since the livelock search saved the state */
} kiln__cpu_group;

/* An entry of the lock-step stack. */
typedef struct kiln__cpu_entry {
  kiln__cpu_frame *frame;
  uint32_t pc, mask;
  uint32_t join; /* pc at which the entry is popped; UINT32_MAX means never */
} kiln__cpu_entry;

enum {
  KILN__NO_JOIN = -1,
  KILN__MAX_YIELDS = 64,
  /* Number of polls that reading a clock counts as. A warp that waits until a
   * time has passed reads the clock in a loop, and the other warps of the block
   * wait at the same time only if its time slices are short. */
  KILN__CLOCK_YIELDS = 16,
  /* Number of backward branches that a group of lanes may take before another
   * group runs. KILN__TURNS is used if the launch has a random seed, and
   * KILN__PATIENCE otherwise. */
  KILN__PATIENCE = 1 << 14,
  KILN__TURNS = 64,
  /* Number of backward branches that are charged to a group of lanes for one
   * polling access. KILN__YIELD_TURNS is used if the launch has a random seed,
   * and KILN__YIELD_COST otherwise. */
  KILN__YIELD_COST = KILN__PATIENCE / 64,
  KILN__YIELD_TURNS = KILN__TURNS / 8
};

typedef struct kiln__cpu_schedule {
  kiln__cpu_frame *frame; /* frame of the running lanes */
  kiln__cpu_frame *entry; /* frame of the kernel, kept from block to block */
  uint8_t *stack;         /* host address of lane 0's stack; see local_stride */
  /* state of the warp (KILN__WARP_*) that the scheduler returns; barriers may
   * change it */
  int status;
  bool traced; /* changes of memory are recorded in `changed` */
  bool changed;
  bool check_sync;
  uint32_t yields; /* number of polling instructions in this time slice */
  /* word of the mbarrier that all lanes wait for, and the number of the phase
   * that must end; NULL if the warp does not sleep */
  const uint64_t *asleep;
  uint64_t asleep_phase;
  /* number of wgmma that the warp has executed in this block */
  uint32_t products;
  /* registers per thread that the warp has, see register_pool.c */
  uint32_t registers;
  bool needs_registers; /* the warp waits for registers */
  /* set by a handler of an instruction that has to be executed again, since the
   * other warps of the warpgroup have not arrived or hold too many registers */
  bool again;
  uint32_t began; /* mask of the lanes that exist when the block starts */
  /* mask of the lanes that were at another instruction when lanes of the same
   * warp arrived at the barrier `strayed_from` */
  uint32_t strayed;
  const kiln__cpu_insn *strayed_from;
  uint64_t random; /* random generator state; 0 means a fixed order */
  /* State of independent thread scheduling (its.c). */
  kiln__cpu_group group[KILN__WARP + 1];
  uint32_t n_groups, current;
  /* next pc at which the running group meets another group of its frame, or at
   * which another group may have priority */
  uint32_t meet;
  /* depth and pc of the ready group that would run next */
  uint32_t rival_depth, rival_pc;
  /* number of backward branches left before another group runs */
  uint32_t turns;
  uint32_t stamps;
  bool others; /* groups besides the running group are ready */
  bool fair;   /* the running group had waited longest */
  /* State of the lock-step scheduler (lock_step.c). */
  kiln__cpu_entry *stacked;
  uint32_t n_stacked, max_stacked;
  kiln__cpu_wait wait;
  uint32_t wants;
  /* Mask of the lanes that arrived at the cluster barrier and have not waited
   * yet, and the parity of the barrier phase in which each lane arrived. */
  uint32_t cluster_in, cluster_odd;
  /* State of the livelock search: hash of the saved state of the warp, and
   * whether the same state occurred again. */
  uint64_t saved;
  bool repeats;
} kiln__cpu_schedule;

static inline kiln__cpu_schedule *kiln__cpu_schedule_of(const kiln__cpu_warp *w)
{
  return w->schedule;
}

/* Returns the active lanes that the guard of the instruction `in` selects. */
static inline uint32_t kiln__cpu_guard_mask(const kiln__cpu_warp *w,
                                            const kiln__cpu_insn *in)
{
  uint32_t mask;

  if (in->guard < 0)
    return w->mask;
  mask = kiln__cpu_predicate_bits(KILN__SLOT(const uint32_t, in->guard));
  return ((in->flags & KILN__GUARD_NOT) != 0 ? ~mask : mask) & w->mask;
}

/* Returns the lanes of `mask` whose value equals the value of the lowest lane
 * of `mask`. */
static inline uint32_t kiln__cpu_same_lanes(const uint32_t *word, uint32_t mask)
{
  const uint32_t first = word[__builtin_ctz(mask)];
  _Alignas(64) uint32_t same[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    same[i] = word[i] == first ? UINT32_MAX : 0;
  return kiln__cpu_predicate_bits(same) & mask;
}

/* Checks that the index of each lane of `mask` is within the jump table of
 * `in`. Returns false if the check failed; the launch has then faulted. */
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

/* Returns the lanes of `mask` that have the same jump target as the lowest lane
 * of `mask`. *target receives this target. */
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

/* ---- Slow paths, which run/ implements ----------------------------------- */

/* Enters a function call for the lanes `mask` of frame `from`. *out receives
 * the frame of the callee, or NULL if a system function was executed instead.
 * Returns false if the call faulted. */
bool kiln__cpu_call_enter(kiln__cpu_warp *w, kiln__cpu_frame *from,
                          const kiln__cpu_insn *in,
                          const kiln__cpu_code *callee, uint32_t mask,
                          kiln__cpu_frame **out);
/* Copies the results of the lanes that return, and removes these lanes from
 * `f`. A frame without lanes is freed for reuse. */
void kiln__cpu_call_leave(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Returns the function at an address, which may belong to another loaded
 * module. Returns NULL if there is no function at this address. */
const kiln__cpu_code *kiln__cpu_call_target(kiln__cpu_warp *w,
                                            uint64_t address);
/* Handles the exit of lanes: removes them from `f` and all its callers, from
 * the block and from the barriers of the block. */
void kiln__cpu_lanes_exit(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Records that lanes of `f` arrived at barrier `number`. The caller has marked
 * the lanes as waiting. The last arrival releases all waiting lanes: they
 * become ready and continue at the next instruction. */
void kiln__cpu_barrier_arrive(kiln__cpu_warp *w, kiln__cpu_frame *f,
                              const kiln__cpu_insn *in, uint32_t number,
                              uint32_t mask);
/* Executes barrier.cluster for the lanes of `mask`. Returns false if the lanes
 * have to wait. */
bool kiln__cpu_cluster_step(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            uint32_t mask);
/* Ensures that 2 * KILN__WARP + 2 more entries fit on the lock-step stack.
 * Returns false and reports a fault if memory is exhausted. */
bool kiln__cpu_stack_room(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Reports to the memory checks that the lanes of `mask` passed a .sync
 * instruction with the member mask `wanted`. */
void kiln__cpu_warp_synced(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           uint32_t mask, uint32_t wanted);

/* Returns the function that the lowest lane of *mask calls, directly or through
 * its address. `f` is the frame of the caller. *mask receives the lanes that
 * call the same function. Returns NULL if the address is not a function; the
 * launch has then faulted. */
static inline const kiln__cpu_code *kiln__cpu_callee(kiln__cpu_warp *w,
                                                     const kiln__cpu_frame *f,
                                                     const kiln__cpu_insn *in,
                                                     uint32_t *mask)
{
  const kiln__cpu_code *code;
  const uint64_t *a;
  uint32_t same = 0;
  uint64_t first;

  if (in->a < 0)
    return &f->code->program->functions[in->target];
  a = KILN__SLOT(const uint64_t, in->a);
  first = a[__builtin_ctz(*mask)];
  for (uint32_t m = *mask; m != 0; m &= m - 1) {
    const unsigned lane = (unsigned)__builtin_ctz(m);

    same |= (a[lane] == first ? 1u : 0u) << lane;
  }
  *mask = same;
  code = kiln__cpu_call_target(w, first);
  if (code == NULL)
    kiln__cpu_fault(w, in, KILN__FAULT_PC, -1, first, 0);
  return code;
}

/* Defines the entry point of a scheduler. Each call of run_loop() has constant
 * flags, so that the compiler generates one loop per combination. */
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

/* Executes a simple instruction for the running lanes. */
static inline __attribute__((always_inline)) void
kiln__cpu_run_one(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool traced)
{
  if (__builtin_expect(in->guard >= 0, 0))
    KILN__ISA_NAME(run_guarded)(w, in, traced);
  else if (traced)
    KILN__ISA_NAME(traced)(w, in);
  else
    in->fn(w, in);
}

/* Makes `f` the running frame of the warp. */
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

/* Returns the number of polls that a polling instruction counts as by itself. */
static inline uint32_t kiln__cpu_polls_of(const kiln__cpu_insn *in)
{
  if (in->op == KILN__OP_nanosleep)
    return KILN__MAX_YIELDS;
  return in->op == KILN__OP_mov_clock ? KILN__CLOCK_YIELDS : 1;
}

#endif
