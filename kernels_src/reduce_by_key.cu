/* reduce_by_key.cu -- reduce each run of equal consecutive keys to one value, in one
 * launch. The results are the first key and the reduction of each run, and the number of
 * runs.
 *
 * Problem: a run may span many tiles, and its result goes to an index that all preceding
 * tiles decide.
 * Idea: an element whose key differs from the preceding key starts a run and closes the
 * run before it. A warp loads its part of the tile in rows, and exchanges the elements
 * through shared memory so that each lane holds consecutive ones. A lane then reduces its
 * elements one by one, and one scan over the lanes suffices (segmented_tile.cuh). The warp
 * stages the keys that start runs and the results of the runs that they close, in order,
 * in shared memory. Two prefixes over the preceding tiles follow. The number of runs
 * decides where the results go; it is an integer sum. The reduction since the last start
 * of a run is needed by the first closed run of the tile only. It takes a look-back in
 * which a tile with a start of a run ends the search (status_reset in look_back.cuh), so
 * with runs shorter than a tile it reads one group of descriptors. A warp of its own
 * computes the number of runs. It starts as soon as the keys are compared, while the
 * other warps still load and reduce the elements.
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
 *   KILN_LATE         0                    1 loads the elements after the keys have been
 *                                          compared, which needs fewer registers
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

enum : unsigned { items = KILN_VECTOR * KILN_VECTORS };

static_assert(items <= 32, "at most 32 elements per thread");
static_assert((KILN_VECTORS & (KILN_VECTORS - 1)) == 0,
              "KILN_VECTORS: a power of two");

/* A vector as the lanes of a warp exchange it. */
template <class T> struct alignas(KILN_VECTOR * sizeof(T)) exchanged {
  T element[KILN_VECTOR];
};

struct shared_storage : segment_storage {
  acc prefix;      /* reduction over the preceding tiles */
  position before; /* number of runs that start in the preceding tiles */
  /* Number of runs that start in each warp, then in the lower warps. */
  unsigned starts[warps];
  unsigned all_starts; /* number of runs that start in the tile */
  /* The part of each warp begins at a multiple of warp_tile. First the lanes of
   * the warp exchange their elements there. Then entry j belongs to start
   * number j of the warp: its key, and the result of the run that it closes. */
  alignas(KILN_VECTOR * sizeof(key)) key key_of[tile_size];
  alignas(KILN_VECTOR * sizeof(acc)) acc closed[tile_size];
};

/* Returns the staged keys of the warp whose part of shared memory begins at index
 * `part`. */
static __device__ __forceinline__ KILN_KEY *staged_keys(shared_storage &storage,
                                                        unsigned part)
{
  return reinterpret_cast<KILN_KEY *>(storage.key_of + part);
}

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

/* Moves the elements of a warp from rows, where vector r of a lane is vector
 * r * 32 + lane of the warp, to lanes, where it is vector lane * KILN_VECTORS + r.
 * `part` is the warp's part of shared memory. The exclusive or spreads the vectors
 * over the banks of shared memory, both for rows and for lanes. */
