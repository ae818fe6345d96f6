/* bind_vector.c -- binds operands of several registers: {a, b, c, d} of loads,
 * stores and mov, and the handles, coordinates and gradients of textures and
 * surfaces.
 *
 * The slots are stored in arrays in the arena: `vec` for data, `vec2` for
 * coordinates. */
#include "bind.h"

#include <string.h>

/* ---- Vector operands ----------------------------------------------------- */

const int32_t *kiln__cpu_keep_vector(kiln__cpu_binder *k, const int32_t *ids,
                                     uint32_t n)
{
  int32_t *vec = kiln__cpu_ptx_alloc(k->l->b->arena, n * sizeof *vec + 4);

  if (vec == NULL) {
    (void)kiln__cpu_no_memory(k->l);
    return NULL;
  }
  memcpy(vec, ids, n * sizeof *vec);
  return vec;
}

/* Binds one element of a source vector: a register or a literal. A literal
 * takes the width of the vector's registers. */
static bool element_in(kiln__cpu_binder *k, const kiln__cpu_form *f,
                       uint8_t type, const kiln__cpu_ptx_operand *o,
                       int32_t *id)
{
  kiln__cpu_ptx_type have;

  if (kiln__cpu_is_literal(o))
    return f->register_only
               ? kiln__cpu_mismatch(k, o)
               : kiln__cpu_bind_literal(k, type, k->in->src_reg_bytes, o, id);
  if (!kiln__cpu_is_register(o) || o->negated)
    return kiln__cpu_mismatch(k, o);
  if (!kiln__cpu_check_register(k, o, type, f->wider, &have))
    return false;
  *id = kiln__cpu_register_of(k->l, o);
  k->in->src_reg_bytes = kiln__cpu_ptx_type_bytes[have];
  return true;
}

/* Checks that all elements of a vector operand such as {a, b} have the same
 * type. */
static bool same_types(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  kiln__cpu_ptx_type first = KILN__NONE;
  bool any = false;

  for (uint32_t i = 0; i < o->n_items; i++) {
    kiln__cpu_ptx_type type;

    if (!kiln__cpu_is_register(&o->items[i])) {
      any |= kiln__cpu_is_literal(&o->items[i]);
      continue;
    }
    any = true;
    type = o->items[i].symbol->u.variable->type;
    if (first == KILN__NONE)
      first = type;
    else if (!kiln__cpu_type_fits(first, type, false) &&
             !kiln__cpu_type_fits(type, first, false))
      return kiln__cpu_mismatch(k, o);
  }
  return any || kiln__cpu_mismatch(k, o);
}

/* Binds all components of a vector register. */
static bool whole_register(kiln__cpu_binder *k, const kiln__cpu_form *f,
                           const kiln__cpu_ptx_operand *o, uint8_t n,
                           int32_t *ids)
{
  const kiln__cpu_ptx_variable *v = o->symbol->u.variable;

  if (v->vector != n || o->component >= 0 || o->negated ||
      !kiln__cpu_type_fits(kiln__cpu_type_of(k, f->type), v->type, f->wider))
    return kiln__cpu_mismatch(k, o);
  for (uint8_t i = 0; i < n; i++)
    ids[i] = (int32_t)k->l->base[v->index] + i;
  k->in->reg_bytes = kiln__cpu_ptx_type_bytes[v->type];
  k->in->src_reg_bytes = k->in->reg_bytes;
  return true;
}

/* Returns the size in bytes of the first register in a vector operand, or 0 if
 * the operand contains no register. */
static uint8_t register_bytes(const kiln__cpu_ptx_operand *o)
{
  for (uint32_t i = 0; i < o->n_items; i++) {
    if (kiln__cpu_is_register(&o->items[i]))
      return kiln__cpu_ptx_type_bytes[o->items[i].symbol->u.variable->type];
  }
  return 0;
}

bool kiln__cpu_bind_elements(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o, uint8_t n,
                             bool written, int32_t *ids)
{
  const bool vector = o->kind == KILN__OPERAND_VECTOR;

  if (!vector && n > 1)
    return whole_register(k, f, o, n, ids);
  if (vector && (o->n_items != n || !same_types(k, o)))
    return o->n_items != n ? kiln__cpu_mismatch(k, o) : false;
  if (vector && !written)
    k->in->src_reg_bytes = register_bytes(o);
  for (uint8_t i = 0; i < n; i++) {
    const kiln__cpu_ptx_operand *item = vector ? &o->items[i] : o;

    if (!vector && item->kind == KILN__OPERAND_SINK)
      return kiln__cpu_complain(k->l, o->pos,
                                "result discard mode is not allowed here");
    if (!(written ? kiln__cpu_bind_dest_to(k, f->type, f->wider, item, &ids[i])
                  : element_in(k, f, f->type, item, &ids[i])))
      return false;
  }
  return true;
}

bool kiln__cpu_bind_data(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o)
{
  const bool written = f->shape == KILN__SHAPE_DATA_OUT;
  const uint8_t n = kiln__cpu_data_count(f, k->in);
  const int32_t *vec;
  int32_t ids[8] = {0};

  if (!kiln__cpu_bind_elements(k, f, o, n, written, ids))
    return false;
  vec = kiln__cpu_keep_vector(k, ids, n);
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
  return n > 1 || written || kiln__cpu_put_source(k, f, ids[0]);
}

