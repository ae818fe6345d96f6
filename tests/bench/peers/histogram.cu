/* histogram.cu -- CUB's histograms behind plain C functions. Device pointers, the
 * caller's stream; every function returns a cudaError_t. With temp NULL only
 * *temp_bytes is set. */
#include <cub/device/device_histogram.cuh>

#define PEER extern "C" __attribute__((visibility("default")))

namespace
{

template <class Sample, class Level>
int even(const Sample *x, size_t n, unsigned *counts, int bins, Level lower,
         Level upper, void *temp, size_t *temp_bytes, void *stream)
{
  return cub::DeviceHistogram::HistogramEven(
      temp, *temp_bytes, x, counts, bins + 1, lower, upper,
      static_cast<long long>(n), static_cast<cudaStream_t>(stream));
}

} // namespace

/* u8 samples in 256 bins. */
PEER int kiln_peer_histogram_u8(const unsigned char *x, size_t n,
                                unsigned *counts, void *temp,
                                size_t *temp_bytes, void *stream)
{
  return even(x, n, counts, 256, 0, 256, temp, temp_bytes, stream);
}

/* Samples from 0 to bins - 1. */
PEER int kiln_peer_histogram_u32(const unsigned *x, size_t n, unsigned *counts,
                                 int bins, void *temp, size_t *temp_bytes,
                                 void *stream)
{
  return even(x, n, counts, bins, 0u, static_cast<unsigned>(bins), temp,
              temp_bytes, stream);
}

PEER int kiln_peer_histogram_f32(const float *x, size_t n, unsigned *counts,
                                 int bins, float lower, float upper, void *temp,
                                 size_t *temp_bytes, void *stream)
{
  return even(x, n, counts, bins, lower, upper, temp, temp_bytes, stream);
}

/* bins + 1 levels. */
PEER int kiln_peer_histogram_levels_f32(const float *x, size_t n,
                                        unsigned *counts, int bins,
                                        const float *levels, void *temp,
                                        size_t *temp_bytes, void *stream)
{
  return cub::DeviceHistogram::HistogramRange(
      temp, *temp_bytes, x, counts, bins + 1, levels, static_cast<long long>(n),
      static_cast<cudaStream_t>(stream));
}
