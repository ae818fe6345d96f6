/* merge_network.cu -- a variant of merge.cu for many integer keys of 4 bytes in their
 * default order, without values.
 *
 * Problem: merge.cu spends most of its time on the searches and the dependent loads of
 * single threads.
 * Idea: each warp merges a window of 1,024 outputs by the network of merge_network.cuh.
 * A tile has one window per warp. network_split finds where the tiles start, and each warp
 * finds its window in the copy of the tile in shared memory. A network is not stable, but
 * equal integers have equal bits.
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

typedef KILN_T key;

enum : unsigned { tile_size = KILN_BLOCK * kiln::network_items };

#if KILN_MAKES(network_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    network_split(const key *a, unsigned long long m, const key *b,
                  unsigned long long n, unsigned long long *split)
{
  kiln::split_tiles<KILN_BLOCK>(
      m, n, tile_size, split,
      [&](kiln::index i, kiln::index j) { return !(b[j] < a[i]); });
}
#endif

#if KILN_MAKES(merge_network)
/* The largest key. */
static constexpr key most_key = static_cast<key>(-1) < 0
                                    ? static_cast<key>(~0u >> 1)
                                    : static_cast<key>(~0u);

/* Stores the n keys of a window, which `words` holds as network_write() wrote
 * them. */
static __device__ __forceinline__ void store_window(key *out, unsigned n,
                                                    const key *words)
{
  typedef kiln::network_vector<key> vector;

  if (n == kiln::network_size &&
      reinterpret_cast<size_t>(out) % sizeof(vector) == 0) {
#pragma unroll
    for (unsigned k = 0; k < kiln::network_items / 4; ++k) {
      const unsigned e = 4 * (k * 32 + kiln::lane());

      *reinterpret_cast<vector *>(out + e) =
          *reinterpret_cast<const vector *>(words + kiln::network_place(e));
    }
    return;
  }
#pragma unroll 4
  for (unsigned e = kiln::lane(); e < n; e += 32)
    out[e] = words[kiln::network_place(e)];
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    merge_network(const key *a, unsigned long long m, const key *b,
                  unsigned long long n, key *out,
                  const unsigned long long *split)
{
  constexpr unsigned warps = KILN_BLOCK / 32;
  __shared__ alignas(16) key words[warps * kiln::network_words];
  __shared__ unsigned first_a[warps + 1];
  kiln::network_tile<key> t = kiln::network_find<tile_size, key>(m, n, split);
  key v[kiln::network_items];
  key *const mine = words + kiln::warp() * kiln::network_words;

  kiln::network_stage<KILN_BLOCK, 0>(t, a, m, b, n, words);

  const kiln::network_window<key> w = kiln::network_part(t, first_a);

  kiln::network_load(
      w, most_key, [](key x, bool) { return x; }, v);
  __syncthreads();
  kiln::network_sort(v, mine);
  kiln::network_write(v, mine);
  store_window(out + static_cast<kiln::index>(blockIdx.x) * tile_size +
                   kiln::warp() * kiln::network_size,
               w.n_a + w.n_b, mine);
}
#endif
