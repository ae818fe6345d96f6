/* reduce.h -- reductions of arrays, of the rows or columns of a matrix, of
 * segments, and of runs of equal keys.
 *
 * Order: Predefined operations and commutative user expressions combine the
 * elements in a fixed order. The order depends on the types, on n, on the
 * alignment of the arrays and on the device. The same call therefore always
 * returns the same bits. With `portable` the order depends only on the types
 * and n. A user expression that is not commutative combines the elements in
 * array order; only the grouping differs.
 *
 * Types: An operation computes in the type of its output (in float for f16 and
 * bf16). Elements are first converted to that type. A sum of bytes therefore
 * needs a wider output: u8 elements with a u64 output are added without
 * wrapping.
 *
 * The following applies to all functions. Outputs must not overlap inputs. Each
 * call needs one launch, and a fill when it first uses the temporary storage of
 * a stream. The statuses are listed in ops.h. All functions are thread-safe,
 * block only while a kernel compiles, and may be captured. They are fastest if
 * all arrays start at multiples of 16 bytes, or at the same distance from such
 * a multiple. */
#ifndef KILN_REDUCE_H
#define KILN_REDUCE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Reduction of a whole array ------------------------------------------ */

/** Description of a reduction of an array: out[0] = x(0) op x(1) op ... op
 * x(n - 1), where x(i) is element i of the input. */
typedef struct kiln_reduce_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of elements; for n = 0 the result is the operation's
                     identity */
  kiln_op op;   /**< operation that combines the elements; default: the sum */
  kiln_array out; /**< one element; the operation computes in its type. Default
                       type: the type of the input */
  bool portable;  /**< the result has the same bits on every device; slightly
                       slower */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
  /** Views of the arrays x.in[], or NULL if all of them are plain arrays.
   * Borrowed for the call. */
  const kiln_shape *shape;
} kiln_reduce_desc;

/**
 * Reduces an array, or a map over up to eight arrays, to one value.
 *
 * With `portable`, element i belongs to chunk i / C, where C is a power of two
 * of at least 16 Ki. C is chosen so that there are at most 2,048 chunks. Each
 * chunk is reduced by 256 threads. Thread t takes the vectors t, t + 256, ...
 * of the chunk; a vector holds 16 bytes of the widest array. A thread keeps up
 * to four partial results, one per position in the vector. Fixed reduction
 * trees combine the partial results of a thread, then the lanes, the warps and
 * finally the chunks.
 *
 * Each element is read once. The temporary storage takes 8 or 16 bytes per
 * block or chunk. Source: Harris, Optimizing Parallel Reduction in CUDA, 2007.
 * Unlike Harris, Kiln needs only one launch, because blocks publish their
 * results as tile descriptors.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_reduce(kiln_stream *stream,
                                    const kiln_reduce_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_reduce() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_reduce_workspace(kiln_stream *stream,
                                              const kiln_reduce_desc *desc,
                                              size_t *bytes);

/** Description of a search for the position and the value of the smallest or
 * the largest input element. */
typedef struct kiln_arg_reduce_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of elements; for n = 0 the value is the operation's
                     identity, and the index has all bits set */
  kiln_op_name op;  /**< operation, either KILN_MIN or KILN_MAX; required */
  kiln_array value; /**< receives the smallest or largest value, one element;
                         optional: no type means that the value is not wanted */
  /** Receives the position of the smallest or largest element, as one element
   * of type u32, i32, u64 or i64. Optional: no type means that the position is
   * not wanted. */
  kiln_array index;
  bool portable;  /**< has no effect, because the result of this operation never
                       depends on the device */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_arg_reduce_desc;

/**
 * Finds the position and the value of the minimum or maximum, like NumPy's
 * argmin and argmax. If several elements have this value, the result is the
 * first of them; -0 equals +0. If an element is NaN, the result is the first
 * NaN; the value is then a NaN, but not always one with the bits of the element.
 *
 * The temporary storage takes 32 bytes per block.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for an
 *         operation that is neither KILN_MIN nor KILN_MAX.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_arg_reduce(kiln_stream *stream,
                                        const kiln_arg_reduce_desc *desc,
                                        const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_arg_reduce() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_arg_reduce_workspace(
    kiln_stream *stream, const kiln_arg_reduce_desc *desc, size_t *bytes);

/** Description of a search for the smallest and the largest input value. */
typedef struct kiln_minmax_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n; /**< number of elements; for n = 0 the results are the identities
                     of the minimum and the maximum */
  kiln_array min, max; /**< receive the smallest and the largest value, one
                            element each. Default type: the type of the input */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_minmax_desc;

