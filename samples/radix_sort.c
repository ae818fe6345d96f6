/* radix_sort.c -- radix sort, from one-bit split passes to the library's sort
 * (row B14 of the lectures). First the sample shows every step of every split
 * for the lecture's eight keys. Then it sorts whole arrays: with one split per
 * bit, with sorted tiles in shared memory and bitonic merges (see also
 * bitonic.c), with kiln_sort(), and with qsort() on the host. All results must
 * equal that of qsort().
 *
 * usage: radix_sort [--device gpu|cpu|cpu:9.0] */
#include "sample.h"

enum { BLOCK = 256, TILE_BLOCK = 512, TILE = 1024, SHOWN = 8, REPEATS = 7 };

typedef struct kernels {
  kiln_module *bits, *tiles;
  kiln_kernel *show, *count, *scan, *scatter;
  kiln_kernel *sort_tile, *flip, *step, *merge_tile;
} kernels;

typedef struct arrays {
  sample *s;
  kernels k;
  kiln_stream *stream;
  kiln_event *from, *to;
  uint32_t n, *keys, *want, *got;
  CUdeviceptr input, a, b, counts;
  CUdeviceptr result; /* buffer that holds the result of the last sort */
} arrays;

/* ---- The lecture's eight keys -------------------------------------------- */

static void print_bits(const char *name, const uint32_t *x, const char *what)
{
  printf("  %-6s", name);
  for (int i = 0; i < SHOWN; i++)
    printf("  %u%u%u", x[i] >> 2 & 1, x[i] >> 1 & 1, x[i] & 1);
  printf("  %s\n", what);
}

static void print_row(const char *name, const uint32_t *x, const char *what)
{
  printf("  %-6s", name);
  for (int i = 0; i < SHOWN; i++)
    printf("  %3u", x[i]);
  printf("  %s\n", what);
}

static bool show_bit(arrays *v, uint32_t bit, uint32_t keys[SHOWN])
{
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = BLOCK}};
  const uint32_t n = SHOWN;
  uint32_t rows[5 * SHOWN + 1], next[SHOWN];
  bool good = true;

  SAMPLE_TRY(kiln_copy_to_device(v->s->device, v->a, keys, 4 * SHOWN));
  SAMPLE_TRY(KILN_LAUNCH(v->k.show, &one, KILN_ARG(v->a), KILN_ARG(n),
                         KILN_ARG(bit), KILN_ARG(v->b)));
  SAMPLE_TRY(kiln_copy_to_host(v->s->device, rows, v->b, sizeof rows));
  printf("\nbit %u\n", bit);
  print_bits("i", keys, "keys");
  print_row("b", rows, "the bit");
  print_row("e", rows + SHOWN, "1 - b");
  print_row("f", rows + 2 * SHOWN, "exclusive scan of e");
  printf("  total falses = e[7] + f[7] = %u + %u = %u\n",
         rows[SHOWN + SHOWN - 1], rows[2 * SHOWN + SHOWN - 1], rows[5 * SHOWN]);
  print_row("t", rows + 3 * SHOWN, "i - f + total falses");
  print_row("d", rows + 4 * SHOWN, "b ? t : f, where each key goes");
  for (int i = 0; i < SHOWN; i++)
    next[rows[4 * SHOWN + i] % SHOWN] = keys[i];
  print_bits("out", next, "");
  for (int i = 1; i < SHOWN; i++)
    good &= (next[i - 1] >> bit & 1) <= (next[i] >> bit & 1);
  memcpy(keys, next, sizeof next);
  return good;
}

static bool show_example(arrays *v)
{
  uint32_t keys[SHOWN] = {4, 7, 2, 6, 3, 5, 1, 0};
  bool good = true;

  printf("\nEight keys of three bits, one stable split a bit:\n");
  for (uint32_t bit = 0; bit < 3; bit++)
    good &= show_bit(v, bit, keys);
  for (uint32_t i = 0; i < SHOWN; i++)
    good &= keys[i] == i;
  printf("\n  %s\n", good ? "sorted" : "NOT SORTED");
  return good;
}

/* ---- Whole arrays -------------------------------------------------------- */

