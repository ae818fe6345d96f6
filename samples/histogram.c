/* histogram.c -- counts how often each value occurs. The first part draws the
 * sums of three dice as a bar chart, with the mean of the first die for each sum
 * from a histogram with weights. The second part compares kiln_histogram() with
 * three kernels: atomics in global memory, counters in shared memory, and
 * 32 counters per bin in shared memory (the counting step of rows B12 and B13
 * of the lectures). All counts are compared with counts by the host. */
#include "sample.h"

#include <kiln/histogram.h>

enum { N = 1 << 20, DICE = 19, BINS = 256, REPEATS = 5 };

static uint32_t next_random(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

/* ---- The chart ----------------------------------------------------------- */

static bool chart(sample *s, kiln_stream *stream, CUdeviceptr x,
                  CUdeviceptr counts, uint32_t *host)
{
  kiln_histogram_desc desc = {.x = {.in = {{x, KILN_U32}},
                                    .map = "x % 6 + x / 6 % 6 + "
                                           "x / 36 % 6 + 3"},
                              .n = N,
                              .bins = DICE,
                              .counts = {counts, KILN_U32}};
  uint32_t got[DICE], points[DICE], expected[DICE] = {0}, first[DICE] = {0};
  bool good = true;

  for (uint32_t i = 0; i < N; i++) {
    const uint32_t sum = host[i] % 6 + host[i] / 6 % 6 + host[i] / 36 % 6 + 3;

    expected[sum]++;
    first[sum] += host[i] % 6 + 1;
  }
  SAMPLE_TRY(kiln_histogram(stream, &desc, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, counts, sizeof got));
  desc.weight = "x % 6 + 1";
  SAMPLE_TRY(kiln_histogram(stream, &desc, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, points, counts, sizeof points));
  printf("sums of three dice, %d throws, and the mean of the first die\n", N);
  for (int k = 3; k < DICE; k++) {
    printf("  %2d %7u %5.2f ", k, got[k], (double)points[k] / got[k]);
    for (uint32_t bar = 0; bar < got[k] / (N / 400); bar++)
      putchar('#');
    putchar('\n');
    good = good && got[k] == expected[k] && points[k] == first[k];
  }
  return good;
}

/* ---- The kernels that the library is compared with ---------------------- */

typedef struct step {
  const char *name, *builtin;
  uint32_t smem; /* bytes of shared memory per bin */
} step;

static const step steps[] = {
    {"histogram_global", "ladder/histogram_global", 0},
    {"histogram_shared", "ladder/histogram_shared", 4},
    {"histogram_copies", "ladder/histogram_copies", 128},
    {"kiln_histogram", NULL, 0},
};

typedef struct work {
  kiln_stream *stream;
  kiln_kernel *kernel; /* NULL: kiln_histogram() */
  CUdeviceptr x, counts;
  uint32_t smem;
} work;

static void count_once(const work *w)
{
  const uint32_t n = N, bins = BINS;
  const kiln_launch_config config = {.grid = {.x = 128},
                                     .block = {.x = 256},
                                     .smem = w->smem,
                                     .stream = w->stream};
  const kiln_histogram_desc desc = {.x = {.in = {{w->x, KILN_U32}}},
                                    .n = N,
                                    .bins = BINS,
                                    .counts = {w->counts, KILN_U32}};

  if (w->kernel == NULL) {
    SAMPLE_TRY(kiln_histogram(w->stream, &desc, NULL));
    return;
  }
  SAMPLE_TRY(kiln_fill_async(w->stream, w->counts, 0, 4, BINS));
  SAMPLE_TRY(KILN_LAUNCH(w->kernel, &config, KILN_ARG(w->x), KILN_ARG(n),
                         KILN_ARG(w->counts), KILN_ARG(bins)));
}

static double time_it(const work *w)
{
  double ms[REPEATS];

  for (int i = 0; i < REPEATS; i++) {
    ms[i] = sample_now_ms();
    count_once(w);
    SAMPLE_TRY(kiln_stream_synchronize(w->stream));
    ms[i] = sample_now_ms() - ms[i];
  }
  return sample_median(ms, REPEATS);
}

static bool run_step(sample *s, work *w, const step *what,
                     const uint32_t *expected)
{
  const kiln_program_desc program = {.builtin = what->builtin};
  kiln_module *module = NULL;
  uint32_t got[BINS];
  size_t wrong = 0;
  double ms;

  w->kernel = NULL;
  w->smem = what->smem * BINS;
  if (what->builtin != NULL) {
    module = sample_module(s, &program);
    SAMPLE_TRY(kiln_module_kernel(&w->kernel, module, what->name));
  }
  count_once(w);
  SAMPLE_TRY(kiln_stream_synchronize(w->stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, w->counts, sizeof got));
  for (size_t b = 0; b < BINS; b++)
    wrong += got[b] != expected[b];
  ms = time_it(w);
  printf("  %-18s %9.4f ms  %8.2f Gsamples/s  %zu wrong\n", what->name, ms,
         N / ms / 1e6, wrong);
  kiln_module_free(module);
  return wrong == 0;
}

int main(int argc, char **argv)
{
  uint32_t state = 1, expected[BINS] = {0};
  uint32_t *x = NULL;
  bool good;
  sample s;
  work w = {0};

  sample_open(&s, argc, argv);
  x = sample_alloc(N * sizeof *x);
  SAMPLE_TRY(kiln_stream_create(&w.stream, s.device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&w.x, s.device, N * sizeof *x));
  SAMPLE_TRY(kiln_memory_alloc(&w.counts, s.device, BINS * sizeof *x));
  for (int i = 0; i < N; i++)
    x[i] = next_random(&state) % 216;
  for (int i = 0; i < N; i++)
    expected[x[i]]++;
  SAMPLE_TRY(kiln_copy_to_device(s.device, w.x, x, N * sizeof *x));

  good = chart(&s, w.stream, w.x, w.counts, x);
  printf("\n%d bins, %d samples, by the host's clock\n", BINS, N);
  for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++)
    good = run_step(&s, &w, &steps[k], expected) && good;

  SAMPLE_TRY(kiln_memory_free(s.device, w.x));
  SAMPLE_TRY(kiln_memory_free(s.device, w.counts));
  kiln_stream_free(w.stream);
  free(x);
  return sample_end(&s, good);
}
