/* memory_pool.c -- implements stream-ordered allocation: cuMemAllocAsync and
 * memory pools.
 *
 * The program receives the address of an allocation at once. The allocation is
 * freed when the stream reaches the free. A GPU's pool keeps freed memory
 * reserved for later allocations. Here the reserved size is only a counter that
 * follows the same rules. The bytes themselves are freed at once, so that the
 * memory check finds a use after free. machine.lock guards all pools. */
#include "memory_pool.h"
#include "../context/api_context.h"

#include <unistd.h>

static void lock(void)
{
  pthread_mutex_lock(&machine()->lock);
}

static void unlock(void)
{
  pthread_mutex_unlock(&machine()->lock);
}

/* ---- Creation and destruction -------------------------------------------- */

CUmemoryPool kiln__cpu_pool_new(int device, const CUmemPoolProps *props)
{
  CUmemoryPool p = kiln__calloc(&machine()->alloc, 1, sizeof *p);

  if (p == NULL || !kiln__cpu_live_add(p, KILN__HANDLE_POOL)) {
    kiln__free(&machine()->alloc, p);
    return NULL;
  }
  p->device = device;
  if (props != NULL)
    p->props = *props;
  p->name_fd = -1;
  p->max_size = p->props.maxSize;
  for (int i = 0; i < KILN__POOL_POLICIES; i++)
    p->policy[i] = 1;
  for (int i = 0; i < KILN__MAX_DEVICES; i++)
    p->access[i] = i == device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
  p->next = machine()->pools;
  machine()->pools = p;
  return p;
}

static void pool_free(CUmemoryPool pool)
{
  CUmemoryPool *at = &machine()->pools;

  while (*at != pool)
    at = &(*at)->next;
  *at = pool->next;
  if (pool->name_fd >= 0)
    close(pool->name_fd);
  kiln__free(&machine()->alloc, pool);
}

/* Returns the device's default pool and makes it at first use. Returns NULL if
 * there is no memory. The caller holds machine.lock. */
static CUmemoryPool default_pool(int device)
{
  CUmemoryPool p = machine()->pools;

  while (p != NULL && !(p->is_default && p->device == device))
    p = p->next;
  if (p == NULL) {
    p = kiln__cpu_pool_new(device, NULL);
    if (p != NULL)
      p->is_default = true;
  }
  return p;
}

CUresult kiln__cpu_pool_of_device(int device, CUmemoryPool *out)
{
  lock();
  *out = machine()->current_pool[device];
  if (*out == NULL)
    *out = default_pool(device);
  unlock();
  return allocated(*out);
}

static CUresult device_pool(CUmemoryPool *pool, CUdevice device, bool current)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(pool != NULL));
  CU_TRY(kiln__cpu_known_device(device));
  if (current)
    return kiln__cpu_pool_of_device(device, pool);
  lock();
  *pool = default_pool(device);
  unlock();
  return allocated(*pool);
}

CUresult kiln__cpu_deviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
  return device_pool(pool, device, false);
}

CUresult kiln__cpu_deviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
  return device_pool(pool, device, true);
}

CUresult kiln__cpu_deviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(kiln__cpu_known_device(device));
  CU_TRY(valid(kiln__cpu_live(pool, KILN__HANDLE_POOL) &&
               pool->device == device && !pool->imported));
  lock();
  machine()->current_pool[device] = pool;
  unlock();
  return CUDA_SUCCESS;
}

static bool on_device(const CUmemLocation *where, CUmemAllocationType type)
{
  return where != NULL && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         where->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult kiln__cpu_memGetDefaultMemPool(CUmemoryPool *pool,
                                        CUmemLocation *location,
                                        CUmemAllocationType type)
{
  if (!on_device(location, type))
    return CUDA_ERROR_NOT_SUPPORTED;
  return kiln__cpu_deviceGetDefaultMemPool(pool, location->id);
}

CUresult kiln__cpu_memGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
  if (!on_device(location, type))
    return CUDA_ERROR_NOT_SUPPORTED;
  return kiln__cpu_deviceGetMemPool(pool, location->id);
}

