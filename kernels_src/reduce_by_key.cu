/* reduce_by_key.cu -- reduce each run of equal consecutive keys to one value, in one
 * launch. The results are the first key and the reduction of each run, and the number of
 * runs.
 *
 * Problem: a run may span many tiles, and its result goes to an index that all preceding
 * tiles decide.
 * Idea: an element whose key differs from the preceding key starts a run and closes the
 * run before it. Each warp reduces its elements in registers as scan_by_key.cu does, and
 * stages the keys that start runs and the results of the runs that they close, in order,
 * in shared memory. Two prefixes over the preceding tiles follow. The number of runs
 * decides where the results go; it is an integer sum. The reduction since the last start
 * of a run is needed by the first closed run of the tile only. It takes a look-back in
 * which a tile with a start of a run ends the search (status_reset in look_back.cuh), so
 * with runs shorter than a tile it reads one group of descriptors. Two warps compute the
 * two prefixes at the same time.
 * Invariant: the operands keep their order, and totals are combined in a fixed order. For
 * the same n and specialisation, the result has the same bits in every run.
 * Cost: one read per key and element, and one write per run of both results.
 * Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back,
 * 2016.
 *
 * Parameters (scan.cu describes them in more detail):
 *   KILN_BLOCK        288                  threads per block; the last warp holds no
 *                                          elements
 *   KILN_VECTOR       4                    elements per vector
 *   KILN_VECTORS      4                    vectors per thread; KILN_VECTOR *
 *                                          KILN_VECTORS is at most 32
 *   KILN_PER_SM       0                    minimum number of resident blocks per SM; 0
 *                                          sets no limit
 *   KILN_T            type float           type of an element of out in memory
 *   KILN_PLAIN        1                    1 if tiles hold elements in their storage
 *                                          format
 *   KILN_IN_ALIGNED   1                    1 if the input is aligned to 16 bytes
 *   KILN_WINDOW       4                    descriptors that a lane reads at a time
 *   KILN_LEADER       0                    1 if block 0 computes the numbers of runs
 *                                          before all tiles (leader_prefix.cuh)
 *   KILN_PREFETCH     0                    distance, in tiles, of the prefetch of keys
 *                                          and input
 *   KILN_KEY          type unsigned        type of a key in memory
 *   KILN_KEY_ALIGNED  1                    1 if the keys are aligned to 16 bytes
 *   KILN_KEYS         1                    1 writes the first key of each run
 *   KILN_COUNT        type unsigned        type of the number of runs
 *   KILN_WIDE         0                    1 if n is 2^32 or more
 * Generated code (user.cuh): the input and the operation. same(s, a, b) compares the keys
 * of two consecutive elements.
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile of (KILN_BLOCK -
 *         32) * KILN_VECTOR * KILN_VECTORS elements. With KILN_LEADER, the leader block
 *         precedes the blocks of the tiles.
 *         n         number of elements, at least 1
 *         keys      n keys
 *         out_keys, out   arrays with space for all runs
 *         runs      receives the number of runs
 *         words     tile descriptors for reductions, aligned to 16 bytes: one word per
 *                   tile (two words if the operation computes in 8 bytes), where the
 *                   number of tiles is rounded up to a multiple of KILN_WINDOW
 *         counts    tile descriptors for numbers of runs, one word per tile (two words
 *                   with KILN_WIDE); with KILN_LEADER, as in leader_prefix.cuh
 *         epoch     epoch of this launch
 * Result: the result has the same bits in every run. */
#ifdef KILN_ITEMS /* elements per thread */
#define KILN_VECTORS ((KILN_ITEMS + KILN_VECTOR - 1) / KILN_VECTOR)
#endif
#include <kiln/params/reduce_by_key.cuh>

#define KILN_ALIGNED 0 /* results are stored one by one */
#define KILN_HEADS 0
#define KILN_INIT 0
#define KILN_EXCLUSIVE 0
#include <kiln/scan_tile.cuh>

#include <kiln/compact.cuh>
#include <kiln/leader_prefix.cuh>

typedef kiln::compute_t<KILN_KEY> key;

#if !KILN_GENERATED
namespace user
{
static __device__ __forceinline__ bool same(const args &, key a, key b)
{
  return a == b;
}
} // namespace user
#endif

#include <kiln/segmented_tile.cuh>

static_assert(KILN_VECTOR * KILN_VECTORS <= 32, "at most 32 elements per thread");

struct shared_storage : segment_storage {
  acc prefix;      /* reduction over the preceding tiles */
  position before; /* number of runs that start in the preceding tiles */
  /* Number of runs that start in each warp, then in the lower warps. */
  unsigned starts[warps];
  unsigned all_starts; /* number of runs that start in the tile */
  /* first[w] is the reduction over those elements of warp w that precede the
   * first start of a run in the warp. */
  acc first[warps];
  /* The part of each warp begins at a multiple of warp_tile. Entry j belongs to
   * start number j of the warp: its key, and the result of the run that it
   * closes. */
#if KILN_KEYS
  KILN_KEY key_of[tile_size];
#endif
  KILN_T closed[tile_size];
};

