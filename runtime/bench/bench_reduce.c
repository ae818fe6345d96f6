/* bench_reduce.c -- `kiln bench reduce`: options, tables and JSON output.
 * Without a GPU, the command compiles the kernels and prints their
 * resources. */
#include "bench/bench_reduce.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_ROWS = 16, LECTURE_N = 1024 * 1024 };

typedef struct options {
  bench_options shared;
  kiln_target arch;
  bool quick, sweep, full;
} options;

/* One row of the printed table. */
typedef struct row {
  const char *label;
  char note[64];
  uint64_t n;
  double ms;    /* time in milliseconds for n elements */
  double error; /* error relative to the float64 sum; NaN means not compared */
  bool is_cpu;
} row;

typedef struct bench {
  cli *c;
  options o;
  unsigned cores;
  float *host;
  uint64_t n;
  bench_gpu gpu;
  bench_peer_fn peer; /* reduction function of CUB, or NULL */
  const char *no_peer;
  const char *peer_version;
  cJSON *json;
} bench;

/* ---- Resources of the kernels, if there is no GPU ----------------------- */

typedef struct census {
  unsigned kernels, compiled;
} census;

/* Compiles one kernel and adds a row with its resources. */
static int show_resources(const bench *b, cli_table *t, const char *label,
                          const kiln_program_desc *desc, unsigned block,
                          census *c)
{
  bench_resources r;

  if (kiln__bench_resources(&r, b->c, desc, &b->o.arch, block) != KILN_OK)
    return kiln__cli_failure(b->c, label);
  c->kernels++;
  c->compiled += r.from_compiler;
  kiln__cli_row(t, label, "%u", block);
  kiln__cli_cells(t, "%d\t%d\t%d\t%.0f %%", r.kernel.registers,
                  r.kernel.spill_stores + r.kernel.spill_loads,
                  r.kernel.shared_static, 100 * r.occupancy.share);
  return 0;
}

static int without_gpu(const bench *b, kiln_status missing)
{
  static const uint64_t sizes[] = {UINT64_C(1) << 16, UINT64_C(1) << 20,
                                   UINT64_C(1) << 28};
  static const char *const labels[] = {"library, 2^16", "library, 2^20",
                                       "library, 2^28"};
  census c = {0};
  static const char *const heads[] = {"kernel",  ">block",  ">registers",
                                      ">spills", ">shared", ">occupancy",
                                      NULL};
  char arch[24];
  cli_table t;
  bench_defines d = {0};
  kiln_program_desc desc;
  int rc = 0;

  kiln__cli_table(&t, b->c, heads);
  for (int small = 0; small < 2 && rc == 0; small++) {
    const bench_rung *r = small ? kiln__bench_small : kiln__bench_big;

    for (; r->builtin != NULL && rc == 0; r++) {
      desc = kiln__bench_desc_rung(&d, r);
      rc = show_resources(b, &t, r->label, &desc, r->block, &c);
    }
  }
  for (size_t i = 0; i < 3 && rc == 0; i++) {
    const bench_tuning tuned = kiln__bench_tuned(sizes[i]);

    desc = kiln__bench_desc_tuned(&d, &tuned);
    rc = show_resources(b, &t, labels[i], &desc, tuned.block, &c);
  }
  if (rc != 0)
    return rc;
  printf("Resources for %s\n", kiln_target_text(&b->o.arch, arch));
  kiln__cli_table_print(&t, 2);
  printf("no GPU: %s; %u kernels for %s: %u compiled, %u from the cache, "
         "none launched\n",
         kiln_status_text(missing), c.kernels, arch, c.compiled,
         c.kernels - c.compiled);
  return CLI_OK;
}

/* ---- Tables ------------------------------------------------------------- */

static double gb_per_s(const row *r)
{
  return r->ms > 0 ? (double)r->n * sizeof(float) / (r->ms * 1e6) : 0;
}

static void time_cell(cli_table *t, double ms)
{
  if (ms >= 1)
    kiln__cli_cell(t, "%.3f ms", ms);
  else
    kiln__cli_cell(t, "%.2f us", ms * 1e3);
}

static void factor_cell(cli_table *t, double x)
{
  if (!isfinite(x) || x <= 0)
    kiln__cli_dashes(t, 1);
  else
    kiln__cli_cell(t, "%.*f", x >= 1000 ? 0 : 2, x);
}

