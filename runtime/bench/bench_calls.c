/* bench_calls.c -- `kiln bench calls`: what a call of each operation costs the
 * host. The first one with an empty cache (compile included), the first one with
 * what is on disk, and every later one beside its bare launches. */
#include "bench_calls.h"

#include "bench_start.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#define TRY(expression)                                                        \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

enum {
  BATCH = 64, /* calls between two waits: far fewer launches than a driver
                 queues before it blocks */
  BATCHES = 41,
  WARM_UP = 4,
  MAX_REPEATS = 25,
  MAX_SIZES = 4
};

/* Wanted: milliseconds, milliseconds, ratio. */
static const double wanted_cold = 60, wanted_disk = 1, wanted_ratio = 1.5;

typedef struct options {
  const char *json, *only;
  unsigned bits[MAX_SIZES], repeats;
  size_t n_bits;
  int device;
} options;

typedef struct bench {
  cli *c;
  const options *o;
  kiln_device *device;
  kiln_stream *stream, *watched;
  kiln_timeline *timeline;
  kiln_device_info info;
  calls_bare *bare;
  const char *no_bare;
  calls_data data;
  char *folder; /* for caches */
  unsigned n_folders;
  double very_first_ms; /* NVRTC loaded, a saxpy compiled */
  unsigned missed, asked;
} bench;

typedef struct outcome {
  size_t launches, others; /* fills and copies */
  double cold_ms, disk_ms, call_us, bare_us;
} outcome;

static const char usage_text[] =
    "usage: kiln bench calls [--sizes 12,20] [--repeats N] [--only TEXT]\n"
    "                        [--device N] [--json FILE]\n"
    "What a call of each operation costs the host: the first one, compile "
    "included\n(a runtime with an empty cache folder); the first one of a "
    "runtime whose cache\nfolder has the code; and any later one, beside the "
    "same launches by bare\ncuLaunchKernel (and fills, \"1 + 1\", by "
    "cuMemsetD32Async). What is above 60 ms, 1 ms\nand 1.5 times is marked.\n"
    "  --sizes    log2 of the elements, 12 to 24, four at most\n"
    "  --repeats  first calls of each kind, 5 by default\n"
    "  --only     operations whose name holds TEXT\n"
    "  --device   GPU to use, default 0\n"
    "  --json     write every figure to FILE\n";

