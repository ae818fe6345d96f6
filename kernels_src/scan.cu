/* scan.cu -- prefix scan of an array in one launch that reads each element once and
 * writes it once.
 *
 * Problem: result i needs the reduction over all preceding elements, and other blocks
 * load most of these elements.
 * Idea: a tile first publishes its total and then waits for the prefix of the preceding
 * tiles. Tiles in registers use a decoupled look-back (Merrill and Garland,
 * Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016; look_back.cuh).
 * Tiles staged in shared memory leave more registers, hence more blocks per SM. In that
 * variant, block 0 computes the prefixes of all tiles (leader_prefix.cuh).
 * One warp per block holds no elements. This warp waits for the prefix, while the other
 * warps hold the elements.
 * Invariant: the operands keep their order, and totals are combined in a fixed order.
 * For the same n and specialisation, the result has the same bits in every run.
 * Cost: 2 n element accesses and about log n operations per tile for the prefix.
 *
 * Parameters:
 *   KILN_BLOCK       256         threads per block; the last warp holds no elements
 *   KILN_VECTOR      4           consecutive elements per vector, a power of two from 1
 *                                to 16; best are 16 bytes of the widest array
 *   KILN_VECTORS     4           vectors per thread; if KILN_ITEMS (elements per
 *                                thread) is defined, it determines KILN_VECTORS
 *   KILN_PER_SM      0           minimum number of resident blocks per SM, which limits
 *                                registers through __launch_bounds__; 0 sets no limit
 *   KILN_T           type float  type of an element of out in memory; user::acc is
 *                                the type of its computation
 *   KILN_PLAIN       1           1 if tiles hold elements in their storage format. The
 *                                input is then one array of KILN_T without a map, and
 *                                KILN_T can represent the identity
 *   KILN_IN_ALIGNED  1           1 if the input of KILN_PLAIN is aligned to 16 bytes
 *   KILN_ALIGNED     1           1 if out is aligned to 16 bytes
 *   KILN_EXCLUSIVE   0           1 if element i is not part of result i
 *   KILN_INIT        0           1 if the scan starts with `init`
 *   KILN_STAGED      0           1 if a tile is staged in shared memory. out is then
 *                                aligned to 16 bytes, KILN_VECTOR elements of out have
 *                                16 bytes, KILN_VECTOR elements of an input have at
 *                                most 16 bytes, and KILN_VECTORS is a power of two
 *   KILN_LEADER      0           1 if block 0 computes the prefixes of all tiles; always
 *                                1 with KILN_STAGED
 *   KILN_PREFETCH    0           distance, in tiles, of the prefetch of the input
 *   KILN_WINDOW      2           descriptors that a lane reads at a time in a
 *                                look-back: 1, 2, 4 or 8; unused with KILN_LEADER
 * Generated code (user.cuh): the input and the operation.
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile of
 *         (KILN_BLOCK - 32) * KILN_VECTOR * KILN_VECTORS elements, and at least one
 *         tile. With KILN_LEADER, the leader block precedes the blocks of the tiles.
 *         n       number of elements
 *         out     n elements; may be one of the inputs
 *         total   NULL, or receives the reduction over init and all elements
 *         init    the bits of an element of out: one 64-bit word, or as many as the
 *                 element needs
 *         words   tile descriptors, aligned to 16 bytes. There is one word per tile
 *                 and 4 bytes of an element of out, and the number of tiles is
 *                 rounded up to a multiple of KILN_WINDOW. With KILN_LEADER, the layout
 *                 is that of leader_prefix.cuh. No descriptor has the epoch of this
 *                 launch.
 *         epoch   epoch of this launch, 1 to 2^30 - 1 */
#ifdef KILN_ITEMS /* elements per thread */
#define KILN_VECTORS ((KILN_ITEMS + KILN_VECTOR - 1) / KILN_VECTOR)
#endif
#if defined KILN_STAGED && !defined KILN_LEADER
#define KILN_LEADER KILN_STAGED
#endif
#include <kiln/params/scan.cuh>

#include <kiln/scan_tile.cuh>

/* Returns the reduction over `sum` and the elements of a vector. */
template <class H>
static __device__ __forceinline__ acc reduce_vector(const source &s, acc sum,
                                                    const H &h)
{
#ifdef KILN_LINKED
  acc v[KILN_VECTOR], upto[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    v[e] = at(h, e);
  kiln::op_run(s.op, sum, v, upto);
  return upto[KILN_VECTOR - 1];
#else
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    sum = s.op(sum, at(h, e));
  return sum;
#endif
}

/* Computes the results of a vector. On entry, `sum` is the reduction over all
 * elements that precede the vector. On return, `sum` includes the vector. */
template <class H>
static __device__ __forceinline__ void results(const source &s, const H &h,
                                               acc &sum, acc (&to)[KILN_VECTOR])
{
#ifdef KILN_LINKED
  acc v[KILN_VECTOR], next[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    v[e] = at(h, e);
  kiln::op_run(s.op, sum, v, next);
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    to[e] = KILN_EXCLUSIVE ? sum : next[e];
    sum = next[e];
  }
#else
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    const acc next = s.op(sum, at(h, e));

    to[e] = KILN_EXCLUSIVE ? sum : next;
    sum = next;
  }
#endif
}

