/* map_expression.c -- compiles the user's expression to a kernel (row C2 of the
 * lectures). The expression may use functions, constants and parameters. There
 * may be several inputs and outputs of any types, and memory is read and
 * written only once. */
#include "sample.h"

#include <math.h>

enum { N = 100000 };

typedef struct arrays {
  float *x;
  uint8_t *mask;
  CUdeviceptr dx, dmask, one, y, rounded;
} arrays;

static void arrays_open(const sample *s, arrays *a)
{
  a->x = sample_alloc(N * sizeof(float));
  a->mask = sample_alloc(N);
  for (int i = 0; i < N; i++) {
    a->x[i] = (float)i / 1000 - 50;
    a->mask[i] = i % 3 != 0;
  }
  SAMPLE_TRY(kiln_memory_alloc(&a->dx, s->device, N * sizeof(float)));
  SAMPLE_TRY(kiln_memory_alloc(&a->dmask, s->device, N));
  SAMPLE_TRY(kiln_memory_alloc(&a->one, s->device, N * sizeof(float)));
  SAMPLE_TRY(kiln_memory_alloc(&a->y, s->device, N * sizeof(double)));
  SAMPLE_TRY(kiln_memory_alloc(&a->rounded, s->device, N * sizeof(int16_t)));
  SAMPLE_TRY(kiln_copy_to_device(s->device, a->dx, a->x, N * sizeof(float)));
  SAMPLE_TRY(kiln_copy_to_device(s->device, a->dmask, a->mask, N));
}

static void arrays_close(const sample *s, arrays *a)
{
  SAMPLE_TRY(kiln_memory_free(s->device, a->dx));
  SAMPLE_TRY(kiln_memory_free(s->device, a->dmask));
  SAMPLE_TRY(kiln_memory_free(s->device, a->one));
  SAMPLE_TRY(kiln_memory_free(s->device, a->y));
  SAMPLE_TRY(kiln_memory_free(s->device, a->rounded));
  free(a->x);
  free(a->mask);
}

/* Computes sin(x)^2 + cos(x)^2, which must be 1 except for rounding. */
static bool one(const sample *s, kiln_stream *stream, const arrays *a)
{
  const kiln_map_desc desc = {.in = {{a->dx, KILN_F32}},
                              .out = {{a->one, KILN_F32}},
                              .expr = {"sinf(x) * sinf(x) + cosf(x) * cosf(x)"},
                              .n = N};
  float *got = sample_alloc(N * sizeof *got);
  double furthest = 0;

  SAMPLE_OP(kiln_map(stream, &desc, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, a->one, N * sizeof *got));
  for (int i = 0; i < N; i++)
    furthest = fmax(furthest, fabs((double)got[i] - 1));
  printf("sin(x)^2 + cos(x)^2   furthest from 1: %.1e\n", furthest);
  free(got);
  return furthest < 1e-6;
}

/* Maps two inputs to two outputs with four different types. The expression uses
 * a function of the user, a constant that is compiled in, and a parameter that
 * may change between calls. */
static bool mixed(const sample *s, kiln_stream *stream, const arrays *a)
{
  const float scale = 0.5f;
  double *y = sample_alloc(N * sizeof *y);
  int16_t *rounded = sample_alloc(N * sizeof *rounded);
  bool good = true;

  for (int call = 0; call < 3; call++) {
    const double offset = 10.0 * call;
    const kiln_param params[] = {{"scale", KILN_F32, &scale, true},
                                 {"offset", KILN_F64, &offset, false}};
    const kiln_map_desc desc = {
        .in = {{a->dx, KILN_F32}, {a->dmask, KILN_U8}},
        .out = {{a->y, KILN_F64}, {a->rounded, KILN_I16}},
        .expr = {"y ? cube(scale * x) + offset : -1.0",
                 "floorf(x) + (i < 10 ? 100 : 0)"},
        .n = N,
        .code = {.preamble =
                     "__device__ double cube(double v) { return v * v * v; }",
                 .params = params,
                 .n_params = 2}};

    SAMPLE_OP(kiln_map(stream, &desc, NULL));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s->device, y, a->y, N * sizeof *y));
    SAMPLE_TRY(
        kiln_copy_to_host(s->device, rounded, a->rounded, N * sizeof *rounded));
    for (int i = 0; i < N; i++) {
      const double half = (double)(0.5f * a->x[i]);
      const double want = a->mask[i] ? half * half * half + offset : -1;

      good = good && fabs(y[i] - want) <= 1e-12 * (1 + fabs(want)) &&
             rounded[i] == (int)floor((double)a->x[i]) + (i < 10 ? 100 : 0);
    }
    printf("offset %2.0f   y[%d] = %.3f, rounded[%d] = %d\n", offset, N - 2,
           y[N - 2], N - 2, rounded[N - 2]);
  }
  free(y);
  free(rounded);
  return good;
}

/* Passes an expression with a syntax error. The error message must quote the
 * expression. */
static bool wrong(kiln_stream *stream, const arrays *a)
{
  const kiln_map_desc desc = {.in = {{a->dx, KILN_F32}},
                              .out = {{a->one, KILN_F32}},
                              .expr = {"x + sqrtf(x * x"},
                              .n = N};
  const kiln_status st = kiln_map(stream, &desc, NULL);

  printf("\"%s\" gives %s:\n%s", desc.expr[0], kiln_status_name(st),
         kiln_last_error()->log);
  return st == KILN_ECOMPILE;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  arrays a;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  arrays_open(&s, &a);
  good = one(&s, stream, &a);
  good = mixed(&s, stream, &a) && good;
  good = wrong(stream, &a) && good;
  arrays_close(&s, &a);
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
