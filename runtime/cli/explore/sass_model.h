/* sass_model.h -- the model of an image's machine code that `kiln explore` and
 * `kiln diff` show: instructions with their control words and live registers,
 * basic blocks, loops, issue slots and spills.
 *
 *   image --nvdisasm--> text --sass_parse.c--> instructions
 *         --line table--------sass_lines.c---> chain and PTX line of each
 *   instructions --sass_flow.c--> blocks, loops --sass_slots.c--> mix, slots
 *
 * One run of nvdisasm serves all kernels of an image. All memory comes from
 * kiln__cli_alloc(), so nothing is freed and only the main thread may call the
 * functions. Indices start at 0, lines and columns at 1; -1 means "none". */
#ifndef KILN_EXPLORE_SASS_MODEL_H
#define KILN_EXPLORE_SASS_MODEL_H

#include "cli/commands.h"

/* Kinds of registers that nvdisasm counts, in the order of its columns. */
enum {
  SASS_GENERAL,
  SASS_PREDICATE,
  SASS_UNIFORM,
  SASS_UNIFORM_PREDICATE,
  SASS_N_REGISTERS
};

/* The scheduling fields of an instruction, which the assembler sets. An
 * instruction with a variable latency (a load, for example) signals a barrier
 * when its result is written, or when its operands have been read. An
 * instruction that depends on it waits for the barrier. */
typedef struct sass_control {
  uint8_t stall; /* cycles until the warp may issue its next instruction */
  bool yield;    /* the scheduler should prefer another warp next */
  int8_t
      write_barrier;   /* barrier signalled when the result is written, or -1 */
  int8_t read_barrier; /* barrier signalled when the operands are read, or -1 */
  uint8_t wait_mask;   /* barriers to wait for before issue, one bit each */
  uint8_t reuse; /* operands kept in the reuse cache: bit 0 is operand A */
} sass_control;

typedef struct sass_instruction {
  const char *text;   /* "@!P0 IADD3 R26, P0, R8, -0x1, RZ", without ";" */
  const char *label;  /* label before the instruction, or NULL */
  uint64_t low, high; /* the 128-bit encoding */
  sass_control control;
  uint16_t live[SASS_N_REGISTERS]; /* live registers; see has_live below */
  /* Index of the instruction that a branch, BSSY or CALL names, or -1. */
  int32_t target;
  int32_t chain; /* index into sass_model.chains, or -1 */
  int32_t ptx;   /* line of the image's PTX, or -1 */
} sass_instruction;

/* A label of a function. */
typedef struct sass_label {
  const char *name;
  uint32_t at; /* index of the instruction that follows */
} sass_label;

/* A basic block. The first block is the entry. */
typedef struct sass_block {
  uint32_t first, n; /* instructions */
  const uint32_t *successors;
  uint32_t n_successors;
} sass_block;

/* Number of instructions with the same opcode. */
typedef struct sass_mix {
  const char *opcode; /* "FFMA": the opcode without modifiers */
  uint32_t n;
} sass_mix;

/* The opcodes of some instructions, the most frequent first, and the number of
 * cycles for which they occupy a scheduler. */
typedef struct sass_cost {
  const sass_mix *mix;
  uint32_t n_mix;
  uint32_t instructions;
  /* Least number of cycles in which one scheduler can issue the instructions
   * for one warp, if only throughput limits it: the number of instructions, or
   * the cycles of the busiest pipe if those are more. */
  double slots;
  const char *limit; /* "issue", or the name of the busiest pipe: "FMA" */
} sass_cost;

/* A natural loop. Loops with the same header are one loop. */
typedef struct sass_loop {
  uint32_t header;        /* block that dominates the loop */
  uint32_t first, last;   /* first and last instruction in address order */
  uint32_t depth;         /* 1 for an outermost loop */
  int32_t parent;         /* index of the enclosing loop, or -1 */
  const uint32_t *blocks; /* blocks of the loop, ascending */
  uint32_t n_blocks;
  /* Costs of one iteration, without the inner loops. All branches of the loop
   * count, even if an iteration does not take them. */
  sass_cost cost;
  int32_t chain; /* source line of the header, as a chain, or -1 */
} sass_loop;

