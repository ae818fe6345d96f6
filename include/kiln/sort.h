/* sort.h -- sort keys, or keys with values, whole arrays or segment by segment
 * (lecture row B14).
 *
 *   kiln_sort_desc d = {.keys_in = {x, KILN_F32}, .keys_out = {x, KILN_F32},
 *                       .n = n};
 *   st = kiln_sort(stream, &d, NULL);                    // in place
 *
 * All sorts are radix sorts, least significant digit first: stable, in time
 * that grows with n and with the bits of a key (Adinets and Merrill, Onesweep: A
 * Faster Least Significant Digit Radix Sort for GPUs, arXiv 2206.01784).
 *
 * Order of the keys: integers as usual. Floats in IEEE total order, save that
 * every NaN, whatever its sign, comes after +infinity; -0 comes before +0.
 * `descending` is the exact reverse, NaN first. Equal keys stay in the order of
 * the input in both. Keys keep their bits.
 *
 * A range of bits, begin_bit to end_bit, sorts by these bits of the key's ordered
 * form alone: of integers these are their bits, with the sign turned round where
 * there is one. For floats (of which the sign, and all the rest where it is
 * set, is turned round) NaNs with a sign then come first. Fewer bits are fewer
 * passes, 8 bits each: 16 take half the time of 32. Passes in which all keys have
 * the same digit are left out anyhow, which the GPU itself sees. */
#ifndef KILN_SORT_H
#define KILN_SORT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_sort_desc {
  kiln_array keys_in;    /**< n keys of any type */
  kiln_array keys_out;   /**< n, of the same type; may be keys_in */
  kiln_array values_in;  /**< n elements of any type that go with the keys;
                              without a type: none */
  kiln_array values_out; /**< n, of the same type; may be values_in */
  uint64_t n;
  bool descending;
  unsigned begin_bit; /**< lowest bit that counts */
  unsigned end_bit;   /**< one above the highest; 0: all */
} kiln_sort_desc;

/**
 * Sort keys, and values along with them.
 *
 * Memory: nothing up to 8,192 keys (with wide keys less on small GPUs). Above,
 * room for n keys and n values, and 0.2 to 1 byte a key beside; n keys less if
 * the bits make one pass.
 * @retval see ops.h; KILN_EINVAL also for a range of bits that is empty or
 *         beyond the key.
 * Threads: any. Blocks: only to compile. Launches: one up to 8,192 keys; else one
 * and one for each 8 bits, which overlap where the GPU can (9.0); one more in
 * place with an odd number of passes; more beyond 2^31 keys.
 */
KILN_INLINE kiln_status kiln_sort(kiln_stream *stream,
                                  const kiln_sort_desc *desc,
                                  const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_sort_workspace(kiln_stream *stream,
                                            const kiln_sort_desc *desc,
                                            size_t *bytes);

typedef struct kiln_argsort_desc {
  kiln_array keys;    /**< n keys of any type; stay as they are */
  kiln_array indices; /**< n, of type i32, u32, i64 or u64 */
  uint64_t n;         /**< what the indices' type can count */
  bool descending;
  unsigned begin_bit, end_bit; /**< as for kiln_sort() */
} kiln_argsort_desc;

/**
 * Where the keys are in sorting order: keys[indices[0]] is the first, equal keys
 * by rising index. Neither reads indices nor writes keys at its ends.
 *
 * Memory, statuses and launches as kiln_sort() of pairs; n more keys from three
 * passes on.
 */
KILN_INLINE kiln_status kiln_argsort(kiln_stream *stream,
                                     const kiln_argsort_desc *desc,
                                     const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_argsort_workspace(kiln_stream *stream,
                                               const kiln_argsort_desc *desc,
                                               size_t *bytes);

typedef struct kiln_segmented_sort_desc {
  kiln_array keys_in;    /**< n keys of any type */
  kiln_array keys_out;   /**< n, of the same type; may be keys_in */
  kiln_array values_in;  /**< n elements of any type; without a type: none */
  kiln_array values_out; /**< n, of the same type; may be values_in */
  kiln_array offsets;    /**< n_segments + 1, rising, up to n, of type i32, u32,
                            i64 or u64: segment k is from offsets[k] to
                            offsets[k + 1] */
  uint64_t n;            /**< at most 2^31 */
  uint64_t n_segments;
  bool descending;
  unsigned begin_bit, end_bit; /**< as for kiln_sort() */
} kiln_segmented_sort_desc;

/**
 * Sort each segment by itself, whatever mix of lengths they have: up to 128 keys
 * by a warp, up to 3,072 by a block, longer ones by as many blocks as they have
 * tiles. What lies in no segment is not written. Offsets that fall or exceed n
 * make no segment; segments that overlap get unspecified contents.
 *
 * Memory: for n above 3,072 as kiln_sort(), and up to 2 bytes a key beside.
 * @retval see ops.h; KILN_EINVAL also as kiln_sort(), and for n above 2^31.
 * Threads: any. Blocks: only to compile. Launches: a fill and one for n up to 128,
 * two up to 3,072, else three and one for each 8 bits; one more in place with an
 * odd number of passes.
 */
KILN_INLINE kiln_status
kiln_segmented_sort(kiln_stream *stream, const kiln_segmented_sort_desc *desc,
                    const kiln_workspace *workspace);
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
