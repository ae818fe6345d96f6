/* cpu_integer.c -- reference implementations of moves, comparisons and integer
 * instructions, which follow the PTX ISA bit by bit. */
#include "cpu_integer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bit(uint64_t x, unsigned i)
{
  return i < 64 ? x >> i & 1 : 0;
}

static ref_int clamp_s32(ref_int x)
{
  const ref_int top = ((ref_int)1 << 31) - 1;

  return x > top ? top : x < -top - 1 ? -top - 1 : x;
}

/* ---- Arithmetic ---------------------------------------------------------- */

static void ref_sum(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const bool adds = ref_op.part[0][0] == 'a';
  const bool with = ref_op.part[0][3] == 'c';
  /* A subtraction sets the carry flag if there is no borrow. */
  const ref_int carry = !with ? 0 : adds ? l->carry : !l->carry;
  const ref_int modulus = (ref_int)1 << ref_bits(t);
  const ref_int a = (ref_int)ref_cut(t, (ref_int)l->a);
  const ref_int b = (ref_int)ref_cut(t, (ref_int)l->b);
  const ref_int plain = adds ? a + b + carry : a - b - carry;

  if (ref_has("u16x2") || ref_has("s16x2")) {
    l->d = ((l->a & 0xffff) + (l->b & 0xffff)) % 65536 +
           ((l->a >> 16) + (l->b >> 16)) % 65536 * 65536;
    return;
  }
  l->d = ref_cut(t, plain);
  if (ref_has("sat"))
    l->d = ref_cut(t, clamp_s32(ref_value(t, l->a) +
                                (adds ? 1 : -1) * ref_value(t, l->b)));
  if (ref_has("cc"))
    l->carry = adds ? plain >= modulus : plain >= 0;
}

/* Returns the half of a product that .lo or .hi selects, or the whole product
 * for .wide. */
static ref_uint part_of_product(const char *t, uint64_t a, uint64_t b)
{
  const unsigned bits = ref_bits(t);
  const ref_uint product =
      ref_is_signed(t) ? (ref_uint)(ref_value(t, a) * ref_value(t, b))
                       : (ref_uint)ref_value(t, a) * (ref_uint)ref_value(t, b);

  if (ref_has("hi"))
    return ref_is_signed(t) ? (ref_uint)((ref_int)product >> bits)
                            : product >> bits;
  return product;
}

static void ref_product(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const unsigned bits = ref_bits(t) * (ref_has("wide") ? 2 : 1);
  const ref_uint mask = ref_ones(bits);
  const bool adds = ref_op.part[0][1] == 'a';
  const ref_uint part = part_of_product(t, l->a, l->b) & mask;
  ref_uint sum = part;

  /* The product is extended to 64 bits, so its upper half contains only the
   * sign. */
  if (ref_is("madc") && bits == 16 && ref_has("hi"))
    sum = (ref_uint)(ref_value(t, l->a) * ref_value(t, l->b) < 0) * mask;
  if (adds)
    sum += (ref_uint)l->c + (ref_is("madc") ? l->carry : 0);
  if (ref_has("cc"))
    l->carry = (uint32_t)(sum >> bits & 1);
  l->d = (uint64_t)(sum & mask);
  if (ref_has("sat"))
    l->d = ref_cut(
        t, clamp_s32(ref_value(t, (uint64_t)part) + ref_value(t, l->c)));
}

static void ref_product24(cpu_lane *l)
{
  const char *const t = ref_last(0);
  ref_int a = (ref_int)(l->a % (1 << 24)), b = (ref_int)(l->b % (1 << 24));
  ref_int part;

  if (ref_is_signed(t)) {
    a -= a >= 1 << 23 ? 1 << 24 : 0;
    b -= b >= 1 << 23 ? 1 << 24 : 0;
  }
  part = ref_has("hi") ? a * b >> 16 : a * b;
  l->d = ref_cut(t, part);
  if (ref_is("mad24"))
    l->d = ref_cut(t, part + (ref_int)l->c);
  if (ref_has("sat"))
    l->d = ref_cut(
        t, clamp_s32(ref_value(t, (uint64_t)part) + ref_value(t, l->c)));
}

