/* select.h -- choose, divide and find: select, unique, partition, split, runs,
 * find, count.
 *
 *   kiln_select_desc odd = {.x = {.in = {{x, KILN_U32}}},
 *                           .predicate = "x % 2 == 1", .n = n,
 *                           .out = {out, KILN_U32}, .count = {m, KILN_U32}};
 *   st = kiln_select(stream, &odd, NULL);
 *
 * Predicates and keys see what a map sees (ops.h): x, y, z, w (or x0 ... x7) are
 * element i of each input array, before the input's map is applied; i is the
 * index. So {.in = {keys, values}, .map = "y"} with the predicate "x > 3" keeps
 * the values whose keys are above 3, and {.map = "i", .type = KILN_U32} gives
 * indices. Without a map, elements are copied bit by bit, so NaNs keep their bits.
 *
 * All are stable: elements with the same destination keep their order. Results do
 * not depend on the device. Counts are u32 or u64; u32 needs n < 2^32. Outputs
 * must not overlap inputs. With n = 0 the counts are set to 0.
 *
 * Unless a contract says otherwise, elements are read once and written once, in
 * one launch. Each tile learns by decoupled look-back how many elements the tiles
 * before it keep (Merrill and Garland, Single-pass Parallel Prefix Scan with
 * Decoupled Look-back, 2016). Where there are very many tiles, block 0 computes the
 * prefix of every tile instead. Temporary storage is then 8 to 32 bytes per tile
 * of some thousand elements. */
#ifndef KILN_SELECT_H
#define KILN_SELECT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Select ------------------------------------------------------------------ */

/** The elements for which a predicate holds or a flag is set. */
typedef struct kiln_select_desc {
  kiln_input x;          /**< n elements; 7 arrays at most beside flags */
  const char *predicate; /**< keeps an element if true; either this or flags */
  kiln_array flags;      /**< n of any type: keeps an element where not 0 */
  uint64_t n;            /**< elements */
  kiln_array out;        /**< the kept elements, of x's type; space for n. No
                            type: not wanted */
  kiln_array out_index; /**< their indices, u32 or u64; space for n; optional */
  kiln_array payload;   /**< n elements of any type, optional */
  kiln_array out_payload; /**< payload of the kept elements; space for n */
  kiln_array count;       /**< one u32 or u64: how many are kept */
  kiln_code code;         /**< what the texts may use */
} kiln_select_desc;

/**
 * Keeps the elements that a predicate or a flag selects (CUB's DeviceSelect::If
 * and ::Flagged, Thrust's copy_if).
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for both a predicate and flags or neither, and
 *         for u32 counts or indices of more than 2^32 - 1 elements.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_select(kiln_stream *stream,
                                    const kiln_select_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_select() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_select_workspace(kiln_stream *stream,
                                              const kiln_select_desc *desc,
                                              size_t *bytes);

/** The first element of each run of equal ones. */
typedef struct kiln_unique_desc {
  kiln_input x;      /**< n elements */
  const char *equal; /**< over a, the element before, and b, both after the map
                        of x; default "a == b", which makes each NaN a run */
  uint64_t n;        /**< elements */
  kiln_array out;    /**< as in kiln_select_desc, as are all below */
  kiln_array out_index;   /**< where the runs start */
  kiln_array payload;     /**< unique by key: x are the keys */
  kiln_array out_payload; /**< the payload of each run's first element */
  kiln_array count;       /**< number of runs */
  kiln_code code;         /**< what the texts may use */
} kiln_unique_desc;

/**
 * Drops elements that equal the one before (CUB's DeviceSelect::Unique and
 * ::UniqueByKey, Thrust's unique_copy). NaNs of f16 and bf16 come out as a NaN
 * with other bits.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_unique(kiln_stream *stream,
                                    const kiln_unique_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_unique() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_unique_workspace(kiln_stream *stream,
                                              const kiln_unique_desc *desc,
                                              size_t *bytes);

/* ---- Partition --------------------------------------------------------------- */

/** Two or three parts of an array. */
typedef struct kiln_partition_desc {
  kiln_input x;       /**< n elements */
  const char *first;  /**< true: the element goes to the first part. Either this
                            or flags */
  kiln_array flags;   /**< n of any type: not 0 sends to the first part */
  const char *second; /**< if not NULL there are three parts: an element that is
                             not in the first goes to the second if true */
  uint64_t n;         /**< elements */
  kiln_array out;     /**< the first part, of x's type. Space for n */
  kiln_array out_second; /**< the second part of three. Space for n */
  kiln_array out_rest;   /**< the last part. Space for n. If neither this nor
                             out_second has a type, the parts follow each other in
                             out */
  bool rest_reversed;    /**< two parts in out only: the last part starts at
                             out's end and runs backwards, as CUB's does; saves
                             the extra reading */
  kiln_array count;      /**< u32 or u64: elements of the first part; with three
                             parts two values, the second for the second part */
  kiln_code code;        /**< what the texts may use */
} kiln_partition_desc;

/**
 * Divides elements into two parts (by flags or a predicate) or three (CUB's
 * DevicePartition, Thrust's stable_partition_copy). Each part keeps its order.
 *
 * Parts that follow each other in one array cannot be placed before all elements
 * are counted, so the first blocks of the launch read the input once more. Parts
 * in separate arrays and rest_reversed avoid that.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select(); KILN_EINVAL also for only one of out_second and out_rest
 *         with three parts, for out_second with two, and for rest_reversed with
 *         three parts or out_rest.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_partition(kiln_stream *stream,
                                       const kiln_partition_desc *desc,
                                       const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_partition() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_partition_workspace(
    kiln_stream *stream, const kiln_partition_desc *desc, size_t *bytes);

/* ---- Split ------------------------------------------------------------------- */

