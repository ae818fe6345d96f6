/* cub_block.cu -- CUB within a block: load, scan, radix sort, reduce. */
#include "program.cuh"

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

#include <algorithm>

const int BLOCK = 64, ITEMS = 4, TILE = BLOCK * ITEMS;

__global__ void sort_and_sum(const int *in, int *sorted, int *total)
{
  typedef cub::BlockLoad<int, BLOCK, ITEMS, cub::BLOCK_LOAD_TRANSPOSE> Load;
  typedef cub::BlockRadixSort<int, BLOCK, ITEMS> Sort;
  typedef cub::BlockStore<int, BLOCK, ITEMS, cub::BLOCK_STORE_TRANSPOSE> Store;
  typedef cub::BlockReduce<int, BLOCK> Reduce;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
    typename Store::TempStorage store;
    typename Reduce::TempStorage reduce;
  } tmp;
  int keys[ITEMS];
  Load(tmp.load).Load(in + blockIdx.x * TILE, keys);
  __syncthreads();
  Sort(tmp.sort).Sort(keys);
  __syncthreads();
  Store(tmp.store).Store(sorted + blockIdx.x * TILE, keys);
  __syncthreads();
  const int sum = Reduce(tmp.reduce).Sum(keys);
  if (threadIdx.x == 0)
    total[blockIdx.x] = sum;
}

int main()
{
  const int blocks = 3;
  std::vector<int> h(blocks * TILE);
  for (size_t i = 0; i < h.size(); i++)
    h[i] = (int)(i * 2654435761u >> 8) % 1000 - 500;
  int *x = to_device(h), *y, *t;
  CALL(cudaMalloc(&y, h.size() * sizeof(int)));
  CALL(cudaMalloc(&t, blocks * sizeof(int)));
  sort_and_sum<<<blocks, BLOCK>>>(x, y, t);
  const std::vector<int> g = to_host(y, h.size()), s = to_host(t, blocks);
  for (int b = 0; b < blocks; b++) {
    int sum = 0;
    std::sort(h.begin() + b * TILE, h.begin() + (b + 1) * TILE);
    for (int i = b * TILE; i < (b + 1) * TILE; i++)
      sum += h[i];
    CHECK(s[b] == sum);
  }
  CHECK(g == h);
  return verdict();
}
