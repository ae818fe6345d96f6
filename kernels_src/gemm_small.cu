/* gemm_small.cu -- batches of small matrix products, and products of a long matrix and a
 * small one.
 *
 * Problem: a product of 32 x 32 x 32 moves 12 bytes per 64 operations, so the memory
 * limits it. A block per matrix would wait for its loads, compute, store and end, and
 * few bytes would be in flight most of the time.
 *
 * Idea: a few persistent blocks per SM walk through the tiles of all products. A tile has
 * all columns of a product and up to KILN_TILE_M rows. cp.async copies the operands to a
 * ring of KILN_STAGES stages. The ring continues across tiles: the loads of the next tile
 * are in flight while a block computes and stores. If consecutive elements of an operand
 * follow the sum, there are two forms. Either its lines are copied as they are, and a
 * thread loads four positions of a row at a time, which needs the fewest copies. Or
 * single elements are copied to a turned tile (KILN_TURN). Then a thread loads four rows
 * of a position, which leaves the registers in an order that multiplies faster.
 *
 * Invariants: a stage is loaded again only after a barrier behind its last use, and one
 * barrier per stage is enough. Elements outside of the matrices become zeros in shared
 * memory, since 0 * NaN would not be 0. Their sums are not stored.
 *
 * Cost: each element of A and D is moved once, of B once per tile, or once per block if
 * all products share one B that fits a stage.
 *
 * Source: Abdelfattah, Haidar, Tomov and Dongarra, Performance, design and autotuning of
 * batched GEMM for GPUs, 2016.
 *
 * Parameters:
 *   KILN_T         type float  type of an element of A and B, f32
 *   KILN_C         type float  type of an element of C
 *   KILN_D         type float  type of an element of D
 *   KILN_READS_C   0           1 if beta is not 0
 *   KILN_POINTERS  0           bits 0 to 3: A, B, C, D are given by arrays of pointers
 *   KILN_SWAPPED   0           1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS    0           number of further inputs of the epilogue
 *   KILN_TILE_M    32          rows of D per tile
 *   KILN_TILE_N    32          columns of D per tile, at least n
 *   KILN_TILE_K    32          positions of the sum per stage
 *   KILN_THREAD_M  4           rows of D per thread
 *   KILN_THREAD_N  4           columns of D per thread
 *   KILN_LANES_M   8           lanes of a warp that have different rows
 *   KILN_WARPS_M   1           warps of a block that have different rows
 *   KILN_STAGES    2           stages in shared memory
 *   KILN_PER_SM    12          blocks per SM
 *   KILN_A_K       1           1 if consecutive elements of A belong to one row
 *   KILN_B_K       0           1 if consecutive elements of B belong to one column
 *   KILN_VECTOR_A  4           elements of A per copy
 *   KILN_VECTOR_B  4           elements of B per copy
 *   KILN_VECTOR_D  4           elements of D per store
 *   KILN_TURN      0           bit 0: tiles of A are turned, bit 1: of B
 *   KILN_WHOLE     0           bits 0 to 2: the tiles fill m, n, k
 *   KILN_ONE_B     0           1 if all tiles use the same B, and k is at most TILE_K
 *   KILN_ONCE      0           1 if D is stored with the policy "evict first"
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: the block size is TILE_M / THREAD_M * TILE_N / THREAD_N. Any number of blocks.
 *         Dynamic shared memory: the stages, each of A and then B; if ONE_B, B and then
 *         the stages of A.
 *         tiles   number of tiles of the call
 *         rows    tiles per product
 * Result: D. The same call gives the same bits. */
#include <kiln/params/gemm_small.cuh>

#define KILN_MAX_BLOCK                                                         \
  (KILN_TILE_M / KILN_THREAD_M * KILN_TILE_N / KILN_THREAD_N)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/gemm.cuh>
#include <kiln/gemm_stage.cuh>

