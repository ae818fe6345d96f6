/* bind_bulk.c -- binds the operands that only bulk copies have: tensor maps with
 * coordinates, im2col offsets, masks of blocks, and cache policies. */
#include "bind.h"

/* Emits the generic address of a kernel's parameter into a new register. Returns
 * the register, or -1 if memory allocation fails. */
static int32_t param_address(kiln__cpu_lower *l,
                             const kiln__cpu_ptx_variable *v)
{
  const int32_t d = kiln__cpu_new_register(l, 8);
  kiln__cpu_insn in;

  if (d < 0 || !kiln__cpu_fields_of(l, &in, "cvta.param.u64"))
    return -1;
  in.d = d;
  in.a = kiln__cpu_constant(l, 8, KILN__CONST_VALUE, v->place, 0);
  return kiln__cpu_emit(l, &in, false) ? d : -1;
}

/* Returns the operand with the generic address of a variable that holds a tensor
 * map. The result is -1 if the variable is in another state space. */
static int32_t map_address(kiln__cpu_lower *l, const kiln__cpu_ptx_variable *v)
{
  switch (v->space) {
  case KILN__SPACE_GLOBAL:
  case KILN__SPACE_CONST:
    return kiln__cpu_address_constant(l, v, 8, 0);
  case KILN__SPACE_PARAM:
    return v->number == KILN__KERNEL_PARAM ? param_address(l, v) : -1;
  default:
    return -1;
  }
}

/* Binds the address of a tensor map: a 64-bit register, or a variable. */
static bool bind_base(kiln__cpu_binder *k, const kiln__cpu_form *f,
                      const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_ptx_variable *v = kiln__cpu_variable_of(o);
  int32_t id;

  if (v == NULL)
    return kiln__cpu_mismatch(k, o);
  if (v->space == KILN__SPACE_REG) {
    if (v->vector > 1 || !kiln__cpu_type_fits(KILN__U64, v->type, false))
      return kiln__cpu_complain(k->l, o->pos,
                                "the address of a tensor map must be in a "
                                "64-bit register");
    id = kiln__cpu_register_of(k->l, o);
  } else {
    id = map_address(k->l, v);
    if (id < 0)
      return kiln__cpu_complain(k->l, o->pos,
                                "state space mismatch between instruction and "
                                "address");
  }
  k->in->flags |=
      k->n_addresses++ == 0 ? (uint32_t)KILN__WIDE_A : (uint32_t)KILN__WIDE_B;
  return kiln__cpu_put_source(k, f, id);
}

/* Appends all elements of a vector operand to vec2. */
static bool append_all(kiln__cpu_binder *k, uint8_t type,
                       const kiln__cpu_ptx_operand *o, uint32_t n)
{
  if (o->n_items != n)
    return kiln__cpu_complain(
        k->l, o->pos, "the vector has %u elements, expected %u", o->n_items, n);
  for (uint32_t i = 0; i < n; i++) {
    if (!kiln__cpu_bind_listed(k, type, &o->items[i]))
      return false;
  }
  return true;
}

bool kiln__cpu_bind_map(kiln__cpu_binder *k, const kiln__cpu_form *f,
                        const kiln__cpu_ptx_operand *o)
{
  const uint16_t before = k->n_more;
  const kiln__cpu_ptx_operand *coords;

  if (o->n_items != 2 || o->items[1].kind != KILN__OPERAND_VECTOR)
    return kiln__cpu_mismatch(k, o);
  coords = &o->items[1];
  if (!bind_base(k, f, &o->items[0]) ||
      !append_all(k, KILN__S32, coords, k->in->dim))
    return false;
  /* The coordinates go to vec instead of vec2. */
  k->in->vec = kiln__cpu_keep_vector(k, k->more + before, k->in->dim);
  k->in->n_vec = k->in->dim;
  k->n_more = before;
  return k->in->vec != NULL;
}

bool kiln__cpu_bind_offsets(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  return append_all(k, KILN__U16, o, k->in->dim - 2U);
}

bool kiln__cpu_bind_mask(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  return kiln__cpu_bind_listed(k, KILN__U16, o);
}

bool kiln__cpu_bind_policy(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  static const kiln__cpu_form policy = {
      .shape = KILN__SHAPE_SOURCE, .type = KILN__U64, .slot = 4};

  return kiln__cpu_bind_source(k, &policy, o);
}
