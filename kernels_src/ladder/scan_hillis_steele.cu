/* scan_hillis_steele.cu -- sections scanned in shared memory by doubling: in step s
 * each element adds the one 2^s before it (samples/README.md, row B11; Hillis and
 * Steele, Data Parallel Algorithms, 1986). It takes few steps, but more additions than
 * needed.
 *
 * Parameters: KILN_BLOCK, threads per block and elements per section (512).
 *             KILN_EXCLUSIVE (0), 1: y[i] is the sum of the section's elements before
 *             x[i]. KILN_COUNT (0), 1: *additions grows by the number of additions.
 * Launch: one thread per element, block KILN_BLOCK.
 *         n          number of elements
 *         sums       NULL, or one sum per section
 *         additions  unused without KILN_COUNT
 * Result: y, each section scanned; n log2 n - (n - 1) additions for a section of n
 *         elements, if n is a power of two. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 512
#endif
#ifndef KILN_EXCLUSIVE
#define KILN_EXCLUSIVE 0
#endif
#ifndef KILN_COUNT
#define KILN_COUNT 0
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    scan_hillis_steele(const float *x, unsigned n, float *y, float *sums,
                       unsigned long long *additions)
{
  __shared__ float section[KILN_BLOCK];
  const unsigned first = blockIdx.x * KILN_BLOCK, t = threadIdx.x;
  const unsigned size = n - first < KILN_BLOCK ? n - first : KILN_BLOCK;
  unsigned long long added = 0;

  section[t] = t < size ? x[first + t] : 0.0f;
  __syncthreads();
  for (unsigned stride = 1; stride < size; stride *= 2) {
    const bool adds = t >= stride && t < size;
    const float before = adds ? section[t - stride] : 0.0f;

    __syncthreads(); /* all threads have read what is overwritten next */
    if (adds) {
      section[t] += before;
      ++added;
    }
    __syncthreads();
  }
  if (t < size)
    y[first + t] = !KILN_EXCLUSIVE ? section[t] : t > 0 ? section[t - 1] : 0.0f;
  if (sums != nullptr && t == size - 1)
    sums[blockIdx.x] = section[t];
#if KILN_COUNT
  if (added > 0)
    atomicAdd(additions, added);
#else
  (void)additions;
  (void)added;
#endif
}