namespace
{

enum : unsigned {
  threads = KILN_MAX_BLOCK,
  lanes_n = 32 / KILN_LANES_M,
  warps_n = threads / 32 / KILN_WARPS_M,
  quad = 4 /* elements of a 16-byte load, and positions per fragment */
};

static_assert(KILN_WARPS_M * KILN_LANES_M * KILN_THREAD_M == KILN_TILE_M,
              "KILN_TILE_M: warps * lanes * rows per thread");
static_assert(warps_n * lanes_n * KILN_THREAD_N == KILN_TILE_N,
              "KILN_TILE_N: warps * lanes * columns per thread");

/* The copies and the fragments of one operand. In memory it has lines of consecutive
 * elements. Its rows are rows of A, or columns of B.
 *   rows, own, lanes  rows per tile and per thread; lanes of a warp with different rows
 *   k_first           true if consecutive elements follow the sum
 *   vec               elements per copy; a copy lies inside or outside of the matrix
 *   whole             true if the rows of all tiles exist */
template <unsigned rows, unsigned own, unsigned lanes, bool k_first,
          unsigned vec, bool turn, bool whole>
struct operand_tile {
  enum : unsigned {
    along = k_first && !turn, /* a load has four positions of a row */
    whole_k = (KILN_WHOLE >> 2 & 1),
    whole_lines = k_first ? whole : whole_k,
    whole_width = k_first ? whole_k : whole,
    width = k_first ? KILN_TILE_K : rows,
    lines = k_first ? rows : KILN_TILE_K,
    pitch = along ? KILN_TILE_K + quad : rows + (turn ? quad : 0),
    bytes = (along ? rows : KILN_TILE_K) * pitch * 4,
    per_line = width / vec,
    step = threads / per_line, /* lines between a thread's copies */
    step_bytes = step * (turn ? 4 : pitch * 4),
    count = (lines + step - 1) / step
  };
  static_assert(threads % per_line == 0, "threads per line of copies");
  static_assert(!turn || (k_first && vec == 1), "turned tiles: elements");

  /* Starts the copies of a tile of n_lines lines of n_width elements. */
  static __device__ __forceinline__ void load(unsigned to, const float *from,
                                              unsigned long long leading,
                                              unsigned n_lines,
                                              unsigned n_width)
  {
    const unsigned line = threadIdx.x / per_line;
    const unsigned place = threadIdx.x % per_line * vec;
    const unsigned at =
        to + (turn ? place * pitch + line : line * pitch + place) * 4;
    const unsigned long long jump = step * leading;
    const float *p = from + line * leading + place;

#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const bool here = (whole_lines || line + i * step < n_lines) &&
                        (whole_width || place < n_width);

      if (lines % step == 0 || line + i * step < lines)
        kiln::gemm_async<vec * 4>(at + i * step_bytes, here ? p : from, here);
      p += jump;
    }
  }

  /* Returns the row number i of the thread whose number among the lanes with different
   * rows is `lane`. */
  static __device__ __forceinline__ unsigned row(unsigned lane, unsigned i)
  {
    return along ? i * lanes + lane
                 : (i / quad * lanes + lane) * quad + i % quad;
  }

  /* Returns the offset of that thread's first element in a stage, if the rows of its
   * warp start at row `first`. */
  static __device__ __forceinline__ unsigned offset(unsigned first,
                                                    unsigned lane)
  {
    return (along ? (first + lane) * pitch : first + lane * quad) * 4;
  }

  /* Loads fragment number q. `from` is the address of the thread's first element. */
  static __device__ __forceinline__ void fragment(unsigned from, unsigned q,
                                                  float (&to)[own][quad])
  {
    if (along) {
#pragma unroll
      for (unsigned i = 0; i < own; ++i) {
        const uint4 w =
            kiln::gemm_load_shared(from + (i * lanes * pitch + q * quad) * 4);

        memcpy(to[i], &w, sizeof to[i]);
      }
    } else {
#pragma unroll
      for (unsigned k = 0; k < quad; ++k)
#pragma unroll
        for (unsigned c = 0; c < own; c += quad) {
          const uint4 w = kiln::gemm_load_shared(
              from + ((q * quad + k) * pitch + c * lanes) * 4);

          to[c][k] = __uint_as_float(w.x);
          to[c + 1][k] = __uint_as_float(w.y);
          to[c + 2][k] = __uint_as_float(w.z);
          to[c + 3][k] = __uint_as_float(w.w);
        }
    }
  }
};

typedef operand_tile<KILN_TILE_M, KILN_THREAD_M, KILN_LANES_M, KILN_A_K,
                     KILN_VECTOR_A, KILN_TURN & 1, KILN_WHOLE & 1>
    tile_a;
typedef operand_tile<KILN_TILE_N, KILN_THREAD_N, lanes_n, KILN_B_K,
                     KILN_VECTOR_B, (KILN_TURN >> 1 & 1), (KILN_WHOLE >> 1 & 1)>
    tile_b;