/**
 * Finds the minimum and the maximum in one pass. If an element is NaN, both
 * results are NaN, as for kiln_reduce(); -0 is below +0.
 *
 * The temporary storage takes 32 bytes per block.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_minmax(kiln_stream *stream,
                                    const kiln_minmax_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_minmax()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_minmax_workspace(kiln_stream *stream,
                                              const kiln_minmax_desc *desc,
                                              size_t *bytes);

/* ---- Vector reductions and statistics ------------------------------------ */

/** Description of a dot product: out[0] = sum of x[i] * y[i] for all i < n. */
typedef struct kiln_dot_desc {
  kiln_array x, y; /**< input vectors of n elements each */
  uint64_t n;      /**< number of elements per input vector */
  /** Receives the dot product, one element; products and sum are computed in
   * its type (float for f16 and bf16). Default type: the type of x. */
  kiln_array out;
  bool portable; /**< the result is bitwise identical on every device; see
                      kiln_reduce() */
} kiln_dot_desc;

/**
 * Computes the dot product of two vectors.
 *
 * Cost and temporary storage are the same as for kiln_reduce().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_dot(kiln_stream *stream, const kiln_dot_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_dot() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_dot_workspace(kiln_stream *stream,
                                           const kiln_dot_desc *desc,
                                           size_t *bytes);

/** Description of a Euclidean norm: out[0] = square root of the sum of x(i)^2
 * for all i < n. */
typedef struct kiln_norm_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of input elements */
  /** Receives the norm, one element of a floating-point type. The default type
   * is the type of the input if that is floating-point, f32 for C64, otherwise
   * f64. */
  kiln_array out;
  bool portable;  /**< the result has the same bits on every device; see
                       kiln_reduce() */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_norm_desc;

/**
 * Computes the Euclidean norm, in f64. The norm of an array of complex numbers is
 * the square root of the sum of abs(x(i))^2; a map must return real numbers.
 *
 * Intermediate results neither overflow nor underflow: f64 elements whose
 * squares are out of range are scaled and summed separately. Source: Blue, A
 * Portable Fortran Program to Find the Euclidean Norm of a Vector, 1978.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_norm(kiln_stream *stream,
                                  const kiln_norm_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_norm() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_norm_workspace(kiln_stream *stream,
                                            const kiln_norm_desc *desc,
                                            size_t *bytes);

/** Metric of the distance between two vectors x and y. */
typedef enum kiln_metric {
  KILN_L2 = 0, /**< Euclidean distance: square root of the sum of
                    (x[i] - y[i])^2 */
  KILN_L1,     /**< Manhattan distance: sum of |x[i] - y[i]| */
  KILN_LINF /**< maximum distance: largest |x[i] - y[i]|; NaN if any difference
                 is NaN */
} kiln_metric;

/** Description of a distance between two vectors x and y: out[0] = distance of
 * x and y. */
typedef struct kiln_distance_desc {
  kiln_array x, y;    /**< input vectors of n elements each */
  uint64_t n;         /**< number of elements per input vector */
  kiln_metric metric; /**< metric of the distance; default: KILN_L2, the
                           Euclidean distance */
  /** Receives the distance, one element of a floating-point type. The default
   * type is f32, or f64 if either array holds f64 or integers of more than 2
   * bytes. */
  kiln_array out;
  bool portable; /**< the result has the same bits on every device; see
                      kiln_reduce() */
} kiln_distance_desc;

/**
 * Computes the distance between two vectors in one pass over both.
 *
 * Differences are rounded to the default type of `out`. L2 is then computed in
 * the same way as kiln_norm(). L1 and LINF are computed in the type of `out`.
 * For n = 0 every distance is 0.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_distance(kiln_stream *stream,
                                      const kiln_distance_desc *desc,
                                      const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_distance() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_distance_workspace(kiln_stream *stream,
                                                const kiln_distance_desc *desc,
                                                size_t *bytes);

/** Description of the mean and variance of an array. The variance is the sum of
 * squared deviations, divided by n - correction. */
