/* bench_reduce.c -- the command: options, tables, JSON. */
#include "bench_reduce.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ROWS = 16, LECTURE_N = 1024 * 1024 };

typedef struct options {
  const char *json;
  const char *peers;
  kiln_target arch;
  int device;
  bool quick, sweep, full;
} options;

/* One line of a table. */
typedef struct row {
  const char *label;
  char note[64];
  uint64_t n;
  double ms;    /* for n elements */
  double error; /* relative to the float64 sum; NaN: not compared */
  bool is_cpu;
} row;

typedef struct bench {
  cli *c;
  options o;
  unsigned cores;
  float *host;
  uint64_t n;
  bench_gpu gpu;
  bench_peer peer;
  bool has_peer;
  cJSON *json;
} bench;

static const char usage_text[] =
    "usage: kiln bench reduce [--quick] [--full] [--sweep] [--device N]\n"
    "                         [--arch sm_90] [--peers FILE] [--json FILE]\n"
    "  --quick   2^24 elements instead of 2^28, fewer repeats\n"
    "  --full    one thread adds all elements too; some 25 s at 2^28\n"
    "  --sweep   time every specialisation of the library's reduction\n"
    "  --device  GPU to use, default 0\n"
    "  --arch    what to compile for where there is no GPU\n"
    "  --peers   shared object with CUB (default: libkiln_peers.so beside "
    "this\n"
    "            executable)\n"
    "  --json    write every figure to FILE\n";

