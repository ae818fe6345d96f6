/* schedule.h -- the two inner loops, built for each instruction set, and what
 * they share with run/: frames of calls, groups of lanes, the lock-step stack,
 * and the slow paths that need no instruction set. */
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
/* exec/trace.c */
void KILN__ISA_NAME(traced)(kiln__cpu_warp *w, const kiln__cpu_insn *in);

/* Bits of 32 words that are 0 or ~0. */
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

/* Registers of one function for the lanes of a warp that are in one call of it.
 * Lanes that call apart have a frame each. */
struct kiln__cpu_frame {
  uint8_t *regs; /* 64-byte aligned */
  const kiln__cpu_code *code;
  kiln__cpu_tally *tally;
  kiln__cpu_frame *parent; /* NULL: the kernel's own */
  kiln__cpu_frame *next;   /* of the free ones */
  kiln__cpu_frame *made;   /* all of a worker, to be freed */
  const kiln__cpu_call *call;
  uint32_t resume; /* pc in the parent */
  uint32_t lanes;  /* neither returned nor exited */
  uint32_t depth;
  uint32_t local_at;  /* part of the stack: from here */
  uint32_t local_top; /* to here; alloca moves it */
  uint32_t filled_warp;
  uint64_t filled_block; /* number + 1 for which constants are filled in */
  uint32_t n_changing;   /* constants that change with the block */
  uint32_t changing[KILN__N_CHANGING]; /* the first of them */
};

/* Why lanes do not run. */
typedef enum kiln__cpu_wait {
  KILN__READY = 0,
  KILN__AT_SYNC,    /* for the members of a mask */
  KILN__AT_BARRIER, /* of the block */
  KILN__AT_CLUSTER
} kiln__cpu_wait;

/* Lanes with one pc in one frame. */
typedef struct kiln__cpu_group {
  kiln__cpu_frame *frame;
  uint32_t pc, mask;
  uint32_t wants; /* AT_SYNC: member mask; AT_BARRIER: its number */
  uint32_t stamp; /* when it was chosen last */
  kiln__cpu_wait wait;
  bool ran; /* since the last look for livelocks */
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
  /* Backward branches until another group has its turn, and with a seed. */
  KILN__PATIENCE = 1 << 14,
  KILN__TURNS = 64,
  /* As many as one look at what others may wait for counts. */
  KILN__YIELD_COST = KILN__PATIENCE / 64,
  KILN__YIELD_TURNS = KILN__TURNS / 8
};

typedef struct kiln__cpu_schedule {
  kiln__cpu_frame *frame; /* of the running lanes */
  kiln__cpu_frame *entry; /* kept from block to block */
  uint8_t *stack;         /* lane 0's stack; stride as in the warp */
  int status;             /* KILN__WARP_*: as the loop left it, or as a barrier
                         changed it */
  bool traced;            /* changes of memory are noted in `changed` */
  bool changed;
  bool check_sync;
  uint32_t yields; /* since the start of its share */
  uint32_t began;  /* lanes that ever existed */
  /* Lanes that went elsewhere while others of the warp wait at this barrier. */
  uint32_t strayed;
  const kiln__cpu_insn *strayed_from;
  uint64_t random; /* 0: no permutation */
  /* independent lanes */
  kiln__cpu_group group[KILN__WARP + 1];
  uint32_t n_groups, current;
  uint32_t meet; /* next pc of another group ahead in the same frame, or where
                    it may be another's turn */
  uint32_t rival_depth, rival_pc; /* of the first among the others */
  uint32_t turns; /* back-branches until another group has its turn */
  uint32_t stamps;
  bool others; /* are ready */
  bool fair;   /* the present group was chosen by age */
  /* lock-step */
  kiln__cpu_entry *stacked;
  uint32_t n_stacked, max_stacked;
  kiln__cpu_wait wait;
  uint32_t wants;
  /* cluster barrier: lanes that arrived and have not waited, and in which
   * phase */
  uint32_t cluster_in, cluster_odd;
  /* livelocks: state when last saved, and whether it came again */
  uint64_t saved;
  bool repeats;
} kiln__cpu_schedule;

static inline kiln__cpu_schedule *kiln__cpu_schedule_of(const kiln__cpu_warp *w)
{
  return w->schedule;
}

/* Lanes that execute `in`. */
static inline uint32_t kiln__cpu_guard_mask(const kiln__cpu_warp *w,
                                            const kiln__cpu_insn *in)
{
  uint32_t mask;

  if (in->guard < 0)
    return w->mask;
  mask = kiln__cpu_predicate_bits(KILN__SLOT(const uint32_t, in->guard));
  return ((in->flags & KILN__GUARD_NOT) != 0 ? ~mask : mask) & w->mask;
}

/* Lanes of `mask` whose word is that of its lowest lane. */
static inline uint32_t kiln__cpu_same_lanes(const uint32_t *word, uint32_t mask)
{
  const uint32_t first = word[__builtin_ctz(mask)];
  _Alignas(64) uint32_t same[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    same[i] = word[i] == first ? UINT32_MAX : 0;
  return kiln__cpu_predicate_bits(same) & mask;
}

/* ---- Slow paths, in run/ ------------------------------------------------------ */

/* A call by `mask` of the lanes in `from`. *out: the callee's frame, or NULL if
 * the call is done (the system's functions). False: fault. */
bool kiln__cpu_call_enter(kiln__cpu_warp *w, kiln__cpu_frame *from,
                          const kiln__cpu_insn *in, uint32_t callee,
                          uint32_t mask, kiln__cpu_frame **out);
/* Results of lanes that return; they leave `f`, which goes when empty. */
void kiln__cpu_call_leave(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Number of the function at an address; UINT32_MAX: none. */
uint32_t kiln__cpu_call_number(const kiln__cpu_warp *w, uint64_t address);
/* Lanes end: they leave all frames from `f` up, the block and its barriers. */
void kiln__cpu_lanes_exit(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask);
/* Lanes of `f` come to a barrier; the caller has noted before that they wait.
 * The last to come lets all go on: READY, one instruction further. */
void kiln__cpu_barrier_arrive(kiln__cpu_warp *w, kiln__cpu_frame *f,
                              const kiln__cpu_insn *in, uint32_t number,
                              uint32_t mask);
/* barrier.cluster: false: they have to wait. */
bool kiln__cpu_cluster_step(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            uint32_t mask);
/* Room for 2 * KILN__WARP + 2 more entries. False: no memory (faulted). */
bool kiln__cpu_stack_room(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* A .sync instruction was passed by `mask` of `wanted`. */
void kiln__cpu_warp_synced(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           uint32_t mask, uint32_t wanted);
/* Make `f` the running frame. */
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
