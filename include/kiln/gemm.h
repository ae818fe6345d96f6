/* gemm.h -- matrix products with a fused epilogue.
 *
 *   kiln_gemm_desc product = {
 *       .m = m, .n = n, .k = k, .alpha = 1,
 *       .a = {.data = a, .type = KILN_F32},
 *       .b = {.data = b, .type = KILN_F32},
 *       .d = {.data = d, .type = KILN_F32},
 *       .in = {{.x = {bias, KILN_F32}, .column_stride = 1}},
 *       .epilogue = "fmaxf(acc + x, 0)"};
 *   st = kiln_gemm(stream, &product, NULL); */
#ifndef KILN_GEMM_H
#define KILN_GEMM_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Order of a matrix in memory. */
typedef enum kiln_gemm_order {
  KILN_ROW_MAJOR = 0, /**< the elements of a row are consecutive, as in C */
  KILN_COLUMN_MAJOR   /**< the elements of a column are consecutive, as in
                           Fortran and cuBLAS */
} kiln_gemm_order;

/** How a product of f32 matrices is computed. For other types the precision
 * must be KILN_GEMM_IEEE. See kiln_gemm() for the bounds on the error. A device
 * without suitable tensor cores uses fused multiply-add instructions of f32
 * instead, which are at least as accurate as each of these. */
typedef enum kiln_gemm_precision {
  KILN_GEMM_IEEE = 0, /**< the type's own arithmetic; f32: one fused
                           multiply-add of f32 per product */
  KILN_GEMM_F32,      /**< tensor cores; elements are split into parts of fewer
                           bits so that the error is about that of IEEE */
  KILN_GEMM_F32_FAST, /**< tensor cores; elements are split into two parts of
                           bf16, which keep 16 bits of each product */
  KILN_GEMM_TF32      /**< tensor cores; elements are rounded to tf32, which
                           keeps 11 bits of each element */
} kiln_gemm_precision;

/** A matrix in device memory, or a batch of matrices of one shape. The address
 * is aligned to the size of an element; an alignment of 16 bytes of each row
 * (or column) is faster. The size of this struct never changes. */
typedef struct kiln_gemm_matrix {
  CUdeviceptr data;      /**< address of element (0, 0) of the first matrix */
  CUdeviceptr pointers;  /**< if not 0: address of an array of `batch` device
                              addresses in device memory, one per matrix;
                              `data` and `stride` must then be 0 */
  kiln_dtype type;       /**< type of the elements */
  kiln_gemm_order order; /**< order in memory */
  bool transposed;       /**< the product uses the transposed of the stored
                              matrix; only for A and B */
  /** Distance between the starts of consecutive rows (columns for
   * KILN_COLUMN_MAJOR), in elements. 0 means that they follow each other
   * without a gap. */
  uint64_t leading;
  /** Distance between the starts of consecutive matrices of the batch, in
   * elements. 0 means that all products use the same matrix, which is not valid
   * for D if the batch has several matrices. */
  uint64_t stride;
} kiln_gemm_matrix;

/** A further input of the epilogue. For the element of D in row r and column c
 * of matrix b of the batch, the epilogue gets element
 *   r * row_stride + c * column_stride + b * batch_stride
 * of the array. A vector with an element per column, for example, has
 * column_stride 1 and the others 0. A matrix in row-major order has row_stride
 * `leading` and column_stride 1. The size of this struct never changes. */
typedef struct kiln_gemm_input {
  kiln_array x;           /**< the array */
  uint64_t row_stride;    /**< elements between rows of D */
  uint64_t column_stride; /**< elements between columns of D */
  uint64_t batch_stride;  /**< elements between matrices of the batch */
} kiln_gemm_input;

/** The largest number of further inputs of an epilogue. */
enum { KILN_GEMM_MAX_INPUTS = 4 };

/** How the work of a call is divided into blocks. Zero in a member of a desc
 * means that Kiln chooses the value. The size of this struct never changes. */
typedef struct kiln_gemm_tile {
  uint32_t m;     /**< rows of D per block */
  uint32_t n;     /**< columns of D per block */
  uint32_t split; /**< number of blocks that share the sum over k, at most 64 */
} kiln_gemm_tile;

/** Description of a product D = epilogue(alpha * op(A) * op(B) + beta * C), or
 * of a batch of such products. */
typedef struct kiln_gemm_desc {
  uint64_t m;         /**< rows of op(A), C and D */
  uint64_t n;         /**< columns of op(B), C and D */
  uint64_t k;         /**< columns of op(A), rows of op(B); 0 gives beta * C */
  uint64_t batch;     /**< number of products; 0 means 1 */
  kiln_gemm_matrix a; /**< op(A) is m x k: f16, bf16, f32, f64 or i8 */
  kiln_gemm_matrix b; /**< op(B) is k x n, of the type of A */
  kiln_gemm_matrix c; /**< m x n, any of the types of D; read only if beta is
                           not 0 */
  kiln_gemm_matrix d; /**< m x n: f16, bf16, f32 or f64; i32, i8, f16, bf16 or
                           f32 for a product of i8 */
  /** Factors. They are rounded to the type of the sums, see kiln_gemm(). For i8
   * they must be integers of 32 bits. Note that alpha = 0 in a desc that
   * starts as {0} gives beta * C; A and B are then not read. */
  double alpha, beta;
  kiln_gemm_precision precision; /**< how products of f32 are computed */
  /** User expression for an element of D, or NULL for `acc`. It may use
   *   acc         alpha * op(A) * op(B) + beta * C: float, double for f64, int
   *               for i8
   *   row, column position in D, unsigned 64-bit
   *   batch       number of the product, unsigned 64-bit
   *   x, y, z, w  the elements of in[0] to in[3]
   * and the parameters of `code`. It may call kiln::gelu(v), which returns v
   * times the normal distribution function of v with an absolute error of at
   * most 6e-7 for |v| up to 12, in a third of the instructions of a text with
   * erff(). The result is converted to the type of D;
   * conversions to i8 and i32 are C casts. */
  const char *epilogue;
  kiln_gemm_input in[KILN_GEMM_MAX_INPUTS]; /**< further inputs of the epilogue;
                                                 the list ends at the first
                                                 array without a type */
  kiln_gemm_tile tile; /**< division into blocks; {0} lets Kiln choose, by a
                            model or by what `kiln tune` measured */
  kiln_code code;      /**< parameters and functions for the epilogue */
} kiln_gemm_desc;

