/* map.cu -- CUB's transformations and adjacent difference, and cuBLAS's saxpy, with which
 * `kiln bench` compares Kiln. */
#include "peer.h"

#include <cub/device/device_adjacent_difference.cuh>
#include <cub/device/device_transform.cuh>
#include <cublas_v2.h>
#include <cuda/std/tuple>

template <class T> struct scaled {
  __host__ __device__ T operator()(T x) const
  {
    return static_cast<T>(x * 2 + 1);
  }
};

template <class T> struct added {
  __host__ __device__ T operator()(T x, T y) const
  {
    return static_cast<T>(x + y);
  }
};

template <class T> static int unary(const kiln_peer_call *c)
{
  if (needs_nothing(c))
    return 0;
  return cub::DeviceTransform::Transform(in<T>(c), out<T>(c), count(c),
                                         scaled<T>{}, stream(c));
}

template <class T> static int binary(const kiln_peer_call *c)
{
  if (needs_nothing(c))
    return 0;
  return cub::DeviceTransform::Transform(
      cuda::std::make_tuple(in<T>(c, 0), in<T>(c, 1)), out<T>(c), count(c),
      added<T>{}, stream(c));
}

#define BOTH(name, type)                                                       \
  PEER(map_unary_##name)                                                       \
  {                                                                            \
    return unary<type>(c);                                                     \
  }                                                                            \
  PEER(map_binary_##name)                                                      \
  {                                                                            \
    return binary<type>(c);                                                    \
  }

BOTH(f32, float)
BOTH(u8, unsigned char)
BOTH(i16, short)

/* Returns the cuBLAS handle of the process. The first call creates the handle and
 * is not timed. */
static cublasHandle_t handle(const kiln_peer_call *c)
{
  static cublasHandle_t made;

  if (made == nullptr)
    cublasCreate(&made);
  cublasSetStream(made, stream(c));
  return made;
}

/* Computes y = a x + y in place. */
PEER(saxpy_f32)
{
  /* With this factor, y grows in each repeated run but stays finite. */
  const float a = 0.5f;

  if (needs_nothing(c))
    return 0;
  return cublasSaxpy_64(handle(c), static_cast<int64_t>(c->n), &a, in<float>(c),
                        1, const_cast<float *>(in<float>(c, 1)), 1);
}

PEER(difference_u32)
{
  return cub::DeviceAdjacentDifference::SubtractLeftCopy(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c), count(c),
      cuda::std::minus<unsigned>{}, stream(c));
}
