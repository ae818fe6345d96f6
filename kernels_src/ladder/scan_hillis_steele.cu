/* scan_hillis_steele.cu -- scan of each section of an array in shared memory by doubling
 * distances. Step s adds element i - 2^s to element i (samples/README.md, row B11; Hillis
 * and Steele, Data Parallel Algorithms, 1986). The scan has few steps, but more additions
 * than necessary.
 *
 * Parameters: KILN_BLOCK (default 512) is the number of threads per block and of elements
 *             per section. If KILN_EXCLUSIVE (default 0) is 1, y[i] is the sum of those
 *             elements of the section that precede x[i]. If KILN_COUNT (default 0) is 1,
 *             the kernel adds the number of its additions to *additions.
 * Launch: one thread per element; the block size is KILN_BLOCK.
 *         n          number of elements
 *         sums       receives one sum per section; may be NULL
 *         additions  counter of additions; unused if KILN_COUNT is 0
 * Result: y receives the scan of each section. A section of n elements needs n log2 n -
 *         (n - 1) additions if n is a power of two. */
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

    /* After this barrier, all threads have read their elements of `section`. */
    __syncthreads();
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