/**
 * Computes a matrix product, or a batch of them, and applies the epilogue to
 * each element in the same pass.
 *
 * Products are summed in f32 for f16, bf16 and f32, in f64 for f64, and in i32
 * for i8, where sums wrap on overflow. If s is the sum of |a| * |b| over the
 * products of an element, the error of `acc` for beta = 0 is at most
 *   alpha * s * (2 * u + (k + 4) * v), where
 *   f32, KILN_GEMM_IEEE      u = 0,      v = 2^-24
 *   f32, KILN_GEMM_F32       u = 2^-23,  v = 2^-23
 *   f32, KILN_GEMM_F32_FAST  u = 2^-16,  v = 2^-23
 *   f32, KILN_GEMM_TF32      u = 2^-10,  v = 2^-23
 *   f16, bf16                u = 0,      v = 2^-23
 *   f64                      u = 0,      v = 2^-53
 *   i8                       exact
 * as long as nothing overflows. Infinities and NaNs give what IEEE arithmetic
 * gives; KILN_GEMM_F32 and KILN_GEMM_F32_FAST may give NaN where IEEE
 * arithmetic gives an infinity. Then D is rounded to its type once.
 *
 * The same call on the same device gives the same bits. The order of the sum
 * depends on shape, layout, alignment and tile.
 *
 * D may be the matrix C, with equal type, order, leading dimension and stride.
 * D must not overlap any other array, except that an input of the epilogue may
 * be the array D if its strides select the same element. With arrays of
 * pointers Kiln cannot check that. If beta is 0, C is not read and need not be
 * given.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the product; borrowed for the call.
 * @param workspace  temporary storage of kiln_gemm_workspace() bytes, or NULL.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the types do
 *         not fit together, if a leading dimension is smaller than a row, if
 *         matrices overlap, or if no kernel has the requested tile.
 *
 * m = 0, n = 0 does nothing. Sizes and offsets are 64-bit numbers.
 *
 * Products of f16, bf16 and i8 use the tensor cores of compute capability 7.5
 * (bf16: 8.0) and later. Those of f64 use them where they are faster than other
 * units: 8.0, 9.0 and 10.0. The instructions of warpgroups exist on 9.0 only;
 * other devices, 10.x included, use those of one warp. kiln_gemm_explain() names
 * the path.
 *
 * The operation needs one launch. On tensor cores it needs up to two more, which
 * copy A or B to temporary storage: if precision splits f32, or if rows (or
 * columns) do not start at multiples of 16 bytes.
 * Thread-safe. Blocks only while a kernel compiles.
 *
 * Algorithm: tiles in shared memory and registers (Volkov and Demmel,
 * Benchmarking GPUs to tune dense linear algebra, 2008; Nath, Tomov and
 * Dongarra, An improved MAGMA GEMM for Fermi GPUs, 2010), warp tiles as in
 * CUTLASS (Kerr et al., 2017); splitting into bf16: Henry, Tang and Heinecke,
 * Leveraging the bfloat16 artificial intelligence datatype, 2019; warpgroups
 * and the tensor memory accelerator: Thakkar et al., CUTLASS 3, 2023.
 */
KILN_INLINE kiln_status kiln_gemm(kiln_stream *stream,
                                  const kiln_gemm_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_gemm() needs for the
 * same stream and desc. It is 0 unless the sum is split over blocks or A or B
 * is copied.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_gemm_workspace(kiln_stream *stream,
                                            const kiln_gemm_desc *desc,
                                            size_t *bytes);

/** What Kiln chose for a call. The size of this struct never changes. */
typedef struct kiln_gemm_choice {
  const char *path;    /**< name of the kernels, such as "simt"; static */
  kiln_gemm_tile tile; /**< the division into blocks */
  uint64_t blocks;     /**< number of blocks of the main launch */
  double efficiency;   /**< predicted share of the kernel's plateau, 0 to 1 */
} kiln_gemm_choice;

/** Returns what kiln_gemm() would choose for the same stream and desc. Compiles
 * and launches nothing.
 * @param[out] choice  receives the choice; all zero on failure, and for m = 0 or
 *                     n = 0.
 * @retval KILN_OK or KILN_EINVAL, as kiln_gemm().
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_gemm_explain(kiln_stream *stream,
                                          const kiln_gemm_desc *desc,
                                          kiln_gemm_choice *choice);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__GEMM_OPERATIONS(X) X(kiln_gemm, kiln_gemm_desc, code)
KILN__GEMM_OPERATIONS(KILN__OPERATION)
KILN__SIZED(kiln_gemm_explain,
            (kiln_stream * stream, const kiln_gemm_desc *desc,
             kiln_gemm_choice *choice),
            (size_t desc_size), (stream, desc, choice, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