enum : unsigned {
  stage_bytes = tile_a::bytes + (KILN_ONE_B ? 0 : tile_b::bytes),
  first_stage = KILN_ONE_B ? tile_b::bytes : 0
};

struct sums {
  float at[KILN_THREAD_M][KILN_THREAD_N];
};

struct fragments {
  float a[KILN_THREAD_M][quad], b[KILN_THREAD_N][quad];
};

/* A thread's position in the tile, and its lane's position in the warp. */
struct position {
  unsigned row, column, lane_row, lane_column;
};

/* The lanes of a quarter of a warp read few different vectors of A and B. */
__device__ __forceinline__ position my_position()
{
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  return {warp % KILN_WARPS_M * (KILN_LANES_M * KILN_THREAD_M),
          warp / KILN_WARPS_M * (lanes_n * KILN_THREAD_N),
          lane / (2 * lanes_n) * 2 + lane % 2, lane / 2 % lanes_n};
}

__device__ __forceinline__ unsigned least(unsigned long long a, unsigned b)
{
  return a < b ? static_cast<unsigned>(a) : b;
}

__device__ __forceinline__ unsigned next_stage(unsigned offset)
{
  return offset == (KILN_STAGES - 1) * stage_bytes ? 0 : offset + stage_bytes;
}

/* Starts the copies of a part of B with n_k positions of the sum. */
__device__ __forceinline__ void load_b(unsigned to, const float *b,
                                       const kiln::gemm_args &g, unsigned n_k)
{
  const unsigned n = least(g.n, KILN_TILE_N);

  tile_b::load(to, b, g.b.leading, KILN_B_K ? n : n_k, KILN_B_K ? n_k : n);
}

/* What a block loads next. */
struct loader {
  unsigned tile, stage;
  unsigned n_rows;      /* rows of the tile that exist */
  unsigned long long k; /* positions of the sum that are left; 0: a new tile */
  const float *a, *b;

  __device__ __forceinline__ void locate(const kiln::gemm_args &g,
                                         unsigned rows)
  {
    const unsigned batch = rows == 1 ? tile : tile / rows;
    const unsigned long long row =
        static_cast<unsigned long long>(tile - batch * rows) * KILN_TILE_M;

    a = kiln::gemm_matrix<kiln::gemm_pointers_a, const float>(g.a, batch) +
        row * (KILN_A_K ? g.a.leading : 1);
    b = kiln::gemm_matrix<kiln::gemm_pointers_b, const float>(g.b, batch);
    n_rows = least(g.m - row, KILN_TILE_M);
    k = g.k;
  }

  /* Starts the loads of the next stage, if there is one. */
  __device__ __forceinline__ void start(const kiln::gemm_args &g,
                                        unsigned tiles, unsigned rows,
                                        unsigned stages)
  {
    if (tile < tiles) {
      const unsigned to = stages + stage;
      unsigned n_k;

      if (k == 0)
        locate(g, rows);
      n_k = least(k, KILN_TILE_K);
      tile_a::load(to, a, g.a.leading, KILN_A_K ? n_rows : n_k,
                   KILN_A_K ? n_k : n_rows);
      if (!KILN_ONE_B)
        load_b(to + tile_a::bytes, b, g, n_k);
      k -= n_k;
      a += KILN_A_K ? KILN_TILE_K : KILN_TILE_K * g.a.leading;
      b += KILN_B_K ? KILN_TILE_K : KILN_TILE_K * g.b.leading;
      if (k == 0)
        tile = tiles - tile > gridDim.x ? tile + gridDim.x : tiles;
      stage = next_stage(stage);
    }
    kiln::gemm_async_commit();
  }
};

/* Waits for the oldest stage, for all threads. */
__device__ __forceinline__ void wait_for_stage()
{
  kiln::gemm_async_wait<KILN_STAGES - 2>();
  if (threads == 32)
    __syncwarp();
  else
    __syncthreads();
}

__device__ __forceinline__ void add_products(const fragments &f, sums &s)
{
#pragma unroll
  for (unsigned k = 0; k < quad; ++k)
#pragma unroll
    for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
      for (unsigned j = 0; j < KILN_THREAD_N; ++j) {
        const unsigned c = i % 2 ? KILN_THREAD_N - 1 - j : j;

        s.at[i][c] = fmaf(f.a[i][k], f.b[c][k], s.at[i][c]);
      }
}

__device__ __forceinline__ void load_fragments(unsigned a, unsigned b,
                                               unsigned q, fragments &f)
{
  tile_a::fragment(a, q, f.a);
  tile_b::fragment(b, q, f.b);
}

