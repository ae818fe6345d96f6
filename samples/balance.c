/* balance.c -- the balancing game: grid size, block size, registers and shared
 * memory depend on each other (row D6 of the lectures).
 *
 * A block sums windows of 2 * RADIUS + 1 neighbours in shared memory. Two
 * numbers describe how the work is cut: threads per block, and items per thread.
 *
 *   more items per thread     fewer loads of the border per item, but more
 *                             registers and shared memory, so fewer resident
 *                             blocks, and a grid that may not fill the GPU
 *   more threads per block    the border is shared by more threads, but an SM
 *                             holds only a whole number of blocks
 *
 * The table shows each setting's resources, which of them limits the resident
 * blocks, the waves (blocks of the grid divided by the blocks that the GPU holds
 * at a time), and on a GPU the time. Each result is compared with the host. */
#include "words.h"

static const char source[] =
    "extern \"C\" __global__ void __launch_bounds__(BLOCK)\n"
    "    windows(unsigned *out, const unsigned *in, unsigned n)\n"
    "{\n"
    "  enum { TILE = BLOCK * ITEMS, RADIUS = 16 };\n"
    "  __shared__ unsigned tile[TILE + 2 * RADIUS];\n"
    "  const unsigned begin = blockIdx.x * TILE;\n"
    "  unsigned sum[ITEMS];\n"
    "  for (unsigned k = threadIdx.x; k < TILE + 2 * RADIUS; k += BLOCK) {\n"
    "    const unsigned at = begin + k - RADIUS;\n"
    "    tile[k] = at < n ? in[at] : 0;\n"
    "  }\n"
    "  __syncthreads();\n"
    "  for (int item = 0; item < ITEMS; item++) {\n"
    "    sum[item] = 0;\n"
    "    for (int k = 0; k <= 2 * RADIUS; k++)\n"
    "      sum[item] += tile[item * BLOCK + threadIdx.x + k] * (k + 1u);\n"
    "  }\n"
    "  for (int item = 0; item < ITEMS; item++) {\n"
    "    const unsigned at = begin + item * BLOCK + threadIdx.x;\n"
    "    if (at < n)\n"
    "      out[at] = sum[item];\n"
    "  }\n"
    "}\n";

enum { RADIUS = 16, REPEATS = 15, N_BLOCKS = 4, N_ITEMS = 4 };

static const unsigned blocks[N_BLOCKS] = {32, 128, 256, 1024};
static const unsigned items[N_ITEMS] = {1, 4, 8, 32};

typedef struct game {
  sample *s;
  int sm_count;
  sample_words words;
  double best_ms;
  unsigned best_block, best_items;
} game;

/* One setting: its launch and what it needs. */
typedef struct move {
  const sample_words *words;
  kiln_kernel *kernel;
  unsigned block, items, grid;
  bool known; /* the members below are known */
  kiln_resources needs;
  kiln_occupancy_result fits;
} move;

static uint32_t window(const sample_words *w, uint32_t at)
{
  uint32_t sum = 0;

  for (uint32_t k = 0; k <= 2 * RADIUS; k++) {
    const uint32_t from = at + k - RADIUS; /* wraps below 0 */

    sum += (from < w->n ? w->in[from] : 0) * (k + 1);
  }
  return sum;
}

static void set_up(game *g, sample *s)
{
  kiln_device_info info;

  SAMPLE_TRY(kiln_device_describe(s->device, &info));
  g->s = s;
  g->sm_count = info.sm_count;
  sample_words_open(&g->words, s, s->few ? 5000 : (1 << 25) + 77);
  for (uint32_t i = 0; i < g->words.n; i++)
    g->words.expected[i] = window(&g->words, i);
}

/* Compiles machine code for the device's architecture, also if the device runs
 * PTX, and asks the model how many blocks fit on an SM. */
static void find_needs(const game *g, const kiln_program_desc *desc, move *m)
{
  const kiln_traits *traits = kiln_device_traits(g->s->device);
  const kiln_target target = {.cc = traits->cc};
  kiln_image *image = NULL;

  m->known =
      kiln_compile(&image, g->s->rt, desc, &target) == KILN_OK &&
      kiln_image_resources(image, 0, &m->needs) == KILN_OK &&
      kiln_occupancy(traits, (int)m->block, m->needs.registers,
                     (size_t)m->needs.shared_static, &m->fits) == KILN_OK;
  kiln_image_free(image);
}

