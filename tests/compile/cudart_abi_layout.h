/* cudart_abi_layout.h -- the sizes and offsets of the structs of the CUDA runtime API
 * that are compared. One table is made from the runtime library's own declarations,
 * and one from cuda_runtime_api.h. KIND(own, nvidia) is the name of a struct in one of
 * the two. KILN__RT_VERSION is the version of the header (CUDART_VERSION), KILN__RT_MAJOR its
 * major version. */
#include "abi_rows.h"

extern const abi_row cudart_abi_own[], cudart_abi_nvidia[];

/* clang-format off */
#define CUDART_ABI_ALL \
  ABI_SIZE(KIND(dim3, dim3)) \
  ABI_AT(KIND(dim3, dim3), y) \
  ABI_AT(KIND(dim3, dim3), z) \
  ABI_SIZE(KIND(cudaChannelFormatDesc, struct cudaChannelFormatDesc)) \
  ABI_AT(KIND(cudaChannelFormatDesc, struct cudaChannelFormatDesc), x) \
  ABI_AT(KIND(cudaChannelFormatDesc, struct cudaChannelFormatDesc), w) \
  ABI_AT(KIND(cudaChannelFormatDesc, struct cudaChannelFormatDesc), f) \
  ABI_SIZE(KIND(cudaExtent, struct cudaExtent)) \
  ABI_AT(KIND(cudaExtent, struct cudaExtent), height) \
  ABI_AT(KIND(cudaExtent, struct cudaExtent), depth) \
  ABI_SIZE(KIND(cudaPos, struct cudaPos)) \
  ABI_AT(KIND(cudaPos, struct cudaPos), y) \
  ABI_AT(KIND(cudaPos, struct cudaPos), z) \
  ABI_SIZE(KIND(cudaPitchedPtr, struct cudaPitchedPtr)) \
  ABI_AT(KIND(cudaPitchedPtr, struct cudaPitchedPtr), ptr) \
  ABI_AT(KIND(cudaPitchedPtr, struct cudaPitchedPtr), pitch) \
  ABI_AT(KIND(cudaPitchedPtr, struct cudaPitchedPtr), xsize) \
  ABI_AT(KIND(cudaPitchedPtr, struct cudaPitchedPtr), ysize) \
  ABI_SIZE(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms)) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), srcArray) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), srcPos) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), srcPtr) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), dstArray) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), dstPos) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), dstPtr) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), extent) \
  ABI_AT(KIND(cudaMemcpy3DParms, struct cudaMemcpy3DParms), kind) \
  ABI_SIZE(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms)) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), srcArray) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), srcPos) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), srcPtr) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), srcDevice) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), dstArray) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), dstPos) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), dstPtr) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), dstDevice) \
  ABI_AT(KIND(cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms), extent) \
  ABI_SIZE(KIND(cudaArrayMemoryRequirements, struct cudaArrayMemoryRequirements)) \
  ABI_AT(KIND(cudaArrayMemoryRequirements, struct cudaArrayMemoryRequirements), alignment) \
  ABI_AT(KIND(cudaArrayMemoryRequirements, struct cudaArrayMemoryRequirements), reserved) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), resType) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.array.array) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.mipmap.mipmap) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.linear.devPtr) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.linear.desc) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.linear.sizeInBytes) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.pitch2D.devPtr) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.pitch2D.desc) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.pitch2D.width) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.pitch2D.height) \
  ABI_AT(KIND(cudaResourceDesc_11, struct cudaResourceDesc), res.pitch2D.pitchInBytes) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), format) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), width) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), height) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), depth) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), firstMipmapLevel) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), lastMipmapLevel) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), firstLayer) \
  ABI_AT(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc), lastLayer) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), addressMode) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), filterMode) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), readMode) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), sRGB) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), borderColor) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), normalizedCoords) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), maxAnisotropy) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), mipmapFilterMode) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), mipmapLevelBias) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), minMipmapLevelClamp) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), maxMipmapLevelClamp) \
  ABI_AT(KIND(cudaTextureDesc_11, struct cudaTextureDesc), disableTrilinearOptimization) \
  ABI_SIZE(KIND(cudaMemPoolProps, struct cudaMemPoolProps)) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), allocType) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), handleTypes) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), location) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), win32SecurityAttributes) \
  ABI_SIZE(KIND(cudaMemAccessDesc, struct cudaMemAccessDesc)) \
  ABI_AT(KIND(cudaMemAccessDesc, struct cudaMemAccessDesc), location) \
  ABI_AT(KIND(cudaMemAccessDesc, struct cudaMemAccessDesc), flags) \
  ABI_SIZE(KIND(cudaMemPoolPtrExportData, struct cudaMemPoolPtrExportData)) \
  ABI_AT(KIND(cudaMemPoolPtrExportData, struct cudaMemPoolPtrExportData), reserved) \
  ABI_SIZE(KIND(cudaIpcMemHandle_t, cudaIpcMemHandle_t)) \
  ABI_AT(KIND(cudaIpcMemHandle_t, cudaIpcMemHandle_t), reserved) \
  ABI_SIZE(KIND(cudaIpcEventHandle_t, cudaIpcEventHandle_t)) \
  ABI_AT(KIND(cudaIpcEventHandle_t, cudaIpcEventHandle_t), reserved) \
  ABI_SIZE(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams)) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), func) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), gridDim) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), blockDim) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), sharedMemBytes) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), kernelParams) \
  ABI_AT(KIND(cudaKernelNodeParams, struct cudaKernelNodeParams), extra) \
  ABI_SIZE(KIND(cudaMemsetParams, struct cudaMemsetParams)) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), dst) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), pitch) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), value) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), elementSize) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), width) \
  ABI_AT(KIND(cudaMemsetParams, struct cudaMemsetParams), height) \
  ABI_SIZE(KIND(cudaHostNodeParams, struct cudaHostNodeParams)) \
  ABI_AT(KIND(cudaHostNodeParams, struct cudaHostNodeParams), fn) \
  ABI_AT(KIND(cudaHostNodeParams, struct cudaHostNodeParams), userData) \
  ABI_SIZE(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams)) \
  ABI_AT(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams), poolProps) \
  ABI_AT(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams), accessDescs) \
  ABI_AT(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams), accessDescCount) \
  ABI_AT(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams), bytesize) \
  ABI_AT(KIND(cudaMemAllocNodeParams, struct cudaMemAllocNodeParams), dptr) \
  ABI_SIZE(KIND(cudaLaunchAttribute, cudaLaunchAttribute)) \
  ABI_SIZE(KIND(cudaLaunchAttributeValue, cudaLaunchAttributeValue)) \
  ABI_AT(KIND(cudaLaunchAttributeValue, cudaLaunchAttributeValue), cooperative) \
  ABI_AT(KIND(cudaLaunchAttributeValue, cudaLaunchAttributeValue), clusterDim) \
  ABI_AT(KIND(cudaLaunchAttributeValue, cudaLaunchAttributeValue), priority) \
  ABI_AT(KIND(cudaLaunchAttributeValue, cudaLaunchAttributeValue), syncPolicy) \
  ABI_SIZE(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t)) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), gridDim) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), blockDim) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), dynamicSmemBytes) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), stream) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), attrs) \
  ABI_AT(KIND(cudaLaunchConfig_t, cudaLaunchConfig_t), numAttrs) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), sharedSizeBytes) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), constSizeBytes) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), localSizeBytes) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), maxThreadsPerBlock) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), numRegs) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), ptxVersion) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), binaryVersion) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), cacheModeCA) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), maxDynamicSharedSizeBytes) \
  ABI_AT(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes), preferredShmemCarveout) \
  ABI_AT(KIND(cudaPointerAttributes_11, struct cudaPointerAttributes), type) \
  ABI_AT(KIND(cudaPointerAttributes_11, struct cudaPointerAttributes), device) \
  ABI_AT(KIND(cudaPointerAttributes_11, struct cudaPointerAttributes), devicePointer) \
  ABI_AT(KIND(cudaPointerAttributes_11, struct cudaPointerAttributes), hostPointer)

