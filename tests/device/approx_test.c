/* approx_test.c -- approximate functions, on every source value for which the
 * results of a GPU's lookup tables differ. Measures how often, and by how many
 * units in the last place, a result differs from the correctly rounded one, on
 * the GPU and on the CPU device.
 *
 * The program takes every 64th source value, unless there is a GPU and
 * KILN_TEST_OPS is "full".
 * KILN_TEST_OPS_OUT is a folder for dense.tsv and seeds.bin. The latter gets
 * the high words that a GPU returns for 2^20 consecutive high words from 1.0 on
 * (rcp.approx.ftz.f64) and for 2^21 of them (rsqrt.approx.ftz.f64). */
#include "cpu_differ.h"
#include "cpu_opcodes.h"
#include "test_device.h"

#include <inttypes.h>
#include <math.h>

enum { PIECE = 1 << 20, THREADS = 256, STEPS = 3 };

static const struct dense {
  const char *name;
  double (*exact)(double);
  /* encoding of the first source value; its high word in case of f64 */
  uint32_t first;
  uint32_t step;
  uint32_t n; /* number of source values, a multiple of PIECE */
} denses[] = {{"rcp.approx.f32", NULL, 0x3f800000, 1, 1 << 23},
              {"rcp.approx.ftz.f32", NULL, 0x3f800000, 1, 1 << 23},
              {"sqrt.approx.f32", sqrt, 0x3f800000, 1, 1 << 24},
              {"sqrt.approx.ftz.f32", sqrt, 0x3f800000, 1, 1 << 24},
              {"rsqrt.approx.f32", NULL, 0x3f800000, 1, 1 << 24},
              {"rsqrt.approx.ftz.f32", NULL, 0x3f800000, 1, 1 << 24},
              {"ex2.approx.ftz.f32", exp2, 0x3f800000, 1, 1 << 23},
              {"ex2.approx.f32", exp2, 0xc0000000, 4, 1 << 23}, /* below -2 */
              {"lg2.approx.ftz.f32", log2, 0x3f000000, 1, 1 << 24},
              {"lg2.approx.f32", log2, 0x40000000, 4, 1 << 23},
              {"sin.approx.ftz.f32", sin, 0x3a000000, 8, 13 << 20},
              {"cos.approx.ftz.f32", cos, 0x3a000000, 8, 13 << 20},
              {"tanh.approx.f32", tanh, 0x39000000, 8, 17 << 20},
              {"rcp.approx.ftz.f64", NULL, 0x3ff00000, 1, 1 << 20},
              {"rsqrt.approx.ftz.f64", NULL, 0x3ff00000, 1, 1 << 21}};
enum { N_DENSES = sizeof denses / sizeof *denses };

typedef struct measured {
  /* how many results are off by -STEPS - 1 to STEPS + 1 units in the last
   * place */
  uint64_t of[2][2 * STEPS + 3];
  int64_t worst[2];
  uint32_t worst_at[2];
  /* low_words: f64 results that depend on the low word of the source */
  uint64_t apart, low_words;
  /* f64 results of the GPU, or of the CPU device if there is no GPU */
  uint32_t *seeds;
} measured;

static measured *all; /* in memory shared with the child processes */
static unsigned every, children;

static bool is_double(const struct dense *d)
{
  return strstr(d->name, "f64") != NULL;
}

static double exact_of(const struct dense *d, double x)
{
  if (d->exact != NULL)
    return d->exact(x);
  return strncmp(d->name, "rcp", 3) == 0 ? 1 / x
                                         : (double)(1 / sqrtl((long double)x));
}

/* Maps encodings of f32 to integers in the order of their values. High words of
 * f64 are returned unchanged. */
static int64_t place(const struct dense *d, uint32_t bits)
{
  if (is_double(d) || bits >> 31 == 0)
    return bits;
  return -(int64_t)(bits & 0x7fffffff);
}

static int64_t right(const struct dense *d, uint32_t source)
{
  uint32_t bits;
  float x;

  if (is_double(d)) {
    const uint64_t whole = (uint64_t)source << 32;
    uint64_t wide;
    double y;

    memcpy(&y, &whole, sizeof y);
    y = exact_of(d, y);
    memcpy(&wide, &y, sizeof wide);
    return (int64_t)((wide + 0x80000000u) >> 32);
  }
  memcpy(&x, &source, sizeof x);
  x = (float)exact_of(d, (double)x);
  memcpy(&bits, &x, sizeof bits);
  return place(d, bits);
}

