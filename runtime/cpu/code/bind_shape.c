/* bind_shape.c -- checks whether the number and the shapes of a statement's
 * operands match a row of ops.def. The shape of an operand is its syntactic
 * kind, such as a register, an address or a vector.
 *
 * Several rows may match an opcode. The first row whose shapes match is
 * selected. Operand types are checked afterwards, so that a wrong type is
 * reported as a type mismatch and does not select another row. */
#include "bind.h"

#include <string.h>

/* ---- Shapes of operands -------------------------------------------------- */

const kiln__cpu_ptx_variable *
kiln__cpu_variable_of(const kiln__cpu_ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SYMBOL &&
                 o->symbol->kind == KILN__SYMBOL_VARIABLE
             ? o->symbol->u.variable
             : NULL;
}

bool kiln__cpu_is_register(const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_ptx_variable *v = kiln__cpu_variable_of(o);

  return v != NULL && v->space == KILN__SPACE_REG && o->offset == 0;
}

bool kiln__cpu_is_literal(const kiln__cpu_ptx_operand *o)
{
  return o->kind == KILN__OPERAND_INTEGER || o->kind == KILN__OPERAND_FLOAT ||
         o->kind == KILN__OPERAND_FLOAT32;
}

static bool is_source(const kiln__cpu_ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SYMBOL || o->kind == KILN__OPERAND_SPECIAL ||
         kiln__cpu_is_literal(o);
}

uint8_t kiln__cpu_data_count(const kiln__cpu_form *f, const kiln__cpu_insn *in)
{
  if (f->count != 0)
    return f->count;
  return in->sub2 == 2 || in->sub2 == 4 || in->sub2 == 8 ? in->sub2 : 1;
}

static bool shape_fits(const kiln__cpu_form *f, const kiln__cpu_insn *in,
                       const kiln__cpu_ptx_operand *o)
{
  const bool vector = o->kind == KILN__OPERAND_VECTOR;

  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_DEST_PAIR:
    if (o->kind == KILN__OPERAND_PAIR)
      return true;
    return !f->paired &&
           (kiln__cpu_is_register(o) || o->kind == KILN__OPERAND_SINK);
  case KILN__SHAPE_DEST:
    return kiln__cpu_is_register(o) || o->kind == KILN__OPERAND_SINK;
  case KILN__SHAPE_SOURCE:
    return is_source(o) && !(f->register_only && kiln__cpu_is_literal(o)) &&
           (!kiln__cpu_is_register(o) || f->type >= KILN__N_PTX_TYPES ||
            (o->symbol->u.variable->type == KILN__PRED) ==
                (f->type == KILN__PRED));
  case KILN__SHAPE_NUMBER:
  case KILN__SHAPE_CHOICE:
  case KILN__SHAPE_SELECTOR:
    return o->kind == KILN__OPERAND_INTEGER;
  case KILN__SHAPE_PREDICATE:
    return (kiln__cpu_is_register(o) &&
            o->symbol->u.variable->type == KILN__PRED) ||
           o->kind == KILN__OPERAND_INTEGER;
  case KILN__SHAPE_ADDRESS:
    return o->kind == KILN__OPERAND_ADDRESS;
  case KILN__SHAPE_TEXTURE:
    return o->kind == KILN__OPERAND_TEXTURE || o->kind == KILN__OPERAND_ADDRESS;
  case KILN__SHAPE_LIST:
  case KILN__SHAPE_MASK:
  case KILN__SHAPE_SKIP:
  case KILN__SHAPE_POLICY:
    return is_source(o);
  case KILN__SHAPE_MAP:
    return o->kind == KILN__OPERAND_TEXTURE;
  case KILN__SHAPE_GRADIENT:
  case KILN__SHAPE_OFFSETS:
  case KILN__SHAPE_FRAGMENT:
    return vector;
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    /* With the modifier .x1, the operand must be a vector such as {r}. */
    if (kiln__cpu_data_count(f, in) == 1 && !vector)
      return in->sub2 != 1 && (is_source(o) || o->kind == KILN__OPERAND_SINK);
    return vector || kiln__cpu_is_register(o);
  case KILN__SHAPE_PACK:
  case KILN__SHAPE_UNPACK:
    return vector;
  case KILN__SHAPE_LABEL:
  case KILN__SHAPE_TARGETS:
    return o->kind == KILN__OPERAND_SYMBOL;
  case KILN__SHAPE_CALL:
  case KILN__SHAPE_WGMMA:
  case KILN__SHAPE_VIDEO:
    return true;
  }
  return false;
}

bool kiln__cpu_wants_mask(const kiln__cpu_row *row, const kiln__cpu_insn *in)
{
  return row->kind == KILN__KIND_WARP && (in->flags & KILN__SYNC) != 0 &&
         (in->flags & KILN__ALIGNED) == 0;
}

/* Returns whether the statement contains the optional operand that `f`
 * describes. `left` is the number of operands that are not yet bound. */
bool kiln__cpu_is_present(const kiln__cpu_form *f, const kiln__cpu_insn *in,
                          uint32_t left)
{
  if (!f->optional)
    return true;
  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_PREDICATE:
    return in->boolop != KILN__BOOL_NONE;
  case KILN__SHAPE_MASK:
    return (in->flags & KILN__MULTICAST) != 0;
  case KILN__SHAPE_POLICY:
    return (in->flags & KILN__HINTED) != 0;
  case KILN__SHAPE_OFFSETS:
    return in->sub2 == KILN__IM2COL;
  default:
    return left > 0;
  }
}

/* Returns whether an operand is valid where ops.def requires a register of a
 * bit type (%T). Literals and registers of integer or float type are not
 * valid. */
static bool strict_fits(const kiln__cpu_form *f, const kiln__cpu_ptx_operand *o)
{
  if (!f->strict)
    return true;
  if (!kiln__cpu_is_register(o))
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

bool kiln__cpu_shapes_fit(const kiln__cpu_row *row,
                          const kiln__cpu_insn *fields,
                          const kiln__cpu_ptx_insn *statement)
{
  const uint32_t mask = kiln__cpu_wants_mask(row, fields) ? 1 : 0;
  const uint32_t n = statement->n_operands;
  uint32_t at = 0;

  if (row->n_forms > 0 && row->forms[0].shape == KILN__SHAPE_VIDEO)
    return n > 0;
  for (uint32_t i = 0; i < n; i++) {
    if (statement->operands[i].selector.size != 0)
      return false;
  }
  if (row->n_forms > 0 && (row->forms[0].shape == KILN__SHAPE_CALL ||
                           row->forms[0].shape == KILN__SHAPE_WGMMA))
    return n > 0;
  if (n < mask)
    return false;
  for (uint32_t i = 0; i < row->n_forms; i++) {
    const kiln__cpu_form *f = &row->forms[i];

    if (!kiln__cpu_is_present(f, fields, n - mask - at))
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
