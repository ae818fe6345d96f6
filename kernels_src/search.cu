/* search.cu -- find where needles belong in a sorted sequence (lower or upper bound).
 *
 * Idea: the sequence is an implicit search tree. With steps of falling powers of two,
 * a needle advances by `step` whenever the last element of that step precedes it. The
 * probes of all steps down to `stride` are the last elements of whole strides. Each
 * block copies these to shared memory, so only the lower levels of the tree read the
 * sequence itself. A thread advances several needles together to overlap their loads.
 * Cost: log2 m probes per needle, of which log2 stride read global memory.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_ITEMS    4              needles per thread that are searched together
 *   KILN_SAMPLES  4096           elements kept in shared memory at most; 0: none
 *   KILN_UPPER    0              1: upper bound, behind elements equal to the needle
 *   KILN_LESS     0              1: user::less(s, a, b) is the order
 *   KILN_WIDE     0              1: the sequence has 2^31 elements or more
 *   KILN_INDEX    type unsigned  type of a result, unsigned or unsigned long long
 * Generated code (user.cuh): the needles; the sequence has their type.
 * Launch: block KILN_BLOCK, any grid: blocks stride over the tiles.
 *         sorted, m  the sequence
 *         stride     a power of two with m / stride <= KILN_SAMPLES
 *         n          number of needles
 *         out        n numbers
 * Result: out[i] is the number of elements that precede needle i (KILN_UPPER: that do
 *         not follow it). */
#include <kiln/params/search.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/order.cuh>
#include <kiln/user.cuh>

#if KILN_WIDE
typedef unsigned long long place;
#else
typedef unsigned place;
#endif
typedef unsigned long long count;

static __device__ __forceinline__ bool precedes(const user::args &s,
                                                user::value a, user::value b)
{
#if KILN_LESS
  return user::less(s, a, b);
#else
  (void)s;
  return kiln::comes_before(a, b);
#endif
}

/* Does the needle belong behind this element? */
static __device__ __forceinline__ bool
is_behind(const user::args &s, user::value element, user::value needle)
{
  return KILN_UPPER ? !precedes(s, needle, element)
                    : precedes(s, element, needle);
}

static __device__ __forceinline__ place top_step(place m)
{
#if KILN_WIDE
  return m == 0 ? 0 : 1ull << (63 - __clzll(static_cast<long long>(m)));
#else
  return m == 0 ? 0 : 1u << (31 - __clz(static_cast<int>(m)));
#endif
}

#if KILN_SAMPLES > 0
/* One bank stays free after every 32 entries. The probes of one level are
 * powers of two apart and would otherwise share a bank. */
__shared__ user::stored sample[KILN_SAMPLES + KILN_SAMPLES / 32];

static __device__ __forceinline__ unsigned slot(unsigned i)
{
  return i + i / 32;
}

static __device__ __forceinline__ void take_samples(const user::stored *sorted,
                                                    place m, place stride)
{
  const unsigned n = static_cast<unsigned>(m / stride);

#pragma unroll 4
  for (unsigned i = threadIdx.x; i < n; i += KILN_BLOCK)
    sample[slot(i)] = sorted[(i + static_cast<place>(1)) * stride - 1];
  __syncthreads();
}
#endif

/* Searches all needles of a thread together, so that their loads overlap. */
static __device__ __forceinline__ void
find(const user::args &s, const user::stored *sorted, place m, place stride,
     const user::value (&needle)[KILN_ITEMS], place (&at)[KILN_ITEMS])
{
  place step = top_step(m);

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    at[k] = 0;
#if KILN_SAMPLES > 0
  const unsigned log2 = static_cast<unsigned>(__ffsll(stride)) - 1;

#pragma unroll 1
  for (; step >= stride && step > 0; step /= 2)
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= m - at[k] &&
          is_behind(s,
                    kiln::widen(sample[slot(
                        static_cast<unsigned>((at[k] + step) >> log2) - 1)]),
                    needle[k]))
        at[k] += step;
#endif
#pragma unroll 1
  for (; step > 0; step /= 2) {
    user::value element[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) /* stays within the sequence */
      element[k] =
          kiln::load(sorted + (step <= m - at[k] ? at[k] + step - 1 : m - 1));
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (step <= m - at[k] && is_behind(s, element[k], needle[k]))
        at[k] += step;
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    search(const user::args s, const user::stored *sorted, unsigned long long m,
           unsigned long long stride, unsigned long long n, KILN_INDEX *out)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const place size = static_cast<place>(m);

#if KILN_SAMPLES > 0
  take_samples(sorted, size, static_cast<place>(stride));
#endif
#pragma unroll 1
  for (count first = blockIdx.x * tile; first < n; first += gridDim.x * tile) {
    user::value needle[KILN_ITEMS];
    place at[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const count i = first + k * KILN_BLOCK + threadIdx.x;

      needle[k] = user::load(s, i < n ? i : n - 1);
    }
    find(s, sorted, size, static_cast<place>(stride), needle, at);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const count i = first + k * KILN_BLOCK + threadIdx.x;

      if (i < n)
        out[i] = static_cast<KILN_INDEX>(at[k]);
    }
  }
}

#include <kiln/user_texts.cuh>