static void count(const struct dense *d, measured *m, int which,
                  uint32_t source, uint32_t got)
{
  const int64_t off = place(d, got) - right(d, source);
  const int64_t at = off < -STEPS ? -STEPS - 1 : off > STEPS ? STEPS + 1 : off;

  m->of[which][at + STEPS + 1]++;
  if (llabs(off) > llabs(m->worst[which])) {
    m->worst[which] = off;
    m->worst_at[which] = source;
  }
}

static CUmodule load(differ *d, const struct dense *dense)
{
  kiln_allocator a = {0};
  opcode_list list;
  CUmodule module = NULL;
  kiln__buf text;
  char log[512];

  opcode_list_make(&list, 0, 90, NULL);
  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  for (size_t i = 0; i < list.n; i++) {
    if (strcmp(list.cases[i].name, dense->name) == 0)
      opcode_module(&text, &list.cases[i], 1);
  }
  ck_assert_msg(text.size > 0, "no opcode %s", dense->name);
  ck_assert_msg(differ_load(d, &module, text.data, log, sizeof log), "%s", log);
  kiln__buf_free(&text);
  opcode_list_free(&list);
  return module;
}

static void run(differ *d, CUmodule module, const void *from, void *to,
                uint32_t n, size_t size)
{
  CUdeviceptr none = 0, in = differ_alloc(d, n * size);
  CUdeviceptr out = differ_alloc(d, n * size);
  uint64_t step = 8 * (uint64_t)n;
  void *args[] = {&in, &none, &none, &none, &none, &out, &n, &step};

  differ_put(d, in, from, n * size);
  differ_launch(d, module, "k0", n / THREADS, THREADS, args);
  differ_get(d, to, out, n * size);
  differ_free(d, in);
  differ_free(d, out);
}

typedef struct bench {
  /* [0] is the GPU, or NULL without one; [1] is the CPU device */
  differ *devices[2];
  CUmodule modules[2];
  void *in, *out[2];
} bench;

/* Runs the function on n source values on each device and counts the
 * differences. A source value has 4 or 8 bytes. */
static void piece(bench *b, const struct dense *d, measured *m, uint32_t from,
                  uint32_t n)
{
  const size_t size = is_double(d) ? 8 : 4;

  for (uint32_t i = 0; i < n; i++) {
    const uint32_t source = d->first + (from + i) * every * d->step;

    if (size == 8)
      ((uint64_t *)b->in)[i] = (uint64_t)source << 32;
    else
      ((uint32_t *)b->in)[i] = source;
  }
  for (int k = 0; k < 2; k++) {
    if (b->devices[k] == NULL)
      continue;
    run(b->devices[k], b->modules[k], b->in, b->out[k], n, size);
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t source = d->first + (from + i) * every * d->step;
      const uint32_t got = size == 8
                               ? (uint32_t)(((uint64_t *)b->out[k])[i] >> 32)
                               : ((uint32_t *)b->out[k])[i];

      count(d, m, k, source, got);
      if (size == 8 && m->seeds != NULL && (k == 0 || b->devices[0] == NULL))
        m->seeds[from + i] = got;
    }
  }
  for (uint32_t i = 0; b->devices[0] != NULL && i < n * size / 4; i++)
    m->apart += ((uint32_t *)b->out[0])[i] != ((uint32_t *)b->out[1])[i];
  if (size == 8) { /* run again with all bits of the low words set */
    const int k = b->devices[0] != NULL ? 0 : 1;
    uint64_t *const again = malloc(n * size);

    ck_assert_ptr_nonnull(again);
    for (uint32_t i = 0; i < n; i++)
      ((uint64_t *)b->in)[i] |= UINT32_MAX;
    run(b->devices[k], b->modules[k], b->in, again, n, size);
    for (uint32_t i = 0; i < n; i++)
      m->low_words += again[i] != ((uint64_t *)b->out[k])[i];
    free(again);
  }
}

