/* linked_test.c -- programs that are linked from a kernel and the user's
 * expressions. Every call must give the same bits in both forms: linked, and
 * compiled as a whole. */
#include "ops_fixture.h"

#include <stdatomic.h>

enum { N = 5003, RUN = 7 };

static atomic_uint n_linked, n_whole;

/* Counts the programs that were linked, and those that had to be compiled as a
 * whole instead. */
static void count(void *user, kiln_log_level level, const char *message)
{
  (void)user;
  (void)level;
  if (strncmp(message, "linked ", 7) == 0)
    atomic_fetch_add(&n_linked, 1);
  if (strstr(message, "is compiled as a whole") != NULL) {
    atomic_fetch_add(&n_whole, 1);
    puts(message);
    fflush(stdout);
  }
}

/* A cache of this run's own: an image of an earlier run would be found there, and
 * nothing would be linked. All cases share it. */
static char cache[256];

static void make_cache(void)
{
  test_dir_make(cache);
}

static void remove_cache(void)
{
  test_dir_remove(cache);
}

static kiln_device *whole_device;
static kiln_stream *whole_stream;

static void set_up(void)
{
  const kiln_runtime_opts opts = {
      .log = count, .log_level = KILN_LOG_INFO, .cache_dir = cache};

  unsetenv("KILN_LINK");
  atomic_store(&n_linked, 0);
  atomic_store(&n_whole, 0);
  ck_kiln_ok(test_runtime(&rt, &opts));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&stream, device, NULL));
  ck_kiln_ok(kiln_device_open(&whole_device, rt, 0, NULL));
  ck_kiln_ok(kiln_stream_create(&whole_stream, whole_device, NULL));
}

static void tear_down(void)
{
  kiln_stream_free(whole_stream);
  kiln_device_free(whole_device);
  teardown();
}

/* ---- Calls --------------------------------------------------------------- */

/* The arrays of all calls: inputs of N elements, and outputs. */
typedef struct arrays {
  kiln_array f, g;      /* f32 */
  kiln_array half;      /* f16 */
  kiln_array wide;      /* f64 */
  kiln_array u, sorted; /* u32; `sorted` has runs of RUN equal elements */
  kiln_array bytes;     /* u8 */
  kiln_array out[3];    /* without a type */
} arrays;

static kiln_array as(kiln_array a, kiln_dtype type)
{
  a.type = type;
  return a;
}

typedef kiln_status (*call_fn)(kiln_stream *s, const arrays *a);

#define CALL(id, op, desc_type, ...)                                           \
  static kiln_status id(kiln_stream *s, const arrays *a)                       \
  {                                                                            \
    const desc_type desc = {__VA_ARGS__};                                      \
                                                                               \
    return op(s, &desc, NULL);                                                 \
  }

static const float alpha_value = 1.25F;
static const uint16_t half_value_of_3 = 0x4200;
static const int32_t minus_2 = -2;
static const kiln_param params[] = {{"alpha", KILN_F32, &alpha_value, false},
                                    {"c", KILN_F16, &half_value_of_3, true},
                                    {"k", KILN_I32, &minus_2, false}};

/* clang-format off */

CALL(map_two, kiln_map, kiln_map_desc,
    .in = {a->f, a->g}, .out = {as(a->out[0], KILN_F32)},
    .expr = {"x * 2.5f + y"}, .n = N)
CALL(map_params, kiln_map, kiln_map_desc,
    .in = {a->half, a->f}, .out = {as(a->out[0], KILN_F16)},
    .expr = {"alpha * x + y * c - k"}, .n = N,
    .code = {.params = params, .n_params = 3})
CALL(map_gelu, kiln_map, kiln_map_desc,
    .in = {a->f}, .out = {as(a->out[0], KILN_F32)},
    .expr = {"kiln::gelu(x)"}, .n = N)
CALL(map_neighbours, kiln_map, kiln_map_desc,
    .in = {a->f, a->half}, .out = {as(a->out[0], KILN_F32)},
    .expr = {"x - y_at(i > 0 ? i - 1 : 0)"}, .n = N)
CALL(map_rows, kiln_map, kiln_map_desc,
    .in = {a->u}, .out = {as(a->out[0], KILN_U32)},
    .expr = {"x + row * 3 + column"}, .n = N / 17 * 17, .width = 17)