template <class T>
static __device__ __forceinline__ void
rows_to_lanes(T (&x)[KILN_VECTORS][KILN_VECTOR], T *part)
{
  exchanged<T> *const to = reinterpret_cast<exchanged<T> *>(part);
  const auto place = [](unsigned i) {
    return i ^ (i / 8 & (KILN_VECTORS - 1));
  };

  if (KILN_VECTORS == 1)
    return;
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    memcpy(&to[place(r * 32 + kiln::lane())], x[r], sizeof x[r]);
  __syncwarp();
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    memcpy(x[r], &to[place(kiln::lane() * KILN_VECTORS + r)], sizeof x[r]);
  __syncwarp();
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

/* Loads the keys of a warp in rows. A whole tile needs no tests. */
static __device__ __forceinline__ void
load_key_rows(const KILN_KEY *keys, const tile_view &v,
              key (&k)[KILN_VECTORS][KILN_VECTOR])
{
  if (v.size == tile_size) {
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      kiln::load_vector<KILN_VECTOR, KILN_KEY_ALIGNED != 0>(keys + v.at(r),
                                                            k[r]);
    return;
  }
  load_keys(keys, v, k);
}

/* Loads the elements of a warp in rows. */
static __device__ __forceinline__ void
load_rows(const source &s, const tile_view &v, held (&h)[KILN_VECTORS])
{
  loaded p[KILN_VECTORS];

  if (v.size == tile_size) {
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      load_vector(s.in, v.at(r), p[r]);
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      hold(s.in, v.at(r), true, p[r], s.identity, h[r]);
    return;
  }
  load_tile(s, v, p);
  hold_tile(s, v, p, h);
}

/* The elements that the calling lane holds: `items` consecutive elements of the
 * tile. */
struct lane_part {
  count first;    /* index of the lane's first element */
  unsigned from;  /* index of the warp's part of shared memory */
  unsigned heads; /* mask of the elements that start a run */
  unsigned rank;  /* number of runs that start in the lower lanes of the warp */
  unsigned all;   /* number of runs that start in the warp */
};

/* Marks the elements that start a run, and stages their keys. */
static __device__ __forceinline__ lane_part mark_keys(const source &s,
                                                      const KILN_KEY *keys,
                                                      const tile_view &v,
                                                      shared_storage &storage)
{
  const unsigned place = kiln::warp() * warp_tile + kiln::lane() * items;
  lane_part p = {v.first + place, kiln::warp() * warp_tile, 0, 0, 0};
  key k[KILN_VECTORS][KILN_VECTOR], previous = {};
  unsigned next;

  load_key_rows(keys, v, k);
  /* The key before the warp's part is loaded with the others. */
  if (kiln::lane() == 0 && p.first > 0 && place < v.size)
    previous = kiln::load(keys + p.first - 1);
  rows_to_lanes(k, storage.key_of + p.from);
  {
    const key below = kiln::shuffle_up(k[KILN_VECTORS - 1][KILN_VECTOR - 1], 1);

    previous = kiln::lane() == 0 ? previous : below;
  }
#pragma unroll
  for (unsigned j = 0; j < items; ++j) {
    const key mine = k[j / KILN_VECTOR][j % KILN_VECTOR];

    if (!user::same(s.in, previous, mine))
      p.heads |= 1u << j;
    previous = mine;
  }
  if (p.first == 0)
    p.heads |= 1u;
  if (v.size < tile_size && place + items > v.size)
    p.heads &= place < v.size ? (1u << (v.size - place)) - 1 : 0u;
  next = static_cast<unsigned>(__popc(p.heads));
  p.rank = kiln::warp_scan_inclusive(next, kiln::sum{});
  p.all = kiln::warp_broadcast(p.rank, 31);
  p.rank -= next;
#if KILN_KEYS
  if (p.all > 0) {
    KILN_KEY *to = staged_keys(storage, p.from) + p.rank;

#pragma unroll
    for (unsigned j = 0; j < items; ++j)
      if ((p.heads >> j & 1u) != 0)
        *to++ =
            stored_key(keys, p.first + j, k[j / KILN_VECTOR][j % KILN_VECTOR]);
  }
#endif
  return p;
}

/* Reduces the elements of the calling lane since the last start of a run, and
 * returns the result. Stages the reductions that starts close. The reduction that
 * the lane's first start closes lacks the elements of lower lanes. */
static __device__ __forceinline__ acc
reduce_lane(const source &s, const acc (&x)[KILN_VECTORS][KILN_VECTOR],
            const lane_part &p, shared_storage &storage)
{
  acc sum = x[0][0];
  acc *to = storage.closed + (p.from + p.rank);

  if (p.all == 0) {
#pragma unroll
    for (unsigned j = 1; j < items; ++j)
      sum = s.op(sum, x[j / KILN_VECTOR][j % KILN_VECTOR]);
    return sum;
  }
  if ((p.heads & 1u) != 0)
    *to++ = s.identity;
#pragma unroll
  for (unsigned j = 1; j < items; ++j) {
    const acc value = x[j / KILN_VECTOR][j % KILN_VECTOR];
    const acc longer = s.op(sum, value);
    const bool head = (p.heads >> j & 1u) != 0;

    if (head)
      *to++ = sum;
    sum = head ? value : longer;
  }
  return sum;
}

/* Combines the reductions of the lanes. Returns the reduction of the warp since
 * its last start of a run. The reduction that the warp's first start closes lacks
 * the elements of lower warps. */
static __device__ __forceinline__ acc reduce_lanes(const source &s, acc sum,
                                                   const lane_part &p,
                                                   shared_storage &storage)
{
  const unsigned begins = kiln::warp_ballot(p.heads != 0);
  const unsigned since = segment_lane(begins);
  acc before;

#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    before = kiln::shuffle_up(sum, step);
    if (kiln::lane() >= step + since)
      sum = s.op(before, sum);
  }
  before = kiln::shuffle_up(sum, 1);
  if (p.heads != 0 && kiln::lane() > 0)
    storage.closed[p.from + p.rank] =
        s.op(before, storage.closed[p.from + p.rank]);
  return kiln::warp_broadcast(sum, 31);
}

