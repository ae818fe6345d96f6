/* rt_state.c -- initialises the driver at first use, and makes the primary context of
 * the thread's device current.
 *
 * The runtime has no contexts of its own. If the program made a context current by the
 * driver API, all calls use that context. Otherwise a call retains the primary context
 * of the thread's device, which is device 0 until cudaSetDevice() chooses another, and
 * makes it current. cudaDeviceReset() destroys a primary context that other threads
 * may still have as their current context, so a thread that finds a reset primary
 * context retains it again. */
#include "cudart.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The primary context of a device. `context` stays after a reset, so that threads
 * recognise it. */
typedef struct primary {
  _Atomic(CUcontext) context;
  atomic_bool active;
  atomic_bool lost; /* reset after an error of a kernel */
} primary;

typedef struct runtime {
  pthread_once_t once;
  pthread_mutex_t lock; /* guards activation and reset of primary contexts */
  cudaError_t status;   /* of the driver's initialisation */
  int n_devices;
  primary *primaries; /* per device */
} runtime;

static runtime *the_runtime(void)
{
  static runtime it = {.once = PTHREAD_ONCE_INIT,
                       .lock = PTHREAD_MUTEX_INITIALIZER};

  return &it;
}

/* ---- The driver ------------------------------------------------------------ */

/* A driver supports the runtimes of its own and all earlier major versions. */
static cudaError_t start_driver(runtime *r)
{
  int version = 0;

  KILN__RT_TRY(cuInit(0));
  if (cuDriverGetVersion(&version) != CUDA_SUCCESS ||
      version / 1000 < kiln__rt_version / 1000)
    return cudaErrorInsufficientDriver;
  KILN__RT_TRY(cuDeviceGetCount(&r->n_devices));
  if (r->n_devices == 0)
    return cudaErrorNoDevice;
  r->primaries = calloc((size_t)r->n_devices, sizeof *r->primaries);
  return r->primaries == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}

static void start(void)
{
  runtime *r = the_runtime();

  r->status = start_driver(r);
}

cudaError_t kiln__rt_ready(void)
{
  runtime *r = the_runtime();

  pthread_once(&r->once, start);
  return r->status;
}

cudaError_t kiln__rt_device(CUdevice *out, int device)
{
  KILN__RT_TRY(kiln__rt_ready());
  if (device < 0 || device >= the_runtime()->n_devices)
    return cudaErrorInvalidDevice;
  return cuDeviceGet(out, device);
}

/* ---- Primary contexts ------------------------------------------------------ */

cudaError_t kiln__rt_primary(CUcontext *out, int device)
{
  runtime *r = the_runtime();
  cudaError_t rc = cudaSuccess;
  CUcontext context = NULL;
  CUdevice handle;
  primary *p;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  p = &r->primaries[device];
  if (atomic_load(&p->lost))
    return cudaErrorDevicesUnavailable;
  pthread_mutex_lock(&r->lock);
  if (!atomic_load(&p->active)) {
    rc = cuDevicePrimaryCtxRetain(&context, handle);
    if (rc == cudaSuccess) {
      atomic_store(&p->context, context);
      atomic_store(&p->active, true);
    }
  }
  *out = atomic_load(&p->context);
  pthread_mutex_unlock(&r->lock);
  return rc;
}

/* Returns whether a context is a primary context that was reset since the thread made
 * it current. */
static bool was_reset(const runtime *r, CUcontext context)
{
  for (int i = 0; i < r->n_devices; i++) {
    if (atomic_load(&r->primaries[i].context) == context)
      return !atomic_load(&r->primaries[i].active);
  }
  return false;
}

static int device_of(const kiln__rt_thread *self)
{
  return self->device < 0 ? self->preferred : self->device;
}

static cudaError_t use_primary(int device)
{
  CUcontext context;

  KILN__RT_TRY(kiln__rt_primary(&context, device));
  return cuCtxSetCurrent(context);
}

cudaError_t kiln__rt_context(void)
{
  CUcontext context = NULL;

  KILN__RT_TRY(kiln__rt_ready());
  KILN__RT_TRY(cuCtxGetCurrent(&context));
  if (context != NULL && !was_reset(the_runtime(), context))
    return cudaSuccess;
  return use_primary(device_of(kiln__rt_self()));
}

/* ---- Choosing a device ----------------------------------------------------- */

cudaError_t kiln__rt_getDeviceCount(int *count)
{
  cudaError_t rc;

  if (count == NULL)
    return cudaErrorInvalidValue;
  rc = kiln__rt_ready();
  *count = rc == cudaSuccess ? the_runtime()->n_devices : 0;
  return rc;
}

cudaError_t kiln__rt_getDevice(int *device)
{
  CUcontext context = NULL;
  CUdevice handle;

  if (device == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_ready());
  KILN__RT_TRY(cuCtxGetCurrent(&context));
  if (context == NULL || was_reset(the_runtime(), context) ||
      cuCtxGetDevice(&handle) != CUDA_SUCCESS)
    *device = device_of(kiln__rt_self());
  else
    *device = handle;
  return cudaSuccess;
}

cudaError_t kiln__rt_setDevice(int device)
{
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  kiln__rt_self()->device = device;
  return use_primary(device);
}

cudaError_t kiln__rt_deviceSynchronize(void)
{
  KILN__RT_TRY(kiln__rt_context());
  return cuCtxSynchronize();
}

/* Returns whether a kernel failed in a primary context, which is current. */
static bool has_failed(const primary *p)
{
  CUcontext context = NULL;

  return atomic_load(&p->active) && cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
         context == atomic_load(&p->context) &&
         cuCtxSynchronize() != CUDA_SUCCESS;
}

/* Destroys the primary context of the current device. The next call that needs a
 * context makes a new one, except after an error of a kernel: on an H200, the process
 * then gets no context any more. */
cudaError_t kiln__rt_deviceReset(void)
{
  runtime *r = the_runtime();
  cudaError_t rc;
  int device;
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_getDevice(&device));
  KILN__RT_TRY(kiln__rt_device(&handle, device));
  if (has_failed(&r->primaries[device]))
    atomic_store(&r->primaries[device].lost, true);
  pthread_mutex_lock(&r->lock);
  rc = cuDevicePrimaryCtxReset_v2(handle);
  if (rc == cudaSuccess) {
    atomic_store(&r->primaries[device].active, false);
    cuCtxSetCurrent(NULL);
  }
  pthread_mutex_unlock(&r->lock);
  return rc;
}
