/* bench_cases_compute.c -- the cases with which `kiln tune` measures the
 * operations that are bound by arithmetic: all pairs, stencils and matrix
 * products. Their benchmarks are programs of their own (bench_nbody.c,
 * bench_stencil.c, bench_gemm.c).
 *
 * Images and matrices are square, or twice as wide as high. For all pairs, n is
 * the number of targets and of sources, which is at most MOST_BODIES. */
#include "bench/bench_ops.h"

#include <string.h>

enum {
  MOST_BODIES = 1 << 18,
  /* From this number on, kiln_all_pairs() evaluates symmetric pairs once. */
  LEAST_MIRRORED = 8192,
  BLOCK_OF_TILES = 256 /* candidates.def; tiles imply their number of threads */
};

/* Returns the largest power of two whose square is at most n. */
static uint64_t height_of(uint64_t n)
{
  uint64_t height = 1;

  while (4 * height * height <= n)
    height *= 2;
  return height;
}

/* ---- All pairs ----------------------------------------------------------- */

static kiln_status prepare_pairs(bench_ops *b)
{
  if (b->n > MOST_BODIES)
    b->n = MOST_BODIES;
  return kiln__bench_fill(b->rig.stream, b->in[2], b->now->type, b->n,
                          "(hash(i + 7) & 1023) / 1024.0");
}

static kiln_status prepare_mirrored(bench_ops *b)
{
  return b->n < LEAST_MIRRORED ? KILN_ENOTFOUND : prepare_pairs(b);
}

/* Gravity between bodies of different masses. */
/* clang-format off */
#define PAIRS(mirrored)                                                        \
  .n = b->n,                                                                   \
  .target = {{b->in[0], KILN_F32}, {b->in[1], KILN_F32},                       \
             {b->in[2], KILN_F32}, {b->in[1], KILN_F32}},                      \
  .out = {{b->out[0], KILN_F32}, {b->out[1], KILN_F32},                        \
          {b->out[2], KILN_F32}},                                              \
  .common = "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;"      \
            "const float r = rsqrtf(dx * dx + (dy * dy + (dz * dz + 1e-4f)));" \
            "const float f = (t.w * r) * (s.w * r) * r;",                      \
  .expr = {"f * dx", "f * dy", "f * dz"},                                      \
  .symmetry = (mirrored) ? KILN_PAIRS_NEGATED : KILN_PAIRS_UNRELATED,          \
  .code = {.fast_math = true}

BENCH_OWN(own_pairs, all_pairs, kiln_all_pairs_desc, PAIRS(false))
BENCH_OWN(own_mirrored, all_pairs, kiln_all_pairs_desc, PAIRS(true))
/* clang-format on */

/* ---- Stencils ------------------------------------------------------------ */

#define IMAGE                                                                  \
  .in = {b->in[0], b->now->type}, .out = {b->out[0], b->now->type}, .dims = 2, \
  .size = {b->n / height_of(b->n), height_of(b->n)}

