/* generator.h -- the parts of the header generator that programs compiled as a
 * whole (generated_header.c) and linked programs (generated_texts.c) share. */
#ifndef KILN_OPS_GENERATOR_H
#define KILN_OPS_GENERATOR_H

#include "ops.h"

/* What every generated function begins with. */
#define KILN__INLINE "static __device__ __forceinline__ "

/* Maximum number of functions in the generated headers: the functions of the
 * spec, the map, the operation and the operation's identity. */
enum { KILN__MAX_TEXTS = KILN__MAX_FUNCTIONS + 3 };

typedef struct kiln__generator {
  kiln__buf *types, *texts; /* the text of the two headers */
  const kiln__spec *spec;
  size_t n_arrays, n_params, n_texts;
  bool structs, complexes; /* true if the call has elements of such types */
  kiln__function text[KILN__MAX_TEXTS]; /* functions with an expression */
  bool linked; /* the expressions are a program of their own */
  /* Linked programs: number of elements per call of an expression, or 0 if each
   * element has its own call; and the same number for expressions with the
   * operands a and b. */
  unsigned batch, pairs;
} kiln__generator;

/* Returns a generator of two headers for a spec. */
kiln__generator kiln__gen_start(kiln__buf *types, kiln__buf *texts,
                                const kiln__spec *spec);
/* Returns KILN_OK, or KILN_ENOMEM if one of the headers is incomplete. */
kiln_status kiln__gen_status(const kiln__generator *g);

kiln__type_text kiln__gen_array_type(const kiln__generator *g, size_t k);
/* Returns whether an expression can use the elements of all input arrays. Other
 * expressions use the operands a and b, or nothing. */
bool kiln__gen_is_elementwise(const kiln__function *f);
/* Returns whether an expression calls x_at(), y_at() or the like. */
bool kiln__gen_reads_neighbours(const kiln__generator *g);

/* Each of these functions adds one part to a header; their definitions describe
 * the parts. */
void kiln__gen_value_types(const kiln__generator *g, kiln__buf *out);
void kiln__gen_types(const kiln__generator *g);
void kiln__gen_rows(const kiln__generator *g, kiln__buf *out);
void kiln__gen_readers(const kiln__generator *g, kiln__buf *out);
void kiln__gen_function_types(const kiln__generator *g, kiln__buf *out);
void kiln__gen_operands(const kiln__generator *g, kiln__buf *out,
                        const kiln__function *f);
void kiln__gen_function_body(const kiln__generator *g, const kiln__function *f);
void kiln__gen_definition(const kiln__generator *g, const kiln__function *f);
void kiln__gen_preamble(const kiln__generator *g);
void kiln__gen_user(const kiln__generator *g, uint32_t aligned);

/* Parts of the kernel's header that only linked programs have. Without batches
 * they are empty. */
void kiln__gen_kept_results(const kiln__generator *g);
void kiln__gen_batch_wrapper(const kiln__generator *g, const char *name);
void kiln__gen_op_batches(const kiln__generator *g);

#endif
