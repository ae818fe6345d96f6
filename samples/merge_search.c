/* merge_search.c -- merges two sorted sequences and searches the result. Every
 * element of the merged sequence is looked up again: its own position must lie
 * between its lower bound and its upper bound. */
#include "sample.h"

#include <kiln/merge.h>
#include <kiln/search.h>

enum { N_A = 300007, N_B = 200003, N = N_A + N_B };

static void print_some(const char *what, const uint32_t *v)
{
  printf("  %-12s", what);
  for (int i = 0; i < 10; i++)
    printf(" %6u", v[i]);
  printf(" ...\n");
}

static bool verify(const uint32_t *a, const uint32_t *b, const uint32_t *merged,
                   const uint32_t *low, const uint32_t *high)
{
  size_t i = 0, j = 0;

  for (size_t k = 0; k < N; k++) {
    const bool take_b = i == N_A || (j < N_B && b[j] < a[i]);

    if (merged[k] != (take_b ? b[j] : a[i]))
      return false;
    if (take_b)
      j++;
    else
      i++;
    if (low[k] > k || high[k] <= k)
      return false;
    if (low[k] > 0 && merged[low[k] - 1] >= merged[k])
      return false;
    if (merged[low[k]] != merged[k] ||
        (high[k] < N && merged[high[k]] <= merged[k]))
      return false;
  }
  return true;
}

int main(int argc, char **argv)
{
  uint32_t *a, *b, *merged, *low, *high;
  const size_t size = N * sizeof *a;
  CUdeviceptr da, db, out, places;
  kiln_stream *stream;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  a = sample_alloc(N_A * sizeof *a);
  b = sample_alloc(N_B * sizeof *b);
  merged = sample_alloc(size);
  low = sample_alloc(size);
  high = sample_alloc(size);
  for (uint32_t i = 0; i < N_A; i++)
    a[i] = i / 3 * 7;
  for (uint32_t i = 0; i < N_B; i++)
    b[i] = i * 5;
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&da, s.device, N_A * sizeof *a));
  SAMPLE_TRY(kiln_memory_alloc(&db, s.device, N_B * sizeof *b));
  SAMPLE_TRY(kiln_memory_alloc(&out, s.device, size));
  SAMPLE_TRY(kiln_memory_alloc(&places, s.device, size));
  SAMPLE_TRY(kiln_copy_to_device(s.device, da, a, N_A * sizeof *a));
  SAMPLE_TRY(kiln_copy_to_device(s.device, db, b, N_B * sizeof *b));

  {
    const kiln_merge_desc merge = {.a = {da, KILN_U32},
                                   .n_a = N_A,
                                   .b = {db, KILN_U32},
                                   .n_b = N_B,
                                   .out = {out, KILN_U32}};
    kiln_search_desc search = {.sorted = {out, KILN_U32},
                               .m = N,
                               .needles = {.in = {{out, KILN_U32}}},
                               .n = N,
                               .out = {places, KILN_U32}};

    SAMPLE_TRY(kiln_merge(stream, &merge, NULL));
    SAMPLE_TRY(kiln_search(stream, &search, NULL));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s.device, merged, out, size));
    SAMPLE_TRY(kiln_copy_to_host(s.device, low, places, size));
    search.upper = true;
    SAMPLE_TRY(kiln_search(stream, &search, NULL));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s.device, high, places, size));
  }
  print_some("a", a);
  print_some("b", b);
  print_some("merged", merged);
  print_some("lower bound", low);
  print_some("upper bound", high);
  good = verify(a, b, merged, low, high);

  SAMPLE_TRY(kiln_memory_free(s.device, da));
  SAMPLE_TRY(kiln_memory_free(s.device, db));
  SAMPLE_TRY(kiln_memory_free(s.device, out));
  SAMPLE_TRY(kiln_memory_free(s.device, places));
  kiln_stream_free(stream);
  free(a);
  free(b);
  free(merged);
  free(low);
  free(high);
  return sample_end(&s, good);
}
