/* assemble_test.c -- tests that every kernel an operation generates can be
 * assembled for every architecture: the static shared memory fits, and few
 * registers spill.
 *
 * The test calls the operations with random types, expressions, sizes and
 * alignments, on a CPU device of each architecture. The linker option --wrap
 * redirects the compile to this file. NVRTC compiles the program to machine
 * code, which assembles it, and then the call ends. No kernel runs, so sizes
 * may be large and addresses may be invalid.
 *
 * The default run makes one call per operation on every other architecture;
 * KILN_TEST_ALL_VARIANTS=1 makes many on each. KILN_TEST_SEED selects other random calls. */
#include "each_nvrtc.h"

#include "device/device.h"

#include <kiln/cpu.h>
#include <kiln/kiln.h>

static const int architectures[] = {75, 80, 90, 120};

static char dir[256], cache[300];
static kiln_runtime *compiler, *rt;
static kiln_device *device;
static kiln_stream *stream;
static int cc;
static uint64_t state;
static unsigned n_programs, n_spills;

/* ---- Functions that replace the compile ---------------------------------- */

kiln_status __wrap_kiln__module_start_linked(kiln__loading *out, kiln_device *d,
                                             const kiln_program_desc *desc,
                                             const kiln__linked *linked);

/* The status that an operation returns after its program was compiled. */
static const kiln_status compiled = KILN_ECANCELED;

/* Maximum number of spilled bytes per thread. Kernels are tuned for common
 * types without a map, and these kernels never spill (see kernels_test.c and
 * quick_test.c). Other kernels may spill. For example, 16 mapped bytes in one
 * vector need 32 registers of f64. */
enum { MOST_SPILLED = 512 };

kiln_status __wrap_kiln__module_finish(kiln__loading *loading,
                                       kiln_module **out);

static const char *defines_of(const kiln_program_desc *desc)
{
  static char text[2048];
  size_t n = 0;

  for (size_t i = 0; i < desc->n_defines && n < sizeof text; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, " %s", desc->defines[i]);
  return text;
}

kiln_status __wrap_kiln__module_start_linked(kiln__loading *out, kiln_device *d,
                                             const kiln_program_desc *desc,
                                             const kiln__linked *linked)
{
  const kiln_target target = {.cc = cc};
  kiln_image *image = NULL;
  kiln_resources r;

  (void)out;
  (void)d;
  (void)linked;
  ck_assert_msg(kiln_compile(&image, compiler, desc, &target) == KILN_OK,
                "%s for sm_%d: %s\n%s", desc->builtin, cc,
                kiln_last_error()->message, kiln_last_error()->log);
  n_programs++;
  for (size_t i = 0; i < kiln_image_kernels(image); i++) {
    ck_kiln_ok(kiln_image_resources(image, i, &r));
    n_spills += r.spill_stores > 0;
    ck_assert_msg(r.spill_stores <= MOST_SPILLED,
                  "%s for sm_%d spills %d bytes per thread: %s", r.name, cc,
                  r.spill_stores, defines_of(desc));
  }
  kiln_image_free(image);
  return KILN_OK;
}

kiln_status __wrap_kiln__module_finish(kiln__loading *loading,
                                       kiln_module **out)
{
  (void)loading;
  *out = NULL;
  return kiln__fail(compiled, NULL, "compiled, and that is all");
}

/* ---- Random calls -------------------------------------------------------- */

static uint64_t pick(uint64_t n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % n;
}

static kiln_dtype any_type(void)
{
  return (kiln_dtype)(KILN_I8 + pick(KILN_F64));
}

static kiln_dtype count_type(void)
{
  return pick(2) ? KILN_U32 : KILN_U64;
}

/* Returns an array that overlaps no other array. Many of these arrays are
 * aligned to 16 bytes. */
static kiln_array array_of(kiln_dtype type)
{
  static uint64_t next = 0;
  const uint64_t shift = pick(3) == 0 ? kiln_dtype_size(type) : 0;

  next = next % 64 + 1;
  return (kiln_array){(next << 42) + shift, type};
}

static kiln_array maybe(kiln_dtype type)
{
  return pick(2) ? array_of(type) : (kiln_array){0, KILN_DTYPE_NONE};
}

