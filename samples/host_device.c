/* host_device.c -- one function that is compiled for host and device, and code
 * paths that __CUDA_ARCH__ selects (row A3 of the lectures; also B2, E3).
 *
 * The macro BOTH() compiles its argument for the host and also stores it as a
 * string for the kernel, so the two versions are always equal. The second
 * kernel takes the code path of its architecture. The CPU device runs the
 * kernel once for each architecture. */
#include "sample.h"

#include <math.h>

#define BOTH(...)                                                              \
  __VA_ARGS__                                                                  \
  static const char both_text[] = "__device__ " #__VA_ARGS__ "\n";

/* Evaluates a polynomial of degree 3 by Horner's rule. */
BOTH(static float polynomial(float x) {
  return ((2.0f * x - 3.0f) * x + 0.5f) * x - 1.0f;
})

static const char kernels[] =
    "extern \"C\" __global__ void evaluate(float *y, const float *x, int n)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = polynomial(x[i]);\n"
    "}\n"
    "extern \"C\" __global__ void sum(int *out, const int *x)\n"
    "{\n"
    "  int v = x[threadIdx.x];\n"
    "#if __CUDA_ARCH__ >= 800\n"
    "  v = __reduce_add_sync(~0u, v); /* one instruction */\n"
    "  const int path = 3;\n"
    "#elif __CUDA_ARCH__ >= 700\n"
    "  for (int d = 16; d > 0; d /= 2)\n"
    "    v += __shfl_down_sync(~0u, v, d);\n"
    "  const int path = 2;\n"
    "#else\n"
    "  __shared__ volatile int all[32]; /* lock-step orders it */\n"
    "  all[threadIdx.x] = v;\n"
    "  for (int d = 16; d > 0; d /= 2)\n"
    "    if (threadIdx.x < d)\n"
    "      all[threadIdx.x] = all[threadIdx.x] + all[threadIdx.x + d];\n"
    "  v = all[threadIdx.x];\n"
    "  const int path = 1;\n"
    "#endif\n"
    "  if (threadIdx.x == 0) {\n"
    "    out[0] = v;\n"
    "    out[1] = __CUDA_ARCH__;\n"
    "    out[2] = path;\n"
    "  }\n"
    "}\n";

enum { N = 1000 };

static kiln_module *load(sample *s)
{
  static char source[sizeof both_text + sizeof kernels];
  const kiln_program_desc desc = {.source = source, .name = "host_device.cu"};

  snprintf(source, sizeof source, "%s%s", both_text, kernels);
  return sample_module(s, &desc);
}

/* Compares the values that the kernel computes with those of the same function
 * on the host. */
static bool same_function(sample *s, kiln_module *module)
{
  static float x[N], y[N];
  const kiln_launch_config config = kiln_launch_1d(N, 128);
  const int n = N;
  kiln_kernel *evaluate;
  CUdeviceptr dx, dy;
  float worst = 0;

  for (int i = 0; i < N; i++) {
    const int from_middle = i - N / 2;

    x[i] = (float)from_middle / 100;
  }
  SAMPLE_TRY(kiln_module_kernel(&evaluate, module, "evaluate"));
  SAMPLE_TRY(kiln_memory_alloc(&dx, s->device, sizeof x));
  SAMPLE_TRY(kiln_memory_alloc(&dy, s->device, sizeof y));
  SAMPLE_TRY(kiln_copy_to_device(s->device, dx, x, sizeof x));
  SAMPLE_TRY(
      KILN_LAUNCH(evaluate, &config, KILN_ARG(dy), KILN_ARG(dx), KILN_ARG(n)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, y, dy, sizeof y));
  SAMPLE_TRY(kiln_memory_free(s->device, dx));
  SAMPLE_TRY(kiln_memory_free(s->device, dy));
  for (int i = 0; i < N; i++) {
    const float error = fabsf(y[i] - polynomial(x[i]));

    worst = error > worst ? error : worst;
  }
  printf(
      "polynomial(0.5): host %.7f, device %.7f; largest difference %.1e (the "
      "device fuses multiply and add)\n",
      (double)polynomial(0.5f), (double)y[N / 2 + 50], (double)worst);
  return worst < 2e-4f;
}

static bool path_taken(sample *s, kiln_module *module)
{
  static const char *const paths[] = {"", "shared memory", "shuffles",
                                      "one redux"};
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  kiln_kernel *sum;
  CUdeviceptr dx, out;
  int x[32], got[3];

  for (int i = 0; i < 32; i++)
    x[i] = i * i;
  SAMPLE_TRY(kiln_module_kernel(&sum, module, "sum"));
  SAMPLE_TRY(kiln_memory_alloc(&dx, s->device, sizeof x));
  SAMPLE_TRY(kiln_memory_alloc(&out, s->device, sizeof got));
  SAMPLE_TRY(kiln_copy_to_device(s->device, dx, x, sizeof x));
  SAMPLE_TRY(KILN_LAUNCH(sum, &config, KILN_ARG(out), KILN_ARG(dx)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, out, sizeof got));
  SAMPLE_TRY(kiln_memory_free(s->device, dx));
  SAMPLE_TRY(kiln_memory_free(s->device, out));
  printf("  __CUDA_ARCH__ %4d: sum of squares %d, by %s\n", got[1], got[0],
         got[2] >= 1 && got[2] <= 3 ? paths[got[2]] : "?");
  return got[0] == 31 * 32 * 63 / 6;
}

/* Runs every code path on the CPU device. Paths for architectures that no
 * installed NVRTC supports are skipped. */
static bool other_paths(const sample *s)
{
  static const int archs[] = {61, 75, 90};
  bool good = true;

  for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
    const kiln_cpu_opts cpu = {.arch = archs[i]};
    const kiln_target target = {.cc = archs[i], .ptx = true};
    const kiln_program_desc probe = {.source = "__device__ int x;",
                                     .name = "probe.cu"};
    kiln_image *image;
    kiln_module *module;
    kiln_status st;
    sample played;

    sample_cpu(&played, s, &cpu);
    st = kiln_compile(&image, played.rt, &probe, &target);
    if (st != KILN_EUNSUPPORTED) {
      SAMPLE_TRY(st);
      kiln_image_free(image);
      module = load(&played);
      good = path_taken(&played, module) && good;
      kiln_module_free(module);
    } else {
      printf("  %d.%d: no NVRTC here compiles for it\n", archs[i] / 10,
             archs[i] % 10);
    }
    sample_close(&played);
  }
  return good;
}

int main(int argc, char **argv)
{
  kiln_module *module;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = load(&s);
  good = same_function(&s, module);
  printf("the path taken here:\n");
  good = path_taken(&s, module) && good;
  kiln_module_free(module);
  kiln_device_free(s.device);
  s.device = NULL;
  printf("the paths of other architectures, on the CPU device:\n");
  good = other_paths(&s) && good;
  return sample_end(&s, good);
}
