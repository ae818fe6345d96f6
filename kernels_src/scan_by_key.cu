/* scan_by_key.cu -- prefix scan that restarts at every segment, in one launch that
 * reads each element once and writes it once.
 *
 * Works as scan.cu. An element that begins a segment discards what came before it.
 * A tile in which a segment begins publishes its total with status_reset, which
 * makes later tiles ignore everything before it (look_back.cuh). Combining
 * (segment begins, value) pairs like this is associative (Schwartz 1980; Blelloch,
 * Prefix Sums and Their Applications, 1990).
 *
 * Parameters, which mean what they mean in scan.cu unless described here:
 *   KILN_BLOCK        256                  threads per block
 *   KILN_VECTOR       4                    elements per vector
 *   KILN_VECTORS      4                    vectors per thread
 *   KILN_PER_SM       (1024 / KILN_BLOCK)  blocks per SM to limit registers for
 *   KILN_T            type float           type of an element of out in memory
 *   KILN_PLAIN        1                    1: elements are held as in memory
 *   KILN_IN_ALIGNED   1                    1: the input is aligned to 16 bytes
 *   KILN_ALIGNED      1                    1: out is aligned to 16 bytes
 *   KILN_EXCLUSIVE    0                    1: exclusive scan
 *   KILN_INIT         0                    1: every segment starts with `init`
 *   KILN_WINDOW       4                    tiles per lane and look-back
 *   KILN_HEADS        0                    what begins a segment. 0: neighbours in
 *                                          heads that differ; 1: a flag in heads
 *                                          that is not 0; 2: an index in heads
 *   KILN_KEY          type unsigned        type of an element of heads in memory
 *   KILN_KEY_ALIGNED  1                    1: heads is aligned to 16 bytes
 * Generated code (user.cuh): the input and the operation; for KILN_HEADS 0,
 * same(s, a, b) of two neighbours.
 * Launch: block KILN_BLOCK; one block per tile, at least one.
 *         n        number of elements
 *         heads    n elements; with KILN_HEADS 2, n_heads ascending indices
 *         out      n elements; may be one of the inputs, but not heads
 *         init     the bits of an element of out
 *         words, epoch   as for scan.cu
 * Result: the same bits whatever runs when. */
#include <kiln/params/scan_by_key.cuh>

#include <kiln/scan_tile.cuh>

typedef kiln::compute_t<KILN_KEY> key;

#if KILN_HEADS == 0 && !KILN_GENERATED
namespace user
{
static __device__ __forceinline__ bool same(const args &, key a, key b)
{
  return a == b;
}
} // namespace user
#endif

/* What the warps of a block exchange. */
struct shared_storage {
  /* Totals of the warps at first, prefixes of the warps later. */
  acc warp[warps];
  /* Does a segment begin in the warp; later: in an earlier warp. */
  bool cut[warps];
  acc prefix;       /* reduction over the tiles before */
  bool resets;      /* does a segment begin in the tile? */
  unsigned nothing; /* always 0, which the compiler cannot know */
#if KILN_HEADS == 2
  /* Position of the first index that lies in the tile or after it. */
  unsigned long long first_head;
  unsigned begins[tile_size / 32];
#endif
};

/* ---- Where segments begin: bit e of heads[r] for element e of vector r --- */

#if KILN_HEADS < 2
/* Loads the keys of a tile. Keys that do not exist keep arbitrary values, which
 * is harmless, since only elements that do not exist depend on them. */
static __device__ __forceinline__ void
load_keys(const KILN_KEY *from, const tile_view &v,
          key (&k)[KILN_VECTORS][KILN_VECTOR])
{
  key tail[KILN_VECTOR] = {};

#pragma unroll
  for (unsigned e = 0; e + 1 < KILN_VECTOR; ++e)
    if (v.has_tail() && v.tail + e < v.size)
      tail[e] = kiln::load(from + v.first + v.tail + e);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      k[r][e] = tail[e];
    if (v.has(r))
      kiln::load_vector<KILN_VECTOR, KILN_KEY_ALIGNED != 0>(from + v.at(r),
                                                            k[r]);
  }
}
#endif

