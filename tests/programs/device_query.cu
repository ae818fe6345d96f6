/* device_query.cu -- properties and attributes of all devices agree. */
#include "program.cuh"

static int attribute(cudaDeviceAttr a, int device)
{
  int v = -1;
  CALL(cudaDeviceGetAttribute(&v, a, device));
  return v;
}

int main()
{
  int n = 0, driver = 0, runtime = 0;
  CALL(cudaGetDeviceCount(&n));
  CALL(cudaDriverGetVersion(&driver));
  CALL(cudaRuntimeGetVersion(&runtime));
  CHECK(n >= 1 && driver >= 12000 && runtime == CUDART_VERSION);
  for (int i = 0; i < n; i++) {
    cudaDeviceProp p;
    char id[32];
    int back = -1;
    size_t room = 0, total = 0;
    CALL(cudaSetDevice(i));
    CALL(cudaGetDeviceProperties(&p, i));
    std::printf("%d: %s, %d.%d, %d SMs, %zu MiB\n", i, p.name, p.major, p.minor,
                p.multiProcessorCount, p.totalGlobalMem >> 20);
    CHECK(p.warpSize == 32 && p.maxThreadsPerBlock == 1024);
    CHECK(p.major == attribute(cudaDevAttrComputeCapabilityMajor, i));
    CHECK(p.minor == attribute(cudaDevAttrComputeCapabilityMinor, i));
    CHECK(p.multiProcessorCount ==
          attribute(cudaDevAttrMultiProcessorCount, i));
    CHECK((int)p.sharedMemPerBlock ==
          attribute(cudaDevAttrMaxSharedMemoryPerBlock, i));
    CHECK((int)p.sharedMemPerBlockOptin ==
          attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, i));
    CHECK(p.regsPerBlock == attribute(cudaDevAttrMaxRegistersPerBlock, i));
    CHECK(p.maxGridSize[1] == attribute(cudaDevAttrMaxGridDimY, i));
    CHECK(p.maxTexture2D[0] == attribute(cudaDevAttrMaxTexture2DWidth, i));
    CHECK(p.clusterLaunch == attribute(cudaDevAttrClusterLaunch, i));
    CHECK(p.memoryPoolsSupported ==
          attribute(cudaDevAttrMemoryPoolsSupported, i));
    CHECK(attribute(cudaDevAttrClockRate, i) > 0);
    CALL(cudaDeviceGetPCIBusId(id, sizeof id, i));
    CALL(cudaDeviceGetByPCIBusId(&back, id));
    CHECK(back == i);
    CALL(cudaMemGetInfo(&room, &total));
    CHECK(room > 0 && room <= total && total == p.totalGlobalMem);
    int chosen = -1;
    CALL(cudaChooseDevice(&chosen, &p));
    CHECK(chosen >= 0 && chosen < n);
  }
  return verdict();
}
