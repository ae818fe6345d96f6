/* library_kernels.cu -- launches kernels of CUB, Thrust and cuRAND, and small
 * kernels that repeat one function of cooperative groups or libcu++, so that
 * the speed of the CPU device on code of others can be measured:
 *
 *   nvcc -O3 -std=c++17 -cudart shared -gencode arch=compute_90,code=compute_90 \
 *     -o library_kernels tests/bench/library_kernels.cu
 *   kiln exec --threads 1 --time -- ./library_kernels CASE
 *
 * Without CASE, it runs all cases. README.md lists the results. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>
#include <curand_kernel.h>

#include <cstdio>
#include <cstring>

namespace cg = cooperative_groups;

constexpr int N = 1 << 18, WORDS = 1 << 16;

static unsigned *keys, *values, *out; /* N words each */
static void *workspace;
static size_t workspace_bytes = 1 << 25;

/* ---- Kernels around one function of a library ---------------------------- */

__device__ unsigned place()
{
  return blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void grid_barrier(unsigned *d, int times)
{
  const cg::grid_group grid = cg::this_grid();

  for (int i = 0; i < times; i++) {
    d[grid.thread_rank()] += i;
    grid.sync();
  }
}

__global__ void tile_reduce(unsigned *d)
{
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  unsigned x = d[place() % WORDS];

  for (int i = 0; i < 32; i++) {
    x = cg::reduce(tile, x, cg::plus<unsigned>()) & 255;
    x += cg::inclusive_scan(tile, x) & 15;
  }
  d[place() % WORDS] = x;
}

__global__ void coalesced(unsigned *d)
{
  const unsigned at = place();
  unsigned x = 0;

  for (unsigned i = 0; i < 32; i++) {
    if ((at * 7 + i) % 3 == 0) {
      const auto group = cg::coalesced_threads();

      x += group.shfl(at, 0) + group.size();
      if (group.thread_rank() == 0)
        atomicAdd(d, 1);
    }
  }
  d[at % WORDS + 1] = x;
}

__global__ void block_barrier(unsigned *d, int times)
{
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  unsigned x = 0;

  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  __syncthreads();
  for (int i = 0; i < times; i++) {
    x += i;
    barrier.arrive_and_wait();
  }
  d[threadIdx.x] = x;
}

__global__ void semaphore(unsigned *d, int times)
{
  using limit = cuda::counting_semaphore<cuda::thread_scope_block, 4>;
  __shared__ alignas(limit) char bytes[sizeof(limit)];
  limit *const four = reinterpret_cast<limit *>(bytes);

  if (threadIdx.x == 0)
    new (four) limit(4);
  __syncthreads();
  for (int i = 0; i < times; i++) {
    four->acquire();
    atomicAdd(d, 1);
    four->release();
  }
}

/* All lanes take one lock in turn. */
__global__ void lock(unsigned *d, unsigned *word, int times)
{
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> taken(*word);

  for (int i = 0; i < times; i++) {
    unsigned none = 0;

    while (!taken.compare_exchange_weak(none, 1, cuda::memory_order_acquire))
      none = 0;
    d[0] += 1;
    taken.store(0, cuda::memory_order_release);
  }
}

__global__ void atomic_doubles(double *d, unsigned n)
{
  for (unsigned i = 0; i < 64; i++)
    cuda::atomic_ref<double>(d[(place() * 31 + i * 17) % n]).fetch_add(1.0);
}

__global__ void async_copy(const unsigned *from, unsigned *to)
{
  __shared__ unsigned tile[1024];
  const auto block = cg::this_thread_block();
  unsigned x = 0;

  for (unsigned i = 0; i < 16; i++) {
    cg::memcpy_async(block, tile, from + i * 1024, sizeof tile);
    cg::wait(block);
    x += tile[(threadIdx.x * 7 + i) & 1023];
    block.sync();
  }
  to[place() % WORDS] = x;
}

__global__ void start_xorwow(curandStateXORWOW_t *states)
{
  curand_init(1234, place(), 0, &states[place()]);
}

/* ---- Cases ---------------------------------------------------------------- */

static void launch_grid_barrier()
{
  int times = 100;
  void *arguments[] = {&values, &times};

  cudaLaunchCooperativeKernel((void *)grid_barrier, 64, 256, arguments, 0, 0);
}

static void radix_sort()
{
  cub::DeviceRadixSort::SortKeys(workspace, workspace_bytes, keys, out, N);
}

static void histogram()
{
  cub::DeviceHistogram::HistogramEven(workspace, workspace_bytes,
                                      (unsigned char *)keys, (int *)out, 257, 0,
                                      256, 4 * N);
}

static void double_scan()
{
  cub::DeviceScan::InclusiveSum(workspace, workspace_bytes, (double *)keys,
                                (double *)out, N / 2);
}

static const struct {
  const char *name;
  void (*run)();
} cases[] = {
    {"grid_barrier", launch_grid_barrier},
    {"tile_reduce", [] { tile_reduce<<<128, 256>>>(values); }},
    {"coalesced", [] { coalesced<<<128, 256>>>(values); }},
    {"block_barrier", [] { block_barrier<<<32, 256>>>(values, 100); }},
    {"semaphore", [] { semaphore<<<4, 64>>>(values, 20); }},
    {"lock", [] { lock<<<8, 32>>>(values + 1, values, 20); }},
    {"atomic_doubles",
     [] { atomic_doubles<<<64, 256>>>((double *)values, 1000); }},
    {"async_copy", [] { async_copy<<<64, 256>>>(values, out); }},
    {"start_xorwow",
     [] { start_xorwow<<<64, 256>>>((curandStateXORWOW_t *)workspace); }},
    {"radix_sort", radix_sort},
    {"histogram", histogram},
    {"double_scan", double_scan},
};

/* Fills the keys with a hash of their index. */
static void fill_keys()
{
  static unsigned host[N];

  for (unsigned i = 0; i < N; i++) {
    unsigned x = (i ^ i >> 16) * 0x7feb352du;

    x = (x ^ x >> 15) * 0x846ca68bu;
    host[i] = x ^ x >> 16;
  }
  cudaMemcpy(keys, host, sizeof host, cudaMemcpyHostToDevice);
}

int main(int argc, char **argv)
{
  cudaError_t rc;

  cudaMalloc(&keys, 4 * N);
  cudaMalloc(&values, 4 * N);
  cudaMalloc(&out, 4 * N);
  cudaMalloc(&workspace, workspace_bytes);
  fill_keys();
  for (const auto &c : cases) {
    if (argc > 1 && strcmp(argv[1], c.name) != 0)
      continue;
    cudaMemset(values, 0, 4 * N);
    c.run();
    rc = cudaDeviceSynchronize();
    if (rc != cudaSuccess) {
      fprintf(stderr, "%s: %s\n", c.name, cudaGetErrorString(rc));
      return 1;
    }
  }
  return 0;
}
