/* curand_device.cu -- cuRAND's generators in kernels: XORWOW, Philox, MRG32k3a. */
#include "program.cuh"

#include <curand_kernel.h>

template <class State> __global__ void start(State *s, unsigned long long seed)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &s[i]);
}

template <class State>
__global__ void draw(State *s, float *uniform, float *normal, int per_thread)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  State mine = s[i];
  float u = 0, z = 0;
  for (int k = 0; k < per_thread; k++) {
    u += curand_uniform(&mine);
    z += curand_normal(&mine);
  }
  uniform[i] = u / per_thread;
  normal[i] = z / per_thread;
  s[i] = mine;
}

template <class State> static void moments()
{
  const int n = 256;
  State *s;
  float *u, *z;
  CALL(cudaMalloc(&s, n * sizeof(State)));
  CALL(cudaMalloc(&u, n * sizeof(float)));
  CALL(cudaMalloc(&z, n * sizeof(float)));
  start<<<2, n / 2>>>(s, 1234ull);
  draw<<<2, n / 2>>>(s, u, z, 40);
  double mu = 0, mz = 0;
  for (float v : to_host(u, n))
    mu += v / n;
  for (float v : to_host(z, n))
    mz += v / n;
  CHECK(std::fabs(mu - 0.5) < 0.02 && std::fabs(mz) < 0.05);
  CALL(cudaFree(s));
}

int main()
{
  moments<curandStateXORWOW_t>();
  moments<curandStatePhilox4_32_10_t>();
  moments<curandStateMRG32k3a_t>();
  return verdict();
}
