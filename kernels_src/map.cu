/* map.cu -- compute up to four output arrays from the input arrays, element by element.
 *
 * A thread loads all its vectors before it stores the first one, so that an output
 * may be one of the inputs. Block 0 also computes the elements before the first aligned
 * vector and after the last whole vector, one element per thread.
 *
 * Parameters:
 *   KILN_BLOCK      256         threads per block
 *   KILN_ITEMS      4           vectors in flight per thread
 *   KILN_VECTOR     4           elements per vector, a power of two: 16 bytes of
 *                               the widest array
 *   KILN_OUTPUTS    1           number of outputs, 1 to 4
 *   KILN_ALIGNED    15          bit k is set if vectors of output k are aligned to 16
 *                               bytes
 *   KILN_HEAD       0           1 if vectors start at element `head` instead of 0
 *   KILN_SMALL      0           1 if n is below 2^31
 *   KILN_READ_ONLY  0           1 if no output is an input
 *   KILN_T0         type float  type of an element of output 0
 *   KILN_T1         type float  type of an element of output 1
 *   KILN_T2         type float  type of an element of output 2
 *   KILN_T3         type float  type of an element of output 3
 * Generated code (user.cuh): the map computes output 0. The functions out1 to out3
 * compute the other outputs from the same inputs.
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK *
 *         KILN_ITEMS vectors, and at least one block.
 *         n          number of elements
 *         out0..3    n elements each; unused outputs are NULL
 *         head       number of elements before the first vector, less than
 *                    KILN_VECTOR and at most n
 * Result: element i of each output is computed from element i of each input. */
#include <kiln/params/map.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/user.cuh>
#include <kiln/warp_store.cuh>

static_assert(KILN_BLOCK >= 2 * KILN_VECTOR,
              "KILN_BLOCK: two vectors at least");

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

/* Writes one vector of one output. f(e) computes element e of the vector. `warp`
 * states that all lanes of the warp write adjacent vectors. */
template <unsigned bit, bool warp, class T, class F>
static __device__ __forceinline__ void write(T *to, F f)
{
  constexpr bool aligned = (KILN_ALIGNED >> bit & 1) != 0;
  kiln::compute_t<T> value[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    value[e] = f(e);
  kiln::vector_writer<warp && aligned && kiln::stores_by_warp<KILN_VECTOR, T>(),
                      KILN_BLOCK / 32, KILN_VECTOR, aligned>::write(to, value);
}

struct outputs {
  KILN_T0 *out0;
  KILN_T1 *out1;
  KILN_T2 *out2;
  KILN_T3 *out3;
};

/* Writes all outputs of one vector of inputs. The inputs stay in registers until
 * the last output is computed, since an output array may be an input array. */
template <bool warp>
static __device__ __forceinline__ void
write_vector(const user::args &in, const user::vector<KILN_VECTOR> &p, count i,
             const outputs &to)
{
  write<0, warp>(to.out0 + i,
                 [&](unsigned e) { return user::map_at(in, p, e, i); });
#if KILN_OUTPUTS > 1
  write<1, warp>(to.out1 + i,
                 [&](unsigned e) { return user::out1_at(in, p, e, i); });
#endif
#if KILN_OUTPUTS > 2
  write<2, warp>(to.out2 + i,
                 [&](unsigned e) { return user::out2_at(in, p, e, i); });
#endif
#if KILN_OUTPUTS > 3
  write<3, warp>(to.out3 + i,
                 [&](unsigned e) { return user::out3_at(in, p, e, i); });
#endif
}

/* Loads the inputs of element i and writes all outputs of element i. */
static __device__ __forceinline__ void write_one(const user::args &in, count i,
                                                 const outputs &to)
{
  user::vector<1> p;

  user::load_inputs(in, i, p);
  kiln::store(to.out0 + i, user::map_at(in, p, 0, i));
#if KILN_OUTPUTS > 1
  kiln::store(to.out1 + i, user::out1_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 2
  kiln::store(to.out2 + i, user::out2_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 3
  kiln::store(to.out3 + i, user::out3_at(in, p, 0, i));
#endif
}

/* Computes KILN_ITEMS vectors per thread. All loads of a thread are issued
 * before its first store. `first` is the index of the calling thread's first
 * vector, and vector 0 starts at element `head`. */
static __device__ __forceinline__ void
whole_tile(const user::args &in, count first, count head, const outputs &to)
{
  user::vector<KILN_VECTOR> p[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    user::load_inputs(in, head + (first + k * KILN_BLOCK) * KILN_VECTOR, p[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    write_vector<true>(in, p[k], head + (first + k * KILN_BLOCK) * KILN_VECTOR,
                       to);
}

static __device__ __forceinline__ void partial_tile(const user::args &in,
                                                    count first, count vectors,
                                                    count head,
                                                    const outputs &to)
{
  user::vector<KILN_VECTOR> p;

#pragma unroll 1
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (first + k * KILN_BLOCK < vectors) {
      user::load_inputs(in, head + (first + k * KILN_BLOCK) * KILN_VECTOR, p);
      write_vector<false>(in, p, head + (first + k * KILN_BLOCK) * KILN_VECTOR,
                          to);
    }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    map(const user::args in, unsigned long long n, KILN_T0 *out0, KILN_T1 *out1,
        KILN_T2 *out2, KILN_T3 *out3, unsigned head)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const outputs to = {out0, out1, out2, out3};
  const count before = KILN_HEAD ? head : 0;
  const count inside = static_cast<count>(n) - before;
  const count vectors = inside / KILN_VECTOR;
  const unsigned rest = static_cast<unsigned>(inside % KILN_VECTOR);
  const count first = blockIdx.x * tile;

  if (first + tile <= vectors)
    whole_tile(in, first + threadIdx.x, before, to);
  else
    partial_tile(in, first + threadIdx.x, vectors, before, to);
  if (blockIdx.x != 0)
    return;
  if (threadIdx.x < rest)
    write_one(in, static_cast<count>(n) - rest + threadIdx.x, to);
  if (KILN_HEAD && threadIdx.x - KILN_VECTOR < head)
    write_one(in, threadIdx.x - KILN_VECTOR, to);
}

#include <kiln/user_texts.cuh>
