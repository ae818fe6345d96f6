/* segmented_sort.c -- the host side of segmented_sort.cu, and of radix_pass.cu
 * for sorts of segments.
 *
 * There are three classes of segments. A warp sorts a short segment (up to 128
 * keys) in registers while it scans the offsets. The warp appends all other
 * segments to lists. A block sorts a medium segment (up to 3,072 keys) in
 * shared memory. Long segments are split into tiles, and the passes of the
 * radix sort move these tiles with separate digit counts for each segment. The
 * host does not know the lists. Therefore the launches are as large as n keys
 * permit, and blocks without work end immediately. */
#include "kernel_params.h"
#include "sort.h"

enum { BLOCK = 256, ITEMS = 12, SHORT = 4, MIDDLE = BLOCK * ITEMS };

enum { N_MIDDLE, N_LONG, N_TILES };

/* ---- Kernels ------------------------------------------------------------- */

enum { SORT_SHORT, SORT_MIDDLE, COUNT_LONG };

static const char *const class_kernels[] = {"segments_short", "segments_middle",
                                            "segments_count", NULL};
static const kiln__family class_family = {"segmented_sort", class_kernels,
                                          kiln__segmented_sort_params};

static const char *const pass_kernels[] = {"radix_pass", NULL};
static const kiln__family pass_family = {"radix_pass", pass_kernels,
                                         kiln__radix_pass_params};

/* Arguments of the kernels in segmented_sort.cu, with the members that the
 * kernels declare. */
typedef struct class_args {
  CUdeviceptr in, out, values_in, values_out, offsets;
  uint64_t n_segments, n;
  kiln__sort_order order;
  uint64_t mask;
  uint32_t begin_bit, end_bit;
  CUdeviceptr counts, middle, list, tile, digits;
  uint32_t most[3], reserved;
} class_args;

typedef struct long_args {
  CUdeviceptr list, tile, n_tiles, counts;
  uint32_t passes, reserved;
} long_args;

/* ---- Plan ---------------------------------------------------------------- */

typedef struct segments_plan {
  const kiln_segmented_sort_desc *desc;
  kiln__sort_shape shape;
  kiln__tuning tuning;
  bool is_float;
  kiln__sort_order order;
  unsigned passes, steps, tile;
  uint32_t most[3];
  size_t smem, middle_smem;
  size_t counts, middle, list, tiles, digits, keys, values;
  kiln__need need;
} segments_plan;

/* Returns a sort of all keys as one segment. The checks of this sort and the
 * properties of its keys also hold for the sort of segments. */
static kiln_sort_desc whole_sort(const kiln_segmented_sort_desc *desc)
{
  return (kiln_sort_desc){.keys_in = desc->keys_in,
                          .keys_out = desc->keys_out,
                          .values_in = desc->values_in,
                          .values_out = desc->values_out,
                          .n = desc->n,
                          .descending = desc->descending,
                          .begin_bit = desc->begin_bit,
                          .end_bit = desc->end_bit};
}

static void plan_sort(segments_plan *p, kiln_device *device,
                      const kiln_segmented_sort_desc *desc)
{
  const kiln_sort_desc whole = whole_sort(desc);
  const kiln__sort_call call = kiln__sort_call_of(&whole);
  const unsigned bits = call.shape.end_bit - call.shape.begin_bit;

  *p = (segments_plan){.desc = desc,
                       .shape = call.shape,
                       .is_float = call.is_float,
                       .order = call.order,
                       .passes =
                           (bits + KILN__RADIX_BITS - 1) / KILN__RADIX_BITS};
  p->steps = p->passes + (p->shape.in_place && p->passes % 2 != 0);
  p->tuning = kiln__sort_facts_of(device, &p->shape).tuning;
}

static void plan_tiles(segments_plan *p, const kiln_device *device)
{
  const kiln__sort_shape *s = &p->shape;
  const size_t smem = (size_t)device->traits.smem_per_block_optin;
  const size_t index = s->value_size > 0 ? 2 * MIDDLE : 0;

  if (p->tuning.block < KILN__RADIX_DIGITS)
    p->tuning.block = KILN__RADIX_DIGITS;
  while (p->tuning.items > 1 &&
         kiln__sort_pass_smem(p->tuning.block, p->tuning.items, s->key_size,
                              s->value_size, false) > smem)
    p->tuning.items--;
  p->smem = kiln__sort_pass_smem(p->tuning.block, p->tuning.items, s->key_size,
                                 s->value_size, false);
  p->tile = (unsigned)p->tuning.block * p->tuning.items;
  p->middle_smem = kiln__sort_counters_size(BLOCK) +
                   (size_t)MIDDLE * s->key_size + index + 16;
}

