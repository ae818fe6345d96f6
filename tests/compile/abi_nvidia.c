/* abi_nvidia.c -- Kiln's tables held against cuda.h and nvrtc.h, mostly while
 * compiling: numbers, and the type of every function. Built where CUDA's
 * headers are; see tests.cmake. */
#define __CUDA_API_VERSION_INTERNAL /* declares every variant of a function */
#include <cuda.h>
#include <cudaProfiler.h>
#include <nvrtc.h>
#undef __CUDA_API_VERSION_INTERNAL

/* Mixes with NVIDIA's header, in this order too. */
#include <kiln/types.h>

#include "abi_layout.h"

#include <stdint.h>

#define KILN__CU_RESULT(name, value)                                           \
  _Static_assert((int)(name) == (value), #name);
#define KILN__CU_CONSTANT(name, value)                                         \
  _Static_assert((int)(name) == (value), #name);
#include "driver/driver_constants.def"
#define KILN__NVRTC_RESULT(name, value)                                        \
  _Static_assert((int)(name) == (value), #name);
#include "nvrtc/nvrtc_constants.def"

#define SAME_TYPE(symbol, result, params)                                      \
  _Static_assert(                                                              \
      __builtin_types_compatible_p(__typeof__(symbol), result params),         \
      #symbol);
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  SAME_TYPE(symbol, result, params)
#include "driver/driver_api.def"
#define KILN__NVRTC_FN(name, symbol, need, since, result, params)              \
  SAME_TYPE(symbol, result, params)
#include "nvrtc/nvrtc_api.def"

const abi_row abi_nvidia[] = {ABI_LAYOUT};
