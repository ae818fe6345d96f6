/* bench_passes.c -- `kiln bench passes`: what the cost model of gather and scatter
 * says of each way to do them, what the GPU says, and what the model's choice
 * costs against the best (lecture row B9). */
#include "bench_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRY(expression)                                                        \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

typedef struct options {
  const char *json;
  unsigned bits[8], repeats;
  size_t n_bits;
  int device;
} options;

static const char usage_text[] =
    "usage: kiln bench passes [--sizes 28,26,24,20] [--repeats N] [--device "
    "N]\n"
    "                         [--json FILE]\n"
    "A gather and a scatter of 4-byte elements by a random permutation, in "
    "one\n"
    "pass and in several: the model's time beside the measured one, the "
    "model's\n"
    "choice marked.\n"
    "  --sizes    log2 of the elements\n"
    "  --repeats  timed runs of each, 9 by default\n"
    "  --device   GPU to use, default 0\n"
    "  --json     write every figure to FILE\n";

static const kiln_index_plan ways[] = {
    {.method = KILN_INDEX_DIRECT, .passes = 1},
    {.method = KILN_INDEX_WINDOWS, .passes = 2},
    {.method = KILN_INDEX_WINDOWS, .passes = 3},
    {.method = KILN_INDEX_WINDOWS, .passes = 4},
    {.method = KILN_INDEX_WINDOWS, .passes = 6},
    {.method = KILN_INDEX_WINDOWS, .passes = 8},
    {.method = KILN_INDEX_WINDOWS, .passes = 12},
    {.method = KILN_INDEX_WINDOWS, .passes = 16},
    {.method = KILN_INDEX_WINDOWS, .passes = 24},
    {.method = KILN_INDEX_WINDOWS, .passes = 32},
    {.method = KILN_INDEX_WINDOWS, .passes = 48},
    {.method = KILN_INDEX_PARTITION, .passes = 4},
    {.method = KILN_INDEX_PARTITION, .passes = 8},
    {.method = KILN_INDEX_PARTITION, .passes = 16},
    {.method = KILN_INDEX_PARTITION, .passes = 32},
    {.method = KILN_INDEX_PARTITION, .passes = 64},
    {.method = KILN_INDEX_PARTITION, .passes = 128},
    {.method = KILN_INDEX_SORT, .passes = 1}, /* of a scatter: has to be last */
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static const char *const names[] = {"", "one pass", "windows", "partition",
                                    "sort"};

/* False: stop with *rc. */
static bool parse(cli *c, options *o, int argc, char **argv, int *rc)
{
  static const struct option known[] = {
      {"sizes", required_argument, NULL, 's'},
      {"repeats", required_argument, NULL, 'r'},
      {"device", required_argument, NULL, 'd'},
      {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  int opt;

  *o = (options){.bits = {28, 26, 24, 20}, .n_bits = 4, .repeats = 9};
  *rc = CLI_OK;
  while ((opt = getopt_long(argc, argv, "h", known, NULL)) != -1) {
    switch (opt) {
    case 's':
      o->n_bits = kiln__cli_sizes(optarg, 0, 30, o->bits,
                                  sizeof o->bits / sizeof o->bits[0]);
      if (o->n_bits > 0)
        break;
      *rc = kiln__cli_usage(c, "--sizes takes up to eight numbers below 31");
      return false;
    case 'r':
      o->repeats = (unsigned)atoi(optarg);
      if (o->repeats >= 1 && o->repeats <= 64)
        break;
      *rc = kiln__cli_usage(c, "--repeats takes 1 to 64");
      return false;
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
  return true;
}

typedef struct timed {
  kiln_index_plan plan;
  double ms;
} timed;

static bool same_way(const kiln_index_plan *a, const kiln_index_plan *b)
{
  return a->method == b->method && a->passes == b->passes;
}

static kiln_status time_way(bench_ops *b, timed *t)
{
  b->plan = t->plan;
  b->room_known = false;
  return kiln__bench_time_own(b, &t->ms);
}

static void print_way(cli_table *t, const char *call, uint64_t n,
                      const timed *way, bool chosen, double best)
{
  kiln__cli_cell(t, "%s", call);
  kiln__cli_cell(t, "%llu", (unsigned long long)n);
  kiln__cli_cell(t, "%s", names[way->plan.method]);
  kiln__cli_cell(t, "%u", way->plan.passes);
  kiln__cli_cell(t, "%.1f us", way->plan.ms * 1e3);
  kiln__cli_cell(t, "%.1f us", way->ms * 1e3);
  kiln__cli_cell(t, "%.2fx", way->ms / best);
  kiln__cli_cell(t, "%s", chosen ? "the model's choice" : "");
}

static void keep_way(cJSON *rows, const char *call, uint64_t n,
                     const timed *way, bool chosen)
{
  cJSON *row = cJSON_CreateObject();

  cJSON_AddStringToObject(row, "call", call);
  cJSON_AddNumberToObject(row, "n", (double)n);
  cJSON_AddStringToObject(row, "way", names[way->plan.method]);
  cJSON_AddNumberToObject(row, "passes", way->plan.passes);
  cJSON_AddNumberToObject(row, "model_ms", way->plan.ms);
  cJSON_AddNumberToObject(row, "ms", way->ms);
  cJSON_AddBoolToObject(row, "chosen", chosen);
  cJSON_AddItemToArray(rows, row);
}

/* All ways of one call at one size. `over` becomes what the model's choice takes
 * over the best. */
static kiln_status one_size(bench_ops *b, const char *call, bool scatter,
                            cli_table *table, cJSON *rows, double *over)
{
  kiln_status (*const plan)(const kiln_device_info *, const kiln_index_shape *,
                            kiln_index_plan *) =
      scatter ? kiln_scatter_plan : kiln_gather_plan;
  const kiln_index_shape shape = {b->n, b->n, 4, 4};
  timed all[N_WAYS + 1];
  double best = INFINITY, chosen_ms = 0;
  kiln_index_plan choice = {0};
  const size_t n_ways = scatter ? N_WAYS : N_WAYS - 1;
  size_t n = 0;
  bool listed = false;

  TRY(plan(&b->info, &shape, &choice));
  TRY(b->now->prepare(b));
  for (size_t i = 0; i < n_ways; i++)
    listed = listed || same_way(&ways[i], &choice);
  for (size_t i = 0; i < n_ways + (listed ? 0u : 1u); i++) {
    timed *t = &all[n];

    t->plan = i < n_ways ? ways[i] : choice;
    if (b->n >> 16 < t->plan.passes)
      continue; /* pieces too small to be anyone's choice */
    TRY(plan(&b->info, &shape, &t->plan));
    TRY(time_way(b, t));
    kiln__cli_progress(b->c, call, i + 1, n_ways + (listed ? 0u : 1u));
    best = t->ms < best ? t->ms : best;
    if (same_way(&t->plan, &choice))
      chosen_ms = t->ms;
    n++;
  }
  for (size_t i = 0; i < n; i++) {
    const bool chosen = same_way(&all[i].plan, &choice);

    print_way(table, call, b->n, &all[i], chosen, best);
    keep_way(rows, call, b->n, &all[i], chosen);
  }
  *over = chosen_ms / best;
  return KILN_OK;
}

static kiln_status run(bench_ops *b, const options *o, cli_table *table,
                       cJSON *rows, double *worst)
{
  for (int scatter = 0; scatter < 2; scatter++)
    for (size_t i = 0; i < o->n_bits; i++) {
      double over;

      b->now = scatter ? kiln__bench_scatter : kiln__bench_gather;
      b->n = UINT64_C(1) << o->bits[i];
      TRY(one_size(b, scatter ? "scatter" : "gather", scatter, table, rows,
                   &over));
      *worst = over > *worst ? over : *worst;
    }
  return KILN_OK;
}

int kiln__cli_bench_passes(cli *c, int argc, char **argv)
{
  static const char *const heads[] = {"call",     ">n",     "way",
                                      ">passes",  ">model", ">measured",
                                      ">of best", "",       NULL};
  cJSON *json = cJSON_CreateObject(), *rows = cJSON_CreateArray();
  bench_ops b = {.c = c};
  unsigned most = 0;
  double worst = 0;
  cli_table table;
  kiln_status st;
  options o;
  int rc;

  cJSON_AddItemToObject(json, "passes", rows);
  if (!parse(c, &o, argc, argv, &rc)) {
    cJSON_Delete(json);
    return rc;
  }
  b.repeats = o.repeats;
  for (size_t i = 0; i < o.n_bits; i++)
    most = o.bits[i] > most ? o.bits[i] : most;
  kiln__cli_table(&table, c, heads);
  st = kiln__bench_open(&b, o.device, most);
  if (st == KILN_OK)
    st = run(&b, &o, &table, rows, &worst);
  if (st == KILN_OK) {
    printf("%s; medians of %u, queued\n", b.info.name, o.repeats);
    kiln__cli_table_print(&table, 0);
    printf("the model's choice takes at most %.2fx the best way\n", worst);
    cJSON_AddStringToObject(json, "device", b.info.name);
    cJSON_AddNumberToObject(json, "worst", worst);
  }
  kiln__bench_close(&b);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "passes");
  if (o.json != NULL && rc == CLI_OK)
    return kiln__cli_json(c, json, o.json);
  cJSON_Delete(json);
  return rc;
}
