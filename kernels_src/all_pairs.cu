/* all_pairs.cu -- for each target, reduce an expression over all sources.
 *
 * Problem: out[i] = op over all j of expr(target i, source j). Each pair takes a few
 * arithmetic instructions, so the kernel must issue almost nothing else.
 *
 * Idea: a thread keeps KILN_TARGETS targets and their partial results in registers. A block
 * stages KILN_BLOCK sources in shared memory, where all lanes read the same source at the
 * same time. One such read therefore serves 32 * KILN_TARGETS pairs. If there are few
 * targets, several blocks share them, and each block takes a range of the sources.
 *
 * Mirrored pairs: if expr(j, i) equals expr(i, j) or its negation, all_pairs_mirrored
 * evaluates each pair once. A row is a group of KILN_BLOCK * KILN_TARGETS elements, which
 * one block holds in registers. The rows form a ring. Row r meets itself and the next
 * rows / 2 rows, so every pair of rows meets once; if the number of rows is even, only the
 * first half of the rows meets the row on the other side of the ring. A warp takes 32
 * sources at a time. In each of 32 steps, lane l combines its targets with source
 * (l + step) % 32. The partial results of the sources move from lane to lane with the
 * sources, and need no other lane's result until the end. The warps add their partial
 * results through shared memory.
 *
 * Invariant: each partial result is written by one thread, in a slot of its own, and
 * all_pairs_finish combines the slots in ascending order. The result is therefore the same
 * in every run.
 *
 * Cost: 1 / KILN_TARGETS shared loads per pair. Mirrored pairs also take a shuffle per
 * output, for two pairs each. The slots take one element of type acc per output, target
 * and slot.
 *
 * Sources: Nyland, Harris and Prins, Fast N-Body Simulation with CUDA, GPU Gems 3, 2007
 * (tiles in shared memory); half of the pairs on a ring is a schedule of round-robin
 * tournaments.
 *
 * Parameters:
 *   KILN_BLOCK       256            threads per block, and sources per tile
 *   KILN_TARGETS     4              targets per thread
 *   KILN_UNROLL      8              sources per round of the unrolled loop
 *   KILN_RESIDENT    2              blocks per SM that the register limit allows
 *   KILN_OUTPUTS     1              number of outputs, 1 to 4
 *   KILN_ARG         0              1 finds the minimum and its source, 2 the maximum; 0
 *                                   uses the operation
 *   KILN_MIRROR      0              what expr(j, i) is: 0 unrelated, 1 expr(i, j), 2
 *                                   -expr(i, j)
 *   KILN_SPLIT       0              1 if the results go to slots
 *   KILN_ACCUMULATE  0              1 combines the results with the contents of the outputs
 *   KILN_SMALL       0              1 if n and m are below 2^31
 *   KILN_T0          type float     type of an element of output 0
 *   KILN_T1          type float     type of an element of output 1
 *   KILN_T2          type float     type of an element of output 2
 *   KILN_T3          type float     type of an element of output 3
 *   KILN_INDEX       type unsigned  type of an element of `at`
 * Generated code (user.cuh): acc, op, and
 *   target, source               structs of the fields of a target and of a source
 *   load_target(s, i), load_source(s, j)   load all fields of one element
 *   pair(s, t, o, i, j, v)       computes the expressions for target t with index i and
 *                                source o with index j into v[KILN_OUTPUTS]
 *   epilogue(s, t, i, v)         applies the epilogues to the results of target i
 * Launch: all_pairs takes a grid of (n / (KILN_BLOCK * KILN_TARGETS), splits), rounded up,
 *         where split y takes the sources from y * per_split on. all_pairs_mirrored takes a
 *         grid of (rows, segments). all_pairs_finish takes one thread per target. The block
 *         size is KILN_BLOCK.
 *         n, m            number of targets and of sources
 *         slots, slot_at  partial results: slot k holds KILN_OUTPUTS arrays of n elements
 *                         of type acc, followed in slot_at by n indices if KILN_ARG is set
 *         out0..3, at     outputs; unused outputs are NULL
 * Result: the same bits for the same input, grid and specialisation. */
