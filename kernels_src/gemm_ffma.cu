/* gemm_ffma.cu -- products of f32 by multiply-add instructions, for 9.0: some warps copy,
 * the others only multiply.
 *
 * Problem: in gemm_simt.cu every warp copies tiles to shared memory, computes addresses
 * and waits at barriers. That costs instruction slots, and registers: ptxas then cannot
 * place sums and fragments in different banks of the register file, and multiply-adds
 * wait for their operands (stall reason "dispatch"). The tiles of a matrix rarely fill
 * the SMs a whole number of times.
 *
 * Idea: four warps copy elements by cp.async to a ring of stages and keep few registers.
 * The other warps load fragments and multiply. Each stage has two mbarriers: `full`
 * counts the threads whose copies have arrived, `empty` the warps that have read the
 * stage. Nothing else waits, so one warp may store its part of D while others multiply.
 * The main loop starts with the products of the position before, whose operands are in
 * registers, while the first loads of the new stage are in flight. The compiler keeps
 * this order, since it does not move instructions over the start of a loop.
 *
 * A launch has as many blocks as run at the same time, and all get the same number of
 * steps (stream-k): first a part of the sums of one or two tiles, then whole tiles. Of
 * the blocks that share a tile, the one with its first step adds the sums of the others
 * to its own in a fixed order, and stores D.
 *
 * Invariants: a stage is filled again only after all warps have read it. A tile that
 * would exceed the matrix starts earlier, and stores only its own rows and columns. A
 * block waits only for blocks of a lower index, because these have the later steps.
 *
 * Cost: 48 loads and about 20 other instructions per 1024 products of a thread. On an
 * H200, 90 % of the slots issue an instruction; most others wait for registers.
 *
 * Sources: warp specialisation as in CUTLASS (Kerr, Merrill, Demouth, Tran, 2017);
 * Osama et al., Stream-K, 2023; Huerta et al., Analyzing modern NVIDIA GPU cores, 2025,
 * for the banks of the register file.
 *
 * Parameters:
 *   KILN_T         type float  type of an element of A and B: float
 *   KILN_C         type float  type of an element of C
 *   KILN_D         type float  type of an element of D
 *   KILN_READS_C   0           1 if beta is not 0
 *   KILN_POINTERS  0           bits 0 to 3: A, B, C, D are given by arrays of pointers
 *   KILN_SWAPPED   0           1 if the epilogue gets row and column exchanged
 *   KILN_INPUTS    0           number of further inputs of the epilogue
 *   KILN_TILE_N    256         columns of D per block: 128 or 256
 *   KILN_STAGES    4           stages in shared memory
 *   KILN_A_K       1           1 if consecutive elements of A belong to one row
 *   KILN_VECTOR_A  1           elements of A per copy: 1 if KILN_A_K
 *   KILN_VECTOR_B  4           elements of B, of one row, per copy
 *   KILN_VECTOR_D  4           elements of D per store
 * Generated code (user.cuh): epilogue (gemm.cuh).
 * Launch: blocks of 128 + TILE_N threads, at most 256 / TILE_N per SM. m is at least
 *         128, n at least TILE_N. Dynamic shared memory: the stages of A and B with 128
 *         bytes each for barriers.
 *         t       how tiles are numbered
 *         shared  number of tiles, the first ones, that blocks share
 *         parts   temporary storage: sums of one tile per block
 *         words   one tile descriptor per block
 * Result: D. The same launch gives the same bits. Without sm_90a it is an empty kernel. */
#include <kiln/params/gemm_ffma.cuh>

#ifndef KILN_HAS_WGMMA
#define KILN_HAS_WGMMA 0
#endif
#define KILN_HELPERS 128 /* threads that copy */
#define KILN_TILE_M 128
#define KILN_TILE_K 8
#define KILN_THREAD_M 8
#define KILN_THREAD_N 16
#define KILN_LANES_M 8
#define KILN_WARPS_M 2
#define KILN_B_K 0
#define KILN_CLAMP 0
#define KILN_SPLIT 1
#define KILN_MAX_BLOCK (KILN_HELPERS + KILN_TILE_N)
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/gemm_sums.cuh>
#include <kiln/mbarrier.cuh>

