/* api_device_launch_test.c -- tests kernels that launch kernels: order, errors,
 * limits, and synchronisation at the end of the parent. */
#include "api_module_fixture.h"

/* The results of a test, which the kernels write. All kernels have one
 * parameter, the address of this struct. */
typedef struct results {
  uint32_t count, error, seen, left;
  uint64_t handle;
  char text[64];
} results;

/* Declarations of the device runtime with the names of CUDA 12. */
#define RUNTIME(prefix)                                                                                    \
  HEAD                                                                                                     \
      ".extern .func (.param .b64 r) " prefix "GetParameterBufferV2(.param "                               \
      ".b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], "                                     \
      ".param .b32 s);\n"                                                                                  \
      ".extern .func (.param .b32 r) " prefix "LaunchDeviceV2(.param .b64 b,"                              \
      " .param .b64 s);\n"                                                                                 \
      ".extern .func (.param .b32 r) " prefix "GetLastError();\n"                                          \
      ".extern .func (.param .b32 r) " prefix "StreamCreateWithFlags("                                     \
      ".param .b64 p, .param .b32 f);\n"                                                                   \
      ".extern .func (.param .b32 r) " prefix "MemcpyAsync(.param .b64 d, "                                \
      ".param .b64 s, .param .b64 n, .param .b32 k, .param .b64 t);\n"                                     \
      ".extern .func (.param .b32 r) " prefix "MemsetAsync(.param .b64 d, "                                \
      ".param .b32 v, .param .b64 n, .param .b64 t);\n"                                                    \
      ".extern .func (.param .b64 r) " prefix                                                              \
      "GetErrorName(.param .b32 e);\n" /* launch(kernel, threads, argument, stream) launches one block. */ \
      ".func (.param .b32 r) launch(.param .b64 fn, .param .b32 n, "                                       \
      ".param .b64 arg, .param .b64 stream)\n{\n"                                                          \
      ".reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .pred %p;\n"                                                \
      "ld.param.b64 %rd1, [fn]; ld.param.b32 %r1, [n];\n"                                                  \
      "ld.param.b64 %rd2, [arg]; ld.param.b64 %rd3, [stream];\n"                                           \
      "mov.u32 %r2, 0;\n"                                                                                  \
      "{ .param .b64 a0; .param .align 4 .b8 a1[12];\n"                                                    \
      ".param .align 4 .b8 a2[12]; .param .b32 a3; .param .b64 r0;\n"                                      \
      "st.param.b64 [a0], %rd1;\n"                                                                         \
      "st.param.b32 [a1], 1; st.param.b32 [a1+4], 1;\n"                                                    \
      "st.param.b32 [a1+8], 1;\n"                                                                          \
      "st.param.b32 [a2], %r1; st.param.b32 [a2+4], 1;\n"                                                  \
      "st.param.b32 [a2+8], 1; st.param.b32 [a3], 0;\n"                                                    \
      "call.uni (r0), " prefix "GetParameterBufferV2, (a0, a1, a2, a3);\n"                                 \
      "ld.param.b64 %rd4, [r0]; }\n"                                                                       \
      "setp.eq.u64 %p, %rd4, 0;\n"                                                                         \
      "@%p bra done;\n"                                                                                    \
      "st.u64 [%rd4], %rd2;\n"                                                                             \
      "{ .param .b64 a0; .param .b64 a1; .param .b32 r0;\n"                                                \
      "st.param.b64 [a0], %rd4; st.param.b64 [a1], %rd3;\n"                                                \
      "call.uni (r0), " prefix "LaunchDeviceV2, (a0, a1);\n"                                               \
      "ld.param.b32 %r2, [r0]; }\n"                                                                        \
      "done: st.param.b32 [r], %r2;\nret;\n}\n"                                                            \
      ".func (.param .b32 r) error()\n{\n.reg .b32 %r1;\n"                                                 \
      "{ .param .b32 r0;\ncall.uni (r0), " prefix "GetLastError, ();\n"                                    \
      "ld.param.b32 %r1, [r0]; }\n"                                                                        \
      "st.param.b32 [r], %r1;\nret;\n}\n"                                                                  \
      ".visible .entry child(.param .u64 p)\n{\n"                                                          \
      ".reg .b64 %rd1; .reg .b32 %r1;\n"                                                                   \
      "ld.param.u64 %rd1, [p];\natom.global.add.u32 %r1, [%rd1], "                                         \
      "1;\nret;\n}\n"

