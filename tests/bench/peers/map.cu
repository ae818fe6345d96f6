/* map.cu -- CUB's transformations and cuBLAS' saxpy: the peers of `kiln bench map`.
 * Device pointers, the caller's stream; 0 or a code. */
#include <cub/device/device_transform.cuh>
#include <cublas_v2.h>
#include <cuda/std/tuple>

#define PEER extern "C" __attribute__((visibility("default")))

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

template <class T>
static int unary(const void *x, size_t n, void *out, void *stream)
{
  return cub::DeviceTransform::Transform(static_cast<const T *>(x),
                                         static_cast<T *>(out),
                                         static_cast<long long>(n), scaled<T>{},
                                         static_cast<cudaStream_t>(stream));
}

template <class T>
static int binary(const void *x, const void *y, size_t n, void *out,
                  void *stream)
{
  return cub::DeviceTransform::Transform(
      cuda::std::make_tuple(static_cast<const T *>(x),
                            static_cast<const T *>(y)),
      static_cast<T *>(out), static_cast<long long>(n), added<T>{},
      static_cast<cudaStream_t>(stream));
}

#define BOTH(name, type)                                                       \
  PEER int kiln_peer_map_unary_##name(const void *x, size_t n, void *out,      \
                                      void *stream)                            \
  {                                                                            \
    return unary<type>(x, n, out, stream);                                     \
  }                                                                            \
  PEER int kiln_peer_map_binary_##name(const void *x, const void *y, size_t n, \
                                       void *out, void *stream)                \
  {                                                                            \
    return binary<type>(x, y, n, out, stream);                                 \
  }

BOTH(f32, float)
BOTH(u8, unsigned char)
BOTH(i16, short)

/* One handle for the process, made at the first call, which is not timed. */
PEER int kiln_peer_saxpy_f32(float a, const void *x, size_t n, void *y,
                             void *stream)
{
  static cublasHandle_t handle;
  cublasStatus_t st = CUBLAS_STATUS_SUCCESS;

  if (handle == nullptr)
    st = cublasCreate(&handle);
  if (st == CUBLAS_STATUS_SUCCESS)
    st = cublasSetStream(handle, static_cast<cudaStream_t>(stream));
  if (st == CUBLAS_STATUS_SUCCESS)
    st = cublasSaxpy_64(handle, static_cast<int64_t>(n), &a,
                        static_cast<const float *>(x), 1,
                        static_cast<float *>(y), 1);
  return st;
}
