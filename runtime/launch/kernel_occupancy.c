/* kernel_occupancy.c -- the occupancy of a loaded kernel, computed by the
 * driver. arch/occupancy_model.c computes the same numbers without a GPU. */
#include "../device/device.h"

kiln_status kiln_kernel_occupancy(kiln_kernel *kernel, int block, size_t smem,
                                  int *blocks_per_sm)
{
  kiln__scope scope;
  kiln_status st;

  if (blocks_per_sm != NULL)
    *blocks_per_sm = 0;
  if (kernel == NULL || blocks_per_sm == NULL || block < 1)
    return kiln__fail(KILN_EINVAL, NULL,
                      "the kernel or out is NULL, or block is below 1");
  if (smem > kernel->smem_limit || block > kernel->max_threads)
    /* a block of this size cannot run, so the number of resident blocks is 0 */
    return KILN_OK;
  st = kiln__enter(kernel->device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__kernel_opt_in(kernel, smem);
  if (st == KILN_OK)
    st = kiln__device_rc(
        kernel->device,
        kernel->device->driver->occupancyMaxActiveBlocksPerMultiprocessor(
            blocks_per_sm, kernel->handle, block, smem),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (st != KILN_OK)
    *blocks_per_sm = 0;
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_kernel_suggest(kiln_kernel *kernel, size_t smem, int max_block,
                                int *block, int *grid)
{
  int best_grid = 0, best_block = 0;
  kiln__scope scope;
  kiln_status st;

  if (block != NULL)
    *block = 0;
  if (grid != NULL)
    *grid = 0;
  if (kernel == NULL || max_block < 0)
    return kiln__fail(KILN_EINVAL, NULL,
                      "the kernel is NULL or max_block is below 0");
  if (smem > kernel->smem_limit)
    return kiln__fail(KILN_ELIMIT, "use smaller tiles",
                      "%s: %zu bytes of dynamic shared memory; the device "
                      "allows %u",
                      kernel->name, smem, kernel->smem_limit);
  st = kiln__enter(kernel->device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__kernel_opt_in(kernel, smem);
  if (st == KILN_OK)
    st = kiln__device_rc(
        kernel->device,
        kernel->device->driver->occupancyMaxPotentialBlockSize(
            &best_grid, &best_block, kernel->handle, NULL, smem, max_block),
        "cuOccupancyMaxPotentialBlockSize");
  kiln__leave(&scope);
  if (st != KILN_OK)
    return st;
  if (block != NULL)
    *block = best_block;
  if (grid != NULL)
    *grid = best_grid;
  return KILN_OK;
}
