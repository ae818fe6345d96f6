/* top_k.h -- the k largest or smallest keys with their indices, and quantiles,
 * without sorting all keys.
 *
 *   kiln_top_k_desc t = {.keys = {x, KILN_F32}, .n = n, .k = 10,
 *                        .keys_out = {best, KILN_F32},
 *                        .indices = {where, KILN_U32}};
 *   st = kiln_top_k(stream, &t, NULL); */
#ifndef KILN_TOP_K_H
#define KILN_TOP_K_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest k that kiln_top_k() accepts. */
enum { KILN_TOP_K_MOST = 1 << 16 };

/** Description of a top-k: the keys of one or more rows, and the arrays that
 * receive the best keys of each row. */
typedef struct kiln_top_k_desc {
  kiln_array keys;     /**< input: `rows` rows of n keys each, of any type, one
                            row after the other */
  uint64_t n;          /**< number of keys per row */
  uint64_t rows;       /**< number of rows; 0 means 1 */
  uint64_t k;          /**< number of keys to select per row, at most n and
                            KILN_TOP_K_MOST */
  kiln_array keys_out; /**< optional: receives k keys per row, with the type of
                            keys */
  kiln_array indices;  /**< optional: receives the index in its row of each
                            selected key, as i32, u32, i64 or u64 */
  bool smallest;       /**< select the k smallest keys instead of the largest */
  /** Write the selected keys in the order of their indices. Otherwise the best
   * key comes first, and equal keys are in the order of their indices. The
   * order of indices is faster for k above 2,048. */
  bool by_index;
} kiln_top_k_desc;

/**
 * Selects the k largest or smallest keys of each row. Of equal keys, those with
 * the lower indices are selected. The order is that of kiln_sort(): for floats
 * -0 is less than +0, and NaN is greater than all other keys, so the largest
 * keys begin with the NaNs.
 *
 * One block per row reads rows of up to 32,768 keys. Longer rows are usually
 * read once: a sample provides a bound, and the keys beyond this bound are
 * candidates. In the rare case that they do not suffice, a radix selection reads
 * the row again, at most once per 8 bits of a key and of an index. The result is
 * the same in any case. There are one to three launches for k up to 2,048. More
 * keys are sorted at the end, which takes further launches per row.
 *
 * Rows of up to 32,768 keys need no temporary storage for k up to 2,048.
 * Otherwise the storage takes at most 40 KiB, 1/20 of a row and 100 bytes per
 * selected key. It takes this for up to 256 rows at a time.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if k is above n
 *         or KILN_TOP_K_MOST, if there is neither keys_out nor indices, if
 *         keys_out has another type than keys, and if the type of the indices
 *         cannot count n.
 * The operation does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_top_k(kiln_stream *stream,
                                   const kiln_top_k_desc *desc,
                                   const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_top_k() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_top_k_workspace(kiln_stream *stream,
                                             const kiln_top_k_desc *desc,
                                             size_t *bytes);

/** How kiln_quantile() computes a quantile that lies between two keys. */
typedef enum kiln_quantile_rule {
  KILN_QUANTILE_LINEAR = 0, /**< linear interpolation */
  KILN_QUANTILE_NEAREST,    /**< the nearer key; in the middle, the one with the
                              even rank, counted from 0 */
  KILN_QUANTILE_LOWER,      /**< the lesser key */
  KILN_QUANTILE_HIGHER,     /**< the greater key */
  KILN_QUANTILE_MIDPOINT    /**< the mean of both keys */
} kiln_quantile_rule;

/** The largest number of quantiles that kiln_quantile() accepts. */
enum { KILN_QUANTILE_MOST = 1024 };

/** Description of quantiles of one or more rows of keys. */
typedef struct kiln_quantile_desc {
  kiln_array keys; /**< input: `rows` rows of n keys each, of any type, one row
                        after the other */
  uint64_t n;      /**< number of keys per row */
  uint64_t rows;   /**< number of rows; 0 means 1 */
  /** The quantiles to compute: an array of n_q numbers in host memory from 0
   * (the least key) to 1 (the greatest key), or from 0 to 100 if `percent` is
   * set. NULL means the median. */
  const double *q;
  uint64_t n_q; /**< number of elements of q, at most KILN_QUANTILE_MOST; 0 with
                     a q of NULL */
  kiln_array out; /**< receives n_q quantiles per row, in the order of q (one
                        median per row if q is NULL), with the type of keys or
                        as f16, bf16, f32 or f64 */
  bool percent;   /**< q contains percentages */
  kiln_quantile_rule rule; /**< what to compute between two keys */
} kiln_quantile_desc;

/**
 * Computes quantiles of each row: medians, percentiles, minima, maxima. The
 * quantile q of n keys is at position q * (n - 1) of the sorted keys, counted
 * from 0. If that is between two keys, `rule` decides. The linear rule is the
 * default of NumPy and PyTorch.
 *
 * The order of keys is that of kiln_sort(), so NaNs count as the greatest keys.
 * Interpolation computes in f64 and rounds once to the type of out; an f64 does
 * not hold all i64 and u64. For n = 0 every quantile is NaN, or 0 in an integer
 * type.
 *
 * Rows of up to 32,768 keys are read by one block per quantile. Longer rows are
 * usually read once per quantile: a sample provides two bounds, and a radix
 * selection examines only the keys between them. In the rare case that the
 * bounds fail, it examines all keys, once per 8 bits of a key. The result is the
 * same in any case. There are four launches for up to 16 quantiles.
 *
 * Rows of up to 32,768 keys need no temporary storage. Otherwise it takes at
 * most 20 KiB and a quarter of the size of a row per quantile, for several
 * quantiles or rows at a time.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call, as is
 *                   the array q.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for a q outside
 *         its range, for too many of them, and if out is an integer array
 *         although the rule interpolates.
 * The operation does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_quantile(kiln_stream *stream,
                                      const kiln_quantile_desc *desc,
                                      const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_quantile() needs for
 * the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_quantile_workspace(kiln_stream *stream,
                                                const kiln_quantile_desc *desc,
                                                size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__TOP_K_OPERATIONS(X)                                              \
  X(kiln_top_k, kiln_top_k_desc, by_index)                                     \
  X(kiln_quantile, kiln_quantile_desc, rule)
KILN__TOP_K_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
