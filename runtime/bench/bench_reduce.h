/* bench_reduce.h -- `kiln bench reduce`: the lectures' steps to a fast reduction,
 * the library's reduction, and CUB beside it. */
#ifndef KILN_BENCH_BENCH_REDUCE_H
#define KILN_BENCH_BENCH_REDUCE_H

#include "bench/bench.h"

/* ---- bench_reduce_host.c: input and the CPU's own sums ------------------ */

/* Fill x with uniform numbers from [24, 60). The running sum of 2^28 of them exceeds
 * 2^30; from there on adding one of them to a float changes nothing. */
void kiln__bench_input(float *x, uint64_t n, unsigned threads);
/* The sum in double precision. */
double kiln__bench_sum_f64(const float *x, uint64_t n, unsigned threads);
/* The sum in several float accumulators, as fast as this CPU allows. */
double kiln__bench_sum_f32(const float *x, uint64_t n, unsigned threads);
/* One float accumulator from left to right: what one GPU thread computes. */
float kiln__bench_sum_naive(const float *x, uint64_t n);
/* Median milliseconds of kiln__bench_sum_f32. */
double kiln__bench_cpu_ms(const float *x, uint64_t n, unsigned threads,
                          unsigned repeats);

/* ---- bench_reduce_gpu.c: kernels and their times ------------------------ */

/* CUB's reduction in the peers' library. With temp NULL it only sets *temp_bytes.
 * @return a CUDA error code, 0 for success */
typedef int (*bench_peer_fn)(const float *x, size_t n, float *out, void *temp,
                             size_t *temp_bytes, void *stream);

/* A step of the ladder. */
typedef struct bench_rung {
  const char *builtin;
  const char *label;
  unsigned block;    /* threads per block */
  unsigned elements; /* per thread; 0: one block adds all of them */
  bool in_place;     /* overwrites its input */
} bench_rung;

/* How the library's reduction is specialised and launched. */
typedef struct bench_tuning {
  unsigned block;   /* KILN_BLOCK */
  unsigned items;   /* KILN_ITEMS */
  unsigned threads; /* KILN_THREADS: resident per SM */
  unsigned even;    /* KILN_EVEN */
  unsigned keep;    /* KILN_KEEP */
  unsigned small;   /* KILN_SMALL */
  unsigned results; /* KILN_RESULTS */
  unsigned vectors; /* fewest of 16 bytes per thread: limits the grid */
} bench_tuning;

/* The steps, in order; ends in a NULL builtin. */
extern const bench_rung kiln__bench_big[];   /* 2^28 elements */
extern const bench_rung kiln__bench_small[]; /* 2^20 elements */

/* The best parameters for n elements on an H200. */
bench_tuning kiln__bench_tuned(uint64_t n);
/* The same with the program's defaults, which spill on no GPU. */
bench_tuning kiln__bench_safe(const bench_tuning *tuning);

/* Text of the defines for a program; `at` points into `text`. */
typedef struct bench_defines {
  char text[7][32];
  const char *at[7];
} bench_defines;
kiln_program_desc kiln__bench_desc_rung(bench_defines *d,
                                        const bench_rung *rung);
kiln_program_desc kiln__bench_desc_tuned(bench_defines *d,
                                         const bench_tuning *tuning);

/* A GPU with the input on it. */
typedef struct bench_gpu {
  bench_rig rig;
  uint64_t n;            /* elements of input */
  CUdeviceptr input;     /* n floats */
  CUdeviceptr copy;      /* for in-place steps */
  uint64_t copy_n;       /* its floats */
  CUdeviceptr workspace; /* of the library's reduction */
  CUdeviceptr result;    /* one float */
  CUdeviceptr other;     /* data that displaces the input from the
                            second-level cache */
  size_t other_bytes;
  CUdeviceptr temp; /* the peer's temporary storage */
  size_t temp_bytes;
  unsigned repeats;
  unsigned compiled, cached; /* programs so far, by origin */
} bench_gpu;

kiln_status kiln__bench_gpu_open(bench_gpu *g, cli *c, int ordinal,
                                 const float *host, uint64_t n,
                                 uint64_t copy_n);
void kiln__bench_gpu_close(bench_gpu *g);

/* What a run finds when it starts. */
typedef enum bench_state {
  BENCH_IDLE = 0, /* an idle GPU; the second-level cache holds what the run
                     before left there; the host's part of a launch counts */
  BENCH_QUEUED,   /* a busy kernel before it, which hides the host's part */
  BENCH_COLD,     /* an idle GPU; the second-level cache holds other data */
  BENCH_STATES
} bench_state;

/* One thing to time: a step, the library, or the peer. */
typedef struct bench_shot {
  const bench_rung *rung;     /* or NULL */
  const bench_tuning *tuning; /* or NULL */
  bench_peer_fn peer;         /* if neither */
  kiln_module *module;
  kiln_kernel *kernel;
  uint64_t n;
  unsigned grid;           /* blocks of the last launch */
  unsigned counted;        /* repeats behind ms */
  double ms[BENCH_STATES]; /* medians; 0: not timed */
  float value;             /* what the last run gave */
} bench_shot;

/* Load the program of a shot; nothing to do for the peer. */
kiln_status kiln__bench_load(bench_gpu *g, bench_shot *shot);
void kiln__bench_unload(bench_shot *shot);

/* Time the shots in turns, so that a drift of the clock meets all of them: in the
 * idle state, and in the others too if `all`. */
kiln_status kiln__bench_time(bench_gpu *g, bench_shot *shots, size_t n_shots,
                             bool all);

#endif
