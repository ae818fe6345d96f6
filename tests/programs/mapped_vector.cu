// A vector that grows in place: memory is mapped to reserved addresses piece by piece.
// nvcc: -lcuda
#include "program.cuh"

#include <cuda.h>

#define DRIVER(call) CHECK((call) == CUDA_SUCCESS)

__global__ void add(int *p, size_t n, int v)
{
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x)
    p[i] += v;
}

struct growing {
  CUdeviceptr base = 0;
  size_t room = 0, used = 0, grain = 0;
  CUmemAllocationProp prop = {};

  explicit growing(size_t bytes)
  {
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    DRIVER(cuMemGetAllocationGranularity(&grain, &prop,
                                         CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    room = (bytes + grain - 1) / grain * grain;
    DRIVER(cuMemAddressReserve(&base, room, 0, 0, 0));
  }

  void grow()
  {
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle memory;

    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemCreate(&memory, grain, &prop, 0));
    DRIVER(cuMemMap(base + used, grain, 0, memory, 0));
    DRIVER(cuMemRelease(memory));
    DRIVER(cuMemSetAccess(base + used, grain, &access, 1));
    CALL(cudaMemset((void *)(base + used), 0, grain));
    used += grain;
  }

  ~growing()
  {
    DRIVER(cuMemUnmap(base, room));
    DRIVER(cuMemAddressFree(base, room));
  }
};

int main()
{
  CALL(cudaFree(nullptr)); // starts the runtime
  {
    growing v(5 << 20);
    int edge[2];

    while (v.used < v.room) {
      v.grow();
      add<<<16, 256>>>((int *)v.base, v.used / 4, 1);
      CALL(cudaGetLastError());
    }
    CALL(cudaDeviceSynchronize());
    CHECK(v.room == 3 * v.grain);
    CALL(cudaMemcpy(edge, (char *)v.base + v.grain - 4, 8,
                    cudaMemcpyDeviceToHost));
    CHECK(edge[0] == 3 && edge[1] == 2);
  }
  return verdict();
}
