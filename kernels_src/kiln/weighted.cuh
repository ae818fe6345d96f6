/* weighted.cuh -- arithmetic of weighted sums, and the defaults of their two functions in
 * namespace user. */
#ifndef KILN_WEIGHTED_CUH
#define KILN_WEIGHTED_CUH

#include <kiln/user.cuh>

namespace kiln
{

/* Returns a + w * x, rounded once; integers wrap. */
template <class A> __device__ __forceinline__ A multiply_add(A w, A x, A a)
{
  typedef typename unsigned_of<sizeof(A)>::type bits;

  return static_cast<A>(static_cast<bits>(a) +
                        static_cast<bits>(w) * static_cast<bits>(x));
}

__device__ __forceinline__ float multiply_add(float w, float x, float a)
{
  return __fmaf_rn(w, x, a);
}

__device__ __forceinline__ double multiply_add(double w, double x, double a)
{
  return __fma_rn(w, x, a);
}

/* Converts a weight to the type of the sum. Negative weights of sums of unsigned
 * integers wrap, like the products. */
template <class A, class W> __device__ __forceinline__ A as_weight(W w)
{
  constexpr bool to_integer = static_cast<A>(0.5) == static_cast<A>(0);

  return to_integer ? static_cast<A>(static_cast<long long>(w))
                    : static_cast<A>(w);
}

/* Returns multiply_add(w, x, a). Such instructions on floats keep their order. */
template <class A>
__device__ __forceinline__ A multiply_add_in_order(A w, A x, A a)
{
  return multiply_add(w, x, a);
}

__device__ __forceinline__ float multiply_add_in_order(float w, float x,
                                                       float a)
{
  float sum;

  asm volatile("fma.rn.f32 %0, %1, %2, %3;"
               : "=f"(sum)
               : "f"(w), "f"(x), "f"(a));
  return sum;
}

} // namespace kiln

#if !KILN_GENERATED
namespace user
{

static __device__ __forceinline__ KILN_ACC weight(const args &, unsigned a,
                                                  unsigned)
{
  return static_cast<KILN_ACC>(a + 1) / static_cast<KILN_ACC>(8);
}

static __device__ __forceinline__ kiln::compute_t<KILN_OUT>
finish(const args &, KILN_ACC a, KILN_ACC)
{
  return static_cast<kiln::compute_t<KILN_OUT>>(a);
}

} // namespace user
#endif

#endif