CALL(map_outputs, kiln_map, kiln_map_desc,
    .in = {a->u, a->bytes},
    .out = {as(a->out[0], KILN_U32), as(a->out[1], KILN_U8)},
    .expr = {"x ^ y", "hash(x) >> 24"}, .n = N,
    .code = {.preamble = "__device__ unsigned hash(unsigned k)\n"
                         "{\n  return (k ^ k >> 16) * 0x45d9f3bu;\n}\n"})
CALL(reduce_max, kiln_reduce, kiln_reduce_desc,
    .x = {.in = {a->f, a->g}, .map = "fabsf(x - y)"}, .n = N,
    .op = {.expr = "a > b ? a : b", .identity = "-INFINITY"},
    .out = as(a->out[0], KILN_F32))
CALL(reduce_sum, kiln_reduce, kiln_reduce_desc,
    .x = {.in = {a->half}}, .n = N,
    .op = {.expr = "a + b", .identity = "0"}, .out = as(a->out[0], KILN_F32))
CALL(reduce_named, kiln_reduce, kiln_reduce_desc,
    .x = {.in = {a->u}, .map = "x % 7 * 3"}, .n = N,
    .out = as(a->out[0], KILN_U32))
CALL(reduce_log, kiln_reduce, kiln_reduce_desc,
    .x = {.in = {a->wide}}, .n = N,
    .op = {.expr = "a == -INFINITY && b == a ? NAN : a > b || a != a ? a : b",
           .identity = "-INFINITY"},
    .out = as(a->out[0], KILN_F64))
CALL(scan_max, kiln_scan, kiln_scan_desc,
    .x = {.in = {a->u}}, .n = N,
    .op = {.expr = "a > b ? a : b", .identity = "0"},
    .out = as(a->out[0], KILN_U32))
CALL(scan_sum, kiln_scan, kiln_scan_desc,
    .x = {.in = {a->f}}, .n = N, .exclusive = true,
    .op = {.expr = "a + b", .identity = "0"}, .out = as(a->out[0], KILN_F32))
CALL(scan_keys, kiln_scan_by_key, kiln_scan_by_key_desc,
    .keys = a->sorted, .same = "a / 2 == b / 2", .x = {.in = {a->wide}}, .n = N,
    .op = {.expr = "fmin(a, b)", .identity = "INFINITY"},
    .out = as(a->out[0], KILN_F64))
CALL(rows, kiln_reduce_rows, kiln_reduce_matrix_desc,
    .x = {.in = {a->u}, .map = "x & 0xffff"}, .rows = 50, .columns = 100,
    .op = {.expr = "a | b", .identity = "0"}, .out = as(a->out[0], KILN_U32))
CALL(columns, kiln_reduce_columns, kiln_reduce_matrix_desc,
    .x = {.in = {a->f}, .map = "-x"}, .rows = 50, .columns = 100,
    .op = {.name = KILN_MAX}, .out = as(a->out[0], KILN_F32))
CALL(segments, kiln_segmented_reduce, kiln_segmented_reduce_desc,
    .x = {.in = {a->u}}, .n = N / RUN * RUN, .n_segments = N / RUN,
    .length = RUN, .op = {.expr = "a ^ b", .identity = "0"},
    .out = as(a->out[0], KILN_U32))
CALL(select_some, kiln_select, kiln_select_desc,
    .x = {.in = {a->f}}, .predicate = "x * x + 1 < 1.5f", .n = N,
    .out = as(a->out[0], KILN_F32), .count = as(a->out[1], KILN_U32))
CALL(unique_some, kiln_unique, kiln_unique_desc,
    .x = {.in = {a->sorted}}, .equal = "a / 3 == b / 3", .n = N,
    .out = as(a->out[0], KILN_U32), .count = as(a->out[1], KILN_U32))
CALL(partition_three, kiln_partition, kiln_partition_desc,
    .x = {.in = {a->u}}, .first = "x % 3 == 0", .second = "x % 3 == 1", .n = N,
    .out = as(a->out[0], KILN_U32), .count = as(a->out[1], KILN_U32))
CALL(split_key, kiln_split, kiln_split_desc,
    .x = {.in = {a->u}}, .key = "x % 13", .parts = 13, .n = N,
    .out = as(a->out[0], KILN_U32), .offsets = as(a->out[1], KILN_U32))
CALL(runs, kiln_run_length_encode, kiln_run_length_desc,
    .x = {.in = {a->sorted}}, .equal = "a / 2 == b / 2", .n = N,
    .values = as(a->out[0], KILN_U32), .lengths = as(a->out[1], KILN_U32),
    .count = as(a->out[2], KILN_U32))
