/* partition.c -- the host side of partition.cu: a stable partition into two
 * or three parts by predicates, in one launch. If the parts are consecutive
 * in one output, their sizes must be known first. In this case, additional
 * blocks count the elements of each part in each tile before the other blocks
 * write. */
#include "compact.h"
#include "kernel_params.h"

#include <kiln/select.h>

/* Layouts of the partitions in the output: one after the other in one array, in
 * separate arrays, or in one array with the second part stored backwards. */
enum { JOINED, APART, REVERSED };

/* Number of threads per SM that count. */
enum { COUNTING_THREADS = 1024 };

static const char *const kernels[] = {"partition", NULL};
static const kiln__family family = {"partition", kernels,
                                    kiln__partition_params};

typedef struct plan {
  const kiln_partition_desc *desc;
  kiln__spec spec;
  kiln_input input;
  uint64_t tiles;
  uint32_t counters; /* number of blocks that only count */
  kiln__need need;
} plan;

/* ---- Checks -------------------------------------------------------------- */

static unsigned layout_of(const kiln_partition_desc *desc)
{
  if (desc->rest_reversed)
    return REVERSED;
  return kiln__given(desc->out_rest) ? APART : JOINED;
}

static void check_outputs(kiln__checker *c, const kiln_partition_desc *desc)
{
  const bool three = desc->second != NULL;
  const uint64_t n = desc->n;

  kiln__check_elements(c, "out", desc->out, &desc->x, n);
  if (kiln__given(desc->out_second))
    kiln__check_elements(c, "out_second", desc->out_second, &desc->x, n);
  if (kiln__given(desc->out_rest))
    kiln__check_elements(c, "out_rest", desc->out_rest, &desc->x, n);
  kiln__check_that(c, three || !kiln__given(desc->out_second),
                   "out_second, but there are two parts");
  kiln__check_that(
      c, !three || kiln__given(desc->out_second) == kiln__given(desc->out_rest),
      "out_second and out_rest go together");
  kiln__check_that(
      c, !desc->rest_reversed || (!three && !kiln__given(desc->out_rest)),
      "rest_reversed is for two parts in out");
  kiln__check_count(c, "count", desc->count, three ? 2 : 1, n);
}

/* ---- Plan ---------------------------------------------------------------- */

/* Returns the number of resident blocks per SM that the register limit must
 * allow. The number is smaller if a thread holds more elements. */
static uint32_t limited_blocks(const kiln__tuning *t, unsigned parts)
{
  return t->per_sm > 1 && parts == 3 ? t->per_sm - 1u : t->per_sm;
}

static void specify(plan *p, const kiln_stream *stream,
                    const kiln_partition_desc *desc)
{
  const unsigned vec = kiln__input_vec(&p->input);
  const unsigned layout = layout_of(desc);
  kiln__tuning t = kiln__tuned_for(
      stream->device,
      layout == JOINED ? KILN__TUNED_PARTITION_JOINED : KILN__TUNED_PARTITION,
      kiln__input_widest(&p->input), desc->n);
  uint32_t *const value = p->spec.value;

  value[PARTITION_VECTOR] = vec;
  value[PARTITION_ITEMS] =
      kiln__tile_items(&t, vec, kiln__size(kiln__input_type(&p->input)));
  /* kiln__tile_items() above may have reduced the block size. */
  value[PARTITION_BLOCK] = t.block;
  value[PARTITION_PARTITIONS] = desc->second != NULL ? 3 : 2;
  value[PARTITION_PER_SM] = limited_blocks(&t, value[PARTITION_PARTITIONS]);
  value[PARTITION_WINDOW] = t.extra > 0 ? t.extra : 1;
  value[PARTITION_LAYOUT] = layout;
  value[PARTITION_COUNT] = desc->count.type;
  value[PARTITION_WIDE] = desc->n > UINT32_MAX;
}

/* Returns the number of counting blocks: as many as keep the memory busy, at
 * most one per tile. */
static uint32_t counters_for(const kiln_stream *stream, const plan *p)
{
  const uint64_t most = kiln__sm_count(stream->device) * COUNTING_THREADS /
                        p->spec.value[PARTITION_BLOCK];

  if (p->spec.value[PARTITION_LAYOUT] != JOINED || p->tiles < 2)
    return 0;
  return (uint32_t)(p->tiles < most ? p->tiles : most);
}

static void make_plan(plan *p, const kiln_stream *stream,
                      const kiln_partition_desc *desc)
{
  const char *first = desc->first;

  *p = (plan){.desc = desc,
              .spec = {.family = &family,
                       .code = &desc->code,
                       .elements = desc->n,
                       .quick = kiln__quick(desc->n)},
              .input = desc->x};
  if (kiln__given(desc->flags))
    first = kiln__add_flags(&p->input, desc->flags);
  kiln__move_bits(&p->input, &desc->x);
  p->spec.input = &p->input;
  p->spec.function[0] = (kiln__function){
      "first", "the predicate first", first, "bool", NULL, NULL};
  if (desc->second != NULL)
    p->spec.function[1] = (kiln__function){
        "second", "the predicate second", desc->second, "bool", NULL, NULL};
  specify(p, stream, desc);
  p->tiles = kiln__divide_up(desc->n, (uint64_t)p->spec.value[PARTITION_BLOCK] *
                                          p->spec.value[PARTITION_ITEMS]);
  if (p->spec.value[PARTITION_LAYOUT] != JOINED)
    p->spec.value[PARTITION_PREFETCH] =
        kiln__prefetch_tiles(stream->device, &p->input, desc->n, p->tiles);
  p->counters = counters_for(stream, p);
  if (p->tiles > 1)
    p->need.descriptors =
        (p->tiles + p->counters)
        << (p->spec.value[PARTITION_WIDE] + (desc->second != NULL));
}

/* ---- Calls --------------------------------------------------------------- */

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_partition_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_partition", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_input(&c, "x", &desc->x, desc->n);
  kiln__check_that(&c, (desc->first != NULL) != kiln__given(desc->flags),
                   "give either the predicate first or flags");
  if (kiln__given(desc->flags)) {
    kiln__check_read(&c, "flags", desc->flags, desc->n);
    kiln__check_that(&c, kiln__input_arrays(&desc->x) < KILN_MAX_INPUTS,
                     "7 arrays at most beside flags");
  }
  check_outputs(&c, desc);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream, desc);
  return c.st;
}

static kiln_status run(kiln_stream *stream, const plan *p,
                       const kiln_workspace *workspace)
{
  const kiln_partition_desc *desc = p->desc;
  const kiln_launch_config config = {
      .grid = {.x = (uint32_t)p->tiles + p->counters},
      .block = {.x = p->spec.value[PARTITION_BLOCK]},
      .stream = stream};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (desc->n == 0)
    return kiln__zero(stream, desc->count, desc->second != NULL ? 2 : 1);
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(desc->n), KILN_ARG(desc->out.data),
                   KILN_ARG(desc->out_second.data),
                   KILN_ARG(desc->out_rest.data), KILN_ARG(desc->count.data),
                   KILN_ARG(c.storage.descriptors), KILN_ARG(p->counters),
                   KILN_ARG(c.epoch));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_partition, kiln_partition_desc, plan, prepare, run)