/** Most partitions of kiln_split(). */
enum { KILN_MAX_PARTS = 65536 };

/** Any number of partitions, by a key. */
typedef struct kiln_split_desc {
  kiln_input x;       /**< n elements */
  const char *key;    /**< the partition of an element, an integer from 0. A
                         value outside of 0 to parts - 1 means the last one */
  uint32_t parts;     /**< partitions, 1 to KILN_MAX_PARTS */
  uint64_t n;         /**< elements */
  kiln_array out;     /**< n elements of x's type: partition 0, 1, ... */
  kiln_array offsets; /**< parts + 1 of u32 or u64: where each partition starts,
                         and n; optional */
  kiln_code code;     /**< what the texts may use */
} kiln_split_desc;

/**
 * Splits elements by a key function: count, prefix sum, scatter, without locks or
 * atomics (multi-split; Ashkiani et al., GPU Multisplit, 2016). Stable.
 *
 * Up to 256 partitions: three launches; elements are read twice and written once.
 * A few thousand elements: one launch. More partitions: two such rounds, on the
 * low and the high half of the key's bits, and one more launch for the offsets;
 * temporary storage for n elements and 2 * n keys of 2 bytes. In all cases 4 bytes
 * per partition of a round and resident block.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select(); KILN_EINVAL also for no partitions or more than
 *         KILN_MAX_PARTS.
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_split(kiln_stream *stream,
                                   const kiln_split_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_split() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_split_workspace(kiln_stream *stream,
                                             const kiln_split_desc *desc,
                                             size_t *bytes);

/* ---- Runs -------------------------------------------------------------------- */

/** Runs of equal elements. */
typedef struct kiln_run_length_desc {
  kiln_input x;       /**< n elements */
  const char *equal;  /**< as in kiln_unique_desc */
  uint64_t n;         /**< elements */
  kiln_array values;  /**< first element of each run, of x's type; space for as
                         many as there can be; optional, as are the next two */
  kiln_array offsets; /**< where the runs start, u32 or u64 */
  kiln_array lengths; /**< elements of each run, u32 or u64 */
  kiln_array count;   /**< one u32 or u64: number of runs */
  kiln_code code;     /**< what the texts may use */
} kiln_run_length_desc;

/**
 * Finds all runs of equal elements (CUB's DeviceRunLengthEncode::Encode); at most n
 * of them. Temporary storage: 16 bytes per tile.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_run_length_encode(kiln_stream *stream,
                                               const kiln_run_length_desc *desc,
                                               const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_run_length_encode() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_run_length_encode_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/**
 * Finds the runs of at least two equal elements (CUB's
 * DeviceRunLengthEncode::NonTrivialRuns); at most n / 2 of them. Temporary storage:
 * 16 bytes per tile.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_run_length_non_trivial(
    kiln_stream *stream, const kiln_run_length_desc *desc,
    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_run_length_non_trivial() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_run_length_non_trivial_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/* ---- Find and count ---------------------------------------------------------- */

/** A predicate over the elements, with one result. */
typedef struct kiln_find_desc {
  kiln_input x;          /**< its arrays; a map is not used */
  const char *predicate; /**< NULL: the element is not 0 */
  uint64_t n;            /**< elements */
  kiln_array
      out; /**< one value: u32 or u64 for kiln_find() and kiln_count(), any
                     type of integer for kiln_any() and kiln_all() */
  kiln_code code; /**< what the texts may use */
} kiln_find_desc;

/**
 * Finds the first element for which the predicate holds. The result is its index, or
 * n if there is none.
 *
 * All blocks advance side by side and stop soon after a hit, so the time depends on
 * the result. Temporary storage: 16 bytes per resident block.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_find(kiln_stream *stream,
                                  const kiln_find_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_find() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_find_workspace(kiln_stream *stream,
                                            const kiln_find_desc *desc,
                                            size_t *bytes);

/**
 * Counts the elements for which the predicate holds. All elements are read.
 * Temporary storage: 16 bytes per resident block.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_count(kiln_stream *stream,
                                   const kiln_find_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_count() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_count_workspace(kiln_stream *stream,
                                             const kiln_find_desc *desc,
                                             size_t *bytes);

/**
 * Checks whether the predicate holds for any element: 1 if so, else 0, also for
 * n = 0. Stops as kiln_find() does and needs the same temporary storage.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_any(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_any() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_any_workspace(kiln_stream *stream,
                                           const kiln_find_desc *desc,
                                           size_t *bytes);

/**
 * Checks whether the predicate holds for all elements: 1 if so, also for n = 0, else
 * 0. Stops as kiln_find() does and needs the same temporary storage.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_all(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_all() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_all_workspace(kiln_stream *stream,
                                           const kiln_find_desc *desc,
                                           size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__SELECT_OPERATIONS(X)                                             \
  X(kiln_select, kiln_select_desc, code)                                       \
  X(kiln_unique, kiln_unique_desc, code)                                       \
  X(kiln_partition, kiln_partition_desc, code)                                 \
  X(kiln_split, kiln_split_desc, code)                                         \
  X(kiln_run_length_encode, kiln_run_length_desc, code)                        \
  X(kiln_run_length_non_trivial, kiln_run_length_desc, code)                   \
  X(kiln_find, kiln_find_desc, code)                                           \
  X(kiln_count, kiln_find_desc, code)                                          \
  X(kiln_any, kiln_find_desc, code)                                            \
  X(kiln_all, kiln_find_desc, code)
KILN__SELECT_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
