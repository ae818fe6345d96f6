/* gemm_wgmma.cu -- matrix products on the tensor cores of sm_90a, by warpgroups.
 *
 * Problem: D = epilogue(alpha * A * B + beta * C) for f16, bf16, i8, and for f32 whose
 * elements are rounded to tf32 or split into parts of bf16. The tensor cores of an SM
 * take two tiles of 64 x 64 elements every 64 cycles, more than threads can copy.
 *
 * Idea: one thread of a block, the producer, only starts copies of the tensor memory
 * accelerator (TMA), which fill KILN_STAGES stages in shared memory. A stage has
 * KILN_TILE_M rows of A and KILN_TILE_N columns of B, 128 bytes of the sum each. One or
 * more warpgroups, the consumers, start products of whole stages and wait for them
 * while the next products run. A block computes several tiles, one after the other. The
 * producer thereby runs ahead into the next tile while the consumers apply the epilogue
 * and store. The blocks of a cluster share a tile of A or B, and each copies a part of
 * it to all of them.
 *
 * Splitting: an f32 is a sum of two or three numbers of type bf16. The product of two
 * elements is a sum of KILN_TERMS products of such parts, which are computed like
 * further steps of the sum, small terms first. Tensor cores cut sums below 25 bits,
 * so after KILN_PROMOTE tiles of the sum it is added to a sum in registers that is
 * rounded to nearest.
 *
 * Turning: the tensor cores read tf32 from shared memory only if consecutive elements
 * follow the sum. With KILN_TURNED the consumers read A in any order and hold it in
 * registers. A product whose B has to be turned is computed as D^T = B^T A^T.
 *
 * Invariants: the barrier full[s] completes when the bytes of stage s have arrived. The
 * barrier empty[s] completes when all consumers of all blocks of the cluster have read
 * stage s. Producer and consumers walk through the stages in the same order, so one
 * counter and its parity describe the phase. Elements outside of the matrices read as
 * 0. The blocks of a cluster end together, since they write into each other.
 *
 * Cost: an SM computes 64 x 64 x 16 products of f16 in 32 cycles. A tile of 128 x 256
 * needs 48 KB of loads per 1024 cycles, less with clusters.
 *
 * Sources: PTX ISA (wgmma, cp.async.bulk.tensor, mbarrier); Thakkar et al., CUTLASS 3,
 * 2023 (warp specialisation); Henry, Tang and Heinecke, Leveraging the
 * bfloat16 artificial intelligence datatype, 2019 (splitting); Ootomo and Yokota,
 * Recovering single precision accuracy from tensor cores, 2022 (sums outside).
 *
 * Parameters:
 *   KILN_T          type kiln::bf16  type of an element of A and B
 *   KILN_C          type kiln::bf16  type of an element of C
 *   KILN_D          type kiln::bf16  type of an element of D
 *   KILN_READS_C    0    1 if beta is not 0
 *   KILN_POINTERS   0    bits 2, 3: C, D are given by arrays of pointers
 *   KILN_SWAPPED    0    1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS     0    number of further inputs of the epilogue
 *   KILN_MATH       1    type of the products: 0 f16, 1 bf16, 2 tf32, 3 i8
 *   KILN_TILE_M     128  rows of D per block
 *   KILN_TILE_N     256  columns of D per block
 *   KILN_GROUPS_M   2    consumer warpgroups that have different rows
 *   KILN_GROUPS_N   1    consumer warpgroups that have different columns
 *   KILN_STAGES     4    stages in shared memory
 *   KILN_CLUSTER_M  1    blocks of a cluster that share a tile of B
 *   KILN_CLUSTER_N  1    blocks of a cluster that share a tile of A
 *   KILN_ORDER      8    rows of tiles per group, see gemm_order()
 *   KILN_A_K        1    1 if consecutive elements of A belong to one row
 *   KILN_B_K        0    1 if consecutive elements of B belong to one column
 *   KILN_TERMS      1    products of parts per product: 1, 3 or 6
 *   KILN_PROMOTE    0    tiles of the sum between promotions; 0: none
 *   KILN_STAGED     128  columns that a consumer stages in shared memory, for D of 2
 *                        bytes, or of 4 with KILN_VECTOR_D 8; 0: none
 *   KILN_VECTOR_D   8    elements of D per store: 1 or 2 by threads, 8 by the TMA
 *   KILN_TURNED     0    1: the consumers turn A, of tf32, in registers; 2: they do, and
 *                        D has rows and columns exchanged in memory
 *   KILN_VECTORS    0    which further inputs are vectors, see gemm.cuh
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: blocks of 128 * (consumers + 1) threads, a multiple of the cluster's number,
 *         at most one per SM. Dynamic shared memory: the stages, then KILN_STAGED
 *         columns of D for 64 rows per consumer, then two barriers per stage. Tensor maps
 *         describe boxes of 128 bytes (tma.cuh); the one of D is only used if
 *         KILN_VECTOR_D is 8.
 *         p  numbers of tiles, and the third coordinates of A and B
 * Result: D. The same launch gives the same bits. Without sm_90a it is an empty kernel. */
