// Kernels with one element per thread, with adjacent elements, and with dynamic shared
// memory.
__constant__ float weight[3] = {0.25f, 0.5f, 0.25f};

extern "C" __global__ void saxpy(const float *in, float *out, int n)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    out[i] = 2.5f * in[i] + in[n - 1 - i];
}

extern "C" __global__ void convolve(const float *in, float *out, int n)
{
  __shared__ float tile[128 + 2];
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;

  tile[t + 1] = i < n ? in[i] : 0;
  if (t == 0)
    tile[0] = i > 0 ? in[i - 1] : 0;
  if (t == 127)
    tile[129] = i + 1 < n ? in[i + 1] : 0;
  __syncthreads();
  if (i < n) {
    float sum = 0;

    for (int k = 0; k < 3; k++)
      sum += weight[k] * tile[t + k];
    out[i] = sum;
  }
}

extern __shared__ int dynamic[];

extern "C" __global__ void reverse(const int *in, int *out, int n)
{
  int *half = dynamic + blockDim.x;
  const int t = threadIdx.x, base = blockIdx.x * blockDim.x;

  dynamic[t] = in[base + t];
  half[t] = in[base + t] / 2;
  __syncthreads();
  out[base + t] = dynamic[blockDim.x - 1 - t] - half[t];
}
