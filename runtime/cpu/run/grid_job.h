/* grid_job.h -- the data structures that the files of run/ share: the state of
 * a launch, its workers (host threads), groups of blocks, and blocks. Only
 * files of run/ include this header.
 *
 * A block group (a gang in the code) is a set of blocks that start together:
 * the blocks of one cluster, or a single block. A worker owns the block groups
 * that it started, and no other worker accesses their warps. Workers share only
 * the counter of block groups, the state of the livelock search, and the memory
 * of the kernel. */
#ifndef KILN_CPU_INSIDE_H
#define KILN_CPU_INSIDE_H

#include "../exec/schedule.h"
#include "../memory/address_space.h"
#include "../watch/watch.h"
#include "grid_run.h"

enum {
  KILN__N_BARRIERS = 16,
  KILN__MAX_WARPS = 32,
  /* time slice of a warp, in warp instructions */
  KILN__SHARE = 1 << 14,
  /* time slice of a block group, in warp instructions */
  KILN__GANG_SHARE = 1 << 22,
  /* size in bytes of the workspace for grid-wide synchronisation */
  KILN__WORKSPACE = 256
};

/* The state of one barrier of a block. */
typedef struct kiln__cpu_barrier {
  /* number of threads that have to arrive at the barrier; 0 means all threads
   * of the block */
  uint32_t expected;
  uint32_t counted; /* number of threads that have arrived */
  uint32_t warps;   /* bit mask of the warps with lanes that have arrived */
  uint32_t trues;   /* number of threads with a true predicate (barrier.red) */
  uint32_t votes;   /* number of threads with a predicate (barrier.red) */
  /* mask of the lanes that have arrived, per warp */
  uint32_t here[KILN__MAX_WARPS];
  /* true if some threads have arrived but the barrier is not complete */
  bool open;
} kiln__cpu_barrier;

typedef struct kiln__cpu_gang kiln__cpu_gang;
typedef struct kiln__cpu_worker kiln__cpu_worker;
typedef struct kiln__cpu_job kiln__cpu_job;

/* The state of a block that only run/ uses; block->schedule points to it. */
typedef struct kiln__cpu_block_own {
  kiln__cpu_gang *gang;
  kiln__cpu_worker *worker;
  uint32_t live; /* number of live threads of the block */
  uint32_t open; /* bit mask of the barriers at which threads wait */
  kiln__cpu_barrier barrier[KILN__N_BARRIERS];
} kiln__cpu_block_own;

/* A block group: blocks that start together, either the blocks of one cluster
 * or a single block. */
struct kiln__cpu_gang {
  kiln__cpu_gang *next;
  kiln__cpu_worker *worker;
  kiln__cpu_block *blocks; /* array of n_blocks blocks */
  /* state of each block that is private to run/ */
  kiln__cpu_block_own *owns;
  kiln__cpu_warp *warps;         /* array of n_warps warps */
  kiln__cpu_schedule *schedules; /* scheduler state of each warp */
  kiln__cpu_block **ranks;  /* blocks in order of their rank in the cluster */
  uint8_t *shared, *stacks; /* aligned pointers into `memory` */
  void *memory;
  /* n_warps counts the warps of all blocks in the group */
  uint32_t n_blocks, n_warps;
  uint32_t live; /* number of live threads of the block group */
  uint32_t done; /* number of warps that have ended */
  uint32_t cluster_arrived, cluster_phase;
  uint64_t number;
};

/* Distance in bytes between data that different workers write frequently: two
 * cache lines, because processors prefetch cache lines in pairs. */
enum { KILN__APART = 128 };

