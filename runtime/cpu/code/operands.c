/* operands.c -- operands of a statement against a row, and into slots. */
#include "build.h"

#include <string.h>

/* ---- Shapes ------------------------------------------------------------------ */

static const kiln__ptx_variable *variable_of(const kiln__ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SYMBOL &&
                 o->symbol->kind == KILN__SYMBOL_VARIABLE
             ? o->symbol->u.variable
             : NULL;
}

bool kiln__is_register(const kiln__ptx_operand *o)
{
  const kiln__ptx_variable *v = variable_of(o);

  return v != NULL && v->space == KILN__SPACE_REG && o->offset == 0;
}

static bool is_literal(const kiln__ptx_operand *o)
{
  return o->kind == KILN__OPERAND_INTEGER || o->kind == KILN__OPERAND_FLOAT ||
         o->kind == KILN__OPERAND_FLOAT32;
}

static bool is_source(const kiln__ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SYMBOL || o->kind == KILN__OPERAND_SPECIAL ||
         is_literal(o);
}

static uint8_t data_count(const kiln__form *f, const kiln__insn *in)
{
  if (f->count != 0)
    return f->count;
  return in->sub2 == 2 || in->sub2 == 4 || in->sub2 == 8 ? in->sub2 : 1;
}

static bool shape_fits(const kiln__form *f, const kiln__insn *in,
                       const kiln__ptx_operand *o)
{
  const bool vector = o->kind == KILN__OPERAND_VECTOR;

  switch ((kiln__shape)f->shape) {
  case KILN__SHAPE_DEST_PAIR:
    if (o->kind == KILN__OPERAND_PAIR)
      return true;
    return !f->paired &&
           (kiln__is_register(o) || o->kind == KILN__OPERAND_SINK);
  case KILN__SHAPE_DEST:
    return kiln__is_register(o) || o->kind == KILN__OPERAND_SINK;
  case KILN__SHAPE_SOURCE:
    return is_source(o);
  case KILN__SHAPE_NUMBER:
  case KILN__SHAPE_CHOICE:
    return o->kind == KILN__OPERAND_INTEGER;
  case KILN__SHAPE_PREDICATE:
    return kiln__is_register(o) || o->kind == KILN__OPERAND_INTEGER;
  case KILN__SHAPE_ADDRESS:
    return o->kind == KILN__OPERAND_ADDRESS;
  case KILN__SHAPE_TEXTURE:
    return o->kind == KILN__OPERAND_TEXTURE || o->kind == KILN__OPERAND_ADDRESS;
  case KILN__SHAPE_LIST:
    return vector || is_source(o);
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    if (data_count(f, in) == 1 && !vector) /* .x1: {r} */
      return in->sub2 != 1 && (is_source(o) || o->kind == KILN__OPERAND_SINK);
    return vector || kiln__is_register(o);
  case KILN__SHAPE_PACK:
  case KILN__SHAPE_UNPACK:
    return vector;
  case KILN__SHAPE_LABEL:
  case KILN__SHAPE_TARGETS:
    return o->kind == KILN__OPERAND_SYMBOL;
  case KILN__SHAPE_CALL:
    return true;
  }
  return false;
}

static bool wants_mask(const kiln__row *row, const kiln__insn *in)
{
  return row->kind == KILN__KIND_WARP && (in->flags & KILN__SYNC) != 0 &&
         (in->flags & KILN__ALIGNED) == 0;
}

/* Whether the form has an operand in this statement, which has `left` more. */
static bool is_present(const kiln__form *f, const kiln__insn *in, uint32_t left)
{
  if (!f->optional)
    return true;
  if (f->shape == KILN__SHAPE_PREDICATE)
    return in->boolop != KILN__BOOL_NONE;
  return left > 0;
}

/* %T: neither a literal nor a register of integer or float type. */
static bool strict_fits(const kiln__form *f, const kiln__ptx_operand *o)
{
  if (!f->strict)
    return true;
  if (!kiln__is_register(o))
    return false;
  switch (o->symbol->u.variable->type) {
  case KILN__B8:
  case KILN__B16:
  case KILN__B32:
  case KILN__B64:
    return true;
  default:
    return false;
  }
}

bool kiln__shapes_fit(const kiln__row *row, const kiln__insn *fields,
                      const kiln__ptx_insn *statement)
{
  const uint32_t mask = wants_mask(row, fields) ? 1 : 0;
  const uint32_t n = statement->n_operands;
  uint32_t at = 0;

  if (row->n_forms > 0 && row->forms[0].shape == KILN__SHAPE_CALL)
    return n > 0;
  if (n < mask)
    return false;
  for (uint32_t i = 0; i < row->n_forms; i++) {
    const kiln__form *f = &row->forms[i];

    if (!is_present(f, fields, n - mask - at))
      continue;
    if (at >= n - mask || !shape_fits(f, fields, &statement->operands[at]) ||
        !strict_fits(f, &statement->operands[at]))
      return false;
    at++;
  }
  if (mask != 0 && !is_source(&statement->operands[at]))
    return false;
  return at + mask == n;
}

