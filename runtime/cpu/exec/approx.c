/* approx.c -- the .approx forms of f32: reciprocal, square roots, powers,
 * logarithms, sine and cosine.
 *
 * PTX limits the errors of these instructions but does not specify the exact
 * bits. The functions here are much more accurate than the limits, and they are
 * deterministic; see approx.h. */
#include "approx.h"

#define X(v) kiln__cpu_float_of_bits(v[i])
#define Z(v) kiln__cpu_from_ftz(v[i])

KILN__F32_1(rcp_approx_f32, kiln__cpu_to_f32(1 / X(A)))
KILN__F32_1(rcp_approx_ftz_f32, kiln__cpu_to_ftz(1 / Z(A)))
KILN__F32_1(sqrt_approx_f32, kiln__cpu_to_f32(sqrtf(X(A))))
KILN__F32_1(sqrt_approx_ftz_f32, kiln__cpu_to_ftz(sqrtf(Z(A))))
/* The square root and the division each round once, which gives an error of at
 * most 2^-23. */
KILN__F32_1(rsqrt_approx_f32, kiln__cpu_to_f32(1 / sqrtf(X(A))))
KILN__F32_1(rsqrt_approx_ftz_f32, kiln__cpu_to_ftz(1 / sqrtf(Z(A))))

KILN__F32_1(ex2_approx_f32,
            kiln__cpu_to_f32((float)kiln__cpu_exp2((double)X(A))))
KILN__F32_1(ex2_approx_ftz_f32,
            kiln__cpu_to_ftz((float)kiln__cpu_exp2((double)Z(A))))

static inline float log2_of(float x)
{
  const float finite = (float)kiln__cpu_log2((double)x);

  /* The logarithm of a negative value or of a NaN is a NaN. */
  return x == 0          ? -INFINITY
         : x == INFINITY ? INFINITY
         : x > 0         ? finite
                         : kiln__cpu_float_of_bits(KILN__NAN_F32);
}

KILN__F32_1(lg2_approx_f32, kiln__cpu_to_f32(log2_of(X(A))))
KILN__F32_1(lg2_approx_ftz_f32, kiln__cpu_to_ftz(log2_of(Z(A))))

KILN__F32_1(tanh_approx_f32,
            kiln__cpu_to_f32((float)kiln__cpu_tanh((double)X(A))))

static inline float sine(float x)
{
  const float value = (float)kiln__cpu_sin_turns(kiln__cpu_turns((double)x), 0);
  const uint32_t sign = kiln__cpu_bits_of_float(x) & KILN__F32_SIGN;

  return kiln__cpu_float_of_bits(kiln__cpu_bits_of_float(value) ^ sign);
}

static inline float cosine(float x)
{
  return (float)kiln__cpu_sin_turns(kiln__cpu_turns((double)x), 1);
}

KILN__F32_1(sin_approx_f32, kiln__cpu_to_f32(sine(X(A))))
KILN__F32_1(sin_approx_ftz_f32, kiln__cpu_to_ftz(sine(Z(A))))
KILN__F32_1(cos_approx_f32, kiln__cpu_to_f32(cosine(X(A))))
KILN__F32_1(cos_approx_ftz_f32, kiln__cpu_to_ftz(cosine(Z(A))))