#if KILN_HEADS == 0
static __device__ __forceinline__ void
find_heads(const source &s, const KILN_KEY *keys, count, const tile_view &v,
           shared_storage &, unsigned (&heads)[KILN_VECTORS])
{
  key k[KILN_VECTORS][KILN_VECTOR];
  /* The key before this warp's first one. */
  key last = {};

  load_keys(keys, v, k);
  if (kiln::lane() == 0 && v.at(0) > 0 && v.at(0) <= s.n)
    last = kiln::load(keys + v.at(0) - 1);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const key below = kiln::shuffle_up(k[r][KILN_VECTOR - 1], 1);
    key previous = kiln::lane() == 0 ? last : below;

    heads[r] = 0;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      if (!user::same(s.in, previous, k[r][e]))
        heads[r] |= 1u << e;
      previous = k[r][e];
    }
    last = kiln::warp_broadcast(k[r][KILN_VECTOR - 1], 31);
  }
  if (v.at(0) == 0)
    heads[0] |= 1u;
}
#elif KILN_HEADS == 1
static __device__ __forceinline__ void
find_heads(const source &, const KILN_KEY *flags, count, const tile_view &v,
           shared_storage &, unsigned (&heads)[KILN_VECTORS])
{
  key k[KILN_VECTORS][KILN_VECTOR];

  load_keys(flags, v, k);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    heads[r] = 0;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      if (k[r][e] != 0)
        heads[r] |= 1u << e;
  }
  if (v.at(0) == 0)
    heads[0] |= 1u;
}
#else
/* Returns how many of n ascending indices are below `limit`. One warp calls it
 * and tests 32 places per step. */
static __device__ __forceinline__ count count_below(const KILN_KEY *indices,
                                                    count n, count limit)
{
  count begin = 0; /* all indices before `begin` are below the limit */

#pragma unroll 1
  while (n > 0) {
    const count step = (n + 31) / 32;
    const count at = step * kiln::lane() + (step - 1);
    const bool below =
        at < n && static_cast<count>(indices[begin + at]) < limit;
    const unsigned steps =
        static_cast<unsigned>(__popc(kiln::warp_ballot(below)));
    const count passed = steps * step;

    begin += passed;
    n = n - passed < step - 1 ? n - passed : step - 1;
  }
  return begin;
}

/* Marks the tile's elements that begin a segment. All threads of the block call
 * it. */
static __device__ __forceinline__ void collect_heads(const KILN_KEY *indices,
                                                     count n_heads,
                                                     const tile_view &v,
                                                     shared_storage &storage)
{
  const count end = v.first + v.size;

#pragma unroll
  for (unsigned k = 0; k < tile_size / 32; k += KILN_BLOCK)
    if (threadIdx.x + k < tile_size / 32)
      storage.begins[threadIdx.x + k] = 0;
  if (kiln::warp() == 0) {
    const count before = count_below(indices, n_heads, v.first);

    if (kiln::lane() == 0)
      storage.first_head = before;
  }
  __syncthreads();
#pragma unroll 1
  for (count j = storage.first_head + threadIdx.x; j < n_heads;
       j += KILN_BLOCK) {
    const count head = static_cast<count>(indices[j]);

    if (head >= end || head < v.first)
      break;
    atomicOr(&storage.begins[(head - v.first) / 32],
             1u << (head - v.first) % 32);
  }
  __syncthreads();
}

static __device__ __forceinline__ void
find_heads(const source &, const KILN_KEY *, count, const tile_view &v,
           shared_storage &storage, unsigned (&heads)[KILN_VECTORS])
{
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const unsigned place = v.begin + r * row;

    heads[r] =
        storage.begins[place / 32] >> place % 32 & ((1u << KILN_VECTOR) - 1);
  }
  if (v.at(0) == 0)
    heads[0] |= 1u;
}
#endif

/* ---- Reducing ------------------------------------------------------------ */

/* Mask of the lanes below this one. */
static __device__ __forceinline__ unsigned lanes_below()
{
  return (1u << kiln::lane()) - 1;
}

/* The last lane, up to this one, in which a segment begins; 0 if there is
 * none. */
static __device__ __forceinline__ unsigned segment_lane(unsigned begins)
{
  const unsigned mine = begins & (lanes_below() << 1 | 1u);

  return mine == 0 ? 0 : 31 - static_cast<unsigned>(__clz(mine));
}

/* The value that a segment's first element contributes. */
static __device__ __forceinline__ acc first_value(const source &s, acc start,
                                                  acc v)
{
  return KILN_INIT || KILN_EXCLUSIVE ? s.op(start, v) : v;
}

/* Reduces the warp's elements. before[r] becomes the reduction over the
 * elements before this lane's vector r since the last segment began, and bit r
 * of `cut` records whether one began. Returns the reduction over the whole warp
 * since its last begin; `begins` reports whether there was one. */
static __device__ __forceinline__ acc
reduce_warp(const source &s, acc start, const held (&h)[KILN_VECTORS],
            const unsigned (&heads)[KILN_VECTORS], acc (&before)[KILN_VECTORS],
            unsigned *cut, bool *begins)
{
  unsigned lanes[KILN_VECTORS];
  acc sum[KILN_VECTORS], chain = s.identity;
  bool any = false;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    lanes[r] = kiln::warp_ballot(heads[r] != 0);
    sum[r] = s.identity;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const acc v = at(h[r], e);

      sum[r] = heads[r] >> e & 1u ? first_value(s, start, v)
               : e == 0           ? v
                                  : s.op(sum[r], v);
    }
  }
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      before[r] = kiln::shuffle_up(sum[r], step);
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      if (kiln::lane() >= step + segment_lane(lanes[r]))
        sum[r] = s.op(before[r], sum[r]);
  }
  *cut = 0;
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    const acc whole = kiln::warp_broadcast(sum[r], 31);
    const bool below = (lanes[r] & lanes_below()) != 0;

    before[r] = kiln::shuffle_up(sum[r], 1);
    if (kiln::lane() == 0)
      before[r] = s.identity;
    if (r > 0 && !below)
      before[r] = s.op(chain, before[r]);
    if (any || below)
      *cut |= 1u << r;
    chain = r == 0 || lanes[r] != 0 ? whole : s.op(chain, whole);
    any = any || lanes[r] != 0;
  }
  *begins = any;
  return chain;
}

