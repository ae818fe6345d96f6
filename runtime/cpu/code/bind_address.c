/* bind_address.c -- binds address operands: [register + offset] and [variable +
 * offset].
 *
 * A displacement becomes the `imm` field of the instruction, so that no
 * addition is emitted. Variables in .shared, .param and .local have fixed
 * offsets, which become constants or displacements. The address of a variable
 * in .global or .const is unknown until the module is loaded. Such an address
 * becomes a constant that is filled when a frame is created. */
#include "bind.h"

#include <string.h>

/* Returns a constant that holds the address of a variable. The variable must
 * not be in .local. */
int32_t kiln__cpu_address_constant(kiln__cpu_lower *l,
                                   const kiln__cpu_ptx_variable *v,
                                   uint8_t bytes, int64_t offset)
{
  switch (v->space) {
  case KILN__SPACE_SHARED:
    v = v->same != NULL ? v->same : v;
    if (v->flexible || v->size == 0)
      return kiln__cpu_constant(l, bytes, KILN__CONST_DYNAMIC, 0, offset);
    return kiln__cpu_constant(l, bytes, KILN__CONST_VALUE,
                              v->place + (uint64_t)offset, 0);
  case KILN__SPACE_PARAM:
    return kiln__cpu_constant(l, bytes, KILN__CONST_VALUE,
                              v->place + (uint64_t)offset, 0);
  default:
    return kiln__cpu_constant(l, bytes, KILN__CONST_ADDRESS, v->number, offset);
  }
}

bool kiln__cpu_is_reference(const kiln__cpu_ptx_variable *v)
{
  return v->type == KILN__TEXREF || v->type == KILN__SURFREF ||
         v->type == KILN__SAMPLERREF;
}

/* ---- Addresses ----------------------------------------------------------- */

static bool space_fits(kiln__cpu_space want, const kiln__cpu_ptx_variable *v,
                       bool local)
{
  /* Generic addresses do not include constant memory. */
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

/* Emits the generic address of a shared or local variable into a new register.
 */
static bool generic_address(kiln__cpu_binder *k,
                            const kiln__cpu_ptx_variable *v, int32_t *id)
{
  kiln__cpu_lower *l = k->l;
  const bool shared = v->space == KILN__SPACE_SHARED;
  kiln__cpu_insn in;
  const int32_t d = kiln__cpu_new_register(l, 8);

  if (d < 0 || !kiln__cpu_fields_of(
                   l, &in, shared ? "cvta.shared.u64" : "cvta.local.u64"))
    return false;
  in.d = d;
  in.a = d;
  if (shared)
    in.a = kiln__cpu_address_constant(l, v, 8, 0);
  else if (!kiln__cpu_emit_local_address(l, d, 8, (int64_t)v->place))
    return false;
  *id = d;
  return kiln__cpu_emit(l, &in, false);
}

static bool address_of_variable(kiln__cpu_binder *k,
                                const kiln__cpu_ptx_operand *o,
                                kiln__cpu_space space, uint8_t variable,
                                int32_t *id, int64_t *imm, bool *wide)
{
  const kiln__cpu_ptx_variable *v = o->base->symbol->u.variable;
  const bool local = kiln__cpu_is_local(v);

  if (!space_fits(space, v, local) || kiln__cpu_is_reference(v) ||
      (space == KILN__SPACE_LOCAL &&
       k->l->param_as_local != (v->space == KILN__SPACE_PARAM)) ||
      (variable != 0 && v->space != variable))
    return kiln__cpu_complain(k->l, o->pos,
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
  *id = kiln__cpu_address_constant(k->l, v, *wide ? 8 : 4, 0);
  return *id >= 0;
}

static bool address_of_register(kiln__cpu_binder *k,
                                const kiln__cpu_ptx_operand *o,
                                kiln__cpu_space space, int32_t *id, bool *wide)
{
  const kiln__cpu_ptx_variable *v = o->base->symbol->u.variable;

  if (v->vector > 1 && o->base->component < 0)
    return kiln__cpu_mismatch(k, o);
  if (!kiln__cpu_type_fits(KILN__U64, v->type, false) &&
      !kiln__cpu_type_fits(KILN__U32, v->type, false))
    return kiln__cpu_complain(
        k->l, o->pos,
        "an address must be in a 32- or 64-bit register of "
        "integer or bit type");
  *id = kiln__cpu_register_of(k->l, o->base);
  *wide = kiln__cpu_ptx_type_bytes[v->type] == 8;
  if (!*wide && (space == KILN__SPACE_GENERIC || space == KILN__SPACE_GLOBAL))
    return kiln__cpu_complain(k->l, o->pos,
                              "an address in this space must be in a 64-bit "
                              "register");
  return true;
}

bool kiln__cpu_bind_address(kiln__cpu_binder *k, const kiln__cpu_form *f,
                            const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_space space = f->space == KILN__SPACE_OF_OPCODE
                                    ? (kiln__cpu_space)k->in->space
                                    : (kiln__cpu_space)f->space;
  const bool first = !f->listed && k->n_addresses++ == 0;
  int64_t imm = o->offset;
  int32_t id = -1;
  bool wide = false;

  if (o->base == NULL || o->base->kind == KILN__OPERAND_INTEGER) {
    if (space != KILN__SPACE_LOCAL || k->l->param_as_local)
      return kiln__cpu_complain(k->l, o->pos,
                                "immediate addresses are allowed "
                                "only in the .local state space");
    imm += o->base == NULL ? 0 : (int64_t)o->base->bits;
    id = kiln__cpu_constant(k->l, 8, KILN__CONST_VALUE, 0, 0);
    wide = true;
  } else if (kiln__cpu_is_register(o->base)) {
    if (!address_of_register(k, o, space, &id, &wide))
      return false;
  } else if (kiln__cpu_variable_of(o->base) == NULL) {
    return kiln__cpu_mismatch(k, o);
  } else if (!address_of_variable(k, o, space, f->variable, &id, &imm, &wide)) {
    return false;
  }
  if (f->listed) {
    k->in->flags |= wide ? (uint32_t)KILN__WIDE_C : 0;
    k->more[k->n_more++] = id;
    k->more[k->n_more++] =
        kiln__cpu_constant(k->l, 4, KILN__CONST_VALUE, (uint32_t)imm, 0);
    return true;
  }
  if (first)
    k->in->imm = imm;
  else
    k->in->imm2 = imm;
  if (wide)
    k->in->flags |= first ? (uint32_t)KILN__WIDE_A : (uint32_t)KILN__WIDE_B;
  return kiln__cpu_put_source(k, f, id);
}
