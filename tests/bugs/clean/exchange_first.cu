// kiln run: --grid 2 --block 32 --arg i32[32]=none
// The first write to fresh memory is an exchange whose old value is not used.
extern "C" __global__ void exchange_first(int *x)
{
  atomicExch(&x[threadIdx.x], (int)blockIdx.x);
}
