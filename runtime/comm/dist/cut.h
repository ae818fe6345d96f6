/* cut.h -- finds where sorted blocks are cut, so that the parts of a sorted whole
 * have given lengths. */
#ifndef KILN_COMM_CUT_H
#define KILN_COMM_CUT_H

#include "dist.h"

/* How kiln_sort() orders keys. */
typedef struct kiln__key_order {
  kiln_dtype type;
  bool descending;
  unsigned begin_bit, end_bit;
} kiln__key_order;

/* Returns an unsigned number with the order of the key at `p`. */
uint64_t kiln__key_rank(const kiln__key_order *order, const void *p);

/* Cuts the sorted blocks of all ranks. `keys` is this rank's block, sizes[] has
 * the length of each rank's block, and lengths[] that of each part of the whole.
 * Sets cuts[p] to the start of this rank's share of part p, and cuts[ranks] to the
 * length of its block. Equal keys are in the order of the ranks. */
kiln_status kiln__cut_blocks(kiln__dist *d, const kiln__key_order *order,
                             CUdeviceptr keys, const uint64_t *sizes,
                             const uint64_t *lengths, uint64_t *cuts);

#endif
