/* prelude.cuh -- warp and block collectives. Each function has one name and several
 * implementations, one per generation of GPU.
 *
 * Macros that describe the target select the implementation. A program may override
 * each macro:
 *   KILN_HAS_SHFL   1 selects register shuffles; 0 exchanges values in shared memory
 *   KILN_HAS_VOTE   1 selects vote instructions; 0 computes votes by shuffles
 *   KILN_HAS_ITS    1 means that lanes of a warp may diverge (independent thread
 *                   scheduling), so shared-memory implementations call __syncwarp();
 *                   0 means that lanes run in lock-step, where volatile accesses in
 *                   program order are enough
 *   KILN_HAS_MATCH  1 selects the match instruction; 0 selects a loop of votes
 *   KILN_HAS_REDUX  1 selects the redux instruction for 32-bit integer reductions
 * A program may define these macros before it includes this file:
 *   KILN_MAX_BLOCK  largest number of threads per block; the shared-memory
 *                   implementations reserve 4 bytes of scratch per thread
 *   KILN_FLAT_BLOCK 1 means that every block is one-dimensional and has exactly
 *                   KILN_MAX_BLOCK threads, which saves a few instructions
 *
 * Every lane of the warp has to call the warp_ functions, the votes and the shuffles.
 * Every thread of the block has to call the block_ functions. A block has a multiple
 * of 32 threads and any shape. Threads are numbered in x, then y, then z.
 *
 * Values have trivial types of at most 64 bytes. Functors are associative. They are
 * called as op(left, right), where the left operand comes from the lower threads, so
 * functors need not commute. Every reduction has one fixed order, so the same input
 * gives the same bits.
 *
 * The functions declare their scratch as static shared memory. The caller reserves
 * nothing, and consecutive calls need no barrier between them.
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
#define KILN_ARCH 90 /* this value is used when nvcc compiles the host code */
#endif
#endif
/* With KILN_APART=1, a program compiles only those kernels for which
 * KILN_ONLY_name=1 is defined. The directive #if KILN_MAKES(name) encloses each
 * kernel. */
#ifndef KILN_APART
#define KILN_APART 0
#endif
#define KILN_MAKES(kernel) (!KILN_APART || KILN_ONLY_##kernel)
#if KILN_APART
/* Warning 177 reports unused functions. Without the kernels that are left out,
 * some functions have no caller. */
#pragma nv_diag_suppress 177
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

/* The unsigned integer type with the given size in bytes. */
template <unsigned bytes> struct unsigned_of;
template <> struct unsigned_of<1> {
  typedef unsigned char type;
};
template <> struct unsigned_of<2> {
  typedef unsigned short type;
};
template <> struct unsigned_of<4> {
  typedef unsigned type;
};
template <> struct unsigned_of<8> {
  typedef unsigned long long type;
};

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

/* Makes each lane's stores to shared memory visible to the other lanes of the
 * warp. */
__device__ __forceinline__ void warp_sync()
{
#if KILN_HAS_ITS
  __syncwarp();
#endif
}

/* ---- Operations -----------------------------------------------------
 * identity<T>() returns the identity of the operation. Combining the identity
 * with x gives x. The identity is also the result for empty input. */

