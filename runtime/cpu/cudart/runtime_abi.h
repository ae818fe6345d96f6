/* runtime_abi.h -- declares the types of the CUDA runtime API that libcudart
 * exchanges with programs. Types that the runtime shares with the driver (streams,
 * events, graphs, attributes) are the driver's, from api/dropin_abi.h.
 *
 * Enumerations are plain int, as in the ABI. A type whose layout differs between
 * major versions has one declaration per layout, with the first version that uses
 * the layout in its name. A source file cannot include both this header and
 * cuda_runtime_api.h. A test compares sizes and offsets with NVIDIA's headers. */
#ifndef KILN_CPU_RUNTIME_ABI_H
#define KILN_CPU_RUNTIME_ABI_H

#include "../api/dropin_abi.h"

#include <stddef.h>
#include <stdint.h>

/* ---- Handles and enumerations -------------------------------------------- */

typedef int cudaError_t;
typedef int cudaMemcpyKind;
typedef int cudaMemoryType;
typedef int cudaDeviceAttr;
typedef int cudaFuncAttribute;
typedef int cudaFuncCache;
typedef int cudaSharedMemConfig;
typedef int cudaLimit;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUfunction cudaFunction_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUuserObject cudaUserObject_t;
typedef CUhostFn cudaHostFn_t;
typedef CUlaunchAttribute cudaLaunchAttribute;
typedef CUlaunchAttributeValue cudaLaunchAttributeValue;
typedef CUmemLocation cudaMemLocation;

/* The error codes are those of runtime_errors.def. */
enum {
#define KILN__RT_ERROR(name, code, text) name = (code),
#include "runtime_errors.def"
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged,
  cudaInvalidDeviceId = -2,
  cudaDeviceMask = 0xff,
  cudaInitDeviceFlagsAreValid = 1,
  cudaCooperativeLaunchMultiDeviceNoPreSync = 1,
  cudaCooperativeLaunchMultiDeviceNoPostSync = 2
};

#define cudaStreamLegacy CU_STREAM_LEGACY
#define cudaStreamPerThread CU_STREAM_PER_THREAD

/* ---- Launches ------------------------------------------------------------ */

typedef struct dim3 {
  unsigned int x, y, z;
} dim3;

typedef struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned int numAttrs;
} cudaLaunchConfig_t;

/* One launch of cudaLaunchCooperativeKernelMultiDevice(). */
typedef struct cudaLaunchParams {
  void *func;
  dim3 gridDim, blockDim;
  void **args;
  size_t sharedMem;
  cudaStream_t stream;
} cudaLaunchParams;

#define KILN__RT_FUNC_ATTRIBUTES                                               \
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;                      \
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;     \
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;

typedef struct cudaFuncAttributes_11 {
  KILN__RT_FUNC_ATTRIBUTES
} cudaFuncAttributes_11;

typedef struct cudaFuncAttributes_12 {
  KILN__RT_FUNC_ATTRIBUTES
  int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight;
  int requiredClusterDepth, clusterSchedulingPolicyPreference;
  int nonPortableClusterSizeAllowed, reserved[16];
} cudaFuncAttributes_12;

/* ---- Memory -------------------------------------------------------------- */

typedef struct cudaPointerAttributes_11 {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
} cudaPointerAttributes_11;

typedef struct cudaPointerAttributes_13 {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
  long reserved[8];
} cudaPointerAttributes_13;

/* ---- Device properties --------------------------------------------------- */

/* The members that all layouts share, in the order of the structs. The arguments
 * are members that a layout has and others do not have, at these places. */
#define KILN__RT_PROPERTIES(clock, overlap, timeout, mode, linear,             \
                            memory_clock, ratio, multi_device)                 \
  char name[256];                                                              \
  CUuuid uuid;                                                                 \
  char luid[8];                                                                \
  unsigned int luidDeviceNodeMask;                                             \
  size_t totalGlobalMem, sharedMemPerBlock;                                    \
  int regsPerBlock, warpSize;                                                  \
  size_t memPitch;                                                             \
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];                    \
  clock size_t totalConstMem;                                                  \
  int major, minor;                                                            \
  size_t textureAlignment, texturePitchAlignment;                              \
  overlap int multiProcessorCount;                                             \
  timeout int integrated, canMapHostMemory;                                    \
  mode int maxTexture1D, maxTexture1DMipmap;                                   \
  linear int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3];    \
  int maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];              \
  int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3];       \
  int maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];              \
  int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];         \
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];                          \
  size_t surfaceAlignment;                                                     \
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID;       \
  int tccDriver, asyncEngineCount, unifiedAddressing;                          \
  memory_clock int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;      \
  int maxThreadsPerMultiProcessor, streamPrioritiesSupported;                  \
  int globalL1CacheSupported, localL1CacheSupported;                           \
  size_t sharedMemPerMultiprocessor;                                           \
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard;                   \
  int multiGpuBoardGroupID, hostNativeAtomicSupported;                         \
  ratio int pageableMemoryAccess, concurrentManagedAccess;                     \
  int computePreemptionSupported, canUseHostPointerForRegisteredMem;           \
  int cooperativeLaunch;                                                       \
  multi_device size_t sharedMemPerBlockOptin;                                  \
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;  \
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;                   \
  size_t reservedSharedMemPerBlock;

/* The members that CUDA 13 removed. */
/* clang-format off */
#define KILN__RT_PROPERTIES_11                                                 \
  KILN__RT_PROPERTIES(int clockRate;, int deviceOverlap;,                      \
                      int kernelExecTimeoutEnabled;, int computeMode;,         \
                      int maxTexture1DLinear;, int memoryClockRate;,           \
                      int singleToDoublePrecisionPerfRatio;,                   \
                      int cooperativeMultiDeviceLaunch;)
/* clang-format on */

/* The members that CUDA 12 added. */
#define KILN__RT_PROPERTIES_12                                                 \
  int hostRegisterSupported, sparseCudaArraySupported;                         \
  int hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported;        \
  int memoryPoolsSupported, gpuDirectRDMASupported;                            \
  unsigned int gpuDirectRDMAFlushWritesOptions;                                \
  int gpuDirectRDMAWritesOrdering;                                             \
  unsigned int memoryPoolSupportedHandleTypes;                                 \
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;     \
  int unifiedFunctionPointers;

typedef struct cudaDeviceProp_11 {
  KILN__RT_PROPERTIES_11
} cudaDeviceProp_11;

typedef struct cudaDeviceProp_12 {
  KILN__RT_PROPERTIES_11
  KILN__RT_PROPERTIES_12
  int reserved[63];
} cudaDeviceProp_12;

typedef struct cudaDeviceProp_13 {
  KILN__RT_PROPERTIES(, , , , , , , )
  KILN__RT_PROPERTIES_12
  int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
  unsigned int gpuPciDeviceID, gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
} cudaDeviceProp_13;

#endif
