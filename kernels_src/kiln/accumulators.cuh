/* accumulators.cuh -- accumulators of the reduction kernels. An accumulator holds the
 * partial result of one thread. There are accumulators for a binary operation, for the
 * index of an extreme value, for minimum and maximum, for mean and variance, and for the
 * Euclidean norm.
 *
 * An accumulator A reduces vectors of `vector` elements. A vector has an index of type C.
 *   A::result                type of the partial results of threads and blocks
 *   A(merge, identity)       constructs an accumulator; merge(a, b) combines two partial
 *                            results, and identity is the identity of merge. The
 *                            identity of moments also contains the origin of means
 *   begin(i, any)            announces that vector i is the thread's first vector; `any`
 *                            is false if the thread has no vector
 *   look(v)                  announces, before each round, one of its values
 *   take(v, e, i)            adds v, which is element e of vector i
 *   close(first)             returns the result; vector 0 starts at element `first`
 *   single(v, i, identity)   returns the result of the single element v with index i
 * An accumulator keeps several independent partial results until close(), so that
 * dependent instructions do not wait for each other. */
#ifndef KILN_ACCUMULATORS_CUH
#define KILN_ACCUMULATORS_CUH

#include <kiln/types.cuh>

namespace kiln
{

/* Returns the reduction over an array of results, as a binary tree over
 * consecutive elements. Overwrites the array. */
template <unsigned n, class T, class Op>
__device__ __forceinline__ T reduce_array(T (&v)[n], Op op)
{
#pragma unroll
  for (unsigned step = 1; step < n; step *= 2)
#pragma unroll
    for (unsigned k = 0; k + step < n; k += 2 * step)
      v[k] = op(v[k], v[k + step]);
  return v[0];
}

#ifdef KILN_LINKED
/* Reduces each row of a matrix as reduce_array() does, and returns the results in
 * column 0. */
template <unsigned rows, unsigned n, class T, class Op>
__device__ __forceinline__ void reduce_arrays(T (&v)[rows][n], Op op)
{
#pragma unroll
  for (unsigned step = 1; step < n; step *= 2)
#pragma unroll
    for (unsigned k = 0; k + step < n; k += 2 * step) {
      T a[rows], b[rows];

#pragma unroll
      for (unsigned r = 0; r < rows; ++r) {
        a[r] = v[r][k];
        b[r] = v[r][k + step];
      }
      each(op, a, b, a);
#pragma unroll
      for (unsigned r = 0; r < rows; ++r)
        v[r][k] = a[r];
    }
}
#endif

/* ---- Binary operation ---------------------------------------------------- */

template <class V, class T, class Op, class C, unsigned vector>
struct op_accumulator {
  typedef T result;
  enum : unsigned { chains = vector < 4 ? vector : 4 };

  Op merge;
  T chain[chains];
#ifdef KILN_LINKED
  T pending[chains]; /* the values of the open batch */
#endif

  __device__ __forceinline__ op_accumulator(Op op, T identity) : merge(op)
  {
#pragma unroll
    for (unsigned k = 0; k < chains; ++k)
      chain[k] = identity;
  }
  __device__ __forceinline__ void begin(C, bool)
  {
  }
  __device__ __forceinline__ void look(V)
  {
  }
  __device__ __forceinline__ void take(V v, unsigned e, C)
  {
#ifdef KILN_LINKED
    pending[e % chains] = static_cast<T>(v);
    if (e % chains == chains - 1)
      each(merge, chain, pending, chain);
#else
    chain[e % chains] = merge(chain[e % chains], static_cast<T>(v));
#endif
  }
  __device__ __forceinline__ T close(index)
  {
    return reduce_array(chain, merge);
  }
  static __device__ __forceinline__ T single(V v, index, T)
  {
    return static_cast<T>(v);
  }
};

/* ---- Index of the smallest or greatest value ------------------------
 * The rules are those of NumPy. Of equal values the first one is the result, and
 * -0 equals +0. A NaN is more extreme than any number, so the first NaN is the
 * result. */

template <class V> struct extremum {
  V value;
  /* Index of the value. All bits are set if there is no element. */
  index at;
};

/* Returns whether v replaces `best` as the extreme value. This is the case if v
 * is greater (or smaller, unless `greatest` is true), or if v is the first NaN. */
template <bool greatest, class V>
__device__ __forceinline__ bool is_beyond(V v, V best)
{
  return greatest ? !(v <= best) && best == best : !(v >= best) && best == best;
}

template <bool greatest, class V> struct extremum_merge {
  __device__ __forceinline__ extremum<V> operator()(extremum<V> a,
                                                    extremum<V> b) const
  {
    const bool first_in_a = a.at <= b.at;
    const extremum<V> first = {first_in_a ? a.value : b.value,
                               first_in_a ? a.at : b.at};
    const extremum<V> second = {first_in_a ? b.value : a.value,
                                first_in_a ? b.at : a.at};
    const bool beyond = is_beyond<greatest>(second.value, first.value);

    return {beyond ? second.value : first.value, beyond ? second.at : first.at};
  }
  static __device__ __forceinline__ extremum<V> identity()
  {
    return {greatest ? limits<V>::bottom() : limits<V>::top(), ~0ull};
  }
};

template <class V, bool greatest, class C, unsigned vector>
struct extremum_accumulator {
  typedef extremum<V> result;
  typedef extremum_merge<greatest, V> op;

