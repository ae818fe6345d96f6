/* surface_write.cu -- a kernel writes a surface, which the host copies back. */
#include "program.cuh"

__global__ void paint(cudaSurfaceObject_t s, int w, int h)
{
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h)
    surf2Dwrite(make_int2(x, y), s, x * sizeof(int2), y);
}

__global__ void swap(cudaSurfaceObject_t s, int w)
{
  int2 v;
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < w) {
    surf2Dread(&v, s, x * sizeof(int2), y);
    surf2Dwrite(make_int2(v.y, v.x), s, x * sizeof(int2), y);
  }
}

int main()
{
  const int w = 40, h = 24;
  cudaArray_t a;
  const cudaChannelFormatDesc d = cudaCreateChannelDesc<int2>();
  CALL(cudaMallocArray(&a, &d, w, h, cudaArraySurfaceLoadStore));
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  cudaSurfaceObject_t s;
  CALL(cudaCreateSurfaceObject(&s, &r));
  paint<<<dim3(5, 3), dim3(8, 8)>>>(s, w, h);
  swap<<<h, 64>>>(s, w);
  std::vector<int2> out(w * h);
  CALL(cudaMemcpy2DFromArray(out.data(), w * sizeof(int2), a, 0, 0,
                             w * sizeof(int2), h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < w * h; i++)
    CHECK(out[i].x == i / w && out[i].y == i % w);
  CALL(cudaDestroySurfaceObject(s));
  CALL(cudaFreeArray(a));
  return verdict();
}
