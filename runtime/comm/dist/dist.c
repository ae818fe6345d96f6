/* dist.c -- what the distributed operations share: begin, end, small copies. */
#include "dist.h"

#include <stdlib.h>
#include <string.h>

/* Copies a desc that was made by the header of another version: missing members
 * are 0, and members that this library does not know must be 0. */
static kiln_status adopt(const void *desc, size_t size, void *own,
                         size_t own_size)
{
  const unsigned char *const bytes = desc;

  memset(own, 0, own_size);
  memcpy(own, desc, size < own_size ? size : own_size);
  for (size_t i = own_size; i < size; i++) {
    if (bytes[i] != 0)
      return kiln__comm_fail(KILN_EINVAL, "use a newer library kiln_comm",
                             "the desc has a member that this version of Kiln "
                             "does not know");
  }
  return KILN_OK;
}

kiln_status kiln__dist_begin(kiln__dist *d, kiln_comm *comm,
                             kiln_stream *stream, const void *desc, size_t size,
                             void *own, size_t own_size)
{
  kiln_status st;

  *d = (kiln__dist){comm, stream, 0};
  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  st = kiln__comm_whole(comm);
  if (st != KILN_OK)
    return st;
  if (stream == NULL || kiln_stream_device(stream) != comm->device)
    st = kiln__comm_fail(KILN_EINVAL, "pass a stream of kiln_comm_device()",
                         "stream is NULL or belongs to another device");
  else if (desc == NULL)
    st = kiln__comm_fail(KILN_EINVAL, NULL, "desc is NULL");
  else
    st = adopt(desc, size, own, own_size);
  return kiln__comm_leave(comm, st);
}

kiln_status kiln__dist_size_begin(kiln__dist *d, kiln_comm *comm,
                                  kiln_stream *stream, const void *desc,
                                  size_t size, void *own, size_t own_size,
                                  size_t *bytes)
{
  if (bytes == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "bytes is NULL");
  *bytes = 0;
  return kiln__dist_begin(d, comm, stream, desc, size, own, own_size);
}

kiln_status kiln__dist_scratch(kiln__dist *d, size_t size)
{
  const kiln_workspace *const own = &d->comm->workspace;

  if (own->data == 0)
    return kiln_memory_alloc_async(&d->scratch, d->stream, size);
  if (size > own->size)
    return kiln__comm_fail(KILN_EINVAL,
                           "pass a larger one to kiln_dist_set_workspace()",
                           "the workspace has %zu bytes, and the operation "
                           "needs %zu",
                           own->size, size);
  d->scratch = own->data;
  return KILN_OK;
}

kiln_status kiln_dist_set_workspace(kiln_comm *comm,
                                    const kiln_workspace *workspace)
{
  static const kiln_workspace none = {0, 0};

  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  if (workspace == NULL)
    workspace = &none;
  if (workspace->data % 256 != 0 ||
      (workspace->data == 0 && workspace->size > 0))
    return kiln__comm_fail(KILN_EINVAL, "align it to 256 bytes",
                           "the address of the workspace is 0x%llx",
                           (unsigned long long)workspace->data);
  comm->workspace = *workspace;
  return KILN_OK;
}

size_t kiln__dist_place(size_t *total, uint64_t n, size_t size)
{
  const size_t most = SIZE_MAX - 511;
  const size_t at = *total <= most ? (*total + 255) / 256 * 256 : 0;

  if (*total > most || (size > 0 && n > (most - at) / size))
    *total = SIZE_MAX;
  else
    *total = at + (size_t)n * size;
  return at;
}

kiln_status kiln__dist_end(kiln__dist *d, kiln_status st)
{
  char message[KILN_ERROR_MESSAGE_SIZE], hint[KILN_ERROR_HINT_SIZE];
  kiln_status freed;

  if (d->comm == NULL)
    return st;
  if (d->scratch == 0 || d->scratch == d->comm->workspace.data)
    return kiln__comm_leave(d->comm, st);
  if (st == KILN_OK)
    return kiln__comm_leave(d->comm,
                            kiln_memory_free_async(d->stream, d->scratch));
  memcpy(message, kiln_last_error()->message, sizeof message);
  memcpy(hint, kiln_last_error()->hint, sizeof hint);
  freed = kiln_memory_free_async(d->stream, d->scratch);
  if (freed != KILN_OK) /* the first failure counts */
    (void)kiln_error_write(st, hint, message);
  return kiln__comm_leave(d->comm, st);
}

