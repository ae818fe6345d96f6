/* dist_sort.c -- sorts an array in blocks.
 *
 * Each rank receives the elements of its part of the sorted whole (dist_radix.c)
 * and sorts them. What a rank receives has equal keys in the order of the whole
 * array, so a stable sort of it gives the stable result. The parts have the
 * lengths of the blocks, whatever the keys are.
 *
 * Short blocks are sorted first, because the sort of a short array takes one
 * launch. The cuts of the sorted blocks (cut.c) are then the parts.
 *
 * Cost: one sort of a block, three reads and one write besides, and each element
 * travels at most once. */
#include "dist_radix.h"

#include <stdlib.h>

/* Blocks of at most this length are sorted before the exchange. */
enum { SHORT_BLOCK = 1 << 15 };

/* The numbers of a sort, one per rank. */
typedef struct plan {
  kiln__sort_memory memory;
  uint64_t *sizes; /* lengths of the blocks */
  uint64_t *cuts;  /* one more */
  uint64_t *sends;
  bool brief; /* all blocks are short */
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

/* Sorts on one device, in the workspace of the plan. */
static kiln_status sort_own(kiln__dist *d, const kiln_sort_desc *own,
                            const plan *p)
{
  const kiln_workspace workspace = {d->scratch + p->memory.inner,
                                    p->memory.inner_size};

  return kiln_sort(d->stream, own,
                   p->memory.inner_size > 0 ? &workspace : NULL);
}

/* Moves short blocks: sorts them first, and cuts the sorted blocks. */
static kiln_status exchange_sorted(kiln__dist *d, const kiln_sort_desc *desc,
                                   const plan *p)
{
  const kiln__key_order order = {desc->keys_in.type, desc->descending,
                                 desc->begin_bit, desc->end_bit};
  const bool pairs = desc->values_in.type != KILN_DTYPE_NONE;
  kiln_sort_desc own = *desc;
  kiln_status st;

  own.keys_out.data = d->scratch + p->memory.keys;
  own.values_out.data = d->scratch + p->memory.values;
  st = sort_own(d, &own, p);
  if (st == KILN_OK)
    st = kiln__cut_blocks(d, &order, own.keys_out.data, p->sizes, p->sizes,
                          p->cuts);
  if (st != KILN_OK)
    return st;
  for (int q = 0; q < d->comm->ranks; q++)
    p->sends[q] = p->cuts[q + 1] - p->cuts[q];
  st = move(d, p, own.keys_out, desc->keys_out, desc->n);
  if (st == KILN_OK && pairs)
    st = move(d, p, own.values_out, desc->values_out, desc->n);
  return st;
}

static kiln_status sort_blocks(kiln__dist *d, const kiln_sort_desc *desc,
                               const plan *p)
{
  kiln_sort_desc own = *desc;
  kiln_status st = KILN_OK;

  if (d->comm->ranks > 1) {
    st = p->brief ? exchange_sorted(d, desc, p)
                  : kiln__radix_exchange(d, desc, &p->memory, p->sizes);
    own.keys_in = desc->keys_out;
    own.values_in.data = desc->values_out.data;
  }
  if (st == KILN_OK)
    st = sort_own(d, &own, p);
  return st == KILN_OK ? kiln_stream_synchronize(d->stream) : st;
}

/* Checks the desc, shares the lengths of the blocks, and lays out the temporary
 * memory. free(p->sizes) frees the numbers. */
static kiln_status prepare(kiln__dist *d, const kiln_sort_desc *desc, plan *p)
{
  const size_t ranks = (size_t)d->comm->ranks;
  kiln_status st = check_keys(desc);

  if (st != KILN_OK)
    return st;
  p->sizes = calloc(3 * ranks + 1, sizeof *p->sizes);
  if (p->sizes == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  p->cuts = p->sizes + ranks;
  p->sends = p->cuts + ranks + 1;
  st = kiln_comm_share(d->comm, &desc->n, sizeof desc->n, p->sizes);
  p->brief = true;
  for (size_t q = 0; q < ranks; q++)
    p->brief = p->brief && p->sizes[q] <= SHORT_BLOCK;
  return st == KILN_OK ? kiln__radix_plan(d, desc, &p->memory) : st;
}

kiln_status kiln_dist_sort_sized(kiln_comm *comm, kiln_stream *stream,
                                 const kiln_sort_desc *desc, size_t desc_size)
{
  kiln_sort_desc own;
  kiln__dist d;
  plan p = {.sizes = NULL};
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  COMM_TRY(prepare(&d, &own, &p));
  COMM_TRY(kiln__dist_scratch(&d, p.memory.total));
  COMM_TRY(sort_blocks(&d, &own, &p));

done:
  free(p.sizes);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_sort_workspace_sized(kiln_comm *comm, kiln_stream *stream,
                                           const kiln_sort_desc *desc,
                                           size_t *bytes, size_t desc_size)
{
  kiln_sort_desc own;
  kiln__dist d;
  plan p = {.sizes = NULL};
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  st = prepare(&d, &own, &p);
  if (st == KILN_OK)
    *bytes = p.memory.total;
  free(p.sizes);
  return kiln__comm_leave(comm, st);
}
