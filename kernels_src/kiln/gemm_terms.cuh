/* gemm_terms.cuh -- which parts of A and B are multiplied in each term of a product of
 * split numbers. Small terms come first. The program defines KILN_TERMS as 1, 3 or 6. */
#ifndef KILN_GEMM_TERMS_CUH
#define KILN_GEMM_TERMS_CUH

namespace kiln
{

/* Two bits per term, the first term lowest: 0 2 1 0 1 0 and 2 0 1 1 0 0 for six terms,
 * 0 1 0 and 1 0 0 for three. */
__device__ __forceinline__ unsigned gemm_term_a(unsigned term)
{
  const unsigned list = KILN_TERMS == 6 ? 0x118 : KILN_TERMS == 3 ? 0x04 : 0;

  return list >> 2 * term & 3;
}

__device__ __forceinline__ unsigned gemm_term_b(unsigned term)
{
  const unsigned list = KILN_TERMS == 6 ? 0x052 : KILN_TERMS == 3 ? 0x01 : 0;

  return list >> 2 * term & 3;
}

} // namespace kiln

#endif
