/* all_pairs.c -- the host side of all_pairs.cu: chooses how many targets a
 * thread takes, how many blocks share the sources of a target, and whether
 * symmetric pairs are evaluated once.
 *
 * The model behind these choices: a block takes a time that is proportional to
 * its pairs, plus a constant. Blocks run in waves of as many blocks as the
 * device holds at once. The plan with the shortest time is used. It depends
 * only on the shape of the call and on the device. */
#include "../reduce/reduce.h"
#include "kernel_params.h"

#include <kiln/all_pairs.h>

#include <string.h>

enum {
  TILE = 256, /* sources that a block takes in the model's unit of time */
  /* Larger blocks could need too much shared memory. */
  MOST_BLOCK = 512,
  MOST_MIRRORED_BLOCK = 128,
  RESIDENT_THREADS = 512, /* threads per SM, unless the parameters say it */
  /* Number of 32-bit registers per thread that targets and partial results may
   * take. */
  MOST_REGISTERS = 64,
  UNIT = 32, /* a split takes a multiple of this number of sources */
  MOST_WAVES = 16,
  MOST_SPLITS = 64,
  MOST_SEGMENTS = 64,
  /* Smaller calls do not gain from evaluating symmetric pairs once. */
  LEAST_MIRRORED = 8192,
  DEFAULT_STORAGE = 512 << 20
};

enum { ALL_PAIRS, MIRRORED, FINISH };
static const char *const kernels[] = {"all_pairs", "all_pairs_mirrored",
                                      "all_pairs_finish", NULL};
static const kiln__family family = {"all_pairs", kernels,
                                    kiln__all_pairs_params};

/* How the call uses the device. */
typedef struct plan {
  uint32_t block, targets; /* threads per block, targets per thread */
  uint32_t resident;       /* blocks per SM that the register limit allows */
  uint32_t round;          /* pairs per thread in a round of the loop */
  uint64_t groups;         /* blocks of all_pairs per split; or rows */
  uint64_t splits;         /* ranges of the sources; or segments of a row */
  uint64_t per_split;      /* sources per split; not if mirrored */
  uint64_t slots;          /* slots of partial results */
  uint64_t span;           /* offsets of rows per pass, if mirrored */
} plan;

/* A call of kiln_all_pairs() whose arguments have been checked. */
typedef struct request {
  const kiln_all_pairs_desc *desc;
  kiln_input fields;
  kiln__pairs pairs;
  uint64_t n, m;
  size_t outputs;
  kiln_dtype acc;
  bool mirrored;
  plan plan;
  size_t slot_bytes; /* bytes of one slot, without indices */
  size_t slot_at;    /* offset of the indices of all slots */
  kiln__need need;
} request;

/* ---- Checks -------------------------------------------------------------- */

static size_t count(const kiln_array *a, size_t most)
{
  size_t n = 0;

  while (n < most && kiln__given(a[n]))
    n++;
  return n;
}

static void check_names(kiln__checker *c, const kiln_code *code)
{
  static const char *const taken[] = {"t", "s", "j", "r0", "r1", "r2", "r3"};

  for (size_t p = 0; p < code->n_params && code->params != NULL; p++)
    for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++)
      kiln__check_that(c,
                       code->params[p].name == NULL ||
                           strcmp(code->params[p].name, taken[k]) != 0,
                       "code.params[%zu]: \"%s\" is a name that every "
                       "expression has; choose another name",
                       p, taken[k]);
}

static void check_index(kiln__checker *c, const request *r)
{
  const kiln_all_pairs_desc *desc = r->desc;

  if (!kiln__given(desc->index))
    return;
  kiln__check_write(c, "index", desc->index, r->n);
  kiln__check_index_type(c, "index", desc->index);
  kiln__check_that(c,
                   r->outputs == 1 && desc->op.expr == NULL &&
                       (desc->op.name == KILN_MIN || desc->op.name == KILN_MAX),
                   "index needs one expression and the operation KILN_MIN or "
                   "KILN_MAX");
  kiln__check_that(c,
                   !desc->accumulate && desc->symmetry == KILN_PAIRS_UNRELATED,
                   "index does not work with accumulate or a symmetry");
}

