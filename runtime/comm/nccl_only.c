/* nccl_only.c -- groups that have nothing but NCCL: made from a unique id of NCCL, or
 * from the caller's communicator.
 *
 * Problem: there is no MPI and no common memory, so ranks cannot announce their
 * calls.
 *
 * Idea: the calls go to NCCL at once. What the other engines send between hosts
 * (kiln_comm_share(), counts that a rank does not know, types that NCCL cannot
 * combine) is copied to device memory and sent by NCCL.
 *
 * Invariant: all ranks make the same calls with the same counts, as NCCL demands it.
 * A rank that does not cannot be told apart from one that is dead: the others break
 * the group after the timeout.
 *
 * Cost: no message beyond NCCL's own, so small calls take least time here. */
#include "find_nccl.h"

#include <stdio.h>
#include <stdlib.h>

/* Number and size of a group, which its wire only repeats. */
typedef struct place {
  int rank, ranks;
} place;

static void *silent_open(const void *parent, int *rank, int *ranks,
                         char why[KILN__WHY_SIZE])
{
  const place *const from = parent;
  place *const own = malloc(sizeof *own);

  if (own == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory");
    return NULL;
  }
  *own = *from;
  *rank = from->rank;
  *ranks = from->ranks;
  return own;
}

static void silent_close(void *wire, int broken)
{
  (void)broken;
  free(wire);
}

/* Farewells are posted, and not sent. */
static void *silent_post(void *wire, int receive, int peer, int channel,
                         void *data, size_t size, char why[KILN__WHY_SIZE])
{
  (void)wire;
  (void)receive;
  (void)peer;
  (void)channel;
  (void)data;
  (void)size;
  (void)snprintf(why, KILN__WHY_SIZE, "the group has only NCCL");
  return NULL;
}

static int silent_test(void *wire, void *request, char why[KILN__WHY_SIZE])
{
  (void)wire;
  (void)request;
  (void)why;
  return 1;
}

static int silent_drop(void *wire, void *request)
{
  (void)wire;
  (void)request;
  return 1;
}

static void silent_rest(void *wire)
{
  (void)wire;
}

const kiln__wire_api kiln__silent_wire = {
    .version = KILN__WIRE_VERSION,
    .name = "nccl",
    .open = silent_open,
    .close = silent_close,
    .post = silent_post,
    .test = silent_test,
    .drop = silent_drop,
    .rest = silent_rest,
};

bool kiln__comm_silent(const kiln_comm *comm)
{
  return comm->root->api == &kiln__silent_wire;
}

/* ---- Host memory through NCCL -------------------------------------------- */

static kiln_status need_bounce(kiln_comm *comm)
{
  kiln_status st = KILN_OK;

  if (comm->stream == NULL)
    st = kiln_stream_create(&comm->stream, comm->device, NULL);
  if (st == KILN_OK && comm->bounce == 0)
    st = kiln_memory_alloc(&comm->bounce, comm->device,
                           2 * (size_t)comm->ranks * KILN_COMM_STAGING);
  return st;
}

/* Places and sizes of the pieces in comm->bounce: all that are sent, then all that
 * are received. */
typedef struct layout {
  uint64_t *out_at, *out_size, *in_at, *in_size;
} layout;

static bool make_layout(layout *l, const kiln_comm *comm,
                        const kiln__piece *pieces)
{
  const size_t n = (size_t)comm->ranks;

  l->out_at = calloc(4 * n, sizeof *l->out_at);
  if (l->out_at == NULL)
    return false;
  l->out_size = l->out_at + n;
  l->in_at = l->out_size + n;
  l->in_size = l->in_at + n;
  for (size_t p = 0; p < n; p++) {
    l->out_at[p] = p * KILN_COMM_STAGING;
    l->in_at[p] = (n + p) * KILN_COMM_STAGING;
    if ((int)p == comm->rank)
      continue;
    l->out_size[p] = pieces[p].out_size;
    l->in_size[p] = pieces[p].in_size;
  }
  return true;
}

static kiln_status send_pieces(kiln_comm *comm, const kiln__piece *pieces,
                               const layout *l)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    if (l->out_size[p] > 0)
      st = kiln_copy_to_device_async(comm->stream, comm->bounce + l->out_at[p],
                                     pieces[p].out, pieces[p].out_size);
  }
  if (st == KILN_OK)
    st = kiln__nccl_move(comm, comm->stream, comm->bounce, l->out_at,
                         l->out_size, comm->bounce, l->in_at, l->in_size);
  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    if (l->in_size[p] > 0)
      st = kiln_copy_to_host_async(comm->stream, pieces[p].in,
                                   comm->bounce + l->in_at[p],
                                   pieces[p].in_size);
  }
  return st == KILN_OK ? kiln_stream_synchronize(comm->stream) : st;
}

