/* scan.cu -- prefix scan of an array in one launch that reads each element once and
 * writes it once.
 *
 * Problem: element i needs the reduction over all elements before it, which other
 * blocks hold.
 * Idea: a tile publishes its total first and then finds the prefix of the tiles
 * before it. Tiles in registers use a decoupled look-back (Merrill and Garland,
 * Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016; look_back.cuh).
 * Tiles staged in shared memory leave more registers, hence more blocks per SM; block
 * 0 then computes the prefixes of all tiles (leader_prefix.cuh).
 * One warp per block holds no elements. It waits for the prefix, while the others
 * keep theirs.
 * Invariant: the operands keep their order, and totals are combined in a fixed order.
 * The result has the same bits for the same n and specialisation, whatever runs when.
 * Cost: 2 n element accesses and about log n operations per tile for the prefix.
 *
 * Parameters:
 *   KILN_BLOCK       256         threads per block; the last warp holds no elements
 *   KILN_VECTOR      4           adjacent elements per vector: a power of two, 1 to
 *                                16, best 16 bytes of the widest array
 *   KILN_VECTORS     4           vectors per thread; defining KILN_ITEMS, elements
 *                                per thread, sets it as well
 *   KILN_PER_SM      0           blocks per SM to limit registers for; 0: no limit
 *   KILN_T           type float  type of an element of out in memory; user::acc is
 *                                its computed type
 *   KILN_PLAIN       1           1: elements are held as they are in memory. The
 *                                input is one array of KILN_T without a map, and
 *                                KILN_T can represent the identity
 *   KILN_IN_ALIGNED  1           1: that array is aligned to 16 bytes
 *   KILN_ALIGNED     1           1: out is aligned to 16 bytes
 *   KILN_EXCLUSIVE   0           1: element i gets the reduction of those before it
 *   KILN_INIT        0           1: the scan starts with `init`
 *   KILN_STAGED      0           1: a tile is staged in shared memory. out is aligned
 *                                to 16 bytes, KILN_VECTOR of its elements have 16
 *                                bytes, those of an input at most 16, and
 *                                KILN_VECTORS is a power of two
 *   KILN_PREFETCH    0           number of tiles by which the input is prefetched
 *   KILN_WINDOW      2           tiles that a lane reads at once in a look-back: 1,
 *                                2, 4 or 8; unused if staged
 * Generated code (user.cuh): the input and the operation.
 * Launch: block KILN_BLOCK; one block per tile of (KILN_BLOCK - 32) * KILN_VECTOR *
 *         KILN_VECTORS elements, at least one. If staged, one more block comes first.
 *         n       number of elements
 *         out     n elements; may be one of the inputs
 *         total   NULL, or one element: the reduction of all, including init
 *         init    the bits of an element of out
 *         words   tile descriptors, aligned to 16 bytes: one word per tile (two if
 *                 out has 8-byte elements) for a multiple of KILN_WINDOW tiles; if
 *                 staged as leader_prefix.cuh says. None has this epoch.
 *         epoch   epoch of this launch, 1 to 2^30 - 1 */
#ifdef KILN_ITEMS /* elements per thread */
#define KILN_VECTORS ((KILN_ITEMS + KILN_VECTOR - 1) / KILN_VECTOR)
#endif
#include <kiln/params/scan.cuh>

#include <kiln/scan_tile.cuh>

/* Computes the results of a vector. `sum` is the reduction over all elements
 * before it, and afterwards over its elements as well. */
template <class H>
static __device__ __forceinline__ void results(const source &s, const H &h,
                                               acc &sum, acc (&to)[KILN_VECTOR])
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    const acc next = s.op(sum, at(h, e));

    to[e] = KILN_EXCLUSIVE ? sum : next;
    sum = next;
  }
}

static __device__ __forceinline__ unsigned tiles()
{
  return gridDim.x - KILN_STAGED;
}

static __device__ __forceinline__ unsigned own_tile()
{
  return blockIdx.x - KILN_STAGED;
}

/* Prefetches this warp's share of the tile KILN_PREFETCH tiles ahead. */
static __device__ __forceinline__ void prefetch_ahead(const source &s,
                                                      count tile)
{
#if KILN_PREFETCH > 0
  if (tile + KILN_PREFETCH + 1 < tiles())
    user::prefetch_inputs(
        s.in, (tile + KILN_PREFETCH) * tile_size + kiln::warp() * warp_tile,
        warp_tile);
#endif
}