static void check_symmetry(kiln__checker *c, const request *r)
{
  const kiln_all_pairs_desc *desc = r->desc;
  const kiln__dtype *acc = kiln__dtype_of(r->acc);

  kiln__check_that(c, (unsigned)desc->symmetry <= KILN_PAIRS_NEGATED,
                   "symmetry is no kiln_pair_symmetry");
  kiln__check_that(c,
                   desc->symmetry == KILN_PAIRS_UNRELATED ||
                       !kiln__given(desc->source[0]),
                   "with a symmetry the sources are the targets: leave source "
                   "empty");
  kiln__check_that(c,
                   desc->symmetry != KILN_PAIRS_NEGATED ||
                       (desc->op.expr == NULL && desc->op.name == KILN_SUM &&
                        acc != NULL && (acc->is_float || acc->is_signed)),
                   "KILN_PAIRS_NEGATED is only for sums of a signed type");
}

static void check_arrays(kiln__checker *c, const request *r, size_t targets,
                         size_t sources)
{
  static const char *const out[] = {"out[0]", "out[1]", "out[2]", "out[3]"};
  const kiln_all_pairs_desc *desc = r->desc;

  kiln__check_that(c, targets > 0, "target[0] has no type");
  kiln__check_that(c, r->outputs > 0, "out[0] has no type");
  kiln__check_that(c, targets + sources <= KILN_MAX_INPUTS,
                   "%zu fields of targets and sources; at most 8 are possible",
                   targets + sources);
  for (size_t k = 0; k < targets; k++)
    kiln__check_read(c, "target", desc->target[k], r->n);
  for (size_t k = 0; k < sources; k++)
    kiln__check_read(c, "source", desc->source[k], r->m);
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++) {
    kiln__check_that(c, (desc->expr[k] != NULL) == (k < r->outputs),
                     "expr[%zu] and out[%zu] must both be given, or neither", k,
                     k);
    kiln__check_that(c, k < r->outputs || desc->epilogue[k] == NULL,
                     "epilogue[%zu] has no output", k);
    if (k < r->outputs)
      kiln__check_write(c, out[k], desc->out[k], r->n);
  }
}

/* ---- Plan ---------------------------------------------------------------- */

/* Returns the number of 32-bit registers of one target and its partial
 * result. */
static size_t registers_of(const request *r)
{
  size_t bytes = r->outputs * kiln__size(r->acc);

  for (size_t k = 0; k < r->pairs.n_targets; k++)
    bytes += kiln__size(kiln__dtype_of(r->fields.in[k].type)->computed);
  return (bytes + 3) / 4 + (kiln__given(r->desc->index) ? 2 : 0);
}

/* Returns a plan with the largest number of targets per thread whose fields and
 * results fit the registers. GPUs below compute capability 3.5 have only 63
 * registers per thread. */
static plan start_plan(const request *r, kiln_device *device,
                       kiln__tuned_family which, uint32_t most_block)
{
  const kiln__tuning t =
      kiln__tuned(device, which, (unsigned)kiln__size(r->acc), r->n);
  const size_t each = registers_of(r);
  const size_t most =
      device->traits.cc < 35 ? MOST_REGISTERS / 4 : MOST_REGISTERS;
  plan p = {.block = t.block < most_block ? t.block : most_block,
            .targets = t.items,
            .round = t.extra};

  while (p.targets > 1 && p.targets * each > most)
    p.targets /= 2;
  p.resident = t.per_sm != 0                ? t.per_sm
               : p.block < RESIDENT_THREADS ? RESIDENT_THREADS / p.block
                                            : 1;
  return p;
}

/* Returns the number of blocks that the device holds at once. */
static uint64_t capacity(const kiln_device *device, const plan *p)
{
  return kiln__sm_count(device) * p->resident;
}

