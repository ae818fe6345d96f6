/* command_run.h -- what `kiln run` and `kiln check` launch, as words of the command
 * line describe it. */
#ifndef KILN_CLI_RUN_H
#define KILN_CLI_RUN_H

#include "cli/commands.h"

enum { RUN_MOST_ARGS = 64 };

typedef enum run_type {
  RUN_I8,
  RUN_U8,
  RUN_I16,
  RUN_U16,
  RUN_I32,
  RUN_U32,
  RUN_I64,
  RUN_U64,
  RUN_F32,
  RUN_F64,
  RUN_N_TYPES
} run_type;

/* One kernel argument: a number, or an array in device memory. */
typedef struct run_arg {
  const char *text; /* as written */
  run_type type;
  bool typed; /* otherwise as wide as the kernel's parameter */
  bool array; /* `n` elements with this start: */
  uint64_t n;
  const char *init; /* "zero", "none", "ramp", "random", "@FILE", a number */
  const char *save; /* file to write it to afterwards, or NULL */
  unsigned char value[8];
  size_t size;                  /* of the argument as launched */
  unsigned char *host, *before; /* an array's elements, and before the launch */
  CUdeviceptr device;
} run_arg;

/* One launch. */
typedef struct run_spec {
  const char *kernel;    /* NULL: the only one */
  kiln_dim3 grid, block; /* {0}: not given, one */
  uint32_t shared;       /* bytes of dynamic shared memory per block */
  bool cooperative;
  run_arg args[RUN_MOST_ARGS];
  unsigned n_args;
} run_spec;

/* The options that describe a launch, as a table for a cli_syntax: --kernel,
 * --grid, --block, --shared, --cooperative, --arg, --save. */
const cli_option *kiln__cli_run_options(cli *c, run_spec *spec);

/* Fill device memory of the arrays, and give numbers the width of the kernel's
 * parameters. @return CLI_OK, CLI_FAILED or CLI_USAGE having reported why */
int kiln__cli_run_prepare(cli *c, kiln_device *device, run_spec *spec,
                          const kiln_kernel_info *info);
/* Copy the arrays back, print the first `elements` of each, and save those with
 * --save. @return an exit code */
int kiln__cli_run_show(cli *c, kiln_device *device, run_spec *spec,
                       unsigned elements);
void kiln__cli_run_release(kiln_device *device, run_spec *spec);

#endif
