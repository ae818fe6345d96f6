/* api_device.c -- implements the simulated devices: names, attributes, and
 * settings of primary contexts.
 *
 * Some attributes are defined by the compute capability. The other attributes
 * have the values of a mid-range GPU. */
#include "../graph/graph.h"
#include "api_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PCI_DOMAIN = 0,
  /* PCI bus number of device 0; further devices have consecutive numbers */
  PCI_BUS = 0x6b,
  PCI_DEVICE = 0
};

static CUresult check(const void *out, CUdevice device)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL));
  return kiln__cpu_known_device(device);
}

/* ---- Number and names of devices ----------------------------------------- */

CUresult kiln__cpu_deviceGet(CUdevice *device, int ordinal)
{
  CU_TRY(check(device, ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetCount(int *n)
{
  CU_TRY(kiln__cpu_ready());
  return CU_STORE(n, machine()->n_devices);
}

void kiln__cpu_device_identity(int device, kiln__cpu_identity *out)
{
  const int arch = kiln__cpu_the_machine()->opts.arch;

  *out = (kiln__cpu_identity){.bus = PCI_BUS + (unsigned)device};
  kiln__format(out->name, sizeof out->name, "Kiln CPU device, compute %d.%d",
               arch / 10, arch % 10);
  memcpy(out->uuid, "kiln-cpu-device", 15);
  out->uuid[15] = (unsigned char)device;
}

CUresult kiln__cpu_deviceGetName(char *name, int size, CUdevice device)
{
  kiln__cpu_identity identity;

  CU_TRY(check(name, device));
  CU_TRY(valid(size > 0));
  kiln__cpu_device_identity(device, &identity);
  kiln__copy_text(name, (size_t)size, identity.name);
  return CUDA_SUCCESS;
}

/* The UUID of a device is the same in every process, so that programs can
 * compare UUIDs. */
CUresult kiln__cpu_deviceGetUuid(CUuuid *uuid, CUdevice device)
{
  kiln__cpu_identity identity;

  CU_TRY(check(uuid, device));
  kiln__cpu_device_identity(device, &identity);
  memcpy(uuid->bytes, identity.uuid, sizeof identity.uuid);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetUuidV1(CUuuid *uuid, CUdevice device)
{
  return kiln__cpu_deviceGetUuid(uuid, device);
}

CUresult kiln__cpu_deviceGetLuid(char *luid, unsigned int *node_mask,
                                 CUdevice device)
{
  CU_TRY(check(luid, device));
  return node_mask == NULL ? CUDA_ERROR_INVALID_VALUE
                           : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kiln__cpu_deviceTotalMem(size_t *bytes, CUdevice device)
{
  CU_TRY(check(bytes, device));
  *bytes = (size_t)machine()->opts.memory_bytes;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetPCIBusId(char *text, int size, CUdevice device)
{
  CU_TRY(check(text, device));
  CU_TRY(valid(size >= 13));
  kiln__format(text, (size_t)size, "%04X:%02X:%02X.0", PCI_DOMAIN,
               PCI_BUS + device, PCI_DEVICE);
  return CUDA_SUCCESS;
}

/* Parses a PCI address in the form "domain:bus:device.function",
 * "domain:bus:device" or "bus:device.function". */
CUresult kiln__cpu_deviceGetByPCIBusId(CUdevice *device, const char *text)
{
  CUresult rc = kiln__cpu_ready();
  unsigned long part[3] = {0};
  const char *at = text;
  int n = 0;

  if (rc != CUDA_SUCCESS)
    return rc;
  CU_TRY(valid(device != NULL && text != NULL));
  while (n < 3) {
    char *end;

    part[n] = strtoul(at, &end, 16);
    CU_TRY(valid(end != at));
    n++;
    at = end;
    if (*at != ':')
      break;
    at++;
  }
  CU_TRY(valid(n >= 2 && (*at == '\0' || *at == '.')));
  if (n == 2) {
    part[2] = part[1];
    part[1] = part[0];
    part[0] = 0;
  }
  if (part[0] != PCI_DOMAIN || part[2] != PCI_DEVICE || part[1] < PCI_BUS ||
      part[1] - PCI_BUS >= (unsigned long)machine()->n_devices)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = (int)(part[1] - PCI_BUS);
  return CUDA_SUCCESS;
}

/* ---- Attributes ---------------------------------------------------------- */

/* Returns the maximum sizes of textures and surfaces. They are larger from
 * compute capability 6.0 on. */
static int texture_limit(CUdevice_attribute attribute, int arch)
{
  const bool big = arch >= 60;

  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
    return big ? 131072 : 65536;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
    return big ? 65536 : 65535;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
    return big ? 16384 : 4096;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE:
    return big ? 8192 : 2048;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE:
    return big ? 32768 : 16384;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
    return big ? 32768 : 16384;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
    return big ? 131072 : 65536;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
    return big ? 65536 : 32768;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
    return 2048;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
    return 2046;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
    return big ? 1 << 28 : 1 << 27;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
    return big ? 131072 : 65536;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
    return 65000;
  case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
    return big ? 2097120 : 1048544;
  default:
    return -1;
  }
}

/* Returns the device limits that the compute capability defines. */
static int arch_limit(CUdevice_attribute attribute, const kiln__cpu_limits *l)
{
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return l->block_threads;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return l->block_shared;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    return l->block_registers;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return l->sm_threads;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return l->arch / 10;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return l->arch % 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return l->sm_shared;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return l->sm_registers;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return l->block_shared_optin;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return l->sm_blocks;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    return l->reserved_shared;
  case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    return l->arch >= 60;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    return l->arch >= 60;
  case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
    return l->arch >= 90;
  case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
    return l->arch == 60 || l->arch == 70 || l->arch == 80 || l->arch == 90 ||
                   l->arch == 100
               ? 2
           : l->arch >= 86 ? 64
                           : 32;
  case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
    return l->arch >= 90 ? 4 : 1;
  case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
    return l->arch >= 80 ? 16 << 20 : 0;
  case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
    return l->arch >= 80 ? 128 << 20 : 0;
  default:
    return -1;
  }
}

/* Returns device attributes that are equal for every simulated device. Clock
 * rates and bus widths must not be 0, since programs divide by them. */
static int common(CUdevice_attribute attribute, int device)
{
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
    return INT32_MAX;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return KILN__WARP;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1000 * 1000; /* clock rate in kHz */
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return 1000 * 1000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return 256;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return 32 << 20;
  case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
  case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
    return 512;
  case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return KILN__SM_COUNT;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    return PCI_BUS + device;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 2;
  case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
    return device;
  case CU_DEVICE_ATTRIBUTE_NUMA_ID:
  case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
    return 0;
  case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
  case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
  case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
  case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    return 1;
  case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
    return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  default:
    return 0;
  }
}

CUresult kiln__cpu_deviceGetAttribute(int *value, CUdevice_attribute attribute,
                                      CUdevice device)
{
  const kiln__cpu_limits *l;
  int found;

  CU_TRY(check(value, device));
  CU_TRY(
      valid(attribute >= CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
            attribute <=
                CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED));
  l = kiln__cpu_limits_of(machine()->opts.arch);
  found = l != NULL ? arch_limit(attribute, l) : -1;
  if (found < 0)
    found = texture_limit(attribute, machine()->opts.arch);
  *value = found >= 0 ? found : common(attribute, device);
  return CUDA_SUCCESS;
}

/* ---- Less common device queries ------------------------------------------ */

CUresult kiln__cpu_deviceComputeCapability(int *major, int *minor,
                                           CUdevice device)
{
  CU_TRY(check(major, device));
  CU_TRY(valid(minor != NULL));
  *major = machine()->opts.arch / 10;
  *minor = machine()->opts.arch % 10;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetProperties(CUdevprop *prop, CUdevice device)
{
  const kiln__cpu_limits *l;

  CU_TRY(check(prop, device));
  l = kiln__cpu_limits_of(machine()->opts.arch);
  *prop = (CUdevprop){.maxThreadsDim = {1024, 1024, 64},
                      .maxGridSize = {INT32_MAX, 65535, 65535},
                      .totalConstantMemory = 65536,
                      .SIMDWidth = KILN__WARP,
                      .memPitch = INT32_MAX,
                      .clockRate = 1000 * 1000,
                      .textureAlign = 512};
  if (l != NULL) {
    prop->maxThreadsPerBlock = l->block_threads;
    prop->sharedMemPerBlock = l->block_shared;
    prop->regsPerBlock = l->block_registers;
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetTexture1DLinearMaxWidth(size_t *width,
                                                    CUarray_format format,
                                                    unsigned int channels,
                                                    CUdevice device)
{
  (void)format;
  CU_TRY(check(width, device));
  CU_TRY(valid(channels == 1 || channels == 2 || channels == 4));
  *width = (size_t)texture_limit(
      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, machine()->opts.arch);
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetExecAffinitySupport(int *value,
                                                CUexecAffinityType type,
                                                CUdevice device)
{
  CU_TRY(check(value, device));
  CU_TRY(valid(type == 0));
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_deviceGetNvSciSyncAttributes(void *list, CUdevice device,
                                                int flags)
{

  (void)flags;
  CU_TRY(check(list, device));
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kiln__cpu_flushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget t,
                                            CUflushGPUDirectRDMAWritesScope s)
{
  (void)t;
  (void)s;
  CU_TRY(kiln__cpu_check_current());
  return CUDA_ERROR_NOT_SUPPORTED;
}
