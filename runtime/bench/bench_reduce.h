/* bench_reduce.h -- the interface between the files of `kiln bench reduce`,
 * which times the lectures' steps to a fast reduction, the library's
 * reduction, and CUB. */
#ifndef KILN_BENCH_BENCH_REDUCE_H
#define KILN_BENCH_BENCH_REDUCE_H

#include "bench/bench.h"

/* ---- bench_reduce_host.c: the input, and sums on the CPU --------------- */

/* Fills x with uniform random numbers from [24, 60). The running sum of 2^28
 * such numbers exceeds 2^30. From there on, adding one of the numbers to a
 * float changes nothing. */
void kiln__bench_input(float *x, uint64_t n, unsigned threads);
/* Returns the sum in double precision. */
double kiln__bench_sum_f64(const float *x, uint64_t n, unsigned threads);
/* Returns the sum in several float accumulators, as fast as this CPU allows. */
double kiln__bench_sum_f32(const float *x, uint64_t n, unsigned threads);
/* Returns the sum in one float accumulator from left to right, as one GPU
 * thread computes the sum. */
float kiln__bench_sum_naive(const float *x, uint64_t n);
/* Returns the median time in milliseconds of kiln__bench_sum_f32(). */
double kiln__bench_cpu_ms(const float *x, uint64_t n, unsigned threads,
                          unsigned repeats);

/* ---- bench_reduce_gpu.c: kernels and their times ------------------------ */

/* CUB's reduction in the peers' library. If temp is NULL, the function only
 * sets *temp_bytes.
 * @return a CUDA error code, 0 for success */
typedef int (*bench_peer_fn)(const float *x, size_t n, float *out, void *temp,
                             size_t *temp_bytes, void *stream);

/* One kernel of the reduction ladder (see samples/README.md). */
typedef struct bench_rung {
  const char *builtin;
  const char *label;
  unsigned block; /* number of threads per block */
  /* Number of elements per thread; 0 means that one block adds all elements. */
  unsigned elements;
  bool in_place; /* true if the step overwrites its input */
} bench_rung;

/* The parameters with which the library's reduction is specialised and
 * launched. */
typedef struct bench_tuning {
  unsigned block; /* value of the macro KILN_BLOCK */
  unsigned items; /* value of the macro KILN_ITEMS */
  /* Value of the macro KILN_THREADS, the number of resident threads per SM. */
  unsigned threads;
  unsigned even;    /* value of the macro KILN_EVEN */
  unsigned keep;    /* value of the macro KILN_KEEP */
  unsigned small;   /* value of the macro KILN_SMALL */
  unsigned results; /* value of the macro KILN_RESULTS */
  /* Minimum number of 16-byte vectors per thread, which limits the grid. */
  unsigned vectors;
} bench_tuning;

/* The steps, in order. A NULL builtin ends each table. */
extern const bench_rung kiln__bench_big[];   /* steps for 2^28 elements */
extern const bench_rung kiln__bench_small[]; /* steps for 2^20 elements */

/* Returns the best parameters for n elements on an H200. */
bench_tuning kiln__bench_tuned(uint64_t n);
/* Returns parameters for the same launch with the program's defaults, which
 * spill registers on no GPU. */
bench_tuning kiln__bench_safe(const bench_tuning *tuning);

/* The defines of a program as text. The pointers in `at` point into `text`. */
typedef struct bench_defines {
  char text[7][32];
  const char *at[7];
} bench_defines;
kiln_program_desc kiln__bench_desc_rung(bench_defines *d,
                                        const bench_rung *rung);
kiln_program_desc kiln__bench_desc_tuned(bench_defines *d,
                                         const bench_tuning *tuning);

/* A GPU with the input in device memory. */
typedef struct bench_gpu {
  bench_rig rig;
  uint64_t n;            /* number of elements of the input */
  CUdeviceptr input;     /* input of n floats */
  CUdeviceptr copy;      /* copy of the input for in-place steps */
  uint64_t copy_n;       /* number of floats in the copy */
  CUdeviceptr workspace; /* workspace of the library's reduction */
  CUdeviceptr result;    /* result, one float */
  CUdeviceptr other;     /* data that evicts the input from the L2 cache */
  size_t other_bytes;
  CUdeviceptr temp; /* temporary storage of the peer */
  size_t temp_bytes;
  unsigned repeats;
  /* Number of programs so far that were compiled, and that came from the
   * cache. */
  unsigned compiled, cached;
} bench_gpu;

kiln_status kiln__bench_gpu_open(bench_gpu *g, cli *c, int ordinal,
                                 const float *host, uint64_t n,
                                 uint64_t copy_n);
void kiln__bench_gpu_close(bench_gpu *g);

/* The state of the device when a run starts. */
typedef enum bench_state {
  /* The GPU is idle. The L2 cache holds what the preceding run left there.
   * The host's part of a launch counts. */
  BENCH_IDLE = 0,
  /* A busy kernel runs, which hides the host's part of a launch. */
  BENCH_QUEUED,
  BENCH_COLD, /* the GPU is idle; the L2 cache holds other data */
  BENCH_STATES
} bench_state;

/* One measurement: of a step, of the library, or of the peer. */
typedef struct bench_shot {
  const bench_rung *rung;     /* step, or NULL */
  const bench_tuning *tuning; /* parameters of the library, or NULL */
  /* Peer, if there is neither a step nor parameters */
  bench_peer_fn peer;
  kiln_module *module;
  kiln_kernel *kernel;
  uint64_t n;
  unsigned grid;           /* number of blocks of the last launch */
  unsigned counted;        /* number of repeats that `ms` is the median of */
  double ms[BENCH_STATES]; /* median times in milliseconds; 0 means not timed */
  float value;             /* result of the last run */
} bench_shot;

/* Loads the program of a measurement. The peer needs no program. */
kiln_status kiln__bench_load(bench_gpu *g, bench_shot *shot);
void kiln__bench_unload(bench_shot *shot);

/* Times the shots in turns, so that a drift of the clock affects all of
 * them. The shots are timed in the idle state, and if `all` is true, in the
 * other states, too. */
kiln_status kiln__bench_time(bench_gpu *g, bench_shot *shots, size_t n_shots,
                             bool all);

#endif
