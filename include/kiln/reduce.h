/* reduce.h -- many elements into one: of an array, of the rows or columns of a
 * matrix, of segments (lecture rows A9, B10, C2, C3, C6, C8, D4).
 *
 * Order. Operations by name, and the user's own that commute, combine elements
 * in a fixed order that depends on the types, n, the alignment of the arrays and
 * the device: the same call gives the same bits. With `portable` it depends on
 * the types and n alone. Operations of the user that do not commute see the
 * elements in their order, only grouped differently.
 *
 * Types. An operation computes in the type of its output (f16 and bf16 in float);
 * elements are converted to it first. So the mean of bytes wants a wider output:
 * u8 elements and a u64 output add up without wrapping.
 *
 * Nothing may overlap its output. All functions: one launch, plus what the first
 * use of a stream's temporary memory takes; statuses of ops.h; any thread; blocks
 * only to compile; may be captured. Fastest with arrays on 16 bytes, or all of
 * them equally far from it. */
#ifndef KILN_REDUCE_H
#define KILN_REDUCE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A whole array --------------------------------------------------------------- */

/** out[0] = op over i < n of x(i). */
typedef struct kiln_reduce_desc {
  kiln_input x;
  uint64_t n;     /**< elements; 0: the operation's identity */
  kiln_op op;     /**< default: the sum */
  kiln_array out; /**< 1 element; its type is the one that the operation
                     computes in. Default type: the input's */
  bool portable;  /**< the same bits on every device, a little slower */
  kiln_code code;
} kiln_reduce_desc;

/**
 * Fold an array, or what a map makes of up to eight, into one value. Reads each
 * element once.
 *
 * With `portable`: element i belongs to chunk i / C, C being a power of two,
 * 16 Ki at least, so that there are at most 2,048 chunks. In a chunk, thread t of
 * 256 takes the packs t, t + 256, ... (16 bytes of the widest array each) into up
 * to four chains, by position in the pack; chains, lanes, warps and then the
 * chunks are combined by fixed trees.
 *
 * Memory: 8 or 16 bytes a block or chunk. Source: Harris, Optimizing Parallel
 * Reduction in CUDA, 2007; here in one launch, blocks hand over their results in
 * marked words.
 */
