/* sort.h -- sort keys, or keys with values, in whole arrays or in segments.
 *
 *   kiln_sort_desc d = {.keys_in = {x, KILN_F32}, .keys_out = {x, KILN_F32},
 *                       .n = n};
 *   st = kiln_sort(stream, &d, NULL);                    // in place
 *
 * All sorts are stable radix sorts that start with the least significant digit.
 * The time is proportional to n and to the number of bits of a key. Source:
 * Adinets and Merrill, Onesweep: A Faster Least Significant Digit Radix Sort
 * for GPUs, arXiv 2206.01784.
 *
 * Order of the keys: Integers are ordered by value. Floats are in IEEE total
 * order, with one exception: every NaN, whatever its sign, comes after
 * +infinity. NaNs are ordered by their bits, while kiln_merge() and
 * kiln_search() treat all NaNs as equal. -0 comes before +0. `descending`
 * reverses this order, so NaNs come first. In both orders, equal keys keep the
 * order of the input. Sorting never changes the bits of a key.
 *
 * Ranges of bits: begin_bit and end_bit restrict the sort to a range of bits of
 * the key's ordered form. The ordered form of an unsigned integer is the
 * integer itself. For a signed integer, the sign bit is flipped. For a float,
 * the sign bit is flipped, and in negative numbers all other bits as well;
 * negative NaNs then come first. Each pass sorts by 8 bits, so 16 bits take
 * half the time of 32 bits. The GPU skips passes in which all keys have the
 * same digit. */
#ifndef KILN_SORT_H
#define KILN_SORT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Description of a sort: keys, and optional values that move with the keys. */
typedef struct kiln_sort_desc {
  kiln_array keys_in;   /**< input: n keys of any type */
  kiln_array keys_out;  /**< receives the n sorted keys, with the type of
                             keys_in; may be the same array as keys_in */
  kiln_array values_in; /**< optional input: n values of any type that move with
                             the keys; no type means that there are no values */
  /** Receives the n values in the order of the sorted keys, with the type of
   * values_in; may be the same array as values_in. */
  kiln_array values_out;
  uint64_t n;         /**< number of input keys */
  bool descending;    /**< sort in descending order, the exact reverse of
                           ascending order */
  unsigned begin_bit; /**< lowest bit of the keys that the sort considers */
  unsigned end_bit;   /**< number of the bit above the highest bit that the sort
                           considers; 0 selects all bits of the keys */
} kiln_sort_desc;

/**
 * Sorts keys, and values along with them.
 *
 * Up to 8,192 keys need no temporary storage (the limit is lower for wide keys
 * on small GPUs). More keys need storage for n keys and n values, and 0.2 to 1
 * byte per key. If the range of bits needs only one pass, the storage for the n
 * keys is not needed. Values that are structs or KILN_C128, except those of 1, 2,
 * 4 or 8 bytes that are aligned to their size, move once, after the sort. They
 * need storage for 4 bytes per key (8 bytes from 2^32 keys on) instead of n
 * values, and in place for n values as well.
 *
 * Up to 8,192 keys need one launch. More keys need one launch, plus one per 8
 * bits; on GPUs of compute capability 9.0 and above these launches overlap. An
 * in-place sort with an odd number of passes needs one more launch. More than
 * 2^31 keys need further launches.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if the range
 *         of bits is empty or exceeds the width of the key.
 * The sort works in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_sort(kiln_stream *stream,
                                  const kiln_sort_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_sort() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_sort_workspace(kiln_stream *stream,
                                            const kiln_sort_desc *desc,
                                            size_t *bytes);

/** Description of an argsort: the keys for which kiln_argsort() computes the
 * sorted order. */
typedef struct kiln_argsort_desc {
  kiln_array keys;    /**< input: n keys of any type, which are not modified */
  kiln_array indices; /**< receives n indices of type i32, u32, i64 or u64: the
                           positions of the keys in sorted order */
  uint64_t n;      /**< number of keys, at most what the type of `indices` can
                        represent */
  bool descending; /**< sort in descending order, the exact reverse of ascending
                        order */
  unsigned begin_bit, end_bit; /**< range of the keys' bits that the sort
                                    considers; see kiln_sort_desc.begin_bit */
} kiln_argsort_desc;

