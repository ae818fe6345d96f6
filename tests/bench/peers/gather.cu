/* gather.cu -- Thrust's gather and scatter, with which `kiln bench` compares Kiln.
 * in[1] contains the indices. */
#include "peer.h"

#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>

PEER(gather_f32)
{
  if (needs_nothing(c))
    return 0;
  thrust::gather(thrust::cuda::par_nosync.on(stream(c)), in<unsigned>(c, 1),
                 in<unsigned>(c, 1) + c->n, in<float>(c), out<float>(c));
  return cudaPeekAtLastError();
}

PEER(scatter_f32)
{
  if (needs_nothing(c))
    return 0;
  thrust::scatter(thrust::cuda::par_nosync.on(stream(c)), in<float>(c),
                  in<float>(c) + c->n, in<unsigned>(c, 1), out<float>(c));
  return cudaPeekAtLastError();
}
