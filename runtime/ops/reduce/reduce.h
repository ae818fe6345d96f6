/* reduce.h -- the internal interface that the host sides of all reductions
 * share. It covers the launch of reduce_any.cu, reductions of matrix rows,
 * and properties of inputs and operations. Only files of runtime/ops/reduce
 * include this header. */
#ifndef KILN_OPS_REDUCE_INTERNAL_H
#define KILN_OPS_REDUCE_INTERNAL_H

#include "../ops.h"

#include <kiln/reduce.h>

/* The kind of a reduction, with the values of the macro KILN_KIND
 * (kernels_src/kiln/reduction_kind.cuh). */
typedef enum kiln__reduction_kind {
  KILN__REDUCTION_OP,
  KILN__REDUCTION_ARG_MIN,
  KILN__REDUCTION_ARG_MAX,
  KILN__REDUCTION_MOMENTS,
  KILN__REDUCTION_NORM,
  KILN__REDUCTION_EXTREMES
} kiln__reduction_kind;

/* One launch of reduce_any.cu. The arguments have been checked. */
typedef struct kiln__reduction {
  kiln__reduction_kind kind;
  const kiln_input *x;
  uint64_t n;    /* number of elements per row */
  uint64_t rows; /* number of rows, below 2^32 */
  /* Number of elements from the start of a row to the start of the next row. */
  uint64_t leading;
  const kiln_op *op;    /* the operation for the kind KILN__REDUCTION_OP */
  kiln_array out, out2; /* outputs; an output without a type is not written */
  double extra;
  bool portable;
  const kiln_shape *shape; /* views of the input in normal form, or NULL */
  /* Preamble and parameters of the user's code, or NULL. */
  const kiln_code *code;
  /* The parameters of the launch, which kiln__reduction_plan() sets. */
  kiln__spec spec;
  uint64_t chunk; /* vectors per chunk */
  uint64_t slots; /* number of results that blocks store */
  uint32_t head;
  kiln_dim3 grid;
  kiln__need need;
} kiln__reduction;

/* Chooses the parameters of the launch of a reduction. */
void kiln__reduction_plan(kiln__reduction *f, const kiln_stream *stream);
/* Compiles the kernel of a reduction if necessary, and queues the launch. */
kiln_status kiln__reduction_run(kiln_stream *stream, const kiln__reduction *f,
                                const kiln_workspace *workspace);

/* A reduction of each row or column of a matrix. Consecutive rows start
 * `leading` elements apart. The arguments have been checked. */
typedef struct kiln__matrix {
  const char *call; /* name of the public function, for messages */
  kiln__reduction_kind kind;
  const kiln_input *x;
  uint64_t rows, columns, leading;
  const kiln_op *op;    /* the operation for the kind KILN__REDUCTION_OP */
  kiln_array out, out2; /* outputs; an output without a type is not written */
  double extra;         /* correction of the divisor of a variance */
  const kiln_code *code;
  /* True if several blocks reduce each row, by means of `reduction`;
   * kiln__rows_plan() sets these members. */
  bool is_wide;
  kiln__reduction reduction;
  kiln__need need;
} kiln__matrix;

/* Chooses how the rows of a matrix are reduced. */
void kiln__rows_plan(kiln__matrix *m, const kiln_stream *stream);
/* Queues the kernels that reduce each row r to out[r]. */
kiln_status kiln__rows_run(kiln_stream *stream, const kiln__matrix *m,
                           const kiln_workspace *workspace);

/* ---- Inputs and operations ----------------------------------------------- */

/* Returns the array. If the array has no type, the returned array has the type
 * `type`. */
kiln_array kiln__or_type(kiln_array a, kiln_dtype type);
/* Returns whether the operation must combine elements in their order. */
bool kiln__op_ordered(const kiln_op *op);
/* Returns the type in which an operation with an output of type `out`
 * computes. */
kiln_dtype kiln__op_type(kiln_dtype out);
/* Returns the number of 32-bit words of an accumulator for results of this
 * type. */
unsigned kiln__acc_words(kiln_dtype type);
/* Returns the number of 32-bit words of a partial result of a reduction, where
 * `out` is the type of the first output. */
unsigned kiln__result_words(kiln__reduction_kind kind, const kiln_input *x,
                            kiln_dtype out);
/* Returns the bytes per element, summed over all arrays, or 4 for an input
 * without arrays. */
unsigned kiln__input_width(const kiln_input *x);
/* Returns the distance in elements between the preceding multiple of 16
 * bytes and the first element of the widest array. */
unsigned kiln__input_phase(const kiln_input *x);
/* Returns whether every array of the input has aligned vectors if a vector
 * starts `phase` elements before element 0. `vec` is the number of elements per
 * vector. */
bool kiln__input_in_phase(const kiln_input *x, unsigned phase, unsigned vec);
/* Returns the number of blocks of this tuning row that can be resident on the
 * device at the same time. */
uint64_t kiln__resident(const kiln_device *device, const kiln__tuning *t);

/* Argument checks that several reductions share. */
void kiln__check_reduction_op(kiln__checker *c, const kiln_op *op,
                              kiln_dtype out);
void kiln__check_floating(kiln__checker *c, const char *name, kiln_array a);
void kiln__check_index_type(kiln__checker *c, const char *name, kiln_array a);
/* Checks the operation of an arg-reduction and its outputs of n elements, at
 * least one of which must have a type. Clears the address of an output without a
 * type. */
void kiln__check_extremum(kiln__checker *c, kiln_op_name op, kiln_array *value,
                          kiln_array *index, uint64_t n);
/* Does the same for means and variances. */
void kiln__check_moments(kiln__checker *c, kiln_array *mean,
                         kiln_array *variance, double correction, uint64_t n);
/* Returns the kind of an arg-reduction. */
static inline kiln__reduction_kind kiln__extremum_kind(kiln_op_name op)
{
  return op == KILN_MIN ? KILN__REDUCTION_ARG_MIN : KILN__REDUCTION_ARG_MAX;
}

#endif
