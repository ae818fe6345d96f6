/* permute.h -- reorder the axes of an array: transpose, permute.
 *
 * From images as rows of pixels to one plane per colour:
 *
 *   kiln_permute_desc planes = {.in = {x, KILN_U8}, .out = {y, KILN_U8},
 *                               .rank = 3, .size = {height, width, 3},
 *                               .axis = {2, 0, 1}};
 *   st = kiln_permute(stream, &planes, NULL); */
#ifndef KILN_PERMUTE_H
#define KILN_PERMUTE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a permutation of axes. Arrays are contiguous, and their last
 * axis varies fastest. */
typedef struct kiln_permute_desc {
  kiln_array in;  /**< array to read, with the axes `size` */
  kiln_array out; /**< array to write, of the same type */
  /** Number of consecutive values of the type that form an element and stay
   * together; 0 means 1. For example, 3 values of u8 are a pixel. */
  uint32_t values;
  uint32_t rank; /**< number of axes, 1 to KILN_MAX_AXES */
  /** Number of elements along each axis of `in`; size[0] belongs to the slowest
   * axis. */
  uint64_t size[KILN_MAX_AXES];
  /** Axis k of `out` is axis axis[k] of `in`, as in NumPy's transpose(). Each
   * number below rank occurs once. {1, 0} transposes a matrix. */
  uint32_t axis[KILN_MAX_AXES];
} kiln_permute_desc;

/**
 * Copies an array with its axes in another order.
 *
 * Axes that are neighbours in both orders count as one axis. If the fastest axis
 * changes, tiles are transposed in shared memory, so that loads and stores are
 * both coalesced. Elements of 1 and 2 bytes move in words of 4 bytes if both
 * arrays are aligned to 4 bytes and the rows of both have multiples of 4 bytes.
 * Elements are moved as bits.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  not used; NULL.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the types
 *         differ, if the rank is not valid, if an axis is missing, if the array
 *         has 2^64 bytes or more, or if the arrays overlap.
 * The operation needs one launch, or one copy if the order does not change.
 * Thread-safe. Blocks only while a kernel compiles.
 * Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009.
 */
KILN_INLINE kiln_status kiln_permute(kiln_stream *stream,
                                     const kiln_permute_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_permute() needs for the
 * same stream and desc, which is 0.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_permute_workspace(kiln_stream *stream,
                                               const kiln_permute_desc *desc,
                                               size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__PERMUTE_OPERATIONS(X) X(kiln_permute, kiln_permute_desc, axis)
KILN__PERMUTE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