/* ---- Registers and values -------------------------------------------------------- */

typedef struct binder {
  kiln__lower *l;
  const kiln__row *row;
  kiln__insn *in;
  uint8_t n_sources; /* slots of a, b, c, e used */
  uint8_t n_dests, n_numbers, n_addresses;
  bool second_vec;  /* vec is taken */
  int32_t more[64]; /* vec2 while it grows */
  uint16_t n_more;
} binder;

int32_t kiln__register_of(const kiln__lower *l, const kiln__ptx_operand *o)
{
  return (int32_t)l->base[o->symbol->u.variable->index] +
         (o->component > 0 ? o->component : 0);
}

static const char *opcode_text(const binder *k, int *size)
{
  *size = (int)k->l->at->opcode.size;
  return k->l->at->opcode.data;
}

static bool mismatch(binder *k, const kiln__ptx_operand *o)
{
  int n;
  const char *text = opcode_text(k, &n);

  return kiln__complain(k->l, o->pos,
                        "arguments mismatch for instruction '%.*s'", n, text);
}

static kiln__ptx_type twice(kiln__ptx_type type)
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

static kiln__ptx_type type_of(const binder *k, uint8_t type)
{
  switch (type) {
  case KILN__TYPE_LAST:
    return (kiln__ptx_type)k->in->type;
  case KILN__TYPE_BEFORE:
    return (kiln__ptx_type)k->in->type2;
  case KILN__TYPE_TWICE:
    return twice((kiln__ptx_type)k->in->type);
  case KILN__TYPE_WORD:
    return KILN__U64;
  default:
    return (kiln__ptx_type)type;
  }
}

static bool is_mnemonic(const binder *k, const char *text)
{
  const size_t n = strlen(text);

  return k->l->at->opcode.size > n &&
         memcmp(k->l->at->opcode.data, text, n) == 0;
}

/* ptxas has instructions whose expansion does not take %v.x. */
static bool takes_components(const binder *k)
{
  static const char *const mnemonics[] = {"mov.", "add.", "sub.",  "mul.",
                                          "mad.", "fma.", "setp.", "cvt.",
                                          "st.",  "and.", "or."};

  for (size_t i = 0; i < sizeof mnemonics / sizeof *mnemonics; i++) {
    if (is_mnemonic(k, mnemonics[i]))
      return true;
  }
  return false;
}

/* A scalar register operand of fitting type. Its type goes to *have. */
static bool check_register(binder *k, const kiln__ptx_operand *o, uint8_t want,
                           bool wider, kiln__ptx_type *have)
{
  const kiln__ptx_variable *v = o->symbol->u.variable;

  *have = v->type;
  if (v->type == KILN__B128)
    return kiln__complain(k->l, o->pos,
                          "the CPU device has no 128-bit registers");
  if ((v->vector > 1) != (o->component >= 0) || o->component >= v->vector ||
      (o->component >= 0 && !takes_components(k)))
    return mismatch(k, o);
  if (want == KILN__TYPE_WORD) {
    if (!kiln__type_fits(KILN__U64, v->type, false) &&
        !kiln__type_fits(KILN__U32, v->type, false))
      return mismatch(k, o);
    return true;
  }
  if (k->in->type == KILN__BF16 || k->in->type2 == KILN__BF16)
    wider = false;
  return kiln__type_fits(type_of(k, want), v->type, wider) || mismatch(k, o);
}

static bool put_source(binder *k, const kiln__form *f, int32_t id)
{
  int32_t *const slots[] = {&k->in->a, &k->in->b, &k->in->c, &k->in->e};
  const uint8_t at = f->slot != 0 ? (uint8_t)(f->slot - 1) : k->n_sources++;

  if (at >= 4)
    return kiln__complain(k->l, k->l->at->pos, "too many operands");
  *slots[at] = id;
  return !k->l->out_of_memory;
}

/* ---- Special registers -------------------------------------------------------------- */

static const struct {
  const char *text;
  kiln__special special;
} specials[] = {
#define KILN__SPECIAL(name, text) {text, KILN__SPECIAL_##name},
    KILN__SPECIALS(KILN__SPECIAL)
#undef KILN__SPECIAL
};

/* Registers that change while a block runs: `sub` of mov_clock. */
static const char *const clocks[] = {"clock",          "clock_hi",
                                     "clock64",        "globaltimer",
                                     "globaltimer_lo", "globaltimer_hi"};

