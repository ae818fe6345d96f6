/* reduce_atomic_global.cu -- every thread adds its element to one variable
 * (samples/README.md, rows A9 and C8).
 *
 * Launch: one thread per element.
 * Result: adds the sum of x to *result, in the order in which the atomics happen. All of
 *         them wait for one address, and the single float accumulator stalls as in
 *         reduce_one_thread. */
extern "C" __global__ void reduce_atomic_global(const float *x, unsigned n,
                                                float *result)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    atomicAdd(result, x[i]);
}
