// kiln run: --grid 1 --block 32 --arg f32[132]
extern "C" __global__ void misaligned_vector(float *x)
{
  float4 *v = (float4 *)(x + 1);
  v[threadIdx.x] = make_float4(1, 2, 3, 4); // BUG misaligned
}
