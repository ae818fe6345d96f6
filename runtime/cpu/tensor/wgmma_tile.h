/* wgmma_tile.h -- the operands of wgmma: matrices in shared memory that a 64-bit
 * descriptor describes, and fragments in registers.
 *
 * A matrix in shared memory consists of chunks of 16 bytes, which no layout
 * divides. `major` below is the dimension along which a chunk extends: k in a
 * K-major matrix, and m (for A) or n (for B) in an MN-major matrix. A line is a
 * row or column of chunks along this dimension. */
#ifndef KILN_CPU_WGMMA_TILE_H
#define KILN_CPU_WGMMA_TILE_H

#include "../code/code.h"
#include "tensor_arithmetic.h"

enum { KILN__WGMMA_CHUNK = 16 };

/* A decoded matrix descriptor. All lengths are in bytes. */
typedef struct kiln__wgmma_matrix {
  uint32_t start;   /* shared address of the first chunk */
  uint32_t leading; /* leading dimension byte offset */
  uint32_t stride;  /* stride dimension byte offset */
  uint32_t base;    /* base offset, 0 to 7 */
  uint32_t swizzle; /* bytes per swizzled line: 32, 64, 128, or 0 */
  bool mn_major;    /* chunks extend along m or n */
} kiln__wgmma_matrix;

/* Decodes a matrix descriptor. */
void kiln__wgmma_matrix_read(kiln__wgmma_matrix *out, uint64_t descriptor,
                             bool mn_major);
/* Returns the shared address of a chunk. The address may lie outside shared
 * memory. `line` counts lines, and `chunk` the chunks within a line. */
uint32_t kiln__wgmma_chunk(const kiln__wgmma_matrix *m, uint32_t line,
                           uint32_t chunk);

/* The part of a wgmma that one warp computes: 16 rows of D. */
typedef struct kiln__wgmma_part {
  kiln__cpu_wgmma form;
  kiln__wgmma_matrix a, b; /* a is unused if A is in registers */
  const uint8_t *shared;   /* shared memory of the block */
  uint32_t warp;           /* index of the warp in its warpgroup, 0 to 3 */
  bool accumulate;         /* scale-d */
  /* Register frame of the warp, and the slots of the operands as in
   * wgmma.def. */
  uint8_t *regs;
  const int32_t *d, *sources;
} kiln__wgmma_part;

/* Returns the number of lines, and of chunks per line, that one warp reads of A
 * or that the instruction reads of B. *first receives the number of the first
 * line (K-major A) or chunk (M-major A). */
void kiln__wgmma_extent(const kiln__wgmma_part *part, bool of_a,
                        uint32_t *lines, uint32_t *chunks, uint32_t *first);
/* Returns the shared address of chunk number `i` of A or B, counted over all
 * lines that kiln__wgmma_extent() describes. */
uint32_t kiln__wgmma_nth_chunk(const kiln__wgmma_part *part, bool of_a,
                               uint32_t i);
/* Computes the rows of D that belong to the warp. All chunks must lie in shared
 * memory. */
void kiln__wgmma_compute(const kiln__wgmma_part *part);

#endif
