/* select.h -- choose, divide and find: select, unique, partition, split, runs,
 * find, count (lecture row B12; filter).
 *
 *   kiln_select_desc odd = {.x = {.in = {{x, KILN_U32}}},
 *                           .predicate = "x % 2 == 1", .n = n,
 *                           .out = {out, KILN_U32}, .count = {m, KILN_U32}};
 *   st = kiln_select(stream, &odd, NULL);
 *
 * Predicates and keys see what a map sees (ops.h): x, y, z, w (or x0 ... x7) are
 * element i of each input array, before the map of the input; i is the index. So
 * {.in = {keys, values}, .map = "y"} with the predicate "x > 3" keeps the values
 * whose keys are above 3, and {.map = "i", .type = KILN_U32} gives indices.
 * Without a map, elements are moved bit by bit (NaNs stay what they are).
 *
 * Everything is stable: what ends up in the same place keeps its order. Results
 * do not depend on the device. Counts are u32 or u64; u32 needs n < 2^32.
 * Outputs must not overlap inputs. With n = 0 the counts are set to 0.
 *
 * Elements are read once and written once, in one launch, where a function says
 * no more: each tile learns how much the tiles before it keep by decoupled
 * look-back (Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled
 * Look-back, 2016), or, where tiles are very many, from a block that adds up for
 * all. Temporary memory: 8 to 32 bytes a tile of some thousand elements, where
 * nothing else is said. */
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
  const char *predicate; /**< kept if it is true; or */
  kiln_array flags;      /**< n of any type; kept where it is not 0 */
  uint64_t n;            /**< elements */
  kiln_array out;        /**< the kept elements, of x's type; room for n. No
                            type: not wanted */
  kiln_array out_index;  /**< their indices, u32 or u64; room for n; optional */
  kiln_array payload;    /**< n elements of any type, optional, of which */
  kiln_array out_payload; /**< those of the kept elements go here; room for n */
  kiln_array count;       /**< one u32 or u64: how many are kept */
  kiln_code code;
} kiln_select_desc;

/**
 * Keep elements (CUB's DeviceSelect::If and ::Flagged, Thrust's copy_if).
 *
 * @retval see ops.h; KILN_EINVAL also for both a predicate and flags or neither,
 *         and for u32 counts or indices of more than 2^32 - 1 elements.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_select(kiln_stream *stream,
                                    const kiln_select_desc *desc,
                                    const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_select_workspace(kiln_stream *stream,
                                              const kiln_select_desc *desc,
                                              size_t *bytes);

/** The first element of each run of equal ones. */
typedef struct kiln_unique_desc {
  kiln_input x;
  const char *equal; /**< over a, the element before, and b, after the map of x;
                        default "a == b", by which each NaN is a run */
  uint64_t n;
  kiln_array out;         /**< as in kiln_select_desc, as are all below */
  kiln_array out_index;   /**< where the runs start */
  kiln_array payload;     /**< unique by key: x are the keys */
  kiln_array out_payload; /**< the payload of each run's first element */
  kiln_array count;       /**< number of runs */
  kiln_code code;
} kiln_unique_desc;

/**
 * Drop elements that equal the one before (CUB's DeviceSelect::Unique and
 * ::UniqueByKey, Thrust's unique_copy). f16 and bf16 NaNs come out as a NaN.
 *
 * @retval see kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_unique(kiln_stream *stream,
                                    const kiln_unique_desc *desc,
                                    const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_unique_workspace(kiln_stream *stream,
                                              const kiln_unique_desc *desc,
                                              size_t *bytes);

/* ---- Partition --------------------------------------------------------------- */

/** Two or three parts. */
typedef struct kiln_partition_desc {
  kiln_input x;
  const char *first;     /**< true: the element goes to the first part; or */
  kiln_array flags;      /**< n of any type: where it is not 0 */
  const char *second;    /**< if not NULL there are three parts: true for an
                             element that is not in the first: to the second */
  uint64_t n;            /**< elements */
  kiln_array out;        /**< the first part, of x's type. Room for n */
  kiln_array out_second; /**< the second part of three. Room for n */
  kiln_array out_rest;   /**< the last part. Room for n. No type in any of the
                             two: the parts follow each other in out */
  bool rest_reversed;    /**< two parts in out only: the last part starts at
                             out's end and runs backwards, as CUB's does; saves
                             the extra reading */
  kiln_array count;      /**< u32 or u64: elements of the first part; with three
                             parts of the second, too (two values) */
  kiln_code code;
} kiln_partition_desc;

