/* bench_launch.c -- `kiln bench launch`, which compares the host time of
 * kiln_launch() with that of a bare cuLaunchKernel of the same kernel in the
 * same stream. */
#include "bench/bench.h"

enum {
  /* Number of launches per batch, well below the 1,024 launches that a driver
   * queues. */
  BATCH = 256,
  BATCHES = 101,
  WARM_UP = 8,
  /* Number of elements, so small that the kernel is short and the driver's
   * queue never fills. */
  N = 256
};

typedef struct rig {
  kiln_device *device;
  kiln_stream *stream;
  kiln_module *module;
  kiln_kernel *kernel;
  CUdeviceptr x, y;
  bench_launch_fn launch;
  bench_set_current_fn set_current;
  kiln_status st; /* status of the first launch that failed */
  int bare_rc;
} rig;

/* ---- The four kinds of launches that are compared ----------------------- */

static void bare(rig *r)
{
  CUfunction f = kiln_kernel_handle(r->kernel);
  CUstream s = kiln_stream_handle(r->stream);
  float a = 2;
  unsigned n = N;

  for (int i = 0; i < BATCH; i++) {
    void *params[] = {&a, &r->x, &r->y, &n};
    const int rc = r->launch(f, 1, 1, 1, N, 1, 1, 0, s, params, NULL);

    if (rc != 0)
      r->bare_rc = rc;
  }
}

static void with_kiln(rig *r, uint32_t grid)
{
  const kiln_launch_config config = {
      .grid = {grid, 1, 1}, .block = {N, 1, 1}, .stream = r->stream};
  float a = 2;
  unsigned n = N;

  for (int i = 0; i < BATCH; i++) {
    const kiln_status st =
        KILN_LAUNCH(r->kernel, &config, KILN_ARG(a), KILN_ARG(r->x),
                    KILN_ARG(r->y), KILN_ARG(n));

    if (st != KILN_OK)
      r->st = st;
  }
}

typedef enum way { BARE, KILN, KILN_SWITCH, KILN_EMPTY, N_WAYS } way;

static const struct {
  const char *label, *key;
} ways[] = {
    {"bare cuLaunchKernel", "bare_ns"},
    {"kiln_launch, arguments checked", "kiln_ns"},
    {"kiln_launch, another context current", "kiln_switch_ns"},
    {"kiln_launch of an empty grid", "kiln_empty_ns"},
};

static void run_way(rig *r, way w)
{
  switch (w) {
  case BARE:
    bare(r);
    break;
  case KILN:
  case KILN_SWITCH:
    with_kiln(r, 1);
    break;
  default:
    with_kiln(r, 0);
  }
}

/* Measures one batch, in nanoseconds per launch. The stream is idle before
 * and after the batch, and neither wait is timed. */
static double time_batch(rig *r, way w, CUcontext context)
{
  double begin, end;

  r->set_current(w == KILN_SWITCH ? NULL : context);
  begin = kiln__cli_now_ns();
  run_way(r, w);
  end = kiln__cli_now_ns();
  r->set_current(context);
  if (kiln_stream_synchronize(r->stream) != KILN_OK)
    r->st = kiln_last_error()->status;
  return (end - begin) / BATCH;
}

static kiln_status set_up(rig *r, cli *c, int ordinal)
{
  const kiln_program_desc desc = {.source = kiln__bench_saxpy,
                                  .name = "launch.cu"};

  CLI_TRY(kiln_device_open(&r->device, c->rt, ordinal, NULL));
  CLI_TRY(kiln_stream_create(&r->stream, r->device, NULL));
  CLI_TRY(kiln_module_load(&r->module, r->device, &desc));
  CLI_TRY(kiln_module_kernel(&r->kernel, r->module, "saxpy"));
  CLI_TRY(kiln_memory_alloc(&r->x, r->device, N * sizeof(float)));
  CLI_TRY(kiln_memory_alloc(&r->y, r->device, N * sizeof(float)));
  CLI_TRY(kiln_fill(r->device, r->x, 0, 4, N));
  return kiln_fill(r->device, r->y, 0, 4, N);
}

static void tear_down(rig *r)
{
  if (r->x != 0)
    kiln_memory_free(r->device, r->x);
  if (r->y != 0)
    kiln_memory_free(r->device, r->y);
  kiln_module_free(r->module);
  kiln_stream_free(r->stream);
  kiln_device_free(r->device);
}