static void one_bit(arrays *v)
{
  const kiln_launch_config each = kiln_launch_1d(v->n, BLOCK);
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = BLOCK}};
  const uint32_t blocks = each.grid.x;
  CUdeviceptr from = v->a, to = v->b;

  for (uint32_t bit = 0; bit < 32; bit++) {
    const CUdeviceptr other = from;

    SAMPLE_TRY(KILN_LAUNCH(v->k.count, &each, KILN_ARG(from), KILN_ARG(v->n),
                           KILN_ARG(bit), KILN_ARG(v->counts)));
    SAMPLE_TRY(
        KILN_LAUNCH(v->k.scan, &one, KILN_ARG(v->counts), KILN_ARG(blocks)));
    SAMPLE_TRY(KILN_LAUNCH(v->k.scatter, &each, KILN_ARG(from), KILN_ARG(to),
                           KILN_ARG(v->n), KILN_ARG(bit), KILN_ARG(v->counts)));
    from = to;
    to = other;
  }
  v->result = from;
}

static void bitonic(arrays *v)
{
  const kiln_launch_config tiles = {.grid = {.x = (v->n + TILE - 1) / TILE},
                                    .block = {.x = TILE_BLOCK}};

  SAMPLE_TRY(
      KILN_LAUNCH(v->k.sort_tile, &tiles, KILN_ARG(v->a), KILN_ARG(v->n)));
  for (uint32_t run = TILE; run < v->n; run *= 2) {
    const uint32_t pairs = (v->n + 2 * run - 1) / (2 * run) * run;
    const kiln_launch_config all = {.grid = {.x = pairs / TILE_BLOCK},
                                    .block = {.x = TILE_BLOCK}};

    SAMPLE_TRY(KILN_LAUNCH(v->k.flip, &all, KILN_ARG(v->a), KILN_ARG(v->n),
                           KILN_ARG(run)));
    for (uint32_t distance = run / 2; distance >= TILE; distance /= 2)
      SAMPLE_TRY(KILN_LAUNCH(v->k.step, &all, KILN_ARG(v->a), KILN_ARG(v->n),
                             KILN_ARG(distance)));
    SAMPLE_TRY(
        KILN_LAUNCH(v->k.merge_tile, &tiles, KILN_ARG(v->a), KILN_ARG(v->n)));
  }
  v->result = v->a;
}

static void library(arrays *v)
{
  const kiln_sort_desc d = {
      .keys_in = {v->a, KILN_U32}, .keys_out = {v->b, KILN_U32}, .n = v->n};

  SAMPLE_TRY(kiln_sort(v->stream, &d, NULL));
  v->result = v->b;
}

static bool check(const arrays *v)
{
  SAMPLE_TRY(
      kiln_copy_to_host(v->s->device, v->got, v->result, 4 * (size_t)v->n));
  return memcmp(v->got, v->want, 4 * (size_t)v->n) == 0;
}

