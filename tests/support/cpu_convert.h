/* cpu_convert.h -- references of conversions. */
#ifndef KILN_TEST_CPU_CONVERT_H
#define KILN_TEST_CPU_CONVERT_H

#include "cpu_reference.h"

/* Returns the reference of the cvt opcode in ref_op. */
cpu_reference *ref_conversion(void);

/* The reference of conversions of one value. The result has the width
 * in->reg_bytes. */
cpu_reference ref_cvt;

#endif
