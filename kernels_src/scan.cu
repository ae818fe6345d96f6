/* scan.cu -- running folds over an array, in one launch that reads each element
 * once and writes it once (decoupled look-back: Merrill and Garland 2016).
 *
 * Specialise:  KILN_BLOCK     256  threads a block, of which the last warp looks
 *                                  back and the others hold elements
 *              KILN_PACK      4    elements that a thread has side by side, a
 *                                  power of two, 1 to 16: best 16 bytes of the
 *                                  widest array
 *              KILN_ROWS      4    packs of a thread (or KILN_ITEMS elements)
 *              KILN_PER_SM    0    resident blocks on an SM that registers are
 *                                  limited for; 0: not limited
 *              KILN_T         float  type of `out` in memory, of which user::acc
 *                                  is the computed one
 *              KILN_PLAIN     1    1: elements are held as they lie in memory; the
 *                                  input is one array, of type KILN_T, which can
 *                                  hold the operation's identity
 *              KILN_IN_ALIGNED 1   it lies on 16 bytes
 *              KILN_ALIGNED   1    `out` lies on 16 bytes
 *              KILN_EXCLUSIVE 0    1: element i gets the fold of those before it
 *              KILN_INIT      0    1: everything starts with `init`
 *              KILN_AHEAD     0    1: blocks stay, take tiles by ticket, and ask
 *                                  for the next tile before they look back
 *              KILN_WINDOW    4    tiles that a lane looks back at at once: 1, 2,
 *                                  4 or 8
 *              user.cuh            input, operation
 * Launch:      block KILN_BLOCK. KILN_AHEAD 0: a block for each tile of
 *              (KILN_BLOCK - 32) * KILN_PACK * KILN_ROWS elements, one at least;
 *              1: any number.
 *              n       elements
 *              out     n elements; may be one of the inputs
 *              total   NULL, or one element: the fold of all, after `init`
 *              init    the bits of an element of `out`
 *              words   mark words: for each tile one, two where `out` has 8
 *                      bytes; behind them one more for KILN_AHEAD. They hold no
 *                      mark of this epoch.
 *              epoch   of this launch, 1 to 2^30 - 1
 * Result:      the same bits for the same n, block, pack and rows, whatever runs
 *              when and where: sums of tiles are added up in a fixed order. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif
#ifndef KILN_PACK
#define KILN_PACK 4
#endif
#ifndef KILN_ROWS
#ifdef KILN_ITEMS
#define KILN_ROWS ((KILN_ITEMS + KILN_PACK - 1) / KILN_PACK)
#else
#define KILN_ROWS 4
#endif
#endif
#ifndef KILN_PER_SM
#define KILN_PER_SM 0
#endif
#ifndef KILN_T
#define KILN_T float
#endif
#ifndef KILN_PLAIN
#define KILN_PLAIN 1
#endif
#ifndef KILN_IN_ALIGNED
#define KILN_IN_ALIGNED 1
#endif
#ifndef KILN_ALIGNED
#define KILN_ALIGNED 1
#endif
#ifndef KILN_EXCLUSIVE
#define KILN_EXCLUSIVE 0
#endif
#ifndef KILN_INIT
#define KILN_INIT 0
#endif
#ifndef KILN_AHEAD
#define KILN_AHEAD 0
#endif
#ifndef KILN_WINDOW
#define KILN_WINDOW 4
#endif

#ifdef __CUDACC_RTC__
#include <kiln/scan_tile.cuh>
#else
#include "common/scan_tile.cuh"
#endif

/* ---- Folding ------------------------------------------------------------------------ */

/* before[r]: the fold over the warp's elements before my pack of row r; in the
 * first place `neutral`. Returns the fold over the warp. */
static __device__ __forceinline__ acc fold_warp(const source &s,
                                                const held (&h)[KILN_ROWS],
                                                acc (&before)[KILN_ROWS])
{
  acc sum[KILN_ROWS], chain;

#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r) {
    sum[r] = at(h[r], 0);
#pragma unroll
    for (unsigned e = 1; e < KILN_PACK; ++e)
      sum[r] = s.op(sum[r], at(h[r], e));
  }
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r) /* all on their way at once */
      before[r] = kiln::shuffle_up(sum[r], step);
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r)
      if (kiln::lane() >= step)
        sum[r] = s.op(before[r], sum[r]);
  }
#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r) {
    before[r] = kiln::shuffle_up(sum[r], 1);
    if (kiln::lane() == 0)
      before[r] = s.neutral;
    sum[r] = kiln::warp_broadcast(sum[r], 31);
  }
  chain = sum[0];
#pragma unroll
  for (unsigned r = 1; r < KILN_ROWS; ++r) {
    before[r] = s.op(chain, before[r]);
    chain = s.op(chain, sum[r]);
  }
  return chain;
}

/* Results of a pack; `sum` is the fold over all before it. */
static __device__ __forceinline__ void results(const source &s, const held &h,
                                               acc sum, acc (&to)[KILN_PACK])
{
#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e) {
    const acc next = s.op(sum, at(h, e));

    to[e] = KILN_EXCLUSIVE ? sum : next;
    sum = next;
  }
}

/* ---- Between the warps, and between the tiles ------------------------------------------ */

