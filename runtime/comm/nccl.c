/* nccl.c -- collectives whose data NCCL moves between the devices.
 *
 * NCCL stands on a group of another engine, which announces every call first.
 * Wrong calls and dead ranks are thus found as in any group, before NCCL has any
 * work. While NCCL works, this rank asks NCCL for asynchronous errors and listens
 * for farewells. If the work does not end in time, the ranks answer a roll call,
 * which finds the dead one, and NCCL's work is aborted.
 *
 * All exchanges of blocks are grouped sends and receives of bytes. Reductions that
 * NCCL lacks, or defines in another way (minimum and maximum of NaN), are left to
 * the copies through host memory. */
#include "find_nccl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct kiln__nccl {
  kiln__nccl_api api;
  void *comm;
  bool borrowed; /* the caller's: it is never destroyed or aborted */
};

enum { SPIN_MS = 1 };

/* Breaks the group if NCCL has failed. If another rank has sent a farewell, its
 * cause is the first one, and NCCL's error is a consequence. */
static kiln_status check(kiln_comm *comm, int result, const char *what)
{
  kiln_status st;

  if (result == KILN__NCCL_SUCCESS || result == KILN__NCCL_IN_PROGRESS)
    return KILN_OK;
  st = kiln__comm_attend(comm);
  if (st != KILN_OK)
    return st;
  return kiln__comm_break(comm, comm->rank, "rank %d: %s failed: %s",
                          comm->rank, what,
                          comm->nccl->api.GetErrorString(result));
}

/* Makes the context of the rank's device current, from which NCCL takes the
 * device. Without libcuda, as on the CPU device, nothing is done. */
static void set_context(kiln_comm *comm, CUcontext context)
{
  kiln_driver_info driver = {0};
  int (*set)(CUcontext) = NULL;
  void *library, *symbol;

  if (kiln_runtime_driver(kiln_device_runtime(comm->device), &driver) !=
          KILN_OK ||
      driver.path[0] == '\0')
    return;
  library = dlopen(driver.path, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL)
    return;
  symbol = dlsym(library, "cuCtxSetCurrent");
  memcpy(&set, &symbol, sizeof symbol);
  if (set != NULL)
    (void)set(context);
  (void)dlclose(library);
}

static kiln_status init_rank(kiln_comm *comm, const kiln__nccl_id *id)
{
  CUcontext context = NULL;
  kiln_status st = kiln_device_context(comm->device, &context);

  if (st != KILN_OK)
    return st;
  set_context(comm, context);
  return check(comm,
               comm->nccl->api.CommInitRank(&comm->nccl->comm, comm->ranks, *id,
                                            comm->rank),
               "ncclCommInitRank");
}

/* Gives all ranks the id that rank 0 makes. */
static kiln_status share_id(kiln_comm *comm, kiln__nccl_id *id)
{
  kiln__nccl_id *const all = calloc((size_t)comm->ranks, sizeof *all);
  kiln_status st = KILN_OK;

  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  memset(id, 0, sizeof *id);
  if (comm->rank == 0)
    st = check(comm, comm->nccl->api.GetUniqueId(id), "ncclGetUniqueId");
  if (st == KILN_OK)
    st = kiln_comm_share(comm, id, sizeof *id, all);
  *id = all[0];
  free(all);
  return st;
}

/* Initialises the ranks of this process at once, since each one waits for all. */
static kiln_status init_ranks(kiln_comm *const *comms, int n,
                              const kiln__nccl_id *id)
{
  const kiln__nccl_api *const api = &comms[0]->nccl->api;
  kiln_status st = check(comms[0], api->GroupStart(), "ncclGroupStart");
  int ended;

  if (st != KILN_OK)
    return st;
  for (int i = 0; i < n && st == KILN_OK; i++)
    st = init_rank(comms[i], id);
  ended = api->GroupEnd();
  return st == KILN_OK ? check(comms[0], ended, "ncclGroupEnd") : st;
}

