/* pair_network.cu -- a variant of merge.cu for many pairs with keys of type i32, u32 or f32
 * in their default order, and values of any type.
 *
 * Problem: as in merge_network.cu, and the merge must be stable.
 * Idea: the network of merge_network.cuh sorts words that consist of the distance of a key
 * to the first key of its window, 22 bits, and of the position of the pair in the window,
 * 10 bits, where those of a come first. So no two words are equal, and the position finds
 * the value. Windows of larger distances, and those with NaNs, are merged one pair at a
 * time by every lane. All distances of a call add up to less than 2^32, so at most 1,024
 * windows are too wide.
 * Cost: one read and one write per key and value, and 35 instructions per pair.
 *
 * Parameters:
 *   KILN_BLOCK   256         threads per block
 *   KILN_PER_SM  0           minimum number of resident blocks per SM, which limits
 *                            registers through __launch_bounds__; 0 sets no limit
 *   KILN_T       type int    type of a key
 *   KILN_V       type float  type of a value
 * Launch: as merge_network.cu, with the kernels pair_split and pair_network. a_values and
 *         b_values have a value per key, and out_values receives m + n values.
 * Result: among pairs of equal keys, those of a come first. */
#include <kiln/params/pair_network.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/merge_network.cuh>
#include <kiln/user.cuh>

typedef KILN_T element;
typedef KILN_V value;

enum : unsigned {
  tile_size = KILN_BLOCK * kiln::network_items,
  position_bits = 10,
  positions = 1u << position_bits
};

static_assert(+positions == +kiln::network_size, "one position per output");

#if KILN_MAKES(pair_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    pair_split(const element *a, unsigned long long m, const element *b,
               unsigned long long n, unsigned long long *split)
{
  kiln::split_tiles<KILN_BLOCK>(m, n, tile_size, split,
                                [&](kiln::index i, kiln::index j) {
                                  return !kiln::comes_before(b[j], a[i]);
                                });
}
#endif

#if KILN_MAKES(pair_network)
typedef kiln::network_order<element> order;
typedef kiln::network_window<element> window;

/* The pairs of a window in memory. */
struct source {
  const element *a, *b;
  const value *a_values, *b_values;
};

static __device__ __forceinline__ unsigned ordinal_of(element x)
{
  unsigned bits;

  memcpy(&bits, &x, sizeof bits);
  return order::ordinal(bits);
}

/* Returns whether a window can be merged by distances, and sets `first` to the
 * ordinal of its first key. */
static __device__ __forceinline__ bool is_narrow(const window &w,
                                                 unsigned &first)
{
  const bool a = w.n_a > 0, b = w.n_b > 0;
  const element last_a = a ? w.a[w.n_a - 1] : element();
  const element last_b = b ? w.b[w.n_b - 1] : element();
  const unsigned first_a = a ? ordinal_of(w.a[0]) : ~0u;
  const unsigned first_b = b ? ordinal_of(w.b[0]) : ~0u;
  const unsigned end_a = a ? ordinal_of(last_a) : 0;
  const unsigned end_b = b ? ordinal_of(last_b) : 0;

  first = kiln::least(first_a, first_b);
  return w.n_a + w.n_b == kiln::network_size && !order::is_nan(last_a) &&
         !order::is_nan(last_b) &&
         (end_a > end_b ? end_a : end_b) - first < 1u << (32 - position_bits);
}

/* Loads the words of a narrow window, in the layout of network_load(). */
static __device__ __forceinline__ void
load_words(const window &w, unsigned first, unsigned (&v)[kiln::network_items])
{
  const int end = static_cast<int>(w.n_a) - static_cast<int>(kiln::lane());
  const unsigned back = kiln::network_size - 1 - kiln::lane();
  const unsigned a =
      static_cast<unsigned>(__cvta_generic_to_shared(w.a + kiln::lane()));
  const unsigned b =
      static_cast<unsigned>(__cvta_generic_to_shared(w.b + back));
  const unsigned term_a = kiln::lane() - (first << position_bits);
  const unsigned term_b = w.n_a + back - (first << position_bits);

#pragma unroll
  for (unsigned r = 0; r < kiln::network_items; ++r) {
    const unsigned at = r * kiln::warp_size;
    unsigned term;
    const unsigned x =
        kiln::network_either(static_cast<int>(at), end, a + 4 * at, b - 4 * at,
                             term_a + at, term_b - at, term);

    v[r] = (order::ordinal(x) << position_bits) + term;
  }
}