#include <kiln/params/all_pairs.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/user.cuh>

#include <kiln/accumulators.cuh>

#if !KILN_GENERATED
namespace user
{

struct target {
  float x;
};
typedef target source;

static __device__ __forceinline__ target load_target(const args &s, index i)
{
  return {kiln::load(s.x0 + i)};
}

static __device__ __forceinline__ source load_source(const args &s, index j)
{
  return {kiln::load(s.x0 + j)};
}

static __device__ __forceinline__ void pair(const args &, const target &t,
                                            const source &o, index, index,
                                            acc (&v)[KILN_OUTPUTS])
{
#pragma unroll
  for (unsigned k = 0; k < KILN_OUTPUTS; ++k)
    v[k] = o.x - t.x;
}

static __device__ __forceinline__ void epilogue(const args &, const target &,
                                                index, acc (&)[KILN_OUTPUTS])
{
}

} // namespace user
#endif

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;
using user::acc;

enum : unsigned {
  row_size = KILN_BLOCK * KILN_TARGETS,
  unrolled = KILN_UNROLL
};

/* The partial result of one target. */
struct partial {
  acc value[KILN_OUTPUTS];
#if KILN_ARG
  count at; /* index of the source whose value is the extreme value */
#endif
};

struct outputs {
  KILN_T0 *out0;
  KILN_T1 *out1;
  KILN_T2 *out2;
  KILN_T3 *out3;
  KILN_INDEX *at;
};

/* Returns the partial result over no source. Its index is valid as soon as there
 * is a source, even if no value is beyond the identity. */
static __device__ __forceinline__ partial nothing(const user::args &in,
                                                  count first)
{
  partial p;

#if KILN_ARG
  p.value[0] = kiln::extremum_merge<KILN_ARG == 2, acc>::identity().value;
  p.at = first;
#else
#pragma unroll
  for (unsigned k = 0; k < KILN_OUTPUTS; ++k)
    p.value[k] = user::identity(in);
#endif
  return p;
}

/* Adds the values v of a later source, or the partial result of later sources,
 * whose extreme value belongs to source j. */
static __device__ __forceinline__ void
take(const user::args &in, partial &p, const acc (&v)[KILN_OUTPUTS], count j)
{
#if KILN_ARG
  const bool beyond = kiln::is_beyond<KILN_ARG == 2>(v[0], p.value[0]);

  p.value[0] = beyond ? v[0] : p.value[0];
  p.at = beyond ? j : p.at;
#else
#pragma unroll
  for (unsigned k = 0; k < KILN_OUTPUTS; ++k)
    p.value[k] = user::make_op(in)(p.value[k], v[k]);
#endif
}

template <class T>
static __device__ __forceinline__ void write(const user::args &in, T *to, acc v)
{
#if KILN_ACCUMULATE
  v = user::make_op(in)(static_cast<acc>(kiln::widen(*to)), v);
#endif
  kiln::store(to, v);
}

/* Applies the epilogue and writes all outputs of target i. */
static __device__ __forceinline__ void write_outputs(const user::args &in,
                                                     const user::target &t,
                                                     count i, partial p,
                                                     const outputs &to)
{
  user::epilogue(in, t, i, p.value);
  write(in, to.out0 + i, p.value[0]);
#if KILN_OUTPUTS > 1
  write(in, to.out1 + i, p.value[1]);
#endif
#if KILN_OUTPUTS > 2
  write(in, to.out2 + i, p.value[2]);
#endif
#if KILN_OUTPUTS > 3
  write(in, to.out3 + i, p.value[3]);
#endif
#if KILN_ARG
  to.at[i] =
      static_cast<KILN_INDEX>(p.at == ~static_cast<count>(0) ? ~0ull : p.at);
#endif
}

static __device__ __forceinline__ void write_slot(acc *slots, count *slot_at,
                                                  count slot, count n, count i,
                                                  const partial &p)
{
  acc *const to = slots + static_cast<size_t>(slot) * KILN_OUTPUTS * n + i;

#pragma unroll
  for (unsigned k = 0; k < KILN_OUTPUTS; ++k)
    to[static_cast<size_t>(k) * n] = p.value[k];
#if KILN_ARG
  slot_at[static_cast<size_t>(slot) * n + i] = p.at;
#endif
}

