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
 *         t       how tiles are numbered
 *         splits  number of blocks that share a sum
 *         parts   temporary storage: sums of all tiles for each part but the last
 *         words   one tile descriptor per block whose part is not the last
 *         A part of the sum has less than 2^31 positions.
 * Result: D. The same launch gives the same bits. */
#include <kiln/params/gemm_simt.cuh>

#define KILN_MAX_BLOCK                                                         \
  (KILN_TILE_M / KILN_THREAD_M * KILN_TILE_N / KILN_THREAD_N)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#define KILN_HELPERS 0
#include <kiln/gemm_sums.cuh>

namespace
{

typedef kiln::gemm_copy<KILN_T, KILN_TILE_M, KILN_TILE_K, KILN_MAX_BLOCK,
                        KILN_A_K, KILN_VECTOR_A, KILN_ASYNC & 1, KILN_CLAMP & 1>
    copy_a;
typedef kiln::gemm_copy<KILN_T, KILN_TILE_N, KILN_TILE_K, KILN_MAX_BLOCK,
                        KILN_B_K, KILN_VECTOR_B, (KILN_ASYNC >> 1 & 1),
                        (KILN_CLAMP >> 1 & 1)>
    copy_b;

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

/* Computes the sums over the next `depth` positions, at least 1. `a` and `b` are the
 * addresses of the thread's first elements in the first stage. The first tile has the
 * positions that do not fill a tile, so that all others are complete. Tiles beyond the
 * last one are not read, but their stages are filled as if they were, which keeps
 * branches out of the loop. One loop fills the first stages, since a copy of its body
 * per stage takes long to compile. */
__device__ __forceinline__ void sum_products(operands &o, unsigned a,
                                             unsigned b, unsigned depth,
                                             kiln::gemm_sums &s)
{
  const unsigned head = (depth - 1) % KILN_TILE_K + 1;
  int to_load = static_cast<int>((depth - head) / KILN_TILE_K);
  unsigned read = 0, written = (KILN_STAGES - 1) * stage_bytes;
  kiln::fragments f[2];

#pragma unroll 1
  for (unsigned t = 0; t + 1 < KILN_STAGES; ++t) {
    o.load<true>(t * stage_bytes,
                 t == 0 ? head : to_load > 0 ? KILN_TILE_K : 0, true);
    o.store(t * stage_bytes);
    to_load -= t > 0;
  }
  wait_for_tile();
  kiln::load_fragments<copy_a::pitch, copy_b::pitch>(a, b, 0, f[0]);
  for (; to_load > -static_cast<int>(KILN_STAGES - 1); --to_load)
#pragma unroll
    for (unsigned k = 0; k < KILN_TILE_K; ++k) {
      if (k + 1 == KILN_TILE_K) {
        o.store(written);
        read = next_stage(read);
        written = next_stage(written);
        wait_for_tile();
      }
      kiln::load_fragments<copy_a::pitch, copy_b::pitch>(
          a + read, b + read, (k + 1) % KILN_TILE_K, f[(k + 1) % 2]);
      if (k == 0)
        o.load<false>(written, 0, to_load > 0);
      kiln::add_products(f[k % 2], s);
    }
  if (KILN_ASYNC != 0)
    kiln::gemm_async_wait<0>();
  __syncthreads();
}

/* Finds the block's tile and its part of the sum. */
__device__ __forceinline__ bool find_work(kiln::gemm_work &w,
                                          const kiln::gemm_args &g,
                                          const kiln::gemm_tiling &t,
                                          unsigned splits)
{
  const kiln::index block = kiln::block_number();

  w.part = KILN_SPLIT ? static_cast<unsigned>(
                            kiln::divide(block, t.all, t.over_all))
                      : 0;
  w.tile = block - w.part * t.all;
  kiln::find_tile(w, g, t);
  return w.part < splits && w.tile < t.all;
}

/* Computes the block's part of the sums. */
__device__ __forceinline__ void sum_part(const kiln::gemm_args &g,
                                         const kiln::gemm_work &w,
                                         unsigned splits, unsigned shared,
                                         kiln::gemm_sums &s)
{
  const unsigned long long steps = (g.k + KILN_TILE_K - 1) / KILN_TILE_K;
  const kiln::gemm_position at = kiln::my_position();
  unsigned long long from = 0, to = g.k;
  operands o;

  if (KILN_SPLIT) {
    from = steps * w.part / splits * KILN_TILE_K;
    if (w.part + 1 < splits)
      to = steps * (w.part + 1) / splits * KILN_TILE_K;
  }
  kiln::open_copies(o.a, o.b, g, w, from, shared);
  if (from < to)
    sum_products(o, shared + at.row * sizeof(kiln::staged),
                 shared + copy_a::bytes + at.column * sizeof(kiln::staged),
                 static_cast<unsigned>(to - from), s);
}

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, KILN_PER_SM)
    gemm_simt(const user::args in, const kiln::gemm_args g,
              const kiln::gemm_tiling t, unsigned splits, kiln::gemm_acc *parts,
              unsigned long long *words, unsigned epoch)
{
  extern __shared__ uint4 shared[];
  __shared__ kiln::gemm_work kept;
  kiln::gemm_sums s;
  kiln::gemm_work w;

  if (!find_work(w, g, t, splits))
    return;
  /* The main loop needs all registers. */
  if (threadIdx.x == 0)
    kept = w;
  kiln::clear(s);
  sum_part(g, w, splits, kiln::gemm_shared(shared), s);
  __syncthreads();
  w = kept;
#if KILN_SPLIT
  {
    const kiln::gemm_parts others = {
        parts, words, kiln::descriptor_tag(epoch, kiln::status_partial)};

    if (w.part + 1 < splits) {
      others.publish(s, w.part * t.all + w.tile);
      return;
    }
    others.wait(w.tile, t.all, splits - 1);
    for (unsigned p = 0; p + 1 < splits; ++p)
      others.add(s, p * t.all + w.tile);
  }
#else
  (void)parts;
  (void)words;
  (void)epoch;
#endif
  kiln::finish(in, g, w, kiln::my_position(), s);
}

#include <kiln/user_texts.cuh>
