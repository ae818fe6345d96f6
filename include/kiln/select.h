/* select.h -- operations that choose, divide and find elements: select, unique,
 * partition, split, run-length encoding, find and count.
 *
 *   kiln_select_desc odd = {.x = {.in = {{x, KILN_U32}}},
 *                           .predicate = "x % 2 == 1", .n = n,
 *                           .out = {out, KILN_U32}, .count = {m, KILN_U32}};
 *   st = kiln_select(stream, &odd, NULL);
 *
 * Predicates and keys are user expressions (ops.h) that see the same names as a
 * map: x, y, z, w (or x0 ... x7) are element i of each input array, before the
 * map of the input is applied, and i is the index. For example, {.in = {keys,
 * values}, .map = "y"} with the predicate "x > 3" keeps the values whose keys
 * are above 3. {.map = "i", .type = KILN_U32} returns indices. Without a map,
 * elements are copied bit by bit, so NaNs keep their bits.
 *
 * All operations are stable: elements with the same destination keep their
 * order. Results do not depend on the device. Counts have type u32 or u64; u32
 * requires n < 2^32. Outputs must not overlap inputs. For n = 0 the counts are
 * set to 0.
 *
 * Unless a contract says otherwise, each element is read once and written once,
 * in one launch. Each tile determines by decoupled look-back how many elements
 * the preceding tiles keep (Merrill and Garland, Single-pass Parallel Prefix
 * Scan with Decoupled Look-back, 2016). If there are very many tiles, block 0
 * computes the prefix of every tile instead. The temporary storage takes 8 to
 * 32 bytes per tile of some thousand elements. */
#ifndef KILN_SELECT_H
#define KILN_SELECT_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Select -------------------------------------------------------------- */

/** Description of a selection: the elements for which a predicate is true or a
 * flag is set. */
typedef struct kiln_select_desc {
  kiln_input x; /**< input: n elements of at most 8 arrays, or 7 if `flags` is
                     given */
  /** User expression for the predicate; elements for which it is true are kept.
   * Either `predicate` or `flags` must be given. */
  const char *predicate;
  kiln_array flags; /**< array of n elements of any type; an input element is
                         kept if its flag is not 0 */
  uint64_t n;       /**< number of input elements */
  /** Receives the kept elements, which have the type of x; needs space for n
   * elements. No type means that the elements are not wanted. */
  kiln_array out;
  kiln_array out_index; /**< optional; receives the indices of the kept elements
                             as u32 or u64; needs space for n indices */
  /** Optional input: n elements of any type; the elements with the indices of
   * the kept elements are selected, too. */
  kiln_array payload;
  kiln_array out_payload; /**< receives the payload of the kept elements; needs
                               space for n elements */
  kiln_array count; /**< receives the number of kept elements as one u32 or
                         u64 */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
} kiln_select_desc;

/**
 * Keeps the elements that a predicate or a flag selects (like CUB's
 * DeviceSelect::If and ::Flagged, and Thrust's copy_if).
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if both a
 *         predicate and flags are given, or neither. The status is also
 *         KILN_EINVAL if u32 counts or indices are used with more than 2^32 - 1
 *         elements.
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_select(kiln_stream *stream,
                                    const kiln_select_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_select() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_select_workspace(kiln_stream *stream,
                                              const kiln_select_desc *desc,
                                              size_t *bytes);

/** Description of an operation that keeps the first element of each run of
 * equal elements. */
typedef struct kiln_unique_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  /** User expression that is true if two neighbouring elements are equal: a is
   * the preceding element and b the element itself. If x has a map (an
   * expression that computes the elements), a and b are results of the map.
   * Default: "a == b", which makes each NaN a run of its own. */
  const char *equal;
  uint64_t n;           /**< number of input elements */
  kiln_array out;       /**< receives the first element of each run; see
                             kiln_select_desc.out */
  kiln_array out_index; /**< optional; receives the index at which each run
                             starts, as u32 or u64 */
  kiln_array payload; /**< optional input: n elements of any type that move with
                           x; x then holds the keys (unique by key) */
  kiln_array out_payload; /**< receives the payload elements that belong to the
                               first elements of the runs */
  kiln_array count;       /**< receives the number of runs as one u32 or u64 */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_unique_desc;

