/* gemm_sums.cuh -- the sums of a thread in matrix products by multiply-add instructions:
 * their place in a tile, the products, parts of sums in memory, and the store to D.
 *
 * Problem: a thread needs nearly all its registers for sums, and a multiply-add reads
 * three registers from two banks, each of which delivers one per cycle.
 *
 * Idea: a thread keeps KILN_THREAD_M x KILN_THREAD_N sums. For each position of the sum
 * it loads one fragment of A and one of B as 16-byte loads, which the lanes of a warp
 * share. Neighbouring multiply-adds have an operand in common, which the reuse cache
 * keeps. What only the start and the end of a kernel need is computed twice.
 *
 * A program defines the parameters of gemm_simt.cu that describe the tile, its division
 * and D, and KILN_HELPERS, the number of threads of a block before those with sums. */
#ifndef KILN_GEMM_SUMS_CUH
#define KILN_GEMM_SUMS_CUH

#include <kiln/gemm.cuh>
#include <kiln/gemm_stage.cuh>
#if KILN_SPLIT
#include <kiln/look_back.cuh>
#endif

namespace kiln
{

typedef gemm_staged<KILN_T>::type staged;

enum : unsigned {
  workers = KILN_TILE_M / KILN_THREAD_M * (KILN_TILE_N / KILN_THREAD_N),
  lanes_n = 32 / KILN_LANES_M,
  warps_n = workers / 32 / KILN_WARPS_M,
  chunk = 16 / sizeof(staged)
};

static_assert(KILN_WARPS_M * KILN_LANES_M * KILN_THREAD_M == KILN_TILE_M,
              "KILN_TILE_M: warps * lanes * rows per thread");
static_assert(warps_n * lanes_n * KILN_THREAD_N == KILN_TILE_N,
              "KILN_TILE_N: warps * lanes * columns per thread");
static_assert(KILN_THREAD_M % chunk == 0 && KILN_THREAD_N % chunk == 0,
              "KILN_THREAD_M, KILN_THREAD_N: multiples of a 16-byte load");

/* The number of the thread among those with sums, and of the block. The main loop needs
 * all registers, so what depends on these numbers is computed again after it; `volatile`
 * keeps the compiler from keeping it. */
__device__ __forceinline__ unsigned worker_number()
{
  unsigned v;

  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
  return v - KILN_HELPERS;
}

__device__ __forceinline__ index block_number()
{
  unsigned x, y;

  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(y));
  return static_cast<index>(y) * gridDim.x + x;
}

/* Waits for all threads with sums. */
__device__ __forceinline__ void sync_workers()
{
  if (KILN_HELPERS == 0)
    __syncthreads();
  else
    asm volatile("bar.sync 1, %0;" ::"n"(static_cast<unsigned>(workers))
                 : "memory");
}

/* A thread's position in the tile. Its rows are `row` + (c * lanes + 0) * chunk and the
 * chunk - 1 rows after that, for each chunk c of its rows. The lanes of a quarter of a
 * warp read few different chunks of A and B, so that shared memory serves them in the
 * least number of cycles. */
struct gemm_position {
  unsigned row, column;
};

__device__ __forceinline__ gemm_position my_position()
{
  const unsigned thread = worker_number();
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

/* ---- Products ------------------------------------------------------------ */

/* Loads 16 bytes of a fragment. */
template <class S>
__device__ __forceinline__ void load_chunk(unsigned from, S *to)
{
  const uint4 w = gemm_load_shared(from);

  memcpy(to, &w, sizeof w);
}
__device__ __forceinline__ void load_chunk(unsigned from, float *to)
{
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "r"(from)
               : "memory");
}

/* Loads a thread's elements of one position of the sum. */
template <unsigned n, unsigned lanes>
__device__ __forceinline__ void load_fragment(unsigned from, staged (&to)[n])
{
#pragma unroll
  for (unsigned c = 0; c < n / chunk; ++c)
    load_chunk(from + c * lanes * 16, to + c * chunk);
}

struct fragments {
  staged a[KILN_THREAD_M], b[KILN_THREAD_N];
};

struct gemm_sums {
  gemm_acc at[KILN_THREAD_M][KILN_THREAD_N];
};

__device__ __forceinline__ void clear(gemm_sums &s)
{
#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; ++j)
      s.at[i][j] = gemm_acc();
}

/* Loads a thread's elements of position k of a stage. `a` and `b` are the addresses of
 * its first elements, the pitches count elements. */