/* Computes the results of a vector. `sum` is the reduction over the segment
 * before it. */
static __device__ __forceinline__ void results(const source &s, acc start,
                                               const held &h, unsigned heads,
                                               acc sum, acc (&to)[KILN_VECTOR])
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    const bool head = (heads >> e & 1u) != 0;
    const acc v = at(h, e);
    const acc next = head ? first_value(s, start, v) : s.op(sum, v);

    to[e] = !KILN_EXCLUSIVE ? next : head ? start : sum;
    sum = next;
  }
}

/* ---- Between the warps, and between the tiles ---------------------------- */

typedef kiln::tile_chain<KILN_WINDOW, true, acc, user::op> tile_chain;

/* Scans the warps' totals and publishes the tile's total, which is returned in
 * every lane. Called by the warp without elements. */
static __device__ __forceinline__ acc publish_total(shared_storage &storage,
                                                    const source &s,
                                                    unsigned long long *words,
                                                    count tile, unsigned epoch)
{
  const unsigned lane = kiln::lane();
  const unsigned begins = kiln::warp_ballot(lane < warps && storage.cut[lane]);
  acc sum = lane < warps ? storage.warp[lane] : s.identity, before;

#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    before = kiln::shuffle_up(sum, step);
    if (lane >= step + segment_lane(begins))
      sum = s.op(before, sum);
  }
  if (lane == 0)
    storage.nothing = 0;
  if (lane == warps - 1) {
    kiln::tile_publish(words, tile, sum,
                       kiln::descriptor_tag(epoch, begins != 0
                                                       ? kiln::status_reset
                                                       : kiln::status_partial));
    storage.resets = begins != 0;
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps) {
    storage.warp[lane] = lane == 0 ? s.identity : before;
    storage.cut[lane] = (begins & lanes_below()) != 0;
  }
  __syncwarp();
  return kiln::warp_broadcast(sum, warps - 1);
}

extern "C" __global__ void
#if KILN_PER_SM > 0
__launch_bounds__(KILN_BLOCK, KILN_PER_SM)
#else
__launch_bounds__(KILN_BLOCK)
#endif
    scan_by_key(const user::args in, unsigned long long n, const KILN_KEY *keys,
                unsigned long long n_heads, KILN_T *out,
                unsigned long long init, unsigned long long *words,
                unsigned epoch)
{
  __shared__ shared_storage storage;
  const source s(in, n);
  const acc start = KILN_INIT ? static_cast<acc>(kiln::from_bits<KILN_T>(init))
                              : static_cast<acc>(user::identity(in));
  /* The broadcast tells the compiler that the value is the same in all
   * lanes. */
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);

  const tile_view view(blockIdx.x, n);
  loaded p[KILN_VECTORS];
  held h[KILN_VECTORS];
  unsigned heads[KILN_VECTORS], cut;
  acc before[KILN_VECTORS], base;

  if (warp < warps)
    load_tile(s, view, p);
#if KILN_HEADS == 2
  collect_heads(keys, n_heads, view, storage);
#endif
  if (warp < warps) {
    bool begins;

    find_heads(s, keys, n_heads, view, storage, heads);
    hold_tile(s, view, p, h);
    base = reduce_warp(s, start, h, heads, before, &cut, &begins);
    if (kiln::lane() == 31) {
      storage.warp[kiln::warp()] = base;
      storage.cut[kiln::warp()] = begins;
    }
  }
  __syncthreads();
  if (warp == warps) {
    const tile_chain chain(words, epoch, s.op, s.identity, s.identity);

    base = publish_total(storage, s, words, blockIdx.x, epoch);
    base = chain.before(blockIdx.x, base, storage.resets);
    if (kiln::lane() == 0)
      storage.prefix = base;
  }
  __syncthreads();
  if (warp == warps)
    return;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    hide(h[r], storage.nothing);

  base = storage.warp[kiln::warp()];
  if (!storage.cut[kiln::warp()])
    base = s.op(storage.prefix, base);
  store_tile(out, view, [&](unsigned r, acc(&to)[KILN_VECTOR]) {
    results(s, start, h[r], heads[r],
            cut >> r & 1u ? before[r] : s.op(base, before[r]), to);
  });
}

#include <kiln/user_texts.cuh>