static void ref_divide(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const ref_int a = ref_value(t, l->a), b = ref_value(t, l->b);

  if (b == 0)
    l->d = ref_cut(t, -1);
  else
    l->d = ref_cut(t, ref_is("div") ? a / b : a % b);
}

static void ref_unary(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const ref_int a = ref_value(t, l->a);

  l->d = ref_cut(t, ref_is("neg") || a < 0 ? -a : a);
}

static void ref_sad(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const ref_int gap = ref_value(t, l->a) - ref_value(t, l->b);

  l->d = ref_cut(t, (gap < 0 ? -gap : gap) + ref_value(t, l->c));
}

static uint64_t extreme(const char *t, uint64_t a, uint64_t b)
{
  const ref_int x = ref_value(t, a), y = ref_value(t, b);
  ref_int r = (x < y) == ref_is("min") ? x : y;

  if (ref_has("relu") && r < 0)
    r = 0;
  return ref_cut(t, r);
}

static void ref_extreme(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const char half[] = {t[0], '1', '6', 0};

  if (strstr(t, "x2") == NULL)
    l->d = extreme(t, l->a, l->b);
  else
    l->d = extreme(half, l->a, l->b) | extreme(half, l->a >> 16, l->b >> 16)
                                           << 16;
}

/* Computes the result of a SIMD video instruction element by element. The
 * results of the elements are merged into d or added up. */
static void ref_apart(cpu_lane *l)
{
  const unsigned parts = ref_is("vabsdiff4") ? 4 : 2, bits = 32 / parts;
  ref_int sum = (ref_int)l->c, lanes = 0;

  for (unsigned k = 0; k < parts; k++) {
    const char *const type = parts == 4 ? "u8" : "u16";
    const ref_int v =
        ref_value(type, l->a >> bits * k) - ref_value(type, l->b >> bits * k);

    sum += v < 0 ? -v : v;
    lanes += (v < 0 ? -v : v) * ((ref_int)1 << bits * k);
  }
  l->d = ref_cut("u32", ref_has("add") ? sum : lanes);
}

static void ref_dot(cpu_lane *l)
{
  const char *const ta = ref_last(1), *const tb = ref_last(0);
  const char a8[] = {ta[0], '8', 0}, a16[] = {ta[0], '1', '6', 0};
  const char b8[] = {tb[0], '8', 0};
  ref_int sum = (ref_int)l->c;

  if (ref_is("dp4a")) {
    for (unsigned k = 0; k < 4; k++)
      sum += ref_value(a8, l->a >> 8 * k) * ref_value(b8, l->b >> 8 * k);
  } else {
    const uint64_t b = ref_has("hi") ? l->b >> 16 : l->b;

    for (unsigned k = 0; k < 2; k++)
      sum += ref_value(a16, l->a >> 16 * k) * ref_value(b8, b >> 8 * k);
  }
  l->d = ref_cut("u32", sum);
}

/* ---- Bits ---------------------------------------------------------------- */

static void ref_count(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const unsigned n = ref_bits(t);
  uint64_t r = 0;

  if (ref_is("popc")) {
    for (unsigned i = 0; i < n; i++)
      r += bit(l->a, i);
  } else if (ref_is("clz")) {
    while (r < n && bit(l->a, n - 1 - (unsigned)r) == 0)
      r++;
  } else {
    for (unsigned i = 0; i < n; i++)
      r |= bit(l->a, i) << (n - 1 - i);
  }
  l->d = r;
}

static void ref_bfind(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const int top = (int)ref_bits(t) - 1;
  uint64_t a = l->a;

  if (ref_is_signed(t) && bit(a, (unsigned)top) != 0)
    a = ~a;
  l->d = 0xffffffff;
  for (int i = top; i >= 0; i--) {
    if (bit(a, (unsigned)i) != 0) {
      l->d = (uint64_t)i;
      break;
    }
  }
  if (ref_has("shiftamt") && l->d != 0xffffffff)
    l->d = (uint64_t)top - l->d;
}

/* Returns an operand that is a bit position or length. The value is the low
 * byte of the operand, or all of it for 64-bit instructions. */
