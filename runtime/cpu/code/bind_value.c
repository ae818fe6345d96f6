/* bind_value.c -- binds operands that are one value per lane: registers,
 * literals, special registers, and addresses of variables and functions.
 *
 * A register becomes a virtual register. Most other operands become constants,
 * which are slots that are filled when the frame is created. The values of
 * clocks and stack addresses change while a block runs, so instructions compute
 * them. */
#include "bind.h"

#include <string.h>

/* ---- Registers and values ------------------------------------------------ */

int32_t kiln__cpu_register_of(const kiln__cpu_lower *l,
                              const kiln__cpu_ptx_operand *o)
{
  return (int32_t)l->base[o->symbol->u.variable->index] +
         (o->component > 0 ? o->component : 0);
}

bool kiln__cpu_mismatch(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  return kiln__cpu_complain(k->l, o->pos,
                            "arguments mismatch for instruction '%.*s'",
                            KILN__SHOWN(k->l->at->opcode));
}

static kiln__cpu_ptx_type twice(kiln__cpu_ptx_type type)
{
  switch (type) {
  case KILN__U16:
    return KILN__U32;
  case KILN__S16:
    return KILN__S32;
  case KILN__U32:
    return KILN__U64;
  case KILN__S32:
    return KILN__S64;
  default:
    return KILN__NONE;
  }
}

kiln__cpu_ptx_type kiln__cpu_type_of(const kiln__cpu_binder *k, uint8_t type)
{
  switch (type) {
  case KILN__TYPE_LAST:
    return (kiln__cpu_ptx_type)k->in->type;
  case KILN__TYPE_BEFORE:
    return (kiln__cpu_ptx_type)k->in->type2;
  case KILN__TYPE_TWICE:
    return twice((kiln__cpu_ptx_type)k->in->type);
  case KILN__TYPE_WORD:
    return KILN__U64;
  default:
    return (kiln__cpu_ptx_type)type;
  }
}

/* Checks that the operand is a scalar register that accepts type `want`. *have
 * receives the declared type of the register. */
bool kiln__cpu_check_register(kiln__cpu_binder *k,
                              const kiln__cpu_ptx_operand *o, uint8_t want,
                              bool wider, kiln__cpu_ptx_type *have)
{
  const kiln__cpu_ptx_variable *v = o->symbol->u.variable;

  *have = v->type;
  if (v->type == KILN__B128)
    return kiln__cpu_complain(k->l, o->pos,
                              "the CPU device has no 128-bit registers");
  if ((v->vector > 1) != (o->component >= 0) || o->component >= v->vector ||
      (o->component >= 0 &&
       (k->l->matches->family & KILN__FAMILY_COMPONENTS) == 0))
    return kiln__cpu_mismatch(k, o);
  if (want == KILN__TYPE_WORD) {
    if (!kiln__cpu_type_fits(KILN__U64, v->type, false) &&
        !kiln__cpu_type_fits(KILN__U32, v->type, false))
      return kiln__cpu_mismatch(k, o);
    return true;
  }
  if (k->in->type == KILN__BF16 || k->in->type2 == KILN__BF16)
    wider = false;
  return kiln__cpu_type_fits(kiln__cpu_type_of(k, want), v->type, wider) ||
         kiln__cpu_mismatch(k, o);
}

bool kiln__cpu_put_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                          int32_t id)
{
  int32_t *const slots[] = {&k->in->a, &k->in->b, &k->in->c, &k->in->e};
  const uint8_t at = f->slot != 0 ? (uint8_t)(f->slot - 1) : k->n_sources++;

  if (at >= 4)
    return kiln__cpu_complain(k->l, k->l->at->pos,
                              "the instruction has too many operands");
  *slots[at] = id;
  return !k->l->out_of_memory;
}

/* ---- Special registers --------------------------------------------------- */

typedef struct named_register {
  const char *text;
  kiln__cpu_ptx_type type;
} named_register;

