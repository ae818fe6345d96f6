/* prelude.cuh -- warp and block collectives: one spelling, several bodies.
 *
 * The traits of the target choose the body. Each trait can be overridden:
 *   KILN_HAS_SHFL   1: register shuffles; 0: through shared memory
 *   KILN_HAS_VOTE   1: vote instructions; 0: through shuffles or their replacement
 *   KILN_HAS_ITS    1: lanes of a warp may diverge (independent thread scheduling), so
 *                   shared-memory bodies call __syncwarp(); 0: lanes run in lock-step,
 *                   and volatile accesses in program order are enough
 *   KILN_HAS_MATCH  1: match instruction; 0: a loop of votes
 *   KILN_HAS_REDUX  1: one instruction for 32-bit integer reductions
 * A program may define these before it includes this file:
 *   KILN_MAX_BLOCK  largest number of threads per block; sizes the scratch of the
 *                   shared-memory bodies at 4 bytes per thread
 *   KILN_FLAT_BLOCK 1: every block is one-dimensional and has exactly KILN_MAX_BLOCK
 *                   threads, which saves a few instructions
 *
 * Who has to call: for warp_ functions, votes and shuffles every lane of the warp; for
 * block_ functions every thread of the block. Blocks hold a multiple of 32 threads in
 * any shape. Threads count in x, then y, then z.
 *
 * Values are trivial types of at most 16 bytes. Functors are associative and called
 * as op(left, right) with lower threads on the left, so they need not commute. Every
 * reduction has one fixed order: the same input gives the same bits.
 *
 * Scratch is static shared memory inside these functions. The caller reserves nothing,
 * and calls may follow each other without a barrier in between.
 *
 * Sources: warp reductions and scans by doubling distances (Hillis and Steele, Data
 * Parallel Algorithms, 1986); reductions over registers first, then warps (Harris,
 * Optimizing Parallel Reduction in CUDA, 2007). */
#ifndef KILN_PRELUDE_CUH
#define KILN_PRELUDE_CUH

#ifndef KILN_ARCH
#ifdef __CUDA_ARCH__
#define KILN_ARCH (__CUDA_ARCH__ / 10)
#else
#define KILN_ARCH 90 /* the pass of nvcc over the host code */
#endif
#endif
/* A program can be compiled with only some of its kernels, by KILN_APART=1
 * and KILN_ONLY_name=1 for each of them. #if KILN_MAKES(name) encloses each
 * kernel. */
#ifndef KILN_APART
#define KILN_APART 0
#endif
#define KILN_MAKES(kernel) (!KILN_APART || KILN_ONLY_##kernel)
#if KILN_APART
#pragma nv_diag_suppress 177 /* functions that only the omitted kernels use */
#endif
#ifndef KILN_WARP_SIZE
#define KILN_WARP_SIZE 32
#endif
#ifndef KILN_HAS_SHFL
#define KILN_HAS_SHFL (KILN_ARCH >= 30)
#endif
#ifndef KILN_HAS_VOTE
#define KILN_HAS_VOTE KILN_HAS_SHFL
#endif
#ifndef KILN_HAS_ITS
#define KILN_HAS_ITS (KILN_ARCH >= 70)
#endif
#ifndef KILN_HAS_MATCH
#define KILN_HAS_MATCH (KILN_ARCH >= 70)
#endif
#ifndef KILN_HAS_REDUX
#define KILN_HAS_REDUX (KILN_ARCH >= 80)
#endif
#ifndef KILN_MAX_BLOCK
#ifdef KILN_BLOCK
#define KILN_MAX_BLOCK KILN_BLOCK
#else
#define KILN_MAX_BLOCK 1024
#endif
#endif

#ifndef KILN_FLAT_BLOCK
#define KILN_FLAT_BLOCK 0
#endif

