/* abi_nvidia.c -- compares Kiln's constants and function types with cuda.h and
 * nvrtc.h. The compiler makes most of these checks. The file is built only if
 * CUDA's headers are installed; see tests.cmake. */
/* This macro makes cuda.h declare every version of a function. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <nvrtc.h>
#undef __CUDA_API_VERSION_INTERNAL

/* Kiln's header must also compile if it is included after NVIDIA's header. */
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