/* Until CUDA 12. */
#define CUDART_ABI_OLD \
  ABI_SIZE(KIND(cudaResourceDesc_11, struct cudaResourceDesc)) \
  ABI_SIZE(KIND(cudaResourceViewDesc_11, struct cudaResourceViewDesc)) \
  ABI_SIZE(KIND(cudaPointerAttributes_11, struct cudaPointerAttributes)) \
  ABI_SIZE(KIND(cudaLaunchParams, struct cudaLaunchParams)) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), func) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), gridDim) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), blockDim) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), args) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), sharedMem) \
  ABI_AT(KIND(cudaLaunchParams, struct cudaLaunchParams), stream)

#define CUDART_ABI_11 \
  ABI_SIZE(KIND(cudaTextureDesc_11, struct cudaTextureDesc)) \
  ABI_SIZE(KIND(cudaTextureDesc_12, struct cudaTextureDesc_v2)) \
  ABI_AT(KIND(cudaTextureDesc_12, struct cudaTextureDesc_v2), seamlessCubemap) \
  ABI_SIZE(KIND(cudaFuncAttributes_11, struct cudaFuncAttributes)) \
  ABI_SIZE(KIND(cudaDeviceProp_11, struct cudaDeviceProp)) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), name) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), uuid) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), luid) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), luidDeviceNodeMask) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), totalGlobalMem) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), sharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), regsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), warpSize) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), memPitch) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxThreadsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxThreadsDim) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxGridSize) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), totalConstMem) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), major) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), minor) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), textureAlignment) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), texturePitchAlignment) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), multiProcessorCount) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), integrated) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), canMapHostMemory) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture1D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture1DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture2D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture2DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture2DLinear) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture2DGather) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture3D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture3DAlt) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTextureCubemap) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTextureCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurface1D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurface2D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurface3D) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurface1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurface2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurfaceCubemap) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxSurfaceCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), surfaceAlignment) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), concurrentKernels) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), ECCEnabled) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), pciBusID) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), pciDeviceID) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), pciDomainID) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), tccDriver) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), asyncEngineCount) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), unifiedAddressing) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), memoryBusWidth) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), l2CacheSize) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), persistingL2CacheMaxSize) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxThreadsPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), streamPrioritiesSupported) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), globalL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), localL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), sharedMemPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), regsPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), managedMemory) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), isMultiGpuBoard) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), multiGpuBoardGroupID) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), hostNativeAtomicSupported) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), pageableMemoryAccess) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), concurrentManagedAccess) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), computePreemptionSupported) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), canUseHostPointerForRegisteredMem) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), cooperativeLaunch) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), sharedMemPerBlockOptin) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), pageableMemoryAccessUsesHostPageTables) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), directManagedMemAccessFromHost) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxBlocksPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), accessPolicyMaxWindowSize) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), reservedSharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), clockRate) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), deviceOverlap) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), kernelExecTimeoutEnabled) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), computeMode) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), maxTexture1DLinear) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), memoryClockRate) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), singleToDoublePrecisionPerfRatio) \
  ABI_AT(KIND(cudaDeviceProp_11, struct cudaDeviceProp), cooperativeMultiDeviceLaunch)

