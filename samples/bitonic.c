/* bitonic.c -- bitonic merges combine sorted tiles pair by pair (row B14 of the
 * lectures, last step). The sample first shows one merge of sixteen keys step
 * by step. Then it reports the number of launches and the memory traffic for
 * whole arrays, compared with kiln_sort().
 *
 * usage: bitonic [--device gpu|cpu|cpu:9.0] */
#include "sample.h"

enum { SHOWN = 16, TILE = 1024, REPEATS = 7 };

typedef struct merger {
  sample *s;
  kiln_module *module;
  kiln_kernel *sort_tile, *flip, *step, *merge_tile;
  uint32_t tile;
  unsigned launches;
} merger;

/* Loads the kernels for tiles of 2 * block keys. The block size is a
 * compile-time constant of the kernels. */
static void open_merger(merger *m, sample *s, uint32_t tile)
{
  char block[32];
  const char *defines[] = {block};
  const kiln_program_desc desc = {.builtin = "ladder/sort_tile_bitonic",
                                  .defines = defines,
                                  .n_defines = 1};

  *m = (merger){.s = s, .tile = tile};
  snprintf(block, sizeof block, "KILN_BLOCK=%u", tile / 2);
  m->module = sample_module(s, &desc);
  SAMPLE_TRY(kiln_module_kernel(&m->sort_tile, m->module, "sort_tile"));
  SAMPLE_TRY(kiln_module_kernel(&m->flip, m->module, "merge_flip"));
  SAMPLE_TRY(kiln_module_kernel(&m->step, m->module, "merge_step"));
  SAMPLE_TRY(kiln_module_kernel(&m->merge_tile, m->module, "merge_tile"));
}

static kiln_launch_config blocks(const merger *m, uint32_t n)
{
  return (kiln_launch_config){.grid = {.x = n}, .block = {.x = m->tile / 2}};
}

static void sort(merger *m, CUdeviceptr x, uint32_t n)
{
  const kiln_launch_config tiles = blocks(m, (n + m->tile - 1) / m->tile);

  m->launches = 1;
  SAMPLE_TRY(KILN_LAUNCH(m->sort_tile, &tiles, KILN_ARG(x), KILN_ARG(n)));
  for (uint32_t run = m->tile; run < n; run *= 2) {
    const uint32_t pairs = (n + 2 * run - 1) / (2 * run) * run;
    const kiln_launch_config all = blocks(m, pairs / (m->tile / 2));

    SAMPLE_TRY(
        KILN_LAUNCH(m->flip, &all, KILN_ARG(x), KILN_ARG(n), KILN_ARG(run)));
    for (uint32_t distance = run / 2; distance >= m->tile; distance /= 2) {
      SAMPLE_TRY(KILN_LAUNCH(m->step, &all, KILN_ARG(x), KILN_ARG(n),
                             KILN_ARG(distance)));
      m->launches++;
    }
    SAMPLE_TRY(KILN_LAUNCH(m->merge_tile, &tiles, KILN_ARG(x), KILN_ARG(n)));
    m->launches += 2;
  }
}

/* ---- One merge on the host, step by step as in the kernels -------------- */

static void print_keys(const char *label, const uint32_t *x)
{
  printf("  %-24s", label);
  for (int i = 0; i < SHOWN; i++)
    printf(" %3u%s", x[i], i == SHOWN / 2 - 1 ? " |" : "");
  printf("\n");
}

static void order(uint32_t *x, uint32_t low, uint32_t high)
{
  if (x[high] < x[low]) {
    const uint32_t kept = x[low];

    x[low] = x[high];
    x[high] = kept;
  }
}

static bool show_merge(void)
{
  uint32_t x[SHOWN] = {2, 11, 17, 23, 42, 57, 71, 90,
                       5, 8,  13, 29, 31, 66, 68, 99};
  bool good = true;

  printf(
      "\nTwo sorted runs of eight become one, four compare-exchange steps:\n");
  print_keys("two runs", x);
  for (uint32_t i = 0; i < SHOWN / 2; i++)
    order(x, i, SHOWN - 1 - i);
  print_keys("i with 15 - i", x);
  for (uint32_t distance = SHOWN / 4; distance > 0; distance /= 2) {
    char label[32];

    for (uint32_t i = 0; i < SHOWN / 2; i++) {
      const uint32_t low = i / distance * 2 * distance + i % distance;

      order(x, low, low + distance);
    }
    snprintf(label, sizeof label, "i with i + %u", distance);
    print_keys(label, x);
  }
  for (int i = 1; i < SHOWN; i++)
    good &= x[i - 1] <= x[i];
  return good;
}

