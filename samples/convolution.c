/* convolution.c -- the three-point convolution (row D1 of the lectures), and a blur
 * of a picture.
 *
 * One kernel reads each element and its neighbours from global memory; another one
 * stages a tile and its halo in shared memory. Both are compiled for several types.
 * The library's kiln_stencil() does the same for any radius and border. The rates
 * count one read and one write per element, and are compared with those of a copy.
 * The sample also writes a picture before and after a separable Gaussian blur of
 * radius 8, and after a sharpening. */
#include "picture.h"

#include <math.h>

enum { GPU_BITS = 26, CPU_BITS = 14, REPEATS = 11, THREADS = 256 };
enum { SIDE = 512, FEW_SIDE = 128, BLUR = 8 };

static const char source[] =
    "extern \"C\" __global__ void from_global(ELEMENT *y, const ELEMENT *x,\n"
    "                                       unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = x[i > 0 ? i - 1 : 0] + 2 * x[i] + x[i + 1 < n ? i + 1 : i];\n"
    "}\n"
    "extern \"C\" __global__ void from_shared(ELEMENT *y, const ELEMENT *x,\n"
    "                                       unsigned n)\n"
    "{\n"
    "  __shared__ ELEMENT tile[THREADS + 2];\n"
    "  const unsigned t = threadIdx.x, i = blockIdx.x * THREADS + t;\n"
    "  const unsigned own = i < n ? i : n - 1;\n"
    "  tile[t + 1] = x[own];\n"
    "  if (t == 0)\n"
    "    tile[0] = x[own > 0 ? own - 1 : 0];\n"
    "  if (t == THREADS - 1)\n"
    "    tile[THREADS + 1] = x[own + 1 < n ? own + 1 : own];\n"
    "  __syncthreads();\n"
    "  if (i < n)\n"
    "    y[i] = tile[t] + 2 * tile[t + 1] + tile[t + 2];\n"
    "}\n";

/* ---- Three points -------------------------------------------------------- */

/* The types of the example, and functions that set and read an element. */
typedef struct element_type {
  const char *name, *define;
  kiln_dtype type;
} element_type;

static const element_type types[] = {
    {"float", "ELEMENT=float", KILN_F32},
    {"double", "ELEMENT=double", KILN_F64},
    {"int", "ELEMENT=int", KILN_I32},
    {"unsigned char", "ELEMENT=unsigned char", KILN_U8},
};

typedef struct line {
  uint64_t n;
  CUdeviceptr x, y;
  kiln_dtype type;
  kiln_kernel *kernel;
} line;

static kiln_status launch(kiln_stream *stream, const void *desc)
{
  const line *d = desc;
  const uint32_t n = (uint32_t)d->n;
  kiln_launch_config config = kiln_launch_1d(d->n, THREADS);

  config.stream = stream;
  return KILN_LAUNCH(d->kernel, &config, KILN_ARG(d->y), KILN_ARG(d->x),
                     KILN_ARG(n));
}

static kiln_status stencil(kiln_stream *stream, const void *desc)
{
  static const double weights[] = {1, 2, 1};
  const line *d = desc;
  const kiln_stencil_desc s = {.in = {d->x, d->type},
                               .out = {d->y, d->type},
                               .dims = 1,
                               .size = {d->n},
                               .radius = {1},
                               .weights = weights};

  return kiln_stencil(stream, &s, NULL);
}

static kiln_status copy(kiln_stream *stream, const void *desc)
{
  const line *d = desc;

  return kiln_copy_on_device_async(stream, d->y, d->x,
                                   d->n * kiln_dtype_size(d->type));
}

static double element(kiln_dtype type, const void *data, uint64_t i)
{
  switch (type) {
  case KILN_F32:
    return (double)((const float *)data)[i];
  case KILN_F64:
    return ((const double *)data)[i];
  case KILN_I32:
    return ((const int32_t *)data)[i];
  default:
    return ((const uint8_t *)data)[i];
  }
}

/* Fills an array with whole numbers below 50, so that every sum is exact. */
static void fill(kiln_dtype type, void *data, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    const int v = (int)(i * 7919 % 50);

    switch (type) {
    case KILN_F32:
      ((float *)data)[i] = (float)v;
      break;
    case KILN_F64:
      ((double *)data)[i] = v;
      break;
    case KILN_I32:
      ((int32_t *)data)[i] = v;
      break;
    default:
      ((uint8_t *)data)[i] = (uint8_t)v;
      break;
    }
  }
}

static bool is_convolved(const sample *s, const line *d, const void *x, void *y)
{
  const uint64_t n = d->n;

  SAMPLE_TRY(
      kiln_copy_to_host(s->device, y, d->y, n * kiln_dtype_size(d->type)));
  for (uint64_t i = 0; i < n; i++) {
    const double left = element(d->type, x, i > 0 ? i - 1 : 0);
    const double right = element(d->type, x, i + 1 < n ? i + 1 : i);

    if (element(d->type, y, i) != left + 2 * element(d->type, x, i) + right)
      return false;
  }
  return true;
}

static bool timed(const sample *s, kiln_stream *stream, const char *name,
                  sample_op_fn op, const line *d, const void *x, void *y,
                  double copy_ms)
{
  const double bytes = 2.0 * (double)d->n * (double)kiln_dtype_size(d->type);
  const double ms = sample_op_ms(stream, op, d, s->few ? 1 : REPEATS);
  const bool good = is_convolved(s, d, x, y);

  printf("    %-14s %9.4f ms  %8.1f GB/s  %5.2f of a copy%s\n", name, ms,
         bytes / ms / 1e6, copy_ms / ms, good ? "" : "  WRONG");
  return good;
}

