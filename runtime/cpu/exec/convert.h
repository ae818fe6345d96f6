/* convert.h -- what the files of conversions share. */
#ifndef KILN_CPU_CONVERT_H
#define KILN_CPU_CONVERT_H

#include "convert_exact.h"

/* Any conversion from in->type to in->type2 of one value to one, lane by lane,
 * whatever the registers' widths. */
void KILN__ISA_NAME(convert_exactly)(kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in);

#endif
