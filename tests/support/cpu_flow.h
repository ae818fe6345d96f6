/* cpu_flow.h -- generates random programs of nested loops, breaks, early exits,
 * jump tables and calls. Each program exists as PTX source and as the results
 * that an interpreter computes, thread by thread, from the same syntax tree. */
#ifndef KILN_TEST_CPU_FLOW_H
#define KILN_TEST_CPU_FLOW_H

#include "support.h"

enum {
  FLOW_VARIABLES = 4,
  FLOW_CELLS = 8, /* number of counters that all threads add to */
  FLOW_THREADS = 80,
  FLOW_BLOCKS = 2
};

typedef struct flow_results {
  uint32_t out[FLOW_THREADS * FLOW_BLOCKS * FLOW_VARIABLES];
  uint32_t cells[FLOW_CELLS];
} flow_results;

/* Generates program `number` with kernel "k" for FLOW_BLOCKS blocks of
 * FLOW_THREADS threads. The parameters of the kernel are the addresses of `out`
 * and of `cells`. The cells must be zero before the launch. The source has no
 * .version and no .target. The returned string is valid until the next call. */
const char *flow_make(uint64_t number, flow_results *want);

#endif
