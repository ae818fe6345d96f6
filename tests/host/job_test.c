/* Tests jobs, each of which compiles many programs in the background. */
#include "support.h"

#include "core/runtime.h"
#include "fake_nvrtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 12 };

static const char fake[] = KILN_TEST_FAKES "/fake_nvrtc.so";

static char dir[256], library[512];
static char sources[N][64];
static kiln_program_desc descs[N];
static kiln_target targets[N];
static fake_nvrtc_control *control;
static kiln_runtime *rt;
static kiln_job *job;
static kiln_image *image;

static void setup(void)
{
  test_dir_make(dir);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.13", NULL, library);
  control = fake_nvrtc_of(library);
  for (int i = 0; i < N; i++) {
    snprintf(sources[i], sizeof sources[i],
             "extern \"C\" __global__ void k%d() {}\n", i);
    descs[i] = (kiln_program_desc){.source = sources[i]};
    targets[i] = (kiln_target){.cc = 90};
  }
}

static void drop_job(void)
{
  kiln_job_free(job);
  job = NULL;
}

static void drop_image(void)
{
  kiln_image_free(image);
  image = NULL;
}

/* Frees the runtime and all objects that were made with it, and checks that the
 * compiler has no program left. */
static void stop(void)
{
  drop_image();
  drop_job();
  kiln_runtime_free(rt);
  rt = NULL;
  ck_assert_int_eq(atomic_load(&control->programs), 0);
}

static void teardown(void)
{
  stop();
  test_dir_remove(dir);
}

static void start(const kiln_allocator *a, unsigned threads)
{
  kiln_runtime_opts opts = {
      .ignore_env = true, .nvrtc_path = library, .compile_threads = threads};

  if (a != NULL)
    opts.allocator = *a;
  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
}

/* The values that the progress callback received. */
typedef struct seen {
  atomic_int calls;
  kiln_job_progress last;
  pthread_mutex_t lock;
} seen;

static void look(void *user, const kiln_job_progress *now)
{
  seen *s = user;

  atomic_fetch_add(&s->calls, 1);
  pthread_mutex_lock(&s->lock);
  if (now->done > s->last.done)
    s->last = *now;
  pthread_mutex_unlock(&s->lock);
}

START_TEST(all_are_done_and_told)
{
  seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
  kiln_job_progress state;

  start(NULL, 3);
  descs[4].source = "#error four\n";
  control->delay_ms = 5;
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, N, look, &s));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  ck_assert_int_eq(atomic_load(&s.calls), N);
  ck_kiln_ok(kiln_job_state(job, &state));
  ck_assert_uint_eq(state.total, N);
  ck_assert_uint_eq(state.done, N);
  ck_assert_uint_eq(state.failed, 1);
  ck_assert_uint_eq(state.compiled, N - 1);
  ck_assert_mem_eq(&state, &s.last, sizeof state);
  ck_assert_int_le(atomic_load(&control->most_running), 3);
  for (size_t i = 0; i < N; i++) {
    char name[8];

    if (i == 4)
      continue;
    snprintf(name, sizeof name, "k%zu", i);
    ck_kiln_ok(kiln_job_image(job, i, &image));
    ck_assert_str_eq(kiln_image_lowered(image, name), name);
    drop_image();
  }
  /* Every call for a failed program returns the same error record. */
  for (int k = 0; k < 2; k++) {
    kiln_image_free(NULL);
    ck_kiln_is(kiln_job_image(job, N, &image), KILN_EINVAL);
    ck_kiln_is(kiln_job_image(job, 4, &image), KILN_ECOMPILE);
    ck_assert_ptr_null(image);
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "four"));
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "1 catastrophic"));
  }
  /* An image stays valid after its job is freed. */
  ck_kiln_ok(kiln_job_image(job, 0, &image));
  drop_job();
  ck_assert_str_eq(kiln_image_lowered(image, "k0"), "k0");
}
END_TEST

START_TEST(a_second_job_hits_the_cache)
{
  kiln_job_progress state;

  start(NULL, 2);
  for (int round = 0; round < 2; round++) {
    ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, N, NULL, NULL));
    ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
    ck_kiln_ok(kiln_job_state(job, &state));
    ck_assert_uint_eq(state.compiled, round == 0 ? N : 0);
    drop_job();
  }
}
END_TEST

