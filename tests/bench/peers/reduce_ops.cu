/* reduce_ops.cu -- CUB's and cuBLAS' reductions: the peers of `kiln bench reduce`,
 * dot and segmented. Device pointers, the caller's stream; 0 or a code. With temp
 * NULL only *temp_bytes is set. */
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cublas_v2.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#define PEER extern "C" __attribute__((visibility("default")))

typedef long long count;

/* The user's operation of the benchmark: a maximum spelled out. */
template <class T> struct larger {
  __host__ __device__ T operator()(T a, T b) const
  {
    return a > b ? a : b;
  }
};

template <class T> struct squared {
  __host__ __device__ T operator()(T x) const
  {
    return x * x;
  }
};

template <class T>
static int sum(const void *x, size_t n, void *out, void *temp, size_t *bytes,
               void *stream)
{
  return cub::DeviceReduce::Sum(temp, *bytes, static_cast<const T *>(x),
                                static_cast<T *>(out), static_cast<count>(n),
                                static_cast<cudaStream_t>(stream));
}

template <class T>
static int max(const void *x, size_t n, void *out, void *temp, size_t *bytes,
               void *stream)
{
  return cub::DeviceReduce::Max(temp, *bytes, static_cast<const T *>(x),
                                static_cast<T *>(out), static_cast<count>(n),
                                static_cast<cudaStream_t>(stream));
}

template <class T>
static int user(const void *x, size_t n, void *out, void *temp, size_t *bytes,
                void *stream)
{
  return cub::DeviceReduce::Reduce(temp, *bytes, static_cast<const T *>(x),
                                   static_cast<T *>(out), static_cast<count>(n),
                                   larger<T>{}, T(0),
                                   static_cast<cudaStream_t>(stream));
}

/* Map then reduce: squares, summed. */
template <class T>
static int transform(const void *x, size_t n, void *out, void *temp,
                     size_t *bytes, void *stream)
{
  return cub::DeviceReduce::TransformReduce(
      temp, *bytes, static_cast<const T *>(x), static_cast<T *>(out),
      static_cast<count>(n), cuda::std::plus<T>{}, squared<T>{}, T(0),
      static_cast<cudaStream_t>(stream));
}

#define EACH(operation, name, type)                                            \
  PEER int kiln_peer_reduce_##operation##_##name(                              \
      const void *x, size_t n, void *out, void *temp, size_t *temp_bytes,      \
      void *stream)                                                            \
  {                                                                            \
    return operation<type>(x, n, out, temp, temp_bytes, stream);               \
  }
#define ALL(name, type)                                                        \
  EACH(max, name, type)                                                        \
  EACH(user, name, type)                                                       \
  EACH(transform, name, type)

/* The sum of f32 stands in reduce.cu. */
EACH(sum, u32, unsigned)
EACH(sum, f64, double)
ALL(f32, float)
ALL(u32, unsigned)
ALL(f64, double)

/* Value and index of the greatest: out[0] and index[0]. */
PEER int kiln_peer_arg_max_f32(const void *x, size_t n, void *out, void *index,
                               void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceReduce::ArgMax(
      temp, *temp_bytes, static_cast<const float *>(x),
      static_cast<float *>(out), static_cast<count *>(index),
      static_cast<count>(n), static_cast<cudaStream_t>(stream));
}

/* One handle for the process, made at the first call, which is not timed. The
 * result goes to device memory. */
static int cublas(cublasHandle_t *out, void *stream)
{
  static cublasHandle_t handle;
  cublasStatus_t st = CUBLAS_STATUS_SUCCESS;

  if (handle == nullptr) {
    st = cublasCreate(&handle);
    if (st == CUBLAS_STATUS_SUCCESS)
      st = cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  }
  if (st == CUBLAS_STATUS_SUCCESS)
    st = cublasSetStream(handle, static_cast<cudaStream_t>(stream));
  *out = handle;
  return st;
}

PEER int kiln_peer_dot_f32(const void *x, const void *y, size_t n, void *out,
                           void *stream)
{
  cublasHandle_t handle;
  const int st = cublas(&handle, stream);

  return st != 0 ? st
                 : cublasSdot_64(handle, static_cast<int64_t>(n),
                                 static_cast<const float *>(x), 1,
                                 static_cast<const float *>(y), 1,
                                 static_cast<float *>(out));
}

PEER int kiln_peer_norm_f32(const void *x, size_t n, void *out, void *stream)
{
  cublasHandle_t handle;
  const int st = cublas(&handle, stream);

  return st != 0 ? st
                 : cublasSnrm2_64(handle, static_cast<int64_t>(n),
                                  static_cast<const float *>(x), 1,
                                  static_cast<float *>(out));
}

/* Segments by offsets, n_segments + 1 of 32 bits. */
PEER int kiln_peer_segmented_sum_f32(const void *x, const void *offsets,
                                     size_t n_segments, void *out, void *temp,
                                     size_t *temp_bytes, void *stream)
{
  const unsigned *begin = static_cast<const unsigned *>(offsets);

  return cub::DeviceSegmentedReduce::Sum(
      temp, *temp_bytes, static_cast<const float *>(x),
      static_cast<float *>(out), static_cast<count>(n_segments), begin,
      begin + 1, static_cast<cudaStream_t>(stream));
}

/* Segments of one width, as CUB had it before it knew them: computed offsets. */
struct times {
  count width;
  __host__ __device__ count operator()(count i) const
  {
    return i * width;
  }
};

PEER int kiln_peer_segmented_width_f32(const void *x, size_t width,
                                       size_t n_segments, void *out, void *temp,
                                       size_t *temp_bytes, void *stream)
{
  const auto begin =
      thrust::make_transform_iterator(thrust::make_counting_iterator<count>(0),
                                      times{static_cast<count>(width)});

  return cub::DeviceSegmentedReduce::Sum(
      temp, *temp_bytes, static_cast<const float *>(x),
      static_cast<float *>(out), static_cast<count>(n_segments), begin,
      begin + 1, static_cast<cudaStream_t>(stream));
}
