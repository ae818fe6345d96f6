/* copy_batch.cu -- copy many ranges of bytes, whose addresses and sizes are in device memory.
 *
 * Problem: ranges of a few bytes and of gigabytes occur in one call, and the host knows
 * neither.
 *
 * Idea: a chunk is the part of a range that falls into one aligned word of 16 bytes of its
 * destination. The host has scanned the numbers of chunks per range, so all chunks form one
 * sequence. A warp handles a tile of chunks: it finds their ranges (runs.cuh), and each lane
 * copies a chunk (unaligned.cuh). Tiles take about the same time for any sizes.
 *
 * Cost: one read and one write of each byte, and 32 bytes of the description per range.
 *
 * Parameters:
 *   KILN_BLOCK  128            threads per block
 *   KILN_SIZE   type unsigned  type of a size
 * Launch: the block size is KILN_BLOCK. The grid has any size, since warps stride over
 *         the tiles.
 *         from, to  addresses of the sources and of the destinations
 *         size      sizes of the ranges in bytes
 *         ends      inclusive sums of the numbers of chunks
 *         n         number of ranges, from 1 to 2^32 - 1
 * Result: each byte of each destination is written once. */
#include <kiln/params/copy_batch.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/runs.cuh>
#include <kiln/types.cuh>
#include <kiln/unaligned.cuh>

typedef kiln::run_count count;

enum : unsigned { warps = KILN_BLOCK / 32, rows = 8, tile = 32 * rows };

/* The arrays that describe the ranges. */
struct ranges {
  const count *from, *to;
  const KILN_SIZE *size;
  const count *ends;
};

/* A chunk of a range. */
struct chunk {
  count to, from;
  unsigned bytes;
  bool whole; /* true if load_unaligned() may load it */
};

/* Returns chunk number `at` of the sequence, which belongs to range r. */
static __device__ __forceinline__ chunk chunk_at(const ranges &all, count r,
                                                 count at)
{
  const count to = __ldg(all.to + r), from = __ldg(all.from + r);
  const count size = static_cast<count>(kiln::load(all.size + r));
  const count word = (to & ~15ull) + (at - kiln::run_start(all.ends, r)) * 16;
  const count begin = word > to ? word : to;
  const count end = word + 16 < to + size ? word + 16 : to + size;

  return {begin, from + (begin - to), static_cast<unsigned>(end - begin),
          end - begin == 16 &&
              kiln::loads_inside(from + (begin - to), begin - to, size)};
}

static __device__ __forceinline__ void copy_tile(const ranges &all,
                                                 const unsigned (&mark)[tile],
                                                 bool single, count run,
                                                 count first, count stop)
{
  unsigned before = 0;

#pragma unroll 1
  for (unsigned half = 0; half < rows; half += 4) {
    chunk c[4];
    uint4 v[4];

#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned place = (half + k) * 32 + kiln::lane();

      if (!single) {
        const unsigned here =
            kiln::warp_scan_inclusive(mark[place], kiln::max());

        before = here > before ? here : before;
      }
      c[k] = {0, 0, 0, false};
      if (first + place < stop)
        c[k] = chunk_at(all, run + before, first + place);
      if (c[k].whole)
        v[k] = kiln::load_unaligned(c[k].from);
      before = kiln::warp_broadcast(before, 31);
    }
#pragma unroll
    for (unsigned k = 0; k < 4; ++k)
      if (c[k].whole)
        *reinterpret_cast<uint4 *>(c[k].to) = v[k];
      else
        kiln::copy_bytes(c[k].to, c[k].from, c[k].bytes);
  }
}

/* The number of blocks per SM lets the compiler for 3.5 use more than 32
 * registers. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 4)
    copy_batch(const count *from, const count *to, const KILN_SIZE *size,
               const count *ends, count n)
{
  __shared__ alignas(16) unsigned mark[warps][tile];
  const ranges all = {from, to, size, ends};
  const count end = __ldg(ends + n - 1);

  for (count t = static_cast<count>(blockIdx.x) * warps + kiln::warp();
       t * tile < end; t += static_cast<count>(gridDim.x) * warps) {
    const count first = t * tile;
    const count stop = end - first < tile ? end : first + tile;
    const count run = kiln::run_at(ends, n, first);
    const bool single = __ldg(ends + run) >= stop;

    if (!single)
      kiln::mark_runs(mark[kiln::warp()], ends, n, run, first, stop);
    copy_tile(all, mark[kiln::warp()], single, run, first, stop);
    kiln::warp_sync();
  }
}
