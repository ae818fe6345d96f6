/* rt_device_settings.c -- chooses devices, sets their flags, and lets devices access
 * each other's memory. */
#include "../cudart.h"

/* ---- Choosing a device ----------------------------------------------------- */

/* Chooses the first device with at least the wanted compute capability and memory.
 * The wanted values are in members of cudaDeviceProp at the same place in all
 * layouts, or in those of CUDA 13 for that version. Zero means any value. */
static bool serves(CUdevice device, const void *wanted)
{
  const cudaDeviceProp_11 *old = wanted;
  const cudaDeviceProp_13 *now = wanted;
  const bool is_new = kiln__rt_version >= 13000;
  const int major = is_new ? now->major : old->major;
  const int minor = is_new ? now->minor : old->minor;
  int has_major = 0, has_minor = 0;
  size_t memory = 0;

  return cuDeviceGetAttribute(&has_major,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                              device) == CUDA_SUCCESS &&
         cuDeviceGetAttribute(&has_minor,
                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                              device) == CUDA_SUCCESS &&
         cuDeviceTotalMem_v2(&memory, device) == CUDA_SUCCESS &&
         10 * has_major + has_minor >= 10 * major + minor &&
         memory >= old->totalGlobalMem;
}

/* If no device serves, the result is device 0, as the closest one. */
cudaError_t kiln__rt_chooseDevice(int *out, const void *properties)
{
  CUdevice handle;
  int n;

  if (out == NULL || properties == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_getDeviceCount(&n));
  *out = 0;
  for (int i = 0; i < n; i++) {
    if (kiln__rt_device(&handle, i) == cudaSuccess &&
        serves(handle, properties)) {
      *out = i;
      break;
    }
  }
  return cudaSuccess;
}

/* The first device of the list becomes the device of a thread that has not called
 * cudaSetDevice(). An empty list restores the default. */
cudaError_t kiln__rt_setValidDevices(int *devices, int n)
{
  int count;
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_getDeviceCount(&count));
  if (n < 0 || n > count || (n > 0 && devices == NULL))
    return cudaErrorInvalidValue;
  for (int i = 0; i < n; i++) {
    KILN__RT_TRY(kiln__rt_device(&handle, devices[i]));
    for (int k = 0; k < i; k++) {
      if (devices[k] == devices[i])
        return cudaErrorInvalidDevice;
    }
  }
  kiln__rt_self()->preferred = n == 0 ? 0 : devices[0];
  return cudaSuccess;
}

/* ---- Flags ----------------------------------------------------------------- */

static cudaError_t set_flags(int device, unsigned flags)
{
  const unsigned schedule = flags & 7;
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  if ((flags & ~(unsigned)cudaDeviceMask) != 0 ||
      (schedule & (schedule - 1)) != 0)
    return cudaErrorInvalidValue;
  return cuDevicePrimaryCtxSetFlags_v2(handle, flags);
}

cudaError_t kiln__rt_setDeviceFlags(unsigned flags)
{
  int device;

  KILN__RT_TRY(kiln__rt_getDevice(&device));
  return set_flags(device, flags);
}

cudaError_t kiln__rt_getDeviceFlags(unsigned *flags)
{
  CUcontext context = NULL;
  CUdevice handle;
  int active, device;

  if (flags == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_ready());
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL)
    return cuCtxGetFlags(flags);
  KILN__RT_TRY(kiln__rt_getDevice(&device));
  KILN__RT_TRY(kiln__rt_device(&handle, device));
  return cuDevicePrimaryCtxGetState(handle, flags, &active);
}

/* Makes the primary context of a device without making it current. */
cudaError_t kiln__rt_initDevice(int device, unsigned device_flags,
                                unsigned flags)
{
  CUcontext context;
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  if ((flags & ~(unsigned)cudaInitDeviceFlagsAreValid) != 0)
    return cudaErrorInvalidValue;
  if (flags != 0)
    KILN__RT_TRY(set_flags(device, device_flags));
  return kiln__rt_primary(&context, device);
}

/* Old functions that convert a double for devices without double precision, of which
 * there are none any more. */
cudaError_t kiln__rt_setDouble(double *value)
{
  (void)value;
  return cudaSuccess;
}

/* ---- Addresses on the bus -------------------------------------------------- */

cudaError_t kiln__rt_deviceGetPCIBusId(char *text, int size, int device)
{
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  return cuDeviceGetPCIBusId(text, size, handle);
}

cudaError_t kiln__rt_deviceGetByPCIBusId(int *device, const char *text)
{
  KILN__RT_TRY(kiln__rt_ready());
  return cuDeviceGetByPCIBusId(device, text);
}

/* ---- Peers ----------------------------------------------------------------- */

cudaError_t kiln__rt_deviceGetP2PAttribute(int *value, int attribute, int from,
                                           int to)
{
  CUdevice a, b;

  KILN__RT_TRY(kiln__rt_device(&a, from));
  KILN__RT_TRY(kiln__rt_device(&b, to));
  return cuDeviceGetP2PAttribute(value, attribute, a, b);
}

cudaError_t kiln__rt_deviceCanAccessPeer(int *can, int device, int peer)
{
  CUdevice a, b;

  if (can == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_device(&a, device));
  KILN__RT_TRY(kiln__rt_device(&b, peer));
  return cuDeviceCanAccessPeer(can, a, b);
}

cudaError_t kiln__rt_deviceEnablePeerAccess(int peer, unsigned flags)
{
  CUcontext context;
  cudaError_t rc;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_primary(&context, peer));
  rc = cuCtxEnablePeerAccess(context, flags);
  /* The driver's error for a context that is its own peer */
  return rc == cudaErrorDeviceUninitialized ? cudaErrorPeerAccessUnsupported
                                            : rc;
}

cudaError_t kiln__rt_deviceDisablePeerAccess(int peer)
{
  CUcontext context;
  cudaError_t rc;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_primary(&context, peer));
  rc = cuCtxDisablePeerAccess(context);
  return rc == cudaErrorDeviceUninitialized ? cudaErrorPeerAccessNotEnabled
                                            : rc;
}
