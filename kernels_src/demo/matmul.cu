/* matmul.cu -- matrix product C = A B for row-major matrices of floats
 * (samples/README.md, rows B7, C1, E6).
 *
 * Idea: a block computes a tile of C with 128 x 128 elements. It stages tiles of A and B
 * in shared memory. Each thread computes 8 x 8 elements of C, so each value that the
 * thread loads from shared memory to registers is used 8 times.
 *
 * Launch: blocks of 256 threads, with a grid of (n / 128, m / 128). m and n are multiples
 *         of 128, and k is a multiple of 8. All addresses are aligned to 16 bytes.
 * Result: c receives m rows of n elements. Each element is a sum of k products, in
 *         increasing order of the index into A's columns. */
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
                      4; /* a thread loads four elements of the tile of A */
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