/* Plans memory for as many segments of each class as n keys can form. */
static void plan_memory(segments_plan *p, uint64_t n_segments)
{
  const uint64_t n = p->shape.n;
  const uint64_t middle = n / (SHORT * 32 + 1), many = n / (MIDDLE + 1);

  p->most[N_MIDDLE] = (uint32_t)(middle < n_segments ? middle : n_segments);
  p->most[N_LONG] = (uint32_t)(many < n_segments ? many : n_segments);
  p->most[N_TILES] =
      p->most[N_LONG] == 0 ? 0 : (uint32_t)(n / p->tile + p->most[N_LONG]);
  p->counts = kiln__need_temp(&p->need, 3 * 4);
  p->middle = kiln__need_temp(&p->need, (size_t)p->most[N_MIDDLE] * 8);
  if (p->most[N_LONG] == 0)
    return;
  p->list = kiln__need_temp(&p->need, (size_t)p->most[N_LONG] * 16);
  p->tiles = kiln__need_temp(&p->need, (size_t)p->most[N_TILES] * 4);
  p->digits = kiln__need_temp(&p->need, (size_t)p->most[N_LONG] * p->passes *
                                            KILN__RADIX_DIGITS * 4);
  p->need.descriptors = (size_t)p->most[N_TILES] * KILN__RADIX_DIGITS;
  if (p->steps == 1)
    return;
  p->keys = kiln__need_temp(&p->need, (size_t)n * p->shape.key_size);
  p->values = kiln__need_temp(&p->need, (size_t)n * p->shape.value_size);
}

static void make_plan(segments_plan *p, kiln_device *device,
                      const kiln_segmented_sort_desc *desc)
{
  plan_sort(p, device, desc);
  plan_tiles(p, device);
  if (desc->n > 0 && desc->n_segments > 0)
    plan_memory(p, desc->n_segments);
}

/* ---- Launches ------------------------------------------------------------ */

static kiln__spec class_spec(const segments_plan *p, kiln_dtype offset)
{
  kiln__spec spec = {.family = &class_family};

  spec.quick = kiln__quick(p->shape.n);
  spec.kernels = 1u << SORT_SHORT |
                 (p->most[N_MIDDLE] > 0 ? 1u << SORT_MIDDLE : 0) |
                 (p->most[N_LONG] > 0 ? 1u << COUNT_LONG : 0);
  spec.value[SEGMENTED_SORT_BLOCK] = BLOCK;
  spec.value[SEGMENTED_SORT_ITEMS] = ITEMS;
  spec.value[SEGMENTED_SORT_SHORT] = SHORT;
  spec.value[SEGMENTED_SORT_KEY] = p->shape.key_size;
  spec.value[SEGMENTED_SORT_VALUE] = p->shape.value_size;
  spec.value[SEGMENTED_SORT_FLOAT] = p->is_float;
  spec.value[SEGMENTED_SORT_TILE] = p->tile;
  spec.value[SEGMENTED_SORT_PASSES] = p->passes;
  spec.value[SEGMENTED_SORT_OFFSET] = offset;
  return spec;
}

static kiln__spec pass_spec(const segments_plan *p)
{
  kiln__spec spec = {.family = &pass_family};

  spec.quick = kiln__quick(p->shape.n);
  spec.value[RADIX_PASS_BLOCK] = p->tuning.block;
  spec.value[RADIX_PASS_ITEMS] = p->tuning.items;
  spec.value[RADIX_PASS_PER_SM] = p->tuning.per_sm;
  spec.value[RADIX_PASS_KEY] = p->shape.key_size;
  spec.value[RADIX_PASS_VALUE] = p->shape.value_size;
  spec.value[RADIX_PASS_FLOAT] = p->is_float;
  spec.value[RADIX_PASS_WINDOW] = p->tuning.extra == 0 ? 1 : p->tuning.extra;
  spec.value[RADIX_PASS_SEGMENTED] = 1;
  return spec;
}

static class_args class_args_of(const kiln_segmented_sort_desc *desc,
                                const segments_plan *p,
                                const kiln__storage *storage)
{
  const unsigned bits = p->shape.end_bit - p->shape.begin_bit;

  return (class_args){
      .in = desc->keys_in.data,
      .out = desc->keys_out.data,
      .values_in = desc->values_in.data,
      .values_out = desc->values_out.data,
      .offsets = desc->offsets.data,
      .n_segments = desc->n_segments,
      .n = desc->n,
      .order = p->order,
      .mask = ~UINT64_C(0) >> (64 - bits),
      .begin_bit = p->shape.begin_bit,
      .end_bit = p->shape.end_bit,
      .counts = storage->temp + p->counts,
      .middle = storage->temp + p->middle,
      .list = storage->temp + p->list,
      .tile = storage->temp + p->tiles,
      .digits = storage->temp + p->digits,
      .most = {p->most[N_MIDDLE], p->most[N_LONG], p->most[N_TILES]}};
}

static uint64_t least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

