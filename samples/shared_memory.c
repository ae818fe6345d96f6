/* shared_memory.c -- shared memory of a block, whose size is fixed in the
 * program or chosen at launch (row B5 of the lectures; also D2, E6).
 *
 *   __shared__ float tile[256];          static: part of the program
 *   extern __shared__ float tile[];      dynamic: kiln_launch_config.smem
 *
 * Both kernels reverse an array by means of shared memory. More than 48 KiB per
 * block must be allowed by a kernel attribute, which Kiln sets at launch. The
 * device determines the maximum. */
#include "sample.h"

enum { STATIC_SIZE = 256, LARGEST = 1024 };

static bool reverse(kiln_device *device, kiln_kernel *kernel, uint32_t n,
                    uint32_t smem, bool dynamic)
{
  const kiln_launch_config config = {
      .grid = {.x = 1}, .block = {.x = n}, .smem = smem};
  float x[LARGEST], y[LARGEST];
  kiln_kernel_info info;
  CUdeviceptr d;
  bool same = true;
  int blocks;

  for (uint32_t i = 0; i < n; i++)
    x[i] = (float)i;
  SAMPLE_TRY(kiln_memory_alloc(&d, device, sizeof x));
  SAMPLE_TRY(kiln_copy_to_device(device, d, x, n * sizeof x[0]));
  if (dynamic)
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d), KILN_ARG(n)));
  else
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d)));
  SAMPLE_TRY(kiln_copy_to_host(device, y, d, n * sizeof y[0]));
  SAMPLE_TRY(kiln_memory_free(device, d));

  for (uint32_t i = 0; i < n; i++)
    same = same && y[i] == x[n - 1 - i];
  SAMPLE_TRY(kiln_kernel_describe(kernel, &info));
  SAMPLE_TRY(kiln_kernel_occupancy(kernel, (int)n, smem, &blocks));
  printf("  %-15s  %8u  %12d  %13u  %13d  %s\n", info.name, n,
         info.shared_static, smem, blocks, same ? "reversed" : "WRONG");
  return same;
}

/* Launches with one byte of shared memory more than the device has. The launch
 * must fail with a message that gives the reason. */
static bool too_much(kiln_device *device, kiln_kernel *kernel)
{
  const uint32_t n = 32;
  const kiln_launch_config config = {
      .grid = {.x = 1},
      .block = {.x = n},
      .smem = (uint32_t)kiln_device_traits(device)->smem_per_block_optin + 1};
  const CUdeviceptr unused = 0;
  const kiln_status st =
      KILN_LAUNCH(kernel, &config, KILN_ARG(unused), KILN_ARG(n));

  printf("  %u bytes: %s: %s\n", config.smem, kiln_status_name(st),
         st != KILN_OK ? kiln_last_error()->message : "");
  return st == KILN_ELIMIT;
}

int main(int argc, char **argv)
{
  static const uint32_t sizes[] = {1, 31, 256, LARGEST};
  const kiln_program_desc program = {.builtin = "shared_memory"};
  kiln_kernel *fixed, *chosen;
  kiln_module *module;
  uint32_t optin;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&fixed, module, "reverse_static"));
  SAMPLE_TRY(kiln_module_kernel(&chosen, module, "reverse_dynamic"));

  printf("  kernel           elements  static bytes  dynamic bytes  "
         "blocks per SM\n");
  good = reverse(s.device, fixed, STATIC_SIZE, 0, false);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    good = reverse(s.device, chosen, sizes[i],
                   sizes[i] * (uint32_t)sizeof(float), true) &&
           good;
  optin = (uint32_t)kiln_device_traits(s.device)->smem_per_block_optin;
  good = reverse(s.device, chosen, LARGEST, optin, true) && good;
  good = too_much(s.device, chosen) && good;
  kiln_module_free(module);
  return sample_end(&s, good);
}
