/* cuda_driver.h -- the driver API under its own names, as cuda.h has it: these
 * programs know nothing of Kiln but its copy of the ABI. */
#ifndef EXEC_CUDA_DRIVER_H
#define EXEC_CUDA_DRIVER_H

#include "cpu/api/dropin_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result symbol params;
#include "cpu/api/entry_points.def"

/* End with the code's name unless a call is right. */
#define OK(call)                                                               \
  do {                                                                         \
    const CUresult rc_ = (call);                                               \
    const char *name_ = "?";                                                   \
                                                                               \
    if (rc_ != CUDA_SUCCESS) {                                                 \
      (void)cuGetErrorName(rc_, &name_);                                       \
      printf("%s: %s\n", #call, name_);                                        \
      exit(3);                                                                 \
    }                                                                          \
  } while (0)

#endif
