/* volume_copy.cu -- three-dimensional memory and arrays, and a 3-D texture. */
#include "program.cuh"

__global__ void add_one(cudaPitchedPtr p, cudaExtent e)
{
  for (size_t z = blockIdx.x; z < e.depth; z += gridDim.x)
    for (size_t y = threadIdx.x; y < e.height; y += blockDim.x) {
      float *row = (float *)((char *)p.ptr + (z * e.height + y) * p.pitch);
      for (size_t x = 0; x < e.width / sizeof(float); x++)
        row[x] += 1;
    }
}

__global__ void read(float *out, cudaTextureObject_t t, int w, int h, int d)
{
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  if (x < w)
    out[(z * h + y) * w + x] = tex3D<float>(t, x + 0.5f, y + 0.5f, z + 0.5f);
}

int main()
{
  const int w = 17, h = 9, d = 5;
  std::vector<float> in(w * h * d);
  for (size_t i = 0; i < in.size(); i++)
    in[i] = i;
  const cudaExtent e = make_cudaExtent(w * sizeof(float), h, d);
  cudaPitchedPtr p;
  CALL(cudaMalloc3D(&p, e));
  cudaMemcpy3DParms c = {};
  c.srcPtr = make_cudaPitchedPtr(in.data(), w * sizeof(float), w, h);
  c.dstPtr = p;
  c.extent = e;
  c.kind = cudaMemcpyHostToDevice;
  CALL(cudaMemcpy3D(&c));
  add_one<<<3, 4>>>(p, e);

  cudaArray_t a;
  const cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  CALL(cudaMalloc3DArray(&a, &f, make_cudaExtent(w, h, d)));
  cudaMemcpy3DParms c2 = {};
  c2.srcPtr = p;
  c2.dstArray = a;
  c2.extent = make_cudaExtent(w, h, d);
  c2.kind = cudaMemcpyDeviceToDevice;
  CALL(cudaMemcpy3D(&c2));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  cudaTextureDesc td = {};
  cudaTextureObject_t t;
  CALL(cudaCreateTextureObject(&t, &r, &td, nullptr));
  float *out;
  CALL(cudaMalloc(&out, in.size() * sizeof(float)));
  read<<<dim3(h, d), 32>>>(out, t, w, h, d);
  const std::vector<float> got = to_host(out, in.size());
  for (size_t i = 0; i < in.size(); i++)
    CHECK(got[i] == in[i] + 1);
  return verdict();
}
