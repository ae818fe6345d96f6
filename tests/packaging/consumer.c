/* consumer.c -- a program whose structs differ in size from those of the
 * library; see abi.sh. LATER is defined if the program's header has the member
 * `kiln_later`, which the library does not know. The program prints a line for
 * each check that fails. */
#include <kiln/kiln.h>

#include <stdio.h>
#include <string.h>

static int failures;

static void check(bool ok, const char *what)
{
  if (ok)
    return;
  failures++;
  printf("wrong: %s: %s\n", what, kiln_last_error()->message);
}

/* A struct that receives results, followed by bytes that the library must not
 * write. */
#define GUARDED(type)                                                          \
  struct {                                                                     \
    type value;                                                                \
    unsigned char guard[64];                                                   \
  }

static bool intact(const unsigned char guard[64])
{
  for (int i = 0; i < 64; i++) {
    if (guard[i] != 0xa5)
      return false;
  }
  return true;
}

#define CHECK_RESULT(type, call, good)                                         \
  do {                                                                         \
    GUARDED(type) out;                                                         \
    memset(&out, 0xa5, sizeof out);                                            \
    check((call) == KILN_OK && (good) && intact(out.guard), #call);            \
  } while (0)

static void check_results(kiln_runtime *rt, kiln_device *device)
{
  kiln_ladder_query query = {0};
  kiln_traits traits;

  CHECK_RESULT(kiln_traits, kiln_arch_traits(90, &out.value),
               out.value.cc == 90 && out.value.smem_alloc_unit > 0);
  check(kiln_arch_traits(80, &traits) == KILN_OK, "traits");
  CHECK_RESULT(kiln_occupancy_result,
               kiln_occupancy(&traits, 128, 32, 0, &out.value),
               out.value.blocks_per_sm == 16);
  check(kiln_occupancy_best_block(&traits, 32, 0, 0) == 1024, "best block");
  query.cc = 90;
  query.driver_version = 12040;
  query.nvrtc_version = 12040;
  CHECK_RESULT(kiln_ladder_result, kiln_ladder(&query, &out.value),
               out.value.rung == KILN_RUNG_EXACT && out.value.target.cc == 90);
  CHECK_RESULT(kiln_cache_stats, kiln_cache_counters(rt, &out.value),
               out.value.evicted == 0);
  CHECK_RESULT(kiln_cache_info, kiln_cache_describe(rt, &out.value),
               out.value.cap == 1 << 20);
  CHECK_RESULT(kiln_driver_info, kiln_runtime_driver(rt, &out.value),
               out.value.n_devices > 0);
  CHECK_RESULT(kiln_device_info, kiln_device_describe(device, &out.value),
               out.value.sm_count > 0);
}

/* Checks structs that the library reads. The library must find each member at
 * its offset. */
static void check_descs(kiln_runtime *rt, kiln_device *device)
{
  kiln_program_desc program = {0}, programs[2] = {{0}};
  kiln_target target[2] = {{90, 0, false}, {90, 0, false}};
  kiln_stream_opts stream_opts = {0};
  kiln_launch_config config = kiln_launch_1d(1, 32);
  kiln_reduce_desc reduce = {0};
  kiln_stream *stream;
  kiln_image *image;
  kiln_job *job;
  size_t bytes;

  stream_opts.priority = -1;
  check(kiln_stream_create(&stream, device, &stream_opts) == KILN_OK, "stream");
  program.builtin = "no such program";
  check(kiln_compile(&image, rt, &program, target) == KILN_ENOTFOUND,
        "the program's first member");
  programs[0] = programs[1] = program;
  /* The second program has neither `builtin` nor `source`. */
  programs[1].builtin = NULL;
  check(kiln_job_start(&job, rt, programs, target, 2, NULL, NULL) == KILN_OK &&
            kiln_job_wait(job, UINT64_MAX) == KILN_OK &&
            kiln_job_image(job, 0, &image) == KILN_ENOTFOUND &&
            kiln_job_image(job, 1, &image) == KILN_EINVAL,
        "the second program of an array");
  kiln_job_free(job);
  check(kiln_launch(NULL, &config, NULL, 0) == KILN_EINVAL, "launch");
  reduce.n = 1;
  reduce.op.name = (kiln_op_name)99;
  check(kiln_reduce_workspace(stream, &reduce, &bytes) == KILN_EINVAL &&
            strstr(kiln_last_error()->message, "kiln_reduce") != NULL,
        "the desc of an operation");
  kiln_stream_free(stream);
}

/* Checks that the library refuses struct sizes that no version had, and members
 * that it does not know. */
static void check_refusals(kiln_runtime *rt)
{
  kiln_runtime_opts opts = {0};
  kiln_runtime *other = rt;

  check(kiln_runtime_create_sized(&other, &opts, 8) == KILN_EINVAL &&
            other == NULL &&
            strstr(kiln_last_error()->message, "kiln_runtime_opts") != NULL,
        "a struct that is smaller than the first version");
#ifdef LATER
  opts.kiln_later = 1;
  check(kiln_runtime_create(&other, &opts) == KILN_EINVAL &&
            strstr(kiln_last_error()->message, "member") != NULL,
        "a member that the library does not know");
#endif
}

int main(int argc, char **argv)
{
  kiln_runtime_opts opts = {0};
  kiln_device_opts device_opts = {0};
  kiln_runtime *rt;
  kiln_device *device;

  if (argc != 3)
    return 2;
  opts.driver_path = argv[1];
  opts.cache_dir = argv[2];
  opts.cache_bytes = 1 << 20;
  opts.ignore_env = true;
  device_opts.context = KILN_CONTEXT_OWN;
  if (kiln_runtime_create(&rt, &opts) != KILN_OK ||
      kiln_device_open(&device, rt, 0, &device_opts) != KILN_OK) {
    printf("wrong: %s\n", kiln_last_error()->message);
    return 1;
  }
  check_results(rt, device);
  check_descs(rt, device);
  check_refusals(rt);
  kiln_device_free(device);
  kiln_runtime_free(rt);
  return failures > 0;
}
