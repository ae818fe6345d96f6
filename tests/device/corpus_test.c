/* corpus_test.c -- the kernels of tests/corpus, compiled in several modes, loaded,
 * run, and compared with the same computation on the host. The CPU device plays
 * one architecture after the other; a GPU runs only its own. */
#include "test_device.h"

#include <math.h>

#ifndef KILN_TEST_CUDA_INCLUDE
#define KILN_TEST_CUDA_INCLUDE ""
#define KILN_TEST_CUDA_VERSION 0
#endif

enum { WORDS = 1024, N_MODES = 4 };

typedef union word {
  int i;
  unsigned u;
  float f;
} word;

typedef enum as { INT, FLOAT, DOUBLE } as;      /* type of the output words */
typedef enum input { SMALL, BITS, REAL } input; /* values of the input words */

typedef void (*reference_fn)(const word *in, word *out, int n);

static const int all_targets[] = {75, 80, 90, 100, 120};
static const char *const mode_names[N_MODES] = {"default", "debug", "lineinfo",
                                                "fast math"};
enum { DEFAULT, DEBUG, LINEINFO, FAST };

static struct {
  kiln_runtime *rt;
  kiln_device *device;
  int cc;
  bool headers; /* the toolkit's headers have the compiler's version */
  CUdeviceptr in, out;
} t;

/* ---- Reference results on the host --------------------------------------- */

static void saxpy(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++)
    out[i].f = (float)(2.5 * (double)in[i].f + (double)in[n - 1 - i].f);
}

static void convolve(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++) {
    const double left = i > 0 ? (double)in[i - 1].f : 0;
    const double right = i + 1 < n ? (double)in[i + 1].f : 0;

    out[i].f = (float)((left + 2 * (double)in[i].f + right) / 4);
  }
}

static void reverse(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++)
    out[i].i = in[i / 128 * 128 + 127 - i % 128].i - in[i].i / 2;
}

static void sum_of_256(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++)
    out[i / 256].i += in[i].i;
}

static void sums_from(const word *in, word *out, int n, int every)
{
  for (int i = 0; i < n; i++)
    out[i].i = in[i].i + (i % every != 0 ? out[i - 1].i : 0);
}

static void scan_256(const word *in, word *out, int n)
{
  sums_from(in, out, n, 256);
}

static void scan_32(const word *in, word *out, int n)
{
  sums_from(in, out, n, 32);
}

static void scan_all(const word *in, word *out, int n)
{
  sums_from(in, out, n, WORDS);
}

static void radix(const word *in, word *out, int n)
{
  int at = 0;

  (void)n;
  for (unsigned digit = 0; digit < 16; digit++) {
    for (int i = 0; i < 256; i++) {
      if (in[i].u / 16 % 16 == digit)
        out[at++] = in[i];
    }
  }
}

static void histogram(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++)
    out[in[i].u & 63].u++;
}

static void segments(const word *in, word *out, int n)
{
  for (int i = 0, segment = 0, left = 1; i < n; i++) {
    out[segment].u += in[i].u;
    if (--left == 0)
      left = ++segment + 1;
  }
}

static void sgemm(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 256; i++) {
    double sum = 0;

    for (int k = 0; k < 16; k++)
      sum +=
          (double)in[i / 16 * 16 + k].f * (double)in[256 + k * 16 + i % 16].f;
    out[i].f = (float)sum;
  }
}

static void nbody(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++) {
    double sum = 0;

    for (int j = 0; j < n; j++) {
      const double d = (double)in[j].f - (double)in[i].f;

      sum += d / pow(d * d + 0.25, 1.5);
    }
    out[i].f = (float)sum;
  }
}

static void julia(const word *in, word *out, int n)
{
  (void)in;
  for (int i = 0; i < n; i++) {
    long a = (i % 32 - 16) * 96, b = (i / 32 - 16) * 96;
    int k = 0;

    for (; k < 60 && a * a + b * b < 4L << 20; k++) {
      const long c = (a * a - b * b) / 1024 - 717;

      b = a * b * 2 / 1024 + 277;
      a = c;
    }
    out[i].i = k;
  }
}

static void syncwarp(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++) {
    const int from = i ^ 3;

    out[i].i = in[from ^ 1].i + (from % 2 ? 1 : -1) + (i < 32 ? 1000 : 0);
  }
}

