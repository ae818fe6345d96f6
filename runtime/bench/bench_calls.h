/* bench_calls.h -- the interface between the files of `kiln bench calls`:
 * the table of calls (bench_calls_table.c), their bare launches
 * (bench_calls_bare.c) and the measurement (bench_calls.c). */
#ifndef KILN_BENCH_BENCH_CALLS_H
#define KILN_BENCH_BENCH_CALLS_H

#include "bench/bench.h"

/* Device memory that the measured calls use. The memory belongs to the primary
 * context, so streams of every runtime can use the memory. */
typedef struct calls_data {
  uint64_t n; /* number of elements, a multiple of 16 */
  /* n pseudo-random u32 values, none of which is NaN as f32 */
  CUdeviceptr keys;
  CUdeviceptr small;  /* n values of type u32 below 256 */
  CUdeviceptr places; /* n values of type u32 below n */
  /* n values of type u32 in non-decreasing order, in runs of 16 */
  CUdeviceptr sorted;
  /* n / 16 + 1 offsets of type u32, for segments of 16 elements */
  CUdeviceptr offsets;
  CUdeviceptr out[3]; /* outputs of 8 * n bytes each */
  /* Outputs of 256 KiB each, for results of few elements. */
  CUdeviceptr one[2];
  /* If it is not 0, the texts of the calls end in a comment with this number, so
   * that no cache has them. */
  unsigned unseen;
  cli *c;            /* owns the changed texts */
  unsigned *n_texts; /* counts the texts of a call if `unseen` is not 0 */
} calls_data;

/* Function that makes one call on the stream. If `bytes` is not NULL, the
 * function only reports the size of the workspace that the call needs. */
typedef kiln_status (*calls_fn)(kiln_stream *stream, const calls_data *d,
                                const kiln_workspace *workspace, size_t *bytes);

typedef struct calls_case {
  const char *label; /* name of the call; NULL ends the table */
  calls_fn call;
} calls_case;

extern const calls_case kiln__bench_calls_table[];

/* The bare launches of one call: direct calls of cuLaunchKernel and
 * cuMemsetD32Async. The kernels have the same grid, block and parameters as the
 * kernels of the call, but an empty body. */
typedef struct calls_bare calls_bare;

/* Opens the driver library for bare launches. Returns NULL having set *why
 * if there is no libcuda, as on the CPU device inside this command. */
calls_bare *kiln__bench_bare_open(cli *c, kiln_stream *stream,
                                  const char **why);
/* Records which kernels a call launches. The call is captured into a graph,
 * which is read and destroyed. `fills` is the number of fills of
 * device memory (cuMemsetD32Async) that the call makes outside a capture. */
kiln_status kiln__bench_bare_record(calls_bare *b, const calls_case *call,
                                    const calls_data *d, size_t fills);
/* Launches all recorded kernels and fills once.
 * @return false if a launch failed */
bool kiln__bench_bare_fire(const calls_bare *b);
/* Makes the device's context current, as in a program that manages its own
 * context, or makes no context current. Does nothing if `b` is NULL. */
void kiln__bench_bare_current(const calls_bare *b, bool current);
void kiln__bench_bare_close(calls_bare *b);

#endif
