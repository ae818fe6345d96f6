/* watch.h -- the checks (memory, race, initialisation, synchronisation) and
 * the counters of launches. Both only look: results do not change. */
#ifndef KILN_CPU_WATCH_H
#define KILN_CPU_WATCH_H

#include "../model/warp.h"

#include <kiln/cpu.h>

typedef struct kiln__cpu_watch kiln__cpu_watch;

/* One a launch; NULL checks and counters off means none is made. `sink` gets
 * each finding once a (kernel, instruction, kind), with how often it occurred. */
kiln_status kiln__cpu_watch_create(kiln__cpu_watch **out,
                                   const kiln_allocator *a, unsigned checks,
                                   bool counters,
                                   const kiln__cpu_program *program,
                                   const kiln__cpu_code *code);
void kiln__cpu_watch_free(kiln__cpu_watch *watch);
unsigned kiln__cpu_watch_checks(const kiln__cpu_watch *watch);

/* ---- Called while a grid runs ---------------------------------------------- */

typedef enum kiln__cpu_access {
  KILN__ACCESS_READ,
  KILN__ACCESS_WRITE,
  KILN__ACCESS_ATOMIC
} kiln__cpu_access;

/* Block begins and ends; a barrier was passed by these warps (bit set): all of
 * the block, or those that a named barrier with a count had.
 * shared memory it has. False: no memory for shadows (checks go on without). */
bool kiln__cpu_watch_block_begin(kiln__cpu_block *block);
void kiln__cpu_watch_block_end(kiln__cpu_block *block);
void kiln__cpu_watch_barrier(kiln__cpu_block *block, uint32_t warps);

/* A memory access of the active lanes: addresses within `space` (global and
 * generic-that-is-global: device addresses; shared: offsets), `bytes` each.
 * Called before the bytes move, after bounds were found good. in->sem tells
 * volatile, relaxed, acquire, release. */
void kiln__cpu_watch_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            kiln__cpu_space space,
                            const uint64_t address[KILN__WARP], uint32_t mask,
                            uint32_t bytes, kiln__cpu_access access);
/* fence, membar; and the ordering that bar.warp.sync and shfl give lanes. */
void kiln__cpu_watch_fence(kiln__cpu_warp *w, const kiln__cpu_insn *in);
void kiln__cpu_watch_warp_sync(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                               uint32_t mask);

/* A synchronisation mistake: text says which. */
void kiln__cpu_watch_sync_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 int lane, const char *format, ...)
    KILN_PRINTF(4, 5);
/* The fault that ended the grid becomes a finding of the memory check. */
void kiln__cpu_watch_fault(kiln__cpu_watch *watch, const kiln__cpu_grid *grid);

/* Tallies of one host thread for a function: handed out at first use, added up
 * at the end. NULL: no memory. */
kiln__cpu_tally *kiln__cpu_watch_tally(kiln__cpu_watch *watch, unsigned thread,
                                       const kiln__cpu_code *code);

/* ---- After it ran ------------------------------------------------------------ */

void kiln__cpu_watch_findings(kiln__cpu_watch *watch, kiln_cpu_finding_fn fn,
                              void *user);
/* Fill what kiln_cpu_counters has for the kernel; lines through fn. */
void kiln__cpu_watch_counters(const kiln__cpu_watch *watch,
                              kiln_cpu_counters *out, kiln_cpu_line_fn fn,
                              void *user);

#endif
