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

/* Copies the part of an aligned word that belongs to out. */
static __device__ __forceinline__ void copy_word(const turn &t, count word)
{
  const count begin = word > t.out ? word : t.out;
  const count most = t.out + t.bytes;
  const count end = word + 16 < most ? word + 16 : most;

  for (count to = begin; to < end; ++to)
    kiln::copy_bytes(to, t.in + source_of(t, to - t.out), 1);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    rotate(count in, count out, count bytes, count shift)
{
  const turn t = {in, out, bytes, shift};
  const count first = (out & ~15ull) + (static_cast<count>(blockIdx.x) *
                                            (KILN_BLOCK * KILN_ITEMS) +
                                        threadIdx.x) *
                                           16;
  uint4 v[KILN_ITEMS];
  bool whole[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count word = first + k * (KILN_BLOCK * 16);

    whole[k] = word >= out && word + 16 <= out + bytes;
    if (whole[k]) {
      const count from = source_of(t, word - out);

      whole[k] = kiln::loads_inside(in + from, from, bytes);
      if (whole[k])
        v[k] = kiln::load_unaligned(in + from);
    }
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count word = first + k * (KILN_BLOCK * 16);

    if (whole[k])
      *reinterpret_cast<uint4 *>(word) = v[k];
    else if (word < out + bytes)
      copy_word(t, word);
  }
}
