/* grid_job.h -- what the files of run/ share: a launch's job, host threads
 * (workers), gangs of blocks, blocks. */
#ifndef KILN_CPU_INSIDE_H
#define KILN_CPU_INSIDE_H

#include "../exec/schedule.h"
#include "../memory/address_space.h"
#include "../watch/watch.h"
#include "grid_run.h"

enum {
  KILN__N_BARRIERS = 16,
  KILN__MAX_WARPS = 32,
  KILN__SHARE = 1 << 14,      /* warp instructions until the next warp */
  KILN__GANG_SHARE = 1 << 22, /* ... until the next block */
  KILN__WORKSPACE = 256       /* bytes for grid-wide synchronisation */
};

/* A barrier of a block. */
typedef struct kiln__cpu_barrier {
  uint32_t expected;              /* threads; 0: all of the block */
  uint32_t counted;               /* threads that arrived */
  uint32_t warps;                 /* bits: some of their lanes arrived */
  uint32_t trues;                 /* red: threads with a true predicate */
  uint32_t votes;                 /* red: threads with a predicate */
  uint32_t here[KILN__MAX_WARPS]; /* lanes by warp */
  bool open;                      /* somebody arrived */
} kiln__cpu_barrier;

typedef struct kiln__cpu_gang kiln__cpu_gang;
typedef struct kiln__cpu_worker kiln__cpu_worker;
typedef struct kiln__cpu_job kiln__cpu_job;

/* block->schedule */
typedef struct kiln__cpu_block_own {
  kiln__cpu_gang *gang;
  kiln__cpu_worker *worker;
  uint32_t live; /* threads */
  uint32_t open; /* barriers, by bit */
  kiln__cpu_barrier barrier[KILN__N_BARRIERS];
} kiln__cpu_block_own;

/* Blocks that start together: a cluster, or one block alone. */
struct kiln__cpu_gang {
  kiln__cpu_gang *next;
  kiln__cpu_worker *worker;
  kiln__cpu_block *blocks;       /* n_blocks */
  kiln__cpu_block_own *owns;     /* one a block */
  kiln__cpu_warp *warps;         /* of all blocks */
  kiln__cpu_schedule *schedules; /* one a warp */
  kiln__cpu_block **ranks;       /* blocks by rank */
  uint8_t *shared, *stacks;      /* aligned, within `memory` */
  void *memory;
  uint32_t n_blocks, n_warps; /* n_warps: of all blocks */
  uint32_t live;              /* threads */
  uint32_t done;              /* warps */
  uint32_t cluster_arrived, cluster_phase;
  uint64_t number;
};

/* Between what different host threads write all the time: a cache line and its
 * neighbour, which processors fetch along. */
enum { KILN__APART = 128 };

/* One host thread's part. */
struct kiln__cpu_worker {
  kiln__cpu_job *job;
  unsigned index;
  pthread_t thread;
  kiln__cpu_frame **free;    /* by function number */
  kiln__cpu_tally **tallies; /* by function number */
  kiln__cpu_frame *made;
  kiln__cpu_gang *resident, **last, *spare;
  uint32_t n_resident;
  uint64_t next, end; /* gangs taken and not yet started */
  uint64_t issued;    /* not yet charged to the budget */
  uint64_t quiet;     /* issued since something was finished */
  uint64_t patience;  /* quiet from which livelocks are looked for */
  uint64_t random;
  uint64_t clock;
  /* livelock search */
  uint32_t epoch, rounds;
  bool recording, verdict, event, idle;
  char apart[KILN__APART];
};

/* System functions, by function number. */
typedef enum kiln__cpu_system {
  KILN__SYSTEM_NONE = 0,
  KILN__SYSTEM_VPRINTF,
  KILN__SYSTEM_MALLOC,
  KILN__SYSTEM_FREE,
  KILN__SYSTEM_ASSERT,
  KILN__SYSTEM_MEMCPY,
  KILN__SYSTEM_MEMSET
} kiln__cpu_system;