static void match(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++) {
    const int first = i / 32 * 32;

    for (int j = 0; j < 32; j++) {
      if (in[first + j].u % 4 == in[i].u % 4)
        out[i].u |= 1u << j;
    }
    /* all lanes match because v / 4 is 0 in each of them */
    out[64 + i].u = 0xffffffffu ^ 1u;
  }
}

static void redux(const word *in, word *out, int n)
{
  for (int warp = 0; warp < n / 32 && t.cc >= 80; warp++) {
    unsigned sum = 0, most = 0, any = 0;
    int least = INT32_MAX;

    for (int i = warp * 32; i < warp * 32 + 32; i++) {
      sum += in[i].u;
      any |= in[i].u;
      most = in[i].u > most ? in[i].u : most;
      least = in[i].i < least ? in[i].i : least;
    }
    for (int i = warp * 32; i < warp * 32 + 32; i++)
      out[i].u = sum ^ most ^ (unsigned)least ^ any;
  }
}

static void spin_lock(const word *in, word *out, int n)
{
  (void)in;
  out[1].i = 4 * 32 * n;
}

static void ones(const word *in, word *out, int n)
{
  (void)in, (void)n;
  for (int i = 0; i < 64; i++)
    out[i].i = 1;
}

static void whole_grid(const word *in, word *out, int n)
{
  (void)n;
  out[0].i = 4;
  for (int i = 0; i < 256; i++) {
    out[1 + i / 64].i += in[i].i;
    out[64 + (i + 192) % 256].i = 0;
  }
  for (int i = 0; i < 256; i++)
    out[64 + i].i = out[1 + (i / 64 + 1) % 4].i;
}

static void says(const word *in, word *out, int n)
{
  (void)in;
  for (int i = 0; i < 32; i++)
    out[i].i = n;
}

static void copies(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 256; i++)
    out[i].i = in[255 - i].i - in[256 + (i ^ 7)].i;
}

static void halves(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++)
    out[i].f = (float)(in[i].i % 32) / 2 + 0.5f;
}

static void half_sum(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 32; i++) {
    for (int j = 0; j < 32; j++) {
      out[j].f += (float)(in[i].i % 8);
      out[32 + j].f += (float)(in[i].i % 4);
    }
  }
}

static void bfloats(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++)
    out[i].f = (float)(in[i].i % 64) * 3 + 3;
}

static void doubles(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++) {
    const long double x = (long double)in[i].f;
    const long double all[8] = {sinl(x * 20),
                                expl(x),
                                logl(x),
                                powl(x, (long double)3.3),
                                tgammal(x + 1),
                                cosl(x * 1e9L),
                                erfl(x) + atan2l(x, 2),
                                sqrtl(x) / (x + 1) + cbrtl(x)};

    for (int k = 0; k < 8; k++) {
      const double v = (double)all[k];

      memcpy(&out[(i * 8 + k) * 2], &v, sizeof v);
    }
  }
}

static void floats(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++) {
    const double x = (double)in[i].f;

    out[i * 4].f = (float)(sin(x) + cos(x));
    out[i * 4 + 1].f = (float)(exp(x) * log(x + 1));
    out[i * 4 + 2].f = (float)pow(x, (double)1.7f);
    out[i * 4 + 3].f = (float)(sqrt(x) / (x + 3) + tanh(x));
  }
}

static unsigned count(uint64_t v, int width, bool leading)
{
  unsigned sum = 0;

  for (int i = width - 1; i >= 0; i--) {
    if (v >> i & 1)
      sum++;
    if (leading && sum > 0)
      return (unsigned)(width - 1 - i);
  }
  return leading ? (unsigned)width : sum;
}

static unsigned first_one(uint64_t v)
{
  for (unsigned i = 0; i < 64; i++) {
    if (v >> i & 1)
      return i + 1;
  }
  return 0;
}

static unsigned byte_of(unsigned v, unsigned i)
{
  return v >> 8 * i & 255;
}

__extension__ typedef unsigned __int128 wide;