static uint64_t place(const char *type, uint64_t raw)
{
  return raw & (ref_bits(type) == 64 ? UINT32_MAX : 0xff);
}

static void ref_bfe(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const unsigned top = ref_bits(t) - 1;
  const uint64_t pos = place(t, l->b), len = place(t, l->c);
  const uint64_t last = pos + len - 1 < top ? pos + len - 1 : top;
  const uint64_t sign =
      !ref_is_signed(t) || len == 0 ? 0 : bit(l->a, (unsigned)last);
  uint64_t d = 0;

  for (unsigned i = 0; i <= top; i++)
    d |= (i < len && pos + i <= top ? bit(l->a, (unsigned)pos + i) : sign) << i;
  l->d = d;
}

static void ref_bfi(cpu_lane *l)
{
  const unsigned top = ref_bits(ref_last(0)) - 1;
  const uint64_t pos = place(ref_last(0), l->c), len = place(ref_last(0), l->e);
  uint64_t d = l->b;

  for (unsigned i = 0; i < len && pos + i <= top; i++) {
    d &= ~(UINT64_C(1) << (pos + i));
    d |= bit(l->a, i) << (pos + i);
  }
  l->d = d;
}

static void ref_bmsk(cpu_lane *l)
{
  const bool clamps = ref_has("clamp");
  const uint64_t from = clamps ? l->a : l->a % 32;
  const uint64_t width = clamps ? l->b : l->b % 32;

  l->d = 0;
  for (uint64_t i = from; i < 32 && i < from + width; i++)
    l->d |= UINT64_C(1) << i;
}

static void ref_szext(cpu_lane *l)
{
  const uint64_t width = ref_has("clamp") ? l->b : l->b % 32;
  const unsigned n = width < 32 ? (unsigned)width : 32;
  const bool sign =
      ref_is_signed(ref_last(0)) && n > 0 && bit(l->a, n - 1) != 0;

  l->d = 0;
  for (unsigned i = 0; i < 32; i++)
    l->d |= (i < n ? bit(l->a, i) : sign) << i;
}

static void ref_fns(cpu_lane *l)
{
  const int offset = (int32_t)l->c;
  int at = (int)l->b;
  int64_t left = llabs((long long)offset);

  l->d = offset == INT32_MIN ? 0 : 0xffffffff;
  if (l->b > 31 || offset == INT32_MIN)
    return;
  if (offset == 0) {
    if (bit(l->a, (unsigned)at) != 0)
      l->d = (uint64_t)at;
    return;
  }
  while (at >= 0 && at < 32) {
    if (bit(l->a, (unsigned)at) != 0 && --left == 0) {
      l->d = (uint64_t)at;
      return;
    }
    at += offset > 0 ? 1 : -1;
  }
}

static void ref_logic(cpu_lane *l)
{
  const uint64_t mask = ref_ones(ref_bits(ref_last(0)));

  if (ref_is("and"))
    l->d = l->a & l->b;
  else if (ref_is("or"))
    l->d = l->a | l->b;
  else if (ref_is("xor"))
    l->d = (l->a | l->b) - (l->a & l->b);
  else if (ref_is("not"))
    l->d = mask - l->a;
  else
    l->d = l->a == 0 ? 1 : 0;
}

void ref_lop3(cpu_lane *l)
{
  const bool p = (l->e != 0) != ((l->in->flags & KILN__NEGATE_B) != 0);

  l->d = 0;
  for (unsigned i = 0; i < 32; i++)
    l->d |= bit((uint64_t)l->in->imm,
                (unsigned)(bit(l->a, i) * 4 + bit(l->b, i) * 2 + bit(l->c, i)))
            << i;
  l->d2 = ref_has("and") ? l->d != 0 && p : l->d != 0 || p;
}

static void ref_shift(cpu_lane *l)
{
  const char *const t = ref_last(0);
  const unsigned n = ref_bits(t);
  const unsigned by = l->b < n ? (unsigned)l->b : n;
  const uint64_t sign = ref_is_signed(t) ? bit(l->a, n - 1) : 0;

  l->d = 0;
  for (unsigned i = 0; i < n; i++) {
    if (ref_is("shl"))
      l->d |= (i >= by ? bit(l->a, i - by) : 0) << i;
    else
      l->d |= (i + by < n ? bit(l->a, i + by) : sign) << i;
  }
}

