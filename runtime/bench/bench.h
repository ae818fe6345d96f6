/* bench.h -- the benchmarks of the command: the functions that cli/main.c
 * calls, and the functions that all benchmarks share. */
#ifndef KILN_BENCH_BENCH_H
#define KILN_BENCH_BENCH_H

#include "tool/measure.h"
#include "tool/options.h"

/* ---- Entry functions of type cli_command_fn ----------------------------- */

/* Runs `kiln bench`: calls the benchmark that argv[1] names. */
int kiln__cli_bench(cli *c, int argc, char **argv);
int kiln__cli_tune(cli *c, int argc, char **argv);
/* Runs the child process of `bench start`. It runs before the command sets up
 * anything, since the measured time counts from the start of the process.
 * argv[0] is the word after --child.
 * @return an exit code */
int kiln__cli_start_child(int argc, char **argv);

int kiln__bench_reduce(cli *c, int argc, char **argv);
int kiln__bench_calls(cli *c, int argc, char **argv);
int kiln__bench_launch(cli *c, int argc, char **argv);
int kiln__bench_start(cli *c, int argc, char **argv);
int kiln__bench_cpu(cli *c, int argc, char **argv);
int kiln__bench_passes(cli *c, int argc, char **argv);
int kiln__bench_gemm(cli *c, int argc, char **argv);
int kiln__bench_stencil(cli *c, int argc, char **argv);
int kiln__bench_julia(cli *c, int argc, char **argv);
int kiln__bench_nbody(cli *c, int argc, char **argv);
int kiln__bench_comm(cli *c, int argc, char **argv);

/* ---- Options, one struct for all benchmarks ----------------------------- */

enum {
  BENCH_MOST_REPEATS = 101,
  BENCH_WARM_UPS = 3 /* number of untimed runs before each timed run */
};

/* Each benchmark sets its own defaults, and lists the options that it
 * accepts in its option table. */
typedef struct bench_options {
  const char *json; /* file that receives all results as JSON, or NULL */
  const char *plot; /* file that receives a picture as SVG, or NULL */
  const char *html; /* file that receives a report, or NULL */
  /* Path of libkiln_peers.so, which holds the libraries that Kiln is compared
   * with. NULL means the file beside the command. */
  const char *peers;
  /* Substring of the labels of the cases to run; NULL means all. */
  const char *only;
  cli_sizes sizes;
  unsigned repeats; /* number of repeats, 1 to BENCH_MOST_REPEATS */
  unsigned random;  /* number of sizes and inputs to draw per case, or 0 */
  unsigned seed;    /* seed of these draws */
  int device;       /* ordinal of the device to measure */
} bench_options;

#define BENCH_OPTION_PICTURES(o)                                               \
  CLI_OPTION_TEXT("plot", "FILE", &(o)->plot,                                  \
                  "draw the results beside their peers as SVG"),               \
      CLI_OPTION_TEXT("html", "FILE", &(o)->html,                              \
                      "write a report: one page with pictures and tables")
#define BENCH_OPTION_OUTPUT(o)                                                 \
  CLI_OPTION_TEXT("json", "FILE", &(o)->json, "write every figure to FILE"),   \
      BENCH_OPTION_PICTURES(o)
#define BENCH_OPTION_DEVICE(o)                                                 \
  CLI_OPTION_NUMBER("device", &(o)->device, 0, 1023,                           \
                    "ordinal of the GPU to use; default 0")
#define BENCH_OPTION_ONLY(o, what)                                             \
  CLI_OPTION_TEXT("only", "TEXT", &(o)->only, what " that contains TEXT")
#define BENCH_OPTION_PEERS(o)                                                  \
  CLI_OPTION_TEXT("peers", "FILE", &(o)->peers,                                \
                  "shared object with the peers; default: libkiln_peers.so "   \
                  "beside this executable")

/* Returns the number of elements of the largest size. */
uint64_t kiln__bench_most(const cli_sizes *sizes);
/* Returns true if the label of a case contains the text of --only, or if --only
 * was not given. */
bool kiln__bench_chosen(const bench_options *o, const char *label);

/* ---- bench_plot.c: results as files ------------------------------------- */

/* Ends a benchmark with the exit code `rc`: draws and writes its results as the
 * options ask, and deletes `json`. The results of a benchmark that failed are not
 * drawn, and written only if there are any. @return an exit code */
int kiln__bench_end(cli *c, const bench_options *o, int rc, cJSON *json);
/* Runs `kiln bench draw`, which draws results from a file. */
int kiln__bench_draw(cli *c, int argc, char **argv);

/* ---- The device that is measured ---------------------------------------- */

