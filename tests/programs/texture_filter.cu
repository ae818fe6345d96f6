/* texture_filter.cu -- reads a two-dimensional texture with linear filtering and
 * normalised coordinates, and rotates a picture by a texture. */
#include "program.cuh"

__global__ void sample(float *out, cudaTextureObject_t t, int w, int h)
{
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    out[y * w + x] = tex2D<float>(t, (x + 1.0f) / w, (y + 0.5f) / h);
}

int main()
{
  const int w = 64, h = 32;
  std::vector<float> in(w * h);
  for (int i = 0; i < w * h; i++)
    in[i] = i % w + 100 * (i / w);
  cudaArray_t array;
  const cudaChannelFormatDesc d = cudaCreateChannelDesc<float>();
  CALL(cudaMallocArray(&array, &d, w, h));
  CALL(cudaMemcpy2DToArray(array, 0, 0, in.data(), w * sizeof(float),
                           w * sizeof(float), h, cudaMemcpyHostToDevice));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  cudaTextureDesc td = {};
  td.addressMode[0] = cudaAddressModeWrap;
  td.addressMode[1] = cudaAddressModeClamp;
  td.filterMode = cudaFilterModeLinear;
  td.normalizedCoords = 1;
  cudaTextureObject_t t;
  CALL(cudaCreateTextureObject(&t, &r, &td, nullptr));
  float *out;
  CALL(cudaMalloc(&out, w * h * sizeof(float)));
  sample<<<dim3(w / 16, h / 16), dim3(16, 16)>>>(out, t, w, h);
  const std::vector<float> got = to_host(out, w * h);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      CHECK(got[y * w + x] == (in[y * w + x] + in[y * w + (x + 1) % w]) / 2);
  cudaResourceDesc back;
  CALL(cudaGetTextureObjectResourceDesc(&back, t));
  CHECK(back.res.array.array == array);
  CALL(cudaDestroyTextureObject(t));
  CALL(cudaFreeArray(array));
  return verdict();
}
