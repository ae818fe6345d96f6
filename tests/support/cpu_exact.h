/* cpu_exact.h -- computes results of opcodes in plain C, where their definition
 * is short. */
#ifndef KILN_TEST_CPU_EXACT_H
#define KILN_TEST_CPU_EXACT_H

#include "cpu_opcodes.h"

/* Return false if there is no reference, or none for these operands. */
/* For opcodes that look at one thread only. */
bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result);

/* For shfl, vote, match and redux: all lanes of a warp. Lanes that are not
 * members get 0. */
bool exact_warp(const opcode_case *c,
                uint64_t operands[KILN__WARP][OPCODE_SOURCES],
                uint64_t results[KILN__WARP]);

#endif
