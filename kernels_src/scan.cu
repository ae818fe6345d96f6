/* scan.cu -- running folds over an array, in one launch that reads each element
 * once and writes it once (decoupled look-back: Merrill and Garland 2016).
 *
 * Specialise:  KILN_BLOCK     256  threads that hold elements
 *              KILN_PACK      4    elements that a thread has side by side, a
 *                                  power of two, 1 to 16: best 16 bytes of the
 *                                  widest array
 *              KILN_ROWS      4    packs of a thread
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
 * Launch:      block KILN_BLOCK + 32: the last warp looks back. KILN_AHEAD 0: a
 *              block for each tile of KILN_BLOCK * KILN_PACK * KILN_ROWS
 *              elements, one at least; 1: any number.
 *              n       elements
 *              out     n elements; may be one of the inputs
 *              total   NULL, or one element: the fold of all, after `init`
 *              init    the bits of an element of `out`
 *              words   mark words: for each tile one, two where user::acc has 8
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
#define KILN_ROWS 4
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

#define KILN_FLAT_BLOCK 1
#define KILN_MAX_BLOCK (KILN_BLOCK + 32)
#define KILN_READ_ONLY 0 /* work in place is allowed */
#ifdef __CUDACC_RTC__
#include <kiln/lookback.cuh>
#include <kiln/user.cuh>
#else
#include "common/lookback.cuh"
#include "common/user.cuh"
#endif

typedef unsigned long long count;
typedef user::acc acc;

enum : unsigned {
  warps = KILN_BLOCK / 32,
  row = 32 * KILN_PACK,        /* elements that a warp has side by side */
  warp_tile = row * KILN_ROWS, /* elements of a warp */
  tile_size = warps * warp_tile
};

/* ---- The tile in registers -------------------------------------------------------
 * A warp's elements are neighbours: rows, and in a row a pack for each lane. So
 * each load and store of a warp is one piece of memory, and nothing has to be
 * transposed. `loaded` is a pack on its way, `held` what is worked with. */

#if KILN_PLAIN
/* As it lies in memory: small types share registers. */
struct loaded {
  enum : unsigned {
    bytes = KILN_PACK * sizeof(user::stored),
    wide = !KILN_IN_ALIGNED ? sizeof(user::stored)
           : bytes < 16     ? bytes
                            : 16,
    parts = bytes / wide,
    words = (bytes + 3) / 4
  };
  unsigned word[words];
};

typedef loaded held;

static __device__ __forceinline__ void load_pack(const user::args &in, count i,
                                                 loaded &p)
{
  typedef typename kiln::word<loaded::wide>::type bits;
  bits part[loaded::parts];

#pragma unroll
  for (unsigned k = 0; k < loaded::parts; ++k)
    part[k] = kiln::load_word<kiln::cached::usual>(
        reinterpret_cast<const bits *>(in.x0 + i) + k);
  memcpy(p.word, part, sizeof part);
}

static __device__ __forceinline__ void hold(const user::args &, count, bool,
                                            const loaded &p, acc, held &h)
{
  h = p;
}

static __device__ __forceinline__ void fill(acc neutral, loaded &p)
{
  user::stored v[KILN_PACK];

#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e)
    v[e] = kiln::narrow<user::stored>(neutral);
  memcpy(p.word, v, sizeof v);
}

/* The elements below n, loaded one by one; beyond, `neutral`. */
static __device__ __forceinline__ void hold_part(const user::args &in, count i,
                                                 count n, acc neutral, held &h)
{
  user::stored v[KILN_PACK];

#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e) {
    v[e] = kiln::narrow<user::stored>(neutral);
    if (i + e < n)
      v[e] = in.x0[i + e];
  }
  memcpy(h.word, v, sizeof v);
}

static __device__ __forceinline__ acc at(const held &h, unsigned e)
{
  user::stored v[KILN_PACK];

  memcpy(v, h.word, sizeof v);
  return static_cast<acc>(kiln::widen(v[e]));
}