CALL(find_first, kiln_find, kiln_find_desc,
    .x = {.in = {a->f}}, .predicate = "x > 0.99f", .n = N,
    .out = as(a->out[0], KILN_U64))
CALL(bins, kiln_histogram, kiln_histogram_desc,
    .x = {.in = {a->u}, .map = "x >> 24"}, .n = N, .bins = 256,
    .counts = as(a->out[0], KILN_U32))
CALL(searched, kiln_search, kiln_search_desc,
    .sorted = a->sorted, .m = N, .needles = {.in = {a->u}, .map = "x % 800"},
    .n = N, .less = "a < b", .out = as(a->out[0], KILN_U32))
CALL(merged, kiln_merge, kiln_merge_desc,
    .a = a->sorted, .b = a->sorted, .n_a = N, .n_b = N,
    .less = "a / 2 < b / 2", .out = as(a->out[0], KILN_U32))
CALL(gathered, kiln_gather, kiln_gather_desc,
    .x = {.in = {a->f}, .map = "x + 1"}, .index = a->sorted,
    .out = as(a->out[0], KILN_F32), .n = N, .n_target = N)
CALL(dot_like, kiln_reduce, kiln_reduce_desc,
    .x = {.in = {a->f, a->g}, .map = "x * y"}, .n = N,
    .out = as(a->out[0], KILN_F32))
CALL(shared_product, kiln_map, kiln_map_desc,
    .in = {a->f}, .out = {as(a->out[0], KILN_F32)},
    .expr = {"alpha * alpha + x"}, .n = N,
    .code = {.params = params, .n_params = 1})
CALL(far_call, kiln_map, kiln_map_desc,
    .in = {a->f}, .out = {as(a->out[0], KILN_F32)},
    .expr = {"x + sizeof(user::stored)"}, .n = N)

/* clang-format on */

typedef struct linked_case {
  const char *name;
  call_fn call;
  bool thorough; /* only in thorough tests */
  bool whole;    /* the call must not be linked */
} linked_case;

