/* cpu_bounds.h -- how far a result of an approximate opcode is from right. */
#ifndef KILN_TEST_CPU_BOUNDS_H
#define KILN_TEST_CPU_BOUNDS_H

#include "cpu_opcodes.h"

/* The error of one result in units of the bound that the PTX manual states for
 * the opcode (of each half: the larger one). Negative: the manual leaves no
 * choice here and the result is another one (NaN, infinity, sign of zero). 0
 * where the manual says nothing. */
double bounds_error(const opcode_case *c, const uint64_t *operands,
                    uint64_t got);

/* Whether two f32 results can both be right only because of the bound's absolute
 * part, however many steps they are apart. */
bool bounds_near(const opcode_case *c, uint64_t a, uint64_t b);

#endif
