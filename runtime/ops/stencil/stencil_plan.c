/* stencil_plan.c -- checks the arguments of kiln_stencil() and chooses kernels,
 * tiles and grids for them. */
#include "stencil_plan.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Registers of sums under way per lane, and multiply-adds per row step, of
 * stencil.cu. More registers leave too few warps per SM. More multiply-adds do not
 * stay in the instruction caches. */
enum { MOST_SUM_REGISTERS = 80, MOST_PRODUCTS = 4400 };

/* Shared memory of the rows per block of stencil.cu, in bytes. The weights may
 * take another 9 KB. */
enum { MOST_SHARED = 36 << 10 };

/* The least and the largest number of rows in flight of stencil.cu. */
enum { LEAST_STAGES = 2, MOST_STAGES = 16 };

/* stencil_rows.cu: the largest radius for images. */
enum { ROWS_RADIUS = 3 };

/* ---- Weights ------------------------------------------------------------- */

static uint64_t across(uint32_t radius)
{
  return 2 * (uint64_t)radius + 1;
}

/* Returns the number of weights that the caller provides. */
static uint64_t n_weights(const kiln_stencil_desc *desc)
{
  uint64_t n = desc->separable ? 0 : 1;

  for (uint32_t k = 0; k < desc->dims; k++)
    n = desc->separable ? n + across(desc->radius[k])
                        : n * across(desc->radius[k]);
  return n;
}

/* Writes a finite number as a hexadecimal C++ literal, without a decimal point,
 * which would depend on the locale. */
static void add_float(kiln__buf *out, double w, const char *suffix)
{
  uint64_t bits, digits;
  int exponent;

  memcpy(&bits, &w, sizeof bits);
  exponent = (int)(bits >> 52 & 0x7ff);
  digits = bits & ((UINT64_C(1) << 52) - 1);
  if (exponent > 0)
    digits |= UINT64_C(1) << 52;
  else
    exponent = 1;
  exponent -= 1075;
  for (; digits != 0 && digits % 16 == 0; exponent += 4)
    digits /= 16;
  kiln__buf_format(out, "%s0x%llxp%d%s, ", bits >> 63 != 0 ? "-" : "",
                   (unsigned long long)digits, digits == 0 ? 0 : exponent,
                   suffix);
}

static void add_weight(kiln__buf *out, double w, kiln_dtype acc)
{
  if (acc == KILN_F32)
    add_float(out, (double)(float)w, "f");
  else if (acc == KILN_F64)
    add_float(out, w, "");
  else
    kiln__buf_format(out, "(KILN_ACC)%lldll, ", (long long)w);
}

kiln_status kiln__stencil_weights(kiln__buf *out, const kiln__stencil_pass *p)
{
  const uint64_t n = p->separable
                         ? across(p->rx) + across(p->ry)
                         : across(p->rx) * across(p->ry) * across(p->rz);

  kiln__buf_text(out, "[](const unsigned kiln__t) -> KILN_ACC { constexpr "
                      "KILN_ACC kiln__w[] = {");
  for (uint64_t k = 0; k < n; k++)
    add_weight(out, p->host_weights[k], p->acc);
  kiln__buf_text(out, "}; return kiln__w[kiln__t]; }(a)");
  return kiln__buf_status(out, "the weights of a stencil");
}

/* ---- Checks -------------------------------------------------------------- */

static kiln_dtype sum_type(const kiln_stencil_desc *desc)
{
  const kiln__dtype *t = kiln__dtype_of(desc->in.type);

  if (desc->acc != KILN_DTYPE_NONE || t == NULL)
    return desc->acc;
  return t->size < 4 && !t->is_float ? KILN_I32 : t->computed;
}

static bool is_sum_type(kiln_dtype type)
{
  return (type >= KILN_I32 && type <= KILN_U64) || type == KILN_F32 ||
         type == KILN_F64;
}

/* Returns whether a weight can be converted to the type of the sum. */
static bool is_weight(double w, kiln_dtype acc)
{
  if (acc == KILN_F32)
    return w >= -(double)FLT_MAX && w <= (double)FLT_MAX;
  if (acc == KILN_F64)
    return w >= -DBL_MAX && w <= DBL_MAX;
  return w >= -9007199254740992.0 && w <= 9007199254740992.0 &&
         w == (double)(int64_t)w;
}

