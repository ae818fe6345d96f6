/* synchronise.c -- barriers for the threads of a block, for lanes of a warp in
 * different branches, and for the whole grid, and the result of wrong use (row
 * A6 of the lectures). */
#include "sample.h"

static const char source[] =
    /* Block barrier: after it, every thread sees the values of all threads. */
    "extern \"C\" __global__ void reverse(int *x)\n"
    "{\n"
    "  __shared__ int all[256];\n"
    "  const int i = threadIdx.x;\n"
    "  all[i] = x[i];\n"
    "  __syncthreads();\n"
    "  x[i] = all[blockDim.x - 1 - i];\n"
    "}\n"
    /* Warp barriers: first one per branch with the mask of its lanes, then one
     * for all lanes. */
    "extern \"C\" __global__ void lanes(int *x)\n"
    "{\n"
    "  __shared__ int part[32];\n"
    "  const int i = threadIdx.x;\n"
    "  part[i] = x[i];\n"
    "  if (i < 16) {\n"
    "    __syncwarp(0x0000ffff);\n"
    "    x[i] = part[15 - i];\n"
    "    __syncwarp();\n"
    "  } else {\n"
    "    __syncwarp(0xffff0000);\n"
    "    x[i] = part[47 - i];\n"
    "    __syncwarp();\n"
    "  }\n"
    "}\n"
    /* Grid barrier: every block writes its value before any block reads its
     * neighbour's value. In a cooperative launch all blocks are resident, so a
     * block may safely wait in a loop. */
    "extern \"C\" __global__ void neighbours(int *out, int *in,\n"
    "                                      unsigned *arrived)\n"
    "{\n"
    "  if (threadIdx.x == 0) {\n"
    "    in[blockIdx.x] = blockIdx.x * 100;\n"
    "    __threadfence();\n"
    "    atomicAdd(arrived, 1u);\n"
    "    while (atomicAdd(arrived, 0u) < gridDim.x) { }\n"
    "    __threadfence();\n"
    "    out[blockIdx.x] = in[(blockIdx.x + 1) % gridDim.x];\n"
    "  }\n"
    "}\n"
    /* Wrong use: half of the block never reaches the barrier. */
    "extern \"C\" __global__ void half(int *x)\n"
    "{\n"
    "  if (threadIdx.x < 32)\n"
    "    __syncthreads();\n"
    "  else\n"
    "    while (atomicAdd(x, 0) == 0) { }\n"
    "  x[1] = 1;\n"
    "}\n";

static const kiln_program_desc program = {.source = source,
                                          .name = "synchronise.cu"};

static CUdeviceptr upload(sample *s, const int *x, size_t size)
{
  CUdeviceptr d;

  SAMPLE_TRY(kiln_memory_alloc(&d, s->device, size));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d, x, size));
  return d;
}

static bool say(const char *what, bool good)
{
  printf("  %-44s %s\n", what, good ? "as it should" : "WRONG");
  return good;
}

static bool block(sample *s, kiln_module *module)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 256}};
  kiln_kernel *reverse;
  CUdeviceptr d;
  int x[256];
  bool good = true;

  for (int i = 0; i < 256; i++)
    x[i] = i;
  d = upload(s, x, sizeof x);
  SAMPLE_TRY(kiln_module_kernel(&reverse, module, "reverse"));
  SAMPLE_TRY(KILN_LAUNCH(reverse, &config, KILN_ARG(d)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, x, d, sizeof x));
  SAMPLE_TRY(kiln_memory_free(s->device, d));
  for (int i = 0; i < 256; i++)
    good = good && x[i] == 255 - i;
  return say("__syncthreads: the block waits", good);
}

static bool lanes(sample *s, kiln_module *module)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  kiln_kernel *kernel;
  CUdeviceptr d;
  int x[32];
  bool good = true;

  for (int i = 0; i < 32; i++)
    x[i] = i;
  d = upload(s, x, sizeof x);
  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "lanes"));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(d)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, x, d, sizeof x));
  SAMPLE_TRY(kiln_memory_free(s->device, d));
  for (int i = 0; i < 32; i++)
    good = good && x[i] == (i < 16 ? 15 - i : 47 - i);
  return say("__syncwarp: masks of two branches, then all", good);
}

static bool grid(sample *s, kiln_module *module)
{
  enum { BLOCKS = 24 };
  const kiln_launch_config config = {
      .grid = {.x = BLOCKS}, .block = {.x = 64}, .cooperative = true};
  const int zeros[BLOCKS] = {0};
  CUdeviceptr in, out, arrived;
  kiln_kernel *neighbours;
  int x[BLOCKS];
  bool good = true;

  if (!kiln_device_traits(s->device)->has_coop) {
    printf("  cooperative launches came with 6.0\n");
    return true;
  }
  in = upload(s, zeros, sizeof zeros);
  out = upload(s, zeros, sizeof zeros);
  arrived = upload(s, zeros, sizeof zeros[0]);
  SAMPLE_TRY(kiln_module_kernel(&neighbours, module, "neighbours"));
  SAMPLE_TRY(KILN_LAUNCH(neighbours, &config, KILN_ARG(out), KILN_ARG(in),
                         KILN_ARG(arrived)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, x, out, sizeof x));
  SAMPLE_TRY(kiln_memory_free(s->device, in));
  SAMPLE_TRY(kiln_memory_free(s->device, out));
  SAMPLE_TRY(kiln_memory_free(s->device, arrived));
  for (int i = 0; i < BLOCKS; i++)
    good = good && x[i] == (i + 1) % BLOCKS * 100;
  return say("cooperative launch: the grid waits", good);
}

static void deadlocks(void *user, const kiln_cpu_finding *f)
{
  if (strcmp(f->kind, "deadlock") == 0 && strcmp(f->kernel, "half") == 0)
    ++*(int *)user;
}

/* Runs the kernel with the wrong barrier on the CPU device, which must report
 * the deadlock. On a GPU this kernel would hang until it is killed. */
static bool misuse(const sample *s)
{
  const kiln_cpu_opts cpu = {.checks = KILN_CPU_CHECK_SYNC};
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 64}};
  kiln_program_desc desc = program;
  const int zeros[2] = {0};
  char text[4096];
  kiln_module *module;
  kiln_kernel *half;
  kiln_status st;
  sample checked;
  int found = 0;
  CUdeviceptr d;

  desc.lineinfo = true;
  sample_cpu(&checked, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, checked.device, &desc));
  SAMPLE_TRY(kiln_module_kernel(&half, module, "half"));
  d = upload(&checked, zeros, sizeof zeros);
  SAMPLE_TRY(KILN_LAUNCH(half, &config, KILN_ARG(d)));
  st = kiln_device_synchronize(checked.device);
  SAMPLE_TRY(kiln_cpu_last_fault(text, sizeof text));
  printf("a barrier that half of the block never reaches:\n%s\n", text);
  kiln_module_free(module);
  sample_close(&checked);
  SAMPLE_TRY(kiln_cpu_take_findings(deadlocks, &found));
  return st == KILN_ESTICKY && strstr(text, "half") != NULL && found == 1;
}

int main(int argc, char **argv)
{
  kiln_module *module;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  good = block(&s, module);
  good = lanes(&s, module) && good;
  good = grid(&s, module) && good;
  kiln_module_free(module);
  /* Free the only CPU device, since the next part destroys its context. */
  if (s.on_cpu) {
    kiln_device_free(s.device);
    s.device = NULL;
  }
  good = misuse(&s) && good;
  return sample_end(&s, good);
}
