/* gather.h -- gather and scatter: read and write at the positions that an array
 * of indices specifies.
 *
 *   kiln_gather_desc g = {.x = {.in = {{table, KILN_F32}}},
 *                         .index = {at, KILN_U32}, .out = {y, KILN_F32},
 *                         .n = n, .n_target = 1 << 20};
 *   st = kiln_gather(stream, &g, NULL);              y[i] = table[at[i]]
 *
 * The target is the array that the indices refer to: a gather reads it, a
 * scatter writes it. If the target is larger than the L2 cache and the indices
 * are spread over the target, each element causes a DRAM access. Only a few
 * bytes of each access are used. Kiln has four methods. A cost model chooses
 * the method for indices in random order; kiln_gather_plan() shows the choice.
 * If that method is not `direct`, a kernel samples the indices of the call. If
 * they are local, for example sequential or reversed, one direct pass handles
 * all of them. The launches of the other method then leave at once, so the host
 * does not wait, and a captured call decides again whenever its graph runs.
 *
 *   direct     uses one pass.
 *   windows    uses several passes. Each pass reads all indices, but handles
 *              only those that fall into one part of the target. The part is
 *              small enough for the cache. (He et al. 2007)
 *   partition  first sorts the elements by part of the target into temporary
 *              storage. Then one pass handles the parts one after another. A
 *              gather finally restores the order of the results.
 *   sort       works for a scatter only. It sorts pairs of index and value by
 *              the upper bits of the index, assembles each chunk of the target
 *              in shared memory and writes it as a whole. It needs twice the
 *              temporary storage of partition.
 *
 * Indices have type u8, u16, i32, u32, i64 or u64. A valid index satisfies 0 <= index <
 * n_target. In checked mode an invalid index causes KILN_EINVAL, and nothing is
 * written. Checked mode needs an additional pass over the indices, and the call
 * waits for the GPU. It therefore returns KILN_ECAPTURE while the stream is
 * being captured. In unchecked mode an invalid index causes an access out of
 * bounds that is not detected.
 *
 * Source: He, Govindaraju, Luo, Smith: Efficient Gather and Scatter Operations
 * on Graphics Processors, SC 2007. */
#ifndef KILN_GATHER_H
#define KILN_GATHER_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Method of a gather or scatter; the head of gather.h describes the methods.
 * Indices of type u8 and u16 support only AUTO, which is then DIRECT, and DIRECT.
 * Structs support only AUTO, DIRECT and WINDOWS, unless the call moves elements
 * of 1, 2, 4 or 8 bytes without a map and their arrays are aligned to that
 * size. The same holds for complex numbers. */
typedef enum kiln_index_method {
  KILN_INDEX_AUTO = 0, /**< the cost model and a sample of the indices choose
                            the method, or direct if no temporary storage is
                            available */
  KILN_INDEX_DIRECT,   /**< direct: one pass over all indices */
  /** Windows: `passes` passes over all indices, each for one part of the
   * target. A scatter needs one launch, a gather one launch per pass. */
  KILN_INDEX_WINDOWS,
  KILN_INDEX_PARTITION, /**< partition: sort the elements by part of the target
                             first, with `passes` parts */
  /** sort: sort pairs of index and value by index, for kiln_scatter() only.
   * 64-bit indices require an n_target of at most 2^32. `passes` has no
   * effect. */
  KILN_INDEX_SORT
} kiln_index_method;

/* ---- Gather -------------------------------------------------------------- */

/** Description of a gather: out[i] = X[index[i]] for i < n, where X denotes the
 * elements of x after the map of x. */
