/* histogram.cu -- CUB's histograms with bins of equal width, with which `kiln bench`
 * compares Kiln, and sums of weights by atomics, which CUB lacks. */
#include "peer.h"

#include <cub/device/device_histogram.cuh>

template <class T> static int even(const kiln_peer_call *c, int bins)
{
  return cub::DeviceHistogram::HistogramEven(c->temp, *c->temp_bytes, in<T>(c),
                                             out<unsigned>(c), bins + 1, 0,
                                             bins, count(c), stream(c));
}

PEER(histogram_256_u32)
{
  return even<unsigned>(c, 256);
}

PEER(histogram_4096_u32)
{
  return even<unsigned>(c, 4096);
}

PEER(histogram_256_u8)
{
  return even<unsigned char>(c, 256);
}

static __global__ void add_weights(const unsigned *x, const unsigned *weight,
                                   long long n, float *sums)
{
  __shared__ float mine[256];

  mine[threadIdx.x] = 0;
  __syncthreads();
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n;
       i += gridDim.x * 256ll)
    atomicAdd(mine + x[i], static_cast<float>(weight[i]));
  __syncthreads();
  atomicAdd(sums + threadIdx.x, mine[threadIdx.x]);
}

PEER(weights_256_f32)
{
  const long long blocks = (count(c) + 2047) / 2048;

  if (needs_nothing(c))
    return 0;
  cudaMemsetAsync(out<float>(c), 0, 256 * sizeof(float), stream(c));
  add_weights<<<static_cast<unsigned>(blocks < 1056 ? blocks : 1056), 256, 0,
                stream(c)>>>(in<unsigned>(c), in<unsigned>(c, 1), count(c),
                             out<float>(c));
  return static_cast<int>(cudaGetLastError());
}
