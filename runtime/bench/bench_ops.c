/* bench_ops.c -- runs the benchmark cases of the operations and prints the
 * tables.
 *
 * Runs of Kiln and of the comparison library (CUB, Thrust or cuBLAS) alternate,
 * so that a drift of the clock rate affects both libraries. Each call is timed
 * in two states: on an idle device, where the host's time for queueing counts,
 * and after a busy kernel, where it does not count. */
#include "bench/bench_ops.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const bench_family kiln__bench_families[] = {
    {"map", kiln__bench_map, "map"},
    {"reductions", kiln__bench_reductions, "reduce"},
    {"segmented", kiln__bench_segmented, "segmented"},
    {"reduce_by_key", kiln__bench_reduce_by_key, "reduce_by_key"},
    {"scan", kiln__bench_scan, "scan"},
    {"select", kiln__bench_select, "select"},
    {"partition", kiln__bench_partition, "partition"},
    {"partition_joined", kiln__bench_partition_joined, "partition_joined"},
    {"histogram", kiln__bench_histogram, "histogram"},
    {"sort", kiln__bench_sort, "sort"},
    {"sort_pairs", kiln__bench_sort_pairs, "sort_pairs"},
    {"merge_sort", kiln__bench_merge_sort, "merge_sort"},
    {"gather", kiln__bench_gather, "gather"},
    {"scatter", kiln__bench_scatter, "scatter"},
    {"merge", kiln__bench_merge, "merge"},
    {"search", kiln__bench_search, "search"},
    {"permute", kiln__bench_permute, NULL},
    {"move", kiln__bench_move, NULL},
    {"views", kiln__bench_views, NULL},
    {"random", kiln__bench_random, NULL},
    {"sets", kiln__bench_sets, "sets"},
    {"top_k", kiln__bench_top_k, "top_k"},
    {"quantile", kiln__bench_quantile, NULL},
    {"statistics", kiln__bench_statistics, NULL},
    {"groups", kiln__bench_groups, NULL},
    {"orders", kiln__bench_orders, NULL},
    {NULL, NULL, NULL},
};

enum {
  /* Additional bytes per buffer, since a small input may have larger
   * results. */
  SPARE = 1 << 16
};

bool kiln__bench_ops_has(const char *family)
{
  for (const bench_family *f = kiln__bench_families; f->name != NULL; f++)
    if (strcmp(family, f->name) == 0)
      return true;
  return strcmp(family, "ops") == 0;
}

const char *kiln__bench_ops_list(cli *c)
{
  const bench_family *f = kiln__bench_families;
  const char *list = f->name;

  while ((++f)->name != NULL)
    list = kiln__cli_text(c, "%s, %s", list, f->name);
  return list;
}

/* ---- The device and its memory ------------------------------------------ */

kiln_status kiln__bench_ops_open(bench_ops *b, cli *c, int ordinal,
                                 uint64_t most)
{
  CLI_TRY(kiln__bench_rig_open(&b->rig, c, ordinal));
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    CUdeviceptr *const all[] = {&b->in[k], &b->out[k], &b->peer_out[k]};

    for (int i = 0; i < 3; i++)
      CLI_TRY(kiln_memory_alloc(all[i], b->rig.device, 4 * most + SPARE));
  }
  return KILN_OK;
}

void kiln__bench_ops_close(bench_ops *b)
{
  if (b->rig.device == NULL)
    return;
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    kiln_memory_free(b->rig.device, b->in[k]);
    kiln_memory_free(b->rig.device, b->out[k]);
    kiln_memory_free(b->rig.device, b->peer_out[k]);
  }
  kiln_memory_free(b->rig.device, b->temp);
  kiln_memory_free(b->rig.device, b->workspace.data);
  kiln__bench_rig_close(&b->rig);
}

kiln_status kiln__bench_prepare(bench_ops *b)
{
  b->workspace_known = false;
  b->chosen = (kiln_tuning){0, 0, 0, 0};
  /* prepare() runs first, since it may set the number of elements b->n. */
  if (b->now->prepare != NULL)
    CLI_TRY(b->now->prepare(b));
  for (int k = 0; k < 2; k++)
    if (b->now->fill[k] != NULL)
      CLI_TRY(kiln__bench_ops_fill(b, b->in[k], b->now->type, b->n,
                                   b->now->fill[k]));
  return KILN_OK;
}