/* The special registers that do not change while a warp runs a block, indexed
 * by kiln__cpu_special_register. */
static const named_register specials[] = {
#define KILN__SPECIAL(name, text, type) {text, KILN__##type},
#include "../ptx/special_registers.def"
};
/* The clock registers. An instruction that reads a clock stores the index in
 * this table in its field `sub`. */
static const named_register clocks[] = {
#define KILN__SPECIAL_CLOCK(text, type) {text, KILN__##type},
#include "../ptx/special_registers.def"
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_zero_special(kiln__cpu_slice s)
{
  return (s.size >= 3 && memcmp(s.data, "pm", 2) == 0 && s.data[2] >= '0' &&
          s.data[2] <= '7') ||
         (s.size >= 7 && memcmp(s.data, "envreg", 6) == 0);
}

static kiln__cpu_ptx_type special_type(kiln__cpu_slice s)
{
  for (size_t i = 0; i < COUNT(specials); i++) {
    if (kiln__cpu_slice_is(s, specials[i].text))
      return specials[i].type;
  }
  for (size_t i = 0; i < COUNT(clocks); i++) {
    if (kiln__cpu_slice_is(s, clocks[i].text))
      return clocks[i].type;
  }
  /* Of the other special registers, only %pm0_64 to %pm7_64 have 64 bits. The
   * caller rejects unknown names. */
  return s.size == 6 && memcmp(s.data + 3, "_64", 3) == 0 ? KILN__B64
                                                          : KILN__B32;
}

/* Replaces the mov instruction by the instruction of row `op` of ops.def, with
 * the immediate operand `imm`. */
static bool become(kiln__cpu_binder *k, kiln__cpu_op op, int64_t imm)
{
  kiln__cpu_set_row(k->l, k->in, (uint16_t)op);
  k->in->imm = imm;
  return true;
}

/* Binds a clock register. A plain mov becomes the instruction that reads the
 * clock. A mov that splits the value into a vector keeps its row, and an
 * inserted instruction reads the clock first. */
static bool clock_value(kiln__cpu_binder *k, const kiln__cpu_form *f,
                        uint8_t bytes, uint8_t clock)
{
  kiln__cpu_insn in;

  if (!k->row->vec_written) {
    k->in->sub = clock;
    return become(k, KILN__OP_mov_clock, 0);
  }
  if (!kiln__cpu_fields_of(k->l, &in, bytes == 8 ? "mov.b64" : "mov.b32"))
    return false;
  kiln__cpu_set_row(k->l, &in, KILN__OP_mov_clock);
  in.sub = clock;
  in.reg_bytes = bytes;
  in.d = kiln__cpu_new_register(k->l, bytes);
  return in.d >= 0 && kiln__cpu_emit(k->l, &in, true) &&
         kiln__cpu_put_source(k, f, in.d);
}

static bool special_fits(kiln__cpu_slice s, kiln__cpu_ptx_type want)
{
  const kiln__cpu_ptx_type have = special_type(s);

  if (have == KILN__PRED || want == KILN__PRED)
    return have == want;
  if (!kiln__cpu_type_fits(
          want, kiln__cpu_ptx_type_bytes[want] == 8 ? KILN__U64 : KILN__U32,
          false))
    return false;
  return kiln__cpu_ptx_type_bytes[want] == kiln__cpu_ptx_type_bytes[have] ||
         (kiln__cpu_slice_is(s, "gridid") &&
          kiln__cpu_ptx_type_bytes[want] == 4);
}

static bool special(kiln__cpu_binder *k, const kiln__cpu_form *f,
                    const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_ptx_type want = kiln__cpu_type_of(k, f->type);
  const uint8_t bytes = kiln__cpu_ptx_type_bytes[want];

  if (f->symbols != KILN__SYMBOLS_ANY)
    return kiln__cpu_complain(k->l, o->pos,
                              "special register argument not allowed here");
  if (!special_fits(o->text, want))
    return kiln__cpu_mismatch(k, o);
  for (size_t i = 0; i < COUNT(clocks); i++) {
    if (kiln__cpu_slice_is(o->text, clocks[i].text))
      return clock_value(k, f, bytes, (uint8_t)i);
  }
  for (size_t i = 0; i < COUNT(specials); i++) {
    if (kiln__cpu_slice_is(o->text, specials[i].text))
      return kiln__cpu_put_source(
          k, f, kiln__cpu_constant(k->l, bytes, KILN__CONST_SPECIAL, i, 0));
  }
  if (is_zero_special(o->text))
    return kiln__cpu_put_source(
        k, f, kiln__cpu_constant(k->l, bytes, KILN__CONST_VALUE, 0, 0));
  return kiln__cpu_complain(k->l, o->pos, "unknown special register '%%%.*s'",
                            KILN__SHOWN(o->text));
}

/* ---- Addresses of variables and functions as values ---------------------- */

/* Binds the address of a variable or function as the source of mov or cvta. */
static bool symbol_value(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o)
{
  kiln__cpu_lower *l = k->l;
  const kiln__cpu_ptx_type want = kiln__cpu_type_of(k, f->type);
  const uint8_t bytes = kiln__cpu_ptx_type_bytes[want];
  const kiln__cpu_ptx_variable *v = kiln__cpu_variable_of(o);
  int32_t temporary;

  if (o->symbol->kind == KILN__SYMBOL_FUNCTION &&
      kiln__cpu_is_missing(l->b, o->symbol->u.function))
    return kiln__cpu_complain(l, o->pos, "the function '%.*s' is not defined",
                              KILN__SHOWN(o->text));
  if (o->symbol->kind == KILN__SYMBOL_FUNCTION &&
      f->symbols == KILN__SYMBOLS_ANY && bytes >= 4 &&
      kiln__cpu_type_fits(want, bytes == 8 ? KILN__U64 : KILN__U32, false))
    return kiln__cpu_put_source(
        k, f,
        kiln__cpu_constant(l, bytes, KILN__CONST_FUNCTION,
                           o->symbol->u.function->number, 0));
  if (v == NULL || v->space == KILN__SPACE_REG || bytes < 4 ||
      !kiln__cpu_type_fits(want, bytes == 8 ? KILN__B64 : KILN__B32, false) ||
      want == KILN__F32 || want == KILN__F64)
    return kiln__cpu_mismatch(k, o);
  if (bytes == 4 && v->space == KILN__SPACE_GLOBAL)
    return kiln__cpu_complain(l, o->pos,
                              "the address has 64 bits; use a 64-bit register");
  if (f->symbols == KILN__SYMBOLS_NONE)
    return kiln__cpu_complain(l, o->pos,
                              "a variable's name must be in brackets, "
                              "or the operand of mov or cvta");
  if (f->symbols == KILN__SYMBOLS_VARIABLE &&
      ((k->in->flags & KILN__TO) != 0 || k->in->space != v->space))
    return kiln__cpu_complain(
        l, o->pos, "state space mismatch between cvta and the variable");
  if (!kiln__cpu_is_local(v))
    return kiln__cpu_put_source(
        k, f, kiln__cpu_address_constant(l, v, bytes, o->offset));
  if (v->space == KILN__SPACE_PARAM && v->number != KILN__FUNCTION_PARAM)
    return kiln__cpu_complain(l, o->pos,
                              "the address of an argument cannot be taken");
  if (f->symbols == KILN__SYMBOLS_ANY && !k->row->vec_written)
    return become(k, KILN__OP_mov_local, (int64_t)v->place + o->offset);
  temporary = kiln__cpu_new_register(l, bytes);
  return temporary >= 0 &&
         kiln__cpu_emit_local_address(l, temporary, bytes,
                                      (int64_t)v->place + o->offset) &&
         kiln__cpu_put_source(k, f, temporary);
}

/* ---- Binding each kind of operand ---------------------------------------- */

static bool negate(kiln__cpu_binder *k, int32_t *id)
{
  kiln__cpu_insn in;
  const int32_t d = kiln__cpu_new_register(k->l, 4);

  if (d < 0 || !kiln__cpu_fields_of(k->l, &in, "not.pred"))
    return false;
  in.d = d;
  in.a = *id;
  *id = d;
  return kiln__cpu_emit(k->l, &in, false);
}

bool kiln__cpu_bind_literal(kiln__cpu_binder *k, uint8_t type,
                            uint8_t least_bytes, const kiln__cpu_ptx_operand *o,
                            int32_t *id)
{
  kiln__cpu_ptx_type want = kiln__cpu_type_of(k, type);
  const uint8_t bytes = kiln__cpu_ptx_type_bytes[want];
  uint64_t bits;

  if (!kiln__cpu_literal(o, want, &bits))
    return kiln__cpu_mismatch(k, o);
  *id = kiln__cpu_constant(k->l, bytes > least_bytes ? bytes : least_bytes,
                           KILN__CONST_VALUE, bits, 0);
  return *id >= 0;
}

bool kiln__cpu_bind_source(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o)
{
  kiln__cpu_ptx_type have;
  int32_t id;

  if (o->kind == KILN__OPERAND_SPECIAL)
    return special(k, f, o);
  if (kiln__cpu_is_literal(o))
    return kiln__cpu_bind_literal(k, f->type, 0, o, &id) &&
           kiln__cpu_put_source(k, f, id);
  if (!kiln__cpu_is_register(o))
    return symbol_value(k, f, o);
  if (!kiln__cpu_check_register(k, o, f->type, f->wider, &have))
    return false;
  id = kiln__cpu_register_of(k->l, o);
  /* The operand @e is a cache policy; src_reg_bytes describes the value. */
  if (f->slot != KILN__SLOT_E)
    k->in->src_reg_bytes = kiln__cpu_ptx_type_bytes[have];
  if (f->type == KILN__TYPE_WORD && kiln__cpu_ptx_type_bytes[have] == 8)
    k->in->flags |= KILN__WIDE_A;
  if (o->negated && (have != KILN__PRED || !negate(k, &id)))
    return have != KILN__PRED ? kiln__cpu_mismatch(k, o) : false;
  return kiln__cpu_put_source(k, f, id);
}

bool kiln__cpu_bind_predicate(kiln__cpu_binder *k, const kiln__cpu_form *f,
                              const kiln__cpu_ptx_operand *o)
{
  kiln__cpu_ptx_type have;
  int32_t id = 0;

  if (kiln__cpu_is_literal(o)) {
    if (k->in->type == KILN__BF16 || k->in->type2 == KILN__BF16 ||
        k->in->type == KILN__BF16X2 ||
        !kiln__cpu_bind_literal(k, KILN__PRED, 0, o, &id))
      return kiln__cpu_mismatch(k, o);
  } else {
    if (!kiln__cpu_check_register(k, o, KILN__PRED, false, &have))
      return false;
    id = kiln__cpu_register_of(k->l, o);
    if (o->negated)
      k->in->flags |= KILN__NEGATE_B;
  }
  return kiln__cpu_put_source(k, f, id);
}

bool kiln__cpu_check_range(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o)
{
  const uint64_t most =
      f->most == KILN__MOST_BYTES ? k->in->bytes : (uint64_t)f->most;
  uint64_t value = o->bits;

  if (o->kind != KILN__OPERAND_INTEGER)
    return true;
  /* ptxas reduces barrier numbers and thread counts modulo 2^32. */
  if (k->row->kind == KILN__KIND_BARRIER)
    value = (uint32_t)value;
  if (f->most != 0 && value > most)
    return kiln__cpu_complain(k->l, o->pos, "the immediate is above %llu",
                              (unsigned long long)most);
  if (f->least != 0 && (value < f->least || value > INT64_MAX))
    return kiln__cpu_complain(k->l, o->pos, "the immediate is below %u",
                              f->least);
  if (f->multiple != 0 && value % f->multiple != 0)
    return kiln__cpu_complain(
        k->l, o->pos, "the immediate must be a multiple of %u", f->multiple);
  if (f->power_of_two && (value & (value - 1)) != 0)
    return kiln__cpu_complain(k->l, o->pos,
                              "the immediate must be a power of two");
  return true;
}

bool kiln__cpu_bind_number(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o)
{
  const uint8_t bytes = kiln__cpu_ptx_type_bytes[kiln__cpu_type_of(k, f->type)];
  const bool in_range =
      bytes >= 8 || o->bits >> (8 * bytes) == 0 ||
      (o->negative && bytes >= 4 && ~o->bits >> (8 * bytes - 1) == 0);

  if (!in_range)
    return kiln__cpu_complain(k->l, o->pos, "the immediate is out of range");
  if (k->n_numbers++ == 0 && k->n_addresses == 0)
    k->in->imm = (int64_t)o->bits;
  else
    k->in->imm2 = (int64_t)o->bits;
  return true;
}

bool kiln__cpu_bind_choice(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o)
{
  if (o->bits == 0 || o->bits > 128 || (o->bits & (o->bits - 1)) != 0 ||
      (f->count & o->bits) == 0)
    return kiln__cpu_complain(k->l, o->pos, "the immediate is out of range");
  k->in->bytes = (uint8_t)o->bits;
  return true;
}

bool kiln__cpu_bind_dest_to(kiln__cpu_binder *k, uint8_t type, bool wider,
                            const kiln__cpu_ptx_operand *o, int32_t *to)
{
  kiln__cpu_ptx_type have;

  *to = -1;
  if (o->kind == KILN__OPERAND_SINK)
    return true;
  if (!kiln__cpu_is_register(o) || o->negated)
    return kiln__cpu_mismatch(k, o);
  if (!kiln__cpu_check_register(k, o, type, wider && !k->l->matches->exact,
                                &have))
    return false;
  *to = kiln__cpu_register_of(k->l, o);
  if (have != KILN__PRED)
    k->in->reg_bytes = kiln__cpu_ptx_type_bytes[have];
  return true;
}

/* Checks a destination pair a|p. Either register may be `_`, but not both. The
 * operand description in ops.def may require one of the registers. */
static bool check_pair(kiln__cpu_binder *k, const kiln__cpu_form *f,
                       const kiln__cpu_ptx_operand *o)
{
  const bool first = o->items[0].kind == KILN__OPERAND_SINK;
  const bool second = o->items[1].kind == KILN__OPERAND_SINK;

  return !((first && (second || f->register_only)) || (second && f->paired)) ||
         kiln__cpu_complain(k->l, o->pos,
                            "result discard mode is not allowed here");
}

bool kiln__cpu_bind_dest(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o)
{
  int32_t *to = k->n_dests++ == 0 ? &k->in->d : &k->in->d2;

  if (o->kind == KILN__OPERAND_PAIR) {
    if (o->n_items != 2)
      return kiln__cpu_mismatch(k, o);
    return check_pair(k, f, o) &&
           kiln__cpu_bind_dest_to(k, f->type, f->wider, &o->items[0], to) &&
           kiln__cpu_bind_dest_to(k, KILN__PRED, false, &o->items[1],
                                  &k->in->d2);
  }
  if (o->kind == KILN__OPERAND_SINK && !f->discards)
    return kiln__cpu_complain(k->l, o->pos,
                              "result discard mode is not allowed here");
  return kiln__cpu_bind_dest_to(k, f->type, f->wider, o, to);
}
