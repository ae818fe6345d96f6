/* unaligned.cuh -- copy bytes in words of 16 bytes that are aligned at the destination only.
 *
 * A chunk is the part of a range of bytes that falls into one aligned word of the
 * destination. If the source of a whole chunk is not aligned, it is assembled from aligned
 * words of four bytes by funnel shifts. */
#ifndef KILN_UNALIGNED_CUH
#define KILN_UNALIGNED_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

typedef unsigned long long address;

/* Loads 16 bytes from any address. The aligned words around the bytes must be
 * readable. */
static __device__ __forceinline__ uint4 load_unaligned(address from)
{
  const unsigned shift = static_cast<unsigned>(from & 3) * 8;
  const unsigned *const word = reinterpret_cast<const unsigned *>(from & ~3ull);
  unsigned w[5];

  if ((from & 15) == 0)
    return __ldg(reinterpret_cast<const uint4 *>(from));
#pragma unroll
  for (unsigned k = 0; k < 4; ++k)
    w[k] = __ldg(word + k);
  w[4] = shift != 0 ? __ldg(word + 4) : 0;
  return {
      __funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
      __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift)};
}

/* Returns whether load_unaligned() reads nothing outside of a source of `size` bytes
 * when it loads from the byte at this offset. */
static __device__ __forceinline__ bool
loads_inside(address from, address offset, address size)
{
  return (from & 3) == 0 ? offset + 16 <= size
                         : offset >= 3 && offset + 19 <= size;
}

static __device__ __forceinline__ void copy_bytes(address to, address from,
                                                  unsigned n)
{
  if (((to | from | n) & 3) == 0) {
    for (unsigned k = 0; k < n; k += 4)
      *reinterpret_cast<unsigned *>(to + k) =
          __ldg(reinterpret_cast<const unsigned *>(from + k));
    return;
  }
  for (unsigned k = 0; k < n; ++k)
    *reinterpret_cast<unsigned char *>(to + k) =
        __ldg(reinterpret_cast<const unsigned char *>(from + k));
}

} // namespace kiln

#endif
