/* gemm_mma.cu -- matrix products on tensor cores by the instructions of one warp.
 *
 * Problem: D = epilogue(alpha * A * B + beta * C) for f16 and i8 from compute capability
 * 7.5 on, for bf16, f64, and f32 as tf32 or as parts of bf16 (gemm_wgmma.cu) from 8.0
 * on.
 *
 * Idea: a block computes a tile of KILN_TILE_M x KILN_TILE_N elements of D. A stage in
 * shared memory has as many rows of A and columns of B, 128 bytes of the sum each.
 * cp.async copies the next stages while the tensor cores work on this one. Each warp
 * has a part of the tile. It loads the fragments of the next instruction while those of
 * this one are multiplied.
 *
 * Invariants: the 16-byte chunks of each line of 128 bytes are exchanged, so that the
 * addresses which a warp loads at a time lie in different banks. One barrier per stage is
 * enough: all fragments of a stage have been loaded before the barrier after which the
 * stage is overwritten. Elements outside of the matrices read as 0.
 *
 * Cost: 2 m n k operations; each element of A is read n / TILE_N times, of B m / TILE_M
 * times.
 *
 * Sources: PTX ISA (mma, ldmatrix, cp.async); stages and fragments as in CUTLASS (Kerr,
 * Merrill, Demouth, Tran, 2017).
 *
 * Parameters:
 *   KILN_T         type kiln::f16  type of an element of A and B
 *   KILN_C         type kiln::f16  type of an element of C
 *   KILN_D         type kiln::f16  type of an element of D
 *   KILN_READS_C   0    1 if beta is not 0
 *   KILN_POINTERS  0    bits 2, 3: C, D are given by arrays of pointers
 *   KILN_SWAPPED   0    1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS    0    number of further inputs of the epilogue
 *   KILN_MATH      0    type of the products: 0 f16, 1 bf16, 2 tf32, 3 i8, 4 f64
 *   KILN_TILE_M    128  rows of D per block
 *   KILN_TILE_N    128  columns of D per block
 *   KILN_WARPS_M   2    warps that have different rows
 *   KILN_WARPS_N   4    warps that have different columns
 *   KILN_STAGES    2    stages in shared memory
 *   KILN_ORDER     8    rows of tiles per group, see gemm_order()
 *   KILN_A_K       1    1 if consecutive elements of A belong to one row
 *   KILN_B_K       0    1 if consecutive elements of B belong to one column
 *   KILN_TERMS     1    products of parts per product: 1, 3 or 6
 *   KILN_VECTOR_D  2    elements of D per store: 1 or 2
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: blocks of 32 * WARPS_M * WARPS_N threads, one per tile, numbered by x, then y.
 *         Dynamic shared memory: the stages. Lines of A and B start at multiples of 16
 *         bytes.
 *         p  numbers of tiles and stages, and elements between parts of A and B
 * Result: D. The same launch gives the same bits. Below 7.5 it is an empty kernel. */
#include <kiln/params/gemm_mma.cuh>

#define KILN_MAX_BLOCK (32 * KILN_WARPS_M * KILN_WARPS_N)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/gemm_store.cuh>
#include <kiln/gemm_terms.cuh>

/* Numbers that the host computes. */
struct mma_tiles {
  unsigned rows, columns, steps;
  unsigned long long a_part, b_part; /* elements between parts */
};

#if KILN_ARCH >= 75
#include <kiln/gemm_mma.cuh>