kiln_status kiln__silent_exchange(kiln_comm *comm, const kiln__piece *pieces)
{
  layout l = {.out_at = NULL};
  kiln_status st = need_bounce(comm);

  if (st == KILN_OK && !make_layout(&l, comm, pieces))
    st = kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for counts");
  if (st == KILN_OK)
    st = send_pieces(comm, pieces, &l);
  free(l.out_at);
  return kiln__comm_leave(comm, st);
}

/* ---- Instead of announcements -------------------------------------------- */

/* Sends every rank the bytes that it will receive from this one. */
static kiln_status exchange_sizes(kiln_comm *comm)
{
  kiln__piece *const pieces = calloc((size_t)comm->ranks, sizeof *pieces);
  kiln_status st;

  if (pieces == NULL)
    return kiln__comm_leave(
        comm, kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  for (int p = 0; p < comm->ranks; p++) {
    kiln__peer *const peer = &comm->peers[p];

    pieces[p] = (kiln__piece){&peer->sent.sends, &peer->got.sends,
                              sizeof peer->sent.sends, sizeof peer->got.sends};
  }
  st = kiln__silent_exchange(comm, pieces);
  free(pieces);
  return st;
}

kiln_status kiln__silent_announce(kiln_comm *comm, const kiln__call *call,
                                  const uint64_t *sends,
                                  const uint64_t *receives)
{
  bool unknown = call->kind == KILN__CALL_BARRIER;
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks; p++) {
    kiln__peer *const peer = &comm->peers[p];

    peer->sent = peer->got = *call;
    peer->sent.sends = sends != NULL ? sends[p] : 0;
    peer->got.sends = receives != NULL ? receives[p] : 0;
    if (p == comm->rank)
      peer->got.sends = peer->sent.sends;
    else if (peer->got.sends == KILN__ANY_SIZE)
      unknown = true;
  }
  if (unknown)
    st = exchange_sizes(comm);
  if (st == KILN_OK)
    comm->number++;
  return st;
}

/* ---- Groups -------------------------------------------------------------- */

/* Joins a group of NCCL alone: that of `id`, or of the caller's communicator. */
static kiln_status join_alone(kiln_comm **out, kiln_device *device,
                              const place *at, const kiln__nccl_id *id,
                              void *handle, const char *path,
                              unsigned timeout_ms)
{
  kiln_status st =
      kiln__comm_join(out, &kiln__silent_wire, at, NULL, device, timeout_ms);

  if (st != KILN_OK)
    return st;
  st = kiln__nccl_join_alone(*out, id, handle, path);
  if (st != KILN_OK) {
    (*out)->failed = (*out)->rank; /* NCCL has nothing to wait for */
    kiln_comm_free(*out);
    *out = NULL;
  }
  return st;
}

kiln_status kiln__comm_join_nccl_id(kiln_comm **out, kiln_device *device,
                                    const void *id, int ranks, int rank,
                                    const char *path, unsigned timeout_ms)
{
  const place at = {rank, ranks};

  return join_alone(out, device, &at, id, NULL, path, timeout_ms);
}

kiln_status kiln_comm_from_nccl(kiln_comm **out, kiln_device *device,
                                void *nccl_comm, const kiln_comm_opts *opts)
{
  const char *const path = opts != NULL ? opts->nccl : NULL;
  kiln__nccl_api api;
  place at = {0, 0};
  kiln_status st;

  if (out == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (device == NULL || nccl_comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "device or nccl_comm is NULL");
  st = kiln__comm_check_opts(opts);
  if (st == KILN_OK)
    st = kiln__find_nccl(&api, path);
  if (st != KILN_OK)
    return st;
  if (api.CommCount(nccl_comm, &at.ranks) != KILN__NCCL_SUCCESS ||
      api.CommUserRank(nccl_comm, &at.rank) != KILN__NCCL_SUCCESS)
    return kiln__comm_fail(KILN_ECOMM,
                           "pass the ncclComm_t itself, and in "
                           "kiln_comm_opts.nccl the libnccl that made it",
                           "NCCL does not accept the communicator");
  return join_alone(out, device, &at, NULL, nccl_comm, path,
                    kiln__comm_timeout(opts));
}
