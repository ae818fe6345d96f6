/* rt_launch.c -- launches kernels.
 *
 * `f<<<grid, block, shared, stream>>>(a, b)` becomes a call that pushes the
 * configuration, the evaluation of a and b, and a call of the host function of f,
 * which pops the configuration and launches. The evaluation of an argument may launch
 * another kernel, hence the stack. */
#include "../cudart.h"

unsigned kiln__rt_pushCall(dim3 grid, dim3 block, size_t shared,
                           cudaStream_t stream)
{
  kiln__rt_thread *self = kiln__rt_self();

  if (self->n_calls == KILN__RT_CALLS)
    return 1;
  self->calls[self->n_calls++] = (kiln__rt_call){grid, block, shared, stream};
  return 0;
}

cudaError_t kiln__rt_popCall(dim3 *grid, dim3 *block, size_t *shared,
                             void *stream)
{
  kiln__rt_thread *self = kiln__rt_self();
  const kiln__rt_call *call;

  if (self->n_calls == 0)
    return cudaErrorMissingConfiguration;
  call = &self->calls[--self->n_calls];
  *grid = call->grid;
  *block = call->block;
  *shared = call->shared;
  *(cudaStream_t *)stream = call->stream;
  return cudaSuccess;
}

static int attribute(CUdevice device, CUdevice_attribute which)
{
  int value = 0;

  return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value
                                                                     : 0;
}

static bool within(dim3 size, const int most[3])
{
  return size.x >= 1 && size.y >= 1 && size.z >= 1 &&
         size.x <= (unsigned)most[0] && size.y <= (unsigned)most[1] &&
         size.z <= (unsigned)most[2];
}

cudaError_t kiln__rt_check_shape(dim3 grid, dim3 block)
{
  int grids[3], blocks[3];
  CUdevice device;

  KILN__RT_TRY(cuCtxGetDevice(&device));
  for (int i = 0; i < 3; i++) {
    blocks[i] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    grids[i] = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  if (!within(grid, grids) || !within(block, blocks) ||
      (uint64_t)block.x * block.y * block.z >
          (uint64_t)attribute(device,
                              CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
    return kiln__rt_version < 13000 ? cudaErrorInvalidConfiguration
                                    : cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t kiln__rt_config(CUlaunchConfig *out,
                            const cudaLaunchConfig_t *config)
{
  if (config == NULL || config->dynamicSmemBytes > UINT32_MAX)
    return cudaErrorInvalidValue;
  *out = (CUlaunchConfig){
      .gridDimX = config->gridDim.x,
      .gridDimY = config->gridDim.y,
      .gridDimZ = config->gridDim.z,
      .blockDimX = config->blockDim.x,
      .blockDimY = config->blockDim.y,
      .blockDimZ = config->blockDim.z,
      .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
      .hStream = kiln__rt_stream(config->stream),
      .attrs = config->attrs,
      .numAttrs = config->numAttrs,
  };
  return cudaSuccess;
}

static cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block,
                          void **arguments, size_t shared, cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_check_shape(grid, block));
  /* As in NVIDIA's library, the upper half of the size is lost. */
  return cuLaunchKernel((CUfunction)kernel, grid.x, grid.y, grid.z, block.x,
                        block.y, block.z, (unsigned)shared,
                        kiln__rt_stream(stream), arguments, NULL);
}

cudaError_t kiln__rt_launchKernel(const void *host, dim3 grid, dim3 block,
                                  void **arguments, size_t shared,
                                  cudaStream_t stream)
{
  CUkernel kernel;

  KILN__RT_TRY(kiln__rt_kernel(&kernel, host));
  return launch(kernel, grid, block, arguments, shared, stream);
}

cudaError_t kiln__rt_launchKernelEx(const cudaLaunchConfig_t *config,
                                    const void *host, void **arguments)
{
  CUlaunchConfig c;
  CUfunction function;

  if (config == NULL)
    return cudaErrorInvalidValue;
  KILN__RT_TRY(kiln__rt_function(&function, host));
  KILN__RT_TRY(kiln__rt_check_shape(config->gridDim, config->blockDim));
  KILN__RT_TRY(kiln__rt_config(&c, config));
  return cuLaunchKernelEx(&c, function, arguments, NULL);
}

cudaError_t kiln__rt_launchCooperative(const void *host, dim3 grid, dim3 block,
                                       void **arguments, size_t shared,
                                       cudaStream_t stream)
{
  CUfunction function;

  KILN__RT_TRY(kiln__rt_function(&function, host));
  KILN__RT_TRY(kiln__rt_check_shape(grid, block));
  if (shared > UINT32_MAX)
    return cudaErrorInvalidValue;
  return cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x,
                                   block.y, block.z, (unsigned)shared,
                                   kiln__rt_stream(stream), arguments);
}

/* Launches in the context of a stream, which may belong to another device than the
 * current one. */
static cudaError_t launch_there(const cudaLaunchParams *p)
{
  CUcontext here, there;
  cudaError_t rc;

  KILN__RT_TRY(cuCtxGetCurrent(&here));
  KILN__RT_TRY(cuStreamGetCtx(p->stream, &there));
  KILN__RT_TRY(cuCtxSetCurrent(there));
  rc = kiln__rt_launchCooperative(p->func, p->gridDim, p->blockDim, p->args,
                                  p->sharedMem, p->stream);
  cuCtxSetCurrent(here);
  return rc;
}

/* The kernels of one call must have the same shape, as on a GPU. Each kernel waits for
 * its own stream only: kernels that synchronise across devices were removed from CUDA
 * together with this function. */
cudaError_t kiln__rt_launchCooperativeMultiDevice(cudaLaunchParams *launches,
                                                  unsigned n, unsigned flags)
{
  const unsigned known = cudaCooperativeLaunchMultiDeviceNoPreSync |
                         cudaCooperativeLaunchMultiDeviceNoPostSync;

  KILN__RT_TRY(kiln__rt_context());
  if (launches == NULL || n == 0 || (flags & ~known) != 0)
    return cudaErrorInvalidValue;
  for (unsigned i = 0; i < n; i++) {
    if (launches[i].stream == NULL || launches[i].func != launches[0].func)
      return cudaErrorInvalidValue;
  }
  for (unsigned i = 0; i < n; i++)
    KILN__RT_TRY(launch_there(&launches[i]));
  return cudaSuccess;
}

/* ---- Launches by handle, as the host code of CUDA 12 and 13 does them ------- */

/* The host code keeps the handle in a static variable and ignores the status. */
cudaError_t kiln__rt_getKernelOfStub(cudaKernel_t *kernel, const void *host)
{
  cudaError_t rc;

  if (kernel == NULL)
    return cudaErrorInvalidValue;
  rc = kiln__rt_kernel(kernel, host);
  if (rc != cudaSuccess)
    kiln__rt_self()->stub = rc;
  return rc;
}

/* A NULL handle means that kiln__rt_getKernelOfStub() failed, so the launch fails with
 * the same error. */
cudaError_t kiln__rt_launchKernelOfStub(cudaKernel_t kernel, dim3 grid,
                                        dim3 block, void **arguments,
                                        size_t shared, cudaStream_t stream)
{
  const cudaError_t failed = kiln__rt_self()->stub;

  if (kernel == NULL)
    return failed == cudaSuccess ? cudaErrorInvalidDeviceFunction : failed;
  return launch(kernel, grid, block, arguments, shared, stream);
}
