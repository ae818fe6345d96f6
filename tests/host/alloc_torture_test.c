/* alloc_torture_test.c -- makes each memory allocation fail in turn, over the
 * whole public interface. No call may crash or leak memory, and each call must
 * either succeed or report a failure. */
#include "device_fixture.h"

#include <unistd.h>

/* A function that tests one area of the interface while allocations fail. It
 * wraps every call in TRY, which ends the test of the area at the first
 * reported failure. */
typedef void area_fn(void);

/* status of the failure that ended the area, or KILN_OK */
static kiln_status last;

static bool went_well(kiln_status st, const char *call)
{
  last = st;
  ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM, "%s: %s: %s", call,
                kiln_status_name(st), kiln_last_error()->message);
  if (st != KILN_OK)
    ck_assert_int_eq(kiln_last_error()->status, KILN_ENOMEM);
  return st == KILN_OK;
}

#define TRY(call)                                                              \
  do {                                                                         \
    if (!went_well(call, #call))                                               \
      goto done;                                                               \
  } while (0)

/* For calls with an out parameter `T **out`: *out must be NULL after a failure
 * and not NULL after success. */
#define TRY_OUT(out, call)                                                     \
  do {                                                                         \
    const bool ok_ = went_well(call, #call);                                   \
                                                                               \
    ck_assert_msg(((out) != NULL) == ok_, "%s: out does not fit the status",   \
                  #call);                                                      \
    if (!ok_)                                                                  \
      goto done;                                                               \
  } while (0)

static char pack_path[300];

static void make_runtime(void)
{
  const char *const dirs[] = {f.dir};
  const char *const packs[] = {pack_path};
  const kiln_runtime_opts opts = {.allocator = f.alloc.alloc,
                                  .driver_path = FAKE_DRIVER,
                                  .nvrtc_path = FAKE_NVRTC,
                                  .nvrtc_dirs = dirs,
                                  .n_nvrtc_dirs = 1,
                                  .cache_dir = f.dir,
                                  .packs = packs,
                                  .n_packs = access(pack_path, R_OK) == 0,
                                  .compile_threads = 2,
                                  .ignore_env = true};

  TRY_OUT(f.rt, kiln_runtime_create(&f.rt, &opts));
done:
  return;
}

static void step(void *user, const kiln_trail_step *s)
{
  (void)user;
  (void)s;
}

static void runtime_area(void)
{
  kiln_nvrtc_info infos[4];
  kiln_driver_info driver;
  size_t n;

  kiln_runtime_free(f.rt);
  f.rt = NULL;
  make_runtime();
  if (f.rt == NULL)
    return;
  TRY(kiln_runtime_driver(f.rt, &driver));
  TRY(kiln_runtime_nvrtc(f.rt, infos, 4, &n));
  TRY(kiln_runtime_trail(f.rt, step, NULL));
done:
  return;
}

static const char source[] =
    "#include \"own.h\"\n"
    "template <class T> __global__ void scale(T *x) {}\n"
    "extern \"C\" __global__ void empty() {}\n"
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,"
    " unsigned n) {}\n";
static const kiln_header headers[] = {{"own.h", "#define OWN 1\n"}};
static const char *const defines[] = {"A=1", "B"};
static const char *const traits[] = {"KILN_HAS_SHFL=0"};
static const char *const names[] = {"scale<float>"};
static const char *const options[] = {"-I", "/nowhere"};

static kiln_program_desc whole_desc(void)
{
  return (kiln_program_desc){.source = source,
                             .name = "torture.cu",
                             .headers = headers,
                             .n_headers = 1,
                             .defines = defines,
                             .n_defines = 2,
                             .traits = traits,
                             .n_traits = 1,
                             .names = names,
                             .n_names = 1,
                             .options = options,
                             .n_options = 2,
                             .lineinfo = true};
}

static void compile_area(void)
{
  const kiln_program_desc desc = whole_desc();
  const kiln_target target = {.cc = 90};
  kiln_image *image = NULL, *again = NULL;
  kiln_resources r;
  const char *hash;

  TRY_OUT(image, kiln_compile(&image, f.rt, &desc, &target));
  TRY_OUT(again, kiln_compile(&again, f.rt, &desc, &target));
  for (size_t i = 0; i < kiln_image_kernels(image); i++)
    TRY(kiln_image_resources(image, i, &r));
  kiln_image_key(image, &hash);
  kiln_image_lowered(image, "scale<float>");
done:
  kiln_image_free(image);
  kiln_image_free(again);
}

static void job_area(void)
{
  const kiln_program_desc desc[2] = {whole_desc(), {.source = SAXPY}};
  const kiln_target target[2] = {{.cc = 90}, {.cc = 80}};
  kiln_image *image = NULL;
  kiln_job_progress progress;
  kiln_job *job = NULL;

  TRY_OUT(job, kiln_job_start(&job, f.rt, desc, target, 2, NULL, NULL));
  TRY(kiln_job_wait(job, UINT64_MAX));
  TRY(kiln_job_state(job, &progress));
  TRY(kiln_job_cancel(job));
  TRY_OUT(image, kiln_job_image(job, 0, &image));
  kiln_image_free(image);
  image = NULL;
  TRY_OUT(image, kiln_job_image(job, 1, &image));
done:
  kiln_image_free(image);
  kiln_job_free(job);
}

static bool each(void *user, const kiln_cache_item *item)
{
  (void)user;
  (void)item;
  return true;
}

static void report(void *user, const char *field, const char *wanted,
                   const char *found)
{
  (void)user;
  (void)field;
  (void)wanted;
  (void)found;
}

static void cache_area(void)
{
  const kiln_target target = {.cc = 90};
  kiln_program_desc desc = whole_desc();
  kiln_image *image = NULL;
  kiln_cache_info info;
  kiln_cache_stats stats;
  uint64_t removed;
  bool hit;

  TRY_OUT(image, kiln_compile(&image, f.rt, &desc, &target));
  TRY(kiln_cache_counters(f.rt, &stats));
  TRY(kiln_cache_describe(f.rt, &info));
  TRY(kiln_cache_each(f.rt, true, each, NULL));
  desc.fast_math = true;
  last = kiln_cache_why(f.rt, &desc, &target, &hit, report, NULL);
  /* If memory ran out while the entry was stored, the entry is not found. */
  if (last != KILN_ENOTFOUND)
    TRY(last);
  TRY(kiln_pack_write(f.rt, pack_path, &image, 1));
  last = kiln_pack_cache(f.rt, pack_path, NULL);
  if (last != KILN_ENOTFOUND)
    TRY(last);
  TRY(kiln_cache_repair(f.rt, &removed));
  TRY(kiln_cache_trim(f.rt, 0, &removed));
  TRY(kiln_cache_clear(f.rt, &removed));
done:
  kiln_image_free(image);
}

static void pack_area(void)
{
  const kiln_program_desc desc = whole_desc();
  const kiln_target target = {.cc = 90};
  kiln_image *image = NULL;

  kiln_runtime_free(f.rt);
  f.rt = NULL;
  make_runtime();
  if (f.rt == NULL)
    return;
  TRY_OUT(image, kiln_compile(&image, f.rt, &desc, &target));
done:
  kiln_image_free(image);
}

static void module_area(void)
{
  const kiln_launch_config one = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  const kiln_program_desc desc = whole_desc();
  kiln_device *device = NULL;
  kiln_module *module = NULL, *given = NULL, *wrapped = NULL;
  kiln_kernel *kernel = NULL;
  int zero = 0;

  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, NULL));
  TRY_OUT(module, kiln_module_load(&module, device, &desc));
  TRY_OUT(kernel, kiln_module_kernel(&kernel, module, "scale<float>"));
  TRY_OUT(kernel, kiln_module_kernel(&kernel, module, "empty"));
  TRY(kiln_launch(kernel, &one, NULL, 0));
  TRY(kiln_symbol_write(module, "counter", 0, &zero, sizeof zero));
  TRY_OUT(given,
          kiln_module_from_image(&given, device, kiln_module_image(module)));
  TRY_OUT(wrapped,
          kiln_module_wrap(&wrapped, device, kiln_module_handle(module),
                           kiln_image_ptx(kiln_module_image(module), NULL)));
  TRY_OUT(kernel, kiln_module_kernel(&kernel, wrapped, "saxpy"));
done:
  kiln_module_free(wrapped);
  kiln_module_free(given);
  kiln_module_free(module);
  kiln_device_free(device);
}

/* Tests every fallback of a module load: the driver refuses the image, then
 * refuses the recompiled image, and finally loads the PTX. */
static void refused_area(void)
{
  const kiln_program_desc desc = {.source = SAXPY};
  kiln_device *device = NULL;
  kiln_module *module = NULL;

  f.cuda->cubin_rc = 0;
  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, NULL));
  TRY_OUT(module, kiln_module_load(&module, device, &desc));
  kiln_module_free(module);
  module = NULL;
  f.cuda->cubin_rc = CUDA_ERROR_NO_BINARY_FOR_GPU;
  TRY_OUT(module, kiln_module_load(&module, device, &desc));
done:
  f.cuda->cubin_rc = 0;
  kiln_module_free(module);
  kiln_device_free(device);
}

