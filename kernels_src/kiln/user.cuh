/* user.cuh -- what an operation's caller decides: inputs, map, operation and
 * further functions, in namespace user. The library generates it for each call;
 * the defaults here let a kernel be compiled by itself (one float array, its sum).
 *
 *   index        unsigned long long
 *   args         a kernel parameter by value: addresses and parameters
 *   stored       type of a mapped element in memory
 *   value        the same as it computes
 *   pack<n>, load_inputs(s, i, p)   n neighbours of each array, from i on, before
 *                                   any map; i is a multiple of n, a power of two
 *   prefetch_inputs(s, i, n) asks for n elements of each array from i on to be
 *                            brought to the second-level cache; by a whole warp
 *   map_at(s, p, e, i)       element e of such a pack, mapped
 *   load(s, i)               element i, mapped
 *   load_as<how>(s, i)       the same; how it ranks in the caches (types.cuh)
 *   load_vector<n>(s, i, to)   n neighbours from i on, mapped; this and
 *                            load_inputs() take `how` as well, behind n
 *   acc, op, make_op(s), identity(s)   the operation, op(a, b) on acc
 *   and what the kernel's head names beside, as f(s, ...)
 *
 * Texts of a map may also call x0_at(j) to x7_at(j), or x_at, y_at, z_at, w_at:
 * element j of an array, loaded one by one. They exist in texts that name them. */
#ifndef KILN_USER_CUH
#define KILN_USER_CUH

#include <kiln/types.cuh>

#ifndef KILN_GENERATED
#define KILN_GENERATED 0
#endif

#if KILN_GENERATED
#include <kiln/generated.cuh>
#else

namespace user
{

typedef unsigned long long index;
typedef float stored;
typedef float value;
typedef float acc;
typedef kiln::sum op;

struct alignas(8) args {
  const float *x0;
};

template <unsigned n> struct vector {
  float x0[n];
};

template <unsigned n, kiln::cached how = kiln::cached::usual>
static __device__ __forceinline__ void load_inputs(const args &s, index i,
                                                   vector<n> &p)
{
  kiln::load_vector<n, true, how>(s.x0 + i, p.x0);
}

static __device__ __forceinline__ void prefetch_inputs(const args &s, index i,
                                                       unsigned n)
{
  kiln::prefetch(s.x0 + i, n * static_cast<unsigned>(sizeof *s.x0));
}

template <unsigned n>
static __device__ __forceinline__ value map_at(const args &, const vector<n> &p,
                                               unsigned e, index)
{
  return p.x0[e];
}

template <kiln::cached how>
static __device__ __forceinline__ value load_as(const args &s, index i)
{
  return kiln::load_as<how>(s.x0 + i);
}

static __device__ __forceinline__ value load(const args &s, index i)
{
  return kiln::load(s.x0 + i);
}

template <unsigned n, kiln::cached how = kiln::cached::usual>
static __device__ __forceinline__ void load_vector(const args &s, index i,
                                                   value (&to)[n])
{
  kiln::load_vector<n, true, how>(s.x0 + i, to);
}

static __device__ __forceinline__ op make_op(const args &)
{
  return {};
}

static __device__ __forceinline__ acc identity(const args &)
{
  return op::identity<acc>();
}

} // namespace user

#endif
#endif
