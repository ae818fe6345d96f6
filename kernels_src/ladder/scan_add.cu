/* scan_add.cu -- turn scanned sections into one scan: each section adds the sum of the
 * sections before it (samples/README.md, row B11).
 *
 * Parameters: KILN_COUNT (0), 1: *additions grows by the number of additions.
 * Launch: one thread per element, any block.
 *         n          number of elements
 *         section    elements per section
 *         sums       the inclusive scan of the sections' sums
 *         additions  unused without KILN_COUNT
 * Result: adds sums[i / section - 1] to y[i], except in the first section. */
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
