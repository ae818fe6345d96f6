/* track_registers.c -- finds the instructions that access the registers of
 * wgmma.
 *
 * Problem: a thread must not access the accumulators, or write the fragments of
 * A, of a wgmma that is in flight. A check of every instruction would be slow,
 * and a slot of the frame does not identify a register.
 *
 * Idea: the registers of all wgmma of a function are numbered while registers
 * are still virtual. Compilers copy accumulators with mov between two wgmma, so
 * the registers at both ends of such copies are numbered as well. Each
 * instruction gets the list of its accesses to these registers.
 *
 * Invariant: a register that is not numbered never holds an accumulator of a
 * wgmma in flight, unless an instruction other than mov copied it.
 *
 * Cost: one pass over the instructions per copy on the longest chain of copies,
 * and nothing in functions without wgmma. */
#include "code_build.h"

#include <string.h>

enum { MOST_PASSES = 64 };

typedef struct tracking {
  const kiln__cpu_build *b;
  kiln__cpu_code *code;
  uint32_t *number; /* per register: 1 + its number, or 0 */
  uint32_t n_registers, n;
  kiln__cpu_touched touched;
} tracking;

static bool is_register(const tracking *t, int32_t id)
{
  return id >= 0 && (uint32_t)id < t->n_registers;
}

static bool add(tracking *t, int32_t id)
{
  if (!is_register(t, id) || t->number[id] != 0)
    return false;
  t->number[id] = ++t->n;
  return true;
}

/* Numbers the registers of all wgmma. The metadata of sparse matrices are
 * included, which does no harm. */
static void add_operands(tracking *t)
{
  for (uint32_t i = 0; i < t->code->n_insns; i++) {
    const kiln__cpu_insn *in = &t->code->insns[i];

    for (uint32_t k = 0; kiln__cpu_is_wgmma(in->op) && k < in->n_vec2; k++)
      (void)add(t, in->vec2[k]);
  }
}

/* Numbers the registers that a mov connects with numbered registers. Returns
 * whether it found any. */
static bool add_copies(tracking *t)
{
  bool any = false;

  for (uint32_t i = 0; i < t->code->n_insns; i++) {
    const kiln__cpu_insn *in = &t->code->insns[i];

    if (in->op != KILN__OP_mov_b32 || !is_register(t, in->a) ||
        !is_register(t, in->d))
      continue;
    if (t->number[in->a] != 0)
      any |= add(t, in->d);
    else if (t->number[in->d] != 0)
      any |= add(t, in->a);
  }
  return any;
}

static kiln_status list_accesses(tracking *t, kiln__cpu_array *out,
                                 uint32_t *at)
{
  kiln__cpu_code *code = t->code;
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < code->n_insns; i++) {
    kiln__cpu_insn *in = &code->insns[i];

    at[i] = out->n;
    KILN_TRY(
        kiln__cpu_touch(&t->touched, t->b->a, &t->b->matcher.rows[in->op], in));
    for (uint32_t k = 0; k < t->touched.n; k++) {
      const int32_t id = *t->touched.at[k];
      kiln__cpu_tracked *item;

      if (!is_register(t, id) || t->number[id] == 0)
        continue;
      item = kiln__cpu_array_add(out, t->b->a, 1, sizeof *item);
      if (item == NULL)
        KILN_TRY(kiln__fail_memory("the registers of wgmma"));
      *item = (kiln__cpu_tracked){t->number[id] - 1, k >= t->touched.n_reads};
    }
  }
  at[code->n_insns] = out->n;
done:
  return st;
}

/* Copies the list to the arena. */
static kiln_status keep(tracking *t, const kiln__cpu_array *list, uint32_t *at)
{
  const size_t size = (list->n + 1u) * sizeof *t->code->tracked;
  kiln__cpu_tracked *items = kiln__cpu_ptx_alloc(t->b->arena, size);

  if (items == NULL)
    return kiln__fail_memory("the registers of wgmma");
  if (list->n > 0)
    memcpy(items, list->data, list->n * sizeof *items);
  t->code->tracked = items;
  t->code->tracked_at = at;
  t->code->n_tracked = t->n;
  return KILN_OK;
}

kiln_status kiln__cpu_track_registers(const kiln__cpu_build *b,
                                      kiln__cpu_code *code,
                                      uint32_t n_registers)
{
  tracking t = {.b = b, .code = code, .n_registers = n_registers};
  kiln__cpu_array list = {0};
  uint32_t *at = NULL;
  bool any = false;
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < code->n_insns && !any; i++)
    any = kiln__cpu_is_wgmma(code->insns[i].op);
  if (!any)
    return KILN_OK;
  t.number = kiln__calloc(b->a, n_registers + 1u, sizeof *t.number);
  at = kiln__cpu_ptx_alloc(b->arena, (code->n_insns + 1u) * sizeof *at);
  if (t.number == NULL || at == NULL)
    KILN_TRY(kiln__fail_memory("the registers of wgmma"));
  add_operands(&t);
  for (int pass = 0; pass < MOST_PASSES && add_copies(&t); pass++) {
  }
  KILN_TRY(list_accesses(&t, &list, at));
  KILN_TRY(keep(&t, &list, at));
done:
  kiln__free(b->a, t.number);
  kiln__free(b->a, list.data);
  kiln__free(b->a, t.touched.at);
  return st;
}
