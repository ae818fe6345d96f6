/* texture_layers.cu -- a layered texture, a cube map and a mipmapped texture. */
#include "program.cuh"

__global__ void layers(float *out, cudaTextureObject_t t, int w, int n)
{
  const int x = threadIdx.x, layer = blockIdx.x;
  if (x < w && layer < n)
    out[layer * w + x] = tex2DLayered<float>(t, x + 0.5f, 0.5f, layer);
}

__global__ void faces(float *out, cudaTextureObject_t t)
{
  const float3 d[6] = {{1, 0, 0},  {-1, 0, 0}, {0, 1, 0},
                       {0, -1, 0}, {0, 0, 1},  {0, 0, -1}};
  out[threadIdx.x] = texCubemap<float>(t, d[threadIdx.x].x, d[threadIdx.x].y,
                                       d[threadIdx.x].z);
}

__global__ void levels(float *out, cudaTextureObject_t t)
{
  out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, threadIdx.x);
}

static cudaArray_t filled(int w, int h, int n, unsigned flags)
{
  std::vector<float> v(w * h * n);
  for (size_t i = 0; i < v.size(); i++)
    v[i] = i / (w * h) * 100 + (flags == cudaArrayLayered ? i % w : 0);
  cudaArray_t a;
  const cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  CALL(cudaMalloc3DArray(&a, &f, make_cudaExtent(w, h, n), flags));
  cudaMemcpy3DParms c = {};
  c.srcPtr = make_cudaPitchedPtr(v.data(), w * sizeof(float), w, h);
  c.dstArray = a;
  c.extent = make_cudaExtent(w, h, n);
  c.kind = cudaMemcpyHostToDevice;
  CALL(cudaMemcpy3D(&c));
  return a;
}

static cudaTextureObject_t texture(cudaArray_t a)
{
  cudaTextureObject_t t;
  cudaResourceDesc r = {};
  cudaTextureDesc d = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  CALL(cudaCreateTextureObject(&t, &r, &d, nullptr));
  return t;
}

int main()
{
  float *out;
  CALL(cudaMalloc(&out, 64 * sizeof(float)));
  layers<<<4, 32>>>(out, texture(filled(8, 2, 4, cudaArrayLayered)), 8, 4);
  std::vector<float> g = to_host(out, 32);
  for (int i = 0; i < 32; i++)
    CHECK(g[i] == i / 8 * 100 + i % 8);
  faces<<<1, 6>>>(out, texture(filled(4, 4, 6, cudaArrayCubemap)));
  g = to_host(out, 6);
  for (int i = 0; i < 6; i++)
    CHECK(g[i] == i * 100);

  cudaMipmappedArray_t m;
  const cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  CALL(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(8, 8, 0), 4));
  for (int level = 0; level < 4; level++) {
    cudaArray_t a;
    const int w = 8 >> level;
    std::vector<float> v(w * w, level + 1.0f);
    CALL(cudaGetMipmappedArrayLevel(&a, m, level));
    CALL(cudaMemcpy2DToArray(a, 0, 0, v.data(), w * sizeof(float),
                             w * sizeof(float), w, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeMipmappedArray;
  r.res.mipmap.mipmap = m;
  cudaTextureDesc d = {};
  d.normalizedCoords = 1;
  d.maxMipmapLevelClamp = 3;
  cudaTextureObject_t t;
  CALL(cudaCreateTextureObject(&t, &r, &d, nullptr));
  levels<<<1, 4>>>(out, t);
  g = to_host(out, 4);
  for (int i = 0; i < 4; i++)
    CHECK(g[i] == i + 1);
  return verdict();
}
