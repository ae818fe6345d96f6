/* gemm.cuh -- what all kernels of matrix products share: the arguments, the type of the
 * sums, the order of the tiles and the epilogue.
 *
 * The host brings every call into one form: D is in row-major order, A is m x k and B is
 * k x n. If the caller's D is in column-major order, the host exchanges A and B and sets
 * KILN_SWAPPED, so that the epilogue gets row and column in the caller's sense.
 *
 * A program defines these macros before it includes this file:
 *   KILN_T, KILN_C, KILN_D  types of the elements of A and B, of C and of D
 *   KILN_READS_C            1 if beta is not 0
 *   KILN_POINTERS           bits 0 to 3: A, B, C, D are given by arrays of pointers
 *   KILN_SWAPPED            1 if rows and columns are exchanged
 *   KILN_INPUTS             number of further inputs of the epilogue
 *   KILN_VECTORS            optional: two bits per further input, first input lowest.
 *                           1: a vector with an element per column of the caller's D,
 *                           2: per row; 0: the input has the strides of gemm_args
 *
 * The user's part is user::epilogue(args, acc, row, column, batch, further inputs). */
#ifndef KILN_GEMM_CUH
#define KILN_GEMM_CUH

#include <kiln/user.cuh>

#ifndef KILN_VECTORS
#define KILN_VECTORS 0
#endif

#if !KILN_GENERATED
namespace user
{
template <class A>
static __device__ __forceinline__ A epilogue(const args &, A acc, index, index,
                                             index)
{
  return acc;
}
} // namespace user
#endif

namespace kiln
{

/* Type of a sum of products. Integers are summed as unsigned, since sums wrap. */
template <class T> struct gemm_sum {
  typedef float type;
};
template <> struct gemm_sum<double> {
  typedef double type;
};
template <> struct gemm_sum<signed char> {
  typedef unsigned type;
};

/* Type in which the epilogue sees a sum. */
template <class S> struct gemm_seen {
  typedef S type;
};
template <> struct gemm_seen<unsigned> {
  typedef int type;
};

typedef gemm_sum<KILN_T>::type gemm_acc;
typedef gemm_seen<gemm_acc>::type gemm_value;

/* One operand. Element (r, c) of matrix b is at data + b * stride + r * leading + c,
 * or with r and c exchanged. If KILN_POINTERS has the operand's bit, `data` points to
 * an array of addresses. */
struct gemm_operand {
  unsigned long long data;
  unsigned long long leading;
  unsigned long long stride;
};

/* The argument of each kernel; the host has the same struct (kiln__gemm_args). */
struct gemm_args {
  gemm_operand a, b, c, d;
  unsigned long long m, n, k, batch;
  unsigned long long alpha, beta; /* the bits of a gemm_value */
  /* C has rows or columns that are consecutive; D has consecutive columns. */
  unsigned long long c_row, c_column;
  /* Strides of the further inputs per row, column and matrix of the caller's D. */
  unsigned long long x[4][3];
};

enum : unsigned {
  gemm_pointers_a = 1,
  gemm_pointers_b = 2,
  gemm_pointers_c = 4,
  gemm_pointers_d = 8
};

/* Returns the address of the operand's matrix number `batch`. */
template <unsigned bit, class T>
__device__ __forceinline__ T *gemm_matrix(const gemm_operand &o, index batch)
{
  if (KILN_POINTERS & bit)
    return reinterpret_cast<T *>(
        reinterpret_cast<const unsigned long long *>(o.data)[batch]);
  return reinterpret_cast<T *>(o.data) + batch * o.stride;
}

__device__ __forceinline__ gemm_value gemm_factor(unsigned long long bits)
{
  return from_bits<gemm_value>(bits);
}

/* Returns alpha * sum + beta * c. */
__device__ __forceinline__ float gemm_scale(float alpha, float sum)
{
  return alpha * sum;
}
__device__ __forceinline__ double gemm_scale(double alpha, double sum)
{
  return alpha * sum;
}
__device__ __forceinline__ int gemm_scale(int alpha, unsigned sum)
{
  return static_cast<int>(static_cast<unsigned>(alpha) * sum);
}
__device__ __forceinline__ float gemm_add(float beta, float c, float v)
{
  return fmaf(beta, c, v);
}
__device__ __forceinline__ double gemm_add(double beta, double c, double v)
{
  return fma(beta, c, v);
}
__device__ __forceinline__ int gemm_add(int beta, int c, int v)
{
  return static_cast<int>(static_cast<unsigned>(beta) *
                              static_cast<unsigned>(c) +
                          static_cast<unsigned>(v));
}

/* Returns an element of further input number `which`. */
template <unsigned which, class X>
__device__ __forceinline__ compute_t<X>
gemm_input(const X *x, const unsigned long long (&stride)[3], index row,
           index column, index batch)
{
  if ((KILN_VECTORS >> 2 * which & 3) != 0)
    return load(x + ((KILN_VECTORS >> 2 * which & 3) == 1 ? column : row));
  return load(x + row * stride[0] + column * stride[1] + batch * stride[2]);
}

/* Returns the epilogue's result for an element of the caller's D. */
__device__ __forceinline__ auto gemm_text(const user::args &in,
                                          const gemm_args &g, gemm_value acc,
                                          index row, index column, index batch)
{
#define KILN_GEMM_X(k) gemm_input<k>(in.x##k, g.x[k], row, column, batch)
#if KILN_INPUTS == 0
  return user::epilogue(in, acc, row, column, batch);
#elif KILN_INPUTS == 1
  return user::epilogue(in, acc, row, column, batch, KILN_GEMM_X(0));
#elif KILN_INPUTS == 2
  return user::epilogue(in, acc, row, column, batch, KILN_GEMM_X(0),
                        KILN_GEMM_X(1));
#elif KILN_INPUTS == 3
  return user::epilogue(in, acc, row, column, batch, KILN_GEMM_X(0),
                        KILN_GEMM_X(1), KILN_GEMM_X(2));
#else
  return user::epilogue(in, acc, row, column, batch, KILN_GEMM_X(0),
                        KILN_GEMM_X(1), KILN_GEMM_X(2), KILN_GEMM_X(3));
#endif
#undef KILN_GEMM_X
}

/* Returns element (row, column) of D for a sum of products. `c` is the matrix C of
 * this product; it is not read unless KILN_READS_C is 1. */
__device__ __forceinline__ KILN_D gemm_element(const user::args &in,
                                               const gemm_args &g,
                                               const KILN_C *c, gemm_acc sum,
                                               index row, index column,
                                               index batch)
{
  gemm_value v = gemm_scale(gemm_factor(g.alpha), sum);

  if (KILN_READS_C)
    v = gemm_add(
        gemm_factor(g.beta),
        static_cast<gemm_value>(widen(c[row * g.c_row + column * g.c_column])),
        v);
  return narrow<KILN_D>(KILN_SWAPPED ? gemm_text(in, g, v, column, row, batch)
                                     : gemm_text(in, g, v, row, column, batch));
}

/* Position of a tile in the grid. Tiles are numbered in groups of `group` rows of
 * tiles, column by column within a group, so that the blocks which run at the same time
 * share rows of A and columns of B in the L2 cache. */
struct gemm_place {
  unsigned row, column;
};

__device__ __forceinline__ gemm_place gemm_order(unsigned tile, unsigned rows,
                                                 unsigned columns,
                                                 unsigned group)
{
  const unsigned first = tile / (group * columns) * group;
  const unsigned high = rows - first < group ? rows - first : group;
  const unsigned in_group = tile - first * columns;

  return {first + in_group % high, in_group / high};
}

} // namespace kiln

#endif
