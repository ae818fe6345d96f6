/* cpu_exact.c -- implements the references of cpu_exact.h, with one function
 * per family of opcodes. */
#include "cpu_exact.h"

#include "cpu_reference.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Properties of the opcode under test, derived once from ref_op. */
static struct {
  const opcode_case *of;
  /* Last type modifier, and the type modifier that precedes it. */
  const char *type, *before;
  unsigned bits;
  bool ftz, sat, carry;
} op;

static void look(const opcode_case *c)
{
  static char name[112];

  if (op.of == c)
    return;
  snprintf(name, sizeof name, "%s", c->name);
  name[strcspn(name, " ")] = '\0';
  ref_parse(name);
  op.of = c;
  op.type = ref_last(0);
  op.before = ref_op.n > 2 ? ref_last(1) : "";
  op.bits = ref_bits(op.type);
  op.ftz = ref_has("ftz");
  op.sat = ref_has("sat");
  op.carry = strstr(c->name, " carry") != NULL;
}

/* ---- Integers ------------------------------------------------------------ */

static bool is_integer(const char *type)
{
  return strchr("usb", type[0]) != NULL && type[1] >= '0' && type[1] <= '9' &&
         strchr(type, 'x') == NULL;
}

static ref_int clamp_to(const char *type, ref_int v)
{
  const unsigned bits = ref_bits(type);
  const ref_int one = 1;
  const ref_int low = ref_is_signed(type) ? -(one << (bits - 1)) : 0;
  const ref_int high = (one << (bits - (ref_is_signed(type) ? 1 : 0))) - 1;

  return v < low ? low : v > high ? high : v;
}

/* Returns the part of a * b that the opcode selects (.lo, .hi or .wide). The
 * full product fits into 128 bits. */
static ref_int part_of_product(ref_int a, ref_int b)
{
  const ref_uint product = (ref_uint)a * (ref_uint)b;

  if (!ref_has("hi"))
    return (ref_int)product;
  if (ref_is("madc") &&
      op.bits == 16) /* GPUs return the upper half of 64 bits in this form */
    return (ref_int)product >> 32;
  return op.bits == 64 && !ref_is_signed(op.type) ? (ref_int)(product >> 64)
                                                  : (ref_int)product >> op.bits;
}

static bool arithmetic(const uint64_t *in, uint64_t *out)
{
  const bool wide = ref_has("wide");
  const char *to = op.type;
  const ref_int a = ref_value(op.type, in[0]), b = ref_value(op.type, in[1]);
  const bool in_carry = ref_is("addc") || ref_is("subc") || ref_is("madc");
  const ref_int carry = in_carry && in[op.of->n_in - 1] != 0;
  const ref_uint mask =
      op.bits == 64 ? UINT64_MAX : (UINT64_C(1) << op.bits) - 1;
  ref_int v, low;

  if (op.bits == 64 && !ref_is_signed(op.type) &&
      (ref_is("mul") || ref_is("mad") || ref_is("madc")))
    low = ref_has("hi") ? part_of_product(a, b)
                        : (ref_int)(uint64_t)((uint64_t)a * (uint64_t)b);
  else
    low = ref_is("mul") || ref_is("mad") || ref_is("madc")
              ? part_of_product(a, b)
              : 0;
  if (ref_is("add") || ref_is("addc"))
    v = a + b + carry;
  else if (ref_is("sub") || ref_is("subc"))
    v = a - b - carry;
  else if (ref_is("mul"))
    v = low;
  else if (wide)
    v = low + ref_value(op.bits == 16 ? "s32" : "s64", in[2]);
  else
    v = low + ref_value(op.type, in[2]) + carry;
  if (op.carry) {
    const ref_uint x =
        (ref_uint)(ref_is("mad") || ref_is("madc") ? low : a) & mask;
    const ref_uint y =
        (ref_uint)(ref_is("mad") || ref_is("madc") ? ref_value(op.type, in[2])
                                                   : b) &
        mask;

    if (ref_is("sub") || ref_is("subc"))
      *out = x < y + (ref_uint)carry ? UINT32_MAX : 0;
    else
      *out = x + y + (ref_uint)carry > mask;
    return true;
  }
  if (op.sat)
    v = clamp_to(op.type, v);
  *out = wide ? ref_cut(op.bits == 16 ? "u32" : "u64", v) : ref_cut(to, v);
  return true;
}

