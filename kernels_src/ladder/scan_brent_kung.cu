/* scan_brent_kung.cu -- scan of each section of an array in shared memory. The scan uses
 * a balanced tree, from the leaves to the root and back (samples/README.md, row B11;
 * Brent and Kung, A Regular Layout for Parallel Adders, 1982). Compared with
 * scan_hillis_steele, it has twice as many steps, but fewer than two additions per
 * element.
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a power of
 *             two. A section has 2 * KILN_BLOCK elements. If KILN_EXCLUSIVE (default 0) is
 *             1, y[i] is the sum of those elements of the section that precede x[i]. If
 *             KILN_COUNT (default 0) is 1, the kernel adds the number of its additions to
 *             *additions.
 * Launch: one block per section; the block size is KILN_BLOCK.
 *         n          number of elements
 *         sums       receives one sum per section; may be NULL
 *         additions  counter of additions; unused if KILN_COUNT is 0
 * Result: y receives the scan of each section. A section of n elements needs at most
 *         2 (n - 1) additions. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif
#ifndef KILN_EXCLUSIVE
#define KILN_EXCLUSIVE 0
#endif
#ifndef KILN_COUNT
#define KILN_COUNT 0
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    scan_brent_kung(const float *x, unsigned n, float *y, float *sums,
                    unsigned long long *additions)
{
  __shared__ float section[2 * KILN_BLOCK];
  const unsigned first = blockIdx.x * 2 * KILN_BLOCK, t = threadIdx.x;
  const unsigned size = n - first < 2 * KILN_BLOCK ? n - first : 2 * KILN_BLOCK;
  unsigned long long added = 0;

  for (unsigned i = t; i < 2 * KILN_BLOCK; i += KILN_BLOCK)
    section[i] = i < size ? x[first + i] : 0.0f;
  __syncthreads();

  /* The first loop goes from the leaves to the root. The last element of each
   * pair of subtrees receives the sum of both subtrees. The active threads are
   * consecutive, so few warps diverge. */
  for (unsigned stride = 1; stride < size; stride *= 2) {
    const unsigned i = (t + 1) * stride * 2 - 1;

    if (i < size) {
      section[i] += section[i - stride];
      ++added;
    }
    __syncthreads();
  }
  /* The second loop goes from the root to the leaves. The first half of each
   * right subtree receives the sum of all preceding elements. */
  for (unsigned stride = KILN_BLOCK / 2; stride > 0; stride /= 2) {
    const unsigned i = (t + 1) * stride * 2 - 1;

    if (i + stride < size) {
      section[i + stride] += section[i];
      ++added;
    }
    __syncthreads();
  }
  for (unsigned i = t; i < size; i += KILN_BLOCK)
    y[first + i] = !KILN_EXCLUSIVE ? section[i] : i > 0 ? section[i - 1] : 0.0f;
  if (sums != nullptr && t == 0)
    sums[blockIdx.x] = section[size - 1];
#if KILN_COUNT
  if (added > 0)
    atomicAdd(additions, added);
#else
  (void)additions;
  (void)added;
#endif
}
