/* scan_add.cu -- what makes one scan of scanned sections: each section gets the sum
 * of the sections before it (lecture row B11).
 *
 * Specialise:  KILN_COUNT  0  1: *additions grows by the additions made
 * Launch:      one thread an element, any block.
 *              n          elements
 *              section    elements of a section
 *              sums       the inclusive scan of the sections' sums
 *              additions  not used without KILN_COUNT
 * Result:      y[i] += sums[i / section - 1], except in the first section.
 */
#ifndef KILN_COUNT
#define KILN_COUNT 0
#endif

extern "C" __global__ void scan_add(float *y, unsigned n, unsigned section,
                                    const float *sums,
                                    unsigned long long *additions)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i >= n || i < section)
    return;
  y[i] += sums[i / section - 1];
#if KILN_COUNT
  atomicAdd(additions, 1ull);
#else
  (void)additions;
#endif
}
