/* cpu_flow.h -- random programs of nested loops, breaks, early ends, jump tables
 * and calls: PTX, and what it does according to a plain interpreter of the same
 * syntax tree, thread by thread. */
#ifndef KILN_TEST_CPU_FLOW_H
#define KILN_TEST_CPU_FLOW_H

#include "support.h"

enum {
  FLOW_VARIABLES = 4,
  FLOW_CELLS = 8, /* added to by all threads */
  FLOW_THREADS = 80,
  FLOW_BLOCKS = 2
};

typedef struct flow_results {
  uint32_t out[FLOW_THREADS * FLOW_BLOCKS * FLOW_VARIABLES];
  uint32_t cells[FLOW_CELLS];
} flow_results;

/* Program `number`: kernel "k" of FLOW_BLOCKS blocks of FLOW_THREADS threads,
 * with the addresses of `out` and `cells` (zeros) as parameters; without
 * .version and .target. Borrowed until the next one. */
const char *flow_make(uint64_t number, flow_results *want);

#endif
