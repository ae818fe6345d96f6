/* rt_forward.c -- defines the functions that only call the driver in the current
 * context. The rows of KILN__RT_CALL and KILN__RT_STREAM_CALL in
 * runtime_functions.def have the calls. */
#include "cudart.h"

/* Converts an address to the driver's type. */
static CUdeviceptr at(const void *address)
{
  return (CUdeviceptr)(uintptr_t)address;
}

#define KILN__RT_FORWARD(name, params, call)                                   \
  cudaError_t kiln__rt_##name params                                           \
  {                                                                            \
    KILN__RT_TRY(kiln__rt_context());                                          \
    return call;                                                               \
  }
#include "runtime_functions.def"
