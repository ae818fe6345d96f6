/* occupancy_sheet.c -- computes the occupancy sheet from the library's model.
 *
 * The model returns the smallest of four limits. Barriers are a fifth, which
 * this file adds as a limit of the number of blocks. The sheet needs each limit
 * alone. It therefore asks the model four times, each time for a GPU whose other
 * resources cannot bind: with 2^16 warps and blocks per SM, and with no
 * registers or no shared memory needed. The rules of allocation thus stand in
 * one place, the model. */
#include "cli/sheet/occupancy_sheet.h"

#include <string.h>

enum {
  MOST_POINTS = 256, /* points of the curve over shared memory, about */
  CURVE_POINTS = 1056
};

static const char *const limit_names[SHEET_N_LIMITS] = {
    "warps", "blocks", "registers", "shared memory", "barriers"};

static int rounded(int value, int unit)
{
  return (value + unit - 1) / unit * unit;
}

/* Source: cuda_occupancy.h of CUDA 13.0. From 9.0 on, an SM has one or two named
 * barriers per resident block, depending on the GPU; older GPUs have enough for
 * all blocks. */
int kiln__occupancy_barriers(const kiln_traits *traits)
{
  const int cc = traits->cc;

  if (cc < 90)
    return 0;
  return cc == 101 || cc == 110 || cc / 10 == 12
             ? traits->max_blocks_per_sm
             : 2 * traits->max_blocks_per_sm;
}

/* Returns the number of blocks that the barriers of an SM admit. A block with one
 * barrier or none is limited by the number of blocks alone. */
static int barrier_limit(const occupancy_setting *s)
{
  const int barriers = kiln__occupancy_barriers(&s->traits);

  return barriers == 0 || s->barriers < 2 ? SHEET_UNLIMITED
                                          : barriers / s->barriers;
}

/* Returns the traits with barriers as a further limit of the number of blocks,
 * because the library's model knows no barriers. */
static kiln_traits limited(const occupancy_setting *s)
{
  const int blocks = barrier_limit(s);
  kiln_traits t = s->traits;

  if (blocks < t.max_blocks_per_sm)
    t.max_blocks_per_sm = blocks;
  return t;
}

/* Returns the number of resident blocks, or 0 if there is no such launch. */
static int resident(const kiln_traits *traits, int threads, int registers,
                    size_t shared)
{
  kiln_occupancy_result r;

  return kiln_occupancy(traits, threads, registers, shared, &r) == KILN_OK
             ? r.blocks_per_sm
             : 0;
}

/* Returns the traits of a GPU with more warps and blocks per SM than any block
 * needs. */
static kiln_traits boundless(const kiln_traits *traits)
{
  kiln_traits t = *traits;

  t.max_warps_per_sm = SHEET_UNLIMITED;
  t.max_blocks_per_sm = SHEET_UNLIMITED;
  return t;
}

/* Rounds what a block needs up to the units of allocation. */
static void allocate(occupancy_sheet *out)
{
  const occupancy_setting *s = &out->of;
  const kiln_traits *t = &s->traits;
  const int warps = (s->threads + t->warp_size - 1) / t->warp_size;

  out->block_warps = warps;
  out->block_shared =
      rounded((int)s->shared + t->smem_reserved_per_block, t->smem_alloc_unit);
  if (t->cc < 20)
    out->block_registers = rounded(rounded(warps, t->warp_alloc_unit) *
                                       t->warp_size * s->registers,
                                   t->reg_alloc_unit);
  else
    out->block_registers =
        warps * rounded(s->registers * t->warp_size, t->reg_alloc_unit);
}

kiln_status kiln__occupancy_sheet(occupancy_sheet *out,
                                  const occupancy_setting *s)
{
  const kiln_traits all = boundless(&s->traits), real = limited(s);
  kiln_traits warps = all, blocks = all;

  *out = (occupancy_sheet){.of = *s};
  CLI_TRY(
      kiln_occupancy(&real, s->threads, s->registers, s->shared, &out->now));
  warps.max_warps_per_sm = s->traits.max_warps_per_sm;
  blocks.max_blocks_per_sm = s->traits.max_blocks_per_sm;
  out->blocks[SHEET_WARPS] = resident(&warps, s->threads, 0, 0);
  out->blocks[SHEET_BLOCKS] = blocks.max_blocks_per_sm;
  out->blocks[SHEET_REGISTERS] = resident(&all, s->threads, s->registers, 0);
  out->blocks[SHEET_SHARED] = resident(&all, s->threads, 0, s->shared);
  out->blocks[SHEET_BARRIERS] = barrier_limit(s);
  /* Without warps and blocks as limits, 2^16 warps are the limit that remains.
   */
  for (int i = SHEET_REGISTERS; i <= SHEET_SHARED; i++)
    if (out->blocks[i] >= SHEET_UNLIMITED / ((s->threads + 31) / 32))
      out->blocks[i] = SHEET_UNLIMITED;
  for (int i = 0; i < SHEET_N_LIMITS; i++)
    out->binds[i] = out->blocks[i] == out->now.blocks_per_sm;
  allocate(out);
  return KILN_OK;
}

