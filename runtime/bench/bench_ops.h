/* bench_ops.h -- the benchmarks of the operations, `kiln bench map`, `scan` and
 * so on. They time Kiln and a comparison library (CUB, Thrust or cuBLAS)
 * alternately in one process. Each table of cases, in a file of cases/,
 * covers one family of operations. bench_ops.c runs the tables, bench_tune.c
 * uses the tables for tuning, and bench_passes.c times the methods of gather
 * and scatter. The tables in bench_cases_compute.c are only for tuning. */
#ifndef KILN_BENCH_BENCH_OPS_H
#define KILN_BENCH_BENCH_OPS_H

#include "bench/bench.h"

enum { BENCH_OPS_BUFFERS = 3, BENCH_OPS_WANTED = 4 };

typedef struct bench_case bench_case;

/* The state that the benchmark cases share. Each buffer holds 4 bytes per
 * element of the largest size. */
typedef struct bench_ops {
  bench_rig rig;
  /* Handle of libkiln_peers.so with the comparison libraries, or NULL. */
  void *peers;
  const char *no_peers;  /* reason why the comparison libraries are missing */
  const bench_case *now; /* the case that currently runs */
  const char *tuning;    /* the family of parameters that is tuned, or NULL */
  /* Parameters that the call uses; all 0 stands for those that were measured, or
   * else those of the library's table. */
  kiln_tuning chosen;
  bool is_candidate; /* the call uses the measured parameters in any case */
  uint64_t n;        /* number of elements of the current case */
  CUdeviceptr in[BENCH_OPS_BUFFERS];
  CUdeviceptr out[BENCH_OPS_BUFFERS]; /* output buffers of Kiln */
  /* Output buffers of the comparison library. */
  CUdeviceptr peer_out[BENCH_OPS_BUFFERS];
  /* Temporary storage of the comparison library. */
  CUdeviceptr temp;
  size_t temp_bytes;
  /* Workspace of Kiln's call, if the call needs more than a stream keeps. */
  kiln_workspace workspace;
  /* True if the workspace size was determined for this case and size. */
  bool workspace_known;
  unsigned repeats;
  bench_input input; /* what hash() means in the expressions of the inputs */
  /* Method of gathers and scatters; {0} means that the cost model chooses. */
  kiln_index_plan plan;
} bench_ops;

/* Allocates the workspace of Kiln's call outside the timed runs, as for the
 * temporary storage of the comparison library. The driver's pool would release
 * a large workspace at each synchronisation, and allocating the workspace again
 * would be timed. A small workspace is left to the stream, which keeps it. */
kiln_status kiln__bench_workspace(bench_ops *b, size_t bytes);

/* Defines a function that queues kiln_OP() with this descriptor, for the member
 * `own` of a bench_case. */
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

/* One benchmark case, which is one row of a table. */
struct bench_case {
  const char *label; /* name of the case: "exclusive sum"; NULL ends a table */
  kiln_dtype type;
  double bytes;     /* bytes that an ideal implementation moves per element */
  const char *peer; /* name of the comparison library, such as "CUB" */
  /* Name of the comparison function in libkiln_peers.so, or NULL. */
  const char *symbol;
  /* Performance goals: ratio of the speed to that of the comparison library at
   * 2^28, 2^24, 2^20 and 2^16 elements of 4 bytes (half as many elements of 8
   * bytes); 0 means no goal. */
  double wanted[BENCH_OPS_WANTED];
  /* Expressions over the index i that fill the inputs in[0] and in[1] (see
   * kiln__bench_fill()); NULL means that the input is not used. */
  const char *fill[2];
  /* Callback that fills further inputs and may change the number of elements,
   * or NULL. KILN_ENOTFOUND means that the case does not apply to this device;
   * only the tuner accepts it. */
  kiln_status (*prepare)(bench_ops *b);
  kiln_status (*own)(bench_ops *b); /* callback that queues Kiln's call */
  /* Element type of the output out[0]; KILN_DTYPE_NONE means that the results
   * are not compared. */
  kiln_dtype compared;
  uint64_t results; /* number of elements of out[0] to compare; 0 means n */
  /* Largest allowed difference of the results; 0 means equal bits. */
  double tolerance;
  /* Maximum log2 of the number of elements. It is for a case that sets the
   * number itself and runs at the first size only; 0 means any size. */
  unsigned own_size;
};

/* The arguments of a comparison function; tests/bench/peers/peer.h declares the
 * same struct. If `temp` is NULL, the function only sets *temp_bytes. */
typedef struct kiln_peer_call {
  const void *in[BENCH_OPS_BUFFERS];
  void *out[BENCH_OPS_BUFFERS];
  size_t n;
  void *temp;
  size_t *temp_bytes;
  void *stream;
} kiln_peer_call;