/* Once the job has started, the caller may free everything that a description
 * points to. */
START_TEST(descs_are_copied)
{
  char text[9][64] = {"#include \"h\"\n__global__ void k() {}",
                      "n.cu",
                      "h",
                      "int h;",
                      "A=1",
                      "KILN_HAS_SHFL=0",
                      "k",
                      "-w",
                      ""};
  kiln_header header = {text[2], text[3]};
  const char *define = text[4], *trait = text[5], *name = text[6],
             *option = text[7];
  kiln_program_desc desc = {.source = text[0],
                            .source_size = strlen(text[0]),
                            .name = text[1],
                            .headers = &header,
                            .n_headers = 1,
                            .defines = &define,
                            .n_defines = 1,
                            .traits = &trait,
                            .n_traits = 1,
                            .names = &name,
                            .n_names = 1,
                            .options = &option,
                            .n_options = 1};
  kiln_program_desc both[2] = {descs[0], desc};

  start(NULL, 1);
  /* The pool has one thread, so the second program waits for the slow compile
   * of the first. */
  control->delay_ms = 40;
  ck_kiln_ok(kiln_job_start(&job, rt, both, targets, 2, NULL, NULL));
  memset(text, 'x', sizeof text);
  memset(both, 0x5a, sizeof both);
  header = (kiln_header){NULL, NULL};
  define = trait = name = option = NULL;
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  ck_kiln_ok(kiln_job_image(job, 1, &image));
  ck_assert_str_eq(kiln_image_lowered(image, "k"), "_Z1kv");
  ck_assert_ptr_nonnull(strstr(control->options, "-DA=1\n-w\n"));
  ck_assert_str_eq(control->source_name, "n.cu");
  ck_assert_int_eq(control->n_headers, 1);
}
END_TEST

START_TEST(in_order_and_not_ready)
{
  kiln_job_progress state;

  start(NULL, 1);
  control->delay_ms = 30;
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, 4, NULL, NULL));
  ck_kiln_is(kiln_job_image(job, 3, &image), KILN_ENOTREADY);
  ck_kiln_is(kiln_job_wait(job, 0), KILN_ETIMEOUT);
  ck_kiln_is(kiln_job_wait(job, 10), KILN_ETIMEOUT);
  do {
    usleep(1000);
    ck_kiln_ok(kiln_job_state(job, &state));
  } while (state.done == 0);
  ck_kiln_ok(kiln_job_image(job, 0, &image));
  drop_image();
  ck_kiln_ok(kiln_job_wait(job, 60000));
  ck_assert_int_eq(atomic_load(&control->most_running), 1);
}
END_TEST

START_TEST(cancel_stops_what_runs)
{
  seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
  kiln_job_progress state;
  uint64_t begun;

  start(NULL, 2);
  control->delay_ms = 20000;
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, N, look, &s));
  while (atomic_load(&control->running) < 2)
    usleep(1000);
  begun = kiln__clock_ns();
  ck_kiln_ok(kiln_job_cancel(job));
  ck_kiln_ok(kiln_job_cancel(job)); /* Cancelling a job twice is allowed. */
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  ck_assert_uint_lt(kiln__clock_ns() - begun, 5000000000u);
  ck_kiln_ok(kiln_job_state(job, &state));
  ck_assert_uint_eq(state.failed, N);
  ck_assert_int_eq(atomic_load(&s.calls), N);
  for (size_t i = 0; i < N; i++)
    ck_kiln_is(kiln_job_image(job, i, &image), KILN_ECANCELED);
  drop_job();

  /* A cancelled compile stores nothing in the cache. */
  control->delay_ms = 0;
  ck_kiln_ok(kiln_compile(&image, rt, &descs[0], &targets[0]));
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_COMPILER);
}
END_TEST

