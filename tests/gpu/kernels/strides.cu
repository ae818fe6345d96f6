// kiln run: --grid 8 --block 256 --arg f32[65536]=ramp --arg f32[2048] --arg 7
// The lanes of a warp read every seventh element, 28 sectors per request.
extern "C" __global__ void strides(const float *x, float *y, unsigned stride)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  y[i] = x[i * stride];
}
