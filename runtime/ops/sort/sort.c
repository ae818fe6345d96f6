/* sort.c -- kiln_sort() and kiln_argsort(), the host side of radix_small.cu,
 * radix_histogram.cu and radix_pass.cu. The comment of sort_plan.c explains
 * the algorithm. */
#include "sort.h"
#include "kernel_params.h"

/* ---- Kernels ------------------------------------------------------------- */

static const char *const small_kernels[] = {"radix_small", NULL};
static const kiln__family small_family = {"radix_small", small_kernels,
                                          kiln__radix_small_params};

static const char *const count_kernels[] = {"radix_histogram", NULL};
static const kiln__family count_family = {"radix_histogram", count_kernels,
                                          kiln__radix_histogram_params};

static const char *const pass_kernels[] = {"radix_pass", NULL};
static const kiln__family pass_family = {"radix_pass", pass_kernels,
                                         kiln__radix_pass_params};

/* Arguments of the kernels, with the members that the kernels declare. */
typedef struct small_args {
  CUdeviceptr in, out, values_in, values_out;
  kiln__sort_order order;
  uint32_t n, begin_bit, end_bit, flags;
} small_args;

typedef struct count_args {
  CUdeviceptr in, descriptors, base, single;
  uint64_t n;
  kiln__sort_order order;
  uint32_t epoch, steps, begin_bit;
  uint64_t mask;
  CUdeviceptr skip, ticket;
  uint32_t tickets;
} count_args;

static uint32_t flags_of(const kiln__sort_call *call)
{
  return (call->shape.in_place ? KILN__SORT_IN_PLACE : 0u) |
         (call->nothing_in_place ? 0u : KILN__SORT_MUST_WRITE) |
         (call->shape.argsort ? KILN__SORT_MAKE_INDEX | KILN__SORT_NO_KEYS
                              : 0u) |
         (call->shape.make_index ? KILN__SORT_MAKE_INDEX : 0u);
}

kiln_launch_config kiln__sort_launch(kiln_stream *stream,
                                     const kiln_kernel *kernel, uint64_t blocks,
                                     unsigned threads, size_t smem)
{
  kiln_kernel_info info = {0};

  kiln_kernel_describe(kernel, &info);
  return (kiln_launch_config){.grid = {.x = (uint32_t)blocks},
                              .block = {.x = threads},
                              .smem = (uint32_t)smem,
                              .stream = stream,
                              .overlap_prior = info.ptx_version >= 90};
}

/* Returns whether the kernels of a sort are compiled with less optimisation.
 * Such code sorts up to 2^21 keys of 4 bytes equally fast, and pairs faster.
 * Sorts of more 4-byte keys would take up to 7 % longer, and sorts of 8-byte
 * keys up to 5 % longer. */
static bool is_quick(const kiln__sort_call *call)
{
  return call->shape.key_size <= 4 && call->shape.n <= UINT32_C(1) << 21;
}

/* ---- One block ----------------------------------------------------------- */

static kiln__spec small_spec(const kiln__sort_call *call,
                             const kiln__sort_plan *plan)
{
  kiln__spec spec = {.family = &small_family, .quick = is_quick(call)};

  spec.value[RADIX_SMALL_BLOCK] = plan->block;
  spec.value[RADIX_SMALL_ITEMS] = plan->items;
  spec.value[RADIX_SMALL_KEY] = call->shape.key_size;
  spec.value[RADIX_SMALL_VALUE] = call->shape.value_size;
  spec.value[RADIX_SMALL_FLOAT] = call->is_float;
  return spec;
}

static kiln_status launch_small(kiln_stream *stream,
                                const kiln__kernel_set *set,
                                const kiln__sort_call *call,
                                const kiln__sort_plan *plan)
{
  const kiln__sort_shape *shape = &call->shape;
  const small_args args = {
      call->in,         call->out,      call->values_in,
      call->values_out, call->order,    (uint32_t)shape->n,
      shape->begin_bit, shape->end_bit, flags_of(call),
  };
  const kiln_launch_config config =
      kiln__sort_launch(stream, set->kernel[0], 1, plan->block, plan->smem);

  return KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(args));
}