template <unsigned pitch_a, unsigned pitch_b>
__device__ __forceinline__ void load_fragments(unsigned a, unsigned b,
                                               unsigned k, fragments &f)
{
  load_fragment<KILN_THREAD_M, KILN_LANES_M>(a + k * pitch_a * sizeof(staged),
                                             f.a);
  load_fragment<KILN_THREAD_N, lanes_n>(b + k * pitch_b * sizeof(staged), f.b);
}

/* Adds the products of one position of the sum. Every second line runs backwards, so
 * that neighbouring instructions share an operand. The order decides how ptxas places
 * sums in the banks of the register file. Columns were faster where other threads copy,
 * rows where every thread does (128 x 256 on an H200: 52.1 instead of 49.7 TFLOP/s). */
__device__ __forceinline__ void add_products(const fragments &f, gemm_sums &s)
{
  constexpr bool down = KILN_HELPERS > 0;
  constexpr unsigned lines = down ? KILN_THREAD_N : KILN_THREAD_M;
  constexpr unsigned width = down ? KILN_THREAD_M : KILN_THREAD_N;

#pragma unroll
  for (unsigned l = 0; l < lines; ++l)
#pragma unroll
    for (unsigned e = 0; e < width; ++e) {
      const unsigned at = l % 2 ? width - 1 - e : e;
      const unsigned i = down ? at : l, j = down ? l : at;

      s.at[i][j] = gemm_multiply_add(f.a[i], f.b[j], s.at[i][j]);
    }
}

/* ---- Tiles --------------------------------------------------------------- */

/* How the tiles of a call are numbered: in groups of `group` rows of tiles, column by
 * column within a group, so that the blocks which run at the same time share rows of A
 * and columns of B in the L2 cache. The host computes it (kiln__gemm_tiling). It has the
 * reciprocals floor((2^32 - 1) / d) and floor((2^64 - 1) / d) of each divisor d, since a
 * division takes many instructions, and long to compile. */
struct gemm_tiling {
  unsigned rows;        /* rows of tiles */
  unsigned group, rest; /* rows per group, and in the last group */
  unsigned group_tiles; /* tiles per group */
  unsigned over_group, over_rest, over_group_tiles; /* reciprocals */
  unsigned padding;
  unsigned long long matrix, all; /* tiles of a matrix, and of the call */
  unsigned long long over_matrix, over_all;
};

/* Returns x / d. The product with the reciprocal is the quotient, or one less. */
__device__ __forceinline__ unsigned divide(unsigned x, unsigned d,
                                           unsigned reciprocal)
{
  const unsigned q = __umulhi(x, reciprocal);

  return x - q * d >= d ? q + 1 : q;
}
__device__ __forceinline__ unsigned long long
divide(unsigned long long x, unsigned long long d,
       unsigned long long reciprocal)
{
  const unsigned long long q = __umul64hi(x, reciprocal);

  return x - q * d >= d ? q + 1 : q;
}

/* Returns the place of a matrix's tile number `tile`. */
__device__ __forceinline__ gemm_place place_of(unsigned tile,
                                               const gemm_tiling &t)
{
  const unsigned number = divide(tile, t.group_tiles, t.over_group_tiles);
  const unsigned first = number * t.group;
  const unsigned in_group = tile - number * t.group_tiles;
  const bool last = t.rows - first < t.group;
  const unsigned high = last ? t.rest : t.group;
  const unsigned column =
      divide(in_group, high, last ? t.over_rest : t.over_group);

  return {first + in_group - column * high, column};
}

/* The tile of a block, or its part of the tile's sum. A tile that would exceed the
 * matrix starts earlier instead, unless KILN_CLAMP has the bit of its direction. */
struct gemm_work {
  index batch;
  index row, column;         /* first element of the tile */
  index own_row, own_column; /* first element that it stores */
  index tile;                /* number of the tile in the call */
  unsigned part;             /* part of the sum */
};

/* Sets the members that depend on the number of the tile. */
__device__ __forceinline__ void find_tile(gemm_work &w, const gemm_args &g,
                                          const gemm_tiling &t)
{
  gemm_place p;

  w.batch = divide(w.tile, t.matrix, t.over_matrix);
  p = place_of(static_cast<unsigned>(w.tile - w.batch * t.matrix), t);
  w.own_row = static_cast<index>(p.row) * KILN_TILE_M;
  w.own_column = static_cast<index>(p.column) * KILN_TILE_N;
  w.row = w.own_row;
  w.column = w.own_column;
  if (!(KILN_CLAMP & 1) && w.row + KILN_TILE_M > g.m)
    w.row = g.m - KILN_TILE_M;
  if (!(KILN_CLAMP & 2) && w.column + KILN_TILE_N > g.n)
    w.column = g.n - KILN_TILE_N;
}

