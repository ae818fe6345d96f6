/* histogram_bins.cuh -- the bin of a sample, and the shared memory of the histograms.
 *
 * A program defines the parameters KILN_MODE, KILN_PLAIN, KILN_ALL, KILN_WIDE and
 * KILN_SHARED of histogram.cu, and includes user.cuh, before it includes this file. */
#ifndef KILN_HISTOGRAM_BINS_CUH
#define KILN_HISTOGRAM_BINS_CUH

#include <kiln/user.cuh>

/* Formulas that map a sample to the index of its bin. */
enum : unsigned {
  mode_shift = 0, /* bin = (sample - lower) >> shift */
  /* bin = (sample - lower) * bins / range, for a range up to 2^32 */
  mode_scale = 1,
  mode_wide = 2,  /* bin = (sample - lower) * bins / range, for any range */
  mode_float = 3, /* bin = (sample - from) * scale, for floats */
  mode_levels = 4 /* the bin is found by a binary search in the levels */
};

/* The parameters of the formulas that map a sample to its bin. The host sets
 * the members that the mode uses. */
struct bounds {
  unsigned long long lower; /* lower bound of integer samples */
  unsigned long long last;  /* size of the range of integer samples, minus 1 */
  /* In mode_scale, `low` is 2^64 * bins / range, rounded up. In mode_wide, `high`
   * and `low` are the words of 2^128 * (bins % range) / range. */
  unsigned long long low;
  unsigned long long high;
  /* Lower bound, upper bound, and number of bins per unit. */
  double from, below, scale;
  unsigned shift;
  unsigned times; /* integer part of bins / range */
  unsigned bins;
  unsigned slice; /* number of bins per slice; blockIdx.y is the slice */
};

typedef kiln::unsigned_of<KILN_WIDE ? 8 : 4>::type distance;

static constexpr unsigned nowhere = ~0u;

/* ---- The bin of a sample ------------------------------------------------- */

/* KILN_MAY_BE_UNUSED marks functions that are used only with some values of the
 * kernel's parameters. */
#define KILN_MAY_BE_UNUSED __attribute__((unused))

/* Returns the integer part of d * (high * 2^64 + low) / 2^128. The result is
 * exact for all d within the range. */
static __device__ __forceinline__ KILN_MAY_BE_UNUSED unsigned
scale_wide(unsigned long long d, unsigned long long low,
           unsigned long long high)
{
  const unsigned long long carry = __umul64hi(d, low);
  const unsigned long long sum = d * high + carry;

  return static_cast<unsigned>(__umul64hi(d, high) + (sum < carry ? 1 : 0));
}

static __device__ __forceinline__ KILN_MAY_BE_UNUSED unsigned
scale_narrow(unsigned d, unsigned long long by)
{
  const unsigned low = static_cast<unsigned>(by);
  const unsigned high = static_cast<unsigned>(by >> 32);

  return static_cast<unsigned>(
      (static_cast<unsigned long long>(d) * high + __umulhi(d, low)) >> 32);
}

/* Returns the number of levels that are less than or equal to the sample. For a
 * NaN, the number is 0, since each comparison is false. */
template <class T>
static __device__ __forceinline__ unsigned
count_levels(const T *levels, unsigned n, kiln::compute_t<T> sample)
{
  unsigned below = 0;

  for (unsigned step = 1u << (31 - __clz(static_cast<int>(n))); step > 0;
       step /= 2)
    if (below + step <= n &&
        !(sample < (KILN_SHARED ? kiln::widen(levels[below + step - 1])
                                : kiln::load(levels + below + step - 1))))
      below += step;
  return below;
}

/* finder<mode>::bin() returns the bin of a sample. For a sample that belongs to
 * no bin, the result is at least the number of bins. */
template <unsigned mode> struct finder {
  template <class V>
  static __device__ __forceinline__ unsigned bin(V sample, const bounds &to,
                                                 const user::stored *)
  {
    const distance d = static_cast<distance>(sample) -
                       static_cast<distance>(KILN_PLAIN ? 0 : to.lower);

    if (mode == mode_shift) {
      const distance at = KILN_PLAIN ? d : d >> to.shift;

      return sizeof at > 4 && !KILN_ALL && at > static_cast<distance>(nowhere)
                 ? nowhere
                 : static_cast<unsigned>(at);
    }
    if (!KILN_ALL && d > static_cast<distance>(to.last))
      return nowhere;
    return mode == mode_scale ? scale_narrow(static_cast<unsigned>(d), to.low)
                              : static_cast<unsigned>(d) * to.times +
                                    scale_wide(d, to.low, to.high);
  }
};

template <> struct finder<mode_float> {
  template <class V>
  static __device__ __forceinline__ unsigned bin(V sample, const bounds &to,
                                                 const user::stored *)
  {
    const V from = static_cast<V>(to.from);
    unsigned at;

    if (!(sample >= from && sample < static_cast<V>(to.below)))
      return nowhere;
    at = static_cast<unsigned>((sample - from) * static_cast<V>(to.scale));
    /* The product may have been rounded up to the number of bins. */
    return at < to.bins ? at : to.bins - 1;
  }
};

template <> struct finder<mode_levels> {
  template <class V>
  static __device__ __forceinline__ unsigned bin(V sample, const bounds &to,
                                                 const user::stored *levels)
  {
    return count_levels(levels, to.bins + 1, sample) - 1;
  }
};

#endif