/* False: stop with *rc. */
static bool parse(cli *c, options *o, int argc, char **argv, int *rc)
{
  static const struct option known[] = {
      {"sizes", required_argument, NULL, 's'},
      {"repeats", required_argument, NULL, 'r'},
      {"only", required_argument, NULL, 'o'},
      {"device", required_argument, NULL, 'd'},
      {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  int opt;

  *o = (options){.bits = {12, 20}, .n_bits = 2, .repeats = 5};
  *rc = CLI_OK;
  while ((opt = getopt_long(argc, argv, "h", known, NULL)) != -1) {
    switch (opt) {
    case 's':
      o->n_bits = kiln__cli_sizes(optarg, 12, 24, o->bits, MAX_SIZES);
      if (o->n_bits > 0)
        break;
      *rc = kiln__cli_usage(c, "--sizes takes up to four numbers, 12 to 24");
      return false;
    case 'r':
      o->repeats = (unsigned)atoi(optarg);
      if (o->repeats >= 1 && o->repeats <= MAX_REPEATS)
        break;
      *rc = kiln__cli_usage(c, "--repeats takes 1 to %d", (int)MAX_REPEATS);
      return false;
    case 'o':
      o->only = optarg;
      break;
    case 'd':
      o->device = atoi(optarg);
      break;
    case 'j':
      o->json = optarg;
      break;
    case 'h':
      fputs(usage_text, stdout);
      return false;
    default:
      *rc = kiln__cli_usage(c, NULL);
      return false;
    }
  }
  if (optind < argc)
    *rc = kiln__cli_usage(c, "takes no \"%s\"", argv[optind]);
  return *rc == CLI_OK;
}

/* ---- Data ------------------------------------------------------------------- */

static kiln_status fill(bench *b, CUdeviceptr to, uint64_t n, const char *expr)
{
  const kiln_param size = {"n", KILN_U64, &b->data.n, false};
  const kiln_map_desc desc = {
      .out = {{to, KILN_U32}},
      .expr = {expr},
      .n = n,
      .code = {.preamble = "__device__ unsigned hash(unsigned long long v)\n"
                           "{\n"
                           "  v = (v ^ v >> 33) * 0xff51afd7ed558ccdull;\n"
                           "  v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ull;\n"
                           "  return (unsigned)(v ^ v >> 33);\n"
                           "}\n",
               .params = &size,
               .n_params = 1}};

  return kiln_map(b->stream, &desc, NULL);
}

static kiln_status fill_all(bench *b, uint64_t n)
{
  calls_data *d = &b->data;

  d->n = n;
  TRY(fill(b, d->keys, n, "hash(i + 1)"));
  TRY(fill(b, d->small, n, "hash(i + 1) % 256"));
  TRY(fill(b, d->places, n, "i * 40503 % n"));
  TRY(fill(b, d->sorted, n, "i / 16"));
  TRY(fill(b, d->offsets, n / 16 + 1, "i * 16"));
  return kiln_stream_synchronize(b->stream);
}

static kiln_status allocate(bench *b)
{
  calls_data *d = &b->data;
  CUdeviceptr *const inputs[] = {&d->keys, &d->small, &d->places, &d->sorted,
                                 &d->offsets};
  uint64_t most = 0;

  for (size_t i = 0; i < b->o->n_bits; i++)
    if (UINT64_C(1) << b->o->bits[i] > most)
      most = UINT64_C(1) << b->o->bits[i];
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
    TRY(kiln_memory_alloc(inputs[i], b->device, (size_t)most * 4 + 4));
  for (size_t i = 0; i < 3; i++)
    TRY(kiln_memory_alloc(&d->out[i], b->device, (size_t)most * 8));
  for (size_t i = 0; i < 2; i++)
    TRY(kiln_memory_alloc(&d->one[i], b->device, 256 << 10));
  return KILN_OK;
}

static void release(bench *b)
{
  const calls_data *d = &b->data;
  const CUdeviceptr all[] = {d->keys,    d->small,  d->places, d->sorted,
                             d->offsets, d->out[0], d->out[1], d->out[2],
                             d->one[0],  d->one[1]};

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    kiln_memory_free(b->device, all[i]);
}

/* ---- First calls ------------------------------------------------------------- */

static const char saxpy_source[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,\n"
    "                                 unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n";

/* What a program has done long before: driver and compiler are looked up, the
 * cache is open. */
static kiln_status load_saxpy(kiln_device *device)
{
  const kiln_program_desc desc = {.source = saxpy_source, .name = "saxpy.cu"};
  kiln_module *module = NULL;
  kiln_status st = kiln_module_load(&module, device, &desc);

  kiln_module_free(module);
  return st;
}

/* A runtime with a cache folder, and nothing in memory. */
typedef struct fresh {
  kiln_runtime *rt;
  kiln_device *device;
  kiln_stream *stream;
} fresh;

static kiln_status open_fresh(bench *b, fresh *f, const char *cache)
{
  kiln_runtime_opts opts = b->c->opts;

  opts.cache_dir = cache;
  if (b->c->on_cpu) {
    opts.driver_path = NULL;
    opts.driver = kiln_cpu_driver();
  }
  TRY(kiln_runtime_create(&f->rt, &opts));
  TRY(kiln_device_open(&f->device, f->rt, b->o->device, NULL));
  TRY(kiln_stream_create(&f->stream, f->device, NULL));
  return load_saxpy(f->device);
}

static void close_fresh(fresh *f)
{
  kiln_stream_free(f->stream);
  kiln_device_free(f->device);
  kiln_runtime_free(f->rt);
}

static kiln_status time_first(bench *b, const calls_case *call,
                              const char *cache, double *ms)
{
  fresh f = {0};
  kiln_status st = open_fresh(b, &f, cache);
  const double begin = kiln__cli_now_ns();

  if (st == KILN_OK)
    st = call->call(f.stream, &b->data, NULL, NULL);
  *ms = (kiln__cli_now_ns() - begin) / 1e6;
  if (st == KILN_OK)
    st = kiln_stream_synchronize(f.stream);
  close_fresh(&f);
  return st;
}

static kiln_status first_calls(bench *b, const calls_case *call, outcome *out)
{
  double cold[MAX_REPEATS], disk[MAX_REPEATS];

  for (unsigned r = 0; r < b->o->repeats; r++) {
    const char *cache =
        kiln__cli_text(b->c, "%s/%u", b->folder, b->n_folders++);

    TRY(time_first(b, call, cache, &cold[r]));
    TRY(time_first(b, call, cache, &disk[r]));
  }
  out->cold_ms = kiln__cli_median(cold, b->o->repeats);
  out->disk_ms = kiln__cli_median(disk, b->o->repeats);
  return KILN_OK;
}

/* ---- Later calls --------------------------------------------------------------- */

static void count_span(void *user, const kiln_span *span)
{
  outcome *out = user;

  if (span->row == 0)
    return;
  if (strncmp(span->name, "fill ", 5) == 0 ||
      strncmp(span->name, "copy ", 5) == 0)
    out->others++;
  else
    out->launches++;
}

static kiln_status count_launches(bench *b, const calls_case *call,
                                  outcome *out)
{
  kiln_timeline *timeline = NULL;
  kiln_status st;

  TRY(call->call(b->watched, &b->data, NULL, NULL)); /* compiles, allocates */
  TRY(kiln_stream_synchronize(b->watched));
  TRY(kiln_timeline_create(&timeline, b->device));
  st = kiln_stream_attach(b->watched, timeline);
  if (st == KILN_OK)
    st = call->call(b->watched, &b->data, NULL, NULL);
  if (st == KILN_OK)
    st = kiln_timeline_each(timeline, count_span, out);
  kiln_stream_attach(b->watched, NULL);
  kiln_timeline_free(timeline);
  return st;
}

/* Microseconds a call. The stream is idle before and after, and neither wait is
 * timed. */
static kiln_status time_batch(bench *b, const calls_case *call, bool bare,
                              double *us)
{
  kiln_status st = KILN_OK;
  bool fired = true;
  double begin;

  kiln__bench_bare_current(b->bare, true);
  begin = kiln__cli_now_ns();
  for (int i = 0; i < BATCH; i++)
    if (bare)
      fired &= kiln__bench_bare_fire(b->bare);
    else if (st == KILN_OK)
      st = call->call(b->stream, &b->data, NULL, NULL);
  *us = (kiln__cli_now_ns() - begin) / 1e3 / BATCH;
  kiln__bench_bare_current(b->bare, false);
  TRY(st);
  if (!fired)
    kiln__cli_say(b->c, NULL, "%s: a bare cuLaunchKernel failed", call->label);
  return kiln_stream_synchronize(b->stream);
}

static kiln_status later_calls(bench *b, const calls_case *call, outcome *out)
{
  double times[2][BATCHES];

  TRY(call->call(b->stream, &b->data, NULL, NULL));
  TRY(kiln__bench_bare_record(b->bare, call, &b->data, out->others));
  for (int i = -WARM_UP; i < BATCHES; i++)
    for (int w = 0; w < 2; w++) {
      /* There and back: nobody always follows the same one. */
      const int way = i % 2 == 0 ? w : 1 - w;
      double us;

      TRY(time_batch(b, call, way == 1, &us));
      if (i >= 0)
        times[way][i] = us;
    }
  out->call_us = kiln__cli_median(times[0], BATCHES);
  out->bare_us = kiln__cli_median(times[1], BATCHES);
  return KILN_OK;
}

/* ---- The table ------------------------------------------------------------------ */

static void cell(bench *b, cli_table *t, double value, double wanted,
                 const char *unit)
{
  const bool held = value <= wanted;

  b->asked++;
  b->missed += !held;
  kiln__cli_cell(t, "%.2f%s%s", value, unit, held ? "" : " !");
}

static void print_outcome(bench *b, cli_table *t, const calls_case *call,
                          const outcome *o)
{
  kiln__cli_cell(t, "%s", call->label);
  kiln__cli_cell(t, "%llu", (unsigned long long)b->data.n);
  kiln__cli_cell(t, o->others > 0 ? "%zu + %zu" : "%zu", o->launches,
                 o->others);
  cell(b, t, o->cold_ms, wanted_cold, "");
  cell(b, t, o->disk_ms, wanted_disk, "");
  if (o->bare_us > 0) {
    kiln__cli_cell(t, "%.2f", o->call_us);
    kiln__cli_cell(t, "%.2f", o->bare_us);
    cell(b, t, o->call_us / o->bare_us, wanted_ratio, "x");
  } else {
    for (int i = 0; i < 3; i++)
      kiln__cli_cell(t, "-");
  }
}

static cJSON *outcome_json(const bench *b, const calls_case *call,
                           const outcome *o)
{
  cJSON *j = cJSON_CreateObject();

  cJSON_AddStringToObject(j, "call", call->label);
  cJSON_AddNumberToObject(j, "n", (double)b->data.n);
  cJSON_AddNumberToObject(j, "launches", (double)o->launches);
  cJSON_AddNumberToObject(j, "fills_and_copies", (double)o->others);
  cJSON_AddNumberToObject(j, "cold_ms", o->cold_ms);
  cJSON_AddNumberToObject(j, "disk_ms", o->disk_ms);
  if (o->bare_us > 0) {
    cJSON_AddNumberToObject(j, "call_us", o->call_us);
    cJSON_AddNumberToObject(j, "bare_us", o->bare_us);
    cJSON_AddNumberToObject(j, "ratio", o->call_us / o->bare_us);
  }
  return j;
}

static kiln_status run_case(bench *b, const calls_case *call, outcome *out)
{
  TRY(count_launches(b, call, out));
  if (b->bare != NULL)
    TRY(later_calls(b, call, out));
  return first_calls(b, call, out);
}

static size_t count_cases(const options *o)
{
  size_t n = 0;

  for (const calls_case *k = kiln__bench_calls_table; k->label != NULL; k++)
    n += o->only == NULL || strstr(k->label, o->only) != NULL;
  return n * o->n_bits;
}

static int run_cases(bench *b, cJSON *list, cli_table *table)
{
  const size_t total = count_cases(b->o);
  size_t done = 0;

  for (size_t i = 0; i < b->o->n_bits; i++) {
    if (fill_all(b, UINT64_C(1) << b->o->bits[i]) != KILN_OK)
      return kiln__cli_failure(b->c, "inputs");
    for (const calls_case *k = kiln__bench_calls_table; k->label != NULL; k++) {
      outcome out = {0};

      if (b->o->only != NULL && strstr(k->label, b->o->only) == NULL)
        continue;
      kiln__cli_progress(b->c, "call", done++, total);
      if (run_case(b, k, &out) != KILN_OK)
        return kiln__cli_failure(b->c, k->label);
      print_outcome(b, table, k, &out);
      cJSON_AddItemToArray(list, outcome_json(b, k, &out));
    }
  }
  kiln__cli_progress(b->c, "call", total, total);
  return CLI_OK;
}

static void describe(const bench *b)
{
  printf("%s. First calls: medians of %u, each with a runtime and a cache "
         "folder of its own,\nafter it loaded a saxpy (the very first, which "
         "loads NVRTC: %.1f ms).",
         b->info.name, b->o->repeats, b->very_first_ms);
  if (b->bare != NULL)
    printf(" Later calls: medians of %d batches of %d,\nin turns with their "
           "launches by bare cuLaunchKernel.\n",
           (int)BATCHES, (int)BATCH);
  else
    printf("\nLater calls are not timed: %s.\n", b->no_bare);
  if (b->c->on_cpu)
    puts(
        "The CPU device: first calls hold the time that it takes to run them.");
}

static int run_all(bench *b, cJSON *json)
{
  static const char *const heads[] = {
      "call",      ">n",        ">launches",
      ">cold, ms", ">disk, ms", ">later call, us",
      ">bare, us", ">ratio",    NULL};
  cli_table table;
  int rc;

  cJSON_AddStringToObject(json, "device", b->info.name);
  cJSON_AddNumberToObject(json, "very_first_ms", b->very_first_ms);
  kiln__cli_table(&table, b->c, heads);
  rc = run_cases(b, cJSON_AddArrayToObject(json, "calls"), &table);
  describe(b);
  putchar('\n');
  kiln__cli_table_print(&table, 0);
  printf(
      "\n%u of %u hold what is wanted (%.0f ms, %.0f ms, %.1fx); ! marks the "
      "others\n",
      b->asked - b->missed, b->asked, wanted_cold, wanted_disk, wanted_ratio);
  return rc;
}

/* ---- The command ------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *at)
{
  (void)info, (void)type, (void)at;
  return remove(path);
}

static int make_folder(bench *b)
{
  const char *base = getenv("TMPDIR");

  b->folder = kiln__cli_text(b->c, "%s/kiln-calls-XXXXXX",
                             base == NULL || base[0] == '\0' ? "/tmp" : base);
  if (mkdtemp(b->folder) != NULL)
    return CLI_OK;
  kiln__cli_say(b->c, "set TMPDIR to a folder that can be written",
                "cannot make %s: %s", b->folder, strerror(errno));
  b->folder = NULL;
  return CLI_FAILED;
}

static kiln_status open_bench(bench *b)
{
  kiln_program_desc first = {
      .source = saxpy_source, .name = "saxpy.cu", .no_cache = true};
  kiln_module *module = NULL;
  double begin;

  TRY(kiln_device_open(&b->device, b->c->rt, b->o->device, NULL));
  TRY(kiln_device_describe(b->device, &b->info));
  TRY(kiln_stream_create(&b->stream, b->device, NULL));
  TRY(kiln_stream_create(&b->watched, b->device, NULL));
  TRY(allocate(b));
  begin = kiln__cli_now_ns();
  TRY(kiln_module_load(&module, b->device, &first));
  b->very_first_ms = (kiln__cli_now_ns() - begin) / 1e6;
  kiln_module_free(module);
  b->bare = kiln__bench_bare_open(b->c, b->stream, &b->no_bare);
  return KILN_OK;
}

static void close_bench(bench *b)
{
  kiln__bench_bare_close(b->bare);
  if (b->device != NULL)
    release(b);
  kiln_stream_free(b->watched);
  kiln_stream_free(b->stream);
  kiln_device_free(b->device);
  if (b->folder != NULL)
    nftw(b->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int kiln__cli_bench_calls(cli *c, int argc, char **argv)
{
  options o;
  bench b = {.c = c, .o = &o};
  cJSON *json;
  int rc;

  if (!parse(c, &o, argc, argv, &rc))
    return rc;
  unsetenv("KILN_PACKS"); /* a cold call must compile */
  json = cJSON_CreateObject();
  rc = make_folder(&b);
  if (rc == CLI_OK)
    rc = open_bench(&b) == KILN_OK ? run_all(&b, json)
                                   : kiln__cli_failure(c, "device");
  close_bench(&b);
  if (rc == CLI_OK && o.json != NULL)
    return kiln__cli_json(c, json, o.json);
  cJSON_Delete(json);
  return rc;
}