#include <kiln/params/gemm_wgmma.cuh>

#ifndef KILN_HAS_WGMMA
#define KILN_HAS_WGMMA 0
#endif
#define KILN_CONSUMERS (KILN_GROUPS_M * KILN_GROUPS_N)
#define KILN_MAX_BLOCK (128 * (KILN_CONSUMERS + 1))
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#define KILN_WGMMA_N (KILN_TILE_N / KILN_GROUPS_N)
#include <kiln/gemm_store.cuh>
#include <kiln/gemm_terms.cuh>
#include <kiln/mbarrier.cuh>
#include <kiln/tma.cuh>

/* Numbers that the host computes. The tiles are those of clusters. */
struct gemm_tiles {
  unsigned rows, columns, total; /* tiles of a matrix, and of all matrices */
  unsigned steps;                /* stages per tile */
  unsigned a_step, b_step;       /* z coordinates between matrices of a batch */
};

#if KILN_HAS_WGMMA
#include <kiln/wgmma.cuh>

namespace
{

enum : unsigned {
  element = KILN_MATH == 3   ? 1
            : KILN_MATH == 2 ? 4
                             : 2,
  depth = 128 / element, /* positions of the sum per stage */
  group_m = KILN_TILE_M / KILN_GROUPS_M,
  parts_m = group_m / 64, /* instructions that cover a consumer's rows */
  bytes_a = KILN_TILE_M * 128,
  bytes_b = KILN_TILE_N * 128,
  bytes = bytes_a + bytes_b,
  cluster = KILN_CLUSTER_M * KILN_CLUSTER_N,
  box_n = 128 / sizeof(KILN_D),        /* columns of a box of D */
  staged = KILN_STAGED / box_n * 8192, /* bytes that a consumer stages */
  full_at = KILN_STAGES * bytes + KILN_CONSUMERS * staged,
  empty_at = full_at + 8 * KILN_STAGES
};

static_assert(group_m % 64 == 0 && group_m > 0,
              "KILN_TILE_M: 64 rows per instruction");
static_assert(element == 2 || ((KILN_A_K || KILN_TURNED) && KILN_B_K),
              "KILN_A_K, KILN_B_K: wgmma turns elements of 2 bytes only");
static_assert(!KILN_TURNED || (KILN_MATH == 2 && !KILN_A_K && parts_m == 1 &&
                               !KILN_STAGED && !KILN_PROMOTE),
              "KILN_TURNED: tf32, 64 rows per consumer");
static_assert(KILN_STAGED == 0 ||
                  ((sizeof(KILN_D) == 2 ||
                    (sizeof(KILN_D) == 4 && KILN_VECTOR_D == 8)) &&
                   KILN_WGMMA_N % KILN_STAGED == 0),
              "KILN_STAGED: D of 2 or 4 bytes, a part of the columns");

typedef kiln::gemm_acc sum;

/* A position in the sequence of stages. */
struct stage_counter {
  unsigned stage = 0, phase = 0;