/* Returns a random size. The sizes lie on both sides of every limit in the
 * tuning table. */
static uint64_t any_size(void)
{
  return (UINT64_C(1) << pick(29)) + pick(3) + 1;
}

static kiln_input any_input(void)
{
  kiln_input x = {.in = {array_of(any_type())}};

  if (pick(2)) {
    x.type = any_type();
    x.map = "x * 3 + i";
  }
  if (x.map != NULL && pick(2)) {
    x.in[1] = array_of(any_type());
    x.map = "x + y";
  }
  return x;
}

static kiln_dtype type_of(const kiln_input *x)
{
  return x->map != NULL ? x->type : x->in[0].type;
}

static kiln_op any_op(void)
{
  static const kiln_op ops[] = {
      {.name = KILN_SUM},
      {.name = KILN_MAX},
      {.expr = "a > b ? a : b", .identity = "-100", .commutative = true},
      {.expr = "a", .identity = "0"}};

  return ops[pick(4)];
}

static kiln_status call_map(void)
{
  kiln_map_desc d = {.in = {array_of(any_type()), maybe(any_type())},
                     .n = any_size()};
  const size_t outputs = 1 + pick(4);

  for (size_t k = 0; k < outputs; k++) {
    d.out[k] = array_of(any_type());
    d.expr[k] = pick(3) ? "x + i" : NULL;
  }
  return kiln_map(stream, &d, NULL);
}

static kiln_status call_select(void)
{
  const kiln_input x = any_input();
  const kiln_dtype payload = any_type();
  kiln_select_desc d = {.x = x,
                        .n = any_size(),
                        .out = maybe(type_of(&x)),
                        .out_index = maybe(count_type()),
                        .count = array_of(count_type())};

  if (pick(2)) {
    d.payload = array_of(payload);
    d.out_payload = array_of(payload);
  }
  if (pick(2))
    d.predicate = "x > 3";
  else
    d.flags = array_of(any_type());
  return kiln_select(stream, &d, NULL);
}

static kiln_status call_unique(void)
{
  const kiln_input x = any_input();
  const kiln_unique_desc d = {.x = x,
                              .n = any_size(),
                              .out = maybe(type_of(&x)),
                              .out_index = maybe(count_type()),
                              .count = array_of(count_type())};

  return kiln_unique(stream, &d, NULL);
}

static kiln_status call_partition(void)
{
  const kiln_input x = any_input();
  const bool three = pick(2);
  const kiln_partition_desc d = {.x = x,
                                 .first = "x > 3",
                                 .second = three ? "x < 1" : NULL,
                                 .n = any_size(),
                                 .out = array_of(type_of(&x)),
                                 .rest_reversed = !three && pick(2),
                                 .count = array_of(count_type())};

  return kiln_partition(stream, &d, NULL);
}

static kiln_status call_run_length(void)
{
  const kiln_input x = any_input();
  const kiln_run_length_desc d = {.x = x,
                                  .n = any_size(),
                                  .values = maybe(type_of(&x)),
                                  .offsets = maybe(count_type()),
                                  .lengths = maybe(count_type()),
                                  .count = array_of(count_type())};

  return pick(2) ? kiln_run_length_encode(stream, &d, NULL)
                 : kiln_run_length_non_trivial(stream, &d, NULL);
}

static kiln_status call_find(void)
{
  const kiln_find_desc d = {.x = {.in = {array_of(any_type())}},
                            .predicate = "x > 3",
                            .n = any_size(),
                            .out = array_of(count_type())};

  return pick(2) ? kiln_find(stream, &d, NULL) : kiln_all(stream, &d, NULL);
}

static kiln_status call_split(void)
{
  const kiln_input x = any_input();
  const kiln_split_desc d = {.x = x,
                             .key = "i % 7",
                             .parts = (uint32_t)(1 + pick(1000)),
                             .n = any_size(),
                             .out = array_of(type_of(&x)),
                             .offsets = maybe(KILN_U64)};

  return kiln_split(stream, &d, NULL);
}

