/* watch.h -- declares the checks (memory, race, initialisation,
 * synchronisation) and the counters of one launch.
 *
 * A watch object (kiln__cpu_watch) holds the checks and counters of one launch.
 * The launch code in run/ creates the object. The schedulers and memory
 * handlers of exec/ report events to it. After the launch, api/ collects the
 * findings and counters. Checks and counters do not change the results of the
 * kernel.
 *
 * Functions that are called while the grid runs may be called from all worker
 * threads. */
#ifndef KILN_CPU_WATCH_H
#define KILN_CPU_WATCH_H

#include "../model/warp.h"

#include <kiln/cpu.h>

typedef struct kiln__cpu_watch kiln__cpu_watch;

/* Makes the watch object of one launch. `checks` is a set of KILN_CPU_CHECK_*
 * flags. Findings of the same kind at the same instruction are recorded once,
 * with the number of occurrences. A launch records at most 1,000 findings.
 * Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cpu_watch_create(kiln__cpu_watch **out,
                                   const kiln_allocator *a, unsigned checks,
                                   bool counters,
                                   const kiln__cpu_program *program,
                                   const kiln__cpu_code *code);
/* Frees the watch object. NULL is allowed. */
void kiln__cpu_watch_free(kiln__cpu_watch *watch);
/* Returns the KILN_CPU_CHECK_* flags of the launch, or 0 if `watch` is NULL. */
unsigned kiln__cpu_watch_checks(const kiln__cpu_watch *watch);

/* ---- Functions called while a grid runs ---------------------------------- */

typedef enum kiln__cpu_access {
  KILN__ACCESS_READ,
  KILN__ACCESS_WRITE,
  KILN__ACCESS_ATOMIC
} kiln__cpu_access;

/* The first function allocates the shadow state of a block that starts; the
 * second releases the state when the block ends. The first function returns
 * false if there is no memory; the block then runs unchecked. */
bool kiln__cpu_watch_block_begin(kiln__cpu_block *block);
void kiln__cpu_watch_block_end(kiln__cpu_block *block);
/* Reports that the warps in `warps` (one bit per warp) completed a barrier of
 * the block. The barrier orders the threads of these warps. */
void kiln__cpu_watch_barrier(kiln__cpu_block *block, uint32_t warps);

/* Reports that the n blocks of a cluster completed barrier.cluster, which orders
 * all their threads. */
void kiln__cpu_watch_cluster_barrier(kiln__cpu_block *const *blocks,
                                     uint32_t n);

/* Checks one memory access of the lanes in `mask`. Called after the bounds and
 * alignment checks, and before the data is read or written. `address` holds
 * device addresses for global space and offsets for shared space. Generic
 * addresses that lie in global memory count as global. in->sem is the memory
 * order of the access. */
void kiln__cpu_watch_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            kiln__cpu_space space,
                            const uint64_t address[KILN__WARP], uint32_t mask,
                            uint32_t bytes, kiln__cpu_access access);
/* The first function reports that the warp executed a fence (fence, membar).
 * The second reports the order that bar.warp.sync, shfl, vote and match
 * establish between the lanes of `mask`. */
void kiln__cpu_watch_fence(kiln__cpu_warp *w, const kiln__cpu_insn *in);
void kiln__cpu_watch_warp_sync(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                               uint32_t mask);

/* ---- Asynchronous proxies ----
 * The bulk copy engine and the tensor cores (wgmma) access memory
 * asynchronously: an access may happen at any time between the instruction and
 * the moment at which a thread learns that it is complete. An asynchronous
 * operation is described by an id. Accesses of the operation that conflict with
 * accesses of threads are races, unless the threads
 * - were ordered before the issuing thread when it issued the operation, or
 * - learnt that the operation is complete, themselves or from another thread.
 * A read by the operation of bytes that threads wrote also needs a
 * fence.proxy.async between the two. */

/* Id of an asynchronous operation; 0 means that it is not checked. */
typedef uint32_t kiln__cpu_async;

