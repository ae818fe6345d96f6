/* bench_cpu.c -- `kiln bench cpu`, which measures the speed of the CPU device
 * in thread instructions per second. Bounds checks and counters are enabled.
 * The command prints the speed for each instruction set and number of host
 * threads. Each result is verified against C code. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>

enum { N = 1 << 20, BODIES = 2048, SIDE = 512, MATRIX = 256, REPEATS = 5 };

typedef struct bench {
  cli *c;
  kiln_device *device;
  float *a, *b, *out; /* arrays in host memory */
  CUdeviceptr da, db, dout;
  /* Total time of the launches since the counters were reset, in seconds. */
  double seconds;
} bench;

/* Launches the kernel, waits for it, and adds the elapsed time to
 * b->seconds. */
static kiln_status go(bench *b, kiln_kernel *kernel,
                      const kiln_launch_config *config, const kiln_arg *args,
                      size_t n)
{
  const double begin = kiln__cli_now_ns();
  kiln_status st = kiln_launch(kernel, config, args, n);

  if (st == KILN_OK)
    st = kiln_device_synchronize(b->device);
  b->seconds += (kiln__cli_now_ns() - begin) * 1e-9;
  return st;
}

/* Defines a function launch_ID() that launches a kernel with the given
 * configuration and arguments. */
#define LAUNCH(id, config_, ...)                                               \
  static kiln_status launch_##id(bench *b, kiln_kernel *k)                     \
  {                                                                            \
    const kiln_launch_config config = config_;                                 \
    const kiln_arg args[] = {__VA_ARGS__};                                     \
                                                                               \
    return go(b, k, &config, args, sizeof args / sizeof args[0]);              \
  }

/* Values of kernel arguments. Launches take the addresses of these
 * variables. */
static const float factor = 2.5f, one = 1, two = 2, four = 4, softening = 0.01f,
                   julia_x = -0.79f, julia_y = 0.15f;
static const uint32_t n_elements = N, n_bodies = BODIES, matrix = MATRIX,
                      side = SIDE;
static const kiln_launch_config matmul_config = {
    .grid = {MATRIX / 128, MATRIX / 128, 1}, .block = {.x = 256}};

/* ---- The kernels: each is launched and its result is compared ----------- */

LAUNCH(saxpy, kiln_launch_1d(N, 256), KILN_ARG(factor), KILN_ARG(b->da),
       KILN_ARG(b->dout), KILN_ARG(n_elements))

static bool check_saxpy(const bench *b)
{
  bool good = true;

  for (int i = 0; i < N; i++)
    good = good && b->out[i] == fmaf(2.5f, b->a[i], b->b[i]);
  return good;
}

LAUNCH(convolution, kiln_launch_1d(N, 256), KILN_ARG(b->dout), KILN_ARG(b->da),
       KILN_ARG(n_elements), KILN_ARG(one), KILN_ARG(two), KILN_ARG(four))

static bool check_convolution(const bench *b)
{
  bool good = true;

  for (int i = 0; i < N; i++) {
    const float left = i > 0 ? b->a[i - 1] : 0;
    const float right = i + 1 < N ? b->a[i + 1] : 0;

    good = good && b->out[i] == left + 2 * b->a[i] + 4 * right;
  }
  return good;
}

LAUNCH(reduce, kiln_launch_1d(N, 256), KILN_ARG(b->da), KILN_ARG(n_elements),
       KILN_ARG(b->dout))

/* Verifies the reduction kernel. All values and sums are small multiples of
 * 1/8, so the sums are exact. */
static bool check_reduce(const bench *b)
{
  double sum = 0;

  for (int i = 0; i < N; i++)
    sum += (double)b->a[i];
  return fabs((double)b->out[0] - (double)b->b[0] - sum) <= 1e-5 * sum;
}

LAUNCH(nbody, kiln_launch_1d(BODIES, 256), KILN_ARG(b->dout), KILN_ARG(b->da),
       KILN_ARG(n_bodies), KILN_ARG(softening))

/* Verifies the n-body kernel: compares some bodies with sums in double
 * precision. */
