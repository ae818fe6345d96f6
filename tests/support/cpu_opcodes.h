/* cpu_opcodes.h -- every opcode of the rows of ops.def that computes registers
 * from registers, as PTX kernels that run on any device.
 *
 * A kernel takes up to four arrays of operands, one element a thread, executes
 * several opcodes of the same operands and stores the result of each. Results
 * are bits: 4 or 8 bytes. */
#ifndef KILN_TEST_CPU_OPCODES_H
#define KILN_TEST_CPU_OPCODES_H

#include "cpu/code/code_build.h"
#include "support.h"

/* Operands beside those of kiln__cpu_ptx_type; how values are drawn. */
enum {
  OPERAND_FEW32 = 64, /* few different values in a warp */
  OPERAND_FEW64,
  OPERAND_SOME,    /* predicate: all, none or some of a warp */
  OPERAND_LANE,    /* shfl: which lane */
  OPERAND_SEGMENT, /* shfl: segments and clamp */
  OPERAND_SEGMENT_UP,
  OPERAND_MEMBERS /* the same in a warp: members, whole segments; last */
};

enum { OPCODE_SOURCES = 5, OPCODE_BATCH = 32 };

typedef struct opcode_case {
  char name[112]; /* "lop3.b32 0x96"; unique */
  uint16_t op;    /* row */
  uint16_t ptx, sm;
  uint8_t n_in, in[OPCODE_SOURCES];
  uint8_t out_bytes; /* 4 or 8 */
  bool approx;       /* not determined to the bit */
  bool half;         /* only the lower 16 bits are compared */
  char text[480];    /* reads %s, %h, %d, %p and its number; writes %r or %q */
} opcode_case;

typedef struct opcode_list {
  opcode_case *cases; /* sorted by operands, then name */
  size_t n;
} opcode_list;

/* All that a device of capability `sm` (90) has, and which need more than
 * `above`; malloc. Rows without a case are counted in uncovered, which may be
 * NULL, of KILN__N_OPS. */
void opcode_list_make(opcode_list *out, unsigned above, unsigned sm,
                      bool *uncovered);
void opcode_list_free(opcode_list *list);

/* Whether two cases have the same operands. */
bool opcode_same_operands(const opcode_case *a, const opcode_case *b);

/* Text of one module: cases first to first + n, in kernels "k0", "k1", ... of
 * at most OPCODE_BATCH cases of the same operands each; parameters: the arrays
 * of operands, the array of results, number of threads (u32), bytes from one
 * case's results to the next one's (u64). */
void opcode_module(kiln__buf *out, const opcode_case *cases, size_t n);
/* How many of the cases from the first on its kernel has. */
size_t opcode_kernel_cases(const opcode_case *cases, size_t n);

/* ---- Operands --------------------------------------------------------------- */

/* Elements of an operand's array. */
unsigned operand_bytes(unsigned operand);

/* Element i of all operands, the same in every run and on every machine: the
 * first OPERAND_EDGES edge values against each other, as many random ones, more
 * edges up to OPERAND_MORE_EDGES, then random ones. */
enum { OPERAND_EDGES = 8192, OPERAND_MORE_EDGES = 65536 };
void operands_make(const uint8_t *operands, unsigned n_operands, size_t n,
                   void *arrays[OPCODE_SOURCES]);
/* "f32,f32" */
void operands_text(const opcode_case *c, char *buf, size_t size);

#endif
