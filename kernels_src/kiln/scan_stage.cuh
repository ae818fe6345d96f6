/* scan_stage.cuh -- a tile of scan.cu that is staged in shared memory until the prefix of
 * the preceding tiles is published. The tile occupies no registers, so an SM has more
 * bytes in flight. Include this file after scan_tile.cuh. `out` is aligned to 16 bytes,
 * and KILN_VECTOR elements of `out` have 16 bytes. Elements are staged in the type of
 * `out`. With KILN_PLAIN and KILN_IN_ALIGNED the input has this type already, and
 * cp.async copies it without registers.
 *
 * A warp accesses global memory in rows of 32 vectors, with 16 bytes per lane. In shared
 * memory, each lane scans KILN_VECTORS consecutive vectors of 16 bytes, so one scan over
 * the lanes is enough. Vectors are permuted within shared memory such that neither
 * access pattern has bank conflicts. */
#ifndef KILN_SCAN_STAGE_CUH
#define KILN_SCAN_STAGE_CUH

#include <kiln/stage.cuh>

/* A vector of 16 bytes, whose elements have the type of `out`. */
struct staged_vector {
  unsigned word[4];
};

static __device__ __forceinline__ acc at(const staged_vector &p, unsigned e)
{
  KILN_T v[KILN_VECTOR];

  memcpy(v, p.word, sizeof v);
  return static_cast<acc>(kiln::widen(v[e]));
}

struct staged_tile {
  enum : unsigned {
    chunks = 32 * KILN_VECTORS, /* vectors per warp */
    /* number of lanes whose first vectors are in the same 128 bytes of shared
     * memory */
    sharers = KILN_VECTORS < 8 ? 8 / KILN_VECTORS : 1
  };
  static_assert((KILN_VECTORS & (KILN_VECTORS - 1)) == 0, "a power of two");
  static_assert(KILN_VECTOR * sizeof(KILN_T) == 16, "vectors of 16 bytes");

  uint4 *mine; /* shared memory of the warp's vectors */
  acc before;  /* reduction over the elements of the warp's lower lanes */

  /* Returns the position in shared memory (index in `mine`) of vector k of a
   * lane. */
  static __device__ __forceinline__ unsigned slot(unsigned lane, unsigned k)
  {
    return lane * KILN_VECTORS +
           (k ^ lane / sharers % (KILN_VECTORS < 8 ? KILN_VECTORS : 8));
  }
  /* Returns the position in shared memory (index in `mine`) of vector k of the
   * warp. Vectors are numbered in the order of global memory. */
  static __device__ __forceinline__ unsigned slot_of(unsigned k)
  {
    return slot(k / KILN_VECTORS, k % KILN_VECTORS);
  }

  __device__ __forceinline__ staged_vector vector(unsigned k) const
  {
    const uint4 v = mine[slot(kiln::lane(), k)];

    return {{v.x, v.y, v.z, v.w}};
  }

  __device__ __forceinline__ void put(const held &h, unsigned k)
  {
    acc v[KILN_VECTOR];
    stored_vector p;

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      v[e] = ::at(h, e);
    p.set(v);
    mine[slot_of(k)] = make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]);
  }

  /* Stages a vector that is partly or completely beyond the end of the array. */
  __device__ __forceinline__ void put_partial(const source &s, count i,
                                              unsigned k)
  {
    held h;

    hold_partial(s.in, i, s.n, s.identity, h);
    put(h, k);
  }

  __device__ __forceinline__ void load(const source &s, const tile_view &view)
  {
    /* number of vectors that a lane loads at the same time */
    enum { batch = KILN_VECTORS < 4 ? KILN_VECTORS : 4 };
    __shared__ uint4 stage[warps * chunks];
    const unsigned first = kiln::warp() * warp_tile;
    const bool whole = first + warp_tile <= view.size;

    mine = stage + kiln::warp() * chunks;
#if KILN_PLAIN && KILN_IN_ALIGNED
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r) {
      const unsigned k = r * 32 + kiln::lane(), i = first + k * KILN_VECTOR;

      if (whole || i + KILN_VECTOR <= view.size)
        kiln::stage_async(&mine[slot_of(k)], s.in.x0 + view.first + i);
      else
        put_partial(s, view.first + i, k);
    }
    /* The prefetch follows the loads of this tile. */
    prefetch_ahead(s, own_tile());
    kiln::stage_wait();
#else
    prefetch_ahead(s, own_tile());
#pragma unroll 2
    for (unsigned r = 0; r < KILN_VECTORS; r += batch) {
      loaded p[batch];

      if (!whole)
        break;
#pragma unroll
      for (unsigned b = 0; b < batch; ++b)
        load_vector(s.in,
                    view.first + first +
                        ((r + b) * 32 + kiln::lane()) * KILN_VECTOR,
                    p[b]);
#pragma unroll
      for (unsigned b = 0; b < batch; ++b) {
        const unsigned k = (r + b) * 32 + kiln::lane();
        held h;

        hold(s.in, view.first + first + k * KILN_VECTOR, true, p[b], s.identity,
             h);
        put(h, k);
      }
    }
    if (!whole)
#pragma unroll 1
      for (unsigned r = 0; r < KILN_VECTORS; ++r)
        put_partial(s,
                    view.first + first + (r * 32 + kiln::lane()) * KILN_VECTOR,
                    r * 32 + kiln::lane());
#endif
    __syncwarp();
  }

  /* Returns the reduction over the warp's elements, and sets `before` to the
   * reduction over the elements of the lower lanes. */
  __device__ __forceinline__ acc reduce(const source &s)
  {
    acc sum = s.identity, all;

#pragma unroll 4
    for (unsigned k = 0; k < KILN_VECTORS; ++k)
      sum = reduce_vector(s, sum, vector(k));
    sum = kiln::warp_scan_inclusive(sum, s.op);
    all = kiln::warp_broadcast(sum, 31);
    before = kiln::shuffle_up(sum, 1);
    if (kiln::lane() == 0)
      before = s.identity;
    return all;
  }

  __device__ __forceinline__ void store(const source &s, const tile_view &view,
                                        acc sum, unsigned, KILN_T *out)
  {
    const unsigned first = kiln::warp() * warp_tile;

    sum = s.op(sum, before);
#pragma unroll 4
    for (unsigned k = 0; k < KILN_VECTORS; ++k) {
      acc to[KILN_VECTOR];
      stored_vector p;

      results(s, vector(k), sum, to);
      p.set(to);
      mine[slot(kiln::lane(), k)] =
          make_uint4(p.word[0], p.word[1], p.word[2], p.word[3]);
    }
    __syncwarp();
#pragma unroll 4
    for (unsigned r = 0; r < KILN_VECTORS; ++r) {
      const unsigned k = r * 32 + kiln::lane();
      const unsigned i = first + k * KILN_VECTOR;
      const uint4 v = mine[slot_of(k)];

      if (i + KILN_VECTOR <= view.size) {
        __stcs(reinterpret_cast<uint4 *>(out + view.first + i), v);
      } else if (i < view.size) {
        const stored_vector p = {{v.x, v.y, v.z, v.w}};

        p.store_some(out + view.first + i, view.size - i);
      }
    }
  }
};

#endif
