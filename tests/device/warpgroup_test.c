/* warpgroup_test.c -- wgmma: every type and shape, and all layouts, on random
 * operands whose results an H200 recorded.
 *
 * tests/golden/wgmma.txt has hashes of the results of the first tiles of each
 * case, at three steps; see wgmma_tiles(). By default the first step is
 * compared, with KILN_TEST_THOROUGH=1 the second.
 *
 * KILN_TEST_MATRIX  "full": all steps; "record": all steps, and write the lines
 *                   of tests/golden/wgmma.txt to standard output
 * KILN_TEST_PART    "2/16": only every sixteenth case, from number 2 on
 * KILN_TEST_GOLDEN  another file than tests/golden/wgmma.txt */
#include "cpu_differ.h"
#include "test_device.h"
#include "wgmma_cases.h"

#include <inttypes.h>

enum { CHUNK_BYTES = 64 << 20, TEXT = 65536, MOST_GOLDEN = 256 };

typedef struct golden_case {
  char opcode[112];
  int variant;
  uint64_t hash[WGMMA_STEPS];
} golden_case;

static golden_case golden[MOST_GOLDEN];
static size_t n_golden;

static void open_device(differ *d)
{
  kiln_cpu_opts opts;

  if (!on_cpu()) {
    ck_assert(differ_open_gpu(d));
    return;
  }
  ck_kiln_ok(kiln_cpu_parse(&opts, test_cpu));
  differ_open_cpu(d, &opts);
}

/* Buffers on the host and the device for as many tiles as fit. */
typedef struct buffers {
  size_t in_bytes, out_bytes;
  unsigned long tiles;
  unsigned char *in, *out;
  CUdeviceptr at[2];
} buffers;

static void make_buffers(buffers *b, differ *d, const wgmma_case *t,
                         unsigned long most)
{
  b->in_bytes = matrix_input_bytes(&t->m);
  b->out_bytes = matrix_output_bytes(&t->m);
  b->tiles = CHUNK_BYTES / (b->in_bytes + b->out_bytes);
  b->tiles = b->tiles < most ? b->tiles : most;
  b->in = malloc(b->in_bytes * b->tiles);
  b->out = malloc(b->out_bytes * b->tiles);
  ck_assert(b->in != NULL && b->out != NULL);
  b->at[0] = differ_alloc(d, b->in_bytes * b->tiles);
  b->at[1] = differ_alloc(d, b->out_bytes * b->tiles);
}

static void free_buffers(buffers *b, differ *d)
{
  differ_free(d, b->at[0]);
  differ_free(d, b->at[1]);
  free(b->in);
  free(b->out);
}

/* Continues the hash of the results of a case with the tiles from `from` up to,
 * but not including, `to`. */
static uint64_t run_tiles(differ *d, CUmodule module, const buffers *b,
                          const wgmma_case *t, uint64_t hash,
                          unsigned long from, unsigned long to)
{
  CUdeviceptr at[2] = {b->at[0], b->at[1]};
  void *args[] = {&at[0], &at[1]};

  while (from < to) {
    const unsigned long n = to - from < b->tiles ? to - from : b->tiles;

    for (unsigned long i = 0; i < n; i++)
      matrix_fill(&t->m, from + i, b->in + i * b->in_bytes);
    memset(b->out, 0xa5, n * b->out_bytes);
    differ_put(d, at[0], b->in, n * b->in_bytes);
    differ_put(d, at[1], b->out, n * b->out_bytes);
    differ_launch(d, module, "k", (unsigned)n, WGMMA_THREADS, args);
    differ_get(d, b->out, at[1], n * b->out_bytes);
    hash = matrix_hash(hash, b->out, n * b->out_bytes);
    from += n;
  }
  return hash;
}