CUresult kiln__cpu_memSetMemPool(CUmemLocation *location,
                                 CUmemAllocationType type, CUmemoryPool pool)
{
  if (!on_device(location, type))
    return CUDA_ERROR_NOT_SUPPORTED;
  return kiln__cpu_deviceSetMemPool(location->id, pool);
}

CUresult kiln__cpu_memPoolCreate(CUmemoryPool *pool,
                                 const CUmemPoolProps *props)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(pool != NULL && props != NULL &&
               props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED));
  if ((props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ||
      props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return props->location.type == 0 ? CUDA_ERROR_INVALID_VALUE
                                     : CUDA_ERROR_NOT_SUPPORTED;
  CU_TRY(kiln__cpu_known_device(props->location.id));
  lock();
  *pool = kiln__cpu_pool_new(props->location.id, props);
  unlock();
  return allocated(*pool);
}

CUresult kiln__cpu_memPoolDestroy(CUmemoryPool pool)
{
  kiln__cpu_machine *m = machine();

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(kiln__cpu_live(pool, KILN__HANDLE_POOL) && !pool->is_default));
  lock();
  kiln__cpu_live_remove(pool);
  if (m->current_pool[pool->device] == pool)
    m->current_pool[pool->device] = NULL;
  pool->destroyed = true;
  if (pool->n_blocks == 0)
    pool_free(pool);
  unlock();
  return CUDA_SUCCESS;
}

/* ---- Attributes and counters of pools ------------------------------------ */

static void raise(uint64_t *high, uint64_t now)
{
  if (now > *high)
    *high = now;
}

/* Reduces the reserved bytes of a pool to `keep`, but not below the bytes in
 * use. */
static void trim(CUmemoryPool p, uint64_t keep)
{
  if (p->reserved > keep)
    p->reserved = keep > p->used ? keep : p->used;
}

void kiln__cpu_pools_settle(CUcontext context)
{
  lock();
  for (CUmemoryPool p = machine()->pools; p != NULL; p = p->next) {
    if (p->device == context->device)
      trim(p, p->threshold);
  }
  unlock();
}

void kiln__cpu_pool_returned(CUmemoryPool pool, size_t size)
{
  lock();
  pool->used -= size;
  pool->n_blocks--;
  if (pool->destroyed && pool->n_blocks == 0)
    pool_free(pool);
  unlock();
}

bool kiln__cpu_pool_take(CUmemoryPool p, size_t size)
{
  bool ok;

  lock();
  ok = p->max_size == 0 || size <= p->max_size - p->used;
  if (ok) {
    p->used += size;
    p->n_blocks++;
    if (p->used > p->reserved)
      p->reserved = p->used;
    raise(&p->used_high, p->used);
    raise(&p->reserved_high, p->reserved);
  }
  unlock();
  return ok;
}

CUresult kiln__cpu_memPoolTrimTo(CUmemoryPool pool, size_t keep)
{
  CU_TRY(kiln__cpu_ready_with(pool, KILN__HANDLE_POOL));
  lock();
  trim(pool, keep);
  unlock();
  return CUDA_SUCCESS;
}

/* Stores a pointer to the pool's counter for a 64-bit attribute. */
static CUresult number(CUmemoryPool p, CUmemPool_attribute attribute,
                       uint64_t **out)
{
  uint64_t *const of[] = {&p->threshold, &p->reserved, &p->reserved_high,
                          &p->used, &p->used_high};
  const int i = attribute - CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;

  CU_TRY(valid(i >= 0 && i <= 4));
  *out = of[i];
  return CUDA_SUCCESS;
}

static bool is_policy(CUmemPool_attribute attribute)
{
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult kiln__cpu_memPoolGetAttribute(CUmemoryPool pool,
                                       CUmemPool_attribute attribute,
                                       void *value)
{
  CUresult rc = CUDA_SUCCESS;
  uint64_t *from;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(kiln__cpu_live(pool, KILN__HANDLE_POOL) && value != NULL));
  lock();
  if (is_policy(attribute)) {
    *(int *)value = pool->policy[attribute - 1];
  } else {
    rc = number(pool, attribute, &from);
    if (rc == CUDA_SUCCESS)
      *(uint64_t *)value = *from;
  }
  unlock();
  return rc;
}

