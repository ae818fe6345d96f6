/* watch.h -- the checks (memory, race, initialisation, synchronisation) and the
 * counters of one launch.
 *
 * run/ makes a watch per launch; the schedulers and memory handlers of exec/
 * report events to it; api/ collects the findings and counters afterwards.
 * Checks and counters only observe: results of the kernel do not change.
 *
 * Functions called while the grid runs may be called from all worker
 * threads. */
#ifndef KILN_CPU_WATCH_H
#define KILN_CPU_WATCH_H

#include "../model/warp.h"

#include <kiln/cpu.h>

typedef struct kiln__cpu_watch kiln__cpu_watch;

/* Make the watch of one launch. `checks` is a set of KILN_CPU_CHECK_*. A
 * finding is recorded once per (instruction, kind) with its number of
 * occurrences, at most 1,000 per launch. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cpu_watch_create(kiln__cpu_watch **out,
                                   const kiln_allocator *a, unsigned checks,
                                   bool counters,
                                   const kiln__cpu_program *program,
                                   const kiln__cpu_code *code);
/* NULL is allowed. */
void kiln__cpu_watch_free(kiln__cpu_watch *watch);
/* The checks that it was made with; 0 for NULL. */
unsigned kiln__cpu_watch_checks(const kiln__cpu_watch *watch);

/* ---- Called while a grid runs -------------------------------------------- */

typedef enum kiln__cpu_access {
  KILN__ACCESS_READ,
  KILN__ACCESS_WRITE,
  KILN__ACCESS_ATOMIC
} kiln__cpu_access;

/* Begin and end the shadow state of a block. False: no memory, and the block
 * runs unchecked. */
bool kiln__cpu_watch_block_begin(kiln__cpu_block *block);
void kiln__cpu_watch_block_end(kiln__cpu_block *block);
/* A barrier was completed by these warps of the block (one bit per warp): their
 * threads are ordered. */
void kiln__cpu_watch_barrier(kiln__cpu_block *block, uint32_t warps);

/* Check one memory access of the lanes in `mask`. Called after bounds and
 * alignment were checked and before the bytes move. `address` holds device
 * addresses for global space and offsets for shared space; generic addresses
 * that lie in global memory count as global. in->sem names the memory order. */
void kiln__cpu_watch_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            kiln__cpu_space space,
                            const uint64_t address[KILN__WARP], uint32_t mask,
                            uint32_t bytes, kiln__cpu_access access);
/* Report a fence (fence, membar) of the warp, and the order that bar.warp.sync,
 * shfl, vote and match give to the lanes of `mask`. */
void kiln__cpu_watch_fence(kiln__cpu_warp *w, const kiln__cpu_insn *in);
void kiln__cpu_watch_warp_sync(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                               uint32_t mask);

/* Record misuse of a barrier or of a member mask. Does nothing unless the
 * synchronisation check is on. The text completes "thread (x,y,z) ...". */
void kiln__cpu_watch_sync_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 int lane, const char *format, ...)
    KILN_PRINTF(4, 5);
/* Turn the fault that ended the grid into a finding, if its check is on. */
void kiln__cpu_watch_fault(kiln__cpu_watch *watch, const kiln__cpu_grid *grid);

/* The tally array of one worker thread for a function: made at the first call,
 * summed by kiln__cpu_watch_counters(). NULL: out of memory, and the function
 * goes uncounted. */
kiln__cpu_tally *kiln__cpu_watch_tally(kiln__cpu_watch *watch, unsigned thread,
                                       const kiln__cpu_code *code);

/* ---- After it ran -------------------------------------------------------- */

/* Pass each finding to fn, in the order in which they occurred first. */
void kiln__cpu_watch_findings(kiln__cpu_watch *watch, kiln_cpu_finding_fn fn,
                              void *user);
/* Sum up the counters of the kernel into *out. `fn` (may be NULL) gets one
 * record per source line. */
void kiln__cpu_watch_counters(const kiln__cpu_watch *watch,
                              kiln_cpu_counters *out, kiln_cpu_line_fn fn,
                              void *user);

#endif