static kiln_status launch_classes(kiln__storage *storage,
                                  const kiln__kernel_set *set,
                                  const segments_plan *p,
                                  const class_args *args)
{
  kiln_stream *stream = storage->stream;
  const uint64_t resident = 32 * (uint64_t)stream->device->info.sm_count;
  kiln_launch_config config = kiln__sort_launch(
      stream, set->kernel[SORT_SHORT],
      least(kiln__divide_up(args->n_segments, BLOCK / 32), resident), BLOCK, 0);
  kiln_status st = KILN_OK;

  KILN_TRY(kiln_fill_async(stream, args->counts, 0, 4, 3));
  KILN_TRY(KILN_LAUNCH(set->kernel[SORT_SHORT], &config, KILN_ARG(*args)));
  if (p->most[N_MIDDLE] > 0) {
    config = kiln__sort_launch(stream, set->kernel[SORT_MIDDLE],
                               least(p->most[N_MIDDLE], resident), BLOCK,
                               p->middle_smem);
    KILN_TRY(KILN_LAUNCH(set->kernel[SORT_MIDDLE], &config, KILN_ARG(*args)));
  }
  if (p->most[N_LONG] > 0) {
    config = kiln__sort_launch(stream, set->kernel[COUNT_LONG],
                               p->most[N_TILES], BLOCK, 0);
    KILN_TRY(KILN_LAUNCH(set->kernel[COUNT_LONG], &config, KILN_ARG(*args)));
  }

done:
  return st;
}

static kiln_status launch_long(kiln__storage *storage,
                               const kiln__kernel_set *set,
                               const segments_plan *p, const class_args *c)
{
  const long_args segments = {c->list,   c->tile,   c->counts + 4 * N_TILES,
                              c->digits, p->passes, 0};
  const kiln_launch_config config =
      kiln__sort_launch(storage->stream, set->kernel[0], p->most[N_TILES],
                        p->tuning.block, p->smem);
  kiln__sort_pass_args args = {
      .in = c->in,
      .out = c->out,
      .other = storage->temp + p->keys,
      .values_in = c->values_in,
      .values_out = c->values_out,
      .values_other = storage->temp + p->values,
      /* If this address is not 0, the last step only copies the sorted data. */
      .single = p->steps > p->passes ? c->counts : 0,
      .descriptors = storage->descriptors,
      .n = p->shape.n,
      .order = p->order,
      .steps = p->steps,
      .flags = KILN__SORT_MUST_WRITE |
               (p->shape.in_place ? KILN__SORT_IN_PLACE : 0u)};
  kiln_status st = KILN_OK;

  for (unsigned step = 0; step < p->steps; step++) {
    args.step = step;
    args.epoch = kiln__storage_epoch(storage);
    if (step < p->passes) {
      args.shift = kiln__sort_shift(&p->shape, step);
      args.mask = (1u << kiln__sort_width(&p->shape, step)) - 1;
    }
    KILN_TRY(KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(args),
                         KILN_ARG(segments)));
  }

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const segments_plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_segmented_sort_desc *desc = p->desc;
  const bool has_long = p->most[N_LONG] > 0;
  const kiln__spec classes = class_spec(p, desc->offsets.type);
  const kiln__spec pass = pass_spec(p);
  const kiln__spec *const specs[] = {&classes, &pass};
  /* The kernels of segmented_sort.cu, and the kernels of the radix sort passes
   * for long segments. */
  const kiln__kernel_set *set[2];
  kiln_status st = KILN_OK;
  kiln__storage storage;
  class_args args;

  if (desc->n == 0 || desc->n_segments == 0)
    return KILN_OK;
  KILN_TRY(kiln__specialise_all(set, stream->device, specs, has_long ? 2 : 1));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, p->need));
  args = class_args_of(desc, p, &storage);
  st = launch_classes(&storage, set[0], p, &args);
  if (st == KILN_OK && has_long)
    st = launch_long(&storage, set[1], p, &args);
  kiln__storage_close(&storage);

done:
  return st;
}

/* ---- The call ------------------------------------------------------------ */

static kiln_status prepare(segments_plan *p, const kiln_stream *stream,
                           const kiln_segmented_sort_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln_sort_desc whole;
  kiln_dtype offset;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_segmented_sort", stream, desc) != KILN_OK)
    return c.st;
  offset = desc->offsets.type;
  whole = whole_sort(desc);
  kiln__sort_check_arrays(&c, &whole, false);
  kiln__check_that(&c, desc->n_segments < UINT64_MAX, "too many segments");
  kiln__check_read(&c, "offsets", desc->offsets,
                   desc->n_segments == 0 ? 0 : desc->n_segments + 1);
  kiln__check_that(&c, kiln__is_index(offset),
                   "offsets have type %s; it must be i32, u32, i64 or u64",
                   kiln_dtype_name(offset));
  kiln__check_that(&c, desc->n <= UINT64_C(1) << 31, "n is above 2^31");
  kiln__check_that(&c,
                   desc->n == 0 || desc->n_segments == 0 ||
                       (desc->offsets.data != desc->keys_out.data &&
                        desc->offsets.data != desc->values_out.data),
                   "offsets and an output overlap");
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

KILN__DEFINE_OPERATION(kiln_segmented_sort, kiln_segmented_sort_desc,
                       segments_plan, prepare, run)
