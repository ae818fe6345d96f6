/* rank_group.h -- the groups of ranks of a command: threads of this process, or the
 * processes that mpirun has started, each of which runs the command. */
#ifndef KILN_TOOL_RANK_GROUP_H
#define KILN_TOOL_RANK_GROUP_H

#include "tool/cli.h"

#include <kiln/comm.h>

enum { CLI_MOST_RANKS = 64 };

/* The ranks of this process. */
typedef struct cli_ranks {
  kiln_device *devices[CLI_MOST_RANKS];
  kiln_comm *comms[CLI_MOST_RANKS];
  int n;     /* ranks of this process; 0: the process takes no part */
  int first; /* number of the first one */
  int size;  /* ranks of the group */
  bool mpi;
} cli_ranks;

/* Returns whether mpirun, mpiexec or srun has started this process as one of
 * several. */
bool kiln__cli_under_mpi(void);

/* Creates a group. Under MPI each process is one rank, and `ranks` is 0 or their
 * number. Otherwise the group is `ranks` threads, and devices are used in turn,
 * starting with `device`.
 * @return KILN_OK; otherwise the caller reports kiln_last_error() */
kiln_status kiln__cli_ranks_open(cli_ranks *out, const cli *c, int ranks,
                                 int device, const kiln_comm_opts *opts);
/* Replaces the groups by groups of the same ranks that have only NCCL. */
kiln_status kiln__cli_ranks_nccl_only(cli_ranks *r);
/* Creates a group of the first `ranks` ranks of `all`. All processes must call. */
kiln_status kiln__cli_ranks_part(cli_ranks *out, const cli_ranks *all,
                                 int ranks, const kiln_comm_opts *opts);
/* Runs a function on all ranks of this process, each in a thread of its own, or in
 * this thread if there is only one. */
kiln_status kiln__cli_ranks_run(const cli_ranks *r, kiln_comm_fn fn,
                                void *user);
/* Frees the ranks, and the devices that kiln__cli_ranks_open() has opened. */
void kiln__cli_ranks_close(cli_ranks *r);
/* Frees the ranks of kiln__cli_ranks_part(). */
void kiln__cli_ranks_part_close(cli_ranks *r);

#endif
