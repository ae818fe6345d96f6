/* select.cu -- CUB's selections, partitions and runs behind plain C functions: the
 * peers of kiln_select(), kiln_unique(), kiln_partition(),
 * kiln_run_length_encode() and kiln_find(). Device pointers, the caller's stream;
 * every function returns a cudaError_t. With temp NULL only *temp_bytes is set. */
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/find.h>

#define PEER extern "C" __attribute__((visibility("default")))

namespace
{

struct odd {
  template <class T> __host__ __device__ bool operator()(T x) const
  {
    return x % 2 != 0;
  }
};

struct above {
  unsigned level;
  __host__ __device__ bool operator()(unsigned x) const
  {
    return x > level;
  }
};

cudaStream_t as_stream(void *stream)
{
  return static_cast<cudaStream_t>(stream);
}

long long as_count(size_t n)
{
  return static_cast<long long>(n);
}

template <class T>
int select_odd(const T *x, size_t n, T *out, unsigned long long *count,
               void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceSelect::If(temp, *temp_bytes, x, out, count, as_count(n),
                               odd{}, as_stream(stream));
}

template <class T>
int partition_odd(const T *x, size_t n, T *out, unsigned long long *count,
                  void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DevicePartition::If(temp, *temp_bytes, x, out, count, as_count(n),
                                  odd{}, as_stream(stream));
}

} // namespace

#define ODD(id, T)                                                             \
  PEER int kiln_peer_select_odd_##id(const T *x, size_t n, T *out,             \
                                     unsigned long long *count, void *temp,    \
                                     size_t *temp_bytes, void *stream)         \
  {                                                                            \
    return select_odd(x, n, out, count, temp, temp_bytes, stream);             \
  }                                                                            \
  PEER int kiln_peer_partition_odd_##id(const T *x, size_t n, T *out,          \
                                        unsigned long long *count, void *temp, \
                                        size_t *temp_bytes, void *stream)      \
  {                                                                            \
    return partition_odd(x, n, out, count, temp, temp_bytes, stream);          \
  }

ODD(u8, unsigned char)
ODD(u16, unsigned short)
ODD(u32, unsigned)
ODD(u64, unsigned long long)

/* Share of random u32 above `level`: any selectivity. */
PEER int kiln_peer_select_above_u32(const unsigned *x, size_t n, unsigned level,
                                    unsigned *out, unsigned long long *count,
                                    void *temp, size_t *temp_bytes,
                                    void *stream)
{
  return cub::DeviceSelect::If(temp, *temp_bytes, x, out, count, as_count(n),
                               above{level}, as_stream(stream));
}

PEER int kiln_peer_select_flagged_u32(const unsigned *x,
                                      const unsigned char *flags, size_t n,
                                      unsigned *out, unsigned long long *count,
                                      void *temp, size_t *temp_bytes,
                                      void *stream)
{
  return cub::DeviceSelect::Flagged(temp, *temp_bytes, x, flags, out, count,
                                    as_count(n), as_stream(stream));
}

PEER int kiln_peer_unique_u32(const unsigned *x, size_t n, unsigned *out,
                              unsigned long long *count, void *temp,
                              size_t *temp_bytes, void *stream)
{
  return cub::DeviceSelect::Unique(temp, *temp_bytes, x, out, count,
                                   as_count(n), as_stream(stream));
}

PEER int kiln_peer_run_length_encode_u32(const unsigned *x, size_t n,
                                         unsigned *values, unsigned *lengths,
                                         unsigned long long *count, void *temp,
                                         size_t *temp_bytes, void *stream)
{
  return cub::DeviceRunLengthEncode::Encode(temp, *temp_bytes, x, values,
                                            lengths, count, as_count(n),
                                            as_stream(stream));
}

/* CUB has no search of its own in this version; Thrust's waits for the result. */
PEER int kiln_peer_find_above_u32(const unsigned *x, size_t n, unsigned level,
                                  size_t *index, void *stream)
{
  *index = static_cast<size_t>(
      thrust::find_if(thrust::cuda::par_nosync.on(as_stream(stream)), x, x + n,
                      above{level}) -
      x);
  return cudaGetLastError();
}

PEER int kiln_peer_count_odd_u32(const unsigned *x, size_t n, size_t *count,
                                 void *stream)
{
  *count = static_cast<size_t>(thrust::count_if(
      thrust::cuda::par_nosync.on(as_stream(stream)), x, x + n, odd{}));
  return cudaGetLastError();
}