struct kiln__cpu_job {
  kiln__cpu_grid grid; /* first: a grid's job is found by its address */
  const kiln__cpu_launch_desc *launch;
  kiln_allocator alloc;
  kiln__cpu_worker *workers;
  unsigned n_workers;
  uint8_t *system; /* kiln__cpu_system by function number */
  uint64_t n_gangs;
  char before[KILN__APART];
  atomic_uint_fast64_t next_gang, charged;
  char after[KILN__APART];
  uint32_t warps_per_block, gang_blocks;
  uint32_t local_stride, shared_stride;
  uint32_t max_gangs; /* resident, of one worker */
  bool failed_memory;
  uint64_t workspace; /* device address, 0: none */
  /* livelock search: see stuck.c */
  pthread_mutex_t stuck_lock;
  uint32_t epoch, phase, n_active, n_in, n_stuck;
};

static inline kiln__cpu_job *kiln__cpu_job_of(const kiln__cpu_warp *w)
{
  return (kiln__cpu_job *)(void *)w->grid;
}

static inline kiln__cpu_block_own *kiln__cpu_own(const kiln__cpu_block *block)
{
  return block->schedule;
}

/* ---- frame.c ------------------------------------------------------------------- */

/* A frame of `code` for lanes of this warp, constants filled in; NULL: no
 * memory. */
kiln__cpu_frame *kiln__cpu_frame_take(kiln__cpu_warp *w,
                                      const kiln__cpu_code *code);
void kiln__cpu_frame_give(kiln__cpu_warp *w, kiln__cpu_frame *f);
/* Constants that change with the block and the warp. */
void kiln__cpu_frame_fill(kiln__cpu_warp *w, kiln__cpu_frame *f);
void kiln__cpu_frames_free(kiln__cpu_worker *worker);

/* ---- block.c ------------------------------------------------------------------- */

/* A gang ready to run number `number`; NULL: no memory. */
kiln__cpu_gang *kiln__cpu_gang_begin(kiln__cpu_worker *worker, uint64_t number);
void kiln__cpu_gang_end(kiln__cpu_gang *gang);
void kiln__cpu_gang_free(kiln__cpu_gang *gang);

typedef enum kiln__cpu_gang_state {
  KILN__GANG_DONE,
  KILN__GANG_BUSY, /* its share is used up */
  KILN__GANG_IDLE, /* only waits for others */
  KILN__GANG_STUCK /* all wait for each other */
} kiln__cpu_gang_state;
kiln__cpu_gang_state kiln__cpu_gang_run(kiln__cpu_gang *gang);

/* ---- barrier.c ----------------------------------------------------------------- */

/* Threads left: what waits for them may be complete. */
void kiln__cpu_barriers_recheck(kiln__cpu_block *block);

/* ---- stuck.c ------------------------------------------------------------------- */

/* After each round over a worker's blocks. */
void kiln__cpu_stuck_step(kiln__cpu_worker *worker);
void kiln__cpu_stuck_leave(kiln__cpu_worker *worker);

/* ---- fault.c ------------------------------------------------------------------- */

/* Deadlock: the waiting threads of these gangs (linked by next; `one`: only the
 * first). */
void kiln__cpu_fault_deadlock(kiln__cpu_job *job, const kiln__cpu_gang *gangs,
                              bool one, bool spinning);
/* Stop the grid without a place. */
void kiln__cpu_fault_grid(kiln__cpu_job *job, kiln__cpu_fault_kind kind,
                          const char *text);

/* ---- system.c ------------------------------------------------------------------- */

kiln__cpu_system kiln__cpu_system_named(const char *name);
/* False: fault. */
bool kiln__cpu_system_call(kiln__cpu_warp *w, kiln__cpu_frame *f,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_code *callee, kiln__cpu_system which,
                           uint32_t mask);
/* Bytes of a generic address as one lane sees it; NULL: not all there. */
uint8_t *kiln__cpu_lane_bytes(kiln__cpu_warp *w, int lane, uint64_t address,
                              uint64_t size);

#endif
