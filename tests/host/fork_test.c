/* fork_test.c -- tests that in a forked child every call that needs the driver
 * is refused, no call reaches the driver, and freeing objects releases the host
 * memory. */
#include "device_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static kiln_stream *stream;
static kiln_event *event, *other;
static kiln_timeline *timeline;
static kiln_kernel *kernel;
static CUdeviceptr memory;
static void *pinned;

/* The program is not cached, because a child does not use the memory tier: a
 * thread of the parent may have been changing the tier at the fork. */
static void set_up(void)
{
  const kiln_program_desc desc = {.source = SAXPY, .no_cache = true};

  set_up_device();
  ck_kiln_ok(kiln_module_load(&f.module, f.device, &desc));
  kernel = get_kernel(f.module, "empty");
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
  ck_kiln_ok(kiln_event_create(&event, f.device, true));
  ck_kiln_ok(kiln_event_create(&other, f.device, true));
  ck_kiln_ok(kiln_timeline_create(&timeline, f.device));
  ck_kiln_ok(kiln_memory_alloc(&memory, f.device, 64));
  ck_kiln_ok(kiln_host_alloc(&pinned, f.device, 64));
}

static void free_all(void)
{
  kiln_timeline_free(timeline);
  kiln_event_free(event);
  kiln_event_free(other);
  kiln_stream_free(stream);
  kiln_module_free(f.module);
  kiln_device_free(f.device);
  kiln_runtime_free(f.rt);
}

static void finish(void)
{
  ck_kiln_ok(kiln_memory_free(f.device, memory));
  ck_kiln_ok(kiln_host_free(f.device, pinned));
  kiln_timeline_free(timeline);
  kiln_event_free(event);
  kiln_event_free(other);
  kiln_stream_free(stream);
  tear_down();
}

/* Replaces Check's assertions, which do not work in a child: prints a message
 * and exits. */
#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: not so: %s (%s; %s)\n", __FILE__, __LINE__,      \
              #condition, kiln_last_error()->message, f.cuda->violation);      \
      _exit(1);                                                                \
    }                                                                          \
  } while (0)

#define FORKED(call) MUST((call) == KILN_EFORKED)