static void span(void *user, const kiln_span *s)
{
  (void)user;
  (void)s;
}

static void stream_area(void)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *device = NULL;
  kiln_stream *stream = NULL, *wrapped = NULL;
  kiln_event *event = NULL;
  kiln_timeline *timeline = NULL;
  CUdeviceptr p = 0;
  char path[300];

  snprintf(path, sizeof path, "%s/trace", f.dir);
  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, &own));
  TRY_OUT(stream, kiln_stream_create(&stream, device, NULL));
  TRY_OUT(wrapped,
          kiln_stream_wrap(&wrapped, device, kiln_stream_handle(stream)));
  TRY_OUT(event, kiln_event_create(&event, device, true));
  TRY_OUT(timeline, kiln_timeline_create(&timeline, device));
  TRY(kiln_stream_attach(stream, timeline));
  TRY(kiln_memory_alloc(&p, device, 64));
  /* If memory runs out, the fill succeeds but is not recorded in the
   * timeline. */
  TRY(kiln_fill_async(stream, p, 0, 4, 16));
  TRY(kiln_timeline_begin(timeline, stream, "outer"));
  for (int i = 0; i < 40; i++) {
    TRY(kiln_timeline_begin(timeline, wrapped, "inner"));
    TRY(kiln_timeline_end(timeline, wrapped));
  }
  TRY(kiln_timeline_host_begin(timeline, "host"));
  TRY(kiln_timeline_host_end(timeline));
  TRY(kiln_timeline_each(timeline, span, NULL));
  TRY(kiln_timeline_write(timeline, path));
