/* cases_device.c -- cases of devices, attributes, properties, limits and versions. */
#include "cases.h"

CASE(device_count)
{
  int n = 0;

  OK(cudaGetDeviceCount(&n));
  V(1, n >= 1);
  BAD(cudaGetDeviceCount(NULL));
}
CASE(device_current)
{
  int d = -1;

  OK(cudaGetDevice(&d));
  V(0, d);
  BAD(cudaGetDevice(NULL));
}
CASE(set_device)
{
  OK(cudaSetDevice(0));
  T(cudaErrorInvalidDevice, cudaSetDevice(-1));
  T(cudaErrorInvalidDevice, cudaSetDevice(1000));
}
CASE(set_device_keeps_device_after_failure)
{
  int d = -1;

  T(cudaErrorInvalidDevice, cudaSetDevice(1000));
  OK(cudaGetDevice(&d));
  V(0, d);
}
CASE(init_device)
{
  OK(cudaInitDevice(0, 0, 0));
  T(cudaErrorInvalidDevice, cudaInitDevice(1000, 0, 0));
  T(ANY, cudaInitDevice(0, 0x1000, 1));
}
CASE(versions)
{
  int v = 0;

  OK(cudaRuntimeGetVersion(&v));
  V(KILN__RT_MAJOR, v / 1000);
  OK(cudaDriverGetVersion(&v));
  V(1, v >= 13000);
  BAD(cudaRuntimeGetVersion(NULL));
  BAD(cudaDriverGetVersion(NULL));
}
CASE(attribute_fixed)
{
  int v = 0;

  OK(cudaDeviceGetAttribute(&v, 1, 0));
  V(1024, v);
  OK(cudaDeviceGetAttribute(&v, 10, 0));
  V(32, v);
  OK(cudaDeviceGetAttribute(&v, 41, 0));
  V(1, v);
}
CASE(attribute_unknown)
{
  int v = 0;

  BAD(cudaDeviceGetAttribute(&v, 0, 0));
  BAD(cudaDeviceGetAttribute(&v, 9999, 0));
  BAD(cudaDeviceGetAttribute(&v, -1, 0));
}
CASE(attribute_null_out)
{
  BAD(cudaDeviceGetAttribute(NULL, 1, 0));
}
CASE(attribute_bad_device)
{
  int v = 0;

  T(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&v, 1, 77));
  T(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&v, 1, -1));
}
CASE(attributes_that_exist)
{
  for (int i = 1; i < 160; i++) {
    int v;
    const cudaError_t rc = cudaDeviceGetAttribute(&v, i, 0);

    printf("  attribute %d: %s\n", i, cudaGetErrorName(rc));
  }
}
CASE(properties_fixed)
{
  static device_prop p;

  OK(cudaGetDeviceProperties(&p, 0));
  V(32, p.warpSize);
  V(1024, p.maxThreadsPerBlock);
  V(1024, p.maxThreadsDim[0]);
  V(64, p.maxThreadsDim[2]);
  V(2147483647, p.maxGridSize[0]);
  V(65535, p.maxGridSize[2]);
  V(65536, p.totalConstMem);
  V(1, p.unifiedAddressing);
  V(49152, p.sharedMemPerBlock);
}
CASE(properties_bad_device)
{
  static device_prop p;

  T(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 99));
  T(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, -1));
}
CASE(properties_null_out)
{
  BAD(cudaGetDeviceProperties(NULL, 0));
}
CASE(choose_device)
{
  static device_prop p;
  int d = -1;

  OK(cudaChooseDevice(&d, &p));
  V(0, d);
  BAD(cudaChooseDevice(NULL, &p));
  BAD(cudaChooseDevice(&d, NULL));
}
CASE(bus_id)
{
  char id[32] = "";
  int d = -1;

  OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  V(1, strlen(id) >= 12);
  OK(cudaDeviceGetByPCIBusId(&d, id));
  V(0, d);
}
CASE(bus_id_bad)
{
  char id[32] = "";
  int d;

  T(ANY, cudaDeviceGetPCIBusId(id, 0, 0));
  BAD(cudaDeviceGetPCIBusId(NULL, 16, 0));
  T(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(id, sizeof id, 99));
  BAD(cudaDeviceGetByPCIBusId(&d, "no bus"));
  T(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&d, "ffff:ff:1f.0"));
  BAD(cudaDeviceGetByPCIBusId(NULL, "0000:00:00.0"));
  BAD(cudaDeviceGetByPCIBusId(&d, NULL));
}
CASE(device_flags)
{
  unsigned f = 99;

  OK(cudaGetDeviceFlags(&f));
  OK(cudaSetDeviceFlags(4));
  OK(cudaGetDeviceFlags(&f));
  V(4, f & 7);
  OK(cudaSetDeviceFlags(0));
}
CASE(device_flags_bad)
{
  BAD(cudaSetDeviceFlags(3));
  BAD(cudaSetDeviceFlags(0x4000));
  BAD(cudaGetDeviceFlags(NULL));
}
CASE(limit_values)
{
  size_t v = 0;

  OK(cudaDeviceGetLimit(&v, 0));
  V(1024, v);
  OK(cudaDeviceGetLimit(&v, 1));
  V(1, v >= 1048576);
  OK(cudaDeviceGetLimit(&v, 2));
  V(8388608, v);
}
CASE(limit_set)
{
  size_t v = 0;

  OK(cudaDeviceSetLimit(0, 4096));
  OK(cudaDeviceGetLimit(&v, 0));
  V(4096, v);
  OK(cudaDeviceSetLimit(0, 1024));
}
CASE(limit_unknown)
{
  size_t v;

  T(ANY, cudaDeviceGetLimit(&v, 99));
  T(ANY, cudaDeviceSetLimit(99, 1));
  BAD(cudaDeviceGetLimit(NULL, 0));
}
CASE(limit_depth)
{
  size_t v;

  T(ANY, cudaDeviceGetLimit(&v, 3));
  T(ANY, cudaDeviceGetLimit(&v, 4));
  T(ANY, cudaDeviceGetLimit(&v, 5));
  T(ANY, cudaDeviceGetLimit(&v, 6));
}
CASE(cache_config)
{
  for (int i = 0; i < 4; i++) {
    cudaFuncCache c = -1;

    OK(cudaDeviceSetCacheConfig(i));
    OK(cudaDeviceGetCacheConfig(&c));
  }
  OK(cudaDeviceSetCacheConfig(0));
  BAD(cudaDeviceSetCacheConfig(9));
}
CASE(shared_config)
{
  cudaSharedMemConfig c = -1;

  OK(cudaDeviceGetSharedMemConfig(&c));
  OK(cudaDeviceSetSharedMemConfig(0));
  BAD(cudaDeviceSetSharedMemConfig(9));
}
CASE(priority_range)
{
  int least = 9, greatest = 9;

  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  V(0, least);
  V(1, greatest <= 0);
  OK(cudaDeviceGetStreamPriorityRange(NULL, NULL));
}
CASE(peer_self)
{
  int can = 9;

  OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  V(0, can);
  T(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 99));
  T(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 99, 0));
  T(ANY, cudaDeviceEnablePeerAccess(0, 0));
  T(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(99, 0));
  T(ANY, cudaDeviceDisablePeerAccess(0));
}
CASE(peer_attribute)
{
  int v;

  T(ANY, cudaDeviceGetP2PAttribute(&v, 1, 0, 0));
  T(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&v, 1, 0, 99));
  BAD(cudaDeviceGetP2PAttribute(NULL, 1, 0, 0));
}
CASE(valid_devices)
{
  int list[1] = {0}, bad[1] = {99};

  OK(cudaSetValidDevices(list, 1));
  T(cudaErrorInvalidDevice, cudaSetValidDevices(bad, 1));
  T(ANY, cudaSetValidDevices(NULL, 0));
}
CASE(synchronise)
{
  OK(cudaDeviceSynchronize());
}
CASE(persisting_cache)
{
  T(ANY, cudaCtxResetPersistingL2Cache());
}
CASE(linear_texture_width)
{
  size_t w = 0;
  cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindFloat};

  OK(cudaDeviceGetTexture1DLinearMaxWidth(&w, &d, 0));
  V(1, w >= 1 << 27);
  BAD(cudaDeviceGetTexture1DLinearMaxWidth(NULL, &d, 0));
}
CASE(profiler)
{
  OK(cudaProfilerStart());
  OK(cudaProfilerStop());
}
CASE(entry_point)
{
  void *f = NULL;
  int status = -1;

  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &f, 12000, 0, &status));
  V(0, status);
  V(1, f != NULL);
  T(ANY, cudaGetDriverEntryPointByVersion("cuNothing", &f, 12000, 0, &status));
  V(1, status);
  V(1, f == NULL);
}
CASE(graph_memory)
{
  unsigned long long v = 99;

  OK(cudaDeviceGetGraphMemAttribute(0, 0, &v));
  OK(cudaDeviceGraphMemTrim(0));
  T(cudaErrorInvalidDevice, cudaDeviceGraphMemTrim(99));
  BAD(cudaDeviceGetGraphMemAttribute(0, 99, &v));
}
