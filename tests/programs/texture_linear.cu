/* texture_linear.cu -- textures over linear and over pitched memory. */
#include "program.cuh"

__global__ void gather(int *out, cudaTextureObject_t t, const int *at, int n)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = tex1Dfetch<int>(t, at[i]);
}

__global__ void bytes(float *out, cudaTextureObject_t t, int w, int h)
{
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < w && y < h) {
    const float4 v = tex2D<float4>(t, x, y);
    out[y * w + x] = v.x + v.y + v.z + v.w;
  }
}

int main()
{
  const int n = 1000, w = 37, h = 11;
  std::vector<int> table(n), at(n);
  for (int i = 0; i < n; i++)
    table[i] = i * i, at[i] = (i * 7) % n;
  int *dt = to_device(table), *da = to_device(at), *out;
  CALL(cudaMalloc(&out, n * sizeof(int)));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = dt;
  r.res.linear.desc = cudaCreateChannelDesc<int>();
  r.res.linear.sizeInBytes = n * sizeof(int);
  cudaTextureDesc td = {};
  cudaTextureObject_t t;
  CALL(cudaCreateTextureObject(&t, &r, &td, nullptr));
  gather<<<4, 256>>>(out, t, da, n);
  const std::vector<int> got = to_host(out, n);
  for (int i = 0; i < n; i++)
    CHECK(got[i] == table[at[i]]);
  CALL(cudaDestroyTextureObject(t));

  std::vector<uchar4> pixels(w * h);
  for (int i = 0; i < w * h; i++)
    pixels[i] = make_uchar4(i % 256, 255, 0, i % 3);
  uchar4 *dp;
  size_t pitch;
  float *sums;
  CALL(cudaMallocPitch(&dp, &pitch, w * sizeof(uchar4), h));
  CALL(cudaMemcpy2D(dp, pitch, pixels.data(), w * sizeof(uchar4),
                    w * sizeof(uchar4), h, cudaMemcpyHostToDevice));
  CALL(cudaMalloc(&sums, w * h * sizeof(float)));
  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D.devPtr = dp;
  r.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
  r.res.pitch2D.width = w;
  r.res.pitch2D.height = h;
  r.res.pitch2D.pitchInBytes = pitch;
  td.readMode = cudaReadModeNormalizedFloat;
  CALL(cudaCreateTextureObject(&t, &r, &td, nullptr));
  bytes<<<h, 64>>>(sums, t, w, h);
  const std::vector<float> s = to_host(sums, w * h);
  for (int i = 0; i < w * h; i++)
    CHECK(std::fabs(s[i] - (i % 256 + 255 + i % 3) / 255.0f) < 1e-5f);
  return verdict();
}
