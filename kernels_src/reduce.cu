/* reduce.cu -- reduce an array of 4- or 8-byte elements to one value in one launch.
 *
 * Idea: every thread keeps several 16-byte loads in flight. It has one partial result
 * per element of a vector, which shortens the dependence chains and makes sums more
 * accurate (Harris, Optimizing Parallel Reduction in CUDA, 2007). Each block
 * publishes its result in 64-bit words that contain a flag. The last block of the
 * grid only combines these results (block_results_combine() in prelude.cuh).
 * Invariant: the order of the operands, and so the bits of the result, depend only on
 * n, the grid, the specialisation and the alignment of x.
 * Cost: one read of the input. Each block writes one word per 4 bytes of the result,
 * which the last block reads.
 *
 * Parameters:
 *   KILN_T        type float  type of an element, which has 4 or 8 bytes
 *   KILN_ACC      type KILN_T  type of the partial results and of the result
 *   KILN_OP       sum         sum, min, max, prod, bit_and, bit_or or bit_xor
 *   KILN_BLOCK    512         threads per block, a multiple of 32, at most 1024
 *   KILN_ITEMS    4           16-byte loads in flight per thread, at least 1
 *   KILN_THREADS  1024        minimum number of resident threads per SM, which limits
 *                             registers through __launch_bounds__
 *   KILN_EVEN     0           1 if each block reads one contiguous range of x; 0 if
 *                             the blocks interleave their vectors
 *   KILN_KEEP     0           size in MiB of the front of x that has the usual
 *                             priority in the L2 cache. The rest of x is evicted
 *                             first (compute capability 8.0), so that an array larger
 *                             than the cache does not evict all of its front. With 0,
 *                             all of x has the usual priority
 *   KILN_RESULTS  (sizeof(KILN_ACC) == 8 ? 5 : 9)  number of results that each lane
 *                             of the combining warp polls at the same time
 *   KILN_SMALL    0           1 if n is at most 2^30 and x is aligned to 16 bytes,
 *                             which lets the first load start earlier
 * Launch: the block size is KILN_BLOCK. If the grid has several blocks, the last block
 *         only combines. The best grid has as many blocks as the device can hold at the
 *         same time, and fewer blocks for small n. There is no dynamic shared memory.
 *         x          n elements, aligned to the size of an element
 *         workspace  8 bytes per block (16 bytes if KILN_ACC has 8 bytes), aligned to 8.
 *                    All bytes are 0 before the first launch, and every launch leaves
 *                    them 0. Launches that may overlap need separate workspaces.
 * Result: *result is the reduction, or the identity of the operation if n is 0. */
#include <kiln/params/reduce.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

static_assert(KILN_BLOCK % 32 == 0 && KILN_BLOCK <= 1024,
              "KILN_BLOCK: a multiple of 32, at most 1024");
static_assert(KILN_ITEMS >= 1, "KILN_ITEMS: at least 1");

typedef KILN_T element;
typedef KILN_ACC reduced;
typedef kiln::KILN_OP operation;
/* Type of an index of a vector. The index may exceed the number of vectors by
 * one round of loads. */
typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

enum : unsigned { vector_size = 16 / sizeof(element) };

/* The elements that one 16-byte load reads. */
struct alignas(16) vector {
  element at[vector_size];
};

static_assert(sizeof(vector) == 16, "KILN_T: 4 or 8 bytes");

/* HAS_RANK is 1 if loads have an explicit priority in the L2 cache. A `rank` is
 * such a priority, as the PTX instruction createpolicy returns it. */
#define HAS_RANK (KILN_KEEP > 0 && KILN_ARCH >= 80)
typedef unsigned long long rank;

static __device__ __forceinline__ rank rank_usual()
{
  rank made = 0;

#if HAS_RANK
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(made));
#endif
  return made;
}

static __device__ __forceinline__ rank rank_evict_first()
{
  rank made = 0;

#if HAS_RANK
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(made));
#endif
  return made;
}

/* Loads a vector by the read-only data path, because nothing writes the input
 * during the launch. */
static __device__ __forceinline__ vector load(const vector *from, rank how)
{
  uint4 bits;
  vector value;

#if HAS_RANK
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 "
               "{%0, %1, %2, %3}, [%4], %5;"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "l"(from), "l"(how));
#else
  bits = __ldg(reinterpret_cast<const uint4 *>(from));
#endif
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The indices of the vectors that one thread reduces: begin, begin + stride,
 * begin + 2 * stride and so on, as long as the index is below `end`. */
struct share {
  count begin, end;
};

/* Returns the number of blocks that reduce elements. The last block of several
 * only combines results. */
static __device__ __forceinline__ count workers()
{
  return gridDim.x == 1 ? 1 : gridDim.x - 1;
}

#if KILN_EVEN
#define STRIDE KILN_BLOCK

