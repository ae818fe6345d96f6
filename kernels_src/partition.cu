/* partition.cu -- divide elements into two or three partitions in one launch. Each
 * partition keeps the order of the input.
 *
 * The kernel ranks elements as select.cu does, but keeps all elements. Shared memory
 * holds the partitions of a tile one after the other.
 * If the partitions share one array (KILN_LAYOUT 0), the start of the second partition
 * depends on the size of the first partition, and so on every tile. Therefore the first
 * blocks of the launch, the counting blocks, only count. Each of them counts a chunk of
 * consecutive tiles, from the last tile to the first, and publishes for each tile the
 * sum from that tile to the end of the chunk. The last counting block publishes the sum
 * over all chunks up to the end of each chunk. The difference of these two sums is what
 * precedes a tile, so no tile waits for another tile. Blocks move tiles in ascending order:
 * on an H200, 2^28 elements take 767 us, and 812 us if consecutive blocks move tiles of
 * different chunks.
 * With the other layouts, a tile learns what precedes it by decoupled look-back
 * (look_back.cuh).
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
 *         words      tiles + counters tile descriptors of one word each. Three
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
    /* Evaluated for each element, since vectors keep results (user.cuh). */
    const bool second = user::second_at(in, p, e, i);

    t.second |= kiln::slot_bit(slot, !first && second);
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

/* The counts of the tiles. The descriptors of the chunks follow those of the
 * tiles. */
struct counted {
  unsigned long long *words;
  count n;
  unsigned tiles, counters, epoch;

  /* Returns the first tile of a chunk. Chunks differ by one tile at most, and
   * the longer chunks come first. */
  __device__ __forceinline__ unsigned chunk_begin(unsigned chunk) const
  {
    const unsigned longer = tiles % counters;

    return chunk * (tiles / counters) + (chunk < longer ? chunk : longer);
  }
  __device__ __forceinline__ unsigned chunk_of(unsigned tile) const
  {
    const unsigned each = tiles / counters, longer = tiles % counters;
    const unsigned shorter_begin = longer * (each + 1);

    return tile < shorter_begin ? tile / (each + 1)
                                : longer + (tile - shorter_begin) / each;
  }
  __device__ __forceinline__ unsigned tag(unsigned status) const
  {
    return kiln::descriptor_tag(epoch, status);
  }
};

#if KILN_LAYOUT == 0
struct count_storage {
  /* The counts of the warps. Consecutive tiles alternate between the rows, so
   * that one barrier per tile suffices. */
  unsigned warp_count[2][shape::warps];
};

/* Returns the counts of this tile, in all lanes of warp 0. */
static __device__ __forceinline__ totals
count_tile(const user::args &in, const counted &c, unsigned which,
           unsigned (&warp_count)[shape::warps])
{
  unsigned sum;
  tile t;

  load<false>(in, static_cast<count>(which) * shape::size,
              elements_of(which, c.n), t);
  sum = kiln::warp_reduce(static_cast<unsigned>(__popc(t.first)) |
                              static_cast<unsigned>(__popc(t.second))
                                  << second_shift,
                          kiln::sum{});
  if (kiln::lane() == 0)
    warp_count[kiln::warp()] = sum;
  __syncthreads();
  if (kiln::warp() != 0)
    return totals{};
  sum = kiln::lane() < shape::warps ? warp_count[kiln::lane()] : 0;
  return totals_of(kiln::warp_reduce(sum, kiln::sum{}));
}

/* Replaces the sum of each chunk by the sum over all chunks up to the end of this
 * chunk. All threads of the block call this function. */
static __device__ __forceinline__ void scan_chunks(const counted &c)
{
  totals before{};

#pragma unroll 1
  for (unsigned first = 0; first < c.counters; first += KILN_BLOCK) {
    const unsigned chunk = first + threadIdx.x;
    totals own{};

    while (chunk < c.counters &&
           kiln::tile_peek(c.words, c.tiles + chunk, c.epoch, &own) == 0)
      kiln::tile_pause();
    own = before + kiln::block_scan_inclusive(own, kiln::sum{});
    if (chunk < c.counters)
      kiln::tile_publish(c.words, c.tiles + chunk, own,
                         c.tag(kiln::status_prefix));
    before = kiln::block_broadcast(own, KILN_BLOCK - 1);
  }
}

