/* pack_ops.c -- the bodies of operations for `kiln pack ops`: common calls of
 * every operation that links user expressions, for a list of types.
 *
 * The calls run on the CPU device with the capability of the target, where
 * kiln_ops_bodies() compiles each body for the target instead of running the
 * call. The addresses of arrays are therefore never used. */
#include "cli/pack_ops.h"

#include <string.h>

/* A call whose bodies are compiled. */
typedef struct call {
  kiln_stream *stream;
  kiln_dtype type; /* of the elements */
  uint64_t n;      /* number of elements */
} call;

static kiln_array at(unsigned k, kiln_dtype type)
{
  return (kiln_array){UINT64_C(0x100000000) * (k + 1), type};
}

static kiln_input one(const call *c, const char *map)
{
  return (kiln_input){.in = {at(0, c->type)}, .map = map, .type = c->type};
}

/* The identity of MAXIMUM need not be right, since nothing runs. */
#define MAXIMUM                                                                \
  {                                                                            \
    .expr = "a > b ? a : b", .identity = "0"                                   \
  }
#define PREDICATE .x = one(c, NULL), .predicate = "x > 0", .n = c->n
#define COUNT at(6, KILN_U32)
#define OUT at(4, c->type)
#define ROWS                                                                   \
  .x = one(c, "x > 0 ? x : 0"), .rows = c->n / 64, .columns = 64,              \
  .op = {.name = KILN_MAX}, .out = OUT

/* Calls X(operation, type of its descriptor, members of the descriptor). */
#define CALLS(X)                                                               \
  X(map, kiln_map_desc, .in = {at(0, c->type)}, .out = {OUT}, .expr = {"x"},   \
    .n = c->n)                                                                 \
  X(map, kiln_map_desc, .in = {at(0, c->type)}, .out = {OUT},                  \
    .expr = {"x > 0 ? x : 0"}, .n = c->n)                                      \
  X(map, kiln_map_desc, .in = {at(0, c->type), at(1, c->type)}, .out = {OUT},  \
    .expr = {"x > y ? x : y"}, .n = c->n)                                      \
  X(reduce, kiln_reduce_desc, .x = one(c, NULL), .n = c->n, .op = MAXIMUM,     \
    .out = OUT)                                                                \
  X(reduce, kiln_reduce_desc, .x = one(c, "x > 0 ? x : 0"), .n = c->n,         \
    .out = OUT)                                                                \
  X(reduce_rows, kiln_reduce_matrix_desc, ROWS)                                \
  X(reduce_columns, kiln_reduce_matrix_desc, ROWS)                             \
  X(segmented_reduce, kiln_segmented_reduce_desc, .x = one(c, NULL),           \
    .n = c->n, .n_segments = c->n / 16, .offsets = COUNT, .op = MAXIMUM,       \
    .out = OUT)                                                                \
  X(scan, kiln_scan_desc, .x = one(c, NULL), .n = c->n, .op = MAXIMUM,         \
    .out = OUT)                                                                \
  X(scan_by_key, kiln_scan_by_key_desc, .keys = at(2, KILN_U32),               \
    .x = one(c, NULL), .n = c->n, .op = MAXIMUM, .out = OUT)                   \
  X(adjacent_difference, kiln_adjacent_difference_desc, .x = one(c, NULL),     \
    .n = c->n, .expr = "a > b ? a : b", .out = OUT)                            \
  X(select, kiln_select_desc, PREDICATE, .out = OUT, .count = COUNT)           \
  X(unique, kiln_unique_desc, .x = one(c, NULL), .n = c->n, .equal = "a >= b", \
    .out = OUT, .count = COUNT)                                                \
  X(partition, kiln_partition_desc, .x = one(c, NULL), .first = "x > 0",       \
    .n = c->n, .out = OUT, .count = COUNT)                                     \
  X(split, kiln_split_desc, .x = one(c, NULL), .key = "x > 0 ? 1 : 0",         \
    .parts = 16, .n = c->n, .out = OUT, .offsets = COUNT)                      \
  X(run_length_encode, kiln_run_length_desc, .x = one(c, NULL), .n = c->n,     \
    .equal = "a >= b", .values = OUT, .lengths = at(5, KILN_U32),              \
    .count = COUNT)                                                            \
  X(find, kiln_find_desc, PREDICATE, .out = COUNT)                             \
  X(count, kiln_find_desc, PREDICATE, .out = COUNT)                            \
  X(any, kiln_find_desc, PREDICATE, .out = COUNT)                              \
  X(all, kiln_find_desc, PREDICATE, .out = COUNT)                              \
  X(histogram, kiln_histogram_desc,                                            \
    .x = {.in = {at(0, c->type)}, .map = "x > 0 ? 1 : 0", .type = KILN_U32},   \
    .n = c->n, .bins = 256, .counts = COUNT)                                   \
  X(merge, kiln_merge_desc, .a = at(0, c->type), .b = at(1, c->type),          \
    .n_a = c->n, .n_b = c->n, .out = OUT, .less = "a > b")                     \
  X(search, kiln_search_desc, .sorted = at(0, c->type), .m = c->n,             \
    .needles = {.in = {at(1, c->type)}}, .n = c->n, .out = COUNT,              \
    .less = "a > b")

