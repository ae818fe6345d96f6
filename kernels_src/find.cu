/* find.cu -- find the first element for which a predicate is true, or count such
 * elements, in one launch.
 *
 * Idea: all blocks together advance through the tiles, from the first tile to the last.
 * Each warp handles its part of a tile without barriers. A warp that finds an element
 * records the position in one word for the whole grid and stops. The other warps read
 * that word once per tile. They stop as soon as their own position is larger.
 * The last block handles no tile. It combines the results of the other blocks.
 * Cost: one read of the input up to the first hit, and of about one further tile per
 * block.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_VECTOR  4              elements per vector: 16 bytes of the widest array
 *   KILN_ITEMS   16             elements in flight per thread, a multiple of
 *                               KILN_VECTOR, at most 32
 *   KILN_QUERY   0              result of the query, where a hit is an element for
 *                               which the predicate is true. 0 returns the index of the
 *                               first hit, or n if there is no hit. 1 returns the
 *                               number of hits. 2 returns 1 if there is a hit, and 0
 *                               otherwise. 3 returns 1 if all elements are hits, and 0
 *                               otherwise
 *   KILN_OUT     type unsigned  type of the result
 *   KILN_WIDE    0              1 if n is 2^32 or more
 * Generated code (user.cuh): predicate, a bool function of the inputs.
 * Launch: the grid has one block or more. If it has several blocks, the last block only
 *         combines.
 *         n       number of elements, at least 1
 *         words   one word for hits, then one tile descriptor per block (two words
 *                 with KILN_WIDE). A grid of one block does not use `words`.
 * Result: the result does not depend on the grid. */
#include <kiln/params/find.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>

static_assert(KILN_ITEMS % KILN_VECTOR == 0, "KILN_ITEMS: whole vectors");

enum : unsigned { vectors = KILN_ITEMS / KILN_VECTOR };

typedef kiln::tile_shape<KILN_BLOCK, vectors, KILN_VECTOR> shape;
#if KILN_QUERY == 1
typedef kiln::sum operation;
#else
typedef kiln::min operation;
#endif

struct taker {
  const user::args &in;
  unsigned &mask;

  template <unsigned n>
  __device__ __forceinline__ void
  operator()(unsigned slot, const user::vector<n> &p, unsigned e, count i) const
  {
    const bool holds = user::predicate_at(in, p, e, i);

    mask |= kiln::slot_bit(slot, holds != (KILN_QUERY == 3));
  }
};

static __device__ __forceinline__ unsigned load(const user::args &in, count n,
                                                count tile)
{
  const count first = tile * shape::size;
  unsigned mask = 0;

  kiln::tile_load<shape, vectors, KILN_VECTOR>(
      in, first,
      static_cast<unsigned>(n - first < shape::size ? n - first : shape::size),
      taker{in, mask});
  return mask;
}

#if KILN_QUERY == 1
/* Returns the number of hits of the calling thread. */
static __device__ __forceinline__ position work(const user::args &in, count n,
                                                count tiles, unsigned workers,
                                                unsigned long long *, unsigned)
{
  position found = 0;

#pragma unroll 1
  for (count tile = blockIdx.x; tile < tiles; tile += workers)
    found += static_cast<unsigned>(__popc(load(in, n, tile)));
  return found;
}
#else
/* Returns the word by which a warp reports a hit to all blocks, with
 * atomicMax(). `stretch` is the index of the warp's part of a tile. A lower
 * index gives a larger word, so the maximum belongs to the first hit. The words
 * of earlier launches are smaller. */
static __device__ __forceinline__ unsigned long long hit_word(count stretch,
                                                              unsigned epoch)
{
  constexpr unsigned bits = 34;

  return static_cast<unsigned long long>(epoch) << bits |
         ((1ull << bits) - 1 - stretch);
}

/* Returns, in every lane, the position in the tile of the warp's first hit. */
static __device__ __forceinline__ unsigned first_hit(unsigned mask)
{
  unsigned place = 0;
  bool found = false;

#pragma unroll
  for (unsigned k = 0; k < vectors; ++k) {
    const unsigned mine = mask >> k * KILN_VECTOR & ((1u << KILN_VECTOR) - 1);
    const unsigned lanes = kiln::warp_ballot(mine != 0);
    const unsigned here =
        shape::place(k) + static_cast<unsigned>(__ffs(mine)) - 1;
    const unsigned first = kiln::shuffle(
        here, lanes == 0 ? 0 : static_cast<unsigned>(__ffs(lanes)) - 1);

    if (!found && lanes != 0) {
      place = first;
      found = true;
    }
  }
  return place;
}

static __device__ __forceinline__ position work(const user::args &in, count n,
                                                count tiles, unsigned workers,
                                                unsigned long long *words,
                                                unsigned epoch)
{
#pragma unroll 1
  for (count tile = blockIdx.x; tile < tiles; tile += workers) {
    const count stretch = tile * shape::warps + kiln::warp();
    const unsigned mask = load(in, n, tile);
    const unsigned long long hit = gridDim.x > 1 ? kiln::word_load(words) : 0;

    if (kiln::warp_any(mask != 0)) {
      const unsigned place = first_hit(mask);

      if (gridDim.x > 1 && kiln::lane() == 0)
        atomicMax(words, hit_word(stretch, epoch));
      return static_cast<position>(tile * shape::size + place);
    }
    if (kiln::warp_any(hit > hit_word(stretch, epoch)))
      break;
  }
  return static_cast<position>(n);
}
#endif

static __device__ __forceinline__ void finish(position value, count n,
                                              KILN_OUT *out)
{
#if KILN_QUERY == 2
  *out = static_cast<KILN_OUT>(value < n ? 1 : 0);
#elif KILN_QUERY == 3
  *out = static_cast<KILN_OUT>(value < n ? 0 : 1);
#else
  (void)n;
  *out = static_cast<KILN_OUT>(value);
#endif
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    find(const user::args in, unsigned long long n, KILN_OUT *out,
         unsigned long long *words, unsigned epoch)
{
  const count tiles = (n + shape::size - 1) / shape::size;
  const unsigned workers = gridDim.x == 1 ? 1 : gridDim.x - 1;
  const position nothing = KILN_QUERY == 1 ? 0 : static_cast<position>(n);
  position value;

  if (gridDim.x > 1 && blockIdx.x == workers) {
    if (kiln::warp() != 0)
      return;
    value =
        kiln::count_gather(words + 1, 0, workers, epoch, operation{}, nothing);
    if (kiln::lane() == 0)
      finish(value, n, out);
    return;
  }
  value = work(in, n, tiles, workers, words, epoch);
  value = kiln::block_reduce_first<KILN_BLOCK>(value, operation{});
  if (threadIdx.x != 0)
    return;
  if (gridDim.x == 1)
    finish(value, n, out);
  else
    kiln::tile_publish(words + 1, blockIdx.x, value,
                       kiln::descriptor_tag(epoch, kiln::status_partial));
}

#include <kiln/user_texts.cuh>