kiln_status kiln__bench_workspace(bench_ops *b, size_t bytes)
{
  enum { KEPT_BY_STREAM = 8 << 20 };

  CLI_TRY(kiln_memory_free(b->rig.device, b->workspace.data));
  b->workspace = (kiln_workspace){0, 0};
  b->workspace_known = true;
  if (bytes <= KEPT_BY_STREAM)
    return KILN_OK;
  CLI_TRY(kiln_memory_alloc(&b->workspace.data, b->rig.device, bytes));
  b->workspace.size = bytes;
  return KILN_OK;
}

/* ---- Timing ------------------------------------------------------------- */

typedef struct shot {
  bool is_peer;
  /* Median times on an idle device and after a busy kernel. */
  double idle_ms, queued_ms;
} shot;

static int call_peer(bench_ops *b, CUdeviceptr temp, size_t *bytes)
{
  int (*peer)(const kiln_peer_call *) = NULL;
  kiln_peer_call call = {.n = (size_t)b->n,
                         .temp = (void *)(uintptr_t)temp,
                         .temp_bytes = bytes,
                         .stream = kiln_stream_handle(b->rig.stream)};

  kiln__bench_symbol(b->peers, b->now->symbol, &peer);
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    call.in[k] = (const void *)(uintptr_t)b->in[k];
    call.out[k] = (void *)(uintptr_t)b->peer_out[k];
  }
  return peer(&call);
}

static kiln_status fire_own(void *user)
{
  bench_ops *b = user;

  return b->now->own(b);
}

static kiln_status fire_peer(void *user)
{
  bench_ops *b = user;
  size_t bytes = b->temp_bytes;
  const int code = call_peer(b, b->temp, &bytes);

  if (code == 0)
    return KILN_OK;
  kiln__cli_message(b->rig.c, NULL, "%s, %s: CUDA error %d", b->now->label,
                    b->now->peer, code);
  return KILN_EDRIVER;
}

/* Times one run. If `queued` is true, the run is queued after a busy kernel, so
 * the host's time for queueing does not count. */
static kiln_status run_once(bench_ops *b, bool is_peer, bool queued, double *ms)
{
  if (queued && !b->rig.c->on_cpu)
    CLI_TRY(kiln__bench_rig_delay(&b->rig));
  else
    CLI_TRY(kiln_stream_synchronize(b->rig.stream));
  return kiln__bench_rig_time(&b->rig, is_peer ? fire_peer : fire_own, b, ms);
}

kiln_status kiln__bench_time_own(bench_ops *b, double *ms)
{
  double all[BENCH_MOST_REPEATS];

  /* This first run also compiles and is not timed. */
  CLI_TRY(run_once(b, false, false, ms));
  for (unsigned r = 0; r < b->repeats; r++)
    CLI_TRY(run_once(b, false, true, &all[r]));
  *ms = kiln__cli_median(all, b->repeats);
  return KILN_OK;
}

/* Times Kiln and the comparison library (CUB, Thrust or cuBLAS) alternately.
 * Three untimed runs of the same code precede each timed run. The L2 cache then
 * holds the data that this code leaves in it, which becomes stable only after
 * several runs. */
static kiln_status time_shots(bench_ops *b, shot *shots, size_t n)
{
  double ms[2][2][BENCH_MOST_REPEATS];

  for (unsigned r = 0; r < b->repeats; r++)
    for (size_t i = 0; i < n; i++)
      for (int queued = 0; queued < 2; queued++) {
        double *at = &ms[i][queued][r];

        for (unsigned run = 0; run <= BENCH_WARM_UPS; run++)
          CLI_TRY(run_once(b, shots[i].is_peer, queued, at));
      }
  for (size_t i = 0; i < n; i++) {
    shots[i].idle_ms = kiln__cli_median(ms[i][0], b->repeats);
    shots[i].queued_ms = kiln__cli_median(ms[i][1], b->repeats);
  }
  return KILN_OK;
}

/* Enlarges the temporary storage to the size that the comparison library (CUB
 * or Thrust) needs. */
static kiln_status peer_storage(bench_ops *b)
{
  size_t bytes = 0;
  const int code = call_peer(b, 0, &bytes);

  if (code != 0)
    return KILN_EDRIVER;
  if (bytes <= b->temp_bytes && b->temp != 0)
    return KILN_OK;
  CLI_TRY(kiln_memory_free(b->rig.device, b->temp));
  b->temp = 0;
  b->temp_bytes = bytes > 256 ? bytes : 256;
  return kiln_memory_alloc(&b->temp, b->rig.device, b->temp_bytes);
}

