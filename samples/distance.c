/* distance.c -- the distance of two vectors, sqrt(sum((x - y)^2)), computed as
 * separate steps and as one fused map and reduction (row C3 of the lectures).
 *
 * Separate steps write an intermediate vector and read it again, so 24 bytes
 * per element are moved. The fused version reads each input once, which is 8
 * bytes per element. The CPU device counts the bytes that are moved, in sectors
 * of 32 bytes. */
#include "sample.h"

#include <math.h>

enum { REPEATS = 9, GPU_BITS = 24, CPU_BITS = 18, SECTOR = 32 };

typedef struct vectors {
  size_t n;
  CUdeviceptr x, y, d, out;
  double want;
} vectors;

static void make(const sample *s, vectors *v)
{
  float *x, *y;
  uint64_t r = 1;

  v->n = (size_t)1 << (s->few ? CPU_BITS : GPU_BITS);
  x = sample_alloc(4 * v->n);
  y = sample_alloc(4 * v->n);
  v->want = 0;
  for (size_t i = 0; i < v->n; i++) {
    r = r * 6364136223846793005u + 1442695040888963407u;
    x[i] = (float)(r >> 40) * 0x1p-24f;
    y[i] = (float)(r >> 16 & 0xffffff) * 0x1p-24f;
    v->want += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
  }
  v->want = sqrt(v->want);
  SAMPLE_TRY(kiln_memory_alloc(&v->x, s->device, 4 * v->n));
  SAMPLE_TRY(kiln_memory_alloc(&v->y, s->device, 4 * v->n));
  SAMPLE_TRY(kiln_memory_alloc(&v->d, s->device, 4 * v->n));
  SAMPLE_TRY(kiln_memory_alloc(&v->out, s->device, 4));
  SAMPLE_TRY(kiln_copy_to_device(s->device, v->x, x, 4 * v->n));
  SAMPLE_TRY(kiln_copy_to_device(s->device, v->y, y, 4 * v->n));
  free(x);
  free(y);
}

static void drop(const sample *s, const vectors *v)
{
  SAMPLE_TRY(kiln_memory_free(s->device, v->x));
  SAMPLE_TRY(kiln_memory_free(s->device, v->y));
  SAMPLE_TRY(kiln_memory_free(s->device, v->d));
  SAMPLE_TRY(kiln_memory_free(s->device, v->out));
}

/* Computes the distance in four calls: d = x - y, d = d^2, out = sum(d), out =
 * sqrt(out). */
static kiln_status separate(kiln_stream *stream, const void *desc)
{
  const vectors *v = desc;
  const kiln_array d = {v->d, KILN_F32}, out = {v->out, KILN_F32};
  const kiln_map_desc difference = {.in = {{v->x, KILN_F32}, {v->y, KILN_F32}},
                                    .out = {d},
                                    .expr = {"x - y"},
                                    .n = v->n};
  const kiln_map_desc square = {
      .in = {d}, .out = {d}, .expr = {"x * x"}, .n = v->n};
  const kiln_reduce_desc sum = {.x = {.in = {d}}, .n = v->n, .out = out};
  const kiln_map_desc root = {
      .in = {out}, .out = {out}, .expr = {"sqrtf(x)"}, .n = 1};
  kiln_status st = kiln_map(stream, &difference, NULL);

  if (st == KILN_OK)
    st = kiln_map(stream, &square, NULL);
  if (st == KILN_OK)
    st = kiln_reduce(stream, &sum, NULL);
  return st == KILN_OK ? kiln_map(stream, &root, NULL) : st;
}

static kiln_status fused(kiln_stream *stream, const void *desc)
{
  const vectors *v = desc;
  const kiln_distance_desc distance = {.x = {v->x, KILN_F32},
                                       .y = {v->y, KILN_F32},
                                       .n = v->n,
                                       .out = {v->out, KILN_F32}};

  return kiln_distance(stream, &distance, NULL);
}

static bool is_right(const sample *s, const vectors *v)
{
  float got;

  SAMPLE_TRY(kiln_copy_to_host(s->device, &got, v->out, 4));
  return fabs((double)got - v->want) <= 1e-5 * v->want;
}

static void add_sectors(void *user, const kiln_cpu_counters *k)
{
  *(uint64_t *)user += k->global_load_sectors + k->global_store_sectors;
}

/* Returns the number of bytes per element that an operation moves, as counted
 * on the CPU device. */
static double count(const sample *s, sample_op_fn op, bool *good)
{
  /* All members are zero if the sample runs on a GPU. */
  kiln_cpu_opts settings = s->cpu;
  kiln_stream *stream;
  uint64_t sectors = 0;
  sample cpu;
  vectors v;

  settings.counters = true;
  sample_cpu(&cpu, s, &settings);
  SAMPLE_TRY(kiln_stream_create(&stream, cpu.device, NULL));
  make(&cpu, &v);
  SAMPLE_TRY(kiln_cpu_reset_counters());
  SAMPLE_TRY(op(stream, &v));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  *good = is_right(&cpu, &v) && *good;
  SAMPLE_TRY(kiln_cpu_each_counters(add_sectors, NULL, &sectors));
  drop(&cpu, &v);
  kiln_stream_free(stream);
  sample_close(&cpu);
  return (double)sectors * SECTOR / (double)v.n;
}

static double show(const sample *s, kiln_stream *stream, const vectors *v,
                   const char *name, sample_op_fn op, bool *good)
{
  const double ms = sample_op_ms(stream, op, v, s->few ? 1 : REPEATS);
  double bytes;

  *good = is_right(s, v) && *good;
  bytes = count(s, op, good);
  printf("  %-16s %10.4f ms %10.2f\n", name, ms, bytes);
  return bytes;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  double apart, together;
  bool good = true;
  vectors v;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  make(&s, &v);
  printf("distance of two vectors of %zu floats      bytes per element\n", v.n);
  apart = show(&s, stream, &v, "separate steps", separate, &good);
  together = show(&s, stream, &v, "one map-reduce", fused, &good);
  good = good && together < 8.5 && apart > 2.9 * together;
  drop(&s, &v);
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
