/* saxpy.c -- computes y = a x + y with a kernel that is a string in this
 * program (row E1 of the lectures). The results are compared with a loop on the
 * host. The rates count 12 bytes per element: x and y are read, and y is
 * written. */
#include "sample.h"

static const char source[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y,\n"
    "                                 unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    y[i] = a * x[i] + y[i];\n"
    "}\n";

enum { REPEATS = 15 };

typedef struct arrays {
  float *x, *y, *result;
  CUdeviceptr dx, dy;
} arrays;

/* Fills the arrays with small whole numbers, so that the results are exact with
 * any order of rounding. */
static void fill(const arrays *v, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    v->x[i] = (float)(i % 1000);
    v->y[i] = (float)(i % 77);
  }
}

/* Returns the median time of one launch in milliseconds, measured with
 * events. */
static double time_it(kiln_device *device, kiln_kernel *saxpy,
                      const kiln_launch_config *config, float a,
                      const arrays *v, uint32_t n)
{
  double times[REPEATS];
  kiln_event *from, *to;

  SAMPLE_TRY(kiln_event_create(&from, device, true));
  SAMPLE_TRY(kiln_event_create(&to, device, true));
  for (int i = 0; i < REPEATS; i++) {
    float ms;

    SAMPLE_TRY(kiln_event_record(from, NULL));
    SAMPLE_TRY(KILN_LAUNCH(saxpy, config, KILN_ARG(a), KILN_ARG(v->dx),
                           KILN_ARG(v->dy), KILN_ARG(n)));
    SAMPLE_TRY(kiln_event_record(to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&ms, from, to));
    times[i] = (double)ms;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(times, REPEATS);
}

static bool run(kiln_device *device, kiln_kernel *saxpy, const arrays *v,
                uint32_t n, kiln_launch_config config)
{
  const float a = 2;
  const size_t size = n * sizeof(float);
  size_t wrong = 0;
  double host, gpu;

  fill(v, n);
  SAMPLE_TRY(kiln_copy_to_device(device, v->dx, v->x, size));
  SAMPLE_TRY(kiln_copy_to_device(device, v->dy, v->y, size));
  SAMPLE_TRY(KILN_LAUNCH(saxpy, &config, KILN_ARG(a), KILN_ARG(v->dx),
                         KILN_ARG(v->dy), KILN_ARG(n)));
  SAMPLE_TRY(kiln_copy_to_host(device, v->result, v->dy, size));

  host = sample_now_ms();
  for (uint32_t i = 0; i < n; i++)
    v->y[i] = a * v->x[i] + v->y[i];
  host = sample_now_ms() - host;
  for (uint32_t i = 0; i < n; i++)
    wrong += v->result[i] != v->y[i];

  gpu = time_it(device, saxpy, &config, a, v, n);
  printf("  %9u  %7u x %4u  %9.4f ms  %8.1f GB/s  %9.4f ms  %zu wrong\n", n,
         config.grid.x, config.block.x, gpu, 12.0 * n / gpu / 1e6, host, wrong);
  return wrong == 0;
}

int main(int argc, char **argv)
{
  enum { LARGEST = 1 << 26 };
  static const uint32_t sizes[] = {1000, 1 << 16, 1 << 20, 1 << 24, LARGEST};
  const kiln_program_desc program = {.source = source, .name = "saxpy.cu"};
  const size_t size = LARGEST * sizeof(float);
  kiln_module *module;
  kiln_kernel *saxpy;
  arrays v;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&saxpy, module, "saxpy"));
  v.x = sample_alloc(size);
  v.y = sample_alloc(size);
  v.result = sample_alloc(size);
  SAMPLE_TRY(kiln_memory_alloc(&v.dx, s.device, size));
  SAMPLE_TRY(kiln_memory_alloc(&v.dy, s.device, size));

  printf("   elements  blocks x threads   GPU time          rate    host, one "
         "thread\n");
  good = run(s.device, saxpy, &v, 1000,
             (kiln_launch_config){.grid = {.x = 1}, .block = {.x = 1000}});
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    good = run(s.device, saxpy, &v, sizes[i], kiln_launch_1d(sizes[i], 256)) &&
           good;

  SAMPLE_TRY(kiln_memory_free(s.device, v.dx));
  SAMPLE_TRY(kiln_memory_free(s.device, v.dy));
  free(v.x);
  free(v.y);
  free(v.result);
  kiln_module_free(module);
  return sample_end(&s, good);
}
