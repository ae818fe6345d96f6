/* gemm_wgmma.c -- the host side of gemm_wgmma.cu: matrix products on the tensor
 * cores of compute capability 9.0. */
#include "gemm.h"
#include "kernel_params.h"

static const char *const product_kernels[] = {"gemm_wgmma", NULL};
static const kiln__family product_family = {"gemm_wgmma", product_kernels,
                                            kiln__gemm_wgmma_params};
_Static_assert((int)GEMM_WGMMA_INPUTS == (int)KILN__GEMM_PARAM_INPUTS,
               "gemm_wgmma.cu begins with the parameters of every path");

/* How the kernel divides the tile of a cluster, of which each block computes a
 * part, or of a block. */
typedef struct division {
  uint8_t groups_m, groups_n; /* consumers along the rows and the columns */
  uint8_t stages;
  uint8_t staged; /* columns that a consumer stages for D of 2 bytes; half as
                     many for D of 4 bytes */
  uint8_t cluster_m, cluster_n;
} division;

/* The variants of the kernel: their tiles, the tiles with the plateaus that they
 * have for a call with a text, and the divisions. The first variant has clusters
 * of two blocks. Plateaus are relative to it: 750 TFLOP/s of bf16 on an H200. With
 * a text, one consumer alone does not hide its latencies, and consumers of 64 rows
 * load a vector with an element per column for fewer sums. */
static const kiln__gemm_tile tiles[] = {{256, 256, 1, 1000}, {128, 256, 1, 999},
                                        {256, 128, 1, 990},  {128, 192, 1, 860},
                                        {128, 128, 1, 730},  {128, 64, 1, 570},
                                        {64, 128, 1, 580},   {64, 64, 1, 350}};
static const kiln__gemm_tile tiles_text[] = {
    {256, 256, 1, 980}, {128, 256, 1, 979}, {256, 128, 1, 990},
    {128, 192, 1, 843}, {128, 128, 1, 715}, {128, 64, 1, 560},
    {64, 128, 1, 480},  {64, 64, 1, 300}};
static const division rest[] = {{2, 1, 4, 128, 2, 1}, {2, 1, 4, 128, 1, 1},
                                {2, 1, 4, 128, 1, 1}, {2, 1, 5, 64, 1, 1},
                                {2, 1, 6, 128, 1, 1}, {2, 1, 8, 64, 1, 1},
                                {1, 1, 8, 128, 1, 1}, {1, 1, 8, 64, 1, 1}};
/* For parts of f32, which need twice as many registers for sums. */
static const kiln__gemm_tile tiles_parts[] = {{256, 128, 1, 700},
                                              {128, 128, 1, 750},
                                              {128, 64, 1, 560},
                                              {64, 64, 1, 350}};
static const division rest_parts[] = {{2, 1, 6, 0, 2, 1},
                                      {2, 1, 6, 0, 1, 1},
                                      {2, 1, 8, 0, 1, 1},
                                      {1, 1, 8, 0, 1, 1}};
/* For tf32 whose A is turned in registers. */
static const kiln__gemm_tile tiles_turned[] = {{256, 256, 1, 1000},
                                               {128, 256, 1, 995},
                                               {128, 128, 1, 890},
                                               {128, 64, 1, 600},
                                               {64, 64, 1, 350}};
static const division rest_turned[] = {{2, 1, 4, 0, 2, 1},
                                       {2, 1, 4, 0, 1, 1},
                                       {2, 1, 6, 0, 1, 1},
                                       {2, 1, 8, 0, 1, 1},
                                       {1, 1, 8, 0, 1, 1}};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

enum {
  LINE = 128, /* bytes of the sum per stage */
  LEAST = 16, /* smallest m and n; below, simple kernels are as fast */
  ORDER = 8,  /* rows of tiles per group */
};

/* ---- What a call needs --------------------------------------------------- */

/* Returns the tiles of the variants that can compute a call. */
static const kiln__gemm_tile *tiles_of(const kiln__gemm *call, uint32_t *n)
{
  if (call->turns_a) {
    *n = COUNT(tiles_turned);
    return tiles_turned;
  }
  if (kiln__gemm_parts(call) > 0) {
    *n = COUNT(tiles_parts);
    return tiles_parts;
  }
  *n = COUNT(tiles);
  return call->desc->epilogue != NULL ? tiles_text : tiles;
}