static void in_child(void (*body)(void))
{
  int status = 0;
  const pid_t child = fork();

  ck_assert_int_ge(child, 0);
  if (child == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(status == 0, "the child ended with status 0x%x",
                (unsigned)status);
}

static int driver_calls(void)
{
  int n = 0;

  for (int i = 0; i < FAKE_CUDA_FUNCTIONS; i++)
    n += f.cuda->calls[i];
  return n;
}

static void visit(void *user, const kiln_span *span)
{
  (void)user;
  (void)span;
}

static void refuse_devices(void)
{
  kiln_driver_info driver;
  kiln_device *device;
  kiln_stream *s;
  kiln_event *e;
  CUcontext context;
  bool capturing;
  float ms;
  int n;

  FORKED(kiln_runtime_driver(f.rt, &driver));
  FORKED(kiln_device_count(f.rt, &n));
  FORKED(kiln_device_open(&device, f.rt, 0, NULL));
  MUST(device == NULL);
  FORKED(kiln_device_context(f.device, &context));
  FORKED(kiln_device_synchronize(f.device));
  FORKED(kiln_device_attribute(f.device, 1, &n));
  FORKED(kiln_stream_create(&s, f.device, NULL));
  FORKED(kiln_stream_wrap(&s, f.device, NULL));
  FORKED(kiln_stream_synchronize(stream));
  FORKED(kiln_stream_query(stream));
  FORKED(kiln_stream_wait(stream, event));
  FORKED(kiln_stream_capturing(stream, &capturing));
  FORKED(kiln_event_create(&e, f.device, true));
  FORKED(kiln_event_record(event, stream));
  FORKED(kiln_event_synchronize(event));
  FORKED(kiln_event_query(event));
  FORKED(kiln_event_elapsed(&ms, event, other));
}

static void refuse_memory(void)
{
  char bytes[4] = {0};
  CUdeviceptr p;
  uint64_t unused;
  void *q;

  FORKED(kiln_memory_alloc(&p, f.device, 4));
  FORKED(kiln_memory_free(f.device, memory));
  FORKED(kiln_memory_alloc_async(&p, stream, 4));
  FORKED(kiln_memory_free_async(stream, memory));
  FORKED(kiln_memory_info(f.device, &unused, NULL));
  FORKED(kiln_host_alloc(&q, f.device, 4));
  FORKED(kiln_host_free(f.device, pinned));
  FORKED(kiln_host_register(f.device, bytes, 4));
  FORKED(kiln_host_unregister(f.device, bytes));
  FORKED(kiln_copy_to_device(f.device, memory, bytes, 4));
  FORKED(kiln_copy_to_host(f.device, bytes, memory, 4));
  FORKED(kiln_copy_on_device(f.device, memory, memory, 4));
  FORKED(kiln_copy_peer(f.device, memory, f.device, memory, 4));
  FORKED(kiln_copy_to_device_async(stream, memory, bytes, 4));
  FORKED(kiln_copy_to_host_async(stream, bytes, memory, 4));
  FORKED(kiln_copy_on_device_async(stream, memory, memory, 4));
  FORKED(kiln_copy_peer_async(stream, f.device, memory, f.device, memory, 4));
  FORKED(kiln_fill(f.device, memory, 0, 4, 1));
  FORKED(kiln_fill_async(stream, memory, 0, 4, 1));
}

static void refuse_programs(void)
{
  const kiln_program_desc desc = {.source = SAXPY};
  const kiln_launch_config one = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  const kiln_launch_config none = {.block = {1, 1, 1}};
  kiln_timeline *t;
  kiln_module *m;
  kiln_kernel *k;
  char byte = 0;
  int n;

  FORKED(kiln_module_load(&m, f.device, &desc));
  MUST(m == NULL);
  FORKED(kiln_module_from_image(&m, f.device, kiln_module_image(f.module)));
  FORKED(kiln_module_wrap(&m, f.device, kiln_module_handle(f.module), NULL));
  FORKED(kiln_module_kernel(&k, f.module, "empty"));
  FORKED(kiln_module_symbol(f.module, "counter", NULL, NULL));
  FORKED(kiln_symbol_write(f.module, "counter", 0, &byte, 1));
  FORKED(kiln_symbol_read(f.module, "counter", 0, &byte, 1));
  FORKED(kiln_launch(kernel, &one, NULL, 0));
  FORKED(kiln_launch(kernel, &none, NULL, 0));
  FORKED(kiln_kernel_occupancy(kernel, 32, 0, &n));
  FORKED(kiln_kernel_suggest(kernel, 0, 0, &n, NULL));
  FORKED(kiln_timeline_create(&t, f.device));
  FORKED(kiln_timeline_begin(timeline, stream, "x"));
  FORKED(kiln_timeline_end(timeline, stream));
  FORKED(kiln_timeline_host_begin(timeline, "x"));
  FORKED(kiln_timeline_host_end(timeline));
  FORKED(kiln_timeline_each(timeline, visit, NULL));
  FORKED(kiln_timeline_write(timeline, "/dev/null"));
}

static void refuse_all(void)
{
  const int calls = driver_calls();

  refuse_devices();
  refuse_memory();
  refuse_programs();
  MUST(strstr(kiln_last_error()->hint, "after fork") != NULL);
  MUST(driver_calls() == calls);
  MUST(f.cuda->violations == 0);
}

START_TEST(every_call_refuses)
{
  in_child(refuse_all);
}
END_TEST

static void free_in_child(void)
{
  const int calls = driver_calls();

  free_all();
  MUST(driver_calls() == calls);
  MUST(f.cuda->violations == 0);
  MUST(f.alloc.live == 0);
}

START_TEST(freeing_gives_back_host_memory_only)
{
  in_child(free_in_child);
  check_calm();
  /* The parent process can still use the device. */
  ck_kiln_ok(kiln_device_synchronize(f.device));
}
END_TEST

static void look_in_child(void)
{
  kiln_device_info info;
  kiln_kernel_info k;

  MUST(kiln_device_describe(f.device, &info) == KILN_OK);
  MUST(kiln_device_traits(f.device)->cc == 90);
  MUST(kiln_kernel_describe(kernel, &k) == KILN_OK);
  MUST(kiln_stream_device(stream) == f.device);
}

START_TEST(what_needs_no_driver_still_answers)
{
  in_child(look_in_child);
}
END_TEST

/* ---- A runtime that never called the driver ------------------------------ */

static void use_untouched(void)
{
  int n;

  FORKED(kiln_device_count(f.rt, &n));
  kiln_runtime_free(f.rt);
  MUST(f.alloc.live == 0);
}

static void own_runtime(void)
{
  kiln_runtime *parents = f.rt;

  open_runtime();
  MUST(kiln_device_open(&f.device, f.rt, 0, NULL) == KILN_OK);
  f.module = load_source(f.device, SAXPY);
  get_kernel(f.module, "saxpy");
  kiln_module_free(f.module);
  kiln_device_free(f.device);
  kiln_runtime_free(f.rt);
  kiln_runtime_free(parents);
  MUST(fake_cuda_live(f.cuda) == 0);
  MUST(f.alloc.live == 0);
}

START_TEST(forked_before_the_driver)
{
  in_child(use_untouched);
  /* A runtime that is created after the fork works in the child. */
  in_child(own_runtime);
  ck_kiln_ok(kiln_device_open(&f.device, f.rt, 0, NULL));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("fork");

  kiln_test_case(s, "runtime", 60, set_up_runtime, tear_down,
                 TESTS(forked_before_the_driver));
  kiln_test_case(s, "everything", 60, set_up, finish,
                 TESTS(every_call_refuses, freeing_gives_back_host_memory_only,
                       what_needs_no_driver_still_answers));
  return kiln_test_run(s);
}
