/* cpu_integer.h -- reference implementations of moves, comparisons and integer
 * instructions. */
#ifndef KILN_TEST_CPU_INTEGER_H
#define KILN_TEST_CPU_INTEGER_H

#include "cpu_reference.h"

/* Returns the reference function for the opcode in ref_op, or NULL if there is
 * none. The sources of a lane must be cut to the width of their registers. */
cpu_reference *ref_integer(void);

/* The reference function for lop3, whose truth table is in->imm. */
cpu_reference ref_lop3;

#endif
