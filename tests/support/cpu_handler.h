/* cpu_handler.h -- run one handler of the CPU device on made-up registers, in
 * every build of exec/ that this processor can run, and compare with a
 * reference.
 *
 * A test names the instruction as in PTX. The loader's matcher finds its row,
 * and the row's operand column gives the shape:
 *
 *   cpu_case c;
 *   cpu_case_init(&c, "add.sat.s32");
 *   cpu_case_check(&c, lanes, n, add_sat);       // n tuples of sources
 *
 * The check runs full warps, partial masks, and results written over each
 * source; the whole frame is compared, so that stray writes are seen too. */
#ifndef KILN_TEST_CPU_HANDLER_H
#define KILN_TEST_CPU_HANDLER_H

#include "support.h"

#include "cpu/exec/isa.h"

enum { CPU_MAX_VEC = 8 };

/* What one lane reads and writes, as bits. A predicate is 0 or 1 here. */
typedef struct cpu_lane {
  uint64_t a, b, c, e;
  uint64_t vec[CPU_MAX_VEC]; /* insn.vec, read or written */
  uint64_t d, d2;            /* before the call: what is overwritten */
  uint32_t carry;            /* 0 or 1 */
} cpu_lane;

/* Computes one lane's results from its sources: d, d2, carry, or vec if it is
 * written. It may read in->imm, flags and the like, but not in->op. */
typedef void cpu_reference(const kiln__cpu_insn *in, cpu_lane *lane);
/* Whether `got` is acceptable where the reference computed `want`, for results
 * that are not determined to the bit. */
typedef bool cpu_same(const kiln__cpu_insn *in, const cpu_lane *source,
                      const cpu_lane *got, const cpu_lane *want);

/* The shape of a row: bytes of each operand's register, 1 for a predicate, 2,
 * 4, 8; 0: there is none (slot -1). The `{...}` forms are left to the test. */
typedef struct cpu_case {
  kiln__cpu_insn
      in; /* imm, flags and the like may be changed; slots are not set
                    here but in each run */
  const char *opcode;
  uint8_t d, d2, a, b, c, e;
  uint8_t vec, n_vec; /* bytes of each, and how many */
  bool vec_written;
  uint8_t vec_sinks;   /* bit k: vec[k] is `_` */
  bool vec_is_operand; /* ld and the like without .v2: insn.vec is d, or the
                          last source */
  bool brief;     /* few masks and aliases: a variant of what was checked */
  cpu_same *same; /* NULL: to the bit */
  /* Called on the warp before each run: memory, local_at, grid, ...; may be
   * NULL. */
  void (*prepare)(kiln__cpu_warp *w, void *user);
  void *user;
} cpu_case;

/* Writes the k-th opcode that a row's pattern matches, as "row opcode", and
 * returns how many there are. A row that code/ makes itself has one, the text
 * of its pattern. */
size_t cpu_row_opcode(kiln__cpu_op op, size_t k, char *buf, size_t size);

/* The builds of exec/ that this processor runs; at least one. */
extern const kiln__cpu_isa *cpu_isas[3];
unsigned cpu_isas_find(void); /* fills cpu_isas, returns how many */

/* Finds the row that `opcode` matches and sets the fields of the instruction
 * and the shape. cpu_case_init() fails the test if there is none. Where several
 * rows match, "mov_pack mov.b32" names one. Optional operands are part of the
 * shape; set their bytes to 0 to omit them. */
void cpu_case_init(cpu_case *c, const char *opcode);
bool cpu_case_find(cpu_case *c, const char *opcode);

/* Which source register d shares its slot with; of ..._D2_..., d2. */
typedef enum cpu_alias {
  CPU_ALIAS_NONE = 0,
  CPU_ALIAS_D_A,
  CPU_ALIAS_D_B,
  CPU_ALIAS_D_C,
  CPU_ALIAS_D_E,
  CPU_ALIAS_D2_A,
  CPU_ALIAS_D2_B,
  CPU_ALIAS_VEC_A, /* vec[0], written, is a */
  CPU_ALIAS_D_VEC, /* d is vec[0], read */
  CPU_N_ALIASES
} cpu_alias;

/* Runs the handler once: 32 lanes in, their state afterwards out. Fails the
 * test if anything else in the frame changed. False: `alias` does not suit the
 * shape. */
bool cpu_case_run(const cpu_case *c, const kiln__cpu_isa *isa,
                  const cpu_lane in[KILN__WARP], uint32_t mask, cpu_alias alias,
                  cpu_lane out[KILN__WARP]);

/* Runs all of `lanes`, whatever their number, and compares. The last warp is
 * filled up. */
void cpu_case_check(cpu_case *c, const cpu_lane *lanes, size_t n,
                    cpu_reference *reference);

/* Rows that cpu_case_run() has run, in all tests of this program and in forked
 * children. Call cpu_seen_init() before the tests start. */
void cpu_seen_init(void);
bool cpu_seen(kiln__cpu_op op);

/* ---- Operands ------------------------------------------------------------ */

/* Returns the i-th value of a type, packed types included: first interesting
 * bit patterns, then random ones, cut to the width of the type. */
uint64_t cpu_value(kiln__cpu_ptx_type type, size_t i, uint64_t *seed);
size_t cpu_n_edges(kiln__cpu_ptx_type type);

/* Makes lanes with the cross product of the edges of a and b, while c, e,
 * carry, d and d2 vary, then `n_random` random ones. The caller frees the
 * result. */
cpu_lane *cpu_lanes_make(const cpu_case *c, kiln__cpu_ptx_type a,
                         kiln__cpu_ptx_type b, kiln__cpu_ptx_type cc,
                         size_t n_random, size_t *n);

#endif
