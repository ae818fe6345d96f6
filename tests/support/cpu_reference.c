/* cpu_reference.c -- decodes and encodes numbers independently of the code
 * under test. */
#include "cpu_reference.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "references need 64 significant bits");

ref_opcode ref_op;

void ref_parse(const char *opcode)
{
  const char *const blank = strchr(opcode, ' ');
  const char *at = blank != NULL ? blank + 1 : opcode;

  memset(&ref_op, 0, sizeof ref_op);
  while (*at != 0) {
    size_t n = strcspn(at, ".");

    ck_assert_uint_lt(ref_op.n, 10);
    ck_assert_uint_lt(n, sizeof ref_op.part[0]);
    memcpy(ref_op.part[ref_op.n++], at, n);
    at += n + (at[n] == '.');
  }
}

bool ref_is(const char *mnemonic)
{
  return strcmp(ref_op.part[0], mnemonic) == 0;
}

bool ref_has(const char *modifier)
{
  for (unsigned i = 1; i < ref_op.n; i++) {
    if (strcmp(ref_op.part[i], modifier) == 0)
      return true;
  }
  return false;
}

const char *ref_last(unsigned k)
{
  if (k >= ref_op.n)
    ck_abort_msg("%s has no part %u", ref_op.part[0], k);
  return ref_op.part[ref_op.n - 1 - k];
}

void ref_run_row(kiln__cpu_op op, size_t most,
                 void (*run)(cpu_case *c, size_t k))
{
  char opcode[200];
  const size_t total = cpu_row_opcode(op, 0, opcode, sizeof opcode);
  const size_t step = total > most ? total / most | 1 : 1;

  for (size_t k = 0; k < total; k += step) {
    cpu_case c;

    cpu_row_opcode(op, k, opcode, sizeof opcode);
    cpu_case_init(&c, opcode);
    ref_parse(opcode);
    run(&c, k);
  }
}

void ref_rows_were_run(const kiln__cpu_op *ops, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    char opcode[200];

    cpu_row_opcode(ops[i], 0, opcode, sizeof opcode);
    ck_assert_msg(cpu_seen(ops[i]), "%s was not run", opcode);
  }
}

/* ---- Types --------------------------------------------------------------- */

unsigned ref_bits(const char *type)
{
  const size_t n = strlen(type);

  if (strcmp(type, "pred") == 0)
    return 1;
  if (n > 2 && strcmp(type + n - 2, "x2") == 0)
    return strstr(type, "16") != NULL ? 32 : 16;
  if (strcmp(type, "tf32") == 0)
    return 32;
  if (strcmp(type, "e4m3") == 0 || strcmp(type, "e5m2") == 0)
    return 8;
  while (*type != 0 && (*type < '0' || *type > '9'))
    type++;
  return (unsigned)atoi(type);
}

bool ref_is_signed(const char *type)
{
  return type[0] == 's';
}

bool ref_is_float(const char *type)
{
  return ref_format_of(type) != NULL;
}

kiln__cpu_ptx_type ref_type(const char *type)
{
#define TYPE(name, text, bytes)                                                \
  if (strcmp(type, text) == 0)                                                 \
    return KILN__##name;
  KILN__PTX_TYPES(TYPE)
#undef TYPE
  return ref_bits(type) == 16 ? KILN__B16 : KILN__B32;
}

ref_int ref_value(const char *type, uint64_t raw)
{
  const unsigned bits = ref_bits(type);
  ref_int value = 0;

  for (unsigned i = 0; i < bits; i++) {
    if ((raw >> i & 1) != 0)
      value += ref_is_signed(type) && i == bits - 1 ? -((ref_int)1 << i)
                                                    : (ref_int)1 << i;
  }
  return value;
}

uint64_t ref_cut(const char *type, ref_int value)
{
  return (uint64_t)((ref_uint)value % ((ref_uint)1 << ref_bits(type)));
}

uint64_t ref_ones(unsigned n)
{
  return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* ---- Floating point ------------------------------------------------------ */

static const ref_format formats[] = {
    {"f16", 5, 10, 0, 0x7bff, 0x7c00, 0x7fff},
    {"bf16", 8, 7, 0, 0x7f7f, 0x7f80, 0x7fff},
    {"f32", 8, 23, 0, 0x7f7fffff, 0x7f800000, 0x7fffffff},
    {"f64", 11, 52, 0, 0x7fefffffffffffff, 0x7ff0000000000000,
     0xfff8000000000000},
    {"tf32", 8, 10, 13, 0x3fbff, 0x3fc00, 0x3ffff},
    {"e4m3", 4, 3, 0, 0x7e, 0, 0x7f},
    {"e5m2", 5, 2, 0, 0x7b, 0x7c, 0x7f},
};

const ref_format *ref_format_of(const char *type)
{
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    if (strcmp(formats[i].name, type) == 0)
      return &formats[i];
  }
  return NULL;
}

