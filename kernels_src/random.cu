/* random.cu -- fill an array with random numbers (random.cuh).
 *
 * A thread computes whole blocks of the generator, 16 bytes of output at a time, since a
 * block contains several numbers. The first and the last thread of a sequence that starts or
 * ends inside a block write only the numbers that belong to the array.
 *
 * Parameters:
 *   KILN_BLOCK    256         threads per block
 *   KILN_ITEMS    2           vectors of 16 bytes per thread
 *   KILN_KIND     1           0 if the numbers are random bits; 1 for uniform numbers in
 *                             [0, 1); 2 for normal numbers; 3 for integers in a range
 *   KILN_T        type float  type of an element of out
 *   KILN_ALIGNED  1           1 if the vectors are aligned to 16 bytes in out
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK *
 *         KILN_ITEMS vectors, counted from vector offset / (16 / sizeof(KILN_T)) on.
 *         n          number of elements, at least 1
 *         out        n elements
 *         seed, stream  the sequence
 *         offset     index in the sequence of the number that becomes out[0]
 *         low        smallest integer of the range
 *         range      number of integers in the range, at least 1
 *         threshold  2^32 modulo range, or 2^64 modulo range for types of 8 bytes
 *         mean, deviation  of normal numbers
 * Result: out[i] is number offset + i of the sequence. */
#include <kiln/params/random.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/random.cuh>
#include <kiln/types.cuh>

enum kind { random_words, random_fractions, random_normals, random_range };

typedef unsigned long long count;
typedef kiln::compute_t<KILN_T> value;

enum : unsigned {
  vec = 16 / sizeof(KILN_T),
  each = sizeof(KILN_T) == 8 ? 2 : 4 /* numbers per block of the generator */
};

/* The arguments that are the same for all numbers. */
struct arguments {
  kiln::random_sequence from;
  count low, range, threshold;
  double mean, deviation;
};

/* A number of the generator with 32 or 64 bits. */
typedef kiln::unsigned_of<sizeof(KILN_T) == 8 ? 8 : 4>::type word;

/* Number of bits of a significand, and so of a uniform number. */
template <class T> struct digits {
  enum : unsigned { n = 0 };
};
template <> struct digits<kiln::f16> {
  enum : unsigned { n = 11 };
};
template <> struct digits<kiln::bf16> {
  enum : unsigned { n = 8 };
};
template <> struct digits<float> {
  enum : unsigned { n = 24 };
};
template <> struct digits<double> {
  enum : unsigned { n = 53 };
};

/* Splits a block into its numbers. */
static __device__ __forceinline__ void split(uint4 w, unsigned (&to)[4])
{
  to[0] = w.x;
  to[1] = w.y;
  to[2] = w.z;
  to[3] = w.w;
}

static __device__ __forceinline__ void split(uint4 w,
                                             unsigned long long (&to)[2])
{
  to[0] = kiln::random_pair(w.x, w.y);
  to[1] = kiln::random_pair(w.z, w.w);
}

static __device__ __forceinline__ float scaled(const arguments &by, float z)
{
  return __fmaf_rn(z, static_cast<float>(by.deviation),
                   static_cast<float>(by.mean));
}

static __device__ __forceinline__ double scaled(const arguments &by, double z)
{
  return __fma_rn(z, by.deviation, by.mean);
}

/* Converts a number other than a normal one. `i` is its index. */
static __device__ __forceinline__ value convert(const arguments &by, word w,
                                                count i)
{
  (void)by;
  (void)i;
#if KILN_KIND == 1
  constexpr unsigned n = digits<KILN_T>::n;

  return static_cast<value>(w >> (8 * sizeof w - n)) *
         (static_cast<value>(1) / static_cast<value>(1ull << n));
#elif KILN_KIND == 3
  return static_cast<value>(by.low +
                            kiln::random_scaled(w, static_cast<word>(by.range),
                                                static_cast<word>(by.threshold),
                                                by.from, i));
#else
  return static_cast<value>(w);
#endif
}

/* Computes the numbers of one block of the generator, of which the first has
 * index i. */
static __device__ __forceinline__ void compute(const arguments &by, count i,
                                               value *to)
{
  word w[each];

  split(kiln::random_block(by.from, i / each), w);
#if KILN_KIND == 2
#pragma unroll
  for (unsigned e = 0; e < each; e += 2) {
    const auto at = kiln::random_point(kiln::random_radius(w[e]), w[e + 1]);

    to[e] = scaled(by, at.x);
    to[e + 1] = scaled(by, at.y);
  }
#else
#pragma unroll
  for (unsigned e = 0; e < each; ++e)
    to[e] = convert(by, w[e], i + e);
#endif
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    fill_random(count n, KILN_T *out, count seed, unsigned stream, count offset,
                count low, count range, count threshold, double mean,
                double deviation)
{
  const arguments by = {{seed, stream}, low, range, threshold, mean, deviation};
  const count lead = offset % vec; /* numbers before out[0] in vector 0 */

#pragma unroll 1
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count group =
        (static_cast<count>(blockIdx.x) * KILN_ITEMS + k) * KILN_BLOCK +
        threadIdx.x;
    /* The index in out of the vector's first number; it wraps for the numbers
     * before out[0]. */
    const count at = group * vec - lead;
    value y[vec];

    if (group * vec >= n + lead)
      continue;
#pragma unroll
    for (unsigned b = 0; b < vec / each; ++b)
      compute(by, offset + at + b * each, y + b * each);
    if (KILN_ALIGNED && at < n && n - at >= vec) {
      kiln::store_vector<vec, true>(out + at, y);
      continue;
    }
#pragma unroll
    for (unsigned e = 0; e < vec; ++e)
      if (at + e < n)
        kiln::store(out + (at + e), y[e]);
  }
}
