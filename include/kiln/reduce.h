/* reduce.h -- many elements into one: of an array, of the rows or columns of a
 * matrix, of segments.
 *
 * Order. Operations by name, and the caller's own that commute, combine elements
 * in a fixed order. The order depends on the types, n, the alignment of the arrays
 * and the device: the same call gives the same bits. With `portable` it depends on
 * the types and n only. An operation of the caller that does not commute combines
 * the elements in their order; only the grouping differs.
 *
 * Types. An operation computes in the type of its output (f16 and bf16 in float);
 * elements are converted to it first. So a sum of bytes wants a wider output: u8
 * elements with a u64 output add up without wrapping.
 *
 * All functions: outputs must not overlap inputs; one launch, and on the first use
 * of a stream's temporary storage a fill; statuses of ops.h; any thread; block only
 * to compile; may be captured. They are fastest if all arrays start at multiples
 * of 16 bytes, or equally far from one. */
#ifndef KILN_REDUCE_H
#define KILN_REDUCE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A whole array --------------------------------------------------------------- */

/** out[0] = op over i < n of x(i). */
typedef struct kiln_reduce_desc {
  kiln_input x;   /**< n elements */
  uint64_t n;     /**< elements; 0: the operation's identity */
  kiln_op op;     /**< default: the sum */
  kiln_array out; /**< 1 element; its type is the one that the operation
                     computes in. Default type: the input's */
  bool portable;  /**< the same bits on every device, a little slower */
  kiln_code code; /**< what the texts may use */
} kiln_reduce_desc;

/**
 * Reduces an array, or a map over up to eight arrays, to one value.
 *
 * With `portable`, element i belongs to chunk i / C, where C is a power of two of
 * at least 16 Ki, chosen so that there are at most 2,048 chunks. Within a chunk,
 * thread t of 256 takes the vectors t, t + 256, ... (16 bytes of the widest array
 * each) into up to four chains, by position in the vector. Fixed trees combine
 * chains, lanes, warps and then the chunks.
 *
 * Cost: each element is read once. Temporary storage: 8 or 16 bytes per block or
 * chunk. Source: Harris, Optimizing Parallel Reduction in CUDA, 2007; here in one
 * launch, in which blocks publish their results as tile descriptors.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_reduce(kiln_stream *stream,
                                    const kiln_reduce_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_reduce() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_reduce_workspace(kiln_stream *stream,
                                              const kiln_reduce_desc *desc,
                                              size_t *bytes);

/** The position and the value of the least or the greatest x(i). */
typedef struct kiln_arg_reduce_desc {
  kiln_input x;     /**< n elements */
  uint64_t n;       /**< elements; 0: the operation's identity, and an index of
                       all ones */
  kiln_op_name op;  /**< KILN_MIN or KILN_MAX; must be given */
  kiln_array value; /**< 1 element, or no type: not wanted */
  kiln_array index; /**< 1 element of u32, i32, u64 or i64, or no type */
  bool portable;    /**< no effect: the result never depends on the device */
  kiln_code code;   /**< what the texts may use */
} kiln_arg_reduce_desc;

/**
 * Finds the position and the value of the minimum or maximum, as NumPy's argmin
 * and argmax do: the first of equal values (-0 equals +0), and the first NaN if
 * there is one.
 *
 * Temporary storage: 32 bytes per block.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for an operation that is neither KILN_MIN nor
 *         KILN_MAX.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_arg_reduce(kiln_stream *stream,
                                        const kiln_arg_reduce_desc *desc,
                                        const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_arg_reduce() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_arg_reduce_workspace(
    kiln_stream *stream, const kiln_arg_reduce_desc *desc, size_t *bytes);

/* ---- Vectors and statistics ---------------------------------------------------------- */

/** out[0] = sum of x[i] * y[i]. */
typedef struct kiln_dot_desc {
  kiln_array x, y; /**< n elements each */
  uint64_t n;      /**< elements */
  kiln_array out;  /**< 1 element; products and sum are of its type (f16, bf16:
                     float). Default type: x's */
  bool portable;   /**< see kiln_reduce() */
} kiln_dot_desc;

