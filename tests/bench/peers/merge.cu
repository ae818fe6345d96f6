/* merge.cu -- CUB's merges and Thrust's searches behind plain C functions. Device
 * pointers, the caller's stream; every function returns a cudaError_t. With temp
 * NULL only *temp_bytes is set. */
#include <cub/device/device_merge.cuh>
#include <thrust/binary_search.h>
#include <thrust/system/cuda/execution_policy.h>

#define PEER extern "C" __attribute__((visibility("default")))

namespace
{

auto queued(void *stream)
{
  return thrust::cuda::par_nosync.on(static_cast<cudaStream_t>(stream));
}

} // namespace

PEER int kiln_peer_merge_u32(const unsigned *a, size_t n_a, const unsigned *b,
                             size_t n_b, unsigned *out, void *temp,
                             size_t *temp_bytes, void *stream)
{
  return cub::DeviceMerge::MergeKeys(
      temp, *temp_bytes, a, static_cast<long long>(n_a), b,
      static_cast<long long>(n_b), out, cuda::std::less<unsigned>{},
      static_cast<cudaStream_t>(stream));
}

PEER int kiln_peer_merge_pairs_u32(const unsigned *a, const unsigned *a_values,
                                   size_t n_a, const unsigned *b,
                                   const unsigned *b_values, size_t n_b,
                                   unsigned *out, unsigned *out_values,
                                   void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceMerge::MergePairs(
      temp, *temp_bytes, a, a_values, static_cast<long long>(n_a), b, b_values,
      static_cast<long long>(n_b), out, out_values, cuda::std::less<unsigned>{},
      static_cast<cudaStream_t>(stream));
}

PEER int kiln_peer_lower_bound_u32(const unsigned *sorted, size_t m,
                                   const unsigned *needles, size_t n,
                                   unsigned *out, void *stream)
{
  thrust::lower_bound(queued(stream), sorted, sorted + m, needles, needles + n,
                      out);
  return cudaPeekAtLastError();
}

PEER int kiln_peer_upper_bound_u32(const unsigned *sorted, size_t m,
                                   const unsigned *needles, size_t n,
                                   unsigned *out, void *stream)
{
  thrust::upper_bound(queued(stream), sorted, sorted + m, needles, needles + n,
                      out);
  return cudaPeekAtLastError();
}