/* Returns 2^k for every exponent that an encoding can have. */
static long double power(int k)
{
  enum { FAR = 1100 };
  static long double table[2 * FAR + 1];

  if (table[FAR] == 0) {
    for (int i = -FAR; i <= FAR; i++)
      table[FAR + i] = ldexpl(1, i);
  }
  return table[FAR + k];
}

/* Returns the absolute value of an encoded number. Infinity has the value that
 * would follow the largest finite number. */
static long double magnitude(const ref_format *f, uint64_t encoded)
{
  const int bias = (1 << (f->exponent_bits - 1)) - 1;
  const int exponent = (int)(encoded >> f->fraction_bits);
  const uint64_t fraction = encoded & ((UINT64_C(1) << f->fraction_bits) - 1);

  if (exponent == 0)
    return (long double)fraction * power(1 - bias - f->fraction_bits);
  return (long double)(fraction | UINT64_C(1) << f->fraction_bits) *
         power(exponent - bias - f->fraction_bits);
}

long double ref_decode(const char *type, uint64_t raw, bool ftz)
{
  const ref_format *const f = ref_format_of(type);
  const unsigned sign_at = (unsigned)(f->exponent_bits + f->fraction_bits);
  const uint64_t value = raw >> f->shift;
  const bool negative = (value >> sign_at & 1) != 0;
  const uint64_t encoded = value & ((UINT64_C(1) << sign_at) - 1);
  long double r;

  if (f->infinity != 0 && encoded == f->infinity)
    r = INFINITY;
  else if (encoded > f->largest)
    return NAN;
  else if (ftz && encoded >> f->fraction_bits == 0)
    r = 0;
  else
    r = magnitude(f, encoded);
  return negative ? -r : r;
}

ref_round ref_rounding(void)
{
  static const struct {
    const char *text;
    ref_round round;
  } all[] = {{"rna", REF_AWAY}, {"rz", REF_ZERO},  {"rzi", REF_ZERO},
             {"rm", REF_DOWN},  {"rmi", REF_DOWN}, {"rp", REF_UP},
             {"rpi", REF_UP}};

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (ref_has(all[i].text))
      return all[i].round;
  }
  return REF_NEAREST;
}

/* Returns the largest encoding whose absolute value is at most `value`. */
static uint64_t below(const ref_format *f, long double value)
{
  uint64_t low = 0, high = f->largest;

  /* The bisection finds the exponent first, then the fraction. */
  for (int b = f->exponent_bits - 1; b >= 0; b--) {
    const uint64_t next = low + (UINT64_C(1) << (b + f->fraction_bits));

    if (next <= high && magnitude(f, next) <= value)
      low = next;
  }
  if (high - low > UINT64_C(1) << f->fraction_bits)
    high = low + (UINT64_C(1) << f->fraction_bits);
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;

    if (magnitude(f, middle) <= value)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static bool takes_upper(ref_round round, bool negative, uint64_t lower,
                        long double value, long double middle)
{
  switch (round) {
  case REF_NEAREST:
    return value > middle || (value == middle && lower % 2 == 1);
  case REF_AWAY:
    return value >= middle;
  case REF_DOWN:
    return negative;
  case REF_UP:
    return !negative;
  default:
    return false;
  }
}

uint64_t ref_encode(const char *type, long double value, ref_round round,
                    bool finite)
{
  const ref_format *const f = ref_format_of(type);
  const uint64_t sign =
      signbit(value) ? UINT64_C(1) << (f->exponent_bits + f->fraction_bits) : 0;
  const long double size = fabsl(value);
  uint64_t encoded;

  if (isnan(value))
    return f->nan << f->shift;
  if (isinf(value)) {
    encoded = finite ? f->largest : f->infinity;
  } else {
    encoded = below(f, size);
    if (magnitude(f, encoded) != size) {
      const long double middle =
          (magnitude(f, encoded) + magnitude(f, encoded + 1)) / 2;

      encoded += takes_upper(round, sign != 0, encoded, size, middle);
    }
    if (encoded > f->largest)
      encoded = finite ? f->largest : f->infinity;
  }
  return (encoded | sign) << f->shift;
}
