/* cpu_reference.h -- what references of handlers are written with: an opcode in
 * its parts, and numbers of any encoding as long double.
 *
 * It shares nothing with the code under test: encodings are decoded from their
 * fields, and results are found by bisection among all encodings. A long double
 * must hold 64 significant bits. */
#ifndef KILN_TEST_CPU_REFERENCE_H
#define KILN_TEST_CPU_REFERENCE_H

#include "cpu_handler.h"

/* "setp.lt.ftz.f32" in its parts. References take the opcode from ref_op and
 * have no argument for it. */
typedef struct ref_opcode {
  char part[10][20];
  unsigned n;
} ref_opcode;

extern ref_opcode ref_op;

void ref_parse(const char *opcode); /* fills ref_op; also takes "row opcode" */
bool ref_is(const char *mnemonic);
bool ref_has(const char *modifier);
/* Returns the k-th part from the end; 0 is the last. */
const char *ref_last(unsigned k);

/* Types by their names in PTX. */
unsigned ref_bits(const char *type);
bool ref_is_signed(const char *type);
bool ref_is_float(const char *type);
kiln__cpu_ptx_type
ref_type(const char *type); /* for edge values; packed types, too */

__extension__ typedef __int128 ref_int;
__extension__ typedef unsigned __int128 ref_uint;

/* Returns the value of an integer type; encodes one in the low bits. */
ref_int ref_value(const char *type, uint64_t raw);
uint64_t ref_cut(const char *type, ref_int value);

/* f16, bf16, f32, f64, tf32, e4m3, e5m2. */
typedef struct ref_format {
  const char *name;
  int exponent_bits, fraction_bits;
  unsigned shift;                  /* unused low bits */
  uint64_t largest, infinity, nan; /* infinity 0: has none */
} ref_format;

const ref_format *ref_format_of(const char *type);

/* Decodes a number; every NaN is the same. ftz: subnormals become zeros of
 * their sign. */
long double ref_decode(const char *type, uint64_t raw, bool ftz);

typedef enum ref_round {
  REF_NEAREST,
  REF_AWAY, /* ties away from zero */
  REF_ZERO,
  REF_DOWN,
  REF_UP
} ref_round;

/* Returns the direction that the opcode names; to nearest without one. */
ref_round ref_rounding(void);

/* Encodes a number with one rounding. finite: numbers above the largest become
 * the largest. */
uint64_t ref_encode(const char *type, long double value, ref_round round,
                    bool finite);

#endif
