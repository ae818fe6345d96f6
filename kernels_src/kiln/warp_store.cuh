/* warp_store.cuh -- stores of wide vectors in the order of memory.
 *
 * Problem: if each lane stores its own vector of 36 or 48 bytes, the lanes of one store
 * write to addresses that far apart, and the L2 cache receives many partial sectors. An
 * H200 then writes structs of 36 bytes at a quarter of its bandwidth.
 * Idea: the lanes put their vectors into shared memory. Then the warp stores the bytes
 * of all vectors in order, 16 bytes per lane. 32 vectors are a multiple of 16 bytes
 * whatever the size of an element is.
 * Cost: one pass of the bytes through shared memory. Vectors of 36 and 48 bytes have no
 * bank conflicts there. */
#ifndef KILN_WARP_STORE_CUH
#define KILN_WARP_STORE_CUH

#include <kiln/types.cuh>

namespace kiln
{

/* States whether warp_store() is faster than a store per lane, for vectors of n elements
 * of type T: a store per lane needs several accesses. */
template <unsigned n, class T> __device__ constexpr bool stores_by_warp()
{
  return KILN_HAS_ITS && n * sizeof(T) != access_size(n * sizeof(T), 16);
}

/* Returns the part of the calling warp of a stage in shared memory, in which each lane
 * has `room` bytes. */
template <unsigned warps, unsigned room>
__device__ __forceinline__ uint4 *warp_stage()
{
  __shared__ uint4 stage[warps][2 * room];

  return stage[warp()];
}

/* Stores n elements per lane, at most 64 bytes. All lanes of the warp call this function with the same
 * address `to`, a multiple of 16 bytes, at which the elements of lane 0 start. The
 * elements of the other lanes follow. `warps` is the number of warps of the block. */
template <unsigned warps, unsigned n, class T>
__device__ __forceinline__ void warp_store(T *to, const T (&from)[n])
{
  constexpr unsigned bytes = n * sizeof(T), wide = access_size(bytes, 16);
  constexpr unsigned pieces = 32 * bytes / 16;
  typedef typename word<wide>::type bits;

  static_assert(bytes <= 64, "vectors of at most 64 bytes");
  uint4 *const mine = warp_stage<warps, (bytes <= 48 ? 48 : 64)>();
  bits *const own = reinterpret_cast<bits *>(mine) + lane() * (bytes / wide);

#pragma unroll
  for (unsigned k = 0; k < bytes / wide; ++k) {
    bits w;

    memcpy(&w, reinterpret_cast<const unsigned char *>(from) + k * wide,
           sizeof w);
    own[k] = w;
  }
  warp_sync();
#pragma unroll
  for (unsigned k = 0; k < (pieces + 31) / 32; ++k)
    if (k * 32 + lane() < pieces)
      reinterpret_cast<uint4 *>(to)[k * 32 + lane()] = mine[k * 32 + lane()];
  /* The next call overwrites the stage. */
  warp_sync();
}

/* Stores a vector per lane at `to`. If `by_warp` is true, all lanes of the warp call this
 * function for adjacent vectors, and the vector of lane 0 is aligned to 16 bytes. */
template <bool by_warp, unsigned warps, unsigned n, bool aligned,
          cached how = cached::usual>
struct vector_writer {
  template <class T, class V>
  static __device__ __forceinline__ void write(T *to, const V (&from)[n])
  {
    store_vector<n, aligned, how>(to, from);
  }
};
template <unsigned warps, unsigned n, bool aligned, cached how>
struct vector_writer<true, warps, n, aligned, how> {
  template <class T, class V>
  static __device__ __forceinline__ void write(T *to, const V (&from)[n])
  {
    T raw[n];

#pragma unroll
    for (unsigned k = 0; k < n; ++k)
      raw[k] = narrow<T>(from[k]);
    warp_store<warps>(to - lane() * n, raw);
  }
};

} // namespace kiln

#endif