/* What `rc` gets on --help or wrong use; true: go on. */
static bool parse(cli *c, options *o, int argc, char **argv, int *rc)
{
  static const struct option known[] = {
      {"quick", no_argument, NULL, 'q'},
      {"full", no_argument, NULL, 'f'},
      {"sweep", no_argument, NULL, 's'},
      {"device", required_argument, NULL, 'd'},
      {"arch", required_argument, NULL, 'a'},
      {"peers", required_argument, NULL, 'p'},
      {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  int opt;

  *o = (options){.arch = {.cc = 90}};
  *rc = CLI_OK;
  while ((opt = getopt_long(argc, argv, "h", known, NULL)) != -1) {
    switch (opt) {
    case 'q':
      o->quick = true;
      break;
    case 'f':
      o->full = true;
      break;
    case 's':
      o->sweep = true;
      break;
    case 'd':
      o->device = atoi(optarg);
      break;
    case 'a':
      if (kiln_target_parse(&o->arch, optarg) == KILN_OK)
        break;
      *rc = kiln__cli_usage(c, "no architecture: %s", optarg);
      return false;
    case 'p':
      o->peers = optarg;
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

/* The record of a failure, behind what was printed so far. */
static int failed(const bench *b, const char *what)
{
  fflush(stdout);
  return kiln__cli_failure(b->c, what);
}

/* ---- Without a GPU ----------------------------------------------------------- */

typedef struct census {
  unsigned kernels, compiled, cached;
} census;

static int show_resources(const bench *b, const char *label,
                          const kiln_program_desc *desc, int block, census *c)
{
  kiln_image *image = NULL;
  kiln_resources r;
  kiln_traits traits;
  kiln_occupancy_result o = {0};

  if (kiln_compile(&image, b->c->rt, desc, &b->o.arch) != KILN_OK ||
      kiln_image_resources(image, 0, &r) != KILN_OK ||
      kiln_arch_traits(b->o.arch.cc, &traits) != KILN_OK ||
      kiln_occupancy(&traits, block, r.registers, (size_t)r.shared_static,
                     &o) != KILN_OK) {
    kiln_image_free(image);
    return failed(b, label);
  }
  c->kernels++;
  if (kiln_image_origin(image) == KILN_FROM_COMPILER)
    c->compiled++;
  else
    c->cached++;
  printf("  %-28s %5d %9d %7d %7d %10.0f %%\n", label, block, r.registers,
         r.spill_stores + r.spill_loads, r.shared_static, 100 * o.share);
  kiln_image_free(image);
  return 0;
}

static int without_gpu(const bench *b, kiln_status missing)
{
  static const uint64_t sizes[] = {UINT64_C(1) << 16, UINT64_C(1) << 20,
                                   UINT64_C(1) << 28};
  static const char *const labels[] = {"library, 2^16", "library, 2^20",
                                       "library, 2^28"};
  census c = {0};
  char arch[24];
  bench_defines d = {0};
  kiln_program_desc desc;
  int rc = 0;

  printf("Resources for %s\n  %-28s %5s %9s %7s %7s %12s\n",
         kiln_target_text(&b->o.arch, arch), "kernel", "block", "registers",
         "spills", "shared", "occupancy");
  for (int small = 0; small < 2 && rc == 0; small++) {
    const bench_rung *r = small ? kiln__bench_small : kiln__bench_big;

    for (; r->builtin != NULL && rc == 0; r++) {
      desc = kiln__bench_desc_rung(&d, r);
      rc = show_resources(b, r->label, &desc, (int)r->block, &c);
    }
  }
  for (size_t i = 0; i < 3 && rc == 0; i++) {
    const bench_tuning t = kiln__bench_tuned(sizes[i]);

    desc = kiln__bench_desc_tuned(&d, &t);
    rc = show_resources(b, labels[i], &desc, (int)t.block, &c);
  }
  if (rc == 0)
    printf("no GPU: %s; %u kernels for %s: %u compiled, %u from the cache, "
           "none launched\n",
           kiln_status_text(missing), c.kernels, arch, c.compiled, c.cached);
  return rc;
}

/* ---- Tables -------------------------------------------------------------------- */

static double gb_per_s(const row *r)
{
  return r->ms > 0 ? (double)r->n * sizeof(float) / (r->ms * 1e6) : 0;
}

static void print_time(double ms)
{
  if (ms >= 1)
    printf(" %10.3f ms", ms);
  else
    printf(" %10.2f us", ms * 1e3);
}

static void print_factor(double x)
{
  if (!isfinite(x) || x <= 0)
    printf(" %10s", "-");
  else if (x >= 1000)
    printf(" %10.0f", x);
  else
    printf(" %10.2f", x);
}

static cJSON *row_json(const row *r)
{
  cJSON *j = cJSON_CreateObject();

  cJSON_AddStringToObject(j, "step", r->label);
  cJSON_AddNumberToObject(j, "n", (double)r->n);
  cJSON_AddNumberToObject(j, "ms", r->ms);
  cJSON_AddNumberToObject(j, "gb_per_s", gb_per_s(r));
  if (isfinite(r->error))
    cJSON_AddNumberToObject(j, "relative_error", r->error);
  if (r->note[0] != '\0')
    cJSON_AddStringToObject(j, "note", r->note);
  return j;
}

/* Times are compared by element: the one-thread step may have fewer. */
static double per_element(const row *r)
{
  return r->n > 0 ? r->ms / (double)r->n : 0;
}

/* `first` is what the cumulative speedup counts from; the CPU rows are the last
 * two: one thread, all cores. */
static cJSON *print_table(const char *title, const row *rows, size_t n,
                          size_t first)
{
  const double cpu_one = per_element(&rows[n - 2]);
  const double cpu_all = per_element(&rows[n - 1]);
  cJSON *list = cJSON_CreateArray();

  printf("\n%s\n  %-24s %13s %9s %10s %10s %10s %10s %9s\n", title, "step",
         "time", "GB/s", "step x", "total x", "to 1 CPU", "to all", "error");
  for (size_t i = 0; i < n; i++) {
    const row *r = &rows[i];
    const double each = per_element(r);
    cJSON *j = row_json(r);

    printf("  %-24s", r->label);
    print_time(r->ms);
    printf(" %9.1f", gb_per_s(r));
    print_factor(i > first && !r->is_cpu ? per_element(r - 1) / each : 0);
    print_factor(i >= first && !r->is_cpu ? per_element(&rows[first]) / each
                                          : 0);
    print_factor(cpu_one / each);
    print_factor(cpu_all / each);
    if (isfinite(r->error))
      printf(" %9.1e", r->error);
    else
      printf(" %9s", "-");
    printf("%s%s\n", r->note[0] != '\0' ? "  " : "", r->note);
    cJSON_AddNumberToObject(j, "to_cpu_one_thread", cpu_one / each);
    cJSON_AddNumberToObject(j, "to_cpu_all_cores", cpu_all / each);
    cJSON_AddItemToArray(list, j);
  }
  return list;
}

/* ---- Ladders ---------------------------------------------------------------------- */

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
    return failed(b, rung->label);
  *out = (row){.label = rung->label, .n = n, .ms = shot.ms[BENCH_IDLE]};
  *value = shot.value;
  out->error = relative_error((double)shot.value, reference);
  if (shot.counted < b->gpu.repeats)
    snprintf(out->note, sizeof out->note, "median of %u", shot.counted);
  return 0;
}

/* The library, and CUB beside it in the same minute. */
static int time_library(bench *b, uint64_t n, bench_shot shots[2], bool all)
{
  bench_tuning tuning = kiln__bench_tuned(n);
  kiln_status st;

  shots[0] = (bench_shot){.tuning = &tuning, .n = n};
  shots[1] = (bench_shot){.peer = &b->peer, .n = n};
  st = kiln__bench_load(&b->gpu, &shots[0]);
  if (st == KILN_ESPILL) { /* another GPU than it was tuned for */
    tuning = kiln__bench_safe(&tuning);
    st = kiln__bench_load(&b->gpu, &shots[0]);
  }
  if (st == KILN_OK)
    st = kiln__bench_time(&b->gpu, shots, b->has_peer ? 2 : 1, all);
  kiln__bench_unload(&shots[0]);
  shots[0].tuning = NULL;
  return st == KILN_OK ? 0 : failed(b, "the library's reduction");
}

static int add_library(bench *b, row *rows, size_t *n_rows, uint64_t n,
                       double reference)
{
  static const char *const labels[] = {"library", "CUB"};
  bench_shot shots[2];

  if (time_library(b, n, shots, false) != 0)
    return 1;
  for (int i = 0; i < (b->has_peer ? 2 : 1); i++) {
    row *r = &rows[(*n_rows)++];

    *r = (row){.label = labels[i], .n = n, .ms = shots[i].ms[BENCH_IDLE]};
    r->error = relative_error((double)shots[i].value, reference);
  }
  return 0;
}

/* One thread would need half a minute at 2^28: it gets fewer elements, and its
 * error for all of them comes from the same additions on the CPU, after the GPU
 * gave the CPU's very bits for the fewer. */
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
    kiln__cli_say(b->c, NULL,
                  "one thread gave %.9g on the GPU and %.9g on the CPU",
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

static int ladder_big(bench *b)
{
  const double reference = kiln__bench_sum_f64(b->host, b->n, b->cores);
  row rows[MOST_ROWS];
  size_t n = 0;
  float value;
  char title[96];

  if (add_one_thread(b, rows, &n, reference) != 0)
    return 1;
  for (const bench_rung *r = kiln__bench_big; r->builtin != NULL; r++)
    if (time_rung(b, r, b->n, reference, &rows[n++], &value) != 0)
      return 1;
  if (add_library(b, rows, &n, b->n, reference) != 0)
    return 1;
  add_cpu(b, rows, &n, b->n, reference);
  snprintf(title, sizeof title, "Sum of 2^%.0f floats (lecture row A9)",
           log2((double)b->n));
  cJSON_AddItemToObject(b->json, "ladder", print_table(title, rows, n, 1));
  return 0;
}

static int ladder_small(bench *b)
{
  const uint64_t n_lecture = LECTURE_N;
  const double reference = kiln__bench_sum_f64(b->host, n_lecture, b->cores);
  row rows[MOST_ROWS];
  size_t n = 0;
  float value;

  for (const bench_rung *r = kiln__bench_small; r->builtin != NULL; r++)
    if (time_rung(b, r, n_lecture, reference, &rows[n++], &value) != 0)
      return 1;
  if (add_library(b, rows, &n, n_lecture, reference) != 0)
    return 1;
  add_cpu(b, rows, &n, n_lecture, reference);
  cJSON_AddItemToObject(
      b->json, "ladder_1024x1024",
      print_table("Sum of 1024 x 1024 floats (lecture row C8)", rows, n, 0));
  return 0;
}

/* ---- The library by size ------------------------------------------------------------ */

static void library_row(bench *b, const bench_shot *s, double error,
                        cJSON *list)
{
  static const char *const names[BENCH_STATES][3] = {
      {"ms", "cub_ms", "speedup"},
      {"queued_ms", "cub_queued_ms", "queued_speedup"},
      {"cold_ms", "cub_cold_ms", "cold_speedup"}};
  cJSON *j = cJSON_CreateObject();
  const double bytes = (double)s[0].n * sizeof(float);

  cJSON_AddNumberToObject(j, "n", (double)s[0].n);
  cJSON_AddNumberToObject(j, "blocks", s[0].grid);
  cJSON_AddNumberToObject(j, "relative_error", error);
  printf("  2^%-4.0f %5u", log2((double)s[0].n), s[0].grid);
  for (int state = 0; state < BENCH_STATES; state++) {
    print_time(s[0].ms[state]);
    if (state == BENCH_IDLE)
      printf(" %9.1f", bytes / (s[0].ms[state] * 1e6));
    cJSON_AddNumberToObject(j, names[state][0], s[0].ms[state]);
    if (!b->has_peer) {
      printf(" %13s %6s", "-", "-");
      continue;
    }
    print_time(s[1].ms[state]);
    printf(" %5.2fx", s[1].ms[state] / s[0].ms[state]);
    cJSON_AddNumberToObject(j, names[state][1], s[1].ms[state]);
    cJSON_AddNumberToObject(j, names[state][2],
                            s[1].ms[state] / s[0].ms[state]);
  }
  printf(" %9.1e\n", error);
  cJSON_AddItemToArray(list, j);
}

static int library_table(bench *b)
{
  static const unsigned bits[] = {28, 24, 20, 16};
  cJSON *list = cJSON_AddArrayToObject(b->json, "library");
  bool wrong = false;

  printf("\nLibrary's reduction against CUB %s, in turns, median of %u\n"
         "  %-6s %5s %13s %9s %13s %6s %13s %13s %6s %13s %13s %6s %9s\n",
         b->has_peer ? b->peer.version : "(not here)", b->gpu.repeats, "n",
         "grid", "library", "GB/s", "CUB", "", "lib, queued", "CUB, queued", "",
         "lib, cold", "CUB, cold", "", "error");
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
    library_row(b, shots, error, list);
  }
  printf("  queued: behind a running kernel, so that the host's part of the "
         "launch does not count\n"
         "  cold: other data in the second-level cache; else it holds what the "
         "run before left\n");
  if (wrong)
    kiln__cli_say(b->c, NULL, "the library's sum is off by more than 1e-6");
  return wrong ? 1 : 0;
}

/* ---- Sweep ---------------------------------------------------------------------------- */

enum { SWEEP_SIZES = 4, SWEEP_PACKS = 4 };

static const unsigned sweep_bits[SWEEP_SIZES] = {28, 24, 20, 16};

typedef struct best {
  bench_tuning tuning;
  double ms;
} best;

/* Every limit on the grid for one program; the smallest time counts. */
static int sweep_program(bench *b, const bench_tuning *base, best *bests,
                         cJSON *list)
{
  bench_tuning tuning = *base;
  bench_shot shot = {.tuning = &tuning};
  const kiln_status st = kiln__bench_load(&b->gpu, &shot);

  if (st == KILN_ESPILL)
    return 0;
  if (st != KILN_OK)
    return failed(b, "sweep");
  printf("  %5u %5u %7u %4u %4u", base->block, base->items, base->threads,
         base->even, base->keep);
  for (unsigned s = 0; s < SWEEP_SIZES; s++) {
    double least = INFINITY;

    shot.n = UINT64_C(1) << sweep_bits[s];
    if (shot.n > b->n) {
      printf(" %10s  ", "-");
      continue;
    }
    for (unsigned p = 0; p < (sweep_bits[s] > 24 ? 1 : SWEEP_PACKS); p++) {
      cJSON *j = cJSON_CreateObject();

      tuning.packs = 1u << p;
      if (kiln__bench_time(&b->gpu, &shot, 1, true) != KILN_OK) {
        kiln__bench_unload(&shot);
        cJSON_Delete(j);
        return failed(b, "sweep");
      }
      least = shot.ms[BENCH_QUEUED] < least ? shot.ms[BENCH_QUEUED] : least;
      if (shot.ms[BENCH_QUEUED] < bests[s].ms)
        bests[s] = (best){.tuning = tuning, .ms = shot.ms[BENCH_QUEUED]};
      cJSON_AddNumberToObject(j, "block", tuning.block);
      cJSON_AddNumberToObject(j, "items", tuning.items);
      cJSON_AddNumberToObject(j, "threads", tuning.threads);
      cJSON_AddNumberToObject(j, "even", tuning.even);
      cJSON_AddNumberToObject(j, "keep", tuning.keep);
      cJSON_AddNumberToObject(j, "packs", tuning.packs);
      cJSON_AddNumberToObject(j, "n", (double)shot.n);
      cJSON_AddNumberToObject(j, "ms", shot.ms[BENCH_IDLE]);
      cJSON_AddNumberToObject(j, "queued_ms", shot.ms[BENCH_QUEUED]);
      cJSON_AddItemToArray(list, j);
    }
    printf(" %10.2f us", least * 1e3);
  }
  printf("\n");
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
  best bests[SWEEP_SIZES];
  cJSON *list = cJSON_AddArrayToObject(b->json, "sweep");

  for (unsigned s = 0; s < SWEEP_SIZES; s++)
    bests[s] = (best){.ms = INFINITY};
  printf("\nSweep, queued medians, best limit on the grid each\n"
         "  %5s %5s %7s %4s %4s %13s %13s %13s %13s\n",
         "block", "items", "threads", "even", "keep", "2^28", "2^24", "2^20",
         "2^16");
  b->gpu.repeats = 9;
  for (unsigned i = 0; i < 3 * 2 * 3 * 2 * 2; i++) {
    const bench_tuning t = {.block = blocks[i % 3],
                            .items = items[i / 3 % 2],
                            .threads = threads[i / 6 % 3],
                            .even = i / 18 % 2,
                            .keep = keeps[i / 36],
                            .small = 1,
                            .letters = 9};

    if (t.block <= t.threads && t.threads % t.block == 0 &&
        sweep_program(b, &t, bests, list) != 0)
      return 1;
  }
  b->gpu.repeats = repeats;
  for (unsigned s = 0; s < SWEEP_SIZES; s++)
    if (isfinite(bests[s].ms))
      printf("  best for 2^%u: block %u, items %u, threads %u, even %u, keep "
             "%u, packs %u: %.2f us\n",
             sweep_bits[s], bests[s].tuning.block, bests[s].tuning.items,
             bests[s].tuning.threads, bests[s].tuning.even,
             bests[s].tuning.keep, bests[s].tuning.packs, bests[s].ms * 1e3);
  return 0;
}

/* ---- The command ------------------------------------------------------------------------ */

static void describe(bench *b)
{
  cJSON_AddStringToObject(b->json, "device", b->gpu.info.name);
  cJSON_AddNumberToObject(b->json, "cpu_threads", b->cores);
  cJSON_AddNumberToObject(b->json, "repeats", b->gpu.repeats);
  if (b->has_peer)
    cJSON_AddStringToObject(b->json, "cub", b->peer.version);
  printf("%s, %d SMs; input uniform in [24, 60); times by events on the "
         "stream, median of %u\n",
         b->gpu.info.name, b->gpu.info.sm_count, b->gpu.repeats);
  if (!b->has_peer)
    printf("no CUB to compare with: %s\n", b->peer.place);
}

static int with_gpu(bench *b)
{
  int rc = 0;

  b->n = UINT64_C(1) << (b->o.quick ? 24 : 28);
  b->gpu.repeats = b->o.quick ? 5 : 21;
  b->host = malloc(b->n * sizeof *b->host);
  if (b->host == NULL) {
    kiln__cli_say(b->c, "try --quick", "no host memory for 2^%.0f floats",
                  log2((double)b->n));
    return CLI_FAILED;
  }
  kiln__bench_fill(b->host, b->n, b->cores);
  if (kiln__bench_gpu_open(&b->gpu, b->c->rt, b->o.device, b->host, b->n,
                           LECTURE_N) != KILN_OK)
    return failed(b, "GPU");
  b->has_peer =
      kiln__bench_peer_open(&b->peer, b->o.peers, b->gpu.info.ordinal);
  describe(b);
  if (b->o.sweep) {
    rc = sweep(b);
  } else {
    rc = ladder_big(b);
    rc = rc != 0 ? rc : ladder_small(b);
  }
  rc = rc != 0 ? rc : library_table(b);
  if (rc == 0)
    printf("\n%u kernels: %u compiled, %u from the cache\n",
           b->gpu.compiled + b->gpu.cached, b->gpu.compiled, b->gpu.cached);
  return rc;
}

int kiln__bench_reduce(cli *c, int argc, char **argv)
{
  bench b = {.c = c};
  kiln_driver_info driver;
  kiln_status st;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int rc;

  if (!parse(c, &b.o, argc, argv, &rc))
    return rc;
  b.cores = cores > 0 ? (unsigned)cores : 1;
  b.json = cJSON_CreateObject();
  st = kiln_runtime_driver(c->rt, &driver);
  if (st == KILN_OK && driver.n_devices == 0)
    st = KILN_ENODEVICE;
  if (st == KILN_ENODRIVER || st == KILN_ENODEVICE)
    rc = without_gpu(&b, st);
  else if (st != KILN_OK)
    rc = failed(&b, "driver");
  else
    rc = with_gpu(&b);
  kiln__bench_peer_close(&b.peer);
  kiln__bench_gpu_close(&b.gpu);
  free(b.host);
  if (rc == CLI_OK && b.o.json != NULL)
    return kiln__cli_json(c, b.json, b.o.json);
  cJSON_Delete(b.json);
  return rc;
}