/* The state of one host thread of a launch. */
struct kiln__cpu_worker {
  kiln__cpu_job *job;
  unsigned index;
  pthread_t thread;
  /* lists of free register frames, indexed by frame->slot: the number of a
   * function of the kernel's program, or an index that follows these numbers */
  kiln__cpu_frame **free;
  /* instruction counts, with the same indices */
  kiln__cpu_tally **tallies;
  /* functions of other modules that the worker called */
  const kiln__cpu_code **guests;
  uint32_t n_guests;
  kiln__cpu_frame *made;
  kiln__cpu_gang *resident, **last, *spare;
  uint32_t n_resident;
  /* range of block-group numbers that the worker took from the counter and has
   * not started yet */
  uint64_t next, end;
  /* number of warp instructions not yet subtracted from the instruction
   * budget */
  uint64_t issued;
  /* number of warp instructions since `event` was last set */
  uint64_t quiet;
  /* value of `quiet` at which the livelock search starts */
  uint64_t patience;
  uint64_t random;
  uint64_t clock;
  /* number of the livelock search, and rounds since it began */
  uint32_t epoch, rounds;
  /* true while the schedulers record changes to memory */
  bool recording;
  bool verdict; /* result of the livelock search: this worker can only spin */
  /* true if a block group started, or a block group, warp or barrier
   * finished */
  bool event;
  char apart[KILN__APART];
};

struct kiln__cpu_job {
  /* `grid` is the first member, so a pointer to the grid is also a pointer to
   * this struct. */
  kiln__cpu_grid grid;
  const kiln__cpu_launch_desc *launch;
  kiln_allocator alloc;
  kiln__cpu_worker *workers;
  unsigned n_workers;
  uint64_t n_gangs;
  char before[KILN__APART];
  atomic_uint_fast64_t next_gang, charged;
  char after[KILN__APART];
  uint32_t warps_per_block, gang_blocks;
  uint32_t local_stride, shared_stride;
  /* maximum number of block groups that are resident in one worker */
  uint32_t max_gangs;
  /* what the kernel submitted to the device runtime; NULL until the first
   * call */
  struct kiln__cpu_submitted *submitted;
  /* device address of the workspace for grid-wide synchronisation; 0 if there
   * is none */
  uint64_t workspace;
  /* State of the livelock search, guarded by livelock_lock; see livelock.c.
   * n_active is the number of workers that run, n_in the number of workers that
   * take part in the search, and n_stuck the number of workers that can only
   * spin. */
  pthread_mutex_t livelock_lock;
  uint32_t epoch, phase, n_active, n_in, n_stuck;
};

static inline kiln__cpu_job *kiln__cpu_job_of(const kiln__cpu_warp *w)
{
  return (kiln__cpu_job *)(void *)w->grid;
}

static inline bool kiln__cpu_is_code(uint64_t address)
{
  return address - KILN__WINDOW_CODE < KILN__WINDOW_BYTES;
}

static inline uint64_t kiln__cpu_address_of(const kiln__cpu_code *code)
{
  return KILN__WINDOW_CODE + code->program->code_offset +
         code->number * UINT64_C(16);
}

static inline kiln__cpu_block_own *kiln__cpu_own(const kiln__cpu_block *block)
{
  return block->schedule;
}

/* ---- frame.c ------------------------------------------------------------- */

/* Takes a register frame for a call of `code` by lanes of this warp, and fills
 * in the constants of the frame. Returns NULL if memory is exhausted.
 * kiln__cpu_frame_give() returns the frame to its worker. */
kiln__cpu_frame *kiln__cpu_frame_take(kiln__cpu_warp *w,
                                      const kiln__cpu_code *code);
void kiln__cpu_frame_give(kiln__cpu_warp *w, kiln__cpu_frame *f);
/* Writes the constants of a register frame that depend on the block and the
 * warp. */
void kiln__cpu_frame_fill(kiln__cpu_warp *w, kiln__cpu_frame *f);
/* Frees all register frames that the worker ever allocated. */
void kiln__cpu_frames_free(kiln__cpu_worker *worker);

/* ---- block.c ------------------------------------------------------------- */

