/* gemm_simt.cu -- matrix products by ordinary multiply-add instructions.
 *
 * Problem: D = epilogue(alpha * A * B + beta * C), where A is m x k and B is k x n. A
 * product of two elements needs two loads, but an SM computes 128 products per cycle
 * and loads 32 elements per cycle from shared memory, and far fewer from the L2 cache.
 *
 * Idea: each element is used many times at each level of the memory. A block computes a
 * tile of KILN_TILE_M x KILN_TILE_N elements of D. It moves tiles of A and B of depth
 * KILN_TILE_K to shared memory, KILN_STAGES of them in flight. Each thread keeps
 * KILN_THREAD_M x KILN_THREAD_N sums in registers. For each position of the sum it
 * loads one fragment of A and one of B, as 16-byte loads that the lanes of a warp
 * share. The fragments of the next position are loaded while the products of this
 * position are computed.
 *
 * Small grids: KILN_SPLIT divides the sum among several blocks. Each but the last
 * writes its sums to temporary storage and sets a tile descriptor. The last block waits
 * for the descriptors, adds their sums to its own in a fixed order, and applies the
 * epilogue.
 *
 * Invariants: a tile that would exceed the matrix starts earlier instead, so that no
 * load needs a bound; only its own rows and columns are stored. One barrier per tile is
 * enough: all fragments of a stage have been loaded before the barrier after which the
 * stage is overwritten. A block waits only for blocks of a lower index.
 *
 * Cost: 2 m n k operations; (1 / THREAD_M + 1 / THREAD_N) / 4 loads of shared memory
 * per product; each element of A is read n / TILE_N times, of B m / TILE_M times.
 *
 * Sources: Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, 2008;
 * warp tiles and fragments as in CUTLASS (Kerr, Merrill, Demouth, Tran, 2017).
 *
 * Parameters:
 *   KILN_T         type float  type of an element of A and B
 *   KILN_C         type float  type of an element of C
 *   KILN_D         type float  type of an element of D
 *   KILN_READS_C   0           1 if beta is not 0
 *   KILN_POINTERS  0           bits 0 to 3: A, B, C, D are given by arrays of pointers
 *   KILN_SWAPPED   0           1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS    0           number of further inputs of the epilogue
 *   KILN_TILE_M    128         rows of D per block
 *   KILN_TILE_N    128         columns of D per block
 *   KILN_TILE_K    8           positions of the sum per stage
 *   KILN_THREAD_M  8           rows of D per thread
 *   KILN_THREAD_N  8           columns of D per thread
 *   KILN_LANES_M   4           lanes of a warp that have different rows
 *   KILN_WARPS_M   4           warps of a block that have different rows
 *   KILN_STAGES    2           tiles in shared memory
 *   KILN_PER_SM    1           minimum number of blocks per SM, which limits registers
 *   KILN_A_K       1           1 if consecutive elements of A belong to one row
 *   KILN_B_K       0           1 if consecutive elements of B belong to one column
 *   KILN_VECTOR_A  4           elements of A per load
 *   KILN_VECTOR_B  4           elements of B per load
 *   KILN_VECTOR_D  4           elements of D per store
 *   KILN_ASYNC     0           bit 0: A is copied by cp.async, bit 1: B is
 *   KILN_CLAMP     0           bit 0: m may be less than TILE_M, bit 1: n, TILE_N
 *   KILN_SPLIT     0           1 if several blocks share a sum
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: the block size is TILE_M / THREAD_M * TILE_N / THREAD_N. Blocks are numbered
 *         by x, then y: tiles of a matrix first, then matrices, then parts of the sum.
 *         Dynamic shared memory: the stages of A, then those of B.
 *         splits  number of blocks that share a sum
 *         group   rows of tiles per group, see gemm_order()
 *         parts   temporary storage: sums of all tiles for each part but the last
 *         words   one tile descriptor per block whose part is not the last
 * Result: D. The same launch gives the same bits. */
#include <kiln/params/gemm_simt.cuh>