  __device__ __forceinline__ void advance()
  {
    if (++stage == KILN_STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/* The first row and column of a block's tile, and the number of its product. */
struct place {
  unsigned row, column, batch;
};

__device__ __forceinline__ place place_of(const gemm_tiles &p, unsigned tile,
                                          unsigned rank)
{
  const unsigned per_matrix = p.rows * p.columns;
  const unsigned batch = tile / per_matrix;
  const kiln::gemm_place at = kiln::gemm_order(tile - batch * per_matrix,
                                               p.rows, p.columns, KILN_ORDER);

  return {(at.row * KILN_CLUSTER_M + rank % KILN_CLUSTER_M) * KILN_TILE_M,
          (at.column * KILN_CLUSTER_N + rank / KILN_CLUSTER_M) * KILN_TILE_N,
          batch};
}

/* ---- The producer -------------------------------------------------------- */

/* Copies `count` rows or columns from `first` on, of which this block copies a part to
 * all blocks in `blocks`. `shares` is the number of these blocks, `share` the number of
 * this block among them. */
template <bool follow_sum, unsigned count, unsigned shares>
__device__ __forceinline__ void
load_operand(unsigned to, const kiln::tensor_map &from, unsigned full,
             unsigned first, unsigned k, unsigned z, unsigned share,
             unsigned blocks)
{
  constexpr unsigned own = count / shares, box = follow_sum ? own : depth;

  static_assert(own % box == 0, "KILN_CLUSTER_M, _N: whole boxes per block");

#pragma unroll
  for (unsigned i = 0; i < own; i += box) {
    const unsigned at = share * own + i;
    const int x = static_cast<int>(follow_sum ? k : first + at);
    const int y = static_cast<int>(follow_sum ? first + at : k);

    if (shares > 1)
      kiln::tma_load(to + at * 128, from, full, x, y, static_cast<int>(z),
                     blocks);
    else
      kiln::tma_load(to + at * 128, from, full, x, y, static_cast<int>(z));
  }
}

__device__ __forceinline__ void produce(const kiln::tensor_map &a,
                                        const kiln::tensor_map &b,
                                        const gemm_tiles &p, unsigned shared)
{
  const unsigned rank = cluster > 1 ? kiln::cluster_rank() : 0;
  const unsigned m = rank % KILN_CLUSTER_M, n = rank / KILN_CLUSTER_M;
  unsigned same_row = 0; /* bits of the blocks that share the rows */
  const unsigned same_column = ((1 << KILN_CLUSTER_M) - 1)
                               << n * KILN_CLUSTER_M;
  stage_counter c;
  bool first_round = true;

#pragma unroll
  for (unsigned i = 0; i < KILN_CLUSTER_N; ++i)
    same_row |= 1u << (i * KILN_CLUSTER_M + m);

  for (unsigned t = blockIdx.x / cluster; t < p.total;
       t += gridDim.x / cluster) {
    const place at = place_of(p, t, rank);
    unsigned term = 0, k = 0;

    for (unsigned i = 0; i < p.steps; ++i) {
      const unsigned to = shared + c.stage * bytes;
      const unsigned full = shared + full_at + 8 * c.stage;

      if (!first_round)
        kiln::mbarrier_wait(shared + empty_at + 8 * c.stage, c.phase ^ 1);
      kiln::mbarrier_expect(full, bytes);
      load_operand<KILN_A_K, KILN_TILE_M, KILN_CLUSTER_N>(
          to, a, full, at.row, k, at.batch * p.a_step + kiln::gemm_term_a(term),
          n, same_row);
      load_operand<KILN_B_K, KILN_TILE_N, KILN_CLUSTER_M>(
          to + bytes_a, b, full, at.column, k,
          at.batch * p.b_step + kiln::gemm_term_b(term), m, same_column);
      if (++term == KILN_TERMS) {
        term = 0;
        k += depth;
      }
      c.advance();
      first_round &= c.stage != 0;
    }
  }
}

/* ---- The consumers ------------------------------------------------------- */

/* A consumer: its sums, its place in the tile, and its copy of the stage counter. */
struct consumer {
  sum at[parts_m][KILN_WGMMA_N / 2];
  unsigned shared; /* shared-memory address of the stages */
  unsigned number; /* number of the warpgroup among the consumers */
  unsigned thread; /* number of the thread in the warpgroup */
  stage_counter next;
};

/* Tells all blocks of the cluster that this warpgroup, or with KILN_TURNED this warp, has
 * read a stage. */
__device__ __forceinline__ void release(const consumer &c, unsigned stage)
{
  const unsigned empty = c.shared + empty_at + 8 * stage;
  const unsigned thread = KILN_TURNED ? c.thread % 32 : c.thread;

  if (cluster == 1 && thread == 0)
    kiln::mbarrier_arrive(empty);
  if (cluster > 1 && thread < cluster)
    kiln::mbarrier_arrive_at(empty, thread);
}

/* Sets the sums to 0. ptxas would serialise the products if the first of them replaced
 * the sums instead. */
__device__ __forceinline__ void clear(consumer &c)
{
#pragma unroll
  for (unsigned j = 0; j < parts_m; ++j)
#pragma unroll
    for (unsigned e = 0; e < KILN_WGMMA_N / 2; ++e)
      c.at[j][e] = 0;
}

#if KILN_TURNED
/* The elements of A that a thread has of one stage, of two consecutive rows. */
struct fragments {
  unsigned low[4][2], high[4][2]; /* positions lane % 4 and lane % 4 + 4 */
};

/* Returns the first of the thread's two rows of A, from the consumer's first row on. For
 * the instruction these are rows lane / 4 and lane / 4 + 8 of the warp. A line of shared
 * memory has 32 rows, which two warps share. With this order, the 16 threads whose reads
 * are served together access different banks. */
__device__ __forceinline__ unsigned first_row(const consumer &c)
{
  const unsigned warp = c.thread / 32, row = c.thread % 32 / 4;
  const unsigned chunk = row % 2 * 4 + warp % 2 * 2 + row / 4;

  return warp / 2 * 32 + chunk * 4 + row / 2 % 2 * 2;
}

__device__ __forceinline__ void read_two(unsigned (&to)[2], unsigned from)
{
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(from)
               : "memory");
}

/* Waits for the next stage and reads the thread's elements of A. */
__device__ __forceinline__ void read_fragments(fragments &f, const consumer &c)
{
  const unsigned row = c.number * 64 + first_row(c), line = c.thread % 4;
  const unsigned from = c.shared + c.next.stage * bytes +
                        row / 32 * depth * 128 + line * 128 + row % 4 * 4;
  const unsigned chunk = row % 32 / 4 ^ line;

  kiln::mbarrier_wait(c.shared + full_at + 8 * c.next.stage, c.next.phase);
#pragma unroll
  for (unsigned q = 0; q < 4; ++q) {
    read_two(f.low[q], from + q * 1024 + chunk * 16);
    read_two(f.high[q], from + q * 1024 + 512 + (chunk ^ 4) * 16);
  }
}

/* Starts the products of the next stage. */
__device__ __forceinline__ void multiply_fragments(consumer &c,
                                                   const fragments &f)
{
  const unsigned long long b = kiln::wgmma_matrix(
      c.shared + c.next.stage * bytes + bytes_a, true, depth);

  kiln::wgmma_fence();
#pragma unroll
  for (unsigned q = 0; q < 4; ++q) {
    const unsigned a[4] = {f.low[q][0], f.low[q][1], f.high[q][0],
                           f.high[q][1]};

    kiln::wgmma(c.at[0], a, b + q * 2);
  }
  kiln::wgmma_commit();
  c.next.advance();
}

/* Waits for all products but those of the last stage that was started, and releases the
 * stage before it. */
__device__ __forceinline__ void release_before(const consumer &c)
{
  kiln::wgmma_wait<1>();
  release(c, (c.next.stage + KILN_STAGES - 2) % KILN_STAGES);
}

/* Does what the other multiply() does. While the products of a stage run, the elements
 * of A of the next stage are read into other registers. */
__device__ __forceinline__ void multiply(consumer &c, unsigned steps)
{
  fragments even, odd;

  clear(c);
  read_fragments(even, c);
  for (unsigned i = 0; i < steps; i += 2) {
    multiply_fragments(c, even);
    if (i > 0)
      release_before(c);
    if (i + 1 == steps)
      break;
    read_fragments(odd, c);
    multiply_fragments(c, odd);
    release_before(c);
    if (i + 2 < steps)
      read_fragments(even, c);
  }
}
#else

/* Starts the products of one stage. */
__device__ __forceinline__ void multiply_stage(consumer &c)
{
  const unsigned row = c.number / KILN_GROUPS_N * group_m;
  const unsigned column = c.number % KILN_GROUPS_N * KILN_WGMMA_N;
  const unsigned at = c.shared + c.next.stage * bytes;
  const unsigned long long a =
      kiln::wgmma_matrix(at + row * 128, KILN_A_K, depth);
  const unsigned long long b =
      kiln::wgmma_matrix(at + bytes_a + column * 128, KILN_B_K, depth);

  kiln::mbarrier_wait(c.shared + full_at + 8 * c.next.stage, c.next.phase);
  kiln::wgmma_fence();
#pragma unroll
  for (unsigned q = 0; q < 4; ++q)
#pragma unroll
    for (unsigned j = 0; j < parts_m; ++j)
      kiln::wgmma(c.at[j],
                  a + (KILN_A_K ? q * 2 : q * depth / 4 * 8) +
                      j * (KILN_A_K ? 512 : depth * 8),
                  b + (KILN_B_K ? q * 2 : q * depth / 4 * 8));
  kiln::wgmma_commit();
}

/* Starts the products of `steps` stages, of which the last may still run at the end. */
__device__ __forceinline__ void multiply(consumer &c, unsigned steps)
{
  unsigned before = 0;

  clear(c);
  for (unsigned i = 0; i < steps; ++i) {
    multiply_stage(c);
    kiln::wgmma_wait<1>();
    if (i > 0)
      release(c, before);
    before = c.next.stage;
    c.next.advance();
  }
}

#endif

__device__ __forceinline__ void finish(consumer &c)
{
  kiln::wgmma_wait<0>();
  release(c, (c.next.stage == 0 ? KILN_STAGES : c.next.stage) - 1);
}

#if KILN_PROMOTE
/* Computes the sums of a tile, which are added up outside of the tensor cores. */
__device__ __forceinline__ void multiply_promoting(consumer &c, unsigned steps)
{
  const unsigned most = KILN_PROMOTE * KILN_TERMS;
  sum total[parts_m][KILN_WGMMA_N / 2] = {};

  for (unsigned done = 0; done < steps; done += most) {
    multiply(c, steps - done < most ? steps - done : most);
    finish(c);
#pragma unroll
    for (unsigned j = 0; j < parts_m; ++j)
#pragma unroll
      for (unsigned e = 0; e < KILN_WGMMA_N / 2; ++e)
        total[j][e] += c.at[j][e];
  }
#pragma unroll
  for (unsigned j = 0; j < parts_m; ++j)
#pragma unroll
    for (unsigned e = 0; e < KILN_WGMMA_N / 2; ++e)
      c.at[j][e] = total[j][e];
}
#endif

/* Where a consumer stores its sums. */
struct output : kiln::gemm_output {
  unsigned row, column; /* of the consumer's first sum */

  __device__ __forceinline__ output(const user::args &in,
                                    const kiln::gemm_args &g, place at,
                                    unsigned r, unsigned k)
      : kiln::gemm_output(in, g, at.batch), row(at.row + r),
        column(at.column + k)
  {
  }
};

#if KILN_TURNED
#if KILN_TURNED == 2
/* Stores two sums of consecutive rows, whose elements of D are consecutive. */
__device__ __forceinline__ void store_rows(const output &o, unsigned row,
                                           unsigned column, sum first,
                                           sum second)
{
  KILN_D *to = o.d + column * o.g.d.leading + row;

  if (row >= o.g.m || column >= o.g.n)
    return;
  if (row + 1 < o.g.m) {
    const KILN_D two[2] = {o.element(first, row, column),
                           o.element(second, row + 1, column)};

    kiln::store_raw<2, KILN_VECTOR_D == 2>(to, two);
  } else {
    to[0] = o.element(first, row, column);
  }
}
#endif

__device__ __forceinline__ void store_tile(const consumer &c, const output &o)
{
  const unsigned row = o.row + first_row(c);
  const unsigned column = o.column + c.thread % 4 * 2;

#pragma unroll
  for (unsigned e = 0; e < KILN_WGMMA_N / 2; e += 4)
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)
#if KILN_TURNED == 2
      store_rows(o, row, column + e * 2 + i, c.at[0][e + i],
                 c.at[0][e + i + 2]);
#else
      kiln::gemm_store_pair(o, row + i, column + e * 2, &c.at[0][e + 2 * i]);
#endif
}
#elif !KILN_STAGED
__device__ __forceinline__ void store_tile(const consumer &c, const output &o)
{
  const unsigned row = o.row + c.thread / 32 * 16 + c.thread % 32 / 4;
  const unsigned column = o.column + c.thread % 4 * 2;

#pragma unroll
  for (unsigned j = 0; j < parts_m; ++j)
#pragma unroll
    for (unsigned e = 0; e < KILN_WGMMA_N / 2; e += 2)
      kiln::gemm_store_pair(o, row + j * 64 + e % 4 * 4, column + e / 4 * 8,
                            &c.at[j][e]);
}

#else
/* Returns the bits of an element of D. Elements outside of D are computed as if they
 * were in the last row or column, so that their text reads no other places. Nothing
 * stores them. */
__device__ __forceinline__ unsigned bits_of(const output &o, unsigned r,
                                            unsigned k, sum s)
{
  const unsigned row = kiln::least(r, static_cast<unsigned>(o.g.m) - 1);
  const unsigned column = kiln::least(k, static_cast<unsigned>(o.g.n) - 1);
  const KILN_D value = o.element(s, row, column);
  unsigned bits = 0;

  memcpy(&bits, &value, sizeof value);
  return bits;
}

/* Returns the address of 16 bytes of a row of a staged box. */
__device__ __forceinline__ unsigned staged_at(unsigned box, unsigned row,
                                              unsigned chunk)
{
  return box + row * 128 + ((chunk ^ row % 8) * 16);
}

/* Writes 16 columns of 64 rows of D of 2 bytes, 8 x 8 elements per address. The thread's
 * first sum is that of element (r, k). */
__device__ __forceinline__ void stage_columns(unsigned box, const consumer &c,
                                              const output &o, unsigned r,
                                              unsigned k, unsigned column,
                                              const sum *s)
{
  const unsigned lane = c.thread % 32, row = c.thread / 32 * 16 + lane % 16;
  unsigned two[4];

#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned at_r = r + i % 2 * 8, at_k = k + i / 2 * 8;

    two[i] = bits_of(o, at_r, at_k, s[2 * i]) |
             bits_of(o, at_r, at_k + 1, s[2 * i + 1]) << 16;
  }
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], "
      "{%1, %2, %3, %4};" ::"r"(staged_at(box, row, column / 8 + lane / 16)),
      "r"(two[0]), "r"(two[1]), "r"(two[2]), "r"(two[3])
      : "memory");
}

