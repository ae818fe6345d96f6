/* block_order.c -- finds out whether the results of a kernel can depend on the
 * order in which its blocks run.
 *
 * Problem: on several host threads, blocks run in an order that differs from run
 * to run. A user who did not ask for this expects the same results in each run.
 *
 * Idea: in a program without data races, one block can observe the order of
 * other blocks only in a few ways, and each of them is visible in the code:
 *   - an atomic operation on memory outside the block whose result is used, or
 *     that does not commute: floating-point sums, exch, cas, inc and dec
 *   - a load that other blocks may release: volatile, relaxed, acquire
 *   - reductions of bulk copies, which may be floating-point sums
 *   - clocks, and calls through pointers
 *   - printf, malloc, free, and what a kernel launches or sets in a graph
 * A kernel that has none of these in any function that it can call gets the same
 * results in every order. Atomic operations on shared memory do not count,
 * because one host thread runs all warps of a block.
 *
 * Invariant: the answer "does not depend" is only wrong for programs with data
 * races. Where the address space is unknown (generic), it counts as global.
 *
 * Cost: one pass over the instructions of each function. */
#include "code_build.h"

#include <string.h>

static bool shared_space(const kiln__cpu_insn *in)
{
  return in->space == KILN__SPACE_SHARED ||
         in->space == KILN__SPACE_SHARED_CLUSTER;
}

/* Returns whether an instruction is a row with this mnemonic. */
static bool named(const kiln__cpu_insn *in, const char *mnemonic)
{
  const char *pattern = kiln__cpu_op_pattern[in->op];
  const size_t n = strlen(mnemonic);

  return strncmp(pattern, mnemonic, n) == 0 &&
         (pattern[n] == '\0' || strchr(".( ", pattern[n]) != NULL);
}

static bool floating(const kiln__cpu_insn *in)
{
  const char *type = kiln__cpu_ptx_type_text[in->type];

  return type[0] == 'f' || strncmp(type, "bf", 2) == 0;
}

/* Returns whether the order of two such operations changes the memory. The
 * operations add, min, max, and, or and xor on integers commute; minimum and
 * maximum are not available for floating-point numbers. */
static bool commutes(const kiln__cpu_insn *in)
{
  enum { MIN = 1, MAX = 2, ADD = 3 }; /* as in modifiers.def */

  if (floating(in))
    return false;
  return in->boolop != KILN__BOOL_NONE || in->sub == MIN || in->sub == MAX ||
         in->sub == ADD;
}

static bool orders_atomic(const kiln__cpu_insn *in)
{
  const bool atom = named(in, "atom");

  if (!atom && !named(in, "red"))
    return false;
  if (shared_space(in))
    return false;
  return !commutes(in) || (atom && (in->flags & KILN__UNUSED) == 0);
}

static bool orders_load(const kiln__cpu_insn *in)
{
  return named(in, "ld") && in->sem != KILN__SEM_WEAK && !shared_space(in);
}

/* Returns whether an instruction calls a function that is not known. */
static bool calls_unknown(const kiln__cpu_code *code, const kiln__cpu_insn *in)
{
  return in->kind == KILN__KIND_CALL &&
         code->calls[in->imm].callee == UINT32_MAX;
}

static bool orders_insn(const kiln__cpu_insn *in)
{
  return orders_atomic(in) || orders_load(in) || in->op == KILN__OP_mov_clock ||
         named(in, "cp.reduce");
}

bool kiln__cpu_observes_order(const kiln__cpu_code *code)
{
  switch (code->defined ? KILN__SYSTEM_NONE : code->system) {
  case KILN__SYSTEM_NONE:
  case KILN__SYSTEM_ASSERT:
  case KILN__SYSTEM_MEMCPY:
  case KILN__SYSTEM_MEMSET:
    break;
  default:
    return true;
  }
  for (uint32_t i = 0; i < code->n_insns; i++) {
    if (orders_insn(&code->insns[i]) || calls_unknown(code, &code->insns[i]))
      return true;
  }
  return false;
}