/* Makes all calls. Returns the first status that is no result of
 * kiln_ops_bodies(). */
static kiln_status make_calls(const call *c)
{
  kiln_status st;

#define MAKE(op, desc_type, ...)                                               \
  {                                                                            \
    const desc_type desc = {__VA_ARGS__};                                      \
                                                                               \
    st = kiln_##op(c->stream, &desc, NULL);                                    \
    if (st != KILN_ECANCELED)                                                  \
      return st;                                                               \
  }
  CALLS(MAKE)
#undef MAKE
  return KILN_OK;
}

/* Keeps an image unless the list has it already. Callback of
 * kiln_ops_bodies(). */
static kiln_status keep(void *user, kiln_image *image)
{
  cli_bodies *b = user;
  const char *hash, *other;

  kiln_image_key(image, &hash);
  for (size_t i = 0; i < b->n; i++) {
    kiln_image_key(b->image[i], &other);
    if (strcmp(hash, other) == 0) {
      kiln_image_free(image);
      return KILN_OK;
    }
  }
  b->image =
      kiln__cli_grow(b->c, b->image, b->n, &b->capacity, sizeof *b->image);
  b->image[b->n++] = image;
  return KILN_OK;
}

static kiln_status for_types(cli_bodies *b, kiln_stream *stream,
                             const kiln_dtype *types, size_t n_types)
{
  /* One size of each class that operations distinguish. */
  static const uint64_t sizes[] = {1 << 12, 1 << 20, 1 << 26};

  for (size_t i = 0; i < n_types; i++) {
    kiln__cli_progress(b->c, "type", i, n_types);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
      CLI_TRY(make_calls(&(call){stream, types[i], sizes[k]}));
  }
  kiln__cli_progress(b->c, "type", n_types, n_types);
  return KILN_OK;
}

kiln_status kiln__cli_bodies(cli_bodies *b, const kiln_target *target,
                             const kiln_dtype *types, size_t n_types)
{
  const kiln_cpu_opts cpu = {.arch = target->cc};
  kiln_runtime_opts opts = b->c->opts;
  kiln_device *device = NULL;
  kiln_stream *stream = NULL;
  kiln_runtime *rt = NULL;
  kiln_status st;

  opts.driver_path = NULL;
  opts.driver = kiln_cpu_driver();
  st = kiln_cpu_configure(&cpu);
  if (st == KILN_OK)
    st = kiln_runtime_create(&rt, &opts);
  if (st == KILN_OK)
    st = kiln_device_open(&device, rt, 0, NULL);
  if (st == KILN_OK)
    st = kiln_stream_create(&stream, device, NULL);
  if (st == KILN_OK)
    st = kiln_ops_bodies(device, target, keep, b);
  if (st == KILN_OK)
    st = for_types(b, stream, types, n_types);
  kiln_stream_free(stream);
  kiln_device_free(device);
  if (b->n_runtimes < CLI_BODIES_RUNTIMES)
    b->rt[b->n_runtimes++] = rt; /* the images use the runtime's allocator */
  return st;
}

void kiln__cli_free_bodies(cli_bodies *b)
{
  for (size_t i = 0; i < b->n; i++)
    kiln_image_free(b->image[i]);
  for (size_t i = 0; i < b->n_runtimes; i++)
    kiln_runtime_free(b->rt[i]);
}
