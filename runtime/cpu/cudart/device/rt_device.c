/* rt_device.c -- describes devices: attributes, and cudaDeviceProp in the layouts of
 * CUDA 11, 12 and 13. */
#include "../cudart.h"

#include <string.h>

/* The numbers of attributes are those of the driver. */
cudaError_t kiln__rt_deviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                        int device)
{
  CUdevice handle;

  if (value == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_device(&handle, device));
  return cuDeviceGetAttribute(value, attribute, handle);
}

/* Returns the value of an attribute, or 0 if the driver does not have the
 * attribute. */
static int value_of(CUdevice device, CUdevice_attribute attribute)
{
  int value = 0;

  return cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value
                                                                         : 0;
}

/* What cuDeviceGetAttribute() does not report. */
typedef struct identity {
  char name[256], luid[8];
  CUuuid uuid;
  unsigned int luid_mask;
  size_t memory; /* bytes */
} identity;

static cudaError_t identify(identity *out, CUdevice device)
{
  memset(out, 0, sizeof *out);
  KILN__RT_TRY(cuDeviceGetName(out->name, sizeof out->name, device));
  KILN__RT_TRY(cuDeviceTotalMem_v2(&out->memory, device));
  KILN__RT_TRY(cuDeviceGetUuid_v2(&out->uuid, device));
  cuDeviceGetLuid(out->luid, &out->luid_mask, device); /* only on Windows */
  return cudaSuccess;
}

/* Fills one layout of cudaDeviceProp, beginning with the members that have no
 * attribute. */
#define BEGIN(out, device)                                                     \
  CUdevice handle;                                                             \
  identity who;                                                                \
                                                                               \
  if ((out) == NULL)                                                           \
    return cudaErrorInvalidValue;                                              \
  KILN__RT_TRY(kiln__rt_device(&handle, device));                              \
  KILN__RT_TRY(identify(&who, handle));                                        \
  memset((out), 0, sizeof *(out));                                             \
  memcpy((out)->name, who.name, sizeof who.name);                              \
  memcpy((out)->luid, who.luid, sizeof who.luid);                              \
  (out)->luidDeviceNodeMask = who.luid_mask;                                   \
  (out)->uuid = who.uuid;                                                      \
  (out)->totalGlobalMem = who.memory
#define SET(member, attribute)                                                 \
  out->member = (__typeof__(out->member))value_of(                             \
      handle, CU_DEVICE_ATTRIBUTE_##attribute);

cudaError_t kiln__rt_getDeviceProperties11(cudaDeviceProp_11 *out, int device)
{
  BEGIN(out, device);
#define KILN__RT_PROPERTY(member, attribute) SET(member, attribute)
#define KILN__RT_PROPERTY_OLD(member, attribute) SET(member, attribute)
#include "device_properties.def"
  return cudaSuccess;
}

cudaError_t kiln__rt_getDeviceProperties12(cudaDeviceProp_12 *out, int device)
{
  BEGIN(out, device);
#define KILN__RT_PROPERTY(member, attribute) SET(member, attribute)
#define KILN__RT_PROPERTY_OLD(member, attribute) SET(member, attribute)
#define KILN__RT_PROPERTY_12(member, attribute) SET(member, attribute)
#include "device_properties.def"
  return cudaSuccess;
}

cudaError_t kiln__rt_getDeviceProperties13(cudaDeviceProp_13 *out, int device)
{
  BEGIN(out, device);
#define KILN__RT_PROPERTY(member, attribute) SET(member, attribute)
#define KILN__RT_PROPERTY_12(member, attribute) SET(member, attribute)
#define KILN__RT_PROPERTY_13(member, attribute) SET(member, attribute)
#include "device_properties.def"
  return cudaSuccess;
}
