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
    return cudaErrorInvalidConfiguration;
  return cudaSuccess;
}

static cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block,
                          void **arguments, size_t shared, cudaStream_t stream)
{
  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(kiln__rt_check_shape(grid, block));
  if (shared > UINT32_MAX)
    return cudaErrorInvalidValue;
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
