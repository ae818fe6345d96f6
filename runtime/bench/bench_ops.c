/* bench_ops.c -- runs the cases of the operations and prints their table. */
#include "bench_ops.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(expression)                                                        \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

const bench_family kiln__bench_families[] = {
    {"map", kiln__bench_map, "map"},
    {"fold", kiln__bench_fold, "reduce"},
    {"segmented", kiln__bench_segmented, "segmented"},
    {"scan", kiln__bench_scan, "scan"},
    {"select", kiln__bench_select, "select"},
    {"partition", kiln__bench_partition, "partition"},
    {"histogram", kiln__bench_histogram, "histogram"},
    {"sort", kiln__bench_sort, "sort"},
    {"sort_pairs", kiln__bench_sort_pairs, "sort_pairs"},
    {"gather", kiln__bench_gather, "gather"},
    {"scatter", kiln__bench_scatter, "scatter"},
    {"merge", kiln__bench_merge, "merge"},
    {"search", kiln__bench_search, "search"},
    {NULL, NULL, NULL},
};

enum {
  ROOM = 1 << 16, /* beside the elements: results of small inputs */
  MAX_REPEATS = 64,
  WARM_UPS = 3,
  SLOW_ITERATIONS = 40000 /* longer than the host takes to queue a call */
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

/* ---- Options -------------------------------------------------------------------- */

typedef struct options {
  const char *json, *plot, *peers, *only;
  unsigned bits[BENCH_OPS_SIZES]; /* log2 of the sizes, largest first */
  size_t n_bits;
  unsigned repeats;
  int device;
} options;

static const char usage_text[] =
    "usage: kiln bench FAMILY [--sizes 28,24,20,16] [--repeats N] [--only "
    "TEXT]\n"
    "                         [--device N] [--peers FILE] [--json FILE]\n"
    "                         [--plot FILE]\n"
    "  --sizes    log2 of the elements of 4 bytes, four at most (8 bytes: "
    "half\n"
    "             as many elements)\n"
    "  --repeats  timed runs of each, 15 by default\n"
    "  --only     cases whose label holds TEXT\n"
    "  --device   GPU to use, default 0\n"
    "  --peers    shared object with the peers (default: libkiln_peers.so "
    "beside\n"
    "             this executable)\n"
    "  --json     write every figure to FILE\n"
    "  --plot     draw the rates by size as SVG (needs gnuplot)\n";

/* False: stop with *rc. */
static bool parse(cli *c, options *o, int argc, char **argv, int *rc)
{
  static const struct option known[] = {
      {"sizes", required_argument, NULL, 's'},
      {"repeats", required_argument, NULL, 'r'},
      {"only", required_argument, NULL, 'o'},
      {"device", required_argument, NULL, 'd'},
      {"peers", required_argument, NULL, 'p'},
      {"json", required_argument, NULL, 'j'},
      {"plot", required_argument, NULL, 'g'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  int opt;

  *o = (options){.bits = {28, 24, 20, 16}, .n_bits = 4, .repeats = 15};
  *rc = CLI_OK;
  while ((opt = getopt_long(argc, argv, "h", known, NULL)) != -1) {
    switch (opt) {
    case 's':
      o->n_bits = kiln__cli_sizes(optarg, 0, 32, o->bits, BENCH_OPS_SIZES);
      if (o->n_bits > 0)
        break;
      *rc = kiln__cli_usage(c, "--sizes takes up to four numbers below 33");
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
    case 'p':
      o->peers = optarg;
      break;
    case 'j':
      o->json = optarg;
      break;
    case 'g':
      o->plot = optarg;
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

/* ---- The device and the peers -------------------------------------------------------- */

/* The peers use the primary context of their thread's current GPU, as the
 * library does. */
static void open_peers(bench_ops *b, const char *path)
{
  int (*use)(int) = NULL;
  void *symbol;
  char *slash;
  ssize_t n;

  if (path != NULL) {
    snprintf(b->peers_place, sizeof b->peers_place, "%s", path);
  } else {
    n = readlink("/proc/self/exe", b->peers_place, sizeof b->peers_place - 32);
    b->peers_place[n > 0 ? n : 0] = '\0';
    slash = strrchr(b->peers_place, '/');
    snprintf(slash == NULL ? b->peers_place : slash + 1, 32, "%s",
             "libkiln_peers.so");
  }
  b->peers =
      b->c->on_cpu ? NULL : dlopen(b->peers_place, RTLD_NOW | RTLD_LOCAL);
  if (b->peers == NULL)
    return;
  symbol = dlsym(b->peers, "kiln_peer_device");
  memcpy(&use, &symbol, sizeof use);
  if (use == NULL || use(b->info.ordinal) != 0)
    b->peers = NULL; /* not closed: the CUDA runtime in it stays */
}

kiln_status kiln__bench_open(bench_ops *b, int ordinal, unsigned most_bits)
{
  const kiln_program_desc slow = {.builtin = "slow"};
  const uint64_t most = UINT64_C(1) << most_bits;

  TRY(kiln_device_open(&b->device, b->c->rt, ordinal, NULL));
  TRY(kiln_device_describe(b->device, &b->info));
  TRY(kiln_stream_create(&b->stream, b->device, NULL));
  TRY(kiln_event_create(&b->from, b->device, true));
  TRY(kiln_event_create(&b->to, b->device, true));
  TRY(kiln_module_load(&b->slow_module, b->device, &slow));
  TRY(kiln_module_kernel(&b->slow, b->slow_module, "slow"));
  TRY(kiln_memory_alloc(&b->slow_out, b->device, 256));
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    TRY(kiln_memory_alloc(&b->in[k], b->device, 4 * most + ROOM));
    TRY(kiln_memory_alloc(&b->out[k], b->device, 4 * most + ROOM));
    TRY(kiln_memory_alloc(&b->peer_out[k], b->device, 4 * most + ROOM));
  }
  return KILN_OK;
}

void kiln__bench_close(bench_ops *b)
{
  if (b->device == NULL)
    return;
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    kiln_memory_free(b->device, b->in[k]);
    kiln_memory_free(b->device, b->out[k]);
    kiln_memory_free(b->device, b->peer_out[k]);
  }
  kiln_memory_free(b->device, b->temp);
  kiln_memory_free(b->device, b->room.data);
  kiln_memory_free(b->device, b->slow_out);
  kiln_module_free(b->slow_module);
  kiln_event_free(b->from);
  kiln_event_free(b->to);
  kiln_stream_free(b->stream);
  kiln_device_free(b->device);
}

kiln_status kiln__bench_fill_with(bench_ops *b, CUdeviceptr to, kiln_dtype type,
                                  uint64_t n, const char *expr)
{
  const kiln_map_desc desc = {
      .out = {{to, type}},
      .expr = {expr},
      .n = n,
      .code = {.preamble =
                   "__device__ unsigned long long hash(unsigned long long v)\n"
                   "{\n"
                   "  v = (v ^ v >> 33) * 0xff51afd7ed558ccdull;\n"
                   "  v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ull;\n"
                   "  return v ^ v >> 33;\n"
                   "}\n"}};

  return kiln_map(b->stream, &desc, NULL);
}

kiln_status kiln__bench_room(bench_ops *b, size_t bytes)
{
  enum { KEPT = 8 << 20 };

  TRY(kiln_memory_free(b->device, b->room.data));
  b->room = (kiln_workspace){0, 0};
  b->room_known = true;
  if (bytes <= KEPT)
    return KILN_OK;
  TRY(kiln_memory_alloc(&b->room.data, b->device, bytes));
  b->room.size = bytes;
  return KILN_OK;
}

/* ---- Timing --------------------------------------------------------------------------------- */

typedef struct shot {
  bool is_peer;
  double idle_ms, queued_ms; /* medians */
} shot;

/* dlsym gives a data pointer; a function pointer has to be copied from it. */
static int call_peer(bench_ops *b, CUdeviceptr temp, size_t *bytes)
{
  int (*peer)(const kiln_peer_call *) = NULL;
  void *symbol = dlsym(b->peers, b->now->symbol);
  kiln_peer_call call = {.n = (size_t)b->n,
                         .temp = (void *)(uintptr_t)temp,
                         .temp_bytes = bytes,
                         .stream = kiln_stream_handle(b->stream)};

  memcpy(&peer, &symbol, sizeof peer);
  for (int k = 0; k < BENCH_OPS_BUFFERS; k++) {
    call.in[k] = (const void *)(uintptr_t)b->in[k];
    call.out[k] = (void *)(uintptr_t)b->peer_out[k];
  }
  return peer(&call);
}

static kiln_status fire(bench_ops *b, bool is_peer)
{
  size_t bytes = b->temp_bytes;
  int code;

  if (!is_peer)
    return b->now->own(b);
  code = call_peer(b, b->temp, &bytes);
  if (code == 0)
    return KILN_OK;
  kiln__cli_say(b->c, NULL, "%s, %s: CUDA error %d", b->now->label,
                b->now->peer, code);
  return KILN_EDRIVER;
}

/* Behind a running kernel the host's part does not count. */
static kiln_status run_once(bench_ops *b, bool is_peer, bool queued, double *ms)
{
  const kiln_launch_config one = {
      .grid = {.x = 1}, .block = {.x = 32}, .stream = b->stream};
  const unsigned iterations = SLOW_ITERATIONS;
  float took;

  if (queued && !b->c->on_cpu)
    TRY(KILN_LAUNCH(b->slow, &one, KILN_ARG(b->slow_out),
                    KILN_ARG(iterations)));
  else
    TRY(kiln_stream_synchronize(b->stream));
  TRY(kiln_event_record(b->from, b->stream));
  TRY(fire(b, is_peer));
  TRY(kiln_event_record(b->to, b->stream));
  TRY(kiln_event_synchronize(b->to));
  TRY(kiln_event_elapsed(&took, b->from, b->to));
  *ms = (double)took;
  return KILN_OK;
}

kiln_status kiln__bench_time_own(bench_ops *b, double *ms)
{
  double all[MAX_REPEATS];

  TRY(run_once(b, false, false, ms)); /* compiles */
  for (unsigned r = 0; r < b->repeats; r++)
    TRY(run_once(b, false, true, &all[r]));
  *ms = kiln__cli_median(all, b->repeats);
  return KILN_OK;
}

/* In turns, so that what drifts drifts for both; three runs of the same code
 * before each timed one, so that the second-level cache holds what this code
 * leaves: what is random in it settles after more than one. */
static kiln_status time_shots(bench_ops *b, shot *shots, size_t n)
{
  double ms[2][2][MAX_REPEATS];

  for (unsigned r = 0; r < b->repeats; r++)
    for (size_t i = 0; i < n; i++)
      for (int queued = 0; queued < 2; queued++) {
        double *at = &ms[i][queued][r];

        for (unsigned run = 0; run <= WARM_UPS; run++)
          TRY(run_once(b, shots[i].is_peer, queued, at));
      }
  for (size_t i = 0; i < n; i++) {
    shots[i].idle_ms = kiln__cli_median(ms[i][0], b->repeats);
    shots[i].queued_ms = kiln__cli_median(ms[i][1], b->repeats);
  }
  return KILN_OK;
}

static kiln_status peer_room(bench_ops *b)
{
  size_t bytes = 0;
  const int code = call_peer(b, 0, &bytes);

  if (code != 0)
    return KILN_EDRIVER;
  if (bytes <= b->temp_bytes && b->temp != 0)
    return KILN_OK;
  TRY(kiln_memory_free(b->device, b->temp));
  b->temp = 0;
  b->temp_bytes = bytes > 256 ? bytes : 256;
  return kiln_memory_alloc(&b->temp, b->device, b->temp_bytes);
}

/* ---- Are the results the same? ------------------------------------------------------------------ */

/* The largest difference, by the library itself, in double; NaN where one is. */
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
  TRY(kiln_map(b->stream, &desc, NULL));
  TRY(kiln_stream_synchronize(b->stream));
  copy = malloc((size_t)n * kiln_dtype_size(desc.out[0].type));
  if (copy == NULL)
    return KILN_OK; /* too large for this host: not compared */
  TRY(kiln_copy_to_host(b->device, copy, b->peer_out[0],
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

/* ---- One case at one size --------------------------------------------------------------------------- */

typedef struct outcome {
  shot own, peer;
  bool has_peer, compared, same;
  double wanted;
} outcome;

static kiln_status run_case(bench_ops *b, outcome *out)
{
  shot shots[2] = {{.is_peer = false}, {.is_peer = true}};
  double ms, worst = 0;

  b->room_known = false;
  TRY(b->now->prepare(b));
  out->has_peer = b->peers != NULL && b->now->symbol != NULL &&
                  dlsym(b->peers, b->now->symbol) != NULL;
  if (out->has_peer)
    TRY(peer_room(b));
  TRY(run_once(b, false, false, &ms)); /* compiles */
  if (out->has_peer) {
    TRY(run_once(b, true, false, &ms));
    if (b->now->compared != KILN_DTYPE_NONE)
      TRY(difference(b, &worst, &out->compared));
  }
  out->same = worst <= b->now->tolerance;
  TRY(time_shots(b, shots, out->has_peer ? 2 : 1));
  out->own = shots[0];
  out->peer = shots[1];
  return KILN_OK;
}

/* ---- The table ---------------------------------------------------------------------------------------- */

uint64_t kiln__bench_elements(const bench_case *c, unsigned bits)
{
  return UINT64_C(1) << (kiln_dtype_size(c->type) == 8 ? bits - 1 : bits);
}

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

  kiln__cli_cell(t, "%s", b->now->label);
  kiln__cli_cell(t, "%s", kiln_dtype_name(b->now->type));
  kiln__cli_cell(t, "%llu", (unsigned long long)b->n);
  kiln__cli_cell(t, "%.2f us", o->own.idle_ms * 1e3);
  kiln__cli_cell(t, "%.0f",
                 (double)b->n * b->now->bytes / (o->own.idle_ms * 1e6));
  if (!o->has_peer) {
    for (int k = 0; k < 4; k++)
      kiln__cli_cell(t, "-");
  } else {
    kiln__cli_cell(t, "%s %.2f us", b->now->peer, o->peer.idle_ms * 1e3);
    kiln__cli_cell(t, "%.2fx", ratio);
    kiln__cli_cell(t, "%.2fx", o->peer.queued_ms / o->own.queued_ms);
    if (o->wanted > 0)
      kiln__cli_cell(t, "%.2fx%s", o->wanted,
                     ratio >= o->wanted ? "" : "  missed");
    else
      kiln__cli_cell(t, "-");
  }
  kiln__cli_cell(t, "%s", !o->compared ? "-" : o->same ? "yes" : "NO");
}

static cJSON *outcome_json(const bench_ops *b, const char *family,
                           const outcome *o)
{
  cJSON *j = cJSON_CreateObject();

  cJSON_AddStringToObject(j, "family", family);
  cJSON_AddStringToObject(j, "case", b->now->label);
  cJSON_AddStringToObject(j, "type", kiln_dtype_name(b->now->type));
  cJSON_AddNumberToObject(j, "n", (double)b->n);
  cJSON_AddNumberToObject(j, "ms", o->own.idle_ms);
  cJSON_AddNumberToObject(j, "queued_ms", o->own.queued_ms);
  cJSON_AddNumberToObject(
      j, "gb_per_s", (double)b->n * b->now->bytes / (o->own.idle_ms * 1e6));
  if (o->has_peer) {
    cJSON_AddStringToObject(j, "peer", b->now->peer);
    cJSON_AddNumberToObject(j, "peer_ms", o->peer.idle_ms);
    cJSON_AddNumberToObject(j, "peer_queued_ms", o->peer.queued_ms);
    cJSON_AddNumberToObject(j, "ratio", o->peer.idle_ms / o->own.idle_ms);
    if (o->compared)
      kiln__cli_json_flag(j, "same_result", o->same);
  }
  if (o->wanted > 0)
    cJSON_AddNumberToObject(j, "wanted", o->wanted);
  return j;
}

typedef struct tally {
  unsigned wanted, held, wrong;
} tally;

static void count(tally *t, const outcome *o)
{
  if (!o->has_peer)
    return;
  t->wrong += !o->same;
  if (o->wanted > 0) {
    t->wanted++;
    t->held += o->peer.idle_ms / o->own.idle_ms >= o->wanted;
  }
}

static size_t sizes_of(const bench_case *c, const options *o)
{
  if (c->own_size == 0)
    return o->n_bits;
  return o->bits[0] >= c->own_size ? 1 : 0;
}

static kiln_status run_family(bench_ops *b, const bench_family *family,
                              const options *o, cJSON *list, tally *sum)
{
  static const char *const heads[] = {"operation", "type",  ">n",     ">time",
                                      ">GB/s",     ">peer", ">ratio", ">queued",
                                      ">wanted",   "same",  NULL};
  cli_table table;

  kiln__cli_table(&table, b->c, heads);
  for (const bench_case *c = family->cases; c->label != NULL; c++) {
    if (o->only != NULL && strstr(c->label, o->only) == NULL)
      continue;
    for (size_t i = 0; i < sizes_of(c, o); i++) {
      outcome out = {.wanted = wanted_at(c, c->own_size ? 28 : o->bits[i])};

      b->now = c;
      b->n = kiln__bench_elements(c, o->bits[i]);
      TRY(run_case(b, &out));
      count(sum, &out);
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
         b->info.name, b->info.sm_count, b->repeats);
  if (b->c->on_cpu)
    printf("the CPU device: its times say nothing about a GPU's\n");
  else if (b->peers == NULL)
    printf("no peers to compare with: %s cannot be loaded (build with "
           "-DKILN_PEERS=ON)\n",
           b->peers_place);
  cJSON_AddStringToObject(json, "device", b->info.name);
  cJSON_AddNumberToObject(json, "repeats", b->repeats);
}

static int run_all(bench_ops *b, const char *family, const options *o,
                   cJSON *json)
{
  cJSON *list = cJSON_AddArrayToObject(json, "cases");
  tally sum = {0};

  describe(b, json);
  for (const bench_family *f = kiln__bench_families; f->name != NULL; f++)
    if (strcmp(family, "ops") == 0 || strcmp(family, f->name) == 0)
      if (run_family(b, f, o, list, &sum) != KILN_OK) {
        fflush(stdout);
        return kiln__cli_failure(b->c, b->now->label);
      }
  if (sum.wanted > 0)
    printf("\n%u of %u wanted ratios hold\n", sum.held, sum.wanted);
  if (sum.wrong > 0)
    printf("%u results differ from the peer's\n", sum.wrong);
  return sum.wrong > 0 ? CLI_FAILED : CLI_OK;
}

int kiln__bench_ops(cli *c, const char *family, int argc, char **argv)
{
  bench_ops b = {.c = c};
  unsigned most = 0;
  cJSON *json;
  options o;
  int rc;

  if (!parse(c, &o, argc, argv, &rc))
    return rc;
  b.repeats = o.repeats;
  for (size_t i = 0; i < o.n_bits; i++)
    most = o.bits[i] > most ? o.bits[i] : most;
  if (kiln__bench_open(&b, o.device, most) != KILN_OK) {
    kiln__bench_close(&b);
    return kiln__cli_failure(c, "device");
  }
  open_peers(&b, o.peers);
  json = cJSON_CreateObject();
  rc = run_all(&b, family, &o, json);
  kiln__bench_close(&b);
  if (rc == CLI_OK && o.plot != NULL)
    rc = kiln__bench_plot(c, json, o.plot);
  if (o.json != NULL)
    return kiln__cli_json(c, json, o.json) != CLI_OK ? CLI_FAILED : rc;
  cJSON_Delete(json);
  return rc;
}
