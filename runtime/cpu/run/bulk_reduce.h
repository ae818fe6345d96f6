/* bulk_reduce.h -- declares the reductions of bulk copies. */
#ifndef KILN_CPU_BULK_REDUCE_H
#define KILN_CPU_BULK_REDUCE_H

#include "../code/code.h"

/* Returns whether the instruction combines its source with the destination
 * instead of replacing the destination. */
bool kiln__cpu_bulk_reduces(const kiln__cpu_insn *in);
/* Returns whether the hardware has the operation of the instruction, if it is a
 * reduction, for elements of a type. It has only min and max for .s64. */
bool kiln__cpu_bulk_supports(const kiln__cpu_insn *in, kiln__cpu_ptx_type type);
/* Combines n bytes of elements at `to` with those at `from`. `type` is the PTX
 * type of the elements; `ftz` means that additions of f32 take subnormal numbers
 * as zeros. Each element is updated atomically. */
void kiln__cpu_bulk_reduce(const kiln__cpu_insn *in, kiln__cpu_ptx_type type,
                           bool ftz, uint8_t *to, const uint8_t *from,
                           uint32_t n);

#endif
