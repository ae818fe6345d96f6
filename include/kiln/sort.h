/* sort.h -- sort keys, or keys with values: whole arrays or segment by segment.
 *
 *   kiln_sort_desc d = {.keys_in = {x, KILN_F32}, .keys_out = {x, KILN_F32},
 *                       .n = n};
 *   st = kiln_sort(stream, &d, NULL);                    // in place
 *
 * All sorts are radix sorts, least significant digit first. They are stable, and
 * their time grows with n and with the bits of a key. Source: Adinets and Merrill,
 * Onesweep: A Faster Least Significant Digit Radix Sort for GPUs, arXiv 2206.01784.
 *
 * Order of the keys. Integers compare as usual. Floats are in IEEE total order, with
 * one exception: every NaN, whatever its sign, comes after +infinity. NaNs are ordered
 * by their bits; kiln_merge() and kiln_search() take all NaNs as equal. -0 comes before
 * +0. `descending` is the exact reverse, with NaN first. Equal keys keep the order of
 * the input in both. Keys keep their bits.
 *
 * Ranges of bits. begin_bit to end_bit sorts by these bits of the key's ordered form
 * only. For unsigned integers these are its bits; for signed ones its bits with the
 * sign flipped. For floats the sign is flipped, and so are all other bits of a
 * negative number; NaNs with a sign then come first. Fewer bits need fewer passes of
 * 8 bits each: 16 bits take half the time of 32. The GPU skips passes in which all
 * keys have the same digit. */
#ifndef KILN_SORT_H
#define KILN_SORT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Keys to sort, and values that move with them. */
typedef struct kiln_sort_desc {
  kiln_array keys_in;    /**< n keys of any type */
  kiln_array keys_out;   /**< n, of the same type; may be keys_in */
  kiln_array values_in;  /**< n elements of any type that go with the keys;
                              without a type: none */
  kiln_array values_out; /**< n, of the same type; may be values_in */
  uint64_t n;            /**< elements */
  bool descending;       /**< the exact reverse of ascending */
  unsigned begin_bit;    /**< lowest bit that counts */
  unsigned end_bit;      /**< one above the highest; 0: all */
} kiln_sort_desc;

/**
 * Sorts keys, and values along with them.
 *
 * Temporary storage: none up to 8,192 keys (fewer with wide keys on small GPUs).
 * Above, n keys and n values, and 0.2 to 1 byte per key; n keys less if the bits need
 * one pass only. Launches: one up to 8,192 keys; above, one plus one per 8 bits,
 * which overlap where the GPU can (9.0); one more in place with an odd number of
 * passes; more beyond 2^31 keys.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for a range of bits that is empty or beyond the
 *         key.
 * In place: yes. Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_sort(kiln_stream *stream,
                                  const kiln_sort_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_sort() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_sort_workspace(kiln_stream *stream,
                                            const kiln_sort_desc *desc,
                                            size_t *bytes);

/** Keys whose sorting order is wanted. */
typedef struct kiln_argsort_desc {
  kiln_array keys;    /**< n keys of any type; stay as they are */
  kiln_array indices; /**< n, of type i32, u32, i64 or u64 */
  uint64_t n;         /**< keys; at most what the indices' type can count */
  bool descending;    /**< the exact reverse of ascending */
  unsigned begin_bit, end_bit; /**< as for kiln_sort() */
} kiln_argsort_desc;

/**
 * Computes the sorting order: keys[indices[0]] is the first key, and equal keys come
 * by ascending index. Argsort reads only keys and writes only indices.
 *
 * Temporary storage and launches as kiln_sort() of pairs; n more keys from three
 * passes on.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_sort().
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_argsort(kiln_stream *stream,
                                     const kiln_argsort_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_argsort() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_argsort_workspace(kiln_stream *stream,
                                               const kiln_argsort_desc *desc,
                                               size_t *bytes);

/** Keys in segments, and values that move with them. */
typedef struct kiln_segmented_sort_desc {
  kiln_array keys_in;    /**< n keys of any type */
  kiln_array keys_out;   /**< n, of the same type; may be keys_in */
  kiln_array values_in;  /**< n elements of any type; without a type: none */
  kiln_array values_out; /**< n, of the same type; may be values_in */
  kiln_array offsets;    /**< n_segments + 1, rising, up to n, of type i32, u32,
                            i64 or u64: segment k is from offsets[k] to
                            offsets[k + 1] */
  uint64_t n;            /**< at most 2^31 */
  uint64_t n_segments;   /**< segments */
  bool descending;       /**< the exact reverse of ascending */
  unsigned begin_bit, end_bit; /**< as for kiln_sort() */
} kiln_segmented_sort_desc;

/**
 * Sorts each segment on its own. Segments may have any mix of lengths: a warp sorts
 * up to 128 keys, a block up to 3,072, and longer segments get one block per tile.
 * Elements that are in no segment are not written. Offsets that descend or exceed n
 * make no segment; the contents of overlapping segments are unspecified.
 *
 * Temporary storage: above n = 3,072 as kiln_sort(), and up to 2 bytes per key more.
 * Launches: a fill and one for n up to 128, two up to 3,072, above three plus one per
 * 8 bits; one more in place with an odd number of passes.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_sort(); KILN_EINVAL also for n above 2^31.
 * In place: yes. Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status
kiln_segmented_sort(kiln_stream *stream, const kiln_segmented_sort_desc *desc,
                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_segmented_sort() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_segmented_sort_workspace(
    kiln_stream *stream, const kiln_segmented_sort_desc *desc, size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__SORT_OPERATIONS(X)                                               \
  X(kiln_sort, kiln_sort_desc, end_bit)                                        \
  X(kiln_argsort, kiln_argsort_desc, end_bit)                                  \
  X(kiln_segmented_sort, kiln_segmented_sort_desc, end_bit)
KILN__SORT_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
