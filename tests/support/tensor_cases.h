/* tensor_cases.h -- random tensor copies, made from a group and a number. An
 * H200 ran the same cases; tests/golden/tensor.txt has the results. A change of
 * this file changes the cases, so they must then be recorded again. */
#ifndef KILN_TENSOR_CASES_H
#define KILN_TENSOR_CASES_H

#include <stdint.h>

enum {
  TENSOR_BUFFER = 1 << 19, /* size of the buffer that contains the tensor */
  TENSOR_BASE = 1 << 16,   /* offset of the tensor in the buffer */
  TENSOR_SHARED = 49152,   /* bytes of shared memory */
  /* From this number on, the hardware accepts every case. */
  TENSOR_SETTLED = 1000
};

/* The groups: tiled loads, interleaved tiled loads, im2col loads, tiled stores,
 * im2col stores, and tiled reductions. Group 7 has reductions of contiguous
 * bytes, and group 8 has swizzles of compute capability 10.0. Group 9 has sums of
 * the types that are stored as f32. */
enum { TENSOR_REDUCE_BYTES = 7 };

typedef enum tensor_kind {
  TENSOR_LOAD,
  TENSOR_LOAD_PIXELS,
  TENSOR_STORE,
  TENSOR_STORE_PIXELS,
  TENSOR_ADD, /* followed by min, max, inc, dec, and, or, xor */
  TENSOR_XOR = 11
} tensor_kind;

/* One tensor copy. The members are those of the encoding functions. */
typedef struct tensor_case {
  tensor_kind kind;
  uint8_t type, rank, im2col, interleave, swizzle, fill;
  uint64_t dim[5], stride[5];
  uint32_t box[5], step[5];
  int32_t lower[3], upper[3];
  uint32_t channels, pixels;
  int32_t coord[5];
  uint16_t offset[3];
  uint32_t shared_at;  /* offset of the box in shared memory */
  uint32_t seed, mode; /* of the generated data */
  uint32_t tensor_at;  /* offset of the tensor from TENSOR_BASE */
  uint32_t dumped;     /* bytes of shared memory that a load is compared on */
} tensor_case;

/* Makes case `i` of a group. */
void tensor_case_make(tensor_case *c, uint32_t group, uint32_t i);
/* The reductions of group 7: 2,048 bytes in global memory are combined with as
 * many in shared memory. */
enum { TENSOR_REDUCTIONS = 27, TENSOR_REDUCED_BYTES = 2048 };
typedef struct tensor_reduction {
  const char *op; /* operation and type, as in the opcode */
  uint32_t seed, mode;
} tensor_reduction;
void tensor_reduction_make(tensor_reduction *r, uint32_t i);
/* Returns word `i` of the data that a seed and a mode generate. */
uint32_t tensor_word(uint32_t seed, uint32_t mode, uint32_t i);
/* Returns whether the case writes to shared memory. */
static inline int tensor_case_loads(const tensor_case *c)
{
  return c->kind <= TENSOR_LOAD_PIXELS;
}

#endif
