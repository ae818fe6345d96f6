/* bench_reduce.h -- the interface between the files of `kiln bench reduce`,
 * which times the lectures' kernels from a slow to a fast reduction, Kiln's
 * reduction, and CUB's reduction. */
#ifndef KILN_BENCH_BENCH_REDUCE_H
#define KILN_BENCH_BENCH_REDUCE_H

#include "bench/bench.h"

/* ---- bench_reduce_host.c: the input, and sums on the CPU --------------- */

/* Fills x with uniform random numbers from [24, 60). The running sum of 2^28
 * such numbers exceeds 2^30. Beyond 2^30, adding one of the numbers to a float
 * changes nothing. */
void kiln__bench_input(float *x, uint64_t n, unsigned threads);
/* Returns the sum of n floats in double precision. */
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

/* CUB's reduction, a function of libkiln_peers.so. If `temp` is NULL, the
 * function only sets *temp_bytes.
 * @return a CUDA error code, 0 for success */
typedef int (*bench_peer_fn)(const float *x, size_t n, float *out, void *temp,
                             size_t *temp_bytes, void *stream);

/* One of the lectures' reduction kernels (see samples/README.md). */
typedef struct bench_rung {
  const char *builtin;
  const char *label;
  unsigned block; /* number of threads per block */
  /* Number of elements per thread; 0 means that one block adds all elements. */
  unsigned elements;
  bool in_place; /* true if the kernel overwrites its input */
} bench_rung;

/* The parameters with which Kiln's reduction is specialised and launched. */
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

/* The lectures' reduction kernels, in order. A NULL builtin ends each table. */
extern const bench_rung kiln__bench_big[];   /* kernels for 2^28 elements */
extern const bench_rung kiln__bench_small[]; /* kernels for 2^20 elements */

/* Returns the best tuning parameters for n elements on an H200. */
bench_tuning kiln__bench_tuned(uint64_t n);
/* Returns tuning parameters for the same launch with the program's defaults,
 * which spill registers on no GPU. */
bench_tuning kiln__bench_safe(const bench_tuning *tuning);

/* The macro definitions of a program as text. The pointers in `at` point into
 * `text`. */
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
  CUdeviceptr copy;      /* copy of the input for kernels that overwrite it */
  uint64_t copy_n;       /* number of floats in the copy */
  CUdeviceptr workspace; /* workspace of Kiln's reduction */
  CUdeviceptr result;    /* device memory for the result, one float */
  CUdeviceptr other;     /* data that evicts the input from the L2 cache */
  size_t other_bytes;
  CUdeviceptr temp; /* temporary storage of CUB's reduction */
  size_t temp_bytes;
  unsigned repeats;
  /* Number of programs that were compiled so far, and number of programs that
   * came from the cache. */
  unsigned compiled, cached;
} bench_gpu;

kiln_status kiln__bench_gpu_open(bench_gpu *g, cli *c, int ordinal,
                                 const float *host, uint64_t n,
                                 uint64_t copy_n);
void kiln__bench_gpu_close(bench_gpu *g);

/* The state of the device when a timed run starts. */
typedef enum bench_state {
  /* The GPU is idle. The L2 cache holds the data that the preceding run left in
   * it. The host's time for a launch counts. */
  BENCH_IDLE = 0,
  /* The GPU executes a busy kernel, which hides the host's time for a
   * launch. */
  BENCH_QUEUED,
  BENCH_COLD, /* the GPU is idle; the L2 cache holds other data */
  BENCH_STATES
} bench_state;

/* One measurement: of a lecture's kernel, of Kiln's reduction, or of CUB's
 * reduction. */
typedef struct bench_shot {
  const bench_rung *rung; /* kernel of the lectures, or NULL */
  /* Tuning parameters of Kiln's reduction, or NULL. */
  const bench_tuning *tuning;
  /* CUB's reduction; used if the two preceding members are NULL */
  bench_peer_fn peer;
  kiln_module *module;
  kiln_kernel *kernel;
  uint64_t n;
  unsigned grid; /* number of blocks of the last launch */
  /* Number of repeats from which the median is computed. */
  unsigned counted;
  double ms[BENCH_STATES]; /* median times in milliseconds; 0 means not timed */
  float value;             /* result of the last run */
} bench_shot;

/* Compiles and loads the program of a measurement. CUB's reduction needs no
 * program. */
kiln_status kiln__bench_load(bench_gpu *g, bench_shot *shot);
void kiln__bench_unload(bench_shot *shot);

/* Times several measurements alternately, so that a drift of the clock rate
 * affects all of them. They are timed in the idle state and, if `all` is true,
 * also in the other states. */
kiln_status kiln__bench_time(bench_gpu *g, bench_shot *shots, size_t n_shots,
                             bool all);

#endif