/* Loads %rd1, the address of the results, and launches `kernel`. */
#define BEGIN(name)                                                            \
  ".visible .entry " name "(.param .u64 p)\n{\n"                               \
  ".reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .pred %p;\n"                        \
  "ld.param.u64 %rd1, [p];\n"
#define LAUNCH(kernel, threads, stream)                                        \
  "{ .param .b64 a0; .param .b32 a1; .param .b64 a2; .param .b64 a3;\n"        \
  ".param .b32 r0;\nmov.u64 %rd2, " kernel ";\n"                               \
  "st.param.b64 [a0], %rd2; st.param.b32 [a1], " threads ";\n"                 \
  "st.param.b64 [a2], %rd1; st.param.b64 [a3], " stream ";\n"                  \
  "call.uni (r0), launch, (a0, a1, a2, a3);\nld.param.b32 %r1, [r0]; }\n"
#define STORE_ERROR                                                            \
  "{ .param .b32 r0;\ncall.uni (r0), error, ();\nld.param.b32 %r2, [r0]; }\n"  \
  "st.global.u32 [%rd1+4], %r2;\n"
#define END "ret;\n}\n"

/* clang-format off */
static const char *const programs[] = {
    RUNTIME("__cudaCDP2"),
    /* Every thread launches a block of 32 threads. */
    BEGIN("fans") LAUNCH("child", "32", "0") END
    /* Launches itself until a launch fails. */
    BEGIN("nests") "atom.global.add.u32 %r3, [%rd1], 1;\n"
    LAUNCH("nests", "1", "0")
    "setp.eq.u32 %p, %r1, 0;\n@%p bra end;\n" STORE_ERROR "end: " END
    /* Replaces itself until `left` is 0. */
    BEGIN("repeats") "atom.global.add.u32 %r3, [%rd1], 1;\n"
    "ld.global.u32 %r3, [%rd1+12];\nsetp.eq.u32 %p, %r3, 0;\n@%p bra end;\n"
    "sub.u32 %r3, %r3, 1;\nst.global.u32 [%rd1+12], %r3;\n"
    LAUNCH("repeats", "1", "3") "end: " END,
    /* Copies `count` to `seen`. */
    BEGIN("looks") "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+8], %r1;\n"
    END
    /* The launch in the tail stream comes last, though it is submitted
     * first. */
    BEGIN("tails") LAUNCH("looks", "1", "3") LAUNCH("child", "32", "4")
    LAUNCH("fans", "2", "0") END,
    /* A block with 2,048 threads is too large. */
    BEGIN("fails") LAUNCH("child", "2048", "0") STORE_ERROR
    "{ .param .b32 a0; .param .b64 r0;\nst.param.b32 [a0], %r2;\n"
    "call.uni (r0), __cudaCDP2GetErrorName, (a0);\nld.param.b64 %rd3, [r0]; }\n"
    "add.u64 %rd4, %rd1, 24;\n"
    "more: ld.u8 %r3, [%rd3];\nst.u8 [%rd4], %r3;\nadd.u64 %rd3, %rd3, 1;\n"
    "add.u64 %rd4, %rd4, 1;\nsetp.ne.u32 %p, %r3, 0;\n@%p bra more;\n" END
    /* No grid made this stream. */
    BEGIN("strays") LAUNCH("child", "1", "0x123450") STORE_ERROR END,
    /* Creates a stream at `handle`, launches in it, and copies the result. */
    BEGIN("streams") "add.u64 %rd3, %rd1, 16;\n"
    "{ .param .b64 a0; .param .b32 a1; .param .b32 r0;\n"
    "st.param.b64 [a0], %rd3; st.param.b32 [a1], 1;\n"
    "call.uni (r0), __cudaCDP2StreamCreateWithFlags, (a0, a1); }\n"
    "ld.global.u64 %rd4, [%rd3];\n" LAUNCH("child", "5", "%rd4")
    "{ .param .b64 a0, a1, a2, a4; .param .b32 a3, r0;\n"
    "add.u64 %rd5, %rd1, 8;\nst.param.b64 [a0], %rd5;\n"
    "st.param.b64 [a1], %rd1; st.param.b64 [a2], 4; st.param.b32 [a3], 3;\n"
    "st.param.b64 [a4], %rd4;\n"
    "call.uni (r0), __cudaCDP2MemcpyAsync, (a0, a1, a2, a3, a4); }\n"
    "{ .param .b64 a0, a2, a3; .param .b32 a1, r0;\n"
    "add.u64 %rd5, %rd1, 12;\nst.param.b64 [a0], %rd5;\n"
    "st.param.b32 [a1], 2; st.param.b64 [a2], 3; st.param.b64 [a3], %rd4;\n"
    "call.uni (r0), __cudaCDP2MemsetAsync, (a0, a1, a2, a3); }\n" END,
    /* The child writes to a null pointer. */
    BEGIN("breaks") "mov.u64 %rd1, 0;\n" LAUNCH("child", "1", "0") END,
    NULL};

