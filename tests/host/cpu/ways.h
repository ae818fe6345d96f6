/* ways.h -- helpers for the tests of running grids: one loaded program, and the
 * launch configurations that have to give the same results. */
#ifndef KILN_TEST_CPU_WAYS_H
#define KILN_TEST_CPU_WAYS_H

#include "cpu_ptx.h"

static cpu_ptx p;

/* The launch configurations: scheduler, seed and number of host threads. Every
 * test that checks results runs with all of these configurations. */
static const struct way {
  bool lock_step;
  uint64_t seed;
  unsigned threads;
} ways[] = {{false, 0, 1},  {true, 0, 1}, {false, 1, 1},
            {false, 77, 2}, {true, 5, 3}, {false, 9, 4}};
enum { N_WAYS = sizeof ways / sizeof *ways };

static inline void use_way(int i)
{
  p.launch.lock_step = ways[i].lock_step;
  p.launch.seed = ways[i].seed;
  p.launch.threads = ways[i].threads;
}

static inline void sizes(uint32_t grid, uint32_t block)
{
  p.launch.grid_dim[0] = grid;
  p.launch.block_dim[0] = block;
}

/* The beginning of the source of a kernel with one parameter, `out`. The kernel
 * stores its results at this address. */
#define ENTRY(name)                                                            \
  ".visible .entry " name "(.param .u64 out) {\n"                              \
  ".reg .b32 %r<20>; .reg .b64 %a<9>; .reg .pred %q<6>;\n"

/* Loads a program and runs one of its kernels with launch configuration `way`.
 * The kernel writes its results to `bytes` bytes of zeroed memory, whose
 * address is returned. */
static inline void *run_for(const char *text, int way, const char *kernel,
                            uint32_t grid, uint32_t block, size_t bytes)
{
  uint64_t out;

  cpu_ptx_load(&p, text);
  use_way(way);
  out = cpu_ptx_buffer(&p, NULL, bytes);
  sizes(grid, block);
  cpu_ptx_ok(&p, kernel, (uint64_t[]){out});
  return cpu_ptx_at(&p, out, bytes);
}

/* The fixture of the tests that load a program into `p`: frees the program and
 * checks its memory for leaks. */
static inline void unload(void)
{
  cpu_ptx_free(&p);
}

static inline uint32_t word(uint64_t address)
{
  return *(uint32_t *)cpu_ptx_at(&p, address, 4);
}

#endif
