/* rt_box.h -- converts copies in two and three dimensions between the runtime's and
 * the driver's structs. */
#ifndef KILN_CPU_RT_BOX_H
#define KILN_CPU_RT_BOX_H

#include "../cudart.h"

/* Converts a copy. Returns cudaErrorInvalidValue if the source or the destination is
 * not exactly one of an array and a pointer, and cudaErrorInvalidMemcpyDirection if
 * the kind is unknown. */
cudaError_t kiln__rt_box_of(CUDA_MEMCPY3D *out, const cudaMemcpy3DParms *in);
/* Converts a copy back. The kind follows from the types of memory. */
void kiln__rt_box_params(cudaMemcpy3DParms *out, const CUDA_MEMCPY3D *in);
/* Describes a copy of `size` contiguous bytes. */
cudaError_t kiln__rt_box_of_bytes(CUDA_MEMCPY3D *out, void *to,
                                  const void *from, size_t size,
                                  cudaMemcpyKind kind);
/* Issues a copy; nothing happens if it has no bytes. The first function returns when
 * the copy is done, in the stream that the form of the exported function implies. */
cudaError_t kiln__rt_box_copy(const CUDA_MEMCPY3D *box);
cudaError_t kiln__rt_box_copy_async(const CUDA_MEMCPY3D *box,
                                    cudaStream_t stream);

#endif
