/* scatter_runs_test.c -- kiln_scatter in one pass by indices of which several are
 * consecutive. The kernel stores such elements in other ways than single ones. */
#include "operation_checks.h"

enum { N = 12301 };

/* Each function returns the destination of element i, a different one for each
 * element. */
static uint32_t ascending(uint32_t i)
{
  return i;
}

static uint32_t descending(uint32_t i)
{
  return N - 1 - i;
}

static uint32_t shifted(uint32_t i)
{
  return (i + 1) % N;
}

static uint32_t rotated(uint32_t i)
{
  return (2 * N + 2 - i) % N;
}

/* Each group of 300 elements is an ascending and a descending run. */
static uint32_t ragged(uint32_t i)
{
  const uint32_t group = i / 300, k = 5 * group % 297, at = i % 300;

  if (group * 300 + 300 > N)
    return i;
  return group * 300 + (at < k ? at : 299 + k - at);
}

/* Single elements between ascending runs of a vector or longer. */
static uint32_t exchanged(uint32_t i)
{
  const uint32_t at = i % 20;

  return i / 20 * 20 + 20 > N ? i : i - at + (at == 3 ? 17 : at == 17 ? 3 : at);
}

typedef uint32_t (*destination)(uint32_t);

static void scatter_once(kiln_dtype type, size_t shift, destination to)
{
  const size_t size = kiln_dtype_size(type);
  uint64_t state = 7;
  unsigned char *x = kept(random_bits(N * size, &state));
  uint32_t *at = kept(malloc(N * sizeof *at));
  const test_array in = array_make(type, N, 0, x, 0);
  const test_array out = array_make(type, N, shift, NULL, 0x5a);
  unsigned char *want = kept(array_read(&out));
  test_array index;
  operation_call c;

  for (uint32_t i = 0; i < N; i++) {
    at[i] = to(i);
    memcpy(want + at[i] * size, x + i * size, size);
  }
  index = array_make(KILN_U32, N, 0, at, 0);
  c = CALL_OF(kiln_scatter, &(kiln_scatter_desc){.x = {.in = {in.array}},
                                                 .index = index.array,
                                                 .out = out.array,
                                                 .n = N,
                                                 .method = KILN_INDEX_DIRECT});
  call_writes(&c, &out, want);
  ck_call(c);
}

START_TEST(test_runs)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_U32, KILN_F64};
  static const destination all[] = {ascending, descending, shifted,
                                    rotated,   ragged,     exchanged};

  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
    for (size_t shift = 0; shift <= 1; shift++)
      scatter_once(types[_i], shift, all[k]);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scatter_runs");
  TCase *t = device_case(s, "scatter_runs");

  tcase_add_loop_test(t, test_runs, 0, 4);
  return s;
}

DEVICE_TEST_MAIN(suite)