__device__ __forceinline__ void write_two(unsigned at, const unsigned (&v)[2])
{
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(v[0]),
               "r"(v[1])
               : "memory");
}

/* Writes 8 rows of the thread's warp and 32 columns of D of 4 bytes. Odd rows write the
 * last 16 columns first: the 16 threads whose stores are served together then access
 * different banks. */
__device__ __forceinline__ void stage_row(unsigned box, const consumer &c,
                                          const output &o, unsigned row,
                                          unsigned r, unsigned k, const sum *s)
{
  const unsigned t = c.thread % 4, odd = row % 2;

#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned chunk = (2 * i + t / 2) ^ odd * 4;
    unsigned v[2], w[2];

#pragma unroll
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned left = bits_of(o, r, k + i * 8 + e, s[i * 4 + e]);
      const unsigned right =
          bits_of(o, r, k + i * 8 + 16 + e, s[i * 4 + 8 + e]);

      v[e] = odd ? right : left;
      w[e] = odd ? left : right;
    }
    write_two(staged_at(box, row, chunk) + t % 2 * 8, v);
    write_two(staged_at(box, row, chunk ^ 4) + t % 2 * 8, w);
  }
}

/* Writes a box of D: 64 rows, and 128 bytes of each. */
__device__ __forceinline__ void stage_box(unsigned box, const consumer &c,
                                          const output &o, unsigned r,
                                          unsigned k, const sum *s)
{
  const unsigned row = c.thread / 32 * 16 + c.thread % 32 / 4;

#pragma unroll
  for (unsigned i = 0; i < 64 && sizeof(KILN_D) == 2; i += 16)
    stage_columns(box, c, o, r + row, k + c.thread % 4 * 2 + i, i, s + i / 2);
#pragma unroll
  for (unsigned h = 0; h < 2 && sizeof(KILN_D) == 4; ++h)
    stage_row(box, c, o, row + 8 * h, r + row + 8 * h, k + c.thread % 4 * 2,
              s + 2 * h);
}

