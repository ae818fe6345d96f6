// kiln run: --grid 1 --block 32 --arg u8[256] --arg i32[32]
extern "C" __global__ void misaligned_word(const char *bytes, int *x)
{
  x[threadIdx.x] = *(const int *)(bytes + 4 * threadIdx.x + 2); // BUG misaligned
}
