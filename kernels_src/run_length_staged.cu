/* run_length_staged.cu -- a variant of run_length.cu for large inputs that are one array.
 *
 * Idea: a tile is staged in shared memory until the number of runs in the preceding tiles
 * is published, as in select_staged.cu. Block 0 computes the number of runs before every
 * tile (leader_prefix.cuh). A run ends where the next run starts, so only starts are
 * compacted. The tile in which the next run starts writes the length of a run, and
 * therefore needs the last start in the preceding tiles. A decoupled look-back
 * (look_back.cuh) finds that start. A tile with a start publishes its last start at once,
 * so the look-back nearly always reads only the preceding tile.
 * Cost: one read per element and one write per run.
 *
 * Parameters:
 *   KILN_BLOCK     256            threads per block
 *   KILN_ITEMS     16             elements per thread, a multiple of 4, at most 64
 *   KILN_PREFETCH  0              distance, in tiles, of the prefetch of the input
 *   KILN_VALUES    1              1 writes the first element of each run
 *   KILN_OFFSET    type unsigned  type of the start of a run
 *   KILN_OFFSETS   1              1 writes the start of each run
 *   KILN_LENGTH    type unsigned  type of the length of a run
 *   KILN_LENGTHS   1              1 writes the length of each run
 *   KILN_COUNT     type unsigned  type of the number of runs
 * Generated code (user.cuh): one array without a map, aligned to 16 bytes, with elements
 * of 4 or 8 bytes. equal(s, a, b) compares an element with the next element.
 * Launch: the grid has the leader block and one block per tile. Block b handles tile
 *         b - 1.
 *         n          number of elements, at least 1 and below 2^32
 *         values, offsets, lengths   arrays with space for all runs
 *         runs       receives the number of runs
 *         words      tile descriptors: two per tile in the layout of leader_prefix.cuh,
 *                    then one per tile for the last start
 * Result: the result is that of run_length.cu. */
#include <kiln/params/run_length_staged.cuh>

#define KILN_FLAT_BLOCK 1
#define KILN_MAX_BLOCK KILN_BLOCK
#define KILN_WIDE 0
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
static_assert(tile_size <= 65536, "places of a tile: 16 bits");
static_assert(sizeof(user::stored) == 4 || sizeof(user::stored) == 8,
              "elements of 4 or 8 bytes");

struct shared_storage {
  alignas(16) user::stored value[tile_size];
  unsigned short start[tile_size]; /* positions in the tile of all starts */
  unsigned warp_count[warps];
  /* Position in the tile of the last start of each warp, plus 1, or 0. */
  unsigned warp_last[warps];
  /* Number of runs that start in preceding tiles, and the last of their
   * starts. */
  position before, last;
};

/* Where the results of a call go. */
struct results {
  user::stored *values;
  KILN_OFFSET *offsets;
  KILN_LENGTH *lengths;
  KILN_COUNT *runs;
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

/* Returns whether element i of the warp's elements starts a run. `left` is the
 * element before the first one. */
static __device__ __forceinline__ bool is_start(const user::args &in,
                                                count first, unsigned i,
                                                user::stored left,
                                                const user::stored *value)
{
  if (first + i == 0)
    return true;
  return !user::equal(in, kiln::widen(i > 0 ? value[i - 1] : left),
                      kiln::widen(value[i]));
}

/* Finds the starts of runs among the elements of the warp, and returns their
 * number. `left` is the element before the first one. In the mask of a row of 32
 * elements, bit l is set if the element of lane l starts a run. Lane r % 32 holds
 * the mask of row r in mask[r / 32]. */
static __device__ __forceinline__ unsigned
mark(const user::args &in, count first, unsigned valid, user::stored left,
     const user::stored *value, unsigned (&mask)[masks])
{
  unsigned starts = 0;

#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
    mask[m] = 0;
#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
#pragma unroll 8
    for (unsigned r = 0; r < 32 && m * 32 + r < KILN_ITEMS; ++r) {
      const unsigned i = (m * 32 + r) * 32 + kiln::lane();
      const bool head = i < valid && is_start(in, first, i, left, value);
      const unsigned row = kiln::warp_ballot(head);

      starts += static_cast<unsigned>(__popc(row));
      if (kiln::lane() == r)
        mask[m] = row;
    }
  return starts;
}

/* Returns the position in the warp's elements of the last start, plus 1, or 0. */
static __device__ __forceinline__ unsigned
last_of(const unsigned (&mask)[masks])
{
  unsigned last = 0;

#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
    if (mask[m] != 0)
      last = (m * 32 + kiln::lane()) * 32 + 32 -
             static_cast<unsigned>(__clz(static_cast<int>(mask[m])));
  return kiln::warp_reduce(last, kiln::max{});
}

/* Writes the positions of the warp's starts to start[], row by row. `from` is the
 * position in the tile of the warp's first element. */
static __device__ __forceinline__ void
compact(const unsigned (&mask)[masks], unsigned from, unsigned short *start)
{
  const unsigned below = (1u << kiln::lane()) - 1;

#pragma unroll
  for (unsigned m = 0; m < masks; ++m)
#pragma unroll 8
    for (unsigned r = 0; r < 32 && m * 32 + r < KILN_ITEMS; ++r) {
      const unsigned row = kiln::warp_broadcast(mask[m], r);

      if ((row >> kiln::lane() & 1u) != 0)
        start[__popc(row & below)] = static_cast<unsigned short>(
            from + (m * 32 + r) * 32 + kiln::lane());
      start += __popc(row);
    }
}

/* The tile descriptors of a call. */
struct descriptors {
  unsigned long long *words;
  unsigned tile, tiles, epoch;

  __device__ __forceinline__ unsigned long long *lasts() const
  {
    return words + 2ull * tiles;
  }

