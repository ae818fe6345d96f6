/* nbody_ladder.c -- the accelerations of n bodies by all pairs, with twelve
 * kernels of which each changes one thing, then with the library's
 * kiln_all_pairs() (row B15 of the lectures). The bodies form a Plummer model.
 * Rates count 20 floating-point operations per pair, as the lecture does; the
 * share of the peak refers to two operations per lane and cycle. Every step is
 * compared with accelerations in double precision.
 *
 * usage: nbody_ladder [--device gpu|cpu|cpu:9.0] */
#include "nbody.h"

#include <pthread.h>
#include <unistd.h>

enum {
  GPU_BODIES = 1 << 18,
  CPU_BODIES = 1024, /* on the CPU device */
  STEPS = 12,
  BLOCK = 256,
  REPEATS = 5,
  FIELDS = 7, /* m, x, y, z, ax, ay, az on the device */
  FLOPS = 20  /* per pair */
};

static const float eps2 = 1e-4f;

static const char *const names[STEPS] = {"one thread",
                                         "one thread per body",
                                         "one array per field",
                                         "constant parameters",
                                         "rsqrtf()",
                                         "two loops, no test",
                                         "blocks in shared memory",
                                         "unrolled 8 times",
                                         "no test, softening",
                                         "rearranged for FMA",
                                         "unrolled 128 times",
                                         "subnormals become zero"};

/* A body as the first two steps store it. */
typedef struct body {
  float mass, x, y, z, vx, vy, vz, ax, ay, az;
} body;

/* The constant nbody_given of the steps from 4 on. */
typedef struct given {
  CUdeviceptr field[FIELDS];
  uint32_t n;
  float eps2;
} given;

typedef struct ladder {
  sample s;
  kiln_device_info info;
  kiln_stream *stream;
  kiln_event *from, *to;
  bodies b;      /* with different masses */
  bodies b_same; /* with equal masses */
  given given;
  CUdeviceptr structs;
  float *a[3];
  double cpu_rate;    /* pairs per millisecond of one CPU thread */
  double first, last; /* pairs per millisecond of steps */
} ladder;

/* ---- CPU ----------------------------------------------------------------- */

typedef struct share {
  const bodies *b;
  size_t begin, end, n;
  float sum;
} share;

/* Computes accelerations by the first n bodies. */
static void *cpu_part(void *user)
{
  share *p = user;
  const bodies *b = p->b;

  for (size_t i = p->begin; i < p->end; i++) {
    float ax = 0, ay = 0, az = 0;

    for (size_t j = 0; j < p->n; j++) {
      const float dx = b->x[j] - b->x[i], dy = b->y[j] - b->y[i];
      const float dz = b->z[j] - b->z[i];
      const float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + eps2);
      const float f = b->m[j] * r * r * r;

      ax += f * dx;
      ay += f * dy;
      az += f * dz;
    }
    p->sum += ax + ay + az; /* so that the loop is not removed */
  }
  return NULL;
}

/* Measures the pairs per millisecond of some CPU threads. */
static double cpu_rate(const bodies *b, size_t threads)
{
  enum { MOST = 256 };
  const size_t n = b->n < 4096 ? b->n : 4096;
  pthread_t id[MOST];
  share part[MOST];
  double began = sample_now_ms(), took;

  if (threads > MOST)
    threads = MOST;
  for (size_t k = 0; k < threads; k++) {
    part[k] = (share){b, k * n / threads, (k + 1) * n / threads, n, 0};
    if (pthread_create(&id[k], NULL, cpu_part, &part[k]) != 0)
      exit(1);
  }
  for (size_t k = 0; k < threads; k++)
    pthread_join(id[k], NULL);
  took = sample_now_ms() - began;
  return (double)n * (double)n / took;
}

/* ---- Table --------------------------------------------------------------- */

/* Returns the peak rate in GFLOP/s, or 0 if the device does not report it. */
static double peak(const ladder *l)
{
  return l->s.on_cpu
             ? 0
             : 2.0 * 128 * l->info.sm_count * (double)l->info.clock_khz * 1e-6;
}

static bool print_step(ladder *l, const char *name, double ms, size_t n,
                       double error)
{
  const double rate = (double)n * (double)n / ms; /* pairs per millisecond */
  const double gflops = rate * FLOPS * 1e-6, most = peak(l);
  const bool good = error < 2e-4;

  printf("  %-28s %7zu %10.3f %9.1f", name, n, ms, gflops);
  if (most > 0)
    printf(" %6.1f %%", 100 * gflops / most);
  else
    printf(" %8s", "-");
  printf(" %8.2f %9.1f %9.1f %8.0e%s\n", l->last > 0 ? rate / l->last : 1.0,
         l->first > 0 ? rate / l->first : 1.0, rate / l->cpu_rate, error,
         good ? "" : "  WRONG");
  if (l->first == 0)
    l->first = rate;
  l->last = rate;
  return good;
}

/* ---- Steps --------------------------------------------------------------- */

