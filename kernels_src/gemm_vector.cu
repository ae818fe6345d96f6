/* gemm_vector.cu -- products of a matrix and a few vectors.
 *
 * Problem: in a product of an 8192 x 8192 matrix and a vector each element of the matrix
 * is used once, so the time is that of reading the matrix. Tiles in shared memory only
 * add barriers and leave most of a tile unused.
 *
 * Idea: the matrix goes from memory to registers in 16-byte loads, KILN_UNROLL or
 * twice as many of them in flight per thread. The vectors come from the L1 cache. There
 * are two forms. If consecutive elements of the matrix follow the sum (KILN_ALONG), the
 * lanes of a warp share the sums of KILN_LINES lines and add their parts by shuffles.
 * Otherwise each lane has the sums of the consecutive results that one load contains,
 * and the warps of a block, and groups of KILN_LANES lanes in a warp, share the
 * positions of the sum. They add their parts by shuffles and in shared memory.
 *
 * Small grids: `splits` blocks share a sum. Each but the last writes its sums to temporary
 * storage and sets a tile descriptor. The last block waits for the descriptors and adds
 * all in a fixed order.
 *
 * Invariants: a block waits only for blocks of a lower index. No access is outside of the
 * matrices.
 *
 * Cost: one read of the matrix. Calls that repeat find the first `kept` positions or
 * lines in the L2 cache, since the rest is loaded with the policy "evict first".
 *
 * Source: Sorensen, High-performance matrix-vector multiplication on the GPU, 2011.
 *
 * Parameters:
 *   KILN_T         type float  type of an element of A and B
 *   KILN_C         type float  type of an element of C
 *   KILN_D         type float  type of an element of D
 *   KILN_READS_C   0           1 if beta is not 0
 *   KILN_POINTERS  0           bits 0 to 3: A, B, C, D are given by arrays of pointers
 *   KILN_SWAPPED   0           1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS    0           number of further inputs of the epilogue
 *   KILN_THIN      1           number of vectors, 1 to 8
 *   KILN_ROWS      1           1 if the vectors are rows of A, 0 if columns of B
 *   KILN_ALONG     0           1 if consecutive elements of the matrix follow the sum
 *   KILN_VECTOR    4           elements of the matrix per load
 *   KILN_X_K       1           1 if consecutive elements of a vector follow the sum
 *   KILN_VECTOR_X  4           elements of a vector per load; 1 if X_K is 0
 *   KILN_WARPS     8           warps per block
 *   KILN_LANES     16          lanes of a warp with different results (unless ALONG)
 *   KILN_PER_SM    2           minimum number of blocks per SM, which limits registers
 *   KILN_UNROLL    8           loads of the matrix per round and thread
 *   KILN_LINES     4           lines per warp (if ALONG)
 *   KILN_KEEP      0           1 if a part of the matrix is to stay in the L2 cache
 *   KILN_SPLIT     0           1 if several blocks share a sum
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: the block size is 32 * WARPS. Blocks are numbered by x, then y: tiles of a
 *         product first, then products, then parts of the sum.
 *         splits  number of blocks that share a sum
 *         kept    positions of the sum, or lines, that stay in the L2 cache
 *         parts   temporary storage: sums of all tiles for each part but the last
 *         words   one tile descriptor per block whose part is not the last
 * Result: D. The same launch gives the same bits. */
#include <kiln/params/gemm_vector.cuh>

#define KILN_MAX_BLOCK (32 * KILN_WARPS)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/gemm.cuh>
#include <kiln/gemm_stage.cuh>
#include <kiln/look_back.cuh>

