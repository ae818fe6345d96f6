/* scatter_single.cu -- a scatter in a single pass, which reads in order and writes in
 * random order.
 *
 * Launch: any grid and block with one thread per element.
 *         x, index   n elements
 *         out        the target
 * Result: out[index[i]] = x[i] */
extern "C" __global__ void scatter_single(const float *x, const unsigned *index,
                                          float *out, unsigned n)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    out[index[i]] = x[i];
}