static bool time_sort(arrays *v, const char *label, void (*sort)(arrays *))
{
  const size_t repeats = v->s->few ? 1 : REPEATS;
  double times[REPEATS], ms;
  bool good;

  for (size_t i = 0; i < repeats + 1;
       i++) { /* the first repeat compiles and warms up */
    float took;

    SAMPLE_TRY(
        kiln_copy_on_device(v->s->device, v->a, v->input, 4 * (size_t)v->n));
    SAMPLE_TRY(kiln_event_record(v->from, NULL));
    sort(v);
    SAMPLE_TRY(kiln_event_record(v->to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(v->to));
    SAMPLE_TRY(kiln_event_elapsed(&took, v->from, v->to));
    if (i > 0)
      times[i - 1] = (double)took;
  }
  ms = sample_median(times, repeats);
  good = check(v);
  printf("  %9u  %-28s %11.4f ms %10.3f Mkeys/s  %s\n", v->n, label, ms,
         v->n / (ms * 1e3), good ? "verified" : "WRONG");
  return good;
}

static int compare(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

static bool run_size(arrays *v, uint32_t n)
{
  uint64_t r = 88172645463325252u;
  double began;
  bool good;

  v->n = n;
  for (uint32_t i = 0; i < n; i++) {
    r ^= r << 13;
    r ^= r >> 7;
    r ^= r << 17;
    v->want[i] = v->keys[i] = (uint32_t)(r >> 20);
  }
  SAMPLE_TRY(
      kiln_copy_to_device(v->s->device, v->input, v->keys, 4 * (size_t)n));
  began = sample_now_ms();
  qsort(v->want, n, 4, compare);
  began = sample_now_ms() - began;
  good = time_sort(v, "one-bit splits, 32 passes", one_bit);
  good &= time_sort(v, "tiles and bitonic merges", bitonic);
  good &= time_sort(v, "kiln_sort", library);
  printf("  %9u  %-28s %11.4f ms %10.3f Mkeys/s\n\n", n,
         "qsort, one CPU thread", began, n / (began * 1e3));
  return good;
}

/* ---- Set-up and clean-up ------------------------------------------------ */

static kiln_kernel *kernel_of(kiln_module *module, const char *name)
{
  kiln_kernel *kernel;

  SAMPLE_TRY(kiln_module_kernel(&kernel, module, name));
  return kernel;
}

static void load(arrays *v)
{
  const kiln_program_desc bits = {.builtin = "ladder/sort_one_bit"};
  const kiln_program_desc tiles = {.builtin = "ladder/sort_tile_bitonic"};
  kernels *k = &v->k;

  k->bits = sample_module(v->s, &bits);
  k->tiles = sample_module(v->s, &tiles);
  k->show = kernel_of(k->bits, "split_show");
  k->count = kernel_of(k->bits, "split_count");
  k->scan = kernel_of(k->bits, "split_scan");
  k->scatter = kernel_of(k->bits, "split_scatter");
  k->sort_tile = kernel_of(k->tiles, "sort_tile");
  k->flip = kernel_of(k->tiles, "merge_flip");
  k->step = kernel_of(k->tiles, "merge_step");
  k->merge_tile = kernel_of(k->tiles, "merge_tile");
}

static void prepare(arrays *v, uint32_t largest)
{
  const size_t size = 4 * (size_t)largest;
  kiln_device *device = v->s->device;

  load(v);
  v->keys = sample_alloc(size);
  v->want = sample_alloc(size);
  v->got = sample_alloc(size);
  SAMPLE_TRY(kiln_memory_alloc(&v->input, device, size));
  SAMPLE_TRY(kiln_memory_alloc(&v->a, device, size));
  SAMPLE_TRY(kiln_memory_alloc(&v->b, device, size));
  SAMPLE_TRY(kiln_memory_alloc(&v->counts, device, size / BLOCK + 8));
  SAMPLE_TRY(kiln_stream_wrap(&v->stream, device, NULL));
  SAMPLE_TRY(kiln_event_create(&v->from, device, true));
  SAMPLE_TRY(kiln_event_create(&v->to, device, true));
}

static void release(arrays *v)
{
  kiln_event_free(v->from);
  kiln_event_free(v->to);
  kiln_stream_free(v->stream);
  kiln_memory_free(v->s->device, v->input);
  kiln_memory_free(v->s->device, v->a);
  kiln_memory_free(v->s->device, v->b);
  kiln_memory_free(v->s->device, v->counts);
  kiln_module_free(v->k.bits);
  kiln_module_free(v->k.tiles);
  free(v->keys);
  free(v->want);
  free(v->got);
}

int main(int argc, char **argv)
{
  static const uint32_t gpu[] = {1 << 16, 1 << 20, 1 << 24};
  static const uint32_t cpu[] = {1 << 12, 1 << 15};
  sample s;
  arrays v = {.s = &s};
  const uint32_t *sizes;
  size_t n;
  bool good;

  sample_open(&s, argc, argv);
  sizes = s.few ? cpu : gpu;
  n = s.few ? sizeof cpu / sizeof *cpu : sizeof gpu / sizeof *gpu;
  prepare(&v, sizes[n - 1]);
  good = show_example(&v);
  printf("\nWhole arrays of random 32-bit keys:\n");
  for (size_t i = 0; i < n; i++)
    good &= run_size(&v, sizes[i]);
  release(&v);
  return sample_end(&s, good);
}
