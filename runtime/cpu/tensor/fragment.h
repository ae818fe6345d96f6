/* fragment.h -- the distribution of matrices over the lanes of a warp, and
 * matrix products of fragments.
 *
 * mma and wmma hold each matrix in registers of all 32 lanes. This header
 * states which element each register holds, gathers fragments into the plain
 * matrices of tensor_arithmetic.h, and computes the product. All functions are
 * free of state. */
#ifndef KILN_CPU_TENSOR_FRAGMENT_H
#define KILN_CPU_TENSOR_FRAGMENT_H

#include "../code/code.h"

enum { KILN__FRAGMENT_MAX = 16 };

typedef struct kiln__tensor_place {
  uint16_t row, column;
} kiln__tensor_place;

/* Number of registers of a fragment that hold different elements. In some
 * fragments of wmma, register r repeats register r modulo this number. */
unsigned kiln__tensor_distinct(const kiln__cpu_matrix *x, kiln__cpu_fragment f);

/* Number of elements per register. */
unsigned kiln__tensor_per_register(const kiln__cpu_matrix *x,
                                   kiln__cpu_fragment f);

/* Returns the row and column of element `e` of register `r` of a lane. For a
 * sparse A, the column counts stored elements. The four products of an m8n8k4
 * of f16 are stacked: product p has the rows 8 p to 8 p + 7 of A and C, and the
 * columns 8 p to 8 p + 7 of B. */
kiln__tensor_place kiln__tensor_place_of(const kiln__cpu_matrix *x,
                                         kiln__cpu_fragment f, unsigned lane,
                                         unsigned r, unsigned e);

/* Modifiers of an instruction that kiln__cpu_matrix does not contain. */
typedef struct kiln__tensor_modifiers {
  int arch; /* compute capability; 90 is 9.0 */
  bool saturate, conjunction;
} kiln__tensor_modifiers;

/* Computes a product. in[i] points to the 32 lanes of register i, where the
 * registers of A are followed by those of B and of C. `metadata` points to the
 * 32 lanes of the metadata of a sparse A, and is NULL otherwise. out[i]
 * receives the 32 lanes of register i of D. */
void kiln__tensor_mma(const kiln__cpu_matrix *x,
                      const kiln__tensor_modifiers *modifiers,
                      const uint32_t *const *in, const uint32_t *metadata,
                      uint32_t out[][KILN__WARP]);

/* Does the same for f64. `mode` is a rounding mode of <fenv.h>. */
void kiln__tensor_mma_f64(const kiln__cpu_matrix *x, int mode,
                          const uint64_t *const *in,
                          uint64_t out[][KILN__WARP]);

#endif