  __device__ __forceinline__ unsigned tag(unsigned status) const
  {
    return kiln::descriptor_tag(epoch, status);
  }
};

/* The position of a start. The sum of two positions is the later one, so that
 * kiln::count_look_back() finds the last start. */
struct latest {
  position at;

  __device__ __forceinline__ latest operator+(const latest &b) const
  {
    return {at > b.at ? at : b.at};
  }
};

/* Publishes the number of starts of the tile, and the last start if there is
 * one. Warp 0 calls this function. */
static __device__ __forceinline__ void publish(const shared_storage &r,
                                               const descriptors &d,
                                               unsigned starts, count first)
{
  const unsigned mine = kiln::lane() < warps ? r.warp_last[kiln::lane()] : 0;
  const unsigned last = kiln::warp_reduce(mine, kiln::max{});

  if (kiln::lane() != 0)
    return;
  kiln::tile_publish(d.words, d.tile, static_cast<position>(starts),
                     d.tag(kiln::status_partial));
  kiln::tile_publish(
      d.lasts(), d.tile,
      latest{last > 0 ? static_cast<position>(first + last - 1) : 0},
      d.tag(last > 0 || d.tile == 0 ? kiln::status_prefix
                                    : kiln::status_partial));
}

/* Waits for the state of the preceding tiles. Warp 0 calls this function. */
static __device__ __forceinline__ void await(shared_storage &r,
                                             const descriptors &d,
                                             unsigned starts, KILN_COUNT *runs)
{
  latest last = {0};

  if (d.tile > 0)
    last = kiln::count_look_back<1, latest>(d.lasts(), d.tile, d.epoch);
  if (kiln::lane() != 0)
    return;
  if (starts == 0)
    kiln::tile_publish(d.lasts(), d.tile, last, d.tag(kiln::status_prefix));
  r.last = last.at;
  r.before = kiln::leader_wait<position>(d.words, d.tiles, d.tile, d.epoch);
  if (d.tile == d.tiles - 1)
    *runs = static_cast<KILN_COUNT>(r.before + starts);
}

/* Writes the runs that start in the tile, and the length of the run that is open
 * at the start of the tile. `end` is n in the last tile and 0 in other tiles. */
static __device__ __forceinline__ void write(const shared_storage &r,
                                             count first, unsigned starts,
                                             count end, const results &to)
{
  const unsigned open = first > 0 ? 1 : 0;

#if KILN_VALUES
  user::stored *const values = to.values + r.before;

  kiln::along_lines<KILN_BLOCK>(
      values, starts, [&](unsigned j) { values[j] = r.value[r.start[j]]; });
#endif
#if KILN_OFFSETS
  KILN_OFFSET *const offsets = to.offsets + r.before;

  kiln::along_lines<KILN_BLOCK>(offsets, starts, [&](unsigned j) {
    offsets[j] = static_cast<KILN_OFFSET>(first + r.start[j]);
  });
#endif
#if KILN_LENGTHS
  KILN_LENGTH *const lengths = to.lengths + r.before - open;
  const unsigned known = starts + open - (end == 0 ? 1 : 0);

  kiln::along_lines<KILN_BLOCK>(lengths, known, [&](unsigned j) {
    const count begin =
        j < open ? static_cast<count>(r.last) : first + r.start[j - open];
    const count stop =
        j + 1 - open < starts ? first + r.start[j + 1 - open] : end;

    lengths[j] = static_cast<KILN_LENGTH>(stop - begin);
  });
#endif
}

static __device__ __forceinline__ void encode_tile(const user::args &in,
                                                   count n,
                                                   const descriptors &d,
                                                   const results &to)
{
  __shared__ shared_storage r;
  const unsigned from = kiln::warp() * warp_tile;
  const count begin = static_cast<count>(d.tile) * tile_size;
  const count first = begin + from;
  const unsigned valid =
      first >= n ? 0
                 : static_cast<unsigned>(n - first < warp_tile ? n - first
                                                               : warp_tile);
  unsigned mask[masks], before, starts, last;
  user::stored left = user::stored();

  stage(in, first, valid, r.value + from);
  if (kiln::lane() == 0 && first > 0 && valid > 0)
    left = in.x0[first - 1];
#if KILN_PREFETCH > 0
  if (d.tile + KILN_PREFETCH + 1 < d.tiles)
    user::prefetch_inputs(
        in, first + static_cast<count>(KILN_PREFETCH) * tile_size, warp_tile);
#endif
  kiln::stage_wait();
  __syncwarp();
  before = mark(in, first, valid, left, r.value + from, mask);
  last = last_of(mask);
  if (kiln::lane() == 0)
    r.warp_last[kiln::warp()] = last > 0 ? from + last : 0;
  before = kiln::warps_before(before, r.warp_count, starts);
  if (kiln::warp() == 0)
    publish(r, d, starts, begin);
  compact(mask, from, r.start + before);
  if (kiln::warp() == 0)
    await(r, d, starts, to.runs);
  __syncthreads();
  write(r, begin, starts, d.tile + 1 < d.tiles ? 0 : n, to);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    run_length_staged(const user::args in, unsigned long long n,
                      user::stored *values, KILN_OFFSET *offsets,
                      KILN_LENGTH *lengths, KILN_COUNT *runs,
                      unsigned long long *words, unsigned epoch)
{
  const unsigned tiles = gridDim.x - 1;

  if (blockIdx.x == 0)
    kiln::leader_publish_prefixes(words, tiles, epoch, kiln::sum{}, position(0),
                                  position(0));
  else
    encode_tile(in, n, {words, blockIdx.x - 1, tiles, epoch},
                {values, offsets, lengths, runs});
}

#include <kiln/user_texts.cuh>
