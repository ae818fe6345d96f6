/* transpose_padded.cu -- a transpose by tiles with a column of padding. */
#include "program.cuh"

const int T = 32, ROWS = 8;

__global__ void transpose(double *out, const double *in, int w, int h)
{
  __shared__ double tile[T][T + 1];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int j = 0; j < T; j += ROWS)
    if (x < w && y + j < h)
      tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * T + threadIdx.x;
  y = blockIdx.x * T + threadIdx.y;
  for (int j = 0; j < T; j += ROWS)
    if (x < h && y + j < w)
      out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main()
{
  const int w = 77, h = 50;
  std::vector<double> in(w * h);
  for (int i = 0; i < w * h; i++)
    in[i] = i / 3.0;
  double *a = to_device(in), *b;
  CALL(cudaMalloc(&b, in.size() * sizeof(double)));
  CALL(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  CALL(cudaFuncSetCacheConfig(transpose, cudaFuncCachePreferShared));
  transpose<<<dim3((w + T - 1) / T, (h + T - 1) / T), dim3(T, ROWS)>>>(b, a, w,
                                                                       h);
  const std::vector<double> g = to_host(b, in.size());
  for (int i = 0; i < w * h; i++)
    CHECK(g[(i % w) * h + i / w] == in[i]);
  return verdict();
}
