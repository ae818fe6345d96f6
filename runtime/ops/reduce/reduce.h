/* reduce.h -- what the host sides of all reductions share: the launch of
 * reduce_any.cu, rows of a matrix, and properties of inputs and operations. Included
 * by runtime/ops/reduce alone. */
#ifndef KILN_OPS_REDUCE_INTERNAL_H
#define KILN_OPS_REDUCE_INTERNAL_H

#include "../ops.h"

#include <kiln/reduce.h>

/* KILN_KIND of reduce_any.cu. */
typedef enum kiln__reduction_kind {
  KILN__REDUCTION_OP,
  KILN__REDUCTION_ARG_MIN,
  KILN__REDUCTION_ARG_MAX,
  KILN__REDUCTION_MOMENTS,
  KILN__REDUCTION_NORM
} kiln__reduction_kind;

/* One launch of reduce_any.cu, whose arguments are checked. */
typedef struct kiln__reduction {
  kiln__reduction_kind kind;
  const kiln_input *x;
  uint64_t n;           /* elements of a row */
  uint64_t rows;        /* below 2^32 */
  uint64_t leading;     /* elements from a row to the next */
  const kiln_op *op;    /* of KILN__REDUCTION_OP */
  kiln_array out, out2; /* no type: not wanted */
  double extra;
  bool portable;
  const kiln_code *code; /* NULL: none */
} kiln__reduction;

/* Compiles if necessary and queues the launch. */
kiln_status kiln__reduction_run(kiln_stream *stream,
                                const kiln__reduction *reduction,
                                const kiln_workspace *workspace);
/* The temporary storage that the launch needs. */
kiln__need kiln__reduction_need(const kiln_stream *stream,
                                const kiln__reduction *reduction);

/* Reduces each of `rows` rows of `columns` elements, `leading` elements apart, to
 * out[r]. The arguments are checked. */
kiln_status kiln__reduce_rows(kiln_stream *stream, const kiln_input *x,
                              uint64_t rows, uint64_t columns, uint64_t leading,
                              const kiln_op *op, kiln_array out,
                              const kiln_code *code,
                              const kiln_workspace *workspace);
kiln__need kiln__reduce_rows_need(const kiln_stream *stream,
                                  const kiln_input *x, uint64_t rows,
                                  uint64_t columns, uint64_t leading,
                                  const kiln_op *op, kiln_array out);

/* ---- Inputs and operations ------------------------------------------------------- */

/* The array, with `type` where it has none. */
kiln_array kiln__or_type(kiln_array a, kiln_dtype type);
/* Must the operation combine elements in their order? */
bool kiln__op_ordered(const kiln_op *op);
/* The type that an operation with this output computes in. */
kiln_dtype kiln__op_type(kiln_dtype out);
/* 32-bit words of an accumulator for results of this type. */
unsigned kiln__acc_words(kiln_dtype type);
/* Elements per vector: 16 bytes of the widest array; 4 without arrays. */
unsigned kiln__input_vec(const kiln_input *x);
/* Bytes of one element of all arrays together; 4 without arrays. */
unsigned kiln__input_width(const kiln_input *x);
/* Elements between a multiple of 16 bytes and the widest array's first element. */
unsigned kiln__input_phase(const kiln_input *x);
/* Would every array be aligned `phase` elements before its first one? `vec`:
 * elements per vector. */
bool kiln__input_in_phase(const kiln_input *x, unsigned phase, unsigned vec);
/* The number of blocks of a tuning that are resident on the device at once. */
uint64_t kiln__resident(const kiln_device *device, const kiln__tuning *t);

/* Checks that several reductions need. */
void kiln__check_reduction_op(kiln__checker *c, const kiln_op *op,
                              kiln_dtype out);
void kiln__check_floating(kiln__checker *c, const char *name, kiln_array a);
void kiln__check_index_type(kiln__checker *c, const char *name, kiln_array a);

#endif