static bool quotient(const uint64_t *in, uint64_t *out)
{
  const ref_int a = ref_value(op.type, in[0]), b = ref_value(op.type, in[1]);

  if (b == 0)
    return false;
  *out = ref_cut(op.type, ref_is("div") ? a / b : a % b);
  return true;
}

static bool two_or_three(const uint64_t *in, uint64_t *out)
{
  const ref_int a = ref_value(op.type, in[0]), b = ref_value(op.type, in[1]);
  ref_int v;

  if (ref_is("min"))
    v = a < b ? a : b;
  else if (ref_is("max"))
    v = a > b ? a : b;
  else if (ref_is("sad"))
    v = ref_value(op.type, in[2]) + (a < b ? b - a : a - b);
  else if (ref_is("abs"))
    v = a < 0 ? -a : a;
  else if (ref_is("neg"))
    v = -a;
  else if (ref_is("and"))
    v = a & b;
  else if (ref_is("or"))
    v = a | b;
  else if (ref_is("xor"))
    v = a ^ b;
  else if (ref_is("not"))
    v = ~a;
  else
    return false;
  if (ref_has("relu") && v < 0)
    v = 0;
  *out = ref_cut(op.type, v);
  return true;
}

static bool shifts(const uint64_t *in, uint64_t *out)
{
  const uint64_t by = in[1] & UINT32_MAX;
  const ref_int a = ref_value(op.type, in[0]);
  const unsigned n = by > op.bits ? op.bits : (unsigned)by;

  if (ref_is("shl"))
    *out = ref_cut(op.type, (ref_int)((ref_uint)a << n));
  else
    *out = ref_cut(op.type, a >> n);
  return true;
}

static bool counts(const uint64_t *in, uint64_t *out)
{
  uint64_t n = 0;

  for (unsigned i = 0; i < op.bits; i++) {
    const uint64_t bit = in[0] >> i & 1;

    if (ref_is("popc"))
      n += bit;
    else if (ref_is("clz"))
      n = bit ? 0 : n + 1;
    else
      n |= bit << (op.bits - 1 - i);
  }
  *out = n;
  return true;
}

/* Computes bit field opcodes. For 32-bit types, positions and lengths are taken
 * from the low byte of the operand. For 64-bit types, they are taken from the
 * low 32 bits. */
static bool fields(const uint64_t *in, uint64_t *out)
{
  const uint64_t mask = op.bits == 64 ? UINT32_MAX : 255;
  const uint64_t a = ref_cut(op.type, (ref_int)in[0]);
  uint64_t at, n, v = 0;

  if (ref_is("bfi")) {
    const uint64_t b = ref_cut(op.type, (ref_int)in[1]);

    at = in[2] & mask;
    n = in[3] & mask;
    v = b;
    for (uint64_t i = at; i < op.bits && i < at + n; i++)
      v = (v & ~(UINT64_C(1) << i)) | (a >> (i - at) & 1) << i;
    *out = v;
    return true;
  }
  at = in[1] & mask;
  n = in[2] & mask;
  for (uint64_t i = 0; i < op.bits; i++) {
    const uint64_t last = at + n - 1 < op.bits ? at + n - 1 : op.bits - 1;
    const uint64_t from = i < n ? at + i : last;
    const uint64_t sign = ref_is_signed(op.type) && n > 0
                              ? a >> (from < op.bits ? from : op.bits - 1) & 1
                              : 0;

    v |= (i < n && at + i < op.bits ? a >> (at + i) & 1 : sign) << i;
  }
  *out = v;
  return true;
}

