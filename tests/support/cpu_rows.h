/* cpu_rows.h -- the rows of ops.def as the loader reads them, for tests that run
 * over all rows. */
#ifndef KILN_TEST_CPU_ROWS_H
#define KILN_TEST_CPU_ROWS_H

#include "cpu/code/code_build.h"

/* The matcher with all rows, read once per process and never freed. For one
 * thread. A failure ends the process. */
kiln__cpu_matcher *cpu_rows(void);

/* The type of a form ($1, $2, $W, w or a type itself) for an opcode's fields. */
unsigned cpu_form_type(const kiln__cpu_insn *fields, unsigned type);

#endif