#if KILN_HAS_WGMMA

namespace
{

/* Keeps the compiler from computing a value again in the loop. */
__device__ __forceinline__ unsigned keep(unsigned v)
{
  asm volatile("mov.u32 %0, %0;" : "+r"(v));
  return v;
}

/* The copies of one operand by the threads that copy, with few instructions. Shared
 * memory holds a stage as [position of the sum][row or column]. The pad of 16 bytes
 * spreads elements of a line of the matrix over the banks.
 *   k_first  true if the lines of the matrix follow the sum
 *   vec      elements per copy: 1 if k_first */
template <unsigned rows, bool k_first, unsigned vec> struct feed {
  enum : unsigned {
    pitch = rows + 4,
    bytes = pitch * KILN_TILE_K * 4,
    per_line = (k_first ? KILN_TILE_K : rows) / vec,
    /* What all threads copy at a time: lines, or a part of one. */
    lines = per_line < KILN_HELPERS ? KILN_HELPERS / per_line : 1,
    parts = per_line < KILN_HELPERS ? 1 : per_line / KILN_HELPERS,
    count = rows * KILN_TILE_K / vec / KILN_HELPERS
  };
  static_assert(!k_first || vec == 1, "vec: elements that are turned");

  const float *from[k_first ? count : 1]; /* the thread's next elements */
  unsigned long long leading;
  unsigned slot, k; /* place of the first one in the stage, its position */

  __device__ __forceinline__ void
  open(const float *tile, unsigned long long line_pitch, unsigned, unsigned at)
  {
    const unsigned line = threadIdx.x / per_line;
    const unsigned place = threadIdx.x % per_line * vec;

    k = k_first ? place : line;
    slot = at + (k * pitch + (k_first ? line : place)) * 4;
    leading = line_pitch;
    asm volatile("mov.u64 %0, %0;" : "+l"(leading));
    from[0] = tile + line * leading + place;
#pragma unroll
    for (unsigned i = 1; k_first && i < count; ++i)
      from[i] = from[i - 1] + lines * leading;
  }

  /* Starts the copies of a stage. `ahead` stages of the same line lie before it. If
   * `ragged`, only `depth` positions exist, and the others become zeros. */
  template <bool ragged>
  __device__ __forceinline__ void load(unsigned stage, unsigned depth,
                                       unsigned ahead)
  {
    const float *next = from[0];

#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const unsigned line = i / parts * lines;
      const unsigned along = i % parts * KILN_HELPERS * vec;
      const unsigned place = k_first ? line : line * pitch + along;
      const float *at = k_first ? from[i] + ahead * KILN_TILE_K : next + along;
      const bool here = !ragged || k + (k_first ? 0 : line) < depth;

      kiln::gemm_async<vec * 4>(slot + stage + place * 4, here ? at : from[0],
                                here);
      if (i % parts == parts - 1)
        next += lines * leading;
    }
    if (!k_first)
      from[0] = ragged ? from[0] + depth * leading : next;
  }

  /* Goes on by `n` positions in the lines. */
  __device__ __forceinline__ void advance(unsigned n)
  {
#pragma unroll
    for (unsigned i = 0; k_first && i < count; ++i)
      from[i] += n;
  }
};

typedef feed<KILN_TILE_M, KILN_A_K, KILN_VECTOR_A> copy_a;
typedef feed<KILN_TILE_N, KILN_B_K, KILN_VECTOR_B> copy_b;

enum : unsigned {
  full_at = copy_a::bytes + copy_b::bytes, /* places of the barriers */
  empty_at = full_at + 8,
  stage_bytes = full_at + 128,
  ring = KILN_STAGES * stage_bytes,
  run = 4 /* stages that are copied without advancing pointers in between */
};

