/* map.h -- outputs from inputs, element by element (lecture rows B8, C2). */
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
                                       one of the inputs */
  const char *expr[KILN_MAX_OUTPUTS]; /**< for each output: over x, y, z, w (or
                                         x0 ... x7) and the index i; converted to
                                         the output's type. NULL: in[0]'s
                                         element */
  uint64_t n;                         /**< elements */
  kiln_code code;
} kiln_map_desc;

/**
 * Compute the outputs. Each input is read once, each output written once.
 *
 * @param workspace  not used; NULL.
 * @retval see ops.h; KILN_EINVAL also for two outputs that overlap and for an
 *         output that overlaps an input without being the same array.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_API kiln_status kiln_map(kiln_stream *stream, const kiln_map_desc *desc,
                              const kiln_workspace *workspace);
/** Always 0 bytes. */
KILN_API kiln_status kiln_map_workspace(kiln_stream *stream,
                                        const kiln_map_desc *desc,
                                        size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
