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
#include "words.h"

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

typedef struct problem {
  sample *s;
  sample_words words;
  uint32_t rounds;
} problem;

/* One launch of the kernel. */
typedef struct mixing {
  const problem *p;
  kiln_kernel *kernel;
} mixing;

/* Computes the result of one thread on the host. */
static uint32_t mix(const problem *p, uint32_t i)
{
  uint32_t r[VALUES];

  for (uint32_t k = 0; k < VALUES; k++)
    r[k] = p->words.in[(i + k * 4099) % p->words.n];
  for (uint32_t round = 0; round < p->rounds; round++)
    for (int k = 0; k < VALUES; k++)
      r[k] = r[k] * r[(k * 7 + 3) % VALUES] + r[(k + 1) % VALUES];
  for (int k = 1; k < VALUES; k++)
    r[0] ^= r[k];
  return r[0];
}

static void set_up(problem *p, sample *s)
{
  p->s = s;
  p->rounds = s->few ? 2 : 4;
  sample_words_open(&p->words, s, s->few ? 1024 : 1 << 22);
  for (uint32_t i = 0; i < p->words.n; i++)
    p->words.expected[i] = mix(p, i);
}

static kiln_status launch(kiln_stream *stream, const void *desc)
{
  const mixing *m = desc;
  const sample_words *w = &m->p->words;
  const kiln_launch_config config = {
      .grid = {.x = w->n / BLOCK}, .block = {.x = BLOCK}, .stream = stream};

  return KILN_LAUNCH(m->kernel, &config, KILN_ARG(w->d_out), KILN_ARG(w->d_in),
                     KILN_ARG(w->n), KILN_ARG(m->p->rounds));
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
  mixing m = {.p = p};
  kiln_module *module;
  bool right;

  SAMPLE_OP(kiln_module_load(&module, p->s->device, &desc));
  SAMPLE_TRY(kiln_module_kernel(&m.kernel, module, "mix"));
  printf("  %-17s", limits[which].name);
  print_resources(p, &desc);
  right = sample_words_check(&p->words, launch, &m);
  if (p->s->on_cpu) {
    printf("%12s", "-");
  } else {
    const double ms = sample_warm_ms(p->s->device, NULL, launch, &m, REPEATS);

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
  printf("  %u threads in blocks of %d, 64 values each\n\n", p.words.n, BLOCK);
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
  sample_words_close(&p.words);
  return sample_end(&s, good);
}
