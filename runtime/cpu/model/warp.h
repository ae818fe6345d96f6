/* warp.h -- what a handler sees: the warp, its block, its grid. */
#ifndef KILN_CPU_WARP_H
#define KILN_CPU_WARP_H

#include "../code/code.h"
#include "address_range.h"

#include <stdatomic.h>

typedef struct kiln__cpu_block kiln__cpu_block;
typedef struct kiln__cpu_grid kiln__cpu_grid;

/* Events of one instruction, added up. Warp-wide: one for each time that a
 * group of lanes executes it. */
typedef struct kiln__cpu_tally {
  uint64_t issued; /* warp instructions */
  uint64_t lanes;  /* thread instructions: active lanes */
  uint64_t events; /* branches: divergent; memory: requests; barriers: waits */
  uint64_t cost;   /* global: 32-byte sectors; shared: passes (ways); atomics:
                      lanes on a word that another lane of the warp has too */
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
  KILN__FAULT_STACK,       /* CUDA_ERROR_LAUNCH_FAILED: stack used up */
  KILN__FAULT_DEADLOCK,    /* CUDA_ERROR_LAUNCH_TIMEOUT */
  KILN__FAULT_BUDGET,      /* CUDA_ERROR_LAUNCH_TIMEOUT */
  KILN__FAULT_MEMORY       /* CUDA_ERROR_OUT_OF_MEMORY: of the host */
} kiln__cpu_fault_kind;

/* The last few ranges that a warp's accesses fell in. */
enum { KILN__N_CACHED = 4 };

/* Fields before `schedule` are for handlers; the rest is run/'s. */
struct kiln__cpu_warp {
  _Alignas(64) uint32_t lane[KILN__WARP]; /* ~0u where active, else 0 */
  uint8_t *regs;  /* slots of the running call, 64-byte aligned */
  uint8_t *local; /* the running call's part of lane 0's stack; lane l's is
                       l * local_stride bytes further */
  uint32_t mask;  /* active lanes */
  bool full;      /* mask is all 32 */
  bool fault;     /* set by kiln__cpu_fault(): the scheduler stops */
  bool watched;   /* memory accesses go through kiln__cpu_watch_access() */
  bool counted;   /* sectors and shared-memory ways are counted */
  uint32_t live;  /* lanes that exist and have not exited */
  uint32_t index; /* in the block */
  uint32_t local_stride;
  uint32_t local_size; /* bytes of a lane's stack */
  uint32_t local_at;   /* `local`'s offset in the lane's stack: local addresses
                           count from the start of the stack */
  kiln__cpu_tally *tally; /* of the running function, by instruction */
  uint32_t *carry;        /* 32 lanes of the carry flag, 0 or 1 */
  kiln__cpu_block *block;
  kiln__cpu_grid *grid;
  kiln__cpu_range cached[KILN__N_CACHED];
  uint64_t cached_epoch;
  uint32_t cached_next;
  void *copies;   /* cp.async not yet waited for: exec/memory's */
  void *schedule; /* run/'s own */
};

struct kiln__cpu_block {
  kiln__cpu_grid *grid;
  uint8_t *shared; /* static, then dynamic */
  uint32_t shared_size;
  uint32_t ctaid[3];
  uint64_t number; /* linear, x fastest */
  uint32_t n_warps, n_threads;
  kiln__cpu_warp *warps;     /* array */
  kiln__cpu_block **cluster; /* blocks of its cluster by rank, NULL: alone */
  uint32_t cluster_rank, cluster_size;
  void *watch;    /* race and initialisation shadow of shared memory */
  uint32_t phase; /* whole-block barriers passed */
  void *schedule;
};

/* Why a grid stopped: the first fault. */
typedef struct kiln__cpu_fault_info {
  kiln__cpu_fault_kind kind;
  const kiln__cpu_code *code;
  uint32_t insn; /* index in code */
  uint32_t thread[3], block[3];
  uint64_t address; /* as the instruction computed it */
  uint32_t bytes;
  kiln__cpu_space space; /* state space of the access */
  bool write;
  char text[1024]; /* assertion text, deadlock's list of waiting threads, ... */
} kiln__cpu_fault_info;

/* A launch while it runs. Read-only for handlers but for atomics and fault. */
struct kiln__cpu_grid {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code; /* the entry */
  kiln__cpu_memory *memory;
  const uint8_t *params; /* parameter buffer, code->param_bytes */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3];
  uint32_t dynamic_shared, shared_size;
  uint64_t number;  /* %gridid */
  int device, arch; /* 90 */
  int sm_count;
  bool lock_step;
  bool cooperative;
  uint64_t seed;
  const uint64_t *globals;   /* address of each program global */
  const uint64_t *functions; /* NULL: KILN__WINDOW_CODE + number * 16 */
  uint64_t envreg[2];        /* grid workspace, see run.h */
  struct kiln__cpu_textures
      *textures;                 /* handles of this device, see texture.h */
  struct kiln__cpu_watch *watch; /* checks and counters; NULL: none */
  struct kiln__cpu_out *out;     /* printf buffer of the context */
  kiln_allocator alloc;
  pthread_mutex_t lock; /* guards fault, heap, out */
  atomic_bool stopped;  /* a fault or a cancel: everybody leaves */
  kiln__cpu_fault_info fault;
  uint64_t heap_bytes, heap_limit; /* malloc in kernels */
};

/* Record the first fault of the grid and stop it. `lane` names the thread; -1:
 * the lowest active. Sets w->fault. Defined in run/. */
void kiln__cpu_fault(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     kiln__cpu_fault_kind kind, int lane, uint64_t address,
                     uint32_t bytes);

#endif
