/* cases_launch.c -- cases of launches, kernels' attributes, occupancy and libraries. */
#include "cases.h"

static cudaError_t spin(dim3 grid, dim3 block, size_t shared)
{
  return cudaLaunchKernel(&k_spin, grid, block, NULL, shared, NULL);
}

CASE(launch_right)
{
  OK(spin((dim3){1, 1, 1}, (dim3){1, 1, 1}, 0));
  OK(spin((dim3){3, 2, 2}, (dim3){8, 8, 16}, 0));
  OK(spin((dim3){1, 1, 1}, (dim3){1024, 1, 1}, 0));
  OK(cudaDeviceSynchronize());
}
CASE(launch_unknown_function)
{
  int x = 0;

  T(cudaErrorInvalidResourceHandle, launch(&x, 1, NULL, NULL));
  T(cudaErrorInvalidResourceHandle, cudaGetLastError());
}
CASE(launch_null_function)
{
  T(cudaErrorInvalidDeviceFunction, launch(NULL, 1, NULL, NULL));
}
CASE(launch_variable)
{
  T(cudaErrorInvalidResourceHandle, launch(&v_table, 1, NULL, NULL));
}
CASE(launch_empty_grid)
{
  T(WRONG_SHAPE, spin((dim3){0, 1, 1}, (dim3){1, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 0, 1}, (dim3){1, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 0}, (dim3){1, 1, 1}, 0));
}
CASE(launch_empty_block)
{
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){0, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){1, 0, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){1, 1, 0}, 0));
}
CASE(launch_large_block)
{
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){1025, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){1, 1, 65}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 1}, (dim3){64, 64, 1}, 0));
}
CASE(launch_large_grid)
{
  T(WRONG_SHAPE, spin((dim3){1, 65536, 1}, (dim3){1, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){1, 1, 65536}, (dim3){1, 1, 1}, 0));
  T(WRONG_SHAPE, spin((dim3){0x80000000u, 1, 1}, (dim3){1, 1, 1}, 0));
}
CASE(launch_much_shared)
{
  OK(spin((dim3){1, 1, 1}, (dim3){1, 1, 1}, 48 * 1024));
  BAD(spin((dim3){1, 1, 1}, (dim3){1, 1, 1}, 48 * 1024 + 1));
  BAD(cudaGetLastError());
}
CASE(launch_shared_after_asking)
{
  OK(cudaFuncSetAttribute(&k_spin, 8, 64 * 1024));
  OK(spin((dim3){1, 1, 1}, (dim3){1, 1, 1}, 64 * 1024));
  BAD(spin((dim3){1, 1, 1}, (dim3){1, 1, 1}, 64 * 1024 + 1));
  OK(cudaFuncSetAttribute(&k_spin, 8, 0));
}
CASE(launch_and_copy)
{
  int *p, host[64];

  OK(cudaMalloc((void **)&p, sizeof host));
  OK(fill(p, 11, (dim3){2, 1, 1}, (dim3){32, 1, 1}, NULL));
  OK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  V(11, host[63]);
  OK(cudaFree(p));
}
CASE(launch_error_does_not_stick)
{
  int *p, host = 0;

  OK(cudaMalloc((void **)&p, 4));
  T(WRONG_SHAPE, fill(p, 1, (dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL));
  OK(cudaDeviceSynchronize());
  OK(fill(p, 2, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL));
  OK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  V(2, host);
  T(WRONG_SHAPE, cudaGetLastError());
  OK(cudaFree(p));
}
CASE(launch_configuration_stack)
{
  dim3 g, b;
  size_t n = 0;
  cudaStream_t s = NULL;

  V(0, __cudaPushCallConfiguration((dim3){2, 3, 4}, (dim3){5, 6, 7}, 8, NULL));
  OK(__cudaPopCallConfiguration(&g, &b, &n, (void *)&s));
  V(2, g.x);
  V(7, b.z);
  V(8, n);
}
CASE(launch_ex)
{
  cudaLaunchConfig_t c;

  memset(&c, 0, sizeof c);
  c.gridDim = c.blockDim = (dim3){1, 1, 1};
  OK(cudaLaunchKernelExC(&c, &k_spin, NULL));
  c.gridDim.x = 0;
  T(WRONG_SHAPE, cudaLaunchKernelExC(&c, &k_spin, NULL));
  OK(cudaDeviceSynchronize());
}
CASE(launch_ex_attributes)
{
  cudaLaunchConfig_t c;
  cudaLaunchAttribute a[1];

  memset(&c, 0, sizeof c);
  memset(a, 0, sizeof a);
  c.gridDim = c.blockDim = (dim3){1, 1, 1};
  c.attrs = a;
  c.numAttrs = 1;
  OK(cudaLaunchKernelExC(&c, &k_spin, NULL));
  a[0].id = 2;
  a[0].value.cooperative = 1;
  OK(cudaLaunchKernelExC(&c, &k_spin, NULL));
  a[0].id = 99;
  T(ANY, cudaLaunchKernelExC(&c, &k_spin, NULL));
  OK(cudaDeviceSynchronize());
}
CASE(launch_cooperative)
{
  OK(cudaLaunchCooperativeKernel(&k_spin, (dim3){2, 1, 1}, (dim3){32, 1, 1},
                                 NULL, 0, NULL));
  T(cudaErrorCooperativeLaunchTooLarge,
    cudaLaunchCooperativeKernel(&k_spin, (dim3){1000000, 1, 1},
                                (dim3){1024, 1, 1}, NULL, 0, NULL));
  OK(cudaDeviceSynchronize());
}
CASE(function_attributes)
{
  static cudaFuncAttributes_12 a;

  OK(cudaFuncGetAttributes(&a, &k_fill));
  V(1024, a.maxThreadsPerBlock);
  V(49152, a.maxDynamicSharedSizeBytes);
  V(0, a.sharedSizeBytes);
  V(0, a.localSizeBytes);
  V(1, a.ptxVersion >= 50);
}
CASE(function_attributes_bad)
{
  static cudaFuncAttributes_12 a;
  int x = 0;

  BAD(cudaFuncGetAttributes(NULL, &k_fill));
  T(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(&a, &x));
  T(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&a, NULL));
}
CASE(function_set_attribute)
{
  OK(cudaFuncSetAttribute(&k_fill, 8, 1024));
  OK(cudaFuncSetAttribute(&k_fill, 9, 50));
  OK(cudaFuncSetAttribute(&k_fill, 9, -1));
  BAD(cudaFuncSetAttribute(&k_fill, 9, 101));
  BAD(cudaFuncSetAttribute(&k_fill, 9, -2));
  BAD(cudaFuncSetAttribute(&k_fill, 8, 1 << 20));
  BAD(cudaFuncSetAttribute(&k_fill, 8, -1));
  BAD(cudaFuncSetAttribute(&k_fill, 77, 0));
}
CASE(function_set_attribute_unknown)
{
  int x = 0;

  T(cudaErrorInvalidResourceHandle, cudaFuncSetAttribute(&x, 8, 0));
}
CASE(function_cache_config)
{
  for (int i = 0; i < 4; i++)
    OK(cudaFuncSetCacheConfig(&k_fill, i));
  BAD(cudaFuncSetCacheConfig(&k_fill, 7));
}
CASE(function_shared_config)
{
  OK(cudaFuncSetSharedMemConfig(&k_fill, 0));
  T(ANY, cudaFuncSetSharedMemConfig(&k_fill, 7));
}
CASE(function_name)
{
  const char *name = NULL;

  OK(cudaFuncGetName(&name, &k_fill));
  V(0, name == NULL ? -1 : strcmp(name, "k_fill"));
  BAD(cudaFuncGetName(NULL, &k_fill));
}
CASE(function_parameters)
{
  size_t at = 9, n = 9;

  OK(cudaFuncGetParamInfo(&k_fill, 0, &at, &n));
  V(0, at);
  V(8, n);
  OK(cudaFuncGetParamInfo(&k_fill, 1, &at, &n));
  V(8, at);
  V(4, n);
  BAD(cudaFuncGetParamInfo(&k_fill, 2, &at, &n));
}
CASE(function_by_symbol)
{
  cudaFunction_t f = NULL;
  cudaKernel_t k = NULL;
  int x = 0;

  OK(cudaGetFuncBySymbol(&f, &k_fill));
  V(1, f != NULL);
  OK(cudaGetKernel(&k, &k_fill));
  V(1, k != NULL);
  T(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&f, &x));
  T(ANY, cudaGetKernel(&k, &x));
}
CASE(occupancy)
{
  int n = 0;

  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, 1024, 0));
  V(2, n);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, 128, 0));
  V(16, n);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, 32, 0));
  V(32, n);
}
CASE(occupancy_large_block)
{
  int n = 9;

  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, 1025, 0));
  V(0, n);
}
CASE(occupancy_bad)
{
  int n = 9, x = 0;

  BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, 0, 0));
  BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &k_spin, -1, 0));
  BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, &k_spin, 32, 0));
  T(cudaErrorInvalidResourceHandle,
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &x, 32, 0));
  BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, &k_spin, 32, 0,
                                                             9));
}
CASE(occupancy_shared)
{
  size_t n = 0;

  OK(cudaOccupancyAvailableDynamicSMemPerBlock(&n, &k_spin, 2, 128));
  V(0, n); /* an earlier case set the limit of the kernel to 0 */
  OK(cudaOccupancyAvailableDynamicSMemPerBlock(&n, &k_spin, 8, 128));
  V(0, n);
  OK(cudaFuncSetAttribute(&k_spin, 8, 64 * 1024));
  OK(cudaOccupancyAvailableDynamicSMemPerBlock(&n, &k_spin, 2, 128));
  V(64 * 1024, n);
}
CASE(occupancy_clusters)
{
  cudaLaunchConfig_t c;
  cudaLaunchAttribute a[1];
  int n = -1;

  memset(&c, 0, sizeof c);
  memset(a, 0, sizeof a);
  c.gridDim = (dim3){8, 1, 1};
  c.blockDim = (dim3){128, 1, 1};
  OK(cudaOccupancyMaxPotentialClusterSize(&n, &k_spin, &c));
  V(8, n);
  a[0].id = 4;
  a[0].value.clusterDim.x = 2;
  a[0].value.clusterDim.y = a[0].value.clusterDim.z = 1;
  c.attrs = a;
  c.numAttrs = 1;
  OK(cudaOccupancyMaxActiveClusters(&n, &k_spin, &c));
  V(1, n > 0);
}

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .global .align 4 .b32 g[3] = {1, 2, 3};\n"
                           ".visible .entry one()\n{\n ret;\n}\n"
                           ".visible .entry two()\n{\n ret;\n}\n";

