/* matmul_ladder.c -- the product of two 1000 x 1000 matrices, from a naive kernel
 * to the library's (rows B7, C1 and E6 of the lectures).
 *
 * The kernels are those of kernels_src/ladder/matmul.cu, whose head says which
 * limit each step removes. The last steps are kiln_gemm(), in f32 and on tensor
 * cores:
 *
 *   kiln_gemm_desc product = {.m = n, .n = n, .k = n, .alpha = 1,
 *                             .a = {.data = a, .type = KILN_F32},
 *                             .b = {.data = b, .type = KILN_F32},
 *                             .d = {.data = d, .type = KILN_F32}};
 *   kiln_gemm(stream, &product, NULL);
 *
 * Every result is compared with sums in double precision. Then the sample shows
 * the three times of row C1: the time until a launch returns, the time until the
 * result is there, and the time with all copies. */
#include "sample.h"

#include <math.h>

enum { REPEATS = 15, GPU_SIZE = 1000, CPU_SIZE = 100 };

typedef struct rung {
  const char *kernel, *what;
  unsigned tile, block; /* rows and columns per block, threads per block */
} rung;

static const rung rungs[] = {
    {"matmul_naive", "naive", 16, 256},
    {"matmul_coalesced", "coalesced", 16, 256},
    {"matmul_tiles", "tiles of 16 x 16", 16, 256},
    {"matmul_registers", "4 x 4 in registers", 64, 256},
    {"matmul_vectors", "8 x 8 and vectors", 128, 256},
    {"matmul_async", "asynchronous copies", 128, 256},
    {"matmul_warps", "warp tiles", 128, 256}};

enum { N_RUNGS = sizeof rungs / sizeof rungs[0] };

typedef struct product {
  unsigned n;
  float *a, *b, *d;
  double *want, *size; /* the exact element, and the sum of absolute products */
  CUdeviceptr da, db, dd;
  const rung *rung; /* the kernel that run_rung() launches */
  kiln_kernel *kernel;
  kiln_gemm_precision precision; /* of run_library() */
} product;

static float uniform(uint64_t *r)
{
  *r = *r * 6364136223846793005u + 1442695040888963407u;
  return (float)(*r >> 40) * 0x1p-23f - 1;
}

/* Computes the reference. Returns the milliseconds of the same loops in f32. */
static double reference(product *p)
{
  const size_t n = p->n;
  double ms;

  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++)
      for (size_t j = 0; j < n; j++) {
        const double v = (double)p->a[i * n + k] * (double)p->b[k * n + j];

        p->want[i * n + j] += v;
        p->size[i * n + j] += fabs(v);
      }
  memset(p->d, 0, 4 * n * n);
  ms = sample_now_ms();
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++)
      for (size_t j = 0; j < n; j++)
        p->d[i * n + j] += p->a[i * n + k] * p->b[k * n + j];
  return sample_now_ms() - ms;
}

static void make(sample *s, product *p)
{
  const size_t elements = (size_t)p->n * p->n;
  uint64_t r = 1;

  p->a = sample_alloc(4 * elements);
  p->b = sample_alloc(4 * elements);
  p->d = sample_alloc(4 * elements);
  p->want = sample_alloc(8 * elements);
  p->size = sample_alloc(8 * elements);
  memset(p->want, 0, 8 * elements);
  memset(p->size, 0, 8 * elements);
  for (size_t i = 0; i < elements; i++) {
    p->a[i] = uniform(&r);
    p->b[i] = uniform(&r);
  }
  SAMPLE_TRY(kiln_memory_alloc(&p->da, s->device, 4 * elements));
  SAMPLE_TRY(kiln_memory_alloc(&p->db, s->device, 4 * elements));
  SAMPLE_TRY(kiln_memory_alloc(&p->dd, s->device, 4 * elements));
  SAMPLE_TRY(kiln_copy_to_device(s->device, p->da, p->a, 4 * elements));
  SAMPLE_TRY(kiln_copy_to_device(s->device, p->db, p->b, 4 * elements));
}

static void discard(const sample *s, const product *p)
{
  SAMPLE_TRY(kiln_memory_free(s->device, p->da));
  SAMPLE_TRY(kiln_memory_free(s->device, p->db));
  SAMPLE_TRY(kiln_memory_free(s->device, p->dd));
  free(p->a);
  free(p->b);
  free(p->d);
  free(p->want);
  free(p->size);
}

