/* gemm_stage.cuh -- tiles of A and B: from global to shared memory, and from there to
 * the registers of a thread.
 *
 * Problem: a tile is `rows` rows of op(A), or columns of op(B), by `depth` elements of
 * the sum. In global memory either the rows or the depth is contiguous. The inner loop
 * wants, for one position of the depth, several consecutive rows as one 16-byte load.
 *
 * Idea: shared memory holds the tile as [depth][rows + pad]. If the rows are contiguous
 * in global memory, vectors are copied as they are. If the depth is contiguous, each
 * vector is loaded into registers, and its elements are stored to different rows of
 * shared memory; cp.async can do the same with 4-byte copies. The pad of 16 bytes
 * spreads these stores over the banks.
 *
 * Invariant: a copy never reads outside of the matrix. Rows beyond the last one are
 * replaced by the last row, whose results are not stored. Positions beyond the end of
 * the sum become zeros in A and B, since 0 * NaN would not be 0.
 *
 * Cost: one load and one store per vector, and one address per vector. */
#ifndef KILN_GEMM_STAGE_CUH
#define KILN_GEMM_STAGE_CUH

#include <kiln/types.cuh>

namespace kiln
{

/* Type of an element in shared memory. */
template <class T> struct gemm_staged {
  typedef float type;
};
template <> struct gemm_staged<double> {
  typedef double type;
};
template <> struct gemm_staged<signed char> {
  typedef int type;
};

/* Returns a * b + sum in the type of the sums. */
__device__ __forceinline__ float gemm_multiply_add(float a, float b, float sum)
{
  return fmaf(a, b, sum);
}
__device__ __forceinline__ double gemm_multiply_add(double a, double b,
                                                    double sum)
{
  return fma(a, b, sum);
}
__device__ __forceinline__ unsigned gemm_multiply_add(int a, int b,
                                                      unsigned sum)
{
  return static_cast<unsigned>(a * b) + sum;
}

/* Shared memory is addressed by bytes, as 32-bit addresses: the loops then have one
 * register and a constant per access. */
__device__ __forceinline__ unsigned gemm_shared(const void *p)
{
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ uint4 gemm_load_shared(unsigned from)
{
  uint4 v;

  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}

__device__ __forceinline__ void gemm_store_shared(unsigned to, unsigned v)
{
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
}
__device__ __forceinline__ void gemm_store_shared(unsigned to, uint2 v)
{
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(v.x), "r"(v.y)
               : "memory");
}
__device__ __forceinline__ void gemm_store_shared(unsigned to, uint4 v)
{
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

/* Starts a copy of `bytes` (4, 8 or 16) bytes to shared memory, or a store of zeros if
 * `here` is false. */
template <unsigned bytes>
__device__ __forceinline__ void gemm_async(unsigned to, const void *global,
                                           bool here)
{
#if KILN_ARCH >= 80
  const unsigned size = here ? bytes : 0;

  if (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(global)), "r"(size)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                 "l"(__cvta_generic_to_global(global)), "n"(bytes), "r"(size)
                 : "memory");
#endif
}

__device__ __forceinline__ void gemm_async_commit()
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most `left` of the thread's groups of copies are in flight. */
template <unsigned left> __device__ __forceinline__ void gemm_async_wait()
{
#if KILN_ARCH >= 80
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

/* The copies of one operand by all threads of a block. Thread t copies the vectors t, t
 * + threads, t + 2 * threads and so on of a tile.
 *   rows, depth  size of the tile
 *   k_first      true if the depth is contiguous in global memory
 *   vec          elements per load; all vectors are aligned and lie completely inside
 *                or outside of the matrix
 *   async        true to copy by cp.async
 *   clamp        true if the tile may be larger than the matrix */
template <class T, unsigned rows, unsigned depth, unsigned threads,
          bool k_first, unsigned vec, bool async, bool clamp>
struct gemm_copy {
  typedef typename gemm_staged<T>::type staged;
  enum : unsigned {
    chunk = 16 / sizeof(staged), /* elements of a 16-byte load */
    pitch = rows + chunk,        /* elements between positions of the depth */
    bytes = pitch * depth * sizeof(staged), /* size of a stage */
    per_line = (k_first ? depth : rows) / vec,
    vectors = rows * depth / vec,
    count = (vectors + threads - 1) / threads
  };
  static_assert(threads % per_line == 0 || per_line % threads == 0,
                "a thread's vectors have the same position in their lines");

  const T *from; /* the thread's first vector */
  unsigned long long leading;
  unsigned row, k; /* position of that vector in the tile */
  unsigned n_rows; /* rows of the tile that exist, at least 1 */
  unsigned slot;   /* address of that vector in the first stage */
  T held[async ? 1 : count][vec];

  /* Positions of the thread's vector number i, relative to its first one. */
  static __device__ __forceinline__ constexpr unsigned along(unsigned i)
  {
    return i * threads % per_line * vec;
  }
  static __device__ __forceinline__ constexpr unsigned across(unsigned i)
  {
    return i * threads / per_line;
  }
  static __device__ __forceinline__ constexpr unsigned row_step(unsigned i)
  {
    return k_first ? across(i) : along(i);
  }
  static __device__ __forceinline__ constexpr unsigned k_step(unsigned i)
  {
    return k_first ? along(i) : across(i);
  }

  /* Offset of the thread's vector number i, and of its element e, in a stage, relative
   * to its first one. */
  static __device__ __forceinline__ constexpr unsigned slot_step(unsigned i,
                                                                 unsigned e)
  {
    return ((k_step(i) + (k_first ? e : 0)) * pitch + row_step(i) +
            (k_first ? 0 : e)) *
           sizeof(staged);
  }

  /* Prepares the copies of tiles that start at the address `tile`. */
  __device__ __forceinline__ void open(const T *tile,
                                       unsigned long long line_pitch,
                                       unsigned existing, unsigned shared)
  {
    const unsigned line = thread() / per_line;
    const unsigned place = thread() % per_line * vec;

    row = k_first ? line : place;
    k = k_first ? place : line;
    leading = line_pitch;
    n_rows = existing;
    slot = shared + (k * pitch + row) * sizeof(staged);
    from = tile + line * leading + place;
  }

  __device__ __forceinline__ bool is_mine(unsigned i) const
  {
    return vectors % threads == 0 || thread() + i * threads < vectors;
  }

  __device__ __forceinline__ const T *address(unsigned i) const
  {
    if (clamp && row + row_step(i) >= n_rows) /* the vector of row 0 instead */
      return k_first ? from - row * leading + k_step(i)
                     : from - row + k_step(i) * leading;
    return from + across(i) * leading + along(i);
  }

  /* Starts the loads of the next tile. `stage` is the offset of its stage. Only `left`
   * positions of the sum exist if `ragged`, otherwise all if `exists`, and nothing is
   * read if not. */
  template <bool ragged>
  __device__ __forceinline__ void load(unsigned stage, unsigned left,
                                       bool exists)
  {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const bool here = ragged ? k + k_step(i) < left : exists;

      if (!is_mine(i))
        continue;
      if (async) {
        gemm_async<vec * sizeof(T)>(slot + stage + slot_step(i, 0),
                                    ragged && !here ? from : address(i), here);
        continue;
      }
      if (ragged)
#pragma unroll
        for (unsigned e = 0; e < vec; ++e)
          held[i][e] = T();
      if (here)
        load_raw<vec, (vec > 1)>(address(i), held[i]);
    }
    from +=
        k_first ? (ragged ? left : depth) : (ragged ? left : depth) * leading;
  }

  /* Stores vector i: one store, or one per element if the tile is turned. */
  __device__ __forceinline__ void store_vector(unsigned to, unsigned i) const
  {
    constexpr unsigned each = k_first ? 1 : vec;
    typedef typename word<each * sizeof(staged)>::type bits;
    staged wide[vec];

#pragma unroll
    for (unsigned e = 0; e < vec; ++e)
      wide[e] = widen(held[i][e]);
#pragma unroll
    for (unsigned e = 0; e < vec; e += each) {
      bits w;

      memcpy(&w, wide + e, sizeof w);
      gemm_store_shared(to + slot_step(i, e), w);
    }
  }

  /* Stores the loaded vectors to shared memory, unless cp.async does it. */
  __device__ __forceinline__ void store(unsigned stage) const
  {
#pragma unroll
    for (unsigned i = 0; i < count; ++i)
      if (!async && is_mine(i))
        store_vector(slot + stage, i);
  }
};

} // namespace kiln

#endif