/* ---- Passes -------------------------------------------------------------- */

static kiln__spec count_spec(const kiln__sort_call *call,
                             const kiln__sort_plan *plan)
{
  kiln__spec spec = {.family = &count_family, .quick = is_quick(call)};

  spec.value[RADIX_HISTOGRAM_BLOCK] = plan->histogram.block;
  spec.value[RADIX_HISTOGRAM_ITEMS] = plan->histogram.items;
  spec.value[RADIX_HISTOGRAM_KEY] = call->shape.key_size;
  spec.value[RADIX_HISTOGRAM_FLOAT] = call->is_float;
  spec.value[RADIX_HISTOGRAM_ALIGNED] = call->in % 16 == 0;
  spec.value[RADIX_HISTOGRAM_PASSES] = plan->passes;
  spec.value[RADIX_HISTOGRAM_COPIES] = plan->histogram.copies;
  return spec;
}

static kiln__spec pass_spec(const kiln__sort_call *call,
                            const kiln__sort_plan *plan)
{
  kiln__spec spec = {.family = &pass_family, .quick = is_quick(call)};

  spec.value[RADIX_PASS_BLOCK] = plan->block;
  spec.value[RADIX_PASS_ITEMS] = plan->items;
  spec.value[RADIX_PASS_PER_SM] = plan->per_sm;
  spec.value[RADIX_PASS_KEY] = call->shape.key_size;
  spec.value[RADIX_PASS_VALUE] = call->shape.value_size;
  spec.value[RADIX_PASS_FLOAT] = call->is_float;
  spec.value[RADIX_PASS_WIDE] = plan->wide;
  spec.value[RADIX_PASS_WINDOW] = plan->window;
  spec.value[RADIX_PASS_TICKETS] = call->skippable;
  return spec;
}

static kiln_status launch_count(kiln__storage *storage,
                                const kiln__kernel_set *set,
                                const kiln__sort_call *call,
                                const kiln__sort_plan *plan)
{
  const unsigned bits = call->shape.end_bit - call->shape.begin_bit;
  const count_args args = {
      .in = call->in,
      .descriptors = storage->descriptors,
      .base = storage->temp + plan->base,
      .single = storage->temp + plan->single,
      .n = call->shape.n,
      .order = call->order,
      .epoch = kiln__storage_epoch(storage),
      .steps = plan->steps,
      .begin_bit = call->shape.begin_bit,
      .mask = ~UINT64_C(0) >> (64 - bits),
      .skip = call->skip,
      .ticket = storage->temp + plan->ticket,
      .tickets = call->skippable ? plan->steps * plan->portions : 0,
  };
  const kiln_launch_config config =
      kiln__sort_launch(storage->stream, set->kernel[0],
                        (uint64_t)plan->histogram.workers + plan->passes,
                        plan->histogram.block, plan->histogram.smem);

  return KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(args));
}

/* Returns the device address of the destinations of the first key of each
 * digit, for one pass and one portion of the keys. */
static CUdeviceptr base_of(const kiln__storage *storage,
                           const kiln__sort_plan *plan, unsigned portion,
                           unsigned pass)
{
  return storage->temp + plan->base +
         8 * (uint64_t)KILN__RADIX_DIGITS *
             ((uint64_t)portion * plan->passes + pass);
}

/* Returns the number of blocks of a pass. */
static uint64_t blocks_of(const kiln_stream *stream,
                          const kiln__sort_plan *plan, uint64_t tiles,
                          bool skippable)
{
  const uint64_t resident = kiln__sm_count(stream->device) *
                            (uint64_t)(plan->per_sm > 0 ? plan->per_sm : 4);

  return skippable && tiles > resident ? resident : tiles;
}

