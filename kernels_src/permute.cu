/* permute.cu -- reorder the axes of an array if the fastest axis changes.
 *
 * Problem: either the loads or the stores of a direct copy have a stride, and then each
 * of them moves a whole sector for one element.
 *
 * Idea: a run is a group of axes that one index covers. Run A consists of the fastest axes
 * of the input, and run B of the fastest axes of the output. The host splits the axes so
 * that both runs are long, and treats the other axes as a batch. A block loads a tile of
 * KILN_TA indices of run A and KILN_TB indices of run B along run A, and stores it along run
 * B. In between, the tile is in shared memory. Rows have an odd pitch, so that accesses
 * along columns use different banks. If a run has several axes, a table in shared memory
 * contains the offsets of its indices.
 * Elements of 1 or 2 bytes move as words of four bytes: a thread loads a square of
 * KILN_PACK x KILN_PACK elements, turns it in registers and stores words of the other
 * direction (KILN_PACK > 1).
 * If the rows of the output are not aligned to sectors of 32 bytes, a tile that stored
 * the same indices of all rows would write parts of sectors. Instead it starts in each row
 * at the first whole sector behind the tile's first index, and therefore loads KILN_SKEW
 * more indices of run B than it stores (KILN_SKEW > 1). The first tile of a run also stores
 * the indices before that sector.
 *
 * Invariant: each element is loaded by one thread and stored by one thread, after a
 * barrier.
 *
 * Cost: one read and one write of the array.
 *
 * Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009.
 *
 * Parameters:
 *   KILN_BLOCK    256  threads per block
 *   KILN_UNIT     4    bytes per access: 1, 2, 4, 8 or 16; 4 with KILN_PACK > 1
 *   KILN_UNITS    1    units per element
 *   KILN_PACK     1    elements per unit; if above 1, both runs have multiples of it and
 *                      words are aligned
 *   KILN_TA       64   indices of run A per tile
 *   KILN_TB       64   indices of run B per tile
 *   KILN_AXES_A   0    1 if run A has several axes
 *   KILN_AXES_B   0    1 if run B has several axes
 *   KILN_SKEW     1    elements per sector if rows of the output are not aligned to
 *                      sectors, otherwise 1; KILN_TB is a multiple of it
 *   KILN_SMALL    1    1 if the array has fewer than 2^31 units
 * Launch: the block size is KILN_BLOCK. The grid has one block per tile: the tiles along
 *         run A, times those along run B, times the number of indices of the batch.
 *         in, out  the arrays, in units
 *         s        the axes, with strides in elements
 * Result: every element of out is written once. */
#include <kiln/params/permute.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/axes.cuh>
#include <kiln/types.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;
typedef kiln::word<KILN_UNIT>::type unit;

/* The axes of the runs and of the batch. The host has the same struct. */
struct shape {
  unsigned long long a, b;     /* lengths of the runs */
  kiln::axis tiles_a, tiles_b; /* number of tiles along each run */
  kiln::axis of_a[6], of_b[6], of_batch[4];
  unsigned n_a, n_b, n_batch;
};

enum : unsigned {
  /* units per tile in both directions, before and after packing */
  wide = KILN_TA * KILN_UNITS / KILN_PACK,
  high = KILN_TB * KILN_UNITS / KILN_PACK,
  pitch = (KILN_PACK > 1 ? high : wide) | 1,
  deep =
      KILN_TB + (KILN_SKEW > 1 ? KILN_SKEW : 0), /* indices of run B to load */
  rows = KILN_PACK > 1 ? KILN_TA : deep
};
static_assert(KILN_SKEW == 1 || (KILN_UNITS == 1 && KILN_PACK == 1 &&
                                 KILN_TB % KILN_SKEW == 0),
              "KILN_SKEW: whole units and sectors");

struct storage {
  unit tile[rows * pitch];
  count row_a[KILN_AXES_A ? KILN_TA : 1]; /* offsets in out */
  count row_b[KILN_AXES_B ? deep : 1];    /* offsets in in */
};

/* The tile of a block. */
struct job {
  count in, out;   /* offset in elements of the batch index */
  count a, b;      /* first index of each run */
  unsigned na, nb; /* indices of each run in this tile */
};

