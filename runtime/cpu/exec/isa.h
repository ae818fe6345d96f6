/* isa.h -- the instruction sets that exec/ is built for.
 *
 * Every file of exec/ is compiled once for each: KILN__ISA is the suffix of
 * its functions (base, v3, v4 on x86-64; base elsewhere). KILN__ISA_NAME(x) is
 * how a file names what another file of exec/ calls. The only thing that leaves
 * a build is its table. No target_clones: function pointers would go through
 * ifuncs, which break comparisons and cost calls. */
#ifndef KILN_CPU_ISA_H
#define KILN_CPU_ISA_H

#include "../model/warp.h"

/* What run_its and run_lock_step say about a warp. */
enum {
  KILN__WARP_RUNNING = 0, /* used up its share */
  KILN__WARP_WAITING,     /* at a barrier, or all groups wait for others */
  KILN__WARP_DONE,
  KILN__WARP_FAULT
};

typedef struct kiln__cpu_isa {
  const char *name; /* "x86-64-v3" */
  kiln__cpu_handler *handlers[KILN__N_OPS];
  /* Run one warp until it ends, waits, faults or has issued `*left` warp
   * instructions; subtracts what it issued. KILN__WARP_*. */
  int (*run_its)(kiln__cpu_warp *w, uint64_t *left);
  int (*run_lock_step)(kiln__cpu_warp *w, uint64_t *left);
  /* Make `mask` the active lanes. */
  void (*set_mask)(kiln__cpu_warp *w, uint32_t mask);
  /* Bits of a predicate slot. */
  uint32_t (*predicate)(const kiln__cpu_warp *w, int32_t slot);
} kiln__cpu_isa;

extern const kiln__cpu_isa kiln__cpu_isa_base;
#if defined(__x86_64__)
extern const kiln__cpu_isa kiln__cpu_isa_v3, kiln__cpu_isa_v4;
#endif

/* The best that this processor has. `wanted` ("base", "x86-64-v3",
 * "x86-64-v4") asks for that one; NULL if it cannot run here. */
const kiln__cpu_isa *kiln__cpu_isa_best(const char *wanted);

#endif
