/* cpu_flow.h -- makes random programs of nested loops, breaks, early exits,
 * jump tables and calls: as PTX, and with the results that a plain interpreter
 * computes from the same syntax tree, thread by thread. */
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

/* Makes program `number`: kernel "k" for FLOW_BLOCKS blocks of FLOW_THREADS
 * threads. Its parameters are the addresses of `out` and of `cells`, which must
 * be zero. .version and .target are left out. The text is valid until the next
 * call. */
const char *flow_make(uint64_t number, flow_results *want);

#endif