/* ---- Comparing results -------------------------------------------------- */

/* Computes the largest difference between the results of the two libraries, in
 * double precision and on the device. The result is NaN if a difference is
 * NaN. */
static kiln_status difference(bench_ops *b, double *out, bool *compared)
{
  const kiln_dtype type = b->now->compared;
  const bool bits = b->now->tolerance == 0;
  const uint64_t n = b->now->results != 0 ? b->now->results : b->n;
  const kiln_map_desc desc = {
      .in = {{b->out[0], type}, {b->peer_out[0], type}},
      .out = {{b->peer_out[0], type == KILN_F64 ? KILN_F64 : KILN_F32}},
      .expr = {bits ? "x != y" : "fabs((double)x - (double)y)"},
      .n = kiln_dtype_size(type) >= 4 ? n : 0};
  double worst = 0;
  float *copy;

  *out = 0;
  *compared = false;
  if (desc.n == 0)
    return KILN_OK;
  CLI_TRY(kiln_map(b->rig.stream, &desc, NULL));
  CLI_TRY(kiln_stream_synchronize(b->rig.stream));
  copy = malloc((size_t)n * kiln_dtype_size(desc.out[0].type));
  if (copy == NULL)
    return KILN_OK; /* too large for the host: nothing is compared */
  CLI_TRY(kiln_copy_to_host(b->rig.device, copy, b->peer_out[0],
                            (size_t)n * kiln_dtype_size(desc.out[0].type)));
  for (uint64_t i = 0; i < n; i++) {
    const double d =
        type == KILN_F64 ? ((double *)(void *)copy)[i] : (double)copy[i];

    if (isnan(worst))
      break;
    if (!(d <= worst))
      worst = d;
  }
  free(copy);
  *out = worst;
  *compared = true;
  return KILN_OK;
}

/* ---- One benchmark case at one size ------------------------------------- */

typedef struct outcome {
  shot own, peer;
  bool has_peer, compared, same;
  double wanted;
} outcome;

/* Compares the results once, then times Kiln and the comparison library. */
static kiln_status run_case(bench_ops *b, outcome *out)
{
  shot shots[2] = {{.is_peer = false}, {.is_peer = true}};
  double ms, worst = 0;

  void *symbol;

  CLI_TRY(kiln__bench_prepare(b));
  out->has_peer = b->peers != NULL && b->now->symbol != NULL &&
                  kiln__bench_symbol(b->peers, b->now->symbol, &symbol);
  if (out->has_peer)
    CLI_TRY(peer_storage(b));
  /* This first run also compiles and is not timed. */
  CLI_TRY(run_once(b, false, false, &ms));
  if (out->has_peer) {
    CLI_TRY(run_once(b, true, false, &ms));
    if (b->now->compared != KILN_DTYPE_NONE)
      CLI_TRY(difference(b, &worst, &out->compared));
  }
  out->same = worst <= b->now->tolerance;
  CLI_TRY(time_shots(b, shots, out->has_peer ? 2 : 1));
  out->own = shots[0];
  out->peer = shots[1];
  return KILN_OK;
}

/* ---- The table ---------------------------------------------------------- */

uint64_t kiln__bench_elements(const bench_case *c, unsigned bits)
{
  uint64_t n = UINT64_C(1) << bits;

  for (size_t size = 4; size < kiln_dtype_size(c->type); size *= 2)
    n /= 2;
  return n;
}

/* Returns the performance goal of a case at a size, or 0 if there is none. */
static double wanted_at(const bench_case *c, unsigned bits)
{
  return bits == 28   ? c->wanted[0]
         : bits == 24 ? c->wanted[1]
         : bits == 20 ? c->wanted[2]
         : bits == 16 ? c->wanted[3]
                      : 0;
}

static void print_outcome(cli_table *t, const bench_ops *b, const outcome *o)
{
  const double ratio = o->peer.idle_ms / o->own.idle_ms;

  kiln__cli_cells(t, "%s\t%s\t%llu\t%.2f us\t%.0f", b->now->label,
                  kiln_dtype_name(b->now->type), (unsigned long long)b->n,
                  o->own.idle_ms * 1e3,
                  (double)b->n * b->now->bytes / (o->own.idle_ms * 1e6));
  if (!o->has_peer) {
    kiln__cli_dashes(t, 4);
  } else {
    kiln__cli_cells(t, "%s %.2f us\t%.2fx\t%.2fx", b->now->peer,
                    o->peer.idle_ms * 1e3, ratio,
                    o->peer.queued_ms / o->own.queued_ms);
    if (o->wanted > 0)
      kiln__cli_cell(t, "%.2fx%s", o->wanted,
                     ratio >= o->wanted ? "" : "  missed");
    else
      kiln__cli_dashes(t, 1);
  }
  kiln__cli_cells(t, "%s\t%s",
                  !o->compared ? "-"
                  : o->same    ? "yes"
                               : "NO",
                  b->input.seed == 0 ? "-"
                                     : kiln__bench_input_name(b->input.kind));
}