#if KILN_STAGED
#include <kiln/leader_prefix.cuh>
#include <kiln/scan_stage.cuh>
typedef staged_tile my_tile;
#else
#include <kiln/scan_registers.cuh>
typedef register_tile my_tile;
#endif

/* What the warps of a block exchange. */
struct shared_storage {
  /* Totals of the warps at first, prefixes of the warps later. */
  acc warp[warps];
  acc total;
  acc prefix;       /* reduction over the tiles before */
  unsigned nothing; /* always 0, which the compiler cannot know */
};

/* Scans the warps' totals. The tile's total is published as early as possible.
 * Returns it in every lane. */
static __device__ __forceinline__ acc publish_total(shared_storage &storage,
                                                    const source &s,
                                                    unsigned long long *words,
                                                    count tile, unsigned epoch)
{
  const unsigned lane = kiln::lane();
  acc sum = lane < warps ? storage.warp[lane] : s.identity, before;

#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    before = kiln::shuffle_up(sum, step);
    if (lane >= step)
      sum = s.op(before, sum);
  }
  if (lane == warps - 1) {
    kiln::tile_publish(words, tile, sum,
                       kiln::descriptor_tag(epoch, kiln::status_partial));
    storage.total = sum;
    storage.nothing = 0;
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps)
    storage.warp[lane] = lane == 0 ? s.identity : before;
  return kiln::warp_broadcast(sum, warps - 1);
}

/* The value that the scan starts with. */
static __device__ __forceinline__ acc begin(const source &s,
                                            unsigned long long init)
{
  return KILN_INIT        ? static_cast<acc>(kiln::from_bits<KILN_T>(init))
         : KILN_EXCLUSIVE ? static_cast<acc>(user::identity(s.in))
                          : s.identity;
}

/* Returns the reduction over all tiles before, in lane 0. Called by the warp
 * without elements. */
static __device__ __forceinline__ acc before_tile(const source &s, count tile,
                                                  acc own, acc start,
                                                  unsigned long long *words,
                                                  unsigned epoch)
{
#if KILN_STAGED
  return kiln::lane() == 0 ? kiln::leader_wait<acc>(words, tiles(), tile, epoch)
                           : start;
#else
  typedef kiln::tile_chain<KILN_WINDOW, false, acc, user::op> tile_chain;

  return tile_chain(words, epoch, s.op, s.identity, start)
      .before(tile, own, false);
#endif
}

extern "C" __global__ void
#if KILN_PER_SM > 0
__launch_bounds__(KILN_BLOCK, KILN_PER_SM)
#else
__launch_bounds__(KILN_BLOCK)
#endif
    scan(const user::args in, unsigned long long n, KILN_T *out, KILN_T *total,
         unsigned long long init, unsigned long long *words, unsigned epoch)
{
  __shared__ shared_storage storage;
  const source s(in, n);
  const count tile = own_tile();
  /* The broadcast tells the compiler that the value is the same in all lanes.
   * Otherwise it would provide for shuffles in diverged warps. */
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);

  my_tile mine;
  acc sum;

#if KILN_STAGED
  if (blockIdx.x == 0) {
    kiln::leader_publish_prefixes(words, tiles(), epoch, s.op, s.identity,
                                  begin(s, init));
    return;
  }
#endif
  if (warp < warps) {
    mine.load(s, tile_view(tile, n));
    sum = mine.reduce(s);
    if (kiln::lane() == 31)
      storage.warp[kiln::warp()] = sum;
  }
  __syncthreads();
  if (warp == warps) {
    sum = publish_total(storage, s, words, tile, epoch);
    sum = before_tile(s, tile, sum, begin(s, init), words, epoch);
    if (kiln::lane() == 0)
      storage.prefix = sum;
  }
  __syncthreads();
  if (warp == warps)
    return;

  sum = s.op(storage.prefix, storage.warp[kiln::warp()]);
  mine.store(
      s,
      tile_view(tile, n), /* computed anew, which saves registers in between */
      sum, storage.nothing, out);
  if (tile + 1 == tiles() && threadIdx.x == 0 && total != nullptr)
    kiln::store(total, n == 0 && !KILN_INIT
                           ? static_cast<acc>(user::identity(in))
                           : s.op(storage.prefix, storage.total));
}

#include <kiln/user_texts.cuh>
