/* complex.cuh -- complex numbers, the elements of the types c64 and c128. The library
 * includes this header if a call has such elements. The user's expressions find the
 * functions and operators by their operands. */
#ifndef KILN_COMPLEX_CUH
#define KILN_COMPLEX_CUH

#include <kiln/types.cuh>

namespace kiln
{

template <class R> struct alignas(2 * sizeof(R)) complex {
  R re, im;

  complex() = default;
  __device__ __forceinline__ constexpr complex(R real, R imaginary = R(0))
      : re(real), im(imaginary)
  {
  }
  template <class S>
  explicit __device__ __forceinline__ constexpr complex(const complex<S> &v)
      : re(static_cast<R>(v.re)), im(static_cast<R>(v.im))
  {
  }

  /* The operators are friends, so that a real operand is converted. */
  friend __device__ __forceinline__ complex operator+(complex a, complex b)
  {
    return {a.re + b.re, a.im + b.im};
  }
  friend __device__ __forceinline__ complex operator-(complex a, complex b)
  {
    return {a.re - b.re, a.im - b.im};
  }
  friend __device__ __forceinline__ complex operator-(complex a)
  {
    return {-a.re, -a.im};
  }
  friend __device__ __forceinline__ complex operator*(complex a, complex b)
  {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /* Divides by the method of Smith (Algorithm 116: Complex Division, 1962), which
   * avoids the overflow of |b|^2. */
  friend __device__ __forceinline__ complex operator/(complex a, complex b)
  {
    const bool real = fabs(b.re) >= fabs(b.im);
    const R big = real ? b.re : b.im, small = real ? b.im : b.re;
    const R ratio = small / big, scale = big + small * ratio;

    return real ? complex((a.re + a.im * ratio) / scale,
                          (a.im - a.re * ratio) / scale)
                : complex((a.re * ratio + a.im) / scale,
                          (a.im * ratio - a.re) / scale);
  }
  friend __device__ __forceinline__ bool operator==(complex a, complex b)
  {
    return a.re == b.re && a.im == b.im;
  }
  friend __device__ __forceinline__ bool operator!=(complex a, complex b)
  {
    return !(a == b);
  }
  friend __device__ __forceinline__ complex conj(complex a)
  {
    return {a.re, -a.im};
  }
  friend __device__ __forceinline__ R norm(complex a)
  {
    return a.re * a.re + a.im * a.im;
  }
  friend __device__ __forceinline__ R abs(complex a)
  {
    return hypot(a.re, a.im);
  }
  friend __device__ __forceinline__ bool same_bits(complex a, complex b)
  {
    return kiln::same_bits(a.re, b.re) && kiln::same_bits(a.im, b.im);
  }
};

typedef complex<float> c64;
typedef complex<double> c128;

} // namespace kiln

/* The names of the types in generated code and in the user's expressions. */
typedef kiln::c64 kiln__c64;
typedef kiln::c128 kiln__c128;
typedef kiln::c64 complex64;
typedef kiln::c128 complex128;

#endif
