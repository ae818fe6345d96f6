/* scan_add.cu -- combine scanned sections into one scan. The kernel adds to each element
 * the sum of all preceding sections (samples/README.md, row B11).
 *
 * Parameters: if KILN_COUNT (default 0) is 1, the kernel adds the number of its additions
 *             to *additions.
 * Launch: one thread per element, with blocks of any size.
 *         n          number of elements
 *         section    number of elements per section
 *         sums       the inclusive scan of the sums of the sections
 *         additions  counter of additions; unused if KILN_COUNT is 0
 * Result: sums[i / section - 1] is added to y[i], except in the first section. */
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
