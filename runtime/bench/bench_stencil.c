/* bench_stencil.c -- `kiln bench stencil` and `kiln bench julia`: convolutions and
 * the Julia set beside straightforward kernels, and beside a copy. */
#include "bench/bench.h"

#include <string.h>

enum { SIDE_BITS = 13, JULIA_ARITHMETIC = 4 };

/* The straightforward kernels: one thread per element, which reads its neighbours
 * and the weights from global memory. The borders repeat the last element. */
static const char naive_source[] =
    "extern \"C\" __global__ void naive(float *y, const float *x,\n"
    "    const float *w, int width, int height, int depth,\n"
    "    int rx, int ry, int rz)\n"
    "{\n"
    "  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
    "  const int column = (int)(i % width), row = (int)(i / width % height);\n"
    "  const int plane = (int)(i / width / height);\n"
    "  float sum = 0;\n"
    "  if (plane >= depth)\n"
    "    return;\n"
    "  for (int j = -rz; j <= rz; j++)\n"
    "    for (int k = -ry; k <= ry; k++)\n"
    "      for (int l = -rx; l <= rx; l++) {\n"
    "        const int p = min(max(plane + j, 0), depth - 1);\n"
    "        const int r = min(max(row + k, 0), height - 1);\n"
    "        const int c = min(max(column + l, 0), width - 1);\n"
    "        sum += *w++ * x[((long long)p * height + r) * width + c];\n"
    "      }\n"
    "  y[i] = sum;\n"
    "}\n";

/* The function that a map evaluates for each pixel of the Julia set. It tests
 * after every fifth step whether the pixel escapes, and then repeats the last
 * steps one by one. */
static const char julia_source[] =
    "__device__ __forceinline__ void step(float &x, float &y)\n"
    "{\n"
    "  const float next = fmaf(x, x, fmaf(-y, y, -0.79f));\n"
    "  y = fmaf(x + x, y, 0.15f);\n"
    "  x = next;\n"
    "}\n"
    "__device__ unsigned steps(float x, float y)\n"
    "{\n"
    "  unsigned i = 0;\n"
    "  float u = x, v = y;\n"
    "  while (i < 255) {\n"
    "    for (int k = 0; k < 5; k++)\n"
    "      step(u, v);\n"
    "    if (!(fmaf(u, u, v * v) < 4.0f))\n"
    "      break;\n"
    "    x = u;\n"
    "    y = v;\n"
    "    i += 5;\n"
    "  }\n"
    "  for (; i < 255 && fmaf(x, x, y * y) < 4.0f; i++)\n"
    "    step(x, y);\n"
    "  return i;\n"
    "}\n";

typedef struct stencil_case {
  const char *label;
  unsigned bits; /* log2 of the number of elements */
  uint32_t dims, radius;
  bool separable;
  const char *expr; /* an expression with the weights of a cross, or NULL */
} stencil_case;

#define CROSS "0.5f * x + 0.125f * (at(-1) + at(1) + at(0, -1) + at(0, 1))"

static const stencil_case cases[] = {
    {"3-point convolution", 28, 1, 1, false, NULL},
    {"3-point convolution", 24, 1, 1, false, NULL},
    {"3-point convolution", 20, 1, 1, false, NULL},
    {"dense, radius 1", 2 * SIDE_BITS, 2, 1, false, NULL},
    {"dense, radius 3", 2 * SIDE_BITS, 2, 3, false, NULL},
    {"dense, radius 8", 2 * SIDE_BITS, 2, 8, false, NULL},
    {"separable, radius 1", 2 * SIDE_BITS, 2, 1, true, NULL},
    {"separable, radius 3", 2 * SIDE_BITS, 2, 3, true, NULL},
    {"separable, radius 8", 2 * SIDE_BITS, 2, 8, true, NULL},
    {"expression, 5 points", 2 * SIDE_BITS, 2, 1, false, CROSS},
    {"volume, radius 1", 27, 3, 1, false, NULL},
    {"volume, separable, radius 4", 27, 3, 4, true, NULL},
};

enum { N_CASES = sizeof cases / sizeof cases[0], MOST_WEIGHTS = 17 * 17 };

typedef struct bench_stencil {
  bench_rig rig;
  unsigned repeats;
  kiln_module *module;
  kiln_kernel *naive;
  const stencil_case *now;
  uint64_t width, height, depth;
  double weights[MOST_WEIGHTS];
  CUdeviceptr x, y, between, w;
  kiln_workspace workspace;
} bench_stencil;

/* ---- Times --------------------------------------------------------------- */

