/* game_of_life.cu -- steps of a cellular automaton, with two buffers that swap. */
#include "program.cuh"

const int W = 48, H = 32;

__host__ __device__ inline unsigned char next(const unsigned char *in, int x,
                                              int y)
{
  int n = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx || dy)
        n += in[(y + dy + H) % H * W + (x + dx + W) % W];
  return n == 3 || (n == 2 && in[y * W + x]);
}

__global__ void step(const unsigned char *in, unsigned char *out)
{
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < W && y < H)
    out[y * W + x] = next(in, x, y);
}

int main()
{
  std::vector<unsigned char> h(W * H), g(W * H);
  for (int i = 0; i < W * H; i++)
    h[i] = i * 2654435761u >> 30 == 0;
  unsigned char *a = to_device(h), *b = to_device(h);
  for (int t = 0; t < 20; t++) {
    step<<<dim3(3, 4), dim3(16, 8)>>>(a, b);
    std::swap(a, b);
    for (int i = 0; i < W * H; i++)
      g[i] = next(h.data(), i % W, i / W);
    std::swap(g, h);
  }
  CHECK(to_host(a, W * H) == h);
  return verdict();
}
