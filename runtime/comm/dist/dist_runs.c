/* dist_runs.c -- unique elements and reductions by key of arrays in blocks.
 *
 * Problem: a run of equal neighbours may begin in the block of one rank and end
 * in that of another one. It may fill whole blocks in between.
 *
 * Idea: each rank runs the operation of one device on its block. The ranks then
 * share the first and the last element of each block. A block whose first element
 * continues the run before it has one result too many, its first one. That result
 * is dropped, and for a reduction the rank where the run begins combines it with
 * its own last result.
 *
 * Invariant: a run belongs to the rank where it begins. `joined` of a rank means
 * that the first element of its block continues a run of a rank before it. Ranks
 * with empty blocks take no part.
 *
 * Cost: that of the operation on one device, and the latency of three small
 * collectives. If a rank is joined, its results move by one element. */
#include "dist.h"

#include <kiln/gather.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 }; /* of an element */

/* The largest piece of results that moves at a time, in bytes. */
static const size_t shift_bytes = (size_t)1 << 25;

/* Offsets in the temporary memory. */
typedef struct plan {
  size_t edges;   /* first and last element of the block */
  size_t indices; /* of these: 0 and n - 1 */
  size_t pair;    /* the element before the block, and the first one of it */
  size_t count;   /* u64 */
  size_t chain;   /* parts of a run: one element per rank */
  size_t shift, shift_size;
  size_t inner; /* workspace of the operation on one device */
  kiln_workspace workspace;
  size_t total;
} plan;

/* `width` is the size of the largest element of the results. */
static plan make_plan(const kiln_comm *comm, uint64_t n, size_t width,
                      size_t inner)
{
  plan p = {.total = 0};

  p.edges = kiln__dist_place(&p.total, 2, MOST_BYTES);
  p.indices = kiln__dist_place(&p.total, 2, sizeof(uint64_t));
  p.pair = kiln__dist_place(&p.total, 2, MOST_BYTES);
  p.count = kiln__dist_place(&p.total, 1, sizeof(uint64_t));
  p.chain = kiln__dist_place(&p.total, (uint64_t)comm->ranks, MOST_BYTES);
  p.shift_size = n < shift_bytes / width ? (size_t)n * width : shift_bytes;
  p.shift = kiln__dist_place(&p.total, p.shift_size, 1);
  p.inner = inner;
  p.workspace.data = kiln__dist_place(&p.total, inner, 1);
  return p;
}

static kiln_status allocate(kiln__dist *d, plan *p)
{
  const kiln_status st = kiln__dist_scratch(d, p->total);

  p->workspace = (kiln_workspace){d->scratch + p->workspace.data, p->inner};
  return st;
}

/* ---- Neighbours ---------------------------------------------------------- */

/* What a rank tells the others of its block. */
typedef struct edge {
  uint64_t n;
  unsigned char last[MOST_BYTES];
} edge;

/* Finds the last element before this rank's block. Returns whether there is
 * one. */
static kiln_status find_before(kiln__dist *d, const edge *mine, bool *found,
                               void *before)
{
  edge *const all = calloc((size_t)d->comm->ranks, sizeof *all);
  kiln_status st;

  *found = false;
  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  st = kiln_comm_share(d->comm, mine, sizeof *mine, all);
  for (int p = 0; p < d->comm->rank && st == KILN_OK; p++) {
    if (all[p].n > 0) {
      *found = true;
      memcpy(before, all[p].last, MOST_BYTES);
    }
  }
  free(all);
  return st;
}

/* Sets *joined if the block's first element, at `first`, equals the last one
 * before the block. `last` is the last element of the block. */
