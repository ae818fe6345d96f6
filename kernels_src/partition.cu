/* partition.cu -- divide elements into two or three partitions in one launch. Each
 * partition keeps the order of the input.
 *
 * The kernel ranks elements as select.cu does, but keeps all elements. Shared memory
 * holds the partitions of a tile one after the other.
 * If the partitions share one array (KILN_LAYOUT 0), the start of the second partition
 * depends on the size of the first partition, and so on every tile. Therefore the first
 * blocks of the launch, the counting blocks, only count. The last counting block
 * publishes the totals (look_back.cuh). Counting starts at the last tile, so that the
 * first tiles are still in the L2 cache when their elements are moved.
 * Cost: one read and one write per element, and with KILN_LAYOUT 0 a second read.
 *
 * Parameters:
 *   KILN_BLOCK       512            threads per block
 *   KILN_VECTOR      4              elements per vector: 16 bytes of the widest
 *                                   array
 *   KILN_ITEMS       16             elements per thread, a multiple of KILN_VECTOR,
 *                                   at most 32
 *   KILN_PER_SM      0              minimum number of resident blocks per SM, which
 *                                   limits registers through __launch_bounds__; 0 sets
 *                                   no limit
 *   KILN_WINDOW      2              descriptors that a lane reads at a time in a
 *                                   look-back
 *   KILN_PREFETCH    0              distance, in tiles, of the prefetch of the input;
 *                                   0 disables the prefetch
 *   KILN_PARTITIONS  2              number of partitions, 2 or 3
 *   KILN_LAYOUT      0              0 if the partitions follow each other in out; 1 if
 *                                   each partition has its own array; 2 if the second
 *                                   of two partitions is stored backwards from the end
 *                                   of out
 *   KILN_COUNT       type unsigned  type of a count
 *   KILN_WIDE        0              1 if n is 2^32 or more
 * Generated code (user.cuh): the map computes the elements. `first` is a bool function
 * of the same inputs, and so is `second` with three partitions.
 * Launch: the grid has `counters` counting blocks, then one block per tile. `counters`
 *         is 0 unless KILN_LAYOUT is 0 and there are several tiles.
 *         n          number of elements, at least 1
 *         out, out_second, out_rest   arrays that receive the partitions
 *         counts     receives the number of elements of the first partition and, with
 *                    three partitions, of the second partition
 *         words      tiles + counters + 1 tile descriptors of one word each. Three
 *                    partitions double the number of words, and so does KILN_WIDE.
 * Result: the result is the same on every device. */
#include <kiln/params/partition.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>

#if !KILN_GENERATED
namespace user
{
template <unsigned n>
static __device__ __forceinline__ bool
first_at(const args &, const vector<n> &p, unsigned e, index)
{
  return p.x0[e] > 0;
}
template <unsigned n>
static __device__ __forceinline__ bool
second_at(const args &, const vector<n> &p, unsigned e, index)
{
  return p.x0[e] < 0;
}
} // namespace user
#endif

static_assert(KILN_ITEMS % KILN_VECTOR == 0, "KILN_ITEMS: whole vectors");
static_assert(KILN_PARTITIONS == 2 || KILN_LAYOUT != 2,
              "KILN_LAYOUT: two partitions");

enum : unsigned { vectors = KILN_ITEMS / KILN_VECTOR };

typedef kiln::tile_shape<KILN_BLOCK, vectors, KILN_VECTOR> shape;

/* Holds the number of elements of each partition except the last.
 * Counts of a warp or a tile need at most 16 bits, so one 32-bit word holds the
 * counts of two partitions. */
enum : unsigned { second_shift = 16 };
#if KILN_PARTITIONS == 3
typedef kiln::count_pair<position> totals;
#else
typedef position totals;
#endif

static __device__ __forceinline__ totals totals_of(unsigned both)
{
#if KILN_PARTITIONS == 3
  return {both % (1u << second_shift), both >> second_shift};
#else
  return both;
#endif
}

static __device__ __forceinline__ position first_of(const totals &t)
{
#if KILN_PARTITIONS == 3
  return t.first;
#else
  return t;
#endif
}

static __device__ __forceinline__ position second_of(const totals &t)
{
#if KILN_PARTITIONS == 3
  return t.second;
#else
  return 0;
#endif
}

static_assert(shape::size < 1u << second_shift, "a tile's counts: 16 bits");

struct shared_storage {
  alignas(16) user::stored value[shape::size];
  unsigned warp_count[shape::warps];
  totals before, all;
};

struct tile {
  user::value value[KILN_ITEMS];
  /* Masks with one bit per element of the thread. A bit is set if the element
   * belongs to the first or to the second partition. */
  unsigned first, second;
};

/* The functor that tile_load() calls for each loaded element. It keeps the
 * partition of the element, and with `values` the value, in registers. */