/* The least and greatest values of integer types. */
template <class T> struct limits {
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

/* Defines the functor `name`, which computes the expression `result` from a and
 * b. Its member identity() returns `identity_value`. */
#define KILN_OPERATION(name, result, identity_value)                           \
  struct name {                                                                \
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const \
    {                                                                          \
      return result;                                                           \
    }                                                                          \
    template <class T> static __device__ __forceinline__ T identity()          \
    {                                                                          \
      return identity_value;                                                   \
    }                                                                          \
  };

KILN_OPERATION(sum, a + b, T(0))
KILN_OPERATION(prod, a * b, T(1))
KILN_OPERATION(bit_and, a & b, static_cast<T>(~T(0)))
KILN_OPERATION(bit_or, a | b, T(0))
KILN_OPERATION(bit_xor, a ^ b, T(0))
#undef KILN_OPERATION

/* The minimum of floats is NaN if an operand is NaN, and -0 is less than +0.
 * So the result does not depend on the order of the operands. With the operator
 * < alone it would. */
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

/* ---- Moving values between lanes ----------------------------------------- */

enum class move { from, down, up, across };

/* Returns the 32-bit word that another lane passes. `arg` is the number of that
 * lane (move::from), a distance (move::down, move::up) or an XOR mask
 * (move::across). If the source is outside of the warp, the calling lane gets
 * its own word. */
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
  /* The synchronisation is needed because the next call overwrites the row. */
  __syncwarp();
#endif
  return word;
#endif
}

template <move how, class T>
__device__ __forceinline__ T shuffle_any(T value, unsigned arg)
{
  constexpr int n = (sizeof(T) + 3) / 4;
  unsigned words[n] = {};

  static_assert(sizeof(T) <= 64, "values of at most 64 bytes");
  static_assert(__is_trivially_copyable(T), "values must be trivial");
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < n; ++i)
    words[i] = shuffle_word<how>(words[i], arg);
  memcpy(&value, words, sizeof(T));
  return value;
}

/* Returns the value of the lane with number `source` modulo 32. */
template <class T>
__device__ __forceinline__ T shuffle(T value, unsigned source)
{
  return shuffle_any<move::from>(value, source);
}

/* Returns the value of the lane whose number is higher by `distance`. The last
 * `distance` lanes of the warp get their own value. */
template <class T>
__device__ __forceinline__ T shuffle_down(T value, unsigned distance)
{
  return shuffle_any<move::down>(value, distance);
}

/* Returns the value of the lane whose number is lower by `distance`. The first
 * `distance` lanes of the warp get their own value. */
template <class T>
__device__ __forceinline__ T shuffle_up(T value, unsigned distance)
{
  return shuffle_any<move::up>(value, distance);
}

/* Returns the value of the lane with number lane() ^ mask. */
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned mask)
{
  return shuffle_any<move::across>(value, mask);
}

/* Returns, in every lane, the value of lane `source`. */
template <class T>
__device__ __forceinline__ T warp_broadcast(T value, unsigned source)
{
  return shuffle(value, source);
}

/* ---- Votes --------------------------------------------------------------- */

/* Returns a mask in which bit i is set if the condition of lane i is true. */
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

