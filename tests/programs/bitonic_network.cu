/* bitonic_network.cu -- sorts keys with values by a network in global memory. */
#include "program.cuh"

#include <algorithm>

__global__ void exchange(unsigned *k, unsigned *v, unsigned step, unsigned size)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, j = i ^ step;
  if (j > i && ((i & size) == 0) == (k[i] > k[j])) {
    const unsigned a = k[i], b = v[i];
    k[i] = k[j], v[i] = v[j];
    k[j] = a, v[j] = b;
  }
}

int main()
{
  const unsigned n = 1024;
  std::vector<unsigned> k(n), v(n);
  for (unsigned i = 0; i < n; i++)
    k[i] = i * 2654435761u, v[i] = i;
  unsigned *dk = to_device(k), *dv = to_device(v);
  for (unsigned size = 2; size <= n; size *= 2)
    for (unsigned step = size / 2; step > 0; step /= 2)
      exchange<<<n / 256, 256>>>(dk, dv, step, size);
  const std::vector<unsigned> got = to_host(dk, n), at = to_host(dv, n);
  CHECK(std::is_sorted(got.begin(), got.end()));
  for (unsigned i = 0; i < n; i++)
    CHECK(got[i] == k[at[i]]);
  return verdict();
}