static kiln_status call_scan(void)
{
  const kiln_scan_desc d = {.x = any_input(),
                            .n = any_size(),
                            .op = any_op(),
                            .out = array_of(any_type()),
                            .exclusive = pick(2)};

  return kiln_scan(stream, &d, NULL);
}

static kiln_status call_scan_by_key(void)
{
  const kiln_scan_by_key_desc d = {.keys = array_of(any_type()),
                                   .x = any_input(),
                                   .n = any_size(),
                                   .op = any_op(),
                                   .out = array_of(any_type()),
                                   .exclusive = pick(2)};

  return kiln_scan_by_key(stream, &d, NULL);
}

static kiln_status call_reduce_by_key(void)
{
  const kiln_array keys = array_of(any_type());
  const kiln_reduce_by_key_desc d = {.keys = keys,
                                     .x = any_input(),
                                     .n = any_size(),
                                     .op = any_op(),
                                     .out_keys = maybe(keys.type),
                                     .out = array_of(any_type()),
                                     .count = array_of(count_type())};

  return kiln_reduce_by_key(stream, &d, NULL);
}

static kiln_status call_difference(void)
{
  const kiln_adjacent_difference_desc d = {.x = any_input(),
                                           .n = any_size(),
                                           .right = pick(2),
                                           .out = array_of(any_type())};

  return kiln_adjacent_difference(stream, &d, NULL);
}

static kiln_status call_reduce(void)
{
  const kiln_reduce_desc d = {.x = any_input(),
                              .n = any_size(),
                              .op = any_op(),
                              .out = array_of(any_type()),
                              .portable = pick(2)};

  return kiln_reduce(stream, &d, NULL);
}

static kiln_status call_arg_reduce(void)
{
  const kiln_arg_reduce_desc d = {.x = any_input(),
                                  .n = any_size(),
                                  .op = KILN_MIN,
                                  .index = array_of(count_type())};

  return kiln_arg_reduce(stream, &d, NULL);
}

static kiln_status call_minmax(void)
{
  const kiln_minmax_desc d = {.x = any_input(),
                              .n = any_size(),
                              .min = array_of(any_type()),
                              .max = array_of(any_type())};

  return kiln_minmax(stream, &d, NULL);
}

static kiln_status call_arg_matrix(void)
{
  const kiln_arg_reduce_matrix_desc d = {.x = any_input(),
                                         .rows = (any_size() >> 12) + 1,
                                         .columns = 1 + pick(3000),
                                         .op = pick(2) ? KILN_MIN : KILN_MAX,
                                         .value = array_of(any_type()),
                                         .index = maybe(count_type())};

  return pick(2) ? kiln_arg_reduce_rows(stream, &d, NULL)
                 : kiln_arg_reduce_columns(stream, &d, NULL);
}

static kiln_status call_moments_matrix(void)
{
  const kiln_mean_variance_matrix_desc d = {.x = any_input(),
                                            .rows = (any_size() >> 12) + 1,
                                            .columns = 1 + pick(3000),
                                            .mean = array_of(KILN_F64),
                                            .variance = maybe(KILN_F32)};

  return pick(2) ? kiln_mean_variance_rows(stream, &d, NULL)
                 : kiln_mean_variance_columns(stream, &d, NULL);
}

static kiln_status call_moments(void)
{
  const kiln_mean_variance_desc d = {
      .x = any_input(), .n = any_size(), .variance = array_of(KILN_F64)};

  return kiln_mean_variance(stream, &d, NULL);
}

static kiln_status call_norm(void)
{
  const kiln_norm_desc d = {
      .x = any_input(), .n = any_size(), .out = array_of(KILN_F64)};

  return kiln_norm(stream, &d, NULL);
}

static kiln_status call_matrix(void)
{
  const kiln_reduce_matrix_desc d = {.x = any_input(),
                                     .rows = (any_size() >> pick(20)) + 1,
                                     .columns = 1 + (pick(1 << 11) >> pick(11)),
                                     .op = any_op(),
                                     .out = array_of(any_type())};

  return pick(2) ? kiln_reduce_rows(stream, &d, NULL)
                 : kiln_reduce_columns(stream, &d, NULL);
}

