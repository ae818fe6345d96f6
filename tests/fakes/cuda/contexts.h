/* contexts.h -- the part of fake_cuda.c that implements devices and contexts.
 */

/* ---- Devices ------------------------------------------------------------ */

static bool is_device(CUdevice device)
{
  return device >= 0 && device < control.n_devices;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
  ENTER(deviceGetCount, STARTED);
  *n = control.n_devices;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
  ENTER(deviceGet, STARTED);
  if (!is_device(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
  ENTER(deviceGetName, STARTED);
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, (size_t)size, "%s", control.devices[device].name);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
  ENTER(deviceGetUuidV1, STARTED);
  for (int i = 0; i < 16; i++)
    uuid->bytes[i] = (char)(0xa0 + i + device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
  ENTER(deviceGetUuid, STARTED);
  return cuDeviceGetUuid(uuid, device);
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                     CUdevice device)
{
  ENTER(deviceGetAttribute, STARTED);
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1 || attribute >= FAKE_CUDA_ATTRIBUTES ||
      control.devices[device].attributes[attribute] == FAKE_CUDA_UNKNOWN)
    return CUDA_ERROR_INVALID_VALUE;
  *value = control.devices[device].attributes[attribute];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
  ENTER(deviceTotalMem, STARTED);
  *bytes = control.devices[device].memory;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device)
{
  ENTER(deviceGetPCIBusId, STARTED);
  snprintf(text, (size_t)size, "0000:%02x:00.0", 0x65 + (unsigned)device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
  ENTER(deviceCanAccessPeer, STARTED);
  *can = device != peer;
  return CUDA_SUCCESS;
}

/* ---- Contexts ----------------------------------------------------------- */

static object *make_context(CUdevice device)
{
  object *context = make(CONTEXT, NULL);

  context->device = device;
  pthread_mutex_lock(&lock);
  context->id = ++last_id;
  pthread_mutex_unlock(&lock);
  return context;
}

static object *owned_by(const object *context)
{
  object *o;

  pthread_mutex_lock(&lock);
  for (o = live; o != NULL && o->context != context; o = o->next)
    continue;
  pthread_mutex_unlock(&lock);
  return o;
}

/* Destroys a context and everything that was created in it, as a real driver
 * does. */
static void drop_context(object *context)
{
  object *o;

  while ((o = owned_by(context)) != NULL)
    destroy(o);
  destroy(context);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
  primary *p = &primaries[device];

  ENTER(devicePrimaryCtxRetain, STARTED);
  if (p->context == NULL) {
    p->context = make_context(device);
    p->context->primary = true;
  }
  p->count++;
  atomic_fetch_add(&control.retained, 1);
  *out = (CUcontext)p->context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
  primary *p = &primaries[device];

  ENTER(devicePrimaryCtxRelease, STARTED);
  if (p->count == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  atomic_fetch_sub(&control.retained, 1);
  if (--p->count == 0 && p->context != NULL) {
    drop_context(p->context);
    p->context = NULL;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                           int *active)
{
  ENTER(devicePrimaryCtxGetState, STARTED);
  *flags = 0;
  *active = primaries[device].context != NULL;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
  ENTER(devicePrimaryCtxReset, STARTED);
  if (primaries[device].context != NULL)
    drop_context(primaries[device].context);
  primaries[device].context = NULL;
  return CUDA_SUCCESS;
}

static CUresult push(object *context)
{
  if (depth == MAX_STACK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
  object *context;

  ENTER(ctxCreate, STARTED);
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  context = make_context(device);
  context->flags = flags;
  atomic_fetch_add(&control.contexts, 1);
  *out = (CUcontext)context;
  return push(context);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext handle)
{
  object *context = find(handle, CONTEXT);

  ENTER(ctxDestroy, STARTED);
  if (context == NULL || context->primary) {
    violate("cuCtxDestroy: not a context of this kind");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (current() == context)
    depth--;
  drop_context(context);
  atomic_fetch_sub(&control.contexts, 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
  ENTER(ctxPushCurrent, STARTED);
  if (find(handle, CONTEXT) == NULL)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return push((object *)handle);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
  ENTER(ctxPopCurrent, STARTED);
  if (depth == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  *out = (CUcontext)stack[--depth];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
  ENTER(ctxGetCurrent, STARTED);
  *out = (CUcontext)current();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext handle)
{
  ENTER(ctxSetCurrent, STARTED);
  if (handle == NULL) {
    depth -= depth > 0;
    return CUDA_SUCCESS;
  }
  if (find(handle, CONTEXT) == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  depth -= depth > 0;
  return push((object *)handle);
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
  ENTER(ctxGetDevice, A_CONTEXT);
  *device = current()->device;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
  ENTER(ctxSynchronize, A_CONTEXT);
  if (atomic_load(&all_captures) > 0) {
    spoil_captures();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
  ENTER(ctxGetStreamPriorityRange, A_CONTEXT);
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
  const object *context = find(handle, CONTEXT);

  ENTER(ctxGetId, STARTED);
  if (context == NULL)
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context->id;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
  ENTER(ctxGetApiVersion, STARTED);
  *version = 3020;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
  ENTER(ctxGetLimit, A_CONTEXT);
  *value = 1 << 20;
  return CUDA_SUCCESS;
}

SUCCEED(ctxSetLimit, cuCtxSetLimit, (CUlimit limit, size_t value), A_CONTEXT)

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
  ENTER(ctxEnablePeerAccess, A_CONTEXT);
  return find(peer, CONTEXT) != NULL ? CUDA_SUCCESS
                                     : CUDA_ERROR_INVALID_CONTEXT;
}