/**
 * Divide in two (flags or a predicate) or three (CUB's DevicePartition, Thrust's
 * stable_partition_copy). Each part keeps its order.
 *
 * Parts that follow each other in one array cannot be placed before all elements
 * are counted: the first blocks of the launch read the input once more for that.
 * Parts in arrays of their own and rest_reversed need no such reading.
 *
 * @retval see kiln_select(); KILN_EINVAL also for only one of out_second and
 *         out_rest with three parts, for out_second with two, and for
 *         rest_reversed with three parts or out_rest.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_partition(kiln_stream *stream,
                                       const kiln_partition_desc *desc,
                                       const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_partition_workspace(
    kiln_stream *stream, const kiln_partition_desc *desc, size_t *bytes);

/* ---- Split ------------------------------------------------------------------- */

/** Most partitions of kiln_split(). */
enum { KILN_MAX_PARTS = 65536 };

/** Any number of partitions, by a key. */
typedef struct kiln_split_desc {
  kiln_input x;
  const char *key;    /**< the partition of an element, an integer from 0 on;
                         what is below or above goes to the last */
  uint32_t parts;     /**< partitions, 1 to KILN_MAX_PARTS */
  uint64_t n;         /**< elements */
  kiln_array out;     /**< n elements of x's type: partition 0, 1, ... */
  kiln_array offsets; /**< parts + 1 of u32 or u64: where each partition starts,
                         and n; optional */
  kiln_code code;
} kiln_split_desc;

/**
 * Split by a key function (lecture row B12): count, prefix sum, scatter, without
 * locks or atomics. Stable.
 *
 * Up to 256 partitions: three launches, elements read twice and written once; a
 * few thousand elements: one launch.
 * More: two such rounds, on the low and the high half of the key's bits, and one
 * launch more for the offsets; temporary memory for n elements and 2 * n keys of
 * 2 bytes. Also 4 bytes for each partition of a round and each resident block.
 *
 * @retval see kiln_select().
 * Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_split(kiln_stream *stream,
                                   const kiln_split_desc *desc,
                                   const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_split_workspace(kiln_stream *stream,
                                             const kiln_split_desc *desc,
                                             size_t *bytes);

/* ---- Runs -------------------------------------------------------------------- */

/** Runs of equal elements. */
typedef struct kiln_run_length_desc {
  kiln_input x;
  const char *equal;  /**< as in kiln_unique_desc */
  uint64_t n;         /**< elements */
  kiln_array values;  /**< first element of each run, of x's type; room for as
                         many as there can be; optional, as are the next two */
  kiln_array offsets; /**< where the runs start, u32 or u64 */
  kiln_array lengths; /**< elements of each run, u32 or u64 */
  kiln_array count;   /**< one u32 or u64: number of runs */
  kiln_code code;
} kiln_run_length_desc;

/**
 * All runs (CUB's DeviceRunLengthEncode::Encode); up to n of them.
 *
 * @retval see kiln_select(). Temporary memory: 16 bytes a tile.
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_run_length_encode(kiln_stream *stream,
                                               const kiln_run_length_desc *desc,
                                               const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_run_length_encode_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/** The runs of two elements and more (CUB's ::NonTrivialRuns); up to n / 2. */
KILN_INLINE kiln_status kiln_run_length_non_trivial(
    kiln_stream *stream, const kiln_run_length_desc *desc,
    const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_run_length_non_trivial_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/* ---- Find and count ---------------------------------------------------------- */

/** What a predicate says of the elements. */
typedef struct kiln_find_desc {
  kiln_input x;          /**< its arrays; a map is not used */
  const char *predicate; /**< NULL: is the element not 0 */
  uint64_t n;            /**< elements */
  kiln_array
      out; /**< one value: u32 or u64 for kiln_find() and kiln_count(), any
                     type of integer for kiln_any() and kiln_all() */
  kiln_code code;
} kiln_find_desc;

/**
 * Index of the first element for which the predicate holds; n if there is none.
 * All blocks advance side by side and stop soon after a hit, so that time follows
 * the answer. Temporary memory: 16 bytes a resident block.
 *
 * @retval see kiln_select().
 * Threads: any. Blocks: only to compile. One launch.
 */
KILN_INLINE kiln_status kiln_find(kiln_stream *stream,
                                  const kiln_find_desc *desc,
                                  const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_find_workspace(kiln_stream *stream,
                                            const kiln_find_desc *desc,
                                            size_t *bytes);

/** For how many elements the predicate holds; otherwise as kiln_find(), but all
 * elements are read. */
KILN_INLINE kiln_status kiln_count(kiln_stream *stream,
                                   const kiln_find_desc *desc,
                                   const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_count_workspace(kiln_stream *stream,
                                             const kiln_find_desc *desc,
                                             size_t *bytes);

/** 1 if the predicate holds for any element, else 0; stops as kiln_find(). */
KILN_INLINE kiln_status kiln_any(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_any_workspace(kiln_stream *stream,
                                           const kiln_find_desc *desc,
                                           size_t *bytes);

/** 1 if the predicate holds for all elements (also for none), else 0. */
KILN_INLINE kiln_status kiln_all(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
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
