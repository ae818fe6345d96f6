/* gather_scatter.c -- reads and writes elements at indices that an array holds
 * (row B9 of the lectures). The sample shows the multi-pass scatter, its cache
 * misses in a small example, the cost model, and the choice of the number of
 * passes.
 *
 *   kiln_scatter_desc d = {.x = {.in = {{x, KILN_F32}}},
 *                          .index = {at, KILN_U32}, .out = {out, KILN_F32},
 *                          .n = n, .n_target = n};
 *   kiln_scatter(stream, &d, NULL);
 *
 * Every result is compared with a loop on the host. */
#include "sample.h"

/* ---- The lecture's example with 16 elements ----------------------------- */

/* The arrays R (values) and L (destinations) of the lecture. Memory has 4
 * blocks, the cache has 2 lines of 4 elements, and 4 threads run at a time. */
static const float lecture_r[16] = {0, 3, 1, 2, 3, 1, 0, 2,
                                    0, 3, 1, 2, 3, 0, 1, 2};
static const uint32_t lecture_l[16] = {0, 12, 4, 8,  13, 5, 1, 9,
                                       2, 14, 6, 10, 15, 3, 7, 11};

static bool show_misses(void)
{
  const kiln_cache_model cache = {.line = 4, .lines = 2, .threads = 4};
  uint64_t misses[2];

  for (uint32_t k = 0; k < 2; k++) {
    SAMPLE_TRY(
        kiln_scatter_misses(&cache, lecture_l, 16, 16, k + 1, &misses[k]));
    printf("%u pass%s  %2u misses of 16, %u %%\n", k + 1, k == 0 ? "  " : "es",
           (unsigned)misses[k], (unsigned)(misses[k] * 100 / 16));
  }
  return misses[0] == 10 && misses[1] == 4;
}

/* ---- Arrays -------------------------------------------------------------- */

typedef struct arrays {
  uint32_t n;
  float *x, *got;
  uint32_t *at; /* a permutation */
  CUdeviceptr dx, dat, out;
} arrays;

/* Allocates and fills the arrays: for n = 16 with the values of the lecture,
 * otherwise with a random permutation. */
static void arrays_open(const sample *s, arrays *a, uint32_t n)
{
  const size_t size = 4 * (size_t)n;
  uint64_t state = 88172645463325252u;

  a->n = n;
  a->x = sample_alloc(size);
  a->got = sample_alloc(size);
  a->at = sample_alloc(size);
  for (uint32_t i = 0; i < n; i++) {
    a->x[i] = n == 16 ? lecture_r[i] : (float)i;
    a->at[i] = n == 16 ? lecture_l[i] : i;
  }
  for (uint32_t i = n; n != 16 && i-- > 1;) {
    const uint32_t swap = a->at[i];
    uint32_t k;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    k = (uint32_t)(state % (i + 1));
    a->at[i] = a->at[k];
    a->at[k] = swap;
  }
  SAMPLE_TRY(kiln_memory_alloc(&a->dx, s->device, size));
  SAMPLE_TRY(kiln_memory_alloc(&a->dat, s->device, size));
  SAMPLE_TRY(kiln_memory_alloc(&a->out, s->device, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, a->dx, a->x, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, a->dat, a->at, size));
}

static void arrays_close(const sample *s, arrays *a)
{
  SAMPLE_TRY(kiln_memory_free(s->device, a->dx));
  SAMPLE_TRY(kiln_memory_free(s->device, a->dat));
  SAMPLE_TRY(kiln_memory_free(s->device, a->out));
  free(a->x);
  free(a->got);
  free(a->at);
}

/* Returns true if the device's output is correct: out[at[i]] == x[i] for a
 * scatter, out[i] == x[at[i]] for a gather. */
static bool is_right(const sample *s, arrays *a, bool scattered)
{
  size_t wrong = 0;

  SAMPLE_TRY(kiln_copy_to_host(s->device, a->got, a->out, 4 * (size_t)a->n));
  for (uint32_t i = 0; i < a->n; i++)
    wrong +=
        scattered ? a->got[a->at[i]] != a->x[i] : a->got[i] != a->x[a->at[i]];
  SAMPLE_TRY(kiln_fill(s->device, a->out, 0xffffffffu, 4, a->n));
  return wrong == 0;
}

/* ---- The kernels of the lecture ----------------------------------------- */

static bool in_passes(sample *s, kiln_kernel *kernel, arrays *a,
                      uint32_t passes)
{
  const kiln_launch_config config = kiln_launch_1d(a->n, 256);
  const uint32_t chunk = (a->n + passes - 1) / passes;

  for (uint32_t begin = 0; begin < a->n; begin += chunk) {
    const uint32_t end = begin + chunk;

    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(a->dx), KILN_ARG(a->dat),
                           KILN_ARG(a->out), KILN_ARG(a->n), KILN_ARG(begin),
                           KILN_ARG(end)));
  }
  return is_right(s, a, true);
}

