// main.cu -- a program of two files with relocatable device code (-rdc=true):
// functions, variables and kernels of the other file, launches from kernels, and
// a grid-wide barrier. It prints "ok" if all results are right.
#include <cooperative_groups.h>
#include <cstdio>

extern __device__ int offset;
extern __device__ int twice(int x);
extern __device__ int add_offset(int x);
extern __global__ void add_one(int *p);

typedef int function(int);
__device__ function *const table[] = {twice, add_offset};

__global__ void call(int *out)
{
  out[threadIdx.x] = table[threadIdx.x % 2](static_cast<int>(threadIdx.x));
}

// Each thread launches a kernel of the other file; the last launch sees all.
__global__ void copy_count(const int *count, int *out)
{
  *out = *count;
}

__global__ void parent(int *count, int *out)
{
  if (threadIdx.x == 0)
    copy_count<<<1, 1, 0, cudaStreamTailLaunch>>>(count, out);
  add_one<<<2, 32>>>(count);
}

__global__ void rotate(int *p, int *out)
{
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const unsigned i = static_cast<unsigned>(grid.thread_rank());
  const unsigned n = static_cast<unsigned>(grid.size());

  p[i] = static_cast<int>(i);
  grid.sync();
  out[i] = p[(i + 1) % n];
}

static int failures;

static void check(bool right, const char *what)
{
  if (right)
    return;
  failures++;
  printf("%s: wrong (%s)\n", what, cudaGetErrorString(cudaGetLastError()));
}

int main()
{
  int *p, *out, *variable, got[128], three = 3;
  unsigned wrong = 0;

  cudaMalloc(&p, sizeof got);
  cudaMalloc(&out, sizeof got);
  cudaMemset(p, 0, sizeof got);
  call<<<1, 64>>>(out);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++)
    wrong += got[i] != (i % 2 == 0 ? 2 * i : i + 7);
  check(wrong == 0, "functions of another file");

  check(cudaGetSymbolAddress(reinterpret_cast<void **>(&variable), offset) ==
            cudaSuccess,
        "address of a variable of another file");
  cudaMemcpy(variable, &three, sizeof three, cudaMemcpyHostToDevice);
  call<<<1, 64>>>(out);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  check(got[5] == 5 + 3, "variable of another file");

  parent<<<1, 10>>>(p, out);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  check(got[0] == 10 * 64, "launches from kernels");

  void *args[] = {&p, &out};
  cudaLaunchCooperativeKernel(reinterpret_cast<void *>(rotate), dim3(4),
                              dim3(32), args, 0, 0);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 128; i++)
    wrong += got[i] != (i + 1) % 128;
  check(wrong == 0, "grid-wide barrier");
  if (failures == 0)
    printf("ok\n");
  return failures;
}
