/* dist_scan.c -- scans, selections and splits of arrays in blocks.
 *
 * A scan first reduces the block of each rank. The reduction of all blocks before
 * a rank's block, together with the caller's initial value, is the initial value
 * of the rank's own scan. Predefined operations combine these values on the host.
 * A user expression is evaluated on the device: an exclusive scan of the values
 * of the ranks whose blocks are not empty. */
#include "dist.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 }; /* of an element */

/* The values that decide the scan of a rank. */
typedef struct carry {
  bool has;                         /* there are operands before the block */
  unsigned char before[MOST_BYTES]; /* their reduction */
  bool has_total;
  unsigned char total[MOST_BYTES]; /* reduction of everything */
} carry;

static void append(kiln_dtype type, kiln_op_name op, bool *has, void *sum,
                   const void *x)
{
  unsigned char wide[2 * MOST_BYTES];

  if (!*has) {
    memcpy(sum, x, kiln_dtype_size(type));
  } else {
    kiln__comm_widen(type, wide, sum, 1);
    kiln__comm_fold(type, op, wide, x, 1);
    kiln__comm_narrow(type, sum, wide, 1);
  }
  *has = true;
}

/* Reduces this rank's block to the element at the start of the scratch memory. */
static kiln_status reduce_own(kiln__dist *d, const kiln_scan_desc *desc)
{
  const kiln_reduce_desc own = {.x = desc->x,
                                .n = desc->n,
                                .op = desc->op,
                                .out = {d->scratch, desc->out.type},
                                .code = desc->code};

  return kiln_reduce(d->stream, &own, NULL);
}

/* An operation of ops.h: fold on the host. */
static kiln_status carry_by_name(kiln__dist *d, const kiln_scan_desc *desc,
                                 carry *c)
{
  typedef struct item {
    uint64_t n;
    unsigned char value[MOST_BYTES];
  } item;
  const kiln_dtype type = desc->out.type;
  item mine = {.n = desc->n}, *all;
  kiln_status st =
      kiln__dist_get(d, mine.value, d->scratch, kiln_dtype_size(type));

  if (st != KILN_OK)
    return st;
  all = calloc((size_t)d->comm->ranks, sizeof *all);
  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_comm_share(d->comm, &mine, sizeof mine, all);
  if (desc->init != NULL)
    append(type, desc->op.name, &c->has_total, c->total, desc->init);
  for (int p = 0; p < d->comm->ranks && st == KILN_OK; p++) {
    if (p == d->comm->rank) {
      c->has = c->has_total;
      memcpy(c->before, c->total, sizeof c->before);
    }
    if (all[p].n > 0)
      append(type, desc->op.name, &c->has_total, c->total, all[p].value);
  }
  free(all);
  return st;
}

/* A user expression: an inclusive scan of the values on the device. Element k of
 * the result is the reduction up to the k-th block that is not empty. */
static kiln_status carry_by_expression(kiln__dist *d,
                                       const kiln_scan_desc *desc, carry *c)
{
  const size_t size = kiln_dtype_size(desc->out.type);
  const kiln_array one = {d->scratch, desc->out.type};
  const kiln_array all = {d->scratch + size, desc->out.type};
  kiln_scan_desc scan = {.x = {.in = {all}},
                         .op = desc->op,
                         .out = all,
                         .init = desc->init,
                         .code = desc->code};
  uint64_t before = 0;
  kiln_status st;

  c->has = c->has_total = desc->init != NULL;
  if (desc->init != NULL) {
    memcpy(c->before, desc->init, size);
    memcpy(c->total, desc->init, size);
  }
  st = kiln_dist_blocks(d->comm, desc->n > 0 ? 1 : 0, &before, NULL);
  if (st == KILN_OK)
    st = kiln__dist_gather(d, one, all, desc->n > 0, &scan.n);
  if (st == KILN_OK)
    st = kiln_scan(d->stream, &scan, NULL);
  if (st == KILN_OK && before > 0) {
    c->has = true;
    st = kiln__dist_get(d, c->before, all.data + (before - 1) * size, size);
  }
  if (st == KILN_OK && scan.n > 0) {
    c->has_total = true;
    st = kiln__dist_get(d, c->total, all.data + (scan.n - 1) * size, size);
  }
  return st;
}

kiln_status kiln_dist_scan_sized(kiln_comm *comm, kiln_stream *stream,
                                 const kiln_scan_desc *desc, size_t desc_size)
{
  kiln_scan_desc own;
  kiln__dist d;
  carry c = {false, {0}, false, {0}};
  CUdeviceptr total;
  size_t elements;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  own.out.type = kiln__dist_type(own.out, &own.x);
  elements = own.op.expr != NULL ? (size_t)comm->ranks + 1 : 1;
  COMM_TRY(kiln__dist_scratch(&d, elements * kiln_dtype_size(own.out.type)));
  COMM_TRY(reduce_own(&d, &own));
  COMM_TRY(own.op.expr != NULL ? carry_by_expression(&d, &own, &c)
                               : carry_by_name(&d, &own, &c));
  total = own.total;
  own.total = c.has_total ? 0 : total; /* of no elements: the identity */
  own.init = c.has ? c.before : NULL;
  COMM_TRY(kiln_scan(stream, &own, NULL));
  if (total != 0 && c.has_total)
    COMM_TRY(kiln__dist_put(&d, total, c.total, kiln_dtype_size(own.out.type)));
  COMM_TRY(kiln_stream_synchronize(stream));

done:
  return kiln__dist_end(&d, st);
}