#define CUDART_ABI_12 \
  ABI_SIZE(KIND(cudaDeviceProp_12, struct cudaDeviceProp)) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), name) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), uuid) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), luid) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), luidDeviceNodeMask) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), totalGlobalMem) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), sharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), regsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), warpSize) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), memPitch) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxThreadsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxThreadsDim) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxGridSize) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), totalConstMem) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), major) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), minor) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), textureAlignment) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), texturePitchAlignment) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), multiProcessorCount) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), integrated) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), canMapHostMemory) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture1D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture1DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture2D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture2DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture2DLinear) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture2DGather) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture3D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture3DAlt) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTextureCubemap) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTextureCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurface1D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurface2D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurface3D) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurface1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurface2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurfaceCubemap) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxSurfaceCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), surfaceAlignment) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), concurrentKernels) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), ECCEnabled) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), pciBusID) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), pciDeviceID) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), pciDomainID) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), tccDriver) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), asyncEngineCount) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), unifiedAddressing) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), memoryBusWidth) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), l2CacheSize) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), persistingL2CacheMaxSize) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxThreadsPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), streamPrioritiesSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), globalL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), localL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), sharedMemPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), regsPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), managedMemory) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), isMultiGpuBoard) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), multiGpuBoardGroupID) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), hostNativeAtomicSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), pageableMemoryAccess) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), concurrentManagedAccess) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), computePreemptionSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), canUseHostPointerForRegisteredMem) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), cooperativeLaunch) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), sharedMemPerBlockOptin) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), pageableMemoryAccessUsesHostPageTables) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), directManagedMemAccessFromHost) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxBlocksPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), accessPolicyMaxWindowSize) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), reservedSharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), clockRate) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), deviceOverlap) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), kernelExecTimeoutEnabled) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), computeMode) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), maxTexture1DLinear) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), memoryClockRate) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), singleToDoublePrecisionPerfRatio) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), cooperativeMultiDeviceLaunch) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), hostRegisterSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), sparseCudaArraySupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), hostRegisterReadOnlySupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), timelineSemaphoreInteropSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), memoryPoolsSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), gpuDirectRDMASupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), gpuDirectRDMAFlushWritesOptions) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), gpuDirectRDMAWritesOrdering) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), memoryPoolSupportedHandleTypes) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), deferredMappingCudaArraySupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), ipcEventSupported) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), clusterLaunch) \
  ABI_AT(KIND(cudaDeviceProp_12, struct cudaDeviceProp), unifiedFunctionPointers)