#if KILN_VECTOR_D == 8
/* Waits for all threads of a consumer. */
__device__ __forceinline__ void group_sync(const consumer &c)
{
  asm volatile("bar.sync %0, 128;" ::"r"(1 + c.number) : "memory");
}

/* Waits until the store that reads the next staged box has done so. */
__device__ __forceinline__ void open_stage(const consumer &c)
{
  if (c.thread == 0)
    kiln::tma_store_wait<KILN_STAGED / box_n - 1>();
  group_sync(c);
}

/* Stores a staged box to D from element (r, k) on. */
__device__ __forceinline__ void close_stage(const consumer &c, const output &o,
                                            const kiln::tensor_map &d,
                                            unsigned from, unsigned r,
                                            unsigned k)
{
  kiln::tma_fence();
  group_sync(c);
  if (c.thread != 0)
    return;
  kiln::tma_store(d, from, static_cast<int>(k), static_cast<int>(r),
                  static_cast<int>(o.batch));
  kiln::tma_store_commit();
}
#else
__device__ __forceinline__ void open_stage(const consumer &)
{
  __syncwarp();
}

/* Stores elements 2 * lane and 2 * lane + 1 of 64, of which the first `count` exist. If
 * the address is odd, the lanes store the pairs between these pairs, and single
 * elements at both ends. */