namespace
{

enum : unsigned {
  element = KILN_MATH == 4   ? 8
            : KILN_MATH == 3 ? 1
            : KILN_MATH == 2 ? 4
                             : 2,
  depth = 128 / element, /* positions of the sum per stage */
  chunk = 16 / element,  /* elements per chunk of 16 bytes */
  threads = KILN_MAX_BLOCK,
  bytes_a = KILN_TILE_M * 128,
  bytes = bytes_a + KILN_TILE_N * 128,
  warp_m = KILN_TILE_M / KILN_WARPS_M,
  warp_n = KILN_TILE_N / KILN_WARPS_N,
  parts_m = warp_m / 16, /* instructions along the rows and columns of a warp */
  parts_n = warp_n / 8,
  fragments_per_stage = 128 / kiln::mma_bytes
};

static_assert(element == 2 || KILN_MATH == 4 || (KILN_A_K && KILN_B_K),
              "KILN_A_K, KILN_B_K: ldmatrix turns elements of 2 bytes only");
static_assert(parts_n % 2 == 0, "KILN_TILE_N: two instructions per load");

typedef kiln::gemm_acc sum;
typedef kiln::mma_word word;

/* Returns the offset of a chunk in a line. Lanes load 8 lines at a time, and with f64
 * 4 lines of two chunks. */
__device__ __forceinline__ unsigned chunk_at(unsigned line, unsigned number)
{
  return (KILN_MATH == 4 ? number ^ (line * 2 & 6) : number ^ line % 8) * 16;
}

/* ---- Copies to shared memory --------------------------------------------- */

/* Copies 16 bytes, of which the first `valid` exist; the others become 0. */
__device__ __forceinline__ void
copy_chunk(unsigned to, const unsigned char *from, unsigned valid)
{
#if KILN_HAS_CP_ASYNC
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(from), "r"(valid)
               : "memory");
#else
  uint4 v = {0, 0, 0, 0};

  if (valid == 16) {
    v = *reinterpret_cast<const uint4 *>(from);
  } else {
    unsigned w[4] = {0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < 16; ++i)
      if (i < valid)
        w[i / 4] |= static_cast<unsigned>(from[i]) << i % 4 * 8;
    v = {w[0], w[1], w[2], w[3]};
  }
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
#endif
}