#define CUDART_ABI_13 \
  ABI_SIZE(KIND(cudaDeviceProp_13, struct cudaDeviceProp)) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), name) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), uuid) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), luid) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), luidDeviceNodeMask) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), totalGlobalMem) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), sharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), regsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), warpSize) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), memPitch) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxThreadsPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxThreadsDim) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxGridSize) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), totalConstMem) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), major) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), minor) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), textureAlignment) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), texturePitchAlignment) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), multiProcessorCount) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), integrated) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), canMapHostMemory) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture1D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture1DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture2D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture2DMipmap) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture2DLinear) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture2DGather) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture3D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture3DAlt) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTextureCubemap) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTexture2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxTextureCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurface1D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurface2D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurface3D) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurface1DLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurface2DLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurfaceCubemap) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxSurfaceCubemapLayered) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), surfaceAlignment) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), concurrentKernels) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), ECCEnabled) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), pciBusID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), pciDeviceID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), pciDomainID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), tccDriver) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), asyncEngineCount) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), unifiedAddressing) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), memoryBusWidth) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), l2CacheSize) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), persistingL2CacheMaxSize) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxThreadsPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), streamPrioritiesSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), globalL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), localL1CacheSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), sharedMemPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), regsPerMultiprocessor) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), managedMemory) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), isMultiGpuBoard) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), multiGpuBoardGroupID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), hostNativeAtomicSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), pageableMemoryAccess) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), concurrentManagedAccess) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), computePreemptionSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), canUseHostPointerForRegisteredMem) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), cooperativeLaunch) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), sharedMemPerBlockOptin) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), pageableMemoryAccessUsesHostPageTables) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), directManagedMemAccessFromHost) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), maxBlocksPerMultiProcessor) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), accessPolicyMaxWindowSize) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), reservedSharedMemPerBlock) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), hostRegisterSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), sparseCudaArraySupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), hostRegisterReadOnlySupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), timelineSemaphoreInteropSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), memoryPoolsSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), gpuDirectRDMASupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), gpuDirectRDMAFlushWritesOptions) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), gpuDirectRDMAWritesOrdering) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), memoryPoolSupportedHandleTypes) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), deferredMappingCudaArraySupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), ipcEventSupported) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), clusterLaunch) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), unifiedFunctionPointers) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), deviceNumaConfig) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), deviceNumaId) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), mpsEnabled) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), hostNumaId) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), gpuPciDeviceID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), gpuPciSubsystemID) \
  ABI_AT(KIND(cudaDeviceProp_13, struct cudaDeviceProp), hostNumaMultinodeIpcSupported) \
  ABI_SIZE(KIND(cudaResourceDesc_13, struct cudaResourceDesc)) \
  ABI_AT(KIND(cudaResourceDesc_13, struct cudaResourceDesc), flags) \
  ABI_SIZE(KIND(cudaResourceViewDesc_13, struct cudaResourceViewDesc)) \
  ABI_AT(KIND(cudaResourceViewDesc_13, struct cudaResourceViewDesc), reserved) \
  ABI_SIZE(KIND(cudaPointerAttributes_13, struct cudaPointerAttributes)) \
  ABI_AT(KIND(cudaPointerAttributes_13, struct cudaPointerAttributes), reserved)

/* From CUDA 12.0 on. */
#define CUDART_ABI_FROM_12 \
  ABI_SIZE(KIND(cudaTextureDesc_12, struct cudaTextureDesc)) \
  ABI_AT(KIND(cudaTextureDesc_12, struct cudaTextureDesc), seamlessCubemap) \
  ABI_SIZE(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes)) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), clusterDimMustBeSet) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), requiredClusterWidth) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), requiredClusterHeight) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), requiredClusterDepth) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), clusterSchedulingPolicyPreference) \
  ABI_AT(KIND(cudaFuncAttributes_12, struct cudaFuncAttributes), nonPortableClusterSizeAllowed) \
  ABI_SIZE(KIND(cudaGraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo)) \
  ABI_AT(KIND(cudaGraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo), result) \
  ABI_AT(KIND(cudaGraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo), errorNode) \
  ABI_AT(KIND(cudaGraphExecUpdateResultInfo, cudaGraphExecUpdateResultInfo), errorFromNode) \
  ABI_SIZE(KIND(cudaGraphInstantiateParams, cudaGraphInstantiateParams))

