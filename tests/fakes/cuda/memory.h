/* memory.h -- the part of fake_cuda.c that implements memory, copies and fills.
 */

/* ---- Memory ------------------------------------------------------------- */

static CUresult allocate(CUdeviceptr *out, size_t bytes)
{
  object *memory;

  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (size_t)1 << 30)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memory = make(MEMORY, current());
  memory->size = bytes;
  memory->bytes = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory->bytes == NULL)
    abort();
  memset(memory->bytes, 0xcd, bytes);
  memory->address = memory->bytes;
  *out = (CUdeviceptr)(uintptr_t)memory->bytes;
  return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, const char *call)
{
  object *o = find_at((const void *)(uintptr_t)address, MEMORY);

  if (o == NULL) {
    violate("%s: not the start of an allocation", call);
    return CUDA_ERROR_INVALID_VALUE;
  }
  destroy(o);
  return CUDA_SUCCESS;
}

/* Returns true if [address, address + bytes) is device memory. */
static bool valid(CUdeviceptr address, size_t bytes, const char *call)
{
  bool found = false;

  pthread_mutex_lock(&lock);
  for (object *o = live; o != NULL && !found; o = o->next) {
    const char *base = o->kind == MEMORY   ? o->bytes
                       : o->kind == MODULE ? o->global
                                           : NULL;
    const size_t size = o->kind == MEMORY ? o->size : control.global_size;
    const CUdeviceptr start = (CUdeviceptr)(uintptr_t)base;

    found = base != NULL && address >= start && bytes <= size &&
            address - start <= size - bytes;
  }
  pthread_mutex_unlock(&lock);
  if (!found)
    violate("%s: not device memory", call);
  return found;
}

static void *host(CUdeviceptr address)
{
  return (void *)(uintptr_t)address;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
  ENTER(memAlloc, UNSAFE);
  return allocate(out, bytes);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
  ENTER(memFree, UNSAFE);
  return release(address, __func__);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
  object *s;

  ENTER(memAllocAsync, A_CONTEXT);
  NEED_STREAM(s, stream);
  return allocate(out, bytes);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
  object *s;

  ENTER(memFreeAsync, A_CONTEXT);
  NEED_STREAM(s, stream);
  return release(address, __func__);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
  ENTER(memPoolCreate, UNSAFE);
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  *out = (CUmemoryPool)(void *)make(POOL, NULL);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
  object *o;

  ENTER(memPoolDestroy, STARTED);
  NEED_LIVE(o, pool, POOL);
  destroy(o);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool,
                                      CUmemPool_attribute attribute,
                                      void *value)
{
  object *o;

  ENTER(memPoolSetAttribute, STARTED);
  NEED_LIVE(o, pool, POOL);
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    control.pool_keeps = *(const uint64_t *)value;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes,
                                        CUmemoryPool pool, CUstream stream)
{
  object *s, *o;

  ENTER(memAllocFromPoolAsync, A_CONTEXT);
  NEED_STREAM(s, stream);
  NEED_LIVE(o, pool, POOL);
  return allocate(out, bytes);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
  ENTER(memGetInfo, A_CONTEXT);
  *total = control.devices[current()->device].memory;
  *unused = *total - ((size_t)1 << 30);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
  object *o;

  ENTER(memHostAlloc, UNSAFE);
  o = make(PINNED, NULL);
  o->bytes = malloc(bytes);
  o->address = *p = o->bytes;
  return CUDA_SUCCESS;
}

static CUresult unpin(const void *p, kind k)
{
  object *o = find_at(p, k);

  if (o == NULL)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  destroy(o);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *p)
{
  ENTER(memFreeHost, UNSAFE);
  return unpin(p, PINNED);
}

EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
  ENTER(memHostRegister, UNSAFE);
  make(REGISTERED, NULL)->address = p;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *p)
{
  ENTER(memHostUnregister, UNSAFE);
  return unpin(p, REGISTERED);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *p,
                                             unsigned flags)
{
  ENTER(memHostGetDevicePointer, A_CONTEXT);
  *address = (CUdeviceptr)(uintptr_t)p;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                      CUdeviceptr address)
{
  ENTER(pointerGetAttribute, A_CONTEXT);
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- Copies and fills, which complete before the call returns ----------- */

static CUresult tied(CUstream stream)
{
  if (!legacy_tied(stream))
    return CUDA_SUCCESS;
  spoil_captures();
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream,
                     const char *call)
{
  const CUresult rc = tied(stream);
  object *s;

  if (rc != CUDA_SUCCESS)
    return rc;
  if (!stream_of(stream, &s, call))
    return CUDA_ERROR_INVALID_HANDLE;
  if (s != NULL && s->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
    s->nodes++;
  else
    memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

#define NEED_DEVICE(address, bytes)                                            \
  do {                                                                         \
    if (!valid(address, bytes, __func__))                                      \
      return CUDA_ERROR_INVALID_VALUE;                                         \
  } while (0)

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
  ENTER(memcpyHtoD, UNSAFE);
  NEED_DEVICE(to, bytes);
  return copy(host(to), from, bytes, NULL, __func__);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
  ENTER(memcpyDtoH, UNSAFE);
  NEED_DEVICE(from, bytes);
  return copy(to, host(from), bytes, NULL, __func__);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  ENTER(memcpyDtoD, UNSAFE);
  NEED_DEVICE(to, bytes);
  NEED_DEVICE(from, bytes);
  return copy(host(to), host(from), bytes, NULL, __func__);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context,
                                  CUdeviceptr from, CUcontext from_context,
                                  size_t bytes, CUstream stream)
{
  ENTER(memcpyPeerAsync, A_CONTEXT);
  if (find(to_context, CONTEXT) == NULL || find(from_context, CONTEXT) == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  NEED_DEVICE(to, bytes);
  NEED_DEVICE(from, bytes);
  return copy(host(to), host(from), bytes, stream, __func__);
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context,
                             CUdeviceptr from, CUcontext from_context,
                             size_t bytes)
{
  ENTER(memcpyPeer, UNSAFE);
  return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, NULL);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                     size_t bytes, CUstream stream)
{
  ENTER(memcpyHtoDAsync, A_CONTEXT);
  NEED_DEVICE(to, bytes);
  return copy(host(to), from, bytes, stream, __func__);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                     CUstream stream)
{
  ENTER(memcpyDtoHAsync, A_CONTEXT);
  NEED_DEVICE(from, bytes);
  return copy(to, host(from), bytes, stream, __func__);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                     size_t bytes, CUstream stream)
{
  ENTER(memcpyDtoDAsync, A_CONTEXT);
  NEED_DEVICE(to, bytes);
  NEED_DEVICE(from, bytes);
  return copy(host(to), host(from), bytes, stream, __func__);
}

static CUresult fill(CUdeviceptr to, const void *value, size_t width, size_t n,
                     CUstream stream, const char *call)
{
  const CUresult rc = tied(stream);
  object *s;

  if (rc != CUDA_SUCCESS)
    return rc;
  if (!stream_of(stream, &s, call))
    return CUDA_ERROR_INVALID_HANDLE;
  if (!valid(to, n * width, call))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < n; i++)
    memcpy((char *)host(to) + i * width, value, width);
  return CUDA_SUCCESS;
}

#define FILL(name, symbol, type, width)                                        \
  EXPORT CUresult cuMemset##symbol##_v2(CUdeviceptr to, type value, size_t n)  \
  {                                                                            \
    ENTER(name, UNSAFE);                                                       \
    return fill(to, &value, width, n, NULL, __func__);                         \
  }                                                                            \
  EXPORT CUresult cuMemset##symbol##Async(CUdeviceptr to, type value,          \
                                          size_t n, CUstream stream)           \
  {                                                                            \
    ENTER(name##Async, A_CONTEXT);                                             \
    return fill(to, &value, width, n, stream, __func__);                       \
  }
FILL(memsetD8, D8, unsigned char, 1)
FILL(memsetD16, D16, unsigned short, 2)
FILL(memsetD32, D32, unsigned int, 4)
