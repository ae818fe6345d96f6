/* order.cuh -- the default order of keys, which is the order that kiln_sort() produces.
 * Integers have their usual order. Floats have the IEEE total order, except that all
 * NaNs are equal and follow +infinity. So -0 precedes +0. */
#ifndef KILN_ORDER_CUH
#define KILN_ORDER_CUH

#include <kiln/types.cuh>

namespace kiln
{

/* Maps a float to an unsigned integer such that integers compare in the order
 * of the floats. */
__device__ __forceinline__ unsigned order_bits(float v)
{
  const unsigned bits = __float_as_uint(v);

  return v != v ? ~0u : bits ^ ((bits >> 31) != 0 ? ~0u : 0x80000000u);
}

__device__ __forceinline__ unsigned long long order_bits(double v)
{
  const unsigned long long bits =
      static_cast<unsigned long long>(__double_as_longlong(v));

  return v != v ? ~0ull
                : bits ^ ((bits >> 63) != 0 ? ~0ull : 0x8000000000000000ull);
}

template <class V> __device__ __forceinline__ bool comes_before(V a, V b)
{
  return a < b;
}

__device__ __forceinline__ bool comes_before(float a, float b)
{
  return order_bits(a) < order_bits(b);
}

__device__ __forceinline__ bool comes_before(double a, double b)
{
  return order_bits(a) < order_bits(b);
}

} // namespace kiln

#endif