/* Allocates or reuses the memory of a block group, and prepares it to run as
 * the block group with this number. Returns NULL if memory is exhausted. */
kiln__cpu_gang *kiln__cpu_gang_begin(kiln__cpu_worker *worker, uint64_t number);
/* Returns a block group to its worker for reuse. The block group has finished,
 * or its grid was stopped. */
void kiln__cpu_gang_end(kiln__cpu_gang *gang);
void kiln__cpu_gang_free(kiln__cpu_gang *gang);

typedef enum kiln__cpu_gang_state {
  KILN__GANG_DONE,
  KILN__GANG_BUSY, /* the time slice of the block group is used up */
  KILN__GANG_IDLE, /* all warps poll memory that other block groups write */
  /* deadlock: all warps of the block group wait for each other */
  KILN__GANG_STUCK
} kiln__cpu_gang_state;
/* Runs each warp of the block group in turn, until the time slice of the block
 * group is used up or no warp can run. */
kiln__cpu_gang_state kiln__cpu_gang_run(kiln__cpu_gang *gang);

/* ---- barrier.c ----------------------------------------------------------- */

/* Completes the barriers of a block that only waited for threads that have
 * exited. */
void kiln__cpu_barriers_recheck(kiln__cpu_block *block);

/* ---- livelock.c ---------------------------------------------------------- */

/* Performs one step of the livelock search. A worker calls this function after
 * it has run each of its block groups once; see livelock.c. */
void kiln__cpu_livelock_step(kiln__cpu_worker *worker);
/* Removes a worker that has no block groups left from the livelock search. */
void kiln__cpu_livelock_leave(kiln__cpu_worker *worker);

/* ---- fault.c ------------------------------------------------------------- */

/* Records a deadlock and lists the waiting threads of the block groups in the
 * linked list `gangs`. If `one` is true, only the first block group is
 * reported. If `spinning` is true, the threads poll memory instead of waiting
 * at barriers. */
void kiln__cpu_fault_deadlock(kiln__cpu_job *job, const kiln__cpu_gang *gangs,
                              bool one, bool spinning);
/* Stops the grid for a reason that no particular instruction caused. */
void kiln__cpu_fault_grid(kiln__cpu_job *job, kiln__cpu_fault_kind kind,
                          const char *text);

/* ---- system_calls.c ------------------------------------------------------ */

/* Executes a call of a system function for the lanes in `mask`. Returns false
 * if the call faulted. */
bool kiln__cpu_system_call(kiln__cpu_warp *w, kiln__cpu_frame *f,
                           const kiln__cpu_insn *in, kiln__cpu_system which,
                           uint32_t mask);
/* Return an argument of a call, or 0 if the call has fewer arguments, and store
 * the result of a call. Values have 4 or 8 bytes. */
uint64_t kiln__cpu_argument(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                            const kiln__cpu_call *call, uint32_t i, int lane);
void kiln__cpu_result(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                      const kiln__cpu_call *call, int lane, uint64_t value);
/* Allocate and free memory of the heap of kernels. The first function returns 0
 * if the heap is full, the second returns false if the address is not one that
 * the first returned. An address of 0 is allowed. */
uint64_t kiln__cpu_heap_alloc(kiln__cpu_warp *w, uint64_t size);
bool kiln__cpu_heap_free(kiln__cpu_warp *w, uint64_t address);
/* Returns the host address of `size` bytes at a generic address of one lane.
 * Returns NULL unless all of these bytes exist. */
uint8_t *kiln__cpu_lane_bytes(kiln__cpu_warp *w, int lane, uint64_t address,
                              uint64_t size);

/* ---- device_runtime.c ---------------------------------------------------- */

/* Executes a call of the device runtime for one lane. Returns false if the call
 * faulted. */
bool kiln__cpu_device_call(kiln__cpu_warp *w, const kiln__cpu_frame *f,
                           const kiln__cpu_insn *in, kiln__cpu_system which,
                           int lane);

#endif