START_TEST(free_while_running)
{
  kiln_job *jobs[3];

  start(NULL, 2);
  control->delay_ms = 20;
  for (int i = 0; i < 3; i++)
    ck_kiln_ok(kiln_job_start(&jobs[i], rt, descs, targets, N, NULL, NULL));
  for (int i = 2; i >= 0; i--)
    kiln_job_free(jobs[i]);
}
END_TEST

/* A progress callback that compiles a program itself, while the pool has only
 * one compile thread. */
static void compile_more(void *user, const kiln_job_progress *now)
{
  const kiln_program_desc desc = {.source = "__global__ void more() {}"};
  const kiln_target target = {.cc = 80};
  kiln_image *more;

  (void)now;
  ck_kiln_ok(kiln_compile(&more, user, &desc, &target));
  kiln_image_free(more);
}

START_TEST(callback_may_compile)
{
  start(NULL, 1);
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, 3, compile_more, rt));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
}
END_TEST

START_TEST(bad_arguments_and_empty_jobs)
{
  kiln_program_desc half = {.source = "", .n_names = 1};
  kiln_job_progress state;

  start(NULL, 1);
  ck_kiln_is(kiln_job_start(NULL, rt, descs, targets, 1, NULL, NULL),
             KILN_EINVAL);
  job = (kiln_job *)&half;
  ck_kiln_is(kiln_job_start(&job, NULL, descs, targets, 1, NULL, NULL),
             KILN_EINVAL);
  ck_assert_ptr_null(job);
  ck_kiln_is(kiln_job_start(&job, rt, NULL, targets, 1, NULL, NULL),
             KILN_EINVAL);
  ck_kiln_is(kiln_job_start(&job, rt, &half, targets, 1, NULL, NULL),
             KILN_EINVAL);
  ck_kiln_is(kiln_job_wait(NULL, 0), KILN_EINVAL);
  ck_kiln_is(kiln_job_state(NULL, &state), KILN_EINVAL);
  ck_kiln_is(kiln_job_image(NULL, 0, &image), KILN_EINVAL);
  ck_kiln_is(kiln_job_cancel(NULL), KILN_EINVAL);
  kiln_job_free(NULL);

  ck_kiln_ok(kiln_job_start(&job, rt, NULL, NULL, 0, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, 0));
  drop_job();

  /* If one description is invalid, only its own program fails. */
  descs[0].source = NULL;
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, 2, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  ck_kiln_is(kiln_job_image(job, 0, &image), KILN_EINVAL);
  ck_kiln_ok(kiln_job_image(job, 1, &image));
}
END_TEST

START_TEST(not_in_a_forked_child)
{
  int status;
  pid_t pid;

  start(NULL, 1);
  ck_kiln_ok(kiln_job_start(&job, rt, descs, targets, 1, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  drop_job();
  pid = fork();
  if (pid == 0)
    _exit(kiln_job_start(&job, rt, descs, targets, 1, NULL, NULL) ==
                  KILN_EFORKED
              ? 0
              : 1);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(out_of_memory)
{
  bool done = false;

  for (long i = 0; !done; i++) {
    test_allocator a;
    kiln_status st;

    ck_assert_int_lt(i, 3000);
    test_allocator_init(&a);
    start(&a.alloc, 1);
    a.fail_at = a.calls + i;
    st = kiln_job_start(&job, rt, descs, targets, 3, NULL, NULL);
    ck_assert(st == KILN_OK || st == KILN_ENOMEM);
    ck_assert((st == KILN_OK) == (job != NULL));
    if (job != NULL)
      ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
    for (size_t k = 0; job != NULL && k < 3; k++) {
      st = kiln_job_image(job, k, &image);
      ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM || st == KILN_ENONVRTC,
                    "%s", kiln_last_error()->message);
      drop_image();
    }
    done = a.calls <= a.fail_at;
    stop();
    ck_assert_int_eq(a.live, 0);
  }
}
END_TEST

int main(void)
{
  return kiln_test_main("job", 120, setup, teardown,
                        TESTS(all_are_done_and_told,
                              a_second_job_hits_the_cache, descs_are_copied,
                              in_order_and_not_ready, cancel_stops_what_runs,
                              free_while_running, callback_may_compile,
                              bad_arguments_and_empty_jobs,
                              not_in_a_forked_child, out_of_memory));
}