done:
  if (p != 0)
    ck_kiln_ok(kiln_memory_free(device, p));
  kiln_timeline_free(timeline);
  kiln_event_free(event);
  kiln_stream_free(wrapped);
  kiln_stream_free(stream);
  kiln_device_free(device);
}

/* Queries the attributes of a module's kernels and variables. */
static void kernel_area(void)
{
  const kiln_program_desc desc = {.source = SAXPY};
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  kiln_kernel *kernel = NULL;
  kiln_kernel_info info;
  int value = 0, block, grid;
  CUdeviceptr address;
  size_t size;

  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, NULL));
  TRY_OUT(module, kiln_module_load(&module, device, &desc));
  TRY_OUT(kernel, kiln_module_kernel(&kernel, module, "empty"));
  TRY(kiln_kernel_describe(kernel, &info));
  TRY(kiln_kernel_occupancy(kernel, 128, 0, &value));
  TRY(kiln_kernel_suggest(kernel, 0, 0, &block, &grid));
  TRY(kiln_module_symbol(module, "counter", &address, &size));
  TRY(kiln_symbol_write(module, "counter", 0, &value, sizeof value));
  TRY(kiln_symbol_read(module, "counter", 0, &value, sizeof value));
done:
  kiln_module_free(module);
  kiln_device_free(device);
}

