/* bench_calls.c -- `kiln bench calls`, which measures the host time of a call
 * of each operation. Four times are measured: the first call with an empty
 * cache, which compiles; the first call with the code on disk; the first call
 * with user expressions that no cache has, while the code around them is on
 * disk; and later calls.
 * Later calls are compared with bare launches of the same number of kernels.
 *
 * Every first call uses a runtime and a cache folder of its own, since a
 * runtime keeps compiled code in memory. Later calls and bare launches are
 * timed in alternating batches. The stream is idle between batches. Therefore
 * the queue never fills, and only the host time is measured. */
#include "bench/bench_calls.h"

#include <stdlib.h>
#include <string.h>

enum {
  /* Number of calls between two synchronisations, far below the number of
   * launches that a driver queues before it blocks. */
  BATCH = 64,
  BATCHES = 41,
  WARM_UP = 4,
  MAX_REPEATS = 25
};

/* Performance goals: milliseconds for a call that compiles, for a call with the
 * code on disk, and for a call with unseen expressions; and the ratio of the
 * host time to that of bare launches. */
static const double wanted_cold = 60, wanted_disk = 1, wanted_ratio = 1.5,
                    wanted_linked = 60;

typedef struct bench {
  cli *c;
  const bench_options *o;
  kiln_device *device;
  kiln_stream *stream, *watched;
  kiln_timeline *timeline;
  kiln_device_info info;
  calls_bare *bare;
  const char *no_bare;
  calls_data data;
  char *folder; /* parent folder of the cache folders */
  unsigned n_folders;
  double very_first_ms; /* milliseconds to load NVRTC and compile a saxpy */
  unsigned missed, asked;
  /* times of all first calls with an empty cache, and of those with unseen
   * expressions */
  double *cold, *linked;
  unsigned n_cold, n_linked, n_unseen;
} bench;

typedef struct outcome {
  /* Number of kernel launches, and number of fills and copies. */
  size_t launches, others;
  double cold_ms, disk_ms, call_us, bare_us;
  double linked_ms; /* 0 if the call has no user expressions */
} outcome;

/* ---- Data --------------------------------------------------------------- */

/* Fills n elements of type u32 from their index i. */
static kiln_status fill(bench *b, CUdeviceptr to, uint64_t n, const char *expr)
{
  return kiln__bench_fill(b->stream, to, KILN_U32, n, expr);
}

static kiln_status fill_all(bench *b, uint64_t n)
{
  calls_data *d = &b->data;

  d->n = n;
  CLI_TRY(fill(b, d->keys, n, "hash(i + 1)"));
  CLI_TRY(fill(b, d->small, n, "hash(i + 1) % 256"));
  CLI_TRY(fill(b, d->places, n, "i * 40503 % n"));
  CLI_TRY(fill(b, d->sorted, n, "i / 16"));
  CLI_TRY(fill(b, d->offsets, n / 16 + 1, "i * 16"));
  return kiln_stream_synchronize(b->stream);
}

/* Allocates buffers for the largest size. fill_all() fills the buffers for
 * each size. */
static kiln_status allocate(bench *b)
{
  calls_data *d = &b->data;
  CUdeviceptr *const inputs[] = {&d->keys, &d->small, &d->places, &d->sorted,
                                 &d->offsets};
  const uint64_t most = kiln__bench_most(&b->o->sizes);

  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
    CLI_TRY(kiln_memory_alloc(inputs[i], b->device, (size_t)most * 4 + 4));
  for (size_t i = 0; i < 3; i++)
    CLI_TRY(kiln_memory_alloc(&d->out[i], b->device, (size_t)most * 8));
  for (size_t i = 0; i < 2; i++)
    CLI_TRY(kiln_memory_alloc(&d->one[i], b->device, 256 << 10));
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

/* ---- First calls -------------------------------------------------------- */

/* Loads a saxpy before the measurement. A real program has usually found the
 * driver and the compiler and opened the cache before it calls an operation. */
static kiln_status load_saxpy(kiln_device *device)
{
  const kiln_program_desc desc = {.source = kiln__bench_saxpy,
                                  .name = "saxpy.cu"};
  kiln_module *module = NULL;
  kiln_status st = kiln_module_load(&module, device, &desc);

  kiln_module_free(module);
  return st;
}

/* Creates a separate runtime with a cache folder and no code in memory. */
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
  CLI_TRY(kiln_runtime_create(&f->rt, &opts));
  CLI_TRY(kiln_device_open(&f->device, f->rt, b->o->device, NULL));
  CLI_TRY(kiln_stream_create(&f->stream, f->device, NULL));
  return load_saxpy(f->device);
}

static void close_fresh(fresh *f)
{
  kiln_stream_free(f->stream);
  kiln_device_free(f->device);
  kiln_runtime_free(f->rt);
}

/* Measures the milliseconds of one call in a fresh runtime on this cache
 * folder. */
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

/* Measures the milliseconds of one call with expressions that no cache has.
 * Returns 0 for a call without expressions. */
