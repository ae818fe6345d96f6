/* parse_constant.c -- evaluates constant expressions.
 *
 * PTX has the operators of C on 64-bit integers and on doubles. An integer has
 * type .s64 unless a suffix, a cast or its size makes it .u64. The parser uses
 * precedence climbing: binary() parses operators with at least the given
 * precedence and calls itself for the right operand. Only parentheses, signs
 * and `?:` recurse without consuming an operator. Their nesting depth is
 * limited, so no source can overflow the stack. Values are computed during
 * parsing, and no syntax tree is built. */
#include "parse.h"

#include <math.h>

static bool ternary(kiln__cpu_parser *p, kiln__cpu_value *out);

static double as_double(kiln__cpu_value v)
{
  double value;

  memcpy(&value, &v.bits, sizeof value);
  return value;
}

static kiln__cpu_value of_double(double value)
{
  kiln__cpu_value v = {.kind = KILN__OPERAND_FLOAT};

  memcpy(&v.bits, &value, sizeof value);
  return v;
}

static kiln__cpu_value of_integer(uint64_t bits, bool is_unsigned)
{
  return (kiln__cpu_value){KILN__OPERAND_INTEGER, is_unsigned, bits};
}

static bool need_integer(kiln__cpu_parser *p, const kiln__cpu_value *v,
                         kiln__cpu_ptx_pos pos)
{
  if (v->kind == KILN__OPERAND_INTEGER)
    return true;
  return kiln__cpu_wrong(p, pos, "expected an integer constant");
}

bool kiln__cpu_ptx_starts_constant(const kiln__cpu_parser *p)
{
  switch (p->tok.kind) {
  case KILN__TOKEN_INTEGER:
  case KILN__TOKEN_FLOAT:
  case KILN__TOKEN_FLOAT32:
  case KILN__TOKEN_FLOAT64:
  case '-':
  case '+':
  case '~':
  case '!':
  case '(':
    return true;
  case KILN__TOKEN_NAME:
    return kiln__cpu_ptx_is(p, "WARP_SZ");
  default:
    return false;
  }
}

/* Parses `(.s64) x` or `(expression)`. The opening parenthesis has already been
 * consumed. */
static bool parenthesis(kiln__cpu_parser *p, kiln__cpu_value *out, bool *cast)
{
  const bool is_unsigned = kiln__cpu_ptx_is(p, ".u64");

  *cast = is_unsigned || kiln__cpu_ptx_is(p, ".s64");
  if (*cast) {
    kiln__cpu_ptx_next(p);
    *out = of_integer(0, is_unsigned);
    return kiln__cpu_ptx_expect(p, ')');
  }
  return ternary(p, out) && kiln__cpu_ptx_expect(p, ')');
}

static bool number(kiln__cpu_parser *p, kiln__cpu_value *out)
{
  const kiln__cpu_token tok = p->tok;

  switch (tok.kind) {
  case KILN__TOKEN_INTEGER:
    *out = of_integer(tok.bits, tok.is_unsigned);
    break;
  case KILN__TOKEN_FLOAT:
    *out = (kiln__cpu_value){KILN__OPERAND_FLOAT, false, tok.bits};
    break;
  default:
    if (!kiln__cpu_ptx_is(p, "WARP_SZ"))
      return kiln__cpu_ptx_unexpected(p, "a constant");
    *out = of_integer(32, false);
  }
  kiln__cpu_ptx_next(p);
  return true;
}

static bool unary_apply(kiln__cpu_parser *p, int mark, kiln__cpu_ptx_pos pos,
                        kiln__cpu_value *v)
{
  if (v->kind == KILN__OPERAND_FLOAT && (mark == '-' || mark == '+')) {
    if (mark == '-')
      *v = of_double(-as_double(*v));
    return true;
  }
  if (!need_integer(p, v, pos))
    return false;
  if (mark == '-')
    v->bits = UINT64_C(0) - v->bits;
  else if (mark == '~')
    *v = of_integer(~v->bits, v->is_unsigned);
  else if (mark == '!')
    *v = of_integer(v->bits == 0, false);
  return true;
}

/* Parses signs, complements, casts and parentheses. The function iterates over
 * prefixes and recurses only for parentheses and operators. Both are counted in
 * the nesting depth. */
