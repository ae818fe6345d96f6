/* sort_tile_bitonic.cu -- merge sort. Each tile is sorted in shared memory by one-bit
 * splits. Then bitonic merges combine pairs of sorted runs until one run is left
 * (samples/README.md, row B14; Batcher, Sorting Networks and Their Applications, 1968).
 *
 * Idea: two consecutive sorted runs of `run` keys are merged in place. merge_flip compares
 * key i of the first run with key i from the end of the second run, and exchanges them if
 * necessary. After that, no key of the first run is larger than a key of the second run,
 * and each run is bitonic. Comparing keys at distances run / 2, run / 4, ..., 1 sorts each
 * run. merge_step handles one distance in global memory. merge_tile handles all distances
 * within a tile in shared memory.
 * Keys beyond the end of the array count as larger than all other keys, so n is arbitrary.
 *
 * Parameters: KILN_BLOCK (default 512) is the number of threads per block, a power of two
 *             from 32 to 1024. A tile has 2 * KILN_BLOCK keys.
 * Launch: the block size is KILN_BLOCK. sort_tile and merge_tile have one block per tile.
 *         merge_flip and merge_step have one thread per pair of keys. All kernels work in
 *         place.
 *         The first launch is sort_tile. Then, for run = tile, 2 tile, 4 tile, ... below n,
 *         the launches are merge_flip(run), merge_step(run / 2), merge_step(run / 4), ...,
 *         merge_step(tile), merge_tile. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 512
#endif

#define KILN_FLAT_BLOCK 1
#include <kiln/prelude.cuh>

static_assert((KILN_BLOCK & (KILN_BLOCK - 1)) == 0,
              "KILN_BLOCK: a power of two");

enum : unsigned { tile_size = 2 * KILN_BLOCK, none = 0xffffffffu };

static __device__ __forceinline__ void load(const unsigned *keys, unsigned n,
                                            unsigned *tile)
{
  const unsigned first = blockIdx.x * tile_size;

  for (unsigned k = threadIdx.x; k < tile_size; k += KILN_BLOCK)
    tile[k] = first + k < n ? keys[first + k] : none;
  __syncthreads();
}

static __device__ __forceinline__ void store(unsigned *keys, unsigned n,
                                             const unsigned *tile)
{
  const unsigned first = blockIdx.x * tile_size;

  for (unsigned k = threadIdx.x; k < tile_size; k += KILN_BLOCK)
    if (first + k < n)
      keys[first + k] = tile[k];
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    sort_tile(unsigned *keys, unsigned n)
{
  __shared__ unsigned tile[tile_size];

  load(keys, n, tile);
  /* Each iteration splits the keys by one bit. Each thread moves two keys. */
  for (unsigned bit = 0; bit < 32; ++bit) {
    const unsigned i = 2 * threadIdx.x;
    const unsigned x = tile[i], y = tile[i + 1];
    const unsigned ex = (x >> bit & 1) == 0, ey = (y >> bit & 1) == 0;
    const unsigned up_to = kiln::block_scan_inclusive(ex + ey, kiln::sum());
    const unsigned total = kiln::block_broadcast(up_to, KILN_BLOCK - 1);
    const unsigned fx = up_to - ex - ey, fy = up_to - ey;

    tile[ex ? fx : i - fx + total] = x;
    tile[ey ? fy : i + 1 - fy + total] = y;
    __syncthreads();
  }
  store(keys, n, tile);
}

/* Exchanges keys[low] and keys[high] if keys[high] is smaller. */
static __device__ __forceinline__ void order(unsigned *keys, unsigned n,
                                             unsigned low, unsigned high)
{
  if (high >= n)
    return;

  const unsigned a = keys[low], b = keys[high];

  if (b < a) {
    keys[low] = b;
    keys[high] = a;
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    merge_flip(unsigned *keys, unsigned n, unsigned run)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const unsigned first = i / run * 2 * run;

  order(keys, n, first + i % run, first + 2 * run - 1 - i % run);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    merge_step(unsigned *keys, unsigned n, unsigned distance)
{
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const unsigned low = i / distance * 2 * distance + i % distance;

  order(keys, n, low, low + distance);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    merge_tile(unsigned *keys, unsigned n)
{
  __shared__ unsigned tile[tile_size];

  load(keys, n, tile);
#pragma unroll 1
  for (unsigned distance = KILN_BLOCK; distance > 0; distance /= 2) {
    const unsigned i = threadIdx.x;
    const unsigned low = i / distance * 2 * distance + i % distance;

    order(tile, tile_size, low, low + distance);
    __syncthreads();
  }
  store(keys, n, tile);
}
