/* matmul_tiled.c -- matrix product with 16 x 16 tiles in shared memory, for
 * matrix sizes that are no multiple of the tile size (row B7 of the lectures;
 * also C1, E6), and the divergence of its warps.
 *
 * A product of size 100 x 100 takes 7 x 7 blocks of 8 warps. Each block runs 7
 * phases, one per tile of M and N. Before a thread loads its element of M, a
 * branch tests whether the row and the column lie inside the matrix:
 *
 *   type 1   the 42 blocks whose rows are all inside: each warp diverges only
 *            in the last phase, where 12 of 16 columns are outside
 *   type 2   the 7 blocks of the last 4 rows: two of the 8 warps have rows
 *            inside and diverge in the last phase; the others load nothing
 *
 * Therefore 336 of 2,352 warp-phases diverge in the blocks of type 1, and 14 of
 * 392 in those of type 2. The CPU device counts divergent branches per source
 * line. */
#include "sample.h"

#include <math.h>

/* The statement that loads M has a source line of its own, because the counters
 * are per line. */
static const char source[] =
    "enum { TILE = 16 };\n"
    "extern \"C\" __global__ void product(float *p, const float *m,\n"
    "                                   const float *n, int size, int first)\n"
    "{\n"
    "  __shared__ float mt[TILE][TILE], nt[TILE][TILE];\n"
    "  const int tx = threadIdx.x, ty = threadIdx.y;\n"
    "  const int row = (first + blockIdx.y) * TILE + ty;\n"
    "  const int col = blockIdx.x * TILE + tx;\n"
    "  float sum = 0;\n"
    "  for (int phase = 0; phase < (size + TILE - 1) / TILE; phase++) {\n"
    "    const int mc = phase * TILE + tx, nr = phase * TILE + ty;\n"
    "    float a = 0, b = 0;\n"
    "    if (row < size & mc < size) a = m[row * size + mc];\n"
    "    if (nr < size & col < size) b = n[nr * size + col];\n"
    "    mt[ty][tx] = a;\n"
    "    nt[ty][tx] = b;\n"
    "    __syncthreads();\n"
    "    for (int k = 0; k < TILE; k++)\n"
    "      sum += mt[ty][k] * nt[k][tx];\n"
    "    __syncthreads();\n"
    "  }\n"
    "  if (row < size & col < size) p[row * size + col] = sum;\n"
    "}\n";

enum { SIZE = 100, TILE = 16, TILES = 7, M_LINE = 13 };

typedef struct matrices {
  float m[SIZE * SIZE], n[SIZE * SIZE], p[SIZE * SIZE];
} matrices;

static matrices h;

static void fill(void)
{
  for (int i = 0; i < SIZE * SIZE; i++) {
    h.m[i] = (float)(i % 17) - 8;
    h.n[i] = (float)(i % 13) - 6;
    h.p[i] = -1;
  }
}

/* All values are small integers, so float sums are exact. */
static bool right(void)
{
  bool good = true;

  for (int i = 0; i < SIZE; i++) {
    for (int j = 0; j < SIZE; j++) {
      float sum = 0;

      for (int k = 0; k < SIZE; k++)
        sum += h.m[i * SIZE + k] * h.n[k * SIZE + j];
      good = good && h.p[i * SIZE + j] == sum;
    }
  }
  return good;
}

/* Launches `n` rows of blocks, beginning with row `first`. */
static void launch(sample *s, kiln_module *module, const CUdeviceptr d[3],
                   int first, unsigned n)
{
  const kiln_launch_config config = {.grid = {.x = TILES, .y = n},
                                     .block = {.x = TILE, .y = TILE}};
  const int size = SIZE;
  kiln_kernel *product;

  SAMPLE_TRY(kiln_module_kernel(&product, module, "product"));
  SAMPLE_TRY(KILN_LAUNCH(product, &config, KILN_ARG(d[0]), KILN_ARG(d[1]),
                         KILN_ARG(d[2]), KILN_ARG(size), KILN_ARG(first)));
  SAMPLE_TRY(kiln_device_synchronize(s->device));
}

static void allocate(sample *s, CUdeviceptr d[3])
{
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_alloc(&d[i], s->device, sizeof h.p));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d[1], h.m, sizeof h.m));
  SAMPLE_TRY(kiln_copy_to_device(s->device, d[2], h.n, sizeof h.n));
}

static bool finish(sample *s, const CUdeviceptr d[3])
{
  SAMPLE_TRY(kiln_copy_to_host(s->device, h.p, d[0], sizeof h.p));
  for (int i = 0; i < 3; i++)
    SAMPLE_TRY(kiln_memory_free(s->device, d[i]));
  return right();
}

static void take_line(void *user, const kiln_cpu_counters *k)
{
  if (k->line == M_LINE)
    *(kiln_cpu_counters *)user = *k;
}

/* Counts how often warps diverge at the line that loads M, and compares the
 * count with the expected number. */
static bool divergence(sample *s, kiln_module *module, const CUdeviceptr d[3],
                       const char *what, int first, unsigned n, uint64_t want,
                       uint64_t want_all)
{
  const uint64_t phases = (uint64_t)n * TILES * 8 * TILES;
  kiln_cpu_counters k = {0};
  bool good;

  SAMPLE_TRY(kiln_cpu_reset_counters());
  launch(s, module, d, first, n);
  SAMPLE_TRY(kiln_cpu_each_counters(NULL, take_line, &k));
  good = k.divergent_branches == want && k.branches == want_all &&
         phases == want_all;
  printf("  %-36s %4llu of %4llu warp-phases diverge%s\n", what,
         (unsigned long long)k.divergent_branches,
         (unsigned long long)k.branches, good ? "" : "  <-- NOT EXPECTED");
  return good;
}

static bool count(const sample *s, const kiln_program_desc *program)
{
  const kiln_cpu_opts cpu = {.counters = true};
  kiln_program_desc desc = *program;
  kiln_module *module;
  CUdeviceptr d[3];
  sample counting;
  bool good;

  desc.lineinfo = true;
  sample_cpu(&counting, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, counting.device, &desc));
  allocate(&counting, d);
  good = divergence(&counting, module, d, "type 1, 42 blocks", 0, 6, 336, 2352);
  good = divergence(&counting, module, d, "type 2, 7 blocks of the last rows",
                    6, 1, 14, 392) &&
         good;
  good = finish(&counting, d) && good;
  kiln_module_free(module);
  sample_close(&counting);
  return good;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.source = source, .name = "product.cu"};
  kiln_module *module;
  CUdeviceptr d[3];
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  fill();
  allocate(&s, d);
  launch(&s, module, d, 0, TILES);
  good = finish(&s, d);
  printf("%d x %d by tiles of %d x %d: %s\n", SIZE, SIZE, TILE, TILE,
         good ? "exact" : "WRONG");
  kiln_module_free(module);
  fill();
  good = count(&s, &program) && good;
  return sample_end(&s, good);
}
