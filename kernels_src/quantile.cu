/* quantile.cu -- write quantiles of rows: keys of given ranks, or values between two
 * adjacent keys.
 *
 * Idea: a quantile lies between the word of its rank and the next greater rank. For a
 * short row, one block per quantile selects both words from the keys of the row. For a
 * long row, rank_digits has found them (rank_select.cu), and one thread per quantile
 * writes the result. Values are interpolated in double precision. The operations are not
 * contracted, so that every device computes the same bits.
 *
 * Cost: one read of the row per 8 bits of a key and quantile, and one more if there is an
 * interpolation. These reads are for rows that fit into the second-level cache.
 * Source: definition 7 of Hyndman and Fan, Sample quantiles in statistical packages, 1996.
 *
 * Parameters:
 *   KILN_BLOCK  256         threads per block, a multiple of 32, at least 256
 *   KILN_KEY    4           bytes per key: 1, 2, 4 or 8
 *   KILN_FLOAT  1           1 if keys are floats
 *   KILN_T      type float  type of a key
 *   KILN_OUT    type float  type of a quantile
 * Launch: selection i is for row i / targets.n and for target i % targets.n.
 *         quantile_row   one block per selection
 *         quantile_emit  any number of blocks for `selections` selections
 *         to             receives the quantiles; n = 0 gives NaN, or 0 as an integer
 * Result: the same bits on every device. */
#include <kiln/params/quantile.cuh>

#define KILN_PLACE 0
#include <kiln/rank_select.cuh>

typedef kiln::rank_key key;

struct outputs {
  KILN_OUT *out;
  unsigned long long pitch; /* distance of two rows of the output */
  /* Weight of the next greater key in the result. 0 selects the key itself. */
  double weight[kiln::rank_most_targets];
};

/* Converts a key to a quantile; the bits remain if the type remains. */
template <class To, class From> struct converter {
  static __device__ __forceinline__ To of(From v)
  {
    return kiln::narrow<To>(static_cast<kiln::compute_t<To>>(kiln::widen(v)));
  }
};
template <class T> struct converter<T, T> {
  static __device__ __forceinline__ T of(T v)
  {
    return v;
  }
};

static __device__ __forceinline__ KILN_T key_of(key word,
                                                kiln::radix_order order)
{
  const key raw = kiln::radix_decode<KILN_FLOAT != 0>(word, order);
  KILN_T v;

  memcpy(&v, &raw, sizeof v);
  return v;
}

/* Returns the value that divides the distance from a to b by `weight`. It is a for
 * weight 0, b for weight 1, and monotonic. */
static __device__ __forceinline__ double between(double a, double b,
                                                 double weight)
{
  const double distance = __dadd_rn(b, -a);

  return weight < 0.5 ? __dadd_rn(a, __dmul_rn(distance, weight))
                      : __dadd_rn(b, -__dmul_rn(distance, 1 - weight));
}

/* Writes the quantile between two words, of which the second one is only valid if it is
 * needed. One thread calls this function. */
static __device__ __forceinline__ void write(const kiln::rank_args &s,
                                             const outputs &to,
                                             unsigned selection, key word,
                                             key next)
{
  const unsigned q = selection % s.targets.n;
  const double weight = to.weight[q];
  KILN_OUT *const at = to.out + (selection / s.targets.n) * to.pitch + q;
  const KILN_T a = key_of(word, s.order);

  if (weight == 0)
    *at = converter<KILN_OUT, KILN_T>::of(a);
  else
    *at = converter<KILN_OUT, double>::of(between(
        static_cast<double>(kiln::widen(a)),
        static_cast<double>(kiln::widen(key_of(next, s.order))), weight));
}

#if KILN_MAKES(quantile_row)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    quantile_row(const kiln::rank_args s, const outputs to)
{
  __shared__ kiln::rank_counters counters;
  const unsigned q = blockIdx.x % s.targets.n;
  const key *const in = s.in + blockIdx.x / s.targets.n * s.n;
  const unsigned n = static_cast<unsigned>(s.n);
  key next = static_cast<key>(~key(0));
  kiln::rank_cut<key> cut;

  kiln::launch_wait();
  kiln::launch_next();
  cut = kiln::rank_block<key>(counters, n,
                              static_cast<unsigned>(s.targets.rank[q]), 0,
                              [&](unsigned i, key &w) {
                                w = kiln::rank_word(in[i], s.order);
                                return true;
                              });
  if ((s.targets.more >> q & 1u) != 0 && cut.want == cut.left) {
    for (unsigned i = threadIdx.x; i < n; i += KILN_BLOCK) {
      const key w = kiln::rank_word(in[i], s.order);

      if (w > cut.prefix && w < next)
        next = w;
    }
    next = kiln::block_reduce(next, kiln::min());
  } else {
    next = cut.prefix;
  }
  if (threadIdx.x == 0)
    write(s, to, blockIdx.x, cut.prefix, next);
}
#endif

#if KILN_MAKES(quantile_emit)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    quantile_emit(const kiln::rank_args s, const outputs to,
                  unsigned selections)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;

  kiln::launch_wait();
  kiln::launch_next();
  if (i >= selections)
    return;
  if (s.n == 0) {
    const bool is_float =
        kiln::widen(converter<KILN_OUT, double>::of(0.5)) != 0;

    to.out[i / s.targets.n * to.pitch + i % s.targets.n] =
        converter<KILN_OUT, double>::of(
            is_float ? __longlong_as_double(0x7ff8000000000000ll) : 0);
    return;
  }
  {
    const kiln::rank_state *const state = kiln::rank_state_of(s, i);
    const kiln::rank_step *const last =
        reinterpret_cast<const kiln::rank_step *>(state + 1) + s.steps - 1;
    const key word = static_cast<key>(last->prefix);

    write(s, to, i, word,
          last->want < last->left ? word : static_cast<key>(state->next));
  }
}
#endif