  op merge;
  V best[vector];
  C at[vector];
  bool some;

  __device__ __forceinline__ extremum_accumulator(op, result identity)
      : merge(), some(false)
  {
#pragma unroll
    for (unsigned k = 0; k < vector; ++k)
      best[k] = identity.value;
  }
  /* Records vector i as the first position of the extreme value. Elements that
   * equal the identity never replace this position, so it must be valid. */
  __device__ __forceinline__ void begin(C i, bool any)
  {
    some = any;
#pragma unroll
    for (unsigned k = 0; k < vector; ++k)
      at[k] = i;
  }
  __device__ __forceinline__ void look(V)
  {
  }
  __device__ __forceinline__ void take(V v, unsigned e, C i)
  {
    const bool beyond = is_beyond<greatest>(v, best[e]);

    best[e] = beyond ? v : best[e];
    at[e] = beyond ? i : at[e];
  }
  __device__ __forceinline__ result close(index first)
  {
    result all = op::identity();

#pragma unroll
    for (unsigned k = 0; k < vector; ++k) {
      const result one = {best[k],
                          first + static_cast<index>(at[k]) * vector + k};

      all = merge(all, some ? one : op::identity());
    }
    return all;
  }
  static __device__ __forceinline__ result single(V v, index i, result)
  {
    return {v, i};
  }
};

/* ---- Minimum and maximum -------------------------------------------------
 * The rules are those of the operations min and max: if an element is NaN, both
 * results are NaN. */

template <class V> struct extremes {
  V least, greatest;
};

template <class V> struct extremes_merge {
  __device__ __forceinline__ extremes<V> operator()(extremes<V> a,
                                                    extremes<V> b) const
  {
    return {min()(a.least, b.least), max()(a.greatest, b.greatest)};
  }
  static __device__ __forceinline__ extremes<V> identity()
  {
    return {limits<V>::top(), limits<V>::bottom()};
  }
};

template <class V, class C, unsigned vector> struct extremes_accumulator {
  typedef extremes<V> result;
  typedef extremes_merge<V> op;
  enum : unsigned { chains = vector < 4 ? vector : 4 };

  op merge;
  result chain[chains];

  __device__ __forceinline__ extremes_accumulator(op, result identity) : merge()
  {
#pragma unroll
    for (unsigned k = 0; k < chains; ++k)
      chain[k] = identity;
  }
  __device__ __forceinline__ void begin(C, bool)
  {
  }
  __device__ __forceinline__ void look(V)
  {
  }
  __device__ __forceinline__ void take(V v, unsigned e, C)
  {
    chain[e % chains] = merge(chain[e % chains], {v, v});
  }
  __device__ __forceinline__ result close(index)
  {
    return reduce_array(chain, merge);
  }
  static __device__ __forceinline__ result single(V v, index, result)
  {
    return {v, v};
  }
};

/* ---- Mean and variance ----------------------------------------------
 * One pass computes in f64. Each thread sums the differences between its values
 * and its own first value. Means are relative to element 0. So neither a large
 * mean nor a first element that is an outlier makes a small variance vanish by
 * cancellation. Partial results are combined by the formula of
 * Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm for
 * Computing Sample Variances, 1979). */

struct moments {
  double mean; /* mean of the values, relative to element 0 */
  /* sum of squared deviations from the mean, and number of values */
  double squares, n;
};

__device__ __forceinline__ bool is_number(double v)
{
  return v - v == 0.0;
}

struct moments_merge {
  __device__ __forceinline__ moments operator()(moments a, moments b) const
  {
    const double n = a.n + b.n;
    const double delta = b.mean - a.mean;
    const double part = b.n / n;

    if (a.n == 0.0)
      return b;
    if (b.n == 0.0)
      return a;
    return {is_number(delta) ? a.mean + delta * part : a.mean + b.mean,
            a.squares + b.squares + delta * delta * (a.n * part), n};
  }
};

template <class V, class C, unsigned vector> struct moments_accumulator {
  typedef moments result;
  typedef moments_merge op;
  enum : unsigned { chains = vector < 2 ? vector : 2 };

  op merge;
  double base, shift, sum[chains], squares[chains];
  C n;

  __device__ __forceinline__ moments_accumulator(op, result identity)
      : merge(), base(identity.mean), shift(0.0), n(0)
  {
#pragma unroll
    for (unsigned k = 0; k < chains; ++k)
      sum[k] = squares[k] = 0.0;
  }
  __device__ __forceinline__ void begin(C, bool)
  {
  }
  __device__ __forceinline__ void look(V v)
  {
    if (n == 0)
      shift = is_number(static_cast<double>(v)) ? static_cast<double>(v) : 0.0;
  }
  __device__ __forceinline__ void take(V v, unsigned e, C)
  {
    const double d = static_cast<double>(v) - shift;

    sum[e % chains] += d;
    squares[e % chains] = fma(d, d, squares[e % chains]);
    ++n;
  }
  __device__ __forceinline__ result close(index)
  {
    const double count = static_cast<double>(n);
    double s = sum[0], q = squares[0];

#pragma unroll
    for (unsigned k = 1; k < chains; ++k) {
      s += sum[k];
      q += squares[k];
    }
    if (n == 0)
      return {0.0, 0.0, 0.0};
    /* If s * s / n overflows, the sum of squares overflows as well. The variance
     * is then infinity, so infinity must not be subtracted from infinity. */
    if (!is_number(s) || is_number(s * (s / count)))
      q -= s * (s / count);
    return {(shift - base) + s / count, q < 0.0 ? 0.0 : q, count};
  }
  static __device__ __forceinline__ result single(V v, index, result identity)
  {
    const double d = static_cast<double>(v) - identity.mean;

    return {d, is_number(d) ? 0.0 : d - d, 1.0};
  }
};

/* ---- The Euclidean norm ---------------------------------------------
 * Squares of values of all types except f64 stay within the range of f64. For
 * f64 there are three sums of squares: tiny values are scaled up, huge values
 * are scaled down, and all other values are not scaled (Blue, A Portable Fortran
 * Program to Find the Euclidean Norm of a Vector, 1978). */

struct square_sums {
  double tiny, usual, huge;
};

struct square_merge {
  __device__ __forceinline__ square_sums operator()(square_sums a,
                                                    square_sums b) const
  {
    return {a.tiny + b.tiny, a.usual + b.usual, a.huge + b.huge};
  }
};

__device__ __forceinline__ double norm_of(double squares)
{
  return sqrt(squares);
}

__device__ __forceinline__ double norm_of(square_sums s)
{
  const double up = 0x1p537, down = 0x1p-538;
  double less, more;

  if (s.huge > 0.0)
    return sqrt(s.huge + (s.usual * down) * down) / down;
  if (!(s.tiny > 0.0))
    return sqrt(s.usual);
  less = sqrt(s.tiny) / up;
  more = sqrt(s.usual);
  if (more < less) {
    const double t = less;

    less = more;
    more = t;
  }
  return more != more ? more : more * sqrt(1.0 + (less / more) * (less / more));
}

/* The accumulator of the norm for all types other than f64. Squares of their
 * values stay within the range of f64. */
template <class V, class C, unsigned vector> struct norm_accumulator {
  typedef double result;
  typedef sum op;
  enum : unsigned { chains = vector < 4 ? vector : 4 };

  op merge;
  double chain[chains];

  __device__ __forceinline__ norm_accumulator(op, double) : merge()
  {
#pragma unroll
    for (unsigned k = 0; k < chains; ++k)
      chain[k] = 0.0;
  }
  static __device__ __forceinline__ double identity()
  {
    return 0.0;
  }
  __device__ __forceinline__ void begin(C, bool)
  {
  }
  __device__ __forceinline__ void look(V)
  {
  }
  __device__ __forceinline__ void take(V v, unsigned e, C)
  {
    const double d = static_cast<double>(v);

    chain[e % chains] = fma(d, d, chain[e % chains]);
  }
  __device__ __forceinline__ double close(index)
  {
    return reduce_array(chain, merge);
  }
  static __device__ __forceinline__ double single(V v, index, double)
  {
    return static_cast<double>(v) * static_cast<double>(v);
  }
};

template <class C, unsigned vector> struct norm_accumulator<double, C, vector> {
  typedef square_sums result;
  typedef square_merge op;

  op merge;
  square_sums s;

  __device__ __forceinline__ norm_accumulator(op, square_sums)
      : merge(), s{0.0, 0.0, 0.0}
  {
  }
  static __device__ __forceinline__ square_sums identity()
  {
    return {0.0, 0.0, 0.0};
  }
  static __device__ __forceinline__ void add(square_sums &to, double v)
  {
    const double a = fabs(v);
    const bool huge = a > 0x1p486, tiny = a < 0x1p-511;
    const double scaled = huge ? v * 0x1p-538 : tiny ? v * 0x1p537 : v;

    to.huge = fma(huge ? scaled : 0.0, huge ? scaled : 0.0, to.huge);
    to.tiny = fma(tiny ? scaled : 0.0, tiny ? scaled : 0.0, to.tiny);
    to.usual =
        fma(huge || tiny ? 0.0 : scaled, huge || tiny ? 0.0 : scaled, to.usual);
  }
  __device__ __forceinline__ void begin(C, bool)
  {
  }
  __device__ __forceinline__ void look(double)
  {
  }
  __device__ __forceinline__ void take(double v, unsigned, C)
  {
    add(s, v);
  }
  __device__ __forceinline__ square_sums close(index)
  {
    return s;
  }
  static __device__ __forceinline__ square_sums single(double v, index,
                                                       square_sums)
  {
    square_sums one = identity();

    add(one, v);
    return one;
  }
};

} // namespace kiln

#endif
