/* forward.c -- defines the driver functions that only call another function,
 * for example an older version with a newer one. entry_points.def lists the
 * calls. Most of these functions ignore a parameter, such as the edge data of
 * graphs, which the CPU device does not need. */
#include "machine.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define KILN__FORWARD_FN(name, params, call)                                   \
  CUresult kiln__cpu_##name params                                             \
  {                                                                            \
    return kiln__cpu_##call;                                                   \
  }
#include "entry_points.def"
