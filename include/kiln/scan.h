/* scan.h -- prefix sums and other scans of arrays and of segments, and
 * differences of adjacent elements.
 *
 * All scans read each element once and write each result once, in one launch.
 * Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled
 * Look-back, NVIDIA 2016. */
#ifndef KILN_SCAN_H
#define KILN_SCAN_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a scan of an array: out[i] = x[0] op x[1] op ... op x[i]. An
 * exclusive scan ends at x[i - 1] instead of x[i]. */
typedef struct kiln_scan_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of input elements */
  /** Operation of the scan; it computes in the type of `out`. f16 and bf16 are
   * computed in float and rounded only when stored. */
  kiln_op op;
  /** Output array of n elements. Default type: the type of the input. `out` may
   * be one of the input arrays if both types have the same size. */
  kiln_array out;
  /** Exclusive scan: element i receives the reduction of all elements before i.
   * The first element receives `init`, or the operation's identity if `init` is
   * NULL. */
  bool exclusive;
  /** Initial value in host memory: one element of the type of `out`, which is
   * copied. It is the first operand of all results. NULL means that there is no
   * initial value. */
  const void *init;
  /** Device address that receives the total: the reduction of all elements,
   * starting with `init`, as one element of the type of `out`. 0 means that the
   * total is not wanted. */
  CUdeviceptr total;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_scan_desc;

/**
 * Scans an array.
 *
 * The operation need not be commutative, because operands stay in array order.
 * The grouping depends only on n, the types, the alignment and the device.
 * Every run therefore returns the same bits, also for floating-point sums.
 *
 * The temporary storage takes 8 bytes per tile of some thousand elements, or 16
 * bytes per tile if the elements of `out` have 8 bytes. For wider elements, tiles
 * are smaller and take 8 bytes per 4 bytes of an element. It takes twice as much
 * if block 0 computes the prefix of every tile (leader-block prefix).
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if `out` is
 *         one of the inputs and a user expression reads other elements, for
 *         example with x_at().
 * In-place operation is possible unless a user expression reads other elements.
 * The scan needs one launch. For n = 0 it needs a launch only if `total` is
 * wanted.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_scan(kiln_stream *stream,
                                  const kiln_scan_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_scan() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_scan_workspace(kiln_stream *stream,
                                            const kiln_scan_desc *desc,
                                            size_t *bytes);

/** Description of a scan by key, which restarts at every segment. A segment is
 * a run of consecutive elements with equal keys. */
typedef struct kiln_scan_by_key_desc {
  kiln_array keys; /**< array of n keys of any type */
  /** User expression over two consecutive keys a and b that is true if both
   * belong to the same segment. NULL selects a == b. A NaN then forms a segment
   * of its own. */
  const char *same;
  kiln_input x;   /**< input: n elements, from one array or computed by a map */
  uint64_t n;     /**< number of input elements */
  kiln_op op;     /**< operation of the scan; see kiln_scan_desc.op */
  kiln_array out; /**< output array of n elements, which must not be the array
                       of keys; see kiln_scan_desc.out */
  bool exclusive; /**< exclusive scan: the first element of a segment receives
                       `init`, or the identity if `init` is NULL */
  const void *init; /**< initial value, the first operand in every segment; NULL
                         means that there is no initial value */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
} kiln_scan_by_key_desc;

/**
 * Scans each run of equal consecutive keys separately. Segments may have any
 * length. Order, temporary storage and the number of launches are the same as
 * for kiln_scan().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_scan().
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_scan_by_key(kiln_stream *stream,
                                         const kiln_scan_by_key_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_scan_by_key() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_scan_by_key_workspace(
    kiln_stream *stream, const kiln_scan_by_key_desc *desc, size_t *bytes);

/** Description of a segmented scan, which restarts at every segment. Either
 * offsets or flags specify where segments begin. */
typedef struct kiln_segmented_scan_desc {
  /** Array of n_segments ascending integers of 4 or 8 bytes: the indices at
   * which segments begin. Equal offsets make empty segments. Offsets of n or
   * more have no effect. The elements before the first offset form a segment of
   * their own. */
  kiln_array offsets;
  uint64_t n_segments; /**< number of elements of `offsets` */
  kiln_array flags;    /**< array of n integers; an integer other than 0 means
                            that a segment begins at this element */
  kiln_input x;   /**< input: n elements, from one array or computed by a map */
  uint64_t n;     /**< number of input elements */
  kiln_op op;     /**< operation of the scan; see kiln_scan_desc.op */
  kiln_array out; /**< output array of n elements, which must be neither offsets
                       nor flags; see kiln_scan_desc.out */
  bool exclusive; /**< exclusive scan; see kiln_scan_by_key_desc.exclusive */
  const void *init; /**< initial value, the first operand in every segment; see
                         kiln_scan_by_key_desc.init */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
} kiln_segmented_scan_desc;

/**
 * Scans each segment separately. Order, temporary storage and the number of
 * launches are the same as for kiln_scan(). Offsets that do not ascend cause
 * wrong results, but no access out of bounds.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_scan(). Returns KILN_EINVAL also if both
 *         offsets and flags are given, or neither.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status
kiln_segmented_scan(kiln_stream *stream, const kiln_segmented_scan_desc *desc,
                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_segmented_scan() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_segmented_scan_workspace(
    kiln_stream *stream, const kiln_segmented_scan_desc *desc, size_t *bytes);

/** Description of an operation on adjacent elements: out[0] = x[0], and out[i]
 * = op(x[i], x[i - 1]) for i > 0. With `right`, out[n - 1] = x[n - 1], and
 * out[i] = op(x[i], x[i + 1]) for i < n - 1. */
typedef struct kiln_adjacent_difference_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  uint64_t n;   /**< number of input elements */
  const char *expr; /**< user expression over the element a and the adjacent
                         element b; NULL selects a - b */
  bool right;       /**< the adjacent element is the next element instead of the
                         previous one */
  /** Output array of n elements. Default type: the type of the input. `out` may
   * be one of the input arrays if both types have the same size. */
  kiln_array out;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_adjacent_difference_desc;

/**
 * Combines each element with the previous or the next element. User expressions
 * see elements of the input's type (f16 and bf16 as float).
 *
 * Temporary storage is needed only if `out` is one of the inputs: 8 bytes per
 * tile of the kernel, or 16 bytes per tile for elements of 8 bytes.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if `out` is
 *         one of the inputs and a map reads other elements, for example with
 *         x_at().
 * In-place operation is possible unless a user expression reads other elements.
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_adjacent_difference(
    kiln_stream *stream, const kiln_adjacent_difference_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_adjacent_difference()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_adjacent_difference_workspace(
    kiln_stream *stream, const kiln_adjacent_difference_desc *desc,
    size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__SCAN_OPERATIONS(X)                                               \
  X(kiln_scan, kiln_scan_desc, code)                                           \
  X(kiln_scan_by_key, kiln_scan_by_key_desc, code)                             \
  X(kiln_segmented_scan, kiln_segmented_scan_desc, code)                       \
  X(kiln_adjacent_difference, kiln_adjacent_difference_desc, code)
KILN__SCAN_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
