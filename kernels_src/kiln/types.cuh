/* types.cuh -- element types: their storage format and the type of computations, and
 * loads and stores of single elements and of vectors.
 *
 * Values of type f16 and bf16 are converted to float for computations. Values of other
 * types need no conversion. The user's expressions see converted values only. */
#ifndef KILN_TYPES_CUH
#define KILN_TYPES_CUH

#include <kiln/prelude.cuh>

/* KILN_READ_ONLY 1 means that the kernel does not write the arrays that it
 * loads, so loads may use the read-only data path. Programs that work in place
 * define KILN_READ_ONLY as 0. */
#ifndef KILN_READ_ONLY
#define KILN_READ_ONLY 1
#endif

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

namespace kiln
{

typedef unsigned long long index;

struct f16 {
  unsigned short bits;
};

struct bf16 {
  unsigned short bits;
};

/* An element whose C++ type only the user's expressions know: `size` bytes with an
 * alignment of `align`. The number distinguishes structs of equal layout. */
template <unsigned size, unsigned align, unsigned number>
struct alignas(align) record {
  typedef typename unsigned_of<(align < 4 ? align : 4)>::type part;

  part word[size / sizeof(part)];
};

template <class T> struct compute {
  typedef T type;
};
template <> struct compute<f16> {
  typedef float type;
};
template <> struct compute<bf16> {
  typedef float type;
};

template <class T> using compute_t = typename compute<T>::type;

/* ---- Conversions between the storage format and the value of an element -- */

template <class T> __device__ __forceinline__ T widen(T v)
{
  return v;
}

__device__ __forceinline__ float widen(f16 v)
{
  float f;

  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}

__device__ __forceinline__ float widen(bf16 v)
{
  return __uint_as_float(static_cast<unsigned>(v.bits) << 16);
}

/* Converts a value to storage type T. Conversions to f16 and bf16 round to
 * nearest even. Other conversions are C casts. */
template <class T> struct narrower {
  template <class V> static __device__ __forceinline__ T from(V v)
  {
    return static_cast<T>(v);
  }
};

template <> struct narrower<f16> {
  static __device__ __forceinline__ f16 from(float v)
  {
    f16 h;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
    return h;
  }
};

template <> struct narrower<bf16> {
  static __device__ __forceinline__ bf16 from(float v)
  {
    bf16 h;
#if KILN_ARCH >= 80
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
#else
    const unsigned bits = __float_as_uint(v);
    const unsigned even = bits >> 16 & 1u;

    h.bits = static_cast<unsigned short>(
        v != v ? 0x7fffu : (bits + 0x7fffu + even) >> 16);
#endif
    return h;
  }
};

template <class T, class V> __device__ __forceinline__ T narrow(V v)
{
  return narrower<T>::from(v);
}

/* Converts an element of type T to a value for computations. The low bytes of
 * `bits` are the bytes of the element in memory. */
template <class T>
__device__ __forceinline__ compute_t<T> from_bits(unsigned long long bits)
{
  T v;

  memcpy(&v, &bits, sizeof v);
  return widen(v);
}

/* The kernel argument that holds the bits of an element of type T. */
template <class T, bool fits = sizeof(T) <= 8> struct element_bits {
  typedef unsigned long long type;
};
template <class T> struct element_bits<T, false> {
  struct type {
    unsigned long long word[(sizeof(T) + 7) / 8];
  };
};

template <class T>
__device__ __forceinline__ compute_t<T>
from_bits(const typename element_bits<T, false>::type &bits)
{
  T v;

  memcpy(&v, &bits, sizeof v);
  return widen(v);
}

/* Returns whether two values have the same bits. */
template <class T> __device__ __forceinline__ bool same_bits(T a, T b)
{
  return a == b;
}

__device__ __forceinline__ bool same_bits(float a, float b)
{
  return __float_as_uint(a) == __float_as_uint(b);
}

__device__ __forceinline__ bool same_bits(double a, double b)
{
  return __double_as_longlong(a) == __double_as_longlong(b);
}

template <unsigned size, unsigned align, unsigned number>
__device__ __forceinline__ bool same_bits(record<size, align, number> a,
                                          record<size, align, number> b)
{
  bool same = true;

#pragma unroll
  for (unsigned k = 0; k < sizeof a.word / sizeof a.word[0]; ++k)
    same = same && a.word[k] == b.word[k];
  return same;
}

/* ---- Words: types of 1 to 16 bytes that one load or store accesses ------- */

template <unsigned bytes> struct word;
template <> struct word<1> {
  typedef unsigned char type;
};
template <> struct word<2> {
  typedef unsigned short type;
};
template <> struct word<4> {
  typedef unsigned type;
};
template <> struct word<8> {
  typedef uint2 type;
};
template <> struct word<16> {
  typedef uint4 type;
};

/* Returns the number of bytes per access: the largest power of two that divides
 * `bytes` and is at most `most`, a power of two. */
__device__ constexpr unsigned access_size(unsigned bytes, unsigned most)
{
  return bytes % most == 0 ? most : access_size(bytes, most / 2);
}

/* The number of bytes per access to a single element. */
template <class T> __device__ constexpr unsigned element_access()
{
  return access_size(sizeof(T), alignof(T) < 16 ? alignof(T) : 16);
}

/* Cache policy of a load or store.
 * `usual` is the default policy of the hardware.
 * `once` is for data that no other access uses. Such data are evicted first.
 * `kept` and `swept` are for arrays that are larger than the L2 cache and that
 * each call reads in order. These loads bypass the L1 cache. Swept data are
 * evicted first, so that kept data are still in the L2 cache in the next call
 * (compute capability 8.0). Kept data need an explicit policy: on compute
 * capability 9.0, loads that bypass the L1 cache without a policy were measured
 * to be evicted like swept data. */
enum class cached { usual, once, kept, swept };

template <class W> __device__ __forceinline__ W load_usual(const W *p)
{
#if KILN_READ_ONLY
  return __ldg(p);
#else
  return *p;
#endif
}

template <class W> __device__ __forceinline__ W load_kept(const W *p)
{
  return load_usual(p);
}

template <class W> __device__ __forceinline__ W load_swept(const W *p)
{
  return load_usual(p);
}

#if KILN_READ_ONLY && KILN_ARCH >= 80
__device__ __forceinline__ uint4 load_ranked(const uint4 *p,
                                             unsigned long long rank)
{
  uint4 v;

  asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 "
      "{%0, %1, %2, %3}, [%4], %5;"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(__cvta_generic_to_global(p)), "l"(rank));
  return v;
}

