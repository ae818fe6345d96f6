/* stream_per_thread.c -- the forms of functions in which the stream NULL is the
 * calling thread's own default stream. */
#include "streams.h"

#define KILN__PER_THREAD(name, symbol, since, params, args)                    \
  CUresult kiln__cpu_##name##PerThread params                                  \
  {                                                                            \
    kiln__cpu_thread *t = kiln__cpu_this_thread();                             \
    CUresult rc;                                                               \
                                                                               \
    if (t == NULL)                                                             \
      return CUDA_ERROR_OUT_OF_MEMORY;                                         \
    t->per_thread++;                                                           \
    rc = kiln__cpu_##name args;                                                \
    t->per_thread--;                                                           \
    return rc;                                                                 \
  }
#include "../per_thread.def"
#undef KILN__PER_THREAD