static cJSON *row_json(const row *r)
{
  cJSON *j = cJSON_CreateObject();

  JSON_TEXT(j, "step", r->label);
  JSON_NUMBER(j, "n", r->n);
  JSON_NUMBER(j, "ms", r->ms);
  JSON_NUMBER(j, "gb_per_s", gb_per_s(r));
  if (isfinite(r->error))
    JSON_NUMBER(j, "relative_error", r->error);
  if (r->note[0] != '\0')
    JSON_TEXT(j, "note", r->note);
  return j;
}

/* Returns the time per element. Times are compared per element, since the
 * kernel with one thread may have fewer elements. */
static double per_element(const row *r)
{
  return r->n > 0 ? r->ms / (double)r->n : 0;
}

/* Prints a table. `first` is the row that the cumulative speedup refers to. The
 * last two rows are for the CPU: one thread, then all cores. */
static cJSON *print_table(const bench *b, const char *title, const row *rows,
                          size_t n, size_t first)
{
  static const char *const heads[] = {
      "step",      ">time",   ">GB/s",  ">step x", ">total x",
      ">to 1 CPU", ">to all", ">error", "",        NULL};
  const double cpu_one = per_element(&rows[n - 2]);
  const double cpu_all = per_element(&rows[n - 1]);
  cJSON *list = cJSON_CreateArray();
  cli_table t;

  kiln__cli_table(&t, b->c, heads);
  for (size_t i = 0; i < n; i++) {
    const row *r = &rows[i];
    const double each = per_element(r);
    cJSON *j = row_json(r);

    kiln__cli_cell(&t, "%s", r->label);
    time_cell(&t, r->ms);
    kiln__cli_cell(&t, "%.1f", gb_per_s(r));
    factor_cell(&t, i > first && !r->is_cpu ? per_element(r - 1) / each : 0);
    factor_cell(&t, i >= first && !r->is_cpu ? per_element(&rows[first]) / each
                                             : 0);
    factor_cell(&t, cpu_one / each);
    factor_cell(&t, cpu_all / each);
    if (isfinite(r->error))
      kiln__cli_cell(&t, "%.1e", r->error);
    else
      kiln__cli_dashes(&t, 1);
    kiln__cli_cell(&t, "%s", r->note);
    JSON_NUMBER(j, "to_cpu_one_thread", cpu_one / each);
    JSON_NUMBER(j, "to_cpu_all_cores", cpu_all / each);
    cJSON_AddItemToArray(list, j);
  }
  printf("\n%s\n", title);
  kiln__cli_table_print(&t, 2);
  return list;
}

/* ---- Ladders ------------------------------------------------------------ */

static double relative_error(double value, double reference)
{
  return fabs(value - reference) / fabs(reference);
}

static void add_cpu(const bench *b, row *rows, size_t *n_rows, uint64_t n,
                    double reference)
{
  const unsigned repeats = n > LECTURE_N ? 5 : 15;
  const unsigned threads[] = {1, b->cores};

  for (int i = 0; i < 2; i++) {
    row *r = &rows[(*n_rows)++];

    *r = (row){.label = i == 0 ? "CPU, one thread" : "CPU, all cores",
               .n = n,
               .is_cpu = true};
    r->ms = kiln__bench_cpu_ms(b->host, n, threads[i], repeats);
    r->error =
        relative_error(kiln__bench_sum_f32(b->host, n, threads[i]), reference);
    if (i == 1)
      snprintf(r->note, sizeof r->note, "%u threads", b->cores);
  }
}

static int time_rung(bench *b, const bench_rung *rung, uint64_t n,
                     double reference, row *out, float *value)
{
  bench_shot shot = {.rung = rung, .n = n};
  kiln_status st = kiln__bench_load(&b->gpu, &shot);

  if (st == KILN_OK)
    st = kiln__bench_time(&b->gpu, &shot, 1, false);
  kiln__bench_unload(&shot);
  if (st != KILN_OK)
    return kiln__cli_failure(b->c, rung->label);
  *out = (row){.label = rung->label, .n = n, .ms = shot.ms[BENCH_IDLE]};
  *value = shot.value;
  out->error = relative_error((double)shot.value, reference);
  if (shot.counted < b->gpu.repeats)
    snprintf(out->note, sizeof out->note, "median of %u", shot.counted);
  return 0;
}