/* Function that queues one computation of all accelerations. */
typedef void (*queue_fn)(ladder *l, const void *what);

/* Returns the median time in milliseconds. */
static double time_of(ladder *l, queue_fn queue, const void *what)
{
  const int repeats = l->s.few ? 1 : REPEATS;
  double ms[REPEATS];
  float took;

  queue(l, what);
  for (int k = 0; k < repeats; k++) {
    SAMPLE_TRY(kiln_event_record(l->from, l->stream));
    queue(l, what);
    SAMPLE_TRY(kiln_event_record(l->to, l->stream));
    SAMPLE_TRY(kiln_event_synchronize(l->to));
    SAMPLE_TRY(kiln_event_elapsed(&took, l->from, l->to));
    ms[k] = (double)took;
  }
  return sample_median(ms, (size_t)repeats);
}

typedef struct step {
  int number;
  uint32_t n;
  kiln_kernel *kernel;
} step;

static void queue_step(ladder *l, const void *what)
{
  const step *t = what;
  const uint32_t n = t->n;
  const CUdeviceptr *f = l->given.field;
  kiln_launch_config config = {.grid.x = 1, .block.x = 1, .stream = l->stream};

  if (t->number > 1) {
    config.grid.x = (n + BLOCK - 1) / BLOCK;
    config.block.x = BLOCK;
  }
  if (t->number <= 2)
    SAMPLE_TRY(KILN_LAUNCH(t->kernel, &config, KILN_ARG(l->structs),
                           KILN_ARG(n), KILN_ARG(eps2)));
  else if (t->number == 3)
    SAMPLE_TRY(KILN_LAUNCH(t->kernel, &config, KILN_ARG(f[0]), KILN_ARG(f[1]),
                           KILN_ARG(f[2]), KILN_ARG(f[3]), KILN_ARG(f[4]),
                           KILN_ARG(f[5]), KILN_ARG(f[6]), KILN_ARG(n),
                           KILN_ARG(eps2)));
  else
    SAMPLE_TRY(kiln_launch(t->kernel, &config, NULL, 0));
}

/* Copies the accelerations of the first n bodies to the host. */
static void read_back(ladder *l, size_t n, bool from_structs)
{
  body *copy;

  if (!from_structs) {
    for (size_t k = 0; k < 3; k++)
      SAMPLE_TRY(kiln_copy_to_host(l->s.device, l->a[k], l->given.field[4 + k],
                                   n * sizeof(float)));
    return;
  }
  copy = sample_alloc(n * sizeof *copy);
  SAMPLE_TRY(
      kiln_copy_to_host(l->s.device, copy, l->structs, n * sizeof *copy));
  for (size_t i = 0; i < n; i++) {
    l->a[0][i] = copy[i].ax;
    l->a[1][i] = copy[i].ay;
    l->a[2][i] = copy[i].az;
  }
  free(copy);
}

/* Runs one step. One thread gets few bodies, since it is slow. */
static bool run_step(ladder *l, int number)
{
  const size_t few = l->s.few ? 64 : 1024;
  step t = {.number = number, .n = (uint32_t)(number == 1 ? few : l->b.n)};
  char define[24], name[32];
  const char *const defines[] = {define};
  const kiln_program_desc desc = {.builtin = "ladder/nbody",
                                  .defines = defines,
                                  .n_defines = 1,
                                  .fast_math = number == STEPS};
  bodies part = l->b;
  kiln_module *module;
  double ms;

  snprintf(define, sizeof define, "KILN_STEP=%d", number);
  SAMPLE_OP(kiln_module_load(&module, l->s.device, &desc));
  SAMPLE_TRY(kiln_module_kernel(&t.kernel, module, "nbody_step"));
  if (number > 3)
    SAMPLE_TRY(kiln_symbol_write(module, "nbody_given", 0, &l->given,
                                 sizeof l->given));
  ms = time_of(l, queue_step, &t);
  read_back(l, t.n, number <= 2);
  kiln_module_free(module);
  part.n = t.n;
  snprintf(name, sizeof name, "%2d  %s", number, names[number - 1]);
  return print_step(l, name, ms, t.n, nbody_error(&part, (double)eps2, l->a));
}

/* ---- Library ------------------------------------------------------------- */

#define DISTANCE                                                               \
  "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;\n"              \
  "const float r = rsqrtf(dx * dx + (dy * dy + (dz * dz + eps2)));\n"

static void queue_library(ladder *l, const void *what)
{
  SAMPLE_OP(kiln_all_pairs(l->stream, what, NULL));
}

