/* cpu_bounds.h -- measures how far the result of an approximate opcode is from
 * the exact value. */
#ifndef KILN_TEST_CPU_BOUNDS_H
#define KILN_TEST_CPU_BOUNDS_H

#include "cpu_opcodes.h"

/* Returns the error of one result in units of the bound that the PTX ISA manual
 * states for the opcode; of packed halves, the larger one. Negative: the manual
 * leaves no choice here (NaN, infinity, sign of zero) and the result differs.
 * 0: the manual states no bound. */
double bounds_error(const opcode_case *c, const uint64_t *operands,
                    uint64_t got);

/* Whether two f32 results can both be right only because of the absolute part
 * of the bound, however many representable numbers lie between them. */
bool bounds_near(const opcode_case *c, uint64_t a, uint64_t b);

#endif