static __device__ __forceinline__ share share_of(count vectors)
{
  const count rows = (vectors + KILN_BLOCK - 1) / KILN_BLOCK;
  const count each = (rows + workers() - 1) / workers() * KILN_BLOCK;
  const count end = each * (blockIdx.x + static_cast<count>(1));

  return {each * blockIdx.x + threadIdx.x, end < vectors ? end : vectors};
}
#else
#define STRIDE (workers() * KILN_BLOCK)

static __device__ __forceinline__ share share_of(count vectors)
{
  return {static_cast<count>(blockIdx.x) * KILN_BLOCK + threadIdx.x, vectors};
}
#endif

/* Returns the reduction over the calling thread's vectors. All loads of a round
 * are issued before the first value is used. The elements of a vector have
 * separate partial results until the end, which shortens the dependence chains
 * and makes sums more accurate. */
static __device__ __forceinline__ reduced reduce_vectors(const vector *x,
                                                         count vectors)
{
  const share mine = share_of(vectors);
  const count stride = STRIDE;
#if HAS_RANK
  const count kept = (KILN_KEEP << 20) / sizeof(vector);
#endif
  const rank usual = rank_usual(), evict_first = rank_evict_first();
  const operation op{};
  reduced partial[vector_size];
  vector loaded[KILN_ITEMS];
  count i = mine.begin;

  for (unsigned e = 0; e < vector_size; ++e)
    partial[e] = operation::identity<reduced>();

#pragma unroll 1
  for (; i + (KILN_ITEMS - 1) * stride < mine.end; i += KILN_ITEMS * stride) {
#if HAS_RANK
    const rank how = i < kept ? usual : evict_first;
#else
    const rank how = usual;
#endif

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      loaded[k] = load(x + i + k * stride, how);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      for (unsigned e = 0; e < vector_size; ++e)
        partial[e] = op(partial[e], static_cast<reduced>(loaded[k].at[e]));
  }

#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k)
    if (i + k * stride < mine.end)
      loaded[k] = load(x + i + k * stride, evict_first);
#pragma unroll
  for (unsigned k = 0; k + 1 < KILN_ITEMS; ++k)
    if (i + k * stride < mine.end)
      for (unsigned e = 0; e < vector_size; ++e)
        partial[e] = op(partial[e], static_cast<reduced>(loaded[k].at[e]));

#pragma unroll
  for (unsigned width = vector_size / 2; width > 0; width /= 2)
    for (unsigned e = 0; e < width; ++e)
      partial[e] = op(partial[e], partial[e + width]);
  return partial[0];
}

/* Combines the results of all other blocks. Only one warp of the last block runs
 * this function. Polling starts early, so its latency overlaps with the work of
 * the other blocks. The last block starts last, so all blocks that it waits for
 * are running or done. */
static __device__ __forceinline__ void
combine(kiln::block_result<reduced> *results, reduced *result)
{
  const operation op{};
  reduced value;

  if (kiln::warp() != 0)
    return;
  value = kiln::block_results_combine<KILN_RESULTS>(
      results, gridDim.x - 1, op, operation::identity<reduced>());
  value = kiln::warp_reduce(value, op);
  if (threadIdx.x == 0)
    *result = value;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    reduce(const KILN_T *x, unsigned long long n, void *workspace,
           KILN_ACC *result)
{
  const operation op{};
#if KILN_SMALL
  const unsigned head = 0;
  const count vectors = static_cast<count>(n) / vector_size;
  const unsigned tail = static_cast<count>(n) % vector_size;
#else
  const count past = reinterpret_cast<count>(x) % sizeof(vector) / sizeof *x;
  const count to_boundary = past == 0 ? 0 : vector_size - past;
  const count head = to_boundary < n ? to_boundary : n;
  const count vectors = (n - head) / vector_size;
  const count tail = (n - head) % vector_size;
#endif
  kiln::block_result<reduced> *results =
      static_cast<kiln::block_result<reduced> *>(workspace);
  reduced edge = operation::identity<reduced>();
  reduced value;

  if (gridDim.x > 1 && blockIdx.x == gridDim.x - 1) {
    combine(results, result);
    return;
  }

  /* Elements before the first vector and after the last vector are loaded first
   * and used last. */
#if !KILN_SMALL
  if (blockIdx.x == 0 && threadIdx.x < head)
    edge = static_cast<reduced>(__ldg(x + threadIdx.x));
#endif
  if (blockIdx.x == 0 && threadIdx.x - vector_size < tail)
    edge = static_cast<reduced>(
        __ldg(x + (n - tail) + (threadIdx.x - vector_size)));

  value =
      op(reduce_vectors(reinterpret_cast<const vector *>(x + head), vectors),
         edge);
  value = kiln::block_reduce_first<KILN_BLOCK>(value, op);
  if (threadIdx.x != 0)
    return;
  if (gridDim.x == 1)
    *result = value;
  else
    kiln::block_result_publish(results + blockIdx.x, value);
}
