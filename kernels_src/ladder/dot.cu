/* dot.cu -- dot product: products in shared memory, a tree reduction over them, and
 * one atomic addition per block (samples/README.md, row D4).
 *
 * Parameters: KILN_T, type of an element (float; double from 6.0 on). KILN_BLOCK, threads
 *             per block (256): a power of two.
 * Launch: one thread per element, block KILN_BLOCK.
 * Result: adds the sum of a[i] * b[i] to *out. The order of the blocks differs from run to
 *         run, and with it the last bits. */
#ifndef KILN_T
#define KILN_T float
#endif
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    dot(const KILN_T *a, const KILN_T *b, unsigned n, KILN_T *out)
{
  __shared__ KILN_T product[KILN_BLOCK];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * KILN_BLOCK + t;

  product[t] = i < n ? a[i] * b[i] : KILN_T(0);
  __syncthreads(); /* before other threads read it */
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    if (t < width)
      product[t] += product[t + width];
    __syncthreads();
  }
  if (t == 0)
    atomicAdd(out, product[0]);
}
