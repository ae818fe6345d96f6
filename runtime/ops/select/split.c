/* split.c -- the host side of split.cu: a stable split into any number of
 * partitions by count, prefix sum and scatter, without locks (He et al.,
 * Relational Joins on Graphics Processors, 2008). Up to 256 partitions take
 * one round. More partitions take two rounds, by the low bits and then by
 * the high bits of the key, as in a radix sort. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

/* clang-format off */
enum { SPLIT_COUNT, SPLIT_SCAN, SPLIT_MOVE, SPLIT_OFFSETS };
/* clang-format on */

static const char *const kernels[] = {"split_count", "split_scan", "split_move",
                                      "split_offsets", NULL};
static const kiln__family family = {"split", kernels, kiln__split_params};

/* Maximum number of partitions that one round can make. */
enum { ONE_ROUND = 256 };

/* One round of a split: count, prefix sum and scatter. */
typedef struct round {
  kiln_input input;
  kiln__spec spec;
  CUdeviceptr out, out_keys, offsets;
} round;

typedef struct plan {
  const kiln_split_desc *desc;
  unsigned rounds;
  round round[2];
  uint64_t tiles;
  uint32_t blocks, each;
  /* Offsets of arrays in temporary memory. */
  size_t table, values, keys, sorted_keys;
  kiln__need need;
} plan;

/* ---- Checks -------------------------------------------------------------- */

/* ---- Plan ---------------------------------------------------------------- */

static unsigned bits_for(uint32_t values)
{
  unsigned bits = 0;

  while (bits < 32 && values > UINT32_C(1) << bits)
    bits++;
  return bits;
}

static void specify(round *r, const kiln_split_desc *desc, const char *key,
                    unsigned shift, uint32_t bins, bool keys)
{
  uint32_t *const value = r->spec.value;

  r->spec.family = &family;
  r->spec.input = &r->input;
  /* The kernel reads single elements, so one program can handle any
   * alignment. */
  r->spec.unaligned = true;
  r->spec.code = &desc->code;
  r->spec.quick = kiln__quick(desc->n);
  r->spec.elements = desc->n;
  r->spec.function[0] =
      (kiln__function){"key", "the key", key, "long long", NULL, NULL};
  value[SPLIT_BUCKETS] = desc->parts;
  value[SPLIT_SHIFT] = shift;
  value[SPLIT_BINS] = bins;
  value[SPLIT_KEYS] = keys;
  value[SPLIT_POSITION] =
      kiln__given(desc->offsets) ? desc->offsets.type : KILN_U32;
  value[SPLIT_WIDE] = desc->n > UINT32_MAX;
}

static void plan_rounds(plan *p, const kiln_split_desc *desc)
{
  const unsigned bits = bits_for(desc->parts), low = bits / 2;
  const bool offsets = kiln__given(desc->offsets);

  p->round[0].input = desc->x;
  kiln__move_bits(&p->round[0].input, &desc->x);
  p->rounds = desc->parts > ONE_ROUND ? 2 : 1;
  if (p->rounds == 1) {
    specify(&p->round[0], desc, desc->key, 0, desc->parts, false);
    return;
  }
  specify(&p->round[0], desc, desc->key, 0, UINT32_C(1) << low, true);
  p->round[1].input = (kiln_input){
      .in = {{0, kiln__input_type(&p->round[0].input)}, {0, KILN_U16}}};
  specify(&p->round[1], desc, "x1", low, UINT32_C(1) << (bits - low), offsets);
}

/* Selects the kernels that the call launches. Only the selected kernels are
 * compiled. */
static void choose_kernels(plan *p, const kiln_split_desc *desc)
{
  const uint32_t each =
      1u << SPLIT_MOVE |
      (p->tiles > 1 ? 1u << SPLIT_COUNT | 1u << SPLIT_SCAN : 0);

  for (unsigned k = 0; k < p->rounds; k++)
    p->round[k].spec.kernels = each;
  if (p->rounds == 2 && kiln__given(desc->offsets))
    p->round[1].spec.kernels |= 1u << SPLIT_OFFSETS;
}

/* Plans the tiles. Both rounds of a split use the same tiles, whose size fits
 * the wider of the two element types. */
static void plan_tiles(plan *p, const kiln_stream *stream, uint64_t n)
{
  const kiln_input *x = &p->round[0].input;
  const size_t size = kiln__size(kiln__input_type(x));
  const kiln__tuning t =
      kiln__tuned(stream->device, KILN__TUNED_SPLIT, (unsigned)size, n);
  uint64_t blocks;

  for (unsigned k = 0; k < p->rounds; k++) {
    p->round[k].spec.value[SPLIT_BLOCK] = t.block;
    p->round[k].spec.value[SPLIT_ITEMS] =
        size == 8 && t.items > 8 ? 8 : t.items;
  }
  p->tiles = kiln__divide_up(n, (uint64_t)t.block *
                                    p->round[0].spec.value[SPLIT_ITEMS]);
  blocks = kiln__sm_count(stream->device) * (t.extra > 0 ? t.extra : 2);
  blocks = p->tiles < blocks ? p->tiles : blocks;
  p->each = blocks > 0 ? (uint32_t)kiln__divide_up(p->tiles, blocks) : 0;
  p->blocks = p->each > 0 ? (uint32_t)kiln__divide_up(p->tiles, p->each) : 0;
}