static bool slice_is(kiln__slice s, const char *text)
{
  return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static bool is_zero_special(kiln__slice s)
{
  return (s.size >= 3 && memcmp(s.data, "pm", 2) == 0 && s.data[2] >= '0' &&
          s.data[2] <= '7') ||
         (s.size >= 7 && memcmp(s.data, "envreg", 6) == 0);
}

static kiln__ptx_type special_type(kiln__slice s)
{
  if (slice_is(s, "clock64") || slice_is(s, "globaltimer") ||
      slice_is(s, "gridid") || slice_is(s, "current_graph_exec") ||
      (s.size == 6 && memcmp(s.data, "pm", 2) == 0 &&
       memcmp(s.data + 3, "_64", 3) == 0))
    return KILN__B64;
  if (slice_is(s, "is_explicit_cluster"))
    return KILN__PRED;
  return KILN__B32;
}

/* A mov that turns out to be a row of its own. */
static bool become(binder *k, kiln__op op, int64_t imm)
{
  k->in->op = (uint16_t)op;
  k->in->kind = k->l->b->matcher.rows[op].kind;
  k->in->klass = k->l->b->matcher.rows[op].klass;
  k->in->imm = imm;
  return true;
}

static bool special_fits(kiln__slice s, kiln__ptx_type want)
{
  const kiln__ptx_type have = special_type(s);

  if (have == KILN__PRED || want == KILN__PRED)
    return have == want;
  if (!kiln__type_fits(
          want, kiln__ptx_type_bytes[want] == 8 ? KILN__U64 : KILN__U32, false))
    return false;
  return kiln__ptx_type_bytes[want] == kiln__ptx_type_bytes[have] ||
         (slice_is(s, "gridid") && kiln__ptx_type_bytes[want] == 4);
}

static bool special(binder *k, const kiln__form *f, const kiln__ptx_operand *o)
{
  const kiln__ptx_type want = type_of(k, f->type);
  const uint8_t bytes = kiln__ptx_type_bytes[want];

  if (!is_mnemonic(k, "mov."))
    return kiln__complain(k->l, o->pos,
                          "special register argument not allowed here");
  if (!special_fits(o->text, want))
    return mismatch(k, o);
  for (uint8_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    if (slice_is(o->text, clocks[i])) {
      k->in->sub = i;
      return become(k, KILN__OP_mov_clock, 0);
    }
  }
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    if (slice_is(o->text, specials[i].text))
      return put_source(k, f,
                        kiln__constant(k->l, bytes, KILN__CONST_SPECIAL,
                                       specials[i].special, 0));
  }
  if (is_zero_special(o->text))
    return put_source(k, f,
                      kiln__constant(k->l, bytes, KILN__CONST_VALUE, 0, 0));
  return kiln__complain(k->l, o->pos, "unknown special register '%%%.*s'",
                        (int)o->text.size, o->text.data);
}

/* ---- Addresses of variables and functions as values ----------------------------- */

/* First byte of a variable as a constant; its space is not .local. */
static int32_t address_constant(kiln__lower *l, const kiln__ptx_variable *v,
                                uint8_t bytes, int64_t offset)
{
  switch (v->space) {
  case KILN__SPACE_SHARED:
    if (v->flexible || v->size == 0)
      return kiln__constant(l, bytes, KILN__CONST_DYNAMIC, 0, offset);
    return kiln__constant(l, bytes, KILN__CONST_VALUE,
                          v->place + (uint64_t)offset, 0);
  case KILN__SPACE_PARAM:
    return kiln__constant(l, bytes, KILN__CONST_VALUE,
                          v->place + (uint64_t)offset, 0);
  default:
    return kiln__constant(l, bytes, KILN__CONST_ADDRESS, v->number, offset);
  }
}

static bool is_reference(const kiln__ptx_variable *v)
{
  return v->type == KILN__TEXREF || v->type == KILN__SURFREF ||
         v->type == KILN__SAMPLERREF;
}

static bool is_formal(const kiln__lower *l, const kiln__ptx_variable *v)
{
  for (uint32_t i = 0; i < l->fn->n_params; i++) {
    if (l->fn->params[i]->u.variable == v)
      return true;
  }
  return false;
}

