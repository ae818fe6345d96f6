/* bench.h -- the benchmarks of the command: the functions that cli/main.c
 * calls, and the functions that all benchmarks share. */
#ifndef KILN_BENCH_BENCH_H
#define KILN_BENCH_BENCH_H

#include "tool/measure.h"
#include "tool/options.h"

/* ---- Entry functions; see cli_command_fn ------------------------------- */

/* Runs `kiln bench`: calls the benchmark that argv[1] names. */
int kiln__cli_bench(cli *c, int argc, char **argv);
int kiln__cli_tune(cli *c, int argc, char **argv);
/* Runs the child process of `bench start`. This happens before the command sets
 * up anything, since the measured time counts from the start of the process.
 * argv[0] is the word after --child.
 * @return an exit code */
int kiln__cli_start_child(int argc, char **argv);

int kiln__bench_reduce(cli *c, int argc, char **argv);
int kiln__bench_calls(cli *c, int argc, char **argv);
int kiln__bench_launch(cli *c, int argc, char **argv);
int kiln__bench_start(cli *c, int argc, char **argv);
int kiln__bench_cpu(cli *c, int argc, char **argv);
int kiln__bench_passes(cli *c, int argc, char **argv);

/* ---- Options, one struct for all benchmarks ----------------------------- */

enum { BENCH_MOST_REPEATS = 101 };

/* Each benchmark sets its own defaults, and lists the options that it
 * accepts in its option table. */
typedef struct bench_options {
  const char *json; /* file that receives every figure, or NULL */
  const char *plot; /* file that receives a plot, or NULL */
  /* Shared object with the peers; NULL means the object beside the command. */
  const char *peers;
  const char *only; /* substring of the labels to run; NULL means all labels */
  cli_sizes sizes;
  unsigned repeats; /* number of repeats, 1 to BENCH_MOST_REPEATS */
  int device;       /* ordinal of the device */
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

/* Returns the number of elements at the largest of the sizes. */
uint64_t kiln__bench_most(const cli_sizes *sizes);
/* Returns true if the label contains the text of --only, or if --only was
 * not given. */
bool kiln__bench_chosen(const bench_options *o, const char *label);

/* ---- The device that is measured ---------------------------------------- */

/* A device with a stream, a pair of timed events, and a busy kernel. The
 * busy kernel runs for about 100 us, which is longer than the host takes to
 * queue a call. */
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

/* Queues the work to be timed on the stream of the rig. */
typedef kiln_status (*bench_fire_fn)(void *user);

kiln_status kiln__bench_rig_open(bench_rig *rig, cli *c, int ordinal);
void kiln__bench_rig_close(bench_rig *rig);
/* Queues the busy kernel. Work that is queued after the busy kernel is then
 * timed without the host's part. */
kiln_status kiln__bench_rig_delay(bench_rig *rig);
/* Measures the milliseconds between two events around the work that `fire`
 * queues. Blocks until the work has finished. */
kiln_status kiln__bench_rig_time(bench_rig *rig, bench_fire_fn fire, void *user,
                                 double *ms);

/* ---- What several benchmarks run ---------------------------------------- */

/* The source of a kernel saxpy(a, x, y, n). */
extern const char kiln__bench_saxpy[];

/* Fills n elements from their index by a kiln_map. `expr` is an expression
 * over i and n that may call hash(i), which returns 64 well mixed bits. */
kiln_status kiln__bench_fill(kiln_stream *stream, CUdeviceptr to,
                             kiln_dtype type, uint64_t n, const char *expr);

/* The resources of a compiled program's first kernel, and the occupancy of an
 * SM with blocks of that kernel. */
typedef struct bench_resources {
  kiln_resources kernel;
  kiln_occupancy_result occupancy;
  size_t cubin_bytes;
  bool from_compiler; /* false if the image came from the cache */
} bench_resources;

kiln_status kiln__bench_resources(bench_resources *out, const cli *c,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target, unsigned block);

/* ---- Entry points of a shared object ------------------------------------ */

typedef struct bench_symbol {
  const char *name;
  void *slot; /* address of a function pointer that receives the function */
} bench_symbol;

/* Stores the addresses of all functions of a NULL-terminated list. The shared
 * object stays loaded, since the CUDA runtime in a peer registers exit
 * handlers.
 * @return the shared object, or NULL having set *why if the object or a
 *        function is missing */
void *kiln__bench_symbols(const char *path, const bench_symbol *list,
                          const char **why);
/* Stores addresses as kiln__bench_symbols() does, from the driver library
 * that the runtime uses. Returns NULL for the CPU device inside this
 * command, which has no driver library. */
void *kiln__bench_driver_symbols(cli *c, const bench_symbol *list,
                                 const char **why);
/* Stores the address of one function. Returns false if the function is
 * missing. */
bool kiln__bench_symbol(void *object, const char *name, void *slot);

/* cuLaunchKernel and cuCtxSetCurrent, with the driver's own signatures. The
 * command includes no CUDA header. */
typedef int (*bench_launch_fn)(CUfunction, unsigned, unsigned, unsigned,
                               unsigned, unsigned, unsigned, unsigned, CUstream,
                               void **, void **);
typedef int (*bench_set_current_fn)(CUcontext);

/* Opens the peers: CUB, Thrust and cuBLAS in a shared object that only a
 * machine with nvcc can build. The command itself links no CUDA library. The
 * peers use the primary context of GPU `ordinal`, as the library does.
 * @return the shared object, or NULL having set *why */
void *kiln__bench_peers(cli *c, const char *path, int ordinal,
                        const char **why);

#endif
