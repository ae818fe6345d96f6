/* cpu_exact.h -- results of opcodes in plain C, for those where that is easy. */
#ifndef KILN_TEST_CPU_EXACT_H
#define KILN_TEST_CPU_EXACT_H

#include "cpu_opcodes.h"

/* False: no reference, or none for these operands. */
bool exact_result(const opcode_case *c, const uint64_t *operands,
                  uint64_t *result);

#endif