template <bool values> struct taker {
  const user::args &in;
  tile &t;

  template <unsigned n>
  __device__ __forceinline__ void
  operator()(unsigned slot, const user::vector<n> &p, unsigned e, count i) const
  {
    const bool first = user::first_at(in, p, e, i);

    if (values)
      t.value[slot] = user::map_at(in, p, e, i);
    t.first |= kiln::slot_bit(slot, first);
#if KILN_PARTITIONS == 3
    t.second |= kiln::slot_bit(slot, !first && user::second_at(in, p, e, i));
#endif
  }
};

template <bool values>
static __device__ __forceinline__ void load(const user::args &in, count first,
                                            unsigned valid, tile &t)
{
  if (values)
    for (unsigned slot = 0; slot < KILN_ITEMS; ++slot)
      t.value[slot] = user::value();
  t.first = 0;
  t.second = 0;
  kiln::tile_load<shape, vectors, KILN_VECTOR>(in, first, valid,
                                               taker<values>{in, t});
}

static __device__ __forceinline__ unsigned elements_of(count tile, count n)
{
  const count first = tile * shape::size;

  return static_cast<unsigned>(n - first < shape::size ? n - first
                                                       : shape::size);
}

/* ---- Counting blocks ----------------------------------------------------- */

#if KILN_LAYOUT == 0
static __device__ __forceinline__ totals add(const totals &a, const totals &b)
{
  return a + b;
}

/* Counts the elements of the partitions, from the last tile to the first. So
 * the L2 cache still holds the first tiles when the other blocks load them. The
 * last counting block publishes the totals. */
static __device__ __forceinline__ void
count_tiles(const user::args &in, count n, count tiles, unsigned counters,
            unsigned long long *words, unsigned epoch)
{
  totals mine{};

#pragma unroll 1
  for (count k = blockIdx.x; k < tiles; k += counters) {
    const count which = tiles - 1 - k;
    tile t;

    load<false>(in, which * shape::size, elements_of(which, n), t);
    mine = add(mine, totals_of(static_cast<unsigned>(__popc(t.first)) |
                               static_cast<unsigned>(__popc(t.second))
                                   << second_shift));
  }
  mine = kiln::block_reduce_first<KILN_BLOCK>(mine, kiln::sum{});
  if (threadIdx.x == 0)
    kiln::tile_publish(words, tiles + blockIdx.x, mine,
                       kiln::descriptor_tag(epoch, kiln::status_partial));
  if (blockIdx.x == counters - 1 && kiln::warp() == 0) {
    const totals all = kiln::count_gather(words, tiles, counters, epoch,
                                          kiln::sum{}, totals{});

    if (kiln::lane() == 0)
      kiln::tile_publish(words, tiles + counters, all,
                         kiln::descriptor_tag(epoch, kiln::status_prefix));
  }
}
#endif

/* ---- Blocks that move elements ------------------------------------------- */

/* Stores each element of the tile to shared memory, in the order of the
 * partitions. Registers beyond the end of the input are stored after all
 * elements. `from` holds the counts of the preceding warps and `mine` the
 * counts of the tile. Both words hold the counts of two partitions, with 16
 * bits each. */
static __device__ __forceinline__ void arrange(shared_storage &r, const tile &t,
                                               const unsigned (&rank1)[vectors],
                                               const unsigned (&rank2)[vectors],
                                               unsigned from, unsigned mine)
{
  constexpr unsigned half = (1u << second_shift) - 1;
  const unsigned start2 = mine & half, start3 = start2 + (mine >> second_shift);

#pragma unroll
  for (unsigned k = 0; k < vectors; ++k) {
    unsigned before1 = (from & half) + rank1[k];
    unsigned before2 =
        KILN_PARTITIONS == 3 ? (from >> second_shift) + rank2[k] : 0;

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const unsigned slot = k * KILN_VECTOR + e;
      const unsigned place = shape::place(k) + e;
      unsigned to = start3 + place - before1 - before2;

      if ((t.first >> slot & 1u) != 0)
        to = before1++;
      else if (KILN_PARTITIONS == 3 && (t.second >> slot & 1u) != 0)
        to = start2 + before2++;
      r.value[to] = kiln::narrow<user::stored>(t.value[slot]);
    }
  }
}

/* Returns the sum of the counts of all preceding tiles, and publishes the
 * prefix of tile `which`. Warp 0 calls this function. */
