/* occupancy_test.c -- compares the occupancy model with the driver's
 * cuOccupancyMaxActiveBlocksPerMultiprocessor, for kernels with 20 limits of
 * registers and 100 random launches of each. On the CPU device, whose driver has
 * an occupancy calculator of its own, with fewer kernels. */
#include "gpu_fixture.h"

#include <kiln/arch.h>

enum { LIMITS = 20, LAUNCHES = 100, LEAST = 16, MOST = 255 };

/* Needs about as many registers as a thread may have. */
static const char source[] =
    "extern \"C\" __global__ void wide(float *y, const float *x, unsigned n)\n"
    "{\n"
    "  __shared__ float first[STATIC];\n"
    "  float r[220];\n"
    "  first[threadIdx.x % STATIC] = x[threadIdx.x % n];\n"
    "  __syncthreads();\n"
    "  for (int k = 0; k < 220; k++)\n"
    "    r[k] = x[(threadIdx.x + k * 97u) % n];\n"
    "  for (int k = 0; k < 220; k++)\n"
    "    r[k] = r[k] * r[(k * 7 + 3) % 220] + r[(k + 1) % 220];\n"
    "  for (int k = 1; k < 220; k++)\n"
    "    r[0] += r[k];\n"
    "  y[threadIdx.x] = r[0] + first[(threadIdx.x + 1) % STATIC];\n"
    "}\n";

/* Returns the number of resident blocks by the model. */
static int by_model(const kiln_kernel_info *k, int block, size_t smem)
{
  kiln_occupancy_result r;

  ck_kiln_ok(kiln_occupancy(kiln_device_traits(g.device), block, k->registers,
                            (size_t)k->shared_static + smem, &r));
  return r.blocks_per_sm;
}

static void compare_kernel(kiln_kernel *kernel, uint64_t *seed)
{
  const kiln_traits *t = kiln_device_traits(g.device);
  kiln_kernel_info k;

  ck_kiln_ok(kiln_kernel_describe(kernel, &k));
  for (int i = 0; i < LAUNCHES; i++) {
    const int block =
        1 + (int)(test_random(seed) % (unsigned)t->max_threads_per_block);
    const size_t most = (size_t)(t->smem_per_block_optin - k.shared_static);
    /* Mostly small blocks of memory, of which several fit. */
    const size_t smem = test_random(seed) % 4 == 0
                            ? test_random(seed) % (most + 1)
                            : test_random(seed) % (most / 8 + 1);
    int blocks;

    ck_kiln_ok(kiln_kernel_occupancy(kernel, block, smem, &blocks));
    if (blocks != by_model(&k, block, smem))
      ck_abort_msg("%d: %d threads, %d registers, %d + %zu bytes: the driver "
                   "says %d blocks, the model %d",
                   t->cc, block, k.registers, k.shared_static, smem, blocks,
                   by_model(&k, block, smem));
  }
}

START_TEST(the_driver_agrees)
{
  const int step = on_cpu() ? 10 : 1;
  uint64_t seed = 2000;

  for (int i = 0; i < LIMITS; i += step) {
    char define[32];
    const char *defines[] = {define};
    kiln_program_desc desc = {.source = source, .n_defines = 1};
    kiln_module *module = NULL;
    kiln_kernel *kernel;

    snprintf(define, sizeof define, "STATIC=%d", 1 + i * 37);
    desc.defines = defines;
    desc.max_registers = LEAST + (MOST - LEAST) * i / (LIMITS - 1);
    ck_kiln_ok(kiln_module_load(&module, g.device, &desc));
    ck_kiln_ok(kiln_module_kernel(&kernel, module, "wide"));
    compare_kernel(kernel, &seed);
    kiln_module_free(module);
  }
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("occupancy");
  TCase *t = tcase_create("occupancy");

  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, gpu_set_up, gpu_tear_down);
  tcase_add_test(t, the_driver_agrees);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(make)
