/* run_length_decode.cu -- write each value as often as the length of its run says.
 *
 * Idea: the host has scanned the lengths to the ends of the runs. A warp writes a tile of the
 * output: it finds the runs of the tile (runs.cuh), reads their values and writes vectors
 * of 16 bytes. Each tile takes the same time for any lengths, except for very many empty
 * runs, which the warp of the tile where they lie has to skip.
 *
 * Cost: one write of the output, and one read of the values and of the ends. The search takes
 * log33(n) dependent loads per tile.
 *
 * Parameters:
 *   KILN_BLOCK    128            threads per block
 *   KILN_T        type unsigned  type of a value, unsigned
 *   KILN_COUNT    type unsigned  type of `total`
 *   KILN_ALIGNED  1              1 if out is aligned to 16 bytes
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK / 32 tiles of
 *         `capacity`, and at least one block.
 *         values    n values
 *         ends      inclusive sums of the lengths of the runs
 *         n         number of runs, from 1 to 2^32 - 1
 *         out       space for `capacity` values
 *         total     receives ends[n - 1]
 * Result: out[i] is values[r] for the run r of place i, for all i below the capacity and
 *         the total. */
#include <kiln/params/run_length_decode.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/runs.cuh>
#include <kiln/types.cuh>

typedef kiln::run_count count;

enum : unsigned {
  warps = KILN_BLOCK / 32,
  vec = 16 / sizeof(KILN_T),
  row = 32 * vec,
  rows = 1024 / row,
  tile = rows * row
};

/* Writes elements [i, i + vec) of out, as far as they are before `stop`. */
static __device__ __forceinline__ void write(KILN_T *out, count i, count stop,
                                             const KILN_T (&v)[vec])
{
  if (i + vec <= stop) {
    kiln::store_raw<vec, KILN_ALIGNED != 0>(out + i, v);
    return;
  }
#pragma unroll
  for (unsigned e = 0; e < vec; ++e)
    if (i + e < stop)
      out[i + e] = v[e];
}

/* Writes a tile of one run. */
static __device__ __forceinline__ void fill(KILN_T *out, count first,
                                            count stop, KILN_T value)
{
  KILN_T v[vec];

#pragma unroll
  for (unsigned e = 0; e < vec; ++e)
    v[e] = value;
#pragma unroll
  for (unsigned r = 0; r < rows; ++r)
    write(out, first + r * row + kiln::lane() * vec, stop, v);
}

/* Writes a tile of several runs, of which the first is run `run`. */
static __device__ __forceinline__ void expand(const unsigned (&mark)[tile],
                                              const KILN_T *values, KILN_T *out,
                                              count run, count first,
                                              count stop)
{
  unsigned before = 0; /* the largest mark of the rows so far */

#pragma unroll
  for (unsigned r = 0; r < rows; ++r) {
    const unsigned at = r * row + kiln::lane() * vec;
    unsigned m[vec], here = 0;
    KILN_T v[vec];

#pragma unroll
    for (unsigned e = 0; e < vec; ++e) {
      here = mark[at + e] > here ? mark[at + e] : here;
      m[e] = here;
    }
    here = kiln::warp_scan_inclusive(here, kiln::max());
    const unsigned left = kiln::shuffle_up(here, 1);
    const unsigned base = kiln::lane() > 0 && left > before ? left : before;

    before = kiln::warp_broadcast(here, 31) > before
                 ? kiln::warp_broadcast(here, 31)
                 : before;
#pragma unroll
    for (unsigned e = 0; e < vec; ++e)
      v[e] = __ldg(values + (run + (m[e] > base ? m[e] : base)));
    write(out, first + at, stop, v);
  }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    run_length_decode(const KILN_T *values, const count *ends, count n,
                      KILN_T *out, count capacity, KILN_COUNT *total)
{
  __shared__ alignas(16) unsigned mark[warps][tile];
  const count all = __ldg(ends + n - 1);
  const count end = all < capacity ? all : capacity;
  const count first =
      (static_cast<count>(blockIdx.x) * warps + kiln::warp()) * tile;
  const count stop = end - first < tile ? end : first + tile;

  if (blockIdx.x == 0 && threadIdx.x == 0)
    *total = static_cast<KILN_COUNT>(all);
  if (first >= end)
    return;
  const count run = kiln::run_at(ends, n, first);

  if (__ldg(ends + run) >= stop) {
    fill(out, first, stop, __ldg(values + run));
    return;
  }
  kiln::mark_runs(mark[kiln::warp()], ends, n, run, first, stop);
  expand(mark[kiln::warp()], values, out, run, first, stop);
}
