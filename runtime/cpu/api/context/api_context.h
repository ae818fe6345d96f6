/* context.h -- the parts of a context's life that other files do. */
#ifndef KILN_CPU_CONTEXT_H
#define KILN_CPU_CONTEXT_H

#include "streams.h"

/* A context's end, in this order; nothing runs in it any more. */
void kiln__end_captures(CUcontext context); /* graph_capture.c */
void kiln__end_memory(CUcontext context);   /* memory.c: reports leaks, frees */

/* context.c */
CUresult kiln__context_make(CUcontext *out, int device, unsigned flags,
                            bool primary);
/* Ends everything in it; the object itself stays, and can be set up again. */
void kiln__context_end(CUcontext context);
CUresult kiln__context_begin(CUcontext context);
void kiln__context_free(CUcontext context);
/* Scheduling flags in order? */
bool kiln__context_flags_ok(unsigned flags);

/* The calling thread's stack of contexts. */
CUresult kiln__push(CUcontext context);
void kiln__pop(void); /* not on an empty one */

#endif
