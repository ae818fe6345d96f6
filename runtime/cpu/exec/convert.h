/* convert.h -- what convert.c and convert_float.c share. */
#ifndef KILN_CPU_CONVERT_H
#define KILN_CPU_CONVERT_H

#include "convert_exact.h"

/* Convert one value from in->type to in->type2, lane by lane, whatever the
 * widths of the registers. */
void KILN__ISA_NAME(convert_exactly)(kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in);

#endif
