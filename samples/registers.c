/* registers.c -- a kernel needs registers, and a limit makes the compiler keep
 * values in local memory instead: it spills them (row D5 of the lectures).
 *
 *   option          max_registers in the program's description, which is NVRTC's
 *                   option --maxrregcount: a limit for every kernel
 *   launch bounds   __launch_bounds__(256, BLOCKS) in the source: the compiler
 *                   uses as few registers as BLOCKS resident blocks allow
 *
 * Fewer registers admit more warps, which hide the time of memory accesses.
 * Spills add memory accesses. The table shows both, and on a GPU the speed. The
 * results must be the same bits for every limit. */
#include "sample.h"

/* 64 values of each thread stay alive over the whole loop. */
static const char source[] =
    "#ifdef BLOCKS\n"
    "#define BOUNDS __launch_bounds__(256, BLOCKS)\n"
    "#else\n"
    "#define BOUNDS\n"
    "#endif\n"
    "extern \"C\" __global__ void BOUNDS mix(unsigned *out, const unsigned "
    "*in,\n"
    "                                      unsigned n, unsigned rounds)\n"
    "{\n"
    "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  unsigned r[64];\n"
    "  for (int k = 0; k < 64; k++)\n"
    "    r[k] = in[(i + k * 4099u) % n];\n"
    "  for (unsigned round = 0; round < rounds; round++)\n"
    "    for (int k = 0; k < 64; k++)\n"
    "      r[k] = r[k] * r[(k * 7 + 3) % 64] + r[(k + 1) % 64];\n"
    "  for (int k = 1; k < 64; k++)\n"
    "    r[0] ^= r[k];\n"
    "  out[i] = r[0];\n"
    "}\n";

enum { VALUES = 64, BLOCK = 256, REPEATS = 15 };

static const struct {
  const char *name;
  int max_registers;
  const char *define;
} limits[] = {{"no limit", 0, NULL},
              {"option, 128", 128, NULL},
              {"option, 64", 64, NULL},
              {"option, 40", 40, NULL},
              {"option, 32", 32, NULL},
              {"bounds, 2 blocks", 0, "BLOCKS=2"},
              {"bounds, 4 blocks", 0, "BLOCKS=4"},
              {"bounds, 6 blocks", 0, "BLOCKS=6"},
              {"bounds, 8 blocks", 0, "BLOCKS=8"}};

enum { N_LIMITS = sizeof limits / sizeof limits[0] };

/* The inputs and the expected results, and where they are on the device. */
typedef struct problem {
  sample *s;
  uint32_t n, rounds;
  uint32_t *in, *expected, *out;
  CUdeviceptr d_in, d_out;
} problem;

/* Computes the result of one thread on the host. */
static uint32_t mix(const problem *p, uint32_t i)
{
  uint32_t r[VALUES];

  for (uint32_t k = 0; k < VALUES; k++)
    r[k] = p->in[(i + k * 4099) % p->n];
  for (uint32_t round = 0; round < p->rounds; round++)
    for (int k = 0; k < VALUES; k++)
      r[k] = r[k] * r[(k * 7 + 3) % VALUES] + r[(k + 1) % VALUES];
  for (int k = 1; k < VALUES; k++)
    r[0] ^= r[k];
  return r[0];
}

static void set_up(problem *p, sample *s)
{
  size_t bytes;

  p->s = s;
  p->n = s->few ? 1024 : 1 << 22;
  p->rounds = s->few ? 2 : 4;
  bytes = p->n * sizeof *p->in;
  p->in = sample_alloc(bytes);
  p->expected = sample_alloc(bytes);
  p->out = sample_alloc(bytes);
  for (uint32_t i = 0; i < p->n; i++)
    p->in[i] = i * 2654435761u + 1;
  for (uint32_t i = 0; i < p->n; i++)
    p->expected[i] = mix(p, i);
  SAMPLE_TRY(kiln_memory_alloc(&p->d_in, s->device, bytes));
  SAMPLE_TRY(kiln_memory_alloc(&p->d_out, s->device, bytes));
  SAMPLE_TRY(kiln_copy_to_device(s->device, p->d_in, p->in, bytes));
}

static void tear_down(problem *p)
{
  SAMPLE_TRY(kiln_memory_free(p->s->device, p->d_in));
  SAMPLE_TRY(kiln_memory_free(p->s->device, p->d_out));
  free(p->in);
  free(p->expected);
  free(p->out);
}