/* Times Kiln's reduction and CUB's reduction alternately. */
static int time_library(bench *b, uint64_t n, bench_shot shots[2], bool all)
{
  bench_tuning tuning = kiln__bench_tuned(n);
  kiln_status st;

  shots[0] = (bench_shot){.tuning = &tuning, .n = n};
  shots[1] = (bench_shot){.peer = b->peer, .n = n};
  st = kiln__bench_load(&b->gpu, &shots[0]);
  /* The parameters for an H200 spill registers on this GPU. */
  if (st == KILN_ESPILL) {
    tuning = kiln__bench_safe(&tuning);
    st = kiln__bench_load(&b->gpu, &shots[0]);
  }
  if (st == KILN_OK)
    st = kiln__bench_time(&b->gpu, shots, b->peer != NULL ? 2 : 1, all);
  kiln__bench_unload(&shots[0]);
  shots[0].tuning = NULL;
  return st == KILN_OK ? 0 : kiln__cli_failure(b->c, "the library's reduction");
}

static int add_library(bench *b, row *rows, size_t *n_rows, uint64_t n,
                       double reference)
{
  static const char *const labels[] = {"library", "CUB"};
  bench_shot shots[2];

  if (time_library(b, n, shots, false) != 0)
    return 1;
  for (int i = 0; i < (b->peer != NULL ? 2 : 1); i++) {
    row *r = &rows[(*n_rows)++];

    *r = (row){.label = labels[i], .n = n, .ms = shots[i].ms[BENCH_IDLE]};
    r->error = relative_error((double)shots[i].value, reference);
  }
  return 0;
}

/* Adds the table row of the kernel with one thread. One thread would need half
 * a minute for 2^28 elements, so it adds fewer elements. The error for all
 * elements comes from the same additions on the CPU. These are equivalent,
 * since CPU and GPU gave the same bits for the fewer elements. */
static int add_one_thread(bench *b, row *rows, size_t *n_rows, double reference)
{
  const bench_rung *rung = &kiln__bench_small[0];
  const uint64_t fewer = b->n < (UINT64_C(1) << 22) ? b->n : UINT64_C(1) << 22;
  row *r = &rows[(*n_rows)++];
  const uint64_t n = b->o.full ? b->n : fewer;
  const float same = kiln__bench_sum_naive(b->host, n);
  float value = 0;

  if (time_rung(b, rung, n, reference, r, &value) != 0)
    return 1;
  if (value != same) {
    kiln__cli_message(b->c, NULL,
                      "one thread computed %.9g on the GPU and %.9g on the CPU",
                      (double)value, (double)same);
    return CLI_FAILED;
  }
  r->error =
      relative_error((double)kiln__bench_sum_naive(b->host, b->n), reference);
  if (n < b->n)
    snprintf(r->note, sizeof r->note, "timed with 2^%.0f; error at 2^%.0f",
             log2((double)n), log2((double)b->n));
  return 0;
}

/* Runs the lectures' kernels for n elements, Kiln's reduction, CUB's reduction
 * and the CPU. The results go to a table, and to the member `key` of the JSON
 * object. If `one_thread` is true, the row of the kernel with one thread comes
 * first, and speedups refer to the second row. */
static int ladder(bench *b, const bench_rung *rungs, uint64_t n,
                  bool one_thread, const char *key)
{
  const double reference = kiln__bench_sum_f64(b->host, n, b->cores);
  row rows[MOST_ROWS];
  size_t n_rows = 0;
  float value;

  if (one_thread && add_one_thread(b, rows, &n_rows, reference) != 0)
    return 1;
  for (const bench_rung *r = rungs; r->builtin != NULL; r++)
    if (time_rung(b, r, n, reference, &rows[n_rows++], &value) != 0)
      return 1;
  if (add_library(b, rows, &n_rows, n, reference) != 0)
    return 1;
  add_cpu(b, rows, &n_rows, n, reference);
  cJSON_AddItemToObject(
      b->json, key,
      print_table(b,
                  kiln__cli_text(b->c, "Sum of 2^%.0f floats", log2((double)n)),
                  rows, n_rows, one_thread ? 1 : 0));
  return 0;
}