static const division *division_of(const kiln__gemm *call)
{
  const division *of = call->turns_a                ? rest_turned
                       : kiln__gemm_parts(call) > 0 ? rest_parts
                                                    : rest;

  return &of[call->plan.variant];
}

static kiln__gemm_shape shape_of(const kiln__gemm *call)
{
  return (kiln__gemm_shape){call->args.m, call->args.n, call->args.k,
                            call->args.batch, kiln__sm_count(call->device)};
}

/* Returns the caller's tile in the normal form of the call. Sums are never
 * split among blocks. */
static kiln_gemm_tile wanted_tile(const kiln__gemm *call)
{
  const kiln_gemm_tile t = call->tile;

  return call->swapped ? (kiln_gemm_tile){t.n, t.m, 1}
                       : (kiln_gemm_tile){t.m, t.n, 1};
}

/* Returns the number of the best variant, or the number of variants if none has
 * the caller's tile. A cluster occupies two SMs, and pays when it has several
 * tiles, but not for f16 and bf16 (on an H200, 4096^3 and 8192^3). */
static uint32_t choose_variant(const kiln__gemm *call)
{
  const kiln_gemm_tile wanted = wanted_tile(call);
  kiln__gemm_shape shape = shape_of(call);
  const kiln__gemm_tile *of;
  uint32_t n, row, splits;
  double efficiency;

  of = tiles_of(call, &n);
  row = 1 + kiln__gemm_choose(&shape, of + 1, n - 1, wanted, &splits);
  if (wanted.m != 0 || wanted.n != 0)
    return kiln__gemm_choose(&shape, of, n, wanted, &splits);
  if (kiln__size(call->type) == 2)
    return row;
  efficiency = kiln__gemm_efficiency(&shape, &of[row], 1);
  shape.sms = (shape.sms + 1) / 2;
  return kiln__gemm_tiles(&shape, of) >= 2 * shape.sms &&
                 kiln__gemm_efficiency(&shape, of, 1) > efficiency
             ? 0
             : row;
}

/* Returns whether sizes fit into the 32-bit coordinates and 40-bit strides of
 * tensor maps. */
static bool fits(const kiln__gemm *call, const kiln__gemm_source *s)
{
  const uint64_t most = UINT64_C(1) << 30;
  const uint64_t line = s->leading * s->size;
  const uint64_t matrix =
      s->packed ? s->to_lines * line : s->operand->stride * s->size;

  return s->to_lines < most && s->to_width < most && s->batch < most / 4 &&
         line < most * 512 && matrix < most * 512 && call->args.batch < most;
}

/* ---- Operands that the kernel turns -------------------------------------- */

static uint32_t exchanged(uint32_t pointers)
{
  return (pointers & ~(uint32_t)(KILN__GEMM_A | KILN__GEMM_B)) |
         ((pointers & KILN__GEMM_A) != 0 ? KILN__GEMM_B : 0u) |
         ((pointers & KILN__GEMM_B) != 0 ? KILN__GEMM_A : 0u);
}

/* Makes D^T = B^T A^T of D = A B. */
static void transpose(kiln__gemm *call)
{
  const kiln__gemm_args g = call->args;

  call->args.a = g.b;
  call->args.b = g.a;
  call->args.m = g.n;
  call->args.n = g.m;
  call->args.c_row = g.c_column;
  call->args.c_column = g.c_row;
  call->a_k = call->b_k;
  call->b_k = true;
  call->pointers = exchanged(call->pointers);
  call->swapped = !call->swapped;
  call->c_by_row = !call->c_by_row;
  call->d_by_column = true;
}

/* Fills *form with a call of tf32 whose A is turned in registers. For tf32, wgmma
 * turns no matrix in shared memory, but A may be in registers, in any order. So a B
 * that has to be turned becomes A. Returns false if nothing has to be turned, or if
 * the kernel cannot load A. */
static bool turn(const kiln__gemm *call, kiln__gemm *form)
{
  if (kiln__gemm_math(call) != 2 || (call->a_k && call->b_k))
    return false;
  *form = *call;
  if (call->a_k)
    transpose(form);
  form->turns_a = kiln__gemm_is_aligned(form, &form->args.a, KILN__GEMM_A, 4);
  return form->turns_a;
}

