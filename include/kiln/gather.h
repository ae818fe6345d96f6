/* gather.h -- reading and writing at places that an array names (lecture row B9).
 *
 *   kiln_gather_desc g = {.x = {.in = {{table, KILN_F32}}}, .index = {at, KILN_U32},
 *                         .out = {y, KILN_F32}, .n = n, .n_target = 1 << 20};
 *   st = kiln_gather(stream, &g, NULL);              y[i] = table[at[i]]
 *
 * The target is the array that the indices point into: the one that a gather reads
 * and a scatter writes. A target above the second-level cache that is hit all over
 * costs a memory access an element, of which but a few bytes are used. Four ways
 * to go about it, of which a model chooses (kiln_gather_plan() shows it):
 *
 *   direct     one pass.
 *   windows    the lecture's multi-pass scheme: in each pass only what falls into
 *              one part of the target, small enough for the cache. Indices are
 *              read once a pass.
 *   partition  first bring the elements into the order of such parts, in temporary
 *              memory, then one pass over those, part by part. A gather brings
 *              the results back into their order at the end.
 *   sort       a scatter only: sort pairs of index and value by the upper bits of
 *              the index, so that those for a piece of the target as large as
 *              shared memory lie together; each piece is made up there and written
 *              as a whole. Twice the temporary memory of a partition.
 *
 * Indices: i32, u32, i64 or u64. In checked mode an index outside of 0 <= index <
 * n_target gives KILN_EINVAL, and nothing is written: a pass over the indices comes
 * first, and the call waits for the GPU, so that it is refused with KILN_ECAPTURE
 * while the stream is being captured. Unchecked, such an index is an error that
 * nothing detects.
 *
 * He, Govindaraju, Luo, Smith: Efficient Gather and Scatter Operations on Graphics
 * Processors, SC 2007. */
#ifndef KILN_GATHER_H
#define KILN_GATHER_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to go about it. */
typedef enum kiln_index_method {
  KILN_INDEX_AUTO = 0,  /**< the model chooses; direct where temporary memory
                           cannot be had */
  KILN_INDEX_DIRECT,    /**< one pass */
  KILN_INDEX_WINDOWS,   /**< `passes` passes over the indices: a scatter makes
                           them in one launch, a gather with one each */
  KILN_INDEX_PARTITION, /**< by parts of the target, `passes` of them */
  KILN_INDEX_SORT       /**< pairs in the order of the target; kiln_scatter()
                             only, which with indices of 64 bits needs n_target,
                             2^32 at most; `passes` does not count */
} kiln_index_method;

/* ---- Gather ------------------------------------------------------------------- */

/** out[i] = X[index[i]] for i < n, where X are the elements of x after its map. */
typedef struct kiln_gather_desc {
  kiln_input x;     /**< n_target elements; a map sees index[i] as i */
  kiln_array index; /**< n elements: i32, u32, i64 or u64 */
  kiln_array out;   /**< n elements; X is converted to their type. Without a map
                       and with x's own type: copied bit by bit */
  uint64_t n;       /**< elements of index and out */
  uint64_t
      n_target; /**< elements of x; 0: not known, taken to be n by the model.
                        Needed by .checked */
  kiln_index_method method; /**< default: the model's choice */
  uint32_t passes; /**< for WINDOWS and PARTITION: windows, at most 65,535, or
                      parts, at most 1,024 and rounded up to a power of two.
                      0: the model's choice */
  bool checked;    /**< indices out of range are an error; waits for the GPU */
  kiln_code code;
} kiln_gather_desc;

/**
 * Gather elements.
 *
 * @param workspace  what kiln_gather_workspace() says: 0 bytes unless the method
 *                   is PARTITION (for each of n an index of 4 or 8 bytes, an
 *                   element of out and 2 bytes, and a little) or .checked (256
 *                   bytes).
 * @retval see ops.h; KILN_EINVAL also for an index out of range in checked mode
 *         (the record says which); KILN_ECAPTURE for checked mode in a capture.
 * In place: no. Order: any. Launches: 1; WINDOWS `passes`; PARTITION 5 and a fill;
 * .checked one more and a fill. Threads: any. Blocks: to compile; in checked mode
 * for the GPU.
 */