const char *kiln__occupancy_limit_name(sheet_limit limit)
{
  return limit_names[limit];
}

const char *kiln__occupancy_binding(cli *c, const occupancy_sheet *sheet)
{
  const char *out = "";

  for (int i = 0; i < SHEET_N_LIMITS; i++)
    if (sheet->binds[i])
      out = kiln__cli_text(c, "%s%s%s", out, out[0] != '\0' ? " and " : "",
                           limit_names[i]);
  return out;
}

/* Returns the largest value below `most` with which more blocks are resident,
 * or -1. More of a resource per block never admits more blocks, so halving the
 * interval finds the value. */
static long admits(const occupancy_setting *s, bool registers, long most)
{
  const kiln_traits t = limited(s);
  const int now = resident(&t, s->threads, s->registers, s->shared);
  long low = -1, high = most; /* `low` admits more blocks, `high` does not */

  while (high - low > 1) {
    const long middle = low + (high - low) / 2;
    const int blocks =
        registers ? resident(&t, s->threads, (int)middle, s->shared)
                  : resident(&t, s->threads, s->registers, (size_t)middle);

    if (blocks > now)
      low = middle;
    else
      high = middle;
  }
  return low;
}

const char *kiln__occupancy_advice(cli *c, const occupancy_sheet *sheet)
{
  const occupancy_setting *s = &sheet->of;
  int binding = 0;
  long most;

  for (int i = 0; i < SHEET_N_LIMITS; i++)
    binding += sheet->binds[i] ? 1 : 0;
  if (binding != 1)
    return NULL;
  if (sheet->binds[SHEET_REGISTERS]) {
    most = admits(s, true, s->registers);
    return most > 0
               ? kiln__cli_text(c, "at most %ld registers per thread", most)
               : NULL;
  }
  if (sheet->binds[SHEET_SHARED]) {
    most = admits(s, false, (long)s->shared);
    return most >= 0
               ? kiln__cli_text(c,
                                "at most %s bytes of shared memory per block",
                                kiln__plot_number(c, (double)most, 0))
               : NULL;
  }
  return NULL;
}

/* ---- Curves ------------------------------------------------------------- */

/* Returns the largest value of a curve's variable, and the distance of its
 * points in *step. */
static long curve_end(const occupancy_setting *s, int which, long *step)
{
  const kiln_traits *t = &s->traits;
  const int optin = t->smem_per_block_optin > t->smem_per_block
                        ? t->smem_per_block_optin
                        : t->smem_per_block;
  const int shared = optin < t->smem_per_sm ? optin : t->smem_per_sm;

  *step = which == CURVE_THREADS ? t->warp_size
          : which == CURVE_SHARED
              ? rounded(shared / MOST_POINTS + 1, t->smem_alloc_unit)
              : 1;
  return which == CURVE_THREADS     ? t->max_threads_per_block
         : which == CURVE_REGISTERS ? t->max_regs_per_thread
                                    : shared;
}

static double warps_at(const occupancy_setting *s, int which, long x)
{
  const int threads = which == CURVE_THREADS ? (int)x : s->threads;
  const int registers = which == CURVE_REGISTERS ? (int)x : s->registers;
  const size_t shared = which == CURVE_SHARED ? (size_t)x : s->shared;
  const int warps = (threads + s->traits.warp_size - 1) / s->traits.warp_size;
  const kiln_traits t = limited(s);

  if (s->max_threads > 0 && threads > s->max_threads)
    return 0;
  return resident(&t, threads, registers, shared) * warps;
}

void kiln__occupancy_curve(cli *c, const occupancy_setting *s, int which,
                           occupancy_curve *out)
{
  long step;
  const long end = curve_end(s, which, &step);
  const long first = which == CURVE_SHARED ? 0 : step;

  out->n = 0;
  out->x = kiln__cli_alloc(c, CURVE_POINTS, sizeof *out->x);
  out->warps = kiln__cli_alloc(c, CURVE_POINTS, sizeof *out->warps);
  for (long x = first; x <= end && out->n < CURVE_POINTS; x += step) {
    out->x[out->n] = (double)x;
    out->warps[out->n++] = warps_at(s, which, x);
  }
}

