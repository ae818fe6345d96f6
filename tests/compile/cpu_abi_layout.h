/* cpu_abi_layout.h -- the sizes and offsets of the driver's structures that are
 * compared. One table is made from the CPU device's own declarations, and one
 * from NVIDIA's headers. */
#include "abi_rows.h"

extern const abi_row cpu_abi_own[], cpu_abi_nvidia[];

/* clang-format off */
#define CPU_ABI_LAYOUT \
  ABI_SIZE(CUdevprop) \
  ABI_AT(CUdevprop, sharedMemPerBlock) \
  ABI_AT(CUdevprop, textureAlign) \
  ABI_SIZE(CUexecAffinityParam) \
  ABI_AT(CUexecAffinityParam, param) \
  ABI_SIZE(CUctxCigParam) \
  ABI_SIZE(CUctxCreateParams) \
  ABI_AT(CUctxCreateParams, numExecAffinityParams) \
  ABI_AT(CUctxCreateParams, cigParams) \
  ABI_SIZE(CUipcEventHandle) \
  ABI_SIZE(CUipcMemHandle) \
  ABI_SIZE(CUstreamAttrValue) \
  ABI_AT(CUstreamAttrValue, syncPolicy) \
  ABI_SIZE(CUstreamBatchMemOpParams) \
  ABI_AT(CUstreamBatchMemOpParams, waitValue.address) \
  ABI_AT(CUstreamBatchMemOpParams, waitValue.value) \
  ABI_AT(CUstreamBatchMemOpParams, waitValue.value64) \
  ABI_AT(CUstreamBatchMemOpParams, waitValue.flags) \
  ABI_AT(CUstreamBatchMemOpParams, writeValue.address) \
  ABI_AT(CUstreamBatchMemOpParams, writeValue.value64) \
  ABI_AT(CUstreamBatchMemOpParams, writeValue.flags) \
  ABI_SIZE(CUmemLocation) \
  ABI_AT(CUmemLocation, id) \
  ABI_SIZE(CUmemAccessDesc) \
  ABI_AT(CUmemAccessDesc, flags) \
  ABI_SIZE(CUmemPoolProps) \
  ABI_AT(CUmemPoolProps, handleTypes) \
  ABI_AT(CUmemPoolProps, location) \
  ABI_AT(CUmemPoolProps, maxSize) \
  ABI_AT(CUmemPoolProps, usage) \
  ABI_SIZE(CUmemPoolPtrExportData) \
  ABI_SIZE(CUmemcpyAttributes) \
  ABI_AT(CUmemcpyAttributes, srcLocHint) \
  ABI_AT(CUmemcpyAttributes, dstLocHint) \
  ABI_AT(CUmemcpyAttributes, flags) \
  ABI_SIZE(CUDA_MEMCPY2D) \
  ABI_AT(CUDA_MEMCPY2D, srcMemoryType) \
  ABI_AT(CUDA_MEMCPY2D, srcHost) \
  ABI_AT(CUDA_MEMCPY2D, srcDevice) \
  ABI_AT(CUDA_MEMCPY2D, srcArray) \
  ABI_AT(CUDA_MEMCPY2D, srcPitch) \
  ABI_AT(CUDA_MEMCPY2D, dstXInBytes) \
  ABI_AT(CUDA_MEMCPY2D, dstMemoryType) \
  ABI_AT(CUDA_MEMCPY2D, dstPitch) \
  ABI_AT(CUDA_MEMCPY2D, WidthInBytes) \
  ABI_AT(CUDA_MEMCPY2D, Height) \
  ABI_SIZE(CUDA_MEMCPY3D) \
  ABI_AT(CUDA_MEMCPY3D, srcLOD) \
  ABI_AT(CUDA_MEMCPY3D, srcMemoryType) \
  ABI_AT(CUDA_MEMCPY3D, srcHost) \
  ABI_AT(CUDA_MEMCPY3D, srcDevice) \
  ABI_AT(CUDA_MEMCPY3D, srcArray) \
  ABI_AT(CUDA_MEMCPY3D, srcPitch) \
  ABI_AT(CUDA_MEMCPY3D, srcHeight) \
  ABI_AT(CUDA_MEMCPY3D, dstXInBytes) \
  ABI_AT(CUDA_MEMCPY3D, dstMemoryType) \
  ABI_AT(CUDA_MEMCPY3D, dstHost) \
  ABI_AT(CUDA_MEMCPY3D, dstDevice) \
  ABI_AT(CUDA_MEMCPY3D, dstArray) \
  ABI_AT(CUDA_MEMCPY3D, dstPitch) \
  ABI_AT(CUDA_MEMCPY3D, dstHeight) \
  ABI_AT(CUDA_MEMCPY3D, Depth) \
  ABI_SIZE(CUDA_MEMCPY3D_PEER) \
  ABI_AT(CUDA_MEMCPY3D_PEER, srcContext) \
  ABI_AT(CUDA_MEMCPY3D_PEER, dstContext) \
  ABI_AT(CUDA_MEMCPY3D_PEER, dstHeight) \
  ABI_AT(CUDA_MEMCPY3D_PEER, Depth) \
  ABI_SIZE(CUgraphEdgeData) \
  ABI_AT(CUgraphEdgeData, type) \
  ABI_SIZE(CUDA_KERNEL_NODE_PARAMS_v1) \
  ABI_SIZE(CUDA_KERNEL_NODE_PARAMS) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, gridDimX) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, blockDimX) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, kernelParams) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, extra) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, kern) \
  ABI_AT(CUDA_KERNEL_NODE_PARAMS, ctx) \
  ABI_SIZE(CUDA_MEMCPY_NODE_PARAMS) \
  ABI_AT(CUDA_MEMCPY_NODE_PARAMS, copyCtx) \
  ABI_AT(CUDA_MEMCPY_NODE_PARAMS, copyParams) \
  ABI_SIZE(CUDA_MEMSET_NODE_PARAMS) \
  ABI_AT(CUDA_MEMSET_NODE_PARAMS, elementSize) \
  ABI_AT(CUDA_MEMSET_NODE_PARAMS, height) \
  ABI_SIZE(CUDA_MEMSET_NODE_PARAMS_v2) \
  ABI_AT(CUDA_MEMSET_NODE_PARAMS_v2, ctx) \
  ABI_SIZE(CUDA_HOST_NODE_PARAMS) \
  ABI_SIZE(CUDA_CHILD_GRAPH_NODE_PARAMS) \
  ABI_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS) \
  ABI_AT(CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs) \
  ABI_AT(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize) \
  ABI_AT(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) \
  ABI_SIZE(CUDA_BATCH_MEM_OP_NODE_PARAMS) \
  ABI_AT(CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray) \
  ABI_SIZE(CUDA_CONDITIONAL_NODE_PARAMS) \
  ABI_AT(CUDA_CONDITIONAL_NODE_PARAMS, size) \
  ABI_AT(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) \
  ABI_AT(CUDA_CONDITIONAL_NODE_PARAMS, ctx) \
  ABI_SIZE(CUgraphNodeParams) \
  ABI_AT(CUgraphNodeParams, kernel) \
  ABI_AT(CUgraphNodeParams, memcpy) \
  ABI_AT(CUgraphNodeParams, eventWait) \
  ABI_AT(CUgraphNodeParams, free) \
  ABI_AT(CUgraphNodeParams, reserved2) \
  ABI_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS) \
  ABI_AT(CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream) \
  ABI_AT(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) \
  ABI_SIZE(CUgraphExecUpdateResultInfo) \
  ABI_AT(CUgraphExecUpdateResultInfo, errorNode) \
  ABI_AT(CUgraphExecUpdateResultInfo, errorFromNode) \
  ABI_SIZE(CUDA_ARRAY_DESCRIPTOR) \
  ABI_AT(CUDA_ARRAY_DESCRIPTOR, Format) \
  ABI_SIZE(CUDA_ARRAY3D_DESCRIPTOR) \
  ABI_AT(CUDA_ARRAY3D_DESCRIPTOR, Format) \
  ABI_AT(CUDA_ARRAY3D_DESCRIPTOR, Flags) \
  ABI_SIZE(CUDA_RESOURCE_DESC) \
  ABI_AT(CUDA_RESOURCE_DESC, res.linear.sizeInBytes) \
  ABI_AT(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes) \
  ABI_AT(CUDA_RESOURCE_DESC, flags) \
  ABI_SIZE(CUDA_TEXTURE_DESC) \
  ABI_AT(CUDA_TEXTURE_DESC, maxAnisotropy) \
  ABI_AT(CUDA_TEXTURE_DESC, mipmapLevelBias) \
  ABI_AT(CUDA_TEXTURE_DESC, borderColor) \
  ABI_SIZE(CUDA_RESOURCE_VIEW_DESC) \
  ABI_AT(CUDA_RESOURCE_VIEW_DESC, width) \
  ABI_AT(CUDA_RESOURCE_VIEW_DESC, firstMipmapLevel) \
  ABI_END
/* clang-format on */