static_assert(KILN_LEADER || !KILN_STAGED, "KILN_STAGED: needs KILN_LEADER");

static __device__ __forceinline__ unsigned tiles()
{
  return gridDim.x - KILN_LEADER;
}

static __device__ __forceinline__ unsigned own_tile()
{
  return blockIdx.x - KILN_LEADER;
}

/* Prefetches a part of the tile that is KILN_PREFETCH tiles ahead of `tile`.
 * The part has the same position in that tile as the calling warp's elements
 * have in this tile. */
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

#if KILN_LEADER
#include <kiln/leader_prefix.cuh>
#endif
#if KILN_STAGED
#include <kiln/scan_stage.cuh>
typedef staged_tile my_tile;
#else
#include <kiln/scan_registers.cuh>
typedef register_tile my_tile;
#endif

/* A value in shared memory. If its size is no multiple of 4 bytes, the bytes up to
 * the next multiple are written as well, since the compiler may read them. */
template <class T, bool whole = sizeof(T) % 4 == 0> struct shared_value {
  T value;

  __device__ __forceinline__ void set(T v)
  {
    value = v;
  }
  __device__ __forceinline__ T get() const
  {
    return value;
  }
};
template <class T> struct shared_value<T, false> {
  unsigned word[(sizeof(T) + 3) / 4];

  __device__ __forceinline__ void set(T v)
  {
    unsigned bits[(sizeof(T) + 3) / 4] = {};

    memcpy(bits, &v, sizeof v);
    memcpy(word, bits, sizeof word);
  }
  __device__ __forceinline__ T get() const
  {
    T v;

    memcpy(&v, word, sizeof v);
    return v;
  }
};

/* The shared memory through which the warps of a block exchange values. */
struct shared_storage {
  /* totals of the warps; publish_total() replaces them by the warps' prefixes */
  acc warp[warps];
  shared_value<acc> total;  /* total of the tile */
  shared_value<acc> prefix; /* reduction over the preceding tiles */
  /* The value is always 0, but the compiler cannot prove that. */
  unsigned nothing;
};

/* Replaces the totals of the warps by their prefixes. Publishes the total of the
 * tile as early as possible, and returns this total in every lane. */
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
    storage.total.set(sum);
    storage.nothing = 0;
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps)
    storage.warp[lane] = lane == 0 ? s.identity : before;
  return kiln::warp_broadcast(sum, warps - 1);
}

typedef kiln::element_bits<KILN_T>::type initial;

/* Returns the initial value of the scan. */
static __device__ __forceinline__ acc begin(const source &s,
                                            const initial &init)
{
  return KILN_INIT        ? static_cast<acc>(kiln::from_bits<KILN_T>(init))
         : KILN_EXCLUSIVE ? static_cast<acc>(user::identity(s.in))
                          : s.identity;
}

/* Returns, in lane 0, the reduction over all preceding tiles. The warp without
 * elements calls this function. */
static __device__ __forceinline__ acc before_tile(const source &s, count tile,
                                                  acc own, acc start,
                                                  unsigned long long *words,
                                                  unsigned epoch)
{
#if KILN_LEADER
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
         initial init, unsigned long long *words, unsigned epoch)
{
  __shared__ shared_storage storage;
  const source s(in, n);
  const count tile = own_tile();
  /* The broadcast shows the compiler that all lanes have the same value.
   * Otherwise the compiler would generate code for shuffles in diverged
   * warps. */
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);

  my_tile mine;
  acc sum;

#if KILN_LEADER
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
      storage.prefix.set(sum);
  }
  __syncthreads();
  if (warp == warps)
    return;

  sum = s.op(storage.prefix.get(), storage.warp[kiln::warp()]);
  /* The view is computed again instead of kept, which saves registers. */
  mine.store(s, tile_view(tile, n), sum, storage.nothing, out);
  if (tile + 1 == tiles() && threadIdx.x == 0 && total != nullptr)
    kiln::store(total, n == 0 && !KILN_INIT
                           ? static_cast<acc>(user::identity(in))
                           : s.op(storage.prefix.get(), storage.total.get()));
}

#include <kiln/user_texts.cuh>