static cJSON *outcome_json(const bench_ops *b, const char *family,
                           const outcome *o)
{
  cJSON *j = cJSON_CreateObject();

  JSON_TEXT(j, "family", family);
  JSON_TEXT(j, "case", b->now->label);
  JSON_TEXT(j, "type", kiln_dtype_name(b->now->type));
  JSON_NUMBER(j, "n", b->n);
  JSON_TEXT(j, "input", kiln__bench_input_name(b->input.kind));
  JSON_NUMBER(j, "ms", o->own.idle_ms);
  JSON_NUMBER(j, "queued_ms", o->own.queued_ms);
  JSON_NUMBER(j, "gb_per_s",
              (double)b->n * b->now->bytes / (o->own.idle_ms * 1e6));
  if (o->has_peer) {
    JSON_TEXT(j, "peer", b->now->peer);
    JSON_NUMBER(j, "peer_ms", o->peer.idle_ms);
    JSON_NUMBER(j, "peer_queued_ms", o->peer.queued_ms);
    JSON_NUMBER(j, "ratio", o->peer.idle_ms / o->own.idle_ms);
    if (o->compared)
      JSON_FLAG(j, "same_result", o->same);
  }
  if (o->wanted > 0)
    JSON_NUMBER(j, "wanted", o->wanted);
  return j;
}

/* Totals over all cases that were compared with another library. */
typedef struct tally {
  unsigned wanted, held, wrong;
  bench_rows rows;
  uint64_t random; /* state of the draws */
} tally;

static kiln_status count(tally *t, const bench_ops *b, const outcome *o)
{
  if (!o->has_peer)
    return KILN_OK;
  t->wrong += !o->same;
  if (o->wanted > 0) {
    t->wanted++;
    t->held += o->peer.idle_ms / o->own.idle_ms >= o->wanted;
  }
  return kiln__bench_note(&t->rows, b, o->peer.idle_ms / o->own.idle_ms)
             ? KILN_OK
             : KILN_ENOMEM;
}

/* Returns the number of sizes that a case runs at. */
static size_t sizes_of(const bench_case *c, const bench_options *o)
{
  if (c->own_size == 0)
    return o->random > 0 ? o->random : o->sizes.n;
  return o->sizes.bits[0] >= c->own_size ? 1 : 0;
}

/* Returns whether the inputs of a case depend on what hash() means. */
static bool takes_inputs(const bench_case *c)
{
  return c->prepare != NULL ||
         (c->fill[0] != NULL && strstr(c->fill[0], "hash(") != NULL) ||
         (c->fill[1] != NULL && strstr(c->fill[1], "hash(") != NULL);
}

/* Sets the case, its size and its input. Returns the goal of the cell. */
static double start_cell(bench_ops *b, const bench_case *c,
                         const bench_options *o, size_t i, tally *sum)
{
  b->now = c;
  b->input = (bench_input){BENCH_UNIFORM, 0};
  if (o->random > 0 && c->own_size == 0) {
    kiln__bench_draw_cell(b, &o->sizes, &sum->random);
    if (!takes_inputs(c))
      b->input = (bench_input){BENCH_UNIFORM, 0};
    return 0;
  }
  b->n = kiln__bench_elements(c, o->sizes.bits[i]);
  return wanted_at(c, c->own_size ? 28 : o->sizes.bits[i]);
}

static kiln_status run_family(bench_ops *b, const bench_family *family,
                              const bench_options *o, cJSON *list, tally *sum)
{
  static const char *const heads[] = {"operation", "type",  ">n",     ">time",
                                      ">GB/s",     ">peer", ">ratio", ">queued",
                                      ">wanted",   "same",  "input",  NULL};
  cli_table table;

  kiln__cli_table(&table, b->rig.c, heads);
  for (const bench_case *c = family->cases; c->label != NULL; c++) {
    if (!kiln__bench_chosen(o, c->label))
      continue;
    for (size_t i = 0; i < sizes_of(c, o); i++) {
      outcome out = {.wanted = start_cell(b, c, o, i, sum)};

      CLI_TRY(run_case(b, &out));
      CLI_TRY(count(sum, b, &out));
      print_outcome(&table, b, &out);
      cJSON_AddItemToArray(list, outcome_json(b, family->name, &out));
    }
  }
  printf("\n%s\n", family->name);
  kiln__cli_table_print(&table, 2);
  return KILN_OK;
}