namespace kiln
{

enum : unsigned { warp_size = KILN_WARP_SIZE, full_warp = 0xffffffffu };

static_assert(KILN_WARP_SIZE == 32, "KILN_WARP_SIZE: a ballot has 32 bits");
static_assert(KILN_MAX_BLOCK % 32 == 0 && KILN_MAX_BLOCK <= 1024,
              "KILN_MAX_BLOCK: a multiple of 32, at most 1024");

/* ---- Indices ------------------------------------------------------------- */

__device__ __forceinline__ unsigned block_threads()
{
#if KILN_FLAT_BLOCK
  return KILN_MAX_BLOCK;
#else
  return blockDim.x * blockDim.y * blockDim.z;
#endif
}

__device__ __forceinline__ unsigned thread()
{
#if KILN_FLAT_BLOCK
  return threadIdx.x;
#else
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
#endif
}

__device__ __forceinline__ unsigned lane()
{
  return thread() % warp_size;
}

__device__ __forceinline__ unsigned warp()
{
  return thread() / warp_size;
}

/* ---- Operations -----------------------------------------------------
 * identity<T>() is the value that changes nothing, and the result for empty
 * input. */

template <class T> struct limits { /* integers */
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static __device__ __forceinline__ T top()
  {
    return static_cast<T>(~0ull >> (64 - 8 * sizeof(T) + (is_signed ? 1 : 0)));
  }
  static __device__ __forceinline__ T bottom()
  {
    return static_cast<T>(~static_cast<unsigned long long>(top()));
  }
};

template <> struct limits<float> {
  static __device__ __forceinline__ float top()
  {
    return __int_as_float(0x7f800000);
  }
  static __device__ __forceinline__ float bottom()
  {
    return -top();
  }
};

template <> struct limits<double> {
  static __device__ __forceinline__ double top()
  {
    return __longlong_as_double(0x7ff0000000000000ll);
  }
  static __device__ __forceinline__ double bottom()
  {
    return -top();
  }
};

struct sum {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a + b;
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return T(0);
  }
};

struct prod {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a * b;
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return T(1);
  }
};

/* A NaN makes the result NaN, and -0 is less than +0. So the result does not
 * depend on the order, unlike that of plain comparisons. */
struct min {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return b < a ? b : a;
  }
  __device__ __forceinline__ float operator()(float a, float b) const
  {
#if KILN_ARCH >= 80
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a != a ? a : (b != b ? b : fminf(a, b));
#endif
  }
  __device__ __forceinline__ double operator()(double a, double b) const
  {
    return a != a ? a : (b != b ? b : fmin(a, b));
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return limits<T>::top();
  }
};

struct max {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a < b ? b : a;
  }
  __device__ __forceinline__ float operator()(float a, float b) const
  {
#if KILN_ARCH >= 80
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
#else
    return a != a ? a : (b != b ? b : fmaxf(a, b));
#endif
  }
  __device__ __forceinline__ double operator()(double a, double b) const
  {
    return a != a ? a : (b != b ? b : fmax(a, b));
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return limits<T>::bottom();
  }
};

struct bit_and {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a & b;
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return static_cast<T>(~T(0));
  }
};

struct bit_or {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a | b;
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return T(0);
  }
};

struct bit_xor {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const
  {
    return a ^ b;
  }
  template <class T> static __device__ __forceinline__ T identity()
  {
    return T(0);
  }
};

/* ---- Moving values between lanes ----------------------------------------- */

enum class move { from, down, up, across };

/* Returns one word of another lane. `arg` is the lane (from), a distance (down,
 * up) or a mask (across). A source outside of the warp gives the lane's own
 * word. */
template <move how>
__device__ __forceinline__ unsigned shuffle_word(unsigned word, unsigned arg)
{
#if KILN_HAS_SHFL
  switch (how) {
  case move::from:
    return __shfl_sync(full_warp, word, static_cast<int>(arg));
  case move::down:
    return __shfl_down_sync(full_warp, word, arg);
  case move::up:
    return __shfl_up_sync(full_warp, word, arg);
  default:
    return __shfl_xor_sync(full_warp, word, static_cast<int>(arg));
  }
#else
  __shared__ unsigned scratch[KILN_MAX_BLOCK];
  volatile unsigned *row = scratch + warp() * warp_size;
  const unsigned self = lane();
  unsigned source = how == move::from   ? arg % warp_size
                    : how == move::down ? self + arg
                    : how == move::up   ? self - arg
                                        : self ^ arg;

  if (source >= warp_size)
    source = self;
  row[self] = word;
#if KILN_HAS_ITS
  __syncwarp();
#endif
  word = row[source];
#if KILN_HAS_ITS
  __syncwarp(); /* before the next call overwrites the row */
#endif
  return word;
#endif
}

template <move how, class T>
__device__ __forceinline__ T shuffle_any(T value, unsigned arg)
{
  constexpr int n = (sizeof(T) + 3) / 4;
  unsigned words[n] = {};

  static_assert(sizeof(T) <= 16, "values of at most 16 bytes");
  static_assert(__is_trivially_copyable(T), "values must be trivial");
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < n; ++i)
    words[i] = shuffle_word<how>(words[i], arg);
  memcpy(&value, words, sizeof(T));
  return value;
}

