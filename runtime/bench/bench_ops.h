/* bench_ops.h -- the benchmarks of the operations, `kiln bench map`, `scan`
 * and so on. They time the library beside CUB, Thrust and cuBLAS, in turns
 * in one process. A family is a table of cases in a file bench_cases_*.c.
 * bench_ops.c runs the tables, bench_tune.c uses the tables for tuning, and
 * bench_passes.c times the methods of gather and scatter. */
#ifndef KILN_BENCH_BENCH_OPS_H
#define KILN_BENCH_BENCH_OPS_H

#include "bench/bench.h"

enum { BENCH_OPS_BUFFERS = 3, BENCH_OPS_WANTED = 4 };

typedef struct bench_case bench_case;

/* The state that the cases share. Each buffer holds 4 bytes per element of
 * the largest size. */
typedef struct bench_ops {
  bench_rig rig;
  void *peers;           /* libkiln_peers.so, or NULL */
  const char *no_peers;  /* reason why there are no peers */
  const bench_case *now; /* the case that runs */
  uint64_t n;            /* number of elements of the case that runs */
  CUdeviceptr in[BENCH_OPS_BUFFERS];
  CUdeviceptr out[BENCH_OPS_BUFFERS];      /* results of the library */
  CUdeviceptr peer_out[BENCH_OPS_BUFFERS]; /* results of the peer */
  CUdeviceptr temp;                        /* temporary storage of the peer */
  size_t temp_bytes;
  /* Workspace of the library, if the call needs more than a stream keeps. */
  kiln_workspace workspace;
  /* True if the workspace was determined for this case and size. */
  bool workspace_known;
  unsigned repeats;
  /* Method of gathers and scatters; {0} means the choice of the cost model. */
  kiln_index_plan plan;
} bench_ops;

/* Allocates the workspace of a call outside the timed runs, as for the
 * peer's temporary storage. The driver's pool would release a large
 * workspace at each wait, and allocating the workspace again would be timed.
 * A small workspace is left to the stream, which keeps such memory. */
kiln_status kiln__bench_workspace(bench_ops *b, size_t bytes);

/* Defines a function that queues kiln_OP() with this descriptor, for
 * bench_case.own. */
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

/* A case: one row of a table. */
struct bench_case {
  const char *label; /* name of the case: "exclusive sum"; NULL ends a table */
  kiln_dtype type;
  double bytes;       /* bytes that must be moved per element */
  const char *peer;   /* name of the peer: "CUB" */
  const char *symbol; /* function of the peer in libkiln_peers.so, or NULL */
  /* aim: ratio to the peer at 2^28, 2^24, 2^20 and 2^16 elements of 4 bytes
   * (half as many elements of 8 bytes); 0 means no aim */
  double wanted[BENCH_OPS_WANTED];
  /* Expressions over i that fill in[0] and in[1], see kiln__bench_fill();
   * NULL means that the input is not used. */
  const char *fill[2];
  kiln_status (*prepare)(bench_ops *b); /* fills further inputs, or NULL */
  kiln_status (*own)(bench_ops *b);     /* queues the library's call */
  /* Type of out[0]; KILN_DTYPE_NONE means that the results are not compared. */
  kiln_dtype compared;
  uint64_t results; /* number of elements of out[0] to compare; 0 means n */
  double tolerance; /* largest allowed difference; 0 means equal bits */
  /* Maximum log2 of the number of elements, for a case that sets this number
   * itself and runs at the first size only; 0 means any size. */
  unsigned own_size;
};

/* The arguments of a peer; tests/bench/peers/peer.h declares the same
 * struct. If temp is NULL, the peer only sets *temp_bytes. */
typedef struct kiln_peer_call {
  const void *in[BENCH_OPS_BUFFERS];
  void *out[BENCH_OPS_BUFFERS];
  size_t n;
  void *temp;
  size_t *temp_bytes;
  void *stream;
} kiln_peer_call;

/* The tables of cases. */
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
  /* Family of kiln/tune.h whose candidates the cases can time, or NULL. */
  const char *tuning;
} bench_family;

/* families; a NULL name ends the table */
extern const bench_family kiln__bench_families[];

/* ---- Running cases, for `bench`, `tune` and `bench passes` -------------- */

/* Opens the device, with buffers for `most` elements of 4 bytes. */
kiln_status kiln__bench_ops_open(bench_ops *b, cli *c, int ordinal,
                                 uint64_t most);
void kiln__bench_ops_close(bench_ops *b);
/* Returns the number of elements of a case at a size. Cases with 8-byte
 * elements have half as many elements. */
uint64_t kiln__bench_elements(const bench_case *c, unsigned bits);
/* Fills the inputs of b->now for b->n elements. */
kiln_status kiln__bench_prepare(bench_ops *b);
/* Measures the median time in milliseconds of b->repeats runs of the
 * library's call, each queued after a busy kernel. b->now and b->n must be
 * set, and the inputs must be prepared. */
kiln_status kiln__bench_time_own(bench_ops *b, double *ms);

/* Draws rates by size as an SVG file, by means of gnuplot. @return an exit
 * code */
int kiln__bench_plot(cli *c, const cJSON *json, const char *path);

/* Runs the benchmark of the family that argv[0] ends with, or of all
 * families ("ops"). */
int kiln__bench_ops(cli *c, int argc, char **argv);
/* Returns whether there is a family of this name. "ops" means all families. */
bool kiln__bench_ops_has(const char *family);
/* Returns a list of the families for messages: "map, scan, ...". */
const char *kiln__bench_ops_list(cli *c);

#endif