/* ---- Kiln's reduction by size ------------------------------------------- */

static void library_row(const bench *b, cli_table *t, const bench_shot *s,
                        double error, cJSON *list)
{
  static const char *const names[BENCH_STATES][3] = {
      {"ms", "cub_ms", "speedup"},
      {"queued_ms", "cub_queued_ms", "queued_speedup"},
      {"cold_ms", "cub_cold_ms", "cold_speedup"}};
  cJSON *j = cJSON_CreateObject();
  const double bytes = (double)s[0].n * sizeof(float);

  JSON_NUMBER(j, "n", s[0].n);
  JSON_NUMBER(j, "blocks", s[0].grid);
  JSON_NUMBER(j, "relative_error", error);
  kiln__cli_row(t, kiln__cli_text(b->c, "2^%.0f", log2((double)s[0].n)), "%u",
                s[0].grid);
  for (int state = 0; state < BENCH_STATES; state++) {
    const double own = s[0].ms[state], cub = s[1].ms[state];

    time_cell(t, own);
    if (state == BENCH_IDLE)
      kiln__cli_cell(t, "%.1f", bytes / (own * 1e6));
    JSON_NUMBER(j, names[state][0], own);
    if (b->peer == NULL) {
      kiln__cli_dashes(t, 2);
      continue;
    }
    time_cell(t, cub);
    kiln__cli_cell(t, "%.2fx", cub / own);
    JSON_NUMBER(j, names[state][1], cub);
    JSON_NUMBER(j, names[state][2], cub / own);
  }
  kiln__cli_cell(t, "%.1e", error);
  cJSON_AddItemToArray(list, j);
}

static int library_table(bench *b)
{
  static const char *const heads[] = {
      "n",      ">grid",      ">library",     ">GB/s",
      ">CUB",   ">",          ">lib, queued", ">CUB, queued",
      ">",      ">lib, cold", ">CUB, cold",   ">",
      ">error", NULL};
  static const unsigned bits[] = {28, 24, 20, 16};
  cJSON *list = cJSON_AddArrayToObject(b->json, "library");
  bool wrong = false;
  cli_table t;

  kiln__cli_table(&t, b->c, heads);
  for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
    const uint64_t n = UINT64_C(1) << bits[i];
    bench_shot shots[2];
    double error;

    if (n > b->n)
      continue;
    if (time_library(b, n, shots, true) != 0)
      return 1;
    error = relative_error((double)shots[0].value,
                           kiln__bench_sum_f64(b->host, n, b->cores));
    wrong |= !(error <= 1e-6);
    library_row(b, &t, shots, error, list);
  }
  printf("\nLibrary's reduction against CUB %s, in turns, median of %u\n",
         b->peer != NULL ? b->peer_version : "(not here)", b->gpu.repeats);
  kiln__cli_table_print(&t, 2);
  puts("  queued: after a busy kernel, so that the host's part of the launch "
       "does not count\n"
       "  cold: other data in the L2 cache; otherwise the L2 cache holds what "
       "the preceding run left there");
  if (wrong)
    kiln__cli_message(b->c, NULL, "the library's sum is off by more than 1e-6");
  return wrong ? 1 : 0;
}

/* ---- Sweep -------------------------------------------------------------- */

enum { SWEEP_SIZES = 4, SWEEP_VECTORS = 4 };

static const unsigned sweep_bits[SWEEP_SIZES] = {28, 24, 20, 16};

typedef struct best {
  bench_tuning tuning;
  double ms;
} best;

/* Times one program with several limits on the grid size. For each input size
 * the smallest time counts. */