static void check_weights(kiln__checker *c, const kiln_stencil_desc *desc)
{
  const kiln_dtype acc = sum_type(desc);
  const uint64_t n = n_weights(desc);

  kiln__check_that(c,
                   (desc->weights != NULL) + kiln__given(desc->device_weights) +
                           (desc->expr != NULL) ==
                       1,
                   "give one of weights, device_weights and expr");
  kiln__check_that(c, desc->expr == NULL || desc->finish == NULL,
                   "finish belongs to weights; extend expr instead");
  kiln__check_that(c, desc->expr == NULL || !desc->separable,
                   "separable belongs to weights, but there is an expr");
  if (desc->expr != NULL)
    kiln__check_names(c, &desc->code, " at column row plane ");
  kiln__check_that(c, is_sum_type(acc),
                   "acc is %s; sums are i32, u32, i64, u64, f32 or f64",
                   kiln_dtype_name(acc));
  if (kiln__given(desc->device_weights))
    kiln__check_read(c, "device_weights", desc->device_weights, n);
  if (desc->weights == NULL)
    return;
  kiln__check_that(c, n <= KILN_MAX_WEIGHTS,
                   "%llu weights: more than %d must be in device_weights",
                   (unsigned long long)n, (int)KILN_MAX_WEIGHTS);
  for (uint64_t k = 0; c->st == KILN_OK && k < n; k++)
    kiln__check_that(c, is_weight(desc->weights[k], acc),
                     "weights[%llu] is %g, which a sum of type %s cannot use",
                     (unsigned long long)k, desc->weights[k],
                     kiln_dtype_name(acc));
}

static void check_axes(kiln__checker *c, const kiln_stencil_desc *desc)
{
  const uint64_t most =
      desc->dims == 1 ? UINT64_C(1) << 60 : (UINT64_C(1) << 31) - (1 << 16);

  kiln__check_that(c, desc->dims >= 1 && desc->dims <= 3,
                   "dims is %u; arrays have 1 to 3 axes", (unsigned)desc->dims);
  for (uint32_t k = 0; c->st == KILN_OK && k < 3; k++) {
    kiln__check_that(c, desc->radius[k] <= KILN_MAX_RADIUS,
                     "radius[%u] is %u, more than %d", (unsigned)k,
                     (unsigned)desc->radius[k], (int)KILN_MAX_RADIUS);
    kiln__check_that(c, k < desc->dims || desc->radius[k] == 0,
                     "radius[%u] is not 0, but there are %u axes", (unsigned)k,
                     (unsigned)desc->dims);
    kiln__check_that(c, k >= desc->dims || desc->size[k] <= most,
                     "size[%u] is too large", (unsigned)k);
  }
  kiln__check_that(c, (unsigned)desc->border <= KILN_CONSTANT,
                   "border is no kiln_border");
}

/* Sets the sizes and distances of a pass over the whole array. */
static void set_shape(kiln__stencil_pass *p, const kiln_stencil_desc *desc)
{
  for (uint32_t k = 0; k < 3; k++)
    p->size[k] = k < desc->dims ? desc->size[k] : 1;
  p->in_row = desc->in_pitch[0] != 0 ? desc->in_pitch[0] : p->size[0];
  p->out_row = desc->out_pitch[0] != 0 ? desc->out_pitch[0] : p->size[0];
  p->in_plane =
      desc->in_pitch[1] != 0 ? desc->in_pitch[1] : p->in_row * p->size[1];
  p->out_plane =
      desc->out_pitch[1] != 0 ? desc->out_pitch[1] : p->out_row * p->size[1];
}

/* Checks the distances of one array, and adds the array to the overlap check. */
static void check_array(kiln__checker *c, const kiln__stencil_pass *p,
                        const char *name, kiln_array a, uint64_t row,
                        uint64_t plane, bool written)
{
  const uint64_t most = UINT64_C(1) << 60, *size = p->size;
  const bool empty = size[0] == 0 || size[1] == 0 || size[2] == 0;
  uint64_t n = 0;

  kiln__check_that(c, row >= size[0], "%s_pitch[0] is less than a row", name);
  kiln__check_that(c,
                   row <= most / (size[1] + 1) && plane <= most / (size[2] + 1),
                   "%s has more elements than the address space", name);
  kiln__check_that(c, size[2] < 2 || plane >= row * size[1],
                   "%s_pitch[1] is less than a plane", name);
  if (c->st == KILN_OK && !empty)
    n = (size[2] - 1) * plane + (size[1] - 1) * row + size[0];
  if (written)
    kiln__check_write(c, name, a, n);
  else
    kiln__check_read(c, name, a, n);
}