static bool unary(kiln__cpu_parser *p, kiln__cpu_value *out)
{
  const int mark = p->tok.kind;
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  bool ok, cast = false;

  if (mark != '-' && mark != '+' && mark != '~' && mark != '!' && mark != '(')
    return number(p, out);
  if (p->nesting >= KILN__PTX_MAX_NESTING)
    return kiln__cpu_wrong(p, pos,
                           "the expression is nested more than 64 levels deep");
  p->nesting++;
  kiln__cpu_ptx_next(p);
  if (mark == '(') {
    ok = parenthesis(p, out, &cast);
    if (ok && cast) {
      const bool is_unsigned = out->is_unsigned;

      ok = unary(p, out) && need_integer(p, out, pos);
      out->is_unsigned = is_unsigned;
    }
  } else {
    ok = unary(p, out) && unary_apply(p, mark, pos, out);
  }
  p->nesting--;
  return ok;
}

/* Returns the precedence of a binary operator. A higher value binds tighter.
 * Returns 0 if `kind` is not a binary operator. */
static int precedence(int kind)
{
  static const struct {
    int kind, binds;
  } operators[] = {{KILN__TOKEN_OR, 1},
                   {KILN__TOKEN_AND, 2},
                   {'|', 3},
                   {'^', 4},
                   {'&', 5},
                   {'<', 7},
                   {KILN__TOKEN_EQ, 6},
                   {KILN__TOKEN_NE, 6},
                   {'>', 7},
                   {KILN__TOKEN_LE, 7},
                   {KILN__TOKEN_GE, 7},
                   {'+', 9},
                   {KILN__TOKEN_SHL, 8},
                   {KILN__TOKEN_SHR, 8},
                   {'-', 9},
                   {'*', 10},
                   {'/', 10},
                   {'%', 10}};

  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (operators[i].kind == kind)
      return operators[i].binds;
  }
  return 0;
}

/* Applies a comparison operator. `less` and `equal` are the results of
 * comparing the operands. Returns false if `op` is not a comparison. */
static bool compare(int op, bool less, bool equal, kiln__cpu_value *out)
{
  const bool result = op == '<'              ? less
                      : op == '>'            ? !less && !equal
                      : op == KILN__TOKEN_LE ? less || equal
                      : op == KILN__TOKEN_GE ? !less
                      : op == KILN__TOKEN_EQ ? equal
                                             : !equal;

  if (precedence(op) != 6 && precedence(op) != 7)
    return false;
  *out = of_integer(result, false);
  return true;
}

static bool by_zero(kiln__cpu_parser *p, kiln__cpu_ptx_pos pos)
{
  return kiln__cpu_wrong(p, pos, "division by zero in a constant expression");
}

static bool float_apply(kiln__cpu_parser *p, int op, kiln__cpu_ptx_pos pos,
                        kiln__cpu_value *a, kiln__cpu_value b)
{
  const double x = as_double(*a), y = as_double(b);

  if (compare(op, x < y, x == y, a))
    return true;
  if (precedence(op) < 9 || op == '%')
    return need_integer(p, a, pos);
  if (op == '/' && y == 0)
    return by_zero(p, pos);
  *a = of_double(op == '+'   ? x + y
                 : op == '-' ? x - y
                 : op == '*' ? x * y
                             : x / y);
  if (isfinite(as_double(*a)))
    return true;
  return kiln__cpu_wrong(p, pos,
                         "the value of the constant expression is not finite");
}

static uint64_t shifted_right(uint64_t x, uint64_t by, bool is_unsigned)
{
  const bool minus = !is_unsigned && x >> 63 != 0;

  if (by >= 64)
    return minus ? UINT64_MAX : 0;
  x = minus ? ~(~x >> by) : x >> by;
  return x;
}

/* Returns the quotient or the remainder of x and y. INT64_MIN / -1 wraps
 * around. */
static uint64_t divided(uint64_t x, uint64_t y, bool is_unsigned,
                        bool remainder)
{
  const bool minus_x = !is_unsigned && x >> 63 != 0;
  const bool minus_y = !is_unsigned && y >> 63 != 0;
  const uint64_t a = minus_x ? UINT64_C(0) - x : x;
  const uint64_t b = minus_y ? UINT64_C(0) - y : y;
  const uint64_t r = remainder ? a % b : a / b;

  return (remainder ? minus_x : minus_x != minus_y) ? UINT64_C(0) - r : r;
}

static bool below(uint64_t x, uint64_t y, bool is_unsigned)
{
  const uint64_t sign = is_unsigned ? 0 : UINT64_C(1) << 63;

  return (x ^ sign) < (y ^ sign);
}

