/* driver_calls.h -- declares the symbols that libcuda.so.1 exports. The runtime calls
 * only these public symbols, so it works over any driver. */
#ifndef KILN_CPU_DRIVER_CALLS_H
#define KILN_CPU_DRIVER_CALLS_H

#include "../api/dropin_abi.h"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result symbol params;
#include "../api/entry_points.def"

#endif