static const linked_case cases[] = {
    {"map", map_two, false, false},
    {"map with parameters", map_params, false, false},
    {"map with a function of Kiln", map_gelu, true, false},
    {"map of neighbours", map_neighbours, false, false},
    {"map with rows", map_rows, false, false},
    {"map, two outputs and a preamble", map_outputs, true, false},
    {"reduce", reduce_max, false, false},
    {"reduce, sum by text", reduce_sum, true, false},
    {"reduce, named sum", reduce_named, true, false},
    {"reduce, identity not closed", reduce_log, false, false},
    {"scan", scan_max, true, false},
    {"scan, floats", scan_sum, false, false},
    {"scan by key", scan_keys, true, false},
    {"rows", rows, true, false},
    {"columns", columns, true, false},
    {"segments", segments, true, false},
    {"select", select_some, false, false},
    {"unique", unique_some, true, false},
    {"partition", partition_three, true, false},
    {"split", split_key, true, false},
    {"run lengths", runs, true, false},
    {"find", find_first, true, false},
    {"histogram", bins, true, false},
    {"search", searched, true, false},
    {"merge", merged, true, false},
    {"gather", gathered, true, false},
    {"product and sum", dot_like, true, true},
    {"shared product", shared_product, false, true},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

/* ---- Comparison ---------------------------------------------------------- */

enum { OUT_BYTES = 16 * N };

static kiln_array random_floats(kiln_dtype type, uint64_t *state)
{
  const size_t width = kiln_dtype_size(type);
  unsigned char *data = kept(malloc(N * width));

  for (size_t i = 0; i < N; i++) {
    const double d = (double)(test_random(state) >> 40) / (1 << 23) - 1;
    const float f = (float)d;
    const uint16_t h = (uint16_t)(test_random(state) & 0xbbff);

    memcpy(data + i * width,
           type == KILN_F64   ? (const void *)&d
           : type == KILN_F32 ? (const void *)&f
                              : (const void *)&h,
           width);
  }
  /* One element off 16-byte alignment is enough for every other path. */
  return array_make(type, N, type == KILN_F32, data, 0).array;
}

static arrays make_arrays(test_array out[3])
{
  uint32_t *sorted = kept(malloc(N * sizeof *sorted));
  uint64_t state = 20;
  arrays a = {.f = random_floats(KILN_F32, &state),
              .g = random_floats(KILN_F32, &state),
              .half = random_floats(KILN_F16, &state),
              .wide = random_floats(KILN_F64, &state)};

  for (uint32_t i = 0; i < N; i++)
    sorted[i] = i / RUN;
  a.sorted = array_make(KILN_U32, N, 0, sorted, 0).array;
  a.u = array_make(KILN_U32, N, 0, kept(random_bits(N * 4, &state)), 0).array;
  a.bytes = array_make(KILN_U8, N, 0, kept(random_bits(N, &state)), 0).array;
  for (size_t i = 0; i < 3; i++) {
    out[i] = array_make(KILN_U8, OUT_BYTES, 0, NULL, 0x5a);
    a.out[i] = out[i].array;
  }
  return a;
}

/* Makes the call and returns the bytes of all outputs. */
static unsigned char *outputs_of(call_fn call, kiln_stream *s, const arrays *a,
                                 const test_array out[3])
{
  unsigned char *all = kept(malloc(3 * (size_t)OUT_BYTES));

  for (size_t i = 0; i < 3; i++)
    ck_kiln_ok(kiln_fill(device, a->out[i].data, 0x5a, 1, OUT_BYTES));
  ck_kiln_ok(call(s, a));
  ck_kiln_ok(kiln_stream_synchronize(s));
  for (size_t i = 0; i < 3; i++)
    memcpy(all + i * OUT_BYTES, kept(array_read(&out[i])), OUT_BYTES);
  return all;
}

START_TEST(both_forms_give_the_same_bits)
{
  const linked_case *c = &cases[_i];
  test_array out[3];
  arrays a;
  unsigned char *linked, *whole;
  unsigned seen;

  if (c->thorough && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  a = make_arrays(out);
  rt->link_use = KILN__LINK_ALWAYS;
  linked = outputs_of(c->call, stream, &a, out);
  seen = atomic_load(&n_linked);
  ck_assert_msg(c->whole ? seen == 0 : seen > 0, "%s: %u linked", c->name,
                seen);
  ck_assert_uint_eq(atomic_load(&n_whole), 0);
  rt->link_use = KILN__LINK_NEVER;
  whole = outputs_of(c->call, whole_stream, &a, out);
  ck_assert_uint_eq(atomic_load(&n_linked), seen);
  for (size_t i = 0; i < 3 * (size_t)OUT_BYTES; i++)
    ck_assert_msg(linked[i] == whole[i],
                  "%s: byte %zu of output %zu: linked %02x, whole %02x",
                  c->name, i % OUT_BYTES, i / OUT_BYTES, linked[i], whole[i]);
}
END_TEST

/* An expression that needs the kernel's headers compiles as a whole. */
START_TEST(falls_back_to_whole)
{
  test_array out[3];
  arrays a = make_arrays(out);

  ck_kiln_ok(far_call(stream, &a));
  ck_assert_uint_eq(atomic_load(&n_linked), 0);
  ck_assert_uint_eq(atomic_load(&n_whole), 1);
}
END_TEST

static kiln_status scaled(const char *expr, const arrays *a)
{
  const kiln_map_desc desc = {
      .in = {a->f}, .out = {as(a->out[0], KILN_F32)}, .expr = {expr}, .n = N};

  return kiln_map(stream, &desc, NULL);
}

/* Another expression of the same types compiles no kernel: the cache gains the
 * expression and the linked program. */
START_TEST(reuses_the_body)
{
  test_array out[3];
  arrays a = make_arrays(out);
  kiln_cache_stats before, after;

  ck_kiln_ok(scaled("x * 3", &a));
  ck_kiln_ok(kiln_cache_counters(rt, &before));
  ck_kiln_ok(scaled("x * 5", &a));
  ck_kiln_ok(kiln_cache_counters(rt, &after));
  ck_assert_uint_eq(atomic_load(&n_linked), 2);
  ck_assert_uint_eq(after.misses - before.misses, 2);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("linked");
  TCase *t = tcase_create("linked");

  tcase_add_unchecked_fixture(t, make_cache, remove_cache);
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_set_timeout(t, CASE_SECONDS);
  tcase_add_loop_test(t, both_forms_give_the_same_bits, 0, N_CASES);
  tcase_add_test(t, falls_back_to_whole);
  tcase_add_test(t, reuses_the_body);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
