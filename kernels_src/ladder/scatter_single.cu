/* scatter_single.cu -- the lecture's scatter in a single pass: reads in order,
 * writes anywhere.
 *
 * Launch:      any grid and block; one thread an element.
 *              x, index   n elements
 *              out        the target
 * Result:      out[index[i]] = x[i]. */
extern "C" __global__ void scatter_single(const float *x, const unsigned *index,
                                          float *out, unsigned n)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    out[index[i]] = x[i];
}