static void print_needs(const game *g, const move *m)
{
  static const char *const limiters[] = {"-", "warps", "blocks", "registers",
                                         "shared"};

  printf("  %5u %6u %8u", m->block, m->items, m->grid);
  if (!m->known) {
    printf("%6s %8s %7s %6s %-10s %7s", "-", "-", "-", "-", "", "-");
    return;
  }
  printf("%6d %8d %7d %4.0f %% %-10s", m->needs.registers,
         m->needs.shared_static, m->fits.blocks_per_sm, m->fits.share * 100,
         limiters[m->fits.limiter]);
  printf("%7.2f", m->fits.blocks_per_sm > 0
                      ? (double)m->grid / m->fits.blocks_per_sm / g->sm_count
                      : 0);
}

static kiln_status launch(kiln_stream *stream, const void *desc)
{
  const move *m = desc;
  const kiln_launch_config config = {
      .grid = {.x = m->grid}, .block = {.x = m->block}, .stream = stream};

  return KILN_LAUNCH(m->kernel, &config, KILN_ARG(m->words->d_out),
                     KILN_ARG(m->words->d_in), KILN_ARG(m->words->n));
}

/* Times a setting, and remembers the fastest. */
static void play_for_time(game *g, const move *m)
{
  const double ms = sample_warm_ms(g->s->device, NULL, launch, m, REPEATS);

  printf("%9.1f us %6.0f GB/s", ms * 1e3, 8.0 * g->words.n / ms / 1e6);
  if (g->best_ms > 0 && ms >= g->best_ms)
    return;
  g->best_ms = ms;
  g->best_block = m->block;
  g->best_items = m->items;
}

/* Compiles, checks and times one setting. A setting whose shared memory exceeds
 * a block's limit does not compile; that is part of the game. */
static bool play(game *g, unsigned block, unsigned n_items)
{
  char block_define[32], items_define[32];
  const char *const defines[] = {block_define, items_define};
  const kiln_program_desc desc = {.source = source,
                                  .name = "balance.cu",
                                  .defines = defines,
                                  .n_defines = 2};
  const unsigned tile = block * n_items;
  move m = {.words = &g->words,
            .block = block,
            .items = n_items,
            .grid = (g->words.n + tile - 1) / tile};
  kiln_module *module;
  kiln_status st;
  bool right;

  snprintf(block_define, sizeof block_define, "BLOCK=%u", block);
  snprintf(items_define, sizeof items_define, "ITEMS=%u", n_items);
  if ((tile + 2 * RADIUS) * sizeof(uint32_t) > 48 * 1024) {
    printf("  %5u %6u %8u  more than the 48 KiB of static shared memory\n",
           block, n_items, m.grid);
    return true;
  }
  st = kiln_module_load(&module, g->s->device, &desc);
  SAMPLE_OP(st);
  SAMPLE_TRY(kiln_module_kernel(&m.kernel, module, "windows"));
  find_needs(g, &desc, &m);
  print_needs(g, &m);
  right = sample_words_check(&g->words, launch, &m);
  if (!g->s->on_cpu)
    play_for_time(g, &m);
  puts(right ? "" : "  WRONG");
  kiln_module_free(module);
  return right;
}

int main(int argc, char **argv)
{
  bool good = true;
  game g = {0};
  sample s;

  sample_open(&s, argc, argv);
  set_up(&g, &s);
  printf("  %u elements, windows of %d, %d SMs\n\n", g.words.n, 2 * RADIUS + 1,
         g.sm_count);
  printf("  %5s %6s %8s%6s %8s %7s %6s %-10s%7s%s\n", "block", "items", "grid",
         "regs", "shared B", "per SM", "occ.", "limited by", "waves",
         s.on_cpu ? "" : "        time");
  for (int i = 0; i < N_ITEMS; i++)
    for (int b = 0; b < N_BLOCKS; b++)
      /* The CPU device needs no time, so it plays every second setting. */
      if (!s.few || (i + b) % 2 == 1)
        good = play(&g, blocks[b], items[i]) && good;
  if (!s.on_cpu)
    printf("\nfastest: %u threads, %u items: %.1f us\n", g.best_block,
           g.best_items, g.best_ms * 1e3);
  printf(
      "\nThe fastest setting need not have the highest occupancy: warps with "
      "several items\neach have more loads in flight. kiln sweep tries any "
      "kernel's settings.\n");
  sample_words_close(&g.words);
  return sample_end(&s, good);
}
