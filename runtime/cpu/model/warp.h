/* warp.h -- what a handler sees of a running launch: the warp, its block and
 * its grid.
 *
 * The structures are filled by run/ when a grid, a block or a warp starts.
 * Handlers in exec/ read them and change registers, memory and lane masks; the
 * checks in watch/ only read. A pointer field of type void belongs to the
 * folder named beside it. */
#ifndef KILN_CPU_WARP_H
#define KILN_CPU_WARP_H

#include "../code/code.h"
#include "address_range.h"

#include <stdatomic.h>

typedef struct kiln__cpu_block kiln__cpu_block;
typedef struct kiln__cpu_grid kiln__cpu_grid;

/* What one instruction did, summed over its executions. A group of lanes that
 * executes the instruction together counts as one warp instruction. */
typedef struct kiln__cpu_tally {
  uint64_t issued; /* warp instructions */
  uint64_t lanes;  /* thread instructions: active lanes */
  /* branches: divergent ones; memory: requests; barriers: waits */
  uint64_t events;
  /* global memory: 32-byte sectors; shared memory: passes, which bank conflicts
   * raise; atomics: lanes whose word another lane of the warp updates too */
  uint64_t cost;
} kiln__cpu_tally;

typedef enum kiln__cpu_fault_kind {
  KILN__FAULT_NONE = 0,
  KILN__FAULT_ADDRESS,     /* CUDA_ERROR_ILLEGAL_ADDRESS */
  KILN__FAULT_MISALIGNED,  /* CUDA_ERROR_MISALIGNED_ADDRESS */
  KILN__FAULT_SPACE,       /* CUDA_ERROR_INVALID_ADDRESS_SPACE */
  KILN__FAULT_PC,          /* CUDA_ERROR_INVALID_PC: bad function address */
  KILN__FAULT_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION: bad operand */
  KILN__FAULT_TRAP,        /* CUDA_ERROR_LAUNCH_FAILED */
  KILN__FAULT_ASSERT,      /* CUDA_ERROR_ASSERT */
  KILN__FAULT_STACK,       /* CUDA_ERROR_LAUNCH_FAILED: stack overflow */
  KILN__FAULT_DEADLOCK,    /* CUDA_ERROR_LAUNCH_TIMEOUT */
  KILN__FAULT_BUDGET,      /* CUDA_ERROR_LAUNCH_TIMEOUT */
  KILN__FAULT_MEMORY       /* CUDA_ERROR_OUT_OF_MEMORY: of the host */
} kiln__cpu_fault_kind;

/* Number of ranges that a warp keeps copies of: those that its last accesses
 * fell into. */
enum { KILN__N_CACHED = 4 };

/* One warp. `schedule` belongs to run/ and the schedulers; handlers use the
 * other fields. */
struct kiln__cpu_warp {
  _Alignas(64) uint32_t lane[KILN__WARP]; /* ~0u for an active lane, else 0 */
  /* registers of the running call: 32 lanes per slot, 64-byte aligned */
  uint8_t *regs;
  /* the running call's part of lane 0's stack; lane l's part lies l *
   * local_stride bytes further */
  uint8_t *local;
  uint32_t mask;  /* active lanes */
  bool full;      /* mask is all 32 */
  bool fault;     /* set by kiln__cpu_fault(): the scheduler stops */
  bool watched;   /* every memory access calls kiln__cpu_watch_access() */
  bool counted;   /* sectors and shared-memory passes are counted */
  uint32_t live;  /* lanes that exist and have not exited */
  uint32_t index; /* in the block */
  uint32_t local_stride;
  uint32_t local_size; /* bytes of a lane's stack */
  /* offset of `local` in the stack of its lane, from which local addresses
   * count */
  uint32_t local_at;
  /* of the running function, by instruction; NULL: not counted */
  kiln__cpu_tally *tally;
  uint32_t *carry; /* carry flag of each lane, 0 or 1 */
  kiln__cpu_block *block;
  kiln__cpu_grid *grid;
  kiln__cpu_range cached[KILN__N_CACHED];
  uint64_t cached_epoch;
  uint32_t cached_next;
  void *copies;   /* memory/: cp.async copies not yet waited for; NULL: none */
  void *schedule; /* exec/: a kiln__cpu_schedule */
};

struct kiln__cpu_block {
  kiln__cpu_grid *grid;
  uint8_t *shared; /* static, then dynamic shared memory */
  uint32_t shared_size;
  uint32_t ctaid[3];
  uint64_t number; /* linear index in the grid, x fastest */
  uint32_t n_warps, n_threads;
  kiln__cpu_warp *warps; /* array */
  /* blocks of the cluster by rank; NULL: the block is alone */
  kiln__cpu_block **cluster;
  uint32_t cluster_rank, cluster_size;
  void *watch;    /* watch/: shadow of shared memory and clocks; NULL: none */
  uint32_t phase; /* number of whole-block barriers passed */
  void *schedule;
};

/* Why a grid stopped. Only its first fault is recorded. */
typedef struct kiln__cpu_fault_info {
  kiln__cpu_fault_kind kind;
  const kiln__cpu_code *code;
  uint32_t insn; /* index in `code` */
  uint32_t thread[3], block[3];
  uint64_t address; /* as the instruction computed it */
  uint32_t bytes;
  kiln__cpu_space space; /* state space of the access */
  bool write;
  /* text of an assertion; of a deadlock, the threads that wait */
  char text[1024];
} kiln__cpu_fault_info;

/* A launch while it runs. Handlers only read it, except for what `lock` guards
 * and for `stopped`. */
struct kiln__cpu_grid {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code; /* the kernel */
  kiln__cpu_memory *memory;
  const uint8_t *params; /* parameter buffer of code->param_bytes bytes */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3];
  uint32_t dynamic_shared, shared_size;
  uint64_t number;  /* %gridid */
  int device, arch; /* 90 */
  int sm_count;
  bool lock_step;
  bool cooperative;
  uint64_t seed;
  const uint64_t *globals; /* address of each variable of the program */
  /* address of each function; NULL: KILN__WINDOW_CODE + 16 * number */
  const uint64_t *functions;
  /* address of the workspace for grid-wide synchronisation, high and low
   * half */
  uint64_t envreg[2];
  struct kiln__cpu_textures *textures; /* texture and surface objects */
  struct kiln__cpu_watch *watch;       /* checks and counters; NULL: none */
  /* printf buffer of the context; NULL: output is dropped */
  struct kiln__cpu_out *out;
  kiln_allocator alloc;
  pthread_mutex_t lock; /* guards fault, heap_bytes and out */
  atomic_bool stopped;  /* a fault or a cancellation: every worker leaves */
  kiln__cpu_fault_info fault;
  uint64_t heap_bytes, heap_limit; /* malloc() in kernels */
};

/* Record a fault of instruction `in` and stop the grid; a later fault only
 * stops its own warp. `lane` is the thread that faulted, -1 for the lowest
 * active one. `address` and `bytes` are those of the access, 0 if there is
 * none. Sets w->fault. Any worker thread may call it. Defined in
 * run/fault.c. */
void kiln__cpu_fault(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     kiln__cpu_fault_kind kind, int lane, uint64_t address,
                     uint32_t bytes);

#endif
