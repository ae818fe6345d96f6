/* abi.h -- the part of the CUDA driver's ABI that Kiln uses. With this header
 * Kiln builds without any CUDA header. Enumerations are plain int, as in the
 * ABI. A source file cannot include both this header and cuda.h. Only the
 * handle types in <kiln/types.h> are compatible with cuda.h. A test compares
 * every number and every struct layout with cuda.h. */
#ifndef KILN_DRIVER_ABI_H
#define KILN_DRIVER_ABI_H

#include "abi_tensor.h"
#include "abi_texture.h"

#define KILN__CUDAAPI /* CUDAAPI of cuda.h is empty on Linux */

enum {
#define KILN__CU_RESULT(name, value) name = (value),
#define KILN__CU_CONSTANT(name, value) name = (value),
#include "driver_constants.def"
#undef KILN__CU_RESULT
#undef KILN__CU_CONSTANT
};

typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef int CUpointer_attribute;
typedef int CUjit_option;
typedef int CUjitInputType;
typedef int CUlimit;
typedef int CUstreamCaptureStatus;
typedef int CUstreamCaptureMode;
typedef int CUlaunchAttributeID;
typedef int CUmemPool_attribute;
typedef int CUmemLocationType;
typedef int CUmemAllocationType;
typedef int CUmemAllocationHandleType;
typedef int CUdriverProcAddressQueryResult;

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef void(KILN__CUDAAPI *CUhostFn)(void *user);
typedef size_t(KILN__CUDAAPI *CUoccupancyB2DSize)(int block);

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef struct CUuuid {
  char bytes[16];
} CUuuid;

typedef struct CUmemLocation {
  CUmemLocationType type;
  int id;
} CUmemLocation;

typedef struct CUmemPoolProps {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

typedef union CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
  int syncPolicy;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  /* padding, since the member `value` starts at byte 8 */
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

#endif
