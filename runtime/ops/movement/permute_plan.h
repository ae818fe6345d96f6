/* permute_plan.h -- decides how kiln_permute() moves an array. Pure functions. */
#ifndef KILN_PERMUTE_PLAN_H
#define KILN_PERMUTE_PLAN_H

#include "../ops.h"

#include <kiln/permute.h>

/* The axes of the desc, and one for the values of an element. */
enum { KILN__PERMUTE_AXES = KILN_MAX_AXES + 1 };

enum { KILN__ROW_ITEMS = 4 }; /* units per thread in permute_rows.cu */

/* The struct kiln::axis of axes.cuh. */
typedef struct kiln__axis {
  uint64_t size, reciprocal, in, out;
} kiln__axis;

/* The struct `shape` of permute.cu. */
typedef struct kiln__tile_shape {
  uint64_t a, b;
  kiln__axis tiles_a, tiles_b, of_a[6], of_b[6], of_batch[4];
  uint32_t n_a, n_b, n_batch;
} kiln__tile_shape;

/* The struct `shape` of permute_rows.cu. */
typedef struct kiln__row_shape {
  kiln__axis row, axes[6];
  uint32_t n;
} kiln__row_shape;

typedef enum kiln__permute_path {
  KILN__PERMUTE_COPY, /* the order of the elements does not change */
  KILN__PERMUTE_ROWS, /* permute_rows.cu */
  KILN__PERMUTE_TILES /* permute.cu */
} kiln__permute_path;

typedef struct kiln__permute_plan {
  kiln__permute_path path;
  /* The merged axes in the order of the output, slowest first, with strides in
   * elements. */
  size_t n;
  kiln__axis axis[KILN__PERMUTE_AXES];
  uint32_t element; /* bytes per element */
  uint32_t unit;    /* bytes per access */
  uint32_t pack;    /* elements per unit, or 1 */
  uint32_t ta, tb, block;
  uint32_t skew; /* elements per sector if rows of the output are not aligned */
  bool small;    /* fewer than 2^31 units */
  uint64_t bytes;  /* size of the array */
  uint64_t blocks; /* blocks of the grid */
  kiln__tile_shape tiles;
  kiln__row_shape rows;
} kiln__permute_plan;

/* Plans the permutation of an array with at least one element. The desc has been
 * checked. */
void kiln__permute_plan_make(kiln__permute_plan *p,
                             const kiln_permute_desc *desc);

#endif