kiln_status kiln__nccl_join(kiln_comm *const *comms, int n, const char *path)
{
  kiln__nccl_id id;
  kiln_status st;

  for (int i = 0; i < n; i++) {
    comms[i]->nccl = calloc(1, sizeof *comms[i]->nccl);
    if (comms[i]->nccl == NULL)
      return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
    st = kiln__find_nccl(&comms[i]->nccl->api, path);
    if (st != KILN_OK)
      return kiln__comm_leave(comms[i], st);
  }
  if (n == comms[0]->ranks)
    st = check(comms[0], comms[0]->nccl->api.GetUniqueId(&id),
               "ncclGetUniqueId");
  else
    st = share_id(comms[0], &id);
  if (st == KILN_OK)
    st = init_ranks(comms, n, &id);
  return kiln__comm_leave(comms[0], st);
}

kiln_status kiln__nccl_join_alone(kiln_comm *comm, const kiln__nccl_id *id,
                                  void *handle, const char *path)
{
  kiln_status st;

  comm->nccl = calloc(1, sizeof *comm->nccl);
  if (comm->nccl == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln__find_nccl(&comm->nccl->api, path);
  if (st != KILN_OK)
    return st;
  comm->nccl->comm = handle;
  comm->nccl->borrowed = handle != NULL;
  return handle != NULL ? KILN_OK : init_rank(comm, id);
}

kiln_status kiln__nccl_split(kiln_comm *comm, kiln_comm *parent, int colour,
                             int key)
{
  void *made = NULL;
  kiln_status st;

  if (comm != NULL) {
    comm->nccl = calloc(1, sizeof *comm->nccl);
    if (comm->nccl == NULL)
      return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
    comm->nccl->api = parent->nccl->api;
  }
  st =
      check(parent,
            parent->nccl->api.CommSplit(
                parent->nccl->comm, colour < 0 ? -1 : colour, key, &made, NULL),
            "ncclCommSplit");
  if (comm != NULL)
    comm->nccl->comm = made;
  return st;
}

void kiln__nccl_leave(kiln_comm *comm)
{
  kiln__nccl *const nccl = comm->nccl;

  if (nccl == NULL)
    return;
  if (nccl->comm != NULL && !nccl->borrowed) {
    if (comm->failed >= 0)
      (void)nccl->api.CommAbort(nccl->comm);
    else
      (void)nccl->api.CommDestroy(nccl->comm);
  }
  free(nccl);
  comm->nccl = NULL;
}

/* ---- Waiting ------------------------------------------------------------- */

/* Aborts NCCL's work, so that the stream can end. The caller's communicator is left
 * to the caller. */
static kiln_status stop(kiln_comm *comm, kiln_status st)
{
  if (comm->nccl->comm != NULL && !comm->nccl->borrowed)
    (void)comm->nccl->api.CommAbort(comm->nccl->comm);
  comm->nccl->comm = NULL;
  return st;
}

/* Waits for the stream, NCCL's errors, farewells and the timeout. It sleeps only
 * after a millisecond, since small calls take some microseconds. */
static kiln_status finish(kiln_comm *comm, kiln_stream *stream)
{
  const struct timespec pause = {0, 20000};
  const uint64_t start = kiln__comm_now();
  kiln_status st = kiln_stream_query(stream);

  while (st == KILN_ENOTREADY) {
    int result = KILN__NCCL_SUCCESS;

    if (kiln__comm_now() - start <= SPIN_MS) {
      st = kiln_stream_query(stream);
      continue;
    }
    (void)comm->nccl->api.CommGetAsyncError(comm->nccl->comm, &result);
    st = check(comm, result, "NCCL");
    if (st == KILN_OK)
      st = kiln__comm_attend(comm);
    if (st == KILN_OK && kiln__comm_now() - start > comm->timeout_ms)
      st = kiln__comm_roll_call(comm, "NCCL");
    if (st != KILN_OK)
      return stop(comm, st);
    (void)nanosleep(&pause, NULL);
    st = kiln_stream_query(stream);
  }
  return st;
}

/* ---- Data ---------------------------------------------------------------- */

static void *pointer(CUdeviceptr p)
{
  return (void *)(uintptr_t)p;
}

/* Begins calls of NCCL, unless a rank has left meanwhile: a rank that was late finds
 * the announcements of ranks that do not wait for it any more. */
static kiln_status start(kiln_comm *comm)
{
  const kiln_status st = kiln__comm_attend(comm);

  return st != KILN_OK ? stop(comm, st) : KILN_OK;
}

static kiln_status start_group(kiln_comm *comm)
{
  const kiln_status st = start(comm);

  if (st != KILN_OK)
    return st;
  return check(comm, comm->nccl->api.GroupStart(), "ncclGroupStart");
}

/* Ends a single call of NCCL. */
static kiln_status end(kiln_comm *comm, kiln_stream *stream, int result,
                       const char *what)
{
  const kiln_status st = check(comm, result, what);

  return st == KILN_OK ? finish(comm, stream) : stop(comm, st);
}

/* Ends a group of NCCL calls, of which `result` is the first failure. */
static kiln_status end_group(kiln_comm *comm, kiln_stream *stream, int result,
                             const char *what)
{
  const int ended = comm->nccl->api.GroupEnd();
  const kiln_status st =
      check(comm, result != KILN__NCCL_SUCCESS ? result : ended, what);

  return st == KILN_OK ? finish(comm, stream) : stop(comm, st);
}

kiln_status kiln__nccl_move(kiln_comm *comm, kiln_stream *stream,
                            CUdeviceptr out, const uint64_t *out_at,
                            const uint64_t *out_size, CUdeviceptr in,
                            const uint64_t *in_at, const uint64_t *in_size)
{
  const kiln__nccl *const nccl = comm->nccl;
  CUstream handle = kiln_stream_handle(stream);
  const kiln_status st = start_group(comm);
  int result = KILN__NCCL_SUCCESS;

  if (st != KILN_OK)
    return st;
  for (int p = 0; p < comm->ranks; p++) {
    if (p == comm->rank)
      continue;
    if (out_size[p] > 0 && result == KILN__NCCL_SUCCESS)
      result = nccl->api.Send(pointer(out + out_at[p]), out_size[p], 1, p,
                              nccl->comm, handle);
    if (in_size[p] > 0 && result == KILN__NCCL_SUCCESS)
      result = nccl->api.Recv(pointer(in + in_at[p]), in_size[p], 1, p,
                              nccl->comm, handle);
  }
  return end_group(comm, stream, result, "an exchange by NCCL");
}

kiln_status kiln__nccl_pair(kiln_comm *comm, kiln_stream *stream, bool receive,
                            int peer, CUdeviceptr data, uint64_t size)
{
  const kiln__nccl *const nccl = comm->nccl;
  CUstream handle = kiln_stream_handle(stream);
  const kiln_status st = start(comm);
  int result;

  if (st != KILN_OK)
    return st;
  if (receive)
    result = nccl->api.Recv(pointer(data), size, 1, peer, nccl->comm, handle);
  else
    result = nccl->api.Send(pointer(data), size, 1, peer, nccl->comm, handle);
  return end(comm, stream, result, receive ? "ncclRecv" : "ncclSend");
}

static int nccl_type(kiln_dtype type)
{
  switch (type) {
#define TYPE_CASE(name, theirs, value)                                         \
  case KILN_##name:                                                            \
    return value;
    KILN__NCCL_TYPES(TYPE_CASE)
#undef TYPE_CASE
  default:
    return -1;
  }
}

static int nccl_op(kiln_op_name op)
{
  switch (op) {
#define OP_CASE(name, theirs, value)                                           \
  case KILN_##name:                                                            \
    return value;
    KILN__NCCL_OPS(OP_CASE)
#undef OP_CASE
  default:
    return -1;
  }
}

bool kiln__nccl_reduces(const kiln_comm *comm, kiln_dtype type, kiln_op_name op)
{
  if (comm->nccl == NULL || nccl_type(type) < 0 || nccl_op(op) < 0)
    return false;
  return type < KILN_F16 || op == KILN_SUM || op == KILN_PROD;
}

kiln_status kiln__nccl_all_reduce(kiln_comm *comm, kiln_stream *stream,
                                  kiln_array in, CUdeviceptr out, uint64_t n,
                                  kiln_op_name op)
{
  const kiln__nccl *const nccl = comm->nccl;
  const kiln_status st = start(comm);
  int result = KILN__NCCL_SUCCESS;

  if (st != KILN_OK)
    return st;
  if (n > 0)
    result = nccl->api.AllReduce(pointer(in.data), pointer(out), n,
                                 nccl_type(in.type), nccl_op(op), nccl->comm,
                                 kiln_stream_handle(stream));
  return end(comm, stream, result, "ncclAllReduce");
}

kiln_status kiln__nccl_all_gather(kiln_comm *comm, kiln_stream *stream,
                                  CUdeviceptr in, CUdeviceptr out,
                                  uint64_t size)
{
  const kiln__nccl *const nccl = comm->nccl;
  const kiln_status st = start(comm);
  int result = KILN__NCCL_SUCCESS;

  if (st != KILN_OK)
    return st;
  if (size > 0)
    result = nccl->api.AllGather(pointer(in), pointer(out), size, 1, nccl->comm,
                                 kiln_stream_handle(stream));
  return end(comm, stream, result, "ncclAllGather");
}

kiln_status kiln__nccl_broadcast(kiln_comm *comm, kiln_stream *stream,
                                 CUdeviceptr x, uint64_t size, int root)
{
  const kiln__nccl *const nccl = comm->nccl;
  const kiln_status st = start(comm);
  int result = KILN__NCCL_SUCCESS;

  if (st != KILN_OK)
    return st;
  if (size > 0)
    result = nccl->api.Broadcast(pointer(x), pointer(x), size, 1, root,
                                 nccl->comm, kiln_stream_handle(stream));
  return end(comm, stream, result, "ncclBroadcast");
}

/* Returns whether all blocks have the same size and follow each other. */
static bool even_blocks(const kiln_comm *comm, const uint64_t *at,
                        const uint64_t *size)
{
  for (int p = 0; p < comm->ranks; p++) {
    if (size[p] != size[0] || at[p] != (uint64_t)p * size[0])
      return false;
  }
  return true;
}

kiln_status kiln__nccl_reduce_blocks(kiln_comm *comm, kiln_stream *stream,
                                     kiln_array in, CUdeviceptr out,
                                     const uint64_t *at, const uint64_t *size,
                                     kiln_op_name op)
{
  const kiln__nccl *const nccl = comm->nccl;
  const kiln_status st = start_group(comm);
  const bool even = even_blocks(comm, at, size);
  int result = KILN__NCCL_SUCCESS;

  if (st != KILN_OK)
    return st;
  if (even && size[0] > 0)
    result = nccl->api.ReduceScatter(pointer(in.data), pointer(out),
                                     size[0] / kiln_dtype_size(in.type),
                                     nccl_type(in.type), nccl_op(op),
                                     nccl->comm, kiln_stream_handle(stream));
  for (int p = 0; p < comm->ranks && !even && result == KILN__NCCL_SUCCESS;
       p++) {
    if (size[p] > 0)
      result = nccl->api.Reduce(
          pointer(in.data + at[p]), p == comm->rank ? pointer(out) : NULL,
          size[p] / kiln_dtype_size(in.type), nccl_type(in.type), nccl_op(op),
          p, nccl->comm, kiln_stream_handle(stream));
  }
  return end_group(comm, stream, result, "ncclReduce");
}