static void ref_funnel(cpu_lane *l)
{
  const uint64_t n = ref_has("wrap") ? l->c % 32 : l->c < 32 ? l->c : 32;
  const ref_uint both = (ref_uint)l->b << 32 | l->a;

  l->d = (uint64_t)(ref_has("l") ? both << n >> 32 : both >> n) & 0xffffffff;
}

/* Returns the source operand that contains byte k of the result. */
static unsigned mode_byte(const char *mode, unsigned c, unsigned k)
{
  if (strcmp(mode, "f4e") == 0)
    return c + k;
  if (strcmp(mode, "b4e") == 0)
    return (c + 8 - k) % 8;
  if (strcmp(mode, "rc8") == 0)
    return c;
  if (strcmp(mode, "ecl") == 0)
    return k > c ? k : c;
  if (strcmp(mode, "ecr") == 0)
    return k < c ? k : c;
  return c % 2 * 2 + k % 2; /* mode .rc16 */
}

static void ref_prmt(cpu_lane *l)
{
  const char *const mode = ref_op.n < 3 ? NULL
                           : strcmp(ref_op.part[1], "b32") == 0
                               ? ref_op.part[2]
                               : ref_op.part[1];
  uint8_t bytes[8];

  for (unsigned k = 0; k < 4; k++) {
    bytes[k] = (uint8_t)(l->a >> 8 * k);
    bytes[k + 4] = (uint8_t)(l->b >> 8 * k);
  }
  l->d = 0;
  for (unsigned k = 0; k < 4; k++) {
    const unsigned s = mode != NULL ? mode_byte(mode, l->c % 4, k)
                                    : (unsigned)(l->c >> 4 * k & 15);
    const uint8_t byte = bytes[s % 8];

    l->d |= (uint64_t)(s < 8 ? byte : byte >= 128 ? 255 : 0) << 8 * k;
  }
}

/* ---- Moves --------------------------------------------------------------- */

static void ref_move(cpu_lane *l)
{
  const bool negated = (l->in->flags & KILN__NEGATE_B) != 0;

  if (ref_is("selp"))
    l->d = (l->c != 0) != negated ? l->a : l->b;
  else if (ref_has("pred"))
    l->d = (l->a != 0) != negated;
  else
    l->d = l->a;
}

static void ref_slct(cpu_lane *l)
{
  if (strcmp(ref_last(0), "s32") == 0)
    l->d = ref_value("s32", l->c) >= 0 ? l->a : l->b;
  else
    l->d = ref_decode("f32", l->c, ref_has("ftz")) >= 0 ? l->a : l->b;
}

static void ref_cvta(cpu_lane *l)
{
  const char *const space = ref_has("to") ? ref_op.part[2] : ref_op.part[1];
  uint64_t window = 0;

  if (strncmp(space, "shared", 6) == 0)
    window = KILN__WINDOW_SHARED;
  else if (strcmp(space, "local") == 0)
    window = KILN__WINDOW_LOCAL;
  else if (strncmp(space, "param", 5) == 0)
    window = KILN__WINDOW_PARAM;
  l->d = ref_has("to") ? l->a - window : l->a + window;
}

/* ---- Comparisons --------------------------------------------------------- */

/* Compares two numbers. Returns -1, 0 or 1, or 2 if an operand is a NaN. */
static int order(const char *t, uint64_t a, uint64_t b)
{
  if (ref_is_float(t)) {
    const long double x = ref_decode(t, a, ref_has("ftz"));
    const long double y = ref_decode(t, b, ref_has("ftz"));

    return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y;
  } else {
    const ref_int x = ref_value(t, a), y = ref_value(t, b);

    return x < y ? -1 : x > y;
  }
}

