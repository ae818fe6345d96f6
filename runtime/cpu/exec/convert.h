/* convert.h -- declares the exact conversion that convert.c and convert_float.c
 * share. */
#ifndef KILN_CPU_CONVERT_H
#define KILN_CPU_CONVERT_H

#include "convert_exact.h"

/* Converts the source register from in->type to in->type2, lane by lane. The
 * source and destination registers may have different widths. */
void KILN__ISA_NAME(convert_exactly)(kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in);

#endif
