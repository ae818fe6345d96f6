/* statistics.c -- mean and variance, norm, and the positions of the extremes,
 * each in one pass over memory (rows B10 and C2 of the lectures).
 *
 * The values have a mean of 10,000 and a standard deviation of 0.29. For
 * comparison the sample also evaluates the textbook formula E(x^2) - E(x)^2 in
 * float, which loses all significant digits of the variance. */
#include "sample.h"

#include <math.h>

enum { GPU_BITS = 24, CPU_BITS = 18, REPEATS = 9 };

typedef struct data {
  size_t n;
  CUdeviceptr x, out; /* `out` holds 4 doubles */
} data;

static kiln_status moments(kiln_stream *stream, const void *desc)
{
  const data *d = desc;
  const kiln_mean_variance_desc m = {.x = {.in = {{d->x, KILN_F32}}},
                                     .n = d->n,
                                     .mean = {d->out, KILN_F64},
                                     .variance = {d->out + 8, KILN_F64},
                                     .correction = 1};

  return kiln_mean_variance(stream, &m, NULL);
}

static kiln_status naive_square(kiln_stream *stream, const void *desc)
{
  const data *d = desc;
  const kiln_reduce_desc m = {.x = {.in = {{d->x, KILN_F32}}, .map = "x * x"},
                              .n = d->n,
                              .out = {d->out + 16, KILN_F32}};

  return kiln_reduce(stream, &m, NULL);
}

static kiln_status naive_sum(kiln_stream *stream, const void *desc)
{
  const data *d = desc;
  const kiln_reduce_desc m = {.x = {.in = {{d->x, KILN_F32}}},
                              .n = d->n,
                              .out = {d->out + 20, KILN_F32}};

  return kiln_reduce(stream, &m, NULL);
}

static kiln_status norm(kiln_stream *stream, const void *desc)
{
  const data *d = desc;
  const kiln_norm_desc m = {
      .x = {.in = {{d->x, KILN_F32}}}, .n = d->n, .out = {d->out, KILN_F64}};

  return kiln_norm(stream, &m, NULL);
}

static kiln_status greatest(kiln_stream *stream, const void *desc)
{
  const data *d = desc;
  const kiln_arg_reduce_desc m = {.x = {.in = {{d->x, KILN_F32}}},
                                  .n = d->n,
                                  .op = KILN_MAX,
                                  .value = {d->out, KILN_F32},
                                  .index = {d->out + 8, KILN_U64}};

  return kiln_arg_reduce(stream, &m, NULL);
}

/* The results that the host computes in double precision. */
typedef struct truth {
  double mean, variance, norm;
  uint64_t greatest;
} truth;

static truth fill(float *x, size_t n)
{
  truth t = {0};
  uint64_t r = 1;

  for (size_t i = 0; i < n; i++) {
    r = r * 6364136223846793005u + 1442695040888963407u;
    x[i] = 9999.5f + (float)(r >> 40) * 0x1p-24f;
    t.mean += (double)x[i] - 10000;
    t.norm += (double)x[i] * (double)x[i];
    if (x[i] > x[t.greatest])
      t.greatest = i;
  }
  t.mean = 10000 + t.mean / (double)n;
  t.norm = sqrt(t.norm);
  for (size_t i = 0; i < n; i++)
    t.variance += ((double)x[i] - t.mean) * ((double)x[i] - t.mean);
  t.variance /= (double)n - 1;
  return t;
}

static double timed(const sample *s, kiln_stream *stream, sample_op_fn op,
                    const data *d, void *out)
{
  const double ms = sample_op_ms(stream, op, d, s->few ? 1 : REPEATS);

  SAMPLE_TRY(kiln_copy_to_host(s->device, out, d->out, 32));
  return ms;
}

static bool near(double got, double want)
{
  return fabs(got - want) <= 1e-9 * fabs(want);
}

static bool show(const sample *s, kiln_stream *stream, const data *d,
                 const truth *t)
{
  const double n = (double)d->n;
  double got[4], ms;
  uint64_t place;
  float sums[8];
  bool good;

  ms = timed(s, stream, moments, d, got);
  printf("  mean %.8f, variance %.10f   %9.4f ms\n", got[0], got[1], ms);
  good = near(got[0], t->mean) && near(got[1], t->variance);

  timed(s, stream, naive_square, d, sums);
  timed(s, stream, naive_sum, d, sums);
  printf(
      "  E(x^2) - E(x)^2 in float: %.10f\n",
      (double)(sums[4] / (float)n - sums[5] / (float)n * (sums[5] / (float)n)));

  ms = timed(s, stream, norm, d, got);
  printf("  norm %.6f   %9.4f ms\n", got[0], ms);
  good = near(got[0], t->norm) && good;

  ms = timed(s, stream, greatest, d, got);
  memcpy(&place, &got[1], sizeof place);
  printf("  greatest: element %llu   %9.4f ms\n", (unsigned long long)place,
         ms);
  return place == t->greatest && good;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  bool good;
  float *x;
  sample s;
  truth t;
  data d;

  sample_open(&s, argc, argv);
  d.n = (size_t)1 << (s.few ? CPU_BITS : GPU_BITS);
  x = sample_alloc(4 * d.n);
  t = fill(x, d.n);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&d.x, s.device, 4 * d.n));
  SAMPLE_TRY(kiln_memory_alloc(&d.out, s.device, 32));
  SAMPLE_TRY(kiln_fill(s.device, d.out, 0, 4, 8));
  SAMPLE_TRY(kiln_copy_to_device(s.device, d.x, x, 4 * d.n));
  printf("%zu floats; float64 on the host: mean %.8f, variance %.10f\n", d.n,
         t.mean, t.variance);
  good = show(&s, stream, &d, &t);
  SAMPLE_TRY(kiln_memory_free(s.device, d.x));
  SAMPLE_TRY(kiln_memory_free(s.device, d.out));
  kiln_stream_free(stream);
  free(x);
  return sample_end(&s, good);
}