/* ---- Selections ---------------------------------------------------------- */

kiln_status kiln_dist_select_sized(kiln_comm *comm, kiln_stream *stream,
                                   const kiln_select_desc *desc,
                                   uint64_t *first, uint64_t *total,
                                   size_t desc_size)
{
  kiln_select_desc own;
  kiln__dist d;
  uint64_t kept = 0;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  st = kiln_select(stream, &own, NULL);
  if (st == KILN_OK) /* little-endian: the lowest bytes are a u32 */
    st = kiln__dist_get(&d, &kept, own.count.data,
                        kiln_dtype_size(own.count.type));
  if (st == KILN_OK)
    st = kiln_dist_blocks(comm, kept, first, total);
  return kiln__dist_end(&d, st);
}

/* ---- Splits -------------------------------------------------------------- */

/* Offsets in the temporary memory of a split. */
typedef struct split_plan {
  size_t offsets, parts; /* of the split block */
  size_t inner, inner_size, total;
} split_plan;

static kiln_status check_split(const kiln_comm *comm,
                               const kiln_split_desc *desc)
{
  if ((desc->parts != 0 && desc->parts != (uint32_t)comm->ranks) ||
      desc->offsets.type != KILN_DTYPE_NONE)
    return kiln__comm_fail(
        KILN_EINVAL, NULL,
        "parts must be 0 or the number of ranks, and offsets "
        "must not be given");
  return KILN_OK;
}

/* The split of this rank's block, with the temporary memory at `base`. */
static kiln_split_desc own_split(const kiln__dist *d,
                                 const kiln_split_desc *desc,
                                 const split_plan *p, CUdeviceptr base)
{
  kiln_split_desc own = *desc;

  own.parts = (uint32_t)d->comm->ranks;
  own.out.data = base + p->parts;
  own.offsets = (kiln_array){base + p->offsets, KILN_U64};
  return own;
}

static kiln_status plan_split(kiln__dist *d, kiln_split_desc *desc,
                              split_plan *p)
{
  const CUdeviceptr nowhere = (CUdeviceptr)1 << 62;
  const uint64_t ranks = (uint64_t)d->comm->ranks;
  kiln_split_desc own;
  kiln_status st = check_split(d->comm, desc);

  if (st != KILN_OK)
    return st;
  *p = (split_plan){.total = 0};
  desc->out.type = kiln__dist_type(desc->out, &desc->x);
  p->offsets = kiln__dist_place(&p->total, ranks + 1, sizeof(uint64_t));
  p->parts =
      kiln__dist_place(&p->total, desc->n, kiln_dtype_size(desc->out.type));
  own = own_split(d, desc, p, nowhere);
  st = kiln_split_workspace(d->stream, &own, &p->inner_size);
  p->inner = kiln__dist_place(&p->total, p->inner_size, 1);
  return st;
}

/* Splits this rank's block by destination into the temporary memory, and counts
 * the elements for each rank. */
static kiln_status split_own(kiln__dist *d, const kiln_split_desc *own,
                             const split_plan *p, uint64_t *sends)
{
  const size_t ranks = (size_t)d->comm->ranks;
  const kiln_workspace workspace = {d->scratch + p->inner, p->inner_size};
  uint64_t *const offsets = calloc(ranks + 1, sizeof *offsets);
  kiln_status st;

  if (offsets == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_split(d->stream, own, p->inner_size > 0 ? &workspace : NULL);
  if (st == KILN_OK)
    st = kiln__dist_get(d, offsets, own->offsets.data,
                        (ranks + 1) * sizeof *offsets);
  for (size_t q = 0; q < ranks; q++)
    sends[q] = offsets[q + 1] - offsets[q];
  free(offsets);
  return st;
}

kiln_status kiln_dist_split_sized(kiln_comm *comm, kiln_stream *stream,
                                  const kiln_split_desc *desc,
                                  uint64_t capacity, uint64_t *received,
                                  size_t desc_size)
{
  kiln_split_desc own, block;
  kiln__dist d;
  uint64_t *sends = NULL;
  split_plan p;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  COMM_TRY(plan_split(&d, &own, &p));
  sends = calloc(2 * (size_t)comm->ranks, sizeof *sends);
  if (sends == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(kiln__dist_scratch(&d, p.total));
  block = own_split(&d, &own, &p, d.scratch);
  COMM_TRY(split_own(&d, &block, &p, sends));
  COMM_TRY(kiln_comm_all_to_all(comm, stream, block.out, sends, own.out, NULL,
                                capacity, sends + comm->ranks));
  if (received != NULL) {
    *received = 0;
    for (int q = 0; q < comm->ranks; q++)
      *received += sends[comm->ranks + q];
  }

done:
  free(sends);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_split_workspace_sized(kiln_comm *comm,
                                            kiln_stream *stream,
                                            const kiln_split_desc *desc,
                                            size_t *bytes, size_t desc_size)
{
  kiln_split_desc own;
  kiln__dist d;
  split_plan p;
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  st = plan_split(&d, &own, &p);
  if (st == KILN_OK)
    *bytes = p.total;
  return kiln__comm_leave(comm, st);
}
