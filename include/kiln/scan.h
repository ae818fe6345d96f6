/* scan.h -- running folds: of a whole array, and of its segments; differences of
 * neighbours (lecture row B11).
 *
 * All scans read each element once and write each result once, in one launch
 * (Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled
 * Look-back, NVIDIA 2016). */
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
  bool exclusive; /**< element i gets the fold of those before it, the first one
                       `init` or else the operation's identity */
  const void *init; /**< one element of out's type in host memory, copied:
                          everything begins with it. NULL: nothing */
  CUdeviceptr
      total; /**< room for one element of out's type, which gets the fold
                          of all, begun with `init`. 0: not wanted */
  kiln_code code;
} kiln_scan_desc;

/**
 * Scan an array.
 *
 * Order: the operation need not commute; operands stay in their order, and where
 * the brackets go depends on n, types, alignment and device alone. So the result
 * has the same bits in every run, also for floating-point sums.
 *
 * @param workspace  8 bytes for every tile of the kernel (of some thousand
 *                   elements), 16 if out's elements have 8 bytes, twice as much
 *                   where a block adds up for all tiles; or NULL.
 * @retval see ops.h
 * Threads: any. Blocks: only to compile. One launch; none for n = 0, unless
 * `total` is wanted.
 */
KILN_INLINE kiln_status kiln_scan(kiln_stream *stream,
                                  const kiln_scan_desc *desc,
                                  const kiln_workspace *workspace);
/** Bytes of workspace for a call. */
KILN_INLINE kiln_status kiln_scan_workspace(kiln_stream *stream,
                                            const kiln_scan_desc *desc,
                                            size_t *bytes);

/** A scan that begins anew at every segment. A segment is a run of neighbours
 * with equal keys. */
typedef struct kiln_scan_by_key_desc {
  kiln_array keys; /**< n elements of any type */
  const char
      *same;      /**< NULL: a == b (so each NaN is a segment); else whether two
                         neighbours a and b, in this order, are of one segment */
  kiln_input x;   /**< n elements */
  uint64_t n;     /**< elements */
  kiln_op op;     /**< as for kiln_scan() */
  kiln_array out; /**< as for kiln_scan(); not the keys */
  bool exclusive; /**< the first element of a segment gets `init` or else the
                         identity */
  const void *init; /**< every segment begins with it; NULL: nothing */
  kiln_code code;
} kiln_scan_by_key_desc;

/**
 * Scan each run of equal keys. Order, memory, launches, statuses and threads as
 * for kiln_scan(); segments may have any lengths.
 */
KILN_INLINE kiln_status kiln_scan_by_key(kiln_stream *stream,
                                         const kiln_scan_by_key_desc *desc,
                                         const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_scan_by_key_workspace(
    kiln_stream *stream, const kiln_scan_by_key_desc *desc, size_t *bytes);

/** The same with segments told by where they begin, or by flags: one of the
 * two. */
typedef struct kiln_segmented_scan_desc {
  kiln_array offsets;  /**< n_segments ascending indices of 4 or 8 bytes: where
                            segments begin. Equal ones make empty segments, those
                            of n or more count for nothing, and elements before
                            the first are a segment of their own */
  uint64_t n_segments; /**< offsets */
  kiln_array flags;    /**< or n integers: not 0 where a segment begins */
  kiln_input x;        /**< n elements */
  uint64_t n;          /**< elements */
  kiln_op op;          /**< as for kiln_scan() */
  kiln_array out;      /**< as for kiln_scan(); neither offsets nor flags */
  bool exclusive;      /**< as for kiln_scan_by_key() */
  const void *init;    /**< as for kiln_scan_by_key() */
  kiln_code code;
} kiln_segmented_scan_desc;

/**
 * Scan each segment. Order, memory, launches, statuses and threads as for
 * kiln_scan(). Offsets that do not ascend give wrong results, nothing worse.
 */
KILN_INLINE kiln_status
kiln_segmented_scan(kiln_stream *stream, const kiln_segmented_scan_desc *desc,
                    const kiln_workspace *workspace);
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
  kiln_code code;
} kiln_adjacent_difference_desc;

/**
 * Differences of neighbours. Texts see elements of the input's type (f16 and
 * bf16 as float).
 *
 * @param workspace  only where `out` is one of the inputs: 8 bytes for every tile
 *                   of the kernel, 16 for elements of 8 bytes; or NULL.
 * @retval see ops.h
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_adjacent_difference(
    kiln_stream *stream, const kiln_adjacent_difference_desc *desc,
    const kiln_workspace *workspace);
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
