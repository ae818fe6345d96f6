/* vector_add.c -- adds 1,000 elements in blocks of 256 threads, and shows which
 * warps diverge (row B6 of the lectures; also C7, E).
 *
 * Four blocks have 1,024 threads, so the condition `if (i < n)` splits only one
 * warp: 8 of its lanes add, and 24 do not. Exactly one of the 32 warps
 * diverges, and also for larger n at most one warp diverges. The CPU device
 * counts divergent branches. */
#include "sample.h"

static const char source[] =
    "extern \"C\" __global__ void add(float *c, const float *a,\n"
    "                               const float *b, unsigned n)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    c[i] = a[i] + b[i];\n"
    "}\n";

enum { N = 1000, BLOCK = 256 };

static bool run(sample *s, kiln_module *module)
{
  static float a[N], b[N], c[N];
  const kiln_launch_config config = kiln_launch_1d(N, BLOCK);
  const uint32_t n = N;
  kiln_kernel *add;
  CUdeviceptr d[3];
  bool good = true;

  for (int i = 0; i < N; i++) {
    a[i] = (float)i;
    b[i] = 0.5f;
    c[i] = -1;
  }
  SAMPLE_TRY(kiln_module_kernel(&add, module, "add"));
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_alloc(&d[i], s->device, sizeof a));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d[1], a, sizeof a));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d[2], b, sizeof b));
  SAMPLE_TRY(KILN_LAUNCH(add, &config, KILN_ARG(d[0]), KILN_ARG(d[1]),
                         KILN_ARG(d[2]), KILN_ARG(n)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, c, d[0], sizeof c));
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_free(s->device, d[i]));
  for (int i = 0; i < N; i++)
    good = good && c[i] == (float)i + 0.5f;
  return good;
}

static void take(void *user, const kiln_cpu_counters *k)
{
  *(kiln_cpu_counters *)user = *k;
}

static bool count(const sample *s, const kiln_program_desc *program)
{
  const kiln_cpu_opts cpu = {.counters = true};
  kiln_cpu_counters k = {0};
  kiln_module *module;
  sample counting;
  bool good;

  sample_cpu(&counting, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, counting.device, program));
  SAMPLE_TRY(kiln_cpu_reset_counters());
  good = run(&counting, module);
  SAMPLE_TRY(kiln_cpu_each_counters(take, NULL, &k));
  kiln_module_free(module);
  sample_close(&counting);
  printf("%d elements, blocks of %d: %llu of %llu warps diverge\n", N, BLOCK,
         (unsigned long long)k.divergent_branches,
         (unsigned long long)k.branches);
  return good && k.branches == 32 && k.divergent_branches == 1;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.source = source, .name = "vector_add.cu"};
  kiln_module *module;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  good = run(&s, module);
  kiln_module_free(module);
  good = count(&s, &program) && good;
  return sample_end(&s, good);
}
