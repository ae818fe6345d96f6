/* cpu_rows.h -- gives tests access to all rows of ops.def as the loader parses
 * them. */
#ifndef KILN_TEST_CPU_ROWS_H
#define KILN_TEST_CPU_ROWS_H

#include "cpu/code/code_build.h"

/* Returns the matcher with all rows. It is initialised once per process and
 * never freed. Not thread-safe. A failure ends the process. */
kiln__cpu_matcher *cpu_rows(void);

/* Returns the actual type of an operand form for an opcode. `type` is $1, $2,
 * $W, w, or a type. */
unsigned cpu_form_type(const kiln__cpu_insn *fields, unsigned type);

#endif
