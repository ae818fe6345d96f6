/* nan.h -- the NaNs that arithmetic instructions return.
 *
 * In f32, f16 and bf16, GPUs return one canonical NaN without the sign and
 * payload of the operands. In f64, and in conversions from or to f64, the
 * result is the NaN operand, made quiet. If several f64 operands are NaN, the
 * last NaN operand is returned. KILN__NAN_F64 is the result of an invalid
 * operation on numbers, such as infinity minus infinity. Every handler uses
 * these constants, so that a rule can be corrected in one file. */
#ifndef KILN_CPU_NAN_H
#define KILN_CPU_NAN_H

#include <stdint.h>

#define KILN__NAN_F32 0x7fffffffu
#define KILN__NAN_F64 0xfff8000000000000u
#define KILN__QUIET_F64 0x0008000000000000u
/* upper 32 bits of the NaN of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 */
#define KILN__NAN_SEED 0x7fffffff00000000u
#define KILN__NAN_F16 0x7fffu
#define KILN__NAN_BF16 0x7fffu

#endif