static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_split_desc *desc)
{
  const size_t n = (size_t)desc->n;
  uint32_t bins;

  *p = (plan){.desc = desc};
  plan_rounds(p, desc);
  plan_tiles(p, stream, desc->n);
  choose_kernels(p, desc);
  bins = p->round[0].spec.value[SPLIT_BINS];
  if (p->rounds == 2 && p->round[1].spec.value[SPLIT_BINS] > bins)
    bins = p->round[1].spec.value[SPLIT_BINS];
  if (p->tiles > 1)
    p->table = kiln__need_temp(&p->need, ((size_t)p->blocks + 1) * bins *
                                             (desc->n > UINT32_MAX ? 8 : 4));
  if (p->rounds == 1)
    return;
  p->values = kiln__need_temp(
      &p->need, n * kiln__size(kiln__input_type(&p->round[0].input)));
  p->keys = kiln__need_temp(&p->need, 2 * n);
  if (kiln__given(desc->offsets))
    p->sorted_keys = kiln__need_temp(&p->need, 2 * n);
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_split_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_split", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_that(&c, desc->key != NULL, "key is NULL");
  kiln__check_that(&c, desc->parts >= 1 && desc->parts <= KILN_MAX_PARTS,
                   "%u parts: 1 to %u are possible", (unsigned)desc->parts,
                   (unsigned)KILN_MAX_PARTS);
  kiln__check_elements(&c, "out", desc->out, &desc->x, desc->n);
  if (kiln__given(desc->offsets))
    kiln__check_count(&c, "offsets", desc->offsets, (uint64_t)desc->parts + 1,
                      desc->n);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream, desc);
  return c.st;
}

/* Sets the addresses that each round of the split reads and writes. The
 * temporary storage must be open. */
static void connect(plan *p, const kiln_split_desc *desc, CUdeviceptr temp)
{
  const bool offsets = kiln__given(desc->offsets);

  p->round[p->rounds - 1].out = desc->out.data;
  if (p->rounds == 1) {
    p->round[0].offsets = offsets ? desc->offsets.data : 0;
    return;
  }
  p->round[0].out = temp + p->values;
  p->round[0].out_keys = temp + p->keys;
  p->round[1].input.in[0].data = temp + p->values;
  p->round[1].input.in[1].data = temp + p->keys;
  p->round[1].out_keys = offsets ? temp + p->sorted_keys : 0;
}

/* ---- Launches ------------------------------------------------------------ */

static kiln_status run_round(kiln_stream *stream, const plan *p, const round *r,
                             const kiln__kernel_set *set, uint64_t n,
                             CUdeviceptr table)
{
  const uint32_t threads = r->spec.value[SPLIT_BLOCK];
  kiln_launch_config config = {
      .grid = {.x = p->blocks}, .block = {.x = threads}, .stream = stream};
  kiln_launch_config scan = config;
  kiln_status st = KILN_OK;
  kiln__args args;

  scan.grid.x = r->spec.value[SPLIT_BINS];
  kiln__user_args(&args, &r->spec);
  if (p->tiles > 1) {
    KILN_TRY(KILN_LAUNCH(set->kernel[SPLIT_COUNT], &config,
                         KILN__USER_ARG(args), KILN_ARG(n), KILN_ARG(p->each),
                         KILN_ARG(table)));
    KILN_TRY(KILN_LAUNCH(set->kernel[SPLIT_SCAN], &scan, KILN_ARG(table),
                         KILN_ARG(p->blocks)));
  }
  KILN_TRY(KILN_LAUNCH(set->kernel[SPLIT_MOVE], &config, KILN__USER_ARG(args),
                       KILN_ARG(n), KILN_ARG(p->each), KILN_ARG(table),
                       KILN_ARG(r->out), KILN_ARG(r->out_keys),
                       KILN_ARG(r->offsets)));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_split_desc *desc = p->desc;
  const kiln__spec *const spec[] = {&p->round[0].spec, &p->round[1].spec};
  const kiln__kernel_set *set[2] = {NULL, NULL};
  kiln_status st = KILN_OK;
  kiln__storage storage = {0};
  CUdeviceptr table, keys;

  if (desc->n == 0)
    return kiln__given(desc->offsets)
               ? kiln__zero(stream, desc->offsets, (size_t)desc->parts + 1)
               : KILN_OK;
  KILN_TRY(kiln__specialise_all(set, stream->device, spec, p->rounds));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, p->need));
  connect(p, desc, storage.temp);
  table = p->tiles > 1 ? storage.temp + p->table : 0;
  for (unsigned k = 0; k < p->rounds; k++)
    KILN_TRY(run_round(stream, p, &p->round[k], set[k], desc->n, table));
  if (p->rounds == 2 && kiln__given(desc->offsets)) {
    kiln_launch_config config = kiln_launch_1d(
        (uint64_t)desc->parts + 1, p->round[1].spec.value[SPLIT_BLOCK]);

    config.stream = stream;
    keys = storage.temp + p->sorted_keys;
    KILN_TRY(KILN_LAUNCH(set[1]->kernel[SPLIT_OFFSETS], &config, KILN_ARG(keys),
                         KILN_ARG(desc->n), KILN_ARG(desc->offsets.data)));
  }

done:
  if (storage.stream != NULL)
    kiln__storage_close(&storage);
  return st;
}

KILN__DEFINE_OPERATION(kiln_split, kiln_split_desc, plan, prepare, run)