/* From here on elements are taken out of their words anew; else the compiler
 * would keep each in a register of its own. */
static __device__ __forceinline__ void hide(held &h)
{
  if (sizeof(user::stored) < 4)
    for (unsigned k = 0; k < loaded::words; ++k)
      asm volatile("" : "+r"(h.word[k]));
}
#else
typedef user::pack<KILN_PACK> loaded;

struct held {
  acc value[KILN_PACK];
};

static __device__ __forceinline__ void load_pack(const user::args &in, count i,
                                                 loaded &p)
{
  user::load_inputs(in, i, p);
}

static __device__ __forceinline__ void hold(const user::args &in, count i,
                                            bool exists, const loaded &p,
                                            acc neutral, held &h)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e)
    h.value[e] = exists ? static_cast<acc>(user::map_at(in, p, e, i)) : neutral;
}

static __device__ __forceinline__ void fill(acc, loaded &)
{
}

static __device__ __forceinline__ void hold_part(const user::args &in, count i,
                                                 count n, acc neutral, held &h)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e) {
    h.value[e] = neutral;
    if (i + e < n)
      h.value[e] = static_cast<acc>(user::load(in, i + e));
  }
}

static __device__ __forceinline__ acc at(const held &h, unsigned e)
{
  return h.value[e];
}

static __device__ __forceinline__ void hide(held &)
{
}
#endif

/* ---- Folding ------------------------------------------------------------------------ */

/* What leaves any value as it is. 0 does not: -0 + 0 is +0. */
template <class Op, class T> struct neutral_value {
  static __device__ __forceinline__ T of(const user::args &in)
  {
    return user::identity(in);
  }
};
template <> struct neutral_value<kiln::sum, float> {
  static __device__ __forceinline__ float of(const user::args &)
  {
    return -0.0f;
  }
};
template <> struct neutral_value<kiln::sum, double> {
  static __device__ __forceinline__ double of(const user::args &)
  {
    return -0.0;
  }
};

struct scanner {
  const user::args &in;
  const user::op op;
  const acc neutral;
  const count n;
  KILN_T *const out;

  __device__ __forceinline__ explicit scanner(const user::args &from,
                                              count size, KILN_T *to)
      : in(from), op(user::make_op(from)),
        neutral(neutral_value<user::op, acc>::of(from)), n(size), out(to)
  {
  }

  /* before[r]: the fold over the warp's elements before my pack of row r; in the
   * first place `neutral`. Returns the fold over the warp. */
  __device__ __forceinline__ acc fold_warp(const held (&h)[KILN_ROWS],
                                           acc (&before)[KILN_ROWS]) const
  {
    acc sum[KILN_ROWS], chain;

#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r) {
      sum[r] = at(h[r], 0);
#pragma unroll
      for (unsigned e = 1; e < KILN_PACK; ++e)
        sum[r] = op(sum[r], at(h[r], e));
    }
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
#pragma unroll
      for (unsigned r = 0; r < KILN_ROWS; ++r) /* all on their way at once */
        before[r] = kiln::shuffle_up(sum[r], step);
#pragma unroll
      for (unsigned r = 0; r < KILN_ROWS; ++r)
        if (kiln::lane() >= step)
          sum[r] = op(before[r], sum[r]);
    }
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r) {
      before[r] = kiln::shuffle_up(sum[r], 1);
      if (kiln::lane() == 0)
        before[r] = neutral;
      sum[r] = kiln::warp_broadcast(sum[r], 31);
    }
    chain = sum[0];
#pragma unroll
    for (unsigned r = 1; r < KILN_ROWS; ++r) {
      before[r] = op(chain, before[r]);
      chain = op(chain, sum[r]);
    }
    return chain;
  }

  /* Results of a pack; `sum` is the fold over all before it. */
  __device__ __forceinline__ void results(const held &h, acc sum,
                                          acc (&to)[KILN_PACK]) const
  {
#pragma unroll
    for (unsigned e = 0; e < KILN_PACK; ++e) {
      const acc next = op(sum, at(h, e));

      to[e] = KILN_EXCLUSIVE ? sum : next;
      sum = next;
    }
  }
};

