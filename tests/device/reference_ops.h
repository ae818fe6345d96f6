/* reference_ops.h -- associative operations in C for comparison: the predefined
 * operations on whole numbers, and two that do not commute, each with the same
 * operation as a user expression. */
#ifndef KILN_REFERENCE_OPS_H
#define KILN_REFERENCE_OPS_H

#include "ops_fixture.h"

/* Applies a predefined operation to integers of this type in 64 bits, modulo
 * 2^64. Elements of floating types are small whole numbers. */
static inline uint64_t fold_words(kiln_op_name op, kiln_dtype type, uint64_t a,
                                  uint64_t b)
{
  const bool less = type_is_signed(type) ? (int64_t)a < (int64_t)b : a < b;

  switch (op) {
  case KILN_SUM:
    return a + b;
  case KILN_PROD:
    return a * b;
  case KILN_MIN:
    return less ? a : b;
  case KILN_MAX:
    return less ? b : a;
  case KILN_AND:
    return a & b;
  case KILN_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

/* Returns the identity of the operation for this type in 64 bits. */
static inline uint64_t identity_word(kiln_op_name op, kiln_dtype type)
{
  const unsigned unused = 64 - 8 * (unsigned)kiln_dtype_size(type);
  const uint64_t top = type_is_signed(type) ? (uint64_t)INT64_MAX >> unused
                                            : UINT64_MAX >> unused;
  const uint64_t identity[] = {
      0, 1, top, type_is_signed(type) ? ~top : UINT64_C(0), UINT64_MAX, 0, 0};

  return identity[op];
}

/* Sets an element, but not one of f16 or bf16, to the identity of the
 * operation. */
static inline void set_identity(kiln_op_name op, kiln_dtype type, void *element)
{
  const double extreme = (double)(op == KILN_MIN ? INFINITY : -INFINITY);
  const bool infinite = op == KILN_MIN || op == KILN_MAX;

  if (type == KILN_F32 && infinite)
    *(float *)element = (float)extreme;
  else if (type == KILN_F64 && infinite)
    *(double *)element = extreme;
  else
    set_whole(type, element, 0, (int64_t)identity_word(op, type));
}

/* Composes affine maps x -> high * x + low modulo 2^16, which a u32 holds, so
 * that any change of the order shows. Odd factors keep the product from
 * becoming 0. The identity is 65536. */
static inline uint32_t then(uint32_t a, uint32_t b)
{
  const uint32_t high = (a >> 16) * (b >> 16);
  const uint32_t low = (b >> 16) * (a & 0xffff) + (b & 0xffff);

  return high << 16 | (low & 0xffff);
}

static const char then_text[] = "(a >> 16) * (b >> 16) << 16 | "
                                "(((b >> 16) * (a & 0xffff) + (b & 0xffff)) & "
                                "0xffff)";

/* Composes affine maps modulo 2^32, which a u64 holds. The identity is 2^32. */
static inline uint64_t then_wide(uint64_t a, uint64_t b)
{
  return (a >> 32) * (b >> 32) << 32 |
         (uint32_t)((uint32_t)(b >> 32) * (uint32_t)a + (uint32_t)b);
}

static const char then_wide_text[] =
    "(a >> 32) * (b >> 32) << 32 |"
    "(unsigned)((unsigned)(b >> 32) * (unsigned)a + (unsigned)b)";

#endif
