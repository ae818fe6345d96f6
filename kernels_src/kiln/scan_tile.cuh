/* scan_tile.cuh -- common code of the scan kernels: loads, holds and stores one tile.
 * All warps of a block except the last one hold elements of the tile. The last warp waits
 * for the tile's prefix. A program includes this file after it has defined KILN_BLOCK,
 * KILN_VECTOR, KILN_VECTORS, KILN_PLAIN, KILN_IN_ALIGNED, KILN_ALIGNED and KILN_T. The
 * head comment of scan.cu describes these parameters. */
#ifndef KILN_SCAN_TILE_CUH
#define KILN_SCAN_TILE_CUH

#define KILN_FLAT_BLOCK 1
#define KILN_MAX_BLOCK KILN_BLOCK
#define KILN_READ_ONLY 0 /* the output array may be an input array */
#include <kiln/look_back.cuh>
#include <kiln/user.cuh>
#include <kiln/warp_store.cuh>

typedef unsigned long long count;

/* The type of the computation. Built-in operations compute 8-bit and 16-bit
 * integers in 32 bits. The low bits of the result are the same, and intermediate
 * results need no truncation. The user's expressions compute in type T. */
template <class T, class Op> struct working {
  typedef T type;
};
#define KILN_WORKS_IN(small, wide)                                             \
  template <> struct working<small, kiln::sum> {                               \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::prod> {                              \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::min> {                               \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::max> {                               \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::bit_and> {                           \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::bit_or> {                            \
    typedef wide type;                                                         \
  };                                                                           \
  template <> struct working<small, kiln::bit_xor> {                           \
    typedef wide type;                                                         \
  };
KILN_WORKS_IN(signed char, int)
KILN_WORKS_IN(short, int)
KILN_WORKS_IN(unsigned char, unsigned)
KILN_WORKS_IN(unsigned short, unsigned)
#undef KILN_WORKS_IN

typedef working<user::acc, user::op>::type acc;

static_assert(KILN_BLOCK % 32 == 0 && KILN_BLOCK >= 64,
              "KILN_BLOCK: a multiple of 32, at least 64");

enum : unsigned {
  holders = KILN_BLOCK - 32, /* number of threads that hold elements */
  /* Number of warps that hold elements. The last warp of the block waits for
   * the prefix. */
  warps = holders / 32,
  row = 32 * KILN_VECTOR,         /* elements that a warp loads at a time */
  warp_tile = row * KILN_VECTORS, /* elements per warp */
  tile_size = warps * warp_tile
};

/* ---- The tile in registers ------------------------------------------
 * A warp holds contiguous elements in rows, with one vector per lane and row.
 * So each load and store of a warp is one contiguous access, and no element has
 * to be transposed. `loaded` is the type of a vector as memory holds it. `held`
 * is the type of a vector during the scan. */

#if KILN_PLAIN
/* A vector of elements in their storage format. Elements of 1 or 2 bytes share
 * registers. */
struct loaded {
  enum : unsigned {
    bytes = KILN_VECTOR * sizeof(user::stored),
    wide = KILN_IN_ALIGNED ? kiln::access_size(bytes, 16)
                           : kiln::element_access<user::stored>(),
    accesses = bytes / wide,
    words = (bytes + 3) / 4
  };
  unsigned word[words];
};

typedef loaded held;

static __device__ __forceinline__ void load_vector(const user::args &in,
                                                   count i, loaded &p)
{
  typedef typename kiln::word<loaded::wide>::type bits;
  bits access[loaded::accesses];

#pragma unroll
  for (unsigned k = 0; k < loaded::accesses; ++k)
    access[k] = kiln::load_word<kiln::cached::usual>(
        reinterpret_cast<const bits *>(in.x0 + i) + k);
  memcpy(p.word, access, sizeof access);
}

static __device__ __forceinline__ void hold(const user::args &, count, bool,
                                            const loaded &p, acc, held &h)
{
  h = p;
}

static __device__ __forceinline__ void fill(acc identity, loaded &p)
{
  user::stored v[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    v[e] = kiln::narrow<user::stored>(identity);
  memcpy(p.word, v, sizeof v);
}

/* Loads those elements of a vector whose index is below n, one by one. The other
 * elements become `identity`. */
static __device__ __forceinline__ void
hold_partial(const user::args &in, count i, count n, acc identity, held &h)
{
  user::stored v[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    v[e] = kiln::narrow<user::stored>(identity);
    if (i + e < n)
      v[e] = in.x0[i + e];
  }
  memcpy(h.word, v, sizeof v);
}

static __device__ __forceinline__ acc at(const held &h, unsigned e)
{
  user::stored v[KILN_VECTOR];

  memcpy(v, h.word, sizeof v);
  return static_cast<acc>(kiln::widen(v[e]));
}

/* Forces the compiler to extract elements of 1 or 2 bytes from their 32-bit
 * words again. Otherwise the compiler would keep each element in its own
 * register and spill registers. `nothing` is 0, but the compiler cannot prove
 * that. */
static __device__ __forceinline__ void hide(held &h, unsigned nothing)
{
  if (sizeof(user::stored) < 4)
#pragma unroll
    for (unsigned k = 0; k < loaded::words; ++k)
      h.word[k] ^= nothing;
}
#else
typedef user::vector<KILN_VECTOR> loaded;

/* Converts a mapped value to the type in which the scan computes. */
static __device__ __forceinline__ acc from_value(user::value v)
{
  return static_cast<acc>(static_cast<user::acc>(v));
}

struct held {
  acc value[KILN_VECTOR];
};

static __device__ __forceinline__ void load_vector(const user::args &in,
                                                   count i, loaded &p)
{
  user::load_inputs(in, i, p);
}

static __device__ __forceinline__ void hold(const user::args &in, count i,
                                            bool exists, const loaded &p,
                                            acc identity, held &h)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    h.value[e] = exists ? from_value(user::map_at(in, p, e, i)) : identity;
}

static __device__ __forceinline__ void fill(acc, loaded &)
{
}

static __device__ __forceinline__ void
hold_partial(const user::args &in, count i, count n, acc identity, held &h)
{
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    h.value[e] = identity;
    if (i + e < n)
      h.value[e] = from_value(user::load(in, i + e));
  }
}

static __device__ __forceinline__ acc at(const held &h, unsigned e)
{
  return h.value[e];
}

static __device__ __forceinline__ void hide(held &, unsigned)
{
}
#endif

/* ---- The operation ------------------------------------------------------- */

/* The identity of the operation. For sums of floats the identity is -0, since
 * +0 would change -0: -0 + 0 is +0. */
template <class Op, class T> struct identity_value {
  static __device__ __forceinline__ T of(const user::args &in)
  {
    return user::identity(in);
  }
};
template <> struct identity_value<kiln::sum, float> {
  static __device__ __forceinline__ float of(const user::args &)
  {
    return -0.0f;
  }
};
template <> struct identity_value<kiln::sum, double> {
  static __device__ __forceinline__ double of(const user::args &)
  {
    return -0.0;
  }
};
#ifdef KILN_COMPLEX_CUH
template <class R> struct identity_value<kiln::sum, kiln::complex<R>> {
  static __device__ __forceinline__ kiln::complex<R> of(const user::args &)
  {
    return {-R(0), -R(0)};
  }
};
#endif

/* The input arrays of a scan, their number of elements, and the operation. */
struct source {
  const user::args &in;
  const user::op op;
  const acc identity;
  const count n;

  __device__ __forceinline__ source(const user::args &from, count size)
      : in(from), op(user::make_op(from)),
        identity(identity_value<user::op, acc>::of(from)), n(size)
  {
  }
};

/* ---- The elements that a thread holds ------------------------------------ */

/* The elements of one tile that one thread holds. Vector r of the thread starts
 * at element begin + r * row of the tile. Only the first `size` elements of the
 * tile exist. If the array ends inside a vector, that vector starts at element
 * `tail` of the tile. It is vector number tail_row of the thread that holds it. */
struct tile_view {
  count first; /* index in the array of the first element of the tile */
  /* Position in the tile of the first element of this thread's vector 0. `size`
   * and `tail` are positions in the tile as well. */
  unsigned begin;
  unsigned size, tail, tail_row;

  __device__ __forceinline__ tile_view(count tile, count n)
  {
    first = tile * tile_size;
    begin = kiln::warp() * warp_tile + kiln::lane() * KILN_VECTOR;
    size = first + tile_size <= n ? static_cast<unsigned>(tile_size)
                                  : static_cast<unsigned>(n - first);
    tail = size - size % KILN_VECTOR;
    tail_row = (tail - begin) % row == 0 && size > tail ? (tail - begin) / row
                                                        : KILN_VECTORS;
  }
  __device__ __forceinline__ bool has(unsigned r) const
  {
    return begin + r * row + KILN_VECTOR <= size;
  }
  __device__ __forceinline__ bool has_tail() const
  {
    return tail_row < KILN_VECTORS;
  }
  __device__ __forceinline__ count at(unsigned r) const
  {
    return first + begin + r * row;
  }
};

static __device__ __forceinline__ void
load_tile(const source &s, const tile_view &v, loaded (&p)[KILN_VECTORS])
{
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    fill(s.identity, p[r]);
    if (v.has(r))
      load_vector(s.in, v.at(r), p[r]);
  }
}

/* Converts the loaded vectors of a tile for the scan. Elements beyond the end of
 * the array become the identity. */
static __device__ __forceinline__ void
hold_tile(const source &s, const tile_view &v, const loaded (&p)[KILN_VECTORS],
          held (&h)[KILN_VECTORS])
{
  held tail;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    hold(s.in, v.at(r), v.has(r), p[r], s.identity, h[r]);
  if (!v.has_tail())
    return;
  hold_partial(s.in, v.first + v.tail, s.n, s.identity, tail);
#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r)
    if (r == v.tail_row)
      h[r] = tail;
}

/* A vector of results in their storage format. Elements of 1 or 2 bytes share
 * registers. */
struct stored_vector {
  enum : unsigned {
    bytes = KILN_VECTOR * sizeof(KILN_T),
    wide = KILN_ALIGNED ? kiln::access_size(bytes, 16)
                        : kiln::element_access<KILN_T>()
  };
  unsigned word[(bytes + 3) / 4];

  __device__ __forceinline__ void set(const acc (&v)[KILN_VECTOR])
  {
    KILN_T raw[KILN_VECTOR];

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      raw[e] = kiln::narrow<KILN_T>(v[e]);
    memcpy(word, raw, sizeof raw);
  }
  __device__ __forceinline__ void store(KILN_T *to) const
  {
    typedef typename kiln::word<wide>::type bits;
    bits access[bytes / wide];

    memcpy(access, word, sizeof access);
#pragma unroll
    for (unsigned k = 0; k < bytes / wide; ++k)
      reinterpret_cast<bits *>(to)[k] = access[k];
  }
  /* Stores the first n elements of a vector. n is less than KILN_VECTOR. */
  __device__ __forceinline__ void store_some(KILN_T *to, unsigned n) const
  {
    KILN_T raw[KILN_VECTOR];

    memcpy(raw, word, sizeof raw);
#pragma unroll
    for (unsigned e = 0; e + 1 < KILN_VECTOR; ++e)
      if (e < n)
        to[e] = raw[e];
  }
};

/* Stores vector r of all lanes of the warp. */
template <bool by_warp> struct row_writer {
  static __device__ __forceinline__ void write(KILN_T *, const stored_vector &)
  {
  }
};
template <> struct row_writer<true> {
  static __device__ __forceinline__ void write(KILN_T *to,
                                               const stored_vector &p)
  {
    KILN_T raw[KILN_VECTOR];

    memcpy(raw, p.word, sizeof raw);
    kiln::warp_store<warps>(to, raw);
  }
};

/* Stores the results of a tile. f(r, result) computes the results of vector r of
 * the calling thread. */
template <class F>
static __device__ __forceinline__ void store_tile(KILN_T *out,
                                                  const tile_view &v, F f)
{
  constexpr bool by_warp =
      KILN_ALIGNED && kiln::stores_by_warp<KILN_VECTOR, KILN_T>();
  const unsigned begin = kiln::warp() * warp_tile;
  stored_vector tail;

#pragma unroll
  for (unsigned r = 0; r < KILN_VECTORS; ++r) {
    acc result[KILN_VECTOR];
    stored_vector p;

    f(r, result);
    p.set(result);
    if (by_warp && begin + (r + 1) * row <= v.size)
      row_writer<by_warp>::write(out + v.first + begin + r * row, p);
    else if (v.has(r))
      p.store(out + v.at(r));
    else if (r == v.tail_row)
      tail = p;
  }
  if (v.has_tail())
    tail.store_some(out + v.first + v.tail, v.size - v.tail);
}

#endif
