/* cycles_test.c -- checks that memory use stays constant over thousands of
 * compiles, loads and unloads, including failed ones. */
#include "device_fixture.h"

#include <malloc.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { CYCLES = 10000, WARM = CYCLES / 10 };

typedef struct usage {
  long blocks;      /* number of live blocks of the runtime's allocator */
  size_t heap, rss; /* heap size and resident set size in bytes */
} usage;

static size_t resident(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long size = 0, pages = 0;

  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%lu %lu", &size, &pages), 2);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static usage measure(void)
{
  return (usage){f.alloc.live, mallinfo2().uordblks, resident()};
}

/* Checks the memory use at the end. Growth of 1 MiB over 9,000 cycles is
 * allowed, so a leak of 120 bytes per cycle is detected. */
static void compare(const usage *before)
{
  const usage after = measure();
  const size_t slack = (size_t)1 << 20;

  ck_assert_int_eq(after.blocks, before->blocks);
  if (SANITIZED)
    /* The sanitizer's allocator keeps freed memory, so the heap grows. */
    return;
  ck_assert_msg(after.heap < before->heap + slack,
                "the heap grew from %zu to %zu bytes", before->heap,
                after.heap);
  ck_assert_msg(after.rss < before->rss + 4 * slack,
                "resident memory grew from %zu to %zu bytes", before->rss,
                after.rss);
}

static void load_launch_unload(const kiln_program_desc *desc)
{
  const kiln_launch_config one = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln_module *module;

  ck_kiln_ok(kiln_module_load(&module, f.device, desc));
  ck_kiln_ok(kiln_launch(get_kernel(module, "empty"), &one, NULL, 0));
  kiln_module_free(module);
}

START_TEST(compiling_each_time)
{
  const kiln_program_desc desc = {.source = SAXPY, .no_cache = true};
  usage before = {0};

  for (int i = 0; i < CYCLES; i++) {
    if (i == WARM)
      before = measure();
    load_launch_unload(&desc);
    ck_assert_int_eq(f.cuda->modules, 0);
  }
  compare(&before);
  ck_assert_int_eq(f.nvrtc->compiles, CYCLES);
  ck_assert_int_eq(f.nvrtc->programs, 0);
}
END_TEST

START_TEST(taking_it_from_the_cache)
{
  char value[32];
  const char *defines[] = {value};
  const kiln_program_desc desc = {
      .source = SAXPY, .defines = defines, .n_defines = 1};
  usage before = {0};

  for (int i = 0; i < CYCLES; i++) {
    if (i == WARM)
      before = measure();
    snprintf(value, sizeof value, "VARIANT=%d", i % 8);
    load_launch_unload(&desc);
  }
  compare(&before);
  ck_assert_int_eq(f.nvrtc->compiles, 8);
}
END_TEST

START_TEST(failing_each_time)
{
  const kiln_program_desc bad = {.source = "#error no\n", .no_cache = true};
  const kiln_program_desc good = {.source = SAXPY, .no_cache = true};
  usage before = {0};
  kiln_module *module;

  f.cuda->ptx_rc = f.cuda->cubin_rc = CUDA_ERROR_INVALID_IMAGE;
  for (int i = 0; i < CYCLES / 4; i++) {
    if (i == WARM / 4)
      before = measure();
    ck_kiln_is(kiln_module_load(&module, f.device, &bad), KILN_ECOMPILE);
    ck_kiln_is(kiln_module_load(&module, f.device, &good), KILN_EDRIVER);
  }
  compare(&before);
  ck_assert_int_eq(f.nvrtc->programs, 0);
}
END_TEST

START_TEST(devices_and_runtimes)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  usage before = {0};
  kiln_device *device;
  kiln_stream *stream;

  for (int i = 0; i < CYCLES / 10; i++) {
    if (i == WARM / 10)
      before = measure();
    ck_kiln_ok(kiln_device_open(&device, f.rt, 0, &own));
    ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
    kiln_stream_free(stream);
    kiln_device_free(device);
    kiln_device_free(f.device);
    kiln_runtime_free(f.rt);
    ck_assert_int_eq(f.alloc.live, 0);
    open_runtime();
    ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
  }
  compare(&before);
}
END_TEST

int main(void)
{
  return kiln_test_main("cycles", 300, set_up_device, tear_down,
                        TESTS(compiling_each_time, taking_it_from_the_cache,
                              failing_each_time, devices_and_runtimes));
}