static kiln_status launch_pass(kiln__storage *storage,
                               const kiln__kernel_set *set,
                               const kiln__sort_call *call,
                               const kiln__sort_plan *plan,
                               kiln__sort_pass_args *args, unsigned portion)
{
  const uint64_t tile = (uint64_t)plan->block * plan->items;
  const uint64_t rest = args->n - portion * plan->portion;
  const uint64_t keys = rest < plan->portion ? rest : plan->portion;
  const uint64_t tiles = kiln__divide_up(keys, tile);
  const kiln_launch_config config = kiln__sort_launch(
      storage->stream, set->kernel[0],
      blocks_of(storage->stream, plan, tiles, call->skippable), plan->block,
      plan->smem);

  args->tiles = tiles;
  args->ticket = storage->temp + plan->ticket +
                 4 * (args->step * plan->portions + portion);
  args->first = portion * plan->portion;
  args->epoch = kiln__storage_epoch(storage);
  if (args->step < plan->passes) {
    args->base = base_of(storage, plan, portion, args->step);
    args->next_base = portion + 1 < plan->portions
                          ? base_of(storage, plan, portion + 1, args->step)
                          : 0;
  }
  return KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(*args));
}

static kiln_status launch_passes(kiln__storage *storage,
                                 const kiln__kernel_set *set,
                                 const kiln__sort_call *call,
                                 const kiln__sort_plan *plan)
{
  const kiln__sort_shape *shape = &call->shape;
  kiln_status st = KILN_OK;
  kiln__sort_pass_args args = {
      .in = call->in,
      .out = shape->argsort ? storage->temp + plan->more_keys : call->out,
      .other = storage->temp + plan->keys,
      .values_in = call->values_in,
      .values_out = call->values_out,
      .values_other = storage->temp + plan->values,
      .single = storage->temp + plan->single,
      .descriptors = storage->descriptors,
      .n = shape->n,
      .order = call->order,
      .steps = plan->steps,
      .flags = flags_of(call),
      .skip = call->skip,
  };

  for (unsigned step = 0; step < plan->steps; step++) {
    args.step = step;
    if (step < plan->passes) {
      args.shift = kiln__sort_shift(shape, step);
      args.mask = (1u << kiln__sort_width(shape, step)) - 1;
    }
    for (unsigned portion = 0; portion < plan->portions; portion++)
      KILN_TRY(launch_pass(storage, set, call, plan, &args, portion));
  }

done:
  return st;
}

/* ---- Common functions --------------------------------------------------- */

kiln__sort_facts kiln__sort_facts_of(kiln_device *device,
                                     const kiln__sort_shape *shape)
{
  const unsigned widest =
      shape->key_size > shape->value_size ? shape->key_size : shape->value_size;
  kiln__sort_facts facts = {.sm_count = (unsigned)device->info.sm_count,
                            .smem = (size_t)device->traits.smem_per_block_optin,
                            .tuning = kiln__tuned(device,
                                                  shape->value_size > 0
                                                      ? KILN__TUNED_SORT_PAIRS
                                                      : KILN__TUNED_SORT,
                                                  widest, shape->n)};

  /* Large tiles are measured for keys and values of the same size. If one of
   * them has half that size, a thread has registers for a few more pairs. On an
   * H200, 120 million pairs of u64 and u32 take 9.33 ms with 14 pairs per thread
   * and 8.95 ms with 17. */
  if (shape->value_size > 0 && shape->key_size != shape->value_size &&
      widest == 8 && facts.tuning.items >= 15)
    facts.tuning.items = (uint16_t)(facts.tuning.items + 2);
  return facts;
}

size_t kiln__sort_specs(kiln__spec spec[2], const kiln__sort_call *call,
                        const kiln__sort_plan *plan)
{
  if (plan->one_block) {
    spec[0] = small_spec(call, plan);
    return 1;
  }
  /* The program that takes longest to compile comes first. */
  spec[0] = pass_spec(call, plan);
  spec[1] = count_spec(call, plan);
  return 2;
}