static __device__ __forceinline__ partial read_slot(const acc *slots,
                                                    const count *slot_at,
                                                    count slot, count n,
                                                    count i)
{
  const acc *const from =
      slots + static_cast<size_t>(slot) * KILN_OUTPUTS * n + i;
  partial p;

#pragma unroll
  for (unsigned k = 0; k < KILN_OUTPUTS; ++k)
    p.value[k] = from[static_cast<size_t>(k) * n];
#if KILN_ARG
  p.at = slot_at[static_cast<size_t>(slot) * n + i];
#endif
  return p;
}

/* The targets of a thread and their partial results. */
struct registers {
  user::target t[KILN_TARGETS];
  partial p[KILN_TARGETS];
};

/* Loads the targets first, first + KILN_BLOCK and so on. Indices above the last
 * element load the last element; its results are not stored twice. */
static __device__ __forceinline__ void load_targets(registers &r,
                                                    const user::args &in,
                                                    count first, count n,
                                                    count from)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_TARGETS; ++k) {
    const count i = first + k * KILN_BLOCK;

    r.t[k] = user::load_target(in, i < n ? i : n - 1);
    r.p[k] = nothing(in, from);
  }
}

/* Combines all targets of a thread with one source. */
static __device__ __forceinline__ void meet(registers &r, const user::args &in,
                                            const user::source &o, count first,
                                            count j)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_TARGETS; ++k) {
    acc v[KILN_OUTPUTS];

    user::pair(in, r.t[k], o, first + k * KILN_BLOCK, j, v);
    take(in, r.p[k], v, j);
  }
}

/* Combines all targets of a thread with the first `bound` sources of a tile. */
static __device__ __forceinline__ void
meet_all(registers &r, const user::args &in, const user::source *tile,
         unsigned bound, count first, count j)
{
  unsigned k = 0;

#pragma unroll 1
  for (; k + unrolled <= bound; k += unrolled)
#pragma unroll
    for (unsigned u = 0; u < unrolled; ++u)
      meet(r, in, tile[k + u], first, j + k + u);
#pragma unroll 1
  for (; k < bound; ++k)
    meet(r, in, tile[k], first, j + k);
}

#if KILN_MAKES(all_pairs)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_RESIDENT)
    all_pairs(const user::args in, unsigned long long n_targets,
              unsigned long long n_sources, unsigned long long per_split,
              acc *slots, count *slot_at, KILN_T0 *out0, KILN_T1 *out1,
              KILN_T2 *out2, KILN_T3 *out3, KILN_INDEX *at)
{
  __shared__ user::source tile[KILN_BLOCK];
  const count n = static_cast<count>(n_targets);
  const count first = static_cast<count>(blockIdx.x) * row_size + threadIdx.x;
  const count begin = static_cast<count>(blockIdx.y * per_split);
  const count end = n_sources - begin < per_split
                        ? static_cast<count>(n_sources)
                        : begin + static_cast<count>(per_split);
  registers r;

  load_targets(r, in, first, n, begin < end ? begin : ~static_cast<count>(0));
#pragma unroll 1
  for (count j = begin; j < end; j += KILN_BLOCK) {
    const unsigned bound =
        end - j < KILN_BLOCK ? static_cast<unsigned>(end - j) : KILN_BLOCK;

    if (threadIdx.x < bound)
      tile[threadIdx.x] = user::load_source(in, j + threadIdx.x);
    __syncthreads();
    meet_all(r, in, tile, bound, first, j);
    __syncthreads();
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_TARGETS; ++k) {
    const count i = first + k * KILN_BLOCK;

    if (i >= n)
      break;
#if KILN_SPLIT
    write_slot(slots, slot_at, blockIdx.y, n, i, r.p[k]);
#else
    write_outputs(in, r.t[k], i, r.p[k], {out0, out1, out2, out3, at});
#endif
  }
}
#endif

