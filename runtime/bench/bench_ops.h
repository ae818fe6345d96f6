/* bench_ops.h -- `kiln bench map`, `scan`, ...: the library's operations beside
 * CUB, Thrust and cuBLAS, in turns in one process. A family is a table of cases in
 * a file bench_cases_*.c; bench_ops.c runs the tables, bench_tune.c tunes with
 * them, and bench_passes.c times the ways to gather and scatter. */
#ifndef KILN_BENCH_BENCH_OPS_H
#define KILN_BENCH_BENCH_OPS_H

#include "bench/bench.h"

enum { BENCH_OPS_BUFFERS = 3, BENCH_OPS_WANTED = 4 };

typedef struct bench_case bench_case;

/* What a case works with. Buffers hold 4 bytes per element of the largest size. */
typedef struct bench_ops {
  bench_rig rig;
  void *peers;           /* libkiln_peers.so, or NULL */
  const char *no_peers;  /* why there is none */
  const bench_case *now; /* the case that runs */
  uint64_t n;            /* its elements */
  CUdeviceptr in[BENCH_OPS_BUFFERS];
  CUdeviceptr out[BENCH_OPS_BUFFERS];      /* the library's results */
  CUdeviceptr peer_out[BENCH_OPS_BUFFERS]; /* the peer's */
  CUdeviceptr temp;                        /* the peer's temporary storage */
  size_t temp_bytes;
  kiln_workspace workspace; /* the library's, if more than a stream keeps */
  bool workspace_known;     /* for this case and size */
  unsigned repeats;
  kiln_index_plan plan; /* of gathers and scatters; {0}: the model's choice */
} bench_ops;

/* Allocate the workspace of a call outside the timed runs, as the peer's temporary
 * storage is. The driver's pool would release a large one at each wait, and
 * allocating it again would be in the time. Small ones are left to the stream,
 * which keeps them. */
kiln_status kiln__bench_workspace(bench_ops *b, size_t bytes);

/* A function that queues kiln_OP() with this descriptor, for bench_case.own. */
#define BENCH_OWN(id, op, desc_type, ...)                                      \
  static kiln_status id(bench_ops *b)                                          \
  {                                                                            \
    const desc_type desc = {__VA_ARGS__};                                      \
    size_t bytes = 0;                                                          \
                                                                               \
    if (!b->workspace_known) {                                                 \
      CLI_TRY(kiln_##op##_workspace(b->rig.stream, &desc, &bytes));            \
      CLI_TRY(kiln__bench_workspace(b, bytes));                                \
    }                                                                          \
    return kiln_##op(b->rig.stream, &desc,                                     \
                     b->workspace.data != 0 ? &b->workspace : NULL);           \
  }

/* One line of a table. */
struct bench_case {
  const char *label; /* "exclusive sum"; NULL ends a table */
  kiln_dtype type;
  double bytes;       /* that must be moved per element */
  const char *peer;   /* "CUB" */
  const char *symbol; /* of the peer in libkiln_peers.so; NULL: none */
  double wanted[BENCH_OPS_WANTED]; /* ratio to the peer at 2^28, 2^24, 2^20 and
                                      2^16 elements of 4 bytes (half as many of
                                      8 bytes); 0: no aim */
  const char *fill[2]; /* expressions over i that fill in[0] and in[1], see
                          kiln__bench_fill(); NULL: not used */
  kiln_status (*prepare)(bench_ops *b); /* fills more inputs, or NULL */
  kiln_status (*own)(bench_ops *b);     /* queues the library's call */
  kiln_dtype compared; /* type of out[0]; none: the results are not compared */
  uint64_t results;    /* elements of out[0] to compare; 0: n */
  double tolerance;    /* largest difference; 0: the same bits */
  unsigned own_size;   /* the case sets its own size, which fits in 2^own_size,
                          and runs at the first size only; 0: any size */
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

/* The tables. */
extern const bench_case kiln__bench_map[];
extern const bench_case kiln__bench_reductions[];
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
  const char *tuning; /* family of kiln/tune.h whose candidates the cases can
                         time; NULL: none */
} bench_family;

extern const bench_family kiln__bench_families[]; /* ends in a NULL name */

/* ---- Running cases, for this command, `tune` and `bench passes` --------- */

/* Open the device, with buffers for `most` elements of 4 bytes. */
kiln_status kiln__bench_ops_open(bench_ops *b, cli *c, int ordinal,
                                 uint64_t most);
void kiln__bench_ops_close(bench_ops *b);
/* Elements of a case at a size: half as many if an element has 8 bytes. */
uint64_t kiln__bench_elements(const bench_case *c, unsigned bits);
/* Fill the inputs of b->now for b->n elements. */
kiln_status kiln__bench_prepare(bench_ops *b);
/* Median milliseconds of b->repeats runs of the library's call behind a busy
 * kernel. b->now and b->n are set and the inputs prepared. */
kiln_status kiln__bench_time_own(bench_ops *b, double *ms);

/* Fill n elements from their index by a kiln_map. `expr` is an expression over i
 * that may call hash(i), 64 well mixed bits. */
kiln_status kiln__bench_fill(bench_ops *b, CUdeviceptr to, kiln_dtype type,
                             uint64_t n, const char *expr);

/* Draw rates by size as an SVG file, by gnuplot. @return an exit code */
int kiln__bench_plot(cli *c, const cJSON *json, const char *path);

/* The command for the family that argv[0] ends with, or for all ("ops"). */
int kiln__bench_ops(cli *c, int argc, char **argv);
/* Whether there is such a family; "ops" is all of them. */
bool kiln__bench_ops_has(const char *family);
/* "map, scan, ...", for messages. */
const char *kiln__bench_ops_list(cli *c);

#endif
