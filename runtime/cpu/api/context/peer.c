/* peer.c -- implements the access of devices to the memory of other devices.
 * Every pair of simulated devices supports peer access; each context enables it
 * separately. */
#include "api_context.h"

CUresult kiln__cpu_deviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(can != NULL));
  if (!kiln__cpu_device_exists(device) || !kiln__cpu_device_exists(peer))
    return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetP2PAttribute(int *value,
                                         CUdevice_P2PAttribute attribute,
                                         CUdevice from, CUdevice to)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(
      value != NULL && attribute >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
      attribute <=
          CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED));
  if (!kiln__cpu_device_exists(from) || !kiln__cpu_device_exists(to) ||
      from == to)
    return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
           attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED ||
           attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED;
  return CUDA_SUCCESS;
}

/* Enables or disables the current context's access to the memory of the device
 * that `peer` belongs to. */
static CUresult change(CUcontext peer, bool on)
{
  CUcontext context;
  CUresult rc = CUDA_SUCCESS;
  uint64_t bit;

  CU_TRY(kiln__cpu_current(&context));
  if (!kiln__cpu_live(peer, KILN__HANDLE_CONTEXT) || peer == context)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  bit = UINT64_C(1) << peer->device;
  pthread_mutex_lock(&machine()->lock);
  if (((context->peers & bit) != 0) == on)
    rc = on ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
            : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  else
    context->peers ^= bit;
  pthread_mutex_unlock(&machine()->lock);
  return rc;
}

CUresult kiln__cpu_ctxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
  CUresult rc = kiln__cpu_ready();

  CU_TRY(valid(rc != CUDA_SUCCESS || flags == 0));
  return change(peer, true);
}

CUresult kiln__cpu_ctxDisablePeerAccess(CUcontext peer)
{
  return change(peer, false);
}
