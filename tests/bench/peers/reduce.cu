/* reduce.cu -- CUB's reduction as plain C functions, with which `kiln bench reduce`
 * compares Kiln. The functions receive device pointers, use the caller's stream, and
 * return a cudaError_t. */
#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#define PEER extern "C" __attribute__((visibility("default")))

/* Returns the version of CUB as a number; 300001 is version 3.0.1. */
PEER int kiln_peer_version(void)
{
  return CUB_VERSION;
}

/* Selects the primary context of a GPU for the calling thread. */
PEER int kiln_peer_device(int ordinal)
{
  return cudaSetDevice(ordinal);
}

/* If temp is NULL, the function only sets *temp_bytes. */
PEER int kiln_peer_reduce_sum_f32(const float *x, size_t n, float *out,
                                  void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceReduce::Sum(temp, *temp_bytes, x, out,
                                static_cast<long long>(n),
                                static_cast<cudaStream_t>(stream));
}