static void measure(differ *gpu, differ *cpu, const struct dense *d,
                    measured *m)
{
  bench b = {.devices = {gpu, cpu}};
  const uint32_t n = d->n / every;

  b.in = malloc((size_t)PIECE * 8);
  for (int k = 0; k < 2; k++) {
    b.out[k] = malloc((size_t)PIECE * 8);
    ck_assert(b.in != NULL && b.out[k] != NULL);
    if (b.devices[k] != NULL)
      b.modules[k] = load(b.devices[k], d);
  }
  for (uint32_t from = 0; from < n; from += PIECE)
    piece(&b, d, m, from, n - from < PIECE ? n - from : PIECE);
  for (int k = 0; k < 2; k++) {
    if (b.devices[k] != NULL)
      differ_unload(b.devices[k], b.modules[k]);
    free(b.out[k]);
  }
  free(b.in);
}

static void work(void *user, unsigned k)
{
  differ gpu, cpu;

  (void)user;
  if (!on_cpu())
    ck_assert(differ_open_gpu(&gpu));
  differ_open_cpu(&cpu, &(kiln_cpu_opts){.arch = 90});
  for (unsigned i = k; i < N_DENSES; i += children)
    measure(on_cpu() ? NULL : &gpu, &cpu, &denses[i], &all[i]);
}

static void print(FILE *f, const struct dense *d, const measured *m)
{
  static const char *const names[] = {"GPU", "CPU"};

  for (int k = on_cpu() ? 1 : 0; k < 2; k++) {
    fprintf(f, "%-21s %s steps off:", d->name, names[k]);
    for (int i = 0; i < 2 * STEPS + 3; i++) {
      if (m->of[k][i] > 0)
        fprintf(f, " %s%d: %" PRIu64,
                i == 0               ? "<"
                : i == 2 * STEPS + 2 ? ">"
                                     : "",
                i == 0               ? -STEPS
                : i == 2 * STEPS + 2 ? STEPS
                                     : i - STEPS - 1,
                m->of[k][i]);
    }
    fprintf(f, "; worst %" PRId64 " at %08" PRIx32 "\n", m->worst[k],
            m->worst_at[k]);
  }
  if (!on_cpu())
    fprintf(f, "%-21s apart: %" PRIu64 "\n", d->name, m->apart);
  if (is_double(d))
    fprintf(f, "%-21s hang on the low word: %" PRIu64 "\n", d->name,
            m->low_words);
}

static FILE *out_file(const char *name)
{
  const char *folder = getenv("KILN_TEST_OPS_OUT");
  char path[512];

  if (folder == NULL)
    return NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "wb");
}

static void write_all(void)
{
  FILE *text = out_file("dense.tsv");
  FILE *seeds = every == 1 ? out_file("seeds.bin") : NULL;

  for (unsigned i = 0; i < N_DENSES; i++) {
    print(stdout, &denses[i], &all[i]);
    if (text != NULL)
      print(text, &denses[i], &all[i]);
    if (seeds != NULL && all[i].seeds != NULL)
      fwrite(all[i].seeds, sizeof(uint32_t), denses[i].n, seeds);
  }
  if (text != NULL)
    fclose(text);
  if (seeds != NULL)
    fclose(seeds);
}

START_TEST(steps_off_are_few)
{
  const char *const how = getenv("KILN_TEST_OPS");

  every = !on_cpu() && how != NULL && strcmp(how, "full") == 0 ? 1 : 64;
  children = differ_cores();
  all = differ_shared(N_DENSES * sizeof *all);
  for (unsigned i = 0; i < N_DENSES; i++) {
    if (is_double(&denses[i]))
      all[i].seeds = differ_shared(denses[i].n * sizeof(uint32_t));
  }
  ck_assert_uint_eq(differ_fork(children, work, NULL), 0);
  write_all();
  for (unsigned i = 0; i < N_DENSES; i++) {
    const bool tanh = strncmp(denses[i].name, "tanh", 4) == 0;
    const bool far = strncmp(denses[i].name, "lg2", 3) == 0 ||
                     strncmp(denses[i].name, "sin", 3) == 0 ||
                     strncmp(denses[i].name, "cos", 3) == 0;

    ck_assert_msg(tanh || far || llabs(all[i].worst[1]) <= 2,
                  "%s on the CPU device", denses[i].name);
    ck_assert_uint_eq(on_cpu() ? all[i].low_words : 0, 0);
  }
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("approx");
  TCase *dense = tcase_create("dense");

  tcase_set_timeout(dense, 900);
  tcase_add_test(dense, steps_off_are_few);
  suite_add_tcase(suite, dense);
  return suite;
}

DEVICE_TEST_MAIN(make)