typedef kiln::tile_chain<KILN_WINDOW, false, acc, user::op> tile_chain;

/* What warps tell each other about one tile. Two take turns. */
struct shared_room {
  acc warp[warps]; /* first the warps' folds, then those of the warps before */
  acc total;
  acc prefix;       /* the fold over the tiles before */
  unsigned next;    /* the next tile */
  unsigned nothing; /* 0 */
};

/* The warps' folds become a tile's total, which is published before anything
 * else is done, and the folds of the warps before. By warp 0. */
static __device__ __forceinline__ void publish_total(shared_room &room,
                                                     const source &s,
                                                     unsigned long long *words,
                                                     count tile, unsigned epoch)
{
  const unsigned lane = kiln::lane();
  acc sum = lane < warps ? room.warp[lane] : s.neutral, before;

#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    before = kiln::shuffle_up(sum, step);
    if (lane >= step)
      sum = s.op(before, sum);
  }
  if (lane == warps - 1) {
    kiln::tile_publish(words, tile, sum,
                       kiln::mark_of(epoch, kiln::mark_partial));
    room.total = sum;
    room.nothing = 0;
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps)
    room.warp[lane] = lane == 0 ? s.neutral : before;
}

/* The last warp: which tiles come, and the folds over those before them.
 *
 * A tile is waited for by those behind it, and its block gets to it only after the
 * ones it has already: so a block takes one ticket a turn, and the second one when
 * all others that start now have had a first. */
static __device__ __forceinline__ void look_back(tile_chain chain,
                                                 shared_room *rooms, count tile,
                                                 count tiles,
                                                 unsigned long long *tickets)
{
  bool first = true;

#pragma unroll 1
  for (unsigned turn = 0;; turn ^= 1) {
    shared_room &room = rooms[turn];
    unsigned next = 0;
    acc prefix;

    if (KILN_AHEAD) {
#if KILN_ARCH >= 70
      if (first)
        __nanosleep(1000);
#endif
      if (kiln::lane() == 0) {
        next = kiln::tile_next_ticket(tickets);
        room.next = next;
      }
      all_arrive();
      first = false;
    }
    prefix = chain.before(tile);
    if (kiln::lane() == 0)
      room.prefix = prefix;
    __syncthreads();
    if (!KILN_AHEAD)
      return;
    tile = kiln::warp_broadcast(next, 0);
    if (tile >= tiles)
      return;
  }
}

/* The other warps. `warp` is mine, in a form that the compiler knows to be the
 * same in all lanes: else it would provide for shuffles in diverged warps. */
static __device__ __forceinline__ void
scan_tiles(const source &s, shared_room *rooms, count tile, count tiles,
           unsigned long long *words, unsigned epoch, KILN_T *out,
           KILN_T *out_total, unsigned warp)
{
  loaded p[KILN_ROWS];
  held h[KILN_ROWS];
  acc before[KILN_ROWS];

  load_tile(s, tile_view(tile, s.n), p);
#pragma unroll 1
  for (unsigned turn = 0;; turn ^= 1) {
    const tile_view view(tile, s.n);
    shared_room &room = rooms[turn];
    count next = tiles;
    acc sum;

    hold_tile(s, view, p, h);
    sum = fold_warp(s, h, before);
    if (kiln::lane() == 31)
      room.warp[kiln::warp()] = sum;
    holders_meet<KILN_AHEAD != 0>();
    if (warp == 0)
      publish_total(room, s, words, tile, epoch);
    if (KILN_AHEAD) {
      next = room.next;
      if (next < tiles) /* under way until the next turn */
        load_tile(s, tile_view(next, s.n), p);
    }
    __syncthreads();

    sum = s.op(room.prefix, room.warp[kiln::warp()]);
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r)
      hide(h[r], room.nothing);
    store_tile(out, view, [&](unsigned r, acc(&to)[KILN_PACK]) {
      results(s, h[r], s.op(sum, before[r]), to);
    });
    if (tile + 1 >= tiles && threadIdx.x == 0 && out_total != nullptr)
      kiln::store(out_total, s.n == 0 && !KILN_INIT
                                 ? static_cast<acc>(user::identity(s.in))
                                 : s.op(room.prefix, room.total));
    if (next >= tiles)
      return;
    tile = next;
  }
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
  __shared__ shared_room rooms[KILN_AHEAD ? 2 : 1];
  const source s(in, n);
  const count tiles = n / tile_size + (n % tile_size != 0);
  unsigned long long *tickets = words + tiles * kiln::tile_words<acc>::count;
  const acc start = KILN_INIT ? static_cast<acc>(kiln::from_bits<KILN_T>(init))
                    : KILN_EXCLUSIVE ? static_cast<acc>(user::identity(in))
                                     : s.neutral;
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);
  count tile = blockIdx.x;

  if (KILN_AHEAD) {
    if (threadIdx.x == 0)
      rooms[1].next = kiln::tile_ticket(tickets, epoch);
    __syncthreads();
    tile = rooms[1].next;
    if (tile >= tiles && tile > 0)
      return;
  }
  if (warp == warps)
    look_back(tile_chain(words, epoch, s.op, s.neutral, start), rooms, tile,
              tiles, tickets);
  else
    scan_tiles(s, rooms, tile, tiles, words, epoch, out, total, warp);
}