/* Kernels that read `count`, which the child changes. */
static const char *const reading[] = {
    RUNTIME("__cudaCDP2"),
    BEGIN("reads_before") "ld.global.u32 %r1, [%rd1];\n"
    LAUNCH("child", "32", "0") END
    BEGIN("reads_after") LAUNCH("child", "32", "0")
    "ld.global.u32 %r1, [%rd1];\n" END
    /* A child of the child changes `count`. */
    BEGIN("passes_on") LAUNCH("child", "1", "0") END
    BEGIN("reads_later") LAUNCH("passes_on", "1", "0")
    "ld.global.u32 %r1, [%rd1];\n" END
    BEGIN("reads_beside") "ld.global.u32 %r1, [%rd1];\nmov.u32 %r2, %tid.x;\n"
    "setp.ne.u32 %p, %r2, 0;\n@%p bra end;\n"
    LAUNCH("child", "1", "0") "end: " END,
    BEGIN("reads_first") "ld.global.u32 %r1, [%rd1];\nbar.sync 0;\n"
    "mov.u32 %r2, %tid.x;\nsetp.ne.u32 %p, %r2, 0;\n@%p bra end;\n"
    LAUNCH("child", "1", "0") "end: " END
    BEGIN("reads_in_tail") LAUNCH("child", "1", "3")
    "ld.global.u32 %r1, [%rd1];\n" END,
    NULL};

/* Names of CUDA 11. */
static const char *const waiting[] = {
    RUNTIME("cuda"),
    ".extern .func (.param .b32 r) cudaDeviceSynchronize();\n"
    BEGIN("waits") LAUNCH("child", "32", "0") LAUNCH("child", "32", "0")
    "{ .param .b32 r0;\ncall.uni (r0), cudaDeviceSynchronize, ();\n"
    "ld.param.b32 %r2, [r0]; }\nst.global.u32 [%rd1+4], %r2;\n"
    "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+8], %r1;\n" END,
    NULL};
/* clang-format on */

/* Returns the PTX that consists of several pieces. */
static const char *join(const char *const *pieces)
{
  static char text[1 << 15];

  text[0] = '\0';
  for (; *pieces != NULL; pieces++)
    strncat(text, *pieces, sizeof text - strlen(text) - 1);
  return text;
}

/* Runs one block of a kernel of `ptx` and returns its results. */
static results run(const char *const *ptx, const char *kernel, unsigned threads,
                   uint32_t left, CUresult want)
{
  CUmodule m = load(join(ptx));
  CUdeviceptr p = memory_of(sizeof(results));
  void *args[] = {&p};
  results got = {.left = left};

  ok(kiln__cpu_memcpyHtoD(p, &got, sizeof got));
  ok(launch(function(m, kernel), 1, threads, args));
  is(kiln__cpu_ctxSynchronize(), want);
  if (want == CUDA_SUCCESS) {
    ok(kiln__cpu_memcpyDtoH(&got, p, sizeof got));
    ok(kiln__cpu_memFree(p));
    ok(kiln__cpu_moduleUnload(m));
  }
  return got;
}

START_TEST(children_run_before_the_launch_ends)
{
  ck_assert_uint_eq(run(programs, "fans", 70, 0, CUDA_SUCCESS).count, 70 * 32);
}
END_TEST

/* 1,024 threads exceed this limit of pending launches many times. */
START_TEST(pending_launches_run_early)
{
  ok(kiln__cpu_ctxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 10));
  ck_assert_uint_eq(run(programs, "fans", 1024, 0, CUDA_SUCCESS).count,
                    1024 * 32);
}
END_TEST

/* The host's launch has depth 0, and 24 is the greatest depth. */
START_TEST(depth_is_limited)
{
  const results got = run(programs, "nests", 1, 0, CUDA_SUCCESS);

  ck_assert_uint_eq(got.count, 25);
  ck_assert_uint_eq(got.error, 65);
}
END_TEST

START_TEST(tail_launches_repeat_without_limit)
{
  ck_assert_uint_eq(run(programs, "repeats", 1, 500, CUDA_SUCCESS).count, 501);
}
END_TEST

