/* rotate.cu -- rotate an array: move its first bytes behind its last ones.
 *
 * A thread writes aligned words of 16 bytes. Where the source of a word is not aligned, it
 * is assembled from aligned words of four bytes (unaligned.cuh), so that any rotation runs
 * at the speed of a copy.
 *
 * Cost: one read and one write of the array.
 *
 * Parameters:
 *   KILN_BLOCK  256  threads per block
 *   KILN_ITEMS  4    words of 16 bytes per thread
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK *
 *         KILN_ITEMS words that out touches.
 *         in, out  the arrays, which do not overlap
 *         bytes    size of the array, at least 1
 *         shift    the offset in bytes of the source of out[0], less than `bytes`
 * Result: byte p of out is byte (p + shift) modulo `bytes` of in. */
#include <kiln/params/rotate.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/types.cuh>
#include <kiln/unaligned.cuh>

typedef kiln::address count;

/* The rotation of one call. */
struct turn {
  count in, out, bytes, shift;
};

/* Returns the offset in `in` of the source of byte p of out. */
static __device__ __forceinline__ count source_of(const turn &t, count p)
{
  const count left = t.bytes - t.shift;

  return p < left ? p + t.shift : p - left;
}

/* Returns whether load_unaligned() may load the source of a word of out. */
static __device__ __forceinline__ bool is_whole(const turn &t, count word)
{
  if (word < t.out || word + 16 > t.out + t.bytes)
    return false;
  const count from = source_of(t, word - t.out);

  return kiln::loads_inside(t.in + from, from, t.bytes);
}

/* Copies the part of an aligned word that belongs to out. */
static __device__ __forceinline__ void copy_word(const turn &t, count word)
{
  const count most = t.out + t.bytes;

#pragma unroll 1
  for (count to = word; to < word + 16; ++to)
    if (to >= t.out && to < most)
      kiln::copy_bytes(to, t.in + source_of(t, to - t.out), 1);
}

/* The number of blocks per SM lets the compiler for 3.5 use more than 32
 * registers. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 4)
    rotate(count in, count out, count bytes, count shift)
{
  const turn t = {in, out, bytes, shift};
  const count first = (out & ~15ull) + (static_cast<count>(blockIdx.x) *
                                            (KILN_BLOCK * KILN_ITEMS) +
                                        threadIdx.x) *
                                           16;
  uint4 v[KILN_ITEMS];
  unsigned whole = 0; /* bit k is set if v[k] has been loaded */

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count word = first + k * (KILN_BLOCK * 16);

    if (is_whole(t, word)) {
      v[k] = kiln::load_unaligned(in + source_of(t, word - out));
      whole |= 1u << k;
    }
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if ((whole >> k & 1) != 0)
      *reinterpret_cast<uint4 *>(first + k * (KILN_BLOCK * 16)) = v[k];
#pragma unroll 1
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if ((whole >> k & 1) == 0)
      copy_word(t, first + k * (KILN_BLOCK * 16));
}