static bool check_nbody(const bench *b)
{
  bool good = true;

  for (int i = 0; i < BODIES; i += 511) {
    double sum = 0, size = 0;

    for (int j = 0; j < BODIES; j++) {
      double d[3], r = 0.01;

      for (int x = 0; x < 3; x++) {
        d[x] = (double)b->a[4 * j + x] - (double)b->a[4 * i + x];
        r += d[x] * d[x];
      }
      sum += (double)b->a[4 * j + 3] * d[0] / (r * sqrt(r));
      size += fabs((double)b->a[4 * j + 3] * d[0] / (r * sqrt(r)));
    }
    good = good && fabs((double)b->out[4 * i] - sum) < 1e-4 * size;
  }
  return good;
}

LAUNCH(matmul, matmul_config, KILN_ARG(b->dout), KILN_ARG(b->da),
       KILN_ARG(b->db), KILN_ARG(matrix), KILN_ARG(matrix))

/* Verifies the matrix product. The kernel adds products in the same order by
 * fused multiply-add, so the bits must be equal. */
static bool check_matmul(const bench *b)
{
  bool good = true;

  for (int i = 0; i < MATRIX; i += 7) {
    for (int j = 0; j < MATRIX; j++) {
      float sum = 0;

      for (int k = 0; k < MATRIX; k++)
        sum = fmaf(b->a[i * MATRIX + k], b->b[k * MATRIX + j], sum);
      good = good && b->out[i * MATRIX + j] == sum;
    }
  }
  return good;
}

LAUNCH(julia, kiln_launch_2d(SIDE, SIDE, 16, 16), KILN_ARG(b->dout),
       KILN_ARG(side), KILN_ARG(side), KILN_ARG(julia_x), KILN_ARG(julia_y))

/* Verifies the image. The compiler fuses some products, so up to 2 % of the
 * pixels may differ. */
static bool check_julia(const bench *b)
{
  const unsigned char *steps = (const unsigned char *)b->out;
  const float scale = 3.0f / SIDE;
  int wrong = 0;

  for (int y = 0; y < SIDE; y++) {
    for (int x = 0; x < SIDE; x++) {
      float zx = ((float)x - 0.5f * SIDE) * scale;
      float zy = ((float)y - 0.5f * SIDE) * scale;
      int i = 0;

      for (; i < 255 && zx * zx + zy * zy < 4; i++) {
        const float next = zx * zx - zy * zy - 0.79f;

        zy = 2 * zx * zy + 0.15f;
        zx = next;
      }
      wrong += steps[y * SIDE + x] != i;
    }
  }
  return wrong < SIDE * SIDE / 50;
}

static const struct kernel {
  const char *builtin, *entry, *label;
  kiln_status (*launch)(bench *b, kiln_kernel *k);
  bool (*check)(const bench *b);
  /* Performance goal in 1e9 thread instructions per second, for one core and
   * instruction set v3. */
  double wanted;
} kernels[] = {
    {"saxpy", "saxpy", "saxpy", launch_saxpy, check_saxpy, 3},
    {"convolution", "convolve3", "convolution", launch_convolution,
     check_convolution, 3},
    {"ladder/reduce_shared", "reduce_shared", "tree reduction", launch_reduce,
     check_reduce, 3},
    {"nbody", "nbody", "n-body", launch_nbody, check_nbody, 3},
    {"matmul", "matmul", "matrix product", launch_matmul, check_matmul, 2},
    {"julia", "julia", "Julia set", launch_julia, check_julia, 2},
};

enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/* ---- Runs --------------------------------------------------------------- */

static void add_up(void *user, const kiln_cpu_counters *k)
{
  *(uint64_t *)user += k->thread_insns;
}

static void fill(bench *b)
{
  for (int i = 0; i < N; i++) {
    b->a[i] = (float)((uint32_t)i * 7919u % 1009u) * 0.125f;
    b->b[i] = (float)(i % 13) * 0.25f;
  }
}

