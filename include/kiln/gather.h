/* gather.h -- read and write at positions that an array of indices gives.
 *
 *   kiln_gather_desc g = {.x = {.in = {{table, KILN_F32}}}, .index = {at, KILN_U32},
 *                         .out = {y, KILN_F32}, .n = n, .n_target = 1 << 20};
 *   st = kiln_gather(stream, &g, NULL);              y[i] = table[at[i]]
 *
 * The target is the array that the indices point into: a gather reads it, a scatter
 * writes it. If the target is larger than the second-level cache and the indices
 * are spread over it, each element costs a memory access of which only a few bytes
 * are used. Kiln has four methods. A cost model chooses one; kiln_gather_plan()
 * shows its choice.
 *
 *   direct     one pass.
 *   windows    multi-pass: each pass handles only the indices that fall into one
 *              part of the target, small enough for the cache. Each pass reads all
 *              indices. (He et al. 2007)
 *   partition  sorts the elements by part of the target into temporary storage,
 *              then handles part after part in one pass. A gather finally restores
 *              the order of the results.
 *   sort       scatter only: sorts pairs of index and value by the upper bits of
 *              the index, assembles each piece of the target in shared memory and
 *              writes it as a whole. Needs twice the temporary storage of
 *              partition.
 *
 * Indices are i32, u32, i64 or u64. In checked mode an index outside of
 * 0 <= index < n_target gives KILN_EINVAL, and nothing is written. A pass over the
 * indices comes first, and the call waits for the GPU; hence KILN_ECAPTURE while the
 * stream is being captured. Unchecked, such an index is an access out of bounds that
 * nothing detects.
 *
 * Source: He, Govindaraju, Luo, Smith: Efficient Gather and Scatter Operations on
 * Graphics Processors, SC 2007. */
#ifndef KILN_GATHER_H
#define KILN_GATHER_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Method of a gather or scatter. */
typedef enum kiln_index_method {
  KILN_INDEX_AUTO = 0, /**< the cost model chooses; direct if there is no
                           temporary storage */
  KILN_INDEX_DIRECT,   /**< one pass */
  KILN_INDEX_WINDOWS, /**< `passes` passes over the indices: in one launch for a
                           scatter, in one launch each for a gather */
  KILN_INDEX_PARTITION, /**< `passes` parts of the target */
  KILN_INDEX_SORT /**< pairs sorted by the target; kiln_scatter() only. With
                             64-bit indices it needs n_target of at most 2^32.
                             `passes` has no effect */
} kiln_index_method;

/* ---- Gather ------------------------------------------------------------------- */

/** out[i] = X[index[i]] for i < n, where X are the elements of x after its map. */
typedef struct kiln_gather_desc {
  kiln_input x;     /**< n_target elements; a map sees index[i] as i */
  kiln_array index; /**< n elements: i32, u32, i64 or u64 */
  kiln_array out;   /**< n elements; X is converted to their type. Without a map
                       and with x's own type: copied bit by bit */
  uint64_t n;       /**< elements of index and out */
  uint64_t n_target; /**< elements of x; 0: unknown, the model assumes n. Needed
                        by .checked */
  kiln_index_method method; /**< default: the model's choice */
  uint32_t passes; /**< for WINDOWS and PARTITION: windows, at most 65,535, or
                      parts, at most 1,024 and rounded up to a power of two.
                      0: the model's choice */
  bool checked;    /**< indices out of range are an error; waits for the GPU */
  kiln_code code;  /**< what the texts may use */
} kiln_gather_desc;

/**
 * Gathers elements: out[i] = X[index[i]].
 *
 * Temporary storage: none, except for PARTITION (per element of n: an index of 4 or
 * 8 bytes, an element of out and 2 bytes, and a little more) and .checked (256
 * bytes). Launches: 1; WINDOWS `passes`; PARTITION 5 and a fill; .checked adds one
 * and a fill.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for an index out of range in checked mode (the
 *         record names it); KILN_ECAPTURE for checked mode in a capture.
 * In place: no. Threads: any. Blocks: to compile; in checked mode for the GPU.
 */
