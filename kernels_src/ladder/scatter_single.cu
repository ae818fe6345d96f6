/* scatter_single.cu -- scatter in a single pass. The kernel reads x in order and writes
 * out in random order.
 *
 * Launch: one thread per element, with blocks of any size.
 *         x, index   n elements
 *         out        the array that receives the elements
 * Result: out[index[i]] = x[i] */
extern "C" __global__ void scatter_single(const float *x, const unsigned *index,
                                          float *out, unsigned n)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    out[index[i]] = x[i];
}
