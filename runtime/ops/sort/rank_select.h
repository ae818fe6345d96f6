/* rank_select.h -- the internal interface of selections by rank, which top_k.c
 * and quantile.c use: a plan, the kernels of rank_select.cu, and their
 * launches. */
#ifndef KILN_OPS_RANK_SELECT_H
#define KILN_OPS_RANK_SELECT_H

#include "sort.h"

enum {
  KILN__RANK_TARGETS = 16, /* most selections per row in one launch */
  /* Rows of up to this number of keys are read by one block per row. */
  KILN__RANK_DIRECT = 1 << 15,
  KILN__RANK_STATE = 80, /* size in bytes of kiln::rank_state */
  KILN__RANK_STEP = 2112 /* size in bytes of kiln::rank_step */
};

/* What to select, with the members of kiln::rank_targets. */
typedef struct kiln__rank_targets {
  uint64_t rank[KILN__RANK_TARGETS];
  uint32_t low[KILN__RANK_TARGETS], high[KILN__RANK_TARGETS];
  uint32_t n, more;
} kiln__rank_targets;

/* The argument of the kernels, with the members of kiln::rank_args. */
typedef struct kiln__rank_args {
  CUdeviceptr in;
  uint64_t n;
  CUdeviceptr states, words, places, chosen_words, chosen_places;
  uint64_t capacity, kept, stride;
  kiln__sort_order order;
  uint32_t samples, steps, workers, epoch;
  CUdeviceptr descriptors;
  kiln__rank_targets targets;
} kiln__rank_args;

/* The rows and the keys of a selection. */
typedef struct kiln__rank_shape {
  kiln_array keys;
  uint64_t n, rows;
  bool descending;     /* true if the greatest keys have the lowest words */
  unsigned place_size; /* bytes per place, 4 or 8; 0 if places are not needed */
  uint64_t kept;       /* selected words that are listed with their places */
  /* True if the caller launches a kernel that selects from the candidates and
   * does what rank_digits does if they do not suffice. */
  bool own_digits;
} kiln__rank_shape;

typedef struct kiln__rank_plan {
  kiln__rank_shape shape;
  kiln__rank_args args; /* all members except addresses */
  kiln__tuning tuning;
  unsigned sm_count;
  uint32_t block; /* threads per block of kernels that call rank_by_digits() */
  bool quick;     /* compile with less optimisation, which spills below 9.0 */
  uint32_t samplers;    /* blocks that take the sample of a selection */
  uint64_t filter_tile; /* keys per tile of the filter */
  uint64_t chunk;       /* selections per launch */
  size_t states, words, places, chosen_words, chosen_places; /* in `temp` */
} kiln__rank_plan;

/* The encoding of keys as words. */
kiln__sort_order kiln__rank_order(const kiln__rank_shape *shape);

/* Plans the selection of `n_targets` ranks per row: the n_targets words with the
 * numbers rank[] - 1, counted from 0 in ascending order. If `bounded` is true,
 * candidates have a lower bound, too. Adds the temporary memory to *need. */
void kiln__rank_plan_make(kiln__rank_plan *p, kiln__need *need,
                          kiln_device *device, const kiln__rank_shape *shape,
                          const kiln__rank_targets *targets, bool bounded);
/* Writes the specialisations that the launches need, and returns their
 * number. */
size_t kiln__rank_specs(kiln__spec spec[3], const kiln__rank_plan *p);
/* The parameters ITEMS and ALIGNED of kernels that call rank_by_digits() of
 * kiln/rank_digits.cuh. Their number of threads per block is the plan's
 * `block`. */
unsigned kiln__rank_digit_items(const kiln__rank_plan *p);
bool kiln__rank_aligned(const kiln__rank_shape *shape);
/* Returns the number of blocks per selection of such a kernel. */
static inline uint64_t kiln__rank_blocks(const kiln__rank_args *args)
{
  return (uint64_t)args->workers * (args->steps + 1);
}
/* Queues the selection for p->chunk selections or fewer, the first of which is
 * for row `row`. Returns the arguments for kernels that read the results. */
kiln_status kiln__rank_queue(kiln__rank_args *args, kiln__storage *storage,
                             const kiln__kernel_set *const set[],
                             const kiln__rank_plan *p, uint64_t row,
                             uint64_t rows);

#endif