/* Returns the value of lane `source` (modulo 32). */
template <class T>
__device__ __forceinline__ T shuffle(T value, unsigned source)
{
  return shuffle_any<move::from>(value, source);
}

/* Returns the value of lane() + distance. Lanes at the upper end get their own
 * value. */
template <class T>
__device__ __forceinline__ T shuffle_down(T value, unsigned distance)
{
  return shuffle_any<move::down>(value, distance);
}

/* Returns the value of lane() - distance. Lanes at the lower end get their own
 * value. */
template <class T>
__device__ __forceinline__ T shuffle_up(T value, unsigned distance)
{
  return shuffle_any<move::up>(value, distance);
}

/* Returns the value of lane() ^ mask. */
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned mask)
{
  return shuffle_any<move::across>(value, mask);
}

/* Returns the value of one lane in all lanes. */
template <class T>
__device__ __forceinline__ T warp_broadcast(T value, unsigned source)
{
  return shuffle(value, source);
}

/* ---- Votes --------------------------------------------------------------- */

/* Returns a mask in which bit i is set if lane i's condition holds. */
__device__ __forceinline__ unsigned warp_ballot(bool condition)
{
#if KILN_HAS_VOTE
  return __ballot_sync(full_warp, condition);
#else
  unsigned bits = condition ? 1u << lane() : 0u;

#pragma unroll
  for (unsigned step = 1; step < warp_size; step *= 2)
    bits |= shuffle_xor(bits, step);
  return bits;
#endif
}

__device__ __forceinline__ bool warp_any(bool condition)
{
#if KILN_HAS_VOTE
  return __any_sync(full_warp, condition) != 0;
#else
  return warp_ballot(condition) != 0;
#endif
}

__device__ __forceinline__ bool warp_all(bool condition)
{
#if KILN_HAS_VOTE
  return __all_sync(full_warp, condition) != 0;
#else
  return warp_ballot(condition) == full_warp;
#endif
}

/* Returns the mask of the lanes whose word equals the calling lane's. */
__device__ __forceinline__ unsigned warp_match(unsigned word)
{
#if KILN_HAS_MATCH
  return __match_any_sync(full_warp, word);
#else
  unsigned rest = full_warp, mine = 0;

  while (rest != 0) { /* every lane makes the same number of rounds */
    const unsigned first = static_cast<unsigned>(__ffs(rest)) - 1;
    const unsigned same = warp_ballot(word == warp_broadcast(word, first));

    if ((same >> lane() & 1u) != 0)
      mine = same;
    rest &= ~same;
  }
  return mine;
#endif
}

/* ---- Warp reduce and scan ------------------------------------------------ */

/* Returns the reduction over the first n lanes (1 to 32), in lane 0 only. */
template <class T, class Op>
__device__ __forceinline__ T warp_reduce_first_n(T value, Op op, unsigned n)
{
#pragma unroll
  for (unsigned step = 1; step < warp_size; step *= 2) {
    const T other = shuffle_down(value, step);

    if (lane() + step < n)
      value = op(value, other);
  }
  return value;
}

template <class T, class Op> struct warp_reducer {
  /* Lane 0 gets the result. It needs no guard, since what upper lanes compute
   * is discarded. */
  static __device__ __forceinline__ T first(T value, Op op)
  {
#pragma unroll
    for (unsigned step = 1; step < warp_size; step *= 2)
      value = op(value, shuffle_down(value, step));
    return value;
  }
  static __device__ __forceinline__ T all(T value, Op op)
  {
    return warp_broadcast(first(value, op), 0);
  }
};

#if KILN_HAS_REDUX
#define KILN_REDUX(T, op, intrinsic)                                           \
  template <> struct warp_reducer<T, op> {                                     \
    static __device__ __forceinline__ T first(T value, op)                     \
    {                                                                          \
      return static_cast<T>(intrinsic(full_warp, value));                      \
    }                                                                          \
    static __device__ __forceinline__ T all(T value, op)                       \
    {                                                                          \
      return static_cast<T>(intrinsic(full_warp, value));                      \
    }                                                                          \
  };
KILN_REDUX(unsigned, sum, __reduce_add_sync)
KILN_REDUX(unsigned, min, __reduce_min_sync)
KILN_REDUX(unsigned, max, __reduce_max_sync)
KILN_REDUX(unsigned, bit_and, __reduce_and_sync)
KILN_REDUX(unsigned, bit_or, __reduce_or_sync)
KILN_REDUX(unsigned, bit_xor, __reduce_xor_sync)
KILN_REDUX(int, sum, __reduce_add_sync)
KILN_REDUX(int, min, __reduce_min_sync)
KILN_REDUX(int, max, __reduce_max_sync)
#undef KILN_REDUX
#endif

