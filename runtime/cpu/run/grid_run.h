/* grid_run.h -- runs one kernel launch to completion, including barriers,
 * function calls and printf.
 *
 * Problem: blocks may wait for each other (decoupled look-back, grid-wide
 * synchronisation). Running each block to its end before the next block starts
 * can hang where a GPU would not.
 *
 * Idea: blocks run on `threads` host threads. Each host thread has a list of
 * resident blocks, oldest first. A block that does not finish within its time
 * slice of warp instructions stays resident, and the next block starts. The
 * number of resident blocks is limited to the number that the device would
 * hold. Every resident block runs again in each round.
 *
 * Invariant: the lowest-numbered unfinished block can always start. A block
 * that waits for lower-numbered blocks, or for resident blocks, therefore makes
 * progress. */
#ifndef KILN_CPU_RUN_H
#define KILN_CPU_RUN_H

#include "../exec/isa.h"

struct kiln__cpu_launch_desc;
struct kiln__cpu_answer;

/* What a running launch asks of the driver API. */
typedef struct kiln__cpu_services {
  void *user;
  /* Returns the program of the context that contains the function at an
   * address, or NULL. The program stays loaded until the launch ends. Any
   * worker thread may call this function. */
  const kiln__cpu_program *(*program_at)(void *user, uint64_t address);
  /* Checks the shape of a launch that a kernel makes, and fills in the members
   * of `child` that depend on the shape. Returns 0 or an error code of the CUDA
   * runtime. */
  int (*check_child)(void *user, struct kiln__cpu_launch_desc *child);
  /* Runs a launch that a kernel made, and returns the status of
   * kiln__cpu_grid_run(). */
  kiln_status (*run_child)(void *user, struct kiln__cpu_launch_desc *child,
                           kiln__cpu_fault_info *fault);
  /* Answers a question that a kernel asks the device runtime. The meaning of
   * the arguments depends on the function. Returns 0 or an error code of the
   * CUDA runtime. */
  int (*query)(void *user, const struct kiln__cpu_launch_desc *launch,
               kiln__cpu_system function, const uint64_t args[3],
               struct kiln__cpu_answer *answer);
} kiln__cpu_services;

/* The answer to a question of a kernel. */
typedef struct kiln__cpu_answer {
  uint8_t bytes[512];
  size_t size; /* number of bytes that are valid */
} kiln__cpu_answer;

/* Launches and copies that kernels submitted, in the order in which they
 * run. */
typedef struct kiln__cpu_children {
  struct kiln__cpu_child *first, **last;
} kiln__cpu_children;

/* The description of one launch. All pointers must stay valid until
 * kiln__cpu_grid_run() returns. */
typedef struct kiln__cpu_launch_desc {
  const kiln__cpu_program *program;
  const kiln__cpu_code *code;
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  /* kernel parameters; the size is code->param_bytes bytes */
  const uint8_t *params;
  /* dimensions of the launch; a cluster_dim of 1,1,1 or 0,0,0 means that there
   * are no clusters */
  uint32_t grid_dim[3], block_dim[3], cluster_dim[3];
  uint32_t dynamic_shared;
  uint64_t number;
  int device, arch, sm_count;
  /* number of blocks of this kernel that the device holds at the same time */
  uint32_t max_resident;
  bool lock_step, cooperative;
  /* number of host threads; with 1, the order of execution is deterministic */
  unsigned threads;
  /* seed of a random order of blocks, warps, groups of lanes and atomics; with
   * 0, the order is fixed */
  uint64_t seed;
  /* maximum number of warp instructions of the whole grid; 0 means no limit.
   * The grid may exceed the limit by 16,384 per additional host thread. */
  uint64_t budget;
  /* stack size in bytes per thread: the value of CU_LIMIT_STACK_SIZE, or more
   * if the kernel needs more */
  uint32_t local_limit;
  uint64_t heap_limit;
  const uint64_t *globals;
  struct kiln__cpu_textures *textures;
  struct kiln__cpu_watch *watch;
  struct kiln__cpu_out *out;
  /* NULL if functions of other modules cannot be called, and kernels cannot be
   * launched by kernels */
  const kiln__cpu_services *services;
  /* number of launches between the host and this launch; 0 for a launch of the
   * host */
  uint32_t depth;
  /* CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH and
   * CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT */
  uint32_t sync_depth, max_pending;
  /* For a launch of a kernel: receives the launches that this launch makes. For
   * a launch of the host, NULL: kiln__cpu_grid_run() runs them. */
  kiln__cpu_children *collect;
  /* flag that another thread sets to stop the launch; may be NULL */
  const atomic_bool *cancel;
  /* receives the number of executed warp instructions; may be NULL */
  uint64_t *issued;
} kiln__cpu_launch_desc;

/* Runs a launch and all launches that its kernels make to their end, in the calling thread and launch->threads - 1
 * additional threads. Blocks until the grid has finished, faulted or been
 * cancelled.
 *
 * Returns KILN_OK on success. Returns KILN_EINVAL if the dimensions are
 * impossible, and KILN_ENOMEM if memory is exhausted. Returns KILN_EDRIVER if
 * the grid faulted; *fault then describes the first fault. */
kiln_status kiln__cpu_grid_run(const kiln__cpu_launch_desc *launch,
                               const kiln_allocator *a,
                               kiln__cpu_fault_info *fault);

/* Appends the description of a fault to `out`: kernel, source line, block,
 * thread, the address and the allocation around it, and a hint where to
 * look. */
void kiln__cpu_fault_text(const kiln__cpu_launch_desc *launch,
                          const kiln__cpu_fault_info *fault, kiln__buf *out);

/* The printf buffer of a context. The buffer collects text and passes the text
 * to `write` when the buffer is half full or flushed. All functions are
 * thread-safe and call `write` with the lock of the buffer held. A NULL buffer
 * discards all output. kiln__cpu_out_create() returns KILN_OK or
 * KILN_ENOMEM. */
typedef struct kiln__cpu_out kiln__cpu_out;
kiln_status kiln__cpu_out_create(
    kiln__cpu_out **out, const kiln_allocator *a, size_t capacity,
    void (*write)(void *user, const char *text, size_t size), void *user);
void kiln__cpu_out_add(kiln__cpu_out *out, const char *text, size_t size);
void kiln__cpu_out_flush(kiln__cpu_out *out);
void kiln__cpu_out_free(kiln__cpu_out *out);
/* Formats text for one lane, as printf() in a kernel does, and appends it to
 * the buffer. `args` is the device address of the arguments, which are laid out
 * like the members of a struct. Strings are read from the memory of the grid.
 * Returns the number of arguments, as in CUDA, or -1 if `format` is NULL. */
int kiln__cpu_out_printf(kiln__cpu_out *out, kiln__cpu_warp *w, int lane,
                         uint64_t format, uint64_t args);

#endif