#if KILN_MAKES(all_pairs_mirrored) && KILN_MIRROR
enum : unsigned { warps = KILN_BLOCK / kiln::warp_size };

/* A tile of sources. Each group of 32 sources is stored twice, so that lane l reads
 * source (l + step) % 32 of the group at [l + step]. */
struct mirrored_tile {
  user::source o[warps][2 * kiln::warp_size];
  /* Partial results of the sources, per warp that computed them. */
  acc sum[warps][KILN_OUTPUTS][KILN_BLOCK];
};

/* Combines all targets of a thread with source j, and source j with the targets.
 * `whole` means that all these elements exist. */
template <bool whole>
static __device__ __forceinline__ void
meet_mirrored(registers &r, partial &back, const user::args &in,
              const user::source &o, count first, count j, count n)
{
#pragma unroll
  for (unsigned k = 0; k < KILN_TARGETS; ++k) {
    const count i = first + k * KILN_BLOCK;
    acc v[KILN_OUTPUTS];

    if (!whole && (i >= n || j >= n))
      continue;
    user::pair(in, r.t[k], o, i, j, v);
    take(in, r.p[k], v, j);
#if KILN_MIRROR == 2
#pragma unroll
    for (unsigned e = 0; e < KILN_OUTPUTS; ++e)
      v[e] = -v[e];
#endif
    take(in, back, v, i);
  }
}

/* Combines the targets of a warp with all sources of the tile that starts at
 * source j0. The warps start with different groups of sources. */
template <bool whole>
static __device__ __forceinline__ void
meet_tile(registers &r, mirrored_tile &tile, const user::args &in, count first,
          count j0, count n)
{
  const unsigned lane = threadIdx.x % kiln::warp_size;
  const unsigned warp = threadIdx.x / kiln::warp_size;
  constexpr unsigned rounds = whole ? KILN_UNROLL : 1;

#pragma unroll 1
  for (unsigned turn = 0; turn < warps; ++turn) {
    const unsigned group = (turn + warp) % warps;
    const count j = j0 + group * kiln::warp_size;
    partial back = nothing(in, 0);

#pragma unroll rounds
    for (unsigned step = 0; step < kiln::warp_size; ++step) {
      meet_mirrored<whole>(r, back, in, tile.o[group][lane + step], first,
                           j + (lane + step) % kiln::warp_size, n);
#pragma unroll
      for (unsigned e = 0; e < KILN_OUTPUTS; ++e)
        back.value[e] = kiln::shuffle(back.value[e], lane + 1);
    }
#pragma unroll
    for (unsigned e = 0; e < KILN_OUTPUTS; ++e)
      tile.sum[warp][e][group * kiln::warp_size + lane] = back.value[e];
  }
}

/* Combines the targets with the sources of their own row, one way. */
static __device__ __forceinline__ void meet_own(registers &r,
                                                const mirrored_tile &tile,
                                                const user::args &in,
                                                count first, count j0, count n)
{
  const unsigned bound =
      n - j0 < KILN_BLOCK ? static_cast<unsigned>(n - j0) : KILN_BLOCK;

#pragma unroll 1
  for (unsigned k = 0; k < bound; ++k)
    meet(r, in, tile.o[k / kiln::warp_size][k % kiln::warp_size], first,
         j0 + k);
}

/* Returns the sum over all warps for the calling thread's source. */
static __device__ __forceinline__ partial
sum_of_warps(const mirrored_tile &tile, const user::args &in)
{
  partial p;

#pragma unroll
  for (unsigned e = 0; e < KILN_OUTPUTS; ++e) {
    p.value[e] = tile.sum[0][e][threadIdx.x];
#pragma unroll
    for (unsigned w = 1; w < warps; ++w)
      p.value[e] = user::make_op(in)(p.value[e], tile.sum[w][e][threadIdx.x]);
  }
  return p;
}

/* Returns the first of `tiles` tiles that belongs to a segment. */
static __device__ __forceinline__ unsigned part_of(unsigned tiles,
                                                   unsigned segment)
{
  return static_cast<unsigned>(static_cast<unsigned long long>(tiles) *
                               segment / gridDim.y);
}

