/* tensor_arithmetic.h -- the arithmetic of tensor cores, bit for bit.
 *
 * A tensor core computes D = A B + C for small matrices. Its sums are not
 * chains of IEEE additions, so every bit of a result depends on a rule that
 * NVIDIA does not document. This header describes the rule of a matrix
 * instruction as data and applies it to a tile. The instructions mma, wmma and
 * wgmma share it: they gather their fragments into plain matrices, call
 * kiln__tensor_multiply(), and scatter the result.
 *
 * Elements are raw bits, one per uint32_t (or uint64_t for f64). The functions
 * keep no state, so any thread may call them. */
#ifndef KILN_CPU_TENSOR_ARITHMETIC_H
#define KILN_CPU_TENSOR_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

/* The formats of matrix elements. The comment states how an element is stored
 * in its uint32_t; the other bits are ignored. */
typedef enum kiln__tensor_type {
  KILN__TENSOR_F16,  /* bits 0 to 15 */
  KILN__TENSOR_BF16, /* bits 0 to 15 */
  KILN__TENSOR_TF32, /* an f32; the lowest 13 bits are ignored */
  KILN__TENSOR_E4M3, /* bits 0 to 7 */
  KILN__TENSOR_E5M2, /* bits 0 to 7 */
  KILN__TENSOR_S8,   /* bits 0 to 7 */
  KILN__TENSOR_U8,
  KILN__TENSOR_S4, /* bits 0 to 3 */
  KILN__TENSOR_U4,
  KILN__TENSOR_B1,  /* 32 elements per uint32_t; k counts uint32_t */
  KILN__TENSOR_F32, /* accumulators only */
  KILN__TENSOR_S32  /* accumulators only */
} kiln__tensor_type;

/* Tensor cores that round differently. KILN__TENSOR_HOPPER is the mma and wmma
 * of sm_90, KILN__TENSOR_WGMMA the wgmma of sm_90a. */
typedef enum kiln__tensor_generation {
  KILN__TENSOR_VOLTA,
  KILN__TENSOR_TURING,
  KILN__TENSOR_AMPERE,
  KILN__TENSOR_ADA,
  KILN__TENSOR_HOPPER,
  KILN__TENSOR_BLACKWELL,
  KILN__TENSOR_WGMMA
} kiln__tensor_generation;

/* Largest number of products per element of D, and of elements per column of B.
 * B is longer than the products only in sparse instructions. */
enum { KILN__TENSOR_MAX_M = 64, KILN__TENSOR_MAX_K = 64 };
enum { KILN__TENSOR_MAX_B = 2 * KILN__TENSOR_MAX_K };

/* How one instruction computes one element of D. */
typedef struct kiln__tensor_rule {
  kiln__tensor_type a, b, c, d;
  /* Floating point: number of products that are summed at once together with
   * the accumulator. Longer sums are sequences of such steps. */
  uint8_t step;
  uint8_t fraction; /* fraction bits that aligned terms keep: F */
  uint8_t kept;     /* fraction bits that the result of a step keeps */
  /* The accumulator is added at the end, by an IEEE addition. Each element is
   * then the sum of 0, of the products, and of the accumulator. */
  bool deferred;
  /* Four products are summed by IEEE f32 fused multiply-adds instead of steps,
   * as the code does that replaces m8n8k4 from sm_80 on. */
  bool chained;
  /* Integers: .satfinite clamps the result to the range of s32; otherwise the
   * result wraps around. The caller sets this member. */
  bool saturate;
  /* B1: products are combined by AND instead of XOR. The caller sets this
   * member. */
  bool conjunction;
} kiln__tensor_rule;

/* A tile: D = A B + C. d may be equal to c. */
typedef struct kiln__tensor_tile {
  /* m is at most KILN__TENSOR_MAX_M, k at most KILN__TENSOR_MAX_K, and n any
   * number. k counts the products per element of D: for sparse instructions,
   * the stored elements of a row of A. */
  uint32_t m, n, k;
  const uint32_t *a; /* A(i, l) is a[i * k + l] */
  /* B(l, j) is b[j * k_b + l]: B is stored column by column. Dense
   * instructions have k_b = k. */
  const uint32_t *b;
  uint32_t k_b;
  /* Sparse instructions: A(i, l) is multiplied by B(select[i * k + l], j).
   * NULL for dense instructions, which multiply by B(l, j). */
  const uint8_t *select;
  const uint32_t *c; /* C(i, j) is c[i * n + j] */
  uint32_t *d;       /* D(i, j) is d[i * n + j] */
} kiln__tensor_tile;

/* Returns the generation of the mma and wmma of a compute capability (90 is
 * 9.0). */
kiln__tensor_generation kiln__tensor_generation_of(int arch);

/* Sets *rule for an instruction with k products per element of D. The rule of
 * an fp8 product of sm_90 sums the first and the second half of the products
 * one after the other. `saturate` and `conjunction` become false. */
void kiln__tensor_rule_init(kiln__tensor_rule *rule,
                            kiln__tensor_generation generation,
                            kiln__tensor_type a, kiln__tensor_type b,
                            kiln__tensor_type c, kiln__tensor_type d,
                            uint32_t k);

/* Computes a tile of any type except f64. */
void kiln__tensor_multiply(const kiln__tensor_rule *rule,
                           const kiln__tensor_tile *tile);

/* Computes a tile of f64: each element of D is a chain of fused multiply-adds
 * in the order of k. `mode` is a rounding mode of <fenv.h>. The matrices are
 * laid out as in kiln__tensor_tile, with uint64_t elements and k_b = k. d may
 * be equal to c. */
void kiln__tensor_multiply_f64(int mode, uint32_t m, uint32_t n, uint32_t k,
                               const uint64_t *a, const uint64_t *b,
                               const uint64_t *c, uint64_t *d);

#endif