#define KILN_MAX_BLOCK                                                         \
  (KILN_TILE_M / KILN_THREAD_M * KILN_TILE_N / KILN_THREAD_N)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/gemm.cuh>
#include <kiln/gemm_stage.cuh>
#include <kiln/look_back.cuh>

namespace
{

typedef kiln::gemm_staged<KILN_T>::type staged;

enum : unsigned {
  threads = KILN_MAX_BLOCK,
  lanes_n = 32 / KILN_LANES_M,
  warps_n = threads / 32 / KILN_WARPS_M,
  chunk = 16 / sizeof(staged),
  most_depth = 1u << 30 /* positions of a sum whose tiles 32 bits count */
};

static_assert(KILN_WARPS_M * KILN_LANES_M * KILN_THREAD_M == KILN_TILE_M,
              "KILN_TILE_M: warps * lanes * rows per thread");
static_assert(warps_n * lanes_n * KILN_THREAD_N == KILN_TILE_N,
              "KILN_TILE_N: warps * lanes * columns per thread");
static_assert(KILN_THREAD_M % chunk == 0 && KILN_THREAD_N % chunk == 0,
              "KILN_THREAD_M, KILN_THREAD_N: multiples of a 16-byte load");

typedef kiln::gemm_copy<KILN_T, KILN_TILE_M, KILN_TILE_K, threads, KILN_A_K,
                        KILN_VECTOR_A, KILN_ASYNC & 1, KILN_CLAMP & 1>
    copy_a;
typedef kiln::gemm_copy<KILN_T, KILN_TILE_N, KILN_TILE_K, threads, KILN_B_K,
                        KILN_VECTOR_B, (KILN_ASYNC >> 1 & 1),
                        (KILN_CLAMP >> 1 & 1)>
    copy_b;

/* The number of the thread and of the block. The main loop needs all registers, so
 * what depends on these numbers is computed again after it; `volatile` keeps the
 * compiler from keeping it. */
__device__ __forceinline__ unsigned thread_number()
{
  unsigned v;

  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
  return v;
}

__device__ __forceinline__ unsigned long long block_number()
{
  unsigned x, y;

  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(y));
  return static_cast<unsigned long long>(y) * gridDim.x + x;
}

/* A thread's position in the tile. Its rows are `row` + (c * lanes + 0) * chunk and the
 * chunk - 1 rows after that, for each chunk c of its rows. The lanes of a quarter of a
 * warp read few different chunks of A and B, so that shared memory serves them in the
 * least number of cycles. */
struct position {
  unsigned row, column;
};

__device__ __forceinline__ position my_position()
{
  const unsigned thread = thread_number();
  const unsigned lane = thread % 32, warp = thread / 32;
  const unsigned lane_row = lane / (2 * lanes_n) * 2 + lane % 2;
  const unsigned lane_column = lane / 2 % lanes_n;

  return {
      warp % KILN_WARPS_M * (KILN_LANES_M * KILN_THREAD_M) + lane_row * chunk,
      warp / KILN_WARPS_M * (lanes_n * KILN_THREAD_N) + lane_column * chunk};
}

/* Returns the offset of a thread's row or column number i from its first one. */
template <unsigned lanes>
__device__ __forceinline__ constexpr unsigned offset_of(unsigned i)
{
  return i / chunk * lanes * chunk + i % chunk;
}

/* Loads a thread's elements of one position of the sum. */
template <unsigned n, unsigned lanes>
__device__ __forceinline__ void load_fragment(unsigned from, staged (&to)[n])
{
#pragma unroll
  for (unsigned c = 0; c < n / chunk; ++c) {
    const uint4 w = kiln::gemm_load_shared(from + c * lanes * 16);

    memcpy(to + c * chunk, &w, sizeof w);
  }
}

struct fragments {
  staged a[KILN_THREAD_M], b[KILN_THREAD_N];
};

struct sums {
  kiln::gemm_acc at[KILN_THREAD_M][KILN_THREAD_N];
};

