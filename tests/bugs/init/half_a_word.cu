// kiln run: --grid 1 --block 32 --arg u8[128]=none --arg u32[32]
// Only two of the four bytes of each word are written.
extern "C" __global__ void half_a_word(unsigned short *x, unsigned *y)
{
  x[2 * threadIdx.x] = 7;
  __syncwarp();
  y[threadIdx.x] = ((unsigned *)x)[threadIdx.x]; // BUG uninitialised read
}
