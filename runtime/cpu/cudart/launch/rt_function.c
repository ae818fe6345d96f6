/* rt_function.c -- queries and sets properties of kernels: attributes, occupancy,
 * handles; and finds entry points of the driver. */
#include "../cudart.h"

#include <string.h>

/* ---- Attributes ------------------------------------------------------------ */

static cudaError_t get(int *out, CUfunction function,
                       CUfunction_attribute attribute)
{
  return cuFuncGetAttribute(out, attribute, function);
}

static cudaError_t get_size(size_t *out, CUfunction function,
                            CUfunction_attribute attribute)
{
  int value = 0;

  KILN__RT_TRY(get(&value, function, attribute));
  *out = (size_t)value;
  return cudaSuccess;
}

/* Fills the members that both layouts have. */
static cudaError_t common_attributes(cudaFuncAttributes_11 *a, CUfunction f)
{
  memset(a, 0, sizeof *a);
  KILN__RT_TRY(
      get_size(&a->sharedSizeBytes, f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  KILN__RT_TRY(
      get_size(&a->constSizeBytes, f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  KILN__RT_TRY(
      get_size(&a->localSizeBytes, f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  KILN__RT_TRY(
      get(&a->maxThreadsPerBlock, f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  KILN__RT_TRY(get(&a->numRegs, f, CU_FUNC_ATTRIBUTE_NUM_REGS));
  KILN__RT_TRY(get(&a->ptxVersion, f, CU_FUNC_ATTRIBUTE_PTX_VERSION));
  KILN__RT_TRY(get(&a->binaryVersion, f, CU_FUNC_ATTRIBUTE_BINARY_VERSION));
  KILN__RT_TRY(get(&a->cacheModeCA, f, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA));
  KILN__RT_TRY(get(&a->maxDynamicSharedSizeBytes, f,
                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  return get(&a->preferredShmemCarveout, f,
             CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
}

cudaError_t kiln__rt_funcGetAttributes11(cudaFuncAttributes_11 *out,
                                         const void *host)
{
  CUfunction f;

  if (out == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_function(&f, host));
  return common_attributes(out, f);
}

/* The shorter layout is the beginning of the longer one. */
cudaError_t kiln__rt_funcGetAttributes(cudaFuncAttributes_12 *out,
                                       const void *host)
{
  cudaFuncAttributes_11 common;
  CUfunction f;

  if (out == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_function(&f, host));
  KILN__RT_TRY(common_attributes(&common, f));
  memset(out, 0, sizeof *out);
  memcpy(out, &common, offsetof(cudaFuncAttributes_12, clusterDimMustBeSet));
  KILN__RT_TRY(get(&out->clusterDimMustBeSet, f,
                   CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET));
  KILN__RT_TRY(get(&out->requiredClusterWidth, f,
                   CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH));
  KILN__RT_TRY(get(&out->requiredClusterHeight, f,
                   CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT));
  KILN__RT_TRY(get(&out->requiredClusterDepth, f,
                   CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH));
  KILN__RT_TRY(get(&out->clusterSchedulingPolicyPreference, f,
                   CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
  return get(&out->nonPortableClusterSizeAllowed, f,
             CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
}

/* The numbers of attributes are those of the driver. */
cudaError_t kiln__rt_funcSetAttribute(const void *host,
                                      cudaFuncAttribute attribute, int value)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return cudaErrorInvalidValue;
  return cuFuncSetAttribute(function, attribute, value);
}

cudaError_t kiln__rt_kernelSetAttributeForDevice(cudaKernel_t kernel,
                                                 cudaFuncAttribute attribute,
                                                 int value, int device)
{
  CUdevice handle;

  KILN__RT_TRY(kiln__rt_device(&handle, device));
  if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return cudaErrorInvalidValue;
  return cuKernelSetAttribute(attribute, value, kernel, handle);
}

cudaError_t kiln__rt_funcSetCacheConfig(const void *host, cudaFuncCache config)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuFuncSetCacheConfig(function, config);
}

cudaError_t kiln__rt_funcSetSharedMemConfig(const void *host,
                                            cudaSharedMemConfig config)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuFuncSetSharedMemConfig(function, config);
}

/* ---- Handles --------------------------------------------------------------- */

cudaError_t kiln__rt_funcGetName(const char **name, const void *host)
{
  CUfunction function;

  if (name == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuFuncGetName(name, function);
}

cudaError_t kiln__rt_funcGetParamInfo(const void *host, size_t index,
                                      size_t *offset, size_t *size)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuFuncGetParamInfo(function, index, offset, size);
}

/* Both functions want the address of a kernel on the host, not a handle. */
static cudaError_t as_symbol(cudaError_t rc)
{
  return rc == cudaErrorInvalidResourceHandle ? cudaErrorInvalidDeviceFunction
                                              : rc;
}

cudaError_t kiln__rt_getFuncBySymbol(cudaFunction_t *function, const void *host)
{
  return function == NULL ? cudaErrorInvalidValue
                          : as_symbol(kiln__rt_function(function, host));
}

cudaError_t kiln__rt_getKernel(cudaKernel_t *kernel, const void *host)
{
  if (kernel == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_context());
  return as_symbol(kiln__rt_kernel(kernel, host));
}

/* ---- Occupancy ------------------------------------------------------------- */

cudaError_t kiln__rt_occupancyWithFlags(int *blocks, const void *host,
                                        int block, size_t shared,
                                        unsigned flags)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, block, shared, flags);
}

cudaError_t kiln__rt_occupancy(int *blocks, const void *host, int block,
                               size_t shared)
{
  return kiln__rt_occupancyWithFlags(blocks, host, block, shared, 0);
}

cudaError_t kiln__rt_occupancyAvailableShared(size_t *shared, const void *host,
                                              int blocks, int block)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  return cuOccupancyAvailableDynamicSMemPerBlock(shared, function, blocks,
                                                 block);
}

cudaError_t kiln__rt_occupancyMaxCluster(int *size, const void *host,
                                         const cudaLaunchConfig_t *config)
{
  CUlaunchConfig c;
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  KILN__RT_TRY(kiln__rt_config(&c, config));
  return cuOccupancyMaxPotentialClusterSize(size, function, &c);
}

cudaError_t kiln__rt_occupancyMaxClusters(int *clusters, const void *host,
                                          const cudaLaunchConfig_t *config)
{
  CUlaunchConfig c;
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  KILN__RT_TRY(kiln__rt_config(&c, config));
  return cuOccupancyMaxActiveClusters(clusters, function, &c);
}

/* ---- Entry points of the driver -------------------------------------------- */

/* A program of the per-thread form gets the driver's per-thread form by default. If the
 * program asks for the status of the search, an unknown symbol is no error. */
cudaError_t kiln__rt_getDriverEntryPointByVersion(const char *symbol,
                                                  void **function,
                                                  unsigned version,
                                                  unsigned long long flags,
                                                  int *status)
{
  cudaError_t rc;

  if (function == NULL || symbol == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_ready());
  if (flags == 0 && kiln__rt_self()->per_thread)
    flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  *function = NULL;
  rc = cuGetProcAddress_v2(symbol, function, (int)version, flags, status);
  return rc == CUDA_ERROR_NOT_FOUND && status != NULL ? cudaSuccess : rc;
}

cudaError_t kiln__rt_getDriverEntryPoint(const char *symbol, void **function,
                                         unsigned long long flags, int *status)
{
  return kiln__rt_getDriverEntryPointByVersion(
      symbol, function, (unsigned)kiln__rt_version, flags, status);
}

cudaError_t kiln__rt_getDriverEntryPoint11(const char *symbol, void **function,
                                           unsigned long long flags)
{
  return kiln__rt_getDriverEntryPoint(symbol, function, flags, NULL);
}
