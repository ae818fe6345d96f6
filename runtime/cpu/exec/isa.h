/* isa.h -- the instruction sets that exec/ is built for.
 *
 * Every file of exec/ is compiled once per instruction set. KILN__ISA is the
 * suffix of its functions (base, v3 or v4 on x86-64; base elsewhere), and
 * KILN__ISA_NAME(x) is how a file names a function of another file of the same
 * build. Only the table leaves a build.
 *
 * GCC's target_clones would not do: function pointers would go through ifuncs,
 * which cost a call and break comparisons of pointers. */
#ifndef KILN_CPU_ISA_H
#define KILN_CPU_ISA_H

#include "../model/warp.h"

/* What a scheduler returns for a warp. */
enum {
  KILN__WARP_RUNNING = 0, /* used up its share */
  KILN__WARP_WAITING,     /* at a barrier, or all groups wait for others */
  KILN__WARP_DONE,
  KILN__WARP_FAULT
};

typedef struct kiln__cpu_isa {
  const char *name; /* as in "x86-64-v3" */
  kiln__cpu_handler *handlers[KILN__N_OPS];
  /* Run one warp until it ends, waits or faults, or has issued *left warp
   * instructions. Subtracts from *left what was issued. Returns
   * KILN__WARP_*. */
  int (*run_its)(kiln__cpu_warp *w, uint64_t *left);
  int (*run_lock_step)(kiln__cpu_warp *w, uint64_t *left);
  /* Set the active lanes of the warp. */
  void (*set_mask)(kiln__cpu_warp *w, uint32_t mask);
  /* The bits of a predicate register, one per lane. */
  uint32_t (*predicate)(const kiln__cpu_warp *w, int32_t slot);
} kiln__cpu_isa;

extern const kiln__cpu_isa kiln__cpu_isa_base;
#if defined(__x86_64__)
extern const kiln__cpu_isa kiln__cpu_isa_v3, kiln__cpu_isa_v4;
#endif

/* The best build that this processor can run. `wanted` ("base", "x86-64-v3",
 * "x86-64-v4") selects one; NULL is returned if this processor cannot run it or
 * the library does not contain it. */
const kiln__cpu_isa *kiln__cpu_isa_best(const char *wanted);

#endif
