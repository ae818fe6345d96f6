/* scan_naive.cu -- one thread per result, which adds all elements that it needs
 * (samples/README.md, row B11).
 *
 * Parameters: KILN_EXCLUSIVE (0), 1: y[i] is the sum of the elements before x[i].
 *             KILN_COUNT (0), 1: *additions grows by the number of additions.
 * Launch: one thread per element, any block.
 *         n          number of elements
 *         additions  unused without KILN_COUNT
 * Result: y[i] = x[0] + ... + x[i]; n (n - 1) / 2 additions. */
#ifndef KILN_EXCLUSIVE
#define KILN_EXCLUSIVE 0
#endif
#ifndef KILN_COUNT
#define KILN_COUNT 0
#endif

extern "C" __global__ void scan_naive(const float *x, unsigned n, float *y,
                                      unsigned long long *additions)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned end = KILN_EXCLUSIVE ? i : i + 1;
  float sum = 0;

  if (i >= n)
    return;
  if (end > 0)
    sum = x[0];
  for (unsigned k = 1; k < end; ++k)
    sum += x[k];
  y[i] = sum;
#if KILN_COUNT
  if (end > 1)
    atomicAdd(additions, static_cast<unsigned long long>(end - 1));
#else
  (void)additions;
#endif
}
