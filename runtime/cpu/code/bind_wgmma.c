/* bind_wgmma.c -- binds the operands of wgmma.mma_async.
 *
 * The number of operands, the length of the vectors and the valid immediates
 * depend on the shape, the types and the form of A. wgmma.def describes the
 * fields that receive the operands. */
#include "bind.h"

#include <string.h>

enum { A_REGISTERS = 4, MOST_D = 128 };

/* The operands of one statement in PTX order. */
typedef struct operands {
  const kiln__cpu_ptx_operand *at;
  uint32_t left;
} operands;

static const char *const type_names[] = {
    [KILN__WGMMA_F16] = "f16",   [KILN__WGMMA_BF16] = "bf16",
    [KILN__WGMMA_TF32] = "tf32", [KILN__WGMMA_E4M3] = "e4m3",
    [KILN__WGMMA_E5M2] = "e5m2", [KILN__WGMMA_S8] = "s8",
    [KILN__WGMMA_U8] = "u8",     [KILN__WGMMA_B1] = "b1",
    [KILN__WGMMA_F32] = "f32",   [KILN__WGMMA_S32] = "s32"};

static bool is_float(uint8_t type)
{
  return type <= KILN__WGMMA_E5M2;
}

static bool is_16_bit(uint8_t type)
{
  return type <= KILN__WGMMA_BF16;
}

/* Reads the n of a shape such as m64n128k16, divided by 8. Returns 0 if the
 * modifier is no shape. */
static uint8_t columns_of(const char *text, size_t size)
{
  unsigned n = 0;

  if (size < 5 || memcmp(text, "m64n", 4) != 0)
    return 0;
  for (size_t i = 4; i < size && text[i] >= '0' && text[i] <= '9'; i++)
    n = n * 10 + (unsigned)(text[i] - '0');
  return (uint8_t)(n / 8);
}

static bool same(const char *text, size_t size, const char *name)
{
  return strlen(name) == size && memcmp(text, name, size) == 0;
}

/* Fills in the struct from the modifiers of the opcode, which the pattern of the
 * row has checked. */
static void read_modifiers(kiln__cpu_slice opcode, kiln__cpu_wgmma *out)
{
  const char *at = memchr(opcode.data, '.', opcode.size);
  const char *const end = opcode.data + opcode.size;
  uint8_t types[3] = {0}, n_types = 0;

  for (const char *next; at != NULL; at = next) {
    const char *const text = at + 1;
    size_t size;

    next = memchr(text, '.', (size_t)(end - text));
    size = (size_t)((next != NULL ? next : end) - text);
    out->columns |= columns_of(text, size);
    if (same(text, size, "sp"))
      out->flags |= KILN__WGMMA_SPARSE;
    if (same(text, size, "satfinite"))
      out->flags |= KILN__WGMMA_SATURATE;
    for (size_t t = 0; t < sizeof type_names / sizeof *type_names; t++) {
      if (n_types < 3 && same(text, size, type_names[t]))
        types[n_types++] = (uint8_t)t;
    }
  }
  out->d = types[0];
  out->a = types[1];
  out->b = types[2];
}

static bool wrong_count(kiln__cpu_binder *k)
{
  return kiln__cpu_complain(k->l, k->l->at->pos,
                            "arguments mismatch for instruction '%.*s'",
                            KILN__SHOWN(k->l->at->opcode));
}

/* Returns the number of operands that the statement must have. */
static uint32_t operand_count(const kiln__cpu_wgmma *w)
{
  const bool registers = (w->flags & KILN__WGMMA_REGISTERS) != 0;
  uint32_t n = 4;

  if ((w->flags & KILN__WGMMA_SPARSE) != 0)
    n += 2;
  if (is_float(w->a))
    n += 2;
  if (is_16_bit(w->a))
    n += registers ? 1 : 2;
  return n;
}

/* ---- The kinds of operands ----------------------------------------------- */

static bool bind_d(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                   const kiln__cpu_wgmma *w, int32_t *ids, uint8_t *n)
{
  static const uint8_t types[] = {[KILN__WGMMA_F16] = KILN__F16X2,
                                  [KILN__WGMMA_F32] = KILN__F32,
                                  [KILN__WGMMA_S32] = KILN__S32};
  const kiln__cpu_form f = {.shape = KILN__SHAPE_DATA_OUT, .type = types[w->d]};

  *n = (uint8_t)(w->columns * (w->d == KILN__WGMMA_F16 ? 2 : 4));
  if (o->kind != KILN__OPERAND_VECTOR ||
      !kiln__cpu_bind_elements(k, &f, o, *n, true, ids))
    return k->l->out_of_memory ? false : kiln__cpu_mismatch(k, o);
  for (uint8_t i = 0; i < *n; i++) {
    if (ids[i] < 0)
      return kiln__cpu_mismatch(k, o);
  }
  return true;
}

static bool bind_a_registers(kiln__cpu_binder *k,
                             const kiln__cpu_ptx_operand *o,
                             const kiln__cpu_wgmma *w, int32_t *ids)
{
  const kiln__cpu_form f = {.shape = KILN__SHAPE_DATA_IN,
                            .type = w->a == KILN__WGMMA_TF32 || !is_float(w->a)
                                        ? KILN__B32
                                        : KILN__F16X2,
                            .strict = w->a == KILN__WGMMA_TF32};

  for (uint32_t i = 0;
       f.strict && o->kind == KILN__OPERAND_VECTOR && i < o->n_items; i++) {
    const kiln__cpu_ptx_variable *v = kiln__cpu_variable_of(&o->items[i]);

    if (v != NULL && v->type != KILN__B32)
      return kiln__cpu_mismatch(k, o);
  }
  return kiln__cpu_bind_elements(k, &f, o, A_REGISTERS, false, ids);
}

