/* select_staged.cu -- a variant of select.cu for large inputs that are one array.
 *
 * Idea: a tile is staged in shared memory until the number of kept elements in the
 * preceding tiles is published. So an SM has more bytes in flight than its registers
 * could hold. Block 0 computes the prefix of every tile (leader_prefix.cuh).
 *
 * Parameters:
 *   KILN_BLOCK     128            threads per block
 *   KILN_ITEMS     64             elements per thread, a multiple of 4, at most 64
 *   KILN_PREFETCH  0              distance, in tiles, of the prefetch of the input
 *   KILN_UNIQUE    0              1 keeps element 0 and the elements that differ from
 *                                 the preceding element
 *   KILN_COUNT     type unsigned  type of the count
 *   KILN_WIDE      0              1 if n is 2^32 or more
 * Generated code (user.cuh): one array without a map, aligned to 16 bytes, with elements
 * of 4 or 8 bytes. predicate is a bool function of an element. With KILN_UNIQUE,
 * equal(s, a, b) compares two elements.
 * Launch: the grid has the leader block and one block per tile. Block b handles tile
 *         b - 1.
 *         n          number of elements, at least 1
 *         out        array with space for all kept elements
 *         kept       receives the number of kept elements
 *         words      tile descriptors in the layout of leader_prefix.cuh, for values of
 *                    4 bytes, or 8 bytes with KILN_WIDE
 * Result: the result is that of select.cu. */
#include <kiln/params/select_staged.cuh>

#define KILN_FLAT_BLOCK 1
#define KILN_MAX_BLOCK KILN_BLOCK
#include <kiln/compact.cuh>
#include <kiln/leader_prefix.cuh>
#include <kiln/stage.cuh>

enum : unsigned {
  warps = KILN_BLOCK / 32,
  warp_tile = 32 * KILN_ITEMS, /* contiguous elements per warp */
  tile_size = warps * warp_tile,
  masks = (KILN_ITEMS + 31) / 32,
  vector_size = 16 / sizeof(user::stored) /* number of elements in 16 bytes */
};
static_assert(KILN_ITEMS % 4 == 0 && KILN_ITEMS <= 64, "KILN_ITEMS");
static_assert(sizeof(user::stored) == 4 || sizeof(user::stored) == 8,
              "elements of 4 or 8 bytes");

struct shared_storage {
  alignas(16) user::stored value[tile_size];
  unsigned warp_count[warps];
  position before;
};

/* Copies the elements of the calling warp to shared memory. The warp has `valid`
 * elements, which start at element `first` of the array. */
static __device__ __forceinline__ void stage(const user::args &in, count first,
                                             unsigned valid, user::stored *to)
{
#pragma unroll
  for (unsigned k = 0; k < warp_tile / vector_size / 32; ++k) {
    const unsigned i = (k * 32 + kiln::lane()) * vector_size;

    if (i + vector_size <= valid)
      kiln::stage_async(to + i, in.x0 + first + i);
    else
      for (unsigned e = 0; e < vector_size && i + e < valid; ++e)
        to[i + e] = in.x0[first + i + e];
  }
}

/* Returns whether element i of the warp's elements is kept. */
static __device__ __forceinline__ bool is_kept(const user::args &in,
                                               count first, unsigned i,
                                               const user::stored *value)
{
#if KILN_UNIQUE
  if (first + i == 0)
    return true;
  return !user::equal(in, kiln::widen(i > 0 ? value[i - 1] : in.x0[first - 1]),
                      kiln::widen(value[i]));
#else
  user::vector<1> one;

  one.x0[0] = kiln::widen(value[i]);
  return user::predicate_at(in, one, 0, first + i);
#endif
}

/* Evaluates the predicate for the warp's elements, and returns the number of
 * kept elements. A row has one element per lane. In the mask of a row, bit l is
 * set if the element of lane l is kept. Lane r % 32 holds the mask of row r in
 * mask[r / 32]. */
static __device__ __forceinline__ unsigned mark(const user::args &in,
                                                count first, unsigned valid,
                                                const user::stored *value,
                                                unsigned (&mask)[masks])
{
  unsigned kept = 0;

#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
    mask[m] = 0;
#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
#pragma unroll 8
    for (unsigned r = 0; r < 32 && m * 32 + r < KILN_ITEMS; ++r) {
      const unsigned i = (m * 32 + r) * 32 + kiln::lane();
      const bool keep = i < valid && is_kept(in, first, i, value);
      const unsigned row = kiln::warp_ballot(keep);

      kept += static_cast<unsigned>(__popc(row));
      if (kiln::lane() == r)
        mask[m] = row;
    }
  return kept;
}

/* Stores the kept elements of the warp row by row, so that the elements of a row
 * have consecutive destinations. */
static __device__ __forceinline__ void write(const user::stored *value,
                                             const unsigned (&mask)[masks],
                                             user::stored *out)
{
  const unsigned below = (1u << kiln::lane()) - 1;

#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
#pragma unroll 8
    for (unsigned r = 0; r < 32 && m * 32 + r < KILN_ITEMS; ++r) {
      const unsigned row = kiln::warp_broadcast(mask[m], r);

      if ((row >> kiln::lane() & 1u) != 0)
        out[__popc(row & below)] = value[(m * 32 + r) * 32 + kiln::lane()];
      out += __popc(row);
    }
}

static __device__ __forceinline__ void
select_tile(const user::args &in, count n, unsigned tile, unsigned tiles,
            user::stored *out, KILN_COUNT *kept, unsigned long long *words,
            unsigned epoch)
{
  __shared__ shared_storage r;
  const unsigned from = kiln::warp() * warp_tile;
  const count first = static_cast<count>(tile) * tile_size + from;
  const unsigned valid =
      first >= n ? 0
                 : static_cast<unsigned>(n - first < warp_tile ? n - first
                                                               : warp_tile);
  unsigned mask[masks], before, all;

  stage(in, first, valid, r.value + from);
#if KILN_PREFETCH > 0
  if (tile + KILN_PREFETCH + 1 < tiles)
    user::prefetch_inputs(
        in, first + static_cast<count>(KILN_PREFETCH) * tile_size, warp_tile);
#endif
  kiln::stage_wait();
  __syncwarp();
  before = mark(in, first, valid, r.value + from, mask);
  before = kiln::warps_before(before, r.warp_count, all);
  if (threadIdx.x == 0) {
    kiln::tile_publish(words, tile, static_cast<position>(all),
                       kiln::descriptor_tag(epoch, kiln::status_partial));
    r.before = kiln::leader_wait<position>(words, tiles, tile, epoch);
    if (tile == tiles - 1)
      *kept = static_cast<KILN_COUNT>(r.before + all);
  }
  __syncthreads();
  write(r.value + from, mask, out + r.before + before);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    select_staged(const user::args in, unsigned long long n, user::stored *out,
                  KILN_COUNT *kept, unsigned long long *words, unsigned epoch)
{
  const unsigned tiles = gridDim.x - 1;

  if (blockIdx.x == 0)
    kiln::leader_publish_prefixes(words, tiles, epoch, kiln::sum{}, position(0),
                                  position(0));
  else
    select_tile(in, n, blockIdx.x - 1, tiles, out, kept, words, epoch);
}

#include <kiln/user_texts.cuh>
