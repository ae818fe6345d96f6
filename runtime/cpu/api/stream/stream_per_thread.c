/* stream_per_thread.c -- implements the variants of functions with the suffix
 * _ptsz or _ptds. In these variants, stream NULL means the calling thread's own
 * default stream.
 *
 * Each variant increments a counter of the thread, calls the ordinary function,
 * and decrements the counter again. kiln__cpu_stream_of() reads the counter
 * when the stream is NULL. */
#include "streams.h"

#define KILN__STREAM_FN(name, symbol, need, since, result, params, form,       \
                        form_since, args)                                      \
  result kiln__cpu_##name##PerThread params                                    \
  {                                                                            \
    kiln__cpu_thread *t = kiln__cpu_this_thread();                             \
    result rc;                                                                 \
                                                                               \
    if (t == NULL)                                                             \
      return CUDA_ERROR_OUT_OF_MEMORY;                                         \
    t->per_thread++;                                                           \
    rc = kiln__cpu_##name args;                                                \
    t->per_thread--;                                                           \
    return rc;                                                                 \
  }
#include "../entry_points.def"
