/* grid.c -- grids for so many elements. */
#include <kiln/launch.h>

static uint32_t blocks(uint64_t n, uint32_t block, uint32_t most)
{
  const uint64_t threads = block == 0 ? 1 : block;
  const uint64_t wanted = n / threads + (n % threads != 0);

  return wanted < most ? (uint32_t)wanted : most;
}

enum { MAX_X = 2147483647, MAX_YZ = 65535 };

kiln_launch_config kiln_launch_1d(uint64_t n, uint32_t block)
{
  return (kiln_launch_config){.grid = {blocks(n, block, MAX_X), 1, 1},
                              .block = {block, 1, 1}};
}

kiln_launch_config kiln_launch_2d(uint64_t nx, uint64_t ny, uint32_t bx,
                                  uint32_t by)
{
  kiln_launch_config c = {
      .grid = {blocks(nx, bx, MAX_X), blocks(ny, by, MAX_YZ), 1},
      .block = {bx, by, 1}};

  if (ny == 0)
    c.grid.x = 0; /* 0 in y would count as 1: say "nothing to do" in x */
  return c;
}

kiln_launch_config kiln_launch_3d(uint64_t nx, uint64_t ny, uint64_t nz,
                                  uint32_t bx, uint32_t by, uint32_t bz)
{
  kiln_launch_config c = {.grid = {blocks(nx, bx, MAX_X),
                                   blocks(ny, by, MAX_YZ),
                                   blocks(nz, bz, MAX_YZ)},
                          .block = {bx, by, bz}};

  if (ny == 0 || nz == 0)
    c.grid.x = 0;
  return c;
}