namespace
{

typedef kiln::gemm_staged<KILN_T>::type wide;
typedef kiln::gemm_acc acc;

enum : unsigned {
  threads = KILN_MAX_BLOCK,
  /* Results per vector, of a block and of a thread. */
  tile = KILN_ALONG ? KILN_WARPS * KILN_LINES : KILN_LANES * KILN_VECTOR,
  own = KILN_ALONG ? KILN_LINES : KILN_VECTOR,
  /* Positions of the sum between a thread's loads of a line. */
  step = 32 * KILN_VECTOR
};

struct sums {
  acc at[KILN_THIN][own];
};

/* The matrix and the vectors of a product. */
struct factors {
  const KILN_T *matrix, *x;
  unsigned long long leading; /* of the matrix */
  unsigned long long next;    /* elements between vectors */
  unsigned long long x_k;     /* elements between positions of a vector */
};

/* The block's part of the result. */
struct work {
  unsigned long long batch, first; /* first result of the tile */
  unsigned long long size;         /* number of results per vector */
  unsigned long long from, to;     /* positions of the sum */
  unsigned long long tile, tiles;
  unsigned part;
};

__device__ __forceinline__ bool find_work(work &w, const kiln::gemm_args &g,
                                          unsigned splits)
{
  const unsigned long long block =
      static_cast<unsigned long long>(blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned long long per_product, each;

  w.size = KILN_ROWS ? g.n : g.m;
  per_product = (w.size + tile - 1) / tile;
  w.tiles = per_product * g.batch;
  w.part = KILN_SPLIT ? static_cast<unsigned>(block / w.tiles) : 0;
  w.tile = block - w.part * w.tiles;
  w.batch = g.batch == 1 ? 0 : w.tile / per_product;
  w.first = (w.tile - w.batch * per_product) * tile;
  each = KILN_SPLIT ? (g.k + splits - 1) / splits : g.k;
  each = (each + 31) / 32 * 32;
  w.from = w.part * each < g.k ? w.part * each : g.k;
  w.to = g.k - w.from < each ? g.k : w.from + each;
  return w.part < splits && w.tile < w.tiles;
}

__device__ __forceinline__ factors find_factors(const kiln::gemm_args &g,
                                                unsigned long long batch)
{
  const KILN_T *a =
      kiln::gemm_matrix<kiln::gemm_pointers_a, const KILN_T>(g.a, batch);
  const KILN_T *b =
      kiln::gemm_matrix<kiln::gemm_pointers_b, const KILN_T>(g.b, batch);
  const unsigned long long leading = KILN_ROWS ? g.a.leading : g.b.leading;

#if KILN_ROWS
  return {b, a, g.b.leading, KILN_X_K ? leading : 1, KILN_X_K ? 1 : leading};
#else
  return {a, b, g.a.leading, KILN_X_K ? leading : 1, KILN_X_K ? 1 : leading};
#endif
}

/* Loads elements of the matrix. */
template <bool kept>
__device__ __forceinline__ void load_matrix(const KILN_T *from,
                                            KILN_T (&to)[KILN_VECTOR])
{
  constexpr kiln::cached how = !KILN_KEEP ? kiln::cached::usual
                               : kept     ? kiln::cached::kept
                                          : kiln::cached::swept;

  kiln::load_raw<KILN_VECTOR, (KILN_VECTOR > 1), how>(from, to);
}

/* Loads n consecutive positions of a vector. */
template <unsigned n>
__device__ __forceinline__ void load_x(const factors &f, unsigned t,
                                       unsigned long long k, wide (&to)[n])
{
  const KILN_T *from = f.x + t * f.next + k * f.x_k;
  constexpr unsigned each = n < KILN_VECTOR_X ? n : KILN_VECTOR_X;

#pragma unroll
  for (unsigned i = 0; i < n; i += each) {
    KILN_T raw[each];

    kiln::load_raw<each, (each > 1)>(from + i * f.x_k, raw);
#pragma unroll
    for (unsigned e = 0; e < each; ++e)
      to[i + e] = kiln::widen(raw[e]);
  }
}

#if !KILN_ALONG
/* A thread's elements of n positions of the sum. */
template <unsigned n> struct elements {
  KILN_T at[n][KILN_VECTOR];
};

template <unsigned n>
__device__ __forceinline__ void
load_positions(const factors &f, const KILN_T *matrix, unsigned long long k,
               unsigned long long kept, elements<n> &to)
{
  if (KILN_KEEP && k < kept)
#pragma unroll
    for (unsigned i = 0; i < n; ++i)
      load_matrix<true>(matrix + (k + i) * f.leading, to.at[i]);
  else
#pragma unroll
    for (unsigned i = 0; i < n; ++i)
      load_matrix<false>(matrix + (k + i) * f.leading, to.at[i]);
}

template <unsigned n>
__device__ __forceinline__ void add_positions(const factors &f,
                                              const elements<n> &m,
                                              unsigned long long k, sums &s)
{
#pragma unroll
  for (unsigned t = 0; t < KILN_THIN; ++t) {
    wide x[n];

    load_x(f, t, k, x);
#pragma unroll
    for (unsigned i = 0; i < n; ++i)
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        s.at[t][e] =
            kiln::gemm_multiply_add(x[i], kiln::widen(m.at[i][e]), s.at[t][e]);
  }
}

/* A thread's walk through its positions of the sum, `each` at a time. Two sets of
 * registers take turns: one is loaded while the products of the other are added. A copy
 * from one to the other would wait for the loads. */
struct walk {
  enum : unsigned {
    each = KILN_UNROLL,
    jump = threads / KILN_LANES * each /* positions between a thread's rounds */
  };

  const KILN_T *matrix;
  unsigned long long k, to, kept;

  /* Starts the loads of the next round, and adds the products of this one. Returns
   * whether there is a next round. */
  __device__ __forceinline__ bool round(const factors &f,
                                        const elements<each> &now,
                                        elements<each> &next, sums &s)
  {
    const bool more = k + jump + each <= to;

    if (more)
      load_positions(f, matrix, k + jump, kept, next);
    add_positions(f, now, k, s);
    k += jump;
    return more;
  }
};

/* Adds the thread's products of a tile. */
__device__ __forceinline__ void sum_part(const factors &f, const work &w,
                                         unsigned long long kept, sums &s)
{
  const unsigned long long column =
      w.first + threadIdx.x % KILN_LANES * KILN_VECTOR;
  walk l = {f.matrix + (column < w.size ? column : 0),
            w.from + threadIdx.x / KILN_LANES * walk::each, w.to, kept};
  elements<walk::each> m[2];

  if (l.k + walk::each <= l.to) {
    load_positions(f, l.matrix, l.k, kept, m[0]);
    while (l.round(f, m[0], m[1], s) && l.round(f, m[1], m[0], s))
      continue;
  }
  for (; l.k < l.to; ++l.k) {
    elements<1> one;

    load_positions(f, l.matrix, l.k, kept, one);
    add_positions(f, one, l.k, s);
  }
}

/* Adds the sums of the lanes with the same results, then those of the warps. The first
 * lanes get the results. */
__device__ __forceinline__ void add_warps(sums &s)
{
  __shared__ acc shared[KILN_WARPS][KILN_THIN * KILN_VECTOR][KILN_LANES];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

#pragma unroll
  for (unsigned i = 0; i < KILN_THIN * KILN_VECTOR; ++i) {
    acc &sum = s.at[i / KILN_VECTOR][i % KILN_VECTOR];

#pragma unroll
    for (unsigned d = KILN_LANES; d < 32; d *= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane < KILN_LANES)
      shared[warp][i][lane] = sum;
  }
  __syncthreads();
  if (threadIdx.x < KILN_LANES)
#pragma unroll
    for (unsigned i = 0; i < KILN_THIN * KILN_VECTOR; ++i)
      for (unsigned v = 1; v < KILN_WARPS; ++v)
        s.at[i / KILN_VECTOR][i % KILN_VECTOR] += shared[v][i][lane];
}
#endif

#if KILN_ALONG
/* Adds the products of n loads per line from position k on. */
template <unsigned n, bool kept>
__device__ __forceinline__ void
add_positions(const factors &f, const KILN_T *const (&line)[KILN_LINES],
              unsigned long long k, sums &s)
{
  KILN_T m[n][KILN_LINES][KILN_VECTOR];

#pragma unroll
  for (unsigned i = 0; i < n; ++i)
#pragma unroll
    for (unsigned l = 0; l < KILN_LINES; ++l)
      load_matrix<kept>(line[l] + k + i * step, m[i][l]);
#pragma unroll
  for (unsigned i = 0; i < n; ++i)
#pragma unroll
    for (unsigned t = 0; t < KILN_THIN; ++t) {
      wide x[KILN_VECTOR];

      load_x(f, t, k + i * step, x);
#pragma unroll
      for (unsigned l = 0; l < KILN_LINES; ++l)
#pragma unroll
        for (unsigned e = 0; e < KILN_VECTOR; ++e)
          s.at[t][l] = kiln::gemm_multiply_add(x[e], kiln::widen(m[i][l][e]),
                                               s.at[t][l]);
    }
}

template <bool kept>
__device__ __forceinline__ void
add_lines(const factors &f, const KILN_T *const (&line)[KILN_LINES],
          const work &w, sums &s)
{
  constexpr unsigned n = KILN_UNROLL / KILN_LINES;
  unsigned long long k = w.from + threadIdx.x % 32 * KILN_VECTOR;

#pragma unroll 1
  for (; k + (n - 1) * step < w.to; k += n * step)
    add_positions<n, kept>(f, line, k, s);
#pragma unroll 1
  for (; k < w.to; k += step)
    add_positions<1, kept>(f, line, k, s);
}

/* Adds the warp's products. Lines that do not exist repeat the last one. */
__device__ __forceinline__ void sum_part(const factors &f, const work &w,
                                         unsigned long long kept, sums &s)
{
  const unsigned long long first = w.first + threadIdx.x / 32 * KILN_LINES;
  const KILN_T *line[KILN_LINES];

#pragma unroll
  for (unsigned l = 0; l < KILN_LINES; ++l)
    line[l] =
        f.matrix + (first + l < w.size ? first + l : w.size - 1) * f.leading;
  if (KILN_KEEP && first < kept)
    add_lines<true>(f, line, w, s);
  else
    add_lines<false>(f, line, w, s);
}

/* Adds the sums of the lanes; every lane gets the results. */
__device__ __forceinline__ void add_warps(sums &s)
{
#pragma unroll
  for (unsigned t = 0; t < KILN_THIN; ++t)
#pragma unroll
    for (unsigned l = 0; l < KILN_LINES; ++l)
#pragma unroll
      for (unsigned d = 16; d > 0; d /= 2)
        s.at[t][l] += __shfl_xor_sync(0xffffffffu, s.at[t][l], d);
}
#endif

#if KILN_SPLIT
/* Number of a thread's result among those of the tile. */
__device__ __forceinline__ unsigned place(unsigned t, unsigned j)
{
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  return KILN_ALONG ? t * tile + warp * KILN_LINES + j
                    : (t * KILN_VECTOR + j) * KILN_LANES + lane;
}

/* Writes the block's sums to its slot of the temporary storage. */
__device__ __forceinline__ void publish(const sums &s, acc *parts,
                                        unsigned long long *words,
                                        unsigned long long slot, unsigned tag,
                                        bool mine)
{
  if (mine)
#pragma unroll
    for (unsigned i = 0; i < KILN_THIN * own; ++i)
      parts[slot * (KILN_THIN * tile) + place(i / own, i % own)] =
          s.at[i / own][i % own];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    kiln::word_store(words + slot, static_cast<unsigned long long>(tag) << 32);
  }
}

/* Waits for the other parts of the tile's sums, and adds them in their order. */
__device__ __forceinline__ void add_parts(sums &s, const acc *parts,
                                          const unsigned long long *words,
                                          const work &w, unsigned splits,
                                          unsigned tag, bool mine)
{
  for (unsigned p = threadIdx.x; p + 1 < splits; p += threads) {
    while (kiln::word_load(words + p * w.tiles + w.tile) >> 32 != tag)
      kiln::tile_pause();
    __threadfence();
  }
  __syncthreads();
  if (!mine)
    return;
#pragma unroll 4
  for (unsigned p = 0; p + 1 < splits; ++p)
#pragma unroll
    for (unsigned i = 0; i < KILN_THIN * own; ++i)
      s.at[i / own][i % own] +=
          __ldcg(parts + (p * w.tiles + w.tile) * (KILN_THIN * tile) +
                 place(i / own, i % own));
}
#endif

__device__ __forceinline__ void finish(const user::args &in,
                                       const kiln::gemm_args &g, const work &w,
                                       const sums &s)
{
  KILN_D *d = kiln::gemm_matrix<kiln::gemm_pointers_d, KILN_D>(g.d, w.batch);
  const KILN_C *c =
      KILN_READS_C
          ? kiln::gemm_matrix<kiln::gemm_pointers_c, const KILN_C>(g.c, w.batch)
          : nullptr;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned long long first =
      w.first + (KILN_ALONG ? warp * KILN_LINES : lane * KILN_VECTOR);

#pragma unroll
  for (unsigned t = 0; t < KILN_THIN; ++t)
#pragma unroll
    for (unsigned j = 0; j < own; ++j) {
      const unsigned long long row = KILN_ROWS ? t : first + j;
      const unsigned long long column = KILN_ROWS ? first + j : t;

      if (first + j < w.size)
        d[row * g.d.leading + column] =
            kiln::gemm_element(in, g, c, s.at[t][j], row, column, w.batch);
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, KILN_PER_SM)
    gemm_vector(const user::args in, const kiln::gemm_args g, unsigned splits,
                unsigned long long kept, acc *parts, unsigned long long *words,
                unsigned epoch)
{
  /* Whether the thread has results after the warps' sums have been added. */
  const bool mine =
      KILN_ALONG ? threadIdx.x % 32 == 0 : threadIdx.x < KILN_LANES;
  sums s;
  work w;

  if (!find_work(w, g, splits))
    return;
#pragma unroll
  for (unsigned t = 0; t < KILN_THIN; ++t)
#pragma unroll
    for (unsigned j = 0; j < own; ++j)
      s.at[t][j] = acc();
  sum_part(find_factors(g, w.batch), w, kept, s);
  add_warps(s);
#if KILN_SPLIT
  {
    const unsigned tag = kiln::descriptor_tag(epoch, kiln::status_partial);

    if (w.part + 1 < splits) {
      publish(s, parts, words, w.part * w.tiles + w.tile, tag, mine);
      return;
    }
    add_parts(s, parts, words, w, splits, tag, mine);
  }
#else
  (void)parts;
  (void)words;
  (void)epoch;
#endif
  if (mine)
    finish(in, g, w, s);
}

#include <kiln/user_texts.cuh>