/* Measures the median time of a call, each queued after a busy kernel. */
static kiln_status time_call(bench_stencil *b, bench_fire_fn fire, double *ms)
{
  double all[BENCH_MOST_REPEATS];

  CLI_TRY(kiln__bench_rig_time(&b->rig, fire, b, ms)); /* compiles */
  for (unsigned r = 0; r < b->repeats; r++) {
    if (!b->rig.c->on_cpu)
      CLI_TRY(kiln__bench_rig_delay(&b->rig));
    CLI_TRY(kiln__bench_rig_time(&b->rig, fire, b, &all[r]));
  }
  *ms = kiln__cli_median(all, b->repeats);
  return KILN_OK;
}

static kiln_status fire_copy(void *user)
{
  bench_stencil *b = user;

  return kiln_copy_on_device_async(b->rig.stream, b->y, b->x,
                                   b->width * b->height * b->depth *
                                       sizeof(float));
}

static kiln_stencil_desc desc_of(const bench_stencil *b)
{
  const stencil_case *now = b->now;
  kiln_stencil_desc d = {.in = {b->x, KILN_F32},
                         .out = {b->y, KILN_F32},
                         .dims = now->dims,
                         .size = {b->width, b->height, b->depth},
                         .weights = now->expr == NULL ? b->weights : NULL,
                         .separable = now->separable,
                         .expr = now->expr};

  for (uint32_t k = 0; k < now->dims; k++)
    d.radius[k] = now->radius;
  return d;
}

static kiln_status fire_own(void *user)
{
  bench_stencil *b = user;
  const kiln_stencil_desc d = desc_of(b);

  return kiln_stencil(b->rig.stream, &d,
                      b->workspace.data != 0 ? &b->workspace : NULL);
}

/* Allocates the temporary storage of the current case outside of the timed
 * calls. */
static kiln_status allocate_workspace(bench_stencil *b)
{
  const kiln_stencil_desc d = desc_of(b);

  if (b->workspace.data != 0)
    CLI_TRY(kiln_memory_free(b->rig.device, b->workspace.data));
  b->workspace.data = 0;
  CLI_TRY(kiln_stencil_workspace(b->rig.stream, &d, &b->workspace.size));
  return b->workspace.size == 0
             ? KILN_OK
             : kiln_memory_alloc(&b->workspace.data, b->rig.device,
                                 b->workspace.size);
}

/* Queues the straightforward kernel for the neighbourhood of these radii. */
static kiln_status launch_naive(bench_stencil *b, CUdeviceptr y, CUdeviceptr x,
                                uint32_t rx, uint32_t ry, uint32_t rz)
{
  const uint32_t width = (uint32_t)b->width, height = (uint32_t)b->height;
  const uint32_t depth = (uint32_t)b->depth;
  kiln_launch_config config =
      kiln_launch_1d(b->width * b->height * b->depth, 256);

  config.stream = b->rig.stream;
  return KILN_LAUNCH(b->naive, &config, KILN_ARG(y), KILN_ARG(x),
                     KILN_ARG(b->w), KILN_ARG(width), KILN_ARG(height),
                     KILN_ARG(depth), KILN_ARG(rx), KILN_ARG(ry), KILN_ARG(rz));
}

/* Queues the straightforward kernel. Separable weights take a pass per axis. */
static kiln_status fire_naive(void *user)
{
  bench_stencil *b = user;
  const uint32_t r = b->now->radius, dims = b->now->dims;

  if (!b->now->separable)
    return launch_naive(b, b->y, b->x, r, dims > 1 ? r : 0, dims > 2 ? r : 0);
  CLI_TRY(launch_naive(b, b->between, b->x, r, 0, 0));
  CLI_TRY(launch_naive(b, b->y, b->between, 0, r, 0));
  return dims > 2 ? launch_naive(b, b->between, b->y, 0, 0, r) : KILN_OK;
}

/* ---- Stencils ------------------------------------------------------------ */

static kiln_status allocate(bench_stencil *b, uint64_t most)
{
  const kiln_program_desc program = {.name = "naive.cu",
                                     .source = naive_source};
  CUdeviceptr *const all[] = {&b->x, &b->y, &b->between};
  float w[MOST_WEIGHTS];

  for (size_t k = 0; k < MOST_WEIGHTS; k++) {
    b->weights[k] = 1.0 / (double)(k + 2);
    w[k] = (float)b->weights[k];
  }
  CLI_TRY(kiln_module_load(&b->module, b->rig.device, &program));
  CLI_TRY(kiln_module_kernel(&b->naive, b->module, "naive"));
  for (size_t k = 0; k < 3; k++)
    CLI_TRY(kiln_memory_alloc(all[k], b->rig.device, most * sizeof(float)));
  CLI_TRY(kiln_memory_alloc(&b->w, b->rig.device, sizeof w));
  CLI_TRY(kiln_copy_to_device(b->rig.device, b->w, w, sizeof w));
  return kiln__bench_fill(b->rig.stream, b->x, KILN_F32, most,
                          "(float)(hash(i) >> 40) * 0x1p-24f - 0.5f");
}

