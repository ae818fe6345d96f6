/* bench_ops.h -- `kiln bench map`, `scan`, ...: the library's operations beside
 * CUB, Thrust and cuBLAS, in turns in one process. A family is a table of cases
 * in bench_FAMILY.c; bench_ops.c runs them. */
#ifndef KILN_BENCH_OPS_H
#define KILN_BENCH_OPS_H

#include "tool/cli.h"

enum { BENCH_OPS_BUFFERS = 3, BENCH_OPS_SIZES = 4 };

typedef struct bench_case bench_case;

/* What a case works with: device memory, filled and sized for `n`. */
typedef struct bench_ops {
  cli *c;
  kiln_device *device;
  kiln_stream *stream;
  kiln_event *from, *to;
  kiln_device_info info;
  kiln_module *slow_module;
  kiln_kernel *slow;
  CUdeviceptr slow_out;
  void *peers; /* libkiln_peers.so, or NULL */
  char peers_place[512];
  const bench_case *now;
  uint64_t n;                              /* elements */
  CUdeviceptr in[BENCH_OPS_BUFFERS];       /* 8 bytes an element of most_n */
  CUdeviceptr out[BENCH_OPS_BUFFERS];      /* the library's results */
  CUdeviceptr peer_out[BENCH_OPS_BUFFERS]; /* the peer's */
  CUdeviceptr temp;                        /* the peer's */
  size_t temp_bytes;
  kiln_workspace room; /* the library's, for what a stream would not keep */
  bool room_known;     /* for this case and size */
  unsigned repeats;
  kiln_index_plan plan; /* of gathers and scatters; {0}: the model's */
} bench_ops;

/* Large temporary memory from the driver's pool would be given back at each wait,
 * and got anew within the time: as the peer, the library gets it beforehand. Up
 * to what a stream keeps, it is left to the stream. */
kiln_status kiln__bench_room(bench_ops *b, size_t bytes);

/* run_NAME(b, &desc): kiln_NAME() with that memory. */
#define BENCH_RUN(name, desc_type)                                             \
  static kiln_status run_##name(bench_ops *b, const desc_type *desc)           \
  {                                                                            \
    size_t bytes = 0;                                                          \
    kiln_status st = KILN_OK;                                                  \
                                                                               \
    if (!b->room_known) {                                                      \
      st = kiln_##name##_workspace(b->stream, desc, &bytes);                   \
      if (st == KILN_OK)                                                       \
        st = kiln__bench_room(b, bytes);                                       \
    }                                                                          \
    if (st != KILN_OK)                                                         \
      return st;                                                               \
    return kiln_##name(b->stream, desc, b->room.data != 0 ? &b->room : NULL);  \
  }

/* One line of a table. */
struct bench_case {
  const char *label; /* "exclusive sum"; NULL ends a table */
  kiln_dtype type;
  double bytes;       /* that must be moved, an element */
  const char *peer;   /* "CUB" */
  const char *symbol; /* of the peer in libkiln_peers.so; NULL: none */
  double wanted[BENCH_OPS_SIZES]; /* ratio to the peer at 2^28, 2^24, 2^20 and
                                     2^16 elements of 4 bytes (half as many of
                                     8); 0: none is asked for */
  kiln_status (*prepare)(bench_ops *b); /* fill the inputs; not timed */
  kiln_status (*own)(bench_ops *b);     /* queue the library's call */
  kiln_dtype compared; /* type of out[0]; none: the results are not compared */
  uint64_t results;    /* elements of out[0] to compare; 0: n */
  double tolerance;    /* largest difference; 0: same bits */
  unsigned own_size;   /* its size is its own and fits in 2^own_size: at the
                        first size only; 0: any size */
};

/* How a peer is called; tests/bench/peers/peer.h has the same lines. With temp
 * NULL only *temp_bytes is set. */
typedef struct kiln_peer_call {
  const void *in[BENCH_OPS_BUFFERS];
  void *out[BENCH_OPS_BUFFERS];
  size_t n;
  void *temp;
  size_t *temp_bytes;
  void *stream;
} kiln_peer_call;

/* The tables. `tuning`: the family of kiln/tune.h that the cases run with, and
 * whose candidates they can time; NULL: none. */
extern const bench_case kiln__bench_map[];
extern const bench_case kiln__bench_fold[]; /* reduce */
extern const bench_case kiln__bench_segmented[];
extern const bench_case kiln__bench_scan[];
extern const bench_case kiln__bench_select[];
extern const bench_case kiln__bench_partition[];
extern const bench_case kiln__bench_histogram[];
extern const bench_case kiln__bench_sort[];
extern const bench_case kiln__bench_sort_pairs[];
extern const bench_case kiln__bench_gather[];
extern const bench_case kiln__bench_scatter[];
extern const bench_case kiln__bench_merge[];
extern const bench_case kiln__bench_search[];

typedef struct bench_family {
  const char *name;
  const bench_case *cases;
  const char *tuning;
} bench_family;

extern const bench_family kiln__bench_families[]; /* ends in a NULL name */

/* ---- Running cases, for this command and `kiln tune` ------------------------- */

/* The device, with buffers for 2^most_bits elements of 4 bytes. */
kiln_status kiln__bench_open(bench_ops *b, int ordinal, unsigned most_bits);
void kiln__bench_close(bench_ops *b);
/* Elements of a case at a size: half as many of 8 bytes. */
uint64_t kiln__bench_elements(const bench_case *c, unsigned bits);
/* Median of b->repeats runs of the library's call behind a running kernel, in
 * milliseconds; b->now and b->n are set and its inputs prepared. */
kiln_status kiln__bench_time_own(bench_ops *b, double *ms);

/* Buffer `k`'s elements from their index, by a kiln_map: `expr` over i, with
 * `hash(i)`, 64 well mixed bits, in sight. */
kiln_status kiln__bench_fill_with(bench_ops *b, CUdeviceptr to, kiln_dtype type,
                                  uint64_t n, const char *expr);

/* Rates by size as an SVG file, by gnuplot (bench_plot.c). @return an exit code,
 * having said what is wrong. */
int kiln__bench_plot(cli *c, const cJSON *json, const char *path);

/* The command for one family, or for all. argv[0] is its name. @return an exit
 * code. */
int kiln__bench_ops(cli *c, const char *family, int argc, char **argv);
/* Is there such a family? "ops": all of them. */
bool kiln__bench_ops_has(const char *family);
/* "map, scan, ...": for messages. */
const char *kiln__bench_ops_list(cli *c);

#endif
