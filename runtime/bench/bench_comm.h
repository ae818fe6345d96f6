/* bench_comm.h -- what the two halves of `kiln bench comm` share. */
#ifndef KILN_BENCH_COMM_H
#define KILN_BENCH_COMM_H

#include "bench/bench.h"
#include "tool/rank_group.h"

/* One rank of a measurement. */
typedef struct comm_rank {
  kiln_comm *comm;
  kiln_stream *stream;
  unsigned repeats; /* at most */
  CUdeviceptr in, out;
} comm_rank;

/* A call whose time is measured. */
typedef kiln_status (*comm_call_fn)(comm_rank *r, void *user);

/* Measures the median time of a call in milliseconds: from a barrier until the
 * slowest rank has its results. All ranks get the same number. Few repeats are made
 * of calls that take long. */
kiln_status kiln__bench_comm_time(comm_rank *r, comm_call_fn call, void *user,
                                  double *ms);

/* Measures the distributed operations on 1, 2, 4, ... ranks. Adds rows to the JSON
 * array and prints a table, on the process of rank 0 only.
 * elements: log2 of the size, which README.md describes per operation */
kiln_status kiln__bench_comm_scaling(cli *c, const cli_ranks *all,
                                     const bench_options *o,
                                     const kiln_comm_opts *opts,
                                     unsigned elements, cJSON *rows);

#endif
