/* counting_sort.c -- counting sort in three steps (row B13 of the lectures).
 * The histogram counts each key, the prefix sum of the counts gives the
 * position of the first element with each key, and a scatter moves every
 * element to its destination. The sample shows eight keys step by step, and
 * then sorts many keys. The time is linear if the keys come from a small known
 * range. */
#include "sample.h"

#include <kiln/histogram.h>

static void print_row(const char *what, const uint32_t *v, size_t n)
{
  printf("  %-22s", what);
  for (size_t i = 0; i < n; i++)
    printf(" %3u", v[i]);
  putchar('\n');
}

/* ---- A small example, step by step -------------------------------------- */

/* Sorts keys together with values. The values show that elements with equal
 * keys keep their order. */
static bool small(sample *s, kiln_stream *stream)
{
  enum { N = 8, RANGE = 4 };
  static const uint32_t key[N] = {3, 1, 0, 3, 2, 1, 3, 0};
  static const uint32_t name[N] = {10, 11, 12, 13, 14, 15, 16, 17};
  static const uint32_t sorted[N] = {0, 0, 1, 1, 2, 3, 3, 3};
  static const uint32_t moved[N] = {12, 17, 11, 15, 14, 10, 13, 16};
  uint32_t got_key[N], got_name[N], start[RANGE + 1], count[RANGE];
  kiln_counting_sort_desc desc = {.n = N, .range = RANGE};
  CUdeviceptr room;

  SAMPLE_TRY(kiln_memory_alloc(&room, s->device, 256 * 5));
  desc.keys = (kiln_array){room, KILN_U32};
  desc.values = (kiln_array){room + 256, KILN_U32};
  desc.keys_out = (kiln_array){room + 512, KILN_U32};
  desc.values_out = (kiln_array){room + 768, KILN_U32};
  desc.offsets = (kiln_array){room + 1024, KILN_U32};
  SAMPLE_TRY(kiln_copy_to_device(s->device, room, key, sizeof key));
  SAMPLE_TRY(kiln_copy_to_device(s->device, room + 256, name, sizeof name));
  SAMPLE_TRY(kiln_counting_sort(stream, &desc, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got_key, room + 512, sizeof got_key));
  SAMPLE_TRY(
      kiln_copy_to_host(s->device, got_name, room + 768, sizeof got_name));
  SAMPLE_TRY(kiln_copy_to_host(s->device, start, room + 1024, sizeof start));
  SAMPLE_TRY(kiln_memory_free(s->device, room));

  for (int k = 0; k < RANGE; k++)
    count[k] = start[k + 1] - start[k];
  print_row("keys", key, N);
  print_row("values", name, N);
  print_row("histogram of 0 to 3", count, RANGE);
  print_row("prefix sum", start, RANGE + 1);
  print_row("sorted keys", got_key, N);
  print_row("their values", got_name, N);
  return memcmp(got_key, sorted, sizeof sorted) == 0 &&
         memcmp(got_name, moved, sizeof moved) == 0;
}

/* ---- A large array ------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
  const uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;

  return (x > y) - (x < y);
}

static bool many(sample *s, kiln_stream *stream, size_t n)
{
  uint16_t *keys = sample_alloc(n * sizeof *keys);
  uint16_t *got = sample_alloc(n * sizeof *got);
  kiln_counting_sort_desc desc = {.n = n};
  double host, gpu;
  CUdeviceptr x, y;
  bool good;

  for (size_t i = 0; i < n; i++)
    keys[i] = (uint16_t)((uint32_t)i * 2654435761u >> 16);
  SAMPLE_TRY(kiln_memory_alloc(&x, s->device, n * sizeof *keys));
  SAMPLE_TRY(kiln_memory_alloc(&y, s->device, n * sizeof *keys));
  SAMPLE_TRY(kiln_copy_to_device(s->device, x, keys, n * sizeof *keys));
  desc.keys = (kiln_array){x, KILN_U16};
  desc.keys_out = (kiln_array){y, KILN_U16};
  SAMPLE_TRY(kiln_counting_sort(stream, &desc, NULL)); /* compiles */
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  gpu = sample_now_ms();
  SAMPLE_TRY(kiln_counting_sort(stream, &desc, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  gpu = sample_now_ms() - gpu;
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, y, n * sizeof *got));
  host = sample_now_ms();
  qsort(keys, n, sizeof *keys, compare_keys);
  host = sample_now_ms() - host;
  good = memcmp(keys, got, n * sizeof *keys) == 0;
  printf("  %9zu 16-bit keys: %10.3f ms, qsort() on the host %10.3f ms, %s\n",
         n, gpu, host, good ? "the same" : "DIFFERENT");
  SAMPLE_TRY(kiln_memory_free(s->device, x));
  SAMPLE_TRY(kiln_memory_free(s->device, y));
  free(keys);
  free(got);
  return good;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  good = small(&s, stream);
  putchar('\n');
  good = many(&s, stream, 1000) && good;
  good = many(&s, stream, s.few ? 1 << 20 : 1 << 24) && good;
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
