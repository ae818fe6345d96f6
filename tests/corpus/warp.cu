// Shuffles, votes and other warp functions.
extern "C" __global__ void syncwarp(const int *in, int *out, int)
{
  __shared__ volatile int s[64];
  const int t = threadIdx.x;

  s[t] = in[t];
  __syncwarp();
  const int v = s[t ^ 1];
  __syncwarp();
  if (t % 2)
    s[t] = v + 1;
  else
    s[t] = v - 1;
  __syncwarp();
  out[t] = s[t ^ 3] + (__any_sync(0xffffffffu, t == 5) ? 1000 : 0);
}

extern "C" __global__ void match(const unsigned *in, unsigned *out, int)
{
  const unsigned v = in[threadIdx.x] % 4;
  int same = 0;

  out[threadIdx.x] = __match_any_sync(0xffffffffu, v);
  out[64 + threadIdx.x] = __match_all_sync(0xffffffffu, v / 4, &same) ^ same;
}

extern "C" __global__ void redux(const unsigned *in, unsigned *out, int)
{
#if __CUDA_ARCH__ >= 800
  const unsigned v = in[threadIdx.x], all = 0xffffffffu;

  out[threadIdx.x] = __reduce_add_sync(all, v) ^ __reduce_max_sync(all, v) ^
                     __reduce_min_sync(all, (int)v) ^ __reduce_or_sync(all, v);
#endif
}