__device__ __forceinline__ unsigned least(index a, unsigned b)
{
  return a < b ? static_cast<unsigned>(a) : b;
}

/* Sets up the copies of both operands, from position k of the sum on. */
template <class A, class B>
__device__ __forceinline__ void
open_copies(A &copy_a, B &copy_b, const gemm_args &g, const gemm_work &w,
            index k, unsigned shared)
{
  const KILN_T *a = gemm_matrix<gemm_pointers_a, const KILN_T>(g.a, w.batch);
  const KILN_T *b = gemm_matrix<gemm_pointers_b, const KILN_T>(g.b, w.batch);

  a += KILN_A_K ? w.row * g.a.leading + k : k * g.a.leading + w.row;
  b += KILN_B_K ? w.column * g.b.leading + k : k * g.b.leading + w.column;
  copy_a.open(a, g.a.leading, least(g.m - w.row, KILN_TILE_M), shared);
  copy_b.open(b, g.b.leading, least(g.n - w.column, KILN_TILE_N),
              shared + A::bytes);
}

/* Stores a thread's part of D. */
__device__ __forceinline__ void finish(const user::args &in, const gemm_args &g,
                                       const gemm_work &w, gemm_position at,
                                       const gemm_sums &s)
{
  KILN_D *d = gemm_matrix<gemm_pointers_d, KILN_D>(g.d, w.batch);
  const KILN_C *c =
      KILN_READS_C ? gemm_matrix<gemm_pointers_c, const KILN_C>(g.c, w.batch)
                   : nullptr;

#pragma unroll
  for (unsigned i = 0; i < KILN_THREAD_M; ++i) {
    const index row = w.row + at.row + offset_of<KILN_LANES_M>(i);

    if (row < w.own_row || row >= g.m)
      continue;
#pragma unroll
    for (unsigned j = 0; j < KILN_THREAD_N; j += KILN_VECTOR_D) {
      const index column = w.column + at.column + offset_of<lanes_n>(j);
      KILN_D out[KILN_VECTOR_D];

      if (column < w.own_column || column >= g.n)
        continue;
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR_D; ++e)
        out[e] =
            gemm_element(in, g, c, s.at[i][j + e], row, column + e, w.batch);
      store_raw<KILN_VECTOR_D, (KILN_VECTOR_D > 1)>(
          d + row * g.d.leading + column, out);
    }
  }
}

/* ---- Parts of sums ------------------------------------------------------- */

#if KILN_SPLIT
/* Where blocks leave parts of the sums of a tile, one slot per part. The descriptor of
 * a full slot has the tag `tag`. */
struct gemm_parts {
  gemm_acc *data;
  unsigned long long *words;
  unsigned tag;

  /* Address of a thread's first sum. The next one is `workers` further, so that
   * consecutive threads have consecutive sums. */
  __device__ __forceinline__ gemm_acc *first(index slot) const
  {
    return data + slot * (KILN_THREAD_M * KILN_THREAD_N * workers) +
           worker_number();
  }

  __device__ __forceinline__ void publish(const gemm_sums &s, index slot) const
  {
    gemm_acc *to = first(slot);

#pragma unroll
    for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
      for (unsigned j = 0; j < KILN_THREAD_N; ++j)
        to[(i * KILN_THREAD_N + j) * workers] = s.at[i][j];
    sync_workers();
    if (worker_number() == 0) {
      __threadfence();
      word_store(words + slot, static_cast<unsigned long long>(tag) << 32);
    }
  }

  /* Waits for the slots slot, slot + step and so on, `count` in all. Each thread
   * watches some of them. */
  __device__ __forceinline__ void wait(index slot, index step,
                                       unsigned count) const
  {
    for (unsigned p = worker_number(); p < count; p += workers) {
      while (word_load(words + slot + p * step) >> 32 != tag)
        tile_pause();
      __threadfence();
    }
    sync_workers();
  }

  /* Adds a part that another block has published. */
  __device__ __forceinline__ void add(gemm_sums &s, index slot) const
  {
    const gemm_acc *from = first(slot);

#pragma unroll
    for (unsigned i = 0; i < KILN_THREAD_M; ++i)
#pragma unroll
      for (unsigned j = 0; j < KILN_THREAD_N; ++j)
        s.at[i][j] += __ldcg(from + (i * KILN_THREAD_N + j) * workers);
  }
};
#endif

} // namespace kiln

#endif
