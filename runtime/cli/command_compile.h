/* command_compile.h -- compiling several programs at once, and the report on
 * them. `compile` and `pack` share the first, `compile` uses the second. */
#ifndef KILN_CLI_COMPILE_H
#define KILN_CLI_COMPILE_H

#include "cli/commands.h"

/* One program for one target. */
typedef struct cli_unit {
  const kiln_program_desc *desc; /* its on_log is replaced */
  const char *label;
  kiln_target target;
  kiln_status status;
  kiln_image *image; /* NULL if it failed */
  char *log;         /* the complete log, or NULL */
} cli_unit;

/* Compile all in parallel. Progress, failures and compiler messages go to stderr.
 * Each unit gets its status and image; kiln__cli_free_units() frees them.
 * @return CLI_OK, or CLI_FAILED if any failed */
int kiln__cli_compile_units(cli *c, cli_unit *units, size_t n);
void kiln__cli_free_units(cli_unit *units, size_t n);

/* Print registers, spills, memory and occupancy of each kernel for each target, as
 * tables; or return them as JSON. Units that failed are left out. */
void kiln__cli_print_units(cli *c, const cli_unit *units, size_t n);
cJSON *kiln__cli_units_json(cli *c, const cli_unit *units, size_t n);

#endif