/* Computes the hashes of the first `steps` steps of a case. */
static void run_case(differ *d, const wgmma_case *t, unsigned steps,
                     uint64_t hash[WGMMA_STEPS])
{
  static char text[TEXT], log[1024];
  CUmodule module;
  buffers b;

  wgmma_kernel(t, text, sizeof text);
  ck_assert_msg(differ_load(d, &module, text, log, sizeof log), "%s: %s",
                t->m.opcode, log);
  make_buffers(&b, d, t, wgmma_tiles(t, steps - 1));
  for (unsigned s = 0; s < steps; s++)
    hash[s] = run_tiles(d, module, &b, t, s == 0 ? 0 : hash[s - 1],
                        s == 0 ? 0 : wgmma_tiles(t, s - 1), wgmma_tiles(t, s));
  free_buffers(&b, d);
  differ_unload(d, module);
}

static void read_golden(void)
{
  const char *const path = getenv("KILN_TEST_GOLDEN");
  FILE *f = fopen(
      path != NULL ? path : KILN_TEST_SOURCE "/tests/golden/wgmma.txt", "r");
  char line[512];

  ck_assert_ptr_nonnull(f);
  while (fgets(line, sizeof line, f) != NULL && n_golden < MOST_GOLDEN) {
    golden_case *g = &golden[n_golden];

    if (sscanf(line, "%111s %d %" SCNx64 " %" SCNx64 " %" SCNx64, g->opcode,
               &g->variant, &g->hash[0], &g->hash[1], &g->hash[2]) == 5)
      n_golden++;
  }
  fclose(f);
}

static const golden_case *golden_of(const wgmma_case *t)
{
  for (size_t i = 0; i < n_golden; i++) {
    if (golden[i].variant == t->m.selector &&
        strcmp(golden[i].opcode, t->m.opcode) == 0)
      return &golden[i];
  }
  return NULL;
}

/* Compares one case with the recording. Returns false if the results differ. */
static bool as_recorded(differ *d, const wgmma_case *t, unsigned steps)
{
  const golden_case *g = golden_of(t);
  uint64_t hash[WGMMA_STEPS];
  bool same = true;

  ck_assert_msg(g != NULL, "%s %d is not in tests/golden/wgmma.txt",
                t->m.opcode, t->m.selector);
  run_case(d, t, steps, hash);
  for (unsigned s = 0; s < steps && same; s++) {
    same = hash[s] == g->hash[s];
    if (!same)
      printf("%s, variant %d: the first %lu tiles differ from the H200's\n",
             t->m.opcode, t->m.selector, wgmma_tiles(t, s));
  }
  return same;
}

static void record(differ *d, const wgmma_case *t)
{
  uint64_t hash[WGMMA_STEPS];

  run_case(d, t, WGMMA_STEPS, hash);
  printf("%s %d", t->m.opcode, t->m.selector);
  for (unsigned s = 0; s < WGMMA_STEPS; s++)
    printf(" %016" PRIx64, hash[s]);
  printf("\n");
}

START_TEST(results_are_those_of_an_H200)
{
  const char *const how = getenv("KILN_TEST_MATRIX");
  const unsigned steps = how != NULL                            ? WGMMA_STEPS
                         : getenv("KILN_TEST_THOROUGH") != NULL ? 2
                                                                : 1;
  size_t n_cases;
  const wgmma_case *cases = wgmma_cases(&n_cases);
  unsigned wrong = 0;
  differ d;

  open_device(&d);
  if (d.sm != 90) {
    printf("only compute capability 9.0 has wgmma\n");
    differ_close(&d);
    return;
  }
  read_golden();
  for (size_t i = 0; i < n_cases; i++) {
    if (!test_in_part(i))
      continue;
    if (how != NULL && strcmp(how, "record") == 0)
      record(&d, &cases[i]);
    else
      wrong += !as_recorded(&d, &cases[i], steps);
  }
  differ_close(&d);
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("warpgroup");

  kiln_test_case(s, "recorded", 3600, NULL, NULL,
                 TESTS(results_are_those_of_an_H200));
  return s;
}

DEVICE_TEST_MAIN(make_suite)