__device__ __forceinline__ void add_products(const fragments &f, sums &s)
{
#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; ++j) {
      /* Every second row runs backwards, so that neighbouring instructions share an
       * operand. */
      const unsigned c = i % 2 ? KILN_THREAD_N - 1 - j : j;

      s.at[i][c] = kiln::gemm_multiply_add(f.a[i], f.b[c], s.at[i][c]);
    }
}

/* Bytes of a stage: a tile of A, then a tile of B. */
enum : unsigned { stage_bytes = copy_a::bytes + copy_b::bytes };

/* The copies of both operands. */
struct operands {
  copy_a a;
  copy_b b;

  /* Starts the copies of the next tile. It has `depth` positions if `ragged`. If it
   * does not exist, the stage gets any values. */
  template <bool ragged>
  __device__ __forceinline__ void load(unsigned stage, unsigned depth,
                                       bool exists)
  {
    a.template load<ragged>(stage, depth, exists);
    b.template load<ragged>(stage, depth, exists);
    kiln::gemm_async_commit();
  }
  __device__ __forceinline__ void store(unsigned stage) const
  {
    a.store(stage);
    b.store(stage);
  }
};

/* Loads a thread's elements of position k of a stage. `a` and `b` are the addresses of
 * its first elements. */
__device__ __forceinline__ void load_fragments(unsigned a, unsigned b,
                                               unsigned k, fragments &f)
{
  load_fragment<KILN_THREAD_M, KILN_LANES_M>(
      a + k * copy_a::pitch * sizeof(staged), f.a);
  load_fragment<KILN_THREAD_N, lanes_n>(b + k * copy_b::pitch * sizeof(staged),
                                        f.b);
}

__device__ __forceinline__ unsigned next_stage(unsigned offset)
{
  return offset == (KILN_STAGES - 1) * stage_bytes ? 0 : offset + stage_bytes;
}

/* Waits for the oldest tile in flight, for all threads. */
__device__ __forceinline__ void wait_for_tile()
{
  if (KILN_ASYNC != 0)
    kiln::gemm_async_wait<KILN_STAGES - 2>();
  __syncthreads();
}

/* Computes the sums over the next `depth` positions, 1 to 2^30. `a` and `b` are the
 * addresses of the thread's first elements in the first stage. The first tile has the
 * positions that do not fill a tile, so that all others are complete. Tiles beyond the
 * last one are not read, but their stages are filled as if they were, which keeps
 * branches out of the loop. */
__device__ __forceinline__ void
sum_products(operands &o, unsigned a, unsigned b, unsigned depth, sums &s)
{
  const unsigned head = (depth - 1) % KILN_TILE_K + 1;
  int to_load = static_cast<int>((depth - head) / KILN_TILE_K);
  unsigned read = 0, written = (KILN_STAGES - 1) * stage_bytes;
  fragments f[2];

  o.load<true>(0, head, true);
  o.store(0);
#pragma unroll
  for (unsigned t = 1; t + 1 < KILN_STAGES; ++t, --to_load) {
    o.load<false>(t * stage_bytes, 0, to_load > 0);
    o.store(t * stage_bytes);
  }
  wait_for_tile();
  load_fragments(a, b, 0, f[0]);
  for (; to_load > -static_cast<int>(KILN_STAGES - 1); --to_load)
#pragma unroll
    for (unsigned k = 0; k < KILN_TILE_K; ++k) {
      if (k + 1 == KILN_TILE_K) {
        o.store(written);
        read = next_stage(read);
        written = next_stage(written);
        wait_for_tile();
      }
      load_fragments(a + read, b + read, (k + 1) % KILN_TILE_K, f[(k + 1) % 2]);
      if (k == 0)
        o.load<false>(written, 0, to_load > 0);
      add_products(f[k % 2], s);
    }
  if (KILN_ASYNC != 0)
    kiln::gemm_async_wait<0>();
  __syncthreads();
}

