/* memory_types.c -- one kernel for each kind of memory: registers, local,
 * shared, global, constant and texture memory (row A8 of the lectures; also B).
 *
 * Every thread of each kernel reads the same 16 numbers 4,096 times, and all
 * kernels must give the same result. The times, measured with events, show the
 * cost of a read. Registers can only be indexed by compile-time constants. If
 * the index is not a constant, the compiler places the array in local memory.
 * Constant memory is fast if all lanes of a warp read the same word. */
#include "sample.h"

static const char source[] =
    "enum { N = 16, ROUNDS = 256 };\n"
    "__constant__ int c[N];\n"
    "#define KERNEL(name, ...)                                             \\\n"
    "  extern \"C\" __global__ void name(int *out, const int *in, int step, "
    "\\\n"
    "                                  unsigned long long texture)        \\\n"
    "  {                                                                   \\\n"
    "    int sum = 0;                                                      \\\n"
    "    __VA_ARGS__                                                       \\\n"
    "    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                 \\\n"
    "  }\n"
    "#define READ(place)                                                   \\\n"
    "  for (int r = 0; r < ROUNDS; r++)                                    \\\n"
    "    for (int k = 0; k < N; k++) sum += (place) ^ r;\n"
    "KERNEL(in_registers, int a[N];\n"
    "       for (int k = 0; k < N; k++) a[k] = in[k];\n"
    "       for (int r = 0; r < ROUNDS; r++) {\n"
    "         _Pragma(\"unroll\")\n"
    "         for (int k = 0; k < N; k++) sum += a[k] ^ r; })\n"
    "KERNEL(in_local, int a[N];\n"
    "       for (int k = 0; k < N; k++) a[k * step & 15] = in[k];\n"
    "       READ(a[k * step & 15]))\n"
    "KERNEL(in_shared, __shared__ volatile int a[N];\n"
    "       if (threadIdx.x < N) a[threadIdx.x] = in[threadIdx.x];\n"
    "       __syncthreads();\n"
    "       READ(a[k]))\n"
    "KERNEL(in_global, const volatile int *a = in; READ(a[k]))\n"
    "KERNEL(in_constant, READ(c[k * step & 15]))\n"
    "extern \"C\" __device__ int fetch(unsigned long long t, int i)\n"
    "{\n"
    "  int x, y, z, w;\n"
    "  asm volatile(\"tex.1d.v4.s32.s32 {%0,%1,%2,%3}, [%4, {%5}];\"\n"
    "      : \"=r\"(x), \"=r\"(y), \"=r\"(z), \"=r\"(w) : \"l\"(t), "
    "\"r\"(i));\n"
    "  return x;\n"
    "}\n"
    "KERNEL(in_texture, READ(fetch(texture, k)))\n";

enum { N = 16, ROUNDS = 256, BLOCK = 128, BLOCKS = 4, REPEATS = 5 };

static const struct {
  const char *kernel, *place, *scope;
} kinds[] = {
    {"in_registers", "registers", "thread"},
    {"in_local", "local", "thread"},
    {"in_shared", "shared", "block"},
    {"in_global", "global", "grid"},
    {"in_constant", "constant", "grid, read only"},
    {"in_texture", "texture", "grid, read only"},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void print_sizes(const sample *s)
{
  const kiln_traits *t = kiln_device_traits(s->device);
  kiln_device_info info;

  SAMPLE_TRY(kiln_device_describe(s->device, &info));
  printf("%s\n  registers  %d per thread, %d per SM\n"
         "  local      512 KiB per thread, in device memory\n"
         "  shared     %d KiB per block, %d with opt-in, %d per SM\n"
         "  global     %.1f GiB, behind %d KiB of second-level cache\n"
         "  constant   64 KiB\n"
         "  texture    arrays of up to 2^17 x 2^16 texels in device memory\n\n",
         info.name, t->max_regs_per_thread, t->regs_per_sm,
         t->smem_per_block / 1024, t->smem_per_block_optin / 1024,
         t->smem_per_sm / 1024, (double)info.memory_bytes / (1 << 30),
         info.l2_bytes / 1024);
}

static double time_kernel(sample *s, kiln_kernel *kernel, CUdeviceptr out,
                          CUdeviceptr in, uint64_t texture)
{
  const kiln_launch_config config = {.grid = {.x = BLOCKS},
                                     .block = {.x = BLOCK}};
  const int step = 1;
  kiln_event *from, *to;
  double times[REPEATS];

  SAMPLE_TRY(kiln_event_create(&from, s->device, true));
  SAMPLE_TRY(kiln_event_create(&to, s->device, true));
  for (int i = 0; i < REPEATS; i++) {
    float ms;

    SAMPLE_TRY(kiln_event_record(from, NULL));
    SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(out), KILN_ARG(in),
                           KILN_ARG(step), KILN_ARG(texture)));
    SAMPLE_TRY(kiln_event_record(to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&ms, from, to));
    times[i] = (double)ms;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(times, REPEATS);
}