/* Computes the results of byte-wise instructions and of the bit reversal. */
static void byte_wise(unsigned a, unsigned b, unsigned o[16])
{
  static const unsigned pick[4] = {4, 7, 1, 6};
  unsigned sums = 0, differences = 0, total = 0;
  int dot = 7;

  for (unsigned i = 0; i < 4; i++) {
    const unsigned x = byte_of(a, i), y = byte_of(b, i);

    o[4] |= (pick[i] < 4 ? byte_of(a, pick[i]) : byte_of(b, pick[i] - 4))
            << 8 * i;
    sums |= ((x + y) & 255) << 8 * i;
    differences |= (x > y ? x - y : y - x) << 8 * i;
    total += x > y ? x - y : y - x;
    dot += (int)(x * y);
  }
  for (int i = 0; i < 32; i++)
    o[2] |= (a >> i & 1) << (31 - i);
  o[11] = (unsigned)dot;
  o[15] = sums ^ differences ^ total;
}

static void bits(const word *in, word *out, int n)
{
  for (int i = 0; i < 64; i++) {
    const unsigned a = in[i].u, b = in[n - 1 - i].u, s = (unsigned)i % 32;
    const uint64_t w = (uint64_t)a << 32 | b;
    const int x = in[i].i, y = in[n - 1 - i].i;
    unsigned o[16] = {0};

    byte_wise(a, b, o);
    o[0] = count(a, 32, false) + (count(w, 64, false) << 8);
    o[1] = count(a >> s, 32, true) + (count(w >> i, 64, true) << 8);
    o[3] = first_one(a & 0xfff0) + (first_one(w << i) << 8);
    o[5] = (unsigned)((((uint64_t)b << 32 | a) << s) >> 32);
    o[6] = (unsigned)((uint64_t)a * b >> 32);
    o[7] = (unsigned)((uint64_t)((int64_t)x * y) >> 32);
    o[8] = (unsigned)(((wide)w * ~w >> 64) >> 16);
    o[9] = a / (b % 1000 + 1) + a % (b % 777 + 1);
    o[10] = (unsigned)(w / (a % 99991 + 1)) + (unsigned)(w % (b | 1));
    o[12] = (a > b ? a - b : b - a) + 3;
    o[13] = (unsigned)(x < 0 ? ~(~x >> 5) : x >> 5) ^ b << s;
    o[14] = (unsigned)(x < y ? x : y) ^ (a > b ? a : b);
    memcpy(&out[i * 16], o, sizeof o);
  }
}

static void recursion(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 32; i++)
    out[i].i = 2 * (in[i].i & 3) + 3;
}

static void pointers(const word *in, word *out, int n)
{
  for (int i = 0; i < 64; i++)
    out[i].i = i % 3 == 0   ? in[i].i + n
               : i % 3 == 1 ? in[i].i - n
                            : (in[i].i & n);
}

static void virtuals(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++) {
    const int v = in[i].i & 255;

    out[i].i = in[i].i % 2 ? v * v : 3 * v;
  }
}

static void choice(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++) {
    const int v = in[i].i;
    const int all[8] = {v + 9,     3 * v, v ^ 0x55,     -v,
                        v / 4 - 4, v - 4, v | 0x100000, 0};

    out[i].i = all[v % 8];
  }
}

static void spaces(const word *in, word *out, int n)
{
  static const int fixed[2] = {40, 2};

  (void)n;
  for (int i = 0; i < 64; i++) {
    out[64 + i].i = 1 << i % 4;
    out[128 + i].i = i % 4 == 0   ? 0
                     : i % 4 == 1 ? i % 2
                     : i % 4 == 2 ? in[(i + i % 2) % 64].i & 15
                                  : fixed[i % 2];
  }
}

static void heap(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 64; i++) {
    const int m = in[i].i & 31;

    out[i].i = i * (m * (m + 1) / 2);
  }
}

static void holds(const word *in, word *out, int n)
{
  (void)n;
  memcpy(out, in, 64 * sizeof *out);
}

static void groups(const word *in, word *out, int n)
{
  for (int i = 0; i < n; i++)
    out[0].i += in[i].i;
  for (int i = 0; i < 256; i++)
    out[1 + i].i = out[0].i + 16;
}

static void references(const word *in, word *out, int n)
{
  (void)n;
  for (int i = 0; i < 256; i++) {
    int *most = &out[1 + i / 64].i;

    out[0].i += in[i].i;
    *most = in[i].i > *most ? in[i].i : *most;
  }
}

/* ---- What runs ----------------------------------------------------------- */

/* How a kernel is launched: SHARED adds a kilobyte of dynamic shared memory,
 * and WHOLE is a cooperative launch. */
