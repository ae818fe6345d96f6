/* divide.c -- divides a group into smaller ones.
 *
 * Problem: a call of MPI that creates a communicator can hang when a rank dies,
 * and threads of one process have no such call.
 *
 * Idea: a new group has no connections of its own. It is a view of the wire of the
 * group from which all were split: a table translates its ranks, and a context, a
 * number that is added to the channels, keeps its messages apart.
 *
 * Invariant: no two groups to which a rank belongs have the same context. Each rank
 * counts the contexts that it knows of, and a new group takes the largest count of
 * all ranks that take part. Groups without common ranks may share a number, since
 * the pair of ranks tells their messages apart.
 *
 * Cost: one kiln_comm_share() of 12 bytes per rank; a table of the ranks. */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each rank tells the others. */
typedef struct wish {
  int32_t colour, key, contexts;
} wish;

/* The table of a new group. */
typedef struct view {
  kiln__root *root;
  int channel; /* that is added to those of wire.h */
  int rank, ranks;
  int members[]; /* the ranks of the new group as ranks of the root */
} view;

/* A rank of the group that is divided. */
typedef struct member {
  int key, rank;
} member;

static int by_key(const void *a, const void *b)
{
  const member *const x = a, *const y = b;

  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return x->rank < y->rank ? -1 : 1;
}

static size_t size_of_view(int ranks)
{
  return sizeof(view) + (size_t)ranks * sizeof(int);
}

/* Copies the view `parent`. */
static void *view_open(const void *parent, int *rank, int *ranks,
                       char why[KILN__WHY_SIZE])
{
  const view *const from = parent;
  view *const v = malloc(size_of_view(from->ranks));

  if (v == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory");
    return NULL;
  }
  memcpy(v, from, size_of_view(from->ranks));
  *rank = v->rank;
  *ranks = v->ranks;
  return v;
}

static void view_close(void *wire, int broken)
{
  (void)broken;
  free(wire);
}

static void *view_post(void *wire, int receive, int peer, int channel,
                       void *data, size_t size, char why[KILN__WHY_SIZE])
{
  const view *const v = wire;

  return v->root->api->post(v->root->wire, receive, v->members[peer],
                            v->channel + channel, data, size, why);
}

static int view_test(void *wire, void *request, char why[KILN__WHY_SIZE])
{
  const view *const v = wire;

  return v->root->api->test(v->root->wire, request, why);
}

static int view_drop(void *wire, void *request)
{
  const view *const v = wire;

  return v->root->api->drop(v->root->wire, request);
}

static void view_rest(void *wire)
{
  const view *const v = wire;

  v->root->api->rest(v->root->wire);
}

static const kiln__wire_api view_wire = {
    .version = KILN__WIRE_VERSION,
    .name = "split",
    .open = view_open,
    .close = view_close,
    .post = view_post,
    .test = view_test,
    .drop = view_drop,
    .rest = view_rest,
};

/* Returns the number of a rank in the group from which all were split. */
static int rank_in_root(const kiln_comm *comm, int rank)
{
  const view *const v = comm->wire;

  return comm->api == &view_wire ? v->members[rank] : rank;
}

/* Agrees on the context: the largest count of all ranks. All of them continue to
 * count behind it. */
static int agree_context(kiln_comm *comm, const wish *wishes)
{
  int context = 0;

  for (int p = 0; p < comm->ranks; p++) {
    if (wishes[p].contexts > context)
      context = wishes[p].contexts;
  }
  for (int known = atomic_load(&comm->root->contexts); known <= context;) {
    if (atomic_compare_exchange_weak(&comm->root->contexts, &known,
                                     context + 1))
      break;
  }
  return context;
}

/* Creates the table of the group with this rank's colour. Returns NULL if memory
 * ran out. */
static view *make_view(kiln_comm *comm, const wish *wishes, int context)
{
  view *const v = malloc(size_of_view(comm->ranks));
  member *const chosen = malloc((size_t)comm->ranks * sizeof *chosen);

  if (v == NULL || chosen == NULL) {
    free(v);
    free(chosen);
    return NULL;
  }
  v->root = comm->root;
  v->channel = context * KILN__CHANNELS;
  v->rank = v->ranks = 0;
  for (int p = 0; p < comm->ranks; p++) {
    if (wishes[p].colour == wishes[comm->rank].colour)
      chosen[v->ranks++] = (member){wishes[p].key, p};
  }
  qsort(chosen, (size_t)v->ranks, sizeof *chosen, by_key);
  for (int i = 0; i < v->ranks; i++) {
    v->members[i] = rank_in_root(comm, chosen[i].rank);
    if (chosen[i].rank == comm->rank)
      v->rank = i;
  }
  free(chosen);
  return v;
}

/* Joins the group with this rank's colour. */
static kiln_status join_split(kiln_comm **out, kiln_comm *comm,
                              const wish *wishes, int context)
{
  view *const v = make_view(comm, wishes, context);
  kiln_status st;

  if (v == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for a group");
  st = kiln__comm_join(out, &view_wire, v, comm->root, comm->device,
                       comm->timeout_ms);
  free(v);
  return st;
}

kiln_status kiln_comm_split(kiln_comm **out, kiln_comm *comm, int colour,
                            int key)
{
  wish mine = {colour, key, 0}, *all = NULL;
  kiln_status st = KILN_OK;
  int context;

  if (out != NULL)
    *out = NULL;
  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  if (out == NULL)
    COMM_TRY(kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL"));
  all = calloc((size_t)comm->ranks, sizeof *all);
  if (all == NULL)
    COMM_TRY(
        kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for a group"));
  mine.contexts = atomic_load(&comm->root->contexts);
  COMM_TRY(kiln_comm_share(comm, &mine, sizeof mine, all));
  context = agree_context(comm, all);
  if (colour >= 0)
    COMM_TRY(join_split(out, comm, all, context));
  if (comm->nccl != NULL)
    COMM_TRY(kiln__nccl_split(*out, comm, colour, key));

done:
  free(all);
  if (st != KILN_OK && out != NULL) {
    kiln_comm_free(*out);
    *out = NULL;
  }
  return kiln__comm_leave(comm, st);
}