/* Adds the products of a stage with n_k positions. `a` and `b` are the addresses of the
 * thread's first elements. */
__device__ __forceinline__ void add_stage(unsigned a, unsigned b, unsigned n_k,
                                          sums &s)
{
  constexpr bool whole = (KILN_WHOLE & 4) != 0;
  constexpr unsigned most = KILN_TILE_K / quad;
  constexpr unsigned unrolled = whole ? most : 1;
  const unsigned n = whole ? most : (n_k + quad - 1) / quad;

#pragma unroll unrolled
  for (unsigned q = 0; q < n; ++q) {
    fragments f;

    load_fragments(a, b, q, f);
    add_products(f, s);
  }
}

/* Stores a thread's part of D. */
__device__ __forceinline__ void finish(const user::args &in,
                                       const kiln::gemm_args &g, unsigned tile,
                                       unsigned rows, const position &at,
                                       const sums &s)
{
  constexpr kiln::cached how =
      KILN_ONCE ? kiln::cached::once : kiln::cached::usual;
  const unsigned batch = rows == 1 ? tile : tile / rows;
  const unsigned long long first =
      static_cast<unsigned long long>(tile - batch * rows) * KILN_TILE_M +
      at.row;
  KILN_D *d = kiln::gemm_matrix<kiln::gemm_pointers_d, KILN_D>(g.d, batch);
  const KILN_C *c =
      KILN_READS_C
          ? kiln::gemm_matrix<kiln::gemm_pointers_c, const KILN_C>(g.c, batch)
          : nullptr;

#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i) {
    const unsigned long long row = first + tile_a::row(at.lane_row, i);

    if (!(KILN_WHOLE & 1) && row >= g.m)
      continue;
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; j += KILN_VECTOR_D) {
      const unsigned column = at.column + tile_b::row(at.lane_column, j);
      KILN_D out[KILN_VECTOR_D];

      if (!(KILN_WHOLE & 2) && column >= g.n)
        continue;
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR_D; ++e)
        out[e] = kiln::gemm_element(in, g, c, s.at[i][j + e], row, column + e,
                                    batch);
      kiln::store_raw<KILN_VECTOR_D, (KILN_VECTOR_D > 1), how>(
          d + row * g.d.leading + column, out);
    }
  }
}

/* Computes the sums of a tile. `stage` is the offset of its first stage, and becomes that
 * of the next tile. */
__device__ __forceinline__ void sum_tile(const kiln::gemm_args &g, loader &l,
                                         unsigned tiles, unsigned rows,
                                         unsigned shared, const position &at,
                                         unsigned &stage, sums &s)
{
  const unsigned stages = shared + first_stage;
  const unsigned a = stages + tile_a::offset(at.row, at.lane_row);
  const unsigned b = shared + (KILN_ONE_B ? 0 : tile_a::bytes) +
                     tile_b::offset(at.column, at.lane_column);
  unsigned long long k = g.k;

#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; ++j)
      s.at[i][j] = 0;
  do {
    const unsigned n_k = least(k, KILN_TILE_K);

    wait_for_stage();
    l.start(g, tiles, rows, stages);
    add_stage(a + stage, KILN_ONE_B ? b : b + stage, n_k, s);
    stage = next_stage(stage);
    k -= n_k;
  } while (k > 0);
}

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, KILN_PER_SM)
    gemm_small(const user::args in, const kiln::gemm_args g, unsigned tiles,
               unsigned rows)
{
  extern __shared__ uint4 memory[];
  const unsigned shared = kiln::gemm_shared(memory);
  const position at = my_position();
  loader l;
  unsigned stage = 0;

  l.tile = blockIdx.x;
  l.k = 0;
  l.stage = 0;
  if (KILN_ONE_B)
    load_b(shared,
           kiln::gemm_matrix<kiln::gemm_pointers_b, const float>(g.b, 0), g,
           least(g.k, KILN_TILE_K));
#pragma unroll
  for (unsigned i = 0; i + 1 < KILN_STAGES; ++i)
    l.start(g, tiles, rows, shared + first_stage);
  for (unsigned tile = blockIdx.x;
       tile<tiles; tile = tiles - tile> gridDim.x ? tile + gridDim.x : tiles) {
    sums s;

    sum_tile(g, l, tiles, rows, shared, at, stage, s);
    finish(in, g, tile, rows, at, s);
  }
}

#include <kiln/user_texts.cuh>