typedef enum launch { PLAIN, SHARED, WHOLE } launch;

typedef struct row {
  const char *file, *kernel;
  reference_fn reference;
  input in;
  as out;
  uint32_t grid, block_x, block_y;
  int n;
  launch how;
} row;

static const row rows[] = {
    {"stream", "saxpy", saxpy, REAL, FLOAT, 3, 128, 1, 1000, PLAIN},
    {"stream", "convolve", convolve, REAL, FLOAT, 8, 128, 1, 1000, PLAIN},
    {"stream", "reverse", reverse, SMALL, INT, 8, 128, 1, 1024, SHARED},
    {"reduce", "reduce_interleaved", sum_of_256, SMALL, INT, 4, 256, 1, 1024,
     PLAIN},
    {"reduce", "reduce_tree", sum_of_256, SMALL, INT, 4, 256, 1, 1024, PLAIN},
    {"reduce", "reduce_shuffle", sum_of_256, SMALL, INT, 4, 256, 1, 1024,
     PLAIN},
    {"reduce", "reduce_atomic", sum_of_256, SMALL, INT, 4, 256, 1, 1024, PLAIN},
    {"scan", "scan_block", scan_256, SMALL, INT, 4, 256, 1, 1024, PLAIN},
    {"scan", "scan_warps", scan_32, SMALL, INT, 4, 256, 1, 1024, PLAIN},
    {"scan", "lookback", scan_all, SMALL, INT, 8, 128, 1, 1024, PLAIN},
    {"sort", "radix_pass", radix, BITS, INT, 1, 256, 1, 256, PLAIN},
    {"sort", "histogram_shared", histogram, BITS, INT, 3, 96, 1, 1000, PLAIN},
    {"sort", "histogram_global", histogram, BITS, INT, 3, 96, 1, 1000, PLAIN},
    {"sort", "segments", segments, BITS, INT, 8, 128, 1, 1024, PLAIN},
    {"dense", "sgemm", sgemm, REAL, FLOAT, 1, 4, 16, 16, PLAIN},
    {"dense", "nbody", nbody, REAL, FLOAT, 2, 64, 1, 128, PLAIN},
    {"dense", "julia", julia, BITS, INT, 4, 32, 8, 1024, PLAIN},
    {"warp", "syncwarp", syncwarp, SMALL, INT, 1, 64, 1, 64, PLAIN},
    {"warp", "match", match, SMALL, INT, 1, 64, 1, 64, PLAIN},
    {"warp", "redux", redux, BITS, INT, 1, 64, 1, 64, PLAIN},
    {"order", "spin_lock", spin_lock, SMALL, INT, 4, 32, 1, 7, PLAIN},
    {"order", "clocks", ones, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"order", "whole_grid", whole_grid, SMALL, INT, 4, 64, 1, 0, WHOLE},
    {"order", "says", says, SMALL, INT, 1, 32, 1, 7, PLAIN},
    {"async", "copies", copies, SMALL, INT, 1, 256, 1, 0, PLAIN},
    {"half", "halves", halves, SMALL, FLOAT, 1, 64, 1, 0, PLAIN},
    {"half", "half_sum", half_sum, SMALL, FLOAT, 1, 32, 1, 0, PLAIN},
    {"half", "bfloats", bfloats, SMALL, FLOAT, 1, 64, 1, 0, PLAIN},
    {"math", "doubles", doubles, REAL, DOUBLE, 1, 64, 1, 0, PLAIN},
    {"math", "floats", floats, REAL, FLOAT, 1, 64, 1, 0, PLAIN},
    {"bits", "bits", bits, BITS, INT, 1, 64, 1, 1000, PLAIN},
    {"calls", "recursion", recursion, SMALL, INT, 1, 32, 1, 0, PLAIN},
    {"calls", "pointers", pointers, SMALL, INT, 1, 64, 1, 0x5a5, PLAIN},
    {"calls", "virtuals", virtuals, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"calls", "choice", choice, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"generic", "spaces", spaces, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"generic", "heap", heap, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"generic", "holds", holds, SMALL, INT, 1, 64, 1, 0, PLAIN},
    {"groups", "groups", groups, SMALL, INT, 4, 64, 1, 1000, WHOLE},
    {"atomic_ref", "references", references, SMALL, INT, 4, 64, 1, 0, PLAIN},
};

