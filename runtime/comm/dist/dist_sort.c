/* dist_sort.c -- sorts an array in blocks.
 *
 * Each rank sorts its block. The cuts of the sorted blocks (cut.c) give each rank
 * as many elements as its block had, whatever the keys are. One all-to-all moves
 * keys, a second one values. What a rank receives is a sequence of sorted runs in
 * the order of the ranks, so a stable sort of it gives the stable result.
 *
 * Cost: two sorts of a block, and each element travels at most once. */
#include "cut.h"

#include <stdlib.h>

/* The numbers of a sort, one per rank. */
typedef struct plan {
  uint64_t *sizes; /* lengths of the blocks */
  uint64_t *cuts;  /* one more */
  uint64_t *sends;
} plan;

static kiln_status check_keys(const kiln_sort_desc *desc)
{
  const size_t size = kiln_dtype_size(desc->keys_in.type);
  const unsigned end = desc->end_bit == 0 ? 8 * (unsigned)size : desc->end_bit;

  if (desc->keys_in.type < KILN_I8 || desc->keys_in.type > KILN_F64)
    return kiln__comm_fail(KILN_EINVAL, NULL, "keys of type %s have no order",
                           kiln_dtype_name(desc->keys_in.type));
  if (end > 8 * size || desc->begin_bit >= end)
    return kiln__comm_fail(KILN_EINVAL, NULL,
                           "the range of bits %u to %u is empty or exceeds the "
                           "width of the keys",
                           desc->begin_bit, end);
  return KILN_OK;
}

static kiln_status move(kiln__dist *d, const plan *p, kiln_array from,
                        kiln_array to, uint64_t n)
{
  return kiln_comm_all_to_all(d->comm, d->stream, from, p->sends, to, NULL, n,
                              NULL);
}

/* Sorts between the caller's arrays and the temporary ones, given as `keys` and
 * `values`. */
static kiln_status sort_blocks(kiln__dist *d, const kiln_sort_desc *desc,
                               kiln_array keys, kiln_array values, plan *p)
{
  const kiln__key_order order = {desc->keys_in.type, desc->descending,
                                 desc->begin_bit, desc->end_bit};
  const bool pairs = desc->values_in.type != KILN_DTYPE_NONE;
  kiln_sort_desc own = *desc;
  kiln_status st;

  own.keys_out = keys;
  own.values_out = values;
  st = kiln_sort(d->stream, &own, NULL);
  if (st == KILN_OK)
    st = kiln__cut_blocks(d, &order, keys.data, p->sizes, p->sizes, p->cuts);
  if (st != KILN_OK)
    return st;
  for (int q = 0; q < d->comm->ranks; q++)
    p->sends[q] = p->cuts[q + 1] - p->cuts[q];
  st = move(d, p, keys, desc->keys_out, desc->n);
  if (st == KILN_OK && pairs)
    st = move(d, p, values, desc->values_out, desc->n);
  own = *desc;
  own.keys_in = desc->keys_out;
  own.values_in = pairs ? desc->values_out : desc->values_in;
  if (st == KILN_OK)
    st = kiln_sort(d->stream, &own, NULL);
  return st == KILN_OK ? kiln_stream_synchronize(d->stream) : st;
}

kiln_status kiln_dist_sort_sized(kiln_comm *comm, kiln_stream *stream,
                                 const kiln_sort_desc *desc, size_t desc_size)
{
  kiln_sort_desc own;
  kiln__dist d;
  kiln_array keys, values = {0, KILN_DTYPE_NONE};
  size_t keys_size, ranks;
  uint64_t *memory = NULL;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);
  plan p;

  if (st != KILN_OK)
    return st;
  COMM_TRY(check_keys(&own));
  ranks = (size_t)comm->ranks;
  memory = calloc(3 * ranks + 1, sizeof *memory);
  if (memory == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  p = (plan){memory, memory + ranks, memory + 2 * ranks + 1};
  keys_size = (own.n * kiln_dtype_size(own.keys_in.type) + 255) / 256 * 256;
  COMM_TRY(kiln__dist_scratch(
      &d, keys_size + own.n * kiln_dtype_size(own.values_in.type)));
  keys = (kiln_array){d.scratch, own.keys_in.type};
  if (own.values_in.type != KILN_DTYPE_NONE)
    values = (kiln_array){d.scratch + keys_size, own.values_in.type};
  COMM_TRY(kiln_comm_share(comm, &own.n, sizeof own.n, p.sizes));
  COMM_TRY(sort_blocks(&d, &own, keys, values, &p));

done:
  free(memory);
  return kiln__dist_end(&d, st);
}
