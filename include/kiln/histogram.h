/* histogram.h -- histograms of counts and of weights, and counting sort.
 *
 *   kiln_histogram_desc h = {.x = {.in = {{x, KILN_F32}}}, .n = n,
 *                            .bins = 100, .lower = -1, .upper = 1,
 *                            .counts = {counts, KILN_U32}};
 *   st = kiln_histogram(stream, &h, NULL); */
#ifndef KILN_HISTOGRAM_H
#define KILN_HISTOGRAM_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of bins that kiln_histogram() supports. */
enum { KILN_MAX_BINS = 1 << 20 };

/** Samples and bins of a histogram. There are three kinds of bins, in this
 * order of precedence:
 * - If `levels` has a type, it holds the boundaries of the bins. Bin k counts
 *   the samples with levels[k] <= sample < levels[k + 1].
 * - Otherwise, if `lower` or `upper` is not 0, the half-open range [lower,
 *   upper) is divided into `bins` bins of equal width. For integers, `lower`
 *   and `upper` must be whole numbers, and the bin is exactly floor((sample -
 *   lower) * bins / (upper - lower)). For floats, the bin is (sample - lower) *
 *   (bins / (upper - lower)), truncated. It is computed in the precision of the
 *   sample (f32 for f16 and bf16), so a sample close to a boundary may be
 *   counted in the adjacent bin.
 * - Otherwise the samples are the bin numbers: sample k is counted in bin k.
 *   Samples must then be integers; a map may compute the bin number.
 *
 * Samples outside all bins and NaNs are not counted. The upper bound of the
 * last bin is exclusive, too, as in CUB. (In NumPy it is inclusive.) */
typedef struct kiln_histogram_desc {
  kiln_input x;  /**< the samples: one array, or a map over several arrays */
  uint64_t n;    /**< number of samples */
  uint32_t bins; /**< number of bins, 1 to KILN_MAX_BINS */
  /** Lower and upper bound of the range for bins of equal width. Whole
   * numbers below 2^53, and the powers 2^63 and 2^64, are exact. */
  double lower, upper;
  kiln_array levels; /**< optional: boundaries of the bins, an array of bins + 1
                          ascending values of the samples' type */
  kiln_array counts; /**< receives one count per bin as u32 (modulo 2^32) or
                          u64; with a weight, one sum per bin as u32, u64, i64,
                          f32 or f64 */
  bool accumulate;   /**< add the counts to the existing contents of `counts`
                          instead of overwriting them */
  kiln_code code;    /**< parameters and functions that the user expressions can
                          use */
  /** Optional: user expression for the weight of sample i. It can use the same
   * names as the map, and is converted to the type of `counts` as by a C cast.
   * Element b of `counts` then receives the sum of the weights of the samples in
   * bin b. With samples x and weights in an array of their own:
   * `.x = {.in = {samples, weights}}, .weight = "y"`. */
  const char *weight;
} kiln_histogram_desc;

/**
 * Counts the samples of each bin, or adds their weights. Counts and sums of
 * integers are exact (modulo 2^32 or 2^64), and do not depend on the order of the
 * samples. Sums of floats have the same bits in every call on the same GPU with
 * the same number of samples; their order is unspecified.
 *
 * Every input array is read once. If there are more than about 50,000 bins, the
 * bins are divided into slices of that size, and the input is read once per
 * slice. The repeated reads come from the L2 cache if the input fits in it. The
 * counters are in shared memory. Each bin has several adjacent copies. Lane l
 * uses copy l modulo the number of copies, so that lanes rarely collide. The
 * temporary storage takes one word per bin and block, at most 2 MiB. Up to
 * about 1,000 bins need one launch; more bins need one fill and one launch.
 * Source: Podlozhnyuk, Histogram calculation in CUDA, 2007; Gomez-Luna et al.,
 * An optimized approach to histogram computation on GPU, 2013.
 *
 * With weights, the warps of a block have copies of the sums in shared memory.
 * Lanes of a warp with equal bins first combine their weights. With more sums
 * than fit there (about 50,000 of 4 bytes), the input is read once per slice.
 * The temporary storage takes one sum per bin and block, at most 64 MiB. Such
 * calls need two launches. Source: Westphal, Voting and Shuffling to Optimize
 * Atomic Operations, 2015.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if `bins` is 0
 *         or too large; if the bounds are not finite, or not ascending in the
 *         samples' type, or not whole numbers for integer samples; if the
 *         levels have another type than the samples; and if the counts have
 *         another type than those above.
 * The operation does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_histogram(kiln_stream *stream,
                                       const kiln_histogram_desc *desc,
                                       const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_histogram() needs for
 * the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_histogram_workspace(
    kiln_stream *stream, const kiln_histogram_desc *desc, size_t *bytes);

/** One axis of a two-dimensional histogram: samples, and bins of equal width.
 * The size of this struct never changes. */
