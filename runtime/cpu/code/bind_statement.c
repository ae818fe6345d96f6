/* bind_statement.c -- binds all operands of a statement to the fields of an
 * instruction, in the order of the operand column of ops.def. The other bind_
 * files contain one function for each kind of operand. */
#include "bind.h"

#include <string.h>

/* ---- Branches ------------------------------------------------------------ */

static bool bind_label(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  if (o->symbol->kind != KILN__SYMBOL_LABEL)
    return kiln__cpu_complain(k->l, o->pos, "'%.*s' is not a label",
                              KILN__SHOWN(o->text));
  k->in->target = o->symbol->u.label;
  return true;
}

static bool bind_targets(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o)
{
  const kiln__cpu_ptx_symbol *s = o->symbol;
  int32_t *vec;

  if (s->kind != KILN__SYMBOL_TARGETS || s->u.targets.n == 0 ||
      s->u.targets.n > UINT16_MAX)
    return kiln__cpu_mismatch(k, o);
  vec = kiln__cpu_ptx_alloc(k->l->b->arena, s->u.targets.n * sizeof *vec);
  if (vec == NULL)
    return kiln__cpu_no_memory(k->l);
  for (uint32_t i = 0; i < s->u.targets.n; i++) {
    const kiln__cpu_ptx_symbol *label = s->u.targets.items[i];

    if (label == NULL || label->kind != KILN__SYMBOL_LABEL)
      return kiln__cpu_mismatch(k, o);
    vec[i] = (int32_t)label->u.label;
  }
  k->in->vec = vec;
  k->in->n_vec = (uint16_t)s->u.targets.n;
  return true;
}

/* ---- Operands of a statement --------------------------------------------- */

static bool bind_one(kiln__cpu_binder *k, const kiln__cpu_form *f,
                     const kiln__cpu_ptx_operand *o)
{
  if (f->sm > k->l->part->target)
    return kiln__cpu_complain(
        k->l, o->pos, "this operand requires .target sm_%u or later", f->sm);
  if (!kiln__cpu_check_range(k, f, o))
    return false;
  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_DEST:
  case KILN__SHAPE_DEST_PAIR:
    return kiln__cpu_bind_dest(k, f, o);
  case KILN__SHAPE_SOURCE:
    return kiln__cpu_bind_source(k, f, o);
  case KILN__SHAPE_NUMBER:
    return kiln__cpu_bind_number(k, f, o);
  case KILN__SHAPE_CHOICE:
    return kiln__cpu_bind_choice(k, f, o);
  case KILN__SHAPE_PREDICATE:
    return kiln__cpu_bind_predicate(k, f, o);
  case KILN__SHAPE_ADDRESS:
    return kiln__cpu_bind_address(k, f, o);
  case KILN__SHAPE_TEXTURE:
    return kiln__cpu_bind_texture(k, f, o);
  case KILN__SHAPE_LIST:
    return kiln__cpu_bind_list(k, f, o);
  case KILN__SHAPE_GRADIENT:
    return kiln__cpu_bind_gradient(k, f, o);
  case KILN__SHAPE_MAP:
    return kiln__cpu_bind_map(k, f, o);
  case KILN__SHAPE_OFFSETS:
    return kiln__cpu_bind_offsets(k, o);
  case KILN__SHAPE_MASK:
    return kiln__cpu_bind_mask(k, o);
  case KILN__SHAPE_SKIP:
    return kiln__cpu_bind_listed(k, KILN__U32, o);
  case KILN__SHAPE_POLICY:
    return kiln__cpu_bind_policy(k, o);
  case KILN__SHAPE_SELECTOR:
    return kiln__cpu_bind_selector(k, o);
  case KILN__SHAPE_FRAGMENT:
    return kiln__cpu_bind_fragment(k, f, o);
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    return kiln__cpu_bind_data(k, f, o);
  case KILN__SHAPE_PACK:
  case KILN__SHAPE_UNPACK:
    return kiln__cpu_bind_pack(k, f, o);
  case KILN__SHAPE_LABEL:
    return bind_label(k, o);
  case KILN__SHAPE_TARGETS:
    return bind_targets(k, o);
  case KILN__SHAPE_CALL:
  case KILN__SHAPE_WGMMA:
  case KILN__SHAPE_VIDEO:
    break;
  }
  return false;
}

bool kiln__cpu_bind_operands(kiln__cpu_lower *l, const kiln__cpu_row *row,
                             kiln__cpu_insn *in)
{
  static const kiln__cpu_form mask = {
      .shape = KILN__SHAPE_SOURCE, .type = KILN__U32, .slot = 4};
  const kiln__cpu_ptx_insn *at = l->at;
  const bool has_mask = kiln__cpu_wants_mask(row, in);
  const uint32_t n = at->n_operands - has_mask;
  kiln__cpu_binder k = {.l = l, .row = row, .in = in};
  uint32_t i = 0;

  if (row->n_forms > 0 && row->forms[0].shape == KILN__SHAPE_WGMMA)
    return kiln__cpu_bind_wgmma(&k) && !l->out_of_memory;
  if (row->n_forms > 0 && row->forms[0].shape == KILN__SHAPE_VIDEO)
    return kiln__cpu_bind_video(&k) && !l->out_of_memory;
  for (uint32_t f = 0; f < row->n_forms; f++) {
    if (!kiln__cpu_is_present(&row->forms[f], in, n - i))
      continue;
    if (!bind_one(&k, &row->forms[f], &at->operands[i++]))
      return false;
  }
  if (has_mask && !kiln__cpu_bind_source(&k, &mask, &at->operands[i]))
    return false;
  if (k.n_more > 0) {
    in->vec2 = kiln__cpu_keep_vector(&k, k.more, k.n_more);
    in->n_vec2 = k.n_more;
  }
  return !l->out_of_memory;
}
