/* scan.c -- prefix sums (row B11 of the lectures). The sample shows the
 * lecture's example of cutting a sausage in parallel. Then it counts the
 * additions of three scan algorithms, and compares them on whole arrays with
 * kiln_scan().
 *
 * usage: scan [--device gpu|cpu|cpu:9.0] */
#include "sample.h"

enum { THREADS = 512, GPU_N = 1 << 20, CPU_N = 1 << 15, REPEATS = 5 };

typedef struct step {
  const char *builtin, *kernel, *label;
  /* Elements per block; 0 means that one call scans the whole array. */
  uint32_t section;
} step;

static const step steps[] = {
    {"ladder/scan_naive", "scan_naive", "naive", 0},
    {"ladder/scan_hillis_steele", "scan_hillis_steele", "Hillis-Steele",
     THREADS},
    {"ladder/scan_brent_kung", "scan_brent_kung", "Brent-Kung", 2 * THREADS},
};

enum { N_STEPS = sizeof steps / sizeof steps[0] };

/* The kernels of an algorithm: the plain kernel, and a variant that counts its
 * additions. */
typedef struct loaded {
  kiln_module *module, *counting;
  kiln_kernel *scan, *counted;
} loaded;

typedef struct state {
  sample s;
  kiln_stream *stream;
  loaded step[N_STEPS];
  kiln_module *add_module;
  kiln_kernel *add;
  /* `sums` holds the sums of the sections, and the sums of sections of these
   * sums. */
  CUdeviceptr x, y, sums, additions;
  float *host, *result;
  uint32_t n;
} state;

static void load(state *t)
{
  static const char *const defines[] = {"KILN_BLOCK=512", "KILN_COUNT=1"};

  for (size_t k = 0; k < N_STEPS; k++) {
    kiln_program_desc desc = {
        .builtin = steps[k].builtin, .defines = defines, .n_defines = 1};

    t->step[k].module = sample_module(&t->s, &desc);
    SAMPLE_TRY(kiln_module_kernel(&t->step[k].scan, t->step[k].module,
                                  steps[k].kernel));
    desc.n_defines = 2;
    t->step[k].counting = sample_module(&t->s, &desc);
    SAMPLE_TRY(kiln_module_kernel(&t->step[k].counted, t->step[k].counting,
                                  steps[k].kernel));
  }
  t->add_module =
      sample_module(&t->s, &(kiln_program_desc){.builtin = "ladder/scan_add"});
  SAMPLE_TRY(kiln_module_kernel(&t->add, t->add_module, "scan_add"));
}

/* ---- Scans --------------------------------------------------------------- */

static void sections(state *t, const step *s, kiln_kernel *kernel,
                     CUdeviceptr x, uint32_t n, CUdeviceptr y, CUdeviceptr sums)
{
  kiln_launch_config c =
      kiln_launch_1d(n, s->section == 0 ? THREADS : s->section);

  c.block.x = THREADS;
  c.stream = t->stream;
  if (s->section == 0)
    SAMPLE_TRY(KILN_LAUNCH(kernel, &c, KILN_ARG(x), KILN_ARG(n), KILN_ARG(y),
                           KILN_ARG(t->additions)));
  else
    SAMPLE_TRY(KILN_LAUNCH(kernel, &c, KILN_ARG(x), KILN_ARG(n), KILN_ARG(y),
                           KILN_ARG(sums), KILN_ARG(t->additions)));
}

/* Scans a whole array: scans the sections, then scans the sums of the sections,
 * and adds the scanned sums to the sections. */
static void whole(state *t, size_t which, CUdeviceptr x, uint32_t n,
                  CUdeviceptr y, CUdeviceptr sums)
{
  const step *s = &steps[which];
  const uint32_t n_sums =
      s->section == 0 ? 0 : (n + s->section - 1) / s->section;
  kiln_launch_config c = kiln_launch_1d(n, THREADS);

  sections(t, s, t->step[which].scan, x, n, y, sums);
  if (n_sums <= 1)
    return;
  whole(t, which, sums, n_sums, sums, sums + 4 * (CUdeviceptr)n_sums);
  c.stream = t->stream;
  SAMPLE_TRY(KILN_LAUNCH(t->add, &c, KILN_ARG(y), KILN_ARG(n),
                         KILN_ARG(s->section), KILN_ARG(sums),
                         KILN_ARG(t->additions)));
}

static void library(state *t, uint32_t n)
{
  const kiln_scan_desc scan = {
      .x = {.in = {{t->x, KILN_F32}}}, .n = n, .out = {t->y, KILN_F32}};

  SAMPLE_TRY(kiln_scan(t->stream, &scan, NULL));
}

static bool right(state *t, uint32_t n)
{
  double sum = 0;

  SAMPLE_TRY(kiln_stream_synchronize(t->stream));
  SAMPLE_TRY(kiln_copy_to_host(t->s.device, t->result, t->y, 4 * (size_t)n));
  for (uint32_t i = 0; i < n; i++) {
    sum += (double)t->host[i];
    if ((double)t->result[i] != sum)
      return false;
  }
  return true;
}

/* ---- The lecture's example ---------------------------------------------- */