static int sweep_program(bench *b, const bench_tuning *base, best *bests,
                         cli_table *t, cJSON *list)
{
  static const char *const names[] = {"block", "items", "threads", "even",
                                      "keep"};
  const unsigned values[] = {base->block, base->items, base->threads,
                             base->even, base->keep};
  bench_tuning tuning = *base;
  bench_shot shot = {.tuning = &tuning};
  const kiln_status st = kiln__bench_load(&b->gpu, &shot);

  if (st == KILN_ESPILL)
    return 0;
  if (st != KILN_OK)
    return kiln__cli_failure(b->c, "sweep");
  for (size_t i = 0; i < 5; i++)
    kiln__cli_cell(t, "%u", values[i]);
  for (unsigned s = 0; s < SWEEP_SIZES; s++) {
    double least = INFINITY;

    shot.n = UINT64_C(1) << sweep_bits[s];
    if (shot.n > b->n) {
      kiln__cli_dashes(t, 1);
      continue;
    }
    for (unsigned p = 0; p < (sweep_bits[s] > 24 ? 1 : SWEEP_VECTORS); p++) {
      cJSON *j = cJSON_CreateObject();

      tuning.vectors = 1u << p;
      if (kiln__bench_time(&b->gpu, &shot, 1, true) != KILN_OK) {
        kiln__bench_unload(&shot);
        cJSON_Delete(j);
        return kiln__cli_failure(b->c, "sweep");
      }
      least = shot.ms[BENCH_QUEUED] < least ? shot.ms[BENCH_QUEUED] : least;
      if (shot.ms[BENCH_QUEUED] < bests[s].ms)
        bests[s] = (best){.tuning = tuning, .ms = shot.ms[BENCH_QUEUED]};
      for (size_t i = 0; i < 5; i++)
        JSON_NUMBER(j, names[i], values[i]);
      JSON_NUMBER(j, "vectors", tuning.vectors);
      JSON_NUMBER(j, "n", shot.n);
      JSON_NUMBER(j, "ms", shot.ms[BENCH_IDLE]);
      JSON_NUMBER(j, "queued_ms", shot.ms[BENCH_QUEUED]);
      cJSON_AddItemToArray(list, j);
    }
    kiln__cli_cell(t, "%.2f us", least * 1e3);
  }
  kiln__bench_unload(&shot);
  return 0;
}

static int sweep(bench *b)
{
  static const unsigned blocks[] = {256, 512, 1024};
  static const unsigned items[] = {4, 8};
  static const unsigned threads[] = {1024, 1536, 2048};
  static const unsigned keeps[] = {0, 24};
  const unsigned repeats = b->gpu.repeats;
  static const char *const heads[] = {">block", ">items", ">threads", ">even",
                                      ">keep",  ">2^28",  ">2^24",    ">2^20",
                                      ">2^16",  NULL};
  best bests[SWEEP_SIZES];
  cli_table table;
  cJSON *list = cJSON_AddArrayToObject(b->json, "sweep");

  for (unsigned s = 0; s < SWEEP_SIZES; s++)
    bests[s] = (best){.ms = INFINITY};
  kiln__cli_table(&table, b->c, heads);
  b->gpu.repeats = 9;
  for (unsigned i = 0; i < 3 * 2 * 3 * 2 * 2; i++) {
    const bench_tuning t = {.block = blocks[i % 3],
                            .items = items[i / 3 % 2],
                            .threads = threads[i / 6 % 3],
                            .even = i / 18 % 2,
                            .keep = keeps[i / 36],
                            .small = 1,
                            .results = 9};

    if (t.block <= t.threads && t.threads % t.block == 0 &&
        sweep_program(b, &t, bests, &table, list) != 0)
      return 1;
  }
  b->gpu.repeats = repeats;
  puts("\nSweep, queued medians, best limit on the grid each");
  kiln__cli_table_print(&table, 2);
  for (unsigned s = 0; s < SWEEP_SIZES; s++)
    if (isfinite(bests[s].ms))
      printf("  best for 2^%u: block %u, items %u, threads %u, even %u, keep "
             "%u, vectors %u: %.2f us\n",
             sweep_bits[s], bests[s].tuning.block, bests[s].tuning.items,
             bests[s].tuning.threads, bests[s].tuning.even,
             bests[s].tuning.keep, bests[s].tuning.vectors, bests[s].ms * 1e3);
  return 0;
}

/* ---- The command -------------------------------------------------------- */

static void describe(bench *b)
{
  kiln__bench_rig_json(&b->gpu.rig, b->json);
  JSON_NUMBER(b->json, "cpu_threads", b->cores);
  JSON_NUMBER(b->json, "repeats", b->gpu.repeats);
  if (b->peer != NULL)
    JSON_TEXT(b->json, "cub", b->peer_version);
  printf("%s, %d SMs; input uniform in [24, 60); times by events on the "
         "stream, median of %u\n",
         b->gpu.rig.info.name, b->gpu.rig.info.sm_count, b->gpu.repeats);
  if (b->peer == NULL)
    printf("no CUB to compare with: %s\n", b->no_peer);
}

