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

#endif