static cJSON *curve_json(cli *c, const occupancy_setting *s, int which)
{
  cJSON *list = cJSON_CreateArray();
  occupancy_curve curve;

  kiln__occupancy_curve(c, s, which, &curve);
  for (size_t i = 0; i < curve.n; i++) {
    const double point[] = {curve.x[i], curve.warps[i]};

    cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(point, 2));
  }
  return list;
}

cJSON *kiln__occupancy_json(cli *c, const occupancy_setting *s)
{
  static const char *const keys[N_CURVES] = {"by_threads", "by_registers",
                                             "by_shared"};
  cJSON *out = cJSON_CreateObject(), *limits;
  occupancy_sheet sheet;

  if (kiln__occupancy_sheet(&sheet, s) != KILN_OK)
    memset(&sheet, 0, sizeof sheet);
  JSON_NUMBER(out, "threads", s->threads);
  JSON_NUMBER(out, "registers", s->registers);
  JSON_NUMBER(out, "shared", s->shared);
  JSON_NUMBER(out, "blocks", sheet.now.blocks_per_sm);
  JSON_NUMBER(out, "warps", sheet.now.warps_per_sm);
  JSON_NUMBER(out, "most_warps", s->traits.max_warps_per_sm);
  JSON_NUMBER(out, "percent", sheet.now.share * 100);
  JSON_TEXT(out, "limit", kiln__occupancy_binding(c, &sheet));
  limits = cJSON_AddObjectToObject(out, "limits");
  for (int i = 0; i < SHEET_N_LIMITS; i++)
    if (sheet.blocks[i] < SHEET_UNLIMITED)
      JSON_NUMBER(limits, limit_names[i], sheet.blocks[i]);
  for (int i = 0; i < N_CURVES; i++)
    cJSON_AddItemToObject(out, keys[i], curve_json(c, s, i));
  return out;
}

/* ---- The graphs --------------------------------------------------------- */

static const struct {
  const char *title, *label;
  double unit; /* the axis shows multiples of this */
} graphs[N_CURVES] = {
    {"Varying block size", "threads per block", 1},
    {"Varying registers", "registers per thread", 1},
    {"Varying shared memory", "shared memory per block (KiB)", 1024}};

static void fill_graph(cli *c, const occupancy_sheet *sheet, int which, plot *p)
{
  const occupancy_setting *s = &sheet->of;
  const double now[] = {s->threads, s->registers, (double)s->shared};
  plot_series *series = kiln__cli_alloc(c, 1, sizeof *series);
  occupancy_curve curve;

  kiln__occupancy_curve(c, s, which, &curve);
  for (size_t i = 0; i < curve.n; i++)
    curve.x[i] /= graphs[which].unit;
  *series =
      (plot_series){.x = curve.x,
                    .y = curve.warps,
                    .n = curve.n,
                    .line = which == CURVE_THREADS ? PLOT_SOLID : PLOT_STEPS};
  *p = (plot){.kind = PLOT_CURVES,
              .title = graphs[which].title,
              .x = {.label = graphs[which].label,
                    .binary = true,
                    .from = 0,
                    .to = which == CURVE_REGISTERS
                              ? s->traits.max_regs_per_thread + 1
                              : curve.x[curve.n - 1]},
              .y = {.label = "warps per SM",
                    .binary = true,
                    .from = 0,
                    .to = s->traits.max_warps_per_sm},
              .series = series,
              .n_series = 1,
              .marked = true,
              .mark_x = now[which] / graphs[which].unit,
              .mark_y = sheet->now.warps_per_sm};
}

const plot_figure *kiln__occupancy_figure(cli *c, const occupancy_sheet *sheet,
                                          const char *title)
{
  plot_figure *figure = kiln__cli_alloc(c, 1, sizeof *figure);
  plot *plots = kiln__cli_alloc(c, N_CURVES, sizeof *plots);

  for (int i = 0; i < N_CURVES; i++)
    fill_graph(c, sheet, i, &plots[i]);
  *figure = (plot_figure){
      .title = title,
      .note = kiln__cli_text(
          c,
          "%d blocks, %d of %d warps per SM: occupancy %.3g %%, limited by "
          "%s; the circle is this setting",
          sheet->now.blocks_per_sm, sheet->now.warps_per_sm,
          sheet->of.traits.max_warps_per_sm, sheet->now.share * 100,
          kiln__occupancy_binding(c, sheet)),
      .plots = plots,
      .n = N_CURVES,
      .columns = N_CURVES};
  return figure;
}
