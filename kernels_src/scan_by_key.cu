/* scan_by_key.cu -- prefix scan that restarts at every segment, in one launch that
 * reads each element once and writes it once.
 *
 * The algorithm is that of scan.cu, except that the first element of a segment discards
 * the reduction over the preceding elements. A tile in which a segment starts publishes
 * its total with status_reset, so that later tiles ignore all tiles before it
 * (look_back.cuh). This operation on pairs (does a segment start, value) is associative
 * (Schwartz 1980; Blelloch, Prefix Sums and Their Applications, 1990).
 *
 * Parameters (scan.cu describes them in more detail):
 *   KILN_BLOCK        256                  threads per block
 *   KILN_VECTOR       4                    elements per vector
 *   KILN_VECTORS      4                    vectors per thread
 *   KILN_PER_SM       (1024 / KILN_BLOCK)  minimum number of resident blocks per SM
 *   KILN_T            type float           type of an element of out in memory
 *   KILN_PLAIN        1                    1 if tiles hold elements in their storage
 *                                          format
 *   KILN_IN_ALIGNED   1                    1 if the input is aligned to 16 bytes
 *   KILN_ALIGNED      1                    1 if out is aligned to 16 bytes
 *   KILN_EXCLUSIVE    0                    1 if the scan is exclusive
 *   KILN_INIT         0                    1 if every segment starts with `init`
 *   KILN_WINDOW       4                    descriptors that a lane reads at a time
 *   KILN_HEADS        0                    meaning of the array `heads`. 0 if it holds
 *                                          keys, and a segment starts where the key
 *                                          changes; 1 if it holds flags, and a segment
 *                                          starts where the flag is not 0; 2 if it
 *                                          holds the indices of the segments' starts
 *   KILN_KEY          type unsigned        type of an element of heads in memory
 *   KILN_KEY_ALIGNED  1                    1 if heads is aligned to 16 bytes
 * Generated code (user.cuh): the input and the operation. With KILN_HEADS 0,
 * same(s, a, b) compares the keys of two consecutive elements.
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile, and at least
 *         one block.
 *         n        number of elements
 *         heads    n elements; with KILN_HEADS 2, n_heads non-decreasing indices
 *         out      n elements; may be one of the inputs, but not heads
 *         init     the bits of an element of out
 *         words, epoch   as in scan.cu
 * Result: the result has the same bits in every run. */
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

#include <kiln/segmented_tile.cuh>

struct shared_storage : segment_storage {
  acc prefix; /* reduction over the preceding tiles */
#if KILN_HEADS == 2
  /* position in the array `heads` of the first index that is not below the
   * index of the tile's first element */
  unsigned long long first_head;
  /* One bit per element of the tile. The bit is set if a segment starts at the
   * element. */
  unsigned begins[tile_size / 32];
#endif
};

/* ---- Starts of segments ---------------------------------------------
 * find_heads() sets bit e of heads[r] if a segment starts at element e of vector
 * r of the calling thread. */

#if KILN_HEADS == 0
/* Sets bit e of heads[r] if the key of element e of vector r of the calling thread
 * differs from the key of the preceding element, and for element 0 of the array. */
static __device__ __forceinline__ void
mark_heads(const source &s, const KILN_KEY *keys, const tile_view &v,
           const key (&k)[KILN_VECTORS][KILN_VECTOR],
           unsigned (&heads)[KILN_VECTORS])
{
  /* key of the element that precedes the warp's first element */
  key last = {};

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

static __device__ __forceinline__ void
find_heads(const source &s, const KILN_KEY *keys, count, const tile_view &v,
           shared_storage &, unsigned (&heads)[KILN_VECTORS])
{
  key k[KILN_VECTORS][KILN_VECTOR];

  load_keys(keys, v, k);
  mark_heads(s, keys, v, k, heads);
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
/* Returns how many of n non-decreasing indices are below `limit`. One whole
 * warp calls this function and tests 32 indices per step. */
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

/* Sets the bits in storage.begins of those elements of the tile at which a
 * segment starts. All threads of the block call this function. */
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

/* Returns the reduction over v, the first element of a segment. The reduction
 * includes the initial value if there is one. */
static __device__ __forceinline__ acc first_value(const source &s, acc start,
                                                  acc v)
{
  return KILN_INIT || KILN_EXCLUSIVE ? s.op(start, v) : v;
}

/* Reduces the warp's elements since the last start of a segment. before[r]
 * becomes the reduction over those elements that precede vector r of the calling
 * lane. Bit r of *cut is set if a segment starts in the warp before that vector.
 * Returns the reduction over the warp. *begins is set if a segment starts in the
 * warp. */
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

/* Computes the results of a vector. `sum` is the reduction over those elements
 * of the current segment that precede the vector. */
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

/* ---- Prefixes of warps and tiles ----------------------------------------- */

typedef kiln::tile_chain<KILN_WINDOW, true, acc, user::op> tile_chain;

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
  /* The broadcast shows the compiler that all lanes have the same value. */
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
