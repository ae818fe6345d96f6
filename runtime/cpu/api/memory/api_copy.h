/* copy.h -- all copies are 3-D ones. */
#ifndef KILN_CPU_COPY_H
#define KILN_CPU_COPY_H

#include "api_memory.h"

/* The call's own checks, then into the stream. `async`: a call that returns at
 * once, unless pageable host memory is what it writes. */
CUresult kiln__cpu_issue_copy(CUcontext context, CUstream stream,
                              const CUDA_MEMCPY3D *params, bool async);

#endif
