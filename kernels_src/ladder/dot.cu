/* dot.cu -- dot product of two arrays. Each block stores products in shared memory, sums
 * them by a tree reduction, and makes one atomic addition (samples/README.md, row D4).
 *
 * Parameters: KILN_T (default float) is the type of an element; double needs compute
 *             capability 6.0. KILN_BLOCK (default 256) is the number of threads per
 *             block, a power of two.
 * Launch: one thread per element; the block size is KILN_BLOCK.
 * Result: the sum of a[i] * b[i] is added to *out. The order of the blocks differs
 *         between runs, and so may the last bits of the result. */
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
  /* After the barrier, other threads read the products. */
  __syncthreads();
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    if (t < width)
      product[t] += product[t + width];
    __syncthreads();
  }
  if (t == 0)
    atomicAdd(out, product[0]);
}