static __device__ __forceinline__ void count_chunk(const user::args &in,
                                                   const counted &c)
{
  __shared__ count_storage r;
  const count begin = c.chunk_begin(blockIdx.x);
  totals sum{};

#pragma unroll 1
  for (unsigned which = c.chunk_begin(blockIdx.x + 1); which-- > begin;) {
    sum = sum + count_tile(in, c, which, r.warp_count[which % 2]);
    if (threadIdx.x == 0)
      kiln::tile_publish(c.words, which, sum, c.tag(kiln::status_partial));
  }
  if (threadIdx.x == 0)
    kiln::tile_publish(c.words, c.tiles + blockIdx.x, sum,
                       c.tag(kiln::status_partial));
  if (blockIdx.x == c.counters - 1)
    scan_chunks(c);
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

#if KILN_LAYOUT == 0
/* The descriptors from which the start of a tile follows. */
struct start_words {
  kiln::tile_descriptor<totals> chunk, tile, last;
};

/* Loads the descriptors, which need not be published yet. */
static __device__ __forceinline__ start_words peek_start(const counted &c,
                                                         unsigned which)
{
  return {kiln::descriptor_load<totals>(c.words, c.tiles + c.chunk_of(which)),
          kiln::descriptor_load<totals>(c.words, which),
          kiln::descriptor_load<totals>(c.words, c.tiles + c.counters - 1)};
}

/* Waits until the counting blocks have published the descriptors. The tile of
 * a chunk is published before the chunk. */
static __device__ __forceinline__ void find_start(shared_storage &r,
                                                  const counted &c,
                                                  unsigned which,
                                                  start_words seen)
{
  totals end, rest;

  while (kiln::descriptor_read(seen.chunk, c.epoch, &end) !=
             kiln::status_prefix ||
         kiln::descriptor_read(seen.tile, c.epoch, &rest) == 0 ||
         kiln::descriptor_read(seen.last, c.epoch, &r.all) !=
             kiln::status_prefix) {
    kiln::tile_pause();
    seen = peek_start(c, which);
  }
  r.before = end - rest;
}
#else
/* Finds the sum of the counts of all preceding tiles by a look-back, and
 * publishes the prefix of this tile. Warp 0 calls this function. */
static __device__ __forceinline__ void look_back(shared_storage &r,
                                                 const counted &c,
                                                 unsigned which,
                                                 const totals &mine)
{
  totals before{};

  if (which > 0)
    before =
        kiln::count_look_back<KILN_WINDOW, totals>(c.words, which, c.epoch);
  if (kiln::lane() == 0) {
    if (which > 0 && which + 1 < c.tiles)
      kiln::tile_publish(c.words, which, static_cast<totals>(before + mine),
                         c.tag(kiln::status_prefix));
    r.before = before;
  }
}
#endif

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

static __device__ __forceinline__ void put_counts(KILN_COUNT *counts,
                                                  const totals &all)
{
  counts[0] = static_cast<KILN_COUNT>(first_of(all));
#if KILN_PARTITIONS == 3
  counts[1] = static_cast<KILN_COUNT>(second_of(all));
#endif
}

static __device__ __forceinline__ void
move_tile(const user::args &in, const counted &c, unsigned which,
          user::stored *out, user::stored *out_second, user::stored *out_rest,
          KILN_COUNT *counts)
{
  __shared__ shared_storage r;
  const unsigned valid = elements_of(which, c.n);
  unsigned rank1[vectors], rank2[vectors], from, both;
  totals mine;
  tile t;

#if KILN_LAYOUT == 0
  start_words seen;

  if (threadIdx.x == 0 && c.counters > 0)
    seen = peek_start(c, which);
#endif
#if KILN_PREFETCH > 0
  if (which + KILN_PREFETCH + 1 < c.tiles)
    user::prefetch_inputs(in,
                          static_cast<count>(which + KILN_PREFETCH) *
                                  shape::size +
                              kiln::warp() * (shape::size / shape::warps),
                          shape::size / shape::warps);
#endif
  load<true>(in, static_cast<count>(which) * shape::size, valid, t);
  from = kiln::warp_ranks<vectors, KILN_VECTOR>(t.first, rank1);
#if KILN_PARTITIONS == 3
  from |= kiln::warp_ranks<vectors, KILN_VECTOR>(t.second, rank2)
          << second_shift;
#endif
  from = kiln::warps_before(from, r.warp_count, both);
  mine = totals_of(both);
#if KILN_LAYOUT == 0
  arrange(r, t, rank1, rank2, from, both);
  if (threadIdx.x == 0) {
    r.before = totals{};
    r.all = mine; /* of a single tile */
    if (c.counters > 0)
      find_start(r, c, which, seen);
    if (which == 0)
      put_counts(counts, r.all);
  }
#else
  if (threadIdx.x == 0 && c.tiles > 1)
    kiln::tile_publish(
        c.words, which, mine,
        c.tag(which == 0 ? kiln::status_prefix : kiln::status_partial));
  arrange(r, t, rank1, rank2, from, both);
  if (kiln::warp() == 0)
    look_back(r, c, which, mine);
  if (threadIdx.x == 0 && which == c.tiles - 1)
    put_counts(counts, static_cast<totals>(r.before + mine));
#endif
  __syncthreads();
  write(r, static_cast<count>(which) * shape::size, valid, mine, c.n, out,
        out_second, out_rest);
}

extern "C" __global__ void KILN_BOUNDS
partition(const user::args in, unsigned long long n, user::stored *out,
          user::stored *out_second, user::stored *out_rest, KILN_COUNT *counts,
          unsigned long long *words, unsigned counters, unsigned epoch)
{
  const counted c = {words, n, gridDim.x - counters, counters, epoch};

#if KILN_LAYOUT == 0
  if (blockIdx.x < counters) {
    count_chunk(in, c);
    return;
  }
#endif
  move_tile(in, c, blockIdx.x - counters, out, out_second, out_rest, counts);
}

#include <kiln/user_texts.cuh>