/* ---- Tiles --------------------------------------------------------------- */

/* Returns the largest power of two, at most 16, that divides a number. */
static uint32_t power_in(uint64_t number)
{
  const uint64_t bits = number | 16;

  return (uint32_t)(bits & (~bits + 1));
}

static size_t ring_bytes(const kiln__stencil_pass *p)
{
  const size_t size = kiln__size(p->in.type), grain = 16 / size;
  const size_t margin = (p->rx + grain - 1) / grain * grain;

  return p->block / 32 * p->stages * (size_t)across(p->rz) *
         (32 * (size_t)p->vec + 2 * margin) * size;
}

/* Makes the ring of rows smaller. Returns false if it has the least size, which
 * every radius allows. */
static bool shrink(kiln__stencil_pass *p)
{
  if (p->stages > 3)
    p->stages--;
  else if (p->block > 32)
    p->block /= 2;
  else if (p->vec > 1)
    p->vec /= 2;
  else if (p->stages > 2)
    p->stages--;
  else
    return false;
  return true;
}

static uint64_t products_of(const kiln__stencil_pass *p)
{
  return p->separable ? across(p->rx) + across(p->ry)
                      : across(p->rx) * across(p->ry) * across(p->rz);
}

/* Chooses the columns per lane: 16 bytes of the wider array, unless the sums under
 * way then take too many registers. */
static void choose_vector(kiln__stencil_pass *p)
{
  const size_t in = kiln__size(p->in.type), out = kiln__size(p->out.type);
  const uint64_t words = kiln__size(p->acc) / 4;

  p->vec = (uint32_t)(16 / (in > out ? in : out));
  while (p->vec > 1 && (p->vec * across(p->ry) * words > MOST_SUM_REGISTERS ||
                        p->vec * products_of(p) > MOST_PRODUCTS))
    p->vec /= 2;
}

/* Returns the parameters of a kernel, and sets its threads per block. */
static kiln__tuning tuned(kiln__stencil_pass *p, const kiln_stream *stream,
                          kiln__tuned_family family)
{
  const kiln__tuning t =
      kiln__tuned(stream->device, family, (unsigned)kiln__size(p->in.type),
                  p->size[0] * p->size[1] * p->size[2]);

  p->block = t.block;
  return t;
}

/* Plans the ring of stencil.cu, and enough runs of rows to fill the device. */
static void plan_ring(kiln__stencil_pass *p, const kiln_stream *stream)
{
  const kiln__tuning t = tuned(p, stream, KILN__TUNED_STENCIL_RING);
  const uint64_t wanted = kiln__sm_count(stream->device) * t.items;
  const uint64_t least = 8 + 8 * (uint64_t)p->ry;
  uint64_t rows, runs;

  p->kernel = KILN__STENCIL_RING;
  p->stages = t.extra < LEAST_STAGES  ? LEAST_STAGES
              : t.extra > MOST_STAGES ? MOST_STAGES
                                      : t.extra;
  while (ring_bytes(p) > MOST_SHARED && shrink(p))
    ;
  p->strips = kiln__divide_up(p->size[0], 32 * (uint64_t)p->vec);
  rows = kiln__divide_up(p->strips * p->size[1] * p->size[2], wanted);
  runs = kiln__divide_up(p->size[1], rows > least ? rows : least);
  p->run = kiln__divide_up(p->size[1], runs);
  p->blocks = kiln__divide_up(p->strips * runs * p->size[2], p->block / 32);
}

/* Plans stencil_rows.cu: more rows per warp for a larger radius, so that fewer
 * rows are read by two warps. */
static void plan_rows(kiln__stencil_pass *p, const kiln_stream *stream)
{
  const kiln__tuning t = tuned(
      p, stream, p->line ? KILN__TUNED_STENCIL_LINE : KILN__TUNED_STENCIL_ROWS);
  uint64_t runs;

  p->kernel = KILN__STENCIL_ROWS;
  p->run = p->line ? 1 : p->ry < 2 ? t.items : 2 * t.items;
  p->strips = kiln__divide_up(p->size[0], 32 * (uint64_t)p->vec);
  runs = kiln__divide_up(p->size[1], p->run);
  p->blocks = kiln__divide_up(p->strips * runs * p->size[2], p->block / 32);
}