/* A symbol other than a register where mov or cvta reads a value. */
static bool symbol_value(binder *k, const kiln__form *f,
                         const kiln__ptx_operand *o)
{
  kiln__lower *l = k->l;
  const kiln__ptx_type want = type_of(k, f->type);
  const uint8_t bytes = kiln__ptx_type_bytes[want];
  const kiln__ptx_variable *v = variable_of(o);
  int32_t temporary;

  if (o->symbol->kind == KILN__SYMBOL_FUNCTION && is_mnemonic(k, "mov.") &&
      bytes >= 4)
    return put_source(k, f,
                      kiln__constant(l, bytes, KILN__CONST_FUNCTION,
                                     o->symbol->u.function->number, 0));
  if (v == NULL || v->space == KILN__SPACE_REG || bytes < 4 ||
      !kiln__type_fits(want, bytes == 8 ? KILN__B64 : KILN__B32, false) ||
      want == KILN__F32 || want == KILN__F64)
    return mismatch(k, o);
  if (bytes == 4 && v->space == KILN__SPACE_GLOBAL)
    return kiln__complain(l, o->pos, "the address has 64 bits");
  if (!is_mnemonic(k, "mov.") && !is_mnemonic(k, "cvta."))
    return kiln__complain(l, o->pos,
                          "a variable's name must be in brackets, "
                          "or the operand of mov or cvta");
  if (is_mnemonic(k, "cvta.") &&
      (is_mnemonic(k, "cvta.to.") || k->in->space != v->space))
    return kiln__complain(l, o->pos, "state space mismatch");
  if (!kiln__is_local(l, v))
    return put_source(k, f, address_constant(l, v, bytes, o->offset));
  if (v->space == KILN__SPACE_PARAM && !is_formal(l, v))
    return kiln__complain(l, o->pos,
                          "the address of an argument cannot be taken");
  if (is_mnemonic(k, "mov."))
    return become(k, KILN__OP_mov_local, (int64_t)v->place + o->offset);
  temporary = kiln__new_register(l, bytes);
  return temporary >= 0 &&
         kiln__emit_local_address(l, temporary, bytes,
                                  (int64_t)v->place + o->offset) &&
         put_source(k, f, temporary);
}

/* ---- Operands by shape -------------------------------------------------------------- */

static bool negate(binder *k, int32_t *id)
{
  kiln__insn in;
  const int32_t d = kiln__new_register(k->l, 4);

  if (d < 0 || !kiln__fields_of(k->l, &in, "not.pred"))
    return false;
  in.d = d;
  in.a = *id;
  *id = d;
  return kiln__emit(k->l, &in, false);
}

static bool literal(binder *k, uint8_t type, const kiln__ptx_operand *o,
                    int32_t *id)
{
  kiln__ptx_type want = type_of(k, type);
  uint64_t bits;

  if (!kiln__literal(o, want, &bits))
    return mismatch(k, o);
  *id = kiln__constant(k->l, kiln__ptx_type_bytes[want], KILN__CONST_VALUE,
                       bits, 0);
  return *id >= 0;
}

static bool bind_source(binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o)
{
  kiln__ptx_type have;
  int32_t id;

  if (o->kind == KILN__OPERAND_SPECIAL)
    return special(k, f, o);
  if (is_literal(o))
    return literal(k, f->type, o, &id) && put_source(k, f, id);
  if (!kiln__is_register(o))
    return symbol_value(k, f, o);
  if (!check_register(k, o, f->type, f->wider, &have))
    return false;
  id = kiln__register_of(k->l, o);
  k->in->src_reg_bytes = kiln__ptx_type_bytes[have];
  if (f->type == KILN__TYPE_WORD && kiln__ptx_type_bytes[have] == 8)
    k->in->flags |= KILN__WIDE_A;
  if (o->negated && (have != KILN__PRED || !negate(k, &id)))
    return have != KILN__PRED ? mismatch(k, o) : false;
  return put_source(k, f, id);
}

static bool bind_predicate(binder *k, const kiln__form *f,
                           const kiln__ptx_operand *o)
{
  kiln__ptx_type have;
  int32_t id;

  if (is_literal(o)) {
    if (k->in->type == KILN__BF16 || k->in->type == KILN__BF16X2 ||
        !literal(k, KILN__PRED, o, &id))
      return mismatch(k, o);
  } else {
    if (!check_register(k, o, KILN__PRED, false, &have))
      return false;
    id = kiln__register_of(k->l, o);
    if (o->negated)
      k->in->flags |= KILN__NEGATE_B;
  }
  return put_source(k, f, id);
}

static bool bind_number(binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o)
{
  const uint8_t bytes = kiln__ptx_type_bytes[type_of(k, f->type)];
  const bool in_range =
      bytes >= 8 || o->bits >> (8 * bytes) == 0 ||
      (o->negative && bytes >= 4 && ~o->bits >> (8 * bytes - 1) == 0);

  if (!in_range)
    return kiln__complain(k->l, o->pos, "the immediate is out of range");
  if (k->n_numbers++ == 0 && k->n_addresses == 0)
    k->in->imm = (int64_t)o->bits;
  else
    k->in->imm2 = (int64_t)o->bits;
  return true;
}

static bool bind_choice(binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o)
{
  if (o->bits == 0 || o->bits > 128 || (o->bits & (o->bits - 1)) != 0 ||
      (f->count & o->bits) == 0)
    return kiln__complain(k->l, o->pos, "the immediate is out of range");
  k->in->bytes = (uint8_t)o->bits;
  return true;
}

