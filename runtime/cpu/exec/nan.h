/* nan.h -- the NaNs that arithmetic returns.
 *
 * GPUs drop sign and payload in f32, f16 and bf16. In f64, and in conversions
 * from or to f64, a NaN operand passes through, made quiet; of several the last
 * one. KILN__NAN_F64 is the result of an invalid operation on numbers. Every
 * handler takes its NaN from here, so that a rule can be corrected in one
 * place. */
#ifndef KILN_CPU_NAN_H
#define KILN_CPU_NAN_H

#include <stdint.h>

#define KILN__NAN_F32 0x7fffffffu
#define KILN__NAN_F64 0xfff8000000000000u
#define KILN__QUIET_F64 0x0008000000000000u
/* high word of the NaN of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 */
#define KILN__NAN_SEED 0x7fffffff00000000u
#define KILN__NAN_F16 0x7fffu
#define KILN__NAN_BF16 0x7fffu

#endif
