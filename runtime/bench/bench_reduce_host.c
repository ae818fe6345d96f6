/* bench_reduce_host.c -- the input of `kiln bench reduce`, and sums on the
 * CPU. */
#include "bench/bench_reduce.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, SPAN = 4096 };

typedef struct chunk {
  float *x;
  const float *from;
  uint64_t first, n; /* index of the first element, and number of elements */
  uint64_t seed;
  double sum;
} chunk;

typedef void *(*chunk_fn)(void *);

static void *fill_chunk(void *argument)
{
  const chunk *p = argument;
  float *x = p->x + p->first;
  uint64_t state = p->seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;

  for (uint64_t i = 0; i < p->n; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    x[i] = 24.0f + 36.0f * ((float)(state >> 41) * 0x1p-23f);
  }
  return NULL;
}

static void *f64_chunk(void *argument)
{
  chunk *p = argument;
  const float *from = p->from + p->first;

  for (uint64_t i = 0; i < p->n; i += SPAN) {
    const uint64_t end = p->n - i < SPAN ? p->n : i + SPAN;
    double lane[4] = {0};
    uint64_t k = i;

    for (; k + 4 <= end; k += 4)
      for (unsigned e = 0; e < 4; e++)
        lane[e] += (double)from[k + e];
    for (; k < end; k++)
      lane[0] += (double)from[k];
    p->sum += lane[0] + lane[1] + (lane[2] + lane[3]);
  }
  return NULL;
}

typedef float four __attribute__((vector_size(16)));

static inline four load_four(const float *x)
{
  four v;

  memcpy(&v, x, sizeof v);
  return v;
}

/* Adds the floats of a chunk. Eight independent vectors of sums hide the
 * latency of the additions. The sum of each span is added to a double, so that
 * the float sums stay accurate. */
static void *f32_chunk(void *argument)
{
  chunk *p = argument;
  const float *from = p->from + p->first;
  uint64_t i = 0;

  for (; i + SPAN <= p->n; i += SPAN) {
    const float *x = from + i;
    four a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    float lane[4];

    for (unsigned k = 0; k < SPAN; k += 32) {
      a += load_four(x + k);
      b += load_four(x + k + 4);
      c += load_four(x + k + 8);
      d += load_four(x + k + 12);
      e += load_four(x + k + 16);
      f += load_four(x + k + 20);
      g += load_four(x + k + 24);
      h += load_four(x + k + 28);
    }
    a = ((a + b) + (c + d)) + ((e + f) + (g + h));
    memcpy(lane, &a, sizeof lane);
    p->sum +=
        (double)lane[0] + (double)lane[1] + (double)lane[2] + (double)lane[3];
  }
  for (; i < p->n; i++)
    p->sum += (double)from[i];
  return NULL;
}

/* Runs `fn` on chunks of equal size, one per thread. If a thread cannot be
 * created, the calling thread processes the chunk. */
static double on_threads(chunk_fn fn, float *x, const float *from, uint64_t n,
                         unsigned threads)
{
  static const uint64_t unit = SPAN;
  chunk chunks[MAX_THREADS] = {0};
  pthread_t ids[MAX_THREADS];
  bool running[MAX_THREADS] = {false};
  uint64_t each, at = 0;
  double sum = 0;

  if (threads < 1)
    threads = 1;
  if (threads > MAX_THREADS)
    threads = MAX_THREADS;
  each = (n / threads + unit - 1) / unit * unit + unit;
  for (unsigned t = 0; t < threads; t++) {
    const uint64_t here = n - at < each ? n - at : each;

    chunks[t] =
        (chunk){.x = x, .from = from, .first = at, .n = here, .seed = t + 1};
    at += here;
    if (t + 1 < threads)
      running[t] = pthread_create(&ids[t], NULL, fn, &chunks[t]) == 0;
    if (!running[t])
      fn(&chunks[t]);
  }
  for (unsigned t = 0; t < threads; t++) {
    if (running[t])
      pthread_join(ids[t], NULL);
    sum += chunks[t].sum;
  }
  return sum;
}

void kiln__bench_input(float *x, uint64_t n, unsigned threads)
{
  on_threads(fill_chunk, x, NULL, n, threads);
}

double kiln__bench_sum_f64(const float *x, uint64_t n, unsigned threads)
{
  return on_threads(f64_chunk, NULL, x, n, threads);
}

double kiln__bench_sum_f32(const float *x, uint64_t n, unsigned threads)
{
  return on_threads(f32_chunk, NULL, x, n, threads);
}

float kiln__bench_sum_naive(const float *x, uint64_t n)
{
  float sum = 0;

  for (uint64_t i = 0; i < n; i++)
    sum += x[i];
  return sum;
}

double kiln__bench_cpu_ms(const float *x, uint64_t n, unsigned threads,
                          unsigned repeats)
{
  double ms[BENCH_MOST_REPEATS] = {0};
  volatile double keep; /* keeps the compiler from removing the sum */

  if (repeats > BENCH_MOST_REPEATS)
    repeats = BENCH_MOST_REPEATS;
  keep = kiln__bench_sum_f32(x, n, threads);
  for (unsigned i = 0; i < repeats; i++) {
    const double begin = kiln__cli_now_ns();

    keep = kiln__bench_sum_f32(x, n, threads);
    ms[i] = (kiln__cli_now_ns() - begin) / 1e6;
  }
  (void)keep;
  return kiln__cli_median(ms, repeats);
}
