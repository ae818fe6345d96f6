/* cuda_driver.h -- declares the driver API with the names of cuda.h. The test
 * programs use only Kiln's copy of the ABI and nothing else of Kiln. */
#ifndef EXEC_CUDA_DRIVER_H
#define EXEC_CUDA_DRIVER_H

#include "cpu/api/dropin_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result symbol params;
#include "cpu/api/entry_points.def"

/* Prints the name of the error code and ends the program if the call fails. */
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
