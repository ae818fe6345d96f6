/* scan_stage.cuh -- a tile of scan.cu that waits in shared memory for what comes
 * before it: no registers are held for it meanwhile, so a multiprocessor has more
 * bytes under way. After scan_tile.cuh; `out` lies on 16 bytes, KILN_PACK of its
 * elements have 16. Elements are staged in its type, an input that has it already
 * (KILN_PLAIN, KILN_IN_ALIGNED) without a way through registers.
 *
 * Memory sees rows of a warp, 16 bytes a lane; a lane works on KILN_ROWS pieces of
 * 16 bytes that are neighbours, one after the other, so that one scan over the
 * lanes is enough. Pieces are stored where neither way has bank conflicts. */
#ifndef KILN_SCAN_STAGE_CUH
#define KILN_SCAN_STAGE_CUH

#include <kiln/stage.cuh>

/* 16 bytes of the result's type. */
struct staged_piece {
  unsigned word[4];
};

static __device__ __forceinline__ acc at(const staged_piece &p, unsigned e)
{
  KILN_T v[KILN_PACK];

  memcpy(v, p.word, sizeof v);
  return static_cast<acc>(kiln::widen(v[e]));
}

struct staged_tile {
  enum : unsigned {
    pieces = 32 * KILN_ROWS, /* of a warp */
    /* lanes whose first pieces lie in the same 128 bytes */
    sharers = KILN_ROWS < 8 ? 8 / KILN_ROWS : 1
  };
  static_assert((KILN_ROWS & (KILN_ROWS - 1)) == 0, "a power of two");
  static_assert(KILN_PACK * sizeof(KILN_T) == 16, "packs of 16 bytes");

  uint4 *mine; /* the warp's pieces */
  acc before;  /* the fold over the warp's elements before my own */

  /* Where piece k of a lane lies. */
  static __device__ __forceinline__ unsigned place(unsigned lane, unsigned k)
  {
    return lane * KILN_ROWS +
           (k ^ lane / sharers % (KILN_ROWS < 8 ? KILN_ROWS : 8));
  }
  /* Where the warp's piece k in memory's order lies. */
  static __device__ __forceinline__ unsigned place_of(unsigned k)
  {
    return place(k / KILN_ROWS, k % KILN_ROWS);
  }

  __device__ __forceinline__ staged_piece piece(unsigned k) const
  {
    const uint4 v = mine[place(kiln::lane(), k)];

    return {{v.x, v.y, v.z, v.w}};
  }

  __device__ __forceinline__ void put(const held &h, unsigned k)
  {
    acc v[KILN_PACK];
    packed p;

#pragma unroll
    for (unsigned e = 0; e < KILN_PACK; ++e)
      v[e] = ::at(h, e);
    p.set(v);
    mine[place_of(k)] = make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]);
  }

  /* A piece that the array ends in or before. */
  __device__ __forceinline__ void put_part(const source &s, count i, unsigned k)
  {
    held h;

    hold_part(s.in, i, s.n, s.neutral, h);
    put(h, k);
  }

  __device__ __forceinline__ void load(const source &s, const tile_view &view)
  {
    enum { batch = KILN_ROWS < 4 ? KILN_ROWS : 4 }; /* loads under way */
    __shared__ uint4 stage[warps * pieces];
    const unsigned first = kiln::warp() * warp_tile;
    const bool whole = first + warp_tile <= view.size;

    mine = stage + kiln::warp() * pieces;
#if KILN_PLAIN && KILN_IN_ALIGNED
#pragma unroll
    for (unsigned r = 0; r < KILN_ROWS; ++r) {
      const unsigned k = r * 32 + kiln::lane(), i = first + k * KILN_PACK;

      if (whole || i + KILN_PACK <= view.size)
        kiln::stage_async(&mine[place_of(k)], s.in.x0 + view.first + i);
      else
        put_part(s, view.first + i, k);
    }
    ask_ahead(s, own_tile()); /* behind what is needed first */
    kiln::stage_wait();
#else
    ask_ahead(s, own_tile());
#pragma unroll 2
    for (unsigned r = 0; r < KILN_ROWS; r += batch) {
      loaded p[batch];

      if (!whole)
        break;
#pragma unroll
      for (unsigned b = 0; b < batch; ++b)
        load_pack(s.in,
                  view.first + first +
                      ((r + b) * 32 + kiln::lane()) * KILN_PACK,
                  p[b]);
#pragma unroll
      for (unsigned b = 0; b < batch; ++b) {
        const unsigned k = (r + b) * 32 + kiln::lane();
        held h;

        hold(s.in, view.first + first + k * KILN_PACK, true, p[b], s.neutral,
             h);
        put(h, k);
      }
    }
    if (!whole)
#pragma unroll 1
      for (unsigned r = 0; r < KILN_ROWS; ++r)
        put_part(s, view.first + first + (r * 32 + kiln::lane()) * KILN_PACK,
                 r * 32 + kiln::lane());
#endif
    __syncwarp();
  }

  /* The fold over the warp. */
  __device__ __forceinline__ acc fold(const source &s)
  {
    acc sum = s.neutral, all;

#pragma unroll 4
    for (unsigned k = 0; k < KILN_ROWS; ++k) {
      const staged_piece h = piece(k);

#pragma unroll
      for (unsigned e = 0; e < KILN_PACK; ++e)
        sum = s.op(sum, at(h, e));
    }
    sum = kiln::warp_scan_inclusive(sum, s.op);
    all = kiln::warp_broadcast(sum, 31);
    before = kiln::shuffle_up(sum, 1);
    if (kiln::lane() == 0)
      before = s.neutral;
    return all;
  }

  __device__ __forceinline__ void store(const source &s, const tile_view &view,
                                        acc sum, unsigned, KILN_T *out)
  {
    const unsigned first = kiln::warp() * warp_tile;

    sum = s.op(sum, before);
#pragma unroll 4
    for (unsigned k = 0; k < KILN_ROWS; ++k) {
      acc to[KILN_PACK];
      packed p;

      results(s, piece(k), sum, to);
      p.set(to);
      mine[place(kiln::lane(), k)] =
          make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]);
    }
    __syncwarp();
#pragma unroll 4
    for (unsigned r = 0; r < KILN_ROWS; ++r) {
      const unsigned k = r * 32 + kiln::lane();
      const unsigned i = first + k * KILN_PACK;
      const uint4 v = mine[place_of(k)];

      if (i + KILN_PACK <= view.size) {
        __stcs(reinterpret_cast<uint4 *>(out + view.first + i), v);
      } else if (i < view.size) {
        const packed p = {{v.x, v.y, v.z, v.w}};

        p.store_some(out + view.first + i, view.size - i);
      }
    }
  }
};

#endif
