/* sweep.h -- `kiln sweep`: a kernel over a grid of settings.
 *
 *   axes (sweep_axis.c)  ->  settings  ->  compiled in parallel, run in turn
 *   (sweep_run.c; sweep_restart.c after a broken GPU context)
 *                        ->  rows      ->  table, CSV, JSON (sweep_report.c),
 *                                          pictures (sweep_figures.c) */
#ifndef KILN_CLI_SWEEP_H
#define KILN_CLI_SWEEP_H

#include "cli/command_compile.h"
#include "cli/command_run.h"
#include "tool/plot/plot.h"

#include <signal.h>

enum {
  SWEEP_MOST_AXES = 12,
  SWEEP_MOST_VALUES = 1024, /* values of one axis */
  SWEEP_MOST_SETTINGS = 20000
};

/* What an axis changes. */
typedef enum sweep_kind {
  SWEEP_BLOCK,
  SWEEP_GRID,
  SWEEP_MAXREG,
  SWEEP_SMEM,
  SWEEP_DEFINE
} sweep_kind;

/* One axis: the values that one parameter takes. */
typedef struct sweep_axis {
  sweep_kind kind;
  const char *name;    /* "block", or the name of the macro */
  const char **values; /* as text: "32", "16x16", "float" */
  size_t n;
} sweep_axis;

/* The result of one setting. */
typedef struct sweep_row {
  size_t at[SWEEP_MOST_AXES]; /* index of the value on each axis */
  kiln_dim3 grid, block;
  size_t dynamic; /* dynamic shared memory per block in bytes */
  int max_registers;
  size_t program; /* index of the compiled program */
  bool resources_known, ran, timed, counted;
  kiln_resources resources; /* the name is copied */
  int blocks_per_sm;
  double occupancy;    /* 0 to 1 */
  double ms;           /* median time of a launch, if `timed` */
  double instructions; /* per warp, if `counted` */
  uint64_t result;     /* hash of all arrays after the first launch */
  bool differs;        /* from the first row with these macros */
  bool restored;       /* measured before the process was restarted */
  const char *reason;  /* why the setting failed, or NULL */
} sweep_row;

/* One program: the defines and the register limit of a setting. */
typedef struct sweep_program {
  kiln_program_desc desc;
  kiln_image *image;  /* machine code, or NULL */
  const char *reason; /* why it did not compile, or NULL */
} sweep_program;

typedef struct sweep {
  cli *c;
  cli_program program;
  run_spec spec;
  sweep_axis axes[SWEEP_MOST_AXES];
  size_t n_axes;
  uint64_t items; /* elements that the grid covers; 0 if --grid gives it */
  const char *per_thread;  /* macro with the elements per thread, or NULL */
  const char *block_macro; /* macro with the threads per block, or NULL */
  unsigned repeats;
  bool only_compile;  /* nothing is launched */
  kiln_target target; /* target of the resource columns */
  kiln_traits traits; /* of that target */
  sweep_row *rows;
  size_t n_rows, n_done; /* `n_done` rows are filled in */
  sweep_program *programs;
  size_t n_programs;
  const char *device_name; /* name of the device that ran the settings */
} sweep;

/* Becomes 1 when the user interrupts the sweep. */
extern volatile sig_atomic_t kiln__sweep_interrupted;

/* ---- sweep_axis.c ------------------------------------------------------- */

/* Parses a list "32,64" with ranges "32..1024" (doubled from value to value,
 * and the end) or "16..64:8" (by steps of 8). @return CLI_OK or CLI_USAGE */
int kiln__sweep_values(cli *c, const char *option, const char *text,
                       sweep_axis *out);
/* Turns the defines of the program that have several values into axes, and finds
 * the one whose value is "@block". @return CLI_OK or CLI_USAGE */
int kiln__sweep_defines(sweep *s);
/* Makes one row per combination of values. @return CLI_OK or CLI_USAGE */
int kiln__sweep_rows(sweep *s);
/* Returns the value of an axis in a row as a number, or NaN. */
double kiln__sweep_number(const sweep *s, const sweep_row *row, size_t axis);
/* Returns whether the compiler sees the values of an axis. */
bool kiln__sweep_compiled(const sweep *s, size_t axis);
/* Returns whether an axis has several values. */
bool kiln__sweep_varies(const sweep *s, size_t axis);

/* ---- sweep_run.c -------------------------------------------------------- */

/* Compiles and runs every setting, until the user interrupts. @return CLI_OK,
 * or CLI_FAILED having reported why nothing could be measured */
int kiln__sweep_run(sweep *s);
void kiln__sweep_free(sweep *s);

/* ---- sweep_restart.c ---------------------------------------------------- */

/* Fills in the rows that were done before a restart, and marks them as restored.
 */
void kiln__sweep_restore(sweep *s);
/* Starts the process again and continues behind the first n_done rows. Returns
 * only if that is impossible. */
void kiln__sweep_restart(const sweep *s);

/* ---- sweep_report.c ----------------------------------------------------- */

void kiln__sweep_print(const sweep *s);
int kiln__sweep_csv(const sweep *s, const char *path);
cJSON *kiln__sweep_json(const sweep *s);
/* Returns what the sweep measures per setting: milliseconds, instructions per
 * warp, or NaN if the setting has neither. */
double kiln__sweep_measure(const sweep_row *row);
/* Returns the best row: the least time, the fewest instructions, or the highest
 * occupancy. NULL if no setting succeeded. */
const sweep_row *kiln__sweep_best(const sweep *s);

/* ---- sweep_figures.c ---------------------------------------------------- */

/* Returns the pictures of a sweep: a heat map over the first two axes that vary,
 * and curves of time, occupancy, registers and spills over the first. NULL if
 * no axis of numbers varies. */
const plot_figure *kiln__sweep_figure(const sweep *s);

#endif
