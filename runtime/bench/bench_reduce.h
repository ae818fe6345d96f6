/* bench_reduce.h -- `kiln bench reduce`: the lectures' reduction ladder (rows
 * A9 and C8), the library's reduction, and CUB beside it. */
#ifndef KILN_BENCH_REDUCE_H
#define KILN_BENCH_REDUCE_H

#include "tool/cli.h"

/* The command; argv[0] is its name. @return an exit code. */
int kiln__bench_reduce(cli *c, int argc, char **argv);

/* ---- bench_reduce_host.c: input and the CPU's own sums --------------------- */

/* Uniform in [24, 60), by all threads: the running sum of 2^28 of them passes
 * 2^30, where a float accumulator no longer notices any of them. */
void kiln__bench_fill(float *x, uint64_t n, unsigned threads);
/* The sum in double precision. */
double kiln__bench_sum_f64(const float *x, uint64_t n, unsigned threads);
/* The sum as a reduction in float lanes, as fast as this CPU goes. */
double kiln__bench_sum_f32(const float *x, uint64_t n, unsigned threads);
/* One float accumulator from left to right: what one GPU thread computes. */
float kiln__bench_sum_naive(const float *x, uint64_t n);
/* Median milliseconds of kiln__bench_sum_f32. */
double kiln__bench_cpu_ms(const float *x, uint64_t n, unsigned threads,
                          unsigned repeats);

/* ---- bench_reduce_peer.c: CUB from a shared object ------------------------- */

typedef struct bench_peer {
  void *library; /* NULL: there is none */
  int (*use_device)(int ordinal);
  int (*reduce_sum_f32)(const float *x, size_t n, float *out, void *temp,
                        size_t *temp_bytes, void *stream);
  char version[64];
  char place[512]; /* file, or why there is none */
} bench_peer;

/* `path`, or libkiln_peers.so beside this executable if path is NULL. False:
 * not there, and why in peer->place. */
bool kiln__bench_peer_open(bench_peer *peer, const char *path, int ordinal);
void kiln__bench_peer_close(bench_peer *peer);

/* ---- bench_reduce_gpu.c: kernels and their times --------------------------- */

/* A step of the ladder. */
typedef struct bench_rung {
  const char *builtin;
  const char *label;
  unsigned block;    /* threads a block */
  unsigned elements; /* a thread; 0: one block does it all */
  bool in_place;     /* destroys its input */
} bench_rung;

/* How the library's reduction is specialised and launched. */
typedef struct bench_tuning {
  unsigned block;   /* KILN_BLOCK */
  unsigned items;   /* KILN_ITEMS */
  unsigned threads; /* KILN_THREADS: resident on an SM */
  unsigned even;    /* KILN_EVEN */
  unsigned keep;    /* KILN_KEEP */
  unsigned small;   /* KILN_SMALL */
  unsigned letters; /* KILN_RESULTS */
  unsigned packs;   /* fewest 16-byte packs a thread, which limits the grid */
} bench_tuning;

/* The steps, in order; ends in a NULL builtin. */
extern const bench_rung kiln__bench_big[];   /* row A9 */
extern const bench_rung kiln__bench_small[]; /* row C8 */

/* What suits n elements on an H200. */
bench_tuning kiln__bench_tuned(uint64_t n);
/* The same with the program's defaults, which spill nowhere. */
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

enum { BENCH_MAX_REPEATS = 64 };

/* A GPU with the input on it. */
typedef struct bench_gpu {
  kiln_device *device;
  kiln_device_info info;
  kiln_stream *stream;
  kiln_event *from, *to;
  kiln_module *slow_module;
  kiln_kernel *slow;
  uint64_t n;            /* elements of input */
  CUdeviceptr input;     /* n floats */
  CUdeviceptr copy;      /* room for in-place steps */
  uint64_t copy_n;       /* its floats */
  CUdeviceptr workspace; /* of the library's reduction */
  CUdeviceptr result;    /* one float */
  CUdeviceptr other;     /* data that takes the second-level cache */
  size_t other_bytes;
  CUdeviceptr temp; /* the peer's */
  size_t temp_bytes;
  unsigned repeats;
  unsigned compiled, cached; /* programs so far, by origin */
} bench_gpu;

kiln_status kiln__bench_gpu_open(bench_gpu *g, kiln_runtime *rt, int ordinal,
                                 const float *host, uint64_t n,
                                 uint64_t copy_n);
void kiln__bench_gpu_close(bench_gpu *g);

/* What a run finds when it starts. */
typedef enum bench_state {
  BENCH_IDLE = 0, /* an idle GPU, and in the second-level cache what the run
                     before left there; the host's part of a launch counts */
  BENCH_QUEUED,   /* a running kernel before it, which hides the host's part */
  BENCH_COLD,     /* an idle GPU, and other data in the second-level cache */
  BENCH_STATES
} bench_state;

/* One thing to time: a step, the library, or the peer. */
typedef struct bench_shot {
  const bench_rung *rung;     /* or NULL */
  const bench_tuning *tuning; /* or NULL: the peer */
  const bench_peer *peer;
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

/* Time the shots in turns, so that whatever drifts drifts for all of them; in
 * the idle state, and in the others too if `all`. */
kiln_status kiln__bench_time(bench_gpu *g, bench_shot *shots, size_t n_shots,
                             bool all);

#endif
