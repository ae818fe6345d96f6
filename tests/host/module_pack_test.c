/* module_pack_test.c -- tests modules from packs (files of precompiled images):
 * which image is chosen, which of its sections is loaded, and that the pack
 * stays usable after the driver refuses an image. */
#include "device_fixture.h"

static const kiln_program_desc saxpy = {.source = SAXPY, .name = "saxpy.cu"};
static char pack[300];

/* Restarts the runtime with the pack and an empty cache. If `nvrtc` is NULL, no
 * NVRTC is found. */
static void start(const char *nvrtc)
{
  const char *const packs[] = {pack};
  const kiln_runtime_opts opts = {.allocator = f.alloc.alloc,
                                  .driver_path = FAKE_DRIVER,
                                  .nvrtc_path =
                                      nvrtc == NULL ? "/nowhere" : nvrtc,
                                  .cache_off = true,
                                  .packs = packs,
                                  .n_packs = 1,
                                  .ignore_env = true};

  kiln_runtime_free(f.rt);
  ck_kiln_ok(kiln_runtime_create(&f.rt, &opts));
  ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
}

static void write_pack(int cc)
{
  const kiln_target target = {.cc = cc};
  kiln_image *image;

  snprintf(pack, sizeof pack, "%s/app.pack", f.dir);
  ck_kiln_ok(kiln_compile(&image, f.rt, &saxpy, &target));
  ck_kiln_ok(kiln_pack_write(f.rt, pack, &image, 1));
  kiln_image_free(image);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
}

static void set_gpu(int cc)
{
  int *attributes = f.cuda->devices[0].attributes;

  attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = cc / 10;
  attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = cc % 10;
}

static uint64_t rejected(void)
{
  kiln_cache_stats stats;

  ck_kiln_ok(kiln_cache_counters(f.rt, &stats));
  return stats.rejected;
}

/* Loads a module and checks how its code was obtained and for which target. */
static void load(kiln_rung rung, const char *target, kiln_origin origin)
{
  const kiln_ladder_result *ladder;
  kiln_module *module;
  char text[24];

  ck_kiln_ok(kiln_module_load(&module, f.device, &saxpy));
  ladder = kiln_module_ladder(module);
  ck_assert_str_eq(kiln_rung_name(ladder->rung), kiln_rung_name(rung));
  ck_assert_str_eq(kiln_target_text(&ladder->target, text), target);
  ck_assert_int_eq(kiln_image_origin(kiln_module_image(module)), origin);
  get_kernel(module, "saxpy");
  kiln_module_free(module);
}

START_TEST(its_own_gpu_comes_before_the_compiler)
{
  write_pack(90);
  start(FAKE_NVRTC);
  load(KILN_RUNG_EXACT, "sm_90", KILN_FROM_PACK);
  ck_assert_int_eq(f.nvrtc->compiles, 1);
}
END_TEST

START_TEST(another_gpu_comes_after_the_compiler)
{
  write_pack(80);
  set_gpu(86);
  start(FAKE_NVRTC);
  load(KILN_RUNG_EXACT, "sm_86", KILN_FROM_COMPILER);
}
END_TEST

START_TEST(lower_code_serves_without_a_compiler)
{
  write_pack(80);
  set_gpu(86);
  start(NULL);
  load(KILN_RUNG_PACK, "sm_80", KILN_FROM_PACK);
}
END_TEST

/* For a GPU of another major version, the driver receives the pack's PTX and
 * never its machine code. */
START_TEST(ptx_serves_later_generations)
{
  write_pack(80);
  start(NULL);
  f.cuda->calls[FAKE_CUDA_moduleLoadDataEx] = 0;
  for (int i = 0; i < 3; i++)
    load(KILN_RUNG_PACK, "compute_80", KILN_FROM_PACK);
  ck_assert_int_eq(f.cuda->calls[FAKE_CUDA_moduleLoadDataEx], 3);
  ck_assert_uint_eq(rejected(), 0);
}
END_TEST

START_TEST(refused_machine_code_leaves_the_ptx)
{
  write_pack(90);
  start(NULL);
  f.cuda->cubin_rc = CUDA_ERROR_INVALID_IMAGE;
  for (int i = 0; i < 3; i++)
    load(KILN_RUNG_PTX, "compute_90", KILN_FROM_PACK);
}
END_TEST

START_TEST(refused_with_a_compiler_is_compiled)
{
  write_pack(90);
  start(FAKE_NVRTC);
  f.cuda->rc[FAKE_CUDA_moduleLoadDataEx] = CUDA_ERROR_INVALID_IMAGE;
  f.cuda->times[FAKE_CUDA_moduleLoadDataEx] = 1;
  load(KILN_RUNG_EXACT, "sm_90", KILN_FROM_COMPILER);
  ck_assert_uint_eq(rejected(), 1);
}
END_TEST

/* If NVRTC is installed but does not work, the pack provides the image. */
START_TEST(a_pack_steps_in)
{
  static const struct {
    int gpu;
    const char *target;
  } rows[] = {{86, "sm_80"}, {90, "compute_80"}};

  write_pack(80);
  for (size_t i = 0; i < 2; i++) {
    set_gpu(rows[i].gpu);
    start(FAKE_NVRTC);
    f.nvrtc->rc[FAKE_NVRTC_compileProgram] =
        NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    for (int k = 0; k < 2; k++)
      load(KILN_RUNG_PACK, rows[i].target, KILN_FROM_PACK);
    ck_assert_uint_eq(rejected(), 0);
    kiln_device_free(f.device);
    f.device = NULL;
  }
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "modules from packs", 30, set_up_runtime, tear_down,
      TESTS(its_own_gpu_comes_before_the_compiler,
            another_gpu_comes_after_the_compiler,
            lower_code_serves_without_a_compiler, ptx_serves_later_generations,
            refused_machine_code_leaves_the_ptx,
            refused_with_a_compiler_is_compiled, a_pack_steps_in));
}
