/* cpu_statements.h -- makes PTX statements from the rows of ops.def, correct
 * ones and broken ones, and the module around them. */
#ifndef KILN_TEST_CPU_STATEMENTS_H
#define KILN_TEST_CPU_STATEMENTS_H

#include "base/base.h"

/* Writes the text before the statements: directives, variables, registers. */
void statements_head(kiln__buf *out, unsigned version, unsigned target);
/* Writes the text after them. */
void statements_tail(kiln__buf *out);

/* Makes one statement of a random row, in a random variant of its pattern, that
 * ptxas accepts. *ptx and *sm receive the .version and .target that it needs.
 */
void statement_make(char *buf, size_t size, uint64_t *random, unsigned *ptx,
                    unsigned *sm);
/* Makes a statement of row `op`. False: code/ makes the row itself, or it needs
 * more than one statement. */
bool statement_of_row(char *buf, size_t size, unsigned op, uint64_t *random,
                      unsigned *ptx, unsigned *sm);
/* Makes a statement and changes one to three things: a modifier, an operand, a
 * type. */
void statement_break(char *buf, size_t size, uint64_t *random);

#endif