static kiln_status allocate(bench *b)
{
  const size_t bytes = N * sizeof(float);

  CLI_TRY(kiln_memory_alloc(&b->da, b->device, bytes));
  CLI_TRY(kiln_memory_alloc(&b->db, b->device, bytes));
  CLI_TRY(kiln_memory_alloc(&b->dout, b->device, bytes));
  CLI_TRY(kiln_copy_to_device(b->device, b->da, b->a, bytes));
  return kiln_copy_to_device(b->device, b->db, b->b, bytes);
}

/* Runs one launch whose result is verified, and then the timed launches. *rate
 * receives the thread instructions per second, or 0 for a wrong result. */
static kiln_status measure_kernel(bench *b, const struct kernel *k,
                                  kiln_kernel *kernel, double *rate)
{
  const size_t bytes = N * sizeof(float);
  double rates[REPEATS];

  CLI_TRY(kiln_copy_to_device(b->device, b->dout, b->b, bytes));
  CLI_TRY(k->launch(b, kernel));
  CLI_TRY(kiln_copy_to_host(b->device, b->out, b->dout, bytes));
  *rate = 0;
  if (!k->check(b))
    return KILN_OK;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t insns = 0;

    b->seconds = 0;
    CLI_TRY(kiln_cpu_reset_counters());
    while (b->seconds < 0.1)
      CLI_TRY(k->launch(b, kernel));
    CLI_TRY(kiln_cpu_each_counters(add_up, NULL, &insns));
    rates[i] = (double)insns / b->seconds;
  }
  *rate = kiln__cli_median(rates, REPEATS);
  return KILN_OK;
}

static kiln_status measure(bench *b, const struct kernel *k, double *rate)
{
  const kiln_program_desc desc = {.builtin = k->builtin};
  kiln_module *module = NULL;
  kiln_kernel *kernel = NULL;
  kiln_status st = kiln_module_load(&module, b->device, &desc);

  if (st == KILN_OK)
    st = kiln_module_kernel(&kernel, module, k->entry);
  if (st == KILN_OK)
    st = measure_kernel(b, k, kernel, rate);
  kiln_module_free(module);
  return st;
}

/* Measures all kernels with one combination of instruction set, threads and
 * schedule, in a separate runtime. */
static int run_setting(cli *c, bench *b, const kiln_cpu_opts *cpu,
                       double rates[N_KERNELS])
{
  kiln_runtime_opts opts = c->opts;
  kiln_runtime *rt = NULL;
  kiln_status st = kiln_cpu_configure(cpu);

  opts.driver_path = NULL;
  opts.driver = kiln_cpu_driver();
  if (st == KILN_OK)
    st = kiln_runtime_create(&rt, &opts);
  if (st == KILN_OK)
    st = kiln_device_open(&b->device, rt, 0, NULL);
  if (st == KILN_OK)
    st = allocate(b);
  for (int i = 0; i < N_KERNELS && st == KILN_OK; i++) {
    kiln__cli_progress(c, "measured", (size_t)i, N_KERNELS);
    st = measure(b, &kernels[i], &rates[i]);
  }
  if (st != KILN_OK)
    kiln__cli_failure(c, NULL);
  if (b->device != NULL) {
    (void)kiln_memory_free(b->device, b->da);
    (void)kiln_memory_free(b->device, b->db);
    (void)kiln_memory_free(b->device, b->dout);
  }
  kiln_device_free(b->device);
  b->device = NULL;
  kiln_runtime_free(rt);
  return st == KILN_OK ? CLI_OK : CLI_FAILED;
}

/* The instruction sets, numbers of host threads and schedules to compare. */
static const struct setting {
  const char *label, *isa;
  unsigned threads;
  kiln_cpu_schedule schedule;
} settings[] = {
    {"base", "base", 1, KILN_CPU_BY_ARCH},
    {"v3", "x86-64-v3", 1, KILN_CPU_BY_ARCH},
    {"v3 lock-step", "x86-64-v3", 1, KILN_CPU_LOCK_STEP},
    {"v3 two threads", "x86-64-v3", 2, KILN_CPU_BY_ARCH},
    {"v4", "x86-64-v4", 1, KILN_CPU_BY_ARCH},
};

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

