/* run_ranks.c -- `kiln run --ranks`: one launch on all ranks of a group at once.
 *
 * The main thread prepares the arrays of every rank of this process, since only it may
 * allocate the command's memory. The ranks then launch in threads of their own. The
 * results are printed in the order of the ranks, also if they are processes. */
#include "cli/command_run.h"
#include "tool/rank_group.h"

#include <string.h>

/* One rank of this process. */
typedef struct rank_launch {
  run_spec spec;
  kiln_module *module;
  kiln_kernel *kernel;
  const char *name;
  double ms;
} rank_launch;

/* What the threads of the ranks share. */
typedef struct launches {
  const run_group *group;
  cli_ranks ranks;
  rank_launch *at; /* one per rank of this process */
} launches;

int kiln__cli_run_operation(const char *name)
{
  static const struct {
    const char *name;
    kiln_op_name op;
  } known[] = {{"sum", KILN_SUM},
               {"prod", KILN_PROD},
               {"min", KILN_MIN},
               {"max", KILN_MAX}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i].name) == 0)
      return (int)known[i].op;
  }
  return -1;
}

/* ---- In the thread of a rank --------------------------------------------- */

static kiln_status combine(kiln_comm *comm, const run_spec *spec,
                           kiln_op_name op)
{
  kiln_stream *stream = NULL;
  kiln_status st = kiln_stream_create(&stream, kiln_comm_device(comm), NULL);

  for (unsigned i = 0; i < spec->n_args && st == KILN_OK; i++) {
    const kiln_array x = kiln__cli_run_array(&spec->args[i]);

    if (spec->args[i].array)
      st = kiln_comm_all_reduce(comm, stream, x, x, spec->args[i].n, op);
  }
  kiln_stream_free(stream);
  return st;
}

static kiln_status launch_rank(kiln_comm *comm, void *user)
{
  launches *const l = user;
  rank_launch *const own = &l->at[kiln_comm_rank(comm) - l->ranks.first];

  CLI_TRY(kiln_comm_barrier(comm));
  CLI_TRY(kiln__cli_run_timed(kiln_comm_device(comm), own->kernel, &own->spec,
                              l->group->repeats, &own->ms));
  if (l->group->combine == NULL)
    return kiln_comm_barrier(comm);
  return combine(comm, &own->spec,
                 (kiln_op_name)kiln__cli_run_operation(l->group->combine));
}

/* ---- In the main thread -------------------------------------------------- */

static int prepare_rank(cli *c, launches *l, const cli_program *program, int i)
{
  kiln_device *const device = l->ranks.devices[i];
  rank_launch *const own = &l->at[i];
  kiln_kernel_info info;

  own->spec.rank = (unsigned)(l->ranks.first + i);
  own->spec.ranks = (unsigned)l->ranks.size;
  if (l->group->combine == NULL)
    kiln__cli_run_save_per_rank(c, &own->spec);
  if (kiln_module_load(&own->module, device, &program->desc) != KILN_OK)
    return kiln__cli_failure(c, program->label);
  own->name = kiln__cli_find_kernel(c, own->module, own->spec.kernel);
  if (own->name == NULL)
    return CLI_FAILED;
  if (kiln_module_kernel(&own->kernel, own->module, own->name) != KILN_OK ||
      kiln_kernel_describe(own->kernel, &info) != KILN_OK)
    return kiln__cli_failure(c, own->name);
  return kiln__cli_run_prepare(c, device, &own->spec, &info);
}

/* Combined arrays are the same on all ranks, so only rank 0 shows them. */
static int show_rank(cli *c, launches *l, int i)
{
  rank_launch *const own = &l->at[i];
  int rc = CLI_OK;

  printf("rank %u: %.4g ms%s%s\n", own->spec.rank, own->ms,
         l->group->repeats > 1 ? ", median of 15" : "",
         c->on_cpu ? " on the CPU device" : "");
  if (l->group->combine == NULL)
    rc =
        kiln__cli_run_show(c, l->ranks.devices[i], &own->spec, l->group->print);
  fflush(stdout);
  return rc;
}

/* Shows the ranks in order. Processes wait for each other. */
static int show(cli *c, launches *l)
{
  int rc = CLI_OK;

  for (int p = 0; p < l->ranks.size; p++) {
    const int i = p - l->ranks.first;

    if (i >= 0 && i < l->ranks.n && rc == CLI_OK)
      rc = show_rank(c, l, i);
    if (l->ranks.mpi && kiln_comm_barrier(l->ranks.comms[0]) != KILN_OK)
      return kiln__cli_failure(c, NULL);
  }
  if (rc != CLI_OK || l->group->combine == NULL || l->ranks.first != 0)
    return rc;
  printf("all ranks, combined by %s\n", l->group->combine);
  return kiln__cli_run_show(c, l->ranks.devices[0], &l->at[0].spec,
                            l->group->print);
}

static int run_prepared(cli *c, launches *l)
{
  const run_spec *const spec = &l->at[0].spec;

  if (l->ranks.first == 0)
    printf("%s, grid %u,%u,%u, block %u,%u,%u on %d ranks, engine %s\n",
           kiln__cli_plain_name(c, l->at[0].name), spec->grid.x, spec->grid.y,
           spec->grid.z, spec->block.x, spec->block.y, spec->block.z,
           l->ranks.size, kiln_comm_engine(l->ranks.comms[0]));
  fflush(stdout);
  if (kiln__cli_ranks_run(&l->ranks, launch_rank, l) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  return show(c, l);
}

/* A process that cannot prepare its launch must not leave the others waiting. */
static void tell_others(const launches *l, int rc)
{
  for (int i = 0; i < l->ranks.n && rc != CLI_OK; i++)
    (void)kiln_comm_abort(l->ranks.comms[i],
                          "its launch could not be prepared");
}

int kiln__cli_run_ranks(cli *c, const cli_program *program,
                        const run_spec *spec, const run_group *group)
{
  const kiln_comm_opts opts = {.data = group->nccl ? KILN_COMM_NCCL
                                                   : KILN_COMM_HOST};
  launches *const l = kiln__cli_alloc(c, 1, sizeof *l);
  int rc = CLI_OK;

  l->group = group;
  if (group->ranks == 0 && !kiln__cli_under_mpi())
    return kiln__cli_usage(c, "--ranks 0 is for processes that mpirun starts");
  if (kiln__cli_ranks_open(&l->ranks, c, (int)group->ranks, 0, &opts) !=
      KILN_OK)
    return kiln__cli_failure(c, "--ranks");
  l->at = kiln__cli_alloc(c, (size_t)l->ranks.n, sizeof *l->at);
  for (int i = 0; i < l->ranks.n && rc == CLI_OK; i++) {
    l->at[i].spec = *spec;
    rc = prepare_rank(c, l, program, i);
  }
  tell_others(l, rc);
  if (rc == CLI_OK)
    rc = run_prepared(c, l);
  for (int i = 0; i < l->ranks.n; i++) {
    kiln__cli_run_release(l->ranks.devices[i], &l->at[i].spec);
    kiln_module_free(l->at[i].module);
  }
  kiln__cli_ranks_close(&l->ranks);
  return rc;
}
