/* api_context.h -- declares the creation and destruction of contexts, and the
 * calling thread's context stack. */
#ifndef KILN_CPU_CONTEXT_H
#define KILN_CPU_CONTEXT_H

#include "../stream/streams.h"

/* The destruction of a context calls these functions in this order, when no
 * work runs in the context any more. The first function ends the context's
 * captures. The second frees the context's memory. It first reports leaks if
 * the memory check is enabled. */
void kiln__cpu_end_captures(CUcontext context);
void kiln__cpu_end_memory(CUcontext context);

/* Makes a context with its streams and limits. On success, the context is a
 * live handle. Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_context_make(CUcontext *out, int device, unsigned flags,
                                bool primary);
/* Waits for all work of the context and frees everything in it. The context
 * object itself stays, so that kiln__cpu_context_begin() can set up a primary
 * context again. */
void kiln__cpu_context_end(CUcontext context);
CUresult kiln__cpu_context_begin(CUcontext context);
/* Frees the object of a context that was destroyed. */
void kiln__cpu_context_free(CUcontext context);
/* Returns whether `flags` are valid flags of cuCtxCreate. */
bool kiln__cpu_context_flags_ok(unsigned flags);

/* The first function pushes a context on the calling thread's context stack.
 * The second function pops the top entry, which must exist. Both return
 * CUDA_SUCCESS; the push may also return CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_push(CUcontext context);
void kiln__cpu_pop(void);

/* What a device is called. Available before cuInit. */
typedef struct kiln__cpu_identity {
  char name[96];
  unsigned char uuid[16];
  unsigned bus; /* PCI bus; domain and device are 0 */
} kiln__cpu_identity;

/* Stores the names of a device that exists. Defined in api_device.c. */
void kiln__cpu_device_identity(int device, kiln__cpu_identity *out);

#endif
