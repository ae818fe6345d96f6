/* merge_network.cu -- a variant of merge.cu for many keys of type i32, u32 or f32 in
 * their default order, without values.
 *
 * Problem: merge.cu spends most of its time on the searches and the dependent loads of
 * single threads.
 * Idea: each warp merges a window of 1,024 outputs by the network of merge_network.cuh.
 * A tile has one window per warp. network_split finds where the tiles start, and each warp
 * finds its window in the copy of the tile in shared memory. A network is not stable, but
 * equal integers have equal bits.
 * Floats are merged as integers that have the same order. NaNs are all equal, but have
 * different bits. They are the last keys of both sequences, so a warp puts those of its
 * window behind the other keys, first those of a.
 * Cost: one read and one write per element, and 20 instructions per element.
 *
 * Parameters:
 *   KILN_BLOCK   256       threads per block
 *   KILN_PER_SM  0         minimum number of resident blocks per SM, which limits
 *                          registers through __launch_bounds__; 0 sets no limit
 *   KILN_T       type int  type of a key
 * Launch: the block size is KILN_BLOCK for both kernels. The grid of network_split has 4
 *         threads per tile. The grid of merge_network has one block per tile of
 *         KILN_BLOCK * 32 keys.
 *         a, b    the sequences; a has m keys and b has n keys
 *         split   for each tile, the number of preceding outputs that come from a, and m
 * Result: out receives m + n keys. */
#include <kiln/params/merge_network.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/merge_network.cuh>
#include <kiln/order.cuh>

typedef KILN_T element;

enum : unsigned { tile_size = KILN_BLOCK * kiln::network_items };

#if KILN_MAKES(network_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    network_split(const element *a, unsigned long long m, const element *b,
                  unsigned long long n, unsigned long long *split)
{
  kiln::split_tiles<KILN_BLOCK>(m, n, tile_size, split,
                                [&](kiln::index i, kiln::index j) {
                                  return !kiln::comes_before(b[j], a[i]);
                                });
}
#endif

#if KILN_MAKES(merge_network)
typedef kiln::network_order<element> order;
typedef kiln::network_window<element> window;

struct to_ordinal {
  enum : unsigned { of_a = 0, of_b = 0 };

  __device__ __forceinline__ unsigned operator()(unsigned bits, unsigned) const
  {
    return order::ordinal(bits);
  }
};

/* Returns how many of the first elements of x, which has n sorted elements, are
 * numbers. One whole warp calls this function. */
static __device__ __forceinline__ unsigned numbers_of(const element *x,
                                                      unsigned n)
{
  if (n == 0 || !order::is_nan(x[n - 1]))
    return n;
  return kiln::group_search<32>(
      0u, n, [&](unsigned i) { return !order::is_nan(x[i]); });
}

/* Stores the n keys of a window, which `words` holds as network_write() wrote
 * them. */
static __device__ __forceinline__ void store_window(element *out, unsigned n,
                                                    const unsigned *words)
{
  typedef kiln::network_vector<element> vector;

  if (n == kiln::network_size &&
      reinterpret_cast<size_t>(out) % sizeof(vector) == 0) {
#pragma unroll
    for (unsigned k = 0; k < kiln::network_items / 4; ++k) {
      const unsigned e = 4 * (k * 32 + kiln::lane());
      const kiln::network_vector<unsigned> four =
          *reinterpret_cast<const kiln::network_vector<unsigned> *>(
              words + kiln::network_place(e));

      *reinterpret_cast<vector *>(out + e) = {
          {order::element(four.at[0]), order::element(four.at[1]),
           order::element(four.at[2]), order::element(four.at[3])}};
    }
    return;
  }
#pragma unroll 4
  for (unsigned e = kiln::lane(); e < n; e += 32)
    out[e] = order::element(words[kiln::network_place(e)]);
}

/* Copies n elements to the outputs of a window from output `first` on. */
static __device__ __forceinline__ void append(unsigned *words, unsigned first,
                                              const element *from, unsigned n)
{
  for (unsigned k = kiln::lane(); k < n; k += 32) {
    unsigned bits;

    memcpy(&bits, from + k, sizeof bits);
    words[kiln::network_place(first + k)] = order::ordinal(bits);
  }
}

/* Merges the window of the calling warp, and stores it. far_a and far_b are its
 * elements in memory. All warps of the block call the function, which overwrites
 * the tile in shared memory by the warps' own `words`. */
static __device__ __forceinline__ void
merge_window(const window &w, const element *far_a, const element *far_b,
             unsigned *words, element *out)
{
  const unsigned n = w.n_a + w.n_b;
  const unsigned n_a = numbers_of(w.a, w.n_a), n_b = numbers_of(w.b, w.n_b);
  unsigned v[kiln::network_items];

  if (n_a + n_b == kiln::network_size)
    kiln::network_load(w, to_ordinal(), v);
  else
    kiln::network_load_some(window{w.a, w.b, n_a, n_b}, ~0u, to_ordinal(), v);
  __syncthreads();
  kiln::network_sort(v, words);
  kiln::network_write(v, words);
  if (n_a + n_b < n) {
    append(words, n_a + n_b, far_a + n_a, w.n_a - n_a);
    append(words, w.n_a + n_b, far_b + n_b, w.n_b - n_b);
    kiln::warp_sync();
  }
  store_window(out, n, words);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    merge_network(const element *a, unsigned long long m, const element *b,
                  unsigned long long n, element *out,
                  const unsigned long long *split)
{
  constexpr unsigned warps = KILN_BLOCK / 32;
  __shared__ alignas(16) unsigned words[warps * kiln::network_words];
  __shared__ unsigned first_a[warps + 1];
  kiln::network_tile<element> t =
      kiln::network_find<tile_size, element>(blockIdx.x, m, n, split);

  kiln::network_stage<KILN_BLOCK, false>(t, a, b, n,
                                         reinterpret_cast<element *>(words));

  const window w = kiln::network_part(t, first_a);

  merge_window(w, a + t.a + (w.a - t.near_a), b + t.b + (w.b - t.near_b),
               words + kiln::warp() * kiln::network_words,
               out + static_cast<kiln::index>(blockIdx.x) * tile_size +
                   kiln::warp() * kiln::network_size);
}
#endif
