/* cub_device.cu -- CUB: a sum, an exclusive sum, a radix sort and a selection. */
#include "program.cuh"

#include <cub/cub.cuh>

#include <algorithm>

template <class F> static void twice(F f)
{
  void *tmp = nullptr;
  size_t bytes = 0;
  CALL(f(tmp, bytes));
  CALL(cudaMalloc(&tmp, bytes));
  CALL(f(tmp, bytes));
  CALL(cudaFree(tmp));
}

int main()
{
  const int n = 5000;
  std::vector<int> h(n);
  int want = 0;
  for (int i = 0; i < n; i++)
    want += h[i] = (i * 7919) % 2003 - 1000;
  int *x = to_device(h), *y, *out;
  CALL(cudaMalloc(&y, n * sizeof(int)));
  CALL(cudaMalloc(&out, sizeof(int)));
  twice([&](void *t, size_t &b) {
    return cub::DeviceReduce::Sum(t, b, x, out, n);
  });
  CHECK(to_host(out, 1)[0] == want);
  twice([&](void *t, size_t &b) {
    return cub::DeviceScan::ExclusiveSum(t, b, x, y, n);
  });
  CHECK(to_host(y, n)[n - 1] == want - h[n - 1]);
  twice([&](void *t, size_t &b) {
    return cub::DeviceRadixSort::SortKeys(t, b, x, y, n);
  });
  std::sort(h.begin(), h.end());
  CHECK(to_host(y, n) == h);
  twice([&](void *t, size_t &b) {
    return cub::DeviceSelect::Unique(t, b, y, x, out, n);
  });
  h.erase(std::unique(h.begin(), h.end()), h.end());
  CHECK(to_host(out, 1)[0] == (int)h.size());
  return verdict();
}
