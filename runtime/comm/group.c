/* group.c -- creates and frees ranks, and runs the ranks of one process. */
#include "group.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 60000 };

kiln_status kiln__comm_check_opts(const kiln_comm_opts *opts)
{
  static const kiln_comm_opts zero;

  if (opts == NULL)
    return KILN_OK;
  if (opts->data != KILN_COMM_HOST && opts->data != KILN_COMM_NCCL)
    return kiln__comm_fail(KILN_EINVAL, NULL,
                           "kiln_comm_opts.data has the value %d",
                           (int)opts->data);
  if (memcmp(opts->reserved, zero.reserved, sizeof zero.reserved) != 0)
    return kiln__comm_fail(KILN_EINVAL, "initialise kiln_comm_opts with {0}",
                           "a reserved member of kiln_comm_opts is not 0");
  return KILN_OK;
}

unsigned kiln__comm_timeout(const kiln_comm_opts *opts)
{
  return opts != NULL && opts->timeout_ms != 0 ? opts->timeout_ms
                                               : DEFAULT_TIMEOUT_MS;
}

/* Ends this rank's use of the wire of its root. */
static void release_root(kiln__root *root, bool broken)
{
  if (root == NULL)
    return;
  if (broken)
    atomic_store(&root->broken, true);
  if (atomic_fetch_sub(&root->users, 1) > 1)
    return;
  if (root->wire != NULL)
    root->api->close(root->wire, atomic_load(&root->broken));
  free(root);
}

/* Frees a rank whose wire may not be open. */
static void destroy(kiln_comm *comm)
{
  if (comm == NULL)
    return;
  if (comm->wire != NULL) {
    kiln__nccl_leave(comm);
    kiln__comm_drop_pieces(comm);
    kiln__comm_drop_calls(comm);
    if (comm->wire != comm->root->wire)
      comm->api->close(comm->wire, comm->failed >= 0);
  }
  release_root(comm->root, comm->failed >= 0);
  if (comm->stream != NULL) {
    (void)kiln_memory_free(comm->device, comm->bounce);
    kiln_stream_free(comm->stream);
  }
  if (!comm->staging_busy)
    free(comm->staging);
  if (!comm->peers_busy)
    free(comm->peers);
  free(comm);
}

/* Opens the wire of a rank, which shares `root` or gets a new one. */
static kiln_status open_wire(kiln_comm *comm, const void *parent,
                             kiln__root *root)
{
  char why[KILN__WHY_SIZE] = "";

  comm->wire = comm->api->open(parent, &comm->rank, &comm->ranks, why);
  if (root == NULL) {
    root = calloc(1, sizeof *root);
    if (root == NULL && comm->wire != NULL)
      comm->api->close(comm->wire, 1);
    if (root == NULL) {
      comm->wire = NULL;
      return kiln__comm_fail(KILN_ENOMEM, NULL,
                             "out of host memory for a rank");
    }
    root->api = comm->api;
    root->wire = comm->wire;
    atomic_store(&root->contexts, 1);
  }
  comm->root = root;
  atomic_fetch_add(&root->users, 1);
  if (comm->wire == NULL)
    return kiln__comm_fail(KILN_ECOMM, NULL, "cannot join a group: %s", why);
  return KILN_OK;
}