static bool bind_dest_to(binder *k, uint8_t type, bool wider,
                         const kiln__ptx_operand *o, int32_t *to)
{
  kiln__ptx_type have;

  *to = -1;
  if (o->kind == KILN__OPERAND_SINK)
    return true;
  if (!kiln__is_register(o) || o->negated)
    return mismatch(k, o);
  if (!check_register(k, o, type, wider, &have))
    return false;
  *to = kiln__register_of(k->l, o);
  if (have != KILN__PRED)
    k->in->reg_bytes = kiln__ptx_type_bytes[have];
  return true;
}

static bool bind_dest(binder *k, const kiln__form *f,
                      const kiln__ptx_operand *o)
{
  int32_t *to = k->n_dests++ == 0 ? &k->in->d : &k->in->d2;

  if (o->kind == KILN__OPERAND_PAIR) {
    if (o->n_items != 2)
      return mismatch(k, o);
    return bind_dest_to(k, f->type, f->wider, &o->items[0], to) &&
           bind_dest_to(k, KILN__PRED, false, &o->items[1], &k->in->d2);
  }
  if (o->kind == KILN__OPERAND_SINK && k->in->klass != KILN__CLASS_ATOMIC &&
      f->shape != KILN__SHAPE_DEST_PAIR)
    return kiln__complain(k->l, o->pos,
                          "result discard mode is not allowed here");
  return bind_dest_to(k, f->type, f->wider, o, to);
}

/* ---- Addresses ------------------------------------------------------------------------ */

static bool space_fits(kiln__space want, const kiln__ptx_variable *v,
                       bool local)
{
  /* Constant memory is no part of the generic window. */
  switch (want) {
  case KILN__SPACE_SHARED:
  case KILN__SPACE_SHARED_CLUSTER:
    return v->space == KILN__SPACE_SHARED;
  case KILN__SPACE_LOCAL:
    return local;
  case KILN__SPACE_GENERIC:
    return v->space == KILN__SPACE_GLOBAL || v->space == KILN__SPACE_SHARED ||
           v->space == KILN__SPACE_LOCAL;
  default:
    return v->space == want;
  }
}

/* Generic address of a shared or local variable, in a new register. */
static bool generic_address(binder *k, const kiln__ptx_variable *v, int32_t *id)
{
  kiln__lower *l = k->l;
  const bool shared = v->space == KILN__SPACE_SHARED;
  kiln__insn in;
  const int32_t d = kiln__new_register(l, 8);

  if (d < 0 ||
      !kiln__fields_of(l, &in, shared ? "cvta.shared.u64" : "cvta.local.u64"))
    return false;
  in.d = d;
  in.a = d;
  if (shared)
    in.a = address_constant(l, v, 8, 0);
  else if (!kiln__emit_local_address(l, d, 8, (int64_t)v->place))
    return false;
  *id = d;
  return kiln__emit(l, &in, false);
}

static bool address_of_variable(binder *k, const kiln__ptx_operand *o,
                                kiln__space space, int32_t *id, int64_t *imm,
                                bool *wide)
{
  const kiln__ptx_variable *v = o->base->symbol->u.variable;
  const bool local = kiln__is_local(k->l, v);

  if (!space_fits(space, v, local) || is_reference(v) ||
      (space == KILN__SPACE_LOCAL &&
       k->l->param_as_local != (v->space == KILN__SPACE_PARAM)) ||
      (is_mnemonic(k, "mbarrier.") && v->space != KILN__SPACE_SHARED) ||
      ((is_mnemonic(k, "prefetchu.") || is_mnemonic(k, "applypriority.")) &&
       v->space != KILN__SPACE_GLOBAL))
    return kiln__complain(k->l, o->pos,
                          "state space mismatch between "
                          "instruction and address");
  if (space == KILN__SPACE_GENERIC &&
      (v->space == KILN__SPACE_SHARED || v->space == KILN__SPACE_LOCAL)) {
    *wide = true;
    return generic_address(k, v, id);
  }
  if (local || v->space == KILN__SPACE_PARAM) {
    *imm += (int64_t)v->place;
    return true;
  }
  *wide = v->space != KILN__SPACE_SHARED;
  *id = address_constant(k->l, v, *wide ? 8 : 4, 0);
  return *id >= 0;
}

