/* cpu_statements.h -- PTX statements from the rows of ops.def, whole and broken,
 * and the module around them. */
#ifndef KILN_TEST_CPU_STATEMENTS_H
#define KILN_TEST_CPU_STATEMENTS_H

#include "base/base.h"

/* What is before the statements: directives, variables, registers. */
void statements_head(kiln__buf *out, unsigned version, unsigned target);
/* What is behind them. */
void statements_tail(kiln__buf *out);

/* One statement of a random row, in a random variant of its pattern, that ptxas
 * takes. *ptx and *sm: what it needs. */
void statement_make(char *buf, size_t size, uint64_t *random, unsigned *ptx,
                    unsigned *sm);
/* Row `op`; false: code/ makes it, or it needs more than one statement. */
bool statement_of_row(char *buf, size_t size, unsigned op, uint64_t *random,
                      unsigned *ptx, unsigned *sm);
/* The same with one to three things changed: a modifier, an operand, a type. */
void statement_break(char *buf, size_t size, uint64_t *random);

#endif
