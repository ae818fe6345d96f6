// kiln run: --grid 1 --block 64 --arg i32[1]
// The thread that should release the lock waits at the barrier.
extern "C" __global__ void spin_in_lane(int *lock)
{
  if (threadIdx.x == 0) {
    while (atomicAdd(lock, 0) == 0) { }
  }
  __syncthreads(); // BUG deadlock
  if (threadIdx.x == 1)
    atomicExch(lock, 1);
}
