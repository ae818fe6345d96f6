/* context.h -- the parts of a context's life that other files do. */
#ifndef KILN_CPU_CONTEXT_H
#define KILN_CPU_CONTEXT_H

#include "../stream/streams.h"

/* A context's end, in this order; nothing runs in it any more. */
void kiln__cpu_end_captures(CUcontext context); /* graph_capture.c */
void kiln__cpu_end_memory(
    CUcontext context); /* memory.c: reports leaks, frees */

/* context.c */
CUresult kiln__cpu_context_make(CUcontext *out, int device, unsigned flags,
                                bool primary);
/* Ends everything in it; the object itself stays, and can be set up again. */
void kiln__cpu_context_end(CUcontext context);
CUresult kiln__cpu_context_begin(CUcontext context);
void kiln__cpu_context_free(CUcontext context);
/* Scheduling flags in order? */
bool kiln__cpu_context_flags_ok(unsigned flags);

/* The calling thread's stack of contexts. */
CUresult kiln__cpu_push(CUcontext context);
void kiln__cpu_pop(void); /* not on an empty one */

#endif