static bool ladder(sample *s)
{
  const kiln_program_desc single = {.builtin = "ladder/scatter_single"};
  const kiln_program_desc passes = {.builtin = "ladder/scatter_passes"};
  kiln_module *m[2] = {sample_module(s, &single), sample_module(s, &passes)};
  kiln_launch_config config;
  kiln_kernel *kernel;
  bool good;
  arrays a;

  arrays_open(s, &a, 16);
  config = kiln_launch_1d(a.n, 256);
  SAMPLE_TRY(kiln_module_kernel(&kernel, m[0], "scatter_single"));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(a.dx), KILN_ARG(a.dat),
                         KILN_ARG(a.out), KILN_ARG(a.n)));
  good = is_right(s, &a, true);
  SAMPLE_TRY(kiln_module_kernel(&kernel, m[1], "scatter_passes"));
  for (uint32_t k = 1; k <= 4; k *= 2)
    good = in_passes(s, kernel, &a, k) && good;
  arrays_close(s, &a);
  kiln_module_free(m[0]);
  kiln_module_free(m[1]);
  return good;
}

/* ---- The library's gather and scatter, by every method ------------------ */

static const char *const names[] = {"", "direct", "windows", "partition",
                                    "sort"};

static void call(kiln_stream *stream, const arrays *a, bool scatter,
                 const kiln_index_plan *p)
{
  const kiln_gather_desc g = {.x = {.in = {{a->dx, KILN_F32}}},
                              .index = {a->dat, KILN_U32},
                              .out = {a->out, KILN_F32},
                              .n = a->n,
                              .n_target = a->n,
                              .method = p->method,
                              .passes = p->passes};
  const kiln_scatter_desc d = {.x = g.x,
                               .index = g.index,
                               .out = g.out,
                               .n = g.n,
                               .n_target = g.n_target,
                               .method = g.method,
                               .passes = g.passes};

  if (scatter)
    SAMPLE_OP(kiln_scatter(stream, &d, NULL));
  else
    SAMPLE_OP(kiln_gather(stream, &g, NULL));
}

/* Measures a call in milliseconds: the median of three runs after an untimed
 * run. */
static double time_it(const sample *s, kiln_stream *stream, const arrays *a,
                      bool scatter, const kiln_index_plan *p)
{
  kiln_event *from, *to;
  double times[3];

  SAMPLE_TRY(kiln_event_create(&from, s->device, true));
  SAMPLE_TRY(kiln_event_create(&to, s->device, true));
  for (int i = -1; i < 3; i++) {
    float ms;

    SAMPLE_TRY(kiln_event_record(from, stream));
    call(stream, a, scatter, p);
    SAMPLE_TRY(kiln_event_record(to, stream));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&ms, from, to));
    if (i >= 0)
      times[i] = (double)ms;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(times, 3);
}

/* Prints the times that the cost model predicts beside the measured times. The
 * model describes GPUs only, not the CPU device. */
static bool methods(sample *s, kiln_stream *stream, uint32_t n, bool scatter)
{
  const kiln_index_shape shape = {n, n, 4, 4};
  kiln_device_info gpu;
  kiln_index_plan best = {0};
  const int last = scatter ? KILN_INDEX_SORT : KILN_INDEX_PARTITION;
  bool good = true;
  arrays a;

  SAMPLE_TRY(kiln_device_describe(s->device, &gpu));
  SAMPLE_TRY(
      (scatter ? kiln_scatter_plan : kiln_gather_plan)(&gpu, &shape, &best));
  arrays_open(s, &a, n);
  for (int m = KILN_INDEX_DIRECT; m <= last; m++) {
    const bool one = m == KILN_INDEX_DIRECT || m == KILN_INDEX_SORT;

    for (uint32_t passes = one ? 1 : 2; passes <= 8; passes *= one ? 16 : 4) {
      kiln_index_plan p = {.method = (kiln_index_method)m, .passes = passes};
      double ms;

      SAMPLE_TRY(
          (scatter ? kiln_scatter_plan : kiln_gather_plan)(&gpu, &shape, &p));
      ms = time_it(s, stream, &a, scatter, &p);
      printf("  %-8s %9u  %-10s %3u  %10.4f  %10.4f%s\n",
             scatter ? "scatter" : "gather", n, names[m], passes, p.ms, ms,
             p.method == best.method ? "  the model's choice" : "");
      good = is_right(s, &a, scatter) && good;
    }
  }
  arrays_close(s, &a);
  return good;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  good = show_misses();
  good = ladder(&s) && good;
  printf("  call      elements  method  passes  model's ms          ms\n");
  for (unsigned bits = 16; bits <= (s.few ? 16u : 24u); bits += 8) {
    const uint32_t n = 1u << bits;

    good = methods(&s, stream, n, true) && good;
    good = methods(&s, stream, n, false) && good;
  }
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
