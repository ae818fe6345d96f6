/* tensor_double_round.c -- products of f64 matrices with any rounding mode.
 *
 * The tensor cores compute each element as a chain of fused multiply-adds. This
 * file changes the rounding mode of the host processor and is compiled with
 * -frounding-math, so that the compiler moves no arithmetic across the change.
 */
#include "tensor_arithmetic.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#define NAN_F64 UINT64_C(0xfff8000000000000)
#define QUIET UINT64_C(0x0008000000000000)

static double double_of(uint64_t bits)
{
  double value;

  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Returns a b + c. The result is the first NaN among b, c and a, made quiet. */
static uint64_t multiply_add(uint64_t a, uint64_t b, uint64_t c)
{
  const double x = double_of(a), y = double_of(b), z = double_of(c);
  const double sum = fma(x, y, z);
  uint64_t bits;

  memcpy(&bits, &sum, sizeof bits);
  if (sum == sum)
    return bits;
  return y != y ? b | QUIET : z != z ? c | QUIET : x != x ? a | QUIET : NAN_F64;
}

static uint64_t chain(uint32_t k, const uint64_t *a, const uint64_t *b,
                      uint64_t c)
{
  for (uint32_t l = 0; l < k; l++)
    c = multiply_add(a[l], b[l], c);
  return c;
}

void kiln__tensor_multiply_f64(int mode, uint32_t m, uint32_t n, uint32_t k,
                               const uint64_t *a, const uint64_t *b,
                               const uint64_t *c, uint64_t *d)
{
  const int old = fegetround();

  fesetround(mode);
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t j = 0; j < n; j++)
      d[i * n + j] = chain(k, a + i * k, b + j * k, c[i * n + j]);
  fesetround(old);
}
