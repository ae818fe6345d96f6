/* grid_run.h -- runs one launch: grid, blocks, warps, barriers, calls, printf.
 *
 * Problem: blocks may wait for each other (decoupled look-back, grid-wide
 * synchronisation), so running block after block to its end can hang where a
 * GPU would not.
 *
 * Idea: blocks run on `threads` host threads, each with its own list of
 * resident blocks, oldest first. A block that does not finish within its share
 * of warp instructions stays resident, and the next one starts beside it, up to
 * the number that the device would hold. Every resident block runs again in
 * each round.
 *
 * Invariant: the lowest unfinished block can always start, so a block that
 * waits for lower-numbered blocks, or for resident ones, makes progress. */
#ifndef KILN_CPU_RUN_H
#define KILN_CPU_RUN_H

#include "../exec/isa.h"

/* One launch. Every pointer is borrowed until kiln__cpu_grid_run() returns. */
typedef struct kiln__cpu_launch_desc {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code;
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  /* code->param_bytes bytes, borrowed until the return */
  const uint8_t *params;
  /* cluster_dim 1,1,1 or 0,0,0: no clusters */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3];
  uint32_t dynamic_shared;
  uint64_t number;
  int device, arch, sm_count;
  /* blocks of this kernel that the device holds at once */
  uint32_t max_resident;
  bool lock_step, cooperative;
  unsigned threads; /* host threads; with 1 the order is fixed */
  /* 0: blocks, warps, groups and atomics go in order; otherwise the seed of
   * their random order */
  uint64_t seed;
  /* warp instructions of the whole grid, exceeded by at most 16,384 per further
   * host thread; 0: no limit */
  uint64_t budget;
  /* bytes of stack per thread: CU_LIMIT_STACK_SIZE, raised to what the kernel
   * needs */
  uint32_t local_limit;
  uint64_t heap_limit;
  const uint64_t *globals;
  struct kiln__cpu_textures *textures;
  struct kiln__cpu_watch *watch;
  struct kiln__cpu_out *out;
  /* set by another thread to stop the launch; may be NULL */
  const atomic_bool *cancel;
} kiln__cpu_launch_desc;

/* Run a launch to its end, in the calling thread and launch->threads - 1
 * others. Blocks until the grid is done, faulted or cancelled.
 *
 * KILN_OK; KILN_EINVAL: impossible dimensions; KILN_ENOMEM; KILN_EDRIVER: the
 * grid faulted, and *fault describes the first fault. */
kiln_status kiln__cpu_grid_run(const kiln__cpu_launch_desc *launch,
                               const kiln_allocator *a,
                               kiln__cpu_fault_info *fault);

/* Append the description of a fault: kernel, source line, block, thread,
 * address and what lies there, and what to look at. */
void kiln__cpu_fault_text(const kiln__cpu_launch_desc *launch,
                          const kiln__cpu_fault_info *fault, kiln__buf *out);

/* The printf buffer of a context. Text collects in it and is passed to `write`
 * when the buffer is half full or flushed. Any thread may use it; `write` is
 * called with the lock of the buffer held. Functions accept NULL for "no
 * output". KILN_OK, KILN_ENOMEM. */
typedef struct kiln__cpu_out kiln__cpu_out;
kiln_status kiln__cpu_out_create(
    kiln__cpu_out **out, const kiln_allocator *a, size_t capacity,
    void (*write)(void *user, const char *text, size_t size), void *user);
void kiln__cpu_out_add(kiln__cpu_out *out, const char *text, size_t size);
void kiln__cpu_out_flush(kiln__cpu_out *out);
void kiln__cpu_out_free(kiln__cpu_out *out);
/* Format and append as printf() in a kernel does, for one lane. `args` is the
 * device address of the arguments, laid out as in a struct; strings are read
 * through the memory of the grid. Returns the number of arguments, as CUDA
 * does; -1 if `format` is NULL. */
int kiln__cpu_out_printf(kiln__cpu_out *out, kiln__cpu_warp *w, int lane,
                         uint64_t format, uint64_t args);

#endif
