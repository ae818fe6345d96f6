/* random.cuh -- random numbers that are functions of a seed, a stream and an index.
 *
 * Problem: parallel programs need random numbers that do not depend on the number of
 * threads, and that are the same on every device.
 *
 * Idea: the generator Philox4x32-10 encrypts a counter of 128 bits with a key of 64 bits.
 * The key is the seed. The counter consists of the number of a block of four words (64
 * bits), the stream (32 bits) and an attempt (32 bits, see random_below()). Number i of a
 * sequence takes word i % 4 of block i / 4. Numbers of 64 bits take two words each, so
 * number i takes the words 2 * (i % 2) and 2 * (i % 2) + 1 of block i / 2.
 *
 * Invariant: each function consists of integer operations and of floating-point operations
 * that are rounded exactly (_rn). The compiler neither contracts nor reorders these, with
 * fast math neither. The bits are therefore the same for every target and compiler.
 *
 * Cost: ten rounds with two wide products each, for four numbers.
 *
 * Normal numbers: u and v are two numbers of the generator as fractions with all their
 * bits; a u of 0 counts as the next fraction. sqrt(-2 ln u) times the cosine and the sine
 * of 2 pi v are two independent numbers. The logarithm is computed from u = 2^-k (1 + f)
 * with |f| <= 1/3, where f comes from an exact integer, so that it is accurate near u = 1
 * too. The angle is reduced to eighths of a turn in integers. The relative error of a
 * number of type float is below 2^-21, of type double below 2^-50. The largest magnitude
 * is 6.66 for float and 9.42 for double. Coefficients: interpolation at Chebyshev nodes.
 *
 * Sources: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011), for Philox;
 * Box and Muller, A Note on the Generation of Random Normal Deviates (1958); Lemire, Fast
 * Random Integer Generation in an Interval (2019), for random_below().
 *
 * A user's preamble may include this file and call random_bits(), random_uniform(),
 * random_normal() and random_below() of namespace kiln with the index of a number.
 * They return the numbers that kiln_random() writes. */
#ifndef KILN_RANDOM_CUH
#define KILN_RANDOM_CUH

