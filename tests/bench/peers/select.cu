/* select.cu -- CUB's selections, partitions and run-length encoding, and Thrust's find
 * and count, with which `kiln bench` compares Kiln. The predicate is true for odd
 * elements. out[0] receives the elements, out[1] the number of elements (u32), and
 * out[2] the lengths of runs. */
#include "peer.h"

#include <cub/device/device_partition.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/find.h>

struct odd {
  template <class T> __host__ __device__ bool operator()(T x) const
  {
    return x % 2 != 0;
  }
};

template <class T> static int select_if(const kiln_peer_call *c)
{
  return cub::DeviceSelect::If(c->temp, *c->temp_bytes, in<T>(c), out<T>(c),
                               out<unsigned>(c, 1), count(c), odd{}, stream(c));
}

template <class T> static int partition_if(const kiln_peer_call *c)
{
  return cub::DevicePartition::If(c->temp, *c->temp_bytes, in<T>(c), out<T>(c),
                                  out<unsigned>(c, 1), count(c), odd{},
                                  stream(c));
}

#define BOTH(name, type)                                                       \
  PEER(select_if_##name)                                                       \
  {                                                                            \
    return select_if<type>(c);                                                 \
  }                                                                            \
  PEER(partition_if_##name)                                                    \
  {                                                                            \
    return partition_if<type>(c);                                              \
  }

BOTH(u8, unsigned char)
BOTH(u16, unsigned short)
BOTH(u32, unsigned)
BOTH(u64, unsigned long long)

/* in[1] contains one flag byte per element. */
PEER(select_flagged_u32)
{
  return cub::DeviceSelect::Flagged(c->temp, *c->temp_bytes, in<unsigned>(c),
                                    in<unsigned char>(c, 1), out<unsigned>(c),
                                    out<unsigned>(c, 1), count(c), stream(c));
}

PEER(unique_u32)
{
  return cub::DeviceSelect::Unique(c->temp, *c->temp_bytes, in<unsigned>(c),
                                   out<unsigned>(c), out<unsigned>(c, 1),
                                   count(c), stream(c));
}

PEER(run_length_u32)
{
  return cub::DeviceRunLengthEncode::Encode(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c),
      out<unsigned>(c, 2), out<unsigned>(c, 1), count(c), stream(c));
}

/* out[0] receives the starts of runs of two or more, and out[2] their lengths. */
PEER(non_trivial_runs_u32)
{
  return cub::DeviceRunLengthEncode::NonTrivialRuns(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c),
      out<unsigned>(c, 2), out<unsigned>(c, 1), count(c), stream(c));
}

struct above_2 {
  __host__ __device__ bool operator()(float x) const
  {
    return x > 2;
  }
};

/* Thrust returns this result on the host, so the function waits for the GPU. */
PEER(find_above_2_f32)
{
  const float *x = in<float>(c);

  if (needs_nothing(c))
    return 0;
  static_cast<void>(
      thrust::find_if(thrust::cuda::par.on(stream(c)), x, x + c->n, above_2{}));
  return cudaGetLastError();
}

PEER(count_odd_u32)
{
  const unsigned *x = in<unsigned>(c);

  if (needs_nothing(c))
    return 0;
  static_cast<void>(
      thrust::count_if(thrust::cuda::par.on(stream(c)), x, x + c->n, odd{}));
  return cudaGetLastError();
}