/* Allocates, copies and fills memory of every kind, with and without a
 * timeline. */
static void memory_area(void)
{
  enum { SIZE = 64 };
  kiln_device *device = NULL, *other = NULL;
  kiln_stream *stream = NULL;
  kiln_timeline *timeline = NULL;
  uint64_t free_bytes, total;
  CUdeviceptr p = 0, q = 0;
  void *pinned = NULL;
  char bytes[SIZE] = "";

  f.cuda->n_devices = 2;
  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, NULL));
  TRY_OUT(other, kiln_device_open(&other, f.rt, 1, NULL));
  TRY_OUT(stream, kiln_stream_create(&stream, device, NULL));
  TRY_OUT(timeline, kiln_timeline_create(&timeline, device));
  TRY(kiln_memory_info(device, &free_bytes, &total));
  TRY(kiln_memory_alloc(&p, device, SIZE));
  TRY(kiln_memory_alloc(&q, other, SIZE));
  TRY(kiln_host_alloc(&pinned, device, SIZE));
  TRY(kiln_host_register(device, bytes, SIZE));
  TRY(kiln_host_unregister(device, bytes));
  TRY(kiln_copy_to_device(device, p, bytes, SIZE));
  TRY(kiln_copy_on_device(device, p, p + SIZE / 2, SIZE / 2));
  TRY(kiln_copy_peer(other, q, device, p, SIZE));
  TRY(kiln_copy_to_host(device, bytes, p, SIZE));
  TRY(kiln_fill(device, p, 0, 1, SIZE));
  for (int recorded = 0; recorded < 2; recorded++) {
    CUdeviceptr ordered = 0;

    TRY(kiln_stream_attach(stream, recorded ? timeline : NULL));
    TRY(kiln_memory_alloc_async(&ordered, stream, SIZE));
    TRY(kiln_memory_free_async(stream, ordered));
    TRY(kiln_copy_to_device_async(stream, p, pinned, SIZE));
    TRY(kiln_copy_on_device_async(stream, p, p + SIZE / 2, SIZE / 2));
    TRY(kiln_copy_peer_async(stream, other, q, device, p, SIZE));
    TRY(kiln_copy_to_host_async(stream, pinned, p, SIZE));
    TRY(kiln_fill_async(stream, p, 0, 4, SIZE / 4));
    TRY(kiln_stream_synchronize(stream));
  }
done:
  if (pinned != NULL)
    ck_kiln_ok(kiln_host_free(device, pinned));
  if (q != 0)
    ck_kiln_ok(kiln_memory_free(other, q));
  if (p != 0)
    ck_kiln_ok(kiln_memory_free(device, p));
  kiln_timeline_free(timeline);
  kiln_stream_free(stream);
  kiln_device_free(other);
  kiln_device_free(device);
}

static void event_area(void)
{
  kiln_device *device = NULL;
  kiln_stream *stream = NULL;
  kiln_event *from = NULL, *to = NULL;
  kiln_device_info info;
  CUcontext context;
  int value, n;
  bool capturing;
  float ms;

  TRY(kiln_device_count(f.rt, &n));
  TRY_OUT(device, kiln_device_open(&device, f.rt, 0, NULL));
  TRY(kiln_device_describe(device, &info));
  TRY(kiln_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, &value));
  TRY(kiln_device_context(device, &context));
  TRY_OUT(stream, kiln_stream_create(&stream, device, NULL));
  TRY_OUT(from, kiln_event_create(&from, device, true));
  TRY_OUT(to, kiln_event_create(&to, device, true));
  TRY(kiln_event_record(from, stream));
  TRY(kiln_stream_wait(stream, from));
  TRY(kiln_event_record(to, stream));
  TRY(kiln_event_query(to));
  TRY(kiln_event_synchronize(to));
  TRY(kiln_event_elapsed(&ms, from, to));
  TRY(kiln_stream_query(stream));
  TRY(kiln_stream_capturing(stream, &capturing));
  TRY(kiln_device_synchronize(device));
