/* isa.h -- the interface of one build of exec/.
 *
 * Every file of exec/ is compiled once per instruction set of the host
 * processor. KILN__ISA is the suffix of the functions of one build: base, v3 or
 * v4 on x86-64, and base on other processors. A file of exec/ refers to a
 * function of another file of the same build as KILN__ISA_NAME(function). The
 * only exported symbol of a build is its table, a kiln__cpu_isa.
 *
 * GCC's target_clones is not used: it would turn each function pointer into an
 * ifunc, which costs a call and breaks comparisons of pointers. */
#ifndef KILN_CPU_ISA_H
#define KILN_CPU_ISA_H

#include "../model/warp.h"

/* The state in which a scheduler leaves a warp. */
enum {
  KILN__WARP_RUNNING = 0, /* the warp used up its instruction budget */
  /* The warp is at a barrier, or all its groups of lanes poll or wait. */
  KILN__WARP_WAITING,
  KILN__WARP_DONE,
  KILN__WARP_FAULT
};

typedef struct kiln__cpu_isa {
  const char *name; /* name of the build, such as "x86-64-v3" */
  kiln__cpu_handler *handlers[KILN__N_OPS];
  /* Runs one warp until the warp ends, waits, faults or has issued *left warp
   * instructions. Subtracts the number of issued warp instructions from *left.
   * Returns KILN__WARP_*. */
  int (*run_its)(kiln__cpu_warp *w, uint64_t *left);
  int (*run_lock_step)(kiln__cpu_warp *w, uint64_t *left);
  /* Sets the active lanes of the warp. */
  void (*set_mask)(kiln__cpu_warp *w, uint32_t mask);
  /* Returns the bits of a predicate register as a mask with one bit per
   * lane. */
  uint32_t (*predicate)(const kiln__cpu_warp *w, int32_t slot);
} kiln__cpu_isa;

extern const kiln__cpu_isa kiln__cpu_isa_base;
#if defined(__x86_64__)
extern const kiln__cpu_isa kiln__cpu_isa_v3, kiln__cpu_isa_v4;
#endif

/* Returns the fastest build of the instruction handlers that this processor can
 * run. `wanted` ("base", "x86-64-v3" or "x86-64-v4") selects one build by name.
 * Returns NULL if this processor cannot run the named build or if the library
 * does not contain it. */
const kiln__cpu_isa *kiln__cpu_isa_best(const char *wanted);

#endif
