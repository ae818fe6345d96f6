/* runs.cuh -- find the run that each place of a sequence belongs to.
 *
 * Run r covers the places from ends[r - 1] (0 for r = 0) to ends[r] - 1. A warp handles a
 * tile of places. It searches for the run of its first place, and marks in shared memory the
 * places where other runs start. The maximum of the marks up to a place is its run. Runs
 * without places are never marked. */
#ifndef KILN_RUNS_CUH
#define KILN_RUNS_CUH

#include <kiln/prelude.cuh>

namespace kiln
{

typedef unsigned long long run_count;

/* Returns the first run r < n with ends[r] > place, or n if there is none. Each step
 * divides the remaining range into 33 parts. Every lane of the warp calls the
 * function with the same arguments. */
static __device__ __forceinline__ run_count run_at(const run_count *ends,
                                                   run_count n, run_count place)
{
  run_count low = 0, left = n;

  while (left > 0) {
    const run_count step = left / 33 + 1;
    const run_count probe = (lane() + 1) * step - 1;
    const bool before = probe < left && __ldg(ends + low + probe) <= place;
    const unsigned k = static_cast<unsigned>(__popc(warp_ballot(before)));
    const run_count rest = left - k * step;

    low += k * step;
    left = rest < step - 1 ? rest : step - 1;
  }
  return low;
}

static __device__ __forceinline__ run_count run_start(const run_count *ends,
                                                      run_count r)
{
  return r == 0 ? 0 : __ldg(ends + r - 1);
}

/* Sets mark[p - first] to r - run for each run r after `run` that starts at a place
 * p before `stop`, and all other marks of the tile to 0. `run` is the run of place
 * `first`. Every lane of the warp calls the function. */
template <unsigned tile>
static __device__ __forceinline__ void
mark_runs(unsigned (&mark)[tile], const run_count *ends, run_count n,
          run_count run, run_count first, run_count stop)
{
  enum : unsigned { at_once = 4 };
  bool more = true;

  for (unsigned k = lane(); k < tile; k += 32)
    mark[k] = 0;
  warp_sync();
  for (run_count r = run + 1 + lane(); more; r += 32 * at_once) {
    bool inside = false;

#pragma unroll
    for (unsigned k = 0; k < at_once; ++k) {
      const run_count at = r + 32 * k;
      const run_count start = at < n ? __ldg(ends + at - 1) : stop;

      inside = start < stop;
      if (inside && __ldg(ends + at) > start)
        mark[start - first] = static_cast<unsigned>(at - run);
    }
    more = warp_any(inside);
  }
  warp_sync();
}

} // namespace kiln

#endif
