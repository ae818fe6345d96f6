/* errors_test.c -- kernels that fail. Each runs in a process of its own: Check
 * forks for every test, and the parent process never uses the driver. */
#include "gpu_fixture.h"

static const char source[] =
    "extern \"C\" __global__ void wild(int *p)\n"
    "{\n"
    "  p[threadIdx.x] = 1;\n"
    "}\n"
    "extern \"C\" __global__ void stop(int *p)\n"
    "{\n"
    "  asm volatile(\"trap;\");\n"
    "}\n"
    "extern \"C\" __global__ void claim(int *p)\n"
    "{\n"
    "  __assertfail(\"p is good\", \"claim.cu\", 7, \"claim\", 1);\n"
    "}\n"
    "extern \"C\" __global__ void fine(int *p)\n"
    "{\n"
    "  *p = 7;\n"
    "}\n";

static kiln_module *module;
static kiln_stream *stream;
static kiln_event *event;
static CUdeviceptr good;

static void set_up(void)
{
  findings_wanted = true;
  gpu_set_up();
  module = gpu_load(g.device, source);
  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  ck_kiln_ok(kiln_event_create(&event, g.device, true));
  good = gpu_alloc(g.device, 64);
}

/* Freeing objects of a lost context must do no harm. */
static void tear_down(void)
{
  kiln_event_free(event);
  kiln_stream_free(stream);
  kiln_module_free(module);
  gpu_tear_down();
}

static const struct {
  const char *kernel;
  /* distance of the address from valid memory; 1 makes it misaligned */
  CUdeviceptr offset;
  bool null;
  int native[3]; /* error codes that drivers return for this kernel */
} rows[] = {
    {"wild", 0, true, {CUDA_ERROR_ILLEGAL_ADDRESS}},
    {"wild", 1, false, {CUDA_ERROR_MISALIGNED_ADDRESS}},
    {"stop",
     0,
     false,
     {CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ILLEGAL_INSTRUCTION, 0}},
    {"claim", 0, false, {CUDA_ERROR_ASSERT}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool expected(int i)
{
  const int got = kiln_last_error()->native;

  for (int k = 0; k < 3; k++) {
    if (got != 0 && rows[i].native[k] == got)
      return true;
  }
  return false;
}

START_TEST(a_failing_kernel_is_reported_as_such)
{
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln_launch_config in_stream = c;
  CUdeviceptr p = rows[_i].null ? 0 : good + rows[_i].offset, q;
  kiln_kernel *bad = gpu_kernel(module, rows[_i].kernel);
  kiln_kernel *fine = gpu_kernel(module, "fine");
  char byte;

  ck_assert_int_eq(g.rt->driver.ctxCreate(&g.outer, 0, 0), 0);
  in_stream.stream = stream;
  ck_kiln_ok(KILN_LAUNCH(bad, &in_stream, KILN_ARG(p))); /* fails later */
  ck_kiln_is(kiln_stream_synchronize(stream), KILN_ESTICKY);
  ck_assert_msg(expected(_i), "%s", kiln_last_error()->message);
  ck_assert_int_eq(kiln_last_error()->source, KILN_SOURCE_DRIVER);
  ck_assert_str_ne(kiln_last_error()->hint, "");
  if (g.rt->driver.last_fault != NULL)
    ck_assert_msg(strstr(kiln_last_error()->log, rows[_i].kernel) != NULL,
                  "the log does not say where: %s", kiln_last_error()->log);
  printf("%s: %s\n", rows[_i].kernel, kiln_last_error()->message);
  /* After the failure every call must report that an earlier kernel caused
   * it. */
  ck_kiln_is(KILN_LAUNCH(fine, &c, KILN_ARG(good)), KILN_ESTICKY);
  ck_kiln_is(kiln_device_synchronize(g.device), KILN_ESTICKY);
  ck_kiln_is(kiln_stream_query(stream), KILN_ESTICKY);
  ck_kiln_is(kiln_memory_alloc(&q, g.device, 16), KILN_ESTICKY);
  ck_kiln_is(kiln_copy_to_host(g.device, &byte, good, 1), KILN_ESTICKY);
  ck_assert_ptr_eq(current_context(), g.outer);
}
END_TEST

START_TEST(a_launchs_own_fault_costs_nothing)
{
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {2000, 1, 1}};
  kiln_kernel *fine = gpu_kernel(module, "fine");
  int back = 0;

  ck_kiln_is(KILN_LAUNCH(fine, &c, KILN_ARG(good)), KILN_ELIMIT);
  c.block.x = 1;
  /* This limit is raised so that Kiln's check passes and the driver refuses the
   * launch itself. */
  fine->max_grid[1] = 1 << 20;
  c.grid.y = 1 << 18;
  ck_assert_int_ne(KILN_LAUNCH(fine, &c, KILN_ARG(good)), KILN_OK);
  ck_assert_int_ne(kiln_last_error()->status, KILN_ESTICKY);
  c.grid.y = 1;
  ck_kiln_ok(KILN_LAUNCH(fine, &c, KILN_ARG(good)));
  ck_kiln_ok(kiln_copy_to_host(g.device, &back, good, 4));
  ck_assert_int_eq(back, 7);
  ck_kiln_ok(kiln_memory_free(g.device, good));
}
END_TEST

/* A context that Kiln created can be freed and created again. After a failed
 * kernel the driver may refuse the new context, but nothing may crash. */
START_TEST(an_own_context_may_be_made_anew)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln_device *device;
  kiln_module *m;
  CUdeviceptr none = 0, p;

  ck_kiln_ok(kiln_device_open(&device, g.rt, 0, &own));
  m = gpu_load(device, source);
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(m, "wild"), &c, KILN_ARG(none)));
  ck_kiln_is(kiln_device_synchronize(device), KILN_ESTICKY);
  kiln_module_free(m);
  kiln_device_free(device);
  ck_kiln_ok(kiln_device_open(&device, g.rt, 0, &own));
  if (kiln_memory_alloc(&p, device, 64) == KILN_OK)
    ck_kiln_ok(kiln_memory_free(device, p));
  else
    printf("a new context after a failed kernel: %s\n",
           kiln_last_error()->message);
  kiln_device_free(device);
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("errors on a GPU");
  TCase *t = tcase_create("errors");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_failing_kernel_is_reported_as_such, 0, ROWS);
  tcase_add_test(t, a_launchs_own_fault_costs_nothing);
  tcase_add_test(t, an_own_context_may_be_made_anew);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
