/* reduce.cu -- CUB's reduction behind plain C functions: the peer that
 * `kiln bench reduce` loads. Device pointers, the caller's stream; every
 * function returns a cudaError_t. */
#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#define PEER extern "C" __attribute__((visibility("default")))

/* 300001 = 3.0.1 */
PEER int kiln_peer_version(void)
{
  return CUB_VERSION;
}

/* The primary context of this GPU is used from now on in this thread. */
PEER int kiln_peer_device(int ordinal)
{
  return cudaSetDevice(ordinal);
}

/* With temp NULL: only *temp_bytes is set. */
PEER int kiln_peer_reduce_sum_f32(const float *x, size_t n, float *out,
                                  void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceReduce::Sum(temp, *temp_bytes, x, out,
                                static_cast<long long>(n),
                                static_cast<cudaStream_t>(stream));
}
