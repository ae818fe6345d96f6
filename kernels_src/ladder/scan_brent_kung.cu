/* scan_brent_kung.cu -- sections scanned in shared memory over a balanced tree, from
 * the leaves to the root and back (samples/README.md, row B11; Brent and Kung, A
 * Regular Layout for Parallel Adders, 1982). Compared with scan_hillis_steele, it
 * takes twice the steps, but fewer than two additions per element.
 *
 * Parameters: KILN_BLOCK, threads per block (256): a power of two; a section has twice as
 *             many elements. KILN_EXCLUSIVE (0), 1: y[i] is the sum of the section's
 *             elements before x[i]. KILN_COUNT (0), 1: *additions grows by the number of
 *             additions.
 * Launch: one block per section, block KILN_BLOCK.
 *         n          number of elements
 *         sums       NULL, or one sum per section
 *         additions  unused without KILN_COUNT
 * Result: y, each section scanned; at most 2 (n - 1) additions for a section of n
 *         elements. */
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

  /* Up: the last element of each pair of subtrees gets the sum of both. The
   * active threads are adjacent, so few warps diverge. */
  for (unsigned stride = 1; stride < size; stride *= 2) {
    const unsigned i = (t + 1) * stride * 2 - 1;

    if (i < size) {
      section[i] += section[i - stride];
      ++added;
    }
    __syncthreads();
  }
  /* Down: the first half of each right subtree gets the sum of what comes
   * before it. */
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
