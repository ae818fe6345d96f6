/* saxpy.cu -- y = a x + y for arrays of floats (samples/README.md, row E1).
 *
 * Launch: one thread per element in one dimension, so that grid * block >= n.
 * Result: y[i] = a * x[i] + y[i], rounded once by a fused multiply-add. */
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    y[i] = fmaf(a, x[i], y[i]);
}