__device__ __forceinline__ void end_copies()
{
#if KILN_HAS_CP_ASYNC
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the oldest stage in flight, for all threads. */
__device__ __forceinline__ void await_stage()
{
#if KILN_HAS_CP_ASYNC
  asm volatile("cp.async.wait_group %0;" ::"n"(KILN_STAGES - 2) : "memory");
#endif
  __syncthreads();
}

/* Returns the number of the thread. `volatile` keeps the compiler from computing ahead
 * what depends on it, which would take registers from the sums. */
__device__ __forceinline__ unsigned thread_number()
{
  unsigned v;

  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
  return v;
}

/* One operand of a block: `count` rows or columns from `first` on. Thread t copies the
 * chunks t, t + threads, t + 2 * threads and so on of each stage. */
template <bool follow_sum, unsigned count> struct operand {
  enum : unsigned { at_a_time = threads / 8, times = count / at_a_time };
  static_assert(count % at_a_time == 0 && at_a_time % 8 == 0,
                "the threads copy whole groups of 8 lines at a time");

  const unsigned char *matrix;
  const unsigned char *from;        /* the thread's first chunk of a stage */
  unsigned long long leading, part; /* bytes between lines and parts */
  unsigned to;                      /* place of the first chunk in a stage */
  unsigned first, limit, k_limit;

  /* Positions of the thread's chunk number i relative to its first one: its line, and
   * its first element in this line. */
  static __device__ __forceinline__ constexpr unsigned lines(unsigned i)
  {
    return follow_sum ? i * at_a_time : i * at_a_time % depth;
  }
  static __device__ __forceinline__ constexpr unsigned along(unsigned i)
  {
    return follow_sum ? 0 : i * at_a_time / depth * depth;
  }

  __device__ __forceinline__ void open(const kiln::gemm_operand &o,
                                       unsigned long long batch, unsigned begin,
                                       unsigned end, unsigned k_end,
                                       unsigned long long part_elements)
  {
    const unsigned line = threadIdx.x / 8, number = threadIdx.x % 8;
    const unsigned y = follow_sum ? begin + line : line % depth;
    const unsigned x =
        number * chunk + (follow_sum ? 0 : begin + line / depth * depth);

    matrix = reinterpret_cast<const unsigned char *>(o.data) +
             batch * o.stride * element;
    leading = o.leading * element;
    part = part_elements * element;
    from = matrix + y * leading + x * element;
    to = line * 128 + chunk_at(line, number);
    first = begin;
    limit = end;
    k_limit = k_end;
  }

  /* Returns whether the tile has all elements at the positions k to k + depth - 1 of
   * the sum. */
  __device__ __forceinline__ bool is_whole(unsigned k) const
  {
    return first + count <= limit && k + depth <= k_limit;
  }

  /* Copies all elements of part `number` at the next positions of the sum. */
  __device__ __forceinline__ void load(unsigned stage, unsigned number) const
  {
    const unsigned char *source = from + number * part;

#pragma unroll
    for (unsigned i = 0; i < times; ++i)
      copy_chunk(stage + to + i * at_a_time * 128,
                 source + lines(i) * leading + along(i) * element, 16);
  }

  /* Copies what exists of part `number` at the positions k to k + depth - 1 of the
   * sum, and zeros for the rest. */
  __device__ __forceinline__ void load_some(unsigned stage, unsigned k,
                                            unsigned number_of_part) const
  {
    const unsigned char *source = from + number_of_part * part;
    const unsigned thread = thread_number();
    const unsigned line = thread / 8, number = thread % 8;
    const unsigned y = follow_sum ? first + line : k + line % depth;
    const unsigned x =
        number * chunk + (follow_sum ? k : first + line / depth * depth);
    const unsigned y_limit = follow_sum ? limit : k_limit;
    const unsigned x_limit = follow_sum ? k_limit : limit;

    /* Unrolled, the addresses would take too many registers. */
#pragma unroll 1
    for (unsigned i = 0; i < times; ++i) {
      const bool here = y + lines(i) < y_limit && x + along(i) < x_limit;
      const unsigned left = here ? x_limit - x - along(i) : 0;

      copy_chunk(stage + to + i * at_a_time * 128,
                 here ? source + lines(i) * leading + along(i) * element
                      : matrix,
                 left < chunk ? left * element : 16);
    }
  }

  __device__ __forceinline__ void advance()
  {
    from += follow_sum ? 128 : depth * leading;
  }
};

typedef operand<KILN_A_K, KILN_TILE_M> operand_a;
typedef operand<KILN_B_K, KILN_TILE_N> operand_b;

/* ---- Fragments ----------------------------------------------------------- */

/* The operands of an instruction for all instructions of a warp. B has two buffers. An
 * operand of A is replaced by the next one after its last use. */
struct fragments {
  word a[parts_m][kiln::mma_a], b[2][parts_n][kiln::mma_b];
};

#if KILN_MATH == 4
/* Loads the elements at row or column r + lane / 4 and position q * 4 + lane % 4 of the
 * sum. `lane_at` is lane_place() of the operand. */
template <bool follow_sum>
__device__ __forceinline__ double load_double(unsigned from, unsigned r,
                                              unsigned q, unsigned lane_at)
{
  const unsigned block = r / 16 * 2048;
  double v;

  asm volatile("ld.shared.f64 %0, [%1];"
               : "=d"(v)
               : "r"(follow_sum
                         ? from + (lane_at ^ q * 32) + r * 128
                         : from + (lane_at ^ r % 16 * 8) + block + q * 512)
               : "memory");
  return v;
}

/* Returns the place of the lane's element for r = 0 and q = 0. */
template <bool follow_sum> __device__ __forceinline__ unsigned lane_place()
{
  const unsigned lane = threadIdx.x % 32;
  const unsigned line = follow_sum ? lane / 4 : lane % 4;
  const unsigned in = follow_sum ? lane % 4 : lane / 4;

  return line * 128 + chunk_at(line, in / 2) + in % 2 * 8;
}

__device__ __forceinline__ void load_a(word (&to)[kiln::mma_a], unsigned stage,
                                       unsigned row, unsigned i, unsigned q)
{
  const unsigned from = stage + row * 128, lane = lane_place<KILN_A_K>();

#pragma unroll
  for (unsigned e = 0; e < kiln::mma_a; ++e)
    to[e] =
        load_double<KILN_A_K>(from, i * 16 + e % 2 * 8, q * 2 + e / 2, lane);
}

__device__ __forceinline__ void load_b(word (&to)[parts_n][kiln::mma_b],
                                       unsigned stage, unsigned column,
                                       unsigned q)
{
  const unsigned from = stage + bytes_a + column * 128;
  const unsigned lane = lane_place<KILN_B_K>();

#pragma unroll
  for (unsigned e = 0; e < kiln::mma_b; ++e)
#pragma unroll
    for (unsigned j = 0; j < parts_n; ++j)
      to[j][e] = load_double<KILN_B_K>(from, j * 8, q * 2 + e, lane);
}
#else
/* Loads four 8 x 8 matrices of 2-byte elements from row or column r and byte b of the
 * sum on. `outer` are the offsets in rows or columns, `inner` those in the sum, of a
 * lane's matrix. */
template <bool follow_sum>
__device__ __forceinline__ void load_operand(unsigned (&to)[4], unsigned from,
                                             unsigned r, unsigned q,
                                             unsigned outer, unsigned inner)
{
  const unsigned lane = threadIdx.x % 8;

  if (follow_sum) {
    const unsigned line = r + outer * 8 + lane;

    kiln::load_matrices<false>(to, from + line * 128 +
                                       chunk_at(line, q * 2 + inner));
  } else {
    const unsigned at = r + outer * 8;
    const unsigned line = at / 64 * 64 + q * 16 + inner * 8 + lane;

    kiln::load_matrices<true>(to,
                              from + line * 128 + chunk_at(line, at % 64 / 8));
  }
}

__device__ __forceinline__ void load_a(word (&to)[kiln::mma_a], unsigned stage,
                                       unsigned row, unsigned i, unsigned q)
{
  const unsigned number = threadIdx.x % 32 / 8; /* the lane's matrix */

  load_operand<KILN_A_K>(to, stage, row + i * 16, q, number % 2, number / 2);
}

__device__ __forceinline__ void load_b(word (&to)[parts_n][kiln::mma_b],
                                       unsigned stage, unsigned column,
                                       unsigned q)
{
  const unsigned number = threadIdx.x % 32 / 8;

#pragma unroll
  for (unsigned j = 0; j < parts_n; j += 2) {
    unsigned w[4];

    load_operand<KILN_B_K>(w, stage + bytes_a, column + j * 8, q, number / 2,
                           number % 2);
    to[j][0] = w[0];
    to[j][1] = w[1];
    to[j + 1][0] = w[2];
    to[j + 1][1] = w[3];
  }
}
#endif

/* ---- The block ----------------------------------------------------------- */

struct sums {
  sum at[parts_m][parts_n][4];
};

__device__ __forceinline__ void clear(sums &s)
{
#pragma unroll
  for (unsigned i = 0; i < parts_m; ++i)
#pragma unroll
    for (unsigned j = 0; j < parts_n; ++j)
#pragma unroll
      for (unsigned e = 0; e < 4; ++e)
        s.at[i][j][e] = 0;
}

__device__ __forceinline__ void add(sums &to, const sums &s)
{
#pragma unroll
  for (unsigned i = 0; i < parts_m; ++i)
#pragma unroll
    for (unsigned j = 0; j < parts_n; ++j)
#pragma unroll
      for (unsigned e = 0; e < 4; ++e)
        to.at[i][j][e] += s.at[i][j][e];
}

/* The copies of both operands, and the position of the next one. Stages beyond the end
 * of the sum become 0. */
struct copies {
  operand_a a;
  operand_b b;
  unsigned stages; /* address of the stages */
  unsigned slot = 0, term = 0, k = 0;

  __device__ __forceinline__ void start()
  {
    const unsigned to = stages + slot * bytes;

    if (a.is_whole(k) && b.is_whole(k)) {
      a.load(to, kiln::gemm_term_a(term));
      b.load(to + bytes_a, kiln::gemm_term_b(term));
    } else {
      a.load_some(to, k, kiln::gemm_term_a(term));
      b.load_some(to + bytes_a, k, kiln::gemm_term_b(term));
    }
    end_copies();
    slot = slot + 1 == KILN_STAGES ? 0 : slot + 1;
    if (++term == KILN_TERMS) {
      term = 0;
      k += depth;
      a.advance();
      b.advance();
    }
  }
};

/* Computes the sums of a tile. With several terms, the tensor cores' sums, which they
 * cut, are added up after each tile of the sum. */
__device__ __forceinline__ void
sum_products(copies &c, unsigned steps, unsigned row, unsigned column, sums &s)
{
  unsigned slot = 0, term = 0;
  fragments f;
  sums total;

  if (KILN_TERMS > 1)
    clear(total);
  clear(s);
#pragma unroll 1
  for (unsigned t = 0; t + 1 < KILN_STAGES; ++t)
    c.start();
  await_stage();
#pragma unroll
  for (unsigned i = 0; i < parts_m; ++i)
    load_a(f.a[i], c.stages, row, i, 0);
  load_b(f.b[0], c.stages, column, 0);
  for (unsigned i = 0; i < steps; ++i) {
    const unsigned now = c.stages + slot * bytes;

    slot = slot + 1 == KILN_STAGES ? 0 : slot + 1;
#pragma unroll
    for (unsigned q = 0; q < fragments_per_stage; ++q) {
      const bool last = q + 1 == fragments_per_stage;
      const unsigned from = last ? c.stages + slot * bytes : now;
      const unsigned next = last ? 0 : q + 1;

      if (last)
        await_stage();
      load_b(f.b[(q + 1) % 2], from, column, next);
      if (q == 0)
        c.start();
#pragma unroll
      for (unsigned i = 0; i < parts_m; ++i) {
#pragma unroll
        for (unsigned j = 0; j < parts_n; ++j)
          kiln::mma(s.at[i][j], f.a[i], f.b[q % 2][j]);
        load_a(f.a[i], from, row, i, next);
      }
    }
    if (KILN_TERMS > 1 && ++term == KILN_TERMS) {
      term = 0;
      add(total, s);
      clear(s);
    }
  }
  if (KILN_TERMS > 1)
    s = total;
}

/* Stores the sums of a warp whose tile starts at (row, column). */
__device__ __forceinline__ void
store(const user::args &in, const kiln::gemm_args &g, unsigned long long batch,
      unsigned long long row, unsigned long long column, const sums &s)
{
  const kiln::gemm_output o(in, g, batch);
  KILN_D *to;

  row += threadIdx.x % 32 / 4;
  column += threadIdx.x % 4 * 2;
  to = o.d + row * g.d.leading + column;
#pragma unroll
  for (unsigned i = 0; i < parts_m * 2; ++i) {
    if (row + i * 8 >= g.m)
      return;
#pragma unroll
    for (unsigned j = 0; j < parts_n; ++j)
      kiln::gemm_store_pair(o, to + j * 8, row + i * 8, column + j * 8,
                            &s.at[i / 2][j][i % 2 * 2]);
    to += 8 * g.d.leading;
  }
}

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, 1)
    gemm_mma(const user::args in, const kiln::gemm_args g, const mma_tiles p)
{
  extern __shared__ uint4 shared[];
  const unsigned long long block =
      static_cast<unsigned long long>(blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned long long per_matrix =
      static_cast<unsigned long long>(p.rows) * p.columns;
  const unsigned long long batch = block / per_matrix;
  const unsigned warp = threadIdx.x / 32;
  const unsigned row = warp / KILN_WARPS_N * warp_m;
  const unsigned column = warp % KILN_WARPS_N * warp_n;
  const kiln::gemm_place at =
      kiln::gemm_order(static_cast<unsigned>(block - batch * per_matrix),
                       p.rows, p.columns, KILN_ORDER);
  copies c;
  sums s;

  if (batch >= g.batch)
    return;
  c.a.open(g.a, batch, at.row * KILN_TILE_M, static_cast<unsigned>(g.m),
           static_cast<unsigned>(g.k), p.a_part);
  c.b.open(g.b, batch, at.column * KILN_TILE_N, static_cast<unsigned>(g.n),
           static_cast<unsigned>(g.k), p.b_part);
  c.stages = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  sum_products(c, p.steps, row, column, s);
  store(in, g, batch, at.row * KILN_TILE_M + row,
        at.column * KILN_TILE_N + column, s);
}
#else
extern "C" __global__ void gemm_mma(const user::args, const kiln::gemm_args,
                                    const mma_tiles)
{
}
#endif

#include <kiln/user_texts.cuh>