/**
 * Drops each element that equals the preceding element (like CUB's
 * DeviceSelect::Unique and ::UniqueByKey, and Thrust's unique_copy). The bits
 * of f16 and bf16 NaNs may change.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_unique(kiln_stream *stream,
                                    const kiln_unique_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_unique() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_unique_workspace(kiln_stream *stream,
                                              const kiln_unique_desc *desc,
                                              size_t *bytes);

/* ---- Partition ----------------------------------------------------------- */

/** Description of a partition, the division of an array into two or three
 * parts. */
typedef struct kiln_partition_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  /** User expression; elements for which it is true go to the first part.
   * Either `first` or `flags` must be given. */
  const char *first;
  kiln_array flags; /**< array of n elements of any type; an input element goes
                         to the first part if its flag is not 0 */
  /** User expression or NULL. If it is given, there are three parts: the second
   * part consists of the elements outside the first part for which the
   * expression is true. */
  const char *second;
  uint64_t n;     /**< number of input elements */
  kiln_array out; /**< receives the first part, with the type of x; needs space
                       for n elements */
  kiln_array out_second; /**< receives the second part if there are three parts;
                              needs space for n elements */
  /** Receives the last part; needs space for n elements. If neither out_rest
   * nor out_second has a type, all parts are stored in `out`, one after
   * another. */
  kiln_array out_rest;
  /** Only for two parts in `out`: the last part is stored in reverse order from
   * the end of `out`, as in CUB. The input is then read only once. */
  bool rest_reversed;
  /** Receives the number of elements in the first part as u32 or u64. If there
   * are three parts, the number of elements in the second part follows as a
   * second value. */
  kiln_array count;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_partition_desc;

/**
 * Divides elements into two parts (by flags or a predicate) or three parts
 * (like CUB's DevicePartition and Thrust's stable_partition_copy). Each part
 * keeps the order of its elements.
 *
 * If the parts follow each other in one array, all elements must be counted
 * before any can be stored. The first blocks of the launch therefore read the
 * input one more time. Separate output arrays and rest_reversed avoid that.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select(). Returns KILN_EINVAL also if there
 *         are three parts and only one of out_second and out_rest is given. The
 *         status is also KILN_EINVAL if there are two parts and out_second is
 *         given, and if rest_reversed is set with three parts or with out_rest.
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_partition(kiln_stream *stream,
                                       const kiln_partition_desc *desc,
                                       const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_partition() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_partition_workspace(
    kiln_stream *stream, const kiln_partition_desc *desc, size_t *bytes);

/* ---- Split --------------------------------------------------------------- */

/** The largest number of partitions of kiln_split(). */
enum { KILN_MAX_PARTS = 65536 };

/** Description of a split, the division of an array into any number of
 * partitions by a key. */
typedef struct kiln_split_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  /** User expression that returns the partition of an element, an integer from
   * 0 to parts - 1. Any other value selects the last partition. */
  const char *key;
  uint32_t parts; /**< number of partitions, 1 to KILN_MAX_PARTS */
  uint64_t n;     /**< number of input elements */
  kiln_array out; /**< receives n elements of x's type, ordered by partition */
  /** Optional; receives the start of each partition and, as the last
   * element, n: parts + 1 elements of type u32 or u64. */
  kiln_array offsets;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_split_desc;

/**
 * Splits elements by a key function. The algorithm counts the elements per
 * partition, computes prefix sums and scatters the elements, without locks or
 * atomics (multi-split; Ashkiani et al., GPU Multisplit, 2016). The split is
 * stable.
 *
 * For up to 256 partitions there are three launches; elements are read twice
 * and written once. For only a few thousand elements there is one launch. More
 * than 256 partitions need two such rounds, on the low and the high half of the
 * key's bits, and one more launch for the offsets. They also need temporary
 * storage for n elements and for 2 * n keys of 2 bytes. In all cases the
 * temporary storage takes 4 more bytes per resident block and partition of a
 * round.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select(). Returns KILN_EINVAL also if
 *         `parts` is 0 or above KILN_MAX_PARTS.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_split(kiln_stream *stream,
                                   const kiln_split_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_split() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_split_workspace(kiln_stream *stream,
                                             const kiln_split_desc *desc,
                                             size_t *bytes);

/* ---- Runs ---------------------------------------------------------------- */

