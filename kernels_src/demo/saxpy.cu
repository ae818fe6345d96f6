/* saxpy.cu -- y = a x + y (lecture row E1).
 *
 * Launch:  one thread an element: grid * block >= n, one dimension.
 * Result:  y[i] = a * x[i] + y[i], one rounding.
 */
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    y[i] = fmaf(a, x[i], y[i]);
}