static void describe(const bench_ops *b, cJSON *json)
{
  printf("%s, %d SMs; times by events on the stream, median of %u, in turns "
         "with the peer,\neach after three runs of the same code\n",
         b->rig.info.name, b->rig.info.sm_count, b->repeats);
  if (b->rig.c->on_cpu)
    printf("this is the CPU device: a GPU's times are others\n");
  else if (b->peers == NULL)
    printf("no peers to compare with: %s\n", b->no_peers);
  kiln__bench_rig_json(&b->rig, json);
  JSON_NUMBER(json, "repeats", b->repeats);
}

static int run_all(bench_ops *b, const char *family, const bench_options *o,
                   cJSON *json)
{
  cJSON *list = cJSON_AddArrayToObject(json, "cases");
  tally sum = {.random = o->seed};

  describe(b, json);
  if (o->random > 0) {
    printf("sizes and inputs drawn at random, seed %u\n", o->seed);
    JSON_NUMBER(json, "seed", o->seed);
  }
  for (const bench_family *f = kiln__bench_families; f->name != NULL; f++)
    if (strcmp(family, "ops") == 0 || strcmp(family, f->name) == 0)
      if (run_family(b, f, o, list, &sum) != KILN_OK) {
        fflush(stdout);
        free(sum.rows.row);
        return kiln__cli_failure(b->rig.c, b->now->label);
      }
  kiln__bench_print_rows(&sum.rows, b->rig.c, json);
  free(sum.rows.row);
  if (sum.wanted > 0)
    printf("\n%u of %u wanted ratios hold\n", sum.held, sum.wanted);
  if (sum.wrong > 0)
    printf("%u results differ from the peer's\n", sum.wrong);
  return sum.wrong > 0 ? CLI_FAILED : CLI_OK;
}

int kiln__bench_ops(cli *c, int argc, char **argv)
{
  const char *family = strrchr(argv[0], ' ') + 1;
  bench_options o = {.sizes = {{28, 24, 20, 16}, 4},
                     .repeats = 15,
                     .seed = (unsigned)(time(NULL) % INT_MAX) + 1};
  const cli_option options[] = {
      CLI_OPTION_SIZES(&o.sizes, 0, 32,
                       "log2 of the elements of 4 bytes (of 8 bytes: half as "
                       "many); default 28,24,20,16"),
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 15"),
      CLI_OPTION_NUMBER("random", &o.random, 1, 1000,
                        "run each case N times with a size between the least "
                        "and the largest of --sizes, and an input, that are "
                        "drawn at random; the seed is printed"),
      CLI_OPTION_NUMBER("seed", &o.seed, 1, INT_MAX,
                        "seed of --random; default: the time"),
      BENCH_OPTION_ONLY(&o, "cases with a label"),
      BENCH_OPTION_DEVICE(&o),
      BENCH_OPTION_PEERS(&o),
      BENCH_OPTION_OUTPUT(&o),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench ops|FAMILY [options]\n",
      .about = "Measures operations beside their peers in CUB, Thrust and "
               "cuBLAS, in turns in one process, and compares the results. The "
               "last table has the worst cell of each case.",
      .options = options,
      .example = "kiln bench scan --sizes 28 --json scan.json",
      .exit_codes = "0 success, 1 an operation failed or a result differs from "
                    "the peer's, 2 wrong use."};
  bench_ops b = {.repeats = 0};
  cli_words words;
  cJSON *json;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  b.repeats = o.repeats;
  if (kiln__bench_ops_open(&b, c, o.device, kiln__bench_most(&o.sizes)) !=
      KILN_OK) {
    kiln__bench_ops_close(&b);
    return kiln__cli_failure(c, "device");
  }
  b.peers = kiln__bench_peers(c, o.peers, b.rig.info.ordinal, &b.no_peers);
  json = cJSON_CreateObject();
  rc = run_all(&b, family, &o, json);
  kiln__bench_ops_close(&b);
  return kiln__bench_end(c, &o, rc, json);
}
