/* gemm_pack.cu -- copies a matrix into the form that the tensor cores' kernels read.
 *
 * Problem: the copies of the TMA need lines (rows, or columns) that start at multiples of
 * 16 bytes, tensor cores turn only elements of 2 bytes, and multiply no f32.
 *
 * Idea: a thread reads 8 consecutive elements of a line and writes them as vectors to
 * temporary storage, whose lines start at multiples of 16 bytes. With KILN_PARTS, each
 * f32 becomes two or three numbers of type bf16 that add up to it: each is what the
 * ones before leave, rounded to nearest. Part p of a matrix is a matrix of its own.
 * With KILN_TURN, a block turns a square of 64 x 64 elements in shared memory.
 *
 * Invariant: parts of finite numbers are finite. What follows an infinity or a NaN is 0.
 *
 * Cost: each element is read and written once.
 *
 * Source: Henry, Tang and Heinecke, Leveraging the bfloat16 artificial intelligence
 * datatype, 2019.
 *
 * Parameters:
 *   KILN_T         type float  type of an element
 *   KILN_PARTS     0    parts of type bf16 per f32: 2 or 3; 0: copy elements
 *   KILN_TURN      0    1: lines of the copy are the positions in a line of the matrix
 *   KILN_POINTERS  0    1: an array holds the addresses of the matrices
 *   KILN_VECTOR    1    elements per load: 1, 2, 4 or 8, at most 16 bytes
 * Launch: blocks of 256 threads, any number, in x.
 *         leading  elements between lines of the copy, a multiple of 8
 * Result: the copy. Positions after the end of its lines hold any value. */
#include <kiln/params/gemm_pack.cuh>

#define KILN_MAX_BLOCK 256
#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 1
#include <kiln/types.cuh>

struct pack_args {
  unsigned long long from, from_leading, from_stride, to, leading;
  unsigned lines, width, batch; /* of the matrix that is read */
};

