/* lower_bulk.c -- lowers a cp.async.bulk that signals an mbarrier.
 *
 * The statement has three addresses, more than an instruction can hold. It
 * therefore becomes two instructions: the copy, and mbarrier.complete_tx with
 * the number of bytes. The copy is performed immediately, so a kernel that
 * waits for the mbarrier always observes the copied data. */
#include "code_build.h"

static const struct {
  const char *opcode, *version;
  uint32_t ptx;
} forms[] = {
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "8.0",
     80},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes", "8.6",
     86}};

/* Returns the index of the table entry that the opcode matches, or -1 if the
 * opcode matches no entry. */
static int form_of(kiln__cpu_slice opcode)
{
  for (int i = 0; i < 2; i++) {
    if (kiln__cpu_slice_is(opcode, forms[i].opcode))
      return i;
  }
  return -1;
}

bool kiln__cpu_is_bulk(kiln__cpu_slice opcode)
{
  return form_of(opcode) >= 0;
}

static bool check(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_insn *at = l->at;
  const int form = form_of(at->opcode);

  if (l->part->target < 90 || l->part->version < forms[form].ptx)
    return kiln__cpu_complain(l, at->pos,
                              "'%.*s' requires .target sm_90 and .version %s",
                              KILN__SHOWN(at->opcode), forms[form].version);
  if (at->n_operands != 4 || at->operands[2].kind == KILN__OPERAND_FLOAT)
    return kiln__cpu_complain(l, at->pos,
                              "arguments mismatch for instruction '%.*s'",
                              KILN__SHOWN(at->opcode));
  for (uint32_t i = 0; i < 4; i++) {
    if (i != 2 && at->operands[i].kind != KILN__OPERAND_ADDRESS)
      return kiln__cpu_complain(l, at->operands[i].pos,
                                "an address is expected");
  }
  return true;
}

/* Emits one of the two instructions that the statement becomes. */
static bool emit_part(kiln__cpu_lower *l, kiln__cpu_op op,
                      const kiln__cpu_ptx_operand *operands, uint32_t n)
{
  const kiln__cpu_ptx_insn *whole = l->at;
  const kiln__cpu_row *row = &l->b->matcher.rows[op];
  kiln__cpu_ptx_insn part = *whole;
  kiln__cpu_insn in = {.op = (uint16_t)op,
                       .kind = row->kind,
                       .klass = row->klass,
                       .space = KILN__SPACE_SHARED_CLUSTER,
                       .type = KILN__B64,
                       KILN__NO_SLOTS,
                       .bytes = 8};
  bool ok;

  part.operands = operands;
  part.n_operands = n;
  l->at = &part;
  ok =
      kiln__cpu_shapes_fit(row, &in, &part)
          ? kiln__cpu_bind_operands(l, row, &in) && kiln__cpu_emit(l, &in, true)
          : kiln__cpu_complain(l, part.pos,
                               "arguments mismatch for instruction '%.*s'",
                               KILN__SHOWN(part.opcode));
  l->at = whole;
  return ok;
}

bool kiln__cpu_lower_bulk(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_operand *all = l->at->operands;

  if (!check(l))
    return false;
  l->matches = kiln__cpu_matcher_find(&l->b->matcher, l->at->opcode.data,
                                      l->at->opcode.size);
  if (l->matches == NULL)
    return kiln__cpu_no_memory(l);
  const kiln__cpu_ptx_operand complete_tx[2] = {all[3], all[2]};

  return emit_part(l, KILN__OP_cp_async_bulk, all, 3) &&
         emit_part(l, KILN__OP_mbarrier_complete_tx, complete_tx, 2);
}