static void discard(bench_stencil *b)
{
  const CUdeviceptr all[] = {b->x, b->y, b->between, b->w, b->workspace.data};

  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
    if (all[k] != 0)
      kiln_memory_free(b->rig.device, all[k]);
  kiln_module_free(b->module);
}

/* Returns the number of multiply-adds per element. */
static double products_of(const stencil_case *s)
{
  const double across = 2.0 * s->radius + 1;
  double n = s->separable ? 0 : 1;

  for (uint32_t k = 0; k < s->dims; k++)
    n = s->separable ? n + across : n * across;
  return s->expr != NULL ? 5 : n;
}

static kiln_status one_case(bench_stencil *b, cli_table *t, cJSON *rows)
{
  const double n = (double)(b->width * b->height * b->depth);
  double copy, own, naive;
  cJSON *row;

  CLI_TRY(allocate_workspace(b));
  CLI_TRY(time_call(b, fire_copy, &copy));
  CLI_TRY(time_call(b, fire_own, &own));
  CLI_TRY(time_call(b, fire_naive, &naive));
  kiln__cli_cells(t, "%s\t%llu x %llu x %llu\t%.2f us\t%.0f\t%.2f\t%.2f\t%.2fx",
                  b->now->label, (unsigned long long)b->width,
                  (unsigned long long)b->height, (unsigned long long)b->depth,
                  own * 1e3, 8 * n / own / 1e6, copy / own,
                  2 * n * products_of(b->now) / own / 1e9, naive / own);
  row = kiln__cli_json_item(rows);
  JSON_TEXT(row, "case", b->now->label);
  JSON_NUMBER(row, "n", n);
  JSON_NUMBER(row, "ms", own);
  JSON_NUMBER(row, "copy_ms", copy);
  JSON_NUMBER(row, "naive_ms", naive);
  return KILN_OK;
}

/* Sets sizes of about the same length for all axes of the current case. */
static void set_size(bench_stencil *b, unsigned bits)
{
  const unsigned dims = b->now->dims;

  b->height = UINT64_C(1) << (dims > 1 ? bits / dims : 0);
  b->depth = UINT64_C(1) << (dims > 2 ? bits / dims : 0);
  b->width = (UINT64_C(1) << bits) / b->height / b->depth;
}

static kiln_status run_stencils(bench_stencil *b, const bench_options *o,
                                cJSON *rows)
{
  static const char *const heads[] = {"case",      ">size",      ">time",
                                      ">GB/s",     ">of a copy", ">TFLOP/s",
                                      ">to naive", NULL};
  const bool few = b->rig.c->on_cpu;
  cli_table table;

  CLI_TRY(allocate(b, UINT64_C(1) << (few ? 14 : 28)));
  kiln__cli_table(&table, b->rig.c, heads);
  for (size_t k = 0; k < N_CASES; k++) {
    if (!kiln__bench_chosen(o, cases[k].label))
      continue;
    b->now = &cases[k];
    set_size(b, few ? 14 : cases[k].bits);
    kiln__cli_progress(b->rig.c, cases[k].label, k + 1, N_CASES);
    CLI_TRY(one_case(b, &table, rows));
  }
  kiln__cli_table_print(&table, 0);
  return KILN_OK;
}

/* ---- The Julia set ------------------------------------------------------- */

static kiln_status fire_map(void *user)
{
  bench_stencil *b = user;
  const float scale = 3.0f / (float)b->width, half = 0.5f * (float)b->width;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false},
                               {"half", KILN_F32, &half, false}};
  const kiln_map_desc d = {
      .out = {{b->y, KILN_U8}},
      .expr = {"steps((column - half) * scale, (row - half) * scale)"},
      .n = b->width * b->height,
      .code = {.preamble = julia_source, .params = params, .n_params = 2},
      .width = b->width};

  return kiln_map(b->rig.stream, &d, NULL);
}

static kiln_status fire_julia(void *user)
{
  bench_stencil *b = user;
  const uint32_t side = (uint32_t)b->width;
  const float cx = -0.79f, cy = 0.15f;
  kiln_launch_config config = kiln_launch_2d(b->width, b->height, 16, 16);

  config.stream = b->rig.stream;
  return KILN_LAUNCH(b->naive, &config, KILN_ARG(b->y), KILN_ARG(side),
                     KILN_ARG(side), KILN_ARG(cx), KILN_ARG(cy));
}