__device__ __forceinline__ uint4 load_kept(const uint4 *p)
{
  unsigned long long rank;

  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(rank));
  return load_ranked(p, rank);
}

__device__ __forceinline__ uint4 load_swept(const uint4 *p)
{
  unsigned long long rank;

  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(rank));
  return load_ranked(p, rank);
}
#endif

template <cached how, class W>
__device__ __forceinline__ W load_word(const W *from)
{
  if (how == cached::kept)
    return load_kept(from);
  if (how == cached::swept)
    return load_swept(from);
  return how == cached::once ? __ldcs(from) : load_usual(from);
}

template <cached how, class W>
__device__ __forceinline__ void store_word(W *to, W w)
{
  if (how == cached::once)
    __stcs(to, w);
  else
    *to = w;
}

template <cached how, class T>
__device__ __forceinline__ compute_t<T> load_as(const T *from)
{
  constexpr unsigned wide = element_access<T>();
  typedef typename word<wide>::type bits;
  T v;

#pragma unroll
  for (unsigned k = 0; k < sizeof(T) / wide; ++k) {
    const bits w = load_word<how>(reinterpret_cast<const bits *>(from) + k);

    memcpy(reinterpret_cast<unsigned char *>(&v) + k * wide, &w, sizeof w);
  }
  return widen(v);
}

template <class T> __device__ __forceinline__ compute_t<T> load(const T *from)
{
  return load_as<cached::usual>(from);
}

template <class T, class V> __device__ __forceinline__ void store(T *to, V v)
{
  *to = narrow<T>(v);
}

__device__ constexpr unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Loads n consecutive elements in their storage format; n is a power of two.
 * `aligned` means that the address is a multiple of 16 bytes, or of the largest
 * power of two that divides the size of the vector if that is less. Without it,
 * elements are loaded one by one. */
template <unsigned n, bool aligned, cached how = cached::usual, class T>
__device__ __forceinline__ void load_raw(const T *from, T (&to)[n])
{
  constexpr unsigned wide =
      aligned ? access_size(n * sizeof(T), 16) : element_access<T>();
  typedef typename word<wide>::type bits;

#pragma unroll
  for (unsigned k = 0; k < n * sizeof(T) / wide; ++k) {
    const bits w = load_word<how>(reinterpret_cast<const bits *>(from) + k);

    memcpy(reinterpret_cast<unsigned char *>(to) + k * wide, &w, sizeof w);
  }
}

template <unsigned n, bool aligned, cached how = cached::usual, class T>
__device__ __forceinline__ void store_raw(T *to, const T (&from)[n])
{
  constexpr unsigned wide =
      aligned ? access_size(n * sizeof(T), 16) : element_access<T>();
  typedef typename word<wide>::type bits;

#pragma unroll
  for (unsigned k = 0; k < n * sizeof(T) / wide; ++k) {
    bits w;

    memcpy(&w, reinterpret_cast<const unsigned char *>(from) + k * wide,
           sizeof w);
    store_word<how>(reinterpret_cast<bits *>(to) + k, w);
  }
}

template <unsigned size, unsigned align, unsigned number, class V>
__device__ __forceinline__ void store(record<size, align, number> *to, V v)
{
  const record<size, align, number> raw[1] = {v};

  store_raw<1, false>(to, raw);
}

/* Loads n consecutive elements like load_raw() and converts them to the type of
 * the computation. */
template <unsigned n, bool aligned, cached how = cached::usual, class T>
__device__ __forceinline__ void load_vector(const T *from,
                                            compute_t<T> (&to)[n])
{
  T raw[n];

  load_raw<n, aligned, how>(from, raw);
#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    to[k] = widen(raw[k]);
}

template <unsigned n, bool aligned, cached how = cached::usual, class T,
          class V>
__device__ __forceinline__ void store_vector(T *to, const V (&from)[n])
{
  T raw[n];

#pragma unroll
  for (unsigned k = 0; k < n; ++k)
    raw[k] = narrow<T>(from[k]);
  store_raw<n, aligned, how>(to, raw);
}

} // namespace kiln

#endif
