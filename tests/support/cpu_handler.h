/* cpu_handler.h -- runs a handler (the CPU device's function for an opcode) on
 * test data and compares the results with a reference. Every build of the
 * handlers that this CPU supports is tested.
 *
 * A test names the instruction as in PTX. The loader finds its row in ops.def,
 * and the operand column of the row describes the operands:
 *
 *   cpu_case c;
 *   cpu_case_init(&c, "add.sat.s32");
 *   cpu_case_check(&c, lanes, n, add_sat);       // n tuples of sources
 *
 * The check covers full warps, partial masks, and results that overwrite each
 * source register. It compares all registers, so it also finds stray writes. */
#ifndef KILN_TEST_CPU_HANDLER_H
#define KILN_TEST_CPU_HANDLER_H

#include "support.h"

#include "cpu/exec/isa.h"

enum { CPU_MAX_VEC = 8 };

/* The source and result values of one lane as bit patterns. A predicate is 0 or
 * 1. */
typedef struct cpu_lane {
  uint64_t a, b, c, e;
  /* elements of insn.vec, which are sources or results */
  uint64_t vec[CPU_MAX_VEC];
  /* results; before the call, the values that the results overwrite */
  uint64_t d, d2;
  uint32_t carry; /* carry flag, 0 or 1 */
  /* The instruction, which references may read. cpu_case_check() sets it. */
  const kiln__cpu_insn *in;
} cpu_lane;

/* Computes the results of one lane from its sources: d, d2 and carry, or the
 * elements of vec if the instruction writes them. The function may read members
 * of lane->in such as imm and flags, but not lane->in->op. */
typedef void cpu_reference(cpu_lane *lane);
/* Returns whether the result `got` is acceptable if the reference computed
 * `want`. It is used for results that are not specified bit by bit. */
typedef bool cpu_same(const kiln__cpu_insn *in, const cpu_lane *source,
                      const cpu_lane *got, const cpu_lane *want);

/* The operands of a row in ops.def. The members d, d2, a, b, c and e are the
 * sizes of the registers: 1 for a predicate, or 2, 4 or 8 bytes. The size 0
 * means that there is no such operand. The test itself must describe operands
 * in braces. */
typedef struct cpu_case {
  /* The test may change members such as imm and flags. Each run sets the
   * operands. */
  kiln__cpu_insn in;
  const char *opcode;
  uint8_t d, d2, a, b, c, e;
  /* number of bytes per element of vec, and number of elements */
  uint8_t vec, n_vec;
  bool vec_written;
  /* bit k is set if element k of vec is discarded with `_` */
  uint8_t vec_sinks;
  /* In loads and stores of one element, insn.vec is d or the last source. */
  bool vec_is_operand;
  /* true to test few masks and aliases, for variants of a tested case */
  bool brief;
  /* compares results; NULL means that they must be equal bit by bit */
  cpu_same *same;
  /* Prepares the warp before each run: memory, local_at, grid and so on. May be
   * NULL. */
  void (*prepare)(kiln__cpu_warp *w, void *user);
  void *user;
} cpu_case;

/* Formats the k-th opcode that the pattern of a row matches as "row opcode",
 * and returns the number of such opcodes. If the loader inserts a row itself,
 * the row has one opcode, which is its pattern. */
size_t cpu_row_opcode(kiln__cpu_op op, size_t k, char *buf, size_t size);

/* The builds of the handlers that this CPU supports. There is at least one
 * build. */
extern const kiln__cpu_isa *cpu_isas[3];
/* Determines the elements of cpu_isas and returns their number. */
unsigned cpu_isas_find(void);

/* Finds the row of ops.def that `opcode` matches, and sets the instruction's
 * members and operands. If no row matches, cpu_case_init() fails the test and
 * cpu_case_find() returns false. If several rows match, a name such as in
 * "mov_pack mov.b32" selects one. Optional operands are included. To omit an
 * optional operand, a test sets its size to 0. */
void cpu_case_init(cpu_case *c, const char *opcode);
bool cpu_case_find(cpu_case *c, const char *opcode);

/* The source register that a result overwrites. The result is d, or d2 in the
 * enumerators that contain _D2_. */
typedef enum cpu_alias {
  CPU_ALIAS_NONE = 0,
  CPU_ALIAS_D_A,
  CPU_ALIAS_D_B,
  CPU_ALIAS_D_C,
  CPU_ALIAS_D_E,
  CPU_ALIAS_D2_A,
  CPU_ALIAS_D2_B,
  CPU_ALIAS_VEC_A, /* the result vec[0] overwrites source a */
  CPU_ALIAS_D_VEC, /* the result d overwrites source vec[0] */
  CPU_N_ALIASES
} cpu_alias;

/* Runs the handler once on 32 lanes. `in` contains the values of the lanes
 * before the run, and `out` receives the values after the run. Fails the test
 * if the handler changed anything else. Returns false if the operands do not
 * allow `alias`. */
bool cpu_case_run(const cpu_case *c, const kiln__cpu_isa *isa,
                  const cpu_lane in[KILN__WARP], uint32_t mask, cpu_alias alias,
                  cpu_lane out[KILN__WARP]);

/* Runs the handler on all `n` lanes and compares the results with the
 * reference. `n` need not be a multiple of 32. */
void cpu_case_check(cpu_case *c, const cpu_lane *lanes, size_t n,
                    cpu_reference *reference);

/* Records which rows of ops.def cpu_case_run() has run, in all tests of this
 * program and in forked children. A test program calls cpu_seen_init() before
 * its tests start. */
void cpu_seen_init(void);
bool cpu_seen(kiln__cpu_op op);

/* ---- Operands ------------------------------------------------------------ */

/* Returns the i-th test value of a type, which may be a packed type. The first
 * values are interesting bit patterns, and random values follow. The value is
 * truncated to the width of the type. */
uint64_t cpu_value(kiln__cpu_ptx_type type, size_t i, uint64_t *seed);
size_t cpu_n_edges(kiln__cpu_ptx_type type);

/* Creates lanes with all pairs of edge values of a and b. The values of c, e,
 * carry, d and d2 vary. `n_random` random lanes follow. The caller frees the
 * result. */
cpu_lane *cpu_lanes_make(const cpu_case *c, kiln__cpu_ptx_type a,
                         kiln__cpu_ptx_type b, kiln__cpu_ptx_type cc,
                         size_t n_random, size_t *n);

#endif
