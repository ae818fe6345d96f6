/* histogram.h -- how many samples fall into each bin, and sorting by counting.
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

/** Most bins of kiln_histogram(). */
enum { KILN_MAX_BINS = 1 << 20 };

/** Samples and bins. The bins are, in this order of precedence:
 * - given boundaries, if `levels` has a type: bin k holds the samples with
 *   levels[k] <= sample < levels[k + 1];
 * - even, if `lower` or `upper` is not 0: the half-open range [lower, upper) is
 *   divided into `bins` bins of one width. Integers: bin floor((sample - lower) * bins /
 *   (upper - lower)), exact; lower and upper must be whole. Floats:
 *   (sample - lower) * (bins / (upper - lower)) in the sample's own precision
 *   (f16 and bf16: f32), truncated, so that a sample close to a boundary may be
 *   counted on its other side;
 * - otherwise the samples themselves: sample k is counted in bin k. Integers only;
 *   a map may compute the bin.
 * Samples outside all bins, and NaN, are not counted. The upper bound is exclusive in the
 * last bin, too, as in CUB (NumPy includes it). */
typedef struct kiln_histogram_desc {
  kiln_input x;        /**< samples: an array, or a map over several */
  uint64_t n;          /**< samples */
  uint32_t bins;       /**< 1 to KILN_MAX_BINS */
  double lower, upper; /**< bounds of even bins. Integers below 2^53, 2^63 and
                          2^64 are exact */
  kiln_array levels;   /**< bins + 1 ascending values of the samples' type;
                          without a type: not given */
  kiln_array counts;   /**< bins counts, u32 (modulo 2^32) or u64 */
  bool accumulate;     /**< add to the counts; else they are overwritten */
  kiln_code code;      /**< what the texts may use */
} kiln_histogram_desc;

/**
 * Counts the samples of each bin. The result is exact and does not depend on the
 * order.
 *
 * Every array of the input is read once. Above about 50,000 bins it is read once per
 * slice of that many bins, from the second-level cache if that holds it. Counters are
 * in shared memory, with several copies of each bin side by side, one per residue of
 * the lane, so that lanes rarely collide. Temporary storage: one word per bin and
 * block, at most 2 MiB. Launches: one up to about 1,000 bins, above that a fill and
 * one. Source: Podlozhnyuk, Histogram calculation in CUDA, 2007; Gomez-Luna et al.,
 * An optimized approach to histogram computation on GPU, 2013.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for no bins or too many; for bounds that are not
 *         finite, not ascending or equal in the samples' type, or not whole with
 *         integers; for levels of another type than the samples; for counts that are
 *         neither u32 nor u64.
 * In place: no. Threads: any. Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_histogram(kiln_stream *stream,
                                       const kiln_histogram_desc *desc,
                                       const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_histogram() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_histogram_workspace(
    kiln_stream *stream, const kiln_histogram_desc *desc, size_t *bytes);

/** Keys with few possible values, alone or with one value per key. */
typedef struct kiln_counting_sort_desc {
  kiln_array keys;       /**< n integers, of any type */
  kiln_array keys_out;   /**< n, of the keys' type. May be left out (no type)
                            if there are values */
  kiln_array values;     /**< n elements of any type that go with the keys, or
                            none (no type) */
  kiln_array values_out; /**< n, of the values' type */
  uint64_t n;            /**< keys */
  int64_t lowest;        /**< the least possible key, within 2^53 of 0. Taken
                            from the type if `range` is 0 */
  uint32_t range;        /**< possible keys: lowest, lowest + 1, ...; at most
                            65,536. 0: all of an 8-bit or 16-bit type */
  kiln_array offsets;    /**< range + 1 numbers, u32 or u64, or none (no type):
                            where each key's run starts in the output; the last
                            is the number of keys within the range */
} kiln_counting_sort_desc;

/**
 * Sorts ascending. Stable. Keys outside the range are left out, together with their
 * values: the output is then shorter, and the rest of it is not written.
 *
 * Keys alone: a histogram, a prefix sum, and a fill that reads only the sums. With
 * values: for each digit of 8 bits that the range needs (one or two), histograms of
 * blocks, their prefix sums and a scatter. Launches: 3 to 5 for keys alone, 3 per
 * digit with values. Temporary storage: 16 bytes per possible key; with values about
 * 1 KiB per block, and with two digits a copy of keys and values. Source: counting
 * sort (Seward, 1954); Knuth, The Art of Computer Programming 3, 5.2, algorithm D.
 *
 * @param stream     not NULL.
 * @param desc       borrowed for the call.
 * @param workspace  temporary storage; NULL: Kiln's own.
 * @retval as ops.h; KILN_EINVAL also for keys that are floats; for a range that is
 *         above 65,536, missing, or not within the keys' type; for u32 offsets when n
 *         is 2^32 or more.
 * In place: keys alone only (keys_out the same array as keys). Threads: any.
 * Blocks: only to compile.
 */
KILN_INLINE kiln_status kiln_counting_sort(kiln_stream *stream,
                                           const kiln_counting_sort_desc *desc,
                                           const kiln_workspace *workspace);
/** Computes the temporary storage that kiln_counting_sort() needs for the same stream and
 * desc; contract and statuses in ops.h.
 * @param[out] bytes  bytes; 0 on failure. */
KILN_INLINE kiln_status kiln_counting_sort_workspace(
    kiln_stream *stream, const kiln_counting_sort_desc *desc, size_t *bytes);

/* ---- Linkage: see KILN__OPERATION in ops.h and "Versions" in kiln.h ------- */

#define KILN__HISTOGRAM_OPERATIONS(X)                                          \
  X(kiln_histogram, kiln_histogram_desc, code)                                 \
  X(kiln_counting_sort, kiln_counting_sort_desc, offsets)
KILN__HISTOGRAM_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
