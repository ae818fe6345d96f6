/* relax.c -- the lecture's example of a map (row B8 of the lectures): the mean
 * of the four neighbours, and the squared difference to that mean, as one map
 * with two outputs. In the user's expression, x_at(j) is element j of the same
 * array. The expression keeps the values at the border unchanged. With every
 * step the heat of one hot edge spreads, and the differences become smaller. */
#include "sample.h"

enum { NX = 128, NY = 96, N = NX * NY, STEPS = 20 };

#define INSIDE "i % nx > 0 && i % nx < nx - 1 && i >= nx && i < nx * ny - nx"
#define MEAN                                                                   \
  "(0.25f * (x_at(i - 1) + x_at(i + 1) + x_at(i + nx) + x_at(i - nx)))"

static void relax(kiln_stream *stream, CUdeviceptr value,
                  CUdeviceptr neighbours, CUdeviceptr diff)
{
  static const uint64_t nx = NX, ny = NY;
  static const kiln_param params[] = {{"nx", KILN_U64, &nx, true},
                                      {"ny", KILN_U64, &ny, true}};
  const kiln_map_desc step = {.in = {{value, KILN_F32}},
                              .out = {{neighbours, KILN_F32}, {diff, KILN_F32}},
                              .expr = {INSIDE " ? " MEAN " : x",
                                       INSIDE " ? (x - " MEAN ") * (x - " MEAN
                                              ") : 0"},
                              .n = N,
                              .code = {.params = params, .n_params = 2}};

  SAMPLE_OP(kiln_map(stream, &step, NULL));
}

static void relax_host(const float *value, float *neighbours, float *diff)
{
  for (int y = 0; y < NY; y++)
    for (int x = 0; x < NX; x++) {
      const int i = y * NX + x;
      const bool inside = x > 0 && x < NX - 1 && y > 0 && y < NY - 1;

      neighbours[i] = value[i];
      if (inside)
        neighbours[i] = 0.25f * (value[i - 1] + value[i + 1] + value[i + NX] +
                                 value[i - NX]);
      diff[i] = value[i] - neighbours[i];
      diff[i] *= diff[i];
    }
}

static double total(const float *v)
{
  double sum = 0;

  for (int i = 0; i < N; i++)
    sum += (double)v[i];
  return sum;
}

/* Returns true if the arrays are equal except for the last bits, which fused
 * multiply-adds may change. */
static bool near(const float *a, const float *b)
{
  for (int i = 0; i < N; i++) {
    const float d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];

    if (!(d <= 1e-4f))
      return false;
  }
  return true;
}

int main(int argc, char **argv)
{
  const size_t size = N * sizeof(float);
  float *host[2], *diff, *got, *got_diff;
  CUdeviceptr value[2], difference;
  kiln_stream *stream;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  for (int k = 0; k < 2; k++) {
    host[k] = sample_alloc(size);
    SAMPLE_TRY(kiln_memory_alloc(&value[k], s.device, size));
  }
  SAMPLE_TRY(kiln_memory_alloc(&difference, s.device, size));
  diff = sample_alloc(size);
  got = sample_alloc(size);
  got_diff = sample_alloc(size);
  for (int i = 0; i < N; i++)
    host[0][i] = i < NX ? 100 : 0; /* the first row is hot */
  SAMPLE_TRY(kiln_copy_to_device(s.device, value[0], host[0], size));

  printf("  step   sum of squared differences\n");
  for (int step = 0; step < STEPS; step++) {
    const int from = step % 2, to = 1 - from;

    relax(stream, value[from], value[to], difference);
    relax_host(host[from], host[to], diff);
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s.device, got, value[to], size));
    SAMPLE_TRY(kiln_copy_to_host(s.device, got_diff, difference, size));
    good = good && near(got, host[to]) && near(got_diff, diff);
    if (step % 4 == 0)
      printf("  %4d   %12.3f\n", step + 1, total(got_diff));
  }

  for (int k = 0; k < 2; k++) {
    free(host[k]);
    SAMPLE_TRY(kiln_memory_free(s.device, value[k]));
  }
  SAMPLE_TRY(kiln_memory_free(s.device, difference));
  free(diff);
  free(got);
  free(got_diff);
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
