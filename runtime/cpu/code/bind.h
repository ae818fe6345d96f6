/* bind.h -- what the files that put operands into slots share. */
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

/* The variable that a symbol names; NULL: something else. */
const kiln__cpu_ptx_variable *
kiln__cpu_variable_of(const kiln__cpu_ptx_operand *o);
bool kiln__cpu_is_literal(const kiln__cpu_ptx_operand *o);
/* Elements of V or =V. */
uint8_t kiln__cpu_data_count(const kiln__cpu_form *f, const kiln__cpu_insn *in);
/* Whether a member mask follows the row's operands. */
bool kiln__cpu_wants_mask(const kiln__cpu_row *row, const kiln__cpu_insn *in);
/* Whether the form has an operand in this statement, which has `left` more. */
bool kiln__cpu_is_present(const kiln__cpu_form *f, const kiln__cpu_insn *in,
                          uint32_t left);
/* "arguments mismatch", and false. */
bool kiln__cpu_mismatch(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o);
/* A form's type with $1, $2 and the like resolved. */
kiln__cpu_ptx_type kiln__cpu_type_of(const kiln__cpu_binder *k, uint8_t type);
/* Whether a literal lies in the form's range; complains if not. */
bool kiln__cpu_check_range(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* A scalar register operand of fitting type. Its type goes to *have. */
bool kiln__cpu_check_register(kiln__cpu_binder *k,
                              const kiln__cpu_ptx_operand *o, uint8_t want,
                              bool wider, kiln__cpu_ptx_type *have);
/* Into the form's slot, or the next of a, b, c, e. */
bool kiln__cpu_put_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                          int32_t id);
/* First byte of a variable, plus `offset`, as a constant; not of .local. */
int32_t kiln__cpu_address_constant(kiln__cpu_lower *l,
                                   const kiln__cpu_ptx_variable *v,
                                   uint8_t bytes, int64_t offset);
/* texref, surfref, samplerref. */
bool kiln__cpu_is_reference(const kiln__cpu_ptx_variable *v);
/* A literal as a constant of at least `room` bytes. */
bool kiln__cpu_bind_literal(kiln__cpu_binder *k, uint8_t type, uint8_t room,
                            const kiln__cpu_ptx_operand *o, int32_t *id);
bool kiln__cpu_bind_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_predicate(kiln__cpu_binder *k, const kiln__cpu_form *f,
                              const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_number(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_choice(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* A written register, or `_`, into *to. */
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
/* A copy in the arena; NULL: no memory. */
const int32_t *kiln__cpu_keep_vector(kiln__cpu_binder *k, const int32_t *ids,
                                     uint32_t n);

#endif
