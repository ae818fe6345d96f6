/* warp_votes.cu -- votes, matches, shuffles and warp reductions.
// nvcc: -arch=compute_80
 */
#include "program.cuh"

__global__ void votes(unsigned *out)
{
  const unsigned lane = threadIdx.x % 32, all = ~0u;
  unsigned r = 0;
  r += __ballot_sync(all, lane % 3 == 0) == 0x49249249u;
  r += __all_sync(all, lane < 32) != 0;
  r += __any_sync(all, lane == 40) == 0;
  r += __popc(__match_any_sync(all, lane / 4)) == 4;
  int same;
  r += __match_all_sync(all, 5, &same) == all && same;
  r += __shfl_sync(all, lane, 7) == 7;
  r += __shfl_up_sync(all, lane, 1) == (lane ? lane - 1 : 0);
  r += __shfl_down_sync(all, lane, 4, 8) == (lane % 8 < 4 ? lane + 4 : lane);
  r += __shfl_xor_sync(all, lane, 16) == (lane ^ 16);
  r += __reduce_add_sync(all, lane) == 496;
  r += __reduce_max_sync(all, lane) == 31;
  r += __reduce_xor_sync(all, 1u << lane) == all;
  if (lane < 10)
    r += __activemask() == 0x3ffu;
  else
    r++;
  __syncwarp();
  r += __syncthreads_count(threadIdx.x < 50) == 50;
  r += __syncthreads_or(threadIdx.x == 63) != 0;
  out[threadIdx.x] = r;
}

int main()
{
  unsigned *out;
  CALL(cudaMalloc(&out, 64 * sizeof(unsigned)));
  votes<<<1, 64>>>(out);
  for (unsigned v : to_host(out, 64))
    CHECK(v == 15);
  return verdict();
}
