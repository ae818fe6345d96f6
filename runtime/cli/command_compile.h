/* command_compile.h -- compiles several programs in parallel and reports on
 * the results. `kiln compile` and `kiln pack` share the compilation; only
 * `kiln compile` uses the report. */
#ifndef KILN_CLI_COMPILE_H
#define KILN_CLI_COMPILE_H

#include "cli/commands.h"

/* One program for one target. */
typedef struct cli_unit {
  const kiln_program_desc *desc; /* program; the compilation replaces on_log */
  const char *label;
  kiln_target target;
  kiln_status status;
  kiln_image *image; /* result, or NULL if the compilation failed */
  char *log;         /* complete log, or NULL */
} cli_unit;

/* Compiles all units in parallel. Progress, failures and compiler messages go
 * to stderr. Each unit receives its status and image; kiln__cli_free_units()
 * frees the units.
 * @return CLI_OK, or CLI_FAILED if any unit failed */
int kiln__cli_compile_units(cli *c, cli_unit *units, size_t n);
void kiln__cli_free_units(cli_unit *units, size_t n);

/* Returns the name of a kernel to show to the user: the name that the user
 * requested with --name, or the plain name. */
const char *kiln__cli_kernel_name(cli *c, const cli_unit *unit,
                                  const char *lowered);

/* Prints registers, spills, memory and occupancy of each kernel for each
 * target, as tables or as JSON. Units that failed are left out. */
void kiln__cli_print_units(cli *c, const cli_unit *units, size_t n);
cJSON *kiln__cli_units_json(cli *c, const cli_unit *units, size_t n);

#endif
