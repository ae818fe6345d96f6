/* dist_radix.h -- the exchange of a distributed sort: each rank receives the keys of
 * its part of the sorted whole, not sorted yet. */
#ifndef KILN_COMM_DIST_RADIX_H
#define KILN_COMM_DIST_RADIX_H

#include "cut.h"

/* Where a sort keeps what it needs: offsets in the temporary memory. */
typedef struct kiln__sort_memory {
  size_t keys, values;    /* n keys and n values */
  size_t positions;       /* n positions, for values that are structs */
  size_t counts, table;   /* of bins; for the functions of the device */
  size_t offsets, number; /* of classes; a count */
  size_t inner, inner_size, total; /* workspace of the operations of a device */
} kiln__sort_memory;

/* Lays out the temporary memory. */
kiln_status kiln__radix_plan(const kiln__dist *d, const kiln_sort_desc *desc,
                             kiln__sort_memory *memory);

/* Moves the keys and values of all ranks, so that rank p has in keys_out and
 * values_out the elements of part p of the sorted whole. Equal keys of a rank keep
 * their order, and stand behind those of the ranks before it. sizes[] has the
 * length of each rank's block. */
kiln_status kiln__radix_exchange(kiln__dist *d, const kiln_sort_desc *desc,
                                 const kiln__sort_memory *memory,
                                 const uint64_t *sizes);

#endif
