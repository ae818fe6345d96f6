/* map.h -- outputs from inputs, element by element.
 *
 *   kiln_map_desc smooth = {.in = {{x, KILN_F32}}, .out = {{y, KILN_F32}}, .n = n,
 *       .expr = {"i > 0 && i + 1 < 1000 ? (x_at(i - 1) + x + x_at(i + 1)) / 3"
 *                " : x"}};
 *   st = kiln_map(stream, &smooth, NULL); */
#ifndef KILN_MAP_H
#define KILN_MAP_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** out[k][i] = expr[k](in[0][i], in[1][i], ..., i) for i < n. */
typedef struct kiln_map_desc {
  kiln_array in[KILN_MAX_INPUTS]; /**< n elements each; the first without a type
                                     ends the list; none is fine */
  kiln_array out[KILN_MAX_OUTPUTS];   /**< n elements each, one at least; may be
                                       one of the inputs whose elements have
                                       the same size */
  const char *expr[KILN_MAX_OUTPUTS]; /**< for each output: over x, y, z, w (or
                                         x0 ... x7), the index i, and other
                                         elements by x_at(j) and its like, for
                                         which borders are the text's matter;
                                         converted to the output's type. NULL:
                                         in[0]'s element */
  uint64_t n;                         /**< elements */
  kiln_code code;                     /**< what the texts may use */
} kiln_map_desc;

/**
 * Computes each output element from the input elements of the same index, or
 * from others that the text names.
 *
 * Each input is read once and each output written once, in accesses of 16 bytes.
 * That also holds for views that are shifted by the same number of elements: the
 * kernel processes their first few elements separately.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  not used; NULL.
 * @retval as ops.h; KILN_EINVAL also if two outputs overlap, if an output overlaps
 *         an input without being the same array, and if an output is an input
 *         while a text reads other elements (x_at()).
 * Order: elements in any order. In place: yes, without x_at() and its like.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_map(kiln_stream *stream, const kiln_map_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_map() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_map_workspace(kiln_stream *stream,
                                           const kiln_map_desc *desc,
                                           size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__MAP_OPERATIONS(X) X(kiln_map, kiln_map_desc, code)
KILN__MAP_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