static __device__ __forceinline__ count tiles()
{
  return gridDim.x - KILN_LEADER;
}

static __device__ __forceinline__ void
prefetch_ahead(const source &s, const KILN_KEY *keys, count tile)
{
#if KILN_PREFETCH > 0
  const count i = (tile + KILN_PREFETCH) * tile_size + kiln::warp() * warp_tile;

  if (tile + KILN_PREFETCH + 1 < tiles()) {
    user::prefetch_inputs(s.in, i, warp_tile);
    kiln::prefetch(keys + i, warp_tile * sizeof *keys);
  }
#else
  (void)s, (void)keys, (void)tile;
#endif
}

/* Clears the bits of elements that do not exist. */
static __device__ __forceinline__ void
drop_missing(const tile_view &v, unsigned (&heads)[KILN_VECTORS])
{
  if (v.size == tile_size)
    return;
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      if (v.begin + r * row + e >= v.size)
        heads[r] &= ~(1u << e);
}

/* Returns the key in its storage format. A key that computations widen is loaded
 * again, because the conversion of f16 to float and back changes NaNs. */
static __device__ __forceinline__ KILN_KEY stored_key(const KILN_KEY *keys,
                                                      count i, key k)
{
  if (sizeof(KILN_KEY) < sizeof(key))
    return keys[i];
  return kiln::narrow<KILN_KEY>(k);
}

/* Stages the starts of runs of a warp. `rank` has the number of starts before
 * each vector, and `before` the reduction since the last start. */
static __device__ __forceinline__ void
stage(const source &s, const tile_view &v, const KILN_KEY *keys,
      const key (&k)[KILN_VECTORS][KILN_VECTOR], const held (&h)[KILN_VECTORS],
      const unsigned (&heads)[KILN_VECTORS], const acc (&before)[KILN_VECTORS],
      const unsigned (&rank)[KILN_VECTORS], shared_storage &storage)
{
  const unsigned from = kiln::warp() * warp_tile;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    unsigned next = rank[r];
    acc sum = before[r];

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const bool head = (heads[r] >> e & 1u) != 0;
      const acc value = at(h[r], e);

      if (head) {
#if KILN_KEYS
        storage.key_of[from + next] = stored_key(keys, v.at(r) + e, k[r][e]);
#endif
        storage.closed[from + next] = kiln::narrow<KILN_T>(sum);
        if (next == 0)
          storage.first[kiln::warp()] = sum;
        ++next;
      }
      sum = head ? value : s.op(sum, value);
    }
  }
  (void)v, (void)keys, (void)k;
}

/* Loads and reduces the elements of a warp. Returns the number of runs that
 * start in the warp. */
static __device__ __forceinline__ unsigned reduce_tile(const source &s,
                                                       const KILN_KEY *keys,
                                                       const tile_view &v,
                                                       shared_storage &storage)
{
  loaded p[KILN_VECTORS];
  held h[KILN_VECTORS];
  key k[KILN_VECTORS][KILN_VECTOR];
  unsigned heads[KILN_VECTORS], rank[KILN_VECTORS], cut, mask = 0, starts;
  acc before[KILN_VECTORS], total;
  bool begins;

  load_tile(s, v, p);
  load_keys(keys, v, k);
  mark_heads(s, keys, v, k, heads);
  drop_missing(v, heads);
  hold_tile(s, v, p, h);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    mask |= heads[r] << r * KILN_VECTOR;
  starts = kiln::warp_ranks<KILN_VECTORS, KILN_VECTOR>(mask, rank);
  total = reduce_warp(s, s.identity, h, heads, before, &cut, &begins);
  stage(s, v, keys, k, h, heads, before, rank, storage);
  if (kiln::lane() == 31) {
    storage.warp[kiln::warp()] = total;
    storage.cut[kiln::warp()] = begins;
    storage.starts[kiln::warp()] = starts;
  }
  return starts;
}

/* ---- The two prefixes ---------------------------------------------------- */

typedef kiln::tile_chain<KILN_WINDOW, true, acc, user::op> tile_chain;

/* Publishes the total of the tile, and returns the total. Computes the reduction
 * since the last start of a run before the tile. Warp 0 calls this function. */
static __device__ __forceinline__ acc reduce_before(const source &s,
                                                    shared_storage &storage,
                                                    unsigned long long *words,
                                                    count tile, unsigned epoch)
{
  const acc total = publish_total(storage, s, words, tile, epoch);
  const acc prefix = tile_chain(words, epoch, s.op, s.identity, s.identity)
                         .before(tile, total, storage.resets);

  if (kiln::lane() == 0)
    storage.prefix = prefix;
  return total;
}