/* ---- Which elements are mine ------------------------------------------------------------ */

/* One tile, seen by one thread: pack r begins at begin + r * row. Only the first
 * `size` elements exist; the pack that they end in, if they do in one, is `tail`
 * of the thread that has it. */
struct tile_view {
  count first;    /* of the tile, in the array */
  unsigned begin; /* my first pack, in the tile, as are all others */
  unsigned size, tail, tail_row;

  __device__ __forceinline__ tile_view(count tile, count n)
  {
    first = tile * tile_size;
    begin = kiln::warp() * warp_tile + kiln::lane() * KILN_PACK;
    size = first + tile_size <= n ? static_cast<unsigned>(tile_size)
                                  : static_cast<unsigned>(n - first);
    tail = size - size % KILN_PACK;
    tail_row = (tail - begin) % row == 0 && size > tail ? (tail - begin) / row
                                                        : KILN_ROWS;
  }
  __device__ __forceinline__ bool has(unsigned r) const
  {
    return begin + r * row + KILN_PACK <= size;
  }
  __device__ __forceinline__ bool has_tail() const
  {
    return tail_row < KILN_ROWS;
  }
  __device__ __forceinline__ count at(unsigned r) const
  {
    return first + begin + r * row;
  }
};

static __device__ __forceinline__ void
load_tile(const scanner &s, const tile_view &v, loaded (&p)[KILN_ROWS])
{
#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r) {
    fill(s.neutral, p[r]);
    if (v.has(r))
      load_pack(s.in, v.at(r), p[r]);
  }
}

/* What is not there becomes neutral. */
static __device__ __forceinline__ void hold_tile(const scanner &s,
                                                 const tile_view &v,
                                                 const loaded (&p)[KILN_ROWS],
                                                 held (&h)[KILN_ROWS])
{
  held tail;

#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r)
    hold(s.in, v.at(r), v.has(r), p[r], s.neutral, h[r]);
  if (!v.has_tail())
    return;
  hold_part(s.in, v.first + v.tail, s.n, s.neutral, tail);
#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r)
    if (r == v.tail_row)
      h[r] = tail;
}

static __device__ __forceinline__ void
write_tile(const scanner &s, const tile_view &v, const held (&h)[KILN_ROWS],
           const acc (&before)[KILN_ROWS], acc base)
{
  acc result[KILN_PACK], tail[KILN_PACK];

#pragma unroll
  for (unsigned r = 0; r < KILN_ROWS; ++r) {
    s.results(h[r], s.op(base, before[r]), result);
    if (v.has(r))
      kiln::store_pack<KILN_PACK, KILN_ALIGNED != 0>(s.out + v.at(r), result);
    else if (r == v.tail_row)
      memcpy(tail, result, sizeof tail);
  }
  if (v.has_tail())
#pragma unroll
    for (unsigned e = 0; e + 1 < KILN_PACK; ++e)
      if (v.tail + e < v.size)
        kiln::store(s.out + v.first + v.tail + e, tail[e]);
}

/* ---- Between the warps, and between the tiles ------------------------------------------ */

typedef kiln::tile_chain<KILN_WINDOW, false, acc, user::op> tile_chain;

/* What warps tell each other about one tile. Two take turns. */
struct shared_room {
  acc warp[warps]; /* first the warps' folds, then those of the warps before */
  acc total;
  acc prefix;    /* the fold over the tiles before */
  unsigned next; /* the tile after the next one */
};

/* A barrier for the threads that hold elements. */
static __device__ __forceinline__ void holders_meet()
{
  asm volatile("bar.sync 1, %0;" ::"n"(KILN_BLOCK) : "memory");
}

/* The warps' folds become a tile's total, which is published before anything
 * else is done, and the folds of the warps before. By warp 0. */
