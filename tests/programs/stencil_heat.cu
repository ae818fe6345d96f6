/* stencil_heat.cu -- heat on a plate: tiles with a border in shared memory. */
#include "program.cuh"

const int N = 64, T = 16;

__global__ void step(float *out, const float *in)
{
  __shared__ float t[T + 2][T + 2];
  const int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  const int i = threadIdx.x + 1, j = threadIdx.y + 1;
  t[j][i] = in[y * N + x];
  if (i == 1)
    t[j][0] = x > 0 ? in[y * N + x - 1] : 0;
  if (i == T)
    t[j][T + 1] = x < N - 1 ? in[y * N + x + 1] : 0;
  if (j == 1)
    t[0][i] = y > 0 ? in[(y - 1) * N + x] : 0;
  if (j == T)
    t[T + 1][i] = y < N - 1 ? in[(y + 1) * N + x] : 0;
  __syncthreads();
  out[y * N + x] =
      0.25f * (t[j][i - 1] + t[j][i + 1] + t[j - 1][i] + t[j + 1][i]);
}

int main()
{
  std::vector<float> h(N * N), g(N * N);
  h[N * N / 2 + N / 2] = 4096;
  float *a = to_device(h), *b = to_device(h);
  for (int k = 0; k < 6; k++) {
    step<<<dim3(N / T, N / T), dim3(T, T)>>>(b, a);
    std::swap(a, b);
    for (int y = 0; y < N; y++)
      for (int x = 0; x < N; x++)
        g[y * N + x] = 0.25f * ((x > 0 ? h[y * N + x - 1] : 0) +
                                (x < N - 1 ? h[y * N + x + 1] : 0) +
                                (y > 0 ? h[(y - 1) * N + x] : 0) +
                                (y < N - 1 ? h[(y + 1) * N + x] : 0));
    std::swap(g, h);
  }
  CHECK(to_host(a, N * N) == h);
  return verdict();
}