typedef struct kiln_gather_desc {
  /** Input: the n_target elements to gather from, from one array or computed
   * by a map. In the map, the variable i has the value index[i]. */
  kiln_input x;
  kiln_array index; /**< array of n indices of type u8, u16, i32, u32, i64
                         or u64 */
  /** Array that receives n elements. The elements of x, after the map, are
   * converted to the type of this array. Without a map, elements of the same
   * type are copied bit by bit. */
  kiln_array out;
  uint64_t n; /**< number of elements of the arrays index and out */
  /** Number of elements of x; 0 means unknown, and the cost model then
   * assumes n. `checked` requires that the number is known. */
  uint64_t n_target;
  kiln_index_method method; /**< method of the gather; default: the cost model
                                 chooses it */
  /** Number of parts into which the method WINDOWS (at most 65,535) or
   * PARTITION (at most 1,024, rounded up to a power of two) divides the target.
   * 0 lets the cost model choose. */
  uint32_t passes;
  bool checked;   /**< check all indices first: an index out of range is then an
                       error. The call waits for the GPU */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_gather_desc;

/**
 * Gathers elements: out[i] = X[index[i]].
 *
 * Only the method PARTITION, checked mode and a sample of the indices need
 * temporary storage. PARTITION needs, per element of n, an index of 4 or 8
 * bytes, an element of out, 2 bytes, and a little more. Checked mode needs 256
 * bytes, and a sample needs 256 bytes more. DIRECT needs 1 launch, WINDOWS
 * `passes` launches, and PARTITION 5 launches and a fill. Checked mode adds one
 * launch and one fill. A sample, which only AUTO takes, adds one launch, and one
 * more if the indices have 64 bits.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for an index
 *         out of range in checked mode (the error record names the index);
 *         KILN_ECAPTURE for checked mode while the stream is being captured.
 * The operation does not work in place.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the indices.
 */
KILN_INLINE kiln_status kiln_gather(kiln_stream *stream,
                                    const kiln_gather_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_gather() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_gather_workspace(kiln_stream *stream,
                                              const kiln_gather_desc *desc,
                                              size_t *bytes);

/** Description of a gather of rows: row r of out becomes row index[r] of in,
 * for r < n. Rows are copied bit by bit. */
typedef struct kiln_gather_rows_desc {
  kiln_array in;       /**< input matrix, with rows of `width` elements */
  kiln_array index;    /**< array of n row indices of type u8, u16, i32, u32,
                         i64 or u64 */
  kiln_array out;      /**< receives n rows of `width` elements, which have the
                         type of `in` */
  uint64_t n;          /**< number of rows of out */
  uint64_t width;      /**< number of elements per row */
  uint64_t in_stride;  /**< distance between the starts of two rows of in, in
                            elements; 0 selects `width` */
  uint64_t out_stride; /**< distance between the starts of two rows of out, in
                            elements; 0 selects `width` */
  uint64_t n_target;   /**< number of rows of in; 0 means unknown. `checked`
                            requires that the number is known */
  bool checked; /**< check all indices first: an index out of range is then an
                     error. See kiln_gather_desc.checked */
} kiln_gather_rows_desc;

/**
 * Gathers rows, for example of an embedding table. Loads are as wide as the
 * alignment of both arrays and their strides allow; 16 bytes is best. Checked
 * mode needs 256 bytes of temporary storage; otherwise none is needed. The
 * operation needs one launch. Checked mode adds one launch and one fill.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_gather().
 * The operation does not work in place.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the indices.
 */
KILN_INLINE kiln_status kiln_gather_rows(kiln_stream *stream,
                                         const kiln_gather_rows_desc *desc,
                                         const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_gather_rows() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_gather_rows_workspace(
    kiln_stream *stream, const kiln_gather_rows_desc *desc, size_t *bytes);

/* ---- Scatter ------------------------------------------------------------- */

/** Description of a scatter: out[index[i]] = X[i] for i < n, where X denotes
 * the elements of x after the map of x. Elements of out to which no index
 * refers are not modified. */
typedef struct kiln_scatter_desc {
  kiln_input x; /**< input: n elements, from one array or computed by a map */
  /** Array of n indices of type u8, u16, i32, u32, i64 or u64. If several indices are
   * equal, exactly one of the values is stored at this index. Which one is
   * unspecified and may differ between runs. */
  kiln_array index;
  /** Output array of n_target elements; the elements of x, after the map, are
   * converted to the type of this array. */
  kiln_array out;
  uint64_t n; /**< number of elements of the arrays x and index */
  /** Number of elements of out; 0 means unknown, and the cost model then
   * assumes n. `checked` requires that the number is known. */
  uint64_t n_target;
  kiln_index_method method; /**< method of the scatter; default: the cost model
                                 chooses it */
  /** Number of parts of the target for the methods WINDOWS and PARTITION; see
   * kiln_gather_desc.passes. */
  uint32_t passes;
  bool checked;   /**< check all indices first: an index out of range is then an
                       error. See kiln_gather_desc.checked */
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_scatter_desc;

/**
 * Scatters elements: out[index[i]] = X[i].
 *
 * Only the methods PARTITION and SORT, checked mode and a sample of the indices
 * need temporary storage.
 * PARTITION needs, per element of n, an index of 4 or 8 bytes and an element of
 * out. SORT needs, per element of n, two or three times the size of a 4-byte
 * index and an element of out, and up to one more byte. Checked mode needs 256
 * bytes, and a sample needs 256 bytes more.
 *
 * DIRECT and WINDOWS need 1 launch, and PARTITION needs 4 launches and a fill.
 * SORT needs 2 launches plus the launches of kiln_sort(). That sort covers the
 * bits of n_target except the lowest 11 to 14 bits. SORT needs 1 more launch
 * with a map, a conversion or 64-bit indices. Checked mode adds one launch and
 * one fill. A sample, which only AUTO takes, adds two launches, or one to
 * WINDOWS.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval the same statuses as kiln_gather().
 * The operation does not work in place.
 * Thread-safe. Blocks while a kernel compiles and, in checked mode, until the
 * GPU has checked the indices.
 */
KILN_INLINE kiln_status kiln_scatter(kiln_stream *stream,
                                     const kiln_scatter_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_scatter() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_scatter_workspace(kiln_stream *stream,
                                               const kiln_scatter_desc *desc,
                                               size_t *bytes);

/* ---- Cost model of gather and scatter ------------------------------------ */

/** Sizes of the arrays of a gather or scatter, from which the cost model
 * predicts the time. The model assumes that the indices are in random order. For
 * other orders, see the head of gather.h. */
typedef struct kiln_index_shape {
  uint64_t n;        /**< number of indices of the gather or scatter */
  uint64_t n_target; /**< number of elements in the target, which the indices
                          refer to; 0 selects n */
  unsigned element_size; /**< size of an element of the target in bytes */
  unsigned index_size;   /**< size of an index in bytes: 4 or 8 */
} kiln_index_shape;

/** A method of a gather or scatter, and the cost that the cost model predicts
 * for it. */
typedef struct kiln_index_plan {
  kiln_index_method method; /**< chosen method of the gather or scatter, never
                                 KILN_INDEX_AUTO */
  uint32_t passes;     /**< number of parts into which WINDOWS and PARTITION
                            divide the array that the indices refer to; 1 for
                            DIRECT and SORT */
  double stream_bytes; /**< sequential memory traffic in bytes */
  double missed_bytes; /**< cost of cache misses, in bytes of streaming traffic
                            that take the same time */
  double cached_accesses; /**< number of single-element cache accesses, with
                               other work converted to the same unit */
  double ms; /**< predicted time in milliseconds, including launches */
} kiln_index_plan;

/**
 * Returns the plan that the cost model prefers for a scatter, or predicts the
 * cost of a given plan.
 *
 *   time of a pass = launch + max((stream_bytes + missed_bytes) / bandwidth,
 *                                 cached_accesses / cache rate)
 *
 * This follows T = (|R| + |L|) passes / B_sequential + |R| / B_random of He et
 * al. 2007. Kiln derives the rates from the GPU's memory, cache size, number of
 * SMs and clock.
 *
 * @param gpu           result of kiln_device_describe(); Kiln estimates members
 *                      that are 0.
 * @param shape         sizes of the arrays; borrowed for the call.
 * @param[in,out] plan  in: KILN_INDEX_AUTO, or the method to rate and its
 *                      passes (0 for the default); out: the complete plan.
 * @retval KILN_OK, KILN_EINVAL (also for KILN_INDEX_SORT if the sizes do not
 *         allow it).
 * This is a pure function.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_scatter_plan(const kiln_device_info *gpu,
                                          const kiln_index_shape *shape,
                                          kiln_index_plan *plan);
/**
 * Returns the plan that the cost model prefers for a gather, or predicts the
 * cost of a given plan.
 *
 * @param gpu           result of kiln_device_describe(); Kiln estimates members
 *                      that are 0.
 * @param shape         sizes of the arrays; borrowed for the call.
 * @param[in,out] plan  in: KILN_INDEX_AUTO, or the method to rate and its
 *                      passes (0 for the default); out: the complete plan.
 * @retval KILN_OK, KILN_EINVAL (also for KILN_INDEX_SORT).
 * This is a pure function.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_gather_plan(const kiln_device_info *gpu,
                                         const kiln_index_shape *shape,
                                         kiln_index_plan *plan);

/** Model of a small cache and the threads that access it, for
 * kiln_scatter_misses(). */
typedef struct kiln_cache_model {
  unsigned line;    /**< number of elements per cache line */
  unsigned lines;   /**< number of cache lines, 1 to 64; the least recently used
                         line is evicted */
  unsigned threads; /**< number of threads that access memory simultaneously, 1
                         to 64; hits are served first */
} kiln_cache_model;

/**
 * Counts the cache misses of a scatter to index[0 .. n-1] in `passes` passes
 * over equal parts of the target, on the machine that `cache` describes (the
 * model of He et al. 2007). For example, 16 elements on a cache with 2 lines of
 * 4 elements and 4 threads cause 10 misses in one pass and 4 misses in two
 * passes.
 *
 * @param cache         model of the machine; borrowed for the call.
 * @param index         n indices in host memory.
 * @param n_target      number of elements in the target.
 * @param[out] misses   receives the number of misses.
 * @retval KILN_OK, KILN_EINVAL.
 * This is a pure function.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_scatter_misses(const kiln_cache_model *cache,
                                            const uint32_t *index, size_t n,
                                            uint64_t n_target, uint32_t passes,
                                            uint64_t *misses);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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
