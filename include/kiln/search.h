/* search.h -- where many needles belong in a sorted sequence.
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

/** Start from {0}. */
typedef struct kiln_search_desc {
  kiln_array sorted; /**< m elements, ascending */
  uint64_t m;        /**< elements; may be 0 */
  kiln_input
      needles;      /**< n, of the sequence's type: an array in any order, or a
                         map */
  uint64_t n;       /**< needles */
  kiln_array out;   /**< n places, u32 (m below 2^32) or u64 */
  bool upper;       /**< false: lower bound, the number of elements that come
                         before the needle; true: upper bound, the number of
                         elements that the needle does not come before (NumPy:
                         searchsorted, side left and right) */
  const char *less; /**< the order of the sequence: an expression over a and b,
                         true if a has to come before b. NULL: ascending, as
                         kiln_sort() leaves it (floats: -0 before +0, NaN
                         last, all NaNs alike) */
  kiln_code code;
} kiln_search_desc;

/**
 * Search. A sequence that is not sorted gives some place for each needle.
 *
 * log2(m) + 1 probes a needle; the upper levels' from shared memory where the
 * needles are many. Needles in order share what they read. In place: out may be
 * nothing that is read. Launches: one. Memory: none.
 *
 * @retval see ops.h; KILN_EINVAL also for needles of another type than the
 *         sequence, and for u32 places when m is 2^32 or more.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_search(kiln_stream *stream,
                                    const kiln_search_desc *desc,
                                    const kiln_workspace *workspace);
/** Always 0 bytes. */
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
