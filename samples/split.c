/* split.c -- moves the elements of an array to partitions that a key function
 * selects (row B12 of the lectures), by count, prefix sum and scatter, without
 * locks.
 *
 * First the lecture's three kernels split eight elements with four threads and
 * the key x mod 2, and the sample prints the five steps. Then one call splits
 * an array into any number of partitions:
 *
 *   kiln_split_desc split = {.x = {.in = {{x, KILN_U32}}}, .key = "x % 1000",
 *                            .parts = 1000, .n = n, .out = {out, KILN_U32},
 *                            .offsets = {offsets, KILN_U32}};
 *   kiln_split(stream, &split, NULL);
 *
 * Every result is compared with a counting sort on the host. */
#include "sample.h"

/* The three kernels of the lecture's algorithm, for a fixed number of
 * partitions. */
typedef struct steps {
  kiln_kernel *count, *prefix, *scatter;
  kiln_module *module[3];
  uint32_t parts;
} steps;

static void print_row(const char *name, const uint32_t *v, size_t n)
{
  printf("  %-22s", name);
  for (size_t i = 0; i < n; i++)
    printf(" %3u", v[i]);
  printf("\n");
}

/* Returns true if `out` has the elements in the order of their partitions, and
 * in input order within each partition. */
static bool is_split(const uint32_t *x, const uint32_t *out, size_t n,
                     uint32_t parts, const uint32_t *offsets)
{
  uint32_t *next = sample_alloc((parts + 1) * sizeof *next);
  bool good = true;

  memset(next, 0, (parts + 1) * sizeof *next);
  for (size_t i = 0; i < n; i++)
    next[x[i] % parts + 1]++;
  for (uint32_t k = 0; k < parts; k++)
    next[k + 1] += next[k];
  for (uint32_t k = 0; offsets != NULL && k <= parts; k++)
    good = good && offsets[k] == next[k];
  for (size_t i = 0; i < n; i++)
    good = good && out[next[x[i] % parts]++] == x[i];
  free(next);
  return good;
}

static kiln_kernel *step_kernel(sample *s, kiln_module **module,
                                const char *builtin, const char *name,
                                const char *const *defines)
{
  const kiln_program_desc program = {
      .builtin = builtin, .defines = defines, .n_defines = 1};
  kiln_kernel *kernel;

  *module = sample_module(s, &program);
  SAMPLE_TRY(kiln_module_kernel(&kernel, *module, name));
  return kernel;
}

static void steps_open(sample *s, steps *t, uint32_t parts)
{
  char text[32];
  const char *const define[] = {text};
  static const char *const none[] = {"KILN_BLOCK=256"};

  snprintf(text, sizeof text, "KILN_BUCKETS=%u", parts);
  t->parts = parts;
  t->count = step_kernel(s, &t->module[0], "ladder/split_count", "split_count",
                         define);
  t->prefix = step_kernel(s, &t->module[1], "ladder/split_prefix",
                          "split_prefix", none);
  t->scatter = step_kernel(s, &t->module[2], "ladder/split_scatter",
                           "split_scatter", define);
}

static void steps_close(steps *t)
{
  for (int k = 0; k < 3; k++)
    kiln_module_free(t->module[k]);
}

/* Runs the lecture's algorithm. If `show` is true, every step is printed. */
static bool run_steps(sample *s, const steps *t, const uint32_t *x, uint32_t n,
                      uint32_t grid, uint32_t block, bool show)
{
  const kiln_launch_config config = {.grid = {.x = grid},
                                     .block = {.x = block}};
  const kiln_launch_config one = {.grid = {.x = 1}, .block = {.x = 256}};
  const uint32_t threads = grid * block, m = t->parts * threads;
  uint32_t *out = sample_alloc(4 * (size_t)n);
  uint32_t *counts = sample_alloc(4 * (size_t)m);
  CUdeviceptr dx, dcounts, dout;
  bool good;

  SAMPLE_TRY(kiln_memory_alloc(&dx, s->device, 4 * (size_t)n));
  SAMPLE_TRY(kiln_memory_alloc(&dout, s->device, 4 * (size_t)n));
  SAMPLE_TRY(kiln_memory_alloc(&dcounts, s->device, 4 * (size_t)m));
  SAMPLE_TRY(kiln_copy_to_device(s->device, dx, x, 4 * (size_t)n));
  SAMPLE_TRY(KILN_LAUNCH(t->count, &config, KILN_ARG(dx), KILN_ARG(n),
                         KILN_ARG(dcounts)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, counts, dcounts, 4 * (size_t)m));
  if (show)
    print_row("1, 2  counts, by part", counts, m);
  SAMPLE_TRY(KILN_LAUNCH(t->prefix, &one, KILN_ARG(dcounts), KILN_ARG(m)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, counts, dcounts, 4 * (size_t)m));
  if (show)
    print_row("3, 4  their prefix sum", counts, m);
  SAMPLE_TRY(KILN_LAUNCH(t->scatter, &config, KILN_ARG(dx), KILN_ARG(n),
                         KILN_ARG(dcounts), KILN_ARG(dout)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, dout, 4 * (size_t)n));
  if (show)
    print_row("5     R_out", out, n);
  good = is_split(x, out, n, t->parts, NULL);
  SAMPLE_TRY(kiln_memory_free(s->device, dx));
  SAMPLE_TRY(kiln_memory_free(s->device, dout));
  SAMPLE_TRY(kiln_memory_free(s->device, dcounts));
  free(counts);
  free(out);
  return good;
}