static bool compares(const char *cmp, int how)
{
  const bool unordered = how == 2;

  if (strcmp(cmp, "num") == 0)
    return !unordered;
  if (strcmp(cmp, "nan") == 0)
    return unordered;
  if (unordered)
    return cmp[2] == 'u';
  if (cmp[0] == 'e')
    return how == 0;
  if (cmp[0] == 'n')
    return how != 0;
  /* The comparisons are lt, le, gt and ge, and lo, ls, hi and hs for unsigned
   * numbers. */
  if (cmp[0] == 'l')
    return how < 0 || (how == 0 && (cmp[1] == 'e' || cmp[1] == 's'));
  return how > 0 || (how == 0 && (cmp[1] == 'e' || cmp[1] == 's'));
}

static bool combined(bool t, bool c)
{
  return ref_has("and")   ? t && c
         : ref_has("or")  ? t || c
         : ref_has("xor") ? t != c
                          : t;
}

/* Computes the element type of a packed type, for example s16 for s16x2. */
static void single(const char *t, char out[8])
{
  const size_t n = strlen(t);
  const bool packed = n > 2 && strcmp(t + n - 2, "x2") == 0;

  snprintf(out, 8, "%.*s", (int)(packed ? n - 2 : n), t);
}

static void ref_setp(cpu_lane *l)
{
  const bool c = (l->c != 0) != ((l->in->flags & KILN__NEGATE_B) != 0);
  char t[8];
  bool low;

  single(ref_last(0), t);
  low = compares(ref_op.part[1], order(t, l->a, l->b));
  l->d = combined(low, c);
  if (strcmp(t, ref_last(0)) == 0)
    l->d2 = combined(!low, c);
  else
    l->d2 =
        combined(compares(ref_op.part[1], order(t, l->a >> 16, l->b >> 16)), c);
}

static uint64_t truth(const char *t, bool value, unsigned bits)
{
  if (!value)
    return 0;
  if (ref_is_float(t))
    return ref_encode(t, 1, REF_NEAREST, false);
  return ref_ones(bits);
}

static void ref_set(cpu_lane *l)
{
  const bool c = (l->c != 0) != ((l->in->flags & KILN__NEGATE_B) != 0);
  char from[8], to[8];

  single(ref_last(0), from);
  single(ref_last(1), to);
  if (strcmp(from, ref_last(0)) == 0) {
    l->d = truth(to,
                 combined(compares(ref_op.part[1], order(from, l->a, l->b)), c),
                 ref_bits(to));
    return;
  }
  l->d = 0;
  for (unsigned k = 0; k < 32; k += 16)
    l->d |= truth(to,
                  combined(compares(ref_op.part[1],
                                    order(from, l->a >> k, l->b >> k)),
                           c),
                  16)
            << k;
}

/* ---- All ----------------------------------------------------------------- */

cpu_reference *ref_integer(void)
{
  static const struct {
    const char *names;
    cpu_reference *fn;
  } all[] = {
      {" add addc sub subc ", ref_sum},
      {" mul mad madc ", ref_product},
      {" mul24 mad24 ", ref_product24},
      {" div rem ", ref_divide},
      {" neg abs ", ref_unary},
      {" sad ", ref_sad},
      {" min max ", ref_extreme},
      {" dp4a dp2a ", ref_dot},
      {" vabsdiff2 vabsdiff4 ", ref_apart},
      {" popc clz brev ", ref_count},
      {" bfind ", ref_bfind},
      {" bfe ", ref_bfe},
      {" bfi ", ref_bfi},
      {" bmsk ", ref_bmsk},
      {" szext ", ref_szext},
      {" fns ", ref_fns},
      {" and or xor not cnot ", ref_logic},
      {" lop3 ", ref_lop3},
      {" shl shr ", ref_shift},
      {" shf ", ref_funnel},
      {" prmt ", ref_prmt},
      {" mov selp ", ref_move},
      {" slct ", ref_slct},
      {" cvta ", ref_cvta},
      {" setp ", ref_setp},
      {" set ", ref_set},
  };
  char name[24];

  snprintf(name, sizeof name, " %s ", ref_op.part[0]);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strstr(all[i].names, name) != NULL)
      return all[i].fn;
  }
  return NULL;
}
