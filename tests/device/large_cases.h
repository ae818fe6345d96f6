/* large_cases.h -- what large_test.c and large_more_test.c share: the input, cases
 * with their arrays, the kernels of the tests, and the choice of the sizes. */
#ifndef KILN_LARGE_CASES_H
#define KILN_LARGE_CASES_H

#include "large_reference.h"
#include "ops_fixture.h"

/* Further kernels of a test, which it defines before it includes this file. */
#ifndef LARGE_TEXT
#define LARGE_TEXT ""
#endif

#include <stdarg.h>
#include <time.h>

static bool small;
static unsigned failures;

static const kiln_dtype dtypes[] = {KILN_U8, KILN_U32, KILN_F32, KILN_U64,
                                    KILN_F64};
/* The type, length, kernels and input of the current cases. */
static int type;
static kiln_dtype dtype;
static uint64_t n;
static kiln_module *kernels;
static test_array x; /* n + 1 input elements; element i is whole(type, i) */
static totals known; /* expected results over the first n elements */

/* ---- Cases --------------------------------------------------------------- */

static const char *case_name;
static struct timespec case_start;
static bool case_good;

static void begin(const char *name)
{
  case_name = name;
  case_good = true;
  clock_gettime(CLOCK_MONOTONIC, &case_start);
}

/* Marks the case as failed and prints the reason. */
static void wrong(const char *format, ...)
{
  va_list list;

  case_good = false;
  printf("  %s %s: ", kiln_dtype_name(dtype), case_name);
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n");
}

/* Tells whether the operation was queued and has completed without an error. */
static bool ran(kiln_status st)
{
  if (st == KILN_OK)
    st = kiln_stream_synchronize(stream);
  if (st == KILN_OK)
    return true;
  wrong("%s: %s | %s | %s", kiln_status_name(st), kiln_last_error()->message,
        kiln_last_error()->hint, kiln_last_error()->log);
  if (st == KILN_ESTICKY || kiln_last_error()->status == KILN_ESTICKY)
    ck_abort_msg("the context is lost");
  return false;
}

static void expect_equal(const char *what, uint64_t got, uint64_t want)
{
  if (got != want)
    wrong("%s is %llu, not %llu", what, (unsigned long long)got,
          (unsigned long long)want);
}

/* ---- Arrays -------------------------------------------------------------- */

/* Checks that both guard zones of the array are unchanged, and frees it. */
static void drop(test_array *a)
{
  unsigned char guards[2 * GUARD];
  const CUdeviceptr behind = a->block + a->before + a->n * a->width;

  ck_kiln_ok(kiln_copy_to_host(device, guards, a->array.data - GUARD, GUARD));
  ck_kiln_ok(kiln_copy_to_host(device, guards + GUARD, behind, GUARD));
  for (int i = 0; i < 2 * GUARD; i++)
    if (guards[i] != GUARD_BYTE) {
      wrong("guard zone was written %s the array",
            i < GUARD ? "before" : "behind");
      break;
    }
  array_free(a);
}

static test_array made[8]; /* device arrays of the current case */
static size_t n_made;

static test_array filled(kiln_dtype t, uint64_t count, unsigned char byte)
{
  ck_assert_uint_lt(n_made, sizeof made / sizeof made[0]);
  return made[n_made++] = array_make(t, count, 0, NULL, byte);
}

static test_array poisoned(kiln_dtype t, uint64_t count)
{
  return filled(t, count, 0xee);
}

/* Ends the case: frees its arrays, and prints its result and its time. */
static void end(void)
{
  struct timespec now;

  while (n_made > 0)
    drop(&made[--n_made]);
  clock_gettime(CLOCK_MONOTONIC, &now);
  failures += !case_good;
  printf("%-6s %-3s %10llu %-26s %8.3f s\n", case_good ? "ok" : "FAILED",
         kiln_dtype_name(dtype), (unsigned long long)n, case_name,
         (double)(now.tv_sec - case_start.tv_sec) +
             1e-9 * (double)(now.tv_nsec - case_start.tv_nsec));
  fflush(stdout);
}

static uint64_t word_of(const test_array *a, uint64_t i)
{
  uint64_t bits = 0;

  ck_kiln_ok(
      kiln_copy_to_host(device, &bits, a->array.data + i * a->width, a->width));
  return bits;
}

/* ---- Kernels of the test ------------------------------------------------- */