static void fill(word in[WORDS], input what)
{
  uint64_t state = 0x1234567;

  for (int i = 0; i < WORDS; i++) {
    const uint64_t r = test_random(&state) >> 20;

    if (what == REAL)
      in[i].f = (float)(r % 4096) / 2048 + 0.25f;
    else
      in[i].u = (unsigned)(what == SMALL ? r % 10000 : r);
  }
}

static bool near(double got, double want, double within)
{
  return fabs(got - want) <= within * (1 + fabs(want));
}

static void compare(const row *r, int mode, const word *got, const word *want)
{
  const double within = r->out == DOUBLE ? 1e-13 : mode == FAST ? 2e-4 : 1e-5;

  for (int i = 0; i < WORDS; i += r->out == DOUBLE ? 2 : 1) {
    double g = (double)got[i].f, w = (double)want[i].f;
    bool same = got[i].i == want[i].i;

    if (r->out == DOUBLE) {
      memcpy(&g, &got[i], sizeof g);
      memcpy(&w, &want[i], sizeof w);
    }
    if (r->out != INT)
      same = near(g, w, within);
    ck_assert_msg(same,
                  "%s of %s, %d, %s: [%d] is %#x (%.17g), want %#x (%.17g)",
                  r->kernel, r->file, t.cc, mode_names[mode], i, got[i].u, g,
                  want[i].u, w);
  }
}

static void run_row(const row *r, int mode, kiln_module *module)
{
  static word in[WORDS], got[WORDS], want[WORDS];
  const kiln_launch_config config = {.grid = {r->grid, 1, 1},
                                     .block = {r->block_x, r->block_y, 1},
                                     .smem = r->how == SHARED ? 1024 : 0,
                                     .cooperative = r->how == WHOLE};
  kiln_kernel *kernel;

  fill(in, r->in);
  memset(want, 0, sizeof want);
  r->reference(in, want, r->n);
  ck_kiln_ok(kiln_module_kernel(&kernel, module, r->kernel));
  ck_kiln_ok(kiln_copy_to_device(t.device, t.in, in, sizeof in));
  ck_kiln_ok(kiln_fill(t.device, t.out, 0, 4, WORDS));
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(t.in), KILN_ARG(t.out),
                         KILN_ARG(r->n)));
  ck_kiln_ok(kiln_copy_to_host(t.device, got, t.out, sizeof got));
  compare(r, mode, got, want);
}

/* ---- Textures ------------------------------------------------------------ */

enum { W = 8, H = 4, D = 4, TEXELS = W * H * D };

static kiln_cuda_array *make_array(const kiln_cuda_array_desc *desc,
                                   const word *in)
{
  kiln_cuda_array *array;

  ck_kiln_ok(kiln_cuda_array_create(&array, t.device, desc));
  ck_kiln_ok(kiln_cuda_array_write(array, in));
  return array;
}

static void run_surface(kiln_module *module, const word *in)
{
  const kiln_cuda_array_desc desc = {.width = W,
                                     .height = H,
                                     .texel = KILN_TEXEL_F32,
                                     .channels = 1,
                                     .surface = true};
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {W, H, 1}};
  kiln_cuda_array *array = make_array(&desc, in);
  kiln_kernel *kernel;
  uint64_t surface;
  word got[W * H];

  ck_kiln_ok(kiln_surface_create(&surface, array));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, "surfaces"));
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(surface)));
  ck_kiln_ok(kiln_device_synchronize(t.device));
  ck_kiln_ok(kiln_cuda_array_read(array, got));
  for (int i = 0; i < W * H; i++)
    ck_assert_double_eq((double)got[i].f, 2 * (double)in[i].f + 1);
  ck_kiln_ok(kiln_surface_free(t.device, surface));
  kiln_cuda_array_free(array);
}

/* Checks what the kernel `textures` reads at x, y, z with clamped addresses,
 * and the mean of two neighbours that linear filtering gives half way between
 * them. */
static void check_textures(const word *in, const word *got)
{
  for (int i = 0; i < TEXELS; i++) {
    const int x = i % W, y = i / W % H, z = i / (W * H), plane = W * H;
    const double right = (double)in[y * W + (x + 1 < W ? x + 1 : x)].f;
    const double below =
        (double)in[z * plane + (y + 1 < H ? y + 1 : y) * W + x].f;

    ck_assert_int_eq(got[i].i, in[i].i);
    ck_assert(near((double)got[128 + i].f,
                   (right + (double)in[y * W + x].f) / 2, 1e-6));
    ck_assert(
        near((double)got[256 + i].f, (below + (double)in[i].f) / 2, 1e-6));
    ck_assert_int_eq(got[384 + i].i, in[(3 - z) * plane + y * W + x].i);
  }
}