static bool sausage(state *t)
{
  static const float wanted[] = {3, 5, 2, 7, 28, 4, 3, 0, 8, 1};
  enum { PEOPLE = sizeof wanted / sizeof wanted[0], INCHES = 100 };
  bool good = true;

  memcpy(t->host, wanted, sizeof wanted);
  SAMPLE_TRY(kiln_copy_to_device(t->s.device, t->x, wanted, sizeof wanted));
  printf("\n%d inches of sausage for %d people, who want\n ", INCHES, PEOPLE);
  for (int i = 0; i < PEOPLE; i++)
    printf(" %g", (double)wanted[i]);
  printf("\ncut after\n");
  for (size_t k = 0; k <= N_STEPS; k++) {
    if (k < N_STEPS)
      whole(t, k, t->x, PEOPLE, t->y, t->sums);
    else
      library(t, PEOPLE);
    good = right(t, PEOPLE) && good;
    printf(" ");
    for (int i = 0; i < PEOPLE; i++)
      printf(" %g", (double)t->result[i]);
    printf("  %s\n", k < N_STEPS ? steps[k].label : "kiln_scan");
  }
  printf("%g inches are left\n", INCHES - (double)t->result[PEOPLE - 1]);
  return good && (double)t->result[PEOPLE - 1] == 61;
}

static unsigned long long count(state *t, size_t which, uint32_t n)
{
  unsigned long long additions = 0;

  SAMPLE_TRY(kiln_fill(t->s.device, t->additions, 0, 4, 2));
  sections(t, &steps[which], t->step[which].counted, t->x, n, t->y, t->sums);
  SAMPLE_TRY(kiln_stream_synchronize(t->stream));
  SAMPLE_TRY(kiln_copy_to_host(t->s.device, &additions, t->additions,
                               sizeof additions));
  return additions;
}

static bool additions(state *t)
{
  bool good = true;

  SAMPLE_TRY(kiln_fill(t->s.device, t->x, 0, 4, THREADS));
  printf("\nadditions       n   naive  Hillis-Steele  n log n - (n - 1)  "
         "Brent-Kung  2 (n - 1)\n");
  for (uint32_t n = 8, log_n = 3; n <= THREADS; n *= 4, log_n += 2) {
    const unsigned long long naive = count(t, 0, n), doubling = count(t, 1, n),
                             tree = count(t, 2, n);

    printf("%17u %7llu %14llu %18u %11llu %10u\n", n, naive, doubling,
           n * log_n - (n - 1), tree, 2 * (n - 1));
    good = good && doubling == n * log_n - (n - 1) && tree <= 2 * (n - 1) &&
           naive == (unsigned long long)n * (n - 1) / 2;
  }
  return good;
}

static bool arrays(state *t)
{
  bool good = true;

  for (uint32_t i = 0; i < t->n; i++)
    t->host[i] = (float)(i % 7) - 3;
  SAMPLE_TRY(kiln_copy_to_device(t->s.device, t->x, t->host, 4 * (size_t)t->n));
  printf("\n%u elements      ms\n", t->n);
  for (size_t k = 0; k <= N_STEPS; k++) {
    double ms[REPEATS];

    for (int repeat = 0; repeat < REPEATS; repeat++) {
      SAMPLE_TRY(kiln_stream_synchronize(t->stream));
      ms[repeat] = sample_now_ms();
      if (k < N_STEPS)
        whole(t, k, t->x, t->n, t->y, t->sums);
      else
        library(t, t->n);
      SAMPLE_TRY(kiln_stream_synchronize(t->stream));
      ms[repeat] = sample_now_ms() - ms[repeat];
      if (t->s.few)
        ms[REPEATS - 1] = ms[repeat];
      if (t->s.few)
        break;
    }
    printf("%-14s %9.3f\n", k < N_STEPS ? steps[k].label : "kiln_scan",
           t->s.few ? ms[REPEATS - 1] : sample_median(ms, REPEATS));
    good = right(t, t->n) && good;
  }
  return good;
}

int main(int argc, char **argv)
{
  state t = {0};
  bool good;

  sample_open(&t.s, argc, argv);
  t.n = t.s.few ? CPU_N : GPU_N;
  SAMPLE_TRY(kiln_stream_create(&t.stream, t.s.device, NULL));
  load(&t);
  t.host = sample_alloc(4 * (size_t)t.n);
  t.result = sample_alloc(4 * (size_t)t.n);
  SAMPLE_TRY(kiln_memory_alloc(&t.x, t.s.device, 4 * (size_t)t.n));
  SAMPLE_TRY(kiln_memory_alloc(&t.y, t.s.device, 4 * (size_t)t.n));
  SAMPLE_TRY(kiln_memory_alloc(&t.sums, t.s.device, 4 * (size_t)t.n));
  SAMPLE_TRY(kiln_memory_alloc(&t.additions, t.s.device, 8));

  good = sausage(&t);
  good = additions(&t) && good;
  good = arrays(&t) && good;

  SAMPLE_TRY(kiln_memory_free(t.s.device, t.x));
  SAMPLE_TRY(kiln_memory_free(t.s.device, t.y));
  SAMPLE_TRY(kiln_memory_free(t.s.device, t.sums));
  SAMPLE_TRY(kiln_memory_free(t.s.device, t.additions));
  free(t.host);
  free(t.result);
  for (size_t k = 0; k < N_STEPS; k++) {
    kiln_module_free(t.step[k].module);
    kiln_module_free(t.step[k].counting);
  }
  kiln_module_free(t.add_module);
  kiln_stream_free(t.stream);
  return sample_end(&t.s, good);
}
