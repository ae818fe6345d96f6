/* wgmma.cuh -- matrix products of a warpgroup (four consecutive warps) on the tensor
 * cores of sm_90a.
 *
 * One instruction adds the product of a 64 x K and a K x N matrix in shared memory to
 * 64 x N sums in registers, where K is 32 bytes of an operand's row. It runs
 * asynchronously: after wgmma_fence() come instructions, then wgmma_commit() ends their
 * group, and wgmma_wait() waits for groups. Until then the sums must not be touched.
 *
 * Thread t of the warpgroup has sums of the rows r and r + 8 with
 * r = t / 32 * 16 + t % 32 / 4. Sum number 4 j + 2 h + e belongs to row r + 8 h and
 * column 8 j + t % 4 * 2 + e.
 *
 * A program defines these macros before it includes this file:
 *   KILN_MATH     0: f16, 1: bf16, 2: tf32, 3: i8
 *   KILN_WGMMA_N  columns: 64, 128, 192 or 256
 *   KILN_A_K, KILN_B_K  1 if consecutive elements of the operand follow the sum
 *
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate". */
#ifndef KILN_WGMMA_CUH
#define KILN_WGMMA_CUH

#if KILN_MATH == 3
#define KILN_W_SUM "+r"
#define KILN_W_TYPES "k32.s32.s8.s8"
#define KILN_W_END ", p;"
#elif KILN_MATH == 2
#define KILN_W_SUM "+f"
#define KILN_W_TYPES "k8.f32.tf32.tf32"
#define KILN_W_END ", p, 1, 1;"
#else
#define KILN_W_SUM "+f"
#if KILN_MATH == 1
#define KILN_W_TYPES "k16.f32.bf16.bf16"
#else
#define KILN_W_TYPES "k16.f32.f16.f16"
#endif
#if KILN_A_K
#define KILN_W_TURN_A "0"
#else
#define KILN_W_TURN_A "1"
#endif
#if KILN_B_K
#define KILN_W_TURN_B "0"
#else
#define KILN_W_TURN_B "1"
#endif
#define KILN_W_END ", p, 1, 1, " KILN_W_TURN_A ", " KILN_W_TURN_B ";"
#endif

/* KILN_W_LIST is the list of the sums in the instruction's text: "%0, %1, ...".
 * KILN_W_SUMS is the list of operands. KILN_W_A and KILN_W_B are the numbers of the
 * operands that follow, KILN_W_OWN_A and KILN_W_THEN_B those for an A in registers. */
#define KILN_W_10(t)                                                           \
  "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t        \
  "7,%" #t "8,%" #t "9,"
#define KILN_W_60                                                              \
  KILN_W_10()                                                                  \
  KILN_W_10(1) KILN_W_10(2) KILN_W_10(3) KILN_W_10(4) KILN_W_10(5)
#define KILN_W_S4(d, i)                                                        \
  KILN_W_SUM(d[i]), KILN_W_SUM(d[i + 1]), KILN_W_SUM(d[i + 2]),                \
      KILN_W_SUM(d[i + 3])
#define KILN_W_S16(d, i)                                                       \
  KILN_W_S4(d, i), KILN_W_S4(d, i + 4), KILN_W_S4(d, i + 8),                   \
      KILN_W_S4(d, i + 12)
#define KILN_W_S32(d, i) KILN_W_S16(d, i), KILN_W_S16(d, i + 16)
#define KILN_W_S64(d, i) KILN_W_S32(d, i), KILN_W_S32(d, i + 32)

#if KILN_WGMMA_N == 64
#define KILN_W_SHAPE "m64n64"
#define KILN_W_LIST KILN_W_10() KILN_W_10(1) KILN_W_10(2) "%30,%31"
#define KILN_W_SUMS(d) KILN_W_S32(d, 0)
#define KILN_W_A "%32"
#define KILN_W_B "%33"
#define KILN_W_OWN_A "{%32,%33,%34,%35}"
#define KILN_W_THEN_B "%36"
#elif KILN_WGMMA_N == 128
#define KILN_W_SHAPE "m64n128"
#define KILN_W_LIST KILN_W_60 "%60,%61,%62,%63"
#define KILN_W_SUMS(d) KILN_W_S64(d, 0)
#define KILN_W_A "%64"
#define KILN_W_B "%65"
#define KILN_W_OWN_A "{%64,%65,%66,%67}"
#define KILN_W_THEN_B "%68"
#elif KILN_WGMMA_N == 192
#define KILN_W_SHAPE "m64n192"
#define KILN_W_LIST                                                            \
  KILN_W_60 KILN_W_10(6) KILN_W_10(7) KILN_W_10(8) "%90,%91,%92,%93,%94,%95"
