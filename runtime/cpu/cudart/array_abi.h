/* array_abi.h -- declares the types of the CUDA runtime API for arrays, textures,
 * pitched memory, copies in several dimensions, memory pools and sharing between
 * processes. The rules in the head of runtime_abi.h apply. */
#ifndef KILN_CPU_ARRAY_ABI_H
#define KILN_CPU_ARRAY_ABI_H

#include "runtime_abi.h"

typedef CUarray cudaArray_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef int cudaChannelFormatKind;
typedef int cudaResourceType;
typedef int cudaAddressMode;
typedef int cudaFilterMode;
typedef int cudaReadMode;

enum {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3,
  cudaChannelFormatKindNV12 = 4,
  cudaChannelFormatKindUnsignedNormalized8X1 = 5,
  cudaChannelFormatKindUnsignedNormalized16X1 = 8,
  cudaChannelFormatKindSignedNormalized8X1 = 11,
  cudaChannelFormatKindSignedNormalized16X1 = 14,
  cudaChannelFormatKindUnsignedBlockCompressed1 = 17,
  cudaResourceTypeArray = 0,
  cudaResourceTypeMipmappedArray = 1,
  cudaResourceTypeLinear = 2,
  cudaResourceTypePitch2D = 3,
  cudaReadModeElementType = 0,
  cudaReadModeNormalizedFloat = 1
};

/* Bits per channel, and how they are read. */
typedef struct cudaChannelFormatDesc {
  int x, y, z, w;
  cudaChannelFormatKind f;
} cudaChannelFormatDesc;

typedef struct cudaExtent {
  size_t width, height, depth;
} cudaExtent;

typedef struct cudaPos {
  size_t x, y, z;
} cudaPos;

typedef struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct cudaMemcpy3DPeerParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  int srcDevice;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  int dstDevice;
  cudaExtent extent;
} cudaMemcpy3DPeerParms;

typedef struct cudaArrayMemoryRequirements {
  size_t size, alignment;
  unsigned int reserved[4];
} cudaArrayMemoryRequirements;

/* ---- Textures and surfaces ----------------------------------------------- */

typedef struct cudaResourceDesc_11 {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void *devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
} cudaResourceDesc_11;

/* CUDA 13 reserves 128 bytes for the union and adds flags. */
typedef struct cudaResourceDesc_13 {
  cudaResourceDesc_11 known;
  int reserved[18];
  unsigned int flags;
} cudaResourceDesc_13;

typedef struct cudaResourceViewDesc_11 {
  int format;
  size_t width, height, depth;
  unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
} cudaResourceViewDesc_11;

typedef struct cudaResourceViewDesc_13 {
  cudaResourceViewDesc_11 known;
  unsigned int reserved[16];
} cudaResourceViewDesc_13;

typedef struct cudaTextureDesc_11 {
  cudaAddressMode addressMode[3];
  cudaFilterMode filterMode;
  cudaReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned int maxAnisotropy;
  cudaFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
} cudaTextureDesc_11;

/* In CUDA 11, this layout is called cudaTextureDesc_v2. */
typedef struct cudaTextureDesc_12 {
  cudaTextureDesc_11 known;
  int seamlessCubemap;
} cudaTextureDesc_12;

/* ---- Pools, batches, sharing --------------------------------------------- */

/* These types have the layout of the driver's types. */
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUmemcpyAttributes cudaMemcpyAttributes;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef int cudaMemPoolAttr;
typedef int cudaMemAllocationHandleType;
typedef int cudaMemAllocationType;
typedef int cudaMemAccessFlags;
typedef int cudaMemcpySrcAccessOrder;
typedef int cudaGraphMemAttributeType;

/* One side of a copy in a batch. Lengths and offsets are in elements. */
typedef struct cudaMemcpy3DOperand {
  int type; /* 1: pointer, 2: array */
  union {
    struct {
      void *ptr;
      size_t rowLength, layerHeight; /* 0 means the extent of the copy */
      cudaMemLocation locHint;
    } ptr;
    struct {
      cudaArray_t array;
      cudaPos offset;
    } array;
  } op;
} cudaMemcpy3DOperand;

typedef struct cudaMemcpy3DBatchOp {
  cudaMemcpy3DOperand src, dst;
  cudaExtent extent;
  cudaMemcpySrcAccessOrder srcAccessOrder;
  unsigned int flags;
} cudaMemcpy3DBatchOp;

/* ---- Texture references of CUDA 11 ------------------------------------------- */

typedef struct textureReference {
  int normalized; /* coordinates from 0 to 1 */
  cudaFilterMode filterMode;
  cudaAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned int maxAnisotropy;
  cudaFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int reserved[14];
} textureReference;

#endif
