/* bench_passes.c -- `kiln bench passes`, which compares the cost model of
 * gather and scatter with measured times. For each method, the table shows
 * the predicted and the measured time. The benchmark also shows how much
 * slower the model's choice is than the best method (multi-pass scatter, He
 * et al. 2007). */
#include "bench/bench_ops.h"

#include <math.h>

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
    /* The method that sorts the indices first is for a scatter only and must be
     * the last method. */
    {.method = KILN_INDEX_SORT, .passes = 1},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static const char *const names[] = {"", "one pass", "windows", "partition",
                                    "sort"};

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
  b->workspace_known = false;
  return kiln__bench_time_own(b, &t->ms);
}

static void print_way(cli_table *t, const char *call, uint64_t n,
                      const timed *way, bool chosen, double best)
{
  kiln__cli_cells(t, "%s\t%llu\t%s\t%u\t%.1f us\t%.1f us\t%.2fx\t%s", call,
                  (unsigned long long)n, names[way->plan.method],
                  way->plan.passes, way->plan.ms * 1e3, way->ms * 1e3,
                  way->ms / best, chosen ? "the model's choice" : "");
}

static void keep_way(cJSON *rows, const char *call, uint64_t n,
                     const timed *way, bool chosen)
{
  cJSON *row = kiln__cli_json_item(rows);

  JSON_TEXT(row, "call", call);
  JSON_NUMBER(row, "n", n);
  JSON_TEXT(row, "way", names[way->plan.method]);
  JSON_NUMBER(row, "passes", way->plan.passes);
  JSON_NUMBER(row, "model_ms", way->plan.ms);
  JSON_NUMBER(row, "ms", way->ms);
  JSON_FLAG(row, "chosen", chosen);
}

/* Times all methods of one call at one size. *over receives the time of the
 * model's choice divided by the time of the best method. */
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

  CLI_TRY(plan(&b->rig.info, &shape, &choice));
  CLI_TRY(kiln__bench_prepare(b));
  for (size_t i = 0; i < n_ways; i++)
    listed = listed || same_way(&ways[i], &choice);
  for (size_t i = 0; i < n_ways + (listed ? 0u : 1u); i++) {
    timed *t = &all[n];

    t->plan = i < n_ways ? ways[i] : choice;
    if (b->n >> 16 < t->plan.passes)
      continue; /* skip the method: its ranges or buckets would be too small */
    CLI_TRY(plan(&b->rig.info, &shape, &t->plan));
    CLI_TRY(time_way(b, t));
    kiln__cli_progress(b->rig.c, call, i + 1, n_ways + (listed ? 0u : 1u));
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

static kiln_status run(bench_ops *b, const bench_options *o, cli_table *table,
                       cJSON *rows, double *worst)
{
  for (int scatter = 0; scatter < 2; scatter++)
    for (size_t i = 0; i < o->sizes.n; i++) {
      double over;

      b->now = scatter ? kiln__bench_scatter : kiln__bench_gather;
      b->n = UINT64_C(1) << o->sizes.bits[i];
      CLI_TRY(one_size(b, scatter ? "scatter" : "gather", scatter, table, rows,
                       &over));
      *worst = over > *worst ? over : *worst;
    }
  return KILN_OK;
}

int kiln__bench_passes(cli *c, int argc, char **argv)
{
  static const char *const heads[] = {"call",     ">n",     "way",
                                      ">passes",  ">model", ">measured",
                                      ">of best", "",       NULL};
  bench_options o = {.sizes = {{28, 26, 24, 20}, 4}, .repeats = 9};
  const cli_option options[] = {
      CLI_OPTION_SIZES(&o.sizes, 0, 30,
                       "log2 of the elements; default 28,26,24,20"),
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 9"),
      BENCH_OPTION_DEVICE(&o), BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench passes [options]\n",
      .about = "Measures a gather and a scatter of 4-byte elements by a random "
               "permutation, in one pass and in several: the cost model's time "
               "beside the measured one, with the model's choice marked.",
      .options = options,
      .example = "kiln bench passes --sizes 28"};
  cJSON *json, *rows;
  bench_ops b = {.repeats = 0};
  double worst = 0;
  cli_words words;
  cli_table table;
  kiln_status st;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  json = cJSON_CreateObject();
  rows = cJSON_AddArrayToObject(json, "passes");
  b.repeats = o.repeats;
  kiln__cli_table(&table, c, heads);
  st = kiln__bench_ops_open(&b, c, o.device, kiln__bench_most(&o.sizes));
  if (st == KILN_OK)
    st = run(&b, &o, &table, rows, &worst);
  if (st == KILN_OK) {
    printf("%s; medians of %u, queued\n", b.rig.info.name, o.repeats);
    kiln__cli_table_print(&table, 0);
    printf(
        "the model's choice takes at most %.2fx the time of the best method\n",
        worst);
    JSON_TEXT(json, "device", b.rig.info.name);
    JSON_NUMBER(json, "worst", worst);
  }
  kiln__bench_ops_close(&b);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "passes");
  return kiln__bench_end(c, &o, rc, json);
}