typedef struct kiln_histogram_axis {
  kiln_array x;  /**< input: n samples of this axis */
  uint32_t bins; /**< number of bins of this axis, at least 1 */
  /** Bounds of the half-open range [lower, upper), which is divided into `bins`
   * bins of equal width as in kiln_histogram_desc. If both are 0, the samples
   * are the bin numbers and must be integers. For integers, the range holds at
   * most 2^32 values. Bounds for i64 are at most 2^63, and bounds for u64 are
   * at least 0. */
  double lower, upper;
} kiln_histogram_axis;

/** Description of a two-dimensional histogram: sample pair k is counted in the
 * bin of x.x[k] on the x axis and of y.x[k] on the y axis. */
typedef struct kiln_histogram_2d_desc {
  kiln_histogram_axis x, y; /**< the axes; there are at most KILN_MAX_BINS pairs
                                 of bins */
  uint64_t n;               /**< number of sample pairs */
  /** Receives one count per pair of bins, x.bins * y.bins elements of type u32
   * (modulo 2^32) or u64. The count of bins i and j is element i * y.bins + j,
   * as in NumPy. */
  kiln_array counts;
  bool accumulate; /**< add the counts to the existing contents of `counts`
                        instead of overwriting them */
  /** Optional input: n weights of any type. The counts are then sums of weights,
   * of type u32, u64, i64, f32 or f64, to which the weights are converted. */
  kiln_array weights;
} kiln_histogram_2d_desc;

/**
 * Counts pairs of samples, or adds their weights. A pair with a sample outside of
 * its axis, or with a NaN sample, is not counted. Exactness and order are those of
 * kiln_histogram().
 *
 * The pair of bins is computed while the samples are loaded, and counted as by
 * kiln_histogram(), with the same costs and the same temporary storage for
 * x.bins * y.bins bins.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also for bins and
 *         bounds that kiln_histogram_axis excludes.
 * The operation does not work in place.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_histogram_2d(kiln_stream *stream,
                                          const kiln_histogram_2d_desc *desc,
                                          const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_histogram_2d() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_histogram_2d_workspace(
    kiln_stream *stream, const kiln_histogram_2d_desc *desc, size_t *bytes);

/** Description of a counting sort: keys that have few possible values, and
 * optionally one value per key that moves with the key. */
typedef struct kiln_counting_sort_desc {
  kiln_array keys;     /**< input: n keys of any integer type */
  kiln_array keys_out; /**< receives the n sorted keys, which have the type of
                            `keys`; optional if there are values */
  kiln_array values;   /**< optional input: n values of any type that move with
                            the keys */
  kiln_array values_out; /**< receives the n values in the order of the sorted
                              keys, with the type of the input values */
  uint64_t n;            /**< number of input keys */
  int64_t lowest;        /**< the smallest possible key, between -2^53 and 2^53;
                              ignored if `range` is 0 */
  /** Number of possible keys lowest, lowest + 1, ...; at most 65,536. 0 selects
   * all values of an 8-bit or 16-bit type. */
  uint32_t range;
  /** Optional: receives the start of each key's run in the output, range + 1
   * elements of type u32 or u64. The last element is the number of keys within
   * the range. */
  kiln_array offsets;
} kiln_counting_sort_desc;

/**
 * Sorts in ascending order. The sort is stable. Keys outside the range are
 * dropped, together with their values. The output is then shorter than the
 * input, and the rest of the output arrays is not written.
 *
 * A sort of keys alone takes a histogram, a prefix sum, and a fill that reads
 * only the sums; that is 3 to 5 launches. A sort with values works on digits of
 * 8 bits; the range needs one or two digits. For each digit it computes the
 * histograms of the blocks and their prefix sums and then scatters the
 * elements, in 3 launches. The temporary storage takes 16 bytes per possible
 * key. With values it takes about 1 KiB per block, and with two digits also a
 * copy of keys and values. Source: counting sort (Seward, 1954); Knuth, The Art
 * of Computer Programming 3, 5.2, algorithm D.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Returns KILN_EINVAL also if the keys
 *         are floats; if the range is above 65,536, missing, or outside the
 *         keys' type; and for u32 offsets if n is 2^32 or more.
 * In-place operation is possible only for keys alone: keys_out is then the same
 * array as keys.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_counting_sort(kiln_stream *stream,
                                           const kiln_counting_sort_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_counting_sort() needs
 * for the given stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_counting_sort_workspace(
    kiln_stream *stream, const kiln_counting_sort_desc *desc, size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__HISTOGRAM_OPERATIONS(X)                                          \
  X(kiln_histogram, kiln_histogram_desc, code)                                 \
  X(kiln_histogram_2d, kiln_histogram_2d_desc, accumulate)                     \
  X(kiln_counting_sort, kiln_counting_sort_desc, offsets)
KILN__HISTOGRAM_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