static bool address_of_register(binder *k, const kiln__ptx_operand *o,
                                kiln__space space, int32_t *id, bool *wide)
{
  const kiln__ptx_variable *v = o->base->symbol->u.variable;

  if (v->vector > 1 && o->base->component < 0)
    return mismatch(k, o);
  if (!kiln__type_fits(KILN__U64, v->type, false) &&
      !kiln__type_fits(KILN__U32, v->type, false))
    return kiln__complain(k->l, o->pos,
                          "an address must be in a 32- or 64-bit register of "
                          "integer or bit type");
  *id = kiln__register_of(k->l, o->base);
  *wide = kiln__ptx_type_bytes[v->type] == 8;
  if (!*wide && (space == KILN__SPACE_GENERIC || space == KILN__SPACE_GLOBAL))
    return kiln__complain(k->l, o->pos,
                          "an address in this space must be in a 64-bit "
                          "register");
  return true;
}

static bool bind_address(binder *k, const kiln__form *f,
                         const kiln__ptx_operand *o)
{
  const kiln__space space = f->space == KILN__SPACE_OF_OPCODE
                                ? (kiln__space)k->in->space
                                : (kiln__space)f->space;
  const bool first = k->n_addresses++ == 0;
  int64_t imm = o->offset;
  int32_t id = -1;
  bool wide = false;

  if (o->base == NULL || o->base->kind == KILN__OPERAND_INTEGER) {
    if (space != KILN__SPACE_LOCAL || k->l->param_as_local)
      return kiln__complain(k->l, o->pos,
                            "immediate addresses are allowed "
                            "only in the .local state space");
    imm += o->base == NULL ? 0 : (int64_t)o->base->bits;
    id = kiln__constant(k->l, 8, KILN__CONST_VALUE, 0, 0);
    wide = true;
  } else if (kiln__is_register(o->base)) {
    if (!address_of_register(k, o, space, &id, &wide))
      return false;
  } else if (variable_of(o->base) == NULL) {
    return mismatch(k, o);
  } else if (!address_of_variable(k, o, space, &id, &imm, &wide)) {
    return false;
  }
  if (first)
    k->in->imm = imm;
  else
    k->in->imm2 = imm;
  if (wide)
    k->in->flags |= first ? (uint32_t)KILN__WIDE_A : (uint32_t)KILN__WIDE_B;
  return put_source(k, f, id);
}

/* ---- Vectors ---------------------------------------------------------------------------- */

static const int32_t *keep_vector(binder *k, const int32_t *ids, uint32_t n)
{
  int32_t *vec = kiln__ptx_alloc(k->l->b->arena, n * sizeof *vec + 4);

  if (vec == NULL) {
    (void)kiln__no_memory(k->l);
    return NULL;
  }
  memcpy(vec, ids, n * sizeof *vec);
  return vec;
}

/* One element that is read: a register or a literal. */
static bool element_in(binder *k, uint8_t type, bool wider,
                       const kiln__ptx_operand *o, int32_t *id)
{
  kiln__ptx_type have;

  if (is_literal(o))
    return is_mnemonic(k, "stmatrix.") ? mismatch(k, o)
                                       : literal(k, type, o, id);
  if (!kiln__is_register(o) || o->negated)
    return mismatch(k, o);
  if (!check_register(k, o, type, wider, &have))
    return false;
  *id = kiln__register_of(k->l, o);
  k->in->src_reg_bytes = kiln__ptx_type_bytes[have];
  return true;
}

/* The elements of {a, b} or of a vector register must be of one type. */
static bool same_types(binder *k, const kiln__ptx_operand *o)
{
  kiln__ptx_type first = KILN__NONE;
  bool any = false;

  for (uint32_t i = 0; i < o->n_items; i++) {
    kiln__ptx_type type;

    if (!kiln__is_register(&o->items[i])) {
      any |= is_literal(&o->items[i]);
      continue;
    }
    any = true;
    type = o->items[i].symbol->u.variable->type;
    if (first == KILN__NONE)
      first = type;
    else if (!kiln__type_fits(first, type, false) &&
             !kiln__type_fits(type, first, false))
      return mismatch(k, o);
  }
  return any || mismatch(k, o);
}

/* Registers of a whole vector register. */
static bool whole_register(binder *k, const kiln__form *f,
                           const kiln__ptx_operand *o, uint8_t n, int32_t *ids)
{
  const kiln__ptx_variable *v = o->symbol->u.variable;

  if (v->vector != n || o->component >= 0 || o->negated ||
      !kiln__type_fits(type_of(k, f->type), v->type, f->wider))
    return mismatch(k, o);
  for (uint8_t i = 0; i < n; i++)
    ids[i] = (int32_t)k->l->base[v->index] + i;
  k->in->reg_bytes = kiln__ptx_type_bytes[v->type];
  k->in->src_reg_bytes = k->in->reg_bytes;
  return true;
}

