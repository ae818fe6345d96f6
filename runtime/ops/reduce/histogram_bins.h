/* histogram_bins.h -- the bins of kiln_histogram(), and its two ways to fill
 * them: counts (histogram.c) and sums of weights (weighted_histogram.c). */
#ifndef KILN_HISTOGRAM_BINS_H
#define KILN_HISTOGRAM_BINS_H

#include "../ops.h"

/* Values of the parameter KILN_MODE of both kernels. */
enum { MODE_SHIFT, MODE_SCALE, MODE_WIDE, MODE_FLOAT, MODE_LEVELS };

/* The bounds of the bins, with the members that histogram_bins.cuh
 * declares. */
typedef struct kiln__bin_bounds {
  uint64_t lower, last, low, high;
  double from, below, scale;
  uint32_t shift, times, bins, slice;
} kiln__bin_bounds;

/* The method that computes the bin of a sample. It consists of macros of the
 * kernel, and of the kernel's argument `to`. */
typedef struct kiln__bins {
  uint32_t mode;
  bool plain, all, wide;
  kiln__bin_bounds to;
} kiln__bins;

/* Checks the type of the counts, or of the sums of weights. */
void kiln__check_counts(kiln__checker *c, kiln_dtype counts, bool weighted);
/* Returns the method for the bins of a valid desc. */
kiln__bins kiln__lay_out_bins(const kiln_histogram_desc *desc);

/* How the weights of a call are summed. */
typedef struct kiln__weighted_plan {
  uint32_t block, items, vec, copies;
  /* Number of slices (ranges of bins), and bins per slice. */
  uint32_t slices, slice;
  uint32_t workers, smem;
  bool shared; /* true if shared memory holds the levels (bounds of the bins) */
} kiln__weighted_plan;

kiln__weighted_plan kiln__plan_weighted(const kiln_device *device,
                                        const kiln_histogram_desc *desc);
kiln__need kiln__weighted_need(const kiln__weighted_plan *p,
                               const kiln_histogram_desc *desc);
/* Queues the launches of a checked call with weights. */
kiln_status kiln__run_weighted(kiln_stream *stream,
                               const kiln_histogram_desc *desc,
                               const kiln__weighted_plan *p,
                               const kiln_workspace *workspace);

#endif