static bool run_library(ladder *l, const char *name, bool equal, bool symmetric)
{
  static const kiln_param softening = {"eps2", KILN_F32, &eps2, true};
  const CUdeviceptr *f = l->given.field;
  const bodies *b = equal ? &l->b_same : &l->b;
  const float mass = b->m[0];
  const kiln_param params[] = {softening, {"mass", KILN_F32, &mass, true}};
  kiln_all_pairs_desc desc = {
      .target = {{f[1], KILN_F32}, {f[2], KILN_F32}, {f[3], KILN_F32}},
      .n = b->n,
      .common = DISTANCE "const float f = s.w * (r * r * r);",
      .expr = {"f * dx", "f * dy", "f * dz"},
      .out = {{f[4], KILN_F32}, {f[5], KILN_F32}, {f[6], KILN_F32}},
      .code = {.params = params, .n_params = 2, .fast_math = true}};
  double ms;

  if (!equal)
    desc.target[3] = (kiln_array){f[0], KILN_F32};
  if (equal || symmetric)
    desc.common = equal ? DISTANCE "const float f = r * r * r;"
                        : DISTANCE "const float f = (t.w * r) * (s.w * r) * r;";
  for (int k = 0; k < 3; k++)
    if (equal || symmetric)
      desc.epilogue[k] =
          equal ? (const char *[]){"mass * r0", "mass * r1", "mass * r2"}[k]
                : (const char *[]){"r0 / t.w", "r1 / t.w", "r2 / t.w"}[k];
  if (symmetric)
    desc.symmetry = KILN_PAIRS_NEGATED;
  ms = time_of(l, queue_library, &desc);
  read_back(l, b->n, false);
  return print_step(l, name, ms, b->n, nbody_error(b, (double)eps2, l->a));
}

/* ---- Program ------------------------------------------------------------- */

static void prepare(ladder *l, size_t n)
{
  kiln_device *device = l->s.device;
  const size_t bytes = n * sizeof(float);
  body *structs = sample_alloc(n * sizeof *structs);

  l->b = nbody_plummer(n, false);
  l->b_same = nbody_plummer(n, true);
  /* The two models draw different numbers, so their positions differ. */
  for (size_t i = 0; i < n; i++) {
    l->b_same.x[i] = l->b.x[i];
    l->b_same.y[i] = l->b.y[i];
    l->b_same.z[i] = l->b.z[i];
    structs[i] = (body){
        .mass = l->b.m[i], .x = l->b.x[i], .y = l->b.y[i], .z = l->b.z[i]};
  }
  for (int k = 0; k < FIELDS; k++)
    SAMPLE_TRY(kiln_memory_alloc(&l->given.field[k], device, bytes));
  for (int k = 0; k < 4; k++)
    SAMPLE_TRY(kiln_copy_to_device(
        device, l->given.field[k],
        (float *[]){l->b.m, l->b.x, l->b.y, l->b.z}[k], bytes));
  for (int k = 0; k < 3; k++)
    l->a[k] = sample_alloc(bytes);
  l->given.n = (uint32_t)n;
  l->given.eps2 = eps2;
  SAMPLE_TRY(kiln_memory_alloc(&l->structs, device, n * sizeof *structs));
  SAMPLE_TRY(
      kiln_copy_to_device(device, l->structs, structs, n * sizeof *structs));
  free(structs);
  SAMPLE_TRY(kiln_stream_create(&l->stream, device, NULL));
  SAMPLE_TRY(kiln_event_create(&l->from, device, true));
  SAMPLE_TRY(kiln_event_create(&l->to, device, true));
}

static void release(ladder *l)
{
  kiln_event_free(l->from);
  kiln_event_free(l->to);
  kiln_stream_free(l->stream);
  SAMPLE_TRY(kiln_memory_free(l->s.device, l->structs));
  for (int k = 0; k < FIELDS; k++)
    SAMPLE_TRY(kiln_memory_free(l->s.device, l->given.field[k]));
  for (int k = 0; k < 3; k++)
    free(l->a[k]);
  nbody_free(&l->b);
  nbody_free(&l->b_same);
}

int main(int argc, char **argv)
{
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  ladder l = {.cpu_rate = 0};
  bool good = true;
  double all;

  sample_open(&l.s, argc, argv);
  SAMPLE_TRY(kiln_device_describe(l.s.device, &l.info));
  prepare(&l, l.s.few ? CPU_BODIES : GPU_BODIES);
  l.cpu_rate = cpu_rate(&l.b, 1);
  all = cpu_rate(&l.b, cores > 0 ? (size_t)cores : 1);
  printf("%s, %zu bodies of a Plummer model, %d operations per pair\n",
         l.info.name, l.b.n, FLOPS);
  printf("  CPU: one thread %.2f GFLOP/s, %ld threads %.2f GFLOP/s\n",
         l.cpu_rate * FLOPS * 1e-6, cores, all * FLOPS * 1e-6);
  printf("  %-28s %7s %10s %9s %8s %8s %9s %9s %8s\n", "step", "n", "ms",
         "GFLOP/s", "of peak", "step x", "total x", "to 1 CPU", "error");
  for (int k = 1; k <= STEPS; k++)
    good = run_step(&l, k) && good;
  good = run_library(&l, "library", false, false) && good;
  good = run_library(&l, "library, equal masses", true, false) && good;
  good = run_library(&l, "library, symmetric", false, true) && good;
  good = run_library(&l, "library, both", true, true) && good;
  release(&l);
  return sample_end(&l.s, good);
}