static kiln_status time_unseen(bench *b, const calls_case *call,
                               const char *cache, double *ms)
{
  unsigned n_texts = 0;
  kiln_status st;

  b->data.unseen = ++b->n_unseen;
  b->data.n_texts = &n_texts;
  b->data.c = b->c;
  st = time_first(b, call, cache, ms);
  b->data.unseen = 0;
  b->data.n_texts = NULL; /* it is valid in this function only */
  if (n_texts == 0)
    *ms = 0;
  return st;
}

/* Measures the medians of the first call with an empty cache folder, with the
 * filled cache folder, and with unseen expressions. */
static kiln_status first_calls(bench *b, const calls_case *call, outcome *out)
{
  double cold[MAX_REPEATS], disk[MAX_REPEATS], linked[MAX_REPEATS];

  for (unsigned r = 0; r < b->o->repeats; r++) {
    const char *cache =
        kiln__cli_text(b->c, "%s/%u", b->folder, b->n_folders++);

    CLI_TRY(time_first(b, call, cache, &cold[r]));
    CLI_TRY(time_first(b, call, cache, &disk[r]));
    CLI_TRY(time_unseen(b, call, cache, &linked[r]));
  }
  out->cold_ms = kiln__cli_median(cold, b->o->repeats);
  out->disk_ms = kiln__cli_median(disk, b->o->repeats);
  out->linked_ms = kiln__cli_median(linked, b->o->repeats);
  b->cold[b->n_cold++] = out->cold_ms;
  if (out->linked_ms > 0)
    b->linked[b->n_linked++] = out->linked_ms;
  return KILN_OK;
}

/* ---- Later calls -------------------------------------------------------- */

/* Counts launches and other device work. Row 0 of the timeline belongs to the
 * host and is skipped. Callback of kiln_timeline_each(). */
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

/* Counts the launches of one later call, by a timeline on a separate stream. */
static kiln_status count_launches(bench *b, const calls_case *call,
                                  outcome *out)
{
  kiln_timeline *timeline = NULL;
  kiln_status st;

  /* The first call compiles kernels and allocates memory, so it is not
   * counted. */
  CLI_TRY(call->call(b->watched, &b->data, NULL, NULL));
  CLI_TRY(kiln_stream_synchronize(b->watched));
  CLI_TRY(kiln_timeline_create(&timeline, b->device));
  st = kiln_stream_attach(b->watched, timeline);
  if (st == KILN_OK)
    st = call->call(b->watched, &b->data, NULL, NULL);
  if (st == KILN_OK)
    st = kiln_timeline_each(timeline, count_span, out);
  kiln_stream_attach(b->watched, NULL);
  kiln_timeline_free(timeline);
  return st;
}

/* Measures the microseconds per call of one batch. The stream is idle before
 * and after the batch, and neither wait is timed. */
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
  CLI_TRY(st);
  if (!fired)
    kiln__cli_message(b->c, NULL, "%s: a bare cuLaunchKernel failed",
                      call->label);
  return kiln_stream_synchronize(b->stream);
}

/* Measures the median host time of a later call, and the median of its bare
 * launches (the same kernels without Kiln), in microseconds. */
static kiln_status later_calls(bench *b, const calls_case *call, outcome *out)
{
  double times[2][BATCHES];

  CLI_TRY(call->call(b->stream, &b->data, NULL, NULL));
  CLI_TRY(kiln__bench_bare_record(b->bare, call, &b->data, out->others));
  for (int i = -WARM_UP; i < BATCHES; i++)
    for (int w = 0; w < 2; w++) {
      /* Odd batches run in reverse order, so that neither the calls nor the
       * bare launches always run first. */
      const int way = i % 2 == 0 ? w : 1 - w;
      double us;

      CLI_TRY(time_batch(b, call, way == 1, &us));
      if (i >= 0)
        times[way][i] = us;
    }
  out->call_us = kiln__cli_median(times[0], BATCHES);
  out->bare_us = kiln__cli_median(times[1], BATCHES);
  return KILN_OK;
}

/* ---- The table ---------------------------------------------------------- */

/* Adds a table cell with a measured value, which is marked if the value misses
 * its goal. */
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
  if (o->linked_ms > 0)
    cell(b, t, o->linked_ms, wanted_linked, "");
  else
    kiln__cli_cell(t, "-");
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

  JSON_TEXT(j, "call", call->label);
  JSON_NUMBER(j, "n", b->data.n);
  JSON_NUMBER(j, "launches", o->launches);
  JSON_NUMBER(j, "fills_and_copies", o->others);
  JSON_NUMBER(j, "cold_ms", o->cold_ms);
  JSON_NUMBER(j, "disk_ms", o->disk_ms);
  if (o->linked_ms > 0)
    JSON_NUMBER(j, "linked_ms", o->linked_ms);
  if (o->bare_us > 0) {
    JSON_NUMBER(j, "call_us", o->call_us);
    JSON_NUMBER(j, "bare_us", o->bare_us);
    JSON_NUMBER(j, "ratio", o->call_us / o->bare_us);
  }
  return j;
}

static kiln_status run_case(bench *b, const calls_case *call, outcome *out)
{
  CLI_TRY(count_launches(b, call, out));
  if (b->bare != NULL)
    CLI_TRY(later_calls(b, call, out));
  return first_calls(b, call, out);
}

