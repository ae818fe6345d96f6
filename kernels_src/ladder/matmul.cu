/* matmul.cu -- the steps from a naive to a fast product of two n x n matrices
 * (samples/README.md, rows B7, C1, E6). Each kernel has the same contract; each step
 * removes the limit of the step before it.
 *
 *   matmul_naive      one element per thread; adjacent threads have adjacent rows, so
 *                     each load and store of a warp touches 32 cache lines
 *   matmul_coalesced  adjacent threads have adjacent columns; 2 loads per product
 *   matmul_tiles      tiles of 16 x 16 in shared memory: 16 times fewer global loads,
 *                     but still 2 loads of shared memory per product
 *   matmul_registers  4 x 4 elements per thread: 8 loads per 16 products
 *   matmul_vectors    8 x 8 elements per thread, and loads of 16 bytes: 4 per 64 products
 *   matmul_async      two stages, filled by cp.async while the other one is used
 *                     (compute capability 8.0; before that, by ordinary copies)
 *   matmul_warps      the lanes of a warp form 4 x 8 instead of 2 x 16, so that a warp
 *                     loads 12 different vectors instead of 18
 *
 * Launch: see the enumerators below. The grid covers n x n by tiles; the block is flat.
 * Result: c = a * b in row-major order, for any n. */

enum : unsigned {
  tile = 16,
  side = 64,
  wide = 128,
  depth = 8,
  pitch = wide + 4
};

/* Returns an element, or 0 outside of the matrix. */
static __device__ __forceinline__ float element(const float *m, unsigned row,
                                                unsigned column, unsigned n)
{
  return row < n && column < n ? m[static_cast<size_t>(row) * n + column] : 0;
}

static __device__ __forceinline__ void
store(float *m, unsigned row, unsigned column, unsigned n, float v)
{
  if (row < n && column < n)
    m[static_cast<size_t>(row) * n + column] = v;
}

static __device__ __forceinline__ float
row_by_column(const float *a, const float *b, unsigned row, unsigned column,
              unsigned n)
{
  float sum = 0;

  if (row < n && column < n)
    for (unsigned k = 0; k < n; ++k)
      sum += a[static_cast<size_t>(row) * n + k] *
             b[static_cast<size_t>(k) * n + column];
  return sum;
}

extern "C" __global__ void __launch_bounds__(tile *tile)
    matmul_naive(const float *a, const float *b, float *c, unsigned n)
{
  const unsigned row = blockIdx.y * tile + threadIdx.x % tile;
  const unsigned column = blockIdx.x * tile + threadIdx.x / tile;

  store(c, row, column, n, row_by_column(a, b, row, column, n));
}

extern "C" __global__ void __launch_bounds__(tile *tile)
    matmul_coalesced(const float *a, const float *b, float *c, unsigned n)
{
  const unsigned row = blockIdx.y * tile + threadIdx.x / tile;
  const unsigned column = blockIdx.x * tile + threadIdx.x % tile;

  store(c, row, column, n, row_by_column(a, b, row, column, n));
}

extern "C" __global__ void __launch_bounds__(tile *tile)
    matmul_tiles(const float *a, const float *b, float *c, unsigned n)
{
  __shared__ float sa[tile][tile], sb[tile][tile];
  const unsigned y = threadIdx.x / tile, x = threadIdx.x % tile;
  const unsigned row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
  float sum = 0;

  for (unsigned k = 0; k < n; k += tile) {
    sa[y][x] = element(a, row, k + x, n);
    sb[y][x] = element(b, k + y, column, n);
    __syncthreads();
    for (unsigned i = 0; i < tile; ++i)
      sum += sa[y][i] * sb[i][x];
    __syncthreads();
  }
  store(c, row, column, n, sum);
}

/* A thread has rows y, y + 16, y + 32, y + 48 of the tile, and columns alike. */
extern "C" __global__ void __launch_bounds__(256)
    matmul_registers(const float *a, const float *b, float *c, unsigned n)
{
  __shared__ float sa[side][tile + 1], sb[tile][side];
  const unsigned y = threadIdx.x / 16, x = threadIdx.x % 16;
  const unsigned row = blockIdx.y * side, column = blockIdx.x * side;
  float sum[4][4] = {};

  for (unsigned k = 0; k < n; k += tile) {
    for (unsigned i = threadIdx.x; i < side * tile; i += 256) {
      sa[i / tile][i % tile] = element(a, row + i / tile, k + i % tile, n);
      sb[i / side][i % side] = element(b, k + i / side, column + i % side, n);
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < tile; ++i)
#pragma unroll
      for (unsigned r = 0; r < 4; ++r)
#pragma unroll
        for (unsigned s = 0; s < 4; ++s)
          sum[r][s] += sa[y + 16 * r][i] * sb[i][x + 16 * s];
    __syncthreads();
  }
#pragma unroll
  for (unsigned r = 0; r < 4; ++r)
#pragma unroll
    for (unsigned s = 0; s < 4; ++s)
      store(c, row + y + 16 * r, column + x + 16 * s, n, sum[r][s]);
}

