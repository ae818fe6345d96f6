/* checks.c -- finds one deliberate bug of each kind (row A13 of the lectures):
 * out-of-bounds access, memory leak, race, read of uninitialised memory, and
 * wrong synchronisation.
 *
 * The CPU device examines every memory access, so the sample needs no GPU and
 * no tool. `kiln check FILE.cu` reports the same findings. Each finding must
 * name the line that is marked with BUG. */
#include "sample.h"

static const char source[] =
    "extern \"C\" __global__ void violation(float *x, int n)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i <= n)\n"
    "    x[i] = i; // BUG violation: one too many\n"
    "}\n"
    "extern \"C\" __global__ void race(float *x)\n"
    "{\n"
    "  __shared__ float s[64];\n"
    "  s[threadIdx.x] = x[threadIdx.x];\n"
    "  // a barrier is missing here\n"
    "  x[threadIdx.x] = s[63 - threadIdx.x]; // BUG race\n"
    "}\n"
    "extern \"C\" __global__ void uninitialised(float *x)\n"
    "{\n"
    "  __shared__ float s[64];\n"
    "  if (threadIdx.x < 60)\n"
    "    s[threadIdx.x] = x[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  x[threadIdx.x] = s[threadIdx.x]; // BUG uninitialised\n"
    "}\n"
    "extern \"C\" __global__ void divergent(float *x)\n"
    "{\n"
    "  if (threadIdx.x < 40)\n"
    "    __syncthreads(); // BUG divergent\n"
    "  x[threadIdx.x] = 1;\n"
    "}\n"
    "extern \"C\" __global__ void mask(int *x)\n"
    "{\n"
    "  if (threadIdx.x < 16)\n"
    "    x[threadIdx.x] =\n"
    "        __shfl_sync(0xffff0000, (int)threadIdx.x, 0); // BUG mask\n"
    "}\n";

enum { N = 64 };

static const struct bug {
  const char *kernel, *kind;
  /* Only one check at a time, since a racing kernel also reads uninitialised
   * memory. */
  unsigned check;
  bool with_n;
} bugs[] = {
    {"violation", "out of bounds", KILN_CPU_CHECK_MEMORY, true},
    {"race", "race", KILN_CPU_CHECK_RACE, false},
    {"uninitialised", "uninitialised read", KILN_CPU_CHECK_INIT, false},
    {"divergent", "divergent barrier", KILN_CPU_CHECK_SYNC, false},
    {"mask", "wrong mask", KILN_CPU_CHECK_SYNC, false},
};

enum { N_BUGS = sizeof bugs / sizeof bugs[0] };

/* Returns the number of the source line that is marked with BUG and the
 * kernel's name. */
static unsigned marked_line(const char *kernel)
{
  char mark[64];
  const char *at;
  unsigned line = 1;

  snprintf(mark, sizeof mark, "BUG %s", kernel);
  at = strstr(source, mark);
  for (const char *p = source; at != NULL && p < at; p++)
    line += *p == '\n';
  return line;
}

typedef struct expected {
  const struct bug *bug;
  unsigned line;
  int right, others;
} expected;

static void take(void *user, const kiln_cpu_finding *f)
{
  expected *e = user;

  printf("%s\n\n", f->text);
  if (strcmp(f->kind, e->bug->kind) == 0 && f->line == e->line &&
      strcmp(f->kernel, e->bug->kernel) == 0)
    e->right++;
  else if (strcmp(f->kind, e->bug->kind) != 0)
    e->others++; /* a race may also be reported at the other of its two lines */
}

static void leaks(void *user, const kiln_cpu_finding *f)
{
  printf("%s\n\n", f->text);
  if (strcmp(f->kind, "leak") == 0 && f->bytes == 12345)
    ++*(int *)user;
}

/* Launches the kernel with a bug on a separate device, since a fault destroys
 * the context. Returns true if the bug is found at the marked line. */
static bool plant(const sample *s, const struct bug *bug)
{
  const kiln_cpu_opts cpu = {.checks = bug->check};
  const kiln_program_desc program = {
      .source = source, .name = "bugs.cu", .lineinfo = true};
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = N}};
  const float zeros[N] = {0};
  /* The kernel accesses n + 1 elements, one more than are allocated. */
  const int n = N - 1;
  expected e = {bug, marked_line(bug->kernel), 0, 0};
  kiln_module *module;
  kiln_kernel *kernel;
  sample checked;
  CUdeviceptr d;
  size_t size = bug->with_n ? sizeof zeros - sizeof zeros[0] : sizeof zeros;

  sample_cpu(&checked, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, checked.device, &program));
  SAMPLE_TRY(kiln_module_kernel(&kernel, module, bug->kernel));
  SAMPLE_TRY(kiln_memory_alloc(&d, checked.device, size));
  SAMPLE_TRY(kiln_copy_to_device(checked.device, d, zeros, size));
  if (bug->with_n)
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d), KILN_ARG(n)));
  else
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d)));
  if (kiln_device_synchronize(checked.device) == KILN_OK)
    SAMPLE_TRY(kiln_memory_free(checked.device, d));
  SAMPLE_TRY(kiln_cpu_take_findings(take, &e));
  kiln_module_free(module);
  sample_close(&checked);
  /* Findings from the destruction of the context. */
  SAMPLE_TRY(kiln_cpu_take_findings(take, &e));
  return e.right > 0 && e.others == 0;
}

/* Allocates memory that is not freed before the context is destroyed. Returns
 * true if the leak is reported. */
static bool leak(const sample *s)
{
  const kiln_cpu_opts cpu = {.checks = KILN_CPU_CHECK_MEMORY};
  sample checked;
  CUdeviceptr d;
  int found = 0;

  sample_cpu(&checked, s, &cpu);
  SAMPLE_TRY(kiln_memory_alloc(&d, checked.device, 12345));
  sample_close(&checked);
  SAMPLE_TRY(kiln_cpu_take_findings(leaks, &found));
  return found == 1;
}

int main(int argc, char **argv)
{
  const kiln_cpu_opts none = {0};
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  kiln_device_free(s.device);
  s.device = NULL;
  for (int i = 0; i < N_BUGS; i++) {
    const bool found = plant(&s, &bugs[i]);

    if (!found)
      printf("%s: NOT FOUND as it should be\n\n", bugs[i].kernel);
    good = good && found;
  }
  good = leak(&s) && good;
  SAMPLE_TRY(kiln_cpu_configure(&none));
  return sample_end(&s, good);
}