KILN_INLINE kiln_status kiln_reduce(kiln_stream *stream,
                                    const kiln_reduce_desc *desc,
                                    const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_reduce_workspace(kiln_stream *stream,
                                              const kiln_reduce_desc *desc,
                                              size_t *bytes);

/** Where the least or the greatest x(i) is. */
typedef struct kiln_arg_reduce_desc {
  kiln_input x;
  uint64_t n;       /**< elements; 0: the operation's identity, and an index of
                       all ones */
  kiln_op_name op;  /**< KILN_MIN or KILN_MAX; must be given */
  kiln_array value; /**< 1 element, or no type: not wanted */
  kiln_array index; /**< 1 element of u32, i32, u64 or i64, or no type */
  bool portable;    /**< accepted; the result never depends on the device */
  kiln_code code;
} kiln_arg_reduce_desc;

/** As NumPy's argmin and argmax: the first of equal values (-0 equals +0); if
 * there is a NaN, the first NaN. Memory: 32 bytes a block. */
KILN_INLINE kiln_status kiln_arg_reduce(kiln_stream *stream,
                                        const kiln_arg_reduce_desc *desc,
                                        const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_arg_reduce_workspace(
    kiln_stream *stream, const kiln_arg_reduce_desc *desc, size_t *bytes);

/* ---- Vectors and statistics ---------------------------------------------------------- */

/** out[0] = sum of x[i] * y[i]. */
typedef struct kiln_dot_desc {
  kiln_array x, y; /**< n elements each */
  uint64_t n;
  kiln_array out; /**< 1 element; products and sum are of its type (f16, bf16:
                     float). Default type: x's */
  bool portable;  /**< see kiln_reduce() */
} kiln_dot_desc;

KILN_INLINE kiln_status kiln_dot(kiln_stream *stream, const kiln_dot_desc *desc,
                                 const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_dot_workspace(kiln_stream *stream,
                                           const kiln_dot_desc *desc,
                                           size_t *bytes);

/** out[0] = square root of the sum of x(i)^2. */
typedef struct kiln_norm_desc {
  kiln_input x;
  uint64_t n;
  kiln_array out; /**< 1 element of a floating type. Default type: the input's
                     if that is one, else f64 */
  bool portable;  /**< see kiln_reduce() */
  kiln_code code;
} kiln_norm_desc;

/** Computed in f64 and free of overflow and underflow on the way: elements of f64
 * beyond the range of squares are summed apart, scaled (Blue, 1978). */
KILN_INLINE kiln_status kiln_norm(kiln_stream *stream,
                                  const kiln_norm_desc *desc,
                                  const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_norm_workspace(kiln_stream *stream,
                                            const kiln_norm_desc *desc,
                                            size_t *bytes);

/** What a distance is. */
typedef enum kiln_metric {
  KILN_L2 = 0, /**< square root of the sum of (x - y)^2 */
  KILN_L1,     /**< sum of |x - y| */
  KILN_LINF    /**< greatest |x - y|; NaN if one is */
} kiln_metric;

typedef struct kiln_distance_desc {
  kiln_array x, y; /**< n elements each */
  uint64_t n;
  kiln_metric metric;
  kiln_array out; /**< 1 element of a floating type. Default type: f32, f64 if
                     either array is f64 or of integers wider than 2 bytes */
  bool portable;  /**< see kiln_reduce() */
} kiln_distance_desc;

/** One pass over both arrays (lecture row C3). Differences are rounded to the
 * default type above; L2 then is computed as kiln_norm(), L1 in out's type. */
KILN_INLINE kiln_status kiln_distance(kiln_stream *stream,
                                      const kiln_distance_desc *desc,
                                      const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_distance_workspace(kiln_stream *stream,
                                                const kiln_distance_desc *desc,
                                                size_t *bytes);

/** Mean, and sum of squared deviations from it divided by n - correction. */
typedef struct kiln_mean_variance_desc {
  kiln_input x;
  uint64_t n;
  kiln_array mean, variance; /**< 1 element of a floating type each; no type:
                                not wanted */
  double correction;         /**< 0: of a population; 1: of a sample */
  bool portable;             /**< see kiln_reduce() */
  kiln_code code;
} kiln_mean_variance_desc;

/** One pass, in f64. Each thread sums differences from its first element, and
 * partial results are combined by the formula of Chan, Golub and LeVeque, so a
 * mean far above the deviation costs no digits. n = 0: NaN. */
KILN_INLINE kiln_status kiln_mean_variance(kiln_stream *stream,
                                           const kiln_mean_variance_desc *desc,
                                           const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_mean_variance_workspace(
    kiln_stream *stream, const kiln_mean_variance_desc *desc, size_t *bytes);

/* ---- A matrix ----------------------------------------------------------------------------- */

/** A matrix: element (r, c) is x(r * leading + c). */
typedef struct kiln_reduce_matrix_desc {
  kiln_input x; /**< all arrays alike; a map's index is r * leading + c */
  uint64_t rows, columns;
  uint64_t leading; /**< elements from a row to the next; 0: columns */
  kiln_op op;       /**< default: the sum */
  kiln_array out;   /**< an element for each row, or column. Default type: the
                        input's */
  kiln_code code;
} kiln_reduce_matrix_desc;

/** out[r] = op over c of x(r, c). A group of 1 to 32 lanes a row by its width, or
 * blocks for rows of many KiB. Memory: rows * 8 or 16 bytes a block for few wide
 * rows, else none. */
KILN_INLINE kiln_status kiln_reduce_rows(kiln_stream *stream,
                                         const kiln_reduce_matrix_desc *desc,
                                         const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_reduce_rows_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/** out[c] = op over r of x(r, c) (lecture row C2). Neighbouring lanes read
 * neighbouring columns; blocks of rows are combined in order. Memory: columns * 8
 * or 16 bytes for each block of rows, if there are several. */
KILN_INLINE kiln_status kiln_reduce_columns(kiln_stream *stream,
                                            const kiln_reduce_matrix_desc *desc,
                                            const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_reduce_columns_workspace(
    kiln_stream *stream, const kiln_reduce_matrix_desc *desc, size_t *bytes);

/* ---- Segments -------------------------------------------------------------------------------- */

/** out[s] = op over the elements of segment s. */
typedef struct kiln_segmented_reduce_desc {
  kiln_input x; /**< n elements, or n rows of `width` */
  uint64_t n;   /**< with `index`: how many x has, and bounds nothing */
  uint64_t n_segments;
  kiln_array offsets; /**< n_segments + 1 of u32, i32, u64 or i64, ascending:
                           segment s holds the elements offsets[s] up to
                           offsets[s + 1]. No type: see length */
  uint64_t length;    /**< without offsets: elements of every segment, and
                           element s * length is the first of segment s */
  kiln_array index;   /**< with offsets: n_index of u32, i32, u64 or i64:
                           offsets are places in it, and it says which elements
                           (rows) of x to take. No type: none */
  uint64_t n_index;
  uint64_t width;   /**< elements of a row, folded each by itself: out has
                           n_segments rows of it. 0: 1 */
  uint64_t leading; /**< elements from a row of x to the next; 0: width */
  kiln_op op;       /**< default: the sum. Keeps the order of elements */
  kiln_array out;   /**< n_segments * width elements. Default type: the
                           input's */
  kiln_code code;
  bool checked; /**< offsets that fall or lie beyond n (n_index), and an index
                     beyond n, are an error: KILN_EINVAL, nothing is written, and
                     the record says which; waits for the GPU */
} kiln_segmented_reduce_desc;

/**
 * Fold each segment. Segments may be of any mix of lengths: equal shares of
 * elements and segments go to the threads (Merrill and Garland, Merge-based
 * Parallel Sparse Matrix-Vector Multiplication, 2016). An empty segment gives the
 * operation's identity. Elements in no segment are not read. Bags of rows
 * (lecture row C6): width; embedding bags: index.
 *
 * Unchecked, offsets that descend or lie beyond n (n_index) give wrong results and
 * reads out of bounds. Memory: 8 or 16 bytes a block, times width; .checked 256 at
 * least. Launches: one; .checked one more and a fill for the offsets, and for the
 * index. @retval see ops.h; KILN_ECAPTURE for checked mode in a capture.
 */
KILN_INLINE kiln_status kiln_segmented_reduce(
    kiln_stream *stream, const kiln_segmented_reduce_desc *desc,
    const kiln_workspace *workspace);
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
