/* warp.h -- declares the parts of a running launch that an instruction handler
 * sees: the warp, its block and its grid.
 *
 * run/ fills these structs when a grid, a block or a warp starts. Handlers in
 * exec/ read the structs and change registers, memory and lane masks. The
 * checks in watch/ only read the structs. A field of type void * belongs to the
 * folder that its comment names. */
#ifndef KILN_CPU_WARP_H
#define KILN_CPU_WARP_H

#include "../code/code.h"
#include "address_range.h"

#include <stdatomic.h>

typedef struct kiln__cpu_block kiln__cpu_block;
typedef struct kiln__cpu_grid kiln__cpu_grid;

/* Counts of one instruction, summed over its executions. A group of lanes that
 * executes the instruction together counts as one warp instruction. */
typedef struct kiln__cpu_tally {
  uint64_t issued; /* number of warp instructions issued */
  uint64_t lanes;  /* number of thread instructions, one per active lane */
  /* number of divergent branches, memory requests, or barrier waits, according
   * to the class of the instruction */
  uint64_t events;
  /* Cost of the instruction, in a unit that depends on its class. Global memory
   * counts 32-byte sectors. Shared memory counts passes; bank conflicts need
   * more passes. Matrix instructions count multiply-adds. Atomics count the lanes that update the same 32-bit word as
   * another lane of the warp. */
  uint64_t cost;
} kiln__cpu_tally;

typedef enum kiln__cpu_fault_kind {
  KILN__FAULT_NONE = 0,
  KILN__FAULT_ADDRESS,    /* invalid address (CUDA_ERROR_ILLEGAL_ADDRESS) */
  KILN__FAULT_MISALIGNED, /* bad alignment (CUDA_ERROR_MISALIGNED_ADDRESS) */
  KILN__FAULT_SPACE, /* wrong state space (CUDA_ERROR_INVALID_ADDRESS_SPACE) */
  KILN__FAULT_PC,    /* bad function address (CUDA_ERROR_INVALID_PC) */
  KILN__FAULT_INSTRUCTION, /* bad operand (CUDA_ERROR_ILLEGAL_INSTRUCTION) */
  /* the operand of a tensor copy is no tensor map
   * (CUDA_ERROR_ILLEGAL_INSTRUCTION) */
  KILN__FAULT_MAP,
  KILN__FAULT_TRAP,     /* trap instruction (CUDA_ERROR_LAUNCH_FAILED) */
  KILN__FAULT_ASSERT,   /* failed assertion (CUDA_ERROR_ASSERT) */
  KILN__FAULT_STACK,    /* stack overflow (CUDA_ERROR_LAUNCH_FAILED) */
  KILN__FAULT_DEADLOCK, /* deadlock (CUDA_ERROR_LAUNCH_TIMEOUT) */
  /* instruction budget used up (CUDA_ERROR_LAUNCH_TIMEOUT) */
  KILN__FAULT_BUDGET,
  KILN__FAULT_MEMORY /* no host memory (CUDA_ERROR_OUT_OF_MEMORY) */
} kiln__cpu_fault_kind;

/* Number of address ranges of which a warp keeps copies. These are the ranges
 * that the warp accessed last. */
enum { KILN__N_CACHED = 4 };

/* The state of one warp. The member `schedule` belongs to run/ and the
 * schedulers. Handlers use the other members. */
struct kiln__cpu_warp {
  /* ~0u for each active lane, 0 for the other lanes */
  _Alignas(64) uint32_t lane[KILN__WARP];
  /* registers of the running function call: 32 lanes per register slot, 64-byte
   * aligned */
  uint8_t *regs;
  /* stack frame of the running function call in the stack of lane 0; the frame
   * of lane l starts l * local_stride bytes after this address */
  uint8_t *local;
  uint32_t mask; /* bit mask of the active lanes */
  bool full;     /* true if all 32 lanes are active */
  /* set by kiln__cpu_fault(); makes the scheduler stop the warp */
  bool fault;
  bool watched; /* true if memory accesses call kiln__cpu_watch_access() */
  /* true if memory sectors and shared-memory passes are counted */
  bool counted;
  uint32_t live;  /* bit mask of the lanes that exist and have not exited */
  uint32_t index; /* index of the warp in the block */
  uint32_t local_stride;
  uint32_t local_size; /* bytes of stack per lane */
  /* offset of the stack frame `local` in the stack of its lane; address 0 of
   * local memory is at this offset */
  uint32_t local_at;
  /* instruction counts of the running function, one per instruction; NULL if
   * instructions are not counted */
  kiln__cpu_tally *tally;
  uint32_t *carry; /* carry flag per lane, 0 or 1 */
  kiln__cpu_block *block;
  kiln__cpu_grid *grid;
  kiln__cpu_range cached[KILN__N_CACHED];
  uint64_t cached_epoch;
  uint32_t cached_next;
  /* cp.async copies that no lane has waited for, or NULL; owned by memory/ */
  void *copies;
  /* checks of the warp's wgmma, or NULL; owned by run/ */
  void *matrices;
  void *schedule; /* the warp's kiln__cpu_schedule, owned by exec/ */
};