/* Begins an asynchronous operation. Returns 0 if no check needs it. */
kiln__cpu_async kiln__cpu_watch_async_begin(kiln__cpu_warp *w);
/* Checks one access of an asynchronous operation that `lane` issued. `block` is
 * the block whose shared memory is accessed; for global memory it is not used.
 * `address` is an offset in shared memory, or a global address. With an id of 0
 * nothing happens. */
void kiln__cpu_watch_async_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  int lane, kiln__cpu_async id,
                                  kiln__cpu_block *block, kiln__cpu_space space,
                                  uint64_t address, uint32_t bytes,
                                  kiln__cpu_access access);
/* Reports that all lanes of the warp know that the operation is complete. */
void kiln__cpu_watch_async_seen(kiln__cpu_warp *w, kiln__cpu_async id);
/* Reports that the operation completes with the current phase of the mbarrier
 * at offset `address` in the shared memory of `block`. `phase` is the number of
 * this phase, modulo 8. */
void kiln__cpu_watch_async_signal(kiln__cpu_warp *w, kiln__cpu_async id,
                                  kiln__cpu_block *block, uint64_t address,
                                  uint32_t phase);
/* Reports that the warp knows that all phases of an mbarrier of its block
 * before `phase` (modulo 8) are over. */
void kiln__cpu_watch_phase_over(kiln__cpu_warp *w, uint64_t address,
                                uint32_t phase);
/* Report that `lane` issued a bulk store, whose reads of shared memory and
 * writes to global memory are two operations, that lanes closed a group of
 * stores, and that lanes wait for all but the last `keep` groups. `read` means
 * that only the reads are complete. */
void kiln__cpu_watch_store(kiln__cpu_warp *w, int lane, kiln__cpu_async read,
                           kiln__cpu_async write);
void kiln__cpu_watch_store_commit(kiln__cpu_warp *w, uint32_t mask);
void kiln__cpu_watch_store_wait(kiln__cpu_warp *w, uint32_t mask, uint64_t keep,
                                bool read);
/* Reports that the warp executed fence.proxy.async. */
void kiln__cpu_watch_proxy_fence(kiln__cpu_warp *w);

/* Records misuse of a barrier or of a member mask as a finding. Does nothing
 * unless the synchronisation check is enabled. The text completes the sentence
 * "thread (x,y,z) ...". */
void kiln__cpu_watch_sync_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 int lane, const char *format, ...)
    KILN_PRINTF(4, 5);
/* Records a wgmma whose accesses are not ordered as a finding. Does nothing
 * unless the synchronisation check is enabled. `what` completes the sentence
 * "thread (x,y,z) ...", and `advice` completes "look at: ...". */
void kiln__cpu_watch_wgmma_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  const char *what, const char *advice);
/* Record misuse of synchronisation under the same condition: the first with the
 * given kind of finding, the second if a thread accesses the shared memory of a
 * block of its cluster whose threads have all exited. */
void kiln__cpu_watch_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            int lane, const char *kind, const char *what,
                            const char *advice);
void kiln__cpu_watch_exited_block(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  int lane);
/* Turns the fault that stopped the grid into a finding, if the check for this
 * kind of fault is enabled. */
void kiln__cpu_watch_fault(kiln__cpu_watch *watch, const kiln__cpu_grid *grid);

/* Returns the array of instruction counts that one worker thread uses for a
 * function. The array is allocated at the first call;
 * kiln__cpu_watch_counters() sums the arrays of all threads. Returns NULL if
 * out of memory; the function then runs uncounted. */
kiln__cpu_tally *kiln__cpu_watch_tally(kiln__cpu_watch *watch, unsigned thread,
                                       const kiln__cpu_code *code);

/* ---- Functions called after a grid has run ------------------------------- */

/* Passes each finding to `fn`, in the order in which the findings first
 * occurred. */
void kiln__cpu_watch_findings(kiln__cpu_watch *watch, kiln_cpu_finding_fn fn,
                              void *user);
/* Sums up the counters of the kernel into *out. `inner` receives one record per
 * source line, and `outer` one per line of the outermost inlined call. */
void kiln__cpu_watch_counters(const kiln__cpu_watch *watch,
                              kiln_cpu_counters *out, kiln_cpu_line_fn inner,
                              kiln_cpu_line_fn outer, void *user);

#endif