/* Computes the number of iterations of all pixels of the picture in y. */
static kiln_status count_steps(bench_stencil *b, double *steps)
{
  const kiln_reduce_desc sum = {.x = {.in = {{b->y, KILN_U8}}},
                                .n = b->width * b->height,
                                .out = {b->w, KILN_F64}};

  CLI_TRY(kiln_reduce(b->rig.stream, &sum, NULL));
  CLI_TRY(kiln_stream_synchronize(b->rig.stream));
  return kiln_copy_to_host(b->rig.device, steps, b->w, sizeof *steps);
}

static kiln_status one_picture(bench_stencil *b, cli_table *t, cJSON *rows)
{
  const double rate = (double)b->rig.info.sm_count * 128 *
                      (double)b->rig.info.clock_khz; /* per ms */
  double own, naive, steps;
  cJSON *row;

  CLI_TRY(time_call(b, fire_julia, &naive));
  CLI_TRY(time_call(b, fire_map, &own));
  CLI_TRY(count_steps(b, &steps));
  kiln__cli_cells(t, "%llu x %llu\t%.2f us\t%.1f\t%.1f\t%.1f %%\t%.2fx",
                  (unsigned long long)b->width, (unsigned long long)b->height,
                  own * 1e3, steps / ((double)b->width * (double)b->height),
                  steps / own / 1e6,
                  100 * JULIA_ARITHMETIC * steps / own / rate, naive / own);
  row = kiln__cli_json_item(rows);
  JSON_NUMBER(row, "side", b->width);
  JSON_NUMBER(row, "ms", own);
  JSON_NUMBER(row, "steps", steps);
  JSON_NUMBER(row, "naive_ms", naive);
  return KILN_OK;
}

static kiln_status run_julia(bench_stencil *b, const bench_options *o,
                             cJSON *rows)
{
  static const char *const heads[] = {
      ">pixels",   ">time", ">steps a pixel", ">Gsteps/s", ">of FFMA rate",
      ">to naive", NULL};
  static const uint64_t sides[] = {1000, 8192};
  const kiln_program_desc program = {.builtin = "julia"};
  const bool few = b->rig.c->on_cpu;
  cli_table table;

  (void)o;
  CLI_TRY(kiln_module_load(&b->module, b->rig.device, &program));
  CLI_TRY(kiln_module_kernel(&b->naive, b->module, "julia"));
  CLI_TRY(kiln_memory_alloc(&b->y, b->rig.device, sides[1] * sides[1]));
  CLI_TRY(kiln_memory_alloc(&b->w, b->rig.device, sizeof(double)));
  kiln__cli_table(&table, b->rig.c, heads);
  for (size_t k = 0; k < (few ? 1 : 2); k++) {
    b->width = b->height = few ? 200 : sides[k];
    b->depth = 1;
    CLI_TRY(one_picture(b, &table, rows));
  }
  kiln__cli_table_print(&table, 0);
  return KILN_OK;
}

/* ---- The commands -------------------------------------------------------- */

typedef kiln_status run_fn(bench_stencil *b, const bench_options *o,
                           cJSON *rows);

static int run(cli *c, const bench_options *o, const char *name, run_fn *body)
{
  cJSON *json = cJSON_CreateObject(),
        *rows = cJSON_AddArrayToObject(json, name);
  bench_stencil b = {.repeats = o->repeats};
  kiln_status st = kiln__bench_rig_open(&b.rig, c, o->device);
  int rc;

  if (st == KILN_OK) {
    printf("%s; medians of %u, queued\n", b.rig.info.name, o->repeats);
    JSON_TEXT(json, "device", b.rig.info.name);
    st = body(&b, o, rows);
  }
  discard(&b);
  kiln__bench_rig_close(&b.rig);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, name);
  return kiln__bench_end(c, o, rc, json);
}

int kiln__bench_stencil(cli *c, int argc, char **argv)
{
  bench_options o = {.repeats = 11};
  const cli_option options[] = {
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 11"),
      BENCH_OPTION_ONLY(&o, "measure only the case"), BENCH_OPTION_DEVICE(&o),
      BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench stencil [options]\n",
      .about = "Measures convolutions of f32 arrays beside a straightforward "
               "kernel and beside a copy.",
      .options = options,
      .example = "kiln bench stencil --only separable"};
  cli_words words;
  const int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  return rc == CLI_OK ? run(c, &o, "stencil", run_stencils) : rc;
}

int kiln__bench_julia(cli *c, int argc, char **argv)
{
  bench_options o = {.repeats = 11};
  const cli_option options[] = {
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 11"),
      BENCH_OPTION_DEVICE(&o), BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench julia [options]\n",
      .about =
          "Measures pictures of a Julia set by a map over rows and columns, "
          "beside a straightforward kernel. The share of the FFMA rate "
          "counts the four arithmetic instructions of a step.",
      .options = options,
      .example = "kiln bench julia"};
  cli_words words;
  const int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  return rc == CLI_OK ? run(c, &o, "julia", run_julia) : rc;
}
