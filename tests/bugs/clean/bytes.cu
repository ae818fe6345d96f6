// kiln run: --grid 2 --block 64 --arg u8[128]=none --arg u8[128]
// Different threads write different bytes of one word, which is no race.
extern "C" __global__ void bytes(unsigned char *x, unsigned char *y)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = (unsigned char)i;
  y[i] = x[i];
}
