/* search.h -- the positions of many needles in a sorted sequence.
 *
 *   kiln_search_desc s = {.sorted = {x, KILN_F32}, .m = m,
 *                         .needles = {.in = {{y, KILN_F32}}}, .n = n,
 *                         .out = {places, KILN_U32}};
 *   st = kiln_search(stream, &s, NULL); */
#ifndef KILN_SEARCH_H
#define KILN_SEARCH_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A sorted sequence and needles. */
typedef struct kiln_search_desc {
  kiln_array sorted; /**< m elements, ascending */
  uint64_t m;        /**< elements; may be 0 */
  kiln_input
      needles;      /**< n, of the sequence's type: an array in any order, or a
                         map */
  uint64_t n;       /**< needles */
  kiln_array out;   /**< n positions, u32 (m below 2^32) or u64 */
  bool upper;       /**< false: lower bound, the number of elements that come
                         before the needle; true: upper bound, the number of
                         elements that the needle does not come before (NumPy:
                         searchsorted, side left and right) */
  const char *less; /**< the order of the sequence: an expression over a and b,
                         true if a must come before b. NULL: ascending, as
                         kiln_sort() leaves it (floats: -0 before +0, NaN
                         last; all NaNs are equal here, while a sort orders
                         them by their bits) */
  kiln_code code;   /**< what the texts may use */
} kiln_search_desc;

/**
 * Searches a sorted sequence for each needle (binary search). A sequence that is not
 * sorted gives some position per needle.
 *
 * Each needle takes log2(m) + 1 probes. If there are many needles, the upper levels
 * are probed in shared memory. Needles in ascending order share what they read.
 * Temporary storage: none. Launches: one.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for needles of another type than the sequence,
 *         and for u32 positions when m is 2^32 or more.
 * In place: no. Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_search(kiln_stream *stream,
                                    const kiln_search_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_search() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_search_workspace(kiln_stream *stream,
                                              const kiln_search_desc *desc,
                                              size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__SEARCH_OPERATIONS(X) X(kiln_search, kiln_search_desc, code)
KILN__SEARCH_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
