/* reduce.h -- what all reductions share. */
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

/* One launch of reduce_any.cu: checked arguments. */
typedef struct kiln__reduction {
  kiln__reduction_kind kind;
  const kiln_input *x;
  uint64_t n;           /* elements of a row */
  uint64_t rows;        /* below 2^32 */
  uint64_t leading;     /* elements from a row to the next */
  const kiln_op *op;    /* of KILN__REDUCTION_OP */
  kiln_array out, out2; /* without type: not wanted */
  double extra;
  bool portable;
  const kiln_code *code; /* NULL: none */
} kiln__reduction;

kiln_status kiln__reduction_run(kiln_stream *stream,
                                const kiln__reduction *reduction,
                                const kiln_workspace *workspace);
size_t kiln__reduction_bytes(const kiln_stream *stream,
                             const kiln__reduction *reduction);

/* out[r] from `columns` elements each; checked arguments. */
kiln_status kiln__reduce_rows(kiln_stream *stream, const kiln_input *x,
                              uint64_t rows, uint64_t columns, uint64_t leading,
                              const kiln_op *op, kiln_array out,
                              const kiln_code *code,
                              const kiln_workspace *workspace);
size_t kiln__reduce_rows_bytes(const kiln_stream *stream, const kiln_input *x,
                               uint64_t rows, uint64_t columns,
                               uint64_t leading, const kiln_op *op,
                               kiln_array out);

/* ---- For all hosts of reductions ------------------------------------------------- */

/* The array with its type, or with `type` where it has none. */
kiln_array kiln__or_type(kiln_array a, kiln_dtype type);
/* Must operands keep the order of the elements? */
bool kiln__op_ordered(const kiln_op *op);
/* The type that an operation with this output computes in. */
kiln_dtype kiln__op_type(kiln_dtype out);
/* 32-bit words of a value of this type as it computes. */
unsigned kiln__acc_words(kiln_dtype type);
/* Elements of 16 bytes of the widest array; 4 without any. */
unsigned kiln__input_vec(const kiln_input *x);
/* Bytes of one element of all arrays; 4 without any. */
unsigned kiln__input_width(const kiln_input *x);
/* Elements from a multiple of 16 bytes to the widest array's first one. */
unsigned kiln__input_phase(const kiln_input *x);
/* Is every array that far from a boundary, counted in packs? */
bool kiln__input_in_phase(const kiln_input *x, unsigned phase, unsigned pack);
/* Resident blocks of the device for a tuning. */
uint64_t kiln__resident(const kiln_device *device, const kiln__tuning *t);

/* Checks that all reductions need. */
void kiln__check_reduction_op(kiln__checker *c, const kiln_op *op,
                              kiln_dtype out);
void kiln__check_floating(kiln__checker *c, const char *name, kiln_array a);
void kiln__check_index_type(kiln__checker *c, const char *name, kiln_array a);
/* bytes NULL: KILN_EINVAL. */
kiln_status kiln__check_bytes(const char *call, const size_t *bytes);

#endif
