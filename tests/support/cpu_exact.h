/* cpu_exact.h -- results of opcodes in plain C, for those where that is easy. */
#ifndef KILN_TEST_CPU_EXACT_H
#define KILN_TEST_CPU_EXACT_H

#include "cpu_opcodes.h"

/* False: no reference, or none for these operands. */
/* Those that look at one thread alone. */
bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result);

/* shfl, vote, match, redux: all lanes of a warp; 0 where a lane is no member. */
bool exact_warp(const opcode_case *c,
                uint64_t operands[KILN__WARP][OPCODE_SOURCES],
                uint64_t results[KILN__WARP]);

#endif