/* Chooses the number of parts into which `units` units of work of each of
 * p->groups groups are divided, so that the blocks fill whole waves. A unit
 * takes the time `unit`, and a block takes the time 1 in addition. Returns the
 * time of the call. */
static double divide(plan *p, uint64_t units, double unit, uint64_t most,
                     uint64_t fit)
{
  double best = 0;

  for (uint64_t waves = 0; waves <= MOST_WAVES; waves++) {
    uint64_t splits = waves == 0 ? 1 : waves * fit / p->groups;
    double part, time;

    splits = splits < most ? splits : most;
    splits = splits < units ? splits : units;
    if (splits == 0)
      continue;
    part = (double)units / (double)splits;
    time = (double)kiln__divide_up(p->groups * splits, fit) * (part * unit + 1);
    time += (double)kiln__divide_up(units, splits) * unit - part * unit;
    if (best > 0 && time > 0.995 * best)
      continue;
    best = time;
    p->splits = splits;
    if (splits == most || splits == units)
      break;
  }
  return best;
}

static void plan_general(request *r, kiln_device *device)
{
  const uint64_t units = r->m == 0 ? 1 : kiln__divide_up(r->m, UNIT);
  plan p = start_plan(r, device, KILN__TUNED_PAIRS, MOST_BLOCK);
  const uint64_t fit = capacity(device, &p);
  double best = 0;

  for (; p.targets > 0; p.targets /= 2) {
    double time;

    p.groups = kiln__divide_up(r->n, (uint64_t)p.block * p.targets);
    time =
        divide(&p, units, (p.targets + 0.25) * UNIT / TILE, MOST_SPLITS, fit);
    if (best > 0 && time > 0.98 * best)
      continue;
    best = time;
    r->plan = p;
  }
  r->plan.per_split = kiln__divide_up(units, r->plan.splits) * UNIT;
  /* No split may start after the last source. */
  r->plan.splits = kiln__divide_up(units * UNIT, r->plan.per_split);
  r->plan.slots = r->plan.splits > 1 ? r->plan.splits : 0;
}

/* Plans the ring of rows for p->targets targets per thread. If not all slots fit
 * the limit, several passes take a span of offsets each, and slot 0 holds the
 * results of earlier passes. Returns the time of the call. */
static double plan_rows(plan *p, const request *r, const kiln_device *device)
{
  const uint64_t bytes =
      r->desc->most_storage != 0 ? r->desc->most_storage : DEFAULT_STORAGE;
  const uint64_t most = bytes / r->slot_bytes;
  uint64_t offsets, passes = 1, segments = MOST_SEGMENTS;

  p->groups = kiln__divide_up(r->n, (uint64_t)p->block * p->targets);
  offsets = p->groups / 2 + 1;
  if (offsets + 16 <= most) {
    segments = most - offsets < segments ? most - offsets : segments;
  } else {
    segments = most > 64 ? 16 : most > 16 ? 4 : 1;
    passes =
        kiln__divide_up(offsets, most > segments + 2 ? most - segments - 1 : 1);
  }
  p->span = kiln__divide_up(offsets, passes);
  p->slots = p->span + (passes > 1);
  return (double)passes * divide(p, p->span * p->targets,
                                 (double)p->block / TILE * p->targets, segments,
                                 capacity(device, p));
}

static void plan_mirrored(request *r, kiln_device *device)
{
  plan p = start_plan(r, device, KILN__TUNED_MIRRORED, MOST_MIRRORED_BLOCK);
  double best = 0;

  for (; p.targets > 0; p.targets /= 2) {
    const double time = plan_rows(&p, r, device);

    if (best > 0 && time > 0.95 * best)
      break;
    best = time;
    r->plan = p;
  }
  r->plan.slots += r->plan.splits;
}

