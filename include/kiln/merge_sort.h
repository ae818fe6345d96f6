/* merge_sort.h -- sort in an order that a user expression defines.
 *
 *   kiln_merge_sort_desc d = {.keys_in = {x, KILN_F32},
 *                             .keys_out = {y, KILN_F32}, .n = n,
 *                             .less = "fabsf(a) < fabsf(b)"};
 *   st = kiln_merge_sort(stream, &d, NULL);
 *
 * kiln_sort() and kiln_key_sort() in sort.h take half of the time or less, if the
 * order is that of the keys or that of an unsigned integer that a key can be mapped
 * to. */
#ifndef KILN_MERGE_SORT_H
#define KILN_MERGE_SORT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a sort by comparisons: keys, and optional values that move
 * with the keys. */
typedef struct kiln_merge_sort_desc {
  kiln_array keys_in;   /**< input: n keys of any type */
  kiln_array keys_out;  /**< receives the n sorted keys, with the type of
                             keys_in; may be the same array as keys_in */
  kiln_array values_in; /**< optional input: n values of any type that move with
                             the keys; no type means that there are no values */
  /** Receives the n values in the order of the sorted keys, with the type of
   * values_in; may be the same array as values_in. */
  kiln_array values_out;
  uint64_t n; /**< number of keys */
  /** User expression over keys a and b that is true if a must come before b. It
   * must be a strict weak order: false for equal keys, and transitive, also
   * where it is false for both orders of two keys. `a < b` is no such order of
   * floats if there are NaNs. Required. */
  const char *less;
  kiln_code code; /**< parameters and functions that the user expression can
                       use */
} kiln_merge_sort_desc;

/**
 * Sorts keys, and values along with them, by the user's comparison. The sort is
 * stable: keys of which neither must come before the other keep the order of
 * the input. Sorting never changes the bits of a key. The same input gives the
 * same bits on every device.
 *
 * If the comparison is not a strict weak order, the outputs consist of elements
 * of the input, but some may be missing and others repeated.
 *
 * A block sorts a tile of a few thousand keys in shared memory. After that,
 * each pass over the array merges four sorted runs into one. Every pass reads
 * and writes each key and value once and takes two launches. 2^28 keys of 4
 * bytes take one launch and eight passes. Temporary storage holds n keys, n
 * values and 32 bytes per tile. Keys that fit into one tile need none.
 * Sources: Odeh, Green et al., Merge Path - Parallel Merging Made Simple, 2012;
 * Varman et al., Merging Multiple Lists on Hierarchical-Memory Multiprocessors,
 * 1991.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if `less` is
 *         NULL, or if the types of inputs and outputs differ.
 * The sort works in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_merge_sort(kiln_stream *stream,
                                        const kiln_merge_sort_desc *desc,
                                        const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_merge_sort() needs for
 * the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_merge_sort_workspace(
    kiln_stream *stream, const kiln_merge_sort_desc *desc, size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__MERGE_SORT_OPERATIONS(X)                                         \
  X(kiln_merge_sort, kiln_merge_sort_desc, code)
KILN__MERGE_SORT_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