KILN_INLINE kiln_status kiln_gather(kiln_stream *stream,
                                    const kiln_gather_desc *desc,
                                    const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_gather_workspace(kiln_stream *stream,
                                              const kiln_gather_desc *desc,
                                              size_t *bytes);

/** Row r of out = row index[r] of in, for r < n; copied bit by bit. */
typedef struct kiln_gather_rows_desc {
  kiln_array in;       /**< rows of `width` elements */
  kiln_array index;    /**< n elements: i32, u32, i64 or u64 */
  kiln_array out;      /**< n rows of `width` elements, of in's type */
  uint64_t n;          /**< rows of out */
  uint64_t width;      /**< elements a row */
  uint64_t in_stride;  /**< elements from row to row of in; 0: width */
  uint64_t out_stride; /**< elements from row to row of out; 0: width */
  uint64_t n_target;   /**< rows of in; 0: not known. Needed by .checked */
  bool checked;        /**< as above */
} kiln_gather_rows_desc;

/**
 * Gather rows, as of an embedding table. Loads are as wide as the alignment of
 * both arrays and their strides allow: 16 bytes best.
 *
 * @param workspace  not used, but for .checked: 256 bytes.
 * @retval as kiln_gather().
 * In place: no. Order: any. One launch; .checked one more and a fill.
 */
KILN_INLINE kiln_status kiln_gather_rows(kiln_stream *stream,
                                         const kiln_gather_rows_desc *desc,
                                         const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_gather_rows_workspace(
    kiln_stream *stream, const kiln_gather_rows_desc *desc, size_t *bytes);

/* ---- Scatter ------------------------------------------------------------------ */

/** out[index[i]] = X[i] for i < n, where X are the elements of x after its map.
 * Elements of out that no index names stay as they are. */
typedef struct kiln_scatter_desc {
  kiln_input x;      /**< n elements */
  kiln_array index;  /**< n elements: i32, u32, i64 or u64. Where two are equal,
                        one of their values is written, whole; which one is not
                        specified, and need not be the same in every run */
  kiln_array out;    /**< n_target elements; X is converted to their type */
  uint64_t n;        /**< elements of x and index */
  uint64_t n_target; /**< elements of out; 0: not known, taken to be n by the
                        model. Needed by .checked */
  kiln_index_method method; /**< default: the model's choice */
  uint32_t passes;          /**< as in kiln_gather_desc */
  bool checked;             /**< as in kiln_gather_desc */
  kiln_code code;
} kiln_scatter_desc;

/**
 * Scatter elements.
 *
 * @param workspace  what kiln_scatter_workspace() says: 0 bytes unless the method
 *                   is PARTITION (4 or 8 bytes of index and an element of out for
 *                   each of n), SORT (for each of n two or three times 4 bytes and
 *                   an element of out, and up to a byte) or .checked (256 bytes).
 * @retval as kiln_gather().
 * In place: no. Order: any. Launches: 1; PARTITION 4 and a fill; SORT those of
 * kiln_sort() by the bits above the lowest 11 to 14 of n_target's, 2, and 1 if
 * there is a map, a conversion or indices of 64 bits; .checked one more and a fill.
 * Threads: any. Blocks: to compile; in checked mode for the GPU.
 */
KILN_INLINE kiln_status kiln_scatter(kiln_stream *stream,
                                     const kiln_scatter_desc *desc,
                                     const kiln_workspace *workspace);
KILN_INLINE kiln_status kiln_scatter_workspace(kiln_stream *stream,
                                               const kiln_scatter_desc *desc,
                                               size_t *bytes);

/* ---- The cost model ----------------------------------------------------------- */

/** What decides on the cost, for indices without any order. */
typedef struct kiln_index_shape {
  uint64_t n;            /**< indices */
  uint64_t n_target;     /**< elements of the target; 0: n */
  unsigned element_size; /**< bytes of an element */
  unsigned index_size;   /**< bytes of an index, 4 or 8 */
} kiln_index_shape;

/** A way to do it, and what the model says of it. */
typedef struct kiln_index_plan {
  kiln_index_method method; /**< never AUTO */
  uint32_t passes;          /**< windows or parts; 1 for DIRECT and SORT */
  double stream_bytes;      /**< read and written one after the other */
  double missed_bytes;      /**< the bytes of streaming that what the cache
                               misses costs as much as */
  double cached_accesses;   /**< single elements through the cache, and work as
                               long as so many */
  double ms;                /**< all passes, launches included */
} kiln_index_plan;

/**
 * The plan that the model prefers, or its opinion of a given one.
 *
 *   time of a pass = launch + max((stream_bytes + missed_bytes) / bandwidth,
 *                                 cached_accesses / cache rate)
 *
 * after the lecture's T = (|R| + |L|) passes / B_sequential + |R| / B_random; the
 * rates follow from the GPU's memory, cache size, multiprocessors and clock.
 *
 * @param gpu     kiln_device_describe(); fields that are 0 are guessed.
 * @param plan    in: method AUTO, or one to be rated, then with passes or 0;
 *                out: complete.
 * @retval KILN_OK, KILN_EINVAL, also for SORT where there is none. A pure function; never blocks.
 */
KILN_INLINE kiln_status kiln_scatter_plan(const kiln_device_info *gpu,
                                          const kiln_index_shape *shape,
                                          kiln_index_plan *plan);
/** The same for a gather. */
KILN_INLINE kiln_status kiln_gather_plan(const kiln_device_info *gpu,
                                         const kiln_index_shape *shape,
                                         kiln_index_plan *plan);

/** The lecture's machine, which counts the misses of a scatter. */
typedef struct kiln_cache_model {
  unsigned line;  /**< elements a cache line */
  unsigned lines; /**< lines the cache holds, 1 to 64; the one that was not used
                       for the longest time goes */
  unsigned threads; /**< accesses at the same time, 1 to 64: those whose lines
                       are there come first */
} kiln_cache_model;

/**
 * Misses of a scatter to index[0 .. n-1] in `passes` passes over equal parts of
 * n_target elements. The lecture's example, 16 elements, lines of 4, 2 of them, 4
 * threads: 10 in one pass, 4 in two.
 *
 * @retval KILN_OK, KILN_EINVAL. Host memory; a pure function.
 */
KILN_INLINE kiln_status kiln_scatter_misses(const kiln_cache_model *cache,
                                            const uint32_t *index, size_t n,
                                            uint64_t n_target, uint32_t passes,
                                            uint64_t *misses);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__GATHER_OPERATIONS(X)                                             \
  X(kiln_gather, kiln_gather_desc, code)                                       \
  X(kiln_gather_rows, kiln_gather_rows_desc, checked)                          \
  X(kiln_scatter, kiln_scatter_desc, code)
KILN__GATHER_OPERATIONS(KILN__OPERATION)

KILN__SIZED(kiln_scatter_plan,
            (const kiln_device_info *gpu, const kiln_index_shape *shape,
             kiln_index_plan *plan),
            (size_t gpu_size, size_t shape_size, size_t plan_size),
            (gpu, shape, plan, sizeof *gpu, sizeof *shape, sizeof *plan))
KILN__SIZED(kiln_gather_plan,
            (const kiln_device_info *gpu, const kiln_index_shape *shape,
             kiln_index_plan *plan),
            (size_t gpu_size, size_t shape_size, size_t plan_size),
            (gpu, shape, plan, sizeof *gpu, sizeof *shape, sizeof *plan))
KILN__SIZED(kiln_scatter_misses,
            (const kiln_cache_model *cache, const uint32_t *index, size_t n,
             uint64_t n_target, uint32_t passes, uint64_t *misses),
            (size_t cache_size),
            (cache, index, n, n_target, passes, misses, sizeof *cache))

#ifdef __cplusplus
}
#endif
#endif