static const double blur[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
static const double line_weights[22] = {1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1,
                                        1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1};

BENCH_OWN(own_rows, stencil, kiln_stencil_desc, IMAGE, .radius = {1, 1},
          .weights = blur)
BENCH_OWN(own_line, stencil, kiln_stencil_desc, .in = {b->in[0], b->now->type},
          .out = {b->out[0], b->now->type}, .dims = 1, .size = {b->n},
          .radius = {1}, .weights = blur)
BENCH_OWN(own_ring, stencil, kiln_stencil_desc, IMAGE, .radius = {5, 5},
          .separable = true, .weights = line_weights)
BENCH_OWN(own_at, stencil, kiln_stencil_desc, IMAGE, .radius = {1, 1},
          .expr = "at(-1) + at(1) + at(0, -1) + at(0, 1) - 4 * x")

/* ---- Matrix products ----------------------------------------------------- */

static kiln_gemm_desc product(const bench_ops *b)
{
  const uint64_t m = height_of(b->n);
  const kiln_dtype type = b->now->type;

  return (kiln_gemm_desc){.m = m,
                          .n = b->n / m,
                          .k = m,
                          .a = {.data = b->in[0], .type = type},
                          .b = {.data = b->in[1], .type = type},
                          .d = {.data = b->out[0], .type = b->now->compared},
                          .alpha = 1,
                          .precision = strcmp(b->now->label, "tf32") == 0
                                           ? KILN_GEMM_TF32
                                           : KILN_GEMM_IEEE};
}

/* Finds out which tile the model chooses. Returns KILN_ENOTFOUND if the device
 * computes the product by other kernels than those of the family that is tuned.
 */
static kiln_status prepare_product(bench_ops *b)
{
  const kiln_gemm_desc desc = product(b);
  kiln_gemm_choice choice;

  CLI_TRY(kiln_gemm_explain(b->rig.stream, &desc, &choice));
  b->chosen = (kiln_tuning){BLOCK_OF_TILES, (uint16_t)choice.tile.n, 0,
                            (uint16_t)choice.tile.m};
  return strcmp(choice.path, strchr(b->tuning, '_') + 1) == 0 ? KILN_OK
                                                              : KILN_ENOTFOUND;
}

/* Queues the product. A candidate's tile is requested, so that also a tile is
 * measured that the model would overrule. */
static kiln_status own_product(bench_ops *b)
{
  kiln_gemm_desc desc = product(b);
  kiln_tuning t;
  bool measured;
  size_t bytes;

  CLI_TRY(kiln_tuning_get(b->rig.device, b->tuning,
                          (unsigned)kiln_dtype_size(b->now->type), b->n, &t,
                          &measured));
  if (measured && b->is_candidate)
    desc.tile = (kiln_gemm_tile){t.extra, t.items, 0};
  if (!b->workspace_known) {
    CLI_TRY(kiln_gemm_workspace(b->rig.stream, &desc, &bytes));
    CLI_TRY(kiln__bench_workspace(b, bytes));
  }
  return kiln_gemm(b->rig.stream, &desc,
                   b->workspace.data != 0 ? &b->workspace : NULL);
}

/* ---- The tables ---------------------------------------------------------- */

#define NUMBERS                                                                \
  {                                                                            \
    "(hash(i) & 127) / 128.0", "(hash(i + 3) & 127) / 128.0"                   \
  }
#define CASE(label_, type_, to_, prepare_, own_)                               \
  {                                                                            \
    .label = (label_), .type = (type_), .compared = (to_), .fill = NUMBERS,    \
    .prepare = (prepare_), .own = (own_)                                       \
  }
#define PRODUCT(label, type, to)                                               \
  CASE(label, type, to, prepare_product, own_product)
#define END                                                                    \
  {                                                                            \
    .label = NULL                                                              \
  }

static const bench_case pairs[] = {
    CASE("gravity", KILN_F32, KILN_F32, prepare_pairs, own_pairs), END};
static const bench_case mirrored[] = {
    CASE("gravity", KILN_F32, KILN_F32, prepare_mirrored, own_mirrored), END};
static const bench_case rows[] = {
    CASE("3 x 3", KILN_F32, KILN_F32, NULL, own_rows),
    CASE("3 x 3", KILN_U8, KILN_U8, NULL, own_rows), END};
static const bench_case line[] = {
    CASE("3 points", KILN_F32, KILN_F32, NULL, own_line), END};
static const bench_case ring[] = {
    CASE("11 x 11", KILN_F32, KILN_F32, NULL, own_ring), END};
static const bench_case at[] = {
    CASE("5 neighbours", KILN_F32, KILN_F32, NULL, own_at), END};
static const bench_case simt[] = {PRODUCT("f32", KILN_F32, KILN_F32),
                                  PRODUCT("f64", KILN_F64, KILN_F64),
                                  PRODUCT("f16", KILN_F16, KILN_F16), END};
static const bench_case tensor[] = {PRODUCT("f16", KILN_F16, KILN_F16),
                                    PRODUCT("i8", KILN_I8, KILN_I32),
                                    PRODUCT("tf32", KILN_F32, KILN_F32),
                                    PRODUCT("f64", KILN_F64, KILN_F64), END};

const bench_family kiln__bench_compute[] = {
    {"all_pairs", pairs, "all_pairs"},
    {"all_pairs", mirrored, "all_pairs_mirrored"},
    {"stencil", rows, "stencil_rows"},
    {"stencil", line, "stencil_line"},
    {"stencil", ring, "stencil_ring"},
    {"stencil", at, "stencil_at"},
    {"gemm", simt, "gemm_simt"},
    {"gemm", tensor, "gemm_mma"},
    {"gemm", tensor, "gemm_wgmma"},
    {NULL, NULL, NULL},
};