__device__ __forceinline__ void store_line(unsigned short *to, unsigned count,
                                           unsigned pair)
{
  const unsigned lane = threadIdx.x % 32;
  const bool odd = reinterpret_cast<unsigned long long>(to) & 2;
  const unsigned next = __shfl_down_sync(~0u, pair, 1);
  const unsigned at = 2 * lane + odd;

  if (odd && lane == 0 && count > 0)
    to[0] = static_cast<unsigned short>(pair);
  if (odd)
    pair = pair >> 16 | next << 16;
  if (at + 1 < count && !(odd && lane == 31))
    *reinterpret_cast<unsigned *>(to + at) = pair;
  else if (at < count)
    to[at] = static_cast<unsigned short>(pair);
}

/* Stores a warp's rows of 64 staged columns to D from element (r, k) on. */
__device__ __forceinline__ void close_stage(const consumer &c, const output &o,
                                            const kiln::tensor_map &,
                                            unsigned from, unsigned r,
                                            unsigned k)
{
  const unsigned first = c.thread / 32 * 16, lane = c.thread % 32;

  __syncwarp();
#pragma unroll 4
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned row = first + i;
    unsigned pair;

    asm volatile(
        "ld.shared.u32 %0, [%1];"
        : "=r"(pair)
        : "r"(from + row * 128 + ((lane / 4 ^ row % 8) * 16) + lane % 4 * 4)
        : "memory");
    if (r + row < o.g.m && k < o.g.n)
      store_line(reinterpret_cast<unsigned short *>(
                     o.d + (r + row) * o.g.d.leading + k),
                 o.g.n - k < 64 ? static_cast<unsigned>(o.g.n - k) : 64, pair);
  }
}
#endif

