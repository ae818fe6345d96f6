/* symbols.c -- finds, writes and reads variables of a program in device and
 * constant memory by name (row B1 of the lectures).
 *
 *   __device__ float factor = 1.0f;       in global memory as long as the
 * module
 *   __constant__ float coefficients[4];   the same, but read-only for kernels
 *   __device__ unsigned counter;
 *   __shared__ unsigned in_block;         per block: has no address for the
 * host
 *
 * The kernel computes y = factor * (c0 + c1 x + c2 x^2 + c3 x^3) for each
 * element, and adds n to the counter. */
#include "sample.h"

#include <math.h>

enum { N = 1000 };

static bool print_symbol(kiln_module *module, const char *name, size_t want)
{
  CUdeviceptr address;
  size_t size;

  SAMPLE_TRY(kiln_module_symbol(module, name, &address, &size));
  printf("  %-13s at 0x%llx, %zu bytes\n", name, address, size);
  return address != 0 && size == want;
}

/* Computes the expected value with the same order of operations as the kernel,
 * so the results are equal to the last bit. */
static float reference(float factor, const float c[4], float x)
{
  return factor * fmaf(fmaf(fmaf(c[3], x, c[2]), x, c[1]), x, c[0]);
}

static bool evaluate(kiln_device *device, kiln_kernel *polynomial, float factor,
                     const float c[4])
{
  const uint32_t n = N;
  const kiln_launch_config config = kiln_launch_1d(n, 256);
  float x[N], y[N];
  CUdeviceptr dx, dy;
  size_t wrong = 0;

  for (int i = 0; i < N; i++)
    x[i] = ((float)i - 500) / 100;
  SAMPLE_TRY(kiln_memory_alloc(&dx, device, sizeof x));
  SAMPLE_TRY(kiln_memory_alloc(&dy, device, sizeof y));
  SAMPLE_TRY(kiln_copy_to_device(device, dx, x, sizeof x));
  SAMPLE_TRY(KILN_LAUNCH(polynomial, &config, KILN_ARG(dx), KILN_ARG(dy),
                         KILN_ARG(n)));
  SAMPLE_TRY(kiln_copy_to_host(device, y, dy, sizeof y));
  SAMPLE_TRY(kiln_memory_free(device, dx));
  SAMPLE_TRY(kiln_memory_free(device, dy));

  for (int i = 0; i < N; i++)
    wrong += y[i] != reference(factor, c, x[i]);
  printf("  %g * (%g + %g x + %g x^2 + %g x^3): f(%g) = %g, %zu of %d wrong\n",
         (double)factor, (double)c[0], (double)c[1], (double)c[2], (double)c[3],
         (double)x[N - 1], (double)y[N - 1], wrong, N);
  return wrong == 0;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.builtin = "symbols"};
  float c[4] = {1, -2, 0.5f, 0.25f}, back[4], factor;
  const float half = 0.5f, other = -3;
  unsigned counter;
  kiln_module *module;
  kiln_kernel *polynomial;
  CUdeviceptr none;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&polynomial, module, "polynomial"));

  good = print_symbol(module, "factor", sizeof factor);
  good = print_symbol(module, "coefficients", sizeof c) && good;
  good = print_symbol(module, "counter", sizeof counter) && good;
  if (kiln_module_symbol(module, "in_block", &none, NULL) != KILN_ENOTFOUND)
    good = false;
  printf("  in_block      is shared: %s\n", kiln_last_error()->message);

  SAMPLE_TRY(kiln_symbol_read(module, "factor", 0, &factor, sizeof factor));
  SAMPLE_TRY(kiln_symbol_write(module, "coefficients", 0, c, sizeof c));
  good = evaluate(s.device, polynomial, factor, c) && factor == 1 && good;

  /* Write one element of the array. Its offset is given in bytes. */
  c[2] = other;
  SAMPLE_TRY(kiln_symbol_write(module, "factor", 0, &half, sizeof half));
  SAMPLE_TRY(kiln_symbol_write(module, "coefficients", 2 * sizeof other, &other,
                               sizeof other));
  good = evaluate(s.device, polynomial, half, c) && good;

  SAMPLE_TRY(kiln_symbol_read(module, "coefficients", 0, back, sizeof back));
  SAMPLE_TRY(kiln_symbol_read(module, "counter", 0, &counter, sizeof counter));
  printf("  read back: coefficients %g %g %g %g, counter %u\n", (double)back[0],
         (double)back[1], (double)back[2], (double)back[3], counter);
  for (int i = 0; i < 4; i++)
    good = good && back[i] == c[i];
  good = good && counter == 2 * N;
  kiln_module_free(module);
  return sample_end(&s, good);
}