static cudaLibrary_t library(void)
{
  cudaLibrary_t l = NULL;

  OK(cudaLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
  return l;
}

CASE(library_life)
{
  cudaLibrary_t l = library();
  unsigned n = 0;

  OK(cudaLibraryGetKernelCount(&n, l));
  V(2, n);
  OK(cudaLibraryUnload(l));
}
CASE(library_kernel)
{
  cudaLibrary_t l = library();
  cudaKernel_t k = NULL;

  OK(cudaLibraryGetKernel(&k, l, "one"));
  OK(launch((const void *)k, 1, NULL, NULL));
  T(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&k, l, "three"));
  BAD(cudaLibraryGetKernel(NULL, l, "one"));
  BAD(cudaLibraryGetKernel(&k, l, NULL));
  OK(cudaDeviceSynchronize());
  OK(cudaLibraryUnload(l));
}
CASE(library_global)
{
  cudaLibrary_t l = library();
  void *p = NULL;
  size_t n = 0;

  OK(cudaLibraryGetGlobal(&p, &n, l, "g"));
  V(12, n);
  T(cudaErrorSymbolNotFound, cudaLibraryGetGlobal(&p, &n, l, "h"));
  T(ANY, cudaLibraryGetManaged(&p, &n, l, "g"));
  OK(cudaLibraryUnload(l));
}
CASE(library_enumerate)
{
  cudaLibrary_t l = library();
  cudaKernel_t k[4] = {NULL};

  OK(cudaLibraryEnumerateKernels(k, 2, l));
  V(1, k[0] != NULL && k[1] != NULL);
  OK(cudaLibraryEnumerateKernels(k, 1, l));
  OK(cudaLibraryUnload(l));
}
/* PTX with errors is not among the cases: NVIDIA's library compiles it at the first
 * use, Kiln when it is loaded. */
CASE(library_null)
{
  cudaLibrary_t l;

  BAD(cudaLibraryLoadData(&l, NULL, NULL, NULL, 0, NULL, NULL, 0));
  BAD(cudaLibraryLoadData(NULL, text, NULL, NULL, 0, NULL, NULL, 0));
}
CASE(library_no_file)
{
  cudaLibrary_t l;

  T(cudaErrorFileNotFound, cudaLibraryLoadFromFile(&l, "/nowhere/no.ptx", NULL,
                                                   NULL, 0, NULL, NULL, 0));
}
CASE(library_kernel_attribute)
{
  cudaLibrary_t l = library();
  cudaKernel_t k = NULL;

  OK(cudaLibraryGetKernel(&k, l, "one"));
  OK(cudaKernelSetAttributeForDevice(k, 8, 4096, 0));
  T(cudaErrorInvalidDevice, cudaKernelSetAttributeForDevice(k, 8, 4096, 99));
  OK(cudaLibraryUnload(l));
}
