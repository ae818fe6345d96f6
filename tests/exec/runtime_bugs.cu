/* runtime_bugs.cu -- ten planted bugs in kernels of a program of the runtime API.
 * The argument names the bug. A comment BUG(name: kind) marks the line at which
 * `kiln exec --check all` has to report a finding of this kind, and nothing else.
 * The job `none` runs correct kernels only. */
#include <cstdio>
#include <cstring>

enum { N = 1000, THREADS = 128 };

struct pair {
  float first, second;
};

__constant__ float scale[4];

__global__ void correct(const float *x, float *y, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    y[i] = scale[i & 3] * x[i];
}

__global__ void bounds(const float *x, float *y, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i <= n)
    y[i] = x[0]; // BUG(bounds: out of bounds)
}

__global__ void misaligned(const float *x, float *y)
{
  const auto *p = reinterpret_cast<const double *>(x + 1);

  y[threadIdx.x] = (float)p[threadIdx.x]; // BUG(misaligned: misaligned)
}

__global__ void freed(const float *x, float *y)
{
  y[threadIdx.x] = x[threadIdx.x]; // BUG(freed: use after free)
}

__global__ void shared_race(float *y)
{
  __shared__ float part[THREADS];

  part[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = part[THREADS - 1 - threadIdx.x]; // BUG(shared: race)
}

__global__ void grid_race(float *y)
{
  if (threadIdx.x == 0)
    y[0] += 1; // BUG(grid: race)
}

template <typename T> __global__ void unwritten(const T *x, T *y)
{
  y[threadIdx.x] = x[threadIdx.x] + T(1); // BUG(unwritten: uninitialised read)
}

__global__ void unwritten_shared(float *y)
{
  __shared__ float part[THREADS + 1];

  part[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = part[threadIdx.x + 1]; // BUG(tail: uninitialised read)
}

__global__ void divergent(float *y, int n)
{
  if (threadIdx.x < n)
    __syncthreads(); // BUG(divergent: divergent barrier)
  y[threadIdx.x] = 1;
}

__global__ void masked(float *y)
{
  float v = threadIdx.x;

  if (threadIdx.x % 32 < 16)
    v = __shfl_sync(0xffff0000u, v, 0); // BUG(mask: wrong mask)
  y[threadIdx.x] = v;
}

__device__ int flag;

__global__ void waits(float *y)
{
  while (atomicAdd(&flag, 0) == 0) { // BUG(waits: deadlock)
  }
  y[threadIdx.x] = 1;
}

static float *x, *y;

static void run(const char *job)
{
  const int blocks = (N + THREADS - 1) / THREADS;
  const float factors[4] = {1, 2, 3, 4};

  cudaMemcpyToSymbol(scale, factors, sizeof factors);
  correct<<<blocks, THREADS>>>(x, y, N);
  if (strcmp(job, "bounds") == 0)
    bounds<<<blocks, THREADS>>>(x, y, N);
  if (strcmp(job, "misaligned") == 0)
    misaligned<<<1, THREADS>>>(x, y);
  if (strcmp(job, "freed") == 0) {
    cudaFree(x);
    freed<<<1, THREADS>>>(x, y);
  }
  if (strcmp(job, "shared") == 0)
    shared_race<<<1, THREADS>>>(y);
  if (strcmp(job, "grid") == 0)
    grid_race<<<4, THREADS>>>(y);
  if (strcmp(job, "unwritten") == 0) {
    float *fresh;

    cudaMalloc(&fresh, sizeof(float) * THREADS);
    unwritten<<<1, THREADS>>>(fresh, y);
    cudaFree(fresh);
  }
  if (strcmp(job, "tail") == 0)
    unwritten_shared<<<1, THREADS>>>(y);
  if (strcmp(job, "divergent") == 0)
    divergent<<<1, THREADS>>>(y, 40);
  if (strcmp(job, "mask") == 0)
    masked<<<1, THREADS>>>(y);
  if (strcmp(job, "waits") == 0)
    waits<<<1, 32>>>(y);
}

int main(int argc, char **argv)
{
  float host[N];
  cudaError_t rc;

  for (int i = 0; i < N; i++)
    host[i] = (float)i;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  run(argc > 1 ? argv[1] : "none");
  rc = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(rc));
  return 0;
}
