/* abi_layout.h -- the sizes and offsets in the driver's ABI that are compared.
 * One table is made from Kiln's own declarations, and one from NVIDIA's
 * headers. */
#include "abi_rows.h"

extern const abi_row abi_own[], abi_nvidia[];

/* sizes of the driver's types, and offsets of the members of the launch
 * structures */
#define ABI_LAYOUT                                                             \
  ABI_SIZE(CUresult)                                                           \
  ABI_SIZE(CUdevice)                                                           \
  ABI_SIZE(CUdeviceptr)                                                        \
  ABI_SIZE(CUjit_option)                                                       \
  ABI_SIZE(CUstreamCaptureStatus)                                              \
  ABI_SIZE(CUdriverProcAddressQueryResult)                                     \
  ABI_SIZE(CUuuid)                                                             \
  ABI_SIZE(CUtensorMap)                                                        \
  ABI_SIZE(CUlaunchAttributeValue)                                             \
  ABI_AT(CUlaunchAttributeValue, cooperative)                                  \
  ABI_AT(CUlaunchAttributeValue, clusterDim)                                   \
  ABI_AT(CUlaunchAttributeValue, clusterDim.y)                                 \
  ABI_AT(CUlaunchAttributeValue, clusterDim.z)                                 \
  ABI_AT(CUlaunchAttributeValue, programmaticStreamSerializationAllowed)       \
  ABI_AT(CUlaunchAttributeValue, priority)                                     \
  ABI_SIZE(CUlaunchAttribute)                                                  \
  ABI_AT(CUlaunchAttribute, id)                                                \
  ABI_AT(CUlaunchAttribute, value)                                             \
  ABI_SIZE(CUlaunchConfig)                                                     \
  ABI_AT(CUlaunchConfig, gridDimX)                                             \
  ABI_AT(CUlaunchConfig, gridDimY)                                             \
  ABI_AT(CUlaunchConfig, gridDimZ)                                             \
  ABI_AT(CUlaunchConfig, blockDimX)                                            \
  ABI_AT(CUlaunchConfig, blockDimY)                                            \
  ABI_AT(CUlaunchConfig, blockDimZ)                                            \
  ABI_AT(CUlaunchConfig, sharedMemBytes)                                       \
  ABI_AT(CUlaunchConfig, hStream)                                              \
  ABI_AT(CUlaunchConfig, attrs)                                                \
  ABI_AT(CUlaunchConfig, numAttrs)                                             \
  ABI_END
