/* cpu_exact.h -- reference implementations in plain C of opcodes with a short
 * definition. */
#ifndef KILN_TEST_CPU_EXACT_H
#define KILN_TEST_CPU_EXACT_H

#include "cpu_opcodes.h"

/* The functions of this header return false if they have no reference for the
 * opcode or for its operands. */
/* Computes the result of an opcode that depends on a single thread. */
bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result);

/* Computes the results of shfl, vote, match and redux for all lanes of a warp.
 * Lanes outside the member mask receive 0. */
bool exact_warp(const opcode_case *c,
                uint64_t operands[KILN__WARP][OPCODE_SOURCES],
                uint64_t results[KILN__WARP]);

#endif
