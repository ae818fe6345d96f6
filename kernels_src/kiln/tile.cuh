/* tile.cuh -- a tile of items on its way between memory and the registers of a
 * block, coalesced, and its transposition through shared memory.
 *
 * A tile has threads * items elements. Three arrangements of it in registers,
 * item k of thread t being element
 *   blocked       t * items + k: what scans and ranks want
 *   striped       k * threads + t: neighbours in neighbouring threads, what
 *                 memory wants
 *   warp-striped  the same inside each warp's own part of 32 * items elements:
 *                 transposed without a barrier of the block
 * Parts of a tile: only the first n elements exist; the rest of the registers
 * gets a fill value, or is not stored.
 *
 * Shared memory: the caller declares one tile_room<T, threads * items> (a union
 * of several is fine) and passes it. No bank conflicts for any element of 1, 2,
 * 4, 8 or 16 bytes where `items` is a power of two or odd: one element is left
 * free behind every 128 bytes. Functions end with the barrier that lets the room
 * be used again, except the warp_ ones, which end with __syncwarp().
 *
 * Who has to call: every thread of the block; of the warp for the warp_ ones. */
#ifndef KILN_TILE_CUH
#define KILN_TILE_CUH

#include <kiln/types.cuh>

namespace kiln
{

/* ---- The room ------------------------------------------------------------------ */

/* Bytes left free behind every 128: a bank for small elements, an element for
 * large ones. */
template <class T> struct tile_gap {
  enum : unsigned {
    row = 128 / sizeof(T),                     /* elements before a gap */
    items = sizeof(T) < 4 ? 4 / sizeof(T) : 1, /* elements of a gap */
  };
};

/* Where element i of a tile lies in its room. */
template <class T> __device__ __forceinline__ unsigned tile_slot(unsigned i)
{
  return i + i / tile_gap<T>::row * tile_gap<T>::items;
}

/* Room for n elements, in either of two layouts: single elements with a gap of
 * theirs, or 16-byte packs with a gap of one pack. */
template <class T, unsigned n> struct alignas(16) tile_room {
  enum : unsigned {
    single = (n + n / tile_gap<T>::row * tile_gap<T>::items) * sizeof(T),
    packed = (n * sizeof(T) + 15) / 16 + n * sizeof(T) / 128,
    bytes = single > packed * 16 ? single : packed * 16
  };
  unsigned char byte[(bytes + 15) / 16 * 16];

  __device__ __forceinline__ T &at(unsigned i)
  {
    return reinterpret_cast<T *>(byte)[tile_slot<T>(i)];
  }
  /* Pack q of 16 bytes. */
  __device__ __forceinline__ uint4 &pack(unsigned q)
  {
    return reinterpret_cast<uint4 *>(byte)[q + q / 8];
  }
};

/* ---- Striped: straight from and to memory ----------------------------------------- */

/* to[k] = load(element) for the elements below n, else `fill`. */
template <unsigned threads, unsigned items, class F, class V>
__device__ __forceinline__ void tile_load_striped(F load, unsigned n,
                                                  V (&to)[items], V fill)
{
#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = k * threads + thread();

    to[k] = fill;
    if (i < n)
      to[k] = load(i);
  }
}

/* store(element, from[k]) for the elements below n. */
template <unsigned threads, unsigned items, class F, class V>
__device__ __forceinline__ void tile_store_striped(F store, unsigned n,
                                                   const V (&from)[items])
{
#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = k * threads + thread();

    if (i < n)
      store(i, from[k]);
  }
}

/* ---- Transposition -------------------------------------------------------------------- */

template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
tile_striped_to_blocked(tile_room<T, threads * items> &room, T (&v)[items])
{
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    room.at(k * threads + thread()) = v[k];
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = room.at(thread() * items + k);
  __syncthreads();
}

template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
tile_blocked_to_striped(tile_room<T, threads * items> &room, T (&v)[items])
{
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    room.at(thread() * items + k) = v[k];
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = room.at(k * threads + thread());
  __syncthreads();
}

template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
warp_striped_to_blocked(tile_room<T, threads * items> &room, T (&v)[items])
{
  const unsigned base = warp() * warp_size * items;

#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    room.at(base + k * warp_size + lane()) = v[k];
  __syncwarp();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = room.at(base + lane() * items + k);
  __syncwarp();
}

