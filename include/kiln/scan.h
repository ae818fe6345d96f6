/* scan.h -- prefix sums and their like: of a whole array and of its segments;
 * differences of neighbours.
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

/** out[i] = x[0] op x[1] op ... op x[i], or up to x[i - 1] if exclusive. */
typedef struct kiln_scan_desc {
  kiln_input x;   /**< n elements */
  uint64_t n;     /**< elements */
  kiln_op op;     /**< computes in out's type; f16 and bf16 in float, rounded
                       only when stored */
  kiln_array out; /**< n elements; default type: the input's. May be one of the
                       input's arrays, if its type is of the same size */
  bool exclusive; /**< element i gets the reduction of the elements before it,
                       the first one `init` or else the operation's identity */
  const void *init; /**< one element of out's type in host memory, copied:
                          the first operand of all. NULL: none */
  CUdeviceptr
      total;      /**< receives one element of out's type: the reduction of all
                elements, starting with `init`. 0: not wanted */
  kiln_code code; /**< what the texts may use */
} kiln_scan_desc;

/**
 * Scans an array.
 *
 * Order: the operation need not commute. Operands stay in their order, and the
 * grouping depends only on n, the types, the alignment and the device. So every
 * run gives the same bits, also for floating-point sums.
 *
 * Temporary storage: 8 bytes per tile of some thousand elements, 16 if out's
 * elements have 8 bytes; twice as much where block 0 computes the prefix of every
 * tile (leader-block prefix).
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also if `out` is one of the inputs while a text
 *         reads other elements (x_at()).
 * In place: yes, without x_at() and its like. Threads: any. Blocks: only to
 * compile. One launch; none for n = 0, unless `total` is wanted.
 */
KILN_INLINE kiln_status kiln_scan(kiln_stream *stream,
                                  const kiln_scan_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_scan() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_scan_workspace(kiln_stream *stream,
                                            const kiln_scan_desc *desc,
                                            size_t *bytes);

/** A scan that restarts at every segment. A segment is a run of neighbours with
 * equal keys. */
typedef struct kiln_scan_by_key_desc {
  kiln_array keys; /**< n elements of any type */
  const char
      *same;      /**< NULL: a == b (so each NaN is a segment); else true if two
                         neighbours a and b, in this order, belong together */
  kiln_input x;   /**< n elements */
  uint64_t n;     /**< elements */
  kiln_op op;     /**< as for kiln_scan() */
  kiln_array out; /**< as for kiln_scan(); not the keys */
  bool exclusive; /**< the first element of a segment gets `init` or else the
                         identity */
  const void *init; /**< the first operand of every segment; NULL: none */
  kiln_code code;   /**< what the texts may use */
} kiln_scan_by_key_desc;

/**
 * Scans each run of equal neighbouring keys on its own. Segments may have any
 * lengths. Order, temporary storage and launches are as for kiln_scan().
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_scan().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_scan_by_key(kiln_stream *stream,
                                         const kiln_scan_by_key_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_scan_by_key() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_scan_by_key_workspace(
    kiln_stream *stream, const kiln_scan_by_key_desc *desc, size_t *bytes);

/** A scan that restarts at every segment. Offsets or flags mark where segments
 * begin; give one of the two. */
typedef struct kiln_segmented_scan_desc {
  kiln_array offsets;  /**< n_segments ascending indices of 4 or 8 bytes: where
                            segments begin. Equal offsets make empty segments,
                            offsets of n or more have no effect, and elements
                            before the first offset are a segment */
  uint64_t n_segments; /**< offsets */
  kiln_array flags;    /**< n integers: not 0 where a segment begins */
  kiln_input x;        /**< n elements */
  uint64_t n;          /**< elements */
  kiln_op op;          /**< as for kiln_scan() */
  kiln_array out;      /**< as for kiln_scan(); neither offsets nor flags */
  bool exclusive;      /**< as for kiln_scan_by_key() */
  const void *init;    /**< as for kiln_scan_by_key() */
  kiln_code code;      /**< what the texts may use */
} kiln_segmented_scan_desc;

/**
 * Scans each segment on its own. Order, temporary storage and launches are as for
 * kiln_scan(). Offsets that do not ascend give wrong results, but no access out of
 * bounds.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_scan(); KILN_EINVAL also for both offsets and flags or neither.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status
kiln_segmented_scan(kiln_stream *stream, const kiln_segmented_scan_desc *desc,
                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_segmented_scan() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_segmented_scan_workspace(
    kiln_stream *stream, const kiln_segmented_scan_desc *desc, size_t *bytes);

/** out[i] = op(x[i], x[i - 1]), and out[0] = x[0]; with `right`
 * out[i] = op(x[i], x[i + 1]), and the last one is x[n - 1]. */
typedef struct kiln_adjacent_difference_desc {
  kiln_input x;     /**< n elements */
  uint64_t n;       /**< elements */
  const char *expr; /**< over a, the element itself, and b, its neighbour;
                         NULL: a - b */
  bool right;       /**< the neighbour is the next element */
  kiln_array out; /**< n elements; default type: the input's. May be one of the
                         input's arrays, if its type is of the same size */
  kiln_code code; /**< what the texts may use */
} kiln_adjacent_difference_desc;

/**
 * Combines each element with its neighbour. Texts see elements of the input's type
 * (f16 and bf16 as float).
 *
 * Temporary storage: only if `out` is one of the inputs: 8 bytes per tile of the
 * kernel, 16 for elements of 8 bytes.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also if `out` is one of the inputs while a map
 *         reads other elements (x_at()).
 * In place: yes, without x_at() and its like. Threads: any. Blocks: only to
 * compile. One launch.
 */
KILN_INLINE kiln_status kiln_adjacent_difference(
    kiln_stream *stream, const kiln_adjacent_difference_desc *desc,
    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_adjacent_difference() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_adjacent_difference_workspace(
    kiln_stream *stream, const kiln_adjacent_difference_desc *desc,
    size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

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
