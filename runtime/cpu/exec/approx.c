/* approx.c -- the .approx forms of f32. */
#include "approx.h"

#define X(v) kiln__float_of_bits(v[i])
#define Z(v) kiln__from_ftz(v[i])

KILN__F32_1(rcp_approx_f32, kiln__to_f32(1 / X(A)))
KILN__F32_1(rcp_approx_ftz_f32, kiln__to_ftz(1 / Z(A)))
KILN__F32_1(sqrt_approx_f32, kiln__to_f32(sqrtf(X(A))))
KILN__F32_1(sqrt_approx_ftz_f32, kiln__to_ftz(sqrtf(Z(A))))
/* Two roundings: 2^-23 at most. */
KILN__F32_1(rsqrt_approx_f32, kiln__to_f32(1 / sqrtf(X(A))))
KILN__F32_1(rsqrt_approx_ftz_f32, kiln__to_ftz(1 / sqrtf(Z(A))))

KILN__F32_1(ex2_approx_f32, kiln__to_f32((float)kiln__exp2((double)X(A))))
KILN__F32_1(ex2_approx_ftz_f32, kiln__to_ftz((float)kiln__exp2((double)Z(A))))

static inline float log2_of(float x)
{
  const float finite = (float)kiln__log2((double)x);

  /* Also NaN for negative values and for NaN. */
  return x == 0          ? -INFINITY
         : x == INFINITY ? INFINITY
         : x > 0         ? finite
                         : kiln__float_of_bits(KILN__NAN_F32);
}

KILN__F32_1(lg2_approx_f32, kiln__to_f32(log2_of(X(A))))
KILN__F32_1(lg2_approx_ftz_f32, kiln__to_ftz(log2_of(Z(A))))

KILN__F32_1(tanh_approx_f32, kiln__to_f32((float)kiln__tanh((double)X(A))))

/* Whether a lane that counts needs libm's reduction. */
static bool any_far(const kiln__warp *w, const uint32_t *a)
{
  uint32_t far = 0;

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const float x = fabsf(kiln__float_of_bits(a[i]));

    far |= x > (float)KILN__SIN_MAX ? w->lane[i] : 0;
  }
  return far != 0;
}

#define SINE(name, from, to, quarters, libm)                                   \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);               \
    if (any_far(w, A))                                                         \
      KILN__ACTIVE_LANES(uint32_t, to((float)libm((double)from(A))));          \
    else                                                                       \
      KILN__LANES(uint32_t,                                                    \
                  to((float)kiln__sin_shifted((double)from(A), quarters)));    \
  }

SINE(sin_approx_f32, X, kiln__to_f32, 0, sin)
SINE(sin_approx_ftz_f32, Z, kiln__to_ftz, 0, sin)
SINE(cos_approx_f32, X, kiln__to_f32, 1, cos)
SINE(cos_approx_ftz_f32, Z, kiln__to_ftz, 1, cos)