static bool bind_descriptor(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                            uint8_t slot)
{
  const kiln__cpu_form f = {
      .shape = KILN__SHAPE_SOURCE, .type = KILN__U64, .slot = slot};

  if (o->kind != KILN__OPERAND_SYMBOL && o->kind != KILN__OPERAND_SPECIAL &&
      !kiln__cpu_is_literal(o))
    return kiln__cpu_mismatch(k, o);
  return kiln__cpu_bind_source(k, &f, o);
}

static bool bind_scale_d(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_form f = {
      .shape = KILN__SHAPE_PREDICATE, .type = KILN__PRED, .slot = 3};
  int32_t id;

  if (kiln__cpu_is_register(o))
    return kiln__cpu_bind_predicate(k, &f, o);
  if (o->kind != KILN__OPERAND_INTEGER || o->bits > 1)
    return kiln__cpu_mismatch(k, o);
  return kiln__cpu_bind_literal(k, KILN__PRED, 0, o, &id) &&
         kiln__cpu_put_source(k, &f, id);
}

static bool bind_metadata(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                          int32_t *id)
{
  kiln__cpu_ptx_type have;

  if (!kiln__cpu_is_register(o) || o->negated)
    return kiln__cpu_mismatch(k, o);
  if (!kiln__cpu_check_register(k, o, KILN__B32, false, &have))
    return false;
  *id = kiln__cpu_register_of(k->l, o);
  return true;
}

/* Binds an immediate that has one of two values. Sets `flag` for the second. */
static bool bind_switch(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                        int64_t off, int64_t on, uint8_t flag,
                        kiln__cpu_wgmma *w)
{
  const int64_t value = (int64_t)o->bits;

  if (o->kind != KILN__OPERAND_INTEGER)
    return kiln__cpu_mismatch(k, o);
  if (value != off && value != on)
    return kiln__cpu_complain(k->l, o->pos,
                              "the immediate must be %lld or %lld",
                              (long long)off, (long long)on);
  if (value == on && on != off)
    w->flags |= flag;
  return true;
}

static const kiln__cpu_ptx_operand *take(operands *o)
{
  o->left--;
  return o->at++;
}

static bool bind_switches(kiln__cpu_binder *k, operands *o, kiln__cpu_wgmma *w)
{
  if (is_float(w->a) &&
      (!bind_switch(k, take(o), 1, -1, KILN__WGMMA_NEGATE_A, w) ||
       !bind_switch(k, take(o), 1, -1, KILN__WGMMA_NEGATE_B, w)))
    return false;
  if (o->left == 2 && !bind_switch(k, take(o), 0, 1, KILN__WGMMA_TRANS_A, w))
    return false;
  return o->left == 0 || bind_switch(k, take(o), 0, 1, KILN__WGMMA_TRANS_B, w);
}

bool kiln__cpu_bind_wgmma(kiln__cpu_binder *k)
{
  const kiln__cpu_ptx_insn *at = k->l->at;
  operands o = {at->operands, at->n_operands};
  kiln__cpu_wgmma w = {0};
  int32_t d[MOST_D], sources[A_REGISTERS + 1 + MOST_D];
  uint32_t n_sources = 0;
  uint8_t n;

  read_modifiers(at->opcode, &w);
  if (o.left > 1 && (at->operands[1].kind == KILN__OPERAND_VECTOR ||
                     (kiln__cpu_is_register(&at->operands[1]) &&
                      at->operands[1].symbol->u.variable->vector > 1)))
    w.flags |= KILN__WGMMA_REGISTERS;
  if (o.left != operand_count(&w))
    return wrong_count(k);
  if (!bind_d(k, take(&o), &w, d, &n))
    return false;
  if ((w.flags & KILN__WGMMA_REGISTERS) != 0) {
    if (!bind_a_registers(k, take(&o), &w, sources))
      return false;
    n_sources = A_REGISTERS;
  } else if (!bind_descriptor(k, take(&o), 1)) {
    return false;
  }
  if (!bind_descriptor(k, take(&o), 2))
    return false;
  if ((w.flags & KILN__WGMMA_SPARSE) != 0 &&
      (!bind_metadata(k, take(&o), &sources[n_sources++]) ||
       !bind_switch(k, take(&o), 0, is_16_bit(w.a) || w.a == KILN__WGMMA_TF32,
                    KILN__WGMMA_SELECT, &w)))
    return false;
  if (!bind_scale_d(k, take(&o)) || !bind_switches(k, &o, &w))
    return false;
  memcpy(sources + n_sources, d, n * sizeof *d);
  k->in->vec = kiln__cpu_keep_vector(k, d, n);
  k->in->vec2 = kiln__cpu_keep_vector(k, sources, n_sources + n);
  k->in->n_vec = n;
  k->in->n_vec2 = (uint16_t)(n_sources + n);
  k->in->space = KILN__SPACE_SHARED;
  memcpy(&k->in->imm, &w, sizeof w);
  return true;
}
