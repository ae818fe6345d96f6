/* merge.cu -- CUB's merge and Thrust's binary search, with which `kiln bench` compares
 * Kiln. */
#include "peer.h"

#include <cub/device/device_merge.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

/* Merges in[0] and in[1], which have half of the n keys each. */
PEER(merge_u32)
{
  const long long half = count(c) / 2;

  return cub::DeviceMerge::MergeKeys(
      c->temp, *c->temp_bytes, in<unsigned>(c, 0), half, in<unsigned>(c, 1),
      half, out<unsigned>(c), cuda::std::less<unsigned>{}, stream(c));
}

/* Merges three fifths of the n keys, in in[0], with the other two fifths. */
PEER(merge_3_2_u32)
{
  const long long first = count(c) / 5 * 3;

  return cub::DeviceMerge::MergeKeys(
      c->temp, *c->temp_bytes, in<unsigned>(c, 0), first, in<unsigned>(c, 1),
      count(c) - first, out<unsigned>(c), cuda::std::less<unsigned>{},
      stream(c));
}

/* Searches for the n values of in[1] in the n sorted elements of in[0]. */
PEER(lower_bound_u32)
{
  const unsigned *sorted = in<unsigned>(c, 0), *needles = in<unsigned>(c, 1);

  if (needs_nothing(c))
    return 0;
  thrust::lower_bound(thrust::cuda::par_nosync.on(stream(c)), sorted,
                      sorted + c->n, needles, needles + c->n, out<unsigned>(c));
  return cudaPeekAtLastError();
}
