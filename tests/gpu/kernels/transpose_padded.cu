// kiln run: --grid 4,4 --block 32,8 --arg f32[16384] --arg f32[16384]=ramp
// With a padding column, the elements of a column are in different banks.
extern "C" __global__ void transpose_padded(float *y, const float *x)
{
  __shared__ float tile[32][33];
  const unsigned n = 128;
  const unsigned bx = blockIdx.x * 32, by = blockIdx.y * 32;

  for (unsigned r = threadIdx.y; r < 32; r += 8)
    tile[r][threadIdx.x] = x[(by + r) * n + bx + threadIdx.x];
  __syncthreads();
  for (unsigned r = threadIdx.y; r < 32; r += 8)
    y[(bx + r) * n + by + threadIdx.x] = tile[threadIdx.x][r];
}
