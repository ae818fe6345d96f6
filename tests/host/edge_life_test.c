/* edge_life_test.c -- tests processes that end early or run for a long time, on
 * the fake driver and the fake NVRTC. The cases are fork, exit, signals,
 * callbacks, ten thousand loads, and lack of memory anywhere in the public
 * interface. */
#include "device_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const kiln_target sm_90 = {.cc = 90};
static const kiln_launch_config one = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

static int exit_status(pid_t pid)
{
  int status;

  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* ---- Fork ---------------------------------------------------------------- */

typedef struct belongings {
  kiln_stream *stream;
  kiln_event *from, *to;
  kiln_timeline *timeline;
  kiln_kernel *kernel;
  CUdeviceptr memory;
  void *pinned;
} belongings;

static void acquire(belongings *b)
{
  ck_kiln_ok(kiln_stream_create(&b->stream, f.device, NULL));
  ck_kiln_ok(kiln_event_create(&b->from, f.device, true));
  ck_kiln_ok(kiln_event_create(&b->to, f.device, true));
  ck_kiln_ok(kiln_timeline_create(&b->timeline, f.device));
  ck_kiln_ok(kiln_memory_alloc(&b->memory, f.device, 64));
  ck_kiln_ok(kiln_host_alloc(&b->pinned, f.device, 64));
  b->kernel = get_kernel(f.module, "empty");
}

static void release(belongings *b)
{
  kiln_timeline_free(b->timeline);
  kiln_event_free(b->from);
  kiln_event_free(b->to);
  kiln_stream_free(b->stream);
}

/* Makes every call that needs the driver. Returns the number of calls that were
 * not refused. In a forked child it must be 0. */
static int count_willing(belongings *b)
{
  static const kiln_program_desc saxpy = {.source = SAXPY};
  char bytes[64] = {0};
  kiln_driver_info driver;
  kiln_device *device;
  kiln_stream *stream;
  kiln_event *event;
  kiln_timeline *timeline;
  kiln_module *module;
  CUdeviceptr p;
  CUcontext context;
  void *host;
  float ms;
  int n, willing = 0;

#define REFUSES(call)                                                          \
  do {                                                                         \
    if ((call) != KILN_EFORKED) {                                              \
      printf("in the child: %s\n", #call);                                     \
      willing++;                                                               \
    }                                                                          \
  } while (0)
  REFUSES(kiln_runtime_driver(f.rt, &driver));
  REFUSES(kiln_device_count(f.rt, &n));
  REFUSES(kiln_device_open(&device, f.rt, 0, NULL));
  REFUSES(kiln_device_context(f.device, &context));
  REFUSES(kiln_device_synchronize(f.device));
  REFUSES(kiln_stream_create(&stream, f.device, NULL));
  REFUSES(kiln_stream_synchronize(b->stream));
  REFUSES(kiln_stream_query(b->stream));
  REFUSES(kiln_event_create(&event, f.device, true));
  REFUSES(kiln_event_record(b->from, b->stream));
  REFUSES(kiln_event_synchronize(b->to));
  REFUSES(kiln_event_elapsed(&ms, b->from, b->to));
  REFUSES(kiln_memory_alloc(&p, f.device, 64));
  REFUSES(kiln_memory_free(f.device, b->memory));
  REFUSES(kiln_memory_alloc_async(&p, b->stream, 64));
  REFUSES(kiln_host_alloc(&host, f.device, 64));
  REFUSES(kiln_host_free(f.device, b->pinned));
  REFUSES(kiln_copy_to_device(f.device, b->memory, bytes, sizeof bytes));
  REFUSES(kiln_copy_to_host(f.device, bytes, b->memory, sizeof bytes));
  REFUSES(kiln_copy_to_host_async(b->stream, bytes, b->memory, 8));
  REFUSES(kiln_fill(f.device, b->memory, 0, 4, 4));
  REFUSES(kiln_module_load(&module, f.device, &saxpy));
  REFUSES(kiln_symbol_read(f.module, "counter", 0, bytes, 4));
  REFUSES(kiln_launch(b->kernel, &one, NULL, 0));
  REFUSES(kiln_timeline_create(&timeline, f.device));
#undef REFUSES
  return willing;
}

START_TEST(after_a_fork_the_driver_is_left_alone)
{
  belongings b;
  pid_t pid;

  acquire(&b);
  pid = fork();
  if (pid == 0) {
    int bad = count_willing(&b);

    release(&b); /* Freeing the objects in the child must not crash. */
    kiln_module_free(f.module);
    kiln_device_free(f.device);
    kiln_runtime_free(f.rt);
    bad += f.cuda->violations;
    _exit(bad > 100 ? 100 : bad);
  }
  ck_assert_int_eq(exit_status(pid), 0);
  /* The objects still work in the parent process. */
  ck_kiln_ok(kiln_launch(b.kernel, &one, NULL, 0));
  ck_kiln_ok(kiln_memory_free(f.device, b.memory));
  ck_kiln_ok(kiln_host_free(f.device, b.pinned));
  release(&b);
}
END_TEST

/* In a child that was forked before CUDA was initialised, the parent's runtime
 * refuses every call, while a new runtime works fully. */
START_TEST(a_child_may_start_afresh)
{
  const pid_t pid = fork();

  if (pid == 0) {
    const kiln_launch_config config = one;
    kiln_module *module;
    int n, bad = kiln_device_count(f.rt, &n) != KILN_EFORKED;

    open_runtime();
    ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
    module = load_source(f.device, SAXPY);
    ck_kiln_ok(kiln_launch(get_kernel(module, "empty"), &config, NULL, 0));
    ck_kiln_ok(kiln_device_synchronize(f.device));
    kiln_module_free(module);
    kiln_device_free(f.device);
    kiln_runtime_free(f.rt);
    _exit(bad + f.cuda->violations);
  }
  ck_assert_int_eq(exit_status(pid), 0);
}
END_TEST

/* ---- Process exit -------------------------------------------------------- */

/* If exit() is called while objects exist and compiles are running, the process
 * ends normally. */
static void leave_everything(int compiles)
{
  static kiln_program_desc descs[8];
  static kiln_target targets[8];
  static char sources[8][64];
  static kiln_job *job;

  kiln_runtime_free(f.rt);
  open_runtime();
  f.nvrtc->delay_ms = 100;
  ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
  f.module = load_source(f.device, SAXPY);
  ck_kiln_ok(kiln_launch(get_kernel(f.module, "empty"), &one, NULL, 0));
  for (int i = 0; i < compiles; i++) {
    snprintf(sources[i], sizeof sources[i], "__global__ void k%d() {}\n", i);
    descs[i].source = sources[i];
    targets[i] = sm_90;
  }
  if (compiles > 0)
    ck_kiln_ok(kiln_job_start(&job, f.rt, descs, targets, (size_t)compiles,
                              NULL, NULL));
  exit(7);
}

START_TEST(a_process_may_end_at_any_time)
{
  const pid_t pid = fork();

  if (pid == 0)
    leave_everything(_i);
  ck_assert_int_eq(exit_status(pid), 7);
}
END_TEST

/* ---- Signals ------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
  (void)number;
  alarms++;
}

/* A signal arrives every half millisecond, and the system calls that it
 * interrupts fail with EINTR. */
START_TEST(signals_interrupt_nothing)
{
  const struct sigaction action = {.sa_handler = count_alarm};
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
  kiln_cache_stats stats;
  kiln_runtime *rt = f.rt;

  f.nvrtc->delay_ms = 2;
  ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
  ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
  for (int i = 0; i < 100; i++) {
    char source[64];

    snprintf(source, sizeof source,
             "extern \"C\" __global__ void empty() {} //%d\n", i);
    kiln_module_free(load_source(f.device, source));
  }
  ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
  ck_kiln_ok(kiln_cache_counters(rt, &stats));
  ck_assert_uint_eq(stats.published, 100);
  ck_assert_uint_eq(stats.write_failures + stats.lock_failures, 0);
  ck_assert_int_gt(alarms, 50);
}
END_TEST

/* ---- Callbacks ----------------------------------------------------------- */

typedef struct listener {
  kiln_runtime *rt;
  atomic_int lines, depth, failures;
} listener;

/* A log callback that calls the runtime that is writing the log message. */
static void listen(void *user, kiln_log_level level, const char *text)
{
  const kiln_program_desc desc = {
      .source = "extern \"C\" __global__ void from_the_log() {}\n"};
  listener *l = user;
  kiln_cache_stats stats;
  kiln_image *image;
  int n;

  ck_assert_int_le((int)level, KILN_LOG_DEBUG);
  ck_assert_ptr_null(strchr(text, '\n'));
  atomic_fetch_add(&l->lines, 1);
  if (l->rt == NULL || atomic_fetch_add(&l->depth, 1) > 3) {
    atomic_fetch_sub(&l->depth, l->rt != NULL);
    return;
  }
  if (kiln_cache_counters(l->rt, &stats) != KILN_OK ||
      kiln_device_count(l->rt, &n) != KILN_OK ||
      kiln_compile(&image, l->rt, &desc, &sm_90) != KILN_OK)
    atomic_fetch_add(&l->failures, 1);
  else
    kiln_image_free(image);
  atomic_fetch_sub(&l->depth, 1);
}

START_TEST(the_log_may_call_kiln)
{
  listener l = {NULL, 0, 0, 0};
  const kiln_runtime_opts opts = {.log = listen,
                                  .log_user = &l,
                                  .log_level = KILN_LOG_DEBUG,
                                  .driver_path = FAKE_DRIVER,
                                  .nvrtc_path = FAKE_NVRTC,
                                  .cache_dir = f.dir,
                                  .cache_bytes = 3000,
                                  .compile_threads = 1,
                                  .ignore_env = true};
  kiln_device *device;
  uint64_t removed;

  ck_kiln_ok(kiln_runtime_create(&l.rt, &opts));
  ck_kiln_ok(kiln_device_open(&device, l.rt, 0, NULL));
  /* These fetches evict entries, which causes more log messages. */
  for (int i = 0; i < 5; i++) {
    char source[64];

    snprintf(source, sizeof source, "__global__ void k%d() {}\n", i);
    kiln_module_free(load_source(device, source));
  }
  /* The driver refuses the image, so the image is rejected and compiled
   * again. */
  f.cuda->cubin_rc = CUDA_ERROR_INVALID_IMAGE;
  kiln_module_free(load_source(device, "__global__ void k0() {}\n"));
  f.cuda->cubin_rc = 0;
  ck_kiln_ok(kiln_cache_clear(l.rt, &removed));
  kiln_device_free(device);
  kiln_runtime_free(l.rt);
  ck_assert_int_gt(atomic_load(&l.lines), 0);
  ck_assert_int_eq(atomic_load(&l.failures), 0);
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

static bool each_item(void *user, const kiln_cache_item *item)
{
  (void)user;
  return item->good;
}

static void each_span(void *user, const kiln_span *span)
{
  (void)user;
  (void)span;
}

static void each_field(void *user, const char *field, const char *wanted,
                       const char *found)
{
  (void)user;
  (void)field;
  (void)wanted;
  (void)found;
}

/* Returns true if the call succeeded. The only failure allowed is a lack of
 * memory. */
static bool fine(kiln_status st, const char *call)
{
  ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM, "%s: %s: %s", call,
                kiln_status_name(st), kiln_last_error()->message);
  if (st == KILN_ENOMEM)
    ck_assert_str_ne(kiln_last_error()->message, "");
  return st == KILN_OK;
}

#define FINE(call) fine((call), #call)
/* Makes a call that creates an object. After success, the pointer is not NULL;
 * after a failure, it is NULL. */
#define MAKES(object, call)                                                    \
  do {                                                                         \
    const bool ok_ = FINE(call);                                               \
    ck_assert_int_eq((object) != NULL, ok_);                                   \
  } while (0)

static void live_with_module(kiln_device *device, kiln_module *module)
{
  kiln_kernel *kernel = NULL;
  kiln_module *wrapped = NULL;
  CUdeviceptr address;
  int zero = 0;

  MAKES(kernel, kiln_module_kernel(&kernel, module, "empty"));
  if (kernel != NULL)
    FINE(kiln_launch(kernel, &one, NULL, 0));
  FINE(kiln_module_symbol(module, "counter", &address, NULL));
  FINE(kiln_symbol_write(module, "counter", 0, &zero, sizeof zero));
  MAKES(wrapped,
        kiln_module_wrap(&wrapped, device, kiln_module_handle(module),
                         kiln_image_ptx(kiln_module_image(module), NULL)));
  if (wrapped != NULL)
    FINE(kiln_module_kernel(&kernel, wrapped, "saxpy"));
  kiln_module_free(wrapped);
}

static void live_with_streams(kiln_device *device, const char *trace)
{
  kiln_stream *stream = NULL, *wrapped = NULL;
  kiln_event *event = NULL;
  kiln_timeline *timeline = NULL;
  CUdeviceptr p;

  MAKES(stream, kiln_stream_create(&stream, device, NULL));
  MAKES(wrapped, kiln_stream_wrap(&wrapped, device, NULL));
  MAKES(event, kiln_event_create(&event, device, true));
  MAKES(timeline, kiln_timeline_create(&timeline, device));
  if (timeline != NULL && stream != NULL) {
    FINE(kiln_stream_attach(stream, timeline));
    if (FINE(kiln_timeline_begin(timeline, stream, "span")))
      FINE(kiln_timeline_end(timeline, stream));
    if (FINE(kiln_timeline_host_begin(timeline, "host")))
      FINE(kiln_timeline_host_end(timeline));
    if (FINE(kiln_memory_alloc_async(&p, stream, 256)))
      FINE(kiln_memory_free_async(stream, p));
    FINE(kiln_timeline_each(timeline, each_span, NULL));
    FINE(kiln_timeline_write(timeline, trace));
    FINE(kiln_stream_attach(stream, NULL));
  }
  kiln_timeline_free(timeline);
  kiln_event_free(event);
  kiln_stream_free(wrapped);
  kiln_stream_free(stream);
}

static void live_with_device(kiln_runtime *rt, const char *trace)
{
  const kiln_program_desc desc = {.source = SAXPY};
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  CUdeviceptr p;
  void *host = NULL;

  MAKES(device, kiln_device_open(&device, rt, 0, NULL));
  if (device == NULL)
    return;
  MAKES(module, kiln_module_load(&module, device, &desc));
  if (module != NULL)
    live_with_module(device, module);
  kiln_module_free(module);
  live_with_streams(device, trace);
  if (FINE(kiln_memory_alloc(&p, device, 100)))
    FINE(kiln_memory_free(device, p));
  MAKES(host, kiln_host_alloc(&host, device, 100));
  if (host != NULL)
    FINE(kiln_host_free(device, host));
  kiln_device_free(device);
}

static void live_with_cache(kiln_runtime *rt, const char *pack)
{
  const kiln_program_desc desc = {.source = SAXPY},
                          other = {.source = "int x;"};
  kiln_image *image = NULL;
  kiln_cache_info info;
  kiln_job *job = NULL;
  uint64_t removed;
  bool hit;

  MAKES(image, kiln_compile(&image, rt, &desc, &sm_90));
  if (image != NULL)
    FINE(kiln_pack_write(rt, pack, &image, 1));
  {
    const kiln_status st = kiln_pack_cache(rt, pack, NULL);

    /* Without memory, no entry could be stored in the cache. */
    if (st != KILN_ENOTFOUND)
      FINE(st);
  }
  kiln_image_free(image);
  MAKES(job, kiln_job_start(&job, rt, &other, &sm_90, 1, NULL, NULL));
  if (job != NULL) {
    FINE(kiln_job_wait(job, UINT64_MAX));
    MAKES(image, kiln_job_image(job, 0, &image));
    kiln_image_free(image);
  }
  kiln_job_free(job);
  hit = false;
  {
    const kiln_status st =
        kiln_cache_why(rt, &other, &sm_90, &hit, each_field, NULL);

    /* Without memory, no entry could be stored in the cache. */
    if (st != KILN_ENOTFOUND)
      fine(st, "kiln_cache_why");
  }
  FINE(kiln_cache_describe(rt, &info));
  FINE(kiln_cache_each(rt, true, each_item, NULL));
  FINE(kiln_cache_repair(rt, &removed));
  FINE(kiln_cache_trim(rt, 1000, &removed));
  FINE(kiln_cache_clear(rt, &removed));
}

/* Makes each allocation fail in turn. Case 0 fails only this allocation, and
 * case 1 also fails all later allocations. */
START_TEST(wherever_memory_runs_out)
{
  char trace[300], pack[300], cache[300];
  const kiln_runtime_opts base = {.driver_path = FAKE_DRIVER,
                                  .nvrtc_path = FAKE_NVRTC,
                                  .cache_dir = cache,
                                  .compile_threads = 2,
                                  .ignore_env = true};
  bool done = false;
  long at = 0;

  snprintf(trace, sizeof trace, "%s/trace.json", f.dir);
  snprintf(pack, sizeof pack, "%s/all.pack", f.dir);
  snprintf(cache, sizeof cache, "%s/cache", f.dir);
  for (; !done; at++) {
    kiln_runtime_opts opts = base;
    kiln_runtime *rt = NULL;
    test_allocator a;

    ck_assert_int_lt(at, 5000);
    test_allocator_init(&a);
    a.fail_at = at;
    a.fail_after = _i == 1;
    opts.allocator = a.alloc;
    MAKES(rt, kiln_runtime_create(&rt, &opts));
    if (rt != NULL) {
      live_with_device(rt, trace);
      live_with_cache(rt, pack);
      kiln_runtime_free(rt);
    }
    done = a.calls <= at;
    ck_assert_msg(a.live == 0, "failing allocation %ld leaks", at);
    ck_assert_int_eq(fake_cuda_live(f.cuda), 0);
    ck_assert_int_eq(f.nvrtc->programs, 0);
    ck_assert_int_eq(f.cuda->violations, 0);
  }
  printf("each of %ld allocations failed in turn%s\n", at - 1,
         _i == 1 ? ", with all later ones" : "");
  ck_assert_int_gt(at, 50);
}
END_TEST

/* ---- Ten thousand loads, a thousand runtimes ---------------------------- */

START_TEST(ten_thousand_loads)
{
  kiln_program_desc desc = {.source = SAXPY, .no_cache = _i == 1};
  long live = 0;
  int held = 0;

  for (int i = 0; i < 10000; i++) {
    kiln_module *module;

    ck_kiln_ok(kiln_module_load(&module, f.device, &desc));
    ck_kiln_ok(kiln_launch(get_kernel(module, "empty"), &one, NULL, 0));
    kiln_module_free(module);
    if (i == 10) {
      live = f.alloc.live;
      held = fake_cuda_live(f.cuda);
    }
  }
  ck_assert_int_eq(f.alloc.live, live);
  ck_assert_int_eq(fake_cuda_live(f.cuda), held);
  ck_assert_int_eq(f.nvrtc->programs, 0);
  ck_assert_int_eq(f.nvrtc->compiles, _i == 1 ? 10000 : 1);
}
END_TEST

/* A freed runtime leaves no memory and no file descriptor behind. */
START_TEST(a_thousand_runtimes)
{
  const int probe = dup(0);

  for (int i = 0; i < 1000; i++) {
    kiln_module_free(f.module);
    kiln_device_free(f.device);
    kiln_runtime_free(f.rt);
    ck_assert_int_eq(f.alloc.live, 0);
    open_runtime();
    ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
    f.module = load_source(f.device, SAXPY);
  }
  kiln_module_free(f.module);
  kiln_device_free(f.device);
  kiln_runtime_free(f.rt);
  f.module = NULL;
  f.device = NULL;
  f.rt = NULL;
  {
    const int again = dup(0);

    ck_assert_int_le(again, probe + 1);
    close(again);
  }
  close(probe);
}
END_TEST

/* ---- Loaded modules do not depend on the cache --------------------------- */

START_TEST(a_module_survives_its_cache)
{
  kiln_kernel *kernel = get_kernel(f.module, "empty");
  const kiln_image *image = kiln_module_image(f.module);
  kiln_module *second;
  kiln_runtime *other;
  uint64_t removed;
  size_t size;

  /* Another runtime empties the cache folder, as another process would. */
  ck_kiln_ok(kiln_runtime_create(
      &other, &(kiln_runtime_opts){.cache_dir = f.dir, .ignore_env = true}));
  ck_kiln_ok(kiln_cache_clear(other, &removed));
  ck_assert_uint_ge(removed, 1);
  kiln_runtime_free(other);
  /* The memory tier of this runtime's cache is emptied too. */
  ck_kiln_ok(kiln_cache_clear(f.rt, &removed));
  test_dir_remove(f.dir);

  ck_kiln_ok(kiln_launch(kernel, &one, NULL, 0));
  ck_assert_uint_eq(strlen(kiln_image_ptx(image, &size)), size);
  ck_kiln_ok(kiln_module_from_image(&second, f.device, image));
  ck_kiln_ok(kiln_launch(get_kernel(second, "empty"), &one, NULL, 0));
  kiln_module_free(second);
  second = load_source(f.device, SAXPY);
  ck_assert_int_eq(kiln_image_origin(kiln_module_image(second)),
                   KILN_FROM_COMPILER);
  kiln_module_free(second);
}
END_TEST

/* A graph keeps working after the cache has evicted its kernel's image. */
START_TEST(a_graph_is_replayed_after_eviction)
{
  kiln_launch_config config = one;
  kiln_stream *stream;
  kiln__scope scope;
  CUgraphExec exec;
  CUgraph graph;
  uint64_t removed;
  int before;

  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  config.stream = stream;
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                      CU_STREAM_CAPTURE_MODE_GLOBAL),
      0);
  ck_kiln_ok(kiln_launch(get_kernel(f.module, "empty"), &config, NULL, 0));
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphInstantiateWithFlags(&exec, graph, 0), 0);
  ck_kiln_ok(kiln_cache_clear(f.rt, &removed));
  before = f.cuda->launches;
  ck_assert_int_eq(f.rt->driver.graphLaunch(exec, kiln_stream_handle(stream)),
                   0);
  ck_assert_int_eq(f.cuda->launches, before + 1);
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_assert_int_eq(f.rt->driver.graphExecDestroy(exec), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  kiln_stream_free(stream);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("edge_life");
  TCase *bare, *device;

  bare = kiln_test_case(s, "runtime", 120, set_up_runtime, tear_down,
                        TESTS(a_child_may_start_afresh, the_log_may_call_kiln));
  tcase_add_loop_test(bare, a_process_may_end_at_any_time, 0, 3);
  tcase_add_loop_test(bare, wherever_memory_runs_out, 0, 2);
  device = kiln_test_case(s, "device", 120, set_up_device, tear_down,
                          TESTS(signals_interrupt_nothing));
  tcase_add_loop_test(device, ten_thousand_loads, 0, 2);
  kiln_test_case(s, "module", 120, set_up_module, tear_down,
                 TESTS(after_a_fork_the_driver_is_left_alone,
                       a_thousand_runtimes, a_module_survives_its_cache,
                       a_graph_is_replayed_after_eviction));
  return kiln_test_run(s);
}
