/* search.h -- binary search for many values (needles) in a sorted sequence.
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

/** Description of a binary search: a sorted sequence, and the needles (values)
 * to search for. */
typedef struct kiln_search_desc {
  kiln_array sorted;  /**< the sequence: an array of m elements in ascending
                           order */
  uint64_t m;         /**< number of elements in the sequence; may be 0 */
  kiln_input needles; /**< the needles: n values of the sequence's type, from an
                           array in any order or computed by a map */
  uint64_t n;         /**< number of needles to search for */
  kiln_array out; /**< receives one position in the sequence per needle, as u32
                       (only for m below 2^32) or u64 */
  /** False selects the lower bound: the number of elements that come before the
   * needle. True selects the upper bound: the number of elements that do not
   * come after the needle. These are the sides left and right of NumPy's
   * searchsorted. */
  bool upper;
  /** Order of the sequence: user expression over two elements a and b that is
   * true if a must come before b. NULL selects ascending order, as kiln_sort()
   * produces it: for floats -0 before +0, and NaN last. All NaNs count as
   * equal, while kiln_sort() orders them by their bits. */
  const char *less;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_search_desc;

/**
 * Searches a sorted sequence for each needle by binary search. If the sequence
 * is not sorted, the result for each needle is an unspecified position.
 *
 * Each needle takes log2(m) + 1 probes. For many needles, the upper levels of
 * the search are probed in shared memory. Needles in ascending order share
 * cache lines. The search needs one launch and no temporary storage. For very
 * many needles in a long sequence of elements of 1 to 8 bytes, one more launch
 * copies m / 7 elements to temporary storage, as a tree whose nodes have 8
 * elements. A needle then reads one node per level (k-ary search: Schlegel,
 * Gemulla and Lehner, k-Ary Search on Modern Processors, 2009).
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if needles and
 *         sequence have different types, and for u32 positions if m is 2^32 or
 *         more.
 * The search does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_search(kiln_stream *stream,
                                    const kiln_search_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_search() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_search_workspace(kiln_stream *stream,
                                              const kiln_search_desc *desc,
                                              size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__SEARCH_OPERATIONS(X) X(kiln_search, kiln_search_desc, code)
KILN__SEARCH_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