static bool bytes_and_bits(const uint64_t *in, uint64_t *out)
{
  uint64_t v = 0;

  if (ref_is("lop3")) {
    const unsigned table =
        (unsigned)strtoul(strchr(op.of->name, ' ') + 1, NULL, 16);

    for (unsigned i = 0; i < 32; i++)
      v |= (uint64_t)(table >> ((in[0] >> i & 1) * 4 + (in[1] >> i & 1) * 2 +
                                (in[2] >> i & 1)) &
                      1)
           << i;
  } else {
    const uint64_t all = in[1] << 32 | (in[0] & UINT32_MAX);

    for (unsigned i = 0; i < 4; i++) {
      const unsigned pick = in[2] >> 4 * i & 15;
      const uint64_t byte = all >> 8 * (pick & 7) & 255;

      v |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
  }
  *out = v;
  return true;
}

static bool funnel(const uint64_t *in, uint64_t *out)
{
  const uint64_t all = in[1] << 32 | (in[0] & UINT32_MAX);
  uint64_t by = in[2] & UINT32_MAX;

  by = ref_has("wrap") ? by % 32 : by > 32 ? 32 : by;
  *out = (uint64_t)(ref_has("l") ? (ref_uint)all << by >> 32
                                 : (ref_uint)all >> by) &
         UINT32_MAX;
  return true;
}

static bool convert_integers(const uint64_t *in, uint64_t *out)
{
  ref_int v = ref_value(op.type, in[0]);
  const unsigned bits = ref_bits(op.before);

  if (strchr(op.of->name, ' ') != NULL)
    return false;
  if (op.sat)
    v = clamp_to(op.before, v);
  v = ref_value(op.before, ref_cut(op.before, v));
  *out = bits == 64   ? (uint64_t)v
         : bits == 16 ? (uint64_t)v & 0xffff
                      /* An 8-bit result is in a 32-bit register. */
                      : (uint64_t)v & UINT32_MAX;
  return true;
}

/* ---- Floats -------------------------------------------------------------- */

static uint64_t nan_of(const char *type)
{
  return strcmp(type, "f64") == 0   ? UINT64_C(0xfff8000000000000)
         : strcmp(type, "f32") == 0 ? 0x7fffffff
                                    : 0x7fff;
}

static int host_rounding(void)
{
  return ref_has("rz")   ? FE_TOWARDZERO
         : ref_has("rm") ? FE_DOWNWARD
         : ref_has("rp") ? FE_UPWARD
                         : FE_TONEAREST;
}

static float single_of(uint64_t raw)
{
  const uint32_t bits = (uint32_t)raw;
  float x;

  memcpy(&x, &bits, sizeof x);
  return op.ftz && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static double double_of(uint64_t raw)
{
  double x;

  memcpy(&x, &raw, sizeof x);
  return x;
}

static bool is_nan64(uint64_t raw)
{
  return (raw & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* Returns the NaN result of an f64 operation: the first NaN operand, in the
 * order of a GPU, as a quiet NaN. */
static uint64_t nan64(const uint64_t *in)
{
  static const unsigned orders[][3] = {
      {0, 0, 0}, {1, 0, 0}, {0, 1, 1}, {1, 2, 0}};
  const unsigned n = op.of->n_in;
  const unsigned *const order = orders[ref_is("div") ? 2 : n == 2 ? 1 : n];

  for (unsigned i = 0; i < 3; i++) {
    if (is_nan64(in[n == 1 ? 0 : order[i]]))
      return in[n == 1 ? 0 : order[i]] | UINT64_C(1) << 51;
  }
  return UINT64_C(0xfff8000000000000);
}

/* Computes a result with host arithmetic in the rounding mode of the opcode. */
static bool single(const uint64_t *in, uint64_t *out)
{
  volatile float a = single_of(in[0]), b = single_of(in[1]);
  volatile float c = single_of(in[2]), r;
  uint32_t bits;

  fesetround(host_rounding());
  if (ref_is("add"))
    r = a + b;
  else if (ref_is("sub"))
    r = a - b;
  else if (ref_is("mul"))
    r = a * b;
  else if (ref_is("div"))
    r = a / b;
  else if (ref_is("rcp"))
    r = 1.0f / a;
  else if (ref_is("sqrt"))
    r = sqrtf(a);
  else
    r = fmaf(a, b, c);
  fesetround(FE_TONEAREST);
  if (op.ftz && fabsf(r) == 0x1p-126f)
    /* It is unknown whether a GPU detects tininess before or after rounding. */
    return false;
  if (op.ftz && fabsf(r) < 0x1p-126f)
    r = copysignf(0, r);
  if (op.sat)
    r = isnan(r) || r <= 0 ? 0 : r > 1 ? 1 : r;
  bits = 0x7fffffff;
  if (!isnan(r))
    memcpy(&bits, (float[]){r}, sizeof bits);
  *out = bits;
  return true;
}

static bool twice(const uint64_t *in, uint64_t *out)
{
  volatile double a = double_of(in[0]), b = double_of(in[1]);
  volatile double c = double_of(in[2]), r;

  fesetround(host_rounding());
  if (ref_is("add"))
    r = a + b;
  else if (ref_is("sub"))
    r = a - b;
  else if (ref_is("mul"))
    r = a * b;
  else if (ref_is("div"))
    r = a / b;
  else if (ref_is("rcp"))
    r = 1.0 / a;
  else if (ref_is("sqrt"))
    r = sqrt(a);
  else
    r = fma(a, b, c);
  fesetround(FE_TONEAREST);
  *out = nan64(in);
  if (!isnan(r))
    memcpy(out, (double[]){r}, sizeof *out);
  return true;
}

/* Computes f16 and bf16 results. They are exact in a long double, unless an
 * addend is far smaller than the other terms. */
static bool half(const uint64_t *in, uint64_t *out)
{
  const long double a = ref_decode(op.type, in[0], op.ftz);
  const long double b = ref_decode(op.type, in[1], op.ftz);
  long double x = a * b, y, sum;

  if (ref_has("oob") || ref_has("relu") || op.ftz)
    return false;
  x = ref_is("add") || ref_is("sub") ? a : x;
  y = ref_is("add")   ? b
      : ref_is("sub") ? -b
      : ref_is("fma") ? ref_decode(op.type, in[2], op.ftz)
                      : copysignl(0, x);
  sum = x + y;
  if (isfinite(sum)) {
    const long double back = sum - x;
    const long double lost = (x - (sum - back)) + (y - back);

    if (lost != 0)
      sum = nextafterl(sum, lost > 0 ? INFINITY : -INFINITY);
  }
  if (op.sat)
    sum = isnan(sum) || sum <= 0 ? 0 : sum > 1 ? 1 : sum;
  *out = isnan(sum) ? nan_of(op.type)
                    : ref_encode(op.type, sum, REF_NEAREST, false);
  return true;
}

static bool float_arithmetic(const uint64_t *in, uint64_t *out)
{
  if (op.of->approx)
    return false;
  if (strcmp(op.type, "f64") == 0)
    return twice(in, out);
  if (strcmp(op.type, "f32") == 0)
    return single(in, out);
  return (strcmp(op.type, "f16") == 0 || strcmp(op.type, "bf16") == 0) &&
         half(in, out);
}

/* Computes minimum and maximum. -0 is smaller than +0. */
static bool smaller_or_larger(const uint64_t *in, uint64_t *out)
{
  const uint64_t sign = UINT64_C(1) << (op.bits - 1);
  const bool magnitudes = ref_has("xorsign");
  const uint64_t drop = magnitudes ? ~sign : ~UINT64_C(0);
  long double a = ref_decode(op.type, in[0] & drop, op.ftz);
  long double b = ref_decode(op.type, in[1] & drop, op.ftz), r;

  if (isnan(a) && isnan(b)) {
    *out = op.bits == 64 ? nan64(in) : nan_of(op.type);
    return true;
  }
  if (isnan(a) || isnan(b)) {
    if (magnitudes)
      return false;
    r = ref_has("NaN") ? (long double)NAN : isnan(a) ? b : a;
  } else if (a == b) {
    r = (signbit(a) != 0) == ref_is("min") ? a : b;
  } else {
    r = (a < b) == ref_is("min") ? a : b;
  }
  if (magnitudes && ((in[0] ^ in[1]) & sign) != 0)
    r = -r;
  *out =
      isnan(r) ? nan_of(op.type) : ref_encode(op.type, r, REF_NEAREST, false);
  return true;
}

/* Computes a packed opcode as two scalar opcodes, one for each half. */
static bool halves(const uint64_t *in, uint64_t *out)
{
  const char *const type = op.type;
  const unsigned bits = strcmp(type, "f32x2") == 0 ? 32 : 16;
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  uint64_t part[2][OPCODE_SOURCES], results[2];
  bool ok;

  for (unsigned k = 0; k < OPCODE_SOURCES; k++) {
    part[0][k] = k < op.of->n_in ? in[k] & mask : 0;
    part[1][k] = k < op.of->n_in ? in[k] >> bits & mask : 0;
  }
  op.type = bits == 32 ? "f32" : type[0] == 'b' ? "bf16" : "f16";
  op.bits = bits;
  if (ref_is("min") || ref_is("max"))
    ok = smaller_or_larger(part[0], &results[0]) &&
         smaller_or_larger(part[1], &results[1]);
  else
    ok = (bits == 32 ? single : half)(part[0], &results[0]) &&
         (bits == 32 ? single : half)(part[1], &results[1]);
  op.type = type;
  if (ok)
    *out = results[1] << bits | results[0];
  return ok;
}

static bool pick(const uint64_t *in, uint64_t *out)
{
  const bool negated = strstr(op.of->text, "!%p2") != NULL;
  const char *const type = ref_is("slct") ? op.before : op.type;
  const bool first =
      ref_is("slct") ? (int32_t)in[2] >= 0 : (in[2] != 0) != negated;
  const unsigned bits = ref_bits(type);

  if (ref_is("slct") && strcmp(op.type, "s32") != 0)
    return false;
  *out = in[first ? 0 : 1];
  if (bits < 64)
    *out &= (UINT64_C(1) << bits) - 1;
  return true;
}

/* ---- Comparisons --------------------------------------------------------- */

static bool holds(const char *how, bool less, bool equal, bool unordered)
{
  static const struct {
    const char *name;
    bool less, equal, greater, unordered;
  } all[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},
             {"le", 1, 1, 0, 0},  {"gt", 0, 0, 1, 0},  {"ge", 0, 1, 1, 0},
             {"lo", 1, 0, 0, 0},  {"ls", 1, 1, 0, 0},  {"hi", 0, 0, 1, 0},
             {"hs", 0, 1, 1, 0},  {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1},
             {"ltu", 1, 0, 0, 1}, {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1},
             {"geu", 0, 1, 1, 1}, {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(all[i].name, how) == 0)
      return unordered ? all[i].unordered
             : less    ? all[i].less
             : equal   ? all[i].equal
                       : all[i].greater;
  }
  ck_abort_msg("%s", how);
}

static bool compare(const uint64_t *in, bool *out)
{
  if (ref_is_float(op.type)) {
    const long double a = ref_decode(op.type, in[0], op.ftz);
    const long double b = ref_decode(op.type, in[1], op.ftz);

    *out = holds(ref_op.part[1], a < b, a == b, isnan(a) || isnan(b));
  } else {
    const ref_int a = ref_value(op.type, in[0]);
    const ref_int b = ref_value(op.type, in[1]);

    *out = holds(ref_op.part[1], a < b, a == b, false);
  }
  return true;
}

static bool combine(bool x, bool y)
{
  return ref_has("and") ? (x && y) : ref_has("or") ? (x || y) : x != y;
}

static bool comparisons(const uint64_t *in, uint64_t *out)
{
  bool x, y;

  if (strstr(op.type, "x2") != NULL || !compare(in, &x))
    return false;
  y = !x;
  if (ref_has("and") || ref_has("or") || ref_has("xor")) {
    const bool with = (in[2] != 0) != (strstr(op.of->text, "!%p2") != NULL);

    x = combine(x, with);
    y = combine(y, with);
  }
  if (ref_is("setp"))
    *out = x + (strstr(op.of->text, "%e|%e2") != NULL ? 2u * y : 0);
  else if (!x)
    *out = 0;
  else if (is_integer(op.before))
    *out = ref_cut(op.before, -1);
  else
    *out = ref_encode(op.before, 1, REF_NEAREST, false);
  return true;
}

/* ---- Conversions --------------------------------------------------------- */

static bool to_integer(const uint64_t *in, uint64_t *out)
{
  const long double x = ref_decode(op.type, in[0], op.ftz);
  const bool up = ref_has("rpi"), down = ref_has("rmi");
  long double whole = floorl(x);

  if (ref_bits(op.before) < 16 || strchr(op.of->name, ' ') != NULL || isnan(x))
    return false;
  if (up || (ref_has("rzi") && x < 0))
    whole = ceill(x);
  else if (!down && !ref_has("rzi"))
    whole = rintl(x);
  if (fabsl(whole) > 0x1p100L)
    whole = copysignl(0x1p100L, whole);
  *out = ref_cut(op.before, clamp_to(op.before, (ref_int)whole));
  return true;
}

/* Converts a NaN from or to f64. The sign and the most significant fraction
 * bits that fit are kept. */
static uint64_t converted_nan(uint64_t raw)
{
  const ref_format *const from = ref_format_of(op.type);
  const ref_format *const to = ref_format_of(op.before);
  const uint64_t fraction = raw << (64 - from->fraction_bits);
  const uint64_t negative = raw >> (ref_bits(op.type) - 1) & 1;

  return negative << (ref_bits(op.before) - 1) | to->infinity |
         (fraction | UINT64_C(1) << 63) >> (64 - to->fraction_bits);
}

static bool to_float(const uint64_t *in, uint64_t *out)
{
  const bool real = ref_is_float(op.type);
  const long double x = real ? ref_decode(op.type, in[0], op.ftz)
                             : (long double)ref_value(op.type, in[0]);

  if (strcmp(op.before, op.type) == 0 || op.sat || op.ftz || ref_has("relu") ||
      ref_has("satfinite"))
    return false;
  if (isnan(x) && strcmp(op.type, "bf16") == 0 && strcmp(op.before, "f64") != 0)
    return false; /* the value moves to f32, so the NaN payload is kept */
  if (isnan(x) && (op.bits == 64 || ref_bits(op.before) == 64)) {
    *out = converted_nan(in[0]);
    return true;
  }
  if (isnan(x)) {
    *out = nan_of(op.before);
    return true;
  }
  *out = ref_encode(op.before, x, ref_rounding(), false);
  return true;
}

static bool is_plain_float(const char *type)
{
  return strcmp(type, "f16") == 0 || strcmp(type, "bf16") == 0 ||
         strcmp(type, "f32") == 0 || strcmp(type, "f64") == 0;
}

static bool convert(const uint64_t *in, uint64_t *out)
{
  if (ref_has("pack"))
    return false;
  if (is_integer(op.type) && is_integer(op.before))
    return convert_integers(in, out);
  if (is_plain_float(op.type) && is_integer(op.before))
    return to_integer(in, out);
  return is_plain_float(op.before) &&
         (is_plain_float(op.type) || is_integer(op.type)) && to_float(in, out);
}

/* ---- All ----------------------------------------------------------------- */

static bool of_integers(const uint64_t *in, uint64_t *out)
{
  static const struct {
    const char *names;
    bool (*of)(const uint64_t *, uint64_t *);
  } all[] = {{" add addc sub subc mul mad madc ", arithmetic},
             {" div rem ", quotient},
             {" min max sad abs neg and or xor not ", two_or_three},
             {" shl shr ", shifts},
             {" popc clz brev ", counts},
             {" bfe bfi ", fields},
             {" lop3 prmt ", bytes_and_bits},
             {" shf ", funnel}};
  char name[24];

  snprintf(name, sizeof name, " %s ", ref_op.part[0]);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strstr(all[i].names, name) != NULL)
      return all[i].of(in, out);
  }
  return false;
}

bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result)
{
  look(c);
  if (c->in[c->n_in - 1] == OPERAND_MEMBERS || ref_is("mov") ||
      strstr(c->name, "cc.u32 ") != NULL)
    return strstr(c->name, " carry") != NULL && of_integers(operands, result);
  if (ref_is("setp") || ref_is("set"))
    return comparisons(operands, result);
  if (ref_is("cvt"))
    return convert(operands, result);
  if (ref_is("selp") || ref_is("slct"))
    return pick(operands, result);
  if (ref_is("prmt") && ref_op.n > 2)
    return false;
  if (ref_is("lop3") && (ref_has("and") || ref_has("or")))
    return false;
  if (is_integer(op.type))
    return of_integers(operands, result);
  if ((ref_is("min") || ref_is("max")) && c->n_in == 2 &&
      is_plain_float(op.type))
    return smaller_or_larger(operands, result);
  if ((ref_is("add") || ref_is("sub") || ref_is("mul") || ref_is("fma") ||
       ref_is("min") || ref_is("max")) &&
      (strcmp(op.type, "f32x2") == 0 || strcmp(op.type, "f16x2") == 0 ||
       strcmp(op.type, "bf16x2") == 0))
    return halves(operands, result);
  if (ref_is("add") || ref_is("sub") || ref_is("mul") || ref_is("fma") ||
      ref_is("mad") || ref_is("div") || ref_is("rcp") || ref_is("sqrt"))
    return !ref_is_float(op.before) && float_arithmetic(operands, result);
  return false;
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
