/* histogram.cu -- CUB's histograms with bins of equal width, with which `kiln bench`
 * compares Kiln. */
#include "peer.h"

#include <cub/device/device_histogram.cuh>

template <class T> static int even(const kiln_peer_call *c, int bins)
{
  return cub::DeviceHistogram::HistogramEven(c->temp, *c->temp_bytes, in<T>(c),
                                             out<unsigned>(c), bins + 1, 0,
                                             bins, count(c), stream(c));
}

PEER(histogram_256_u32)
{
  return even<unsigned>(c, 256);
}

PEER(histogram_4096_u32)
{
  return even<unsigned>(c, 4096);
}

PEER(histogram_256_u8)
{
  return even<unsigned char>(c, 256);
}