KILN_INLINE kiln_status kiln_gather(kiln_stream *stream,
                                    const kiln_gather_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_gather() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_gather_workspace(kiln_stream *stream,
                                              const kiln_gather_desc *desc,
                                              size_t *bytes);

/** Row r of out = row index[r] of in, for r < n; copied bit by bit. */
typedef struct kiln_gather_rows_desc {
  kiln_array in;       /**< rows of `width` elements */
  kiln_array index;    /**< n elements: i32, u32, i64 or u64 */
  kiln_array out;      /**< n rows of `width` elements, of in's type */
  uint64_t n;          /**< rows of out */
  uint64_t width;      /**< elements per row */
  uint64_t in_stride;  /**< elements from row to row of in; 0: width */
  uint64_t out_stride; /**< elements from row to row of out; 0: width */
  uint64_t n_target;   /**< rows of in; 0: not known. Needed by .checked */
  bool checked;        /**< as in kiln_gather_desc */
} kiln_gather_rows_desc;

/**
 * Gathers rows, as of an embedding table. Loads are as wide as the alignment of both
 * arrays and their strides allow; 16 bytes is best. Temporary storage: 256 bytes for
 * .checked, otherwise none. One launch; .checked adds one and a fill.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_gather().
 * In place: no. Threads: any. Blocks: to compile; in checked mode for the GPU.
 */
KILN_INLINE kiln_status kiln_gather_rows(kiln_stream *stream,
                                         const kiln_gather_rows_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_gather_rows() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
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
  uint64_t n_target; /**< elements of out; 0: unknown, the model assumes n.
                        Needed by .checked */
  kiln_index_method method; /**< default: the model's choice */
  uint32_t passes;          /**< as in kiln_gather_desc */
  bool checked;             /**< as in kiln_gather_desc */
  kiln_code code;           /**< what the texts may use */
} kiln_scatter_desc;

/**
 * Scatters elements: out[index[i]] = X[i].
 *
 * Temporary storage: none, except for PARTITION (4 or 8 bytes of index and an element
 * of out per element of n), SORT (per element of n two or three times 4 bytes and an
 * element of out, and up to one byte) and .checked (256 bytes). Launches: 1;
 * PARTITION 4 and a fill; SORT those of kiln_sort() by the bits above the lowest 11
 * to 14 of n_target's, 2 more, and 1 more with a map, a conversion or 64-bit indices;
 * .checked adds one and a fill.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as kiln_gather().
 * In place: no. Threads: any. Blocks: to compile; in checked mode for the GPU.
 */
KILN_INLINE kiln_status kiln_scatter(kiln_stream *stream,
                                     const kiln_scatter_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_scatter() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_scatter_workspace(kiln_stream *stream,
                                               const kiln_scatter_desc *desc,
                                               size_t *bytes);

/* ---- The cost model ----------------------------------------------------------- */

/** What the cost depends on, for indices in random order. */
typedef struct kiln_index_shape {
  uint64_t n;            /**< indices */
  uint64_t n_target;     /**< elements of the target; 0: n */
  unsigned element_size; /**< bytes of an element */
  unsigned index_size;   /**< bytes of an index, 4 or 8 */
} kiln_index_shape;

/** A method and its predicted cost. */
typedef struct kiln_index_plan {
  kiln_index_method method; /**< never AUTO */
  uint32_t passes;          /**< windows or parts; 1 for DIRECT and SORT */
  double stream_bytes;      /**< sequential traffic in bytes */
  double missed_bytes;      /**< cost of cache misses, in bytes of streaming
                               traffic that take the same time */
  double cached_accesses;   /**< single-element cache accesses, with other work
                               converted to the same unit */
  double ms;                /**< predicted milliseconds, including launches */
} kiln_index_plan;

/**
 * Returns the plan that the cost model prefers for a scatter, or rates a given plan.
 *
 *   time of a pass = launch + max((stream_bytes + missed_bytes) / bandwidth,
 *                                 cached_accesses / cache rate)
 *
 * This follows T = (|R| + |L|) passes / B_sequential + |R| / B_random of He et al.
 * 2007. The rates follow from the GPU's memory, cache size, multiprocessors and
 * clock.
 *
 * @param gpu           kiln_device_describe(); members that are 0 are guessed.
 * @param shape         borrowed for the call.
 * @param[in,out] plan  in: method AUTO, or a method to rate with its passes or 0;
 *                      out: complete.
 * @retval KILN_OK, KILN_EINVAL (also for SORT where it is not possible).
 * Threads: any. Blocks: never. A pure function.
 */
KILN_INLINE kiln_status kiln_scatter_plan(const kiln_device_info *gpu,
                                          const kiln_index_shape *shape,
                                          kiln_index_plan *plan);
/**
 * Returns the plan that the cost model prefers for a gather, or rates a given plan.
 *
 * @param gpu           as for kiln_scatter_plan(), as are shape and plan.
 * @param shape         borrowed for the call.
 * @param[in,out] plan  in: what to rate; out: complete.
 * @retval KILN_OK, KILN_EINVAL (also for SORT).
 * Threads: any. Blocks: never. A pure function.
 */
KILN_INLINE kiln_status kiln_gather_plan(const kiln_device_info *gpu,
                                         const kiln_index_shape *shape,
                                         kiln_index_plan *plan);

/** A machine with a small cache, on which misses are counted. */
typedef struct kiln_cache_model {
  unsigned line;  /**< elements per cache line */
  unsigned lines; /**< lines that the cache holds, 1 to 64; it evicts the least
                       recently used one */
  unsigned
      threads; /**< simultaneous accesses, 1 to 64; hits are served first */
} kiln_cache_model;

/**
 * Counts the cache misses of a scatter to index[0 .. n-1] in `passes` passes over
 * equal parts of the target, on the machine that `cache` describes (the model of He
 * et al. 2007). Example: 16 elements, lines of 4, 2 lines, 4 threads: 10 misses in
 * one pass, 4 in two.
 *
 * @param cache         borrowed for the call.
 * @param index         n indices in host memory.
 * @param n_target      elements of the target.
 * @param[out] misses   number of misses.
 * @retval KILN_OK, KILN_EINVAL.
 * Threads: any. Blocks: never. A pure function.
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
