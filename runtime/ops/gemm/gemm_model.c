/* gemm_model.c -- chooses the tile of a matrix product. Pure functions.
 *
 * Problem: large tiles need fewer loads per product, but few of them leave SMs
 * idle in the last wave. 1024 x 1024 has 64 tiles of 128 x 128, for 132 SMs.
 *
 * Idea: the throughput is the kernel's plateau, times the share of the tiles
 * that lies inside of the matrix, times the share of the SMs that are busy on
 * average: b / S / ceil(b / S) for b blocks on S SMs. Blocks that share an SM
 * share its arithmetic units, so an SM with fewer blocks than it could run is
 * not much slower than a full one. Splitting the sum over several blocks
 * multiplies b. It costs the time in which the last block of a sum reads the
 * sums of the other blocks. The constants were fitted to an H200 on 1024 x 1024
 * x 1024 with 2 to 8 splits.
 *
 * Invariant: the same call on the same kind of device gets the same tile.
 *
 * Cost: four divisions per tile and split, 0.1 to 1 us per call.
 *
 * Source: wave quantisation in NVIDIA, Matrix Multiplication Background User's
 * Guide, 2023; splits: Osama et al., Stream-K, 2023. */
#include "gemm.h"

enum {
  /* Time to start a block and to fill its pipeline, in positions of the sum. */
  START = 24,
  /* Time of a block to write or read the sums of a tile, in positions of the
   * sum. */
  EXCHANGE = 17,
  /* Blocks share a sum only if each gets at least this number of positions. */
  LEAST_DEPTH = 128,
  MOST_SPLITS = 64
};

static uint64_t along(uint64_t size, uint64_t tile)
{
  return kiln__divide_up(size, tile);
}

uint64_t kiln__gemm_tiles(const kiln__gemm_shape *s, const kiln__gemm_tile *t)
{
  return along(s->m, t->m) * along(s->n, t->n) * s->batch;
}

/* Returns the throughput of an SM that runs fewer blocks than it could, relative
 * to a full one: fewer warps hide less of the latency. Measured on an H200: 0.83
 * with 8 warps instead of 16, 0.6 with 4. */
static double hidden(const kiln__gemm_tile *t, uint64_t resident)
{
  const double r = resident < t->per_sm ? (double)resident : t->per_sm;

  return 5 * r / (4 * r + t->per_sm);
}

/* Returns the predicted share of the peak for a call of `tiles` tiles. */
static double efficiency(const kiln__gemm_shape *s, const kiln__gemm_tile *t,
                         uint64_t tiles, uint32_t splits)
{
  const uint64_t blocks = tiles * splits;
  const uint64_t waves = kiln__divide_up(blocks, s->sms);
  const double inside = (double)s->m * (double)s->n * (double)s->batch /
                        ((double)tiles * t->m * t->n);
  const double busy = (double)blocks / ((double)s->sms * (double)waves);
  const double extra = START + (splits > 1 ? EXCHANGE * (double)splits : 0);

  return t->plateau / 1000.0 * inside * busy * hidden(t, waves) * (double)s->k /
         ((double)s->k + extra * splits);
}

double kiln__gemm_efficiency(const kiln__gemm_shape *s,
                             const kiln__gemm_tile *t, uint32_t splits)
{
  return efficiency(s, t, kiln__gemm_tiles(s, t), splits);
}

/* The blocks of an SM share its arithmetic units. Each block has the same number
 * of positions of the sum. The block that stores a tile adds up the parts of the
 * others. */
double kiln__gemm_streamed(const kiln__gemm_shape *s, const kiln__gemm_tile *t,
                           uint64_t blocks)
{
  const uint64_t tiles = kiln__gemm_tiles(s, t);
  const double inside = (double)s->m * (double)s->n * (double)s->batch /
                        ((double)tiles * t->m * t->n);
  const uint64_t waves = kiln__divide_up(blocks, s->sms);
  const double busy = (double)blocks / ((double)s->sms * (double)waves);
  const double each = (double)s->k * (double)tiles / (double)blocks;
  const uint64_t parts = tiles < blocks ? blocks / tiles : 1;
  const double extra =
      START + (tiles % blocks != 0 ? EXCHANGE * (double)(1 + parts) : 0);

  return t->plateau / 1000.0 * inside * busy * hidden(t, waves) * each /
         (each + extra);
}

static bool matches(const kiln__gemm_tile *t, kiln_gemm_tile wanted)
{
  return (wanted.m == 0 || wanted.m == t->m) &&
         (wanted.n == 0 || wanted.n == t->n);
}

/* Returns the best number of blocks per sum for a tile, and its efficiency. The
 * steps grow with the number, since a call pays for each trial. */
static uint32_t choose_splits(const kiln__gemm_shape *s,
                              const kiln__gemm_tile *t, double *best)
{
  const uint64_t tiles = kiln__gemm_tiles(s, t);
  const uint64_t enough = 2 * s->sms * t->per_sm;
  uint32_t chosen = 1;

  *best = efficiency(s, t, tiles, 1);
  for (uint32_t p = 2; p <= MOST_SPLITS && s->k >= LEAST_DEPTH * (uint64_t)p &&
                       tiles * (p - 1) < enough;
       p += 1 + p / 4) {
    const double e = efficiency(s, t, tiles, p);

    if (e > *best) {
      *best = e;
      chosen = p;
    }
  }
  return chosen;
}

uint32_t kiln__gemm_choose(const kiln__gemm_shape *s,
                           const kiln__gemm_tile *tiles, uint32_t n,
                           kiln_gemm_tile wanted, uint32_t *splits)
{
  double highest = -1, e;
  uint32_t best = n;

  *splits = 1;
  for (uint32_t i = 0; i < n; i++) {
    const kiln__gemm_tile *t = &tiles[i];
    uint32_t p = wanted.split;

    if (!matches(t, wanted))
      continue;
    if (p == 0)
      p = choose_splits(s, t, &e);
    else
      e = kiln__gemm_efficiency(s, t, p);
    if (e > highest) {
      highest = e;
      best = i;
      *splits = p;
    }
  }
  return best;
}