static __device__ __forceinline__ job job_of(const shape &s, count tile)
{
  const count over_a = kiln::axis_divide(s.tiles_a, tile);
  const count over_b = kiln::axis_divide(s.tiles_b, over_a);
  const kiln::place<count> at = kiln::place_of(s.of_batch, s.n_batch, over_b);
  const count a =
      (tile - over_a * static_cast<count>(s.tiles_a.size)) * KILN_TA;
  const count b =
      (over_a - over_b * static_cast<count>(s.tiles_b.size)) * KILN_TB;
  const count rest_a = static_cast<count>(s.a) - a;
  const count rest_b = static_cast<count>(s.b) - b;

  return {at.in,
          at.out,
          a,
          b,
          rest_a < KILN_TA ? static_cast<unsigned>(rest_a) : KILN_TA,
          rest_b < deep ? static_cast<unsigned>(rest_b) : deep};
}

/* Fills the tables of offsets. */
static __device__ __forceinline__ void fill_tables(const shape &s, const job &j,
                                                   storage &to)
{
  if (KILN_AXES_A)
    for (unsigned k = threadIdx.x; k < j.na; k += KILN_BLOCK)
      to.row_a[k] = kiln::place_of(s.of_a, s.n_a, j.a + k).out;
  if (KILN_AXES_B)
    for (unsigned k = threadIdx.x; k < j.nb; k += KILN_BLOCK)
      to.row_b[k] = kiln::place_of(s.of_b, s.n_b, j.b + k).in;
  if (KILN_AXES_A || KILN_AXES_B)
    __syncthreads();
}

static __device__ __forceinline__ count row_a(const shape &s, const job &j,
                                              const storage &from, unsigned k)
{
  return KILN_AXES_A ? from.row_a[k]
                     : (j.a + k) * static_cast<count>(s.of_a[0].out);
}

static __device__ __forceinline__ count row_b(const shape &s, const job &j,
                                              const storage &from, unsigned k)
{
  return KILN_AXES_B ? from.row_b[k]
                     : (j.b + k) * static_cast<count>(s.of_b[0].in);
}

#if KILN_PACK == 1

enum : unsigned {
  loads = (deep * wide + KILN_BLOCK - 1) / KILN_BLOCK,
  stores = (KILN_TA * high + KILN_BLOCK - 1) / KILN_BLOCK
};

/* Loads the tile along run A. `whole` means that no unit is beyond the tile's
 * last ones. */
template <bool whole>
static __device__ __forceinline__ void load_tile(const unit *in, const shape &s,
                                                 const job &j, storage &to)
{
  unit v[loads];

#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;
    const unsigned b = l / wide, u = l % wide;
    const bool inside = whole
                            ? (deep * wide) % KILN_BLOCK == 0 || l < deep * wide
                            : b < j.nb && u < j.na * KILN_UNITS;

    if (inside)
      v[k] = __ldg(in + ((j.in + row_b(s, j, to, b) + j.a) * KILN_UNITS + u));
  }
#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;

    if ((deep * wide) % KILN_BLOCK == 0 || l < deep * wide)
      to.tile[l / wide * pitch + l % wide] = v[k];
  }
}

/* Returns the number of units from a place of a row to the next sector. */
static __device__ __forceinline__ unsigned skew_of(const unit *at)
{
  return static_cast<unsigned>(0ull - reinterpret_cast<unsigned long long>(at) /
                                          sizeof(unit)) %
         KILN_SKEW;
}

/* Stores the tile along run B. */
template <bool whole>
static __device__ __forceinline__ void
store_tile(unit *out, const shape &s, const job &j, const storage &from)
{
#pragma unroll
  for (unsigned k = 0; k < stores; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;
    const unsigned a = l / high;

    if (whole ? (KILN_TA * high) % KILN_BLOCK != 0 && l >= KILN_TA * high
              : a >= j.na)
      break;
    unit *const row = out + (j.out + row_a(s, j, from, a) + j.b) * KILN_UNITS;
    const unsigned u = l % high + (KILN_SKEW > 1 && j.b > 0 ? skew_of(row) : 0);

    if (whole || u < j.nb * KILN_UNITS)
      row[u] =
          from.tile[u / KILN_UNITS * pitch + a * KILN_UNITS + u % KILN_UNITS];
  }
}