/* ---- Steps with 8 x 8 elements per thread -------------------------------- */

/* One stage: a[k][row] and b[k][column], each line of 16-byte vectors. */
struct stage {
  alignas(16) float a[depth][pitch];
  alignas(16) float b[depth][pitch];
};

/* Copies an element, or stores 0 if it is outside of the matrix. */
template <bool async>
static __device__ __forceinline__ void
copy(float *to, const float *m, unsigned row, unsigned column, unsigned n)
{
#if __CUDA_ARCH__ >= 800
  if (async) {
    const bool inside = row < n && column < n;

    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(
                     inside ? m + static_cast<size_t>(row) * n + column : m)),
                 "r"(inside ? 4 : 0)
                 : "memory");
    return;
  }
#endif
  *to = element(m, row, column, n);
}

template <bool async>
static __device__ __forceinline__ void
fill(stage &s, const float *a, const float *b, unsigned row, unsigned column,
     unsigned k, unsigned n)
{
#pragma unroll
  for (unsigned i = threadIdx.x; i < wide * depth; i += 256) {
    copy<async>(&s.a[i % depth][i / depth], a, row + i / depth, k + i % depth,
                n);
    copy<async>(&s.b[i / wide][i % wide], b, k + i / wide, column + i % wide,
                n);
  }
#if __CUDA_ARCH__ >= 800
  if (async)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the copies of all threads. */
template <bool async> static __device__ __forceinline__ void wait()
{
#if __CUDA_ARCH__ >= 800
  if (async)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

/* Adds the products of a stage. The thread has rows y to y + 3 and y + far_y to y +
 * far_y + 3, and columns alike. */
static __device__ __forceinline__ void multiply(const stage &s, unsigned y,
                                                unsigned far_y, unsigned x,
                                                unsigned far_x,
                                                float (&sum)[8][8])
{
#pragma unroll
  for (unsigned k = 0; k < depth; ++k) {
    const float4 a0 = *reinterpret_cast<const float4 *>(&s.a[k][y]);
    const float4 a1 = *reinterpret_cast<const float4 *>(&s.a[k][y + far_y]);
    const float4 b0 = *reinterpret_cast<const float4 *>(&s.b[k][x]);
    const float4 b1 = *reinterpret_cast<const float4 *>(&s.b[k][x + far_x]);
    const float va[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
    const float vb[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};

#pragma unroll
    for (unsigned r = 0; r < 8; ++r)
#pragma unroll
      for (unsigned c = 0; c < 8; ++c)
        sum[r][c] += va[r] * vb[c];
  }
}

template <bool async, bool warps>
static __device__ __forceinline__ void product(const float *a, const float *b,
                                               float *c, unsigned n)
{
  __shared__ stage stages[async ? 2 : 1];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned row = blockIdx.y * wide, column = blockIdx.x * wide;
  /* Warps: tiles of 32 x 64, four rows of them. Otherwise: 16 x 16 threads. */
  const unsigned far_y = warps ? 16 : 64, far_x = warps ? 32 : 64;
  const unsigned y =
      warps ? warp % 4 * 32 + lane / 8 * 4 : threadIdx.x / 16 * 4;
  const unsigned x =
      warps ? warp / 4 * 64 + lane % 8 * 4 : threadIdx.x % 16 * 4;
  float sum[8][8] = {};

  if (async)
    fill<true>(stages[0], a, b, row, column, 0, n);
  for (unsigned k = 0, now = 0; k < n; k += depth, now ^= async) {
    if (!async)
      fill<false>(stages[0], a, b, row, column, k, n);
    wait<async>();
    if (async && k + depth < n)
      fill<true>(stages[now ^ 1], a, b, row, column, k + depth, n);
    multiply(stages[now], y, far_y, x, far_x, sum);
    if (!async)
      __syncthreads();
  }
#pragma unroll
  for (unsigned r = 0; r < 8; ++r)
#pragma unroll
    for (unsigned s = 0; s < 8; ++s)
      store(c, row + y + r / 4 * far_y + r % 4,
            column + x + s / 4 * far_x + s % 4, n, sum[r][s]);
}

extern "C" __global__ void __launch_bounds__(256)
    matmul_vectors(const float *a, const float *b, float *c, unsigned n)
{
  product<false, false>(a, b, c, n);
}

extern "C" __global__ void __launch_bounds__(256)
    matmul_async(const float *a, const float *b, float *c, unsigned n)
{
  product<true, false>(a, b, c, n);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matmul_warps(const float *a, const float *b, float *c, unsigned n)
{
  product<true, true>(a, b, c, n);
}
