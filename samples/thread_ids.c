/* thread_ids.c -- grid, block and thread ids in one, two and three dimensions,
 * and the global index that is computed from them (row A4 of the lectures).
 *
 *   block  = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)
 *   thread = threadIdx.x + blockDim.x * (threadIdx.y
 *                                         + blockDim.y * threadIdx.z)
 *   global = block * (blockDim.x * blockDim.y * blockDim.z) + thread
 *
 * Every thread writes its nine numbers to a table. The host computes the
 * expected numbers from the position in the table. */
#include "sample.h"

enum { VALUES = 9, MAX_ROWS = 64 };

/* Converts a flat index to three coordinates. x varies fastest. */
static void unflatten(uint32_t flat, kiln_dim3 size, uint32_t out[3])
{
  out[0] = flat % size.x;
  out[1] = flat / size.x % size.y;
  out[2] = flat / size.x / size.y;
}

static void expect(uint32_t row, kiln_dim3 grid, kiln_dim3 block,
                   uint32_t want[VALUES])
{
  const uint32_t threads = block.x * block.y * block.z;

  unflatten(row / threads, grid, want);
  unflatten(row % threads, block, want + 3);
  want[6] = row / threads;
  want[7] = row % threads;
  want[8] = row;
}

static bool show(uint32_t rows, kiln_dim3 grid, kiln_dim3 block,
                 const uint32_t *got)
{
  bool good = true;

  printf("\n%u x %u x %u blocks of %u x %u x %u threads\n"
         "  blockIdx  threadIdx  block  thread  global\n",
         grid.x, grid.y, grid.z, block.x, block.y, block.z);
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t *g = got + i * VALUES;
    uint32_t want[VALUES];
    bool same;

    expect(i, grid, block, want);
    same = memcmp(g, want, sizeof want) == 0;
    printf("  %u, %u, %u   %u, %u, %u    %5u  %6u  %6u%s\n", g[0], g[1], g[2],
           g[3], g[4], g[5], g[6], g[7], g[8], same ? "" : "  WRONG");
    good = good && same;
  }
  return good;
}

static bool run(kiln_device *device, kiln_kernel *ids, kiln_dim3 grid,
                kiln_dim3 block)
{
  const kiln_launch_config config = {.grid = grid, .block = block};
  const uint32_t rows = grid.x * grid.y * grid.z * block.x * block.y * block.z;
  const size_t size = rows * VALUES * sizeof(uint32_t);
  uint32_t got[MAX_ROWS * VALUES];
  CUdeviceptr out;

  SAMPLE_TRY(kiln_memory_alloc(&out, device, size));
  SAMPLE_TRY(kiln_fill(device, out, UINT32_MAX, 4, rows * VALUES));
  SAMPLE_TRY(KILN_LAUNCH(ids, &config, KILN_ARG(out)));
  SAMPLE_TRY(kiln_copy_to_host(device, got, out, size));
  SAMPLE_TRY(kiln_memory_free(device, out));
  return show(rows, grid, block, got);
}

int main(int argc, char **argv)
{
  static const kiln_dim3 shapes[][2] = {
      {{3, 1, 1}, {4, 1, 1}},
      {{2, 2, 1}, {3, 2, 1}},
      {{1, 2, 2}, {3, 1, 2}},
  };
  const kiln_program_desc program = {.builtin = "ids"};
  kiln_module *module;
  kiln_kernel *ids;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&ids, module, "ids"));
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    good = run(s.device, ids, shapes[i][0], shapes[i][1]) && good;
  kiln_module_free(module);
  return sample_end(&s, good);
}
