/* cpu_integer.h -- references of moves, comparisons and integer instructions. */
#ifndef KILN_TEST_CPU_INTEGER_H
#define KILN_TEST_CPU_INTEGER_H

#include "cpu_reference.h"

/* Returns the reference of the opcode in ref_op, or NULL if it has none. The
 * sources of a lane must be cut to the width of their registers. */
cpu_reference *ref_integer(void);

/* The reference of lop3, whose truth table is in->imm. */
cpu_reference ref_lop3;

#endif