kiln_status kiln__dist_get(kiln__dist *d, void *out, CUdeviceptr p, size_t size)
{
  const kiln_status st = kiln_copy_to_host_async(d->stream, out, p, size);

  return st == KILN_OK ? kiln_stream_synchronize(d->stream) : st;
}

kiln_status kiln__dist_put(kiln__dist *d, CUdeviceptr p, const void *data,
                           size_t size)
{
  const kiln_status st = kiln_copy_to_device_async(d->stream, p, data, size);

  return st == KILN_OK ? kiln_stream_synchronize(d->stream) : st;
}

kiln_status kiln__trade_create(kiln__trade *t, const kiln_comm *comm)
{
  const size_t ranks = (size_t)comm->ranks;

  t->from = calloc(4 * ranks, sizeof *t->from);
  if (t->from == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  t->sizes = t->from + ranks;
  t->to = t->sizes + ranks;
  t->to_sizes = t->to + ranks;
  return KILN_OK;
}

kiln_status kiln__trade_run(const kiln__trade *t, kiln_comm *comm,
                            kiln_stream *stream)
{
  return kiln__comm_trade(comm, stream, t->from, t->sizes, t->to, t->to_sizes);
}

kiln_status kiln__dist_extend(kiln__dist_code *c, const kiln_code *user,
                              const kiln_param *added, size_t n)
{
  const size_t most = sizeof c->params / sizeof *c->params;

  c->all = *user;
  if (user->n_params + n > most || (user->n_params > 0 && user->params == NULL))
    return kiln__comm_fail(KILN_EINVAL, "pass fewer parameters",
                           "%zu parameters are given, and at most %zu are "
                           "possible in this call",
                           user->n_params, most - n);
  for (size_t i = 0; i < user->n_params; i++)
    c->params[i] = user->params[i];
  for (size_t i = 0; i < n; i++)
    c->params[user->n_params + i] = added[i];
  c->all.params = c->params;
  c->all.n_params = user->n_params + n;
  return KILN_OK;
}

kiln_dtype kiln__dist_type(kiln_array out, const kiln_input *x)
{
  if (out.type != KILN_DTYPE_NONE)
    return out.type;
  return x->type != KILN_DTYPE_NONE ? x->type : x->in[0].type;
}

kiln_status kiln__dist_gather(kiln__dist *d, kiln_array element,
                              kiln_array gathered, bool has, uint64_t *m)
{
  const uint64_t mine = has ? 1 : 0;
  uint64_t *const counts = calloc((size_t)d->comm->ranks, sizeof *counts);
  kiln_status st;

  if (counts == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory for counts");
  st = kiln_comm_share(d->comm, &mine, sizeof mine, counts);
  if (st == KILN_OK)
    st = kiln_comm_all_gather(d->comm, d->stream, element, gathered, counts);
  *m = 0;
  for (int p = 0; p < d->comm->ranks; p++)
    *m += counts[p];
  free(counts);
  return st;
}

kiln_status kiln_dist_blocks(kiln_comm *comm, uint64_t n, uint64_t *first,
                             uint64_t *total)
{
  uint64_t *all, sum = 0;
  kiln_status st;

  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  all = calloc((size_t)comm->ranks, sizeof *all);
  if (all == NULL)
    return kiln__comm_leave(
        comm, kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  st = kiln_comm_share(comm, &n, sizeof n, all);
  for (int p = 0; p < comm->ranks; p++) {
    if (p == comm->rank && first != NULL)
      *first = sum;
    sum += all[p];
  }
  if (total != NULL)
    *total = sum;
  free(all);
  return st;
}
