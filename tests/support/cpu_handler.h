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

/* What one lane reads and writes, as bits. Predicates are 0 or 1 here. */
typedef struct cpu_lane {
  uint64_t a, b, c, e;
  uint64_t vec[CPU_MAX_VEC]; /* insn.vec, read or written */
  uint64_t d, d2;            /* before the call: what is overwritten */
  uint32_t carry;            /* 0 or 1 */
} cpu_lane;

/* Turns one lane's sources into its results: d, d2, carry, or vec if written.
 * Sees in->imm, flags, ... but must not look at in->op. */
typedef void cpu_reference(const kiln__cpu_insn *in, cpu_lane *lane);
/* Whether `got` will do where `want` is the reference's; for results that are
 * not determined to the bit. */
typedef bool cpu_same(const kiln__cpu_insn *in, const cpu_lane *source,
                      const cpu_lane *got, const cpu_lane *want);

/* Shape: bytes of each operand's register: 1 predicate, 2, 4, 8, or 0: there is
 * none (slot -1). From ops.def; the `{...}` forms are left to the test. */
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

/* The k-th of all opcodes that a row's pattern matches, as "row opcode", and how
 * many there are. Rows that code/ makes itself have one: their text. */
size_t cpu_row_opcode(kiln__cpu_op op, size_t k, char *buf, size_t size);

/* The builds of exec/ that run here; at least one. */
extern const kiln__cpu_isa *cpu_isas[3];
unsigned cpu_isas_find(void); /* fills cpu_isas, returns how many */

/* Find the row that `opcode` matches and set the instruction's fields and the
 * shape. Fails the test if no row matches, unless the second form is used.
 * Where several rows match, "mov_pack mov.b32" names one. Operands that may be
 * left out are there; set their bytes to 0 to leave them out. */
void cpu_case_init(cpu_case *c, const char *opcode);
bool cpu_case_find(cpu_case *c, const char *opcode);

/* Which source register d (or, for `d2`, d2) shares its slot with. */
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

/* Run once: 32 lanes in, what they are afterwards out. Fails the test if
 * anything else of the frame changed. False: `alias` does not fit the shape. */
bool cpu_case_run(const cpu_case *c, const kiln__cpu_isa *isa,
                  const cpu_lane in[KILN__WARP], uint32_t mask, cpu_alias alias,
                  cpu_lane out[KILN__WARP]);

/* Run all of `lanes` (any number; the last warp is filled up) and compare. */
void cpu_case_check(cpu_case *c, const cpu_lane *lanes, size_t n,
                    cpu_reference *reference);

/* Rows that cpu_case_run has run, over all tests of this program, forked
 * children included. Call before the tests start, so in the suite's maker. */
void cpu_seen_init(void);
bool cpu_seen(kiln__cpu_op op);

/* ---- Operands -------------------------------------------------------------- */

/* Interesting bit patterns of a type (also f16x2 and the like), random ones
 * after those, all cut to the type's width: the i-th of `type`. */
uint64_t cpu_value(kiln__cpu_ptx_type type, size_t i, uint64_t *seed);
size_t cpu_n_edges(kiln__cpu_ptx_type type);

/* Fill lanes with the cross product of the edges of a and b (c, e, carry, d and
 * d2 vary with them), then `n_random` random ones. Returns malloc'd lanes. */
cpu_lane *cpu_lanes_make(const cpu_case *c, kiln__cpu_ptx_type a,
                         kiln__cpu_ptx_type b, kiln__cpu_ptx_type cc,
                         size_t n_random, size_t *n);

#endif
