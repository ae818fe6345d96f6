/* reduce_atomic_global.cu -- sum of an array in which every thread adds its element to
 * one variable by an atomic addition (samples/README.md, rows A9 and C8).
 *
 * Launch: one thread per element.
 * Result: the sum of x is added to *result, in the order in which the atomics execute.
 *         All atomics wait for one address. As in reduce_one_thread, additions to one
 *         float accumulator have no effect once the accumulator is large enough. */
extern "C" __global__ void reduce_atomic_global(const float *x, unsigned n,
                                                float *result)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    atomicAdd(result, x[i]);
}
