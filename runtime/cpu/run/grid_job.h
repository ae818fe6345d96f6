/* grid_job.h -- what the files of run/ share: the job of a launch, its workers
 * (host threads), gangs of blocks, and blocks. Private to run/.
 *
 * A gang is what starts together: the blocks of one cluster, or one block
 * alone. A worker owns the gangs that it started; nobody else touches their
 * warps. Workers meet only at the counter of gangs, in the search for
 * livelocks, and in the memory of the kernel. */
#ifndef KILN_CPU_INSIDE_H
#define KILN_CPU_INSIDE_H

#include "../exec/schedule.h"
#include "../memory/address_space.h"
#include "../watch/watch.h"
#include "grid_run.h"

enum {
  KILN__N_BARRIERS = 16,
  KILN__MAX_WARPS = 32,
  /* warp instructions until the next warp has its turn */
  KILN__SHARE = 1 << 14,
  /* warp instructions until the next gang has its turn */
  KILN__GANG_SHARE = 1 << 22,
  KILN__WORKSPACE = 256 /* bytes for grid-wide synchronisation */
};

/* One barrier of a block. */
typedef struct kiln__cpu_barrier {
  uint32_t expected; /* threads that have to arrive; 0: all of the block */
  uint32_t counted;  /* threads that arrived */
  uint32_t warps;    /* one bit per warp of which lanes arrived */
  uint32_t trues;    /* barrier.red: threads with a true predicate */
  uint32_t votes;    /* barrier.red: threads with a predicate */
  uint32_t here[KILN__MAX_WARPS]; /* lanes that arrived, by warp */
  bool open; /* some thread arrived and the barrier is not complete */
} kiln__cpu_barrier;

typedef struct kiln__cpu_gang kiln__cpu_gang;
typedef struct kiln__cpu_worker kiln__cpu_worker;
typedef struct kiln__cpu_job kiln__cpu_job;

/* What run/ keeps per block; block->schedule points to it. */
typedef struct kiln__cpu_block_own {
  kiln__cpu_gang *gang;
  kiln__cpu_worker *worker;
  uint32_t live; /* threads */
  uint32_t open; /* one bit per open barrier */
  kiln__cpu_barrier barrier[KILN__N_BARRIERS];
} kiln__cpu_block_own;

/* Blocks that start together: a cluster, or one block alone. */
struct kiln__cpu_gang {
  kiln__cpu_gang *next;
  kiln__cpu_worker *worker;
  kiln__cpu_block *blocks;       /* n_blocks of them */
  kiln__cpu_block_own *owns;     /* one per block */
  kiln__cpu_warp *warps;         /* of all blocks */
  kiln__cpu_schedule *schedules; /* one per warp */
  kiln__cpu_block **ranks;       /* blocks by rank in the cluster */
  uint8_t *shared, *stacks;      /* aligned, within `memory` */
  void *memory;
  uint32_t n_blocks, n_warps; /* n_warps counts all blocks */
  uint32_t live;              /* threads */
  uint32_t done;              /* warps that ended */
  uint32_t cluster_arrived, cluster_phase;
  uint64_t number;
};

/* Bytes between data that different workers write all the time: a cache line
 * and its neighbour, which processors fetch together. */
enum { KILN__APART = 128 };

/* One host thread's part of a launch. */
struct kiln__cpu_worker {
  kiln__cpu_job *job;
  unsigned index;
  pthread_t thread;
  kiln__cpu_frame **free;    /* by function number */
  kiln__cpu_tally **tallies; /* by function number */
  kiln__cpu_frame *made;
  kiln__cpu_gang *resident, **last, *spare;
  uint32_t n_resident;
  /* numbers of gangs that it took from the counter and has not started */
  uint64_t next, end;
  uint64_t issued; /* warp instructions not yet charged to the budget */
  uint64_t quiet;  /* warp instructions since something was finished */
  /* value of `quiet` at which the search for livelocks starts */
  uint64_t patience;
  uint64_t random;
  uint64_t clock;
  uint32_t epoch, rounds; /* of the search for livelocks */
  bool recording;         /* changes of memory are recorded */
  bool verdict;           /* this worker can only spin */
  bool event;             /* something was started or finished */
  char apart[KILN__APART];
};