/**
 * Computes the sorted order of keys: keys[indices[0]] is the first key. Equal
 * keys are ordered by ascending index. Argsort reads only keys and writes only
 * indices.
 *
 * Temporary storage and launches are the same as for kiln_sort() with values.
 * From three passes on, argsort needs additional storage for n keys.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_sort().
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_argsort(kiln_stream *stream,
                                     const kiln_argsort_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_argsort() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_argsort_workspace(kiln_stream *stream,
                                               const kiln_argsort_desc *desc,
                                               size_t *bytes);

/** Description of a sort by a key that is computed from each element. */
typedef struct kiln_key_sort_desc {
  kiln_array in;  /**< input: n elements of any type, structs included */
  kiln_array out; /**< receives the n sorted elements, with the type of in. It
                       may be the same array as in if the elements have 1, 2, 4
                       or 8 bytes and are aligned to their size */
  uint64_t n;     /**< number of elements */
  /** User expression that returns the key of element x, an unsigned integer. It
   * may use what the expressions of kiln_map() may use. Required. */
  const char *key;
  kiln_dtype
      key_type;    /**< type of the key: u8, u16, u32 (the default) or u64 */
  bool descending; /**< sort in descending order of the keys, in which equal
                            keys keep the order of the input, too */
  unsigned begin_bit, end_bit; /**< range of the keys' bits that the sort
                                    considers; see kiln_sort_desc.begin_bit */
  kiln_code code; /**< parameters and functions that the user expression can
                       use */
} kiln_key_sort_desc;

/**
 * Sorts elements by a key that is computed from each element, such as a member
 * of a struct or the number of set bits. The sort is stable. The key is evaluated
 * once per element. kiln_merge_sort() sorts by a comparison instead.
 *
 * Elements of 1, 2, 4 or 8 bytes move in every pass. Of all other elements,
 * indices are sorted, and each element moves once; such calls do not work in
 * place. Temporary storage holds n keys twice, or n keys and n indices, and that
 * of kiln_sort() with values. A call takes the launches of kiln_sort(), one for
 * the keys, and possibly one that moves the elements.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_sort(). Returns KILN_EINVAL also if `key` is
 *         NULL, or if the type of the key is not valid.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_key_sort(kiln_stream *stream,
                                      const kiln_key_sort_desc *desc,
                                      const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_key_sort() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_key_sort_workspace(kiln_stream *stream,
                                                const kiln_key_sort_desc *desc,
                                                size_t *bytes);

/** Description of a segmented sort: keys to sort within segments, and optional
 * values that move with the keys. */
typedef struct kiln_segmented_sort_desc {
  kiln_array keys_in;   /**< input: n keys of any type */
  kiln_array keys_out;  /**< receives the n sorted keys, with the type of
                             keys_in; may be the same array as keys_in */
  kiln_array values_in; /**< optional input: n values of any type that move with
                             the keys; no type means that there are no values */
  /** Receives the n values in the order of the sorted keys, with the type of
   * values_in; may be the same array as values_in. */
  kiln_array values_out;
  /** Boundaries of the segments: n_segments + 1 non-decreasing elements of type
   * i32, u32, i64 or u64, at most n. Segment k consists of the keys offsets[k]
   * to offsets[k + 1] - 1. */
  kiln_array offsets;
  uint64_t n;          /**< number of keys, at most 2^31 */
  uint64_t n_segments; /**< number of segments */
  bool descending;     /**< sort in descending order, the exact reverse of
                            ascending order */
  unsigned begin_bit, end_bit; /**< range of the keys' bits that the sort
                                    considers; see kiln_sort_desc.begin_bit */
} kiln_segmented_sort_desc;

/**
 * Sorts each segment separately. Segments may have any mix of lengths: a warp
 * sorts up to 128 keys, a block up to 3,072, and longer segments get one block
 * per tile. Elements outside all segments are not written. A pair of offsets
 * that descends or exceeds n is not a segment. The contents of overlapping
 * segments are unspecified.
 *
 * Up to n = 3,072 the temporary storage takes less than 1 KiB. Above, the sort
 * needs the storage of kiln_sort() and up to 2 more bytes per key. Every sort
 * needs one fill. It needs one launch for n up to 128, two launches up to
 * 3,072, and three launches plus one per 8 bits above. An in-place sort with an
 * odd number of passes needs one more launch.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_sort(). Returns KILN_EINVAL also for n
 *         above 2^31.
 * The sort works in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status
kiln_segmented_sort(kiln_stream *stream, const kiln_segmented_sort_desc *desc,
                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_segmented_sort() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_segmented_sort_workspace(
    kiln_stream *stream, const kiln_segmented_sort_desc *desc, size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__SORT_OPERATIONS(X)                                               \
  X(kiln_sort, kiln_sort_desc, end_bit)                                        \
  X(kiln_argsort, kiln_argsort_desc, end_bit)                                  \
  X(kiln_key_sort, kiln_key_sort_desc, code)                                   \
  X(kiln_segmented_sort, kiln_segmented_sort_desc, end_bit)
KILN__SORT_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
