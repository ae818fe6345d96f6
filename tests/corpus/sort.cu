// One pass of a radix sort, histograms, and sums of segments.
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *out, int)
{
  __shared__ unsigned count[16][8], start[16];
  const unsigned t = threadIdx.x, key = in[t], digit = key >> 4 & 15;
  unsigned mine = 0xffffffffu;

  for (unsigned d = 0; d < 16; d++) {
    const unsigned who = __ballot_sync(0xffffffffu, digit == d);

    if (digit == d)
      mine = who;
    if (t % 32 == 0)
      count[d][t / 32] = __popc(who);
  }
  __syncthreads();
  if (t < 16) {
    unsigned sum = 0;

    for (int w = 0; w < 8; w++) {
      const unsigned c = count[t][w];

      count[t][w] = sum;
      sum += c;
    }
    start[t] = sum;
  }
  __syncthreads();
  if (t == 0) {
    unsigned sum = 0;

    for (int d = 0; d < 16; d++) {
      const unsigned c = start[d];

      start[d] = sum;
      sum += c;
    }
  }
  __syncthreads();
  out[start[digit] + count[digit][t / 32] +
      __popc(mine & ((1u << t % 32) - 1))] = key;
}

extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *out,
                                            int n)
{
  __shared__ unsigned bin[64];

  if (threadIdx.x < 64)
    bin[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bin[in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64)
    atomicAdd(&out[threadIdx.x], bin[threadIdx.x]);
}

extern "C" __global__ void histogram_global(const unsigned *in, unsigned *out,
                                            int n)
{
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicInc(&out[in[i] % 64], 0xffffffffu);
}

// Computes the sums of segments of 1, 2, 3, ... elements. In each warp, the last lane
// of a segment adds the warp's part to the sum.
extern "C" __global__ void segments(const unsigned *in, unsigned *out, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i % 32;
  unsigned v = i < n ? in[i] : 0;
  int mine = 0;

  while ((mine + 1) * (mine + 2) / 2 <= i)
    mine++;
  for (int d = 1; d < 32; d *= 2) {
    const unsigned x = __shfl_up_sync(0xffffffffu, v, d);
    const int s = __shfl_up_sync(0xffffffffu, mine, d);

    if (lane >= d && s == mine)
      v += x;
  }
  const int next = __shfl_down_sync(0xffffffffu, mine, 1);
  if (lane == 31 || next != mine)
    atomicAdd(&out[mine], v);
}