static kiln_status find_joined(kiln__dist *d, const plan *p, kiln_array first,
                               CUdeviceptr last, uint64_t n, const char *equal,
                               const kiln_code *code, bool *joined)
{
  const size_t size = kiln_dtype_size(first.type);
  const kiln_array pair = {d->scratch + p->pair, first.type};
  const kiln_unique_desc two = {.x = {.in = {pair}},
                                .equal = equal,
                                .n = 2,
                                .count = {d->scratch + p->count, KILN_U64},
                                .code = *code};
  unsigned char before[MOST_BYTES];
  uint64_t runs = 2;
  edge mine = {.n = n};
  bool found = false;
  kiln_status st = KILN_OK;

  *joined = false;
  if (n > 0)
    st = kiln__dist_get(d, mine.last, last, size);
  if (st == KILN_OK)
    st = find_before(d, &mine, &found, before);
  if (st != KILN_OK || !found || n == 0)
    return st;
  st = kiln__dist_put(d, pair.data, before, size);
  if (st == KILN_OK)
    st = kiln_copy_on_device_async(d->stream, pair.data + size, first.data,
                                   size);
  if (st == KILN_OK)
    st = kiln_unique(d->stream, &two, NULL);
  if (st == KILN_OK)
    st = kiln__dist_get(d, &runs, two.count.data, sizeof runs);
  *joined = runs == 1;
  return st;
}

/* Drops the first of n + 1 elements: moves the others by one element, piece by
 * piece through the temporary memory. */
static kiln_status drop_first(kiln__dist *d, const plan *p, kiln_array x,
                              uint64_t n)
{
  const size_t width = kiln_dtype_size(x.type);
  const uint64_t size = n * width;
  const size_t piece = width > 0 ? p->shift_size / width * width : 0;
  const CUdeviceptr through = d->scratch + p->shift;
  kiln_status st = KILN_OK;

  if (x.type == KILN_DTYPE_NONE)
    return KILN_OK;
  for (uint64_t at = 0; at < size && st == KILN_OK; at += piece) {
    const size_t part = size - at < piece ? (size_t)(size - at) : piece;

    st = kiln_copy_on_device_async(d->stream, through, x.data + width + at,
                                   part);
    if (st == KILN_OK)
      st = kiln_copy_on_device_async(d->stream, x.data + at, through, part);
  }
  return st;
}

/* Returns the size of the largest element of two arrays, at least 8 bytes. */
static size_t widest(kiln_dtype a, kiln_dtype b)
{
  const size_t x = kiln_dtype_size(a), y = kiln_dtype_size(b);
  const size_t most = x > y ? x : y;

  return most > sizeof(uint64_t) ? most : sizeof(uint64_t);
}

/* Reads a count that the operation has stored. */
static kiln_status get_count(kiln__dist *d, kiln_array count, uint64_t *n)
{
  *n = 0; /* little-endian: the lowest bytes are a u32 */
  return kiln__dist_get(d, n, count.data, kiln_dtype_size(count.type));
}

static kiln_status put_count(kiln__dist *d, kiln_array count, uint64_t n)
{
  return kiln__dist_put(d, count.data, &n, kiln_dtype_size(count.type));
}

/* ---- Unique -------------------------------------------------------------- */

/* Stores the first and the last element of x after its map. */
static kiln_status take_edges(kiln__dist *d, const plan *p,
                              const kiln_unique_desc *desc, kiln_array edges)
{
  const size_t size = kiln_dtype_size(edges.type);
  const CUdeviceptr x = desc->x.in[0].data;
  const uint64_t index[2] = {0, desc->n - 1};
  const kiln_gather_desc two = {.x = desc->x,
                                .index = {d->scratch + p->indices, KILN_U64},
                                .out = edges,
                                .n = 2,
                                .n_target = desc->n,
                                .method = KILN_INDEX_DIRECT,
                                .code = desc->code};
  kiln_status st;

  if (desc->n == 0)
    return KILN_OK;
  if (desc->x.map == NULL) {
    st = kiln_copy_on_device_async(d->stream, edges.data, x, size);
    return st == KILN_OK
               ? kiln_copy_on_device_async(d->stream, edges.data + size,
                                           x + (desc->n - 1) * size, size)
               : st;
  }
  st = kiln__dist_put(d, two.index.data, index, sizeof index);
  return st == KILN_OK ? kiln_gather(d->stream, &two, NULL) : st;
}