/* The block's part of the result. */
struct work {
  unsigned long long batch;
  unsigned long long row, column;         /* first element of the tile */
  unsigned long long own_row, own_column; /* first element that it stores */
  unsigned long long tile,
      tiles;     /* number of the tile, and of tiles, in the call */
  unsigned part; /* part of the sum */
};

__device__ __forceinline__ bool find_work(work &w, const kiln::gemm_args &g,
                                          unsigned splits, unsigned group)
{
  const unsigned long long block = block_number();
  const unsigned rows =
      static_cast<unsigned>((g.m + KILN_TILE_M - 1) / KILN_TILE_M);
  const unsigned columns =
      static_cast<unsigned>((g.n + KILN_TILE_N - 1) / KILN_TILE_N);
  const unsigned long long per_matrix =
      static_cast<unsigned long long>(rows) * columns;
  kiln::gemm_place p;

  w.tiles = per_matrix * g.batch;
  w.part = KILN_SPLIT ? static_cast<unsigned>(block / w.tiles) : 0;
  w.tile = block - w.part * w.tiles;
  /* Divisions take longer than a small product. */
  w.batch = per_matrix == 1 ? w.tile : g.batch == 1 ? 0 : w.tile / per_matrix;
  p = per_matrix == 1 ? kiln::gemm_place{0, 0}
                      : kiln::gemm_order(static_cast<unsigned>(
                                             w.tile - w.batch * per_matrix),
                                         rows, columns, group);
  w.own_row = static_cast<unsigned long long>(p.row) * KILN_TILE_M;
  w.own_column = static_cast<unsigned long long>(p.column) * KILN_TILE_N;
  w.row = w.own_row;
  w.column = w.own_column;
  if (!(KILN_CLAMP & 1) && w.row + KILN_TILE_M > g.m)
    w.row = g.m - KILN_TILE_M;
  if (!(KILN_CLAMP & 2) && w.column + KILN_TILE_N > g.n)
    w.column = g.n - KILN_TILE_N;
  return w.part < splits && w.tile < w.tiles;
}

__device__ __forceinline__ unsigned least(unsigned long long a, unsigned b)
{
  return a < b ? static_cast<unsigned>(a) : b;
}

/* Sets up the copies of both operands, from position k of the sum on. */
__device__ __forceinline__ void open(operands &o, const kiln::gemm_args &g,
                                     const work &w, unsigned long long k,
                                     unsigned shared)
{
  const KILN_T *a =
      kiln::gemm_matrix<kiln::gemm_pointers_a, const KILN_T>(g.a, w.batch);
  const KILN_T *b =
      kiln::gemm_matrix<kiln::gemm_pointers_b, const KILN_T>(g.b, w.batch);

  a += KILN_A_K ? w.row * g.a.leading + k : k * g.a.leading + w.row;
  b += KILN_B_K ? w.column * g.b.leading + k : k * g.b.leading + w.column;
  o.a.open(a, g.a.leading, least(g.m - w.row, KILN_TILE_M), shared);
  o.b.open(b, g.b.leading, least(g.n - w.column, KILN_TILE_N),
           shared + copy_a::bytes);
}

/* Computes the block's part of the sums. */
__device__ __forceinline__ void sum_part(const kiln::gemm_args &g,
                                         const work &w, unsigned splits,
                                         unsigned shared, sums &s)
{
  const unsigned long long steps = (g.k + KILN_TILE_K - 1) / KILN_TILE_K;
  const position at = my_position();
  unsigned long long from = 0, to = g.k;
  operands o;

  if (KILN_SPLIT) {
    from = steps * w.part / splits * KILN_TILE_K;
    if (w.part + 1 < splits)
      to = steps * (w.part + 1) / splits * KILN_TILE_K;
  }
  open(o, g, w, from, shared);
  for (; from < to; from += most_depth)
    sum_products(o, shared + at.row * sizeof(staged),
                 shared + copy_a::bytes + at.column * sizeof(staged),
                 least(to - from, most_depth), s);
}

