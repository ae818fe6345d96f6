/* matmul.cu -- C = A B for row-major matrices of floats (samples/README.md, rows B7,
 * C1, E6).
 *
 * Idea: a block computes a 128 x 128 tile of C. It stages tiles of A and B in shared
 * memory, and each thread computes 8 x 8 elements from registers, so an element that
 * is loaded from shared memory is used 8 times.
 *
 * Launch: block 256, grid (n / 128, m / 128); m and n are multiples of 128, and k is
 *         one of 8. All addresses are aligned to 16 bytes.
 * Result: c[m][n], with sums in the order of k. */
enum { TILE = 128, DEPTH = 8, EACH = 8 };

extern "C" __global__ void __launch_bounds__(256)
    matmul(float *c, const float *a, const float *b, unsigned n, unsigned k)
{
  __shared__ __align__(16) float at[DEPTH][TILE];
  __shared__ __align__(16) float bt[DEPTH][TILE];
  const unsigned t = threadIdx.x, tx = t % 16, ty = t / 16;
  const unsigned row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  const unsigned ar = t / 2,
                 ak = t % 2 *
                      4; /* the four elements of A's tile that a thread loads */
  const unsigned bk = t / 32, bc = t % 32 * 4;
  float sum[EACH][EACH] = {};

  for (unsigned k0 = 0; k0 < k; k0 += DEPTH) {
    const float4 av = *(const float4 *)(a + (row0 + ar) * k + k0 + ak);
    const float4 bv = *(const float4 *)(b + (k0 + bk) * n + col0 + bc);

    at[ak + 0][ar] = av.x;
    at[ak + 1][ar] = av.y;
    at[ak + 2][ar] = av.z;
    at[ak + 3][ar] = av.w;
    *(float4 *)&bt[bk][bc] = bv;
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < DEPTH; kk++) {
      float ra[EACH], rb[EACH];

#pragma unroll
      for (int i = 0; i < EACH; i += 4) {
        *(float4 *)&ra[i] = *(const float4 *)&at[kk][ty * EACH + i];
        *(float4 *)&rb[i] = *(const float4 *)&bt[kk][tx * EACH + i];
      }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
          sum[i][j] = fmaf(ra[i], rb[j], sum[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < EACH; i++)
#pragma unroll
    for (int j = 0; j < EACH; j += 4) {
      float *out = c + (row0 + ty * EACH + i) * n + col0 + tx * EACH + j;

      *(float4 *)out =
          make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
    }
}
