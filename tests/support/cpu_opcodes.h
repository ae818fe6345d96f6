/* cpu_opcodes.h -- generates PTX test kernels from the rows of ops.def, for any
 * device. The kernels cover every opcode that computes registers from
 * registers.
 *
 * A kernel reads up to four arrays of operands, one element per thread. It
 * executes several opcodes that have the same operands and stores the result of
 * each. A result is a bit pattern of 4 or 8 bytes. */
#ifndef KILN_TEST_CPU_OPCODES_H
#define KILN_TEST_CPU_OPCODES_H

#include "cpu/code/code_build.h"
#include "support.h"

/* Kinds of operands in addition to kiln__cpu_ptx_type. The kind determines how
 * operand values are generated. */
enum {
  OPERAND_FEW32 = 64, /* values of which a warp has only a few different ones */
  OPERAND_FEW64,
  OPERAND_SOME,    /* predicate that is true in all, no or some lanes */
  OPERAND_LANE,    /* lane or distance operand of shfl */
  OPERAND_SEGMENT, /* segment mask and clamp operand of shfl */
  OPERAND_SEGMENT_UP,
  /* a member mask of whole segments, which is equal in all lanes of a warp and
   * is always the last operand */
  OPERAND_MEMBERS
};

enum { OPCODE_SOURCES = 5, OPCODE_BATCH = 32 };

typedef struct opcode_case {
  char name[112]; /* unique name of the test case, such as "lop3.b32 0x96" */
  uint16_t op;    /* index of the row in ops.def */
  uint16_t ptx, sm;
  uint8_t n_in, in[OPCODE_SOURCES];
  uint8_t out_bytes; /* size of the result in bytes, 4 or 8 */
  bool approx;       /* true if the result is not specified bit by bit */
  /* true if only the lower 16 bits of the result are compared */
  bool half;
  /* PTX source of the test case. It reads the registers %s, %h, %d and %p with
   * the number of the case appended, and writes %r or %q. */
  char text[480];
} opcode_case;

typedef struct opcode_list {
  opcode_case *cases; /* test cases, sorted by operands, then by name */
  size_t n;
} opcode_list;

/* Lists all test cases that run on compute capability `sm` (90 means 9.0) and
 * need a compute capability above `above`. If `uncovered` is not NULL, it has
 * KILN__N_OPS elements, and the elements of rows without a test case are set.
 * The caller frees the list with opcode_list_free(). */
void opcode_list_make(opcode_list *out, unsigned above, unsigned sm,
                      bool *uncovered);
void opcode_list_free(opcode_list *list);

/* Returns whether two test cases have the same operands. */
bool opcode_same_operands(const opcode_case *a, const opcode_case *b);

/* Writes one PTX module with `n` test cases. The kernels "k0", "k1", ...
 * contain at most OPCODE_BATCH cases each, and all cases of a kernel have the
 * same operands. The parameters of a kernel are the arrays of operands, the
 * array of results, the number of threads (u32), and the distance in bytes
 * between the results of consecutive cases (u64). */
void opcode_module(kiln__buf *out, const opcode_case *cases, size_t n);
/* Returns the number of test cases at the start of the list that share the
 * first kernel. */
size_t opcode_kernel_cases(const opcode_case *cases, size_t n);

/* ---- Operands ------------------------------------------------------------ */

/* Returns the size in bytes of one operand value in its array. */
unsigned operand_bytes(unsigned operand);

/* Generates the arrays of operands. Element i is the same in every run and on
 * every machine. The first OPERAND_EDGES elements combine edge values, and the
 * same number of random elements follows. More edge values follow up to element
 * OPERAND_MORE_EDGES. All later elements are random. */
enum { OPERAND_EDGES = 8192, OPERAND_MORE_EDGES = 65536 };
void operands_make(const uint8_t *operands, unsigned n_operands, size_t n,
                   void *arrays[OPCODE_SOURCES]);
/* Formats the kinds of operands of a test case, for example "f32,f32". */
void operands_text(const opcode_case *c, char *buf, size_t size);

#endif