/* Writes the position of each output of any window to `words`. */
static __device__ __noinline__ void walk(const element *a, unsigned n_a,
                                         const element *b, unsigned n_b,
                                         unsigned *words)
{
  const unsigned n = n_a + n_b;
  const unsigned d = kiln::least(kiln::lane() * kiln::network_items, n);
  unsigned i = kiln::group_search<1>(
      d > n_b ? d - n_b : 0, kiln::least(d, n_a),
      [&](unsigned at) { return !kiln::comes_before(b[d - 1 - at], a[at]); });
  unsigned j = d - i;

#pragma unroll 1
  for (unsigned k = d; k < kiln::least(d + kiln::network_items, n); ++k) {
    const bool of_a = j >= n_b || (i < n_a && !kiln::comes_before(b[j], a[i]));

    words[kiln::network_place(k)] = of_a ? i : n_a + j;
    i += of_a ? 1 : 0;
    j += of_a ? 0 : 1;
  }
  kiln::warp_sync();
}

/* Stores the n pairs of a window. `words` has the words of a narrow window, or the
 * positions of another one. */
template <bool narrow>
static __device__ __forceinline__ void
store_window(const source &from, unsigned n_a, unsigned n, unsigned first,
             const unsigned *words, element *out, value *out_values)
{
#pragma unroll 8
  for (unsigned k = 0; k < kiln::network_items; ++k) {
    const unsigned e = k * kiln::warp_size + kiln::lane();

    if (narrow || e < n) {
      const unsigned word = words[kiln::network_place(e)];
      const unsigned at = word % positions;
      const bool of_a = at < n_a;

      if (narrow)
        out[e] = order::element(first + (word >> position_bits));
      else
        out[e] = of_a ? from.a[at] : from.b[at - n_a];
      out_values[e] = of_a ? from.a_values[at] : from.b_values[at - n_a];
    }
  }
}

/* Merges the window of the calling warp, and stores it. All warps of the block
 * call the function, which overwrites the tile in shared memory by the warps' own
 * `words`. */
static __device__ __forceinline__ void
merge_window(const window &w, const source &from, unsigned *words, element *out,
             value *out_values)
{
  unsigned v[kiln::network_items], first;
  const bool narrow = is_narrow(w, first);

  if (narrow)
    load_words(w, first, v);
  __syncthreads();
  if (narrow) {
    kiln::network_sort(v, words);
    kiln::network_write(v, words);
    store_window<true>(from, w.n_a, kiln::network_size, first, words, out,
                       out_values);
  } else {
    walk(from.a, w.n_a, from.b, w.n_b, words);
    store_window<false>(from, w.n_a, w.n_a + w.n_b, 0, words, out, out_values);
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    pair_network(const user::args, const element *a, unsigned long long m,
                 const element *b, unsigned long long n, element *out,
                 const value *a_values, const value *b_values,
                 value *out_values, const unsigned long long *split)
{
  constexpr unsigned warps = KILN_BLOCK / 32;
  __shared__ alignas(16) unsigned words[warps * kiln::network_words];
  __shared__ unsigned first_a[warps + 1];
  const kiln::index out_at = static_cast<kiln::index>(blockIdx.x) * tile_size +
                             kiln::warp() * kiln::network_size;
  kiln::network_tile<element> t =
      kiln::network_find<tile_size, element>(blockIdx.x, m, n, split);

  kiln::network_stage<KILN_BLOCK, false>(t, a, b, n,
                                         reinterpret_cast<element *>(words));

  const window w = kiln::network_part(t, first_a);
  const kiln::index at_a = t.a + static_cast<kiln::index>(w.a - t.near_a);
  const kiln::index at_b = t.b + static_cast<kiln::index>(w.b - t.near_b);

  merge_window(w, {a + at_a, b + at_b, a_values + at_a, b_values + at_b},
               words + kiln::warp() * kiln::network_words, out + out_at,
               out_values + out_at);
}
#endif

#include <kiln/user_texts.cuh>