static void plan_sum(kiln__stencil_pass *p, const kiln_stream *stream)
{
  const uint64_t in = kiln__size(p->in.type), out = kiln__size(p->out.type);
  const bool small = p->rx <= ROWS_RADIUS && p->ry <= ROWS_RADIUS &&
                     p->rz == 0 && p->beyond == 0;

  /* A first pass writes, and a second pass reads, temporary storage, which is
   * aligned to 256 bytes. */
  p->chunk = power_in(p->in.data | p->in_row * in | p->in_plane * in);
  if (p->line || small)
    plan_rows(p, stream);
  else
    plan_ring(p, stream);
  p->aligned = power_in(p->out.data | p->out_row * out | p->out_plane * out) >=
               out * p->vec;
}

static void plan_at(kiln__stencil_pass *p, const kiln_stream *stream)
{
  const kiln__tuning t = tuned(p, stream, KILN__TUNED_STENCIL_AT);
  const uint64_t items = (uint64_t)t.block * t.items;
  const uint64_t width = p->line ? items : 32;
  const uint64_t height = p->line ? 1 : items / 32;

  p->kernel = KILN__STENCIL_AT;
  p->vec = t.items;
  p->strips = kiln__divide_up(p->size[0], width);
  p->run = kiln__divide_up(p->size[1], height);
  p->blocks = p->strips * p->run * p->size[2];
}

/* Makes the pass over the planes of a separable volume, after `first`. */
static void plan_planes(kiln__stencil_pass *p, kiln__stencil_pass *first,
                        const kiln_stream *stream)
{
  const uint64_t skipped = across(first->rx) + across(first->ry);
  const uint64_t *size = first->size;

  *p = *first;
  p->out_row = first->out_plane;
  p->out_plane = first->out_row;
  first->last = false;
  first->beyond = first->desc->border == KILN_CONSTANT;
  p->beyond = 2 * first->beyond;
  first->out = (kiln_array){0, first->acc};
  first->out_row = size[0];
  first->out_plane = size[0] * size[1];
  p->in = first->out;
  p->in_row = first->out_plane;
  p->in_plane = first->out_row;
  p->size[1] = size[2];
  p->size[2] = size[1];
  p->separable = false;
  p->rx = 0;
  p->ry = first->desc->radius[2];
  if (p->host_weights != NULL)
    p->host_weights += skipped;
  else
    p->weights.data += skipped * kiln__size(p->weights.type);
  choose_vector(p);
  plan_sum(p, stream);
}

static void plan_passes(kiln__stencil_plan *plan, const kiln_stream *stream,
                        const kiln_stencil_desc *desc)
{
  kiln__stencil_pass *p = &plan->pass[0];
  const bool two = desc->separable && desc->dims == 3;

  if (p->size[0] == 0 || p->size[1] == 0 || p->size[2] == 0)
    return;
  plan->passes = two ? 2 : 1;
  p->line = desc->dims == 1;
  p->last = true;
  p->separable = desc->separable && desc->dims > 1;
  p->rx = desc->radius[0];
  p->ry = desc->radius[1];
  p->rz = two ? 0 : desc->radius[2];
  p->in = desc->in;
  p->out = desc->out;
  p->weights = desc->device_weights;
  p->host_weights = desc->weights;
  p->acc = sum_type(desc);
  if (two) {
    plan_planes(&plan->pass[1], p, stream);
    kiln__need_temp(&plan->need, (p->size[0] * p->size[1] * p->size[2] + 1) *
                                     kiln__size(p->acc));
  }
  choose_vector(p);
  if (desc->expr == NULL && p->vec * products_of(p) <= MOST_PRODUCTS)
    plan_sum(p, stream);
  else
    plan_at(p, stream);
}

kiln_status kiln__stencil_prepare(kiln__stencil_plan *plan,
                                  const kiln_stream *stream,
                                  const kiln_stencil_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__stencil_pass *p = &plan->pass[0];
  kiln__checker c;

  *plan = (kiln__stencil_plan){0};
  p->desc = desc;
  if (kiln__check_begin(&c, "kiln_stencil", stream, desc) != KILN_OK)
    return c.st;
  check_axes(&c, desc);
  if (c.st == KILN_OK) {
    check_weights(&c, desc);
    set_shape(p, desc);
    check_array(&c, p, "in", desc->in, p->in_row, p->in_plane, false);
    check_array(&c, p, "out", desc->out, p->out_row, p->out_plane, true);
  }
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    plan_passes(plan, stream, desc);
  return c.st;
}