static size_t count_cases(const bench_options *o)
{
  size_t n = 0;

  for (const calls_case *k = kiln__bench_calls_table; k->label != NULL; k++)
    n += kiln__bench_chosen(o, k->label);
  return n * o->sizes.n;
}

static int run_cases(bench *b, cJSON *list, cli_table *table)
{
  const size_t total = count_cases(b->o);
  size_t done = 0;

  for (size_t i = 0; i < b->o->sizes.n; i++) {
    if (fill_all(b, UINT64_C(1) << b->o->sizes.bits[i]) != KILN_OK)
      return kiln__cli_failure(b->c, "inputs");
    for (const calls_case *k = kiln__bench_calls_table; k->label != NULL; k++) {
      outcome out = {0};

      if (!kiln__bench_chosen(b->o, k->label))
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

/* Prints the median and the largest of n times. */
static void print_median(const char *what, double *ms, unsigned n)
{
  double most = 0;

  if (n == 0)
    return;
  for (unsigned i = 0; i < n; i++)
    most = ms[i] > most ? ms[i] : most;
  printf("%s; median %.1f ms, worst %.1f ms of %u\n", what,
         kiln__cli_median(ms, n), most, n);
}

static int run_all(bench *b, cJSON *json)
{
  static const char *const heads[] = {
      "call",      ">n",          ">launches",       ">cold, ms",
      ">disk, ms", ">linked, ms", ">later call, us", ">bare, us",
      ">ratio",    NULL};
  cli_table table;
  int rc;

  b->cold = kiln__cli_alloc(b->c, count_cases(b->o) + 1, sizeof *b->cold);
  b->linked = kiln__cli_alloc(b->c, count_cases(b->o) + 1, sizeof *b->linked);
  JSON_TEXT(json, "device", b->info.name);
  JSON_NUMBER(json, "very_first_ms", b->very_first_ms);
  kiln__cli_table(&table, b->c, heads);
  rc = run_cases(b, cJSON_AddArrayToObject(json, "calls"), &table);
  describe(b);
  putchar('\n');
  kiln__cli_table_print(&table, 0);
  putchar('\n');
  print_median("cold: first calls with an empty cache", b->cold, b->n_cold);
  print_median("linked: first calls with expressions that no cache has",
               b->linked, b->n_linked);
  printf("\n%u of %u figures reach their aim (%.0f ms, %.0f ms, %.0f ms, "
         "%.1fx); ! marks the others\n",
         b->asked - b->missed, b->asked, wanted_cold, wanted_disk,
         wanted_linked, wanted_ratio);
  return rc;
}

/* ---- The command -------------------------------------------------------- */

static kiln_status open_bench(bench *b)
{
  kiln_program_desc first = {
      .source = kiln__bench_saxpy, .name = "saxpy.cu", .no_cache = true};
  kiln_module *module = NULL;
  double begin;

  CLI_TRY(kiln_device_open(&b->device, b->c->rt, b->o->device, NULL));
  CLI_TRY(kiln_device_describe(b->device, &b->info));
  CLI_TRY(kiln_stream_create(&b->stream, b->device, NULL));
  CLI_TRY(kiln_stream_create(&b->watched, b->device, NULL));
  CLI_TRY(allocate(b));
  begin = kiln__cli_now_ns();
  CLI_TRY(kiln_module_load(&module, b->device, &first));
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
  kiln__cli_remove_folder(b->folder);
}

int kiln__bench_calls(cli *c, int argc, char **argv)
{
  bench_options o = {.sizes = {{12, 20}, 2}, .repeats = 5};
  const cli_option options[] = {
      CLI_OPTION_SIZES(&o.sizes, 12, 24, "log2 of the elements; default 12,20"),
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, MAX_REPEATS,
                        "first calls of each kind; default 5"),
      BENCH_OPTION_ONLY(&o, "operations with a name"),
      BENCH_OPTION_DEVICE(&o),
      BENCH_OPTION_OUTPUT(&o),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench calls [options]\n",
      .about = "Measures what a call of each operation costs the host: the "
               "first one, compiling included (a runtime with an empty cache "
               "folder); the first one of a runtime whose cache folder has the "
               "code; and any later one, beside the same launches by bare "
               "cuLaunchKernel (and fills, \"1 + 1\", by cuMemsetD32Async). "
               "Figures above 60 ms, 1 ms and 1.5 times are marked.",
      .options = options,
      .example = "kiln bench calls --only sort --sizes 20"};
  bench b = {.c = c, .o = &o};
  cli_words words;
  cJSON *json;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  /* KILN_PACKS is removed, since a first call must compile. */
  unsetenv("KILN_PACKS");
  json = cJSON_CreateObject();
  b.folder = kiln__cli_make_folder(c, "kiln-calls");
  if (b.folder == NULL)
    rc = CLI_FAILED;
  else
    rc = open_bench(&b) == KILN_OK ? run_all(&b, json)
                                   : kiln__cli_failure(c, "device");
  close_bench(&b);
  return kiln__bench_end(c, &o, rc, json);
}