done:
  kiln_event_free(to);
  kiln_event_free(from);
  kiln_stream_free(stream);
  kiln_device_free(device);
}

static const struct {
  const char *name;
  area_fn *run;
} areas[] = {{"runtime", runtime_area}, {"compile", compile_area},
             {"job", job_area},         {"cache", cache_area},
             {"pack", pack_area},       {"module", module_area},
             {"refused", refused_area}, {"streams", stream_area},
             {"kernel", kernel_area},   {"memory", memory_area},
             {"events", event_area}};
enum { AREAS = sizeof areas / sizeof areas[0] };

/* Empties the cache folder, so that each round does the same work. */
static void fresh_folder(void)
{
  test_dir_remove(f.dir);
  test_dir_make(f.dir);
}

/* Tests an area once, while allocation number `at` fails, alone or together
 * with all later allocations. Returns false if the area makes fewer
 * allocations. */
static bool round_of(area_fn *run, long at, bool after)
{
  bool reached;

  f.alloc.fail_at = -1;
  fresh_folder();
  make_runtime();
  ck_assert_ptr_nonnull(f.rt);
  f.alloc.calls = 0;
  f.alloc.fail_after = after;
  f.alloc.fail_at = at;
  last = KILN_OK;
  run();
  reached = f.alloc.calls > at;
  f.alloc.fail_at = -1;
  check_calm();
  kiln_runtime_free(f.rt);
  f.rt = NULL;
  ck_assert_msg(f.alloc.live == 0, "allocation %ld failing leaves %ld blocks",
                at, f.alloc.live);
  ck_assert_int_eq(fake_cuda_live(f.cuda), 0);
  ck_assert_int_eq(f.nvrtc->programs, 0);
  return reached;
}

START_TEST(every_allocation_fails_in_turn)
{
  area_fn *const run = areas[_i / 2].run;
  const bool after = _i % 2 != 0;
  const bool thorough = test_rounds(10) > 1;
  long at = 0, refused = 0;

  while (round_of(run, at, after)) {
    refused += last != KILN_OK;
    at += thorough || at < 20 ? 1 : 3;
  }
  /* The loop ends with a round in which no allocation failed. */
  ck_assert_int_eq(last, KILN_OK);
  ck_assert_msg(at > 3, "%s: only %ld allocations", areas[_i / 2].name, at);
  ck_assert_msg(refused > 0, "%s: no failure was ever reported",
                areas[_i / 2].name);
}
END_TEST

/* Writes the pack file that the test of packs reads. */
static void write_pack(void)
{
  const kiln_program_desc desc = whole_desc();
  const kiln_target target = {.cc = 90};
  kiln_image *image;

  make_runtime();
  ck_kiln_ok(kiln_compile(&image, f.rt, &desc, &target));
  ck_kiln_ok(kiln_pack_write(f.rt, pack_path, &image, 1));
  kiln_image_free(image);
  kiln_runtime_free(f.rt);
  f.rt = NULL;
}

static void set_up(void)
{
  memset(&f, 0, sizeof f);
  f.cuda = fake_cuda_of(FAKE_DRIVER);
  f.nvrtc = fake_nvrtc_of(FAKE_NVRTC);
  test_allocator_init(&f.alloc);
  test_dir_make(f.dir);
  snprintf(pack_path, sizeof pack_path, "%s.pack", f.dir);
  write_pack();
}

static void finish(void)
{
  unlink(pack_path);
  tear_down();
}

int main(void)
{
  Suite *s = suite_create("alloc_torture");
  TCase *t = kiln_test_case(s, "areas", 300, set_up, finish, TESTS(NULL));

  tcase_add_loop_test(t, every_allocation_fails_in_turn, 0, AREAS * 2);
  return kiln_test_run(s);
}
