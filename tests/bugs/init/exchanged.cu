// kiln run: --grid 1 --block 32 --arg i32[32]=none --arg i32[32]
// The old value that the exchange returns was never written.
extern "C" __global__ void exchanged(int *x, int *out)
{
  out[threadIdx.x] = atomicExch(&x[threadIdx.x], 1); // BUG uninitialised read
}
