/* cycles_test.c -- device and host memory must not grow over 10,000 loads and
 * unloads of a module, nor over compiles that do not come from a cache. */
#include "gpu_fixture.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <unistd.h>

enum { CYCLES = 10000, COMPILES = 50 };

static const char source[] = "__device__ int data[1 << 16];\n"
                             "extern \"C\" __global__ void touch(int value)\n"
                             "{\n"
                             "  data[threadIdx.x] = value;\n"
                             "}\n";

typedef struct usage {
  uint64_t device; /* bytes free */
  uint64_t host;   /* bytes resident */
} usage;

static usage measure(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long size = 0, pages = 0;
  usage u = {0};

#ifdef __GLIBC__
  malloc_trim(0); /* returns freed memory to the operating system */
#endif
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%lu %lu", &size, &pages), 2);
  fclose(file);
  u.host = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
  ck_kiln_ok(kiln_memory_info(g.device, &u.device, NULL));
  return u;
}

static void compare(const usage *before, uint64_t slack)
{
  const usage after = measure();

  printf("device memory free: %llu before, %llu after; host resident: %llu "
         "before, %llu after\n",
         (unsigned long long)before->device, (unsigned long long)after.device,
         (unsigned long long)before->host, (unsigned long long)after.host);
  ck_assert(after.device + slack >= before->device);
  ck_assert(after.host <= before->host + slack);
}

static void cycle(const kiln_program_desc *desc, int value)
{
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln_module *module;

  ck_kiln_ok(kiln_module_load(&module, g.device, desc));
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "touch"), &c, KILN_ARG(value)));
  kiln_module_free(module);
}

/* Each loaded module takes 256 KiB of device memory. If all 10,000 modules
 * leaked, 2.5 GiB would be lost; if one in a thousand leaked, 2.5 MiB. */
START_TEST(loading_and_unloading)
{
  const kiln_program_desc desc = {.source = source};
  usage before = {0};

  for (int i = 0; i < CYCLES; i++) {
    if (i == CYCLES / 20)
      before = measure();
    cycle(&desc, i);
  }
  ck_kiln_ok(kiln_device_synchronize(g.device));
  compare(&before, (uint64_t)8 << 20);
}
END_TEST

START_TEST(compiling_for_real)
{
  const kiln_program_desc desc = {.source = source, .no_cache = true};
  usage before = {0};

  for (int i = 0; i < COMPILES; i++) {
    if (i == COMPILES / 2)
      before = measure();
    cycle(&desc, i);
  }
  ck_kiln_ok(kiln_device_synchronize(g.device));
  compare(&before, (uint64_t)16 << 20);
}
END_TEST

START_TEST(streams_events_and_memory)
{
  usage before = {0};

  for (int i = 0; i < CYCLES; i++) {
    kiln_stream *stream;
    kiln_event *event;
    CUdeviceptr p;

    if (i == CYCLES / 20)
      before = measure();
    ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
    ck_kiln_ok(kiln_event_create(&event, g.device, true));
    ck_kiln_ok(kiln_memory_alloc(&p, g.device, 1 << 20));
    ck_kiln_ok(kiln_event_record(event, stream));
    ck_kiln_ok(kiln_memory_free(g.device, p));
    kiln_event_free(event);
    kiln_stream_free(stream);
  }
  compare(&before, (uint64_t)8 << 20);
}
END_TEST

START_TEST(contexts)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  const kiln_program_desc desc = {.source = source};
  usage before = {0};
  CUcontext context;

  cycle(&desc, 0);
  for (int i = 0; i < 12; i++) {
    kiln_device *device;
    kiln_module *module;

    if (i == 4)
      before = measure();
    ck_kiln_ok(kiln_device_open(&device, g.rt, 0, &own));
    ck_kiln_ok(kiln_device_context(device, &context));
    ck_kiln_ok(kiln_module_load(&module, device, &desc));
    kiln_module_free(module);
    kiln_device_free(device);
  }
  compare(&before, (uint64_t)32 << 20);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("cycles on a GPU");
  TCase *t = tcase_create("cycles");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, gpu_set_up, gpu_tear_down);
  tcase_set_timeout(t, 150);
  tcase_add_test(t, loading_and_unloading);
  tcase_add_test(t, compiling_for_real);
  tcase_add_test(t, streams_events_and_memory);
  tcase_add_test(t, contexts);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
