/* bench.h -- the benchmarks' side of the command: what cli/main.c calls, and
 * what the benchmarks share. */
#ifndef KILN_BENCH_BENCH_H
#define KILN_BENCH_BENCH_H

#include "tool/measure.h"
#include "tool/options.h"

/* ---- Entries; see cli_command_fn ---------------------------------------- */

/* `kiln bench`: calls the benchmark that argv[1] names. */
int kiln__cli_bench(cli *c, int argc, char **argv);
int kiln__cli_tune(cli *c, int argc, char **argv);
/* The child process of `bench start`. It runs before the command sets up
 * anything, since its time counts from the start of the process.
 * argv[0] is the word behind --child. @return an exit code */
int kiln__cli_start_child(int argc, char **argv);

int kiln__bench_reduce(cli *c, int argc, char **argv);
int kiln__bench_calls(cli *c, int argc, char **argv);
int kiln__bench_launch(cli *c, int argc, char **argv);
int kiln__bench_start(cli *c, int argc, char **argv);
int kiln__bench_cpu(cli *c, int argc, char **argv);
int kiln__bench_passes(cli *c, int argc, char **argv);

/* ---- Options, one struct for all benchmarks ----------------------------- */

enum { BENCH_MOST_REPEATS = 101 };

/* Each benchmark sets its defaults, and names those that it takes in its table.
 */
typedef struct bench_options {
  const char *json; /* file for every figure, or NULL */
  const char *plot; /* file for a picture, or NULL */
  const char
      *peers;       /* shared object with the peers; NULL: beside the command */
  const char *only; /* part of the labels to run; NULL: all */
  cli_sizes sizes;
  unsigned repeats; /* 1 to BENCH_MOST_REPEATS */
  int device;       /* ordinal */
} bench_options;

#define BENCH_OPTION_JSON(o)                                                   \
  CLI_OPTION_TEXT("json", "FILE", &(o)->json, "write every figure to FILE")
#define BENCH_OPTION_DEVICE(o)                                                 \
  CLI_OPTION_NUMBER("device", &(o)->device, 0, 1023,                           \
                    "ordinal of the GPU to use; default 0")
#define BENCH_OPTION_ONLY(o, what)                                             \
  CLI_OPTION_TEXT("only", "TEXT", &(o)->only, what " that contains TEXT")
#define BENCH_OPTION_PEERS(o)                                                  \
  CLI_OPTION_TEXT("peers", "FILE", &(o)->peers,                                \
                  "shared object with the peers; default: libkiln_peers.so "   \
                  "beside this executable")

/* Elements at the largest of the sizes. */
uint64_t kiln__bench_most(const cli_sizes *sizes);
/* The label contains the text of --only, or --only was not given. */
bool kiln__bench_chosen(const bench_options *o, const char *label);

/* ---- The device that is measured ---------------------------------------- */

/* A device with a stream, a pair of timed events, and a kernel that keeps the
 * device busy for about 100 us: longer than the host takes to queue a call. */
typedef struct bench_rig {
  cli *c;
  kiln_device *device;
  kiln_device_info info;
  kiln_stream *stream;
  kiln_event *from, *to;
  kiln_module *slow_module;
  kiln_kernel *slow;
  CUdeviceptr slow_out;
} bench_rig;

/* Queues the work to be timed on the rig's stream. */
typedef kiln_status (*bench_fire_fn)(void *user);

kiln_status kiln__bench_rig_open(bench_rig *rig, cli *c, int ordinal);
void kiln__bench_rig_close(bench_rig *rig);
/* Queue the busy kernel, so that the host's part of the work queued behind it is
 * not in the time of that work. */
kiln_status kiln__bench_rig_delay(bench_rig *rig);
/* Milliseconds between two events around what `fire` queues; waits for them. */
kiln_status kiln__bench_rig_time(bench_rig *rig, bench_fire_fn fire, void *user,
                                 double *ms);

/* ---- Entry points of a shared object ------------------------------------ */

typedef struct bench_symbol {
  const char *name;
  void *slot; /* of a function pointer */
} bench_symbol;

/* Store the addresses of all functions of a NULL-ended list. The object stays
 * loaded: the CUDA runtime in a peer registers exit handlers.
 * @return the object; NULL having set *why if it or a function is missing */
void *kiln__bench_symbols(const char *path, const bench_symbol *list,
                          const char **why);
/* The same of the driver library that the runtime uses; NULL on the CPU device
 * inside this command, which is no library. */
void *kiln__bench_driver_symbols(cli *c, const bench_symbol *list,
                                 const char **why);
/* The address of one function, false if there is none. */
bool kiln__bench_symbol(void *object, const char *name, void *slot);

/* cuLaunchKernel and cuCtxSetCurrent, with the driver's own signatures: the
 * command includes no CUDA header. */
typedef int (*bench_launch_fn)(CUfunction, unsigned, unsigned, unsigned,
                               unsigned, unsigned, unsigned, unsigned, CUstream,
                               void **, void **);
typedef int (*bench_set_current_fn)(CUcontext);

/* The peers: CUB, Thrust and cuBLAS in a shared object that only a machine with
 * nvcc can build. The command itself links nothing of CUDA. They use the primary
 * context of GPU `ordinal`, as the library does.
 * @return the object, or NULL having set *why */
void *kiln__bench_peers(cli *c, const char *path, int ordinal,
                        const char **why);

#endif