/**
 * Computes the dot product of two vectors.
 *
 * Cost and temporary storage as kiln_reduce().
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_dot(kiln_stream *stream, const kiln_dot_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_dot() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_dot_workspace(kiln_stream *stream,
                                           const kiln_dot_desc *desc,
                                           size_t *bytes);

/** out[0] = square root of the sum of x(i)^2. */
typedef struct kiln_norm_desc {
  kiln_input x;   /**< n elements */
  uint64_t n;     /**< elements */
  kiln_array out; /**< 1 element of a floating type. Default type: the input's
                     if that is one, else f64 */
  bool portable;  /**< see kiln_reduce() */
  kiln_code code; /**< what the texts may use */
} kiln_norm_desc;

/**
 * Computes the Euclidean norm, in f64.
 *
 * Intermediate results neither overflow nor underflow: f64 elements beyond the
 * range of squares are summed separately, scaled. Source: Blue, A Portable Fortran
 * Program to Find the Euclidean Norm of a Vector, 1978.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_norm(kiln_stream *stream,
                                  const kiln_norm_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_norm() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_norm_workspace(kiln_stream *stream,
                                            const kiln_norm_desc *desc,
                                            size_t *bytes);

/** How a distance is computed. */
typedef enum kiln_metric {
  KILN_L2 = 0, /**< square root of the sum of (x - y)^2 */
  KILN_L1,     /**< sum of |x - y| */
  KILN_LINF    /**< greatest |x - y|; NaN if one is NaN */
} kiln_metric;

/** out[0] = distance of x and y. */
typedef struct kiln_distance_desc {
  kiln_array x, y;    /**< n elements each */
  uint64_t n;         /**< elements */
  kiln_metric metric; /**< default: L2 */
  kiln_array out; /**< 1 element of a floating type. Default type: f32, f64 if
                     either array is f64 or of integers wider than 2 bytes */
  bool portable;  /**< see kiln_reduce() */
} kiln_distance_desc;

/**
 * Computes the distance of two vectors in one pass over both.
 *
 * Differences are rounded to the default type of `out`. L2 is then computed as
 * kiln_norm() does, L1 and LINF in out's type. For n = 0 every distance is 0.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_distance(kiln_stream *stream,
                                      const kiln_distance_desc *desc,
                                      const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_distance() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_distance_workspace(kiln_stream *stream,
                                                const kiln_distance_desc *desc,
                                                size_t *bytes);

/** Mean and variance: the sum of squared deviations divided by n - correction. */
typedef struct kiln_mean_variance_desc {
  kiln_input x;              /**< n elements */
  uint64_t n;                /**< elements */
  kiln_array mean, variance; /**< 1 element of a floating type each; no type:
                                not wanted */
  double correction;         /**< 0: population variance; 1: sample variance */
  bool portable;             /**< see kiln_reduce() */
  kiln_code code;            /**< what the texts may use */
} kiln_mean_variance_desc;

/**
 * Computes mean and variance in one pass, in f64.
 *
 * Each thread sums differences from its first element, and the formula of Chan,
 * Golub and LeVeque (1979) combines partial results. So a mean far above the
 * deviation costs no digits. For n = 0 both are NaN.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_mean_variance(kiln_stream *stream,
                                           const kiln_mean_variance_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_mean_variance() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_mean_variance_workspace(
    kiln_stream *stream, const kiln_mean_variance_desc *desc, size_t *bytes);

/* ---- A matrix ----------------------------------------------------------------------------- */

/** A matrix: element (r, c) is x(r * leading + c). */
typedef struct kiln_reduce_matrix_desc {
  kiln_input x; /**< all arrays alike; a map's index is r * leading + c */
  uint64_t rows, columns; /**< size of the matrix */
  uint64_t leading;       /**< elements from a row to the next; 0: `columns` */
  kiln_op op;             /**< default: the sum */
  kiln_array out; /**< one element per row or per column. Default type: the
                        input's */
  kiln_code code; /**< what the texts may use */
} kiln_reduce_matrix_desc;

