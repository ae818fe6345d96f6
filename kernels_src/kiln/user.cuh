/* user.cuh -- the user's inputs, map, operation and further functions, in namespace user.
 * The library generates namespace user for each call. The defaults in this file let a
 * kernel be compiled on its own; they define one array of floats and its sum.
 *
 *   index                    unsigned long long
 *   args                     struct passed by value to the kernel; it holds the addresses
 *                            of the arrays and the user's parameters
 *   stored, value            type of a mapped element in memory, and in computations
 *   vector<n>                n consecutive elements of each input array, before any map
 *   load_inputs(s, i, p)     loads a vector<n> that starts at element i; n is a power of
 *                            two, and i is a multiple of n
 *   prefetch_inputs(s, i, n) prefetches elements i to i + n - 1 of each array into the L2
 *                            cache; one whole warp calls it
 *   map_at(s, p, e, i)       returns the mapped value of element e of vector p
 *   load(s, i)               loads and maps element i
 *   load_as<how>(s, i)       loads and maps element i with a cache policy (types.cuh)
 *   load_vector<n>(s, i, to) loads and maps elements i to i + n - 1. Both load_vector()
 *                            and load_inputs() take a cache policy as second template
 *                            argument
 *   acc, op, make_op(s), identity(s)   the operation op(a, b) on values of type acc, its
 *                            constructor and its identity
 * The head comment of a kernel names further functions f(s, ...) that it calls.
 *
 * KILN_LINKED is defined if the kernel is the body of a linked program. Expressions are
 * then not inlined, so they are evaluated for several elements or pairs per call, with
 * the same results. A vector keeps the results of its
 * expressions. Therefore a kernel calls NAME_at() for the elements of a vector in
 * ascending order, from element 0 on. user::NAME_all(s, a, b, to) evaluates an expression
 * with the operands a and b for several pairs. kiln::each() and kiln::run() (prelude.cuh)
 * do so for the operation.
 *
 * A kernel includes user_texts.cuh as its last line. That file defines the functions that
 * the library declares here.
 *
 * A map expression may also call x0_at(j) to x7_at(j), or x_at, y_at, z_at, w_at. Each of
 * these functions loads element j of one array. The library declares such a function only
 * if an expression calls it. */
#ifndef KILN_USER_CUH
#define KILN_USER_CUH

#include <kiln/activation.cuh>
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