static __device__ __forceinline__ totals before_tile(unsigned long long *words,
                                                     count which, count tiles,
                                                     unsigned epoch,
                                                     const totals &mine)
{
  const totals before =
      kiln::count_look_back<KILN_WINDOW, totals>(words, which, epoch);

  if (kiln::lane() == 0 && which + 1 < tiles)
    kiln::tile_publish(words, which, static_cast<totals>(before + mine),
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
}

/* With KILN_LAYOUT 0, returns the sum of the counts of all tiles. Other layouts
 * do not need this sum, and the function returns 0. Warp 0 calls this function. */
static __device__ __forceinline__ totals
in_all_tiles(const unsigned long long *words, count tiles, unsigned counters,
             unsigned epoch, const totals &mine)
{
  if (KILN_LAYOUT != 0)
    return totals{};
  /* Without counting blocks, the input has a single tile. */
  if (counters == 0)
    return mine;
  return kiln::count_gather(words, tiles + counters, 1, epoch, kiln::sum{},
                            totals{});
}

static __device__ __forceinline__ void
write(const shared_storage &r, count first, unsigned valid, const totals &mine,
      count n, user::stored *out, user::stored *out_second,
      user::stored *out_rest)
{
  const unsigned n1 = static_cast<unsigned>(first_of(mine));
  const unsigned n2 = static_cast<unsigned>(second_of(mine));
  const count rest = first - first_of(r.before) - second_of(r.before);
  const user::stored *const from = r.value + n1 + n2;

  kiln::copy_run<KILN_BLOCK>(out + first_of(r.before), r.value, n1);
#if KILN_LAYOUT == 2
  /* The second partition is stored backwards. Its part in this tile occupies the
   * n3 elements that precede `end`. */
  user::stored *const end = out + (n - rest);
  const unsigned n3 = valid - n1;

  kiln::along_lines<KILN_BLOCK>(end - n3, n3, [&](unsigned j) {
    end[static_cast<long long>(j) - n3] = from[n3 - 1 - j];
  });
#else
#if KILN_LAYOUT == 0
  out_second = out + first_of(r.all);
  out_rest = out_second + second_of(r.all);
#endif
#if KILN_PARTITIONS == 3
  kiln::copy_run<KILN_BLOCK>(out_second + second_of(r.before), r.value + n1,
                             n2);
#endif
  kiln::copy_run<KILN_BLOCK>(out_rest + rest, from, valid - n1 - n2);
#endif
}

static __device__ __forceinline__ void
move_tile(const user::args &in, count n, count which, count tiles,
          user::stored *out, user::stored *out_second, user::stored *out_rest,
          KILN_COUNT *counts, unsigned long long *words, unsigned counters,
          unsigned epoch)
{
  __shared__ shared_storage r;
  const unsigned valid = elements_of(which, n);
  unsigned rank1[vectors], rank2[vectors], from, both;
  totals mine;
  tile t;

#if KILN_PREFETCH > 0
  if (which + KILN_PREFETCH + 1 < tiles)
    user::prefetch_inputs(in,
                          (which + KILN_PREFETCH) * shape::size +
                              kiln::warp() * (shape::size / shape::warps),
                          shape::size / shape::warps);
#endif
  load<true>(in, which * shape::size, valid, t);
  from = kiln::warp_ranks<vectors, KILN_VECTOR>(t.first, rank1);
#if KILN_PARTITIONS == 3
  from |= kiln::warp_ranks<vectors, KILN_VECTOR>(t.second, rank2)
          << second_shift;
#endif
  from = kiln::warps_before(from, r.warp_count, both);
  mine = totals_of(both);
  if (threadIdx.x == 0 && tiles > 1)
    kiln::tile_publish(words, which, mine,
                       kiln::descriptor_tag(epoch, which == 0
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
  arrange(r, t, rank1, rank2, from, both);
  if (kiln::warp() == 0) {
    const totals before =
        which == 0 ? totals{} : before_tile(words, which, tiles, epoch, mine);
    const totals all = in_all_tiles(words, tiles, counters, epoch, mine);

    if (kiln::lane() == 0) {
      r.before = before;
      r.all = all;
      if (which == tiles - 1) {
        counts[0] = static_cast<KILN_COUNT>(first_of(before) + first_of(mine));
#if KILN_PARTITIONS == 3
        counts[1] =
            static_cast<KILN_COUNT>(second_of(before) + second_of(mine));
#endif
      }
    }
  }
  __syncthreads();
  write(r, which * shape::size, valid, mine, n, out, out_second, out_rest);
}

extern "C" __global__ void KILN_BOUNDS
partition(const user::args in, unsigned long long n, user::stored *out,
          user::stored *out_second, user::stored *out_rest, KILN_COUNT *counts,
          unsigned long long *words, unsigned counters, unsigned epoch)
{
  const count tiles = gridDim.x - counters;

#if KILN_LAYOUT == 0
  if (blockIdx.x < counters) {
    count_tiles(in, n, tiles, counters, words, epoch);
    return;
  }
#endif
  move_tile(in, n, blockIdx.x - counters, tiles, out, out_second, out_rest,
            counts, words, counters, epoch);
}

#include <kiln/user_texts.cuh>