static bool convolve(sample *s, kiln_stream *stream, const element_type *type)
{
  const char *const defines[] = {type->define, "THREADS=256"};
  const kiln_program_desc program = {.name = "convolution.cu",
                                     .source = source,
                                     .defines = defines,
                                     .n_defines = 2};
  line d = {.n = (UINT64_C(1) << (s->few ? CPU_BITS : GPU_BITS)) + 3,
            .type = type->type};
  const size_t size = d.n * kiln_dtype_size(type->type);
  void *x = sample_alloc(size), *y = sample_alloc(size);
  kiln_module *module = sample_module(s, &program);
  double copy_ms;
  bool good;

  fill(type->type, x, d.n);
  SAMPLE_TRY(kiln_memory_alloc(&d.x, s->device, size));
  SAMPLE_TRY(kiln_memory_alloc(&d.y, s->device, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d.x, x, size));
  printf("  %s, %llu elements\n", type->name, (unsigned long long)d.n);
  copy_ms = sample_op_ms(stream, copy, &d, s->few ? 1 : REPEATS);
  SAMPLE_TRY(kiln_module_kernel(&d.kernel, module, "from_global"));
  good = timed(s, stream, "global memory", launch, &d, x, y, copy_ms);
  SAMPLE_TRY(kiln_module_kernel(&d.kernel, module, "from_shared"));
  good = timed(s, stream, "shared memory", launch, &d, x, y, copy_ms) && good;
  good = timed(s, stream, "kiln_stencil", stencil, &d, x, y, copy_ms) && good;
  SAMPLE_TRY(kiln_memory_free(s->device, d.x));
  SAMPLE_TRY(kiln_memory_free(s->device, d.y));
  kiln_module_free(module);
  free(x);
  free(y);
  return good;
}

/* ---- A picture ----------------------------------------------------------- */

/* Draws circles, a fine grid and text-like bars, which a blur changes visibly. */
static void draw(uint8_t *p, int side)
{
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      const double middle = side / 2.0, dx = x - middle, dy = y - middle;
      const double r = sqrt(dx * dx + dy * dy) / side;
      uint8_t v = (uint8_t)(128 + 100 * sin(r * r * 500));

      if (x < side / 4 && y < side / 4)
        v = x / 4 % 2 == y / 4 % 2 ? 255 : 0;
      if (x > side * 3 / 4 && y > side * 3 / 4)
        v = x / 6 % 3 == 0 ? 240 : 20;
      p[y * side + x] = v;
    }
}

/* Fills the weights of a Gaussian for both axes. Their sum is 1 per axis. */
static void gaussian(double *w)
{
  double sum = 0;

  for (int i = -BLUR; i <= BLUR; i++) {
    w[i + BLUR] = exp(-i * i / 18.0);
    sum += w[i + BLUR];
  }
  for (int i = 0; i < 2 * BLUR + 1; i++) {
    w[i] /= sum;
    w[2 * BLUR + 1 + i] = w[i];
  }
}

static int mirrored(int i, int n)
{
  return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

/* Returns whether a blurred pixel differs from the host's by at most 1: the host
 * does not round the sums under way to float. */
static bool is_blurred(const uint8_t *got, const uint8_t *p, const double *w,
                       int side)
{
  for (int y = 0; y < side; y += 7)
    for (int x = 0; x < side; x += 5) {
      double sum = 0;

      for (int j = -BLUR; j <= BLUR; j++)
        for (int i = -BLUR; i <= BLUR; i++)
          sum += w[j + BLUR] * w[i + BLUR] *
                 p[mirrored(y + j, side) * side + mirrored(x + i, side)];
      if (fabs(got[y * side + x] - floor(sum + 0.5)) > 1)
        return false;
    }
  return true;
}

static bool blur_picture(const sample *s, kiln_stream *stream)
{
  const int side = s->few ? FEW_SIDE : SIDE;
  const size_t size = (size_t)side * (size_t)side;
  const unsigned n = (unsigned)side;
  uint8_t *p = sample_alloc(size), *out = sample_alloc(size);
  double w[2 * (2 * BLUR + 1)];
  CUdeviceptr x, y;
  kiln_stencil_desc d;
  bool good;

  draw(p, side);
  gaussian(w);
  SAMPLE_TRY(kiln_memory_alloc(&x, s->device, size));
  SAMPLE_TRY(kiln_memory_alloc(&y, s->device, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, x, p, size));
  d = (kiln_stencil_desc){.in = {x, KILN_U8},
                          .out = {y, KILN_U8},
                          .dims = 2,
                          .size = {n, n},
                          .radius = {BLUR, BLUR},
                          .weights = w,
                          .separable = true,
                          .finish = "a + 0.5f",
                          .border = KILN_MIRROR,
                          .acc = KILN_F32};
  SAMPLE_OP(kiln_stencil(stream, &d, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, y, size));
  good = is_blurred(out, p, w, side);
  printf("Gaussian blur of radius %d, %d x %d: %s\n", BLUR, side, side,
         good ? "as on the host" : "WRONG");
  good = picture_write("before", p, n, n) && good;
  good = picture_write("blurred", out, n, n) && good;
  d.finish = "fminf(fmaxf(2 * b - a, 0), 255)";
  SAMPLE_OP(kiln_stencil(stream, &d, NULL));
  SAMPLE_TRY(kiln_stream_synchronize(stream));
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, y, size));
  good = picture_write("sharpened", out, n, n) && good;
  SAMPLE_TRY(kiln_memory_free(s->device, x));
  SAMPLE_TRY(kiln_memory_free(s->device, y));
  free(p);
  free(out);
  return good;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
    good = convolve(&s, stream, &types[k]) && good;
  good = blur_picture(&s, stream) && good;
  kiln_stream_free(stream);
  return sample_end(&s, good);
}
