/* julia.c -- the Julia set of z -> z^2 + c (row C4 of the lectures) as one map over
 * the rows and columns of a picture.
 *
 * The expression counts the iterations until |z| >= 2, at most 255. It uses fused
 * multiply-adds, each rounded once, so that the host computes the same bits. The
 * sample prints the times of the GPU without and with the copy of the picture, and
 * of one and all cores of the host, and writes the picture as julia.png. */
#include "picture.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { SIDE = 1000, FEW_SIDE = 240, REPEATS = 15, MOST_CORES = 64 };

static const float cx = -0.79f, cy = 0.15f;

static const char steps[] =
    "__device__ unsigned steps(float x, float y, float cx, float cy)\n"
    "{\n"
    "  unsigned i = 0;\n"
    "  for (; i < 255; i++) {\n"
    "    const float yy = y * y, next = fmaf(x, x, fmaf(-y, y, cx));\n"
    "    if (!(fmaf(x, x, yy) < 4.0f))\n"
    "      break;\n"
    "    y = fmaf(x + x, y, cy);\n"
    "    x = next;\n"
    "  }\n"
    "  return i;\n"
    "}\n";

/* ---- On the device ------------------------------------------------------- */

typedef struct picture {
  uint64_t side;
  float scale;
  CUdeviceptr out;
} picture;

static kiln_status draw(kiln_stream *stream, const void *desc)
{
  const picture *p = desc;
  const float half = 0.5f * (float)p->side;
  const kiln_param params[] = {{"scale", KILN_F32, &p->scale, false},
                               {"half", KILN_F32, &half, false},
                               {"cx", KILN_F32, &cx, false},
                               {"cy", KILN_F32, &cy, false}};
  const kiln_map_desc d = {
      .out = {{p->out, KILN_U8}},
      .expr = {"steps((column - half) * scale, (row - half) * scale, cx, cy)"},
      .n = p->side * p->side,
      .code = {.preamble = steps, .params = params, .n_params = 4},
      .width = p->side};

  return kiln_map(stream, &d, NULL);
}

/* Returns the median time of drawing the picture and copying it to the host. */
static double draw_and_copy(const sample *s, kiln_stream *stream,
                            const picture *p, uint8_t *pixels)
{
  double ms[REPEATS];
  const size_t n = s->few ? 1 : REPEATS;

  for (size_t k = 0; k < n; k++) {
    const double began = sample_now_ms();

    SAMPLE_TRY(draw(stream, p));
    SAMPLE_TRY(kiln_stream_synchronize(stream));
    SAMPLE_TRY(kiln_copy_to_host(s->device, pixels, p->out, p->side * p->side));
    ms[k] = sample_now_ms() - began;
  }
  return sample_median(ms, n);
}

/* ---- On the host --------------------------------------------------------- */

/* A share of the rows: every `stride`-th row from `first` on, since rows take
 * different times. */
typedef struct share {
  uint64_t side, first, stride;
  float scale;
  uint8_t *pixels;
} share;

static uint8_t host_steps(float x, float y)
{
  unsigned i = 0;

  for (; i < 255; i++) {
    const float yy = y * y, next = fmaf(x, x, fmaf(-y, y, cx));

    if (!(fmaf(x, x, yy) < 4.0f))
      break;
    y = fmaf(x + x, y, cy);
    x = next;
  }
  return (uint8_t)i;
}

/* Draws the rows of a share. Processors of the x86-64 family with and without
 * multiply-add instructions get a version each. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
__attribute__((target_clones("fma", "default"), flatten))
#endif
static void *
draw_share(void *arg)
{
  const share *s = arg;
  const float half = 0.5f * (float)s->side;

  for (uint64_t y = s->first; y < s->side; y += s->stride)
    for (uint64_t x = 0; x < s->side; x++)
      s->pixels[y * s->side + x] = host_steps(((float)x - half) * s->scale,
                                              ((float)y - half) * s->scale);
  return NULL;
}

/* Draws the picture on some cores of the host. Returns the time in ms. */
static double draw_on_host(const picture *p, uint8_t *pixels, size_t cores)
{
  const double began = sample_now_ms();
  pthread_t thread[MOST_CORES];
  bool running[MOST_CORES];
  share all[MOST_CORES];

  for (size_t k = 0; k < cores; k++) {
    all[k] = (share){p->side, k, cores, p->scale, pixels};
    running[k] =
        k > 0 && pthread_create(&thread[k], NULL, draw_share, &all[k]) == 0;
    if (k > 0 && !running[k])
      draw_share(&all[k]);
  }
  draw_share(&all[0]);
  for (size_t k = 1; k < cores; k++)
    if (running[k])
      pthread_join(thread[k], NULL);
  return sample_now_ms() - began;
}

static size_t core_count(void)
{
  const long n = sysconf(_SC_NPROCESSORS_ONLN);

  return n < 1 ? 1 : n > MOST_CORES ? MOST_CORES : (size_t)n;
}

/* ---- The picture --------------------------------------------------------- */

/* Prints a small view of the picture: each character stands for the mean of a
 * rectangle. */
static void print_picture(const uint8_t *pixels, uint64_t side)
{
  enum { COLUMNS = 60, ROWS = 24 };
  static const char shade[] = " .:-=+*#%@";

  for (unsigned r = ROWS / 4; r < ROWS - ROWS / 4; r++) {
    printf("  ");
    for (unsigned c = 0; c < COLUMNS; c++) {
      const uint64_t y0 = r * side / ROWS, y1 = (r + 1) * side / ROWS;
      const uint64_t x0 = c * side / COLUMNS, x1 = (c + 1) * side / COLUMNS;
      uint64_t sum = 0;

      for (uint64_t y = y0; y < y1; y++)
        for (uint64_t x = x0; x < x1; x++)
          sum += pixels[y * side + x];
      putchar(shade[sum * 9 / (255 * (y1 - y0) * (x1 - x0))]);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  uint8_t *pixels, *want;
  double ms, with_copy;
  bool good;
  picture p;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  p.side = s.few ? FEW_SIDE : SIDE;
  p.scale = 3.0f / (float)p.side;
  pixels = sample_alloc(p.side * p.side);
  want = sample_alloc(p.side * p.side);
  SAMPLE_TRY(kiln_memory_alloc(&p.out, s.device, p.side * p.side));

  ms = sample_op_ms(stream, draw, &p, s.few ? 1 : REPEATS);
  with_copy = draw_and_copy(&s, stream, &p, pixels);
  printf("Julia set of %.2f + %.2fi, %llu x %llu pixels\n", (double)cx,
         (double)cy, (unsigned long long)p.side, (unsigned long long)p.side);
  printf("  device, kernel alone       %9.3f ms\n", ms);
  printf("  device, with the copy      %9.3f ms\n", with_copy);
  printf("  host, one core             %9.3f ms\n", draw_on_host(&p, want, 1));
  printf("  host, %2zu cores             %9.3f ms\n", core_count(),
         draw_on_host(&p, want, core_count()));
  good = memcmp(pixels, want, p.side * p.side) == 0;
  print_picture(pixels, p.side);
  good = picture_write("julia", pixels, (unsigned)p.side, (unsigned)p.side) &&
         good;

  SAMPLE_TRY(kiln_memory_free(s.device, p.out));
  free(pixels);
  free(want);
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
