/* api_copy.h -- declares the function through which all copies are issued. */
#ifndef KILN_CPU_COPY_H
#define KILN_CPU_COPY_H

#include "api_memory.h"

/* Checks the current context and a copy, and enqueues the copy. If `async` is
 * true, the call returns at once unless it writes pageable host memory.
 * Otherwise it returns when the copy is done. Returns the result codes of
 * cuMemcpy3D and cuMemcpy3DAsync. */
CUresult kiln__cpu_issue_copy(CUstream stream, const CUDA_MEMCPY3D *params,
                              bool async);

/* Checks the stream of a batch: NULL is invalid, and batches cannot be captured. Defined
 * in copy_batch.c. */
CUresult kiln__cpu_batch_stream(CUstream stream);

/* A blocking copy between contexts is ordered with all earlier and later work of the
 * source's, the destination's and the current context. `before` waits for the two
 * contexts, `after` for the copy. Both do nothing within the current context. A context
 * is NULL for memory of the host. */
CUresult kiln__cpu_before_peer_copy(CUcontext to, CUcontext from);
CUresult kiln__cpu_after_peer_copy(CUcontext to, CUcontext from);

#endif