START_TEST(tail_launches_come_last)
{
  ck_assert_uint_eq(run(programs, "tails", 1, 0, CUDA_SUCCESS).seen,
                    32 + 2 * 32);
}
END_TEST

START_TEST(launches_report_errors)
{
  results got = run(programs, "fails", 1, 0, CUDA_SUCCESS);

  ck_assert_uint_eq(got.count, 0);
  ck_assert_uint_eq(got.error, 9);
  ck_assert_str_eq(got.text, "cudaErrorInvalidConfiguration");
  got = run(programs, "strays", 1, 0, CUDA_SUCCESS);
  ck_assert_uint_eq(got.count, 0);
  ck_assert_uint_eq(got.error, 400);
}
END_TEST

START_TEST(streams_keep_their_order)
{
  const results got = run(programs, "streams", 1, 0, CUDA_SUCCESS);

  ck_assert_uint_eq(got.count, 5);
  ck_assert_uint_eq(got.seen, 5);
  ck_assert_uint_eq(got.left, 0x020202);
}
END_TEST

START_TEST(faults_of_children_end_the_launch)
{
  char fault[4096];

  run(programs, "breaks", 1, 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_kiln_ok(kiln_cpu_last_fault(fault, sizeof fault));
  ck_assert_msg(strstr(fault, "kernel `child`") != NULL, "%s", fault);
}
END_TEST

/* Kernels of CUDA 11 may wait for their children, up to a depth, on compute
 * capability 8.9 or less. */
static void setup_waiting(void)
{
  const kiln_cpu_opts opts = {.arch = 80};

  ck_kiln_ok(kiln_cpu_configure(&opts));
  setup();
}

START_TEST(kernels_wait_for_children)
{
  results got = run(waiting, "waits", 1, 0, CUDA_SUCCESS);

  ck_assert_uint_eq(got.error, 0);
  ck_assert_uint_eq(got.seen, 64);
  ok(kiln__cpu_ctxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 0));
  got = run(waiting, "waits", 1, 0, CUDA_SUCCESS);
  ck_assert_uint_eq(got.error, 68);
  ck_assert_uint_eq(got.seen, 0);
  ck_assert_uint_eq(got.count, 64);
}
END_TEST

START_TEST(new_devices_refuse_to_wait)
{
  CUmodule m = NULL;

  is(kiln__cpu_moduleLoadData(&m, join(waiting)), CUDA_ERROR_CDP_NOT_SUPPORTED);
}
END_TEST

/* ---- Races between parent and child -------------------------------------- */

static void setup_races(void)
{
  const kiln_cpu_opts opts = {.checks = KILN_CPU_CHECK_RACE};

  ck_kiln_ok(kiln_cpu_configure(&opts));
  setup();
}

static void count_finding(void *user, const kiln_cpu_finding *finding)
{
  ck_assert_uint_eq(finding->check, KILN_CPU_CHECK_RACE);
  ck_assert_str_eq(finding->kernel, "child");
  ck_assert_ptr_nonnull(strstr(finding->other, "of the grid that launched it"));
  ++*(unsigned *)user;
}

static const struct {
  const char *kernel;
  unsigned threads, findings;
} races[] = {{"reads_before", 1, 0}, {"reads_after", 1, 1},
             {"reads_later", 1, 1},  {"reads_beside", 64, 1},
             {"reads_first", 64, 0}, {"reads_in_tail", 1, 0}};

START_TEST(races_with_children_are_found)
{
  unsigned found = 0;

  run(reading, races[_i].kernel, races[_i].threads, 0, CUDA_SUCCESS);
  ck_kiln_ok(kiln_cpu_take_findings(count_finding, &found));
  ck_assert_msg(found == races[_i].findings, "%s: %u findings",
                races[_i].kernel, found);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_device_launch");
  TCase *t = kiln_test_case(s, "races", 60, setup_races, teardown,
                            (const TTest *const[]){NULL});

  kiln_test_case(
      s, "launches", 60, setup, teardown,
      TESTS(children_run_before_the_launch_ends, pending_launches_run_early,
            depth_is_limited, tail_launches_repeat_without_limit,
            tail_launches_come_last, launches_report_errors,
            streams_keep_their_order, faults_of_children_end_the_launch,
            new_devices_refuse_to_wait));
  kiln_test_case(s, "waiting", 60, setup_waiting, teardown,
                 TESTS(kernels_wait_for_children));
  kiln_test_loops(t, ROWS(races), TESTS(races_with_children_are_found));
  return kiln_test_run(s);
}