/* Returns, in every lane, the number of runs that start before the tile. */
static __device__ __forceinline__ position runs_before(
    unsigned long long *counts, count tile, unsigned epoch, unsigned mine)
{
  position before = 0;

#if KILN_LEADER
  if (kiln::lane() == 0) {
    kiln::tile_publish(counts, tile, static_cast<position>(mine),
                       kiln::descriptor_tag(epoch, kiln::status_partial));
    before = kiln::leader_wait<position>(counts, tiles(), tile, epoch);
  }
  return kiln::warp_broadcast(before, 0);
#else
  if (kiln::lane() == 0)
    kiln::tile_publish(counts, tile, static_cast<position>(mine),
                       kiln::descriptor_tag(epoch, tile == 0
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
  if (tile == 0)
    return 0;
  before = kiln::count_look_back<KILN_WINDOW, position>(counts, tile, epoch);
  if (kiln::lane() == 0 && tile + 1 < tiles())
    kiln::tile_publish(counts, tile, static_cast<position>(before + mine),
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
#endif
}

/* Replaces the numbers of starts of the warps by those of the lower warps, and
 * computes the number of starts before the tile. The warp without elements calls
 * this function. */
static __device__ __forceinline__ void count_before(shared_storage &storage,
                                                    unsigned long long *counts,
                                                    count tile, unsigned epoch)
{
  const unsigned lane = kiln::lane();
  const unsigned mine = lane < warps ? storage.starts[lane] : 0;
  const unsigned upto = kiln::warp_scan_inclusive(mine, kiln::sum{});
  const unsigned all = kiln::warp_broadcast(upto, 31);
  const position before = runs_before(counts, tile, epoch, all);

  if (lane < warps)
    storage.starts[lane] = upto - mine;
  if (lane == 0) {
    storage.before = before;
    storage.all_starts = all;
  }
}

/* ---- Results ------------------------------------------------------------- */

/* Writes the keys of the `n` runs that start in the calling warp, and the results
 * of the runs that these starts close. */
static __device__ __forceinline__ void
write_runs(const source &s, shared_storage &storage, unsigned n,
           KILN_KEY *out_keys, KILN_T *out)
{
  const unsigned warp = kiln::warp(), part = warp * warp_tile;
  const position from =
      static_cast<position>(storage.before + storage.starts[warp]);

  if (n == 0)
    return;
  if (kiln::lane() == 0) {
    acc base = storage.warp[warp];

    if (!storage.cut[warp])
      base = s.op(storage.prefix, base);
    storage.closed[part] =
        kiln::narrow<KILN_T>(s.op(base, storage.first[warp]));
  }
  __syncwarp();
#if KILN_KEYS
  kiln::warp_along_lines(out_keys + from, n, [&](unsigned j) {
    out_keys[from + j] = storage.key_of[part + j];
  });
#endif
  kiln::warp_along_lines(out + from - 1, n, [&](unsigned j) {
    if (from > 0 || j > 0)
      out[static_cast<position>(from + j - 1)] = storage.closed[part + j];
  });
  (void)out_keys;
}

/* Writes the result of the last run, and the number of runs. The last tile
 * calls this function. */
static __device__ __forceinline__ void finish(const source &s,
                                              const shared_storage &storage,
                                              acc total, KILN_T *out,
                                              KILN_COUNT *runs)
{
  const position n = static_cast<position>(storage.before + storage.all_starts);

  kiln::store(out + (n - 1),
              storage.resets ? total : s.op(storage.prefix, total));
  *runs = static_cast<KILN_COUNT>(n);
}

extern "C" __global__ void KILN_BOUNDS reduce_by_key(
    const user::args in, unsigned long long n, const KILN_KEY *keys,
    KILN_KEY *out_keys, KILN_T *out, KILN_COUNT *runs,
    unsigned long long *words, unsigned long long *counts, unsigned epoch)
{
  __shared__ shared_storage storage;
  const source s(in, n);
  const count tile = blockIdx.x - KILN_LEADER;
  /* The broadcast shows the compiler that all lanes have the same value. */
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);
  unsigned starts = 0;
  acc total = s.identity;

#if KILN_LEADER
  if (blockIdx.x == 0) {
    kiln::leader_publish_prefixes(counts, tiles(), epoch, kiln::sum{},
                                  position(0), position(0));
    return;
  }
#endif
  if (warp < warps) {
    prefetch_ahead(s, keys, tile);
    starts = reduce_tile(s, keys, tile_view(tile, n), storage);
  }
  __syncthreads();
  if (warp == warps)
    count_before(storage, counts, tile, epoch);
  if (warp == 0)
    total = reduce_before(s, storage, words, tile, epoch);
  __syncthreads();
  if (warp < warps)
    write_runs(s, storage, starts, out_keys, out);
  if (threadIdx.x == 0 && tile + 1 == tiles())
    finish(s, storage, total, out, runs);
}

#include <kiln/user_texts.cuh>
