/* dot.cu -- dot product: products in shared memory, a tree over them, one atomic a
 * block (lecture row D4).
 *
 * Specialise:  KILN_T      float  element: float, or double from 6.0 on
 *              KILN_BLOCK  256    threads a block: a power of two
 * Launch:      one thread an element, block KILN_BLOCK.
 * Result:      *out += the sum of a[i] * b[i]; the order of the blocks, and with
 *              it the last bits, differ from run to run. */
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
  __syncthreads(); /* before others read it */
  for (unsigned width = KILN_BLOCK / 2; width > 0; width /= 2) {
    if (t < width)
      product[t] += product[t + width];
    __syncthreads();
  }
  if (t == 0)
    atomicAdd(out, product[0]);
}
