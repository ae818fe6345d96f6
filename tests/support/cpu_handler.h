/* cpu_handler.h -- runs one handler of the CPU device on synthetic register
 * values, in every build of exec/ that this CPU supports, and compares the
 * results with a reference.
 *
 * A test names the instruction as in PTX. The loader's matcher finds its row,
 * and the operand column of the row determines the shape:
 *
 *   cpu_case c;
 *   cpu_case_init(&c, "add.sat.s32");
 *   cpu_case_check(&c, lanes, n, add_sat);       // n tuples of sources
 *
 * The check covers full warps, partial masks, and results that overwrite each
 * source register. It compares the whole frame, so it also finds stray writes.
 */
#ifndef KILN_TEST_CPU_HANDLER_H
#define KILN_TEST_CPU_HANDLER_H

#include "support.h"

#include "cpu/exec/isa.h"

enum { CPU_MAX_VEC = 8 };

/* The source and result values of one lane as bit patterns. A predicate is 0 or
 * 1. */
typedef struct cpu_lane {
  uint64_t a, b, c, e;
  uint64_t vec[CPU_MAX_VEC]; /* values of insn.vec, sources or results */
  /* Results; before the call, the values that are overwritten. */
  uint64_t d, d2;
  uint32_t carry; /* carry flag, 0 or 1 */
  /* The instruction, for references; cpu_case_check() sets it. */
  const kiln__cpu_insn *in;
} cpu_lane;

/* Computes the results of one lane from its sources: d, d2 and carry, or vec if
 * the instruction writes it. The function may read fields of lane->in such as
 * imm and flags, but not lane->in->op. */
typedef void cpu_reference(cpu_lane *lane);
/* Returns whether the result `got` is acceptable if the reference computed
 * `want`. It is used for results that are not specified bit by bit. */
typedef bool cpu_same(const kiln__cpu_insn *in, const cpu_lane *source,
                      const cpu_lane *got, const cpu_lane *want);

/* The shape of a row. The members d, d2, a, b, c and e are the sizes of the
 * operand registers: 1 for a predicate, or 2, 4 or 8 bytes. A size of 0 means
 * that there is no such operand (slot -1). The test itself must describe
 * `{...}` operands. */
typedef struct cpu_case {
  /* The test may change fields such as imm and flags. Each run sets the
   * slots. */
  kiln__cpu_insn in;
  const char *opcode;
  uint8_t d, d2, a, b, c, e;
  uint8_t vec, n_vec; /* bytes per element of vec, and number of elements */
  bool vec_written;
  uint8_t vec_sinks; /* bit k is set if vec[k] is `_` */
  /* Loads and stores without .v2: insn.vec is d, or the last source. */
  bool vec_is_operand;
  bool brief; /* runs few masks and aliases, for variants of a checked case */
  cpu_same *same; /* comparison of results; NULL means bit by bit */
  /* Called on the warp before each run, to set memory, local_at, grid and so
   * on. May be NULL. */
  void (*prepare)(kiln__cpu_warp *w, void *user);
  void *user;
} cpu_case;

/* Formats the k-th opcode that the pattern of a row matches as "row opcode",
 * and returns the number of such opcodes. A row that code/ inserts has one
 * opcode, which is its pattern. */
size_t cpu_row_opcode(kiln__cpu_op op, size_t k, char *buf, size_t size);

/* The builds of exec/ that this CPU supports. There is at least one. */
extern const kiln__cpu_isa *cpu_isas[3];
/* Fills cpu_isas and returns the number of its elements. */
unsigned cpu_isas_find(void);

/* Finds the row that `opcode` matches and sets the instruction fields and the
 * shape. If no row matches, cpu_case_init() fails the test and cpu_case_find()
 * returns false. If several rows match, "mov_pack mov.b32" selects a row by
 * name. Optional operands are part of the shape. A test omits an optional
 * operand by setting its size to 0. */
void cpu_case_init(cpu_case *c, const char *opcode);
bool cpu_case_find(cpu_case *c, const char *opcode);

/* The source register whose slot the result d shares. In the _D2_ enumerators,
 * the result is d2. */
typedef enum cpu_alias {
  CPU_ALIAS_NONE = 0,
  CPU_ALIAS_D_A,
  CPU_ALIAS_D_B,
  CPU_ALIAS_D_C,
  CPU_ALIAS_D_E,
  CPU_ALIAS_D2_A,
  CPU_ALIAS_D2_B,
  CPU_ALIAS_VEC_A, /* the result vec[0] shares the slot of a */
  CPU_ALIAS_D_VEC, /* d shares the slot of the source vec[0] */
  CPU_N_ALIASES
} cpu_alias;

/* Runs the handler once on 32 lanes. `in` holds the state of the lanes before
 * the run, and `out` receives the state afterwards. Fails the test if anything
 * else in the frame changed. Returns false if `alias` is not possible for the
 * shape. */
bool cpu_case_run(const cpu_case *c, const kiln__cpu_isa *isa,
                  const cpu_lane in[KILN__WARP], uint32_t mask, cpu_alias alias,
                  cpu_lane out[KILN__WARP]);

/* Runs the handler on all `n` lanes and compares the results with the
 * reference. `n` need not be a multiple of 32. */
void cpu_case_check(cpu_case *c, const cpu_lane *lanes, size_t n,
                    cpu_reference *reference);

/* A record of the rows that cpu_case_run() has run, in all tests of this
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

/* Creates lanes with the cross product of the edge values of a and b, while c,
 * e, carry, d and d2 vary. `n_random` random lanes follow. The caller frees the
 * result. */
cpu_lane *cpu_lanes_make(const cpu_case *c, kiln__cpu_ptx_type a,
                         kiln__cpu_ptx_type b, kiln__cpu_ptx_type cc,
                         size_t n_random, size_t *n);

#endif
