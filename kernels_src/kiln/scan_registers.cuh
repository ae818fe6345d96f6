/* scan_registers.cuh -- a tile of scan.cu that stays in registers until the prefix of
 * the preceding tiles is published. It supports all types, operations and alignments.
 * Include this file after scan_tile.cuh. */
#ifndef KILN_SCAN_REGISTERS_CUH
#define KILN_SCAN_REGISTERS_CUH

struct register_tile {
  held h[KILN_VECTORS];
  /* before[r] is the reduction over those elements of the warp that precede
   * vector r of this lane. */
  acc before[KILN_VECTORS];

  __device__ __forceinline__ void load(const source &s, const tile_view &view)
  {
    loaded p[KILN_VECTORS];

    load_tile(s, view, p);
    prefetch_ahead(s, own_tile());
    hold_tile(s, view, p, h);
  }

  /* Returns the reduction over a vector. */
  static __device__ __forceinline__ acc first_sum(const source &s,
                                                  const held &h)
  {
#ifdef KILN_LINKED
    enum : unsigned { more = KILN_VECTOR > 1 ? KILN_VECTOR - 1 : 1 };
    acc v[more], upto[more];

    if (KILN_VECTOR == 1)
      return at(h, 0);
#pragma unroll
    for (unsigned e = 0; e < more; ++e)
      v[e] = at(h, KILN_VECTOR > 1 ? e + 1 : 0);
    kiln::op_run(s.op, at(h, 0), v, upto);
    return upto[more - 1];
#else
    acc sum = at(h, 0);

#pragma unroll
    for (unsigned e = 1; e < KILN_VECTOR; ++e)
      sum = s.op(sum, at(h, e));
    return sum;
#endif
  }

  /* Returns the reduction over the warp's elements, and sets the array
   * `before`. */
  __device__ __forceinline__ acc reduce(const source &s)
  {
    acc sum[KILN_VECTORS], chain;

#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      sum[r] = first_sum(s, h[r]);
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      /* The shuffles of all iterations are in flight at the same time. */
#pragma unroll
      for (unsigned r = 0; r < KILN_VECTORS; ++r)
        before[r] = kiln::shuffle_up(sum[r], step);
#pragma unroll
      for (unsigned r = 0; r < KILN_VECTORS; ++r)
        if (kiln::lane() >= step)
          sum[r] = s.op(before[r], sum[r]);
    }
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r) {
      before[r] = kiln::shuffle_up(sum[r], 1);
      if (kiln::lane() == 0)
        before[r] = s.identity;
      sum[r] = kiln::warp_broadcast(sum[r], 31);
    }
    chain = sum[0];
#pragma unroll
    for (unsigned r = 1; r < KILN_VECTORS; ++r) {
      before[r] = s.op(chain, before[r]);
      chain = s.op(chain, sum[r]);
    }
    return chain;
  }

  /* Stores the results of the tile. `sum` is the reduction over all elements
   * that precede the warp's elements. `nothing` is a 0 that the compiler cannot
   * recognise (see hide()). */
  __device__ __forceinline__ void store(const source &s, const tile_view &view,
                                        acc sum, unsigned nothing, KILN_T *out)
  {
#pragma unroll
    for (unsigned r = 0; r < KILN_VECTORS; ++r)
      hide(h[r], nothing);
    store_tile(out, view, [&](unsigned r, acc(&to)[KILN_VECTOR]) {
      acc upto = s.op(sum, before[r]);

      results(s, h[r], upto, to);
    });
  }
};

#endif
