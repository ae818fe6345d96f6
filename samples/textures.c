/* textures.c -- texture objects in 1, 2 and 3 dimensions (row E7 of the
 * lectures). All combinations of filter modes (nearest, linear), coordinates
 * (plain, normalised) and address modes (clamp, wrap, mirror, border) are
 * compared with a reference in C.
 *
 * The weights of the linear filter have 8 fractional bits (CUDA C++ Programming
 * Guide, appendix on texture fetching). Linear values may therefore differ by
 * 1/256 of the texels' range per dimension. The modes wrap and mirror need
 * normalised coordinates; with plain coordinates the hardware clamps. */
#include "sample.h"

#include <math.h>

static const char source[] =
    "#define FETCH(form, registers, ...)                                    "
    "\\\n"
    "  float a, b, c, d;                                                    "
    "\\\n"
    "  asm volatile(\"tex.\" form \".v4.f32.f32 {%0,%1,%2,%3}, [%4, {\"       "
    "\\\n"
    "               registers \"}];\"                                        "
    "\\\n"
    "               : \"=f\"(a), \"=f\"(b), \"=f\"(c), \"=f\"(d)               "
    "  \\\n"
    "               : \"l\"(t), __VA_ARGS__)\n"
    "extern \"C\" __global__ void fetch(float *out, unsigned long long t,\n"
    "                                 const float *at, int n, int dims)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i >= n)\n"
    "    return;\n"
    "  const float x = at[3 * i], y = at[3 * i + 1], z = at[3 * i + 2];\n"
    "  if (dims == 1) {\n"
    "    FETCH(\"1d\", \"%5\", \"f\"(x));\n"
    "    out[i] = a;\n"
    "  } else if (dims == 2) {\n"
    "    FETCH(\"2d\", \"%5,%6\", \"f\"(x), \"f\"(y));\n"
    "    out[i] = a;\n"
    "  } else {\n"
    "    FETCH(\"3d\", \"%5,%6,%7,%7\", \"f\"(x), \"f\"(y), \"f\"(z));\n"
    "    out[i] = a;\n"
    "  }\n"
    "}\n";

enum { W = 8, H = 6, D = 5, POINTS = 600 };

static const char *const mode_names[] = {"wrap", "clamp", "mirror", "border"};

static float texels[W * H * D];
static float points[POINTS * 3], scaled[POINTS * 3], got[POINTS];

/* ---- Reference ----------------------------------------------------------- */

static const float border = 0.25f;

typedef struct how {
  int dims;
  kiln_address_mode mode;
  bool linear, normalised;
} how;

/* Returns the index of a texel, from 0 to n - 1, or -1 for the border. */
static int place(int i, int n, kiln_address_mode mode)
{
  int k;

  switch (mode) {
  case KILN_ADDRESS_WRAP:
    return (i % n + n) % n;
  case KILN_ADDRESS_MIRROR:
    k = (i % (2 * n) + 2 * n) % (2 * n);
    return k < n ? k : 2 * n - 1 - k;
  case KILN_ADDRESS_BORDER:
    return i < 0 || i >= n ? -1 : i;
  default:
    return i < 0 ? 0 : i >= n ? n - 1 : i;
  }
}

static double texel(const how *h, int x, int y, int z)
{
  const int px = place(x, W, h->mode);
  const int py = h->dims > 1 ? place(y, H, h->mode) : 0;
  const int pz = h->dims > 2 ? place(z, D, h->mode) : 0;

  if (px < 0 || py < 0 || pz < 0)
    return (double)border;
  return (double)texels[(pz * H + py) * W + px];
}

/* Computes the expected value of the linear filter from the corner texels
 * around the point: 2, 4 or 8 texels for 1, 2 or 3 dimensions. */
static double linear(const how *h, double x, double y, double z)
{
  const double fx = floor(x - 0.5), fy = floor(y - 0.5), fz = floor(z - 0.5);
  double sum = 0;

  for (int corner = 0; corner < 1 << h->dims; corner++) {
    const int cx = corner & 1, cy = corner >> 1 & 1, cz = corner >> 2 & 1;
    const double ax = x - 0.5 - fx, ay = y - 0.5 - fy, az = z - 0.5 - fz;
    double weight = cx ? ax : 1 - ax;

    if (h->dims > 1)
      weight *= cy ? ay : 1 - ay;
    if (h->dims > 2)
      weight *= cz ? az : 1 - az;
    sum += weight * texel(h, (int)fx + cx, (int)fy + cy, (int)fz + cz);
  }
  return sum;
}

/* Computes the expected value of a fetch. The coordinates x, y and z are in
 * units of texels. */