static bool find_entries(rig *r, cli *c, const char **why)
{
  const bench_symbol list[] = {{"cuLaunchKernel", &r->launch},
                               {"cuCtxSetCurrent", &r->set_current},
                               {NULL, NULL}};

  return kiln__bench_driver_symbols(c, list, why) != NULL;
}

static int report(cli *c, const char *device, double median[N_WAYS],
                  double low[N_WAYS], const bench_options *options)
{
  static const char *const heads[] = {"", ">ns per launch", ">fastest",
                                      ">to bare", NULL};
  cli_table t;
  cJSON *o, *rows;

  printf("%s: medians of %d batches of %d launches, interleaved\n\n", device,
         BATCHES, BATCH);
  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < N_WAYS; i++) {
    kiln__cli_cells(&t, "%s\t%.0f\t%.0f\t%.3f", ways[i].label, median[i],
                    low[i], median[i] / median[BARE]);
  }
  kiln__cli_table_print(&t, 0);
  printf("\nchecking and packing arguments costs %.0f ns per launch\n",
         median[KILN] - median[BARE]);
  o = cJSON_CreateObject();
  JSON_TEXT(o, "device", device);
  JSON_NUMBER(o, "batches", BATCHES);
  JSON_NUMBER(o, "batch", BATCH);
  for (size_t i = 0; i < N_WAYS; i++)
    JSON_NUMBER(o, ways[i].key, median[i]);
  JSON_NUMBER(o, "ratio", median[KILN] / median[BARE]);
  rows = cJSON_AddArrayToObject(o, "launch");
  for (size_t i = 0; i < N_WAYS; i++) {
    cJSON *row = kiln__cli_json_item(rows);

    JSON_TEXT(row, "way", ways[i].label);
    JSON_NUMBER(row, "ns", median[i]);
    JSON_NUMBER(row, "fastest_ns", low[i]);
  }
  return kiln__bench_end(c, options, CLI_OK, o);
}

static int measure(cli *c, rig *r, const bench_options *o)
{
  double(*times)[BATCHES] = kiln__cli_alloc(c, N_WAYS, sizeof *times);
  double median[N_WAYS], low[N_WAYS];
  kiln_device_info info;
  CUcontext context;

  if (kiln_device_describe(r->device, &info) != KILN_OK ||
      kiln_device_context(r->device, &context) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  for (int b = -WARM_UP; b < BATCHES; b++)
    for (int w = 0; w < N_WAYS; w++) {
      /* Odd batches run in reverse order, so that no kind of launch always
       * follows the same other kind. */
      const way chosen = (way)(b % 2 == 0 ? w : N_WAYS - 1 - w);
      const double ns = time_batch(r, chosen, context);

      if (b >= 0)
        times[chosen][b] = ns;
    }
  r->set_current(NULL);
  if (r->st != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (r->bare_rc != 0) {
    kiln__cli_message(c, NULL, "cuLaunchKernel failed with code %d",
                      r->bare_rc);
    return CLI_FAILED;
  }
  for (size_t w = 0; w < N_WAYS; w++) {
    median[w] = kiln__cli_median(times[w], BATCHES);
    low[w] = times[w][0];
  }
  return report(c, info.name, median, low, o);
}

int kiln__bench_launch(cli *c, int argc, char **argv)
{
  bench_options o = {0};
  const cli_option options[] = {BENCH_OPTION_DEVICE(&o),
                                BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench launch [options]\n",
      .about =
          "Measures the time that the host spends on one launch of a kernel "
          "with four arguments: a bare cuLaunchKernel beside kiln_launch, "
          "same kernel and stream. The GPU is idle before each batch, and "
          "waiting for it is not timed.",
      .options = options,
      .example = "kiln bench launch --json launch.json"};
  const char *why = "";
  cli_words words;
  rig r = {0};
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if (set_up(&r, c, o.device) != KILN_OK) {
    rc = kiln__cli_failure(c, NULL);
  } else if (!find_entries(&r, c, &why)) {
    kiln__cli_message(c, "name a libcuda with --driver",
                      "cannot measure a bare cuLaunchKernel: %s", why);
    rc = CLI_FAILED;
  } else {
    rc = measure(c, &r, &o);
  }
  tear_down(&r);
  return rc;
}
