/* cpu_abi_nvidia.c -- compares the functions that the CPU device's libcuda.so.1
 * exports with cuda.h. The compiler checks the constants and the type of every
 * function. The file is built only if CUDA's headers are installed; see cpu_abi
 * in tests.cmake. */
/* This macro makes cuda.h declare every version of a function. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#undef __CUDA_API_VERSION_INTERNAL

#include "cpu_abi_layout.h"

#include <stdint.h>

#define KILN__DROPIN_CONSTANT(name, value)                                     \
  _Static_assert((int)(name) == (value), #name);
#include "cpu/api/api_constants.def"

#define KILN__CPU_ERROR(name, value, text)                                     \
  _Static_assert((int)(name) == (value), #name);
#include "cpu/api/api_errors.def"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  _Static_assert(                                                              \
      __builtin_types_compatible_p(__typeof__(symbol), result params),         \
      #symbol);
#include "cpu/api/entry_points.def"

const abi_row cpu_abi_nvidia[] = {CPU_ABI_LAYOUT};