static kiln_status call_segmented_reduce(void)
{
  const kiln_segmented_reduce_desc d = {.x = any_input(),
                                        .n = any_size(),
                                        .n_segments = any_size(),
                                        .offsets = array_of(count_type()),
                                        .index = maybe(KILN_I32),
                                        .n_index = 1000,
                                        .width = pick(2) ? 1 : pick(40) + 1,
                                        .op = any_op(),
                                        .out = array_of(any_type())};

  return kiln_segmented_reduce(stream, &d, NULL);
}

static kiln_status call_sort(void)
{
  const kiln_dtype key = any_type(), value = any_type();
  const bool pairs = pick(2);
  const kiln_array none = {0, KILN_DTYPE_NONE};
  const kiln_sort_desc d = {.keys_in = array_of(key),
                            .keys_out = array_of(key),
                            .values_in = pairs ? array_of(value) : none,
                            .values_out = pairs ? array_of(value) : none,
                            .n = any_size()};

  return kiln_sort(stream, &d, NULL);
}

static kiln_status call_segmented_sort(void)
{
  const kiln_dtype key = any_type(), value = any_type();
  const kiln_segmented_sort_desc d = {.keys_in = array_of(key),
                                      .keys_out = array_of(key),
                                      .values_in = array_of(value),
                                      .values_out = array_of(value),
                                      .offsets = array_of(KILN_U32),
                                      .n = any_size(),
                                      .n_segments = 1000};

  return kiln_segmented_sort(stream, &d, NULL);
}

static kiln_status call_counting_sort(void)
{
  const kiln_dtype value = any_type();
  const kiln_counting_sort_desc d = {.keys = array_of(KILN_U16),
                                     .keys_out = array_of(KILN_U16),
                                     .values = array_of(value),
                                     .values_out = array_of(value),
                                     .n = any_size(),
                                     .offsets = maybe(KILN_U64)};

  return kiln_counting_sort(stream, &d, NULL);
}

static kiln_status call_histogram(void)
{
  const kiln_input x = any_input();
  kiln_histogram_desc d = {.x = x,
                           .n = any_size(),
                           .bins = (uint32_t)(1 + pick(1 << pick(17))),
                           .counts = array_of(count_type()),
                           .accumulate = pick(2)};

  if (pick(2))
    d.levels = array_of(type_of(&x));
  else
    d.upper = 100;
  return kiln_histogram(stream, &d, NULL);
}

static kiln_status call_merge(void)
{
  const kiln_dtype key = any_type(), value = any_type();
  kiln_merge_desc d = {.a = array_of(key),
                       .b = array_of(key),
                       .n_a = any_size(),
                       .n_b = any_size(),
                       .out = array_of(key),
                       .less = pick(2) ? "a > b" : NULL};

  if (pick(2)) {
    d.a_values = array_of(value);
    d.b_values = array_of(value);
    d.out_values = array_of(value);
  }
  return kiln_merge(stream, &d, NULL);
}

static kiln_status call_merge_sort(void)
{
  const kiln_dtype key = any_type(), value = any_type();
  kiln_merge_sort_desc d = {.keys_in = array_of(key),
                            .keys_out = array_of(key),
                            .n = any_size(),
                            .less = "a > b"};

  if (pick(2)) {
    d.values_in = array_of(value);
    d.values_out = array_of(value);
  }
  return kiln_merge_sort(stream, &d, NULL);
}

static kiln_status call_set_operation(void)
{
  const kiln_dtype type = any_type();
  const kiln_set_desc d = {.kind = (kiln_set_kind)pick(4),
                           .a = array_of(type),
                           .b = array_of(type),
                           .n_a = any_size(),
                           .n_b = any_size(),
                           .out = array_of(type),
                           .count = array_of(KILN_U64),
                           .less = pick(2) ? "a > b" : NULL};

  return kiln_set_operation(stream, &d, NULL);
}

static kiln_status call_search(void)
{
  const kiln_input x = any_input();
  const kiln_search_desc d = {.sorted = array_of(type_of(&x)),
                              .m = any_size(),
                              .needles = x,
                              .n = any_size(),
                              .out = array_of(count_type()),
                              .upper = pick(2)};

  return kiln_search(stream, &d, NULL);
}

