/* nan.h -- the NaNs that arithmetic gives, whatever the operands' payloads.
 *
 * GPUs drop payloads in f32, f16 and bf16. For f64 the value is the one that an
 * invalid operation gives; operands' payloads are dropped too. Every handler
 * takes its NaN from here, so that a rule is corrected in one place. */
#ifndef KILN_CPU_NAN_H
#define KILN_CPU_NAN_H

#include <stdint.h>

#define KILN__NAN_F32 0x7fffffffu
#define KILN__NAN_F64 0xfff8000000000000u
#define KILN__NAN_F16 0x7fffu
#define KILN__NAN_BF16 0x7fffu

#endif
