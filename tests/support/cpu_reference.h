/* cpu_reference.h -- functions that the references of handlers share. They
 * split an opcode into its parts, and convert numbers between any encoding and
 * long double.
 *
 * This code is independent of the code under test. Numbers are decoded from the
 * fields of their encoding, and encoded by bisection among all encodings. A
 * long double must have 64 significant bits. */
#ifndef KILN_TEST_CPU_REFERENCE_H
#define KILN_TEST_CPU_REFERENCE_H

#include "cpu_handler.h"

/* An opcode such as "setp.lt.ftz.f32", split into its parts. References read
 * the current opcode from ref_op, because they have no argument for it. */
typedef struct ref_opcode {
  char part[10][20];
  unsigned n;
} ref_opcode;

extern ref_opcode ref_op;

/* Splits an opcode into ref_op. A row name before the opcode is accepted, as in
 * "mov_pack mov.b32". */
void ref_parse(const char *opcode);
bool ref_is(const char *mnemonic);
bool ref_has(const char *modifier);
/* Returns the k-th part of the opcode, counted from the end. Part 0 is the last
 * part. */
const char *ref_last(unsigned k);

/* Calls `run` for the opcodes of a row in ops.def, or for a sample of about
 * `most` of them. The k-th opcode is in ref_op. */
void ref_run_row(kiln__cpu_op op, size_t most,
                 void (*run)(cpu_case *c, size_t k));
/* Checks that cpu_case_run() has run all rows in this list. */
void ref_rows_were_run(const kiln__cpu_op *ops, size_t n);

/* Properties of a type that is given by its name in PTX. */
unsigned ref_bits(const char *type);
bool ref_is_signed(const char *type);
bool ref_is_float(const char *type);
/* Returns the type for which edge values are generated. Packed types are also
 * supported. */
kiln__cpu_ptx_type ref_type(const char *type);

__extension__ typedef __int128 ref_int;
__extension__ typedef unsigned __int128 ref_uint;

/* Convert between an integer value and its encoding in the low bits of a
 * uint64_t. */
ref_int ref_value(const char *type, uint64_t raw);
uint64_t ref_cut(const char *type, ref_int value);

/* Returns a number with the low `n` bits set. */
uint64_t ref_ones(unsigned n);

/* The encoding of a floating-point type: f16, bf16, f32, f64, tf32, e4m3 or
 * e5m2. */
typedef struct ref_format {
  const char *name;
  int exponent_bits, fraction_bits;
  unsigned shift; /* number of unused low bits of the encoding */
  /* special encodings; infinity is 0 if the format has none */
  uint64_t largest, infinity, nan;
} ref_format;

const ref_format *ref_format_of(const char *type);

/* Decodes a number. All NaN encodings give the same NaN. With `ftz`, subnormals
 * become zeros of the same sign. */
long double ref_decode(const char *type, uint64_t raw, bool ftz);

typedef enum ref_round {
  REF_NEAREST,
  REF_AWAY, /* rounds to nearest, ties away from zero */
  REF_ZERO,
  REF_DOWN,
  REF_UP
} ref_round;

/* Returns the rounding mode of the current opcode. Without a modifier, this is
 * rounding to nearest. */
ref_round ref_rounding(void);

/* Encodes a number with a single rounding. With `finite`, numbers that are too
 * large become the largest finite number. */
uint64_t ref_encode(const char *type, long double value, ref_round round,
                    bool finite);

#endif
