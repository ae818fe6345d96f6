/* stencil_plan.h -- the checked arguments of kiln_stencil(), as one or two passes. */
#ifndef KILN_STENCIL_PLAN_H
#define KILN_STENCIL_PLAN_H

#include "../ops.h"
#include "kernel_params.h"

#include <kiln/stencil.h>

/* The kernels: stencil_rows.cu, stencil.cu with its ring of rows in shared memory,
 * and stencil_at.cu. */
typedef enum kiln__stencil_kernel {
  KILN__STENCIL_ROWS,
  KILN__STENCIL_RING,
  KILN__STENCIL_AT
} kiln__stencil_kernel;

/* One launch. Sizes and distances are in elements, distances from row to row and
 * from plane to plane. */
typedef struct kiln__stencil_pass {
  const kiln_stencil_desc *desc;
  kiln__stencil_kernel kernel;
  bool line;      /* one dimension */
  bool separable; /* the weights are those of the columns, then of the rows */
  bool last;      /* the pass writes the output of the operation */
  bool aligned;   /* vectors of out are aligned to their size */
  uint32_t rx, ry, rz;
  uint32_t block;
  uint32_t vec; /* columns per lane; for stencil_at.cu elements per thread */
  uint32_t stages, chunk;
  /* 1 and 2 in the two passes of a call with a constant border (stencil.cu) */
  uint32_t beyond;
  kiln_array in, out, weights;
  const double *host_weights; /* the first weight of this pass, or NULL */
  kiln_dtype acc;
  uint64_t size[3];
  uint64_t in_row, in_plane, out_row, out_plane;
  uint64_t strips; /* number of strips or tiles side by side */
  uint64_t run;    /* rows per warp; for stencil_at.cu tiles per column */
  uint64_t blocks; /* size of the grid */
} kiln__stencil_pass;

typedef struct kiln__stencil_plan {
  unsigned passes; /* 0 if the array is empty */
  kiln__stencil_pass pass[2];
  kiln__need need;
} kiln__stencil_plan;

/* Checks the arguments of a call and plans its passes. */
kiln_status kiln__stencil_prepare(kiln__stencil_plan *plan,
                                  const kiln_stream *stream,
                                  const kiln_stencil_desc *desc,
                                  const kiln_workspace *workspace);

/* Writes the weights of a pass as a C++ expression over their index a, to an
 * empty buffer. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__stencil_weights(kiln__buf *out, const kiln__stencil_pass *p);

#endif
