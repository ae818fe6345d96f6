/* bind.h -- the interface that the bind_ files share. These files check the
 * operands of one statement and store them in the fields of an instruction.
 * Functions that return bool return false after they report a mistake, or if
 * memory allocation fails. */
#ifndef KILN_CPU_BIND_H
#define KILN_CPU_BIND_H

#include "code_build.h"

typedef struct kiln__cpu_binder {
  kiln__cpu_lower *l;
  const kiln__cpu_row *row;
  kiln__cpu_insn *in;
  uint8_t n_sources; /* number of used source fields among a, b, c, e */
  uint8_t n_dests, n_numbers, n_addresses;
  bool second_vec;  /* the array vec is in use, so further data goes to vec2 */
  int32_t more[64]; /* elements collected so far for the array vec2 */
  uint16_t n_more;
} kiln__cpu_binder;

/* Returns the variable that a symbol operand names, or NULL if the operand does
 * not name a variable. */
const kiln__cpu_ptx_variable *
kiln__cpu_variable_of(const kiln__cpu_ptx_operand *o);
bool kiln__cpu_is_literal(const kiln__cpu_ptx_operand *o);
/* Returns the number of elements of a vector operand, which ops.def writes as V
 * or =V. */
uint8_t kiln__cpu_data_count(const kiln__cpu_form *f, const kiln__cpu_insn *in);
/* Returns whether the statement has a member mask, in addition to the operands
 * that its row of ops.def lists. */
bool kiln__cpu_wants_mask(const kiln__cpu_row *row, const kiln__cpu_insn *in);
/* Returns whether the statement contains the optional operand that `f`
 * describes. `left` is the number of the statement's operands that are not yet
 * bound. */
bool kiln__cpu_is_present(const kiln__cpu_form *f, const kiln__cpu_insn *in,
                          uint32_t left);
/* Reports the mistake "arguments mismatch" at the operand. Returns false. */
bool kiln__cpu_mismatch(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o);
/* Replaces a type placeholder of ops.def, such as $1 or $2, by the actual type
 * of the instruction. */
kiln__cpu_ptx_type kiln__cpu_type_of(const kiln__cpu_binder *k, uint8_t type);
/* Checks a literal against the range that the operand description in ops.def
 * allows. */
bool kiln__cpu_check_range(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* Checks that the operand is a scalar register that accepts type `want`. If
 * `wider`, the register may also be wider than `want`. *have receives the
 * declared type of the register. */
bool kiln__cpu_check_register(kiln__cpu_binder *k,
                              const kiln__cpu_ptx_operand *o, uint8_t want,
                              bool wider, kiln__cpu_ptx_type *have);
/* Stores the source operand `id` in the instruction field that its description
 * in ops.def names, or else in the next free field of a, b, c and e. */
bool kiln__cpu_put_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                          int32_t id);
/* Returns a constant that holds the address of a variable plus `offset`. The
 * variable must not be in .local. */
int32_t kiln__cpu_address_constant(kiln__cpu_lower *l,
                                   const kiln__cpu_ptx_variable *v,
                                   uint8_t bytes, int64_t offset);
/* Returns whether the variable is a texref, surfref or samplerref. */
bool kiln__cpu_is_reference(const kiln__cpu_ptx_variable *v);
/* Creates a constant of at least `least_bytes` bytes from a literal. *id
 * receives its operand encoding. */
bool kiln__cpu_bind_literal(kiln__cpu_binder *k, uint8_t type,
                            uint8_t least_bytes, const kiln__cpu_ptx_operand *o,
                            int32_t *id);
/* Each of the functions below binds one kind of operand, which its name states:
 * it checks the operand and stores it in the fields of the instruction. ops.def
 * describes the kinds. The functions also emit the instructions that must
 * precede the bound instruction. */
bool kiln__cpu_bind_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_predicate(kiln__cpu_binder *k, const kiln__cpu_form *f,
                              const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_number(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_choice(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o);
/* Checks a destination operand and stores the number of its register in *to.
 * For the operand `_`, *to becomes -1. */
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
bool kiln__cpu_bind_map(kiln__cpu_binder *k, const kiln__cpu_form *f,
                        const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_offsets(kiln__cpu_binder *k,
                            const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_mask(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_policy(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o);
/* Appends one element to vec2: a register that accepts `type`, or a literal. */
bool kiln__cpu_bind_listed(kiln__cpu_binder *k, uint8_t type,
                           const kiln__cpu_ptx_operand *o);
bool kiln__cpu_bind_texture(kiln__cpu_binder *k, const kiln__cpu_form *f,
                            const kiln__cpu_ptx_operand *o);
/* Binds the elements of a vector operand. `ids` receives `n` registers. An
 * element of a destination (`written`) may be `_`, whose id is -1. */
bool kiln__cpu_bind_elements(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o, uint8_t n,
                             bool written, int32_t *ids);
/* Binds all operands of a video instruction. */
bool kiln__cpu_bind_video(kiln__cpu_binder *k);
/* Binds all operands of wgmma.mma_async. */
bool kiln__cpu_bind_wgmma(kiln__cpu_binder *k);
/* Binds a fragment of mma or wmma. The first fragment of an instruction also
 * sets the member imm2 to the kiln__cpu_matrix of the opcode. */
bool kiln__cpu_bind_fragment(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o);
/* Checks the sparsity selector of mma.sp and stores it in the
 * kiln__cpu_matrix. */
bool kiln__cpu_bind_selector(kiln__cpu_binder *k,
                             const kiln__cpu_ptx_operand *o);
/* Copies `n` slots to the arena. Returns NULL if memory allocation fails. */
const int32_t *kiln__cpu_keep_vector(kiln__cpu_binder *k, const int32_t *ids,
                                     uint32_t n);

#endif
