/* sets.h -- union, intersection and differences of sorted sequences.
 *
 *   kiln_set_desc u = {.kind = KILN_SET_UNION,
 *                      .a = {a, KILN_U32}, .n_a = n_a,
 *                      .b = {b, KILN_U32}, .n_b = n_b,
 *                      .out = {out, KILN_U32}, .count = {m, KILN_U64}};
 *   st = kiln_set_operation(stream, &u, NULL); */
#ifndef KILN_SETS_H
#define KILN_SETS_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Operations on sorted multisets. A value may occur several times: if it occurs
 * m times in a and n times in b, the comment says how often the result has
 * it. */
typedef enum kiln_set_kind {
  KILN_SET_UNION = 0,    /**< max(m, n): all m elements of a, then the last
                              n - m of b if n > m */
  KILN_SET_INTERSECTION, /**< min(m, n): the first ones of a */
  KILN_SET_DIFFERENCE,   /**< m - n: the last ones of a; none if m <= n */
  /** |m - n|: the last m - n elements of a, or the last n - m of b. */
  KILN_SET_SYMMETRIC_DIFFERENCE
} kiln_set_kind;

/** Description of an operation on two sorted sequences. */
typedef struct kiln_set_desc {
  kiln_set_kind kind;
  kiln_array a, b;   /**< the two sorted sequences, which have the same type */
  uint64_t n_a, n_b; /**< numbers of elements in a and b */
  /** Receives the sorted results, with the type of a and b. It has space for
   * n_a + n_b elements, for an intersection for the smaller of n_a and n_b, and
   * for a difference for n_a. Elements behind the results are not written. */
  kiln_array out;
  kiln_array count; /**< receives the number of results as one u32 or u64 */
  /** Order of both sequences: user expression over elements a and b that is true
   * if a must come before b. Elements are equal if neither must come before the
   * other. NULL selects ascending order, as in kiln_merge(). */
  const char *less;
  kiln_code code; /**< parameters and functions that the user expression can
                       use */
} kiln_set_desc;

/**
 * Computes the union, intersection, difference or symmetric difference of two
 * sorted sequences. The definitions are those of the C++ standard's set_union,
 * set_intersection, set_difference and set_symmetric_difference. If the
 * sequences are not sorted, the results and their number are unspecified; no
 * other memory is written.
 *
 * The call takes two launches, reads each element once and writes each result
 * once. Temporary storage takes about 24 bytes per 3,000 elements. Sources: of
 * the division into tiles, Odeh, Green et al., Merge Path - Parallel Merging
 * Made Simple, 2012; of the merge of many integers, Batcher, Sorting Networks
 * and Their Applications, 1968; of the positions of the results, Merrill and
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the types of
 *         a, b and out differ, if the kind is not valid, or if a u32 count
 *         cannot represent n_a + n_b.
 * The operation does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_set_operation(kiln_stream *stream,
                                           const kiln_set_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_set_operation() needs
 * for the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_set_operation_workspace(kiln_stream *stream,
                                                     const kiln_set_desc *desc,
                                                     size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__SET_OPERATIONS(X) X(kiln_set_operation, kiln_set_desc, code)
KILN__SET_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
