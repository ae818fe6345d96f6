// Dense arithmetic: tiled matrix products, n-body forces, a fractal.
extern "C" __global__ void sgemm(const float *in, float *out, int)
{
  __shared__ __align__(16) float a[16][16], b[16][16];
  const int x = threadIdx.x, y = threadIdx.y; // 4 x 16 threads compute 16 x 16 values
  const float4 *from = (const float4 *)in;
  float4 sum = {0, 0, 0, 0};

  ((float4 *)a[y])[x] = from[y * 4 + x];
  ((float4 *)b[y])[x] = from[64 + y * 4 + x];
  __syncthreads();
#pragma unroll 4
  for (int k = 0; k < 16; k++) {
    const float4 r = ((float4 *)b[k])[x];
    const float f = a[y][k];

    sum.x += f * r.x;
    sum.y += f * r.y;
    sum.z += f * r.z;
    sum.w += f * r.w;
  }
  ((float4 *)out)[y * 4 + x] = sum;
}

extern "C" __global__ void nbody(const float *in, float *out, int n)
{
  __shared__ float place[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float mine = in[i];
  float force = 0;

  for (int base = 0; base < n; base += 64) {
    place[threadIdx.x] = in[base + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 64; j++) {
      const float d = place[j] - mine, r = rsqrtf(d * d + 0.25f);

      force += d * r * r * r;
    }
    __syncthreads();
  }
  out[i] = force;
}

extern "C" __global__ void julia(const int *, int *out, int)
{
  const int x = threadIdx.x, y = threadIdx.y + blockIdx.x * blockDim.y;
  int a = (x - 16) * 96, b = (y - 16) * 96, k = 0; // fixed point: 1024 represents 1

  while (k < 60 && a * a + b * b < 4 << 20) {
    const int t = (a * a - b * b) / 1024 - 717;

    b = 2 * a * b / 1024 + 277;
    a = t;
    k++;
  }
  out[y * 32 + x] = k;
}
