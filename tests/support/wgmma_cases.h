/* wgmma_cases.h -- the types, shapes and layouts of wgmma.mma_async as test
 * cases.
 *
 * Each case has a kernel in which a warpgroup copies A and B to shared memory,
 * loads the accumulators, executes one instruction, and stores the result. One
 * warpgroup computes one tile. The matrices in shared memory are random bytes of
 * the right format; the descriptors define their layout. matrix_cases.h fills
 * the operands. */
#ifndef KILN_TEST_WGMMA_CASES_H
#define KILN_TEST_WGMMA_CASES_H

#include "matrix_cases.h"

typedef struct wgmma_case {
  /* opcode, formats and sizes; `selector` is the number of the variant, so that
   * cases of the same opcode have different operands */
  matrix_case m;
  unsigned n;              /* columns */
  unsigned swizzle;        /* bytes per swizzled line, or 0 */
  bool trans_a, trans_b;   /* MN-major */
  bool registers;          /* A is in registers */
  bool negate_a, negate_b; /* imm-scale is -1 */
  bool keep;               /* scale-d is false */
  int select;              /* sparsity selector; -1 for dense matrices */
} wgmma_case;

enum { WGMMA_THREADS = 128 };

/* Returns all cases and their number. The array is made once per process. */
const wgmma_case *wgmma_cases(size_t *n);

/* Returns the number of tiles whose results are hashed at a step of the
 * recording: 64, 4,096 and 102,400 tiles of 8 columns, as which wider tiles
 * count. */
enum { WGMMA_STEPS = 3 };
unsigned long wgmma_tiles(const wgmma_case *t, unsigned step);

/* Writes the kernel `k` of a case, with header, as a NUL-terminated text of
 * less than `size` bytes. Its parameters are the addresses of the operands and
 * results of tile 0; a grid of n blocks of 128 threads computes n tiles. */
void wgmma_kernel(const wgmma_case *t, char *text, size_t size);

#endif
