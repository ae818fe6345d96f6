/* sort_values.c -- radix sort of keys with values that its kernels do not
 * support, such as structs of 12 bytes.
 *
 * Idea: the sort computes the index of each sorted key as its value, and a
 * gather then moves each value once. A wide value would otherwise be read and
 * written in every pass. Structs of 1, 2, 4 and 8 bytes are sorted as integers
 * if their addresses are aligned to their size.
 *
 * Cost: passes over keys and 4-byte indices, and one gather at random. The
 * temporary memory has 4 bytes per element more, 8 bytes from 2^32 elements on.
 * A sort in place also needs a copy of the values. */
#include "sort.h"

#include "../index/indexed.h"

void kiln__sort_values_plan(kiln__sort_request *r, const kiln_sort_desc *desc)
{
  const kiln_dtype type = desc->values_in.type;
  kiln__sort_shape *shape = &r->call.shape;
  kiln_dtype moved;

  if (!kiln__is_record(type) && type != KILN_C128)
    return;
  moved = kiln__moved_type(type, desc->values_in.data | desc->values_out.data);
  if (!kiln__is_record(moved))
    return;
  r->gathers = true;
  r->from = desc->values_in;
  r->to = desc->values_out;
  shape->value_size = shape->n > UINT32_MAX ? 8 : 4;
  shape->make_index = true;
  shape->in_place = r->call.in == r->call.out;
  r->call.nothing_in_place = false;
  r->call.values_in = 0;
}

static bool in_place(const kiln__sort_request *r)
{
  return r->from.data == r->to.data;
}

void kiln__sort_values_need(kiln__sort_request *r)
{
  const uint64_t n = r->call.shape.n;

  r->need = (kiln__need){.descriptors = r->plan.need.descriptors};
  r->sort = kiln__need_temp(&r->need, r->plan.need.temp);
  r->index = kiln__need_temp(&r->need, (size_t)(n * r->call.shape.value_size));
  if (in_place(r))
    r->moved =
        kiln__need_temp(&r->need, (size_t)(n * kiln__size(r->from.type)));
}

/* Queues the gather of the values. In place, the values first move to
 * temporary memory. */
static kiln_status move_values(kiln_stream *stream, const kiln__sort_request *r,
                               CUdeviceptr temp)
{
  const uint64_t n = r->call.shape.n;
  const kiln_dtype index = r->call.shape.value_size == 8 ? KILN_U64 : KILN_U32;
  const kiln_gather_desc gather = {
      .x = {.in = {in_place(r) ? (kiln_array){temp + r->moved, r->from.type}
                               : r->from}},
      .n = n,
      .n_target = n,
      .index = {temp + r->index, index},
      .out = r->to,
      .method = KILN_INDEX_DIRECT};
  kiln_status st = KILN_OK;

  if (in_place(r))
    KILN_TRY(kiln_copy_on_device_async(stream, temp + r->moved, r->from.data,
                                       (size_t)(n * kiln__size(r->from.type))));
  st = kiln_gather(stream, &gather, NULL);

done:
  return st;
}

kiln_status kiln__sort_values_run(kiln_stream *stream,
                                  const kiln__sort_request *r,
                                  const kiln_workspace *workspace)
{
  kiln__spec spec[2];
  const kiln__spec *const specs[] = {&spec[0], &spec[1]};
  const kiln__kernel_set *set[2];
  kiln__sort_call call = r->call;
  kiln_status st = KILN_OK;
  kiln__storage storage;

  KILN_TRY(kiln__specialise_all(set, stream->device, specs,
                                kiln__sort_specs(spec, &call, &r->plan)));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, r->need));
  call.values_out = storage.temp + r->index;
  st = kiln__sort_queue(&storage, r->sort, set, &call, &r->plan);
  if (st == KILN_OK)
    st = move_values(stream, r, storage.temp);
  kiln__storage_close(&storage);

done:
  return st;
}