static uint64_t integer_value(int op, uint64_t x, uint64_t y, bool is_unsigned,
                              bool x_is_unsigned)
{
  switch (op) {
  case '|':
    return x | y;
  case '^':
    return x ^ y;
  case '&':
    return x & y;
  case KILN__TOKEN_SHL:
    return y >= 64 ? 0 : x << y;
  case KILN__TOKEN_SHR:
    return shifted_right(x, y, x_is_unsigned);
  case '+':
    return x + y;
  case '-':
    return x - y;
  case '*':
    return x * y;
  default:
    return divided(x, y, is_unsigned, op == '%');
  }
}

static bool integer_apply(kiln__cpu_parser *p, int op, kiln__cpu_ptx_pos pos,
                          kiln__cpu_value *a, kiln__cpu_value b)
{
  const uint64_t x = a->bits, y = b.bits;
  const bool either = a->is_unsigned || b.is_unsigned;
  const bool shift = op == KILN__TOKEN_SHL || op == KILN__TOKEN_SHR;

  if (compare(op, below(x, y, either), x == y, a))
    return true;
  if (op == KILN__TOKEN_OR || op == KILN__TOKEN_AND)
    *a = of_integer(op == KILN__TOKEN_OR ? x != 0 || y != 0 : x != 0 && y != 0,
                    false);
  else if ((op == '/' || op == '%') && y == 0)
    return by_zero(p, pos);
  else
    *a = of_integer(integer_value(op, x, y, either, a->is_unsigned),
                    shift ? a->is_unsigned : either);
  return true;
}

static bool apply(kiln__cpu_parser *p, int op, kiln__cpu_ptx_pos pos,
                  kiln__cpu_value *a, kiln__cpu_value b)
{
  if (a->kind != b.kind)
    return kiln__cpu_wrong(p, pos, "the expression mixes integers and floats");
  return a->kind == KILN__OPERAND_FLOAT ? float_apply(p, op, pos, a, b)
                                        : integer_apply(p, op, pos, a, b);
}

/* Parses binary operators with a precedence of at least `least`. All operators
 * are left-associative. */
static bool binary(kiln__cpu_parser *p, kiln__cpu_value *out, int least)
{
  if (!unary(p, out))
    return false;
  for (;;) {
    const int op = p->tok.kind, binds = precedence(op);
    const kiln__cpu_ptx_pos pos = p->tok.pos;
    kiln__cpu_value right;

    if (binds == 0 || binds < least)
      return true;
    kiln__cpu_ptx_next(p);
    if (!binary(p, &right, binds + 1) || !apply(p, op, pos, out, right))
      return false;
  }
}

static bool ternary(kiln__cpu_parser *p, kiln__cpu_value *out)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  kiln__cpu_value yes, no;
  bool ok;

  if (!binary(p, out, 1))
    return false;
  if (p->tok.kind != '?')
    return true;
  if (p->nesting >= KILN__PTX_MAX_NESTING)
    return kiln__cpu_wrong(p, pos,
                           "the expression is nested more than 64 levels deep");
  p->nesting++;
  kiln__cpu_ptx_next(p);
  ok = ternary(p, &yes) && kiln__cpu_ptx_expect(p, ':') && ternary(p, &no) &&
       need_integer(p, out, pos) && need_integer(p, &yes, pos) &&
       need_integer(p, &no, pos);
  p->nesting--;
  if (!ok)
    return false;
  *out = out->bits != 0 ? yes : no;
  out->is_unsigned = yes.is_unsigned || no.is_unsigned;
  return true;
}

/* Parses a float that is written as a bit pattern (0f, 0d). Such a number
 * cannot be part of an expression. */
static bool exact(kiln__cpu_parser *p, kiln__cpu_value *out)
{
  if (p->tok.kind == KILN__TOKEN_FLOAT32)
    *out = (kiln__cpu_value){KILN__OPERAND_FLOAT32, false, p->tok.bits};
  else if (p->tok.kind == KILN__TOKEN_FLOAT64)
    *out = (kiln__cpu_value){KILN__OPERAND_FLOAT, false, p->tok.bits};
  else
    return false;
  kiln__cpu_ptx_next(p);
  return true;
}

bool kiln__cpu_ptx_constant(kiln__cpu_parser *p, kiln__cpu_value *out)
{
  if (exact(p, out))
    return true;
  return ternary(p, out);
}

bool kiln__cpu_ptx_offset(kiln__cpu_parser *p, int64_t *out)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  kiln__cpu_value v;

  if (!kiln__cpu_ptx_constant(p, &v) || !need_integer(p, &v, pos))
    return false;
  memcpy(out, &v.bits, sizeof *out);
  return true;
}