/* ---- The plan ------------------------------------------------------------ */

/* Returns whether a call is one for these tensor cores, whatever its tile. */
static bool suits(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;
  const kiln_gemm_tile wanted = call->tile;
  const bool free_tile = wanted.m == 0 && wanted.n == 0;

  return call->device->traits.cc == 90 &&
         call->device->driver->tensorMapEncodeTiled != NULL &&
         call->type != KILN_F64 &&
         !(call->type == KILN_F32 && call->precision == KILN_GEMM_IEEE) &&
         g->k > 0 && wanted.split <= 1 &&
         !(free_tile && (g->m < LEAST || g->n < LEAST));
}

/* Returns whether the operands of a call fit the tensor maps, and its tiles 32
 * bits. */
static bool operands_fit(const kiln__gemm *call)
{
  const kiln__gemm_source a = kiln__gemm_source_of(call, true);
  const kiln__gemm_source b = kiln__gemm_source_of(call, false);
  const kiln__gemm_shape shape = shape_of(call);
  const kiln__gemm_tile *of;
  uint32_t n;

  of = tiles_of(call, &n);
  return fits(call, &a) && fits(call, &b) &&
         kiln__gemm_tiles(&shape, &of[n - 1]) < UINT32_MAX / 2;
}

static void set_plan(kiln__gemm *given, const kiln__gemm *call, uint32_t row)
{
  const kiln__gemm_shape shape = shape_of(call);
  kiln__gemm_plan *p = &given->plan;
  const kiln__gemm_tile *t;
  uint32_t n;

  t = &tiles_of(call, &n)[row];
  p->variant = row;
  p->splits = 1;
  p->turned = call != given;
  p->tiles = kiln__gemm_tiles(&shape, t);
  p->choice.tile = (kiln_gemm_tile){call->swapped ? t->n : t->m,
                                    call->swapped ? t->m : t->n, 1};
  p->choice.blocks = p->tiles < shape.sms ? p->tiles : shape.sms;
  p->choice.efficiency = kiln__gemm_efficiency(&shape, t, 1);
  kiln__gemm_need_copies(&given->need, call);
}

/* Plans `given` in the form `call` in which the kernel computes it, if one of its
 * tiles fits. */
static bool plan_form(kiln__gemm *given, const kiln__gemm *call)
{
  uint32_t n, row;

  tiles_of(call, &n);
  row = choose_variant(call);
  if (row >= n || !operands_fit(call))
    return false;
  set_plan(given, call, row);
  return true;
}

static bool plan(kiln__gemm *call)
{
  kiln__gemm form;

  return suits(call) && ((turn(call, &form) && plan_form(call, &form)) ||
                         plan_form(call, call));
}

/* ---- Tensor maps --------------------------------------------------------- */

