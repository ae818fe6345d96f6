/* async_copy.cu -- copies from global to shared memory that overlap computation.
// nvcc: -arch=compute_80
 */
#include "program.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

const int STAGE = 128;

__global__ void staged(int *out, const int *in, int batches)
{
  __shared__ int buffer[2][STAGE];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int b = 0, ahead = 0; b < batches; b++) {
    for (; ahead < batches && ahead < b + 2; ahead++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[ahead % 2], in + ahead * STAGE,
                         sizeof(int) * STAGE, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += buffer[b % 2][STAGE - 1 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

__global__ void barriers(int *out, const int *in)
{
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int x[STAGE];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0)
    init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, x, in, sizeof x, bar);
  bar.arrive_and_wait();
  out[threadIdx.x] = x[(threadIdx.x + 1) % STAGE];
}

int main()
{
  const int batches = 6;
  std::vector<int> h(batches * STAGE);
  for (size_t i = 0; i < h.size(); i++)
    h[i] = i * 3 % 101;
  int *x = to_device(h), *out;
  CALL(cudaMalloc(&out, STAGE * sizeof(int)));
  staged<<<1, STAGE>>>(out, x, batches);
  const std::vector<int> g = to_host(out, STAGE);
  for (int t = 0; t < STAGE; t++) {
    int s = 0;
    for (int b = 0; b < batches; b++)
      s += h[b * STAGE + STAGE - 1 - t];
    CHECK(g[t] == s);
  }
  barriers<<<1, STAGE>>>(out, x);
  CHECK(to_host(out, STAGE)[STAGE - 1] == h[0]);
  return verdict();
}
