/* more.h -- types of the driver's ABI that only the CPU device needs: arrays,
 * copies in 2 and 3 dimensions, texture and surface descriptors, graphs,
 * libraries. Checked against cuda.h by a test. */
#ifndef KILN_CPU_MORE_H
#define KILN_CPU_MORE_H

#include "../../driver/abi.h"

typedef struct CUkern_st *CUkernel;

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
  CUfunction func;
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern; /* from here on not in the functions without _v2 */
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

#endif