static double reference(const how *wanted, const float at[3])
{
  how h = *wanted;

  if (!h.normalised && h.mode != KILN_ADDRESS_BORDER)
    h.mode = KILN_ADDRESS_CLAMP;
  return h.linear ? linear(&h, (double)at[0], (double)at[1], (double)at[2])
                  : texel(&h, (int)floorf(at[0]), (int)floorf(at[1]),
                          (int)floorf(at[2]));
}

/* ---- The device ---------------------------------------------------------- */

/* Fills the test coordinates, which reach 1.5 widths beyond each side of the
 * texture. They lie on a grid of 1/16 texel that avoids the edges between
 * texels, since rounding decides which texel is nearest at an edge. */
static void make_points(const how *h)
{
  static const int size[3] = {W, H, D};
  uint32_t r = 12345;

  for (int i = 0; i < POINTS * 3; i++) {
    const int n = size[i % 3];

    r = r * 1664525u + 1013904223u;
    points[i] = (float)((int)(r >> 8) % (n * 64) - n * 24) / 16.0f + 0.03125f;
    scaled[i] = h->normalised ? points[i] / (float)n : points[i];
  }
}

static void fetch(sample *s, kiln_kernel *kernel, kiln_cuda_array *array,
                  const how *h, CUdeviceptr at, CUdeviceptr out)
{
  const kiln_texture_desc desc = {.address = {h->mode, h->mode, h->mode},
                                  .filter = h->linear ? KILN_FILTER_LINEAR
                                                      : KILN_FILTER_NEAREST,
                                  .normalised = h->normalised,
                                  .border = {border, 0, 0, 0}};
  const kiln_launch_config config = kiln_launch_1d(POINTS, 128);
  const int n = POINTS;
  uint64_t texture;

  SAMPLE_TRY(kiln_texture_create(&texture, array, &desc));
  SAMPLE_TRY(kiln_copy_to_device(s->device, at, scaled, sizeof scaled));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(out), KILN_ARG(texture),
                         KILN_ARG(at), KILN_ARG(n), KILN_ARG(h->dims)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, out, sizeof got));
  SAMPLE_TRY(kiln_texture_free(s->device, texture));
}

static bool check(const how *h)
{
  /* The values of texels differ by up to 1, and the weight in each dimension
   * has an error of up to 1/512. Normalised coordinates add a rounding
   * error. */
  const double allowed = h->linear ? h->dims / 256.0 : 0;
  double worst = 0;

  for (int i = 0; i < POINTS; i++) {
    const double error = fabs((double)got[i] - reference(h, points + 3 * i));

    worst = error > worst ? error : worst;
  }
  printf("  %dD %-7s %-10s %-6s  largest error %.5f%s\n", h->dims,
         h->linear ? "linear" : "nearest",
         h->normalised ? "normalised" : "plain", mode_names[h->mode], worst,
         worst <= allowed ? "" : "  <-- TOO LARGE");
  return worst <= allowed;
}

static bool all_of(sample *s, kiln_kernel *kernel, int dims, CUdeviceptr at,
                   CUdeviceptr out)
{
  const kiln_cuda_array_desc desc = {.width = W,
                                     .height = dims > 1 ? H : 0,
                                     .depth = dims > 2 ? D : 0,
                                     .texel = KILN_TEXEL_F32,
                                     .channels = 1};
  kiln_cuda_array *array;
  bool good = true;

  SAMPLE_TRY(kiln_cuda_array_create(&array, s->device, &desc));
  SAMPLE_TRY(kiln_cuda_array_write(array, texels));
  for (int i = 0; i < 16; i++) {
    const how h = {dims, (kiln_address_mode)(i & 3), (i & 4) != 0,
                   (i & 8) != 0};

    make_points(&h);
    fetch(s, kernel, array, &h, at, out);
    good = check(&h) && good;
  }
  kiln_cuda_array_free(array);
  return good;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.source = source, .name = "textures.cu"};
  CUdeviceptr at, out;
  kiln_module *module;
  kiln_kernel *kernel;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  for (int i = 0; i < W * H * D; i++)
    texels[i] = (float)((i * 7) % 33) / 32;
  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "fetch"));
  SAMPLE_TRY(kiln_memory_alloc(&at, s.device, sizeof points));
  SAMPLE_TRY(kiln_memory_alloc(&out, s.device, sizeof got));
  for (int dims = 1; dims <= 3; dims++)
    good = all_of(&s, kernel, dims, at, out) && good;
  SAMPLE_TRY(kiln_memory_free(s.device, at));
  SAMPLE_TRY(kiln_memory_free(s.device, out));
  kiln_module_free(module);
  return sample_end(&s, good);
}
