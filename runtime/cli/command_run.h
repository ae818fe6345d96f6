/* command_run.h -- the kernel launches that `kiln run` and `kiln check` read
 * from the command line. */
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

/* One kernel argument, which is a number or an array in device memory. */
typedef struct run_arg {
  const char *text; /* argument as the user wrote it */
  run_type type;
  /* True if the user gave the type. Otherwise the argument is as wide as the
   * kernel's parameter. */
  bool typed;
  /* For a number: RUN_RANK and RUN_RANKS stand for the rank's number and the number
   * of ranks. */
  enum { RUN_VALUE = 0, RUN_RANK, RUN_RANKS } stands_for;
  /* True if the argument is an array of `n` elements with the initial
   * contents `init`. */
  bool array;
  uint64_t n;
  /* Initial contents: "zero", "none", "ramp", "random", "@FILE" or a number. */
  const char *init;
  /* File to which the array is written after the launch, or NULL. */
  const char *save;
  unsigned char value[8];
  size_t size; /* size in bytes of the launched argument */
  /* Elements of an array, and a copy from before the launch. */
  unsigned char *host, *before;
  CUdeviceptr device;
} run_arg;

/* One launch. */
typedef struct run_spec {
  const char *kernel; /* name of the kernel; NULL means the only kernel */
  /* Grid and block dimensions; {0} means not given, which is 1. */
  kiln_dim3 grid, block;
  uint32_t shared; /* bytes of dynamic shared memory per block */
  bool cooperative;
  run_arg args[RUN_MOST_ARGS];
  unsigned n_args;
  /* The rank that launches, and the number of ranks; 0 and 0 without ranks. The
   * arrays are then this rank's blocks: ramps continue from rank to rank. */
  unsigned rank, ranks;
} run_spec;

/* Returns the options that describe a launch, as a table for a cli_syntax:
 * --kernel, --grid, --block, --shared, --cooperative, --arg and --save. */
const cli_option *kiln__cli_run_options(cli *c, run_spec *spec);

/* Fills the device memory of the arrays, and converts numbers to the width
 * of the kernel's parameters. @return CLI_OK; CLI_FAILED or CLI_USAGE having
 * reported why */
int kiln__cli_run_prepare(cli *c, kiln_device *device, run_spec *spec,
                          const kiln_kernel_info *info);
/* Copies the arrays back, prints the first `elements` elements of each
 * array, and saves the arrays that have --save. @return an exit code */
int kiln__cli_run_show(cli *c, kiln_device *device, run_spec *spec,
                       unsigned elements);
/* Returns the size of an array argument in bytes. */
size_t kiln__cli_run_bytes(const run_arg *a);
void kiln__cli_run_release(kiln_device *device, run_spec *spec);

/* Writes the array arguments that have --save to FILE.RANK instead of FILE. */
void kiln__cli_run_save_per_rank(cli *c, run_spec *spec);
/* Returns the device memory and the type of an array argument. */
kiln_array kiln__cli_run_array(const run_arg *a);

/* ---- run_ranks.c -------------------------------------------------------- */

/* How `kiln run --ranks` launches. */
typedef struct run_group {
  unsigned ranks;      /* 0: as many as mpirun has started */
  const char *combine; /* operation of --combine, or NULL */
  bool nccl;
  unsigned repeats, print;
} run_group;

/* Returns the number of the operation that --combine names, or -1. */
int kiln__cli_run_operation(const char *name);
/* Launches `spec` on all ranks of a group at once, and prints the arrays of each
 * rank. @return an exit code */
int kiln__cli_run_ranks(cli *c, const cli_program *program,
                        const run_spec *spec, const run_group *group);

/* ---- command_run.c ------------------------------------------------------ */

enum { RUN_MOST_REPEATS = 101 };

/* Returns the lowered name of the kernel that the user named, or of the only kernel
 * if `wanted` is NULL. Returns NULL having reported the available kernels. */
const char *kiln__cli_find_kernel(cli *c, const kiln_module *module,
                                  const char *wanted);

/* Launches a kernel `repeats` times, at most RUN_MOST_REPEATS, and measures the
 * median time of a launch in milliseconds, between events. */
kiln_status kiln__cli_run_timed(kiln_device *device, kiln_kernel *kernel,
                                const run_spec *spec, unsigned repeats,
                                double *ms);

/* Launches what `spec` describes, or if it is empty what comments in the source
 * describe, and prints nothing. Appends an object per launch to `launches`.
 * The program must be open.
 *
 * counting: true to run on the CPU device with counters and all checks, which
 * the caller takes; false to measure the time of the launches.
 * @return an exit code */
int kiln__cli_run_recorded(cli *c, const cli_program *program,
                           const run_spec *spec, bool counting,
                           cJSON *launches);

#endif