namespace kiln
{

/* Returns the four words into which Philox4x32-10 encrypts a counter. */
static __device__ __forceinline__ uint4 philox(uint4 counter, uint2 key)
{
#pragma unroll
  for (unsigned round = 0; round < 10; ++round) {
    const unsigned long long a = 0xd2511f53ull * counter.x;
    const unsigned long long b = 0xcd9e8d57ull * counter.z;

    counter = {static_cast<unsigned>(b >> 32) ^ counter.y ^ key.x,
               static_cast<unsigned>(b),
               static_cast<unsigned>(a >> 32) ^ counter.w ^ key.y,
               static_cast<unsigned>(a)};
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return counter;
}

/* A sequence of random numbers. */
struct random_sequence {
  unsigned long long seed;
  unsigned stream;
};

/* Returns the words of a block. */
static __device__ __forceinline__ uint4 random_block(random_sequence from,
                                                     unsigned long long block,
                                                     unsigned attempt = 0)
{
  const uint4 counter = {static_cast<unsigned>(block),
                         static_cast<unsigned>(block >> 32), from.stream,
                         attempt};
  const uint2 key = {static_cast<unsigned>(from.seed),
                     static_cast<unsigned>(from.seed >> 32)};

  return philox(counter, key);
}

static __device__ __forceinline__ unsigned long long random_pair(unsigned low,
                                                                 unsigned high)
{
  return static_cast<unsigned long long>(high) << 32 | low;
}

static __device__ __forceinline__ unsigned random_word(uint4 w, unsigned k)
{
  const unsigned low = (k & 1) != 0 ? w.y : w.x;
  const unsigned high = (k & 1) != 0 ? w.w : w.z;

  return (k & 2) != 0 ? high : low;
}

/* ---- Integers below a bound ---------------------------------------------- */

/* Returns the high word of word * bound, which is below the bound. Each result
 * then belongs to the same number of words, except for words whose product has a
 * low word below 2^32 % bound. Such a word is rejected, and further words are
 * tried in their order. They come from block i of the attempts 1, 2 and so on,
 * where i is the index of the number. The threshold is 2^32 % bound. */
static __device__ __forceinline__ unsigned
random_scaled(unsigned word, unsigned bound, unsigned threshold,
              random_sequence from, unsigned long long i)
{
  unsigned low = word * bound, high = __umulhi(word, bound);

  for (unsigned attempt = 1; low < threshold; ++attempt) {
    const uint4 w = random_block(from, i, attempt);

    for (unsigned k = 0; k < 4 && low < threshold; ++k) {
      low = random_word(w, k) * bound;
      high = __umulhi(random_word(w, k), bound);
    }
  }
  return high;
}

static __device__ __forceinline__ unsigned long long
random_scaled(unsigned long long word, unsigned long long bound,
              unsigned long long threshold, random_sequence from,
              unsigned long long i)
{
  unsigned long long low = word * bound, high = __umul64hi(word, bound);

  for (unsigned attempt = 1; low < threshold; ++attempt) {
    const uint4 w = random_block(from, i, attempt);

    for (unsigned k = 0; k < 2 && low < threshold; ++k) {
      const unsigned long long next =
          k == 0 ? random_pair(w.x, w.y) : random_pair(w.z, w.w);

      low = next * bound;
      high = __umul64hi(next, bound);
    }
  }
  return high;
}

/* ---- Normal numbers ------------------------------------------------------ */

/* Returns sqrt(-2 ln u) for u = w / 2^32, where w = 0 counts as 1. */
static __device__ __forceinline__ float random_radius(unsigned w)
{
  const unsigned some = w == 0 ? 1 : w;
  const int zeros = __clz(some);
  const unsigned m = some << zeros;
  const bool upper = m > 0xaaaaaaaau; /* u = 2^-zeros * m / 2^32 */
  const float k = __int2float_rn(upper ? zeros : zeros + 1);
  const float f =
      __fmul_rn(__int2float_rn(static_cast<int>(upper ? m : m ^ 0x80000000u)),
                upper ? 0x1p-32f : 0x1p-31f);
  float p = 0.113306174f, sum, tail;

  p = __fmaf_rn(p, f, -0.124222006f);
  p = __fmaf_rn(p, f, 0.109156548f);
  p = __fmaf_rn(p, f, -0.122887216f);
  p = __fmaf_rn(p, f, 0.142918672f);
  p = __fmaf_rn(p, f, -0.166733163f);
  p = __fmaf_rn(p, f, 0.199999484f);
  p = __fmaf_rn(p, f, -0.249999442f);
  p = __fmaf_rn(p, f, 0.333333333f);
  /* ln(1 + f) = f + tail, and ln 2 is the sum of two floats, of which the first
   * has 16 bits. */
  tail = __fmul_rn(__fmul_rn(f, f), __fmaf_rn(p, f, -0.5f));
  sum = __fadd_rn(f, __fmaf_rn(k, -1.42860682e-06f, tail));
  sum = __fmaf_rn(k, 0.693145752f, -sum);
  return __fsqrt_rn(__fadd_rn(sum, sum));
}

/* Computes the cosine and the sine of w / 2^32 turns, times a radius. */
static __device__ __forceinline__ float2 random_point(float radius, unsigned w)
{
  const unsigned quarter = (w + 0x20000000u) >> 30;
  const float t = __fmul_rn(
      __int2float_rn(static_cast<int>(w - (quarter << 30))), 0x1p-29f);
  const float z = __fmul_rn(t, t);
  float c = -2.43254187e-08f, s = 3.08996687e-07f;
  float2 at;

  c = __fmaf_rn(c, z, 3.59061068e-06f);
  c = __fmaf_rn(c, z, -0.000325991798f);
  c = __fmaf_rn(c, z, 0.0158543442f);
  c = __fmaf_rn(c, z, -0.308425138f);
  c = __fmaf_rn(c, z, 1.0f);
  s = __fmaf_rn(s, z, -3.65723926e-05f);
  s = __fmaf_rn(s, z, 0.00249039321f);
  s = __fmaf_rn(s, z, -0.080745512f);
  s = __fmul_rn(t, __fmaf_rn(s, z, 0.785398163f));
  c = __fmul_rn(c, radius);
  s = __fmul_rn(s, radius);
  at.x = (quarter & 1) != 0 ? s : c;
  at.y = (quarter & 1) != 0 ? c : s;
  at.x = ((quarter + 1) & 2) != 0 ? -at.x : at.x;
  at.y = (quarter & 2) != 0 ? -at.y : at.y;
  return at;
}

/* As above for u = w / 2^64. */
static __device__ __forceinline__ double random_radius(unsigned long long w)
{
  const unsigned long long some = w == 0 ? 1 : w;
  const int zeros = __clzll(static_cast<long long>(some));
  const unsigned long long m = some << zeros;
  const bool upper = m > 0xaaaaaaaaaaaaaaaaull;
  const double k = __int2double_rn(upper ? zeros : zeros + 1);
  const double f = __dmul_rn(
      __ll2double_rn(static_cast<long long>(upper ? m : m ^ (1ull << 63))),
      upper ? 0x1p-64 : 0x1p-63);
  /* ln(1 + f) = f - s * (f - z * p) with s = f / (2 + f) and z = s * s */
  const double s = __ddiv_rn(f, __dadd_rn(2.0, f));
  const double z = __dmul_rn(s, s);
  double p = 0.13604015707124079, sum, tail;

  p = __fma_rn(p, z, 0.13210360485132619);
  p = __fma_rn(p, z, 0.15388834677801916);
  p = __fma_rn(p, z, 0.18181738454723026);
  p = __fma_rn(p, z, 0.22222223037807243);
  p = __fma_rn(p, z, 0.28571428567339191);
  p = __fma_rn(p, z, 0.40000000000007802);
  p = __fma_rn(p, z, 0.66666666666666663);
  tail = -__dmul_rn(s, __fma_rn(-z, p, f));
  sum = __dadd_rn(f, __fma_rn(k, -7.3710025651677989e-13, tail));
  sum = __fma_rn(k, 0.69314718055920821, -sum);
  return __dsqrt_rn(__dadd_rn(sum, sum));
}

static __device__ __forceinline__ double2 random_point(double radius,
                                                       unsigned long long w)
{
  const unsigned quarter = static_cast<unsigned>((w + (1ull << 61)) >> 62);
  const double t =
      __dmul_rn(__ll2double_rn(static_cast<long long>(
                    w - (static_cast<unsigned long long>(quarter) << 62))),
                0x1p-61);
  const double z = __dmul_rn(t, t);
  double c = -3.8631569488326561e-13, s = 6.877360573166326e-12;
  double2 at;

  c = __fma_rn(c, z, 1.1500679700940496e-10);
  c = __fma_rn(c, z, -2.4611366238309744e-08);
  c = __fma_rn(c, z, 3.5908604474486119e-06);
  c = __fma_rn(c, z, -0.00032599188692719957);
  c = __fma_rn(c, z, 0.015854344243815488);
  c = __fma_rn(c, z, -0.30842513753404244);
  c = __fma_rn(c, z, 1.0);
  s = __fma_rn(s, z, -1.7571500746983935e-09);
  s = __fma_rn(s, z, 3.1336162254334162e-07);
  s = __fma_rn(s, z, -3.6576204158913872e-05);
  s = __fma_rn(s, z, 0.002490394570188844);
  s = __fma_rn(s, z, -0.080745512188280535);
  s = __dmul_rn(t, __fma_rn(s, z, 0.78539816339744828));
  c = __dmul_rn(c, radius);
  s = __dmul_rn(s, radius);
  at.x = (quarter & 1) != 0 ? s : c;
  at.y = (quarter & 1) != 0 ? c : s;
  at.x = ((quarter + 1) & 2) != 0 ? -at.x : at.x;
  at.y = (quarter & 2) != 0 ? -at.y : at.y;
  return at;
}

/* ---- Single numbers, for the user's expressions -------------------------- */

/* Returns word i of a sequence. */
static __device__ __forceinline__ unsigned
random_bits(unsigned long long seed, unsigned stream, unsigned long long i)
{
  return random_word(random_block({seed, stream}, i / 4),
                     static_cast<unsigned>(i % 4));
}

/* Returns number i of a sequence as a multiple of 2^-24 in [0, 1). */
static __device__ __forceinline__ float
random_uniform(unsigned long long seed, unsigned stream, unsigned long long i)
{
  return __fmul_rn(__uint2float_rn(random_bits(seed, stream, i) >> 8),
                   0x1p-24f);
}

/* Returns normal number i of a sequence, with mean 0 and deviation 1. */
static __device__ __forceinline__ float
random_normal(unsigned long long seed, unsigned stream, unsigned long long i)
{
  const uint4 w = random_block({seed, stream}, i / 4);
  const bool second = (i & 2) != 0;
  const float2 at =
      random_point(random_radius(second ? w.z : w.x), second ? w.w : w.y);

  return __fmaf_rn((i & 1) != 0 ? at.y : at.x, 1.0f, 0.0f);
}

/* Returns integer i of a sequence below a bound, which must not be 0. */
static __device__ __forceinline__ unsigned random_below(unsigned bound,
                                                        unsigned long long seed,
                                                        unsigned stream,
                                                        unsigned long long i)
{
  return random_scaled(random_bits(seed, stream, i), bound,
                       (0u - bound) % bound, {seed, stream}, i);
}

} // namespace kiln

#endif
