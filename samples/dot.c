/* dot.c -- dot product (row D4 of the lectures). The sample compares the
 * lecture's kernel with one library call. The lecture's kernel keeps the
 * products in shared memory, adds them in a tree, and executes one atomic
 * addition per block.
 *
 *   kiln_dot_desc dot = {.x = {x, KILN_F32}, .y = {y, KILN_F32}, .n = n,
 *                        .out = {out, KILN_F32}};
 *   kiln_dot(stream, &dot, NULL);
 *
 * Both results are compared with a sum in double precision. Two calls of the
 * library must give the same bits. */
#include "sample.h"

#include <math.h>

enum { REPEATS = 9, GPU_BITS = 24, CPU_BITS = 20, BLOCK = 256 };

typedef struct vectors {
  size_t n;
  float *x, *y;
  /* The dot product, and the dot product of the absolute values. */
  double want, size;
  CUdeviceptr dx, dy, out;
  kiln_kernel *ladder;
} vectors;

static float uniform(uint64_t *r)
{
  *r = *r * 6364136223846793005u + 1442695040888963407u;
  return (float)(*r >> 40) * 0x1p-24f - 0.25f;
}

static void make(sample *s, vectors *v)
{
  uint64_t r = 1;

  v->n = (size_t)1 << (s->few ? CPU_BITS : GPU_BITS);
  v->x = sample_alloc(4 * v->n);
  v->y = sample_alloc(4 * v->n);
  v->want = v->size = 0;
  for (size_t i = 0; i < v->n; i++) {
    v->x[i] = uniform(&r);
    v->y[i] = uniform(&r);
    v->want += (double)v->x[i] * (double)v->y[i];
    v->size += fabs((double)v->x[i] * (double)v->y[i]);
  }
  SAMPLE_TRY(kiln_memory_alloc(&v->dx, s->device, 4 * v->n));
  SAMPLE_TRY(kiln_memory_alloc(&v->dy, s->device, 4 * v->n));
  SAMPLE_TRY(kiln_memory_alloc(&v->out, s->device, 4));
  SAMPLE_TRY(kiln_copy_to_device(s->device, v->dx, v->x, 4 * v->n));
  SAMPLE_TRY(kiln_copy_to_device(s->device, v->dy, v->y, 4 * v->n));
}

static kiln_status run_ladder(kiln_stream *stream, const void *desc)
{
  const vectors *v = desc;
  kiln_launch_config config = kiln_launch_1d(v->n, BLOCK);
  const uint32_t n = (uint32_t)v->n;
  const kiln_status st = kiln_fill_async(stream, v->out, 0, 4, 1);

  config.stream = stream;
  return st != KILN_OK
             ? st
             : KILN_LAUNCH(v->ladder, &config, KILN_ARG(v->dx), KILN_ARG(v->dy),
                           KILN_ARG(n), KILN_ARG(v->out));
}

static kiln_status run_library(kiln_stream *stream, const void *desc)
{
  const vectors *v = desc;
  const kiln_dot_desc dot = {.x = {v->dx, KILN_F32},
                             .y = {v->dy, KILN_F32},
                             .n = v->n,
                             .out = {v->out, KILN_F32}};

  return kiln_dot(stream, &dot, NULL);
}

/* Runs and times a dot product and prints the result. `rounding` is the allowed
 * error, relative to the sum of the absolute products. */
static bool show(sample *s, kiln_stream *stream, const vectors *v,
                 const char *name, sample_op_fn run, double rounding,
                 float *result)
{
  const double ms = sample_op_ms(stream, run, v, s->few ? 1 : REPEATS);
  bool good;

  SAMPLE_TRY(kiln_copy_to_host(s->device, result, v->out, 4));
  good = fabs((double)*result - v->want) <= rounding * v->size;
  printf("  %-28s %10.4f ms %8.1f GB/s  %.7g%s\n", name, ms,
         8 * (double)v->n / ms / 1e6, (double)*result, good ? "" : "  WRONG");
  return good;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.builtin = "ladder/dot"};
  kiln_module *module;
  kiln_stream *stream;
  float lecture, library, again;
  vectors v;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&v.ladder, module, "dot"));
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  make(&s, &v);
  printf("dot product of 2 x %zu floats; float64: %.10g\n", v.n, v.want);
  /* The atomic addition of each block rounds the sum once more, and the order
   * of the blocks is not defined. */
  good = show(&s, stream, &v, "tree and one atomic a block", run_ladder,
              (double)v.n / BLOCK * 0x1p-25, &lecture);
  good = show(&s, stream, &v, "kiln_dot", run_library, 1e-6, &library) && good;
  good = show(&s, stream, &v, "kiln_dot, again", run_library, 1e-6, &again) &&
         good;
  /* Two calls of kiln_dot() must give the same bits. */
  good = good && library <= again && library >= again;
  SAMPLE_TRY(kiln_memory_free(s.device, v.dx));
  SAMPLE_TRY(kiln_memory_free(s.device, v.dy));
  SAMPLE_TRY(kiln_memory_free(s.device, v.out));
  free(v.x);
  free(v.y);
  kiln_stream_free(stream);
  kiln_module_free(module);
  return sample_end(&s, good);
}