/* Stores a thread's part of D. */
__device__ __forceinline__ void finish(const user::args &in,
                                       const kiln::gemm_args &g, const work &w,
                                       position at, const sums &s)
{
  KILN_D *d = kiln::gemm_matrix<kiln::gemm_pointers_d, KILN_D>(g.d, w.batch);
  const KILN_C *c =
      KILN_READS_C
          ? kiln::gemm_matrix<kiln::gemm_pointers_c, const KILN_C>(g.c, w.batch)
          : nullptr;

#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i) {
    const unsigned long long row = w.row + at.row + offset_of<KILN_LANES_M>(i);

    if (row < w.own_row || row >= g.m)
      continue;
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; j += KILN_VECTOR_D) {
      const unsigned long long column =
          w.column + at.column + offset_of<lanes_n>(j);
      KILN_D out[KILN_VECTOR_D];

      if (column < w.own_column || column >= g.n)
        continue;
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR_D; ++e)
        out[e] = kiln::gemm_element(in, g, c, s.at[i][j + e], row, column + e,
                                    w.batch);
      kiln::store_raw<KILN_VECTOR_D, (KILN_VECTOR_D > 1)>(
          d + row * g.d.leading + column, out);
    }
  }
}

#if KILN_SPLIT
/* Address of a thread's sum number j (of a part of a tile). Consecutive threads have
 * consecutive sums. */
__device__ __forceinline__ kiln::gemm_acc *
part_of(kiln::gemm_acc *parts, unsigned long long slot, unsigned j)
{
  return parts + (slot * (KILN_THREAD_M * KILN_THREAD_N) + j) * threads +
         threadIdx.x;
}

__device__ __forceinline__ void publish(const sums &s, kiln::gemm_acc *parts,
                                        unsigned long long *words,
                                        unsigned long long slot, unsigned tag)
{
#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; ++j)
      *part_of(parts, slot, i * KILN_THREAD_N + j) = s.at[i][j];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    kiln::word_store(words + slot, static_cast<unsigned long long>(tag) << 32);
  }
}

/* Waits until the other parts of the tile's sum are published. Thread p watches the
 * descriptors p, p + threads, and so on. */
__device__ __forceinline__ void wait_for_parts(const unsigned long long *words,
                                               const work &w, unsigned splits,
                                               unsigned tag)
{
  for (unsigned p = threadIdx.x; p + 1 < splits; p += threads) {
    while (kiln::word_load(words + p * w.tiles + w.tile) >> 32 != tag)
      kiln::tile_pause();
    __threadfence();
  }
  __syncthreads();
}

/* Adds the parts of the sum that other blocks have computed, in their order. */
__device__ __forceinline__ void add_parts(sums &s, kiln::gemm_acc *parts,
                                          const work &w, unsigned splits)
{
  for (unsigned p = 0; p + 1 < splits; ++p)
#pragma unroll
    for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
      for (unsigned j = 0; j < KILN_THREAD_N; ++j)
        s.at[i][j] +=
            __ldcg(part_of(parts, p * w.tiles + w.tile, i * KILN_THREAD_N + j));
}
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, KILN_PER_SM)
    gemm_simt(const user::args in, const kiln::gemm_args g, unsigned splits,
              unsigned group, kiln::gemm_acc *parts, unsigned long long *words,
              unsigned epoch)
{
  extern __shared__ uint4 shared[];
  sums s;
  work w;

  if (!find_work(w, g, splits, group))
    return;
#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; ++j)
      s.at[i][j] = kiln::gemm_acc();
  sum_part(g, w, splits, kiln::gemm_shared(shared), s);
  find_work(w, g, splits, group);
#if KILN_SPLIT
  {
    const unsigned tag = kiln::descriptor_tag(epoch, kiln::status_partial);

    if (w.part + 1 < splits) {
      publish(s, parts, words, w.part * w.tiles + w.tile, tag);
      return;
    }
    wait_for_parts(words, w, splits, tag);
    add_parts(s, parts, w, splits);
  }
#else
  (void)parts;
  (void)words;
  (void)epoch;
#endif
  finish(in, g, w, my_position(), s);
}

#include <kiln/user_texts.cuh>
