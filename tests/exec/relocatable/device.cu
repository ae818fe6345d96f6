// device.cu -- device functions, a variable and a kernel that main.cu uses.

__device__ int offset = 7;

__device__ int twice(int x)
{
  return 2 * x;
}

__device__ int add_offset(int x)
{
  return x + offset;
}

__global__ void add_one(int *p)
{
  atomicAdd(p, 1);
}
