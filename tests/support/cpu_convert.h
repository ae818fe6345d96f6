/* cpu_convert.h -- reference implementations of conversions. */
#ifndef KILN_TEST_CPU_CONVERT_H
#define KILN_TEST_CPU_CONVERT_H

#include "cpu_reference.h"

/* Returns the reference function for the cvt opcode in ref_op. */
cpu_reference *ref_conversion(void);

/* The reference function for conversions of a single value. The result has
 * in->reg_bytes bytes. */
cpu_reference ref_cvt;

#endif
