/* gemm_mma.cuh -- the matrix instructions of one warp, for gemm_mma.cu.
 *
 * mma() adds the product of a 16 x K and a K x 8 matrix to 16 x 8 sums, where K is
 * mma_bytes of an operand's row: 64 for f64, 32 otherwise. A lane has mma_a and mma_b
 * words of them. Lane l has the sums of rows
 * l / 4 and l / 4 + 8, columns l % 4 * 2 and the next one. Sum number 2 h + e belongs
 * to row l / 4 + 8 h and column l % 4 * 2 + e.
 *
 * A program defines KILN_MATH before it includes this file: 0 f16, 1 bf16, 2 tf32,
 * 3 i8, 4 f64. GPUs of compute capability 7.5 have f16 and i8 only, in smaller
 * instructions.
 *
 * Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". */
#ifndef KILN_GEMM_MMA_CUH
#define KILN_GEMM_MMA_CUH

namespace kiln
{

#if KILN_MATH == 4
typedef double mma_word;
enum : unsigned { mma_a = 4, mma_b = 2, mma_bytes = 64 };

__device__ __forceinline__ void mma(double (&d)[4], const double (&a)[mma_a],
                                    const double (&b)[mma_b])
{
#if KILN_ARCH >= 90
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
               " {%0, %1, %2, %3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]),
                 "d"(b[1]));
#else
#pragma unroll
  for (unsigned k = 0; k < mma_b; ++k)
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
                   " {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(d[2 * h]), "+d"(d[2 * h + 1])
                   : "d"(a[2 * k + h]), "d"(b[k]));
#endif
}
#else
typedef unsigned mma_word;
enum : unsigned { mma_a = 4, mma_b = 2, mma_bytes = 32 };

#if KILN_MATH == 3
#if KILN_ARCH >= 80
__device__ __forceinline__ void
mma(unsigned (&d)[4], const unsigned (&a)[mma_a], const unsigned (&b)[mma_b])
{
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
               " {%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                 "r"(b[1]));
}
#else
__device__ __forceinline__ void
mma(unsigned (&d)[4], const unsigned (&a)[mma_a], const unsigned (&b)[mma_b])
{
#pragma unroll
  for (unsigned k = 0; k < mma_b; ++k)
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
                   " {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+r"(d[2 * h]), "+r"(d[2 * h + 1])
                   : "r"(a[2 * k + h]), "r"(b[k]));
}
#endif
#elif KILN_MATH == 0 && KILN_ARCH < 80
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[mma_a],
                                    const unsigned (&b)[mma_b])
{
#pragma unroll
  for (unsigned k = 0; k < mma_b; ++k)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                 " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
}
#else
#if KILN_MATH == 0
#define KILN_MMA_TYPES "k16.row.col.f32.f16.f16.f32"
#elif KILN_MATH == 1
#define KILN_MMA_TYPES "k16.row.col.f32.bf16.bf16.f32"
#else
#define KILN_MMA_TYPES "k8.row.col.f32.tf32.tf32.f32"
#endif
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[mma_a],
                                    const unsigned (&b)[mma_b])
{
  asm volatile("mma.sync.aligned.m16n8" KILN_MMA_TYPES
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
               " {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                 "r"(b[1]));
}
#endif

/* Loads four 8 x 8 matrices of 2-byte elements, whose rows begin at the addresses of
 * lanes 0 to 7, 8 to 15, and so on. Lane l gets the 4 bytes at l % 4 of row l / 4 of
 * each matrix, or of each transposed matrix. */
template <bool transposed>
__device__ __forceinline__ void load_matrices(unsigned (&to)[4],
                                              unsigned address)
{
  if (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
                 " {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16"
                 " {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}
#endif

} // namespace kiln

#endif
