/* reduction.c -- computes the same sum with several kernels, each faster than
 * the preceding one. The input has 2^28 floats (row A9 of the lectures; 2^22 on
 * the CPU device) or 1024 x 1024 floats (row C8 of the lectures). The last step
 * is the library's own reduction. Every result is compared with a sum in double
 * precision. Two of the steps use a single float accumulator, whose sum stops
 * growing at 2^30, and the sample verifies that it does.
 *
 * usage: reduction [--device gpu|cpu|cpu:9.0] [--bits 28] */
#include "sample.h"

#include <math.h>

enum {
  REPEATS = 15,
  CPU_REPEATS = 3, /* on the CPU device only the result matters */
  GPU_BITS = 28,
  CPU_BITS = 22,
  SMALL_BITS = 20,
  ONE_THREAD_BITS = 22
};

typedef struct step {
  const char *builtin, *kernel, *label;
  unsigned block;
  unsigned elements; /* elements per thread; 0: one block reduces all */
  bool in_place;     /* the step overwrites its input */
  bool one_float;    /* one float accumulator: inexact for many elements */
} step;

#define LADDER(name) "ladder/" name, name

static const step big[] = {
    {LADDER("reduce_one_thread"), "one thread", 1, 0, false, true},
    {LADDER("reduce_atomic_global"), "atomic, global", 256, 1, false, true},
    {LADDER("reduce_atomic_shared"), "atomic, shared", 256, 1, false, false},
    {LADDER("reduce_shared"), "tree, shared", 256, 1, false, false},
    {LADDER("reduce_shared_shuffle"), "tree, shuffle", 256, 1, false, false},
    {LADDER("reduce_final"), "two loads per thread", 256, 2, false, false},
    {"reduce", "reduce", "library", 512, 0, false, false},
};

static const step small[] = {
    {LADDER("reduce_one_thread"), "one thread", 1, 0, false, true},
    {LADDER("reduce_atomic_global"), "atomics", 256, 1, false, true},
    {LADDER("reduce_block"), "one block", 1024, 0, true, false},
    {LADDER("reduce_grid_atomic"), "blocks and atomics", 1024, 2, true, false},
    {LADDER("reduce_grid_local"), "in shared memory", 1024, 2, false, false},
    {LADDER("reduce_warp"), "warps", 512, 1, false, false},
    {"reduce", "reduce", "library", 512, 0, false, false},
};

enum {
  N_BIG = sizeof big / sizeof big[0],
  N_SMALL = sizeof small / sizeof *small
};

typedef struct arrays {
  float *host;
  CUdeviceptr input, copy, result, workspace;
  int sm_count;
  kiln_event *from, *to;
} arrays;

static kiln_module *load(sample *s, const step *t)
{
  const kiln_program_desc desc = {.builtin = t->builtin};
  kiln_module *module = NULL;

  SAMPLE_TRY(kiln_module_load(&module, s->device, &desc));
  if (kiln_image_origin(kiln_module_image(module)) == KILN_FROM_COMPILER)
    s->compiled++;
  else
    s->cached++;
  return module;
}

/* Fills the input with uniform random numbers in [24, 60), whose mean is 42 as
 * in the lecture. */
static void fill(float *x, size_t n)
{
  uint64_t r = 88172645463325252u;

  for (size_t i = 0; i < n; i++) {
    r ^= r << 13;
    r ^= r >> 7;
    r ^= r << 17;
    x[i] = 24.0f + 36.0f * ((float)(r >> 41) * 0x1p-23f);
  }
}

/* Adds in four independent accumulators, so that an addition does not wait for
 * the preceding addition. */
static double cpu_sum(const float *x, size_t n)
{
  double lane[4] = {0};

  for (size_t i = 0; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++)
      lane[k] += (double)x[i + (size_t)k];
  for (size_t i = n / 4 * 4; i < n; i++)
    lane[0] += (double)x[i];
  return lane[0] + lane[1] + lane[2] + lane[3];
}

