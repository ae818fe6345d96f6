/* bench_launch.c -- what a launch costs the host, beside a bare
 * cuLaunchKernel of the same kernel in the same stream. */
#include "tool/cli.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The driver's own signatures; the command includes no CUDA header. */
typedef int (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, unsigned, CUstream, void **,
                         void **);
typedef int (*set_current_fn)(CUcontext);

enum {
  BATCH = 256, /* launches; well below the 1,024 that a driver queues */
  BATCHES = 101,
  WARM_UP = 8,
  N = 256 /* elements: a kernel so short that the queue never fills */
};

typedef struct rig {
  kiln_device *device;
  kiln_stream *stream;
  kiln_module *module;
  kiln_kernel *kernel;
  CUdeviceptr x, y;
  launch_fn launch;
  set_current_fn set_current;
  kiln_status st; /* of the first launch that failed */
  int bare_rc;
} rig;

static const char source[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,\n"
    "                                 unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n";

static double now_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- The three ways ----------------------------------------------------- */

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

/* One batch, in ns a launch. The stream is idle before and after, and neither
 * wait is timed. */
static double time_batch(rig *r, way w, CUcontext context)
{
  double begin, end;

  r->set_current(w == KILN_SWITCH ? NULL : context);
  begin = now_ns();
  run_way(r, w);
  end = now_ns();
  r->set_current(context);
  if (kiln_stream_synchronize(r->stream) != KILN_OK)
    r->st = kiln_last_error()->status;
  return (end - begin) / BATCH;
}

static kiln_status set_up(rig *r, cli *c, int ordinal)
{
  const kiln_program_desc desc = {.source = source, .name = "launch.cu"};
  kiln_status st = kiln_device_open(&r->device, c->rt, ordinal, NULL);

  if (st == KILN_OK)
    st = kiln_stream_create(&r->stream, r->device, NULL);
  if (st == KILN_OK)
    st = kiln_module_load(&r->module, r->device, &desc);
  if (st == KILN_OK)
    st = kiln_module_kernel(&r->kernel, r->module, "saxpy");
  if (st == KILN_OK)
    st = kiln_memory_alloc(&r->x, r->device, N * sizeof(float));
  if (st == KILN_OK)
    st = kiln_memory_alloc(&r->y, r->device, N * sizeof(float));
  if (st == KILN_OK)
    st = kiln_fill(r->device, r->x, 0, 4, N);
  if (st == KILN_OK)
    st = kiln_fill(r->device, r->y, 0, 4, N);
  return st;
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

/* dlsym gives an object pointer; POSIX promises that it holds a function. */
static bool find_entries(rig *r, cli *c)
{
  kiln_driver_info driver;
  void *library, *launch, *set_current;

  if (kiln_runtime_driver(c->rt, &driver) != KILN_OK)
    return false;
  library = dlopen(driver.path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return false;
  launch = dlsym(library, "cuLaunchKernel");
  set_current = dlsym(library, "cuCtxSetCurrent");
  memcpy(&r->launch, &launch, sizeof launch);
  memcpy(&r->set_current, &set_current, sizeof set_current);
  dlclose(library); /* the runtime keeps it open */
  return launch != NULL && set_current != NULL;
}

static int report(cli *c, const char *device, double median[N_WAYS],
                  double low[N_WAYS], const char *json)
{
  static const char *const heads[] = {"", ">ns a launch", ">fastest",
                                      ">to bare", NULL};
  cli_table t;
  cJSON *o;

  printf("%s: medians of %d batches of %d launches, interleaved\n\n", device,
         BATCHES, BATCH);
  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < N_WAYS; i++) {
    kiln__cli_cell(&t, "%s", ways[i].label);
    kiln__cli_cell(&t, "%.0f", median[i]);
    kiln__cli_cell(&t, "%.0f", low[i]);
    kiln__cli_cell(&t, "%.3f", median[i] / median[BARE]);
  }
  kiln__cli_table_print(&t, 0);
  printf("\nchecks and packing cost %.0f ns a launch\n",
         median[KILN] - median[BARE]);
  if (json == NULL)
    return CLI_OK;
  o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "device", device);
  cJSON_AddNumberToObject(o, "batches", BATCHES);
  cJSON_AddNumberToObject(o, "batch", BATCH);
  for (size_t i = 0; i < N_WAYS; i++)
    cJSON_AddNumberToObject(o, ways[i].key, median[i]);
  cJSON_AddNumberToObject(o, "ratio", median[KILN] / median[BARE]);
  return kiln__cli_json(c, o, json);
}

static int measure(cli *c, rig *r, const char *json)
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
      /* There and back: nobody always follows the same one. */
      const way chosen = (way)(b % 2 == 0 ? w : N_WAYS - 1 - w);
      const double ns = time_batch(r, chosen, context);

      if (b >= 0)
        times[chosen][b] = ns;
    }
  r->set_current(NULL);
  if (r->st != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (r->bare_rc != 0) {
    kiln__cli_say(c, NULL, "cuLaunchKernel failed with code %d", r->bare_rc);
    return CLI_FAILED;
  }
  for (size_t w = 0; w < N_WAYS; w++) {
    median[w] = kiln__cli_median(times[w], BATCHES);
    low[w] = times[w][0];
  }
  return report(c, info.name, median, low, json);
}

static void help(void)
{
  fputs("usage: kiln bench launch [--device N] [--json FILE]\n\n"
        "Time that the host spends on one launch of a kernel with four "
        "arguments:\na bare cuLaunchKernel beside kiln_launch, same kernel "
        "and stream. The GPU is\nidle before each batch, and waiting for it "
        "is not timed.\n",
        stdout);
}

int kiln__cli_bench_launch(cli *c, int argc, char **argv)
{
  static const struct option options[] = {
      {"device", required_argument, NULL, 'd'},
      {"json", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  const char *json = NULL;
  int opt, rc, ordinal = 0;
  rig r = {0};

  while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (opt == 'd') {
      ordinal = atoi(optarg);
    } else if (opt == 'j') {
      json = optarg;
    } else if (opt == 'h') {
      help();
      return CLI_OK;
    } else {
      return kiln__cli_usage(c, NULL);
    }
  }
  if (optind < argc)
    return kiln__cli_usage(c, "takes no \"%s\"", argv[optind]);
  if (set_up(&r, c, ordinal) != KILN_OK) {
    rc = kiln__cli_failure(c, NULL);
  } else if (!find_entries(&r, c)) {
    kiln__cli_say(c, NULL, "the driver has no cuLaunchKernel");
    rc = CLI_FAILED;
  } else {
    rc = measure(c, &r, json);
  }
  tear_down(&r);
  return rc;
}