static bool elements(binder *k, const kiln__form *f, const kiln__ptx_operand *o,
                     uint8_t n, bool written, int32_t *ids)
{
  const bool vector = o->kind == KILN__OPERAND_VECTOR;

  if (!vector && n > 1)
    return whole_register(k, f, o, n, ids);
  if (vector && (o->n_items != n || !same_types(k, o)))
    return o->n_items != n ? mismatch(k, o) : false;
  for (uint8_t i = 0; i < n; i++) {
    const kiln__ptx_operand *item = vector ? &o->items[i] : o;

    if (!vector && item->kind == KILN__OPERAND_SINK)
      return kiln__complain(k->l, o->pos,
                            "result discard mode is not allowed here");
    if (!(written ? bind_dest_to(k, f->type, f->wider, item, &ids[i])
                  : element_in(k, f->type, f->wider, item, &ids[i])))
      return false;
  }
  return true;
}

static bool bind_data(binder *k, const kiln__form *f,
                      const kiln__ptx_operand *o)
{
  const bool written = f->shape == KILN__SHAPE_DATA_OUT;
  const uint8_t n = data_count(f, k->in);
  const int32_t *vec;
  int32_t ids[8];

  if (!elements(k, f, o, n, written, ids))
    return false;
  vec = keep_vector(k, ids, n);
  if (vec == NULL)
    return false;
  if (k->second_vec) {
    k->in->vec2 = vec;
    k->in->n_vec2 = n;
  } else {
    k->in->vec = vec;
    k->in->n_vec = n;
    k->second_vec = true;
  }
  if (n == 1 && written)
    k->in->d = ids[0];
  return n > 1 || written || put_source(k, f, ids[0]);
}

static kiln__ptx_type part_type(uint8_t bytes)
{
  return bytes == 1   ? KILN__B8
         : bytes == 2 ? KILN__B16
         : bytes == 4 ? KILN__B32
                      : KILN__NONE;
}

/* mov's {lo, hi}. */
static bool bind_pack(binder *k, const kiln__form *f,
                      const kiln__ptx_operand *o)
{
  const uint8_t whole = kiln__ptx_type_bytes[k->in->type];
  const bool written = f->shape == KILN__SHAPE_UNPACK;
  const uint8_t n = (uint8_t)o->n_items;
  uint8_t bytes;
  kiln__form element = {.shape = f->shape};
  int32_t ids[8];

  if ((n != 2 && n != 4) || whole % n != 0 || whole > 8)
    return mismatch(k, o);
  bytes = (uint8_t)(whole / n);
  element.type = (uint8_t)part_type(bytes);
  if (element.type == KILN__NONE || !elements(k, &element, o, n, written, ids))
    return element.type == KILN__NONE ? mismatch(k, o) : false;
  k->in->vec = keep_vector(k, ids, n);
  k->in->n_vec = n;
  k->in->bytes = bytes;
  return k->in->vec != NULL;
}

/* ---- Textures ------------------------------------------------------------------------------ */

static bool add_one(binder *k, uint8_t type, const kiln__ptx_operand *o)
{
  if (k->n_more == sizeof k->more / sizeof *k->more)
    return mismatch(k, o);
  return element_in(k, type, false, o, &k->more[k->n_more++]);
}

/* A vector of exactly `n` elements, of which the first may be a layer; or a
 * scalar register for one. */
static bool add_vector(binder *k, const kiln__ptx_operand *o, uint8_t n,
                       uint8_t type, bool layer)
{
  if (o->kind != KILN__OPERAND_VECTOR)
    return n == 1 && kiln__is_register(o) ? add_one(k, type, o)
                                          : mismatch(k, o);
  if (o->n_items != n)
    return kiln__complain(k->l, o->pos, "%u coordinates where %u are expected",
                          o->n_items, n);
  for (uint32_t i = 0; i < n; i++) {
    if (!add_one(k, i == 0 && layer ? (uint8_t)KILN__U32 : type, &o->items[i]))
      return false;
  }
  return true;
}

/* A level, or one of two gradients. */
static bool bind_list(binder *k, const kiln__form *f,
                      const kiln__ptx_operand *o)
{
  const kiln__geometry g = kiln__geometry_of(k->l->at->opcode);

  if (g.gradient == 0)
    return o->kind == KILN__OPERAND_VECTOR ? mismatch(k, o)
                                           : add_one(k, f->type, o);
  return o->kind == KILN__OPERAND_VECTOR
             ? add_vector(k, o, g.gradient, f->type, false)
             : mismatch(k, o);
}

/* A texture, sampler or surface: a variable, or a 64-bit register. */
static bool bind_handle(binder *k, const kiln__form *f,
                        const kiln__ptx_operand *o)
{
  const kiln__ptx_variable *v = variable_of(o);

  if (v == NULL)
    return mismatch(k, o);
  if (v->space == KILN__SPACE_REG) {
    if (!kiln__type_fits(KILN__B64, v->type, false) || v->vector > 1)
      return mismatch(k, o);
    return put_source(k, f, kiln__register_of(k->l, o));
  }
  if (!is_reference(v) ||
      (v->type == KILN__SURFREF) != (k->l->at->opcode.data[0] == 's'))
    return mismatch(k, o);
  if (v->space == KILN__SPACE_PARAM)
    return kiln__complain(k->l, o->pos, "texture parameters are not supported");
  return put_source(k, f, address_constant(k->l, v, 8, 0));
}