static void launch(const step *t, kiln_kernel *kernel, arrays *a, size_t n)
{
  const CUdeviceptr x = t->in_place ? a->copy : a->input;
  const unsigned each = t->block * t->elements;
  kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = t->block}};
  unsigned long long n_library = n;
  unsigned n_step = (unsigned)n;

  if (strcmp(t->builtin, "reduce") == 0) {
    const size_t wanted = n / (t->block * 8) + 1;
    const size_t resident = 2 * (size_t)a->sm_count;

    config.grid.x = (unsigned)(wanted < resident ? wanted : resident);
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(x), KILN_ARG(n_library),
                           KILN_ARG(a->workspace), KILN_ARG(a->result)));
    return;
  }
  if (each > 0)
    config.grid.x = (unsigned)((n + each - 1) / each);
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(x), KILN_ARG(n_step),
                         KILN_ARG(a->result)));
}

/* Returns the median time in milliseconds, measured with events. The kernels
 * add to the result, so the result is set to 0 before each launch. */
static double time_step(sample *s, const step *t, kiln_kernel *kernel,
                        arrays *a, size_t n)
{
  const size_t repeats = s->on_cpu ? CPU_REPEATS : REPEATS;
  const double began = sample_now_ms();
  double times[REPEATS];
  size_t i = 0;

  while (i < repeats) {
    /* Untimed, until the clock rate has risen. */
    const bool warm = sample_now_ms() - began < 20;
    float ms;

    if (t->in_place)
      SAMPLE_TRY(
          kiln_copy_on_device(s->device, a->copy, a->input, n * sizeof(float)));
    SAMPLE_TRY(kiln_fill(s->device, a->result, 0, 4, 1));
    SAMPLE_TRY(kiln_event_record(a->from, NULL));
    launch(t, kernel, a, n);
    SAMPLE_TRY(kiln_event_record(a->to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(a->to));
    SAMPLE_TRY(kiln_event_elapsed(&ms, a->from, a->to));
    if (!warm)
      times[i++] = (double)ms;
    if (i >= 3 && ms > 100)
      break; /* three repeats suffice for a slow step */
  }
  return sample_median(times, i);
}

/* Returns true if the result is as expected. A sum in one float accumulator
 * stops at 2^30: from there up to 2^31, floats are multiples of 128, and adding
 * a number below 64 changes nothing. */
static bool good_result(const step *t, double value, double want, double *error)
{
  *error = fabs(value - want) / want;
  if (t->one_float && want > 0x1p31)
    return value >= 0x1p30 && value < 0x1.01p30;
  if (t->one_float)
    return *error < 0.05;
  return *error < (strcmp(t->builtin, "reduce") == 0 ? 1e-6 : 1e-4);
}

static bool run_step(sample *s, const step *t, arrays *a, unsigned bits,
                     double want, double per_element[3])
{
  const size_t n = (size_t)1 << bits;
  kiln_module *module = load(s, t);
  kiln_kernel *kernel;
  float value;
  double ms, error;
  bool good;

  SAMPLE_TRY(kiln_module_kernel(&kernel, module, t->kernel));
  ms = time_step(s, t, kernel, a, n);
  SAMPLE_TRY(kiln_copy_to_host(s->device, &value, a->result, sizeof value));
  good = good_result(t, (double)value, want, &error);
  kiln_module_free(module);

  per_element[2] = per_element[1];
  per_element[1] = ms / (double)n;
  if (per_element[0] == 0)
    per_element[0] = per_element[1];
  printf("  %-20s 2^%-3u %11.4f %9.1f %8.2f %10.1f %9.1e  %s\n", t->label, bits,
         ms, (double)n * 4 / (ms * 1e6),
         per_element[2] > 0 ? per_element[2] / per_element[1] : 1.0,
         per_element[0] / per_element[1], error,
         !good          ? "WRONG"
         : error > 0.05 ? "stalled at 2^30, as it must"
                        : "verified");
  return good;
}

static bool run_ladder(sample *s, const step *steps, size_t n_steps, arrays *a,
                       unsigned bits, const char *title)
{
  double per_element[3] = {
      0}; /* times of the first, the current and the preceding step */
  const size_t n = (size_t)1 << bits;
  bool good = true;
  double began, cpu, few;

  /* The CPU computes its sums before the first step. If the GPU waited for the
   * CPU between steps, its clock rate would drop. */
  few = bits > ONE_THREAD_BITS ? cpu_sum(a->host, (size_t)1 << ONE_THREAD_BITS)
                               : 0;
  began = sample_now_ms();
  cpu = cpu_sum(a->host, n);
  began = sample_now_ms() - began;

  printf("\n%s\n  %-20s %-5s %11s %9s %8s %10s %9s\n", title, "step", "n", "ms",
         "GB/s", "step x", "total x", "error");
  for (size_t i = 0; i < n_steps; i++) {
    const bool slow = steps[i].block == 1 && bits > ONE_THREAD_BITS;

    good &= run_step(s, &steps[i], a, slow ? ONE_THREAD_BITS : bits,
                     slow ? few : cpu, per_element);
  }
  printf("  %-20s 2^%-3u %11.4f %9.1f  sum %.6e\n", "CPU, one thread", bits,
         began, (double)n * 4 / (began * 1e6), cpu);
  return good;
}

static void prepare(sample *s, arrays *a, size_t n)
{
  kiln_device_info info;

  SAMPLE_TRY(kiln_device_describe(s->device, &info));
  printf("%s, %d SMs, %zu floats uniform in [24, 60)\n", info.name,
         info.sm_count, n);
  a->sm_count = info.sm_count;
  a->host = sample_alloc(n * sizeof(float));
  fill(a->host, n);
  SAMPLE_TRY(kiln_memory_alloc(&a->input, s->device, n * sizeof(float)));
  SAMPLE_TRY(
      kiln_memory_alloc(&a->copy, s->device, sizeof(float) << SMALL_BITS));
  SAMPLE_TRY(kiln_memory_alloc(&a->result, s->device, sizeof(float)));
  SAMPLE_TRY(kiln_memory_alloc(&a->workspace, s->device, 1 << 16));
  SAMPLE_TRY(kiln_fill(s->device, a->workspace, 0, 1, 1 << 16));
  SAMPLE_TRY(
      kiln_copy_to_device(s->device, a->input, a->host, n * sizeof(float)));
  SAMPLE_TRY(kiln_event_create(&a->from, s->device, true));
  SAMPLE_TRY(kiln_event_create(&a->to, s->device, true));
}

static void release(sample *s, arrays *a)
{
  kiln_event_free(a->from);
  kiln_event_free(a->to);
  SAMPLE_TRY(kiln_memory_free(s->device, a->workspace));
  SAMPLE_TRY(kiln_memory_free(s->device, a->result));
  SAMPLE_TRY(kiln_memory_free(s->device, a->copy));
  SAMPLE_TRY(kiln_memory_free(s->device, a->input));
  free(a->host);
}

/* Removes the option --bits, which only this sample has, from the arguments.
 * Returns its value, or 0 if the option is not given. */
static unsigned take_bits(int *argc, char **argv)
{
  unsigned bits = 0;
  int kept = 1;

  for (int i = 1; i < *argc; i++) {
    if (strcmp(argv[i], "--bits") == 0 && i + 1 < *argc)
      bits = (unsigned)strtoul(argv[++i], NULL, 10);
    else
      argv[kept++] = argv[i];
  }
  *argc = kept;
  if (bits != 0 && bits < SMALL_BITS)
    bits = SMALL_BITS;
  return bits > 30 ? 30 : bits;
}

int main(int argc, char **argv)
{
  unsigned bits = take_bits(&argc, argv);
  sample s;
  arrays a = {0};
  char title[64];
  bool good;

  sample_open(&s, argc, argv);
  if (bits == 0)
    bits = s.on_cpu ? CPU_BITS : GPU_BITS;
  prepare(&s, &a, (size_t)1 << bits);
  snprintf(title, sizeof title, "Sum of 2^%u floats (A9)", bits);
  good = run_ladder(&s, big, N_BIG, &a, bits, title);
  good &= run_ladder(&s, small, N_SMALL, &a, SMALL_BITS,
                     "Sum of 1024 x 1024 floats (C8)");
  release(&s, &a);
  printf("\n%d kernels: %d compiled, %d from the cache\n",
         s.compiled + s.cached, s.compiled, s.cached);
  return sample_end(&s, good);
}
