/* context.c -- the CUDA context of a device. It is created on first use and is
 * current only for the duration of one call.
 *
 * Problem: a library must not change which context is current in the caller's
 * thread, although most driver calls use the current context.
 *
 * Idea: kiln__enter() pushes the device's context and kiln__leave() pops it. If
 * the context is already current, nothing is pushed, and the cost is one
 * cuCtxGetCurrent(). This is the usual case with the primary context.
 *
 * Destroyed contexts: the caller may destroy or reset a context that Kiln still
 * holds. The driver reuses handles, so a handle alone does not identify a
 * context. If the driver numbers its contexts (since 12.0), Kiln also compares
 * the ids. */
#include "device.h"

/* Returns the driver's unique id of a context, or 0 if the driver provides no
 * ids (before 12.0). */
static uint64_t context_id(const kiln__driver *driver, CUcontext context)
{
  unsigned long long id = 0;

  if (driver->ctxGetId == NULL ||
      driver->ctxGetId(context, &id) != CUDA_SUCCESS)
    return 0;
  return id;
}

/* Retains the primary context or creates a new context. In both cases the
 * context is not current afterwards. */
static kiln_status create(kiln_device *device, CUcontext *out)
{
  const kiln__driver *driver = device->driver;
  CUcontext popped;
  CUresult rc;

  if (device->kind == KILN_CONTEXT_PRIMARY)
    return kiln__device_rc(device,
                           driver->devicePrimaryCtxRetain(out, device->handle),
                           "cuDevicePrimaryCtxRetain");
  rc = driver->ctxCreate(out, device->context_flags, device->handle);
  if (rc == CUDA_SUCCESS)
    /* cuCtxCreate() has also made the new context current */
    driver->ctxPopCurrent(&popped);
  return kiln__device_rc(device, rc, "cuCtxCreate_v2");
}

/* Creates the context exactly once, even if several threads call this function
 * concurrently. */
static kiln_status make_context(kiln_device *device)
{
  kiln_status st = KILN_OK;
  CUcontext context = NULL;

  pthread_mutex_lock(&device->lock);
  if (atomic_load_explicit(&device->context, memory_order_relaxed) == NULL) {
    st = create(device, &context);
    if (st == KILN_OK) {
      device->context_id = context_id(device->driver, context);
      atomic_store_explicit(&device->context, context, memory_order_release);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return st;
}

kiln_status kiln__enter(kiln_device *device, kiln__scope *scope)
{
  CUcontext context, current = NULL;
  kiln_status st;
  CUresult rc;

  *scope = (kiln__scope){0};
  if (device == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device is NULL");
  if (kiln__forked(&device->rt->fork))
    return kiln__fork_check(&device->rt->fork);
  context = atomic_load_explicit(&device->context, memory_order_acquire);
  if (context == NULL) {
    st = make_context(device);
    if (st != KILN_OK)
      return st;
    context = atomic_load_explicit(&device->context, memory_order_relaxed);
  }
  scope->driver = device->driver;
  rc = device->driver->ctxGetCurrent(&current);
  if (rc != CUDA_SUCCESS)
    return kiln__device_rc(device, rc, "cuCtxGetCurrent");
  if (current == context)
    return KILN_OK;
  /* If the context was destroyed, the driver would push it and crash in the
   * next call. A destroyed context is never current, so the check is needed
   * only before a push. */
  if (device->context_id != 0 &&
      context_id(device->driver, context) != device->context_id)
    return kiln__device_rc(device, CUDA_ERROR_CONTEXT_IS_DESTROYED,
                           "cuCtxPushCurrent_v2");
  rc = device->driver->ctxPushCurrent(context);
  scope->pushed = rc == CUDA_SUCCESS;
  return rc == CUDA_SUCCESS
             ? KILN_OK
             : kiln__device_rc(device, rc, "cuCtxPushCurrent_v2");
}

void kiln__leave(const kiln__scope *scope)
{
  CUcontext popped;

  if (scope->pushed)
    scope->driver->ctxPopCurrent(&popped);
}

/* After a reset of the primary context, Kiln's handles in the context are
 * invalid, although the handle of the context itself may stay the same. */
bool kiln__context_alive(const kiln_device *device, CUcontext context)
{
  const kiln__driver *driver = device->driver;
  unsigned flags;
  int active = 1;

  if (device->kind == KILN_CONTEXT_PRIMARY &&
      driver->devicePrimaryCtxGetState(device->handle, &flags, &active) ==
          CUDA_SUCCESS &&
      active == 0)
    return false;
  return device->context_id == 0 ||
         context_id(driver, context) == device->context_id;
}

bool kiln__enter_to_free(kiln_device *device, kiln__scope *scope)
{
  const CUcontext context =
      atomic_load_explicit(&device->context, memory_order_acquire);
  CUcontext current = NULL;

  scope->driver = device->driver;
  scope->pushed = false;
  if (context == NULL || kiln__forked(&device->rt->fork) ||
      !kiln__context_alive(device, context) ||
      device->driver->ctxGetCurrent(&current) != CUDA_SUCCESS)
    return false;
  if (current == context)
    return true;
  scope->pushed = device->driver->ctxPushCurrent(context) == CUDA_SUCCESS;
  return scope->pushed;
}

void kiln__relax(const kiln__driver *driver, kiln__relaxed *relaxed)
{
  relaxed->driver = driver;
  relaxed->before = CU_STREAM_CAPTURE_MODE_RELAXED;
  relaxed->exchanged =
      driver->threadExchangeStreamCaptureMode != NULL &&
      driver->threadExchangeStreamCaptureMode(&relaxed->before) == CUDA_SUCCESS;
}

void kiln__unrelax(kiln__relaxed *relaxed)
{
  if (relaxed->exchanged)
    relaxed->driver->threadExchangeStreamCaptureMode(&relaxed->before);
}

kiln_status kiln__device_rc(const kiln_device *device, CUresult rc,
                            const char *call)
{
  return rc == CUDA_SUCCESS ? KILN_OK : kiln__cu(device->driver, rc, call);
}

kiln_status kiln__device_missing(const char *call)
{
  return kiln__fail(KILN_EUNSUPPORTED, "update the driver",
                    "this driver has no %s", call);
}

bool kiln__capturing(const kiln__driver *driver, CUstream handle)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult rc = driver->streamIsCapturing(handle, &status);

  if (rc == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    /* The stream is the legacy default stream, which counts as captured while a
     * blocking stream is captured. */
    return true;
  return rc == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

kiln_status kiln__refuse_capture(const kiln_device *device, CUstream handle,
                                 const char *call)
{
  if (!kiln__capturing(device->driver, handle))
    return KILN_OK;
  return kiln__fail(
      KILN_ECAPTURE, "call it before the capture begins or after it ended",
      "%s needs a stream that is being captured into a graph", call);
}

kiln_status kiln_device_context(kiln_device *device, CUcontext *out)
{
  kiln__scope scope;
  kiln_status st;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  kiln__leave(&scope);
  *out = atomic_load_explicit(&device->context, memory_order_relaxed);
  return KILN_OK;
}

kiln_status kiln_device_synchronize(kiln_device *device)
{
  kiln__scope scope;
  kiln_status st = kiln__enter(device, &scope);

  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(device, NULL, __func__);
  if (st == KILN_OK)
    st = kiln__device_rc(device, device->driver->ctxSynchronize(),
                         "cuCtxSynchronize");
  kiln__leave(&scope);
  return st;
}