/**
 * Reduces each row of a matrix: out[r] = op over c of x(r, c).
 *
 * A group of 1 to 32 lanes reduces a row, depending on its width; blocks reduce
 * rows of many KiB. Temporary storage: rows * 8 or 16 bytes per block for few wide
 * rows, otherwise none.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_reduce_rows(kiln_stream *stream,
                                         const kiln_reduce_matrix_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_reduce_rows() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_reduce_rows_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/**
 * Reduces each column of a matrix: out[c] = op over r of x(r, c).
 *
 * Neighbouring lanes read neighbouring columns, so that accesses coalesce. Blocks
 * of rows are combined in order. Temporary storage: columns * 8 or 16 bytes per
 * block of rows, if there are several.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_reduce_columns(kiln_stream *stream,
                                            const kiln_reduce_matrix_desc *desc,
                                            const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_reduce_columns() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_reduce_columns_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/* ---- Segments -------------------------------------------------------------------------------- */

/** out[s] = op over the elements of segment s. */
typedef struct kiln_segmented_reduce_desc {
  kiln_input x;        /**< n elements, or n rows of `width` */
  uint64_t n;          /**< elements or rows of x; with `index` used by .checked
                     only */
  uint64_t n_segments; /**< segments */
  kiln_array offsets;  /**< n_segments + 1 of u32, i32, u64 or i64, ascending:
                           segment s holds the elements offsets[s] up to
                           offsets[s + 1]. No type: see length */
  uint64_t length;     /**< without offsets: elements of every segment, and
                           element s * length is the first of segment s */
  kiln_array index;    /**< with offsets: n_index of u32, i32, u64 or i64:
                           offsets are positions in it, and it gives the
                           elements (rows) of x to take. No type: none */
  uint64_t n_index;
  uint64_t width;   /**< elements per row, each reduced on its own: out has
                           n_segments rows of `width` elements. 0: 1 */
  uint64_t leading; /**< elements from a row of x to the next; 0: `width` */
  kiln_op op;       /**< default: the sum. Keeps the order of elements */
  kiln_array out;   /**< n_segments * width elements. Default type: the
                           input's */
  kiln_code code;   /**< what the texts may use */
  bool checked;     /**< refuse offsets that descend or exceed n (n_index) and
                     indices of n or more with KILN_EINVAL; nothing is written
                     then, and the record names the first one. Waits for the
                     GPU */
} kiln_segmented_reduce_desc;

/**
 * Reduces each segment. Segments may have any mix of lengths: every thread gets an
 * equal share of elements plus segments. An empty segment gives the operation's
 * identity. Elements that are in no segment are not read. `width` reduces bags of
 * rows column by column; with `index` these are embedding bags.
 *
 * Unchecked, offsets that descend or exceed n (n_index) give wrong results and
 * reads out of bounds.
 *
 * Temporary storage: 8 or 16 bytes per block, times width; at least 256 with
 * .checked. Launches: one; .checked adds one and a fill for the offsets, and the
 * same for the index. Source: Merrill and Garland, Merge-based Parallel Sparse
 * Matrix-Vector Multiplication, 2016.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for bad offsets or indices in checked mode;
 *         KILN_ECAPTURE for checked mode in a capture.
 * Threads: any. Blocks: to compile; in checked mode for the GPU.
 */
KILN_INLINE kiln_status kiln_segmented_reduce(
    kiln_stream *stream, const kiln_segmented_reduce_desc *desc,
    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_segmented_reduce() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_segmented_reduce_workspace(
    kiln_stream *stream, const kiln_segmented_reduce_desc *desc, size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__REDUCE_OPERATIONS(X)                                             \
  X(kiln_reduce, kiln_reduce_desc, code)                                       \
  X(kiln_arg_reduce, kiln_arg_reduce_desc, code)                               \
  X(kiln_dot, kiln_dot_desc, portable)                                         \
  X(kiln_norm, kiln_norm_desc, code)                                           \
  X(kiln_distance, kiln_distance_desc, portable)                               \
  X(kiln_mean_variance, kiln_mean_variance_desc, code)                         \
  X(kiln_reduce_rows, kiln_reduce_matrix_desc, code)                           \
  X(kiln_reduce_columns, kiln_reduce_matrix_desc, code)                        \
  X(kiln_segmented_reduce, kiln_segmented_reduce_desc, checked)
KILN__REDUCE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