/* From CUDA 12.9 on. */
#define CUDART_ABI_NEW \
  ABI_SIZE(KIND(cudaGraphEdgeData, cudaGraphEdgeData)) \
  ABI_AT(KIND(cudaGraphEdgeData, cudaGraphEdgeData), from_port) \
  ABI_AT(KIND(cudaGraphEdgeData, cudaGraphEdgeData), to_port) \
  ABI_AT(KIND(cudaGraphEdgeData, cudaGraphEdgeData), type) \
  ABI_AT(KIND(cudaGraphEdgeData, cudaGraphEdgeData), reserved) \
  ABI_SIZE(KIND(cudaMemcpyNodeParams, struct cudaMemcpyNodeParams)) \
  ABI_AT(KIND(cudaMemcpyNodeParams, struct cudaMemcpyNodeParams), flags) \
  ABI_AT(KIND(cudaMemcpyNodeParams, struct cudaMemcpyNodeParams), copyParams) \
  ABI_SIZE(KIND(cudaConditionalNodeParams, struct cudaConditionalNodeParams)) \
  ABI_AT(KIND(cudaConditionalNodeParams, struct cudaConditionalNodeParams), handle) \
  ABI_AT(KIND(cudaConditionalNodeParams, struct cudaConditionalNodeParams), type) \
  ABI_AT(KIND(cudaConditionalNodeParams, struct cudaConditionalNodeParams), size) \
  ABI_AT(KIND(cudaConditionalNodeParams, struct cudaConditionalNodeParams), phGraph_out) \
  ABI_SIZE(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams)) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), type) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), kernel) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), memcpy) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), memset) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), host) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), graph) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), eventWait) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), eventRecord) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), alloc) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), free) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), conditional) \
  ABI_AT(KIND(cudaGraphNodeParams, struct cudaGraphNodeParams), reserved2) \
  ABI_SIZE(KIND(cudaMemcpyAttributes, struct cudaMemcpyAttributes)) \
  ABI_AT(KIND(cudaMemcpyAttributes, struct cudaMemcpyAttributes), srcAccessOrder) \
  ABI_AT(KIND(cudaMemcpyAttributes, struct cudaMemcpyAttributes), srcLocHint) \
  ABI_AT(KIND(cudaMemcpyAttributes, struct cudaMemcpyAttributes), dstLocHint) \
  ABI_AT(KIND(cudaMemcpyAttributes, struct cudaMemcpyAttributes), flags) \
  ABI_SIZE(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand)) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), type) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.ptr.ptr) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.ptr.rowLength) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.ptr.layerHeight) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.ptr.locHint) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.array.array) \
  ABI_AT(KIND(cudaMemcpy3DOperand, struct cudaMemcpy3DOperand), op.array.offset) \
  ABI_SIZE(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp)) \
  ABI_AT(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp), src) \
  ABI_AT(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp), dst) \
  ABI_AT(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp), extent) \
  ABI_AT(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp), srcAccessOrder) \
  ABI_AT(KIND(cudaMemcpy3DBatchOp, struct cudaMemcpy3DBatchOp), flags) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), maxSize) \
  ABI_AT(KIND(cudaMemPoolProps, struct cudaMemPoolProps), usage) \
  ABI_SIZE(KIND(cudaChildGraphNodeParams, struct cudaChildGraphNodeParams)) \
  ABI_AT(KIND(cudaChildGraphNodeParams, struct cudaChildGraphNodeParams), graph) \
  ABI_AT(KIND(cudaChildGraphNodeParams, struct cudaChildGraphNodeParams), ownership)

#if KILN__RT_VERSION < 12090
#undef CUDART_ABI_NEW
#define CUDART_ABI_NEW
#endif
#if KILN__RT_MAJOR == 11
#define CUDART_ABI_LAYOUT CUDART_ABI_ALL CUDART_ABI_OLD CUDART_ABI_11 ABI_END
#elif KILN__RT_MAJOR == 12
#define CUDART_ABI_LAYOUT CUDART_ABI_ALL CUDART_ABI_OLD CUDART_ABI_FROM_12 CUDART_ABI_12 CUDART_ABI_NEW ABI_END
#else
#define CUDART_ABI_LAYOUT CUDART_ABI_ALL CUDART_ABI_FROM_12 CUDART_ABI_13 CUDART_ABI_NEW ABI_END
#endif
/* clang-format on */
