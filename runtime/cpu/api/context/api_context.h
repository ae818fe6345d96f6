/* api_context.h -- creation and end of contexts, and the calling thread's
 * stack. */
#ifndef KILN_CPU_CONTEXT_H
#define KILN_CPU_CONTEXT_H

#include "../stream/streams.h"

/* The end of a context calls these in this order, when nothing runs in it any
 * more. The first drops its captures; the second reports leaks, if that check is
 * on, and frees its memory. */
void kiln__cpu_end_captures(CUcontext context);
void kiln__cpu_end_memory(CUcontext context);

/* Makes a context with its streams and limits; it is a live handle on success.
 * CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_context_make(CUcontext *out, int device, unsigned flags,
                                bool primary);
/* Waits for all work and frees everything in the context. The object stays, so
 * that kiln__cpu_context_begin() can set up a primary context again. */
void kiln__cpu_context_end(CUcontext context);
CUresult kiln__cpu_context_begin(CUcontext context);
/* Frees the object of a context that has ended. */
void kiln__cpu_context_free(CUcontext context);
/* Are these valid flags of cuCtxCreate? */
bool kiln__cpu_context_flags_ok(unsigned flags);

/* Pushes a context on the calling thread's stack, or pops the top, which must
 * exist. CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_push(CUcontext context);
void kiln__cpu_pop(void);

#endif