static CUtensorMapDataType map_type(uint32_t size)
{
  return size == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
         : size == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                     : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

/* Describes a batch of matrices of `lines` lines. A box has LINE bytes of
 * box_lines lines. */
static kiln_status encode(CUtensorMap *map, const kiln_device *device,
                          uint32_t size, uint64_t address,
                          const uint64_t extent[3], uint64_t leading,
                          uint64_t stride, uint32_t box_lines)
{
  const kiln__driver *driver = device->driver;
  const uint64_t strides[] = {leading * size,
                              extent[2] > 1 ? stride * size : leading * size};
  const uint32_t box[] = {LINE / size, box_lines, 1}, ones[] = {1, 1, 1};

  return kiln__cu(driver,
                  driver->tensorMapEncodeTiled(
                      map, map_type(size), 3, (void *)(uintptr_t)address,
                      extent, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  "cuTensorMapEncodeTiled");
}

/* Describes an operand, of which a block copies `rows` rows or columns. */
static kiln_status encode_source(CUtensorMap *map, const kiln_device *device,
                                 const kiln__gemm_source *s, uint64_t copy,
                                 uint32_t rows)
{
  const uint64_t extent[] = {s->to_width, s->to_lines, s->batch * s->parts};

  return encode(map, device, s->size, s->packed ? copy : s->operand->data,
                extent, s->leading,
                s->packed ? s->to_lines * s->leading : s->operand->stride,
                s->k_major ? rows : LINE / s->size);
}

/* ---- The launch ---------------------------------------------------------- */

/* The numbers that gemm_wgmma gets besides kiln__gemm_args. */
typedef struct tile_args {
  uint32_t rows, columns, total, steps, a_step, b_step;
} tile_args;

static tile_args tile_args_of(const kiln__gemm *call,
                              const kiln__gemm_source *a,
                              const kiln__gemm_source *b,
                              const kiln__spec *spec)
{
  const uint32_t *v = spec->value;
  const kiln__gemm_args *g = &call->args;
  tile_args t = {.a_step = a->batch > 1 ? a->parts : 0,
                 .b_step = b->batch > 1 ? b->parts : 0};

  t.rows = (uint32_t)kiln__divide_up(g->m, v[GEMM_WGMMA_TILE_M] *
                                               v[GEMM_WGMMA_CLUSTER_M]);
  t.columns = (uint32_t)kiln__divide_up(g->n, v[GEMM_WGMMA_TILE_N] *
                                                  v[GEMM_WGMMA_CLUSTER_N]);
  t.total = (uint32_t)(t.rows * t.columns * g->batch);
  t.steps =
      (uint32_t)kiln__divide_up(g->k * a->size, LINE) * v[GEMM_WGMMA_TERMS];
  return t;
}

/* Returns which further inputs are vectors, KILN_VECTORS of gemm_wgmma. */
static uint32_t vectors_of(const kiln__gemm *call)
{
  uint32_t bits = 0;

  for (uint32_t i = 0; i < call->n_inputs; i++) {
    const uint64_t *x = call->args.x[i];

    if (x[2] == 0 || call->args.batch == 1)
      bits |= (x[0] == 0 && x[1] == 1   ? 1u
               : x[0] == 1 && x[1] == 0 ? 2u
                                        : 0u)
              << 2 * i;
  }
  return bits;
}

/* Returns whether the TMA can store D. It stores whole chunks of 16 bytes, so lines
 * must end at multiples of these as well: what follows may be the caller's. */
static bool fits_map(const kiln__gemm *call)
{
  const kiln__gemm_args *g = &call->args;
  const uint64_t most = UINT64_C(1) << 37; /* elements between lines */
  const uint64_t size = kiln__size(call->d_type);

  return kiln__gemm_is_aligned(call, &g->d, KILN__GEMM_D, size) &&
         g->n * size % 16 == 0 && g->d.leading < most &&
         (g->batch == 1 || g->d.stride < most);
}

/* Returns the number of columns of D that a consumer stages in shared memory. If
 * the TMA cannot store D, that pays only for elements of 2 bytes. */
static uint32_t staged_columns(const kiln__gemm *call, const division *d)
{
  const uint64_t size = kiln__size(call->d_type);

  if (call->turns_a)
    return 0;
  return size == 2                     ? d->staged
         : size == 4 && fits_map(call) ? d->staged / 2u
                                       : 0;
}

/* Returns the number of elements of D per store, KILN_VECTOR_D of gemm_wgmma. */
static uint32_t vector_of_d(const kiln__gemm *call, bool staged)
{
  return staged && fits_map(call)
             ? 8
             : kiln__gemm_vector(
                   call, &call->args.d, KILN__GEMM_D, call->d_type,
                   call->d_by_column ? call->args.m : call->args.n, 2);
}

static void specify(kiln__spec *spec, const kiln__gemm *call,
                    const kiln__gemm_source *a, const kiln__gemm_source *b)
{
  const division *d = division_of(call);
  uint32_t n, *v = spec->value;
  const kiln__gemm_tile *t = &tiles_of(call, &n)[call->plan.variant];
  const uint32_t parts = kiln__gemm_parts(call);
  const uint32_t staged = staged_columns(call, d);

  kiln__gemm_specify(spec, &product_family, call);
  spec->suffix = 'a';
  v[GEMM_WGMMA_MATH] = kiln__gemm_math(call);
  v[GEMM_WGMMA_TILE_M] = t->m / d->cluster_m;
  v[GEMM_WGMMA_TILE_N] = t->n / d->cluster_n;
  v[GEMM_WGMMA_GROUPS_M] = d->groups_m;
  v[GEMM_WGMMA_GROUPS_N] = d->groups_n;
  v[GEMM_WGMMA_STAGES] = d->stages;
  v[GEMM_WGMMA_CLUSTER_M] = d->cluster_m;
  v[GEMM_WGMMA_CLUSTER_N] = d->cluster_n;
  v[GEMM_WGMMA_ORDER] = ORDER;
  v[GEMM_WGMMA_A_K] = a->k_major;
  v[GEMM_WGMMA_B_K] = b->k_major;
  v[GEMM_WGMMA_TERMS] = parts == 3 ? 6 : parts == 2 ? 3 : 1;
  v[GEMM_WGMMA_PROMOTE] = parts > 0;
  v[GEMM_WGMMA_STAGED] = staged;
  v[GEMM_WGMMA_VECTOR_D] = vector_of_d(call, staged > 0);
  v[GEMM_WGMMA_TURNED] = !call->turns_a ? 0 : call->d_by_column ? 2 : 1;
  v[GEMM_WGMMA_VECTORS] = vectors_of(call);
}

static uint32_t consumers_of(const kiln__spec *spec)
{
  return spec->value[GEMM_WGMMA_GROUPS_M] * spec->value[GEMM_WGMMA_GROUPS_N];
}

static uint32_t shared_bytes(const kiln__spec *spec)
{
  const uint32_t *v = spec->value;

  return v[GEMM_WGMMA_STAGES] * (v[GEMM_WGMMA_TILE_M] + v[GEMM_WGMMA_TILE_N]) *
             LINE +
         consumers_of(spec) * v[GEMM_WGMMA_STAGED] * 64 *
             (uint32_t)kiln__size((kiln_dtype)v[GEMM_WGMMA_D]) +
         v[GEMM_WGMMA_STAGES] * 16;
}

static kiln_status launch_product(const kiln__gemm_product *p)
{
  const uint32_t *v = p->spec->value;
  const kiln__gemm_args *g = &p->call->args;
  const kiln__gemm_source *s = p->source;
  const kiln_device *device = p->stream->device;
  const uint64_t extent[] = {g->n, g->m, g->batch};
  const uint32_t cluster = v[GEMM_WGMMA_CLUSTER_M] * v[GEMM_WGMMA_CLUSTER_N];
  const tile_args t = tile_args_of(p->call, &s[0], &s[1], p->spec);
  const uint64_t most = kiln__sm_count(device) / cluster;
  CUtensorMap a, b, d = {0};
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__args in;

  KILN_TRY(encode_source(&a, device, &s[0], p->copy[0],
                         v[GEMM_WGMMA_TILE_M] / v[GEMM_WGMMA_CLUSTER_N]));
  KILN_TRY(encode_source(&b, device, &s[1], p->copy[1],
                         v[GEMM_WGMMA_TILE_N] / v[GEMM_WGMMA_CLUSTER_M]));
  if (v[GEMM_WGMMA_VECTOR_D] == 8)
    KILN_TRY(encode(&d, device, (uint32_t)kiln__size(p->call->d_type),
                    g->d.data, extent, g->d.leading, g->d.stride, 64));
  kiln__user_args(&in, p->spec);
  config = kiln__grid(p->stream, (t.total < most ? t.total : most) * cluster,
                      128 * (consumers_of(p->spec) + 1));
  config.smem = shared_bytes(p->spec);
  config.overlap_prior = true;
  st = KILN_LAUNCH(p->kernel, &config, KILN__USER_ARG(in), KILN_ARG(*g),
                   KILN_ARG(t), KILN_ARG(a), KILN_ARG(b), KILN_ARG(d));

done:
  return st;
}

static kiln_status launch(kiln_stream *stream, const kiln__gemm *given,
                          const kiln_workspace *workspace)
{
  kiln__gemm form;
  const kiln__gemm *call =
      given->plan.turned && turn(given, &form) ? &form : given;
  const kiln__gemm_source a = kiln__gemm_source_of(call, true);
  const kiln__gemm_source b = kiln__gemm_source_of(call, false);
  kiln__spec spec;

  specify(&spec, call, &a, &b);
  return kiln__gemm_launch(stream, call, workspace, &spec, launch_product);
}

const kiln__gemm_path kiln__gemm_wgmma = {"wgmma", plan, launch};
