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

/* Starts a copy of `bytes` (4, 8 or 16) bytes to shared memory, or a store of zeros if
 * `here` is false. */
template <unsigned bytes>
__device__ __forceinline__ void gemm_async(void *shared, const void *global,
                                           bool here)
{
#if KILN_ARCH >= 80
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
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

/* The copies of one operand by all threads of a block.
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
    size = pitch * depth,        /* elements of a stage */
    per_line = (k_first ? depth : rows) / vec,
    vectors = rows * depth / vec,
    count = (vectors + threads - 1) / threads
  };

  const T *from; /* element (first row, first position of the sum) */
  unsigned long long leading;
  unsigned n_rows; /* rows of the tile that exist, at least 1 */
  T held[async ? 1 : count][vec];

  static __device__ __forceinline__ unsigned row_of(unsigned v)
  {
    return k_first ? v / per_line : v % per_line * vec;
  }
  static __device__ __forceinline__ unsigned depth_of(unsigned v)
  {
    return k_first ? v % per_line * vec : v / per_line;
  }
  static __device__ __forceinline__ bool is_mine(unsigned v)
  {
    return vectors % threads == 0 || v < vectors;
  }

  __device__ __forceinline__ const T *address(unsigned row, unsigned k) const
  {
    if (clamp && row >= n_rows)
      row = 0;
    return k_first ? from + row * leading + k : from + k * leading + row;
  }

  /* Starts the loads of the tile at `from`. Only `left` positions of the sum exist if
   * `ragged`. */
  template <bool ragged>
  __device__ __forceinline__ void load(staged *stage, unsigned left)
  {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const unsigned v = thread() + i * threads;
      const unsigned row = row_of(v), k = depth_of(v);
      const bool here = !ragged || k < left;
      const T *p = here ? address(row, k) : from;

      if (!is_mine(v))
        continue;
      if (async) {
        gemm_async<vec * sizeof(T)>(stage + k * pitch + row, p, here);
      } else {
#pragma unroll
        for (unsigned e = 0; e < vec; ++e)
          held[i][e] = T();
        if (here)
          load_raw<vec, (vec > 1)>(p, held[i]);
      }
    }
  }

  /* Stores the loaded vectors to shared memory, unless cp.async does it. */
  __device__ __forceinline__ void store(staged *stage) const
  {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      const unsigned v = thread() + i * threads;
      staged *to = stage + depth_of(v) * pitch + row_of(v);

      if (async || !is_mine(v))
        continue;
      if (k_first) {
#pragma unroll
        for (unsigned e = 0; e < vec; ++e)
          to[e * pitch] = widen(held[i][e]);
      } else {
        staged wide[vec];

#pragma unroll
        for (unsigned e = 0; e < vec; ++e)
          wide[e] = widen(held[i][e]);
        store_raw<vec, (vec > 1)>(to, wide);
      }
    }
  }

  __device__ __forceinline__ void advance(unsigned positions)
  {
    from += k_first ? positions : positions * leading;
  }
};

} // namespace kiln

#endif