static kiln_status unique_blocks(kiln__dist *d, const kiln_unique_desc *desc,
                                 const plan *p, uint64_t *count)
{
  const kiln_array none = {0, KILN_DTYPE_NONE};
  const kiln_array edges = {d->scratch + p->edges,
                            kiln__dist_type(none, &desc->x)};
  const size_t size = kiln_dtype_size(edges.type);
  bool joined = false;
  kiln_status st = kiln_unique(d->stream, desc, &p->workspace);

  if (st == KILN_OK)
    st = take_edges(d, p, desc, edges);
  if (st == KILN_OK)
    st = find_joined(d, p, edges, edges.data + size, desc->n, desc->equal,
                     &desc->code, &joined);
  if (st == KILN_OK)
    st = get_count(d, desc->count, count);
  if (st != KILN_OK || !joined)
    return st;
  --*count;
  st = drop_first(d, p, desc->out, *count);
  if (st == KILN_OK)
    st = drop_first(d, p, desc->out_index, *count);
  if (st == KILN_OK)
    st = drop_first(d, p, desc->out_payload, *count);
  return st == KILN_OK ? put_count(d, desc->count, *count) : st;
}

kiln_status kiln_dist_unique_sized(kiln_comm *comm, kiln_stream *stream,
                                   const kiln_unique_desc *desc,
                                   uint64_t *first, uint64_t *total,
                                   size_t desc_size)
{
  kiln_unique_desc own;
  kiln__dist d;
  size_t inner = 0;
  uint64_t count = 0;
  plan p;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  if (own.out.type == KILN_DTYPE_NONE && own.out.data != 0)
    own.out.type = kiln__dist_type(own.out, &own.x);
  COMM_TRY(kiln_unique_workspace(stream, &own, &inner));
  p = make_plan(comm, own.n, widest(own.out.type, own.payload.type), inner);
  COMM_TRY(allocate(&d, &p));
  COMM_TRY(unique_blocks(&d, &own, &p, &count));
  COMM_TRY(kiln_dist_blocks(comm, count, first, total));

done:
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_unique_workspace_sized(kiln_comm *comm,
                                             kiln_stream *stream,
                                             const kiln_unique_desc *desc,
                                             size_t *bytes, size_t desc_size)
{
  kiln_unique_desc own;
  kiln__dist d;
  size_t inner = 0;
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  if (own.out.type == KILN_DTYPE_NONE && own.out.data != 0)
    own.out.type = kiln__dist_type(own.out, &own.x);
  st = kiln_unique_workspace(stream, &own, &inner);
  if (st == KILN_OK)
    *bytes =
        make_plan(comm, own.n, widest(own.out.type, own.payload.type), inner)
            .total;
  return kiln__comm_leave(comm, st);
}

/* ---- Reduction by key ---------------------------------------------------- */

/* What a rank tells the others of its results. */
typedef struct part {
  uint64_t runs;                   /* number of results of the block */
  uint64_t joined;                 /* 1 or 0 */
  unsigned char first[MOST_BYTES]; /* its first result */
} part;

/* Copies the parts of the run that ends this rank's block and continues behind
 * it to the chain, behind its first element. Returns their number. */
static kiln_status collect(kiln__dist *d, const part *all, CUdeviceptr chain,
                           size_t size, uint64_t *n)
{
  kiln_status st = KILN_OK;

  *n = 0;
  for (int p = d->comm->rank + 1; p < d->comm->ranks && st == KILN_OK; p++) {
    if (all[p].runs == 0)
      continue;
    if (!all[p].joined)
      break;
    ++*n;
    st = kiln__dist_put(d, chain + *n * size, all[p].first, size);
    if (all[p].runs > 1)
      break;
  }
  return st;
}

/* Combines the last result of this rank with those of the same run behind it. */
static kiln_status finish_last(kiln__dist *d,
                               const kiln_reduce_by_key_desc *desc,
                               const plan *p, const part *all)
{
  const size_t size = kiln_dtype_size(desc->out.type);
  const part *const mine = &all[d->comm->rank];
  const CUdeviceptr last = desc->out.data + (mine->runs - 1) * size;
  kiln_reduce_desc sum = {
      .x = {.in = {{d->scratch + p->chain, desc->out.type}}},
      .op = desc->op,
      .out = {last, desc->out.type},
      .code = desc->code};
  kiln_status st;

  if (mine->runs == 0 || (mine->runs == 1 && mine->joined))
    return KILN_OK;
  st = collect(d, all, d->scratch + p->chain, size, &sum.n);
  if (st != KILN_OK || sum.n == 0)
    return st;
  sum.n++;
  st = kiln_copy_on_device_async(d->stream, d->scratch + p->chain, last, size);
  return st == KILN_OK ? kiln_reduce(d->stream, &sum, NULL) : st;
}

/* Shares the first results, and combines the runs that cross ranks. */
static kiln_status join_runs(kiln__dist *d, const kiln_reduce_by_key_desc *desc,
                             const plan *p, uint64_t *count, bool joined)
{
  part mine = {.runs = *count, .joined = joined};
  part *const all = calloc((size_t)d->comm->ranks, sizeof *all);
  kiln_status st = KILN_OK;

  if (all == NULL)
    return kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory");
  if (*count > 0)
    COMM_TRY(kiln__dist_get(d, mine.first, desc->out.data,
                            kiln_dtype_size(desc->out.type)));
  COMM_TRY(kiln_comm_share(d->comm, &mine, sizeof mine, all));
  COMM_TRY(finish_last(d, desc, p, all));
  if (joined) {
    --*count;
    COMM_TRY(drop_first(d, p, desc->out, *count));
    COMM_TRY(drop_first(d, p, desc->out_keys, *count));
    COMM_TRY(put_count(d, desc->count, *count));
  }
  st = kiln_stream_synchronize(d->stream);

done:
  free(all);
  return st;
}

static kiln_status reduce_blocks(kiln__dist *d,
                                 const kiln_reduce_by_key_desc *desc,
                                 const plan *p, uint64_t *count)
{
  const size_t size = kiln_dtype_size(desc->keys.type);
  bool joined = false;
  kiln_status st = kiln_reduce_by_key(d->stream, desc, &p->workspace);

  if (st == KILN_OK)
    st = find_joined(d, p, desc->keys, desc->keys.data + (desc->n - 1) * size,
                     desc->n, desc->same, &desc->code, &joined);
  if (st == KILN_OK)
    st = get_count(d, desc->count, count);
  return st == KILN_OK ? join_runs(d, desc, p, count, joined) : st;
}

kiln_status kiln_dist_reduce_by_key_sized(kiln_comm *comm, kiln_stream *stream,
                                          const kiln_reduce_by_key_desc *desc,
                                          uint64_t *first, uint64_t *total,
                                          size_t desc_size)
{
  kiln_reduce_by_key_desc own;
  kiln__dist d;
  size_t inner = 0;
  uint64_t count = 0;
  plan p;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  own.out.type = kiln__dist_type(own.out, &own.x);
  COMM_TRY(kiln_reduce_by_key_workspace(stream, &own, &inner));
  p = make_plan(comm, own.n, widest(own.out.type, own.keys.type), inner);
  COMM_TRY(allocate(&d, &p));
  COMM_TRY(reduce_blocks(&d, &own, &p, &count));
  COMM_TRY(kiln_dist_blocks(comm, count, first, total));

done:
  return kiln__dist_end(&d, st);
}

kiln_status
kiln_dist_reduce_by_key_workspace_sized(kiln_comm *comm, kiln_stream *stream,
                                        const kiln_reduce_by_key_desc *desc,
                                        size_t *bytes, size_t desc_size)
{
  kiln_reduce_by_key_desc own;
  kiln__dist d;
  size_t inner = 0;
  kiln_status st = kiln__dist_size_begin(&d, comm, stream, desc, desc_size,
                                         &own, sizeof own, bytes);

  if (st != KILN_OK)
    return st;
  own.out.type = kiln__dist_type(own.out, &own.x);
  st = kiln_reduce_by_key_workspace(stream, &own, &inner);
  if (st == KILN_OK)
    *bytes = make_plan(comm, own.n, widest(own.out.type, own.keys.type), inner)
                 .total;
  return kiln__comm_leave(comm, st);
}