/* Stores what the first tile of a run stores in addition. */
static __device__ __forceinline__ void
store_rest(unit *out, const shape &s, const job &j, const storage &from)
{
  for (unsigned l = threadIdx.x; l < j.na * KILN_SKEW; l += KILN_BLOCK) {
    const unsigned a = l / KILN_SKEW, u = KILN_TB + l % KILN_SKEW;
    unit *const row = out + (j.out + row_a(s, j, from, a) + j.b);

    if (u < j.nb && u - KILN_TB < skew_of(row))
      row[u] = from.tile[u * pitch + a];
  }
}

#else

static_assert(KILN_UNITS == 1 && KILN_UNIT == 4, "KILN_PACK: words of 4 bytes");

enum : unsigned {
  loads = wide * high / KILN_BLOCK,
  stores = KILN_TA * high / KILN_BLOCK,
  bits = 32 / KILN_PACK
};
static_assert(loads * KILN_BLOCK == wide * high, "KILN_TA, KILN_TB: squares");

/* Turns a square of elements: element e of word r becomes element r of word e. */
static __device__ __forceinline__ void turn(unit (&w)[KILN_PACK])
{
#if KILN_PACK == 2
  const unit first = __byte_perm(w[0], w[1], 0x5410);

  w[1] = __byte_perm(w[0], w[1], 0x7632);
  w[0] = first;
#else
  const unit low01 = __byte_perm(w[0], w[1], 0x5140);
  const unit high01 = __byte_perm(w[0], w[1], 0x7362);
  const unit low23 = __byte_perm(w[2], w[3], 0x5140);
  const unit high23 = __byte_perm(w[2], w[3], 0x7362);

  w[0] = __byte_perm(low01, low23, 0x5410);
  w[1] = __byte_perm(low01, low23, 0x7632);
  w[2] = __byte_perm(high01, high23, 0x5410);
  w[3] = __byte_perm(high01, high23, 0x7632);
#endif
}

template <bool whole>
static __device__ __forceinline__ void load_tile(const unit *in, const shape &s,
                                                 const job &j, storage &to)
{
  unit w[loads][KILN_PACK];

#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;
    const unsigned b = l / wide * KILN_PACK, a = l % wide * KILN_PACK;

    if (whole || (a < j.na && b < j.nb))
#pragma unroll
      for (unsigned r = 0; r < KILN_PACK; ++r)
        w[k][r] =
            __ldg(in + (j.in + row_b(s, j, to, b + r) + j.a + a) / KILN_PACK);
  }
#pragma unroll
  for (unsigned k = 0; k < loads; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;
    const unsigned b = l / wide, a = l % wide * KILN_PACK;

    turn(w[k]);
#pragma unroll
    for (unsigned r = 0; r < KILN_PACK; ++r)
      to.tile[(a + r) * pitch + b] = w[k][r];
  }
}

template <bool whole>
static __device__ __forceinline__ void
store_tile(unit *out, const shape &s, const job &j, const storage &from)
{
#pragma unroll
  for (unsigned k = 0; k < stores; ++k) {
    const unsigned l = k * KILN_BLOCK + threadIdx.x;
    const unsigned a = l / high, b = l % high;

    if (whole || (a < j.na && b * KILN_PACK < j.nb))
      out[(j.out + row_a(s, j, from, a) + j.b) / KILN_PACK + b] =
          from.tile[a * pitch + b];
  }
}

#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    permute(const unit *in, unit *out, const shape s)
{
  __shared__ storage mine;
  const job j = job_of(s, static_cast<count>(blockIdx.x));

  fill_tables(s, j, mine);
  if (j.na == KILN_TA && j.nb == deep) {
    load_tile<true>(in, s, j, mine);
    __syncthreads();
    store_tile<true>(out, s, j, mine);
  } else {
    load_tile<false>(in, s, j, mine);
    __syncthreads();
    store_tile<false>(out, s, j, mine);
  }
#if KILN_SKEW > 1
  if (j.b == 0)
    store_rest(out, s, j, mine);
#endif
}