CUresult kiln__cpu_memPoolSetAttribute(CUmemoryPool pool,
                                       CUmemPool_attribute attribute,
                                       void *value)
{
  CUresult rc = CUDA_SUCCESS;

  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(kiln__cpu_live(pool, KILN__HANDLE_POOL) && value != NULL));
  lock();
  if (is_policy(attribute))
    pool->policy[attribute - 1] = *(const int *)value != 0;
  else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    pool->threshold = *(const uint64_t *)value;
  else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH &&
           *(const uint64_t *)value == 0)
    pool->reserved_high = pool->reserved;
  else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH &&
           *(const uint64_t *)value == 0)
    pool->used_high = pool->used;
  else
    rc = CUDA_ERROR_INVALID_VALUE;
  unlock();
  return rc;
}

/* ---- Access of devices to pools ------------------------------------------ */

CUresult kiln__cpu_memPoolSetAccess(CUmemoryPool pool,
                                    const CUmemAccessDesc *access, size_t n)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(kiln__cpu_live(pool, KILN__HANDLE_POOL) &&
               (access != NULL || n == 0)));
  for (size_t i = 0; i < n; i++) {
    const CUmemAccessDesc *a = &access[i];

    CU_TRY(valid(
        a->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        (a->flags == 0 || a->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)));
    if (!kiln__cpu_device_exists(a->location.id) ||
        (a->location.id == pool->device && a->flags == 0))
      return CUDA_ERROR_INVALID_DEVICE;
  }
  lock();
  for (size_t i = 0; i < n; i++)
    pool->access[access[i].location.id] = access[i].flags;
  unlock();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
                                    CUmemLocation *location)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(flags != NULL && location != NULL &&
               kiln__cpu_live(pool, KILN__HANDLE_POOL) &&
               location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
               kiln__cpu_device_exists(location->id)));
  lock();
  *flags = pool->access[location->id];
  unlock();
  return CUDA_SUCCESS;
}

/* ---- Allocations --------------------------------------------------------- */

/* Adds an alloc node to the captured graph instead of allocating. Called if the
 * stream captures. */
static CUresult capture_alloc(CUstream s, CUmemoryPool pool, size_t bytes,
                              CUdeviceptr *address, bool *taken)
{
  const CUDA_MEM_ALLOC_NODE_PARAMS params = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                 .id = pool->device}},
      .bytesize = bytes};
  kiln__cpu_graph_memory *memory;
  CUgraphNode node;
  CUresult rc = kiln__cpu_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node);

  *taken = node != NULL;
  if (node == NULL)
    return rc;
  rc = kiln__cpu_graph_memory_new(&memory, &params);
  node->memory = memory;
  if (rc == CUDA_SUCCESS)
    *address = memory->address;
  kiln__cpu_capture_node_done();
  return rc;
}

/* Allocates memory during the call, although the API orders the allocation in
 * the stream. No valid program can observe the difference. */
static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                         CUstream handle)
{
  kiln__cpu_block_info wanted = {.kind = KILN__RANGE_POOL,
                                 .size = bytes,
                                 .device = pool->device,
                                 .pool = pool};
  CUstream s;
  bool taken = false;
  CUresult rc;

  CU_TRY(kiln__cpu_current_stream(handle, &s));
  CU_TRY(capture_alloc(s, pool, bytes, address, &taken));
  if (taken)
    return CUDA_SUCCESS;
  if (!kiln__cpu_pool_take(pool, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  wanted.context = s->context;
  rc = kiln__cpu_block_add(address, &wanted);
  /* Wait for the frees that are enqueued, then try again. */
  if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
    kiln__cpu_wait_context(s->context);
    rc = kiln__cpu_block_add(address, &wanted);
  }
  if (rc != CUDA_SUCCESS)
    kiln__cpu_pool_returned(pool, bytes);
  return rc;
}

CUresult kiln__cpu_memAllocAsync(CUdeviceptr *address, size_t bytes,
                                 CUstream stream)
{
  CUcontext context;
  CUmemoryPool pool;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(address != NULL && bytes != 0));
  CU_TRY(kiln__cpu_pool_of_device(context->device, &pool));
  return allocate(address, bytes, pool, stream);
}

