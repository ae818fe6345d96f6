/* bank_conflicts.c -- shared memory has 32 banks of 4 bytes. Lanes that read
 * different words of the same bank wait for each other (row D3 of the
 * lectures). An access that needs n passes is called an n-way conflict:
 *
 *   stride 1       every lane reads its own bank         1 way
 *   stride 2       lanes 0 and 16 share one bank         2 ways
 *   stride 3       3 and 32 have no common divisor       1 way
 *   permutation    the lanes read all banks, reordered   1 way
 *   same word      all lanes read one word: broadcast    1 way
 *
 * The CPU device counts the passes. The values are checked on the device that
 * runs the sample. */
#include "sample.h"

static const char source[] =
    "extern \"C\" __global__ void pattern(int *out, const int *index)\n"
    "{\n"
    "  __shared__ int words[128];\n"
    "  const int i = threadIdx.x;\n"
    "  for (int k = i; k < 128; k += 32)\n"
    "    words[k] = k * 10;\n"
    "  __syncthreads();\n"
    "  out[i] = words[index[i]];\n"
    "}\n";

enum { LANES = 32 };

static const char *const names[] = {"stride 1", "stride 2", "stride 3",
                                    "permutation", "same word"};
static const uint64_t ways[] = {1, 2, 1, 1, 1};

enum { N_PATTERNS = sizeof ways / sizeof ways[0] };

static void make_index(int pattern, int index[LANES])
{
  for (int i = 0; i < LANES; i++) {
    switch (pattern) {
    case 0:
    case 1:
    case 2:
      index[i] = i * (pattern + 1);
      break;
    case 3:
      /* 11 is odd, so every bank occurs once. */
      index[i] = (i * 11 + 7) % LANES;
      break;
    default:
      index[i] = 5;
      break;
    }
  }
}

static bool run(sample *s, kiln_module *module, int pattern)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = LANES}};
  int index[LANES], out[LANES];
  kiln_kernel *kernel;
  CUdeviceptr di, dout;
  bool good = true;

  make_index(pattern, index);
  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "pattern"));
  SAMPLE_TRY(kiln_memory_alloc(&di, s->device, sizeof index));
  SAMPLE_TRY(kiln_memory_alloc(&dout, s->device, sizeof out));
  SAMPLE_TRY(kiln_copy_to_device(s->device, di, index, sizeof index));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(dout), KILN_ARG(di)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, out, dout, sizeof out));
  SAMPLE_TRY(kiln_memory_free(s->device, di));
  SAMPLE_TRY(kiln_memory_free(s->device, dout));
  for (int i = 0; i < LANES; i++)
    good = good && out[i] == index[i] * 10;
  return good;
}

static void take(void *user, const kiln_cpu_counters *k)
{
  *(kiln_cpu_counters *)user = *k;
}

static bool count(const sample *s, const kiln_program_desc *program)
{
  const kiln_cpu_opts cpu = {.counters = true};
  kiln_module *module;
  sample counting;
  bool good = true;

  sample_cpu(&counting, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, counting.device, program));
  for (int i = 0; i < N_PATTERNS; i++) {
    kiln_cpu_counters k = {0};
    bool right;

    SAMPLE_TRY(kiln_cpu_reset_counters());
    right = run(&counting, module, i);
    SAMPLE_TRY(kiln_cpu_each_counters(take, NULL, &k));
    right =
        right && k.shared_load_requests == 1 && k.shared_load_passes == ways[i];
    printf("  %-12s %llu way%s for %llu access%s%s\n", names[i],
           (unsigned long long)k.shared_load_passes,
           k.shared_load_passes == 1 ? " " : "s",
           (unsigned long long)k.shared_load_requests,
           k.shared_load_requests == 1 ? "" : "es",
           right ? "" : "  <-- NOT EXPECTED");
    good = good && right;
  }
  kiln_module_free(module);
  sample_close(&counting);
  return good;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.source = source,
                                     .name = "bank_conflicts.cu"};
  kiln_module *module;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  for (int i = 0; i < N_PATTERNS; i++)
    good = run(&s, module, i) && good;
  kiln_module_free(module);
  good = count(&s, &program) && good;
  return sample_end(&s, good);
}