/* Returns the reduction over the warp, in every lane. */
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op)
{
  return warp_reducer<T, Op>::all(value, op);
}

/* Returns the reduction over lanes 0 to the calling one. */
template <class T, class Op>
__device__ __forceinline__ T warp_scan_inclusive(T value, Op op)
{
#pragma unroll
  for (unsigned step = 1; step < warp_size; step *= 2) {
    const T other = shuffle_up(value, step);

    if (lane() >= step)
      value = op(other, value);
  }
  return value;
}

/* Returns the reduction over the lanes below the calling one, and `identity` in
 * lane 0. */
template <class T, class Op>
__device__ __forceinline__ T warp_scan_exclusive(T value, Op op, T identity)
{
  const T before = shuffle_up(warp_scan_inclusive(value, op), 1);

  return lane() == 0 ? identity : before;
}

/* ---- Block --------------------------------------------------------------- */

/* Scratch for one value per warp, shared by all types and functions. */
template <class T> __device__ __forceinline__ T *block_scratch()
{
  __shared__ uint4 storage[32];

  return reinterpret_cast<T *>(storage);
}

/* Returns the reduction over the block, in every thread. */
template <class T, class Op>
__device__ __forceinline__ T block_reduce(T value, Op op)
{
  T *storage = block_scratch<T>();
  const unsigned warps = block_threads() / warp_size;

  value = warp_reducer<T, Op>::first(value, op);
  if (lane() == 0)
    storage[warp()] = value;
  __syncthreads();
  value = storage[lane() < warps ? lane() : 0];
  __syncthreads();
  return warp_broadcast(warp_reduce_first_n(value, op, warps), 0);
}

/* The same for a block of `threads`, with the result in thread 0 only and with
 * one barrier. Use it once per kernel, or put a barrier before the next
 * collective. Warps other than the first one are done at the barrier. */
template <unsigned threads, class T, class Op>
__device__ __forceinline__ T block_reduce_first(T value, Op op)
{
  constexpr unsigned warps = threads / warp_size;
  T *storage = block_scratch<T>();

  value = warp_reducer<T, Op>::first(value, op);
  if (lane() == 0)
    storage[warp()] = value;
  __syncthreads();
  if (warp() != 0)
    return value;
  value = storage[lane() < warps ? lane() : 0];
#pragma unroll
  for (unsigned step = 1; step < warps; step *= 2) {
    const T other = shuffle_down(value, step);

    if (lane() + step < warps)
      value = op(value, other);
  }
  return value;
}

/* Returns the reduction over the warps below this one. Warp 0 gets an undefined
 * value. */
template <class T, class Op>
__device__ __forceinline__ T block_before(T value, Op op)
{
  T *storage = block_scratch<T>();
  const unsigned warps = block_threads() / warp_size;
  T total;

  if (lane() == warp_size - 1)
    storage[warp()] = value;
  __syncthreads();
  total = storage[lane() < warps ? lane() : 0];
  __syncthreads();
  return warp_broadcast(warp_scan_inclusive(total, op), warp() - 1);
}

/* Returns the reduction over threads 0 to the calling one. */
template <class T, class Op>
__device__ __forceinline__ T block_scan_inclusive(T value, Op op)
{
  const T mine = warp_scan_inclusive(value, op);
  const T before = block_before(mine, op);

  return warp() == 0 ? mine : op(before, mine);
}

/* Returns the reduction over the threads below the calling one, and `identity`
 * in thread 0. */
template <class T, class Op>
__device__ __forceinline__ T block_scan_exclusive(T value, Op op, T identity)
{
  const T mine = warp_scan_inclusive(value, op);
  const T below = shuffle_up(mine, 1);
  const T before = block_before(mine, op);

  if (warp() == 0)
    return lane() == 0 ? identity : below;
  return lane() == 0 ? before : op(before, below);
}

/* Returns the value of one thread in all threads. */
template <class T>
__device__ __forceinline__ T block_broadcast(T value, unsigned source)
{
  T *storage = block_scratch<T>();

  if (thread() == source)
    storage[0] = value;
  __syncthreads();
  value = storage[0];
  __syncthreads();
  return value;
}

__device__ __forceinline__ bool block_any(bool condition)
{
  return __syncthreads_or(condition) != 0;
}

__device__ __forceinline__ bool block_all(bool condition)
{
  return __syncthreads_and(condition) != 0;
}

/* Returns the number of threads whose condition holds. */
__device__ __forceinline__ unsigned block_count(bool condition)
{
  return static_cast<unsigned>(__syncthreads_count(condition));
}