static __device__ __forceinline__ void publish_total(shared_room &room,
                                                     const scanner &s,
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
  }
  before = kiln::shuffle_up(sum, 1);
  if (lane < warps)
    room.warp[lane] = lane == 0 ? s.neutral : before;
}

/* The last warp: which tiles come, and the folds over those before them. */
static __device__ __forceinline__ void
look_back(const scanner &s, tile_chain chain, shared_room *rooms, count tile,
          count next, count tiles, unsigned long long *tickets)
{
#pragma unroll 1
  for (unsigned turn = 0;; turn ^= 1) {
    shared_room &room = rooms[turn];
    unsigned ticket = 0;
    acc prefix;

    if (KILN_AHEAD && kiln::lane() == 0)
      ticket = kiln::tile_ticket(tickets, chain.epoch);
    prefix = chain.before(tile);
    if (kiln::lane() == 0) {
      room.prefix = prefix;
      room.next = ticket;
    }
    __syncthreads();
    if (!KILN_AHEAD || next >= tiles)
      return;
    tile = next;
    next = kiln::warp_broadcast(ticket, 0);
  }
}

/* The other warps. `warp` is mine, in a form that the compiler knows to be the
 * same in all lanes: else it would provide for shuffles in diverged warps. */
static __device__ __forceinline__ void
scan_tiles(const scanner &s, shared_room *rooms, count tile, count next,
           count tiles, unsigned long long *words, unsigned epoch,
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
    acc sum;

    hold_tile(s, view, p, h);
    sum = s.fold_warp(h, before);
    if (kiln::lane() == 31)
      room.warp[kiln::warp()] = sum;
    holders_meet();
    if (warp == 0)
      publish_total(room, s, words, tile, epoch);
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r)
      hide(h[r]);
    if (KILN_AHEAD && next < tiles)
      load_tile(s, tile_view(next, s.n), p);
    __syncthreads();

    write_tile(s, view, h, before, s.op(room.prefix, room.warp[kiln::warp()]));
    if (tile + 1 >= tiles && threadIdx.x == 0 && out_total != nullptr)
      kiln::store(out_total, s.n == 0 && !KILN_INIT
                                 ? user::identity(s.in)
                                 : s.op(room.prefix, room.total));
    if (!KILN_AHEAD || next >= tiles)
      return;
    tile = next;
    next = room.next;
  }
}

extern "C" __global__ void
#if KILN_PER_SM > 0
__launch_bounds__(KILN_BLOCK + 32, KILN_PER_SM)
#else
__launch_bounds__(KILN_BLOCK + 32)
#endif
    scan(const user::args in, unsigned long long n, KILN_T *out, KILN_T *total,
         unsigned long long init, unsigned long long *words, unsigned epoch)
{
  __shared__ shared_room rooms[KILN_AHEAD ? 2 : 1];
  const scanner s(in, n, out);
  const count tiles = n / tile_size + (n % tile_size != 0);
  unsigned long long *tickets = words + tiles * kiln::tile_words<acc>::count;
  const acc start = KILN_INIT ? static_cast<acc>(kiln::from_bits<KILN_T>(init))
                    : KILN_EXCLUSIVE ? user::identity(in)
                                     : s.neutral;
  const unsigned warp = kiln::warp_broadcast(kiln::warp(), 0);
  count tile = blockIdx.x, next = tiles;

  if (KILN_AHEAD) {
    if (threadIdx.x == 0) {
      rooms[0].next = kiln::tile_ticket(tickets, epoch);
      rooms[1].next = kiln::tile_ticket(tickets, epoch);
    }
    __syncthreads();
    tile = rooms[0].next;
    next = rooms[1].next;
    if (tile >= tiles && tile > 0)
      return;
    __syncthreads(); /* rooms are free again */
  }
  if (warp == warps)
    look_back(s, tile_chain(words, epoch, s.op, s.neutral, start), rooms, tile,
              next, tiles, tickets);
  else
    scan_tiles(s, rooms, tile, next, tiles, words, epoch, total, warp);
}
