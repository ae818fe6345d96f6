/* cpu_exact.c -- implements cpu_exact.h with the references that the tests of
 * handlers use. */
#include "cpu_exact.h"

#include "cpu_convert.h"
#include "cpu_integer.h"
#include "cpu_soft.h"

#include <stdlib.h>

/* Properties of the opcode under test, derived once from ref_op. */
static struct {
  const opcode_case *of;
  /* the last type modifier of the opcode, and the type modifier before it */
  const char *type, *before;
  kiln__cpu_insn insn; /* modifiers and immediate of the opcode */
} op;

static void look(const opcode_case *c)
{
  static char name[112];
  const char *blank = strchr(c->name, ' ');
  cpu_case found;

  if (op.of == c)
    return;
  snprintf(name, sizeof name, "%s", c->name);
  name[strcspn(name, " ")] = '\0';
  ref_parse(name);
  op.of = c;
  op.type = ref_last(0);
  op.before = ref_op.n > 2 ? ref_last(1) : "";
  cpu_case_init(&found, name);
  op.insn = found.in;
  if (strstr(c->text, "!%p2") != NULL)
    op.insn.flags |= KILN__NEGATE_B;
  if (ref_is("lop3") && blank != NULL)
    op.insn.imm = strtol(blank, NULL, 16);
  /* A result of 8 bits is stored in a 32-bit register. */
  if (ref_is("cvt"))
    op.insn.reg_bytes = ref_bits(op.before) == 64   ? 8
                        : ref_bits(op.before) == 16 ? 2
                                                    : 4;
}

static bool is_integer(const char *type)
{
  return strchr("usb", type[0]) != NULL && type[1] >= '0' && type[1] <= '9' &&
         strchr(type, 'x') == NULL;
}

static bool is_plain_float(const char *type)
{
  return strcmp(type, "f16") == 0 || strcmp(type, "bf16") == 0 ||
         strcmp(type, "f32") == 0 || strcmp(type, "f64") == 0;
}

/* ---- One thread ---------------------------------------------------------- */

/* Returns the value of an operand as its register contains it. */
static uint64_t operand(const uint64_t *in, unsigned k)
{
  const unsigned type = op.of->in[k];

  return type < KILN__N_PTX_TYPES && kiln__cpu_ptx_type_bytes[type] == 2
             ? in[k] & 0xffff
             : in[k];
}

/* Computes the result of one lane with a reference function. If the opcode
 * reads the carry flag, its last operand determines the flag. A subtraction
 * clears the flag if there is a borrow. */
static bool of_lane(cpu_reference *reference, const uint64_t *in, uint64_t *out)
{
  const bool subtracts = ref_is("sub") || ref_is("subc");
  cpu_lane l = {.a = operand(in, 0),
                .b = operand(in, 1),
                .c = operand(in, 2),
                .e = operand(in, 3),
                .in = &op.insn};

  if (reference == NULL || ((ref_is("div") || ref_is("rem")) && l.b == 0))
    return false;
  if (ref_is("addc") || ref_is("subc") || ref_is("madc"))
    l.carry = (in[op.of->n_in - 1] != 0) != subtracts;
  reference(&l);
  *out = l.d;
  if (strstr(op.of->name, " carry") != NULL)
    *out = !subtracts ? l.carry : l.carry != 0 ? 0 : UINT32_MAX;
  else if (ref_is("setp") && strstr(op.of->text, "%e|%e2") != NULL)
    *out += 2 * l.d2;
  return true;
}

static uint64_t of_float(const soft_format *f, const uint64_t *in)
{
  const char *const what = ref_op.part[0];

  if (ref_is("min") || ref_is("max"))
    return soft_extreme(&op.insn, what, f, ref_has("abs"), in[0], in[1]);
  return soft_arithmetic(&op.insn, what, f, f, in[0], in[1], in[2]);
}

/* Computes an opcode on floats, and on both halves of packed floats. */
static bool floats(const uint64_t *in, uint64_t *out)
{
  const soft_format *f = soft_format_of(ref_type(op.type));
  const bool packed = strstr(op.type, "x2") != NULL;
  uint64_t low[3] = {0}, high[3] = {0};

  for (unsigned k = 0; k < op.of->n_in && k < 3; k++) {
    low[k] = in[k] & ref_ones((unsigned)f->bits);
    high[k] = packed ? in[k] >> f->bits : 0;
  }
  *out = of_float(f, low);
  if (packed)
    *out |= of_float(f, high) << f->bits;
  return true;
}

static bool is_float_opcode(void)
{
  static const char *const names[] = {"add", "sub", "mul", "fma",
                                      "mad", "div", "rcp", "sqrt"};

  if (ref_is("min") || ref_is("max"))
    return op.of->n_in == 2;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (ref_is(names[i]))
      return !op.of->approx && !ref_is_float(op.before);
  }
  return false;
}

bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result)
{
  look(c);
  if (c->in[c->n_in - 1] == OPERAND_MEMBERS || ref_is("mov") ||
      (strstr(c->name, "cc.u32 ") != NULL && strstr(c->name, " carry") == NULL))
    return false;
  if (ref_is("setp") || ref_is("set"))
    return strstr(op.type, "x2") == NULL &&
           of_lane(ref_integer(), operands, result);
  if (ref_is("cvt"))
    return strchr(c->name, ' ') == NULL &&
           (is_integer(op.type) || is_plain_float(op.type)) &&
           (is_integer(op.before) || is_plain_float(op.before)) &&
           of_lane(ref_conversion(), operands, result);
  if (is_integer(op.type) || ref_is("selp") || ref_is("slct"))
    return (!ref_is("lop3") || ref_op.n == 2) &&
           of_lane(ref_integer(), operands, result);
  return (is_plain_float(op.type) || strcmp(op.type, "f32x2") == 0 ||
          strcmp(op.type, "f16x2") == 0 || strcmp(op.type, "bf16x2") == 0) &&
         is_float_opcode() && floats(operands, result);
}

/* ---- Warps --------------------------------------------------------------- */

/* Returns the lane that a shuffle reads, or -1 if the lane is out of range. */
static int shuffled(int lane, uint32_t b, uint32_t c)
{
  const int by = (int)(b & 31);
  const uint32_t segment = c >> 8 & 31;
  const int last = (int)(((uint32_t)lane & segment) | (c & 31 & ~segment));
  const int first = (int)((uint32_t)lane & segment);

  if (ref_has("up"))
    return lane - by >= last ? lane - by : -1;
  if (ref_has("down"))
    return lane + by <= last ? lane + by : -1;
  if (ref_has("bfly"))
    return (lane ^ by) <= last ? lane ^ by : -1;
  return (first | (by & ~(int)segment)) <= last ? first | (by & ~(int)segment)
                                                : -1;
}

static uint64_t reduced(uint64_t (*in)[OPCODE_SOURCES], uint32_t members)
{
  bool any = false;
  ref_int r = 0;

  for (int i = 0; i < KILN__WARP; i++) {
    const ref_int v = ref_value(op.type, in[i][0]);

    if ((members >> i & 1) == 0)
      continue;
    if (!any)
      r = v;
    else if (ref_has("add"))
      r += v;
    else if (ref_has("min"))
      r = v < r ? v : r;
    else if (ref_has("max"))
      r = v > r ? v : r;
    else
      r = ref_has("and") ? (r & v) : ref_has("or") ? (r | v) : r ^ v;
    any = true;
  }
  return ref_cut(op.type, r);
}

static uint64_t voted(uint64_t (*in)[OPCODE_SOURCES], uint32_t members)
{
  const bool negated = strstr(op.of->text, "!%p0") != NULL;
  uint32_t yes = 0;

  for (int i = 0; i < KILN__WARP; i++)
    yes |= (uint32_t)((in[i][0] != 0) != negated) << i;
  yes &= members;
  return ref_has("ballot") ? yes
         : ref_has("all")  ? yes == members
         : ref_has("any")  ? yes != 0
                           : yes == 0 || yes == members;
}

static uint64_t matched(uint64_t (*in)[OPCODE_SOURCES], uint32_t members,
                        int lane)
{
  uint32_t same = 0;

  for (int i = 0; i < KILN__WARP; i++) {
    if (ref_cut(op.type, (ref_int)in[i][0]) ==
        ref_cut(op.type, (ref_int)in[lane][0]))
      same |= 1u << i;
  }
  same &= members;
  if (ref_has("any"))
    return same;
  return same == members ? (UINT64_C(1) << 32 | members) : 0;
}

bool exact_warp(const opcode_case *c,
                uint64_t operands[KILN__WARP][OPCODE_SOURCES],
                uint64_t results[KILN__WARP])
{
  look(c);
  if (c->in[c->n_in - 1] != OPERAND_MEMBERS || ref_is("elect"))
    return false;
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t members = (uint32_t)operands[i][c->n_in - 1];

    results[i] = 0;
    if ((members >> i & 1) == 0)
      continue;
    if (ref_is("shfl")) {
      const int from =
          shuffled(i, (uint32_t)operands[i][1], (uint32_t)operands[i][2]);

      results[i] = operands[from < 0 ? i : from][0] & UINT32_MAX;
      results[i] |= (uint64_t)(from >= 0) << 32;
    } else if (ref_is("vote")) {
      results[i] = voted(operands, members);
    } else if (ref_is("match")) {
      results[i] = matched(operands, members, i);
    } else {
      results[i] = reduced(operands, members);
    }
  }
  return true;
}