static void run_textures(kiln_module *module)
{
  static word in[WORDS], got[4 * TEXELS];
  const kiln_cuda_array_desc shapes[3] = {
      {.width = W, .height = H, .texel = KILN_TEXEL_F32, .channels = 1},
      {.width = W,
       .height = H,
       .depth = D,
       .texel = KILN_TEXEL_F32,
       .channels = 1},
      {.width = W,
       .height = H,
       .layers = D,
       .texel = KILN_TEXEL_F32,
       .channels = 1}};
  kiln_texture_desc desc = {
      .address = {KILN_ADDRESS_CLAMP, KILN_ADDRESS_CLAMP, KILN_ADDRESS_CLAMP}};
  const kiln_launch_config config = {.grid = {1, 1, 1}, .block = {W, H, D}};
  kiln_cuda_array *arrays[3];
  uint64_t tex[4];
  kiln_kernel *kernel;

  fill(in, REAL);
  ck_kiln_ok(kiln_copy_to_device(t.device, t.in, in, sizeof in));
  ck_kiln_ok(kiln_texture_of_memory(&tex[0], t.device, t.in, KILN_TEXEL_F32, 1,
                                    TEXELS, 0, 0, &desc));
  for (int i = 0; i < 3; i++) {
    arrays[i] = make_array(&shapes[i], in);
    desc.filter = i < 2 ? KILN_FILTER_LINEAR : KILN_FILTER_NEAREST;
    ck_kiln_ok(kiln_texture_create(&tex[1 + i], arrays[i], &desc));
  }
  ck_kiln_ok(kiln_module_kernel(&kernel, module, "textures"));
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(tex[0]), KILN_ARG(tex[1]),
                         KILN_ARG(tex[2]), KILN_ARG(tex[3]), KILN_ARG(t.out)));
  ck_kiln_ok(kiln_copy_to_host(t.device, got, t.out, sizeof got));
  check_textures(in, got);
  for (int i = 0; i < 4; i++)
    ck_kiln_ok(kiln_texture_free(t.device, tex[i]));
  for (int i = 0; i < 3; i++)
    kiln_cuda_array_free(arrays[i]);
  run_surface(module, in);
}

/* ---- Files and modes of compilation -------------------------------------- */

static const char *const files[] = {
    "stream", "reduce",  "scan",   "sort",      "dense", "texture",
    "warp",   "order",   "async",  "half",      "math",  "bits",
    "calls",  "generic", "groups", "atomic_ref"};

enum { N_FILES = sizeof files / sizeof files[0], FIRST_WITH_HEADERS = 14 };

static char *sources[N_FILES];

/* Compiles take most of this test's time. A GPU, the CPU device's target 9.0 and a
 * thorough run compile each file in every mode. The other targets use the default
 * mode and one more, which alternates. A compile with the toolkit's headers takes a
 * second, so only 9.0 compiles these files in every mode. */
static bool wanted(size_t file, int mode)
{
  if (file >= FIRST_WITH_HEADERS)
    return t.headers && (mode == DEFAULT || t.cc == 90);
  return mode == DEFAULT || !on_cpu() || t.cc == 90 ||
         getenv("KILN_TEST_THOROUGH") != NULL ||
         mode == 1 + (int)((file + (size_t)t.cc / 5) % 3);
}

static void run_image(size_t file, int mode, const kiln_image *image)
{
  kiln_module *module;

  ck_kiln_ok(kiln_module_from_image(&module, t.device, image));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(rows[i].file, files[file]) == 0)
      run_row(&rows[i], mode, module);
  }
  if (strcmp(files[file], "texture") == 0)
    run_textures(module);
  kiln_module_free(module);
}

