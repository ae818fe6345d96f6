/* peer_access.cu -- two devices copy to each other, and one reads the other's memory.
// exec: --device cpu:9.0,devices=2
 */
#include "program.cuh"

__global__ void add(int *y, const int *x, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] += x[i];
}

int main()
{
  const int n = 1000;
  int count = 0, can = 0, *a, *b, device = -1;
  CALL(cudaGetDeviceCount(&count));
  if (count < 2) {
    std::puts("one device only");
    return verdict();
  }
  CALL(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can);
  std::vector<int> h(n);
  for (int i = 0; i < n; i++)
    h[i] = i;
  CALL(cudaSetDevice(1));
  b = to_device(h);
  CALL(cudaSetDevice(0));
  CALL(cudaMalloc(&a, n * sizeof(int)));
  CALL(cudaMemcpyPeer(a, 0, b, 1, n * sizeof(int)));
  CHECK(to_host(a, n) == h);
  CALL(cudaDeviceEnablePeerAccess(1, 0));
  FAILS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();
  add<<<4, 256>>>(a, b, n);
  CALL(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    h[i] *= 2;
  CHECK(to_host(a, n) == h);
  cudaPointerAttributes p;
  CALL(cudaPointerGetAttributes(&p, b));
  CHECK(p.type == cudaMemoryTypeDevice && p.device == 1);
  CALL(cudaDeviceDisablePeerAccess(1));
  CALL(cudaGetDevice(&device));
  CHECK(device == 0);
  FAILS(cudaSetDevice(7), cudaErrorInvalidDevice);
  return verdict();
}
