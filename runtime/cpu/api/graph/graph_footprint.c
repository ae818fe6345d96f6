/* graph_footprint.c -- counts the memory that graphs use, for cuDeviceGetGraphMemAttribute.
 *
 * Problem: here an alloc node has memory from its creation on, but a GPU's driver
 * provides memory at the launch of a graph, and keeps it for later launches until
 * cuDeviceGraphMemTrim(). Idea: the bytes are counted as the driver would provide them. A
 * launch needs the bytes that are allocated at the same time in the order of its nodes.
 * It takes them from the idle bytes of its stream, since earlier launches of the stream
 * have finished by then, next from the idle bytes of the device, and the rest is new.
 * Bytes that the graph does not free stay in use; a later free makes them idle bytes of
 * the device. A trim forgets all idle bytes.
 * Invariant: used = bytes in use + idle bytes of the device and of its streams.
 * Cost: one addition per alloc node and free node of a launch.
 * Source: the CUDA Programming Guide, chapter on graph memory nodes. */
#include "../context/api_context.h"
#include "../stream/streams.h"
#include "graph_parts.h"

static kiln__cpu_footprint *locked(int device)
{
  pthread_mutex_lock(&machine()->lock);
  return &machine()->footprint[device];
}

static void unlock(void)
{
  pthread_mutex_unlock(&machine()->lock);
}

static uint64_t bytes_of(const kiln__cpu_graph_memory *memory)
{
  return memory->params.bytesize;
}

/* Counts a free by a launch. */
static void freed_by(kiln__cpu_graph_demand *d,
                     const kiln__cpu_graph_memory *memory)
{
  if (memory->launch == d->launch)
    d->live -= bytes_of(memory);
  else
    d->foreign += bytes_of(memory);
}

bool kiln__cpu_footprint_alloc(kiln__cpu_graph_demand *d,
                               kiln__cpu_graph_memory *memory, bool again)
{
  if (atomic_exchange(&memory->allocated, true)) {
    if (!again)
      return false;
    freed_by(d, memory);
  }
  memory->launch = d->launch;
  d->live += bytes_of(memory);
  if (d->live > d->peak)
    d->peak = d->live;
  return true;
}

void kiln__cpu_footprint_free(kiln__cpu_graph_demand *d,
                              kiln__cpu_graph_memory *memory)
{
  if (memory != NULL && atomic_exchange(&memory->allocated, false))
    freed_by(d, memory);
}

/* Takes up to `bytes` from a count. Returns the rest. */
static uint64_t take(uint64_t *idle, uint64_t bytes)
{
  const uint64_t taken = bytes < *idle ? bytes : *idle;

  *idle -= taken;
  return bytes - taken;
}

void kiln__cpu_footprint_launch(CUstream stream,
                                const kiln__cpu_graph_demand *d)
{
  kiln__cpu_footprint *f = locked(stream->context->device);
  uint64_t need;

  if (stream->graph_trims != f->trims) {
    stream->graph_idle = 0;
    stream->graph_trims = f->trims;
  }
  need = take(&f->idle, take(&stream->graph_idle, d->peak));
  f->used += need;
  if (f->used > f->high)
    f->high = f->used;
  stream->graph_idle += d->peak - d->live;
  f->in_use += d->live;
  take(&f->in_use, d->foreign);
  f->idle += d->foreign;
  unlock();
}

void kiln__cpu_footprint_freed(kiln__cpu_graph_memory *memory)
{
  kiln__cpu_footprint *f;

  if (!atomic_exchange(&memory->allocated, false))
    return;
  f = locked(memory->params.poolProps.location.id);
  take(&f->in_use, bytes_of(memory));
  f->idle += bytes_of(memory);
  unlock();
}

/* ---- Entry points -------------------------------------------------------- */

CUresult kiln__cpu_deviceGraphMemTrim(CUdevice device)
{
  kiln__cpu_footprint *f;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  f = locked(device);
  f->used = f->in_use;
  f->idle = 0;
  f->trims++;
  unlock();
  return CUDA_SUCCESS;
}

/* The used and the reserved bytes are equal, since no memory is reserved in advance. */
CUresult kiln__cpu_deviceGetGraphMemAttribute(CUdevice device,
                                              CUgraphMem_attribute attribute,
                                              void *value)
{
  const kiln__cpu_footprint *f;
  bool high;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  CU_TRY(valid(value != NULL &&
               attribute >= CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT &&
               attribute <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
         attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  f = locked(device);
  *(uint64_t *)value = high ? f->high : f->used;
  unlock();
  return CUDA_SUCCESS;
}

/* Both highest values are one count, so this resets both. */
CUresult kiln__cpu_deviceSetGraphMemAttribute(CUdevice device,
                                              CUgraphMem_attribute attribute,
                                              void *value)
{
  kiln__cpu_footprint *f;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  CU_TRY(valid(value != NULL && *(const uint64_t *)value == 0 &&
               (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)));
  f = locked(device);
  f->high = f->used;
  unlock();
  return CUDA_SUCCESS;
}
