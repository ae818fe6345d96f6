/* thrust_mix.cu -- Thrust: sort, scan, reduce, transform, unique, copy_if.
// finds: races: unique in place orders the reads of a tile before later writes by
//   relaxed stores alone
 */
#include "program.cuh"

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>

struct even {
  __host__ __device__ bool operator()(int x) const
  {
    return x % 2 == 0;
  }
};

int main()
{
  const int n = 3000;
  std::vector<int> h(n);
  for (int i = 0; i < n; i++)
    h[i] = (i * 7919) % 1009;
  thrust::device_vector<int> d(h.begin(), h.end()), e(n);
  int want = 0;
  for (int v : h)
    want += v;
  CHECK(thrust::reduce(d.begin(), d.end()) == want);
  thrust::inclusive_scan(d.begin(), d.end(), e.begin());
  CHECK(e[n - 1] == want);
  thrust::sort(d.begin(), d.end());
  std::sort(h.begin(), h.end());
  std::vector<int> got(n);
  thrust::copy(d.begin(), d.end(), got.begin());
  CHECK(got == h);
  const auto end = thrust::unique(d.begin(), d.end());
  h.erase(std::unique(h.begin(), h.end()), h.end());
  CHECK((size_t)(end - d.begin()) == h.size());
  const auto last = thrust::copy_if(d.begin(), end, e.begin(), even());
  CHECK(last - e.begin() == std::count_if(h.begin(), h.end(), even()));
  return verdict();
}
