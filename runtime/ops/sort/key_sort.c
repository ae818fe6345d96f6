/* key_sort.c -- kiln_key_sort(): a radix sort by a key that the user's expression
 * makes of each element. It consists of other operations: a map computes the keys,
 * and a radix sort moves elements of 1, 2, 4 or 8 bytes along with them. Other
 * elements would take too long to move in every pass. The sort then moves their
 * indices, and a gather moves each element once. */
#include "sort.h"

#include <kiln/gather.h>
#include <kiln/map.h>

typedef struct plan {
  const kiln_key_sort_desc *desc;
  kiln_dtype key_type, index_type;
  bool by_index; /* true if the sort moves indices instead of elements */
  kiln__sort_call call;
  kiln__sort_plan sort;
  /* Offsets in temporary storage: the keys, the sorted keys or indices, and the
   * storage of the sort. */
  size_t keys, sorted, sorting;
  kiln__need need;
} plan;

static kiln_dtype key_type_of(const kiln_key_sort_desc *desc)
{
  return desc->key_type == KILN_DTYPE_NONE ? KILN_U32 : desc->key_type;
}

/* Returns whether the radix sort can move the elements themselves. */
static bool moves_elements(kiln_dtype type)
{
  const size_t size = kiln__size(type);

  return (size == 1 || size == 2 || size == 4 || size == 8) &&
         kiln__align(type) == size;
}

/* ---- Plan ---------------------------------------------------------------- */

static kiln__sort_call call_of(const plan *p)
{
  const kiln_key_sort_desc *desc = p->desc;
  const unsigned bits = 8u * (unsigned)kiln__size(p->key_type);
  const unsigned end = desc->end_bit == 0 ? bits : desc->end_bit;
  const bool all = desc->begin_bit == 0 && end == bits;
  const kiln_dtype moved = p->by_index ? p->index_type : desc->in.type;

  return (kiln__sort_call){
      .shape = {.n = desc->n,
                .key_size = (unsigned)kiln__size(p->key_type),
                .value_size = (unsigned)kiln__size(moved),
                .begin_bit = desc->begin_bit,
                .end_bit = end,
                .in_place = !p->by_index && desc->in.data == desc->out.data,
                .argsort = p->by_index},
      .order = kiln__sort_order_of(p->key_type, desc->descending, all)};
}

static void make_plan(plan *p, kiln_device *device,
                      const kiln_key_sort_desc *desc)
{
  const kiln_dtype key_type = key_type_of(desc);
  kiln__sort_facts facts;
  size_t sorted;

  *p = (plan){.desc = desc,
              .key_type = key_type,
              .index_type = desc->n > UINT32_MAX ? KILN_U64 : KILN_U32,
              .by_index = !moves_elements(desc->in.type)};
  p->call = call_of(p);
  facts = kiln__sort_facts_of(device, &p->call.shape);
  kiln__sort_plan_make(&p->sort, &p->call.shape, &facts);
  sorted = kiln__size(p->by_index ? p->index_type : key_type);
  p->need.descriptors = p->sort.need.descriptors;
  p->keys = kiln__need_temp(&p->need, kiln__size(key_type) * desc->n);
  p->sorted = kiln__need_temp(&p->need, sorted * desc->n);
  p->sorting = kiln__need_temp(&p->need, p->sort.need.temp);
}

static kiln_status prepare(plan *p, const kiln_stream *stream,
                           const kiln_key_sort_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln_dtype key;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_key_sort", stream, desc) != KILN_OK)
    return c.st;
  key = key_type_of(desc);
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  kiln__check_that(&c, desc->key != NULL, "key is NULL");
  kiln__check_that(
      &c,
      key == KILN_U8 || key == KILN_U16 || key == KILN_U32 || key == KILN_U64,
      "key_type is %s; it must be u8, u16, u32 or u64", kiln_dtype_name(key));
  kiln__check_read(&c, "in", desc->in, desc->n);
  kiln__check_that(&c, desc->in.type == desc->out.type,
                   "in and out differ in type");
  if (moves_elements(desc->out.type))
    kiln__check_in_place(&c, "out", desc->out, desc->n);
  else
    kiln__check_write(&c, "out", desc->out, desc->n);
  kiln__sort_check_bits(&c, (kiln_array){0, key}, desc->begin_bit,
                        desc->end_bit);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    make_plan(p, stream->device, desc);
  return c.st;
}

/* ---- The call ------------------------------------------------------------ */

static kiln_status make_keys(kiln_stream *stream, const plan *p,
                             CUdeviceptr keys)
{
  const kiln_key_sort_desc *desc = p->desc;
  const kiln_map_desc map = {.in = {desc->in},
                             .out = {{keys, p->key_type}},
                             .expr = {desc->key},
                             .n = desc->n,
                             .code = desc->code};

  return kiln_map(stream, &map, NULL);
}

static kiln_status gather_elements(kiln_stream *stream, const plan *p,
                                   CUdeviceptr indices)
{
  const kiln_key_sort_desc *desc = p->desc;
  const kiln_gather_desc gather = {.x = {.in = {desc->in}},
                                   .index = {indices, p->index_type},
                                   .out = desc->out,
                                   .n = desc->n,
                                   .method = KILN_INDEX_DIRECT};

  return kiln_gather(stream, &gather, NULL);
}

/* Queues the map, the sort and the gather. While the storage is open, other
 * threads cannot use it, and neither the map nor a direct gather needs any. */
static kiln_status queue(kiln__storage *storage,
                         const kiln__kernel_set *const set[], plan *p)
{
  kiln__sort_call call = p->call;
  kiln_status st = KILN_OK;

  call.in = storage->temp + p->keys;
  if (p->by_index) {
    call.values_out = storage->temp + p->sorted;
  } else {
    call.out = storage->temp + p->sorted;
    call.values_in = p->desc->in.data;
    call.values_out = p->desc->out.data;
  }
  KILN_TRY(make_keys(storage->stream, p, call.in));
  KILN_TRY(kiln__sort_queue(storage, p->sorting, set, &call, &p->sort));
  if (p->by_index)
    KILN_TRY(gather_elements(storage->stream, p, call.values_out));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, plan *p,
                       const kiln_workspace *workspace)
{
  kiln__spec spec[2];
  const kiln__spec *const specs[] = {&spec[0], &spec[1]};
  const kiln__kernel_set *set[2];
  kiln_status st = KILN_OK;
  kiln__storage storage;

  if (p->desc->n == 0)
    return KILN_OK;
  KILN_TRY(kiln__specialise_all(set, stream->device, specs,
                                kiln__sort_specs(spec, &p->call, &p->sort)));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, p->need));
  st = queue(&storage, set, p);
  kiln__storage_close(&storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_key_sort, kiln_key_sort_desc, plan, prepare, run)