static kiln_status launch(problem *p, kiln_kernel *kernel)
{
  const kiln_launch_config config = {.grid = {.x = p->n / BLOCK},
                                     .block = {.x = BLOCK}};

  return KILN_LAUNCH(kernel, &config, KILN_ARG(p->d_out), KILN_ARG(p->d_in),
                     KILN_ARG(p->n), KILN_ARG(p->rounds));
}

/* Runs the kernel and compares its results. */
static bool is_right(problem *p, kiln_kernel *kernel)
{
  const size_t bytes = p->n * sizeof *p->out;

  SAMPLE_TRY(launch(p, kernel));
  memset(p->out, 0xee, bytes);
  SAMPLE_TRY(kiln_copy_to_host(p->s->device, p->out, p->d_out, bytes));
  return memcmp(p->out, p->expected, bytes) == 0;
}

/* Returns the median time of a launch in milliseconds. */
static double time_of(problem *p, kiln_kernel *kernel)
{
  double ms[REPEATS];
  kiln_event *from, *to;
  float one;

  SAMPLE_TRY(kiln_event_create(&from, p->s->device, true));
  SAMPLE_TRY(kiln_event_create(&to, p->s->device, true));
  for (int i = 0; i < REPEATS; i++) {
    SAMPLE_TRY(kiln_event_record(from, NULL));
    SAMPLE_TRY(launch(p, kernel));
    SAMPLE_TRY(kiln_event_record(to, NULL));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&one, from, to));
    ms[i] = (double)one;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(ms, REPEATS);
}

/* Prints registers, spills and occupancy. The CPU device runs PTX, which has no
 * registers, so the program is compiled to machine code for them. */
static void print_resources(problem *p, const kiln_program_desc *desc)
{
  const kiln_traits *traits = kiln_device_traits(p->s->device);
  const kiln_target target = {.cc = traits->cc};
  kiln_occupancy_result occupancy;
  kiln_image *image = NULL;
  kiln_resources k;

  if (kiln_compile(&image, p->s->rt, desc, &target) != KILN_OK ||
      kiln_image_resources(image, 0, &k) != KILN_OK ||
      kiln_occupancy(traits, BLOCK, k.registers, (size_t)k.shared_static,
                     &occupancy) != KILN_OK) {
    printf("%9s %12s %9s", "-", "-", "-");
  } else {
    char spills[32];

    snprintf(spills, sizeof spills, "%d/%d", k.spill_stores, k.spill_loads);
    printf("%9d %12s %7.1f %%", k.registers, spills, occupancy.share * 100);
  }
  kiln_image_free(image);
}

static bool run_limit(problem *p, int which, double *first_ms)
{
  const kiln_program_desc desc = {.source = source,
                                  .name = "registers.cu",
                                  .defines = &limits[which].define,
                                  .n_defines =
                                      limits[which].define != NULL ? 1 : 0,
                                  .max_registers = limits[which].max_registers};
  kiln_module *module;
  kiln_kernel *kernel;
  bool right;

  SAMPLE_OP(kiln_module_load(&module, p->s->device, &desc));
  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "mix"));
  printf("  %-17s", limits[which].name);
  print_resources(p, &desc);
  right = is_right(p, kernel);
  if (p->s->on_cpu) {
    printf("%12s", "-");
  } else {
    const double ms = time_of(p, kernel);

    *first_ms = which == 0 ? ms : *first_ms;
    printf("%9.1f us  %5.2fx", ms * 1e3, *first_ms / ms);
  }
  puts(right ? "" : "  WRONG");
  kiln_module_free(module);
  return right;
}

int main(int argc, char **argv)
{
  double first_ms = 0;
  bool good = true;
  problem p = {0};
  sample s;

  sample_open(&s, argc, argv);
  set_up(&p, &s);
  printf("  %u threads in blocks of %d, 64 values each\n\n", p.n, BLOCK);
  printf("  %-17s%9s %12s %9s %11s\n", "limit", "registers", "spilled B",
         "occupancy", "time");
  for (int i = 0; i < N_LIMITS; i++)
    good = run_limit(&p, i, &first_ms) && good;
  if (s.on_cpu)
    printf("\nThe CPU device runs PTX, so its time says nothing about "
           "registers.\n");
  printf(
      "\nFewer registers admit more warps, but every spilled value is stored "
      "and loaded\nagain. The same for any kernel: kiln sweep FILE.cu --maxreg "
      "16..255\n");
  tear_down(&p);
  return sample_end(&s, good);
}
