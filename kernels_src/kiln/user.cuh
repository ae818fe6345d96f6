/* user.cuh -- what the caller of an operation decides: inputs, map, operation and further
 * functions, in namespace user. The library generates this part for each call. The
 * defaults here let a kernel be compiled on its own (one array of floats and its sum).
 *
 *   index                    unsigned long long
 *   args                     a kernel parameter passed by value: addresses, parameters
 *   stored, value            type of a mapped element in memory, and in computations
 *   vector<n>                n adjacent elements of each input array, before any map
 *   load_inputs(s, i, p)     loads a vector from element i on, a multiple of n; n is a
 *                            power of two
 *   prefetch_inputs(s, i, n) prefetches n elements of each array from i on into the
 *                            second-level cache; one whole warp calls it
 *   map_at(s, p, e, i)       maps element e of a vector
 *   load(s, i)               loads and maps element i
 *   load_as<how>(s, i)       the same with a cache policy (types.cuh)
 *   load_vector<n>(s, i, to) loads and maps n adjacent elements from i on. This and
 *                            load_inputs() take a cache policy as second template
 *                            argument
 *   acc, op, make_op(s), identity(s)   the operation: op(a, b) on values of type acc
 *   and the functions f(s, ...) that the head of a kernel names.
 *
 * A kernel includes user_texts.cuh as its last line, which defines the functions that the
 * library declares here.
 *
 * The text of a map may also call x0_at(j) to x7_at(j), or x_at, y_at, z_at, w_at: element
 * j of an array, loaded on its own. They exist only in texts that name them. */
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
