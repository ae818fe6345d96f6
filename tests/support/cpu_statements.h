/* cpu_statements.h -- generates correct and incorrect PTX statements from the
 * rows of ops.def, and the module that contains them. */
#ifndef KILN_TEST_CPU_STATEMENTS_H
#define KILN_TEST_CPU_STATEMENTS_H

#include "base/base.h"

/* A .target with the suffix `a` is its number plus this constant: 1090 is
 * sm_90a. */
enum { STATEMENT_SPECIFIC = 1000 };

/* Writes the part of the module that precedes the statements: directives,
 * variables and registers. */
void statements_head(kiln__buf *out, unsigned version, unsigned target);
/* Writes the part of the module that follows the statements. */
void statements_tail(kiln__buf *out);

/* Generates a statement that ptxas accepts, for a random row of ops.def and a
 * random opcode of the row. *ptx and *sm receive the .version and .target that
 * the statement requires. */
void statement_make(char *buf, size_t size, uint64_t *random, unsigned *ptx,
                    unsigned *sm);
/* Generates a statement for row `op` of ops.def. Returns false if the row needs
 * more than one statement, or if the loader inserts it without a PTX
 * statement. */
bool statement_of_row(char *buf, size_t size, unsigned op, uint64_t *random,
                      unsigned *ptx, unsigned *sm);
/* Generates a statement and makes one to three random changes to its modifiers,
 * operands or types. */
void statement_break(char *buf, size_t size, uint64_t *random);

#endif