/* Functions that the device itself provides (printf, malloc, ...). */
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
  /* first member: the address of a grid is that of its job */
  kiln__cpu_grid grid;
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
  uint32_t max_gangs; /* gangs that one worker may hold at once */
  uint64_t workspace; /* device address; 0: none */
  /* Search for livelocks, guarded by livelock_lock; see livelock.c. Workers
   * that run, that take part, and that can only spin. */
  pthread_mutex_t livelock_lock;
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

/* ---- frame.c ------------------------------------------------------------- */

/* Take a frame of `code` for lanes of this warp, with its constants filled in.
 * NULL: out of memory. kiln__cpu_frame_give() returns it to its worker. */
kiln__cpu_frame *kiln__cpu_frame_take(kiln__cpu_warp *w,
                                      const kiln__cpu_code *code);
void kiln__cpu_frame_give(kiln__cpu_warp *w, kiln__cpu_frame *f);
/* Fill in the constants that change with the block and the warp. */
void kiln__cpu_frame_fill(kiln__cpu_warp *w, kiln__cpu_frame *f);
/* Free all frames that the worker ever made. */
void kiln__cpu_frames_free(kiln__cpu_worker *worker);

/* ---- block.c ------------------------------------------------------------- */

/* Make or reuse a gang, ready to run as number `number`. NULL: out of
 * memory. */
kiln__cpu_gang *kiln__cpu_gang_begin(kiln__cpu_worker *worker, uint64_t number);
/* Give a gang that is done, or whose grid stopped, back to its worker for
 * reuse. */
void kiln__cpu_gang_end(kiln__cpu_gang *gang);
void kiln__cpu_gang_free(kiln__cpu_gang *gang);

typedef enum kiln__cpu_gang_state {
  KILN__GANG_DONE,
  KILN__GANG_BUSY, /* its share is used up */
  KILN__GANG_IDLE, /* all its warps poll for others */
  KILN__GANG_STUCK /* all its warps wait for each other: a deadlock */
} kiln__cpu_gang_state;
/* Run each warp of the gang in turn until the share of the gang is used up, or
 * nothing is left to do. */
kiln__cpu_gang_state kiln__cpu_gang_run(kiln__cpu_gang *gang);

/* ---- barrier.c ----------------------------------------------------------- */

/* Threads of the block exited: complete the barriers that waited for them
 * only. */
void kiln__cpu_barriers_recheck(kiln__cpu_block *block);

/* ---- livelock.c ---------------------------------------------------------- */

/* Called after each round over the blocks of a worker; see livelock.c. */
void kiln__cpu_livelock_step(kiln__cpu_worker *worker);
/* The worker has no more blocks and leaves the search for livelocks. */
void kiln__cpu_livelock_leave(kiln__cpu_worker *worker);

/* ---- fault.c ------------------------------------------------------------- */

/* Record a deadlock with the list of waiting threads of these gangs (linked by
 * next; `one`: of the first only). `spinning`: they poll memory instead of
 * waiting at barriers. */
void kiln__cpu_fault_deadlock(kiln__cpu_job *job, const kiln__cpu_gang *gangs,
                              bool one, bool spinning);
/* Stop the grid for a reason that no instruction caused. */
void kiln__cpu_fault_grid(kiln__cpu_job *job, kiln__cpu_fault_kind kind,
                          const char *text);

/* ---- system_calls.c ------------------------------------------------------ */

/* The system function of a name; KILN__SYSTEM_NONE if it is none. */
kiln__cpu_system kiln__cpu_system_named(const char *name);
/* Execute a call of a system function by the lanes in `mask`. False: it
 * faulted. */
bool kiln__cpu_system_call(kiln__cpu_warp *w, kiln__cpu_frame *f,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_code *callee, kiln__cpu_system which,
                           uint32_t mask);
/* Where `size` bytes at a generic address lie in this process, as seen by one
 * lane; NULL: they do not all exist. */
uint8_t *kiln__cpu_lane_bytes(kiln__cpu_warp *w, int lane, uint64_t address,
                              uint64_t size);

#endif