static void open_peer(bench *b)
{
  int (*version)(void) = NULL;
  void *object = kiln__bench_peers(b->c, b->o.shared.peers,
                                   b->gpu.rig.info.ordinal, &b->no_peer);

  if (object == NULL)
    return;
  b->no_peer = "the peers' library does not fit this command";
  if (!kiln__bench_symbol(object, "kiln_peer_version", &version) ||
      !kiln__bench_symbol(object, "kiln_peer_reduce_sum_f32", &b->peer))
    return;
  b->peer_version = kiln__cli_text(b->c, "%d.%d.%d", version() / 100000,
                                   version() / 100 % 1000, version() % 100);
}

static int with_gpu(bench *b)
{
  int rc = 0;

  b->n = UINT64_C(1) << (b->o.quick ? 24 : 28);
  b->gpu.repeats = b->o.quick ? 5 : 21;
  b->host = malloc(b->n * sizeof *b->host);
  if (b->host == NULL) {
    kiln__cli_message(b->c, "try --quick", "no host memory for 2^%.0f floats",
                      log2((double)b->n));
    return CLI_FAILED;
  }
  kiln__bench_input(b->host, b->n, b->cores);
  if (kiln__bench_gpu_open(&b->gpu, b->c, b->o.shared.device, b->host, b->n,
                           LECTURE_N) != KILN_OK)
    return kiln__cli_failure(b->c, "GPU");
  open_peer(b);
  describe(b);
  if (b->o.sweep) {
    rc = sweep(b);
  } else {
    rc = ladder(b, kiln__bench_big, b->n, true, "ladder");
    if (rc == 0)
      rc = ladder(b, kiln__bench_small, LECTURE_N, false, "ladder_1024x1024");
  }
  rc = rc != 0 ? rc : library_table(b);
  if (rc == 0)
    printf("\n%u kernels: %u compiled, %u from the cache\n",
           b->gpu.compiled + b->gpu.cached, b->gpu.compiled, b->gpu.cached);
  return rc;
}

static int take_arch(cli *c, void *to, const char *text)
{
  return kiln_target_parse(to, text) == KILN_OK
             ? CLI_OK
             : kiln__cli_usage(c, "--arch \"%s\": write sm_90", text);
}

static int run(bench *b)
{
  kiln_driver_info driver;
  kiln_status st = kiln_runtime_driver(b->c->rt, &driver);

  if (st == KILN_OK && driver.n_devices == 0)
    st = KILN_ENODEVICE;
  if (st == KILN_ENODRIVER || st == KILN_ENODEVICE)
    return without_gpu(b, st);
  return st == KILN_OK ? with_gpu(b) : kiln__cli_failure(b->c, "driver");
}

int kiln__bench_reduce(cli *c, int argc, char **argv)
{
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  bench b = {.c = c, .o = {.arch = {.cc = 90}}};
  options *o = &b.o;
  const cli_option table[] = {
      CLI_OPTION_FLAG("quick", &o->quick,
                      "2^24 elements instead of 2^28, fewer repeats"),
      CLI_OPTION_FLAG("full", &o->full,
                      "let one thread add all elements, too: 25 s at 2^28"),
      CLI_OPTION_FLAG("sweep", &o->sweep,
                      "time every specialisation of the library's reduction"),
      BENCH_OPTION_DEVICE(&o->shared),
      CLI_OPTION_TAKEN("arch", "TARGET", take_arch, &o->arch,
                       "what to compile for if there is no GPU; default sm_90"),
      BENCH_OPTION_PEERS(&o->shared),
      BENCH_OPTION_OUTPUT(&o->shared),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench reduce [options]\n",
      .about = "Measures the lectures' steps to a fast sum of floats, the "
               "library's reduction, and CUB beside it. Without a GPU it "
               "compiles the kernels and prints their resources.",
      .options = table,
      .example = "kiln bench reduce --quick"};
  cli_words words;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  b.cores = cores > 0 ? (unsigned)cores : 1;
  b.json = cJSON_CreateObject();
  rc = run(&b);
  kiln__bench_gpu_close(&b.gpu);
  free(b.host);
  return kiln__bench_end(c, &o->shared, rc, b.json);
}