/* Barriers of parts of a block; barrier 0 is that of __syncthreads(). */
enum : unsigned { counted = 1, reduced = 2 };

/* Tells the warp without elements that the calling warp has counted its runs, without
 * waiting for it. */
static __device__ __forceinline__ void arrive_counted()
{
  __syncwarp();
  asm volatile("bar.arrive %0, %1;" ::"n"(static_cast<int>(counted)),
               "n"(KILN_BLOCK)
               : "memory");
}

/* Waits for all warps that have elements. */
static __device__ __forceinline__ void wait_counted()
{
  __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"n"(static_cast<int>(counted)),
               "n"(KILN_BLOCK)
               : "memory");
}

/* Waits for the other warps that have elements. These warps call this function. */
static __device__ __forceinline__ void wait_reduced()
{
  __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"n"(static_cast<int>(reduced)),
               "n"(static_cast<int>(holders))
               : "memory");
}

/* Loads and reduces the elements of a warp. Returns the number of runs that
 * start in the warp. */
static __device__ __forceinline__ unsigned reduce_tile(const source &s,
                                                       const KILN_KEY *keys,
                                                       const tile_view &v,
                                                       shared_storage &storage)
{
  held h[KILN_VECTORS];
  acc x[KILN_VECTORS][KILN_VECTOR], total;
  lane_part mine;

  if (!KILN_LATE)
    load_rows(s, v, h);
  mine = mark_keys(s, keys, v, storage);
  if (kiln::lane() == 0)
    storage.starts[kiln::warp()] = mine.all;
  arrive_counted();
  if (KILN_LATE)
    load_rows(s, v, h);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      x[r][e] = at(h[r], e);
  rows_to_lanes(x, storage.closed + mine.from);
  total = reduce_lanes(s, reduce_lane(s, x, mine, storage), mine, storage);
  if (kiln::lane() == 31) {
    storage.warp[kiln::warp()] = total;
    storage.cut[kiln::warp()] = mine.all > 0;
  }
  return mine.all;
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
    storage.closed[part] = s.op(base, storage.closed[part]);
  }
  __syncwarp();
#if KILN_KEYS
  kiln::warp_along_lines(out_keys + from, n, [&](unsigned j) {
    out_keys[from + j] = staged_keys(storage, part)[j];
  });
#endif
  kiln::warp_along_lines(out + from - 1, n, [&](unsigned j) {
    if (from > 0 || j > 0)
      out[static_cast<position>(from + j - 1)] =
          kiln::narrow<KILN_T>(storage.closed[part + j]);
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
    wait_reduced();
    if (warp == 0)
      total = reduce_before(s, storage, words, tile, epoch);
  } else {
    wait_counted();
    count_before(storage, counts, tile, epoch);
  }
  __syncthreads();
  if (warp < warps)
    write_runs(s, storage, starts, out_keys, out);
  if (threadIdx.x == 0 && tile + 1 == tiles())
    finish(s, storage, total, out, runs);
}

#include <kiln/user_texts.cuh>