static bool check(sample *s, CUdeviceptr out, const int in[N])
{
  int got[BLOCK * BLOCKS], want = 0;
  bool good = true;

  for (int r = 0; r < ROUNDS; r++) {
    for (int k = 0; k < N; k++)
      want += in[k] ^ r;
  }
  SAMPLE_TRY(kiln_copy_to_host(s->device, got, out, sizeof got));
  for (int i = 0; i < BLOCK * BLOCKS; i++)
    good = good && got[i] == want;
  return good;
}

/* Makes a CUDA array of the numbers, and a texture that reads the array. */
static kiln_cuda_array *make_array(sample *s, const int in[N],
                                   uint64_t *texture)
{
  const kiln_cuda_array_desc desc = {
      .width = N, .texel = KILN_TEXEL_S32, .channels = 1};
  const kiln_texture_desc how = {.as_integer = true};
  kiln_cuda_array *array;

  SAMPLE_TRY(kiln_cuda_array_create(&array, s->device, &desc));
  SAMPLE_TRY(kiln_cuda_array_write(array, in));
  SAMPLE_TRY(kiln_texture_create(texture, array, &how));
  return array;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.source = source,
                                     .name = "memory_types.cu"};
  const double reads = (double)N * ROUNDS * BLOCK * BLOCKS;
  CUdeviceptr out, din;
  kiln_module *module;
  kiln_cuda_array *array;
  uint64_t texture;
  bool good = true;
  int in[N];
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  print_sizes(&s);
  for (int i = 0; i < N; i++)
    in[i] = i * i + 1;
  SAMPLE_TRY(kiln_memory_alloc(&out, s.device, BLOCK * BLOCKS * sizeof *in));
  SAMPLE_TRY(kiln_memory_alloc(&din, s.device, sizeof in));
  SAMPLE_TRY(kiln_copy_to_device(s.device, din, in, sizeof in));
  SAMPLE_TRY(kiln_symbol_write(module, "c", 0, in, sizeof in));
  array = make_array(&s, in, &texture);

  printf("  %-10s %-16s %12s\n", "memory", "seen by", "ns a read");
  for (int i = 0; i < N_KINDS; i++) {
    kiln_kernel *kernel;
    double ms;

    SAMPLE_TRY(kiln_fill(s.device, out, 0, 4, BLOCK * BLOCKS));
    SAMPLE_TRY(kiln_module_kernel(&kernel, module, kinds[i].kernel));
    ms = time_kernel(&s, kernel, out, din, texture);
    printf("  %-10s %-16s %12.5f\n", kinds[i].place, kinds[i].scope,
           ms * 1e6 / reads);
    good = check(&s, out, in) && good;
  }
  SAMPLE_TRY(kiln_texture_free(s.device, texture));
  kiln_cuda_array_free(array);
  SAMPLE_TRY(kiln_memory_free(s.device, out));
  SAMPLE_TRY(kiln_memory_free(s.device, din));
  kiln_module_free(module);
  return sample_end(&s, good);
}
