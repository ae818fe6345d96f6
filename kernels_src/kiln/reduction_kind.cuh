/* reduction_kind.cuh -- the reductions that the macro KILN_KIND of a kernel selects: their
 * accumulators (accumulators.cuh), their identities, and how results are stored.
 *
 *   0  the binary operation user::op   out receives the result
 *   1  the smallest value              out receives the value, out2 its index
 *   2  the greatest value              out receives the value, out2 its index
 *   3  mean and variance               out receives the mean, out2 the variance
 *   4  the Euclidean norm              out receives the norm
 *   5  minimum and maximum             out receives the minimum, out2 the maximum
 *
 * out and out2 may be NULL for the kinds with two results. A program includes this file
 * after user.cuh and defines KILN_KIND, KILN_OUT and KILN_OUT2. */
#ifndef KILN_REDUCTION_KIND_CUH
#define KILN_REDUCTION_KIND_CUH

#include <kiln/accumulators.cuh>
#include <kiln/user.cuh>

/* accumulator_of<C, vector> is the accumulator of this kind for vectors of `vector`
 * elements, whose indices have type C. `merge` combines two results. */
#if KILN_KIND == 0
template <class C, unsigned vector>
using accumulator_of =
    kiln::op_accumulator<user::value, user::acc, user::op, C, vector>;
typedef user::op merge;
#else
#if KILN_KIND == 1 || KILN_KIND == 2
template <class C, unsigned vector>
using accumulator_of =
    kiln::extremum_accumulator<user::value, KILN_KIND == 2, C, vector>;
#elif KILN_KIND == 3
template <class C, unsigned vector>
using accumulator_of = kiln::moments_accumulator<user::value, C, vector>;
#elif KILN_KIND == 4
template <class C, unsigned vector>
using accumulator_of = kiln::norm_accumulator<user::value, C, vector>;
#else
template <class C, unsigned vector>
using accumulator_of = kiln::extremes_accumulator<user::value, C, vector>;
#endif
typedef accumulator_of<unsigned, 1>::op merge;
#endif

typedef accumulator_of<unsigned, 1>::result reduced;

static __device__ __forceinline__ merge make_merge(const user::args &in)
{
#if KILN_KIND == 0
  return user::make_op(in);
#else
  (void)in;
  return merge();
#endif
}

/* Returns the identity of the reduction of elements from index `origin` on. For mean
 * and variance, the identity also contains the origin of the means, which is the first
 * element. `any` is false if there is no element. */
static __device__ __forceinline__ reduced identity_of(const user::args &in,
                                                      bool any,
                                                      user::index origin)
{
#if KILN_KIND == 3
  const double base = any ? static_cast<double>(user::load(in, origin)) : 0.0;

  return {kiln::is_number(base) ? base : 0.0, 0.0, 0.0};
#else
  (void)in, (void)any, (void)origin;
#if KILN_KIND == 0
  return user::identity(in);
#elif KILN_KIND == 4
  return accumulator_of<unsigned, 1>::identity();
#else
  return merge::identity();
#endif
#endif
}

/* Returns the reduction of `so_far` and of element v with index i. The elements of
 * `so_far` have lower indices. */
static __device__ __forceinline__ reduced take_value(merge op, reduced so_far,
                                                     user::value v,
                                                     user::index i,
                                                     reduced identity)
{
  (void)op, (void)i, (void)identity;
#if KILN_KIND == 0
  return op(so_far, static_cast<reduced>(v));
#elif KILN_KIND == 1 || KILN_KIND == 2
  const bool beyond =
      so_far.at == ~0ull || kiln::is_beyond<KILN_KIND == 2>(v, so_far.value);

  return {beyond ? v : so_far.value, beyond ? i : so_far.at};
#else
  return op(so_far, accumulator_of<unsigned, 1>::single(v, i, identity));
#endif
}

/* Stores result number `at`. An index is stored relative to `origin`. The variance is
 * divided by the number of elements minus `correction`. */
static __device__ __forceinline__ void
store_result(reduced v, reduced identity, unsigned long long at,
             user::index origin, double correction, KILN_OUT *out,
             KILN_OUT2 *out2)
{
  (void)identity, (void)origin, (void)correction, (void)out2;
#if KILN_KIND == 0
  kiln::store(out + at, v);
#elif KILN_KIND == 1 || KILN_KIND == 2
  if (out != nullptr)
    kiln::store(out + at, v.value);
  if (out2 != nullptr)
    kiln::store(out2 + at, v.at == ~0ull ? v.at : v.at - origin);
#elif KILN_KIND == 3
  const double divisor = v.n - correction > 0.0 ? v.n - correction : 0.0;

  if (out != nullptr)
    kiln::store(out + at, v.n > 0.0 ? identity.mean + v.mean : 0.0 / v.n);
  if (out2 != nullptr)
    kiln::store(out2 + at, v.squares / divisor);
#elif KILN_KIND == 4
  kiln::store(out + at, kiln::norm_of(v));
#else
  if (out != nullptr)
    kiln::store(out + at, v.least);
  if (out2 != nullptr)
    kiln::store(out2 + at, v.greatest);
#endif
}

#endif