kiln_status kiln__comm_join(kiln_comm **out, const kiln__wire_api *api,
                            const void *parent, kiln__root *root,
                            kiln_device *device, unsigned timeout_ms)
{
  kiln_comm *comm = calloc(1, sizeof *comm);
  kiln_status st = KILN_OK;

  if (comm == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for a rank");
  comm->api = api;
  comm->device = device;
  comm->failed = -1;
  comm->timeout_ms = timeout_ms;
  COMM_TRY(open_wire(comm, parent, root));
  comm->peers = calloc((size_t)comm->ranks, sizeof *comm->peers);
  if (comm->peers == NULL) {
    comm->ranks = 0; /* for destroy() */
    COMM_TRY(
        kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for ranks"));
  }
  if (comm->ranks > KILN__MAX_RANKS)
    COMM_TRY(kiln__comm_fail(KILN_EINVAL, NULL,
                             "the group has %d ranks, and at most %d are "
                             "supported",
                             comm->ranks, KILN__MAX_RANKS));
  COMM_TRY(kiln__comm_listen(comm));
  *out = comm;
  comm = NULL;

done:
  destroy(comm);
  return st;
}

kiln_status kiln_comm_create_all(kiln_comm **out, kiln_device *const *devices,
                                 int n, const kiln_comm_opts *opts)
{
  kiln_status st = KILN_OK;
  kiln__hub *hub;
  int made = 0;

  if (out == NULL || devices == NULL || n < 1 || n > KILN__MAX_RANKS)
    return kiln__comm_fail(KILN_EINVAL, NULL,
                           "out or devices is NULL, or n is not 1 to %d",
                           KILN__MAX_RANKS);
  memset(out, 0, (size_t)n * sizeof *out);
  st = kiln__comm_check_opts(opts);
  if (st != KILN_OK)
    return st;
  for (int i = 0; i < n; i++) {
    if (devices[i] == NULL)
      return kiln__comm_fail(KILN_EINVAL, NULL, "devices[%d] is NULL", i);
  }
  hub = kiln__hub_create(n);
  if (hub == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for a group");
  for (; made < n && st == KILN_OK; made++)
    st = kiln__comm_join(&out[made], &kiln__local_wire, hub, NULL,
                         devices[made], kiln__comm_timeout(opts));
  kiln__hub_release(hub);
  if (st == KILN_OK)
    kiln__peers_enable(out, n);
  if (st == KILN_OK && opts != NULL && opts->data == KILN_COMM_NCCL)
    st = kiln__nccl_join(out, n, opts->nccl);
  if (st == KILN_OK)
    return KILN_OK;
  for (int i = 0; i < n; i++) {
    kiln_comm_free(out[i]);
    out[i] = NULL;
  }
  return st;
}

kiln_status kiln_comm_create_mpi(kiln_comm **out, kiln_device *device,
                                 const void *mpi_comm,
                                 const kiln_comm_opts *opts)
{
  const kiln__wire_api *api;
  kiln_status st;

  if (out == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (device == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "device is NULL");
  st = kiln__comm_check_opts(opts);
  if (st == KILN_OK)
    st = kiln__find_mpi(&api, opts != NULL ? opts->mpi_plugin : NULL);
  if (st == KILN_OK)
    st = kiln__comm_join(out, api, mpi_comm, NULL, device,
                         kiln__comm_timeout(opts));
  if (st == KILN_OK && opts != NULL && opts->data == KILN_COMM_NCCL) {
    st = kiln__nccl_join(out, 1, opts->nccl);
    if (st != KILN_OK) {
      kiln_comm_free(*out);
      *out = NULL;
    }
  }
  return st;
}

void kiln_comm_free(kiln_comm *comm)
{
  destroy(comm);
}

int kiln_comm_rank(const kiln_comm *comm)
{
  return comm != NULL ? comm->rank : -1;
}

int kiln_comm_size(const kiln_comm *comm)
{
  return comm != NULL ? comm->ranks : 0;
}

kiln_device *kiln_comm_device(const kiln_comm *comm)
{
  return comm != NULL ? comm->device : NULL;
}

const char *kiln_comm_engine(const kiln_comm *comm)
{
  if (comm == NULL)
    return "";
  return comm->nccl != NULL ? "nccl" : comm->root->api->name;
}

/* ---- The ranks of one process -------------------------------------------- */

typedef struct rank_thread {
  pthread_t thread;
  kiln_comm *comm;
  kiln_comm_fn fn;
  void *user;
  kiln_status status;
  char message[KILN_ERROR_MESSAGE_SIZE], hint[KILN_ERROR_HINT_SIZE];
} rank_thread;

static void *run_rank(void *argument)
{
  rank_thread *const t = argument;
  const kiln_error *const e = kiln_last_error();

  t->status = t->fn(t->comm, t->user);
  if (t->status == KILN_OK)
    return NULL;
  memcpy(t->message, e->message, sizeof t->message);
  memcpy(t->hint, e->hint, sizeof t->hint);
  (void)kiln__comm_leave(t->comm, t->status);
  return NULL;
}

/* Returns the failure of the first rank that did not fail because of another. */
static kiln_status first_failure(const rank_thread *threads, int n)
{
  const rank_thread *first = NULL;

  for (int i = 0; i < n; i++) {
    const kiln_status st = threads[i].status;

    if (st != KILN_OK &&
        (first == NULL || (first->status == KILN_ECOMM && st != KILN_ECOMM)))
      first = &threads[i];
  }
  if (first == NULL)
    return KILN_OK;
  return kiln_error_write(first->status, first->hint, first->message);
}

kiln_status kiln_comm_run(kiln_comm *const *comms, int n, kiln_comm_fn fn,
                          void *user)
{
  rank_thread *threads;
  kiln_status st;
  int started = 0;

  if (comms == NULL || n < 1 || fn == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL,
                           "comms or fn is NULL, or n is less than 1");
  threads = calloc((size_t)n, sizeof *threads);
  if (threads == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for threads");
  for (; started < n; started++) {
    rank_thread *const t = &threads[started];

    t->comm = comms[started];
    t->fn = fn;
    t->user = user;
    if (pthread_create(&t->thread, NULL, run_rank, t) != 0)
      break;
  }
  for (int i = started; i < n; i++) /* the others would wait for them */
    (void)kiln_comm_abort(comms[i], "its thread cannot be started");
  for (int i = 0; i < started; i++)
    (void)pthread_join(threads[i].thread, NULL);
  if (started < n)
    st = kiln__comm_fail(KILN_ENOMEM, "allow more threads (ulimit -u)",
                         "cannot start a thread for rank %d", started);
  else
    st = first_failure(threads, n);
  free(threads);
  return st;
}
