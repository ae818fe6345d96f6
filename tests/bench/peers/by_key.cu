/* by_key.cu -- CUB's reduction and scan by key, its arg-min of an array and per segment,
 * and Thrust's minimum and maximum, with which `kiln bench` compares Kiln. */
#include "peer.h"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

/* in[0] has the keys and in[1] the values. out[0] receives the sums, out[1] the number of
 * runs, and out[2] the keys. */
PEER(reduce_by_key_u32)
{
  return cub::DeviceReduce::ReduceByKey(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c, 2),
      in<unsigned>(c, 1), out<unsigned>(c), out<unsigned>(c, 1),
      cuda::std::plus<unsigned>{}, count(c), stream(c));
}

PEER(scan_by_key_u32)
{
  return cub::DeviceScan::InclusiveSumByKey(
      c->temp, *c->temp_bytes, in<unsigned>(c), in<unsigned>(c, 1),
      out<unsigned>(c), count(c), cuda::std::equal_to<>{}, stream(c));
}

/* out[0] receives the least value, and out[1] its index. */
PEER(arg_min_f32)
{
  return cub::DeviceReduce::ArgMin(c->temp, *c->temp_bytes, in<float>(c),
                                   out<float>(c), out<long long>(c, 1),
                                   count(c), stream(c));
}

/* Thrust returns the result on the host, so the function waits for the GPU. */
PEER(minmax_f32)
{
  const float *x = in<float>(c);

  if (needs_nothing(c))
    return 0;
  static_cast<void>(
      thrust::minmax_element(thrust::cuda::par.on(stream(c)), x, x + c->n));
  return cudaGetLastError();
}

struct thousands {
  __host__ __device__ long long operator()(long long i) const
  {
    return i * 1000;
  }
};

/* out[0] receives pairs of index and value, one per 1,000 elements. */
PEER(arg_min_rows_f32)
{
  const auto offsets = thrust::make_transform_iterator(
      thrust::make_counting_iterator(0ll), thousands{});

  return cub::DeviceSegmentedReduce::ArgMin(
      c->temp, *c->temp_bytes, in<float>(c),
      out<cub::KeyValuePair<int, float>>(c), count(c) / 1000, offsets,
      offsets + 1, stream(c));
}
