/* merge.h -- two sorted sequences into one.
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

/** Keys, alone or with one value per key. */
typedef struct kiln_merge_desc {
  kiln_array a, b;       /**< keys of one type, each sequence sorted */
  uint64_t n_a, n_b;     /**< keys */
  kiln_array out;        /**< n_a + n_b keys of that type */
  kiln_array a_values;   /**< n_a values of any type, or none (no type) */
  kiln_array b_values;   /**< n_b of the same type */
  kiln_array out_values; /**< n_a + n_b of the same type */
  const char *less;      /**< the order both are sorted by: an expression over
                            keys a and b, true if a must come before b. NULL:
                            ascending, as kiln_sort() leaves them (floats: -0
                            before +0, NaN last; all NaNs are equal here, while a
                            sort orders them by their bits) */
  kiln_code code;        /**< what the texts may use */
} kiln_merge_desc;

/**
 * Merges two sorted sequences into one. Stable: of equal keys those of a come first,
 * and each sequence keeps its order. Sequences that are not sorted give the same keys
 * in some order.
 *
 * Every key and value is read once and written once. Launches: one up to 2^21 keys,
 * two above. Temporary storage: none up to 2^21 keys, above 8 bytes per 4,000 keys or
 * so. Source: Odeh, Green et al., Merge Path - Parallel Merging Made Simple, 2012.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for types that differ, and for values that are
 *         given only in part.
 * In place: no. Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_merge(kiln_stream *stream,
                                   const kiln_merge_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_merge() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_merge_workspace(kiln_stream *stream,
                                             const kiln_merge_desc *desc,
                                             size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__MERGE_OPERATIONS(X) X(kiln_merge, kiln_merge_desc, code)
KILN__MERGE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