/** Description of a run-length encoding, which finds the runs of equal elements
 * in an array. */
typedef struct kiln_run_length_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  /** User expression over two adjacent elements a and b that is true if they
   * are equal; see kiln_unique_desc.equal. */
  const char *equal;
  uint64_t n; /**< number of input elements */
  /** Optional; receives the first element of each run, with the type of x;
   * needs space for the largest possible number of runs. */
  kiln_array values;
  /** Optional; receives the index at which each run starts, as u32 or u64;
   * needs space for the largest possible number of runs. */
  kiln_array offsets;
  /** Optional; receives the number of elements of each run, as u32 or u64;
   * needs space for the largest possible number of runs. */
  kiln_array lengths;
  kiln_array count; /**< receives the number of runs as one u32 or u64 */
  kiln_code code;   /**< parameters and functions that the user expressions can
                         use */
} kiln_run_length_desc;

/**
 * Finds all runs of equal elements (like CUB's DeviceRunLengthEncode::Encode).
 * There are at most n runs. The temporary storage takes 16 to 24 bytes per tile.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_run_length_encode(kiln_stream *stream,
                                               const kiln_run_length_desc *desc,
                                               const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_run_length_encode()
 * needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_run_length_encode_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/**
 * Finds the runs of at least two equal elements (like CUB's
 * DeviceRunLengthEncode::NonTrivialRuns). There are at most n / 2 such runs.
 * The temporary storage takes 16 bytes per tile.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_run_length_non_trivial(
    kiln_stream *stream, const kiln_run_length_desc *desc,
    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that
 * kiln_run_length_non_trivial() needs for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_run_length_non_trivial_workspace(
    kiln_stream *stream, const kiln_run_length_desc *desc, size_t *bytes);

/* ---- Finding and counting elements --------------------------------------- */

/** Description of a search or count: a predicate is evaluated for the elements
 * of an array, and there is one result. */
typedef struct kiln_find_desc {
  kiln_input x;          /**< input: n elements of one or more arrays; a map is
                              not used */
  const char *predicate; /**< user expression for the predicate; NULL means that
                              the predicate is true for elements other than 0 */
  uint64_t n;            /**< number of input elements */
  /** Receives the result, one value: u32 or u64 for kiln_find() and
   * kiln_count(), any integer type for kiln_any() and kiln_all(). */
  kiln_array out;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_find_desc;

/**
 * Finds the first element for which the predicate is true. The result is the
 * index of that element, or n if the predicate is true for no element.
 *
 * All blocks advance through the array together and stop soon after a match, so
 * the time depends on the result. The temporary storage takes 16 bytes per
 * resident block.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_find(kiln_stream *stream,
                                  const kiln_find_desc *desc,
                                  const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_find() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_find_workspace(kiln_stream *stream,
                                            const kiln_find_desc *desc,
                                            size_t *bytes);

/**
 * Counts the elements for which the predicate is true. All elements are read.
 * The temporary storage takes 16 bytes per resident block.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_count(kiln_stream *stream,
                                   const kiln_find_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_count() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_count_workspace(kiln_stream *stream,
                                             const kiln_find_desc *desc,
                                             size_t *bytes);

/**
 * Checks whether the predicate is true for any element. The result is 1 if so,
 * otherwise 0; for n = 0 the result is 0. Like kiln_find(), the operation stops
 * early. It needs the same temporary storage as kiln_find().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_any(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_any() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_any_workspace(kiln_stream *stream,
                                           const kiln_find_desc *desc,
                                           size_t *bytes);

/**
 * Checks whether the predicate is true for all elements. The result is 1 if so,
 * otherwise 0; for n = 0 the result is 1. Like kiln_find(), the operation stops
 * early. It needs the same temporary storage as kiln_find().
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_select().
 * The operation needs one launch.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_all(kiln_stream *stream,
                                 const kiln_find_desc *desc,
                                 const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_all() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_all_workspace(kiln_stream *stream,
                                           const kiln_find_desc *desc,
                                           size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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
