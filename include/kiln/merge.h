/* merge.h -- merge two sorted sequences into one.
 *
 *   kiln_merge_desc m = {.a = {a, KILN_U32}, .n_a = n_a,
 *                        .b = {b, KILN_U32}, .n_b = n_b,
 *                        .out = {out, KILN_U32}};
 *   st = kiln_merge(stream, &m, NULL); */
#ifndef KILN_MERGE_H
#define KILN_MERGE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a merge: two sorted sequences of keys, with or without one
 * value per key. */
typedef struct kiln_merge_desc {
  kiln_array a, b;   /**< the two sorted sequences of keys, which have the same
                          type */
  uint64_t n_a, n_b; /**< numbers of keys in a and b */
  kiln_array out;    /**< receives n_a + n_b keys of the same type as a and b */
  kiln_array a_values;   /**< optional: n_a values of any type, one per key
                              of a */
  kiln_array b_values;   /**< optional: n_b values of the type of a_values, one
                              per key of b */
  kiln_array out_values; /**< receives n_a + n_b values in the order of the
                              merged keys, with the type of a_values */
  /** Order of both sequences: user expression over keys a and b that is true if
   * a must come before b. NULL selects ascending order, as kiln_sort() produces
   * it: for floats -0 before +0, and NaN last. All NaNs count as equal, while
   * kiln_sort() orders them by their bits. */
  const char *less;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_merge_desc;

/**
 * Merges two sorted sequences into one. The merge is stable: among equal keys
 * those of sequence a come first, and each sequence keeps its order. If the
 * sequences are not sorted, the result is unspecified; no other memory is
 * written.
 *
 * Every key and value is read once and written once. Up to 2^21 keys take one
 * launch and no temporary storage. More keys take two launches and about 8
 * bytes of temporary storage per 4,000 keys. Sources: Odeh, Green et al., Merge
 * Path - Parallel Merging Made Simple, 2012; for many keys of 4 bytes also
 * Batcher, Sorting Networks and Their Applications, 1968.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the key
 *         types of a, b and out differ, or if some but not all of the three
 *         arrays of values are given.
 * The merge does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_merge(kiln_stream *stream,
                                   const kiln_merge_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_merge() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_merge_workspace(kiln_stream *stream,
                                             const kiln_merge_desc *desc,
                                             size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__MERGE_OPERATIONS(X) X(kiln_merge, kiln_merge_desc, code)
KILN__MERGE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
