/* scan.cu -- CUB's scans, with which `kiln bench scan` compares Kiln. */
#include "peer.h"

#include <cub/device/device_scan.cuh>
#include <cub/device/device_transform.cuh>

template <class T> static int inclusive_sum(const kiln_peer_call *c)
{
  return cub::DeviceScan::InclusiveSum(c->temp, *c->temp_bytes, in<T>(c),
                                       out<T>(c), count(c), stream(c));
}

template <class T> static int exclusive_sum(const kiln_peer_call *c)
{
  return cub::DeviceScan::ExclusiveSum(c->temp, *c->temp_bytes, in<T>(c),
                                       out<T>(c), count(c), stream(c));
}

struct greater {
  __device__ unsigned operator()(unsigned a, unsigned b) const
  {
    return a < b ? b : a;
  }
};

/* A complex number without alignment attributes, like cuda::std::complex. */
struct complex64 {
  float re, im;
};

struct complex_sum {
  __host__ __device__ complex64 operator()(complex64 a, complex64 b) const
  {
    return {a.re + b.re, a.im + b.im};
  }
};

struct scaled {
  __host__ __device__ unsigned operator()(unsigned x) const
  {
    return x * 3 + 1;
  }
};

PEER(scan_inclusive_u32)
{
  return inclusive_sum<unsigned>(c);
}

PEER(scan_exclusive_f32)
{
  return exclusive_sum<float>(c);
}

PEER(scan_exclusive_f64)
{
  return exclusive_sum<double>(c);
}

PEER(scan_exclusive_u8)
{
  return exclusive_sum<unsigned char>(c);
}

PEER(scan_exclusive_u16)
{
  return exclusive_sum<unsigned short>(c);
}

PEER(scan_inclusive_c64)
{
  return cub::DeviceScan::InclusiveScan(
      c->temp, *c->temp_bytes, in<complex64>(c), out<complex64>(c),
      complex_sum{}, count(c), stream(c));
}

PEER(scan_max_u32)
{
  return cub::DeviceScan::InclusiveScan(c->temp, *c->temp_bytes,
                                        in<unsigned>(c), out<unsigned>(c),
                                        greater{}, count(c), stream(c));
}

/* The function makes two calls of CUB. The first maps the input into out[1], and the
 * second scans out[1]. */
PEER(map_then_scan_u32)
{
  if (c->temp != nullptr) {
    const int st = cub::DeviceTransform::Transform(
        in<unsigned>(c), out<unsigned>(c, 1), count(c), scaled{}, stream(c));

    if (st != 0)
      return st;
  }
  return cub::DeviceScan::InclusiveSum(
      c->temp, *c->temp_bytes,
      static_cast<const unsigned *>(out<unsigned>(c, 1)), out<unsigned>(c),
      count(c), stream(c));
}
