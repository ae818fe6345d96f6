// Generic addresses, memory from the device heap, and an assertion that holds.
extern "C" __device__ void __assertfail(const char *, const char *, unsigned,
                                        const char *, size_t);
__constant__ int fixed[2] = {40, 2};

extern "C" __global__ void spaces(const int *in, int *out, int)
{
  __shared__ int s[64];
  int local[8];
  const int t = threadIdx.x;
  const int *p = t % 4 == 0   ? out
                 : t % 4 == 1 ? s
                 : t % 4 == 2 ? local
                              : fixed;

  s[t] = t;
  for (int i = 0; i < 8; i++)
    local[i] = in[(t + i) % 64] & 15;
  __syncthreads();
  out[64 + t] = (__isGlobal(p) ? 1 : 0) | (__isShared(p) ? 2 : 0) |
                (__isLocal(p) ? 4 : 0) | (__isConstant(p) ? 8 : 0);
  out[128 + t] = t % 4 == 0 ? 0 : p[t % 2];
}

extern "C" __global__ void heap(const int *in, int *out, int)
{
  const int t = threadIdx.x, n = in[t] & 31;
  int *p = (int *)malloc((n + 1) * sizeof(int)), sum = 0;

  if (p == NULL)
    return;
  for (int i = 0; i <= n; i++)
    p[i] = i * t;
  for (int i = n; i >= 0; i--)
    sum += p[i];
  free(p);
  out[t] = sum;
}

extern "C" __global__ void holds(const int *in, int *out, int n)
{
  if (n < 0)
    __assertfail("n >= 0", "generic.cu", 1, "holds", 1);
  out[threadIdx.x] = in[threadIdx.x];
}
