/* operand_types.c -- determines which registers and literals are valid for the
 * types of an instruction. The rules are those of the PTX ISA, "Operand Type
 * Checking". A bit type accepts every type of its size. An integer type accepts
 * integer types and bit types. A float type accepts itself and bit types. */
#include "code_build.h"

#include <string.h>

typedef enum sort { SORT_BITS, SORT_INTEGER, SORT_FLOAT, SORT_OTHER } sort;

static sort sort_of(kiln__cpu_ptx_type type)
{
  switch (type) {
  case KILN__B8:
  case KILN__B16:
  case KILN__B32:
  case KILN__B64:
  case KILN__B128:
    return SORT_BITS;
  case KILN__U8:
  case KILN__S8:
  case KILN__U16:
  case KILN__S16:
  case KILN__U32:
  case KILN__S32:
  case KILN__U64:
  case KILN__S64:
    return SORT_INTEGER;
  case KILN__F16:
  case KILN__BF16:
  case KILN__F32:
  case KILN__F16X2:
  case KILN__BF16X2:
  case KILN__TF32:
  case KILN__F64:
    return SORT_FLOAT;
  default:
    return SORT_OTHER;
  }
}

bool kiln__cpu_type_fits(kiln__cpu_ptx_type want, kiln__cpu_ptx_type have,
                         bool wider)
{
  const uint8_t need = kiln__cpu_ptx_type_bytes[want],
                size = kiln__cpu_ptx_type_bytes[have];
  const sort w = sort_of(want), h = sort_of(have);

  if (want == have && want != KILN__NONE)
    return true;
  if (w == SORT_OTHER || h == SORT_OTHER)
    return false;
  if (want == KILN__BF16 || want == KILN__BF16X2)
    wider = false;
  if (size != need && !(wider && size > need))
    return false;
  switch (w) {
  case SORT_BITS:
    return true;
  case SORT_INTEGER:
    return h != SORT_FLOAT;
  default:
    return h == SORT_BITS;
  }
}

static uint64_t float_bits(double value)
{
  const float f = (float)value;
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static uint64_t double_bits(const kiln__cpu_ptx_operand *o)
{
  const uint32_t low = (uint32_t)o->bits;
  uint64_t bits;
  double value;
  float f;

  if (o->kind == KILN__OPERAND_FLOAT)
    return o->bits;
  memcpy(&f, &low, sizeof f);
  value = (double)f;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static bool float_literal(const kiln__cpu_ptx_operand *o,
                          kiln__cpu_ptx_type want, uint64_t *bits)
{
  const bool is32 = o->kind == KILN__OPERAND_FLOAT32;
  double value;

  switch (want) {
  case KILN__F32:
    memcpy(&value, &o->bits, sizeof value);
    *bits = is32 ? o->bits : float_bits(value);
    return true;
  case KILN__F64:
    *bits = double_bits(o);
    return true;
  case KILN__B32:
    *bits = o->bits;
    return is32;
  case KILN__B64:
    *bits = o->bits;
    return !is32;
  default:
    return false;
  }
}

bool kiln__cpu_literal(const kiln__cpu_ptx_operand *o, kiln__cpu_ptx_type want,
                       uint64_t *bits)
{
  const uint8_t size = kiln__cpu_ptx_type_bytes[want];
  const sort w = sort_of(want);

  if (o->kind == KILN__OPERAND_FLOAT || o->kind == KILN__OPERAND_FLOAT32)
    return float_literal(o, want, bits);
  if (o->kind != KILN__OPERAND_INTEGER)
    return false;
  if (want == KILN__PRED) {
    *bits = o->bits != 0 ? UINT32_MAX : 0;
    return true;
  }
  if (w != SORT_BITS && w != SORT_INTEGER)
    return false;
  *bits = size >= 8 ? o->bits : o->bits & ((UINT64_C(1) << (8 * size)) - 1);
  return size <= 8;
}
