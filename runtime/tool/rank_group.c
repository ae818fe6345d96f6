/* rank_group.c -- groups of ranks for commands. */
#include "tool/rank_group.h"

#include <stdlib.h>

bool kiln__cli_under_mpi(void)
{
  static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                          "PMIX_RANK"};

  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    if (getenv(variables[i]) != NULL)
      return true;
  }
  return false;
}

/* The number of this process among those on the same machine, which selects its
 * device. */
static int local_rank(void)
{
  static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                          "MPI_LOCALRANKID", "SLURM_LOCALID"};

  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *const text = getenv(variables[i]);

    if (text != NULL)
      return atoi(text);
  }
  return 0;
}

/* Opens the devices of the ranks of this process in turn. */
static kiln_status open_devices(cli_ranks *r, const cli *c, int device)
{
  const int first = device + (r->mpi ? local_rank() : 0);
  int count = 0;

  CLI_TRY(kiln_device_count(c->rt, &count));
  if (count == 0)
    return kiln_error_write(KILN_ENODEVICE, "use --device cpu",
                            "there is no GPU");
  for (int i = 0; i < r->n; i++)
    CLI_TRY(kiln_device_open(&r->devices[i], c->rt, (first + i) % count, NULL));
  return KILN_OK;
}

kiln_status kiln__cli_ranks_open(cli_ranks *out, const cli *c, int ranks,
                                 int device, const kiln_comm_opts *opts)
{
  kiln_status st;

  *out = (cli_ranks){.n = ranks, .size = ranks};
  out->mpi = kiln__cli_under_mpi();
  if (out->mpi)
    out->n = 1;
  st = open_devices(out, c, device);
  if (st == KILN_OK && out->mpi)
    st = kiln_comm_create_mpi(out->comms, out->devices[0], NULL, opts);
  else if (st == KILN_OK)
    st = kiln_comm_create_all(out->comms, out->devices, out->n, opts);
  if (st == KILN_OK) {
    out->first = kiln_comm_rank(out->comms[0]);
    out->size = kiln_comm_size(out->comms[0]);
  }
  if (st == KILN_OK && out->mpi && ranks != 0 && ranks != out->size)
    st = kiln_error_write(KILN_EINVAL,
                          "pass --ranks 0, since each process is a rank",
                          "--ranks differs from the number of processes that "
                          "the launcher has started");
  if (st != KILN_OK)
    kiln__cli_ranks_close(out);
  return st;
}

/* Creates the rank of a group that has only NCCL, from an id of rank 0. */
static kiln_status join_nccl_only(kiln_comm *comm, void *user)
{
  const kiln_comm_opts nccl = {.data = KILN_COMM_NCCL};
  const int rank = kiln_comm_rank(comm);
  cli_ranks *const r = user;
  kiln_comm_id ids[CLI_MOST_RANKS], id = {{0}};

  if (rank == 0)
    CLI_TRY(kiln_comm_unique_id(&id, &nccl));
  CLI_TRY(kiln_comm_share(comm, &id, sizeof id, ids));
  return kiln_comm_create_id(&r->comms[rank - r->first], kiln_comm_device(comm),
                             &ids[0], r->size, rank, &nccl);
}

kiln_status kiln__cli_ranks_nccl_only(cli_ranks *r)
{
  cli_ranks host = *r;
  kiln_status st;

  for (int i = 0; i < r->n; i++)
    r->comms[i] = NULL;
  st = kiln__cli_ranks_run(&host, join_nccl_only, r);
  kiln__cli_ranks_part_close(&host);
  return st;
}

kiln_status kiln__cli_ranks_part(cli_ranks *out, const cli_ranks *all,
                                 int ranks, const kiln_comm_opts *opts)
{
  kiln_status st;

  *out = *all;
  out->size = ranks;
  for (int i = 0; i < CLI_MOST_RANKS; i++)
    out->comms[i] = NULL;
  if (all->mpi) {
    const bool member = all->first < ranks;

    st = kiln_comm_split(out->comms, all->comms[0], member ? 0 : -1, 0);
    out->n = member && st == KILN_OK ? 1 : 0;
    return st;
  }
  out->n = ranks;
  st = kiln_comm_create_all(out->comms, out->devices, ranks, opts);
  if (st != KILN_OK)
    out->n = 0;
  return st;
}

kiln_status kiln__cli_ranks_run(const cli_ranks *r, kiln_comm_fn fn, void *user)
{
  if (r->n == 0)
    return KILN_OK;
  return r->n == 1 ? fn(r->comms[0], user)
                   : kiln_comm_run(r->comms, r->n, fn, user);
}

void kiln__cli_ranks_part_close(cli_ranks *r)
{
  for (int i = 0; i < r->n; i++) {
    kiln_comm_free(r->comms[i]);
    r->comms[i] = NULL;
  }
}

void kiln__cli_ranks_close(cli_ranks *r)
{
  kiln__cli_ranks_part_close(r);
  for (int i = 0; i < r->n; i++) {
    kiln_device_free(r->devices[i]);
    r->devices[i] = NULL;
  }
}
