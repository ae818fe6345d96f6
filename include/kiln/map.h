/* map.h -- compute outputs from inputs, element by element.
 *
 *   kiln_map_desc smooth = {
 *       .in = {{x, KILN_F32}}, .out = {{y, KILN_F32}}, .n = n,
 *       .expr = {"i > 0 && i + 1 < 1000 ? (x_at(i - 1) + x + x_at(i + 1)) / 3"
 *                " : x"}};
 *   st = kiln_map(stream, &smooth, NULL); */
#ifndef KILN_MAP_H
#define KILN_MAP_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of an element-wise computation: out[k][i] = expr[k](in[0][i],
 * in[1][i], ..., i) for i < n, where k is the number of the output. */
typedef struct kiln_map_desc {
  /** Input arrays of n elements each; may be none. The list ends at the first
   * array without a type. */
  kiln_array in[KILN_MAX_INPUTS];
  /** Output arrays of n elements each, at least one array. An output may be one
   * of the inputs if both have elements of the same size. */
  kiln_array out[KILN_MAX_OUTPUTS];
  /** One user expression per output, over the input elements x, y, z, w (or x0
   * ... x7) and the index i. x_at(j), y_at(j) and so on read element j of an
   * input; j must be within the array. The result is converted to the type of
   * the output. NULL copies the element of in[0]. */
  const char *expr[KILN_MAX_OUTPUTS];
  uint64_t n;     /**< number of elements of each array */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
  /** Number of elements per row of a matrix or an image, or 0. If it is not 0,
   * the user expressions can also use the row and the column of the element
   * (unsigned 64-bit; i is row * width + column), and n is a multiple of the
   * width. */
  uint64_t width;
  /** Views of the inputs, or NULL if all inputs are plain arrays. An input with a
   * view cannot be an output. Borrowed for the call. */
  const kiln_shape *shape;
} kiln_map_desc;

/**
 * Computes each output element from the input elements with the same index, or
 * from other elements that the user expression reads.
 *
 * Unless x_at() is used, each input is read once. Each output is written once,
 * in accesses of 16 bytes. That also holds for arrays that are all misaligned
 * by the same number of elements: the kernel processes their first few elements
 * separately. Elements are processed in no particular order.
 * Inputs with strides are read one element at a time; neighbouring axes that all
 * views pass in one stride count as one axis.
 * Without inputs but with a width, each thread computes single elements, and a
 * warp computes a compact block of the image: expressions that iterate for a
 * different time per element then leave few threads idle.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  not used; NULL.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if two outputs
 *         overlap, if an output overlaps an input without being the same array,
 *         or if an output is an input while a user expression reads elements at
 *         other indices with x_at(), or if n is not a multiple of the width.
 * In-place operation is possible unless a user expression reads other elements.
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_map(kiln_stream *stream, const kiln_map_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_map() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_map_workspace(kiln_stream *stream,
                                           const kiln_map_desc *desc,
                                           size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__MAP_OPERATIONS(X) X(kiln_map, kiln_map_desc, code)
KILN__MAP_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