static kiln__cpu_ptx_type part_type(uint8_t bytes)
{
  return bytes == 1   ? KILN__B8
         : bytes == 2 ? KILN__B16
         : bytes == 4 ? KILN__B32
                      : KILN__NONE;
}

/* Binds the {lo, hi} operand of a mov that packs two values into one or unpacks
 * one value into two. */
bool kiln__cpu_bind_pack(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o)
{
  const uint8_t whole = kiln__cpu_ptx_type_bytes[k->in->type];
  const bool written = f->shape == KILN__SHAPE_UNPACK;
  const uint8_t n = (uint8_t)o->n_items;
  uint8_t bytes;
  kiln__cpu_form element = {.shape = f->shape};
  int32_t ids[8];

  if ((n != 2 && n != 4) || whole % n != 0 || whole > 8)
    return kiln__cpu_mismatch(k, o);
  bytes = (uint8_t)(whole / n);
  element.type = (uint8_t)part_type(bytes);
  if (element.type == KILN__NONE ||
      !kiln__cpu_bind_elements(k, &element, o, n, written, ids))
    return element.type == KILN__NONE ? kiln__cpu_mismatch(k, o) : false;
  k->in->vec = kiln__cpu_keep_vector(k, ids, n);
  k->in->n_vec = n;
  k->in->bytes = bytes;
  return k->in->vec != NULL;
}

/* ---- Textures and surfaces ----------------------------------------------- */

static bool add_one(kiln__cpu_binder *k, const kiln__cpu_form *f, uint8_t type,
                    const kiln__cpu_ptx_operand *o)
{
  if (k->n_more == sizeof k->more / sizeof *k->more)
    return kiln__cpu_mismatch(k, o);
  return element_in(k, f, type, o, &k->more[k->n_more++]);
}

bool kiln__cpu_bind_listed(kiln__cpu_binder *k, uint8_t type,
                           const kiln__cpu_ptx_operand *o)
{
  static const kiln__cpu_form plain = {.shape = KILN__SHAPE_SOURCE};

  return add_one(k, &plain, type, o);
}

/* Appends a vector operand of exactly `n` elements to vec2. The first element
 * may be a layer index. If `n` is 1, the operand may be a scalar register. */
static bool add_vector(kiln__cpu_binder *k, const kiln__cpu_form *f,
                       const kiln__cpu_ptx_operand *o, uint8_t n, bool layer)
{
  if (o->kind != KILN__OPERAND_VECTOR)
    return n == 1 && kiln__cpu_is_register(o) ? add_one(k, f, f->type, o)
                                              : kiln__cpu_mismatch(k, o);
  if (o->n_items != n)
    return kiln__cpu_complain(
        k->l, o->pos, "the vector has %u elements, expected %u", o->n_items, n);
  for (uint32_t i = 0; i < n; i++) {
    if (!add_one(k, f, i == 0 && layer ? (uint8_t)KILN__U32 : f->type,
                 &o->items[i]))
      return false;
  }
  return true;
}

bool kiln__cpu_bind_list(kiln__cpu_binder *k, const kiln__cpu_form *f,
                         const kiln__cpu_ptx_operand *o)
{
  return add_one(k, f, f->type, o);
}

bool kiln__cpu_bind_gradient(kiln__cpu_binder *k, const kiln__cpu_form *f,
                             const kiln__cpu_ptx_operand *o)
{
  return add_vector(k, f, o, f->geometry->gradient, false);
}

/* Binds the handle of a texture, sampler or surface. The handle is a variable
 * or a 64-bit register. */
static bool bind_handle(kiln__cpu_binder *k, const kiln__cpu_form *f,
                        const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_ptx_variable *v = kiln__cpu_variable_of(o);

  if (v == NULL)
    return kiln__cpu_mismatch(k, o);
  if (v->space == KILN__SPACE_REG) {
    if (!kiln__cpu_type_fits(KILN__B64, v->type, false) || v->vector > 1)
      return kiln__cpu_mismatch(k, o);
    return kiln__cpu_put_source(k, f, kiln__cpu_register_of(k->l, o));
  }
  if (!kiln__cpu_is_reference(v) || (v->type == KILN__SURFREF) != f->surface)
    return kiln__cpu_mismatch(k, o);
  if (v->space == KILN__SPACE_PARAM)
    return kiln__cpu_complain(k->l, o->pos,
                              "texture parameters of kernels are not "
                              "supported; pass a texture object");
  return kiln__cpu_put_source(k, f, kiln__cpu_address_constant(k->l, v, 8, 0));
}

bool kiln__cpu_bind_texture(kiln__cpu_binder *k, const kiln__cpu_form *f,
                            const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_geometry *g = f->geometry;

  if (o->kind == KILN__OPERAND_ADDRESS)
    return o->base != NULL && o->offset == 0 && g == NULL
               ? bind_handle(k, f, o->base)
               : kiln__cpu_mismatch(k, o);
  if (g == NULL || o->n_items < 2 || o->n_items > 3)
    return kiln__cpu_mismatch(k, o);
  for (uint32_t i = 0; i + 1 < o->n_items; i++) {
    if (!bind_handle(k, f, &o->items[i]))
      return false;
  }
  return add_vector(k, f, &o->items[o->n_items - 1], g->coordinates, g->array);
}