/* ---- Grid ---------------------------------------------------------------- */

/* A block's result on its way to another block. Each 32 bits of it travel with
 * a flag in one 64-bit word, which arrives as a whole. So neither a fence nor a
 * ticket counter is needed, and there is one round trip through the second-
 * level cache instead of three. All words are 0 before the first launch, and
 * reading a result clears it for the next launch. */
template <class T> struct block_result {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "T: 4 or 8 bytes");
  unsigned long long word[sizeof(T) / 4];
};

__device__ __forceinline__ unsigned long long
word_load(const unsigned long long *from)
{
#if KILN_ARCH >= 70
  unsigned long long value;

  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
#else
  return *static_cast<const volatile unsigned long long *>(from);
#endif
}

/* Prefetches memory into the second-level cache. One whole warp calls it. In a
 * scan every block waits for the slowest of the blocks before it, and then all
 * of them load at once; prefetching keeps the memory busy meanwhile. */
__device__ __forceinline__ void prefetch(const void *from, unsigned bytes)
{
#if KILN_ARCH >= 90 && __CUDACC_VER_MAJOR__ >= 12
  const size_t at = static_cast<size_t>(__cvta_generic_to_global(from));
  const size_t first = at & ~static_cast<size_t>(15);

  if (lane() == 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first),
                 "r"((bytes + static_cast<unsigned>(at - first)) & ~15u)
                 : "memory");
#else
  const char *const line = static_cast<const char *>(from);

#pragma unroll 1
  for (unsigned i = lane() * 128; i < bytes; i += warp_size * 128)
    asm volatile(
        "prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(line + i))
        : "memory");
#endif
}

__device__ __forceinline__ void word_store(unsigned long long *to,
                                           unsigned long long value)
{
#if KILN_ARCH >= 70
  asm volatile(
      "st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
      "l"(value)
      : "memory");
#else
  *static_cast<volatile unsigned long long *>(to) = value;
#endif
}

/* Publishes a block's result. One thread calls it. */
template <class T>
__device__ __forceinline__ void block_result_publish(block_result<T> *to,
                                                     T value)
{
  unsigned half[sizeof(T) / 4];

  memcpy(half, &value, sizeof value);
  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    word_store(&to->word[i], 1ull << 32 | half[i]);
}

template <class T>
__device__ __forceinline__ block_result<T>
block_result_peek(const block_result<T> *from)
{
  block_result<T> seen;

  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    seen.word[i] = word_load(&from->word[i]);
  return seen;
}

template <class T>
__device__ __forceinline__ bool block_result_ready(block_result<T> seen)
{
  bool here = true;

  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    here = here && seen.word[i] >> 32 != 0;
  return here;
}

template <class T>
__device__ __forceinline__ T block_result_value(block_result<T> seen)
{
  unsigned half[sizeof(T) / 4];
  T value;

  for (unsigned i = 0; i < sizeof(T) / 4; ++i)
    half[i] = static_cast<unsigned>(seen.word[i]);
  memcpy(&value, half, sizeof value);
  return value;
}

/* Waits for n block results, clears them, and combines them in an order that
 * depends on n alone. One whole warp calls it; each lane polls `at_once`
 * results and returns its share, which the caller combines by a warp reduction.
 * The publishing blocks must be running or done, or be sure to run: wait only
 * for blocks of a lower index. */
template <unsigned at_once, class T, class Op>
__device__ __forceinline__ T block_results_combine(block_result<T> *from,
                                                   unsigned n, Op op,
                                                   T identity)
{
  constexpr unsigned halves = sizeof(T) / 4;
  T value = identity;

#pragma unroll 1
  for (unsigned first = 0; first < n; first += at_once * warp_size) {
    const unsigned base = first + lane();
    block_result<T> seen[at_once];
    bool all_here;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      for (unsigned h = 0; h < halves; ++h)
        seen[k].word[h] = base + k * warp_size < n ? 0 : 1ull << 32;
    do {
      all_here = true;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (!block_result_ready(seen[k]))
          seen[k] = block_result_peek(from + base + k * warp_size);
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        all_here = all_here && block_result_ready(seen[k]);
    } while (!warp_all(all_here)); /* all lanes leave the loop together */
#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      if (base + k * warp_size < n) {
        value = op(value, block_result_value(seen[k]));
        for (unsigned h = 0; h < halves; ++h)
          word_store(&from[base + k * warp_size].word[h], 0);
      }
  }
  return value;
}

} // namespace kiln

#endif
