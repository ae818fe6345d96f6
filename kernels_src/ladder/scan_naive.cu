/* scan_naive.cu -- prefix scan in which the thread of each result adds all elements of
 * that result (samples/README.md, row B11).
 *
 * Parameters: if KILN_EXCLUSIVE (default 0) is 1, y[i] is the sum of the elements that
 *             precede x[i]. If KILN_COUNT (default 0) is 1, the kernel adds the number of
 *             its additions to *additions.
 * Launch: one thread per element, with blocks of any size.
 *         n          number of elements
 *         additions  counter of additions; unused if KILN_COUNT is 0
 * Result: y[i] = x[0] + ... + x[i]. The kernel makes n (n - 1) / 2 additions. */
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