kiln_status kiln__sort_queue(kiln__storage *storage, size_t temp,
                             const kiln__kernel_set *const set[],
                             const kiln__sort_call *call,
                             const kiln__sort_plan *plan)
{
  kiln__storage own = *storage;
  kiln_status st;

  if (plan->one_block)
    return launch_small(storage->stream, set[0], call, plan);
  own.temp += temp;
  st = launch_count(&own, set[1], call, plan);
  if (st == KILN_OK)
    st = launch_passes(&own, set[0], call, plan);
  storage->epoch = own.epoch;
  return st;
}

typedef kiln__sort_request request;

static void make_plan(request *r, kiln_device *device)
{
  const kiln__sort_facts facts = kiln__sort_facts_of(device, &r->call.shape);

  kiln__sort_plan_make(&r->plan, &r->call.shape, &facts);
  r->need = r->plan.need;
  if (r->gathers)
    kiln__sort_values_need(r);
}

static kiln_status run_plan(kiln_stream *stream, const kiln__sort_call *call,
                            const kiln__sort_plan *plan,
                            const kiln_workspace *workspace)
{
  kiln__spec spec[2];
  const kiln__spec *const specs[] = {&spec[0], &spec[1]};
  const kiln__kernel_set *set[2];
  kiln_status st = KILN_OK;
  kiln__storage storage;

  if (call->shape.n == 0)
    return KILN_OK;
  KILN_TRY(kiln__specialise_all(set, stream->device, specs,
                                kiln__sort_specs(spec, call, plan)));
  if (plan->one_block)
    return launch_small(stream, set[0], call, plan);
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, plan->need));
  st = kiln__sort_queue(&storage, 0, set, call, plan);
  kiln__storage_close(&storage);

done:
  return st;
}

kiln_status kiln__sort_run(kiln_stream *stream, const kiln__sort_call *call,
                           const kiln_workspace *workspace,
                           const kiln__sort_facts *facts)
{
  kiln__sort_plan plan;

  kiln__sort_plan_make(&plan, &call->shape, facts);
  return run_plan(stream, call, &plan, workspace);
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  return r->gathers && r->call.shape.n > 0
             ? kiln__sort_values_run(stream, r, workspace)
             : run_plan(stream, &r->call, &r->plan, workspace);
}

/* ---- Checks -------------------------------------------------------------- */

static bool has_values(const kiln_sort_desc *desc)
{
  return kiln__given(desc->values_in) || kiln__given(desc->values_out);
}

static unsigned key_bits(kiln_array keys)
{
  return 8u * (unsigned)kiln__size(keys.type);
}

void kiln__sort_check_bits(kiln__checker *c, kiln_array keys, unsigned begin,
                           unsigned end)
{
  const unsigned bits = key_bits(keys);

  kiln__check_that(c, end <= bits, "end_bit is %u; a key has %u bits", end,
                   bits);
  kiln__check_that(c, begin < (end == 0 ? bits : end),
                   "no bits from begin_bit %u to end_bit %u", begin,
                   end == 0 ? bits : end);
}

void kiln__sort_check_arrays(kiln__checker *c, const kiln_sort_desc *desc,
                             bool values_may_be_structs)
{
  kiln__check_read(c, "keys_in", desc->keys_in, desc->n);
  kiln__check_in_place(c, "keys_out", desc->keys_out, desc->n);
  kiln__check_that(c, desc->keys_in.type == desc->keys_out.type,
                   "keys_in and keys_out differ in type");
  if (has_values(desc)) {
    if (values_may_be_structs)
      kiln__check_allow(c, KILN__ALLOW_ALL);
    kiln__check_read(c, "values_in", desc->values_in, desc->n);
    kiln__check_in_place(c, "values_out", desc->values_out, desc->n);
    kiln__check_that(c, desc->values_in.type == desc->values_out.type,
                     "values_in and values_out differ in type");
    kiln__check_that(c,
                     desc->n == 0 ||
                         (desc->keys_out.data != desc->values_in.data &&
                          desc->values_out.data != desc->keys_in.data),
                     "keys and values overlap");
  }
  kiln__sort_check_bits(c, desc->keys_in, desc->begin_bit, desc->end_bit);
}