#define KILN_W_SUMS(d) KILN_W_S64(d, 0), KILN_W_S32(d, 64)
#define KILN_W_A "%96"
#define KILN_W_B "%97"
#define KILN_W_OWN_A "{%96,%97,%98,%99}"
#define KILN_W_THEN_B "%100"
#elif KILN_WGMMA_N == 256
#define KILN_W_SHAPE "m64n256"
#define KILN_W_LIST                                                            \
  KILN_W_60 KILN_W_10(6) KILN_W_10(7) KILN_W_10(8) KILN_W_10(9) KILN_W_10(10)  \
      KILN_W_10(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define KILN_W_SUMS(d) KILN_W_S64(d, 0), KILN_W_S64(d, 64)
#define KILN_W_A "%128"
#define KILN_W_B "%129"
#define KILN_W_OWN_A "{%128,%129,%130,%131}"
#define KILN_W_THEN_B "%132"
#else
#error "KILN_WGMMA_N: 64, 128, 192 or 256"
#endif

namespace kiln
{

/* Returns the descriptor of a matrix in shared memory, at an address that is a multiple
 * of 1024 bytes, with rows of 128 bytes whose 16-byte chunks are exchanged (chunk c of
 * row r is at c ^ r % 8), as a copy of the TMA with this swizzle writes them. If
 * consecutive elements follow the sum, a row of shared memory is a row of the operand.
 * Otherwise each row of shared memory has 64 consecutive elements of one position of
 * the sum; further elements follow after `depth` rows. */
__device__ __forceinline__ unsigned long long
wgmma_matrix(unsigned address, bool follow_sum, unsigned depth)
{
  const unsigned long long leading = follow_sum ? 1 : depth * 128 / 16;
  const unsigned long long eight_rows = 1024 / 16, swizzle = 1ull << 62;

  return (address & 0x3ffff) / 16 | leading << 16 | eight_rows << 32 | swizzle;
}

__device__ __forceinline__ void wgmma_fence()
{
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most `groups` groups of the calling warp are running. */
template <int groups> __device__ __forceinline__ void wgmma_wait()
{
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

/* Adds a product to the sums d. */
template <class S>
__device__ __forceinline__ void
wgmma(S (&d)[KILN_WGMMA_N / 2], unsigned long long a, unsigned long long b)
{
  asm volatile("{\n"
               ".reg .pred p;\n"
               "setp.ne.b32 p, 1, 0;\n"
               "wgmma.mma_async.sync.aligned." KILN_W_SHAPE KILN_W_TYPES
               " {" KILN_W_LIST "}, " KILN_W_A ", " KILN_W_B KILN_W_END "\n"
               "}"
               : KILN_W_SUMS(d)
               : "l"(a), "l"(b));
}

/* Adds a product with an A in registers to the sums d. Thread t has the elements of row
 * t / 4 and position t % 4 of the sum (of the instruction's 8), of row t / 4 + 8, then
 * both of position t % 4 + 4, in its warp's 16 rows. For elements of 4 bytes. */
template <class S>
__device__ __forceinline__ void
wgmma(S (&d)[KILN_WGMMA_N / 2], const unsigned (&a)[4], unsigned long long b)
{
  asm volatile("{\n"
               ".reg .pred p;\n"
               "setp.ne.b32 p, 1, 0;\n"
               "wgmma.mma_async.sync.aligned." KILN_W_SHAPE KILN_W_TYPES
               " {" KILN_W_LIST "}, " KILN_W_OWN_A ", " KILN_W_THEN_B KILN_W_END
               "\n"
               "}"
               : KILN_W_SUMS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

} // namespace kiln

#endif
