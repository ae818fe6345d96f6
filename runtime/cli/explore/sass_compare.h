/* sass_compare.h -- compares the machine code of two compiles of a kernel, line
 * by line, for `kiln diff` and for the page of `kiln explore`. */
#ifndef KILN_EXPLORE_SASS_COMPARE_H
#define KILN_EXPLORE_SASS_COMPARE_H

#include "cli/explore/sass_model.h"

/* One compile of a kernel. */
typedef struct sass_side {
  const sass_model *model;
  const sass_kernel *kernel;
  const kiln_image *image;
} sass_side;

/* An opcode whose number differs, with modifiers: "LDS.128". */
typedef struct sass_change {
  const char *opcode;
  uint32_t n[2]; /* instructions of A and of B */
} sass_change;

/* A source line, with the instructions that come from it. Inlined code belongs
 * to the line of the outermost call. */
typedef struct sass_row {
  const char *file; /* of A, or of B if A has no such line; NULL: no line */
  int32_t line[2];  /* line in A and in B, or -1 */
  int32_t chain[2]; /* the line as an outermost chain of each model, or -1 */
  sass_cost cost[2];
  uint16_t live[2];   /* most general registers live at its instructions */
  uint32_t spills[2]; /* bytes per thread that spills store and load */
  /* Number of instructions of the longest common sequence of opcodes. */
  uint32_t common;
  const sass_change *changes; /* the greatest difference first */
  uint32_t n_changes;
} sass_row;

/* A loop, or two loops that correspond. */
typedef struct sass_loop_pair {
  /* Place of the first instruction, which may be in an inlined function. The
   * file is NULL and the lines are -1 where it is not known. */
  const char *file;
  int32_t line[2];
  const sass_loop *loop[2]; /* NULL: only the other side has the loop */
} sass_loop_pair;

typedef struct sass_comparison {
  const sass_row *rows; /* the greatest difference first */
  uint32_t n_rows;      /* includes the lines without a difference */
  uint32_t n_different; /* number of rows that differ, which come first */
  /* Loops in the order of A. Two loops correspond if they have the same source
   * line and depth; several such loops correspond in their order. */
  const sass_loop_pair *loops;
  uint32_t n_loops;
} sass_comparison;

/* Compares two compiles of a kernel. Lines of the same number of the same file
 * belong together, unless the texts of the files differ: then the lines that
 * both texts have in common do. */
const sass_comparison *kiln__sass_compare(cli *c, sass_side a, sass_side b);

/* Returns the kernel of `to` that corresponds to a kernel of another model: the
 * one with the same name, otherwise the only one with the same plain name. NULL
 * if there is none. */
const sass_kernel *kiln__sass_counterpart(cli *c, const sass_model *to,
                                          const sass_kernel *kernel);

/* ---- sass_align.c -------------------------------------------------------- */

/* Two sequences. equal(user, i, j) returns whether element i of the first equals
 * element j of the second. */
typedef struct sass_sequences {
  uint32_t n, m;
  bool (*equal)(const void *user, uint32_t i, uint32_t j);
  const void *user;
} sass_sequences;

/* Aligns two sequences. match[i] becomes the element of the second sequence that
 * corresponds to element i of the first, or -1. Matches ascend.
 * @return the number of matches */
uint32_t kiln__sass_align(const sass_sequences *s, int32_t *match);

#endif