__device__ __forceinline__ void store_tile(const consumer &c, const output &o,
                                           const kiln::tensor_map &d)
{
  const unsigned stage = c.shared + KILN_STAGES * bytes + c.number * staged;

#pragma unroll
  for (unsigned j = 0; j < parts_m; ++j)
#pragma unroll
    for (unsigned k = 0; k < KILN_WGMMA_N; k += box_n) {
      const unsigned box = stage + k % KILN_STAGED / box_n * 8192;
      const unsigned r = o.row + j * 64;

      open_stage(c);
      stage_box(box, c, o, r, o.column + k, &c.at[j][k / 2]);
      close_stage(c, o, d, box, r, o.column + k);
    }
}
#endif

__device__ __forceinline__ void compute_tile(consumer &c, const user::args &in,
                                             const kiln::gemm_args &g,
                                             const gemm_tiles &p, place at,
                                             const kiln::tensor_map &d)
{
  const unsigned row = c.number / KILN_GROUPS_N * group_m;
  const unsigned column = c.number % KILN_GROUPS_N * KILN_WGMMA_N;
  const output o(in, g, at, row, column);

#if KILN_PROMOTE
  multiply_promoting(c, p.steps);
#else
  multiply(c, p.steps);
  finish(c);
#endif
#if KILN_STAGED
  store_tile(c, o, d);
#else
  store_tile(c, o);
#endif
}

