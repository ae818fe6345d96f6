// Four algorithms that compute one sum per block of 256 threads.
extern "C" __global__ void reduce_interleaved(const int *in, int *out, int)
{
  __shared__ int s[256];
  const int t = threadIdx.x;

  s[t] = in[blockIdx.x * 256 + t];
  for (int d = 1; d < 256; d *= 2) {
    __syncthreads();
    if (t % (2 * d) == 0)
      s[t] += s[t + d];
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}

extern "C" __global__ void reduce_tree(const int *in, int *out, int)
{
  __shared__ int s[256];
  const int t = threadIdx.x;

  s[t] = in[blockIdx.x * 256 + t];
  for (int d = 128; d > 0; d /= 2) {
    __syncthreads();
    if (t < d)
      s[t] += s[t + d];
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}

extern "C" __global__ void reduce_shuffle(const int *in, int *out, int)
{
  __shared__ int part[8];
  const int t = threadIdx.x;
  int v = in[blockIdx.x * 256 + t];

  for (int d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  if (t % 32 == 0)
    part[t / 32] = v;
  __syncthreads();
  if (t < 8) {
    v = part[t];
    for (int d = 4; d > 0; d /= 2)
      v += __shfl_down_sync(0xff, v, d, 8);
    if (t == 0)
      out[blockIdx.x] = v;
  }
}

extern "C" __global__ void reduce_atomic(const int *in, int *out, int)
{
  __shared__ int sum;

  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * 256 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum;
}