static void run_all(void)
{
  const char *const elsewhere = getenv("KILN_TEST_CUDA_INCLUDE");
  char toolkit[512], cccl[512];
  const char *const options[] = {toolkit, cccl, "-std=c++17"};
  kiln_program_desc descs[N_FILES * N_MODES] = {{0}};
  kiln_target targets[N_FILES * N_MODES] = {{0}};
  size_t which[N_FILES * N_MODES], n = 0;
  kiln_job *job;

  snprintf(toolkit, sizeof toolkit, "-I%.400s",
           elsewhere != NULL ? elsewhere : KILN_TEST_CUDA_INCLUDE);
  snprintf(cccl, sizeof cccl, "%.500s/cccl", toolkit);

  for (size_t i = 0; i < N_FILES * N_MODES; i++) {
    const int mode = (int)(i % N_MODES);

    if (!wanted(i / N_MODES, mode))
      continue;
    descs[n] = (kiln_program_desc){.source = sources[i / N_MODES],
                                   .name = files[i / N_MODES],
                                   .debug = mode == DEBUG,
                                   .lineinfo = mode == LINEINFO,
                                   .fast_math = mode == FAST};
    if (i / N_MODES >= FIRST_WITH_HEADERS) {
      descs[n].options = options;
      descs[n].n_options = 3;
    }
    targets[n] = (kiln_target){.cc = t.cc, .ptx = on_cpu()};
    which[n++] = i;
  }
  ck_kiln_ok(kiln_job_start(&job, t.rt, descs, targets, n, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  for (size_t i = 0; i < n; i++) {
    kiln_image *image;

    ck_kiln_ok(kiln_job_image(job, i, &image));
    run_image(which[i] / N_MODES, (int)(which[i] % N_MODES), image);
    kiln_image_free(image);
  }
  kiln_job_free(job);
}

static void read_sources(void)
{
  char path[512];
  size_t size;

  for (size_t i = 0; i < N_FILES; i++) {
    snprintf(path, sizeof path, "%s/tests/corpus/%s.cu", KILN_TEST_SOURCE,
             files[i]);
    sources[i] = test_read_file(path, &size);
  }
}

/* Tells whether the newest NVRTC compiles for the architecture t.cc. Also sets
 * t.headers. */
static bool compiler_knows(void)
{
  kiln_nvrtc_info info[8];
  size_t n = 0;

  ck_kiln_ok(kiln_runtime_nvrtc(t.rt, info, 8, &n));
  t.headers = n > 0 && info[0].version / 1000 == KILN_TEST_CUDA_VERSION / 1000;
  if (!t.headers)
    printf("left out: what needs the toolkit's headers; none of this NVRTC's "
           "CUDA are here\n");
  for (size_t i = 0; n > 0 && i < info[0].n_archs; i++) {
    if (info[0].archs[i] == t.cc)
      return true;
  }
  return false;
}

START_TEST(corpus)
{
  const kiln_runtime_opts opts = {
      .cache_off = true, .driver = on_cpu() ? kiln_cpu_driver() : NULL};
  kiln_cpu_opts cpu;

  t.cc = all_targets[_i];
  if (on_cpu()) {
    ck_kiln_ok(kiln_cpu_parse(&cpu, test_cpu));
    cpu.arch = t.cc;
    ck_kiln_ok(kiln_cpu_configure(&cpu));
  }
  ck_kiln_ok(kiln_runtime_create(&t.rt, &opts));
  ck_kiln_ok(kiln_device_open(&t.device, t.rt, 0, NULL));
  t.cc = kiln_device_traits(t.device)->cc;
  if (compiler_knows()) {
    read_sources();
    ck_kiln_ok(kiln_memory_alloc(&t.in, t.device, WORDS * sizeof(word)));
    ck_kiln_ok(kiln_memory_alloc(&t.out, t.device, WORDS * sizeof(word)));
    run_all();
    ck_kiln_ok(kiln_memory_free(t.device, t.in));
    ck_kiln_ok(kiln_memory_free(t.device, t.out));
    for (size_t i = 0; i < N_FILES; i++)
      free(sources[i]);
  } else {
    printf("no compiler for %d\n", t.cc);
  }
  kiln_device_free(t.device);
  kiln_runtime_free(t.rt);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("corpus");
  TCase *c = tcase_create("corpus");
  const int n = (int)(sizeof all_targets / sizeof all_targets[0]);

  tcase_set_timeout(c, 600);
  tcase_add_loop_test(c, corpus, 0, on_cpu() ? n : 1);
  suite_add_tcase(s, c);
  return s;
}

DEVICE_TEST_MAIN(make_suite)
