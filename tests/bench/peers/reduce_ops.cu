/* reduce_ops.cu -- CUB's reductions of arrays and of segments, with which `kiln bench`
 * compares Kiln. */
#include "peer.h"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_transform.cuh>
#include <cublas_v2.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

template <class T> static int sum(const kiln_peer_call *c)
{
  return cub::DeviceReduce::Sum(c->temp, *c->temp_bytes, in<T>(c), out<T>(c),
                                count(c), stream(c));
}

template <class T> static int max(const kiln_peer_call *c)
{
  return cub::DeviceReduce::Max(c->temp, *c->temp_bytes, in<T>(c), out<T>(c),
                                count(c), stream(c));
}

PEER(reduce_sum_u32)
{
  return sum<unsigned>(c);
}

PEER(reduce_sum_float)
{
  return sum<float>(c);
}

PEER(reduce_sum_f64)
{
  return sum<double>(c);
}

PEER(reduce_max_f32)
{
  return max<float>(c);
}

PEER(reduce_max_u32)
{
  return max<unsigned>(c);
}

struct larger {
  __device__ float operator()(float a, float b) const
  {
    return a > b ? a : b;
  }
};

PEER(reduce_user_f32)
{
  return cub::DeviceReduce::Reduce(c->temp, *c->temp_bytes, in<float>(c),
                                   out<float>(c), count(c), larger{}, -INFINITY,
                                   stream(c));
}

struct squared {
  __host__ __device__ float operator()(float x) const
  {
    return x * x;
  }
};

/* The function makes two calls of CUB. The first stores the squares in out[1], and the
 * second sums them. */
PEER(map_then_reduce_f32)
{
  if (c->temp != nullptr) {
    const int st = cub::DeviceTransform::Transform(
        in<float>(c), out<float>(c, 1), count(c), squared{}, stream(c));

    if (st != 0)
      return st;
  }
  return cub::DeviceReduce::Sum(c->temp, *c->temp_bytes,
                                static_cast<const float *>(out<float>(c, 1)),
                                out<float>(c), count(c), stream(c));
}

PEER(dot_f32)
{
  /* The first call creates the handle and is not timed. */
  static cublasHandle_t handle;

  if (needs_nothing(c))
    return 0;
  if (handle == nullptr) {
    cublasCreate(&handle);
    cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  }
  cublasSetStream(handle, stream(c));
  return cublasSdot_64(handle, static_cast<int64_t>(c->n), in<float>(c, 0), 1,
                       in<float>(c, 1), 1, out<float>(c));
}

/* in[1] contains the segment offsets, one more than the number of segments. */
PEER(segmented_bags_f32)
{
  const unsigned *offsets = in<unsigned>(c, 1);

  return cub::DeviceSegmentedReduce::Sum(c->temp, *c->temp_bytes, in<float>(c),
                                         out<float>(c), 1110000, offsets,
                                         offsets + 1, stream(c));
}

struct times {
  long long width;
  __host__ __device__ long long operator()(long long i) const
  {
    return i * width;
  }
};

/* The offsets are computed and not loaded, so they cause no memory traffic. */
static int fixed_width(const kiln_peer_call *c, long long width)
{
  const auto offsets = thrust::make_transform_iterator(
      thrust::make_counting_iterator(0ll), times{width});

  return cub::DeviceSegmentedReduce::Sum(c->temp, *c->temp_bytes, in<float>(c),
                                         out<float>(c), count(c) / width,
                                         offsets, offsets + 1, stream(c));
}

PEER(segmented_16_f32)
{
  return fixed_width(c, 16);
}

PEER(segmented_512_f32)
{
  return fixed_width(c, 512);
}

struct is_odd {
  __host__ __device__ unsigned operator()(unsigned x) const
  {
    return x % 2;
  }
};

/* Counts the odd elements. */
PEER(count_if_u32)
{
  return cub::DeviceReduce::TransformReduce(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c), count(c),
      cuda::std::plus<unsigned>{}, is_odd{}, 0u, stream(c));
}
