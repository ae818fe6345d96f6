/* cpu_rows.h -- lets tests read all rows of ops.def as the loader parses
 * them. */
#ifndef KILN_TEST_CPU_ROWS_H
#define KILN_TEST_CPU_ROWS_H

#include "cpu/code/code_build.h"

/* Returns the matcher with all rows. It is initialised once per process and
 * never freed. Not thread-safe. A failure ends the process. */
kiln__cpu_matcher *cpu_rows(void);

/* Returns the type of an operand for an opcode. `type` is $1, $2, $W, w or a
 * type, as in the operand column of ops.def. */
unsigned cpu_form_type(const kiln__cpu_insn *fields, unsigned type);

#endif