static bool bind_texture(binder *k, const kiln__form *f,
                         const kiln__ptx_operand *o)
{
  const kiln__geometry g = kiln__geometry_of(k->l->at->opcode);

  if (o->kind == KILN__OPERAND_ADDRESS)
    return o->base != NULL && o->offset == 0 && g.coordinates == 0
               ? bind_handle(k, f, o->base)
               : mismatch(k, o);
  if (g.coordinates == 0 || o->n_items < 2 || o->n_items > 3)
    return mismatch(k, o);
  for (uint32_t i = 0; i + 1 < o->n_items; i++) {
    if (!bind_handle(k, f, &o->items[i]))
      return false;
  }
  return add_vector(k, &o->items[o->n_items - 1], g.coordinates, g.type,
                    g.array);
}

/* ---- Branches -------------------------------------------------------------------------------- */

static bool bind_label(binder *k, const kiln__ptx_operand *o)
{
  if (o->symbol->kind != KILN__SYMBOL_LABEL)
    return kiln__complain(k->l, o->pos, "'%.*s' is no label", (int)o->text.size,
                          o->text.data);
  k->in->target = o->symbol->u.label;
  return true;
}

static bool bind_targets(binder *k, const kiln__ptx_operand *o)
{
  const kiln__ptx_symbol *s = o->symbol;
  int32_t *vec;

  if (s->kind != KILN__SYMBOL_TARGETS || s->u.targets.n == 0 ||
      s->u.targets.n > UINT16_MAX)
    return mismatch(k, o);
  vec = kiln__ptx_alloc(k->l->b->arena, s->u.targets.n * sizeof *vec);
  if (vec == NULL)
    return kiln__no_memory(k->l);
  for (uint32_t i = 0; i < s->u.targets.n; i++) {
    const kiln__ptx_symbol *label = s->u.targets.items[i];

    if (label == NULL || label->kind != KILN__SYMBOL_LABEL)
      return mismatch(k, o);
    vec[i] = (int32_t)label->u.label;
  }
  k->in->vec = vec;
  k->in->n_vec = (uint16_t)s->u.targets.n;
  return true;
}

/* ---- All of a statement ------------------------------------------------------------------------ */

static bool bind_one(binder *k, const kiln__form *f, const kiln__ptx_operand *o)
{
  switch ((kiln__shape)f->shape) {
  case KILN__SHAPE_DEST:
  case KILN__SHAPE_DEST_PAIR:
    return bind_dest(k, f, o);
  case KILN__SHAPE_SOURCE:
    return bind_source(k, f, o);
  case KILN__SHAPE_NUMBER:
    return bind_number(k, f, o);
  case KILN__SHAPE_CHOICE:
    return bind_choice(k, f, o);
  case KILN__SHAPE_PREDICATE:
    return bind_predicate(k, f, o);
  case KILN__SHAPE_ADDRESS:
    return bind_address(k, f, o);
  case KILN__SHAPE_TEXTURE:
    return bind_texture(k, f, o);
  case KILN__SHAPE_LIST:
    return bind_list(k, f, o);
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    return bind_data(k, f, o);
  case KILN__SHAPE_PACK:
  case KILN__SHAPE_UNPACK:
    return bind_pack(k, f, o);
  case KILN__SHAPE_LABEL:
    return bind_label(k, o);
  case KILN__SHAPE_TARGETS:
    return bind_targets(k, o);
  case KILN__SHAPE_CALL:
    break;
  }
  return false;
}

bool kiln__bind_operands(kiln__lower *l, const kiln__row *row, kiln__insn *in)
{
  static const kiln__form mask = {
      .shape = KILN__SHAPE_SOURCE, .type = KILN__U32, .slot = 4};
  const kiln__ptx_insn *at = l->at;
  const bool has_mask = wants_mask(row, in);
  const uint32_t n = at->n_operands - has_mask;
  binder k = {.l = l, .row = row, .in = in};
  uint32_t i = 0;

  for (uint32_t f = 0; f < row->n_forms; f++) {
    if (!is_present(&row->forms[f], in, n - i))
      continue;
    if (!bind_one(&k, &row->forms[f], &at->operands[i++]))
      return false;
  }
  if (has_mask && !bind_source(&k, &mask, &at->operands[i]))
    return false;
  if (k.n_more > 0) {
    in->vec2 = keep_vector(&k, k.more, k.n_more);
    in->n_vec2 = k.n_more;
  }
  return !l->out_of_memory;
}