static_assert(KILN_TILE_K % 2 == 0, "KILN_TILE_K: two sets of fragments");

/* A position in the ring of stages. */
struct place {
  unsigned shared, stage, parity; /* addresses of the ring and of the stage */

  __device__ __forceinline__ void advance()
  {
    stage += stage_bytes;
    if (stage == shared + ring) {
      stage = shared;
      parity ^= 1;
    }
  }
};

/* ---- The work of a block ------------------------------------------------- */

/* A part of the sum of a tile: steps `from` to `to` - 1. The first step of a tile has
 * the positions that do not fill a stage. */
struct share {
  unsigned tile, from, to;
};

/* The shares of a block, in their order. */
struct schedule {
  unsigned steps;  /* per tile */
  unsigned worker; /* number of the block in the order of the steps */
  unsigned step, end, tile, tiles;

  __device__ __forceinline__ schedule(const kiln::gemm_args &g,
                                      const kiln::gemm_tiling &t,
                                      unsigned shared)
      : steps(static_cast<unsigned>((g.k + KILN_TILE_K - 1) / KILN_TILE_K)),
        worker(gridDim.x - 1 - blockIdx.x), step(first_step(shared, worker)),
        end(first_step(shared, worker + 1)), tile(shared + worker),
        tiles(static_cast<unsigned>(t.all))
  {
  }

  /* Returns the first step of a worker among the steps of the shared tiles. */
  __device__ __forceinline__ unsigned first_step(unsigned shared,
                                                 unsigned of) const
  {
    return static_cast<unsigned>(static_cast<unsigned long long>(shared) *
                                 steps * of / gridDim.x);
  }

  __device__ __forceinline__ bool next(share &s)
  {
    if (step < end) {
      s.tile = step / steps;
      s.from = step - s.tile * steps;
      s.to = end - step < steps - s.from ? s.from + end - step : steps;
      step += s.to - s.from;
      return true;
    }
    s = {tile, 0, steps};
    tile += gridDim.x;
    return s.tile < tiles;
  }
};

__device__ __forceinline__ kiln::gemm_work
tile_of(const kiln::gemm_args &g, const kiln::gemm_tiling &t, unsigned tile)
{
  kiln::gemm_work w;

  w.tile = tile;
  w.part = 0;
  kiln::find_tile(w, g, t);
  return w;
}

/* ---- Threads that copy --------------------------------------------------- */

/* Starts the copies of a step. They arrive at the stage's barrier when they are done. */
template <bool ragged>
__device__ __forceinline__ void copy_step(copy_a &a, copy_b &b, place &p,
                                          unsigned depth, unsigned ahead)
{
  kiln::mbarrier_wait(p.stage + empty_at, p.parity);
  a.template load<ragged>(p.stage, depth, ahead);
  b.template load<ragged>(p.stage, depth, ahead);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                   p.stage + full_at)
               : "memory");
  p.advance();
}

/* Copies `steps` complete stages. */
__device__ __forceinline__ void copy_steps(copy_a &a, copy_b &b, place &p,
                                           unsigned steps)
{
  for (; steps >= run; steps -= run) {
#pragma unroll
    for (unsigned i = 0; i < run; ++i)
      copy_step<false>(a, b, p, 0, i);
    a.advance(run * KILN_TILE_K);
    b.advance(run * KILN_TILE_K);
  }
  for (; steps > 0; --steps) {
    copy_step<false>(a, b, p, 0, 0);
    a.advance(KILN_TILE_K);
    b.advance(KILN_TILE_K);
  }
}

__device__ __forceinline__ void copy_all(const kiln::gemm_args &g,
                                         const kiln::gemm_tiling &t,
                                         unsigned first, unsigned shared)
{
  const unsigned head = static_cast<unsigned>((g.k - 1) % KILN_TILE_K) + 1;
  schedule order(g, t, first);
  place p = {shared, shared, 1};
  share s;

  while (order.next(s)) {
    const kiln::index k =
        s.from == 0 ? 0
                    : head + static_cast<kiln::index>(s.from - 1) * KILN_TILE_K;
    copy_a a;
    copy_b b;

    kiln::open_copies(a, b, g, tile_of(g, t, s.tile), k, 0);
    if (s.from == 0) {
      copy_step<true>(a, b, p, head, 0);
      a.advance(head);
      b.advance(head);
      ++s.from;
    }
    copy_steps(a, b, p, s.to - s.from);
  }
  kiln::gemm_async_wait<0>();
}

