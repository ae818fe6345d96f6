/* sets.cu -- Thrust's set operations, with which `kiln bench sets` compares Kiln. */
#include "peer.h"

#include <thrust/execution_policy.h>
#include <thrust/set_operations.h>

/* Combines in[0] and in[1], which have half of the n keys each. The number of
 * results is known to the host when the call returns. */
#define SET_PEER(name)                                                         \
  PEER(set_##name##_u32)                                                       \
  {                                                                            \
    const unsigned *a = in<unsigned>(c, 0), *b = in<unsigned>(c, 1);           \
    const size_t half = c->n / 2;                                              \
                                                                               \
    if (needs_nothing(c))                                                      \
      return 0;                                                                \
    thrust::set_##name(thrust::cuda::par.on(stream(c)), a, a + half, b,        \
                       b + half, out<unsigned>(c));                            \
    return cudaPeekAtLastError();                                              \
  }

SET_PEER(union)
SET_PEER(intersection)
SET_PEER(difference)
SET_PEER(symmetric_difference)
