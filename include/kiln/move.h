/* move.h -- move elements: rotate an array, copy many ranges at once, and repeat
 * values.
 *
 *   kiln_run_length_decode_desc d = {.values = {v, KILN_F32},
 *                                    .lengths = {l, KILN_U32}, .n = runs,
 *                                    .out = {x, KILN_F32}, .capacity = n,
 *                                    .count = {total, KILN_U64}};
 *   st = kiln_run_length_decode(stream, &d, NULL); */
#ifndef KILN_MOVE_H
#define KILN_MOVE_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a rotation. */
typedef struct kiln_rotate_desc {
  kiln_array in;  /**< array of n elements to read */
  kiln_array out; /**< array of n elements to write, of the same type */
  uint64_t n;     /**< number of elements */
  /** Number of elements by which the array is rotated to the left: out[i] =
   * in[(i + shift) mod n]. Negative numbers rotate to the right. */
  int64_t shift;
} kiln_rotate_desc;

/**
 * Moves the first elements of an array behind its last ones.
 *
 * Elements are moved as bits. All stores, and all loads of aligned sources, have
 * 16 bytes.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  not used; NULL.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the types
 *         differ, or if the arrays overlap.
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_rotate(kiln_stream *stream,
                                    const kiln_rotate_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_rotate() needs for the
 * same stream and desc, which is 0.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_rotate_workspace(kiln_stream *stream,
                                              const kiln_rotate_desc *desc,
                                              size_t *bytes);

/** Description of copies whose addresses and sizes are in device memory. */
typedef struct kiln_copy_batch_desc {
  kiln_array from; /**< n device addresses of the sources, as u64 */
  kiln_array to;   /**< n device addresses of the destinations, as u64 */
  /** n sizes in bytes, of any integer type; 0 copies nothing. Sizes must not be
   * negative. */
  kiln_array sizes;
  uint64_t n; /**< number of copies, less than 2^32 */
} kiln_copy_batch_desc;

/**
 * Copies many ranges of device memory (like CUB's DeviceMemcpy::Batched).
 *
 * Addresses need no alignment. The work is divided by bytes, so that any mixture
 * of small and large ranges takes about the time that its bytes take. Ranges of
 * less than 16 bytes count like 16 bytes. A destination must not overlap another
 * destination or any source. Kiln cannot check the addresses.
 * The temporary storage takes 8 bytes per copy, and that of kiln_scan().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h.
 * The operation needs two launches.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_copy_batch(kiln_stream *stream,
                                        const kiln_copy_batch_desc *desc,
                                        const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_copy_batch() needs for
 * the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_copy_batch_workspace(
    kiln_stream *stream, const kiln_copy_batch_desc *desc, size_t *bytes);

/** Description of a run-length decoding: each value is written as often as the
 * length of its run says. */
typedef struct kiln_run_length_decode_desc {
  kiln_array values; /**< n values, one per run */
  /** n lengths of the runs, of any integer type; may be 0, must not be
   * negative. */
  kiln_array lengths;
  uint64_t n;     /**< number of runs, less than 2^32 */
  kiln_array out; /**< space for `capacity` values, of the type of `values` */
  /** Number of values for which `out` has space. Values beyond it are not
   * written. The work is divided by it, so it should be close to the sum of the
   * lengths. */
  uint64_t capacity;
  kiln_array count; /**< receives the sum of all lengths as one u32 or u64, even
                         if it exceeds the capacity */
} kiln_run_length_decode_desc;

/**
 * Expands runs into single values, the inverse of kiln_run_length_encode().
 *
 * Values are moved as bits. The lengths are first scanned. Then each warp writes
 * one tile of 1,024 values, so that the time does not depend on the lengths.
 * The temporary storage takes 8 bytes per run, and that of kiln_scan().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if out and
 *         values have different types.
 * The operation needs two launches; for n = 0 it only sets the count.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_run_length_decode(
    kiln_stream *stream, const kiln_run_length_decode_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_run_length_decode()
 * needs for the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_run_length_decode_workspace(
    kiln_stream *stream, const kiln_run_length_decode_desc *desc,
    size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__MOVE_OPERATIONS(X)                                               \
  X(kiln_rotate, kiln_rotate_desc, shift)                                      \
  X(kiln_copy_batch, kiln_copy_batch_desc, n)                                  \
  X(kiln_run_length_decode, kiln_run_length_decode_desc, count)
KILN__MOVE_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
