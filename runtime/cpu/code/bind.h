/* bind.h -- what the files that put operands into slots share. */
#ifndef KILN_CPU_BIND_H
#define KILN_CPU_BIND_H

#include "code_build.h"

typedef struct kiln__binder {
  kiln__lower *l;
  const kiln__row *row;
  kiln__insn *in;
  uint8_t n_sources; /* slots of a, b, c, e used */
  uint8_t n_dests, n_numbers, n_addresses;
  bool second_vec;  /* vec is taken */
  int32_t more[64]; /* vec2 while it grows */
  uint16_t n_more;
} kiln__binder;

/* The variable that a symbol names; NULL: something else. */
const kiln__ptx_variable *kiln__variable_of(const kiln__ptx_operand *o);
bool kiln__is_literal(const kiln__ptx_operand *o);
/* Elements of V or =V. */
uint8_t kiln__data_count(const kiln__form *f, const kiln__insn *in);
/* Whether a member mask follows the row's operands. */
bool kiln__wants_mask(const kiln__row *row, const kiln__insn *in);
/* Whether the form has an operand in this statement, which has `left` more. */
bool kiln__is_present(const kiln__form *f, const kiln__insn *in, uint32_t left);
/* "arguments mismatch", and false. */
bool kiln__mismatch(kiln__binder *k, const kiln__ptx_operand *o);
/* A form's type with $1, $2 and the like resolved. */
kiln__ptx_type kiln__type_of(const kiln__binder *k, uint8_t type);
/* Whether the statement's opcode begins so. */
bool kiln__is_mnemonic(const kiln__binder *k, const char *text);
/* A scalar register operand of fitting type. Its type goes to *have. */
bool kiln__check_register(kiln__binder *k, const kiln__ptx_operand *o,
                          uint8_t want, bool wider, kiln__ptx_type *have);
/* Into the form's slot, or the next of a, b, c, e. */
bool kiln__put_source(kiln__binder *k, const kiln__form *f, int32_t id);
/* First byte of a variable, plus `offset`, as a constant; not of .local. */
int32_t kiln__address_constant(kiln__lower *l, const kiln__ptx_variable *v,
                               uint8_t bytes, int64_t offset);
/* texref, surfref, samplerref. */
bool kiln__is_reference(const kiln__ptx_variable *v);
/* A literal as a constant of at least `room` bytes. */
bool kiln__bind_literal(kiln__binder *k, uint8_t type, uint8_t room,
                        const kiln__ptx_operand *o, int32_t *id);
bool kiln__bind_source(kiln__binder *k, const kiln__form *f,
                       const kiln__ptx_operand *o);
bool kiln__bind_predicate(kiln__binder *k, const kiln__form *f,
                          const kiln__ptx_operand *o);
bool kiln__bind_number(kiln__binder *k, const kiln__form *f,
                       const kiln__ptx_operand *o);
bool kiln__bind_choice(kiln__binder *k, const kiln__form *f,
                       const kiln__ptx_operand *o);
/* A written register, or `_`, into *to. */
bool kiln__bind_dest_to(kiln__binder *k, uint8_t type, bool wider,
                        const kiln__ptx_operand *o, int32_t *to);
bool kiln__bind_dest(kiln__binder *k, const kiln__form *f,
                     const kiln__ptx_operand *o);
bool kiln__bind_address(kiln__binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o);
bool kiln__bind_data(kiln__binder *k, const kiln__form *f,
                     const kiln__ptx_operand *o);
bool kiln__bind_pack(kiln__binder *k, const kiln__form *f,
                     const kiln__ptx_operand *o);
bool kiln__bind_list(kiln__binder *k, const kiln__form *f,
                     const kiln__ptx_operand *o);
bool kiln__bind_texture(kiln__binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o);
/* A copy in the arena; NULL: no memory. */
const int32_t *kiln__keep_vector(kiln__binder *k, const int32_t *ids,
                                 uint32_t n);

#endif