struct kiln__cpu_block {
  kiln__cpu_grid *grid;
  uint8_t *shared; /* static shared memory, followed by dynamic shared memory */
  uint32_t shared_size;
  uint32_t ctaid[3];
  /* linear index of the block in the grid; the x index varies fastest */
  uint64_t number;
  uint32_t n_warps, n_threads;
  kiln__cpu_warp *warps; /* array of the block's warps */
  /* blocks of the cluster, indexed by rank; NULL if the block is in no
   * cluster */
  kiln__cpu_block **cluster;
  uint32_t cluster_rank, cluster_size;
  /* checks' shadow of shared memory and clocks, or NULL; owned by watch/ */
  void *watch;
  bool exited;    /* all threads of the block have exited */
  uint32_t phase; /* number of block-wide barriers that the block has passed */
  void *schedule;
};

/* The reason why a grid stopped. Only the first fault of a grid is recorded. */
typedef struct kiln__cpu_fault_info {
  kiln__cpu_fault_kind kind;
  const kiln__cpu_code *code;
  uint32_t insn; /* index of the faulting instruction in `code` */
  uint32_t thread[3], block[3];
  uint64_t address; /* address that the faulting instruction computed */
  uint32_t bytes;
  /* The fault happened in a launch that a kernel made, which has already
   * reported it. */
  bool of_child;
  kiln__cpu_space space; /* state space of the faulting access */
  bool write;
  /* message of a failed assertion, or list of the waiting threads of a
   * deadlock */
  char text[1024];
} kiln__cpu_fault_info;

/* A running launch. Handlers only read this struct, except for `stopped` and
 * the members that `lock` guards. */
struct kiln__cpu_grid {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code; /* code of the kernel */
  kiln__cpu_memory *memory;
  const uint8_t *params; /* parameter buffer of code->param_bytes bytes */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3];
  uint32_t dynamic_shared, shared_size;
  uint64_t number; /* grid number, the value of %gridid */
  /* device ordinal, and compute capability, where 90 means 9.0 */
  int device, arch;
  int sm_count;
  bool lock_step;
  bool cooperative;
  uint64_t seed;
  const uint64_t *globals; /* address of each variable of the program */
  /* high and low half of the address of the workspace for grid-wide
   * synchronisation */
  uint64_t envreg[2];
  /* table of texture and surface objects */
  struct kiln__cpu_textures *textures;
  /* checks and counters of the launch, or NULL */
  struct kiln__cpu_watch *watch;
  /* printf buffer of the context; NULL discards the output */
  struct kiln__cpu_out *out;
  kiln_allocator alloc;
  pthread_mutex_t lock; /* guards `fault`, `heap_bytes` and `out` */
  /* set after a fault or a cancellation; every worker thread then returns */
  atomic_bool stopped;
  kiln__cpu_fault_info fault;
  /* bytes that malloc() in kernels has in use, and their limit */
  uint64_t heap_bytes, heap_limit;
};

/* Returns whether the grid's device has no access to a range. */
static inline bool kiln__cpu_range_denies(const kiln__cpu_range *range,
                                          const kiln__cpu_grid *grid)
{
  return (range->denied >> grid->device & 1) != 0;
}

/* Returns whether the grid's device may only read a range. */
static inline bool kiln__cpu_range_is_read_only(const kiln__cpu_range *range,
                                                const kiln__cpu_grid *grid)
{
  return (range->read_only >> grid->device & 1) != 0;
}

/* Records a fault of instruction `in` and stops the grid. If the grid already
 * has a fault, only the warp stops. `lane` is the lane that faulted; -1 means
 * the lowest active lane. `address` and `bytes` describe the faulting access
 * and are 0 if there is none. The function sets w->fault. Any worker thread may
 * call it. Defined in run/fault.c. */
void kiln__cpu_fault(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     kiln__cpu_fault_kind kind, int lane, uint64_t address,
                     uint32_t bytes);

#endif
