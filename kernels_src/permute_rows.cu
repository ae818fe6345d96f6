/* permute_rows.cu -- reorder the axes of an array if the fastest axis stays the fastest.
 *
 * A row is a run of units along the fastest axis, which is contiguous in both arrays. Each
 * thread handles consecutive units of the output in steps of the block size: it divides the
 * index of a unit by the length of a row, and the index of the row into those of the axes.
 * Divisions multiply by reciprocals.
 *
 * Cost: one read and one write of the array. Both are coalesced if rows have at least 32
 * bytes.
 *
 * Parameters:
 *   KILN_BLOCK  256  threads per block
 *   KILN_ITEMS  4    units per thread
 *   KILN_UNIT   16   bytes per unit: 1, 2, 4, 8 or 16
 *   KILN_SMALL  1    1 if the array has fewer than 2^31 units
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK *
 *         KILN_ITEMS units.
 *         in, out  the arrays, in units
 *         n        number of units
 *         row      the units of a row as an axis
 *         s        the other axes, with strides in units
 * Result: every unit of out is written once. */
#include <kiln/params/permute_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/axes.cuh>
#include <kiln/types.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;
typedef kiln::word<KILN_UNIT>::type unit;

struct shape {
  kiln::axis row, axes[6];
  unsigned n;
};

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    permute_rows(const unit *in, unit *out, unsigned long long n, const shape s)
{
  const count first =
      static_cast<count>(blockIdx.x) * (KILN_BLOCK * KILN_ITEMS) + threadIdx.x;
  unit v[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count i = first + k * KILN_BLOCK;

    if (i < n) {
      const count row = kiln::axis_divide(s.row, i);

      v[k] = __ldg(in + (kiln::place_of(s.axes, s.n, row).in +
                         (i - row * static_cast<count>(s.row.size))));
    }
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (first + k * KILN_BLOCK < n)
      out[first + k * KILN_BLOCK] = v[k];
}
