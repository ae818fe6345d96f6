/* cpu_opcodes.h -- makes PTX kernels from the rows of ops.def: every opcode
 * that computes registers from registers, to be run on any device.
 *
 * A kernel reads up to four arrays of operands, one element per thread,
 * executes several opcodes that take the same operands, and stores the result
 * of each. Results are bits: 4 or 8 bytes. */
#ifndef KILN_TEST_CPU_OPCODES_H
#define KILN_TEST_CPU_OPCODES_H

#include "cpu/code/code_build.h"
#include "support.h"

/* Operands beyond those of kiln__cpu_ptx_type: how their values are drawn. */
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

/* Lists all cases for capability `sm` (90) that need more than `above`.
 * `uncovered`, which may be NULL, has KILN__N_OPS elements and is set for rows
 * without a case. Free with opcode_list_free(). */
void opcode_list_make(opcode_list *out, unsigned above, unsigned sm,
                      bool *uncovered);
void opcode_list_free(opcode_list *list);

/* Whether two cases have the same operands. */
bool opcode_same_operands(const opcode_case *a, const opcode_case *b);

/* Writes one module with `n` cases, in kernels "k0", "k1", ... of at most
 * OPCODE_BATCH cases with the same operands each. Parameters: the arrays of
 * operands, the array of results, the number of threads (u32), the bytes from
 * one case's results to the next one's (u64). */
void opcode_module(kiln__buf *out, const opcode_case *cases, size_t n);
/* Returns how many of the cases go into the kernel of the first one. */
size_t opcode_kernel_cases(const opcode_case *cases, size_t n);

/* ---- Operands ------------------------------------------------------------ */

/* Returns the bytes of one element of an operand's array. */
unsigned operand_bytes(unsigned operand);

/* Makes the operands. Element i is the same in every run and on every machine:
 * the first OPERAND_EDGES combine edge values, as many random ones follow, then
 * more edges up to OPERAND_MORE_EDGES, then random ones. */
enum { OPERAND_EDGES = 8192, OPERAND_MORE_EDGES = 65536 };
void operands_make(const uint8_t *operands, unsigned n_operands, size_t n,
                   void *arrays[OPCODE_SOURCES]);
/* Writes the operands as text, "f32,f32". */
void operands_text(const opcode_case *c, char *buf, size_t size);

#endif