/* ---- Threads that multiply ----------------------------------------------- */

/* Computes the sums over the next `steps` stages. `a` and `b` are the offsets of the
 * thread's first elements in a stage. */
__device__ __forceinline__ void multiply(place &p, unsigned a, unsigned b,
                                         unsigned steps, kiln::gemm_sums &s)
{
  kiln::fragments f[2] = {};

  kiln::clear(s);
  for (;;) {
    kiln::mbarrier_wait(p.stage + full_at, p.parity);
#pragma unroll
    for (unsigned k = 0; k < KILN_TILE_K; ++k) {
      kiln::load_fragments<copy_a::pitch, copy_b::pitch>(
          p.stage + a, p.stage + b, k, f[k % 2]);
      kiln::add_products(f[(k + 1) % 2], s);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      kiln::mbarrier_arrive(p.stage + empty_at);
    p.advance();
    if (--steps == 0)
      break;
  }
  kiln::add_products(f[1], s);
}

/* Adds the parts of a tile's sum that other blocks have computed. */
__device__ __forceinline__ void collect(const kiln::gemm_parts &parts,
                                        const schedule &order, unsigned first,
                                        unsigned tile, kiln::gemm_sums &s)
{
  const unsigned end = (tile + 1) * order.steps;
  unsigned count = 0;

  for (unsigned w = order.worker + 1; order.first_step(first, w) < end; ++w)
    ++count;
  parts.wait(order.worker + 1, 1, count);
  for (unsigned i = 1; i <= count; ++i)
    parts.add(s, order.worker + i);
}

/* Registers of a thread that copies, and of one that multiplies. The latter has 128
 * sums and 48 elements of A and B. */
enum : unsigned { few = 40, many = KILN_TILE_N == 256 ? 232 : 216 };

} // namespace
#endif

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK, 256 / KILN_TILE_N)
    gemm_ffma(const user::args in, const kiln::gemm_args g,
              const kiln::gemm_tiling t, unsigned first, kiln::gemm_acc *parts, unsigned long long *words,
              unsigned epoch)
{
#if KILN_HAS_WGMMA
  extern __shared__ uint4 memory[];
  const unsigned shared = keep(kiln::shared_address(memory));

  if (threadIdx.x == 0) {
    for (unsigned at = shared; at < shared + ring; at += stage_bytes) {
      kiln::mbarrier_init(at + full_at, KILN_HELPERS);
      kiln::mbarrier_init(at + empty_at, kiln::workers / 32);
    }
    kiln::mbarrier_publish();
  }
  __syncthreads();
  if (threadIdx.x < KILN_HELPERS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(+few));
    copy_all(g, t, first, shared);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(+many));
    const kiln::gemm_position at = kiln::my_position();
    const unsigned a = keep(at.row * 4),
                   b = keep(copy_a::bytes + at.column * 4);
    const kiln::gemm_parts others = {
        parts, words, kiln::descriptor_tag(epoch, kiln::status_partial)};
    schedule order(g, t, first);
    place p = {shared, shared, 0};
    share s;

    while (order.next(s)) {
      kiln::gemm_sums sums;

      multiply(p, a, b, s.to - s.from, sums);
      if (s.from != 0) {
        others.publish(sums, order.worker);
        continue;
      }
      if (s.to != order.steps)
        collect(others, order, first, s.tile, sums);
      kiln::finish(in, g, tile_of(g, t, s.tile), kiln::my_position(), sums);
    }
  }
#endif
}

#include <kiln/user_texts.cuh>
