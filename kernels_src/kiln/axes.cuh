/* axes.cuh -- the position of a run of indices over several axes of an array. */
#ifndef KILN_AXES_CUH
#define KILN_AXES_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

/* One axis. The strides are distances in elements between neighbours along the axis
 * in the input and in the output. The reciprocal is floor((2^32 - 1) / size), or
 * floor((2^64 - 1) / size) if indices have 64 bits. */
struct axis {
  unsigned long long size, reciprocal, in, out;
};

/* Returns i / size. The product with the reciprocal is the quotient, or one
 * less. */
static __device__ __forceinline__ unsigned axis_divide(const axis &by,
                                                       unsigned i)
{
  const unsigned size = static_cast<unsigned>(by.size);
  const unsigned q = __umulhi(i, static_cast<unsigned>(by.reciprocal));

  return q + (i - q * size >= size ? 1 : 0);
}

static __device__ __forceinline__ unsigned long long
axis_divide(const axis &by, unsigned long long i)
{
  const unsigned long long q = __umul64hi(i, by.reciprocal);

  return q + (i - q * by.size >= by.size ? 1 : 0);
}

/* Returns the offset in the input and in the output of index i over n axes, of
 * which axis 0 varies fastest; n may be 0. The last axis need not bound i. */
template <class count> struct place {
  count in, out;
};

template <class count>
static __device__ __forceinline__ place<count> place_of(const axis *axes,
                                                        unsigned n, count i)
{
  place<count> at = {0, 0};

  for (unsigned k = 0; k < n; ++k) {
    const count q = k + 1 < n ? axis_divide(axes[k], i) : 0;
    const count digit = i - q * static_cast<count>(axes[k].size);

    at.in += digit * static_cast<count>(axes[k].in);
    at.out += digit * static_cast<count>(axes[k].out);
    i = q;
  }
  return at;
}

} // namespace kiln

#endif
