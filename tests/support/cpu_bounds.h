/* cpu_bounds.h -- measures the distance between the result of an approximate
 * opcode and the exact value. */
#ifndef KILN_TEST_CPU_BOUNDS_H
#define KILN_TEST_CPU_BOUNDS_H

#include "cpu_opcodes.h"

/* Returns the error of one result as a multiple of the bound that the PTX ISA
 * manual states for the opcode. For packed halves, returns the larger of the
 * two errors. A negative value means that the result is wrong where the manual
 * prescribes the exact result (NaN, infinity, sign of zero). A value of 0 means
 * that the manual states no bound. */
double bounds_error(const opcode_case *c, const uint64_t *operands,
                    uint64_t got);

/* Returns whether two f32 results are both correct only because of the absolute
 * term of the bound, regardless of the number of representable values between
 * them. */
bool bounds_near(const opcode_case *c, uint64_t a, uint64_t b);

#endif
