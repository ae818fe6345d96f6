// Inclusive sums over a block, over warps, and over the whole input in one pass.
extern "C" __global__ void scan_block(const int *in, int *out, int)
{
  __shared__ int s[2][256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int now = 0;

  s[0][t] = in[i];
  for (int d = 1; d < 256; d *= 2) {
    __syncthreads();
    s[1 - now][t] = t >= d ? s[now][t] + s[now][t - d] : s[now][t];
    now = 1 - now;
  }
  out[i] = s[now][t];
}

static __device__ int scan_warp(int v)
{
  for (int d = 1; d < 32; d *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, v, d);

    if (threadIdx.x % 32 >= d)
      v += before;
  }
  return v;
}

extern "C" __global__ void scan_warps(const int *in, int *out, int)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;

  out[i] = scan_warp(in[i]);
}

// The state of a tile: a flag in the upper bits (1: sum of the tile, 2: inclusive
// prefix), and the sum in the lower bits.
__device__ unsigned long long tiles[64];
__device__ unsigned ticket;

extern "C" __global__ void lookback(const int *in, int *out, int)
{
  __shared__ int tile, before, sums[4];
  const int t = threadIdx.x;

  if (t == 0)
    tile = atomicAdd(&ticket, 1u);
  __syncthreads();
  int v = scan_warp(in[tile * 128 + t]);
  if (t % 32 == 31)
    sums[t / 32] = v;
  __syncthreads();
  for (int w = 0; w < t / 32; w++)
    v += sums[w];
  if (t == 127) {
    int sum = 0;

    atomicExch(&tiles[tile],
               (tile == 0 ? 2ull : 1ull) << 32 | (unsigned)v);
    for (int at = tile - 1; at >= 0;) {
      const unsigned long long state = atomicAdd(&tiles[at], 0ull);

      if (state >> 32 == 0)
        continue;
      sum += (int)(unsigned)state;
      if (state >> 32 == 2)
        break;
      at--;
    }
    atomicExch(&tiles[tile], 2ull << 32 | (unsigned)(sum + v));
    before = sum;
  }
  __syncthreads();
  out[tile * 128 + t] = before + v;
}
