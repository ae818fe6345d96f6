/* gemm_store.cuh -- stores pairs of sums of a matrix product through the epilogue, for
 * kernels whose threads have two adjacent sums of a row, as tensor cores leave them.
 *
 * The program defines KILN_VECTOR_D: 1, or more if n is even and each pair of D can be
 * stored at once. */
#ifndef KILN_GEMM_STORE_CUH
#define KILN_GEMM_STORE_CUH

#include <kiln/gemm.cuh>

namespace kiln
{

/* What the epilogue needs for the elements of D of one product. */
struct gemm_output {
  const user::args &in;
  const gemm_args &g;
  const KILN_C *c;
  KILN_D *d;
  index batch;

  __device__ __forceinline__ gemm_output(const user::args &in,
                                         const gemm_args &g, index batch)
      : in(in), g(g),
        c(KILN_READS_C ? gemm_matrix<gemm_pointers_c, const KILN_C>(g.c, batch)
                       : nullptr),
        d(gemm_matrix<gemm_pointers_d, KILN_D>(g.d, batch)), batch(batch)
  {
  }

  __device__ __forceinline__ KILN_D element(gemm_acc sum, index row,
                                            index column) const
  {
    return gemm_element(in, g, c, sum, row, column, batch);
  }
};

/* Stores the elements of two sums to `to`, as far as their columns are inside of D. */
__device__ __forceinline__ void gemm_store_pair(const gemm_output &o,
                                                KILN_D *to, index row,
                                                index column,
                                                const gemm_acc *sum)
{
  if (column >= o.g.n)
    return;
  if (KILN_VECTOR_D == 1) {
    to[0] = o.element(sum[0], row, column);
    if (column + 1 < o.g.n)
      to[1] = o.element(sum[1], row, column + 1);
  } else {
    const KILN_D two[2] = {o.element(sum[0], row, column),
                           o.element(sum[1], row, column + 1)};

    store_raw<2, true>(to, two);
  }
}

/* Stores the elements of two sums, as far as they are inside of D. */
__device__ __forceinline__ void gemm_store_pair(const gemm_output &o, index row,
                                                index column,
                                                const gemm_acc *sum)
{
  if (row < o.g.m)
    gemm_store_pair(o, o.d + row * o.g.d.leading + column, row, column, sum);
}

} // namespace kiln

#endif
