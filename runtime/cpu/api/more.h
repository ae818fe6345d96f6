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

/* ---- Modules, libraries, launches ------------------------------------------ */

typedef int CUfunc_cache;
typedef int CUsharedconfig;
typedef int CUmoduleLoadingMode;
typedef int CUlibraryOption;
typedef struct CUlib_st *CUlibrary;

enum {
  CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
  CU_MODULE_EAGER_LOADING = 1,
  CU_MODULE_LAZY_LOADING = 2,
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
  CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 1
};

/* Tags of cuLaunchKernel's `extra`. */
#define CU_LAUNCH_PARAM_END ((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x02)

/* Arrays, textures, surfaces and CUDA_MEMCPY3D: driver/abi_texture.h. */

#endif