static void show(cli *c, double rates[N_SETTINGS][N_KERNELS], bool *good)
{
  static const char *const heads[] = {"kernel",        ">base",        ">v3",
                                      ">v3 lock-step", ">v3 two thr.", ">v4",
                                      ">two thr./one", ">wanted v3",   NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (int k = 0; k < N_KERNELS; k++) {
    kiln__cli_cell(&t, "%s", kernels[k].label);
    for (int s = 0; s < N_SETTINGS; s++) {
      if (rates[s][k] < 0)
        kiln__cli_dashes(&t, 1);
      else if (rates[s][k] == 0)
        kiln__cli_cell(&t, "WRONG");
      else
        kiln__cli_cell(&t, "%.2f", rates[s][k] * 1e-9);
      *good = *good && rates[s][k] != 0;
    }
    if (rates[1][k] > 0 && rates[3][k] > 0)
      kiln__cli_cell(&t, "%.2fx", rates[3][k] / rates[1][k]);
    else
      kiln__cli_dashes(&t, 1);
    kiln__cli_cell(&t, "%.0f", kernels[k].wanted);
  }
  printf(
      "\n10^9 thread instructions per second, bounds checks and counters on, "
      "medians of %d\n",
      REPEATS);
  kiln__cli_table_print(&t, 2);
}

static int write_json(cli *c, double rates[N_SETTINGS][N_KERNELS],
                      const bench_options *options)
{
  cJSON *json = cJSON_CreateObject(), *rows;

  for (int k = 0; k < N_KERNELS; k++) {
    cJSON *o = cJSON_AddObjectToObject(json, kernels[k].label);

    for (int s = 0; s < N_SETTINGS; s++) {
      if (rates[s][k] >= 0)
        JSON_NUMBER(o, settings[s].label, rates[s][k]);
    }
  }
  rows = cJSON_AddArrayToObject(json, "rates");
  for (int s = 0; s < N_SETTINGS; s++)
    for (int k = 0; k < N_KERNELS; k++) {
      cJSON *row;

      if (rates[s][k] < 0)
        continue;
      row = kiln__cli_json_item(rows);
      JSON_TEXT(row, "setting", settings[s].label);
      JSON_TEXT(row, "kernel", kernels[k].label);
      JSON_NUMBER(row, "rate", rates[s][k]);
    }
  return kiln__bench_end(c, options, CLI_OK, json);
}

int kiln__bench_cpu(cli *c, int argc, char **argv)
{
  bench_options o = {.json = NULL};
  const cli_option options[] = {BENCH_OPTION_OUTPUT(&o), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench cpu [options]\n",
      .about = "Measures how fast the CPU device interprets six kernels, each "
               "verified, by instruction set and host threads.",
      .options = options,
      .example = "kiln bench cpu --json cpu.json",
      .exit_codes = "0 success, 1 a kernel failed or its result was wrong, 2 "
                    "wrong use."};
  double rates[N_SETTINGS][N_KERNELS];
  bool good = true;
  bench b = {.c = c};
  cli_words words;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  kiln_runtime_free(c->rt); /* only one runtime may use the CPU device */
  c->rt = NULL;
  b.a = kiln__cli_alloc(c, N, sizeof *b.a);
  b.b = kiln__cli_alloc(c, N, sizeof *b.b);
  b.out = kiln__cli_alloc(c, N, sizeof *b.out);
  fill(&b);
  for (int s = 0; s < N_SETTINGS && rc == CLI_OK; s++) {
    const kiln_cpu_opts cpu = {.isa = settings[s].isa,
                               .threads = settings[s].threads,
                               .schedule = settings[s].schedule,
                               .counters = true};

    for (int k = 0; k < N_KERNELS; k++)
      rates[s][k] = -1;
    /* The call fails if this processor lacks the instruction set. */
    if (kiln_cpu_configure(&cpu) == KILN_OK)
      rc = run_setting(c, &b, &cpu, rates[s]);
  }
  if (rc != CLI_OK)
    return rc;
  show(c, rates, &good);
  rc = write_json(c, rates, &o);
  return good ? rc : CLI_FAILED;
}