/* A device with a stream, two timed events, and a busy kernel. The busy kernel
 * runs for about 100 us, which is longer than the host takes to queue a
 * call. */
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

/* Callback that queues the work to be timed on the benchmark's stream. */
typedef kiln_status (*bench_fire_fn)(void *user);

kiln_status kiln__bench_rig_open(bench_rig *rig, cli *c, int ordinal);
void kiln__bench_rig_close(bench_rig *rig);
/* Adds the name of the device to a document, and the peak rate of its memory if
 * the driver reports clock and bus. */
void kiln__bench_rig_json(const bench_rig *rig, cJSON *json);
/* Queues the busy kernel. The time of work that is queued after it does not
 * include the host's time for queueing. */
kiln_status kiln__bench_rig_delay(bench_rig *rig);
/* Measures the milliseconds between two events around the work that the
 * callback `fire` queues. Blocks until the work has finished. */
kiln_status kiln__bench_rig_time(bench_rig *rig, bench_fire_fn fire, void *user,
                                 double *ms);

/* ---- Kernels and inputs that several benchmarks use --------------------- */

/* Source text of a kernel saxpy(a, x, y, n). */
extern const char kiln__bench_saxpy[];

/* The kinds of inputs that `kiln bench ops --random` draws: name, and the
 * function of bench_inputs.c that computes element v. */
#define BENCH_INPUTS(X)                                                        \
  X(UNIFORM, "uniform", "mixed")                                               \
  X(ZIPF, "Zipf", "zipf_of")                                                   \
  X(FEW, "few values", "few_of")                                               \
  X(NEARLY_SORTED, "nearly sorted", "near_of")

typedef enum bench_input_kind {
#define BENCH_INPUT_KIND(id, name, function) BENCH_##id,
  BENCH_INPUTS(BENCH_INPUT_KIND)
#undef BENCH_INPUT_KIND
      BENCH_INPUT_KINDS
} bench_input_kind;

/* What hash() returns in the expressions of kiln__bench_fill(). {0} means 64 well
 * mixed bits of the index. */
typedef struct bench_input {
  bench_input_kind kind;
  uint64_t seed;
} bench_input;

const char *kiln__bench_input_name(bench_input_kind kind);

/* Fills n elements by a kiln_map() whose expression `expr` is a function of the
 * index i and of n. The expression may call these functions of an index:
 *   hash(i)  a number of the given input; NULL means 64 well mixed bits
 *   zipf(i)  a number that occurs as often as Zipf's law says: the k-th frequent
 *            number occurs 1/k times as often as the most frequent one
 *   near(i)  i plus a number below 64: nearly sorted */
kiln_status kiln__bench_fill_input(kiln_stream *stream, CUdeviceptr to,
                                   kiln_dtype type, uint64_t n,
                                   const char *expr, const bench_input *input);
static inline kiln_status kiln__bench_fill(kiln_stream *stream, CUdeviceptr to,
                                           kiln_dtype type, uint64_t n,
                                           const char *expr)
{
  return kiln__bench_fill_input(stream, to, type, n, expr, NULL);
}

/* The resources of a compiled program's first kernel, and the occupancy of an
 * SM with blocks of that kernel. */
typedef struct bench_resources {
  kiln_resources kernel;
  kiln_occupancy_result occupancy;
  size_t cubin_bytes;
  /* True if the image was compiled, false if it came from the cache. */
  bool from_compiler;
} bench_resources;

kiln_status kiln__bench_resources(bench_resources *out, const cli *c,
                                  const kiln_program_desc *desc,
                                  const kiln_target *target, unsigned block);

/* ---- Entry points of a shared object ------------------------------------ */

typedef struct bench_symbol {
  const char *name;
  /* Address of the function pointer that receives the function's address. */
  void *slot;
} bench_symbol;

/* Loads a shared object and stores the addresses of all functions of a
 * NULL-terminated list. The shared object stays loaded, since a CUDA runtime in
 * it registers exit handlers.
 * @return the shared object, or NULL having set *why if the object or a
 *        function is missing */
void *kiln__bench_symbols(const char *path, const bench_symbol *list,
                          const char **why);
/* Works like kiln__bench_symbols() with the driver library that the runtime
 * uses. Returns NULL for the CPU device inside this command, which has no
 * driver library. */
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

/* Opens libkiln_peers.so, which holds the libraries that Kiln is compared with:
 * CUB, Thrust and cuBLAS. Only a machine with nvcc can build this shared
 * object, and the command itself links no CUDA library. The libraries use the
 * primary context of GPU `ordinal`, as Kiln does.
 * @return the shared object, or NULL having set *why */
void *kiln__bench_peers(cli *c, const char *path, int ordinal,
                        const char **why);

#endif