namespace
{

enum : unsigned {
  vector = 8, /* elements that a thread writes at a time */
  parts = KILN_PARTS == 0 ? 1 : KILN_PARTS,
  square = 64
};

typedef KILN_T element;

template <unsigned n> struct part_type {
  typedef kiln::bf16 type;
};
template <> struct part_type<0> {
  typedef KILN_T type;
};
typedef part_type<KILN_PARTS>::type part;

enum : unsigned {
  per_store = sizeof(part) == 4 ? 4 : vector /* elements per store */
};

#if KILN_PARTS
__device__ __forceinline__ bool is_finite(float v)
{
  return (__float_as_uint(v) & 0x7f800000u) != 0x7f800000u;
}

/* Rounds to nearest, or towards 0 where that would give an infinity. */
__device__ __forceinline__ kiln::bf16 round_to_bf16(float v)
{
  kiln::bf16 h = kiln::narrow<kiln::bf16>(v);

  if (is_finite(v) && !is_finite(kiln::widen(h)))
    h.bits = static_cast<unsigned short>(__float_as_uint(v) >> 16);
  return h;
}

__device__ __forceinline__ void split(float v, kiln::bf16 (&to)[parts])
{
#pragma unroll
  for (unsigned p = 0; p < parts; ++p) {
    to[p] = round_to_bf16(v);
    v = is_finite(v) ? v - kiln::widen(to[p]) : 0.0f;
  }
}
#else
__device__ __forceinline__ void split(element v, element (&to)[1])
{
  to[0] = v;
}
#endif

/* Stores the parts of 8 elements of line `line` of matrix number `batch`. */
__device__ __forceinline__ void store_parts(const pack_args &a, unsigned lines,
                                            unsigned batch, unsigned line,
                                            unsigned at, const KILN_T *v)
{
  part out[parts][vector];

#pragma unroll
  for (unsigned e = 0; e < vector; ++e) {
    part one[parts];

    split(v[e], one);
#pragma unroll
    for (unsigned p = 0; p < parts; ++p)
      out[p][e] = one[p];
  }
#pragma unroll
  for (unsigned p = 0; p < parts; ++p) {
    part *to = reinterpret_cast<part *>(a.to) +
               ((static_cast<kiln::index>(batch) * parts + p) * lines + line) *
                   a.leading +
               at;

#pragma unroll
    for (unsigned e = 0; e < vector; e += per_store) {
      part some[per_store];

#pragma unroll
      for (unsigned i = 0; i < per_store; ++i)
        some[i] = out[p][e + i];
      kiln::store_raw<per_store, true>(to + e, some);
    }
  }
}

__device__ __forceinline__ const KILN_T *matrix_of(const pack_args &a,
                                                   unsigned batch)
{
  if (KILN_POINTERS)
    return reinterpret_cast<const KILN_T *>(
        reinterpret_cast<const unsigned long long *>(a.from)[batch]);
  return reinterpret_cast<const KILN_T *>(a.from) + batch * a.from_stride;
}

/* Loads up to 8 elements, and zeros after the end of the line. */
__device__ __forceinline__ void
load_elements(const KILN_T *from, unsigned count, KILN_T (&v)[vector])
{
  if (count >= vector) {
#pragma unroll
    for (unsigned e = 0; e < vector; e += KILN_VECTOR) {
      KILN_T some[KILN_VECTOR];

      kiln::load_raw<KILN_VECTOR, (KILN_VECTOR > 1)>(from + e, some);
#pragma unroll
      for (unsigned i = 0; i < KILN_VECTOR; ++i)
        v[e + i] = some[i];
    }
  } else {
#pragma unroll
    for (unsigned e = 0; e < vector; ++e)
      v[e] = e < count ? from[e] : element();
  }
}

#if !KILN_TURN
__device__ __forceinline__ void pack(const pack_args &a)
{
  const unsigned per_line = (a.width + vector - 1) / vector;
  const kiln::index total =
      static_cast<kiln::index>(per_line) * a.lines * a.batch;

  for (kiln::index i = blockIdx.x * 256ull + threadIdx.x; i < total;
       i += gridDim.x * 256ull) {
    const kiln::index line = i / per_line;
    const unsigned at = static_cast<unsigned>(i - line * per_line) * vector;
    const unsigned batch = static_cast<unsigned>(line / a.lines);
    const unsigned in_matrix =
        static_cast<unsigned>(line - static_cast<kiln::index>(batch) * a.lines);
    KILN_T v[vector];

    load_elements(matrix_of(a, batch) + in_matrix * a.from_leading + at,
                  a.width - at, v);
    store_parts(a, a.lines, batch, in_matrix, at, v);
  }
}
#else
/* Turns a square whose first element is (line, at). */
__device__ __forceinline__ void turn(const pack_args &a, unsigned batch,
                                     unsigned line, unsigned at)
{
  __shared__ KILN_T tile[square][square + 1];
  const KILN_T *from = matrix_of(a, batch);

#pragma unroll
  for (unsigned i = threadIdx.x * vector; i < square * square;
       i += 256 * vector) {
    const unsigned r = i / square, c = i % square;
    KILN_T v[vector];

    if (line + r >= a.lines || at + c >= a.width)
      continue;
    load_elements(from + (line + r) * a.from_leading + at + c, a.width - at - c,
                  v);
#pragma unroll
    for (unsigned e = 0; e < vector; ++e)
      tile[c + e][r] = v[e];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < square * square / vector; i += 256) {
    const unsigned c = i / (square / vector),
                   r = i % (square / vector) * vector;
    KILN_T v[vector];

    if (at + c >= a.width || line + r >= a.lines)
      continue;
#pragma unroll
    for (unsigned e = 0; e < vector; ++e)
      v[e] = line + r + e < a.lines ? tile[c][r + e] : element();
    store_parts(a, a.width, batch, at + c, line + r, v);
  }
  __syncthreads();
}

__device__ __forceinline__ void pack(const pack_args &a)
{
  const unsigned down = (a.lines + square - 1) / square;
  const unsigned across = (a.width + square - 1) / square;
  const kiln::index total = static_cast<kiln::index>(down) * across * a.batch;

  for (kiln::index i = blockIdx.x; i < total; i += gridDim.x) {
    const kiln::index strip = i / across;
    const unsigned batch = static_cast<unsigned>(strip / down);

    turn(a, batch, static_cast<unsigned>(strip % down) * square,
         static_cast<unsigned>(i - strip * across) * square);
  }
}
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(KILN_MAX_BLOCK)
    gemm_pack(const pack_args a)
{
  pack(a);
}