/* Prints the destination of each element in the example. */
static void print_places(const uint32_t *x, uint32_t n, uint32_t parts)
{
  uint32_t to[16], key[16];

  for (uint32_t i = 0; i < n; i++) {
    key[i] = x[i] % parts;
    to[i] = 0;
    for (uint32_t k = 0; k < n; k++)
      to[i] += x[k] % parts < key[i] || (x[k] % parts == key[i] && k < i);
  }
  print_row("      fcn(x)", key, n);
  print_row("      goes to", to, n);
}

static bool example(sample *s)
{
  static const uint32_t x[8] = {5, 2, 8, 3, 7, 1, 6, 4};
  bool good;
  steps t;

  steps_open(s, &t, 2);
  printf("\nSplit(R_in, x mod 2, R_out), 4 threads of 2 elements each\n");
  print_row("      R_in", x, 8);
  print_places(x, 8, 2);
  good = run_steps(s, &t, x, 8, 1, 4, true);
  steps_close(&t);
  return good;
}

/* Splits a large array with the same three kernels, and then with one call of
 * the library. */
static bool large(sample *s, const uint32_t *x, uint32_t n, uint32_t parts)
{
  CUdeviceptr dx, dout, doffsets;
  uint32_t *out = sample_alloc(4 * (size_t)n);
  uint32_t *offsets = sample_alloc(4 * ((size_t)parts + 1));
  kiln_stream *stream;
  char key[32];
  double ms;
  bool good;

  SAMPLE_TRY(kiln_stream_create(&stream, s->device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&dx, s->device, 4 * (size_t)n));
  SAMPLE_TRY(kiln_memory_alloc(&dout, s->device, 4 * (size_t)n));
  SAMPLE_TRY(kiln_memory_alloc(&doffsets, s->device, 4 * ((size_t)parts + 1)));
  SAMPLE_TRY(kiln_copy_to_device(s->device, dx, x, 4 * (size_t)n));
  snprintf(key, sizeof key, "x %% %u", parts);
  {
    const kiln_split_desc split = {.x = {.in = {{dx, KILN_U32}}},
                                   .key = key,
                                   .parts = parts,
                                   .n = n,
                                   .out = {dout, KILN_U32},
                                   .offsets = {doffsets, KILN_U32}};

    SAMPLE_TRY(kiln_split(stream, &split, NULL)); /* compiles */
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    ms = sample_now_ms();
    SAMPLE_TRY(kiln_split(stream, &split, NULL));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    ms = sample_now_ms() - ms;
  }
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, dout, 4 * (size_t)n));
  SAMPLE_TRY(
      kiln_copy_to_host(s->device, offsets, doffsets, 4 * ((size_t)parts + 1)));
  good = is_split(x, out, n, parts, offsets);
  printf("  %8u  %10u  %10.3f  %s\n", n, parts, ms,
         good ? "stable, offsets right" : "WRONG");
  SAMPLE_TRY(kiln_memory_free(s->device, dx));
  SAMPLE_TRY(kiln_memory_free(s->device, dout));
  SAMPLE_TRY(kiln_memory_free(s->device, doffsets));
  kiln_stream_free(stream);
  free(offsets);
  free(out);
  return good;
}

int main(int argc, char **argv)
{
  static const uint32_t parts[] = {2, 10, 256, 1000, 65536};
  uint32_t *x, n, seed = 1;
  bool good;
  sample s;
  steps t;

  sample_open(&s, argc, argv);
  n = s.few ? 200000 : 1u << 24;
  x = sample_alloc(4 * (size_t)n);
  for (uint32_t i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    x[i] = seed >> 8;
  }
  good = example(&s);

  steps_open(&s, &t, 10);
  printf("\nthe same kernels, %u elements, 10 partitions, 16,384 threads\n", n);
  good = run_steps(&s, &t, x, n, 64, 256, false) && good;
  steps_close(&t);

  printf("\nkiln_split()\n  elements  partitions          ms\n");
  for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
    good = large(&s, x, n, parts[k]) && good;
  free(x);
  return sample_end(&s, good);
}
