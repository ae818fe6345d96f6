/* bind.h -- what the bind_ files share: they put the operands of one statement
 * into the fields of an instruction. Functions that return bool return false
 * after a message, or if memory is short. */
#ifndef KILN_CPU_BIND_H
#define KILN_CPU_BIND_H

#include "code_build.h"

typedef struct kiln__cpu_binder {
  kiln__cpu_lower *l;
  const kiln__cpu_row *row;
  kiln__cpu_insn *in;
  uint8_t n_sources; /* slots of a, b, c, e used */
  uint8_t n_dests, n_numbers, n_addresses;
  bool second_vec;  /* vec is taken */
  int32_t more[64]; /* vec2 while it grows */
  uint16_t n_more;
} kiln__cpu_binder;

/* Returns the variable that a symbol operand names, or NULL. */
const kiln__cpu_ptx_variable *
kiln__cpu_variable_of(const kiln__cpu_ptx_operand *o);
bool kiln__cpu_is_literal(const kiln__cpu_ptx_operand *o);
/* Returns the number of elements of a V or =V operand. */
uint8_t kiln__cpu_data_count(const kiln__cpu_form *f, const kiln__cpu_insn *in);
/* Whether a member mask follows the operands of the row. */
bool kiln__cpu_wants_mask(const kiln__cpu_row *row, const kiln__cpu_insn *in);
/* Whether the statement writes the operand; `left` counts those not yet taken.
 */
bool kiln__cpu_is_present(const kiln__cpu_form *f, const kiln__cpu_insn *in,
                          uint32_t left);
/* Reports "arguments mismatch" and returns false. */
bool kiln__cpu_mismatch(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o);
/* Resolves $1, $2 and the like of a form's type. */
kiln__cpu_ptx_type kiln__cpu_type_of(const kiln__cpu_binder *k, uint8_t type);
/* Checks a literal against the range of the form. */
bool kiln__cpu_check_range(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* Checks that the operand is a scalar register that suits `want`, or a wider
 * one if `wider`. Its own type goes to *have. */
bool kiln__cpu_check_register(kiln__cpu_binder *k,
                              const kiln__cpu_ptx_operand *o, uint8_t want,
                              bool wider, kiln__cpu_ptx_type *have);
/* Stores a source in the form's slot, or in the next of a, b, c and e. */
bool kiln__cpu_put_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                          int32_t id);
/* Returns a constant for the address of a variable plus `offset`. The variable
 * must not be in .local. */
int32_t kiln__cpu_address_constant(kiln__cpu_lower *l,
                                   const kiln__cpu_ptx_variable *v,
                                   uint8_t bytes, int64_t offset);
/* Whether the variable is a texref, surfref or samplerref. */
bool kiln__cpu_is_reference(const kiln__cpu_ptx_variable *v);
/* Makes a constant of at least `least_bytes` bytes from a literal. */
bool kiln__cpu_bind_literal(kiln__cpu_binder *k, uint8_t type,
                            uint8_t least_bytes, const kiln__cpu_ptx_operand *o,
                            int32_t *id);
/* Each of these binds one operand of the shape in its name, as ops.def
 * explains, and emits what has to be computed before the instruction. */
bool kiln__cpu_bind_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_predicate(kiln__cpu_binder *k, const kiln__cpu_form *f,
                              const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_number(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_choice(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* Binds a register that is written, or `_`, to *to. */
bool kiln__cpu_bind_dest_to(kiln__cpu_binder *k, uint8_t type, bool wider,
                            const kiln__cpu_ptx_operand *o, int32_t *to);
bool kiln__cpu_bind_dest(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_address(kiln__cpu_binder *k, const kiln__cpu_form *f,
                            const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_data(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_pack(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_list(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_gradient(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_texture(kiln__cpu_binder *k, const kiln__cpu_form *f,
                            const kiln__cpu_ptx_operand *o);
/* Copies `n` slots to the arena. NULL: no memory. */
const int32_t *kiln__cpu_keep_vector(kiln__cpu_binder *k, const int32_t *ids,
                                     uint32_t n);

#endif
