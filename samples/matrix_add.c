/* matrix_add.c -- computes c = a + b, first in one block of threads, then in a
 * 2-D grid of blocks (row E1 of the lectures). One block is limited to 1,024
 * threads (32 x 32). A grid has no such limit, and its last blocks extend
 * beyond the edges of the matrix. */
#include "sample.h"

enum { REPEATS = 15 };

/* Returns the median time of one launch in milliseconds, measured with
 * events. */
static double time_it(kiln_device *device, kiln_kernel *add,
                      const kiln_launch_config *config, const kiln_arg *args,
                      size_t n)
{
  double times[REPEATS];
  kiln_event *from, *to;

  SAMPLE_TRY(kiln_event_create(&from, device, true));
  SAMPLE_TRY(kiln_event_create(&to, device, true));
  for (int i = 0; i < REPEATS; i++) {
    float ms;

    SAMPLE_TRY(kiln_event_record(from, NULL));
    SAMPLE_TRY(kiln_launch(add, config, args, n));
    SAMPLE_TRY(kiln_event_record(to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&ms, from, to));
    times[i] = (double)ms;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(times, REPEATS);
}

/* Fills the matrices with whole numbers below 2^24, so that the sums are
 * exact. */
static void fill(float *a, float *b, float *c, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    a[i] = (float)(i % 4093);
    b[i] = (float)(i % 8191);
    c[i] = -1;
  }
}

static bool run(kiln_device *device, kiln_kernel *add, uint32_t rows,
                uint32_t cols, kiln_launch_config config)
{
  const size_t n = (size_t)rows * cols, size = n * sizeof(float);
  float *a = sample_alloc(size), *b = sample_alloc(size),
        *c = sample_alloc(size);
  CUdeviceptr da, db, dc;
  size_t wrong = 0;
  double ms;

  fill(a, b, c, n);
  SAMPLE_TRY(kiln_memory_alloc(&da, device, size));
  SAMPLE_TRY(kiln_memory_alloc(&db, device, size));
  SAMPLE_TRY(kiln_memory_alloc(&dc, device, size));
  SAMPLE_TRY(kiln_copy_to_device(device, da, a, size));
  SAMPLE_TRY(kiln_copy_to_device(device, db, b, size));
  SAMPLE_TRY(kiln_copy_to_device(device, dc, c, size));
  {
    const kiln_arg args[] = {KILN_ARG(da), KILN_ARG(db), KILN_ARG(dc),
                             KILN_ARG(rows), KILN_ARG(cols)};

    ms = time_it(device, add, &config, args, sizeof args / sizeof args[0]);
  }
  SAMPLE_TRY(kiln_copy_to_host(device, c, dc, size));
  for (size_t i = 0; i < n; i++)
    wrong += c[i] != a[i] + b[i];
  printf("  %5u x %-5u  %4u x %-4u of %2u x %-2u  %8.4f ms  %8.1f GB/s  "
         "%zu wrong\n",
         rows, cols, config.grid.x, config.grid.y, config.block.x,
         config.block.y, ms, 12 * (double)n / ms / 1e6, wrong);

  SAMPLE_TRY(kiln_memory_free(device, da));
  SAMPLE_TRY(kiln_memory_free(device, db));
  SAMPLE_TRY(kiln_memory_free(device, dc));
  free(a);
  free(b);
  free(c);
  return wrong == 0;
}

int main(int argc, char **argv)
{
  const kiln_launch_config one_block = {.grid = {.x = 1, .y = 1},
                                        .block = {.x = 32, .y = 32}};
  const kiln_program_desc program = {.builtin = "matrix_add"};
  kiln_module *module;
  kiln_kernel *add;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&add, module, "matrix_add"));

  printf("  matrix         blocks       threads       time          rate\n");
  good = run(s.device, add, 32, 32, one_block);
  good = run(s.device, add, 100, 70, kiln_launch_2d(70, 100, 32, 32)) && good;
  good = run(s.device, add, 4097, 4095, kiln_launch_2d(4095, 4097, 32, 32)) &&
         good;
  good =
      run(s.device, add, 4096, 4096, kiln_launch_2d(4096, 4096, 32, 8)) && good;
  kiln_module_free(module);
  return sample_end(&s, good);
}