/* The tables of benchmark cases. */
extern const bench_case kiln__bench_map[];
extern const bench_case kiln__bench_reductions[];
extern const bench_case kiln__bench_segmented[];
extern const bench_case kiln__bench_reduce_by_key[];
extern const bench_case kiln__bench_scan[];
extern const bench_case kiln__bench_select[];
extern const bench_case kiln__bench_partition[];
extern const bench_case kiln__bench_partition_joined[];
extern const bench_case kiln__bench_histogram[];
extern const bench_case kiln__bench_sort[];
extern const bench_case kiln__bench_sort_pairs[];
extern const bench_case kiln__bench_merge_sort[];
extern const bench_case kiln__bench_gather[];
extern const bench_case kiln__bench_scatter[];
extern const bench_case kiln__bench_merge[];
extern const bench_case kiln__bench_search[];
extern const bench_case kiln__bench_permute[];
extern const bench_case kiln__bench_move[];
extern const bench_case kiln__bench_views[];
extern const bench_case kiln__bench_random[];
extern const bench_case kiln__bench_sets[];
extern const bench_case kiln__bench_top_k[];
extern const bench_case kiln__bench_quantile[];
extern const bench_case kiln__bench_statistics[];
extern const bench_case kiln__bench_groups[];
extern const bench_case kiln__bench_orders[];

typedef struct bench_family {
  const char *name;
  const bench_case *cases;
  /* Name of the tuning family in kiln/tune.h whose candidates the cases can
   * time, or NULL. */
  const char *tuning;
} bench_family;

/* all families of operations; a NULL name ends the table */
extern const bench_family kiln__bench_families[];
/* The families that are tuned here but have benchmarks of their own. */
extern const bench_family kiln__bench_compute[];

/* ---- bench_inputs.c: inputs, draws, the worst cells ---------------------- */

/* Fills an array with b->input by an expression; see kiln__bench_fill_input(). */
kiln_status kiln__bench_ops_fill(const bench_ops *b, CUdeviceptr to,
                                 kiln_dtype type, uint64_t n, const char *expr);
/* Draws b->n between the least and the largest size, and b->input. b->now must be
 * set. */
void kiln__bench_draw_cell(bench_ops *b, const cli_sizes *sizes,
                           uint64_t *state);

/* A ratio below this one counts as a loss. */
#define BENCH_LEAST_RATIO 0.97

/* The ratios of one case over all sizes and inputs. */
typedef struct bench_row {
  const bench_case *of;
  unsigned cells;
  double log_sum; /* sum of the logarithms of the ratios */
  double worst;   /* least ratio, with its size and input */
  uint64_t n;
  bench_input_kind input;
} bench_row;

typedef struct bench_rows {
  bench_row *row; /* the owner frees it with free() */
  size_t n;
  unsigned cells, below; /* numbers of all cells, and of those that lose */
  double log_sum;
} bench_rows;

/* Adds the ratio of the present cell. Returns false if memory ran out. */
bool kiln__bench_note(bench_rows *rows, const bench_ops *b, double ratio);
/* Prints one row per case, and adds them to a document. */
void kiln__bench_print_rows(const bench_rows *rows, cli *c, cJSON *json);

/* ---- Running cases, for `bench`, `tune` and `bench passes` -------------- */

/* Opens the device and allocates buffers for `most` elements of 4 bytes. */
kiln_status kiln__bench_ops_open(bench_ops *b, cli *c, int ordinal,
                                 uint64_t most);
void kiln__bench_ops_close(bench_ops *b);
/* Returns the number of elements with which a case runs at a given size. Cases
 * with 8-byte elements have half as many elements. */
uint64_t kiln__bench_elements(const bench_case *c, unsigned bits);
/* Fills the inputs of the current case b->now for b->n elements. */
kiln_status kiln__bench_prepare(bench_ops *b);
/* Measures the median time in milliseconds of b->repeats runs of Kiln's call,
 * each queued after a busy kernel. b->now and b->n must be set, and the inputs
 * must be prepared. */
kiln_status kiln__bench_time_own(bench_ops *b, double *ms);

/* Runs the benchmark of the family of operations that argv[0] ends with, or of
 * all families ("ops"). */
int kiln__bench_ops(cli *c, int argc, char **argv);
/* Returns true if a family of operations has this name. "ops" means all
 * families. */
bool kiln__bench_ops_has(const char *family);
/* Returns a list of the families of operations for messages: "map, scan,
 * ...". */
const char *kiln__bench_ops_list(cli *c);

#endif
