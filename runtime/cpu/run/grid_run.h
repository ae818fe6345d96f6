/* grid_run.h -- running a grid: blocks, warps, schedulers, barriers, calls.
 *
 * Blocks run on `threads` host threads, each with its own list of resident
 * blocks, oldest first. A block that does not finish within its share of warp
 * instructions stays resident and the next one starts beside it, up to what the
 * device would hold at once: so blocks that wait for others (look-back,
 * grid-wide synchronisation) get what they wait for. */
#ifndef KILN_CPU_RUN_H
#define KILN_CPU_RUN_H

#include "../exec/isa.h"

typedef struct kiln__cpu_launch_desc {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code;
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  const uint8_t *params; /* code->param_bytes, borrowed until the return */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3]; /* cluster 1,1,1: none */
  uint32_t dynamic_shared;
  uint64_t number;
  int device, arch, sm_count;
  uint32_t max_resident; /* blocks of this kernel that the device holds */
  bool lock_step, cooperative;
  unsigned threads;     /* host threads; 1: fixed order */
  uint64_t seed;        /* 0: blocks, warps, groups and atomics in order */
  uint64_t budget;      /* warp instructions of the whole grid, give or take
                           16384 for each further host thread; 0: no limit */
  uint32_t local_limit; /* bytes of stack a thread may use (CU_LIMIT_STACK_SIZE
                           raised to what the kernel needs) */
  uint64_t heap_limit;
  const uint64_t *globals;
  struct kiln__cpu_textures *textures;
  struct kiln__cpu_watch *watch;
  struct kiln__cpu_out *out;
  const atomic_bool *cancel; /* set from another thread: stop; may be NULL */
} kiln__cpu_launch_desc;

/* Run it to its end in the calling thread and `threads - 1` others.
 * KILN_OK; KILN_ENOMEM; KILN_EDRIVER: it faulted, and *fault says how. */
kiln_status kiln__cpu_grid_run(const kiln__cpu_launch_desc *launch,
                               const kiln_allocator *a,
                               kiln__cpu_fault_info *fault);

/* Human text of a fault: kernel, source line, block, thread, address and what
 * lies there, and what to look at. */
void kiln__cpu_fault_text(const kiln__cpu_launch_desc *launch,
                          const kiln__cpu_fault_info *fault, kiln__buf *out);

/* Printf of kernels: lines collect here and are handed on at synchronisation,
 * or when half full. */
typedef struct kiln__cpu_out kiln__cpu_out;
kiln_status kiln__cpu_out_create(
    kiln__cpu_out **out, const kiln_allocator *a, size_t capacity,
    void (*write)(void *user, const char *text, size_t size), void *user);
void kiln__cpu_out_add(kiln__cpu_out *out, const char *text, size_t size);
void kiln__cpu_out_flush(kiln__cpu_out *out);
void kiln__cpu_out_free(kiln__cpu_out *out);
/* Format as device printf does: `args` lie as in a struct, strings are read
 * through the grid's memory. Number of arguments; -1: no format. */
int kiln__cpu_out_printf(kiln__cpu_out *out, kiln__cpu_warp *w, int lane,
                         uint64_t format, uint64_t args);

#endif