static void plan_storage(request *r)
{
  const size_t index = kiln__given(r->desc->index) ? 8 : 0;

  kiln__need_temp(&r->need, r->plan.slots * r->slot_bytes);
  r->slot_at = kiln__need_temp(&r->need, r->plan.slots * r->n * index);
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_all_pairs_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;
  size_t targets, sources;

  if (kiln__check_begin(&c, "kiln_all_pairs", stream, desc) != KILN_OK)
    return c.st;
  targets = count(desc->target, KILN_MAX_INPUTS);
  sources = count(desc->source, KILN_MAX_INPUTS);
  *r = (request){.desc = desc,
                 .pairs = {.n_targets = targets,
                           .common = desc->common,
                           .expr = desc->expr,
                           .epilogue = desc->epilogue},
                 .n = desc->n,
                 .m = sources == 0 ? desc->n : desc->m,
                 .outputs = count(desc->out, KILN_MAX_OUTPUTS)};
  r->acc = kiln__op_type(desc->type != KILN_DTYPE_NONE ? desc->type
                                                       : desc->out[0].type);
  check_arrays(&c, r, targets, sources);
  kiln__check_op(&c, &desc->op, r->acc);
  check_names(&c, &desc->code);
  check_index(&c, r);
  check_symmetry(&c, r);
  if (c.st != KILN_OK)
    return c.st;
  for (size_t k = 0; k < targets + sources; k++)
    r->fields.in[k] = k < targets ? desc->target[k] : desc->source[k - targets];
  r->slot_bytes = r->outputs * r->n * kiln__size(r->acc);
  r->mirrored =
      desc->symmetry != KILN_PAIRS_UNRELATED && r->n >= LEAST_MIRRORED;
  if (r->mirrored)
    plan_mirrored(r, stream->device);
  else if (r->n > 0)
    plan_general(r, stream->device);
  plan_storage(r);
  return kiln__check_workspace(&c, workspace);
}

/* ---- Launches ------------------------------------------------------------ */

static void specify(kiln__spec *spec, const request *r)
{
  const kiln_all_pairs_desc *desc = r->desc;
  const plan *p = &r->plan;
  uint32_t *value = spec->value;

  spec->kernels = !r->mirrored ? 1u << ALL_PAIRS : 1u << MIRRORED;
  if (p->slots > 0)
    spec->kernels |= 1u << FINISH;
  value[ALL_PAIRS_BLOCK] = p->block;
  value[ALL_PAIRS_TARGETS] = p->targets;
  value[ALL_PAIRS_UNROLL] = p->round > p->targets ? p->round / p->targets : 1;
  value[ALL_PAIRS_RESIDENT] = p->resident;
  value[ALL_PAIRS_OUTPUTS] = (uint32_t)r->outputs;
  if (kiln__given(desc->index))
    value[ALL_PAIRS_ARG] = desc->op.name == KILN_MIN ? 1 : 2;
  if (r->mirrored)
    value[ALL_PAIRS_MIRROR] = desc->symmetry;
  value[ALL_PAIRS_SPLIT] = p->slots > 0;
  value[ALL_PAIRS_ACCUMULATE] = desc->accumulate;
  value[ALL_PAIRS_SMALL] = r->n < UINT32_C(1) << 31 && r->m < UINT32_C(1) << 31;
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++)
    value[ALL_PAIRS_T0 + k] = k < r->outputs ? desc->out[k].type : KILN_F32;
  value[ALL_PAIRS_INDEX] =
      kiln__given(desc->index) ? desc->index.type : KILN_U32;
}

/* The outputs, which are the last arguments of two kernels. */
#define OUTPUT_ARGS(desc)                                                      \
  KILN_ARG((desc)->out[0].data), KILN_ARG((desc)->out[1].data),                \
      KILN_ARG((desc)->out[2].data), KILN_ARG((desc)->out[3].data),            \
      KILN_ARG((desc)->index.data)

/* Combines the slots from `first` to `end` - 1. Targets below short_end have no
 * last slot. */