/* The block (row, segment) meets the rows at the offsets from first_offset to
 * last_offset - 1, and takes an equal part of their tiles of sources. The results of
 * the targets go to slot first_slot + segment. The results of the sources go to the
 * slots after those, one slot per offset above 0. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_RESIDENT)
    all_pairs_mirrored(const user::args in, unsigned long long n_targets,
                       unsigned rows, unsigned first_offset,
                       unsigned last_offset, unsigned first_slot, acc *slots)
{
  __shared__ mirrored_tile tile;
  const count n = static_cast<count>(n_targets);
  const unsigned row = blockIdx.x;
  const count first = static_cast<count>(row) * row_size + threadIdx.x;
  const bool across_done = rows % 2 == 0 && row >= rows / 2;
  const unsigned end_offset =
      across_done && last_offset > rows / 2 ? rows / 2 : last_offset;
  const unsigned from = first_offset * KILN_TARGETS;
  const unsigned tiles = end_offset * KILN_TARGETS - from;
  const unsigned begin = from + part_of(tiles, blockIdx.y);
  const unsigned end = from + part_of(tiles, blockIdx.y + 1);
  const unsigned source_slot =
      first_slot + gridDim.y - (first_offset == 0 ? 1 : first_offset);
  registers r;

  load_targets(r, in, first, n, 0);
#pragma unroll 1
  for (unsigned c = begin; c < end; ++c) {
    const unsigned offset = c / KILN_TARGETS;
    const unsigned other = (row + offset) % rows;
    const count j0 =
        static_cast<count>(other) * row_size + c % KILN_TARGETS * KILN_BLOCK;
    const count j = j0 + threadIdx.x;
    const bool whole =
        (static_cast<count>(row) + 1) * row_size <= n && j0 + KILN_BLOCK <= n;

    if (j0 >= n)
      continue;
    {
      const user::source o = user::load_source(in, j < n ? j : n - 1);
      user::source *const to =
          tile.o[threadIdx.x / kiln::warp_size] + threadIdx.x % kiln::warp_size;

      to[0] = o;
      to[kiln::warp_size] = o;
    }
    __syncthreads();
    if (offset == 0)
      meet_own(r, tile, in, first, j0, n);
    else if (whole)
      meet_tile<true>(r, tile, in, first, j0, n);
    else
      meet_tile<false>(r, tile, in, first, j0, n);
    __syncthreads();
    if (offset > 0 && j < n)
      write_slot(slots, NULL, source_slot + offset, n, j,
                 sum_of_warps(tile, in));
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_TARGETS; ++k)
    if (first + k * KILN_BLOCK < n)
      write_slot(slots, NULL, first_slot + blockIdx.y, n,
                 first + k * KILN_BLOCK, r.p[k]);
}
#endif

#if KILN_MAKES(all_pairs_finish)
/* Combines the slots from first_slot to end_slot - 1. Targets below short_end have
 * no last slot. If `last` is 0, the results go to slot 0, else to the outputs. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    all_pairs_finish(const user::args in, unsigned long long n_targets,
                     unsigned first_slot, unsigned end_slot,
                     unsigned long long short_end, unsigned last, acc *slots,
                     count *slot_at, KILN_T0 *out0, KILN_T1 *out1,
                     KILN_T2 *out2, KILN_T3 *out3, KILN_INDEX *at)
{
  const count n = static_cast<count>(n_targets);
  const count i = static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x;
  const outputs to = {out0, out1, out2, out3, at};
  partial p;

  if (i >= n)
    return;
  p = read_slot(slots, slot_at, first_slot, n, i);
#pragma unroll 4
  for (unsigned k = first_slot + 1; k < end_slot - (i < short_end); ++k) {
    const partial q = read_slot(slots, slot_at, k, n, i);

#if KILN_ARG
    take(in, p, q.value, q.at);
#else
    take(in, p, q.value, 0);
#endif
  }
  if (last)
    write_outputs(in, user::load_target(in, i), i, p, to);
  else
    write_slot(slots, slot_at, 0, n, i, p);
}
#endif

#include <kiln/user_texts.cuh>
