// Locks, clocks, barriers over the whole grid, and calls of printf.
extern "C" int printf(const char *, ...);

extern "C" __global__ void spin_lock(const int *, int *out, int n)
{
  for (int done = 0; !done;) {
    if (atomicCAS(&out[0], 0, 1) == 0) {
      __threadfence();
      *(volatile int *)&out[1] += n;
      __threadfence();
      atomicExch(&out[0], 0);
      done = 1;
    }
  }
}

extern "C" __global__ void clocks(const int *, int *out, int)
{
  const long long from = clock64();
  const unsigned low = clock();
  long long now;

  do
    now = clock64();
  while (now - from < 100);
  out[threadIdx.x] = now > from && clock() != low;
}

// This barrier works only if all blocks are resident.
extern "C" __global__ void whole_grid(const int *in, int *out, int)
{
  __shared__ int s;

  if (threadIdx.x == 0)
    s = 0;
  __syncthreads();
  atomicAdd(&s, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[1 + blockIdx.x] = s;
    __threadfence();
    atomicAdd((unsigned *)&out[0], 1u);
    while (*(volatile int *)&out[0] < (int)gridDim.x)
      ;
    __threadfence();
    s = ((volatile int *)out)[1 + (blockIdx.x + 1) % gridDim.x];
  }
  __syncthreads();
  out[64 + blockIdx.x * blockDim.x + threadIdx.x] = s;
}

extern "C" __global__ void says(const int *in, int *out, int n)
{
  if (n < 0)
    printf("%d %s %5.2f %c %llx\n", in[0], "text", 1.5, 'c', 1ull << 40);
  out[threadIdx.x] = n;
}