/* ---- Whole arrays -------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

typedef struct timer {
  kiln_event *from, *to;
} timer;

static float stop(const timer *t)
{
  float ms;

  SAMPLE_TRY(kiln_event_record(t->to, NULL));
  SAMPLE_TRY(kiln_event_synchronize(t->to));
  SAMPLE_TRY(kiln_event_elapsed(&ms, t->from, t->to));
  return ms;
}

static bool equals(sample *s, CUdeviceptr x, const uint32_t *want, uint32_t n)
{
  uint32_t *got = sample_alloc(4 * (size_t)n);
  bool good;

  SAMPLE_TRY(kiln_copy_to_host(s->device, got, x, 4 * (size_t)n));
  good = memcmp(got, want, 4 * (size_t)n) == 0;
  free(got);
  return good;
}

static bool run_size(merger *m, const timer *t, uint32_t n)
{
  sample *s = m->s;
  const size_t size = 4 * (size_t)n, repeats = s->few ? 1 : REPEATS;
  uint32_t *keys = sample_alloc(size), r = 2463534242u;
  double merges[REPEATS], radix[REPEATS];
  CUdeviceptr input, x;
  kiln_stream *stream;
  bool good = true;

  for (uint32_t i = 0; i < n; i++) {
    r ^= r << 13;
    r ^= r >> 17;
    r ^= r << 5;
    keys[i] = r;
  }
  SAMPLE_TRY(kiln_memory_alloc(&input, s->device, size));
  SAMPLE_TRY(kiln_memory_alloc(&x, s->device, size));
  SAMPLE_TRY(kiln_stream_wrap(&stream, s->device, NULL));
  SAMPLE_TRY(kiln_copy_to_device(s->device, input, keys, size));
  qsort(keys, n, 4, compare);
  for (size_t i = 0; i < repeats + 1; i++) { /* the first repeat is a warm-up */
    const kiln_sort_desc d = {
        .keys_in = {input, KILN_U32}, .keys_out = {x, KILN_U32}, .n = n};
    const size_t at = i == 0 ? 0 : i - 1;

    SAMPLE_TRY(kiln_copy_on_device(s->device, x, input, size));
    SAMPLE_TRY(kiln_event_record(t->from, NULL));
    sort(m, x, n);
    merges[at] = (double)stop(t);
    good &= equals(s, x, keys, n);
    SAMPLE_TRY(kiln_event_record(t->from, NULL));
    SAMPLE_TRY(kiln_sort(stream, &d, NULL));
    radix[at] = (double)stop(t);
    good &= equals(s, x, keys, n);
  }
  printf("  %9u %9u %12.4f %12.4f %10u  %s\n", n, m->launches,
         sample_median(merges, repeats), sample_median(radix, repeats),
         8 * m->launches, good ? "verified" : "WRONG");
  kiln_stream_free(stream);
  kiln_memory_free(s->device, input);
  kiln_memory_free(s->device, x);
  free(keys);
  return good;
}

int main(int argc, char **argv)
{
  static const uint32_t gpu[] = {1 << 16, 1 << 20, 1 << 24, 1 << 26};
  static const uint32_t cpu[] = {1000, 1 << 12, 1 << 15};
  const uint32_t *sizes;
  size_t n;
  sample s;
  merger m;
  timer t;
  bool good;

  sample_open(&s, argc, argv);
  good = show_merge();
  open_merger(&m, &s, TILE);
  SAMPLE_TRY(kiln_event_create(&t.from, s.device, true));
  SAMPLE_TRY(kiln_event_create(&t.to, s.device, true));
  sizes = s.few ? cpu : gpu;
  n = s.few ? sizeof cpu / sizeof *cpu : sizeof gpu / sizeof *gpu;
  printf(
      "\nTiles of %d keys, then merges; bytes per key: each launch reads and "
      "writes it.\n  %9s %9s %12s %12s %10s\n",
      TILE, "keys", "launches", "bitonic ms", "kiln_sort ms", "bytes/key");
  for (size_t i = 0; i < n; i++)
    good &= run_size(&m, &t, sizes[i]);
  printf("  kiln_sort moves 36 bytes per key, however many there are.\n");
  kiln_event_free(t.from);
  kiln_event_free(t.to);
  kiln_module_free(m.module);
  return sample_end(&s, good);
}