/* Returns the mask of the lanes whose word equals the word of the calling lane. */
__device__ __forceinline__ unsigned warp_match(unsigned word)
{
#if KILN_HAS_MATCH
  return __match_any_sync(full_warp, word);
#else
  unsigned rest = full_warp, mine = 0;

  /* All lanes run the same number of iterations. */
  while (rest != 0) {
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

/* Returns the reduction over the first n lanes, in lane 0 only. n is 1 to
 * 32. */
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

#ifdef KILN_LINKED
/* Computes to[k] = op(a[k], b[k]) for all k. Operations of the user have an overload
 * in namespace user, which calls the expression for several pairs at a time. */
template <unsigned n, class T, class Op>
__device__ __forceinline__ void each(Op op, const T (&a)[n], const T (&b)[n],
                                     T (&to)[n])
{
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    to[k] = op(a[k], b[k]);
}

/* Computes to[0] = op(a, b[0]), and to[k] = op(to[k - 1], b[k]) for all other k. */
template <unsigned n, class T, class Op>
__device__ __forceinline__ void run(Op op, T a, const T (&b)[n], T (&to)[n])
{
#pragma unroll
  for (unsigned k = 0; k < n; ++k) {
    a = op(a, b[k]);
    to[k] = a;
  }
}

/* Calls run(), or its overload for the operation of the user. */
template <unsigned n, class T, class Op>
__device__ __forceinline__ void op_run(Op op, T a, const T (&b)[n], T (&to)[n])
{
  run(op, a, b, to);
}
#endif

template <class T, class Op> struct warp_reducer {
  /* Returns the reduction over the warp in lane 0. The other lanes get an
   * undefined value, so the loop needs no bounds check. */
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

/* Returns, in every lane, the reduction over the warp. */
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op)
{
  return warp_reducer<T, Op>::all(value, op);
}

/* Returns the reduction over lanes 0 to lane(), the calling lane included. */
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

/* Returns the reduction over the lanes below the calling lane. Lane 0 gets
 * `identity`. */
template <class T, class Op>
__device__ __forceinline__ T warp_scan_exclusive(T value, Op op, T identity)
{
  const T before = shuffle_up(warp_scan_inclusive(value, op), 1);

  return lane() == 0 ? identity : before;
}

/* ---- Alternatives -------------------------------------------------------- */

/* Returns whether the calling kernel must return at once, since an earlier
 * kernel of the stream has chosen another method (index_sample.cu). `skip` is
 * NULL if there is no other method. */
__device__ __forceinline__ bool left_out(const unsigned *skip)
{
  return skip != nullptr && *skip != 0;
}

/* ---- Block --------------------------------------------------------------- */

template <unsigned n> __device__ __forceinline__ uint4 *scratch_storage()
{
  __shared__ uint4 storage[n];

  return storage;
}

/* Returns shared memory that holds one value per warp. All types of at most 16
 * bytes and all block_ functions use the same memory. */
template <class T> __device__ __forceinline__ T *block_scratch()
{
  constexpr unsigned wide = sizeof(T) > 16 ? sizeof(T) : 16;

  return reinterpret_cast<T *>(scratch_storage<2 * wide>());
}

/* Returns, in every thread, the reduction over the block. */
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

/* Returns the reduction over a block of `threads` threads, in thread 0 only.
 * The function contains one barrier, unlike block_reduce(). Call it once per
 * kernel, or put a barrier before the next collective. All warps except warp 0
 * return directly after the barrier. */
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

/* Returns the reduction over the warps below the calling warp. Each warp passes
 * its total in its last lane. Warp 0 gets an undefined value. */
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

/* Returns the reduction over threads 0 to thread(), the calling thread
 * included. */
template <class T, class Op>
__device__ __forceinline__ T block_scan_inclusive(T value, Op op)
{
  const T mine = warp_scan_inclusive(value, op);
  const T before = block_before(mine, op);

  return warp() == 0 ? mine : op(before, mine);
}

/* Returns the reduction over the threads below the calling thread. Thread 0
 * gets `identity`. */
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

/* Returns, in every thread, the value of thread `source`. */
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

/* Returns the number of threads of the block whose condition is true. */
__device__ __forceinline__ unsigned block_count(bool condition)
{
  return static_cast<unsigned>(__syncthreads_count(condition));
}

/* ---- Grid ---------------------------------------------------------------- */

/* The result of one block, which another block reads from global memory. Each
 * 32 bits of the result share a 64-bit word with a flag, and a 64-bit store is
 * atomic. So neither a fence nor a ticket counter is needed, and one round trip
 * through the L2 cache is enough instead of three. All words are 0 before the
 * first launch. The reading block clears each result for the next launch. */
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

/* Prefetches memory into the L2 cache. One whole warp calls this function. In a
 * scan, a block waits for the slowest of the preceding blocks, and all waiting
 * blocks load only after the wait. Prefetching keeps the memory system busy
 * during the wait. */
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

/* Publishes the result of a block for another block. One thread calls this
 * function. */
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
 * depends on n alone. One whole warp calls this function. Each lane polls
 * `at_once` results at a time and returns a partial reduction. The caller
 * combines the 32 partial reductions by a warp reduction. The publishing blocks
 * must be certain to run, so wait only for blocks of a lower index. */
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
      /* All lanes leave the loop in the same iteration. */
    } while (!warp_all(all_here));
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