static kiln_status call_gather(void)
{
  const kiln_gather_desc d = {.x = any_input(),
                              .index = array_of(count_type()),
                              .out = array_of(any_type()),
                              .n = any_size(),
                              .method = (kiln_index_method)(1 + pick(2)),
                              .passes = 4};

  return kiln_gather(stream, &d, NULL);
}

static kiln_status call_scatter(void)
{
  const kiln_scatter_desc d = {.x = any_input(),
                               .index = array_of(count_type()),
                               .out = array_of(any_type()),
                               .n = (any_size() >> 8) + 1,
                               .n_target = 1 << 20,
                               .method = (kiln_index_method)(1 + pick(4)),
                               .passes = 4};

  return kiln_scatter(stream, &d, NULL);
}

static kiln_status (*const calls[])(void) = {
    call_map,           call_select,
    call_unique,        call_partition,
    call_run_length,    call_find,
    call_split,         call_scan,
    call_scan_by_key,   call_difference,
    call_reduce_by_key, call_reduce,
    call_arg_reduce,    call_minmax,
    call_arg_matrix,    call_moments_matrix,
    call_moments,       call_norm,
    call_matrix,        call_segmented_reduce,
    call_sort,          call_segmented_sort,
    call_counting_sort, call_histogram,
    call_merge,         call_search,
    call_merge_sort,    call_set_operation,
    call_gather,        call_scatter};

/* ---- Tests --------------------------------------------------------------- */

enum { N_CALLS = sizeof calls / sizeof calls[0], N_ARCHITECTURES = 4 };

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static void open_device(int nvrtc)
{
  kiln_runtime_opts opts = {.ignore_env = true, .cache_off = true};
  kiln_cpu_opts cpu;
  char text[32];

  compiler = each_runtime(nvrtc, cache);
  snprintf(text, sizeof text, "cpu:%d.%d", cc / 10, cc % 10);
  ck_kiln_ok(kiln_cpu_parse(&cpu, text));
  ck_kiln_ok(kiln_cpu_configure(&cpu));
  opts.nvrtc_path = each_path[nvrtc];
  opts.driver = kiln_cpu_driver();
  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
}

static void close_device(void)
{
  kiln_stream_free(stream);
  kiln_device_free(device);
  kiln_runtime_free(rt);
  kiln_runtime_free(compiler);
}

static bool all_variants(void)
{
  const char *const all = getenv("KILN_TEST_ALL_VARIANTS");

  return all != NULL && all[0] == '1';
}

/* Selects the NVRTC for an architecture in the default run. Each NVRTC is used,
 * and the newest NVRTC compiles for the newest architectures. */
static int default_nvrtc(int arch)
{
  return arch == 75 ? 0 : arch == 80 ? (each_n - 1) / 2 : each_n - 1;
}

/* Tests one architecture with one NVRTC. */
START_TEST(test_assembles)
{
  const char *const seed = getenv("KILN_TEST_SEED");
  const int nvrtc = _i / N_ARCHITECTURES;
  const int rounds = all_variants() ? 12 : 1;

  cc = architectures[_i % N_ARCHITECTURES];
  if ((cc == 120 && each_version[nvrtc] < 12080) ||
      (!all_variants() && nvrtc != default_nvrtc(cc)))
    return;
  state = (seed != NULL ? strtoull(seed, NULL, 10) : 1) * 1000 + (unsigned)_i;
  open_device(nvrtc);
  for (int round = 0; round < rounds; round++)
    for (size_t k = 0; k < N_CALLS; k++) {
      kiln_status st;

      if (!all_variants() && (k + (size_t)_i) % 2 != 0)
        continue;
      st = calls[k]();

      ck_assert_msg(st == compiled, "call %zu of round %d on sm_%d: %s", k,
                    round, cc, kiln_last_error()->message);
    }
  printf("sm_%d, NVRTC %d: %u programs, %u kernels spill\n", cc,
         each_version[nvrtc], n_programs, n_spills);
  close_device();
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("assemble");
  TCase *t = tcase_create("assemble");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, all_variants() ? 3600 : 300);
  tcase_add_loop_test(t, test_assembles, 0, each_n * N_ARCHITECTURES);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(suite());
}