static kiln_status finish(const kiln__call *c, const request *r,
                          kiln_stream *stream, uint32_t first, uint32_t end,
                          uint64_t short_end, uint32_t last)
{
  const kiln_launch_config config =
      kiln__grid(stream, kiln__divide_up(r->n, r->plan.block), r->plan.block);
  const CUdeviceptr at = c->storage.temp + r->slot_at;

  return KILN_LAUNCH(
      c->set->kernel[FINISH], &config, KILN__USER_ARG(c->args), KILN_ARG(r->n),
      KILN_ARG(first), KILN_ARG(end), KILN_ARG(short_end), KILN_ARG(last),
      KILN_ARG(c->storage.temp), KILN_ARG(at), OUTPUT_ARGS(r->desc));
}

static kiln_status run_general(const kiln__call *c, const request *r,
                               kiln_stream *stream)
{
  const plan *p = &r->plan;
  const kiln_launch_config config = {
      .grid = {(uint32_t)p->groups, (uint32_t)p->splits, 1},
      .block.x = p->block,
      .stream = stream};
  const CUdeviceptr at = c->storage.temp + r->slot_at;
  kiln_status st = KILN_OK;

  KILN_TRY(KILN_LAUNCH(c->set->kernel[ALL_PAIRS], &config,
                       KILN__USER_ARG(c->args), KILN_ARG(r->n), KILN_ARG(r->m),
                       KILN_ARG(p->per_split), KILN_ARG(c->storage.temp),
                       KILN_ARG(at), OUTPUT_ARGS(r->desc)));
  if (p->slots > 0)
    st = finish(c, r, stream, 0, (uint32_t)p->splits, 0, 1);

done:
  return st;
}

/* Runs one pass, which takes the offsets from `first` to `end` - 1. */
static kiln_status run_pass(const kiln__call *c, const request *r,
                            kiln_stream *stream, uint32_t first, uint32_t end)
{
  const plan *p = &r->plan;
  const uint32_t rows = (uint32_t)p->groups, last = rows / 2 + 1;
  const uint32_t first_slot = p->span < last;
  const uint32_t end_slot =
      first_slot + (uint32_t)p->splits + (end - first) - (first == 0);
  const uint64_t row_size = (uint64_t)p->block * p->targets;
  const kiln_launch_config config = {.grid = {rows, (uint32_t)p->splits, 1},
                                     .block.x = p->block,
                                     .stream = stream};
  const bool halved = end == last && rows % 2 == 0;
  kiln_status st = KILN_OK;

  KILN_TRY(KILN_LAUNCH(c->set->kernel[MIRRORED], &config,
                       KILN__USER_ARG(c->args), KILN_ARG(r->n), KILN_ARG(rows),
                       KILN_ARG(first), KILN_ARG(end), KILN_ARG(first_slot),
                       KILN_ARG(c->storage.temp)));
  st = finish(c, r, stream, first == 0 ? first_slot : 0, end_slot,
              halved ? rows / 2 * row_size : 0, end == last);

done:
  return st;
}

static kiln_status run_mirrored(const kiln__call *c, const request *r,
                                kiln_stream *stream)
{
  const uint32_t last = (uint32_t)r->plan.groups / 2 + 1;
  const uint32_t span = (uint32_t)r->plan.span;
  kiln_status st = KILN_OK;

  for (uint32_t first = 0; first < last && st == KILN_OK; first += span)
    st = run_pass(c, r, stream, first,
                  last - first < span ? last : first + span);
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = &family,
                     .input = &r->fields,
                     .op = &r->desc->op,
                     .acc = r->acc,
                     .pairs = &r->pairs,
                     .code = &r->desc->code};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (r->n == 0)
    goto done;
  if (r->plan.groups > INT32_MAX)
    KILN_TRY(kiln__fail(KILN_EINVAL, "compute parts of the targets",
                        "kiln_all_pairs: more targets than a grid can have"));
  specify(&spec, r);
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, r->need));
  st = r->mirrored ? run_mirrored(&c, r, stream) : run_general(&c, r, stream);
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_all_pairs, kiln_all_pairs_desc, request, prepare,
                       run)