template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
warp_blocked_to_striped(tile_room<T, threads * items> &room, T (&v)[items])
{
  const unsigned base = warp() * warp_size * items;

#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    room.at(base + lane() * items + k) = v[k];
  __syncwarp();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = room.at(base + k * warp_size + lane());
  __syncwarp();
}

/* Each item goes to a place of the tile, all different (places of ranks, of
 * compacted elements); items with a place of threads * items or more go nowhere.
 * Afterwards the room holds the tile in order: read it with room.at(), then a
 * barrier. */
template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
tile_scatter(tile_room<T, threads * items> &room, const T (&v)[items],
             const unsigned (&place)[items])
{
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    if (place[k] < threads * items)
      room.at(place[k]) = v[k];
  __syncthreads();
}

/* ---- Blocked: memory to registers by way of the room ------------------------------------ */

/* Whole warps move whole packs of 16 bytes of their own part. */
template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
warp_load_packs(const T *from, tile_room<T, threads * items> &room,
                T (&to)[items])
{
  constexpr unsigned whole = items * sizeof(T) / 16; /* a thread */
  constexpr unsigned packs = whole == 0 ? 1 : whole;
  const unsigned base = warp() * warp_size * packs;
  uint4 p[packs];

#pragma unroll
  for (unsigned k = 0; k < packs; ++k)
    p[k] = load_word<cached::usual>(reinterpret_cast<const uint4 *>(from) +
                                    base + k * warp_size + lane());
#pragma unroll
  for (unsigned k = 0; k < packs; ++k)
    room.pack(base + k * warp_size + lane()) = p[k];
  __syncwarp();
#pragma unroll
  for (unsigned k = 0; k < packs; ++k)
    p[k] = room.pack(base + lane() * packs + k);
  __syncwarp();
  memcpy(to, p, whole * 16);
}

template <unsigned threads, unsigned items, class T>
__device__ __forceinline__ void
warp_store_packs(T *to, tile_room<T, threads * items> &room,
                 const T (&from)[items])
{
  constexpr unsigned whole = items * sizeof(T) / 16;
  constexpr unsigned packs = whole == 0 ? 1 : whole;
  const unsigned base = warp() * warp_size * packs;
  uint4 p[packs];

  memcpy(p, from, whole * 16);
#pragma unroll
  for (unsigned k = 0; k < packs; ++k)
    room.pack(base + lane() * packs + k) = p[k];
  __syncwarp();
#pragma unroll
  for (unsigned k = 0; k < packs; ++k)
    reinterpret_cast<uint4 *>(to)[base + k * warp_size + lane()] =
        room.pack(base + k * warp_size + lane());
  __syncwarp();
}

/* The first n elements of a tile that begins at `from`, blocked; `fill` beyond.
 * `aligned`: `from` lies on 16 bytes. T is the type in memory (widen() it). A
 * barrier of the block is needed before other warps use the room. */
template <unsigned threads, unsigned items, bool aligned, class T>
__device__ __forceinline__ void
tile_load_blocked(const T *from, unsigned n,
                  tile_room<T, threads * items> &room, T (&to)[items], T fill)
{
  const unsigned base = warp() * warp_size * items;

  if (aligned && items * sizeof(T) % 16 == 0 && n == threads * items) {
    warp_load_packs<threads, items>(from, room, to);
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = base + k * warp_size + lane();

    to[k] = fill;
    if (i < n)
      to[k] = from[i];
  }
  warp_striped_to_blocked<threads, items>(room, to);
}

/* The other way. The registers are left as they are. */
template <unsigned threads, unsigned items, bool aligned, class T>
__device__ __forceinline__ void
tile_store_blocked(T *to, unsigned n, tile_room<T, threads * items> &room,
                   const T (&from)[items])
{
  const unsigned base = warp() * warp_size * items;
  T v[items];

  if (aligned && items * sizeof(T) % 16 == 0 && n == threads * items) {
    warp_store_packs<threads, items>(to, room, from);
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = from[k];
  warp_blocked_to_striped<threads, items>(room, v);
#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = base + k * warp_size + lane();

    if (i < n)
      to[i] = v[k];
  }
}

} // namespace kiln

#endif
