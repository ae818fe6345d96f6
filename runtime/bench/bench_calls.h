/* bench_calls.h -- what the parts of `kiln bench calls` share: its table of calls
 * (bench_calls_table.c), their bare launches (bench_calls_bare.c) and the
 * measurement (bench_calls.c). */
#ifndef KILN_BENCH_BENCH_CALLS_H
#define KILN_BENCH_BENCH_CALLS_H

#include "bench/bench.h"

/* Device memory that the calls work with, of the primary context: whichever
 * runtime's stream they run in. */
typedef struct calls_data {
  uint64_t n;          /* elements, a multiple of 16 */
  CUdeviceptr keys;    /* n of u32, mixed; as f32 they are numbers */
  CUdeviceptr small;   /* n of u32 below 256 */
  CUdeviceptr places;  /* n of u32 below n */
  CUdeviceptr sorted;  /* n of u32, ascending: runs of 16 */
  CUdeviceptr offsets; /* n / 16 + 1 of u32: segments of 16 */
  CUdeviceptr out[3];  /* 8 * n bytes each */
  CUdeviceptr one[2];  /* 256 KiB each: results of few elements */
} calls_data;

/* Make the call on the stream. With `bytes` not NULL, only report the size of the
 * workspace that it needs. */
typedef kiln_status (*calls_fn)(kiln_stream *stream, const calls_data *d,
                                const kiln_workspace *workspace, size_t *bytes);

typedef struct calls_case {
  const char *label; /* NULL ends the table */
  calls_fn call;
} calls_case;

extern const calls_case kiln__bench_calls_table[];

/* The launches of one call by bare cuLaunchKernel and cuMemsetD32Async: kernels of
 * the same grid, block and parameters that do nothing. */
typedef struct calls_bare calls_bare;

/* NULL having set *why if there is no libcuda to call, as on the CPU device inside
 * this command. */
calls_bare *kiln__bench_bare_open(cli *c, kiln_stream *stream,
                                  const char **why);
/* Find out what the call launches: it is captured into a graph, which is read and
 * destroyed. `fills` is the number of fills of a call that is not captured and
 * has memory of the stream. */
kiln_status kiln__bench_bare_record(calls_bare *b, const calls_case *call,
                                    const calls_data *d, size_t fills);
/* Launch all of them once. @return false if a launch failed */
bool kiln__bench_bare_fire(const calls_bare *b);
/* Make the device's context current, as a caller with a context of its own has
 * it, or make none current. Does nothing for NULL. */
void kiln__bench_bare_current(const calls_bare *b, bool current);
void kiln__bench_bare_close(calls_bare *b);

#endif