kiln__sort_call kiln__sort_call_of(const kiln_sort_desc *desc)
{
  const bool pairs = has_values(desc);
  const unsigned end =
      desc->end_bit == 0 ? key_bits(desc->keys_in) : desc->end_bit;
  const bool all = desc->begin_bit == 0 && end == key_bits(desc->keys_in);
  const bool keys_in_place = desc->keys_in.data == desc->keys_out.data;
  const bool values_in_place =
      pairs && desc->values_in.data == desc->values_out.data;

  return (kiln__sort_call){
      .shape = {.n = desc->n,
                .key_size = (unsigned)kiln__size(desc->keys_in.type),
                .value_size =
                    pairs ? (unsigned)kiln__size(desc->values_in.type) : 0,
                .begin_bit = desc->begin_bit,
                .end_bit = end,
                .in_place = keys_in_place || values_in_place},
      .is_float = kiln__dtype_of(desc->keys_in.type)->is_float,
      .nothing_in_place = keys_in_place && (!pairs || values_in_place),
      .order = kiln__sort_order_of(desc->keys_in.type, desc->descending, all),
      .in = desc->keys_in.data,
      .out = desc->keys_out.data,
      .values_in = pairs ? desc->values_in.data : 0,
      .values_out = pairs ? desc->values_out.data : 0};
}

static kiln_status prepare_sort(request *r, const kiln_stream *stream,
                                const kiln_sort_desc *desc,
                                const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_sort", stream, desc) != KILN_OK)
    return c.st;
  kiln__sort_check_arrays(&c, desc, true);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r = (request){.call = kiln__sort_call_of(desc)};
  kiln__sort_values_plan(r, desc);
  make_plan(r, stream->device);
  return KILN_OK;
}

KILN__DEFINE_OPERATION(kiln_sort, kiln_sort_desc, request, prepare_sort, run)

/* ---- Argsort ------------------------------------------------------------- */

static kiln__sort_call argsort_call(const kiln_argsort_desc *desc)
{
  const kiln_sort_desc keys = {.n = desc->n,
                               .keys_in = desc->keys,
                               .descending = desc->descending,
                               .begin_bit = desc->begin_bit,
                               .end_bit = desc->end_bit};
  kiln__sort_call call = kiln__sort_call_of(&keys);

  call.shape.value_size = (unsigned)kiln__size(desc->indices.type);
  call.shape.argsort = true;
  call.values_out = desc->indices.data;
  return call;
}

static kiln_status prepare_argsort(request *r, const kiln_stream *stream,
                                   const kiln_argsort_desc *desc,
                                   const kiln_workspace *workspace)
{
  kiln_dtype type;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_argsort", stream, desc) != KILN_OK)
    return c.st;
  type = desc->indices.type;
  kiln__check_read(&c, "keys", desc->keys, desc->n);
  kiln__check_write(&c, "indices", desc->indices, desc->n);
  kiln__check_that(&c, kiln__is_index(type),
                   "indices have type %s; it must be i32, u32, i64 or u64",
                   kiln_dtype_name(type));
  kiln__check_that(&c,
                   (type != KILN_I32 || desc->n <= UINT64_C(1) << 31) &&
                       (type != KILN_U32 || desc->n <= UINT64_C(1) << 32),
                   "indices of type %s cannot count n", kiln_dtype_name(type));
  kiln__sort_check_bits(&c, desc->keys, desc->begin_bit, desc->end_bit);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r = (request){.call = argsort_call(desc)};
  make_plan(r, stream->device);
  return KILN_OK;
}

KILN__DEFINE_OPERATION(kiln_argsort, kiln_argsort_desc, request,
                       prepare_argsort, run)
