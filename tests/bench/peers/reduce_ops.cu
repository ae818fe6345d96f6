/* reduce_ops.cu -- CUB's reductions, whole and by segment. */
#include "peer.h"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_transform.cuh>

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

struct greater_magnitude {
  __device__ float operator()(float a, float b) const
  {
    return fabsf(a) < fabsf(b) ? b : a;
  }
};

PEER(reduce_user_f32)
{
  return cub::DeviceReduce::Reduce(c->temp, *c->temp_bytes, in<float>(c),
                                   out<float>(c), count(c), greater_magnitude{},
                                   0.0f, stream(c));
}

struct squared {
  __host__ __device__ float operator()(float x) const
  {
    return x * x;
  }
};

/* Two calls: squares into out[1], then their sum. */
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

/* in[1]: offsets; in[2]: one u32 more than segments is behind them. */
static int segments(const kiln_peer_call *c, long long n)
{
  const unsigned *offsets = in<unsigned>(c, 1);

  return cub::DeviceSegmentedReduce::Sum(c->temp, *c->temp_bytes, in<float>(c),
                                         out<float>(c), n, offsets, offsets + 1,
                                         stream(c));
}

PEER(segmented_bags_f32)
{
  return segments(c, 1110000);
}

PEER(segmented_16_f32)
{
  return segments(c, count(c) / 16);
}

PEER(segmented_512_f32)
{
  return segments(c, count(c) / 512);
}
