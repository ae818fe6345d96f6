/* peer_copy.c -- blocks between the devices of one process, without host memory.
 *
 * Problem: ranks that are threads of one process see each other's device memory, so
 * that staging in host memory copies each byte twice more than needed.
 *
 * Idea: the owner of a block sends its address. The receiver copies the block by
 * cuMemcpyPeerAsync() into its own memory and acknowledges it. Where devices can access
 * each other (NVLink, PCIe), the driver copies directly; elsewhere it stages.
 *
 * Invariant: the owner leaves the call only after all acknowledgements, so no block
 * changes while it is read.
 *
 * Cost: one copy per byte, and two small messages per pair of ranks. */
#include "group.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Where a block lies. */
typedef struct source {
  kiln_device *device;
  CUdeviceptr data;
} source;

typedef struct access_api {
  int (*push)(CUcontext), (*pop)(CUcontext *), (*enable)(CUcontext, unsigned);
} access_api;

/* Finds the functions in the libcuda that the runtime has loaded. The CPU device has
 * none, and needs none. */
static bool find_access(access_api *api, kiln_device *device)
{
  kiln_driver_info driver = {0};
  void *library, *symbols[3] = {NULL};

  if (kiln_runtime_driver(kiln_device_runtime(device), &driver) != KILN_OK ||
      driver.path[0] == '\0')
    return false;
  library = dlopen(driver.path, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL)
    return false;
  symbols[0] = dlsym(library, "cuCtxPushCurrent_v2");
  symbols[1] = dlsym(library, "cuCtxPopCurrent_v2");
  symbols[2] = dlsym(library, "cuCtxEnablePeerAccess");
  (void)dlclose(library);
  memcpy(&api->push, &symbols[0], sizeof api->push);
  memcpy(&api->pop, &symbols[1], sizeof api->pop);
  memcpy(&api->enable, &symbols[2], sizeof api->enable);
  return symbols[0] != NULL && symbols[1] != NULL && symbols[2] != NULL;
}

/* A pair that cannot access each other, or already does, is left as it is: copies
 * work all the same. */
void kiln__peers_enable(kiln_comm *const *comms, int n)
{
  CUcontext from = NULL, to = NULL, ignored;
  access_api api;

  if (n < 2 || !find_access(&api, comms[0]->device))
    return;
  for (int i = 0; i < n * n; i++) {
    if (kiln_device_context(comms[i / n]->device, &from) != KILN_OK ||
        kiln_device_context(comms[i % n]->device, &to) != KILN_OK ||
        from == to || api.push(from) != 0)
      continue;
    (void)api.enable(to, 0);
    (void)api.pop(&ignored);
  }
}

bool kiln__comm_peers(const kiln_comm *comm)
{
  return comm->root->api == &kiln__local_wire;
}

/* Exchanges the addresses of the blocks. `sources` receives one per rank. */
static kiln_status exchange_sources(kiln_comm *comm, kiln__piece *pieces,
                                    source *mine, source *sources,
                                    const kiln__peer_blocks *b)
{
  for (int p = 0; p < comm->ranks; p++) {
    mine[p] = (source){comm->device, b->out + b->out_at[p]};
    pieces[p] = (kiln__piece){&mine[p], &sources[p],
                              b->out_size[p] > 0 ? sizeof *mine : 0,
                              b->in_size[p] > 0 ? sizeof *sources : 0};
  }
  return kiln__comm_exchange(comm, pieces);
}

/* Waits until all ranks have copied the blocks of this one. */
static kiln_status acknowledge(kiln_comm *comm, kiln__piece *pieces,
                               const kiln__peer_blocks *b)
{
  char *const bytes = calloc((size_t)comm->ranks, 1);
  const char done = 1;
  kiln_status st;

  if (bytes == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  for (int p = 0; p < comm->ranks; p++)
    pieces[p] =
        (kiln__piece){&done, &bytes[p], b->in_size[p] > 0, b->out_size[p] > 0};
  st = kiln__comm_exchange(comm, pieces);
  free(bytes);
  return st;
}

kiln_status kiln__peer_move(kiln_comm *comm, kiln_stream *stream,
                            const kiln__peer_blocks *b)
{
  const size_t n = (size_t)comm->ranks;
  kiln__piece *const pieces = calloc(n, sizeof *pieces);
  source *const sources = calloc(2 * n, sizeof *sources);
  kiln_status st = KILN_OK;

  if (pieces == NULL || sources == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(exchange_sources(comm, pieces, sources + n, sources, b));
  for (int p = 0; p < comm->ranks; p++) {
    if (p != comm->rank && b->in_size[p] > 0)
      COMM_TRY(kiln_copy_peer_async(stream, comm->device, b->in + b->in_at[p],
                                    sources[p].device, sources[p].data,
                                    (size_t)b->in_size[p]));
  }
  COMM_TRY(kiln_stream_synchronize(stream));
  COMM_TRY(acknowledge(comm, pieces, b));

done:
  free(pieces);
  free(sources);
  return st;
}

kiln_status kiln__peer_pair(kiln_comm *comm, kiln_stream *stream, bool receive,
                            int peer, CUdeviceptr data, uint64_t size)
{
  source from = {comm->device, data};
  char done = 1;
  kiln_status st = kiln__comm_pair(comm, receive, peer, &from, sizeof from);

  if (st == KILN_OK && receive)
    st = kiln_copy_peer_async(stream, comm->device, data, from.device,
                              from.data, (size_t)size);
  if (st == KILN_OK)
    st = kiln_stream_synchronize(stream);
  return st == KILN_OK ? kiln__comm_pair(comm, !receive, peer, &done, 1) : st;
}