static kiln_status run_rung(kiln_stream *stream, const void *user)
{
  const product *p = user;
  const uint32_t tiles = (p->n + p->rung->tile - 1) / p->rung->tile;
  const kiln_launch_config config = {.grid = {.x = tiles, .y = tiles},
                                     .block = {.x = p->rung->block},
                                     .stream = stream};

  return KILN_LAUNCH(p->kernel, &config, KILN_ARG(p->da), KILN_ARG(p->db),
                     KILN_ARG(p->dd), KILN_ARG(p->n));
}

static kiln_status run_library(kiln_stream *stream, const void *user)
{
  const product *p = user;
  const kiln_gemm_desc desc = {.m = p->n,
                               .n = p->n,
                               .k = p->n,
                               .alpha = 1,
                               .precision = p->precision,
                               .a = {.data = p->da, .type = KILN_F32},
                               .b = {.data = p->db, .type = KILN_F32},
                               .d = {.data = p->dd, .type = KILN_F32}};

  return kiln_gemm(stream, &desc, NULL);
}

/* Runs, times and verifies a product. The error of each element may be
 * `rounding` times the sum of its absolute products. */
static bool show(const sample *s, kiln_stream *stream, product *p,
                 const char *what, sample_op_fn run, double rounding)
{
  const size_t elements = (size_t)p->n * p->n;
  double ms, worst = 0;
  bool good;

  SAMPLE_TRY(kiln_fill(s->device, p->dd, 0xff, 1, 4 * elements));
  ms = sample_op_ms(stream, run, p, s->few ? 1 : REPEATS);
  SAMPLE_TRY(kiln_copy_to_host(s->device, p->d, p->dd, 4 * elements));
  for (size_t i = 0; i < elements; i++)
    worst = fmax(worst, isnan(p->d[i])
                            ? INFINITY
                            : fabs((double)p->d[i] - p->want[i]) / p->size[i]);
  good = worst <= rounding;
  printf("  %-28s %10.4f ms %9.2f TFLOP/s   error %.1e%s\n", what, ms,
         2e-9 * (double)p->n * (double)elements / ms, worst,
         good ? "" : "  WRONG");
  return good;
}

/* Shows the three times of row C1 for the library's product. */
static void show_times(const sample *s, kiln_stream *stream, product *p)
{
  const size_t bytes = 4 * (size_t)p->n * p->n;
  double launched[REPEATS], there[REPEATS], copied[REPEATS];
  const size_t repeats = s->few ? 1 : REPEATS;

  for (size_t i = 0; i < repeats; i++) {
    double from = sample_now_ms();

    SAMPLE_TRY(run_library(stream, p));
    launched[i] = sample_now_ms() - from;
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    there[i] = sample_now_ms() - from;
    from = sample_now_ms();
    SAMPLE_TRY(kiln_copy_to_device(s->device, p->da, p->a, bytes));
    SAMPLE_TRY(kiln_copy_to_device(s->device, p->db, p->b, bytes));
    SAMPLE_TRY(run_library(stream, p));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s->device, p->d, p->dd, bytes));
    copied[i] = sample_now_ms() - from;
  }
  printf(
      "kiln_gemm on the host's clock: the launch %.1f us, until the result is "
      "there %.1f us, with all copies %.1f us\n",
      1e3 * sample_median(launched, repeats),
      1e3 * sample_median(there, repeats),
      1e3 * sample_median(copied, repeats));
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.builtin = "ladder/matmul"};
  kiln_stream *stream;
  kiln_module *module;
  double bound, cpu_ms;
  bool good = true;
  product p = {0};
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  p.n = s.few ? CPU_SIZE : GPU_SIZE;
  make(&s, &p);
  cpu_ms = reference(&p);
  bound = (p.n + 4) * 0x1p-24;
  printf("product of two %u x %u matrices; the host's loops: %.1f us\n", p.n,
         p.n, 1e3 * cpu_ms);
  for (size_t i = 0; i < N_RUNGS; i++) {
    p.rung = &rungs[i];
    SAMPLE_TRY(kiln_module_kernel(&p.kernel, module, rungs[i].kernel));
    good = show(&s, stream, &p, rungs[i].what, run_rung, bound) && good;
  }
  p.precision = KILN_GEMM_TF32;
  good = show(&s, stream, &p, "kiln_gemm, tf32", run_library, 0x1p-9) && good;
  p.precision = KILN_GEMM_F32;
  good = show(&s, stream, &p, "kiln_gemm, f32 by splitting", run_library,
              2 * bound + 0x1p-22) &&
         good;
  p.precision = KILN_GEMM_IEEE;
  good = show(&s, stream, &p, "kiln_gemm", run_library, bound) && good;
  show_times(&s, stream, &p);
  discard(&s, &p);
  kiln_stream_free(stream);
  kiln_module_free(module);
  return sample_end(&s, good);
}
