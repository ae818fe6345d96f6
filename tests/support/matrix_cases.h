/* matrix_cases.h -- all matrix instructions of PTX up to sm_90, as test cases.
 *
 * Each case has a kernel in which a warp loads the operands of one instruction,
 * executes it, and stores the result. One warp computes one tile. Operands are
 * pseudo-random and depend only on the case and the number of the tile, so that
 * results recorded on one machine can be compared on another. */
#ifndef KILN_TEST_MATRIX_CASES_H
#define KILN_TEST_MATRIX_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum matrix_format {
  FORMAT_F16,
  FORMAT_BF16,
  FORMAT_TF32,
  FORMAT_E4M3,
  FORMAT_E5M2,
  FORMAT_F32,
  FORMAT_F64,
  FORMAT_BITS, /* integers of any width, and single bits */
  FORMAT_S32,  /* accumulators */
  /* ordered metadata of 2:4 and of 1:2 sparse matrices */
  FORMAT_TWO_OF_FOUR,
  FORMAT_ONE_OF_TWO
} matrix_format;

typedef enum matrix_kind {
  MATRIX_COMPUTE, /* mma, mma.sp, wmma.mma: registers to registers */
  MATRIX_LOAD,    /* wmma.load: memory to registers */
  MATRIX_STORE    /* wmma.store: registers to memory */
} matrix_kind;

typedef struct matrix_operand {
  matrix_format format;
  uint16_t registers; /* per lane; 0 if the case has no such operand */
} matrix_operand;

typedef struct matrix_case {
  char opcode[112];
  matrix_kind kind;
  unsigned ptx, sm;      /* least .version and .target */
  unsigned width;        /* bytes per register: 4 or 8 */
  unsigned d;            /* registers of the result */
  matrix_operand in[4];  /* a, b, c and the metadata, or the stored fragment */
  int selector;          /* of mma.sp, otherwise -1 */
  unsigned stride;       /* of wmma.load and wmma.store, in elements */
  unsigned memory;       /* bytes of the matrix that they access */
  matrix_format element; /* element of that matrix */
} matrix_case;

/* Returns all cases and their number. The array is made once per process. */
const matrix_case *matrix_cases(size_t *n);

/* Returns the bytes of the operands, or of the result, of one tile. */
size_t matrix_input_bytes(const matrix_case *t);
size_t matrix_output_bytes(const matrix_case *t);

/* Writes the kernel `k` of a case, with header, as a NUL-terminated text of
 * less than `size` bytes. Its parameters are the addresses of the operands and
 * results of tile 0; a grid of n blocks of 32 threads computes n tiles. */
void matrix_kernel(const matrix_case *t, char *text, size_t size);

/* Writes the opcode as kernels have it. PTX allows .satfinite in front of the types
 * and behind them; it is behind them if the first matrix is unsigned. */
void matrix_spelling(const char *opcode, char text[112]);

/* Writes the operands of one tile. */
void matrix_fill(const matrix_case *t, uint64_t tile, void *input);

/* Returns the hash of n bytes, which continues the hash `seed`. */
uint64_t matrix_hash(uint64_t seed, const void *data, size_t n);

#endif