typedef struct kiln_mean_variance_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of input elements */
  /** Mean and variance: each receives one element of a floating-point
   * type; no type means that the result is not wanted. */
  kiln_array mean, variance;
  double correction; /**< correction of the divisor: 0 for the population
                          variance, 1 for the sample variance */
  bool portable;     /**< the result has the same bits on every device; see
                          kiln_reduce() */
  kiln_code code;    /**< parameters and functions that the user expressions can
                          use */
} kiln_mean_variance_desc;

/**
 * Computes mean and variance in one pass, in f64.
 *
 * Each thread sums the differences from its first element. The formula of Chan,
 * Golub and LeVeque (1979) combines the partial results. A mean that is much
 * larger than the deviation therefore causes no loss of precision. For n = 0,
 * mean and variance are NaN.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_mean_variance(kiln_stream *stream,
                                           const kiln_mean_variance_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_mean_variance() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_mean_variance_workspace(
    kiln_stream *stream, const kiln_mean_variance_desc *desc, size_t *bytes);

/* ---- Reduction of a matrix ----------------------------------------------- */

/** Description of a reduction of the rows or columns of a matrix whose element
 * (r, c) is x(r * leading + c), where r is the row and c the column. */
typedef struct kiln_reduce_matrix_desc {
  kiln_input x; /**< the matrix; all input arrays have the same layout. The
                     index i in a map is r * leading + c */
  uint64_t rows, columns; /**< numbers of rows and columns of the matrix */
  uint64_t leading;       /**< distance between the starts of two rows of the
                               matrix, in elements; 0 selects `columns` */
  kiln_op op;     /**< operation that combines the elements; default: the sum */
  kiln_array out; /**< receives one element per row or per column of the matrix.
                       Default type: the type of the input */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_reduce_matrix_desc;

/**
 * Reduces each row of a matrix: out[r] = op over c of x(r, c).
 *
 * A group of 1 to 32 lanes reduces a row, depending on the width of the row.
 * Whole blocks reduce rows of many KiB. A matrix with few wide rows needs
 * temporary storage of rows * 8 or rows * 16 bytes per block; other matrices
 * need none.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_reduce_rows(kiln_stream *stream,
                                         const kiln_reduce_matrix_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_reduce_rows() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_reduce_rows_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/**
 * Reduces each column of a matrix: out[c] = op over r of x(r, c).
 *
 * Consecutive lanes read consecutive columns, so that memory accesses coalesce.
 * The rows are divided into groups of consecutive rows, and the results of the
 * groups are combined in order. If there are several groups, the temporary
 * storage takes columns * 8 or columns * 16 bytes per group.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_reduce_columns(kiln_stream *stream,
                                            const kiln_reduce_matrix_desc *desc,
                                            const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_reduce_columns() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_reduce_columns_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/** Description of a search for the smallest or largest element of each row or
 * column of a matrix whose element (r, c) is x(r * leading + c). */
typedef struct kiln_arg_reduce_matrix_desc {
  kiln_input x;           /**< the matrix, as in kiln_reduce_matrix_desc */
  uint64_t rows, columns; /**< numbers of rows and columns of the matrix */
  uint64_t leading;       /**< distance between the starts of two rows of the
                               matrix, in elements; 0 selects `columns` */
  kiln_op_name op;  /**< operation, either KILN_MIN or KILN_MAX; required */
  kiln_array value; /**< receives the smallest or largest value of each row or
                         column; optional: no type means that the values are not
                         wanted */
  /** Receives the position of each value: the column in a row, or the row in a
   * column. The type is u32, i32, u64 or i64. Optional: no type means that the
   * positions are not wanted. */
  kiln_array index;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_arg_reduce_matrix_desc;

/**
 * Finds position and value of the minimum or maximum of each row. Equal values
 * and NaNs are handled as by kiln_arg_reduce(). In a row without elements the
 * value is the operation's identity, and the index has all bits set.
 *
 * The work is divided as by kiln_reduce_rows(). A matrix with few wide rows
 * needs temporary storage of rows * 32 bytes per block; other matrices need
 * none.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_arg_reduce_rows(
    kiln_stream *stream, const kiln_arg_reduce_matrix_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_arg_reduce_rows()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_arg_reduce_rows_workspace(
    kiln_stream *stream, const kiln_arg_reduce_matrix_desc *desc,
    size_t *bytes);

/**
 * Finds position and value of the minimum or maximum of each column, as
 * kiln_arg_reduce_rows() does for rows.
 *
 * The work is divided as by kiln_reduce_columns(). If there are several groups
 * of rows, the temporary storage takes columns * 32 bytes per group.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_arg_reduce_columns(
    kiln_stream *stream, const kiln_arg_reduce_matrix_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_arg_reduce_columns()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_arg_reduce_columns_workspace(
    kiln_stream *stream, const kiln_arg_reduce_matrix_desc *desc,
    size_t *bytes);

/** Description of the means and variances of the rows or columns of a matrix
 * whose element (r, c) is x(r * leading + c). */
typedef struct kiln_mean_variance_matrix_desc {
  kiln_input x;           /**< the matrix, as in kiln_reduce_matrix_desc */
  uint64_t rows, columns; /**< numbers of rows and columns of the matrix */
  uint64_t leading;       /**< distance between the starts of two rows of the
                               matrix, in elements; 0 selects `columns` */
  /** Means and variances: each receives one element per row or column, of a
   * floating-point type; no type means that the result is not wanted. */
  kiln_array mean, variance;
  double correction; /**< correction of the divisor, the number of elements of a
                          row or column: 0 for the population variance, 1 for
                          the sample variance */
  kiln_code code;    /**< parameters and functions that the user expressions can
                          use */
} kiln_mean_variance_matrix_desc;

/**
 * Computes mean and variance of each row in one pass, in f64, as
 * kiln_mean_variance() does for an array. Without elements both are NaN.
 *
 * The work is divided as by kiln_reduce_rows(). A matrix with few wide rows
 * needs temporary storage of rows * 48 bytes per block; other matrices need
 * none.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_mean_variance_rows(
    kiln_stream *stream, const kiln_mean_variance_matrix_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_mean_variance_rows()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_mean_variance_rows_workspace(
    kiln_stream *stream, const kiln_mean_variance_matrix_desc *desc,
    size_t *bytes);

/**
 * Computes mean and variance of each column in one pass, in f64.
 *
 * Values are combined one by one by the formula of Chan, Golub and LeVeque
 * (1979), relative to the first element of the column. The work is divided as
 * by kiln_reduce_columns(). If there are several groups of rows, the temporary
 * storage takes columns * 48 bytes per group.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_mean_variance_columns(
    kiln_stream *stream, const kiln_mean_variance_matrix_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_mean_variance_columns()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_mean_variance_columns_workspace(
    kiln_stream *stream, const kiln_mean_variance_matrix_desc *desc,
    size_t *bytes);

/* ---- Reduction of segments ----------------------------------------------- */

/** Description of a reduction of segments: out[s] = op over the elements of
 * segment s, for every segment s of an array. */
typedef struct kiln_segmented_reduce_desc {
  kiln_input x; /**< input: n elements, or n rows of `width` elements */
  uint64_t n;   /**< number of elements or rows of x. If `index` is given, n is
                     used only by `checked` */
  uint64_t n_segments; /**< number of segments */
  /** Boundaries of the segments: n_segments + 1 ascending elements of type u32,
   * i32, u64 or i64. Segment s consists of the elements offsets[s] to
   * offsets[s + 1] - 1. No type means that all segments have equal
   * lengths. */
  kiln_array offsets;
  /** Number of elements per segment if `offsets` is not given. Segment s then
   * starts at element s * length. */
  uint64_t length;
  /** Optional, only with `offsets`: n_index indices of type u32, i32, u64 or
   * i64 of elements (or rows) of x. The offsets are then positions in this
   * array of indices. No type means that there are no indices. */
  kiln_array index;
  uint64_t n_index;
  /** Number of elements per row; 0 means 1. Each column of the rows is reduced
   * separately, and out has n_segments rows of `width` elements. */
  uint64_t width;
  uint64_t leading; /**< distance between the starts of two rows of x in
                         elements; 0 selects `width` */
  kiln_op op;       /**< operation that combines the elements of a segment, in
                         element order; default: the sum */
  kiln_array out;   /**< output array of n_segments * width elements. Default
                         type: the type of the input */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
  /** Check the offsets and the indices first. The call returns KILN_EINVAL and
   * writes nothing if an offset descends, if an offset exceeds n (with `index`:
   * n_index), or if an index is n or more. The error record names the first
   * invalid entry. The call waits for the GPU. */
  bool checked;
} kiln_segmented_reduce_desc;

/**
 * Reduces each segment. Segments may have any mix of lengths, because every
 * thread processes an equal number of elements plus segments. The result of an
 * empty segment is the identity of the operation. Elements outside all segments
 * are not read. With `width`, a segment consists of rows, and each column is
 * reduced separately. With `width` and `index` the segments are embedding bags.
 *
 * Without checked mode, offsets that descend or exceed n (n_index) cause wrong
 * results and reads out of bounds.
 *
 * The temporary storage takes 8 or 16 bytes per block, times width; in checked
 * mode at least 256 bytes. The operation needs one launch. In checked mode it
 * needs one more launch and a fill for the offsets, and the same for the index.
 * Source: Merrill and Garland, Merge-based Parallel Sparse Matrix-Vector
 * Multiplication, 2016.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for bad
 *         offsets or indices in checked mode; KILN_ECAPTURE for checked mode
 *         while the stream is being captured.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the indices.
 */
KILN_INLINE kiln_status kiln_segmented_reduce(
    kiln_stream *stream, const kiln_segmented_reduce_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_segmented_reduce()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_segmented_reduce_workspace(
    kiln_stream *stream, const kiln_segmented_reduce_desc *desc, size_t *bytes);

/** Description of a search for the smallest or largest element of each segment
 * of an array. */
typedef struct kiln_segmented_arg_reduce_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of elements of x */
  uint64_t n_segments; /**< number of segments */
  /** Boundaries of the segments, as in kiln_segmented_reduce_desc. No type
   * means that all segments have equal lengths. */
  kiln_array offsets;
  /** Number of elements per segment if `offsets` is not given. */
  uint64_t length;
  kiln_op_name op;  /**< operation, either KILN_MIN or KILN_MAX; required */
  kiln_array value; /**< receives the smallest or largest value of each segment;
                         optional: no type means that the values are not
                         wanted */
  /** Receives the position of each value, relative to the start of its segment,
   * as u32, i32, u64 or i64. Optional: no type means that the positions are not
   * wanted. */
  kiln_array index;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
  bool checked;   /**< check the offsets first, as in
                       kiln_segmented_reduce_desc */
} kiln_segmented_arg_reduce_desc;

/**
 * Finds position and value of the minimum or maximum of each segment (like
 * CUB's DeviceSegmentedReduce::ArgMin). Equal values and NaNs are handled as by
 * kiln_arg_reduce(). The value of an empty segment is the operation's identity,
 * and its index has all bits set.
 *
 * The work is divided as by kiln_segmented_reduce(). The temporary storage
 * takes 32 bytes per block; in checked mode at least 256 bytes.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for bad
 *         offsets in checked mode; KILN_ECAPTURE for checked mode while the
 *         stream is being captured.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the offsets.
 */
KILN_INLINE kiln_status kiln_segmented_arg_reduce(
    kiln_stream *stream, const kiln_segmented_arg_reduce_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_segmented_arg_reduce()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_segmented_arg_reduce_workspace(
    kiln_stream *stream, const kiln_segmented_arg_reduce_desc *desc,
    size_t *bytes);

/** Description of the means and variances of the segments of an array. */
typedef struct kiln_segmented_mean_variance_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of elements of x */
  uint64_t n_segments; /**< number of segments */
  /** Boundaries of the segments, as in kiln_segmented_reduce_desc. No type
   * means that all segments have equal lengths. */
  kiln_array offsets;
  /** Number of elements per segment if `offsets` is not given. */
  uint64_t length;
  /** Means and variances: each receives one element per segment, of a
   * floating-point type; no type means that the result is not wanted. */
  kiln_array mean, variance;
  double correction; /**< correction of the divisor, the number of elements of a
                          segment: 0 for the population variance, 1 for the
                          sample variance */
  kiln_code code;    /**< parameters and functions that the user expressions can
                       use */
  bool checked;      /**< check the offsets first, as in
                       kiln_segmented_reduce_desc */
} kiln_segmented_mean_variance_desc;

/**
 * Computes mean and variance of each segment in one pass, in f64. Both are NaN
 * for an empty segment.
 *
 * Values are combined one by one by the formula of Chan, Golub and LeVeque
 * (1979). The work is divided as by kiln_segmented_reduce(). The temporary
 * storage takes 48 bytes per block; in checked mode at least 256 bytes.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for bad
 *         offsets in checked mode; KILN_ECAPTURE for checked mode while the
 *         stream is being captured.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the offsets.
 */
KILN_INLINE kiln_status kiln_segmented_mean_variance(
    kiln_stream *stream, const kiln_segmented_mean_variance_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that
 * kiln_segmented_mean_variance() needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_segmented_mean_variance_workspace(
    kiln_stream *stream, const kiln_segmented_mean_variance_desc *desc,
    size_t *bytes);

/* ---- Reduction by key ---------------------------------------------------- */

/** Description of a reduction of each run of equal consecutive keys: out[r] =
 * op over the elements of run r. An element belongs to the run of its key. */
typedef struct kiln_reduce_by_key_desc {
  kiln_array keys; /**< input: n keys of any type; the key of element i is
                        keys[i] */
  /** User expression over two adjacent keys a and b that is true if they belong
   * to the same run; NULL means "a == b". With "a == b", every NaN is a run by
   * itself, and -0 equals +0. */
  const char *same;
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of keys and elements; n = 0 only sets the count */
  kiln_op op;   /**< operation that combines the elements of a run, in element
                     order; default: the sum */
  /** Optional; receives the first key of each run, with the type of the keys;
   * needs space for the largest possible number of runs, n. */
  kiln_array out_keys;
  /** Receives one element per run; the operation computes in its type. Needs
   * space for n elements. Default type: the type of the input. */
  kiln_array out;
  kiln_array count; /**< receives the number of runs as one u32 or u64 */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
} kiln_reduce_by_key_desc;

/**
 * Reduces each run of equal consecutive keys to one value (like CUB's
 * DeviceReduce::ReduceByKey). Elements of out and out_keys from the number of
 * runs on are not written.
 *
 * The elements of a run are combined in their order, and the grouping is fixed.
 * The same call therefore always returns the same bits. The result does not
 * depend on the lengths of other runs, except for the grouping of operations
 * that round.
 *
 * Keys and elements are read once. The temporary storage takes 16 to 48 bytes
 * per tile of some thousand elements. Source: Merrill and Garland, Single-pass
 * Parallel Prefix Scan with Decoupled Look-back, 2016.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_reduce_by_key(kiln_stream *stream,
                                           const kiln_reduce_by_key_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_reduce_by_key() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_reduce_by_key_workspace(
    kiln_stream *stream, const kiln_reduce_by_key_desc *desc, size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__REDUCE_OPERATIONS(X)                                             \
  X(kiln_reduce, kiln_reduce_desc, code)                                       \
  X(kiln_arg_reduce, kiln_arg_reduce_desc, code)                               \
  X(kiln_dot, kiln_dot_desc, portable)                                         \
  X(kiln_norm, kiln_norm_desc, code)                                           \
  X(kiln_distance, kiln_distance_desc, portable)                               \
  X(kiln_mean_variance, kiln_mean_variance_desc, code)                         \
  X(kiln_reduce_rows, kiln_reduce_matrix_desc, code)                           \
  X(kiln_reduce_columns, kiln_reduce_matrix_desc, code)                        \
  X(kiln_segmented_reduce, kiln_segmented_reduce_desc, checked)                \
  X(kiln_reduce_by_key, kiln_reduce_by_key_desc, code)                         \
  X(kiln_minmax, kiln_minmax_desc, code)                                       \
  X(kiln_arg_reduce_rows, kiln_arg_reduce_matrix_desc, code)                   \
  X(kiln_arg_reduce_columns, kiln_arg_reduce_matrix_desc, code)                \
  X(kiln_mean_variance_rows, kiln_mean_variance_matrix_desc, code)             \
  X(kiln_mean_variance_columns, kiln_mean_variance_matrix_desc, code)          \
  X(kiln_segmented_arg_reduce, kiln_segmented_arg_reduce_desc, checked)        \
  X(kiln_segmented_mean_variance, kiln_segmented_mean_variance_desc, checked)
KILN__REDUCE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
