/* diff_report.h -- prints what `kiln diff` found. */
#ifndef KILN_EXPLORE_DIFF_REPORT_H
#define KILN_EXPLORE_DIFF_REPORT_H

#include "cli/explore/sass_compare.h"

/* The comparison of one kernel. */
typedef struct diff_kernel {
  const char *name;  /* plain name */
  sass_side side[2]; /* .kernel is NULL if a side has no such kernel */
  kiln_resources resources[2];  /* zero without a kernel */
  const sass_comparison *lines; /* NULL unless both sides have SASS */
} diff_kernel;

/* The whole comparison. */
typedef struct diff_result {
  const char *how[2]; /* program and options of each side */
  kiln_target target[2];
  int nvrtc[2]; /* version of NVRTC, or 0 */
  const diff_kernel *kernels;
  size_t n;
} diff_result;

/* Prints the result as tables. `most` limits the lines per kernel. */
void kiln__diff_print(cli *c, const diff_result *r, uint32_t most);
/* Returns the result as JSON, with all lines that differ, or with all lines. */
cJSON *kiln__diff_json(cli *c, const diff_result *r, bool all);

#endif
