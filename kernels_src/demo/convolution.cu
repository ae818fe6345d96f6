/* convolution.cu -- three-point convolution of an array. Elements beyond the ends of the
 * array count as 0 (samples/README.md, row D1).
 *
 * Parameters: KILN_T (default float) is the type of an element.
 * Launch: one thread per element in one dimension, so that grid * block >= n.
 * Result: y[i] = a * x[i - 1] + b * x[i] + c * x[i + 1] */
#ifndef KILN_T
#define KILN_T float
#endif

extern "C" __global__ void convolve3(KILN_T *y, const KILN_T *x, unsigned n,
                                     KILN_T a, KILN_T b, KILN_T c)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n) {
    const KILN_T left = i > 0 ? x[i - 1] : KILN_T(0);
    const KILN_T right = i + 1 < n ? x[i + 1] : KILN_T(0);

    y[i] = a * left + b * x[i] + c * right;
  }
}
