/* flow_test.c -- random programs of nested loops, breaks, early returns, jump
 * tables and calls. The device under test and the CPU device must leave the
 * same memory as an interpreter of their syntax trees.
 *
 * KILN_TEST_FLOW_PROGRAMS is the number of programs; the default is 40. */
#include "cpu_differ.h"
#include "cpu_flow.h"
#include "test_device.h"

static long n_programs(void)
{
  const char *const asked = getenv("KILN_TEST_FLOW_PROGRAMS");

  return asked != NULL ? strtol(asked, NULL, 10) : 40;
}

/* Loads the PTX for the architecture of the device. */
static CUmodule load(differ *d, const char *text)
{
  const unsigned sm = d->sm < 90 ? d->sm : 90;
  const size_t size = strlen(text) + 80;
  char *whole = malloc(size), log[1024];
  CUmodule module = NULL;

  ck_assert_ptr_nonnull(whole);
  snprintf(whole, size, ".version %s\n.target sm_%u\n.address_size 64\n%s",
           sm < 75 ? "6.3" : "8.0", sm, text);
  ck_assert_msg(differ_load(d, &module, whole, log, sizeof log), "%s: %s",
                d->name, log);
  free(whole);
  return module;
}

static void compare(differ *d, const char *text, long program,
                    const flow_results *want)
{
  static const flow_results zeros;
  CUmodule module = load(d, text);
  CUdeviceptr at = differ_alloc(d, sizeof zeros);
  CUdeviceptr cells = at + sizeof zeros.out;
  void *args[] = {&at, &cells};
  flow_results got;

  differ_put(d, at, &zeros, sizeof zeros);
  differ_launch(d, module, "k", FLOW_BLOCKS, FLOW_THREADS, args);
  differ_get(d, &got, at, sizeof got);
  for (unsigned i = 0; i < FLOW_THREADS * FLOW_BLOCKS * FLOW_VARIABLES; i++)
    ck_assert_msg(got.out[i] == want->out[i],
                  "%s, program %ld: thread %u variable %u: %08x, not %08x",
                  d->name, program, i / FLOW_VARIABLES, i % FLOW_VARIABLES,
                  got.out[i], want->out[i]);
  ck_assert_msg(memcmp(got.cells, want->cells, sizeof got.cells) == 0,
                "%s, program %ld: other counts", d->name, program);
  differ_free(d, at);
  differ_unload(d, module);
}

/* Child process k checks the programs k, k + children, k + 2 * children, and so
 * on. */
static unsigned children;

static void work(void *user, unsigned k)
{
  static flow_results want;
  kiln_cpu_opts opts = {0};
  differ gpu, cpu;

  (void)user;
  if (!on_cpu())
    ck_assert(differ_open_gpu(&gpu));
  else
    ck_kiln_ok(kiln_cpu_parse(&opts, test_cpu));
  differ_open_cpu(&cpu, &opts);
  for (long i = (long)k; i < n_programs(); i += children) {
    const char *const text = flow_make((uint64_t)i, &want);

    compare(&cpu, text, i, &want);
    if (!on_cpu())
      compare(&gpu, text, i, &want);
  }
  differ_close(&cpu);
  if (!on_cpu())
    differ_close(&gpu);
}

START_TEST(programs_give_the_same_everywhere)
{
  children = differ_cores();
  ck_assert_uint_eq(differ_fork(children, work, NULL), 0);
  printf("%ld programs%s\n", n_programs(),
         on_cpu() ? "" : " on the GPU and the CPU device");
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("flow");
  TCase *flow = tcase_create("flow");

  tcase_set_timeout(flow, 900);
  tcase_add_test(flow, programs_give_the_same_everywhere);
  suite_add_tcase(suite, flow);
  return suite;
}

DEVICE_TEST_MAIN(make)
