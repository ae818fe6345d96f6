/* command_run.h -- `kiln run` and `kiln check`: what to launch, from words. */
#ifndef KILN_CLI_RUN_H
#define KILN_CLI_RUN_H

#include "tool/cli.h"

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
  bool typed; /* else the kernel's parameter decides how wide it is */
  bool array; /* `n` elements with this start: */
  uint64_t n;
  const char *init; /* "zero", "none", "ramp", "random", "@FILE", a number */
  const char *save; /* file to write it to afterwards, or NULL */
  unsigned char value[8];
  size_t size; /* of the argument as launched */
  unsigned char *host, *before;
  CUdeviceptr device;
} run_arg;

/* One launch. */
typedef struct run_spec {
  const char *kernel; /* NULL: the only one */
  kiln_dim3 grid, block;
  uint32_t shared;
  bool cooperative;
  run_arg args[RUN_MOST_ARGS];
  unsigned n_args;
} run_spec;

extern const char kiln__cli_run_help[];

/* Take --kernel, --grid, --block, --shared, --cooperative, --arg, --save from
 * a list of words, whole. @return CLI_OK or CLI_USAGE, having said why. */
int kiln__cli_run_words(cli *c, run_spec *spec, int argc, char **argv);
/* True: this option was one of those, with *rc as its result. */
bool kiln__cli_run_option(cli *c, run_spec *spec, int opt, const char *arg,
                          int *rc);

#define RUN_OPTIONS                                                            \
  {"kernel", required_argument, NULL, 'k'},                                    \
      {"grid", required_argument, NULL, 'g'},                                  \
      {"block", required_argument, NULL, 'b'},                                 \
      {"shared", required_argument, NULL, 's'},                                \
      {"cooperative", no_argument, NULL, 'C'},                                 \
      {"arg", required_argument, NULL, 'a'},                                   \
  {                                                                            \
    "save", required_argument, NULL, 'S'                                       \
  }

/* Arrays in device memory, filled; numbers in the widths that the kernel
 * wants. @return CLI_OK or CLI_FAILED. */
int kiln__cli_run_prepare(cli *c, kiln_device *device, run_spec *spec,
                          const kiln_kernel_info *info);
/* Arrays back to the host, shown and saved. */
int kiln__cli_run_show(cli *c, kiln_device *device, run_spec *spec,
                       unsigned elements);
void kiln__cli_run_release(kiln_device *device, run_spec *spec);

/* ---- counters.c ---------------------------------------------------------- */

/* Print what the CPU device counted, and its lines beside the source; and write
 * it to a file, unless `json` is NULL. */
int kiln__cli_counters(cli *c, const char *json);

#endif