__device__ __forceinline__ void
consume(const user::args &in, const kiln::gemm_args &g, const gemm_tiles &p,
        const kiln::tensor_map &d, unsigned shared)
{
  const unsigned rank = cluster > 1 ? kiln::cluster_rank() : 0;
  consumer c;

  c.shared = shared;
  c.number = threadIdx.x / 128 - 1;
  c.thread = threadIdx.x % 128;
  for (unsigned t = blockIdx.x / cluster; t < p.total; t += gridDim.x / cluster)
    compute_tile(c, in, g, p, place_of(p, t, rank), d);
  if (KILN_VECTOR_D == 8 && c.thread == 0)
    kiln::tma_store_wait<0>();
}

__device__ __forceinline__ void sync_cluster()
{
  if (cluster > 1)
    kiln::cluster_sync();
  else
    __syncthreads();
}

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, 1)
#if KILN_CLUSTER_M * KILN_CLUSTER_N > 1
    __cluster_dims__(KILN_CLUSTER_M *KILN_CLUSTER_N, 1, 1)
#endif
        gemm_wgmma(const __grid_constant__ user::args in,
                   const __grid_constant__ kiln::gemm_args g,
                   const __grid_constant__ gemm_tiles p,
                   const __grid_constant__ kiln::tensor_map a,
                   const __grid_constant__ kiln::tensor_map b,
                   const __grid_constant__ kiln::tensor_map d)
{
  extern __shared__ __align__(1024) unsigned char stages[];
  const unsigned shared = kiln::shared_address(stages);

  /* The next launch of the stream may start now, and wait as this one does. */
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (threadIdx.x == 0) {
    for (unsigned s = 0; s < KILN_STAGES; ++s) {
      kiln::mbarrier_init(shared + full_at + 8 * s, 1);
      kiln::mbarrier_init(shared + empty_at + 8 * s,
                          KILN_CONSUMERS * (KILN_TURNED ? 4 : 1) * cluster);
    }
    kiln::mbarrier_publish();
  }
  sync_cluster();
  /* Earlier launches of the stream may still use the matrices before this line. */
  asm volatile("griddepcontrol.wait;" ::: "memory");
  /* The producer gives registers to the consumers. */
  if (threadIdx.x < 128) {
    if (KILN_CONSUMERS > 1)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      produce(a, b, p, shared);
  } else {
    if (KILN_CONSUMERS > 1)
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(in, g, p, d, shared);
  }
  if (cluster > 1)
    sync_cluster();
}
#else
extern "C" __global__ void gemm_wgmma(const user::args, const kiln::gemm_args,
                                      const gemm_tiles, kiln::tensor_map,
                                      kiln::tensor_map, kiln::tensor_map)
{
}
#endif

#include <kiln/user_texts.cuh>