/* Spills that one source line causes, in bytes per thread. */
typedef struct sass_spill {
  int32_t chain; /* or -1 if the line is not known */
  uint32_t store_bytes, load_bytes;
} sass_spill;

typedef struct sass_kernel {
  const char *name;  /* lowered name */
  int32_t resources; /* index for kiln_image_resources(), or -1 */
  const sass_instruction *code;
  uint32_t n;
  /* Number of instructions without the padding at the end, which nothing
   * reaches. Costs and comparisons count only these. */
  uint32_t used;
  uint32_t step;            /* bytes per instruction: 16 */
  const sass_label *labels; /* sorted by name */
  uint32_t n_labels;
  /* Whether live[] is filled. nvdisasm cannot analyse the machine code of some
   * older compilers. */
  bool has_live;
  uint16_t most_live[SASS_N_REGISTERS]; /* maximum of live[] */
  const sass_block *blocks;
  uint32_t n_blocks;
  const sass_loop *loops; /* outer loops before their inner loops */
  uint32_t n_loops;
  const sass_spill *spills; /* the largest first */
  uint32_t n_spills;
  sass_cost cost; /* code[0] to code[used - 1], each once */
} sass_kernel;

/* A source line and the call that inlined it: a kiln_place, with an index of
 * the same value. */
typedef struct sass_chain {
  int32_t file;   /* index into sass_model.files */
  int32_t line;   /* line of the file */
  int32_t parent; /* chain of the call, or -1 for the user's outermost line */
} sass_chain;

typedef struct sass_model {
  int cc; /* compute capability of the image: 90 */
  const char *const *files;
  uint32_t n_files;
  const sass_chain *chains; /* empty if the image has no line tables */
  uint32_t n_chains;
  const int32_t *ptx_chains; /* chain of each line of the PTX, or -1 */
  uint32_t n_ptx;
  const sass_kernel *kernels; /* kernels and functions in address order */
  uint32_t n_kernels;
} sass_model;

/* Makes the model of an image. @return the model, or NULL if no machine code can
 * be shown; *why is then one sentence that gives the reason, and *next is the
 * next step, or NULL if there is none. Prints nothing. */
const sass_model *kiln__sass_model(cli *c, const kiln_image *image,
                                   const char **why, const char **next);

/* ---- sass_parse.c: the text of nvdisasm ---------------------------------- */

/* Parses the output of `nvdisasm -c -hex`, with or without "-plr -lrm count".
 * Fills name, code, n, step, has_live and most_live of each kernel.
 * @return NULL, or a sentence that says what is wrong with the text */
const char *kiln__sass_parse(cli *c, const char *text, sass_kernel **kernels,
                             uint32_t *n);

/* Returns the instruction at a label, whose name has n bytes, or -1. */
int32_t kiln__sass_label(const sass_kernel *kernel, const char *name, size_t n);

/* ---- sass_control.c ------------------------------------------------------ */

/* Extracts the scheduling fields from the upper half of an encoding, for
 * compute capability 7.0 and later. */
sass_control kiln__sass_control(uint64_t high);

/* Returns the opcode of an instruction's text, and its length with modifiers in
 * *n: "IMAD.MOV.U32" and 12. *plain is the length without modifiers: 4. */
const char *kiln__sass_opcode(const char *text, size_t *n, size_t *plain);

/* ---- sass_flow.c: blocks and loops --------------------------------------- */

/* Divides the code of a kernel into basic blocks and finds its natural loops. */
void kiln__sass_flow(cli *c, sass_kernel *kernel);

/* ---- sass_slots.c: throughput -------------------------------------------- */

/* Computes the cost of the instructions which[0] to which[n - 1], or of the
 * first n instructions if `which` is NULL. */
sass_cost kiln__sass_cost(cli *c, int cc, const sass_instruction *code,
                          const uint32_t *which, uint32_t n);

#endif
