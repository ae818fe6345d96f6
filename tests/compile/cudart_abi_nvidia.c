/* cudart_abi_nvidia.c -- the layouts in NVIDIA's cuda_runtime_api.h. The compiler checks
 * the error codes and the constants. The file is built only if the header is installed;
 * see cudart_abi in tests.cmake. */
#include <cuda_runtime_api.h>

#define KIND(own, nvidia) nvidia
#include "cudart_abi_layout.h"

#define SAME(name, value) _Static_assert((int)(name) == (value), #name);

/* The oldest headers lack the newest errors. */
#if CUDART_VERSION >= 13000
#define KILN__RT_ERROR(name, code, text) SAME(name, code)
#include "cpu/cudart/runtime_errors.def"
#endif

SAME(cudaMemcpyHostToDevice, 1)
SAME(cudaMemcpyDefault, 4)
SAME(cudaChannelFormatKindNV12, 4)
SAME(cudaChannelFormatKindUnsignedNormalized8X1, 5)
SAME(cudaChannelFormatKindUnsignedNormalized16X1, 8)
SAME(cudaChannelFormatKindSignedNormalized8X1, 11)
SAME(cudaChannelFormatKindSignedNormalized16X1, 14)
SAME(cudaChannelFormatKindUnsignedBlockCompressed1, 17)
SAME(cudaResourceTypePitch2D, 3)
SAME(cudaReadModeNormalizedFloat, 1)
SAME(cudaGraphNodeTypeMemcpy, 1)
SAME(cudaGraphNodeTypeMemFree, 11)
SAME(cudaArraySurfaceLoadStore, 2)
SAME(cudaArrayTextureGather, 8)

const abi_row cudart_abi_nvidia[] = {CUDART_ABI_LAYOUT};
const int cudart_abi_version = CUDART_VERSION;