static void load_kernels(void)
{
  static const char *const names[] = {"unsigned char", "unsigned", "float",
                                      "unsigned long long", "double"};
  static char text[sizeof both_text + sizeof fills_text + sizeof checks_text +
                   sizeof LARGE_TEXT];
  char define[2][64];
  const char *const defines[] = {define[0], define[1]};
  const kiln_program_desc desc = {
      .source = text, .name = "large.cu", .defines = defines, .n_defines = 2};

  snprintf(text, sizeof text, "%s%s%s%s", both_text, fills_text, checks_text,
           LARGE_TEXT);
  snprintf(define[0], sizeof define[0], "ELEMENT=%s", names[type]);
  snprintf(define[1], sizeof define[1], "TYPE=%d", type);
  if (kiln_module_load(&kernels, device, &desc) == KILN_OK)
    return;
  printf("%s\n%s\n", kiln_last_error()->message, kiln_last_error()->log);
  ck_abort_msg("no kernels");
}

/* Runs one of the test's kernels and waits for its end. */
static void own(const char *name, uint64_t threads, const kiln_arg *args,
                size_t n_args)
{
  const uint64_t blocks = (threads + 255) / 256;
  const kiln_launch_config config = {
      .grid = {.x = (uint32_t)(blocks < 16384 ? blocks : 16384)},
      .block = {.x = 256},
      .stream = stream};
  kiln_kernel *kernel;

  ck_kiln_ok(kiln_module_kernel(&kernel, kernels, name));
  ck_kiln_ok(kiln_launch(kernel, &config, args, n_args));
  ck_kiln_ok(kiln_stream_synchronize(stream));
}

#define OWN(name, threads, ...)                                                \
  own(name, threads, (const kiln_arg[]){__VA_ARGS__},                          \
      sizeof((const kiln_arg[]){__VA_ARGS__}) / sizeof(kiln_arg))

#define DATA(a) KILN_ARG((a).array.data)

/* Runs a checking kernel, whose last argument is the address of its report.
 * Reports the wrong elements that the kernel found, and returns its sum. */
static uint64_t check(const char *what, const char *name, uint64_t threads,
                      kiln_arg *args, size_t n_args)
{
  uint64_t got[3] = {0, UINT64_MAX, 0};
  test_array report = array_make(KILN_U64, 3, 0, got, 0);

  args[n_args - 1] = (kiln_arg)DATA(report);
  own(name, threads, args, n_args);
  ck_kiln_ok(kiln_copy_to_host(device, got, report.array.data, sizeof got));
  array_free(&report);
  if (got[0] != 0)
    wrong("%s: %llu wrong, the first is %llu", what, (unsigned long long)got[0],
          (unsigned long long)got[1]);
  return got[2];
}

#define CHECK(what, name, threads, ...)                                        \
  check(what, name, threads, (kiln_arg[]){__VA_ARGS__, {0}},                   \
        sizeof((kiln_arg[]){__VA_ARGS__, {0}}) / sizeof(kiln_arg))

/* ---- The input of the cases ---------------------------------------------- */

static void work_begin(int of_type, uint64_t count)
{
  const uint64_t one = 1, all = count + 1;

  type = of_type;
  dtype = dtypes[type];
  n = count;
  load_kernels();
  begin("input and its totals");
  x = array_make(dtype, all, 0, NULL, 0xee);
  OWN("fill", all, DATA(x), KILN_ARG(all), KILN_ARG(one));
  known = totals_of(type, n);
  end();
}

static void work_end(void)
{
  begin("input is as it was");
  drop(&x);
  end();
  kiln_module_free(kernels);
}

/* Opens the device and tells whether it has enough memory. `how` is the choice
 * of KILN_TEST_LARGE, or NULL. */
static bool wanted(const char *how)
{
  uint64_t room = 0, all = 0;

  if (how == NULL || how[0] == '\0') {
    printf("skipped: KILN_TEST_LARGE is not set\n");
    return false;
  }
  small = strcmp(how, "small") == 0;
  if (!small && on_cpu()) {
    printf("skipped: the CPU device; KILN_TEST_LARGE=small runs there\n");
    return false;
  }
  if (test_runtime(&rt, NULL) == KILN_OK &&
      kiln_device_open(&device, rt, 0, NULL) == KILN_OK &&
      kiln_stream_create(&stream, device, NULL) == KILN_OK &&
      kiln_memory_info(device, &room, &all) == KILN_OK &&
      (small || room >= UINT64_C(64000000000)))
    return true;
  printf("skipped: %.1f GB of device memory free, not 64\n",
         (double)room / 1e9);
  teardown();
  return false;
}

/* The tests run in one process: the free memory is known only once the device
 * is open, and an open device does not survive a fork. */
static int large_main(Suite *(*suite)(void), const char *how)
{
  int rc;

  choose_test_device();
  if (!wanted(how))
    return KILN_TEST_SKIP;
  setenv("CK_FORK", "no", 1);
  rc = kiln_test_run(suite());
  teardown();
  return rc;
}

#endif