CUresult kiln__cpu_memAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                         CUmemoryPool pool, CUstream stream)
{
  CU_TRY(kiln__cpu_check_current());
  CU_TRY(valid(address != NULL && bytes != 0 &&
               kiln__cpu_live(pool, KILN__HANDLE_POOL) && !pool->imported));
  return allocate(address, bytes, pool, stream);
}

/* ---- Frees --------------------------------------------------------------- */

typedef struct free_work {
  kiln__cpu_work base;
  CUdeviceptr address;
  size_t size;
  CUmemoryPool pool;
} free_work;

/* Frees an allocation. This is the `free` function of the work, since the
 * stream would skip `run` after a failed kernel. */
static void drop_block(kiln__cpu_work *work)
{
  free_work *f = (free_work *)(void *)work;

  kiln__cpu_block_remove(f->address);
  if (f->pool != NULL)
    kiln__cpu_pool_returned(f->pool, f->size);
  kiln__free(&machine()->alloc, f);
}

static CUresult run_nothing(kiln__cpu_work *work, CUstream stream)
{
  (void)work;
  (void)stream;
  return CUDA_SUCCESS;
}

/* Enqueues a free of stream-ordered memory. The free runs in the caller's
 * thread if the stream is idle. */
static CUresult free_in_stream(CUcontext context, CUstream handle,
                               const kiln__cpu_block_info *info)
{
  free_work *f = kiln__calloc(&machine()->alloc, 1, sizeof *f);
  CUstream s;
  CUresult rc = kiln__cpu_stream_of(context, handle, &s);

  if (f == NULL || rc != CUDA_SUCCESS) {
    kiln__free(&machine()->alloc, f);
    return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_OUT_OF_MEMORY;
  }
  f->base.run = run_nothing;
  f->base.free = drop_block;
  f->base.kind = KILN__WORK_FREE;
  f->address = info->first;
  f->size = info->size;
  f->pool = info->pool;
  return kiln__cpu_queue_add(s, &f->base, KILN__HERE, NULL, 0, NULL);
}

/* Adds a free node to the captured graph instead of freeing. Called if the
 * stream captures. */
static CUresult capture_free(CUstream s, const kiln__cpu_block_info *info,
                             bool *taken)
{
  CUgraphNode node;
  CUresult rc = kiln__cpu_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_FREE, &node);

  *taken = node != NULL;
  if (node == NULL)
    return rc;
  node->memory = kiln__cpu_graph_memory_hold(info->graph);
  kiln__cpu_capture_node_done();
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_memFreeAsync(CUdeviceptr address, CUstream stream)
{
  CUcontext context;
  CUstream s;
  kiln__cpu_block_info info;
  bool taken;
  CUresult rc = kiln__cpu_current(&context);

  if (rc != CUDA_SUCCESS || address == 0)
    return rc;
  CU_TRY(kiln__cpu_stream_of(context, stream, &s));
  CU_TRY(valid(kiln__cpu_block_at(address, &info)));
  CU_TRY(valid(!kiln__cpu_is_capturing(context, stream) || info.graph != NULL));
  if (info.kind == KILN__RANGE_DEVICE) {
    /* The stream's work may use memory of cuMemAlloc, which has no pool. */
    CU_TRY(kiln__cpu_streamSynchronize(stream));
    return kiln__cpu_memFree(address);
  }
  CU_TRY(valid(info.kind == KILN__RANGE_POOL));
  rc = capture_free(s, &info, &taken);
  if (rc != CUDA_SUCCESS || taken)
    return rc;
  CU_TRY(valid(kiln__cpu_block_claim(address, &info)));
  if (info.graph != NULL) {
    kiln__cpu_footprint_freed(info.graph);
    return CUDA_SUCCESS;
  }
  return free_in_stream(context, stream, &info);
}
